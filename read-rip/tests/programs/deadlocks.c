/*
 * Gets threads stuck, or keeps them busy, with locks that nothing records: deadlocks CASE [THREADS].
 *
 * No thread sleeps in a futex on its way, so a reader waits until as many sleep there as the case says. A healthy case
 * prints a line once it is under way.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

pthread_mutex_t savings = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t current_account = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t table_index = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static sem_t left_fork, right_fork;
static atomic_int arrived;

static void fail(const char *what, int error) {
    fprintf(stderr, "%s: %s\n", what, strerror(error));
    _exit(2);
}

#define MUST(call)                       \
    do {                                 \
        int error_ = (call);             \
        if (error_) fail(#call, error_); \
    } while (0)

/* Returns when two threads have called it. */
static void meet(void) {
    atomic_fetch_add(&arrived, 1);
    while (atomic_load(&arrived) < 2) sched_yield();
}

static struct timespec after_ns(long nanoseconds, time_t seconds) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_sec += seconds + (time.tv_nsec + nanoseconds) / 1000000000;
    time.tv_nsec = (time.tv_nsec + nanoseconds) % 1000000000;
    return time;
}

/* Mutexes in opposite orders. */

struct pair {
    pthread_mutex_t *first, *second;
};

static __attribute__((noipa)) void transfer(pthread_mutex_t *from, pthread_mutex_t *to) {
    MUST(pthread_mutex_lock(from));
    meet();
    MUST(pthread_mutex_lock(to)); /* the second lock */
    MUST(pthread_mutex_unlock(to));
    MUST(pthread_mutex_unlock(from));
}

static void *transfers(void *pair) {
    transfer(((struct pair *)pair)->first, ((struct pair *)pair)->second);
    return NULL;
}

static __attribute__((noipa)) void *transfers_within_a_year(void *pair) {
    struct timespec year = after_ns(0, 365 * 24 * 3600);
    MUST(pthread_mutex_lock(((struct pair *)pair)->first));
    meet();
    MUST(pthread_mutex_timedlock(((struct pair *)pair)->second, &year));
    return NULL;
}

/* A cycle that ends by itself and is made anew, again and again. */
static void *transfers_with_patience(void *pair) {
    for (;;) {
        struct timespec soon = after_ns(200000, 0);
        MUST(pthread_mutex_lock(((struct pair *)pair)->first));
        if (pthread_mutex_timedlock(((struct pair *)pair)->second, &soon) == 0)
            MUST(pthread_mutex_unlock(((struct pair *)pair)->second));
        MUST(pthread_mutex_unlock(((struct pair *)pair)->first));
    }
    return NULL;
}

static void initialise(pthread_mutex_t *mutex, int type, int robust, int protocol) {
    pthread_mutexattr_t attributes;
    MUST(pthread_mutexattr_init(&attributes));
    MUST(pthread_mutexattr_settype(&attributes, type));
    MUST(pthread_mutexattr_setrobust(&attributes, robust));
    MUST(pthread_mutexattr_setprotocol(&attributes, protocol));
    MUST(pthread_mutex_init(mutex, &attributes));
}

static void spawn(const char *name, void *(*body)(void *), void *argument) {
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, body, argument));
    MUST(pthread_setname_np(thread, name));
}

static void opposite(pthread_mutex_t *one, pthread_mutex_t *other, void *(*saver)(void *), void *(*spender)(void *)) {
    static struct pair pairs[2];
    pairs[0] = (struct pair){one, other};
    pairs[1] = (struct pair){other, one};
    spawn("saver", saver, &pairs[0]);
    spawn("spender", spender, &pairs[1]);
}

static void opposite_of(int type, int robust, int protocol) {
    initialise(&savings, type, robust, protocol);
    initialise(&current_account, type, robust, protocol);
    opposite(&savings, &current_account, transfers, transfers);
}

/* Other locks. */

/* A lock of the kernel alone, without the C library: a free one has 0, and a taken one its owner's id. */
static unsigned word;
/* FUTEX_LOCK_PI with FUTEX_PRIVATE_FLAG: musl comes without the kernel's headers. */
enum { LOCK_PI = 6 | 128 };

static void take_the_word(void) {
    unsigned expected = 0;
    if (!atomic_compare_exchange_strong((_Atomic unsigned *)&word, &expected, (unsigned)syscall(SYS_gettid)))
        syscall(SYS_futex, &word, LOCK_PI, 0, NULL, NULL, 0);
}

static __attribute__((noipa)) void *takes_the_word_first(void *pair) {
    take_the_word();
    meet();
    MUST(pthread_mutex_lock(((struct pair *)pair)->second));
    return NULL;
}

