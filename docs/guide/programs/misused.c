/* A thread unlocks a mutex that another one owns, and ignores that the C library refuses. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t queue;

static void *drain(void *unused) {
    pthread_mutex_unlock(&queue);
    return unused;
}

int main(void) {
    pthread_mutexattr_t checked;
    pthread_t drainer;
    pthread_mutexattr_init(&checked);
    pthread_mutexattr_settype(&checked, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&queue, &checked);
    pthread_mutex_lock(&queue);
    pthread_create(&drainer, NULL, drain, NULL);
    pthread_join(drainer, NULL);
    puts("ready");
    fflush(stdout);
    pause();
}
