/*
 * A busy program whose throughput is measured: busy WORKERS SLEEPERS.
 *
 * The workers take two locks, one after the other, and compute a little; the sleepers wait on a condition. For each
 * line of input it prints how many operations a second there were since the last one.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t cache = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t idle = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static atomic_long done;

static void *works(void *unused) {
    (void)unused;
    volatile unsigned sum = 0;
    for (;;) {
        pthread_mutex_lock(&queue);
        sum += 1;
        pthread_mutex_unlock(&queue);
        for (unsigned n = 0; n < 200; n++) sum += n;
        pthread_mutex_lock(&cache);
        sum += 1;
        pthread_mutex_unlock(&cache);
        atomic_fetch_add_explicit(&done, 1, memory_order_relaxed);
    }
    return NULL;
}

static void *sleeps(void *unused) {
    (void)unused;
    pthread_mutex_lock(&idle);
    for (;;) pthread_cond_wait(&work, &idle);
    return NULL;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int start(void *(*body)(void *), long count) {
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    while (count-- > 0) {
        pthread_t thread;
        if (pthread_create(&thread, &small, body, NULL)) return 0;
    }
    return 1;
}

int main(int count, char **arguments) {
    if (count != 3 || !start(sleeps, atol(arguments[2])) || !start(works, atol(arguments[1]))) return 2;
    char line[64];
    double since = now();
    while (fgets(line, sizeof line, stdin)) {
        double moment = now();
        printf("%.0f\n", (double)atomic_exchange(&done, 0) / (moment - since));
        fflush(stdout);
        since = moment;
    }
    return 0;
}