static __attribute__((noipa)) void *takes_the_word_last(void *pair) {
    MUST(pthread_mutex_lock(((struct pair *)pair)->first));
    meet();
    take_the_word(); /* the word */
    return NULL;
}

static __attribute__((noipa)) void *writes_the_table(void *unused) {
    (void)unused;
    MUST(pthread_rwlock_wrlock(&table));
    meet();
    MUST(pthread_rwlock_wrlock(&table_index));
    return NULL;
}

static __attribute__((noipa)) void *looks_up(void *unused) {
    (void)unused;
    MUST(pthread_rwlock_wrlock(&table_index));
    meet();
    MUST(pthread_rwlock_rdlock(&table));
    return NULL;
}

static __attribute__((noipa)) void *saves(void *unused) {
    (void)unused;
    MUST(pthread_mutex_lock(&savings));
    return NULL;
}

static __attribute__((noipa)) void *joins_under_a_lock(void *unused) {
    (void)unused;
    pthread_t thread;
    MUST(pthread_mutex_lock(&savings));
    MUST(pthread_create(&thread, NULL, saves, NULL));
    MUST(pthread_join(thread, NULL));
    return NULL;
}

static __attribute__((noipa)) void *locks_twice(void *unused) {
    (void)unused;
    MUST(pthread_mutex_lock(&savings));
    MUST(pthread_mutex_lock(&savings));
    return NULL;
}

static __attribute__((noipa)) void *eats(void *left_first) {
    sem_wait(left_first ? &left_fork : &right_fork);
    meet();
    sem_wait(left_first ? &right_fork : &left_fork);
    return NULL;
}

static __attribute__((noipa)) void *waits_for_a_change(void *unused) {
    (void)unused;
    MUST(pthread_mutex_lock(&savings));
    for (;;) MUST(pthread_cond_wait(&changed, &savings));
    return NULL;
}

/* A healthy program at full speed: two locks in one order, and a condition. */

static long moved;

static void *works(void *unused) {
    (void)unused;
    for (;;) {
        MUST(pthread_mutex_lock(&savings));
        MUST(pthread_mutex_lock(&current_account));
        if (++moved % 64 == 0) pthread_cond_broadcast(&changed);
        MUST(pthread_mutex_unlock(&current_account));
        if (moved % 16 == 0) {
            struct timespec soon = after_ns(100000, 0);
            pthread_cond_timedwait(&changed, &savings, &soon);
        }
        MUST(pthread_mutex_unlock(&savings));
        MUST(pthread_rwlock_rdlock(&table));
        MUST(pthread_rwlock_unlock(&table));
        MUST(pthread_rwlock_wrlock(&table));
        MUST(pthread_mutex_lock(&current_account));
        MUST(pthread_mutex_unlock(&current_account));
        MUST(pthread_rwlock_unlock(&table));
    }
    return NULL;
}

/* A liar: the locks are free or somebody's, and their memory says what it likes. The fields are those of glibc. */

struct forged {
    int word;
    unsigned count;
    int owner;
};

static pthread_mutex_t lies[2];
static atomic_int liars[2], told;

static void *waits_for_a_lie(void *index) {
    long at = (long)index;
    atomic_store(&liars[at], (int)syscall(SYS_gettid));
    while (!atomic_load(&told)) sched_yield();
    pthread_mutex_lock(&lies[at]);
    return NULL;
}

static void lie(int is_restless) {
    for (int at = 0; at < 2; at++) ((struct forged *)&lies[at])->word = 2;
    spawn("liar", waits_for_a_lie, (void *)0);
    spawn("liar", waits_for_a_lie, (void *)1);
    while (!atomic_load(&liars[0]) || !atomic_load(&liars[1])) sched_yield();
    for (unsigned turn = 0;; turn++) {
        /* Each seems to wait for the other. */
        for (int at = 0; at < 2; at++)
            *(volatile int *)&((struct forged *)&lies[at])->owner = atomic_load(&liars[(at + 1 + turn % 3) % 2]);
        atomic_store(&told, 1);
        if (!is_restless) return;
    }
}

/* Owners that are not in the process. */

static void *takes_savings(void *nothing) {
    MUST(pthread_mutex_lock(&savings)); /* for the missing owner */
    return nothing;
}

static void *writes_and_leaves(void *nothing) {
    MUST(pthread_rwlock_wrlock(&table));
    return nothing;
}

static void *keeps_savings(void *nothing) {
    takes_savings(nothing);
    meet();
    for (;;) pause();
}

/* It does not sleep until then: who counts the threads that sleep would count it. */
static void run_to_its_end(void *(*body)(void *)) {
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, body, NULL));
    int status;
    while ((status = pthread_tryjoin_np(thread, NULL)) == EBUSY) sched_yield();
    MUST(status);
}

