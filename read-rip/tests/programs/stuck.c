/*
 * Gets a thread stuck in one synchronisation object: stuck OBJECT.
 *
 * The main thread, or a helper, takes the object; a second thread then waits for it. Before the wait, the program
 * prints "WAITER OBJECT OWNER": the thread id of the one that waits, the address of the object (hexadecimal), and the
 * thread id of the one that has it, or 0. A reader then waits until the kernel shows the futex.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t semaphore;
static sem_t started;
static pthread_t joined;

static pid_t own_tid(void) { return (pid_t)syscall(SYS_gettid); }

static void fail(const char *what, int error) {
    fprintf(stderr, "%s: %s\n", what, strerror(error));
    _exit(2);
}

#define MUST(call)                      \
    do {                                \
        int error_ = (call);            \
        if (error_) fail(#call, error_); \
    } while (0)

static void say(pid_t waiter, const void *object, pid_t owner) {
    char line[80];
    int length = snprintf(line, sizeof line, "%d %lx %d\n", waiter, (unsigned long)object, owner);
    if (write(1, line, (size_t)length) != length) _exit(2);
}

static void forever(void) {
    for (;;) pause();
}

/* Starts a thread, and returns when it has called sem_post(&started). */
static pthread_t start(void *(*body)(void *), void *argument) {
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, body, argument));
    while (sem_wait(&started)) continue;
    return thread;
}

static struct timespec in_a_year(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_sec += 365 * 24 * 3600;
    return time;
}

/* Mutexes: the main thread has it. */

static void *lock_mutex(void *owner) {
    say(own_tid(), &mutex, *(pid_t *)owner);
    MUST(pthread_mutex_lock(&mutex));
    return NULL;
}

static void *lock_mutex_for_a_year(void *owner) {
    struct timespec until = in_a_year(CLOCK_REALTIME);
    say(own_tid(), &mutex, *(pid_t *)owner);
    MUST(pthread_mutex_timedlock(&mutex, &until));
    return NULL;
}

static void mutex_of(int type, int robust, int protocol, int shared) {
    pthread_mutexattr_t attributes;
    MUST(pthread_mutexattr_init(&attributes));
    MUST(pthread_mutexattr_settype(&attributes, type));
    MUST(pthread_mutexattr_setrobust(&attributes, robust));
    MUST(pthread_mutexattr_setprotocol(&attributes, protocol));
    MUST(pthread_mutexattr_setpshared(&attributes, shared));
    MUST(pthread_mutex_init(&mutex, &attributes));
}

static void stuck_mutex(void *(*body)(void *)) {
    static pid_t owner;
    pthread_t thread;
    owner = own_tid();
    MUST(pthread_mutex_lock(&mutex));
    MUST(pthread_create(&thread, NULL, body, &owner));
    forever();
}

static void *lock_and_leave(void *unused) {
    (void)unused;
    MUST(pthread_mutex_lock(&mutex));
    return NULL;
}

/* Readers-writer locks. */

static void *write_rwlock(void *owner) {
    if (owner) say(own_tid(), &rwlock, *(pid_t *)owner);
    MUST(pthread_rwlock_wrlock(&rwlock));
    return NULL;
}

static void *read_rwlock(void *owner) {
    say(own_tid(), &rwlock, *(pid_t *)owner);
    MUST(pthread_rwlock_rdlock(&rwlock));
    return NULL;
}

static void *hold_by_reading(void *unused) {
    (void)unused;
    MUST(pthread_rwlock_rdlock(&rwlock));
    sem_post(&started);
    forever();
    return NULL;
}

#ifdef __GLIBC__
/* Returns when somebody waits to write: a reader is refused then, if writers go first. */
static void await_a_writer(void) {
    while (pthread_rwlock_tryrdlock(&rwlock) == 0) {
        MUST(pthread_rwlock_unlock(&rwlock));
        sched_yield();
    }
}
#endif

/* The others. */

