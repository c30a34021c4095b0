/*
 * Threads that run without pause. The argument says which:
 *
 *   flag     one waits in a loop for a lock that the program makes of an atomic, and whose owner joins it
 *   spin     the same with a spin lock of pthread
 *   try      two have a lock each, and try that of the other one again and again
 *            With a second argument, the main thread waits for input, and brings nothing then
 *   released healthy: two try locks that the main thread has, which waits for input, and releases them then
 *   own      healthy: two have a lock each, which they tried, and compute
 *   outside  healthy: one computes, and the main thread waits for input
 *   works    healthy: one computes, in memory that it gets for each step, and the main thread joins it
 *
 * Before they begin, they sleep until the main thread has waited for more than a second. Then "ready" is printed.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static atomic_int flag;
static pthread_spinlock_t spin;
static pthread_mutex_t locks[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static atomic_int begun, passed;
static int threads = 1;

/* All threads wait here for one another. The last one that goes on says so. */
static void begin(void) {
    usleep(1100 * 1000);
    begun++;
    while (begun < threads) {
    }
    if (atomic_fetch_add(&passed, 1) + 1 == threads) {
        puts("ready");
        fflush(stdout);
    }
}

static void *waits_for_flag(void *unused) {
    begin();
    while (atomic_exchange(&flag, 1)) {
    }
    return unused;
}

static void *waits_for_spin(void *unused) {
    begin();
    pthread_spin_lock(&spin);
    return unused;
}

static void *tries_other(void *own) {
    long at = (long)own;
    pthread_mutex_lock(&locks[at]);
    begin();
    while (pthread_mutex_trylock(&locks[1 - at])) {
    }
    return own;
}

static void *tries(void *own) {
    begin();
    while (pthread_mutex_trylock(&locks[(long)own])) {
    }
    return own;
}

static void *computes_with_own(void *own) {
    begin();
    if (!pthread_mutex_trylock(&locks[(long)own])) {
        for (volatile unsigned long number = 1;; number = number * 6364136223846793005 + 1) {
        }
    }
    return own;
}

static void *computes(void *unused) {
    begin();
    for (volatile unsigned long number = 1;; number = number * 6364136223846793005 + 1) {
    }
    return unused;
}

static void *works(void *unused) {
    begin();
    for (;;) {
        size_t len = 1 << 16;
        void *memory = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(memory, 1, len);
        munmap(memory, len);
    }
    return unused;
}

int main(int count, char **arguments) {
    const char *which = count > 1 ? arguments[1] : "";
    pthread_t thread;
    char input;
    if (!strcmp(which, "flag")) {
        flag = 1;
        pthread_create(&thread, NULL, waits_for_flag, NULL);
    } else if (!strcmp(which, "spin")) {
        pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
        pthread_spin_lock(&spin);
        pthread_create(&thread, NULL, waits_for_spin, NULL);
    } else if (!strcmp(which, "try")) {
        threads = 2;
        for (long at = 0; at < 2; at++) pthread_create(&thread, NULL, tries_other, (void *)at);
        if (count > 2) (void)!read(0, &input, 1);
    } else if (!strcmp(which, "released")) {
        threads = 2;
        for (long at = 0; at < 2; at++) pthread_mutex_lock(&locks[at]);
        for (long at = 0; at < 2; at++) pthread_create(&thread, NULL, tries, (void *)at);
        (void)!read(0, &input, 1);
        for (long at = 0; at < 2; at++) pthread_mutex_unlock(&locks[at]);
    } else if (!strcmp(which, "own")) {
        threads = 2;
        for (long at = 0; at < 2; at++) pthread_create(&thread, NULL, computes_with_own, (void *)at);
    } else if (!strcmp(which, "outside")) {
        pthread_create(&thread, NULL, computes, NULL);
        getchar();
    } else {
        pthread_create(&thread, NULL, works, NULL);
    }
    pthread_join(thread, NULL);
}