/* FUTEX_WAIT without FUTEX_PRIVATE_FLAG, as gcc's std::atomic::wait calls it. */
static void *waits_for_a_word(void *of) {
    for (;;) syscall(SYS_futex, of, 0, 0, NULL, NULL, 0);
}

/* The child of a fork wants a lock. If not `is_stuck`, its only thread may release it. */
static void forks(int is_stuck) {
    if (is_stuck) {
        spawn("holder", keeps_savings, NULL);
        meet();
    } else {
        takes_savings(NULL);
    }
    if (fork() != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (is_stuck) takes_savings(NULL);
    spawn("waiter", takes_savings, NULL);
}

int main(int count, char **arguments) {
    const char *name = count > 1 ? arguments[1] : "";
    long threads = count > 2 ? atol(arguments[2]) : 8;
#define IS(it) (strcmp(name, it) == 0)
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sem_init(&left_fork, 0, 1);
    sem_init(&right_fork, 0, 1);
    enum { STALLED = PTHREAD_MUTEX_STALLED, ROBUST = PTHREAD_MUTEX_ROBUST };
    enum { NONE = PTHREAD_PRIO_NONE, INHERIT = PTHREAD_PRIO_INHERIT };
    if (IS("normal")) opposite(&savings, &current_account, transfers, transfers);
    else if (IS("recursive")) opposite_of(PTHREAD_MUTEX_RECURSIVE, STALLED, NONE);
    else if (IS("error-checking")) opposite_of(PTHREAD_MUTEX_ERRORCHECK, STALLED, NONE);
    else if (IS("robust")) opposite_of(PTHREAD_MUTEX_NORMAL, ROBUST, NONE);
    else if (IS("inheriting")) opposite_of(PTHREAD_MUTEX_NORMAL, STALLED, INHERIT);
    else if (IS("inheriting-and-normal")) {
        /* The kernel sees only one of them. */
        initialise(&savings, PTHREAD_MUTEX_NORMAL, STALLED, INHERIT);
        opposite(&savings, &current_account, transfers, transfers);
    } else if (IS("raw-inheriting")) {
        initialise(&current_account, PTHREAD_MUTEX_NORMAL, STALLED, NONE);
        opposite(&savings, &current_account, takes_the_word_first, takes_the_word_last);
    } else if (IS("heap")) {
        pthread_mutex_t *both = malloc(2 * sizeof *both);
        for (int at = 0; at < 2; at++) initialise(&both[at], PTHREAD_MUTEX_NORMAL, STALLED, NONE);
        opposite(&both[0], &both[1], transfers, transfers);
    } else if (IS("rwlocks")) {
        spawn("writer", writes_the_table, NULL);
        spawn("reader", looks_up, NULL);
    } else if (IS("join")) spawn("joiner", joins_under_a_lock, NULL);
    else if (IS("self")) spawn("forgetful", locks_twice, NULL);
    else if (IS("timed")) opposite(&savings, &current_account, transfers, transfers_within_a_year);
    else if (IS("semaphores")) {
        spawn("philosopher", eats, &left_fork);
        spawn("philosopher", eats, NULL);
    } else if (IS("conditions")) {
        spawn("waiter", waits_for_a_change, NULL);
        spawn("waiter", waits_for_a_change, NULL);
    } else if (IS("nobody-left")) {
        spawn("waiter", waits_for_a_change, NULL);
        waits_for_a_change(NULL);
    } else if (IS("left")) {
        run_to_its_end(takes_savings);
        spawn("waiter", takes_savings, NULL);
    } else if (IS("left-writing")) {
        run_to_its_end(writes_and_leaves);
        spawn("waiter", writes_and_leaves, NULL);
    } else if (IS("word")) {
        static unsigned never;
        pthread_t thread;
        MUST(pthread_create(&thread, NULL, waits_for_a_word, &never));
        MUST(pthread_join(thread, NULL));
    } else if (IS("forked") || IS("forked-with-a-lock")) {
        forks(IS("forked"));
    } else if (IS("patience")) {
        opposite(&savings, &current_account, transfers_with_patience, transfers_with_patience);
        puts("runs");
    } else if (IS("healthy")) {
        while (threads-- > 0) spawn("worker", works, NULL);
        puts("runs");
    } else if (IS("lies")) lie(0);
    else if (IS("restless-lies")) {
        puts("runs");
        fflush(stdout);
        lie(1);
    } else {
        fprintf(stderr, "deadlocks: no case is called %s\n", name);
        return 2;
    }
    fflush(stdout);
    for (;;) pause();
}
