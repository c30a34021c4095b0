/*
 * Healthy threads at a busy lock: contended mutex, or contended allocator.
 *
 * One of five threads has the mutex and computes for some seconds, and the others wait. The allocator changes hands
 * all the time.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long sum;

static void compute(void) {
    for (unsigned long n = 0; n < 4000000000ul; n++) sum += n;
}

static void *at_mutex(void *unused) {
    for (;;) {
        pthread_mutex_lock(&table);
        compute();
        pthread_mutex_unlock(&table);
    }
    return unused;
}

/* All of them use one arena. */
static void *at_allocator(void *unused) {
    for (;;) {
        void *blocks[40];
        for (int at = 0; at < 40; at++) blocks[at] = malloc(3000 + 100 * at);
        for (int at = 0; at < 40; at++) free(blocks[at]);
    }
    return unused;
}

int main(int count, char **arguments) {
    pthread_t thread;
    int is_allocator = count > 1 && strcmp(arguments[1], "allocator") == 0;
    mallopt(M_ARENA_MAX, 1);
    for (int at = 0; at < 5; at++) pthread_create(&thread, NULL, is_allocator ? at_allocator : at_mutex, NULL);
    pthread_join(thread, NULL);
}