static void *wait_condition(void *is_timed) {
    struct timespec until = in_a_year(CLOCK_REALTIME);
    MUST(pthread_mutex_lock(&mutex));
    say(own_tid(), &condition, 0);
    for (;;) {
        if (is_timed) pthread_cond_timedwait(&condition, &mutex, &until);
        else MUST(pthread_cond_wait(&condition, &mutex));
    }
    return NULL;
}

/* The condition has waiters of both of its groups: some were there before a signal and some came later. */
static void *wait_condition_silently(void *unused) {
    (void)unused;
    MUST(pthread_mutex_lock(&mutex));
    sem_post(&started);
    for (;;) MUST(pthread_cond_wait(&condition, &mutex));
    return NULL;
}

static void *wait_semaphore(void *unused) {
    (void)unused;
    say(own_tid(), &semaphore, 0);
    while (sem_wait(&semaphore)) continue;
    return NULL;
}

static void *wait_barrier(void *unused) {
    (void)unused;
    say(own_tid(), &barrier, 0);
    pthread_barrier_wait(&barrier);
    return NULL;
}

static void initialise(void) {
    sem_post(&started);
    forever();
}

static void *call_once(void *unused) {
    (void)unused;
    MUST(pthread_once(&once, initialise));
    return NULL;
}

static void *call_once_later(void *unused) {
    (void)unused;
    say(own_tid(), &once, 0);
    MUST(pthread_once(&once, initialise));
    return NULL;
}

static pid_t joined_tid;

static void *stay(void *unused) {
    (void)unused;
    joined_tid = own_tid();
    sem_post(&started);
    forever();
    return NULL;
}

static void *join(void *is_timed) {
    struct timespec until = in_a_year(CLOCK_REALTIME);
    say(own_tid(), (void *)joined, joined_tid);
    if (is_timed) MUST(pthread_timedjoin_np(joined, NULL, &until));
    else MUST(pthread_join(joined, NULL));
    return NULL;
}

static void *write_stream(void *owner) {
    say(own_tid(), stderr, *(pid_t *)owner);
    fputs("never\n", stderr);
    return NULL;
}

static int look_at_library(struct dl_phdr_info *info, size_t size, void *owner) {
    (void)info, (void)size;
    pthread_t thread;
    extern void *look(void *);
    MUST(pthread_create(&thread, NULL, look, owner));
    forever();
    return 0;
}

static int look_again(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)info, (void)size, (void)unused;
    return 1;
}

void *look(void *owner) {
    say(own_tid(), NULL, *(pid_t *)owner);
    dl_iterate_phdr(look_again, NULL);
    return NULL;
}

