/* Times pairs of calls that acquire a free lock and release it. Prints a line for each kind of lock: its name, and
 * nanoseconds a pair.
 *
 * scripts/bench preload runs it with and without the interposer in turns; this program does not know which. Each number
 * is the shortest of several short loops, because interruptions disturb that one least. The program first starts and
 * ends a second thread, so that no library takes shortcuts for processes without threads. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, inner = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static sem_t semaphore;

static void *nothing(void *argument) { return argument; }

static double now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

#define PAIRS 20000
#define LOOPS 15

#define MEASURE(name, acquire, release)                \
    do {                                               \
        double best = 1e18;                            \
        for (int loop = 0; loop < LOOPS; loop++) {     \
            double begin = now_ns();                   \
            for (int pair = 0; pair < PAIRS; pair++) { \
                acquire;                               \
                __asm__ volatile("" ::: "memory");     \
                release;                               \
            }                                          \
            double each = (now_ns() - begin) / PAIRS;  \
            best = each < best ? each : best;          \
        }                                              \
        printf("%s\t%.2f\n", name, best);              \
    } while (0)

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, nothing, NULL);
    pthread_join(thread, NULL);
    pthread_spin_init(&spin, 0);
    sem_init(&semaphore, 0, 1);
    MEASURE("mutex", pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex));
    MEASURE("mutex, tried", pthread_mutex_trylock(&mutex), pthread_mutex_unlock(&mutex));
    MEASURE("recursive mutex", pthread_mutex_lock(&recursive), pthread_mutex_unlock(&recursive));
    MEASURE("error-checking mutex", pthread_mutex_lock(&checking), pthread_mutex_unlock(&checking));
    pthread_mutex_lock(&mutex);
    MEASURE("mutex, within another", pthread_mutex_lock(&inner), pthread_mutex_unlock(&inner));
    pthread_mutex_unlock(&mutex);
    MEASURE("rwlock, read", pthread_rwlock_rdlock(&rwlock), pthread_rwlock_unlock(&rwlock));
    MEASURE("rwlock, write", pthread_rwlock_wrlock(&rwlock), pthread_rwlock_unlock(&rwlock));
    MEASURE("spin lock", pthread_spin_lock(&spin), pthread_spin_unlock(&spin));
    MEASURE("semaphore", sem_wait(&semaphore), sem_post(&semaphore));
    return 0;
}
