/* Two threads lock two accounts in opposite orders, as nobody means to. Nothing here knows of librip. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t current = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t savings = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both_hold_one;

static void transfer(pthread_mutex_t *from, pthread_mutex_t *to) {
    pthread_mutex_lock(from);
    pthread_barrier_wait(&both_hold_one); /* the bad moment, every time */
    pthread_mutex_lock(to);
    pthread_mutex_unlock(to);
    pthread_mutex_unlock(from);
}

static void *save(void *unused) { transfer(&current, &savings); return unused; }
static void *spend(void *unused) { transfer(&savings, &current); return unused; }
static void *idle(void *unused) { pause(); return unused; }

int main(void) {
    pthread_t saver, spender, idler;
    pthread_barrier_init(&both_hold_one, NULL, 2);
    pthread_create(&saver, NULL, save, NULL);
    pthread_setname_np(saver, "saver");
    pthread_create(&spender, NULL, spend, NULL);
    pthread_setname_np(spender, "spender");
    pthread_create(&idler, NULL, idle, NULL);
    pthread_setname_np(idler, "idler");
    pthread_join(saver, NULL);
    puts("transferred");
    return 0;
}
