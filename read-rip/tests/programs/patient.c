/*
 * Healthy threads that wait for a lock for a while: one keeps it for 600 ms, in which it sleeps, again and again.
 */
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t journal = PTHREAD_MUTEX_INITIALIZER;

static void *keeps(void *unused) {
    for (;;) {
        pthread_mutex_lock(&journal);
        usleep(600 * 1000);
        pthread_mutex_unlock(&journal);
        usleep(50 * 1000);
    }
    return unused;
}

static void *wants(void *unused) {
    for (;;) {
        pthread_mutex_lock(&journal);
        pthread_mutex_unlock(&journal);
        usleep(1000);
    }
    return unused;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, keeps, NULL);
    for (int at = 0; at < 2; at++) pthread_create(&thread, NULL, wants, NULL);
    pthread_join(thread, NULL);
}
