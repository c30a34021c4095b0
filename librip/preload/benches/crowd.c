/* Measures what starting a thread costs while many others wait.
 *
 *   crowd WAITERS...
 *
 * For each number, so many threads wait for a condition. Then threads start, lock a mutex once, and end, one after the
 * other. The output has a line for each number: a name, a tab, and the nanoseconds of one such thread.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { STARTS = 2000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, own = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER, all_wait = PTHREAD_COND_INITIALIZER;
static int waiting, is_over;

static void *wait_in_crowd(void *unused) {
    (void)unused;
    pthread_mutex_lock(&mutex);
    waiting++;
    pthread_cond_signal(&all_wait);
    while (!is_over)
        pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void *mark_once(void *unused) {
    (void)unused;
    pthread_mutex_lock(&own);
    pthread_mutex_unlock(&own);
    return NULL;
}

static void start(pthread_t *thread, void *(*body)(void *)) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 << 10);
    if (pthread_create(thread, &attributes, body, NULL)) {
        fputs("could not start a thread\n", stderr);
        exit(1);
    }
    pthread_attr_destroy(&attributes);
}

static void measure(int waiters) {
    pthread_t *crowd = calloc(waiters + 1, sizeof *crowd);
    waiting = is_over = 0;
    for (int index = 0; index < waiters; index++)
        start(&crowd[index], wait_in_crowd);
    pthread_mutex_lock(&mutex);
    while (waiting < waiters)
        pthread_cond_wait(&all_wait, &mutex);
    pthread_mutex_unlock(&mutex);

    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int index = 0; index < STARTS; index++) {
        pthread_t thread;
        start(&thread, mark_once);
        pthread_join(thread, NULL);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    double ns = (end.tv_sec - begin.tv_sec) * 1e9 + (end.tv_nsec - begin.tv_nsec);
    printf("a thread beside %d\t%.0f\n", waiters, ns / STARTS);

    pthread_mutex_lock(&mutex);
    is_over = 1;
    pthread_cond_broadcast(&condition);
    pthread_mutex_unlock(&mutex);
    for (int index = 0; index < waiters; index++)
        pthread_join(crowd[index], NULL);
    free(crowd);
}

int main(int count, char **arguments) {
    for (int index = 1; index < count; index++)
        measure(atoi(arguments[index]));
    return 0;
}
