/*
 * Threads that wait for a lock: one keeps it for 600 ms, in which it sleeps, again and again.
 *
 *     patient          all is well
 *     patient forgets  the holder never releases the lock, and does other things
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

static void *forgets(void *unused) {
    pthread_mutex_lock(&journal);
    for (;;) usleep(20 * 1000);
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

int main(int argc, char **argv) {
    (void)argv;
    pthread_t thread;
    pthread_create(&thread, NULL, argc > 1 ? forgets : keeps, NULL);
    for (int at = 0; at < 2; at++) pthread_create(&thread, NULL, wants, NULL);
    pthread_join(thread, NULL);
}