int main(int count, char **arguments) {
    static pid_t self;
    const char *object = count > 1 ? arguments[1] : "";
#define IS(name) (strcmp(object, name) == 0)
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    self = own_tid();
    sem_init(&started, 0, 0);
    sem_init(&semaphore, 0, 0);

    enum { STALLED = PTHREAD_MUTEX_STALLED, ROBUST = PTHREAD_MUTEX_ROBUST };
    enum { NONE = PTHREAD_PRIO_NONE, INHERIT = PTHREAD_PRIO_INHERIT };
    enum { PRIVATE = PTHREAD_PROCESS_PRIVATE, SHARED = PTHREAD_PROCESS_SHARED };
    if (IS("normal")) stuck_mutex(lock_mutex);
    if (IS("timed")) stuck_mutex(lock_mutex_for_a_year);
    if (IS("self")) {
        MUST(pthread_mutex_lock(&mutex));
        lock_mutex(&self);
    }
    if (IS("recursive")) {
        mutex_of(PTHREAD_MUTEX_RECURSIVE, STALLED, NONE, PRIVATE);
        MUST(pthread_mutex_lock(&mutex));
        stuck_mutex(lock_mutex);
    }
    if (IS("error-checking")) {
        mutex_of(PTHREAD_MUTEX_ERRORCHECK, STALLED, NONE, PRIVATE);
        stuck_mutex(lock_mutex);
    }
#ifdef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
    if (IS("adaptive")) {
        mutex_of(PTHREAD_MUTEX_ADAPTIVE_NP, STALLED, NONE, PRIVATE);
        stuck_mutex(lock_mutex);
    }
#endif
    if (IS("shared")) {
        mutex_of(PTHREAD_MUTEX_NORMAL, STALLED, NONE, SHARED);
        stuck_mutex(lock_mutex);
    }
    if (IS("robust")) {
        mutex_of(PTHREAD_MUTEX_NORMAL, ROBUST, NONE, PRIVATE);
        stuck_mutex(lock_mutex);
    }
    if (IS("robust-shared")) {
        mutex_of(PTHREAD_MUTEX_ERRORCHECK, ROBUST, NONE, SHARED);
        stuck_mutex(lock_mutex);
    }
    if (IS("inheriting")) {
        mutex_of(PTHREAD_MUTEX_NORMAL, STALLED, INHERIT, PRIVATE);
        stuck_mutex(lock_mutex);
    }
    if (IS("robust-inheriting")) {
        mutex_of(PTHREAD_MUTEX_RECURSIVE, ROBUST, INHERIT, PRIVATE);
        stuck_mutex(lock_mutex);
    }
    if (IS("abandoned")) {
        pthread_t thread;
        MUST(pthread_create(&thread, NULL, lock_and_leave, NULL));
        MUST(pthread_join(thread, NULL));
        MUST(pthread_create(&thread, NULL, lock_mutex, &joined_tid));
        forever();
    }

    pthread_t thread;
    if (IS("read-after-writer")) {
        MUST(pthread_rwlock_wrlock(&rwlock));
        MUST(pthread_create(&thread, NULL, read_rwlock, &self));
        forever();
    }
    if (IS("write-after-writer")) {
        MUST(pthread_rwlock_wrlock(&rwlock));
        MUST(pthread_create(&thread, NULL, write_rwlock, &self));
        forever();
    }
    if (IS("write-after-readers")) {
        static pid_t nobody;
        start(hold_by_reading, NULL);
        MUST(pthread_rwlock_rdlock(&rwlock));
        MUST(pthread_create(&thread, NULL, write_rwlock, &nobody));
        forever();
    }
#ifdef __GLIBC__
    if (IS("read-behind-writer")) {
        static pid_t nobody;
        pthread_rwlockattr_t attributes;
        MUST(pthread_rwlockattr_init(&attributes));
        MUST(pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP));
        MUST(pthread_rwlock_init(&rwlock, &attributes));
        start(hold_by_reading, NULL);
        MUST(pthread_create(&thread, NULL, write_rwlock, NULL));
        await_a_writer();
        MUST(pthread_create(&thread, NULL, read_rwlock, &nobody));
        forever();
    }
#endif
    if (IS("condition") || IS("condition-timed")) {
        MUST(pthread_create(&thread, NULL, wait_condition, IS("condition-timed") ? &self : NULL));
        forever();
    }
    if (IS("condition-later")) {
        for (int waiter = 0; waiter < 3; waiter++) start(wait_condition_silently, NULL);
        MUST(pthread_mutex_lock(&mutex)); /* All three wait now. */
        MUST(pthread_cond_signal(&condition));
        MUST(pthread_mutex_unlock(&mutex));
        MUST(pthread_create(&thread, NULL, wait_condition, NULL));
        forever();
    }
    if (IS("semaphore")) {
        MUST(pthread_create(&thread, NULL, wait_semaphore, NULL));
        forever();
    }
    if (IS("barrier")) {
        MUST(pthread_barrier_init(&barrier, NULL, 3));
        MUST(pthread_create(&thread, NULL, wait_barrier, NULL));
        forever();
    }
    if (IS("once")) {
        start(call_once, NULL);
        MUST(pthread_create(&thread, NULL, call_once_later, NULL));
        forever();
    }
    if (IS("join") || IS("join-timed")) {
        joined = start(stay, NULL);
        MUST(pthread_create(&thread, NULL, join, IS("join-timed") ? &self : NULL));
        forever();
    }
    if (IS("stream")) {
        flockfile(stderr);
        MUST(pthread_create(&thread, NULL, write_stream, &self));
        forever();
    }
    if (IS("loader")) dl_iterate_phdr(look_at_library, &self);
    fprintf(stderr, "stuck: no object is called %s\n", object);
    return 2;
}
