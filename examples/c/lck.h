/* The lock functions of a server, marked once for all callers: a recipe for your own.
 *
 * The functions with two underscores in their names are the program's. The macros have the names that the callers use.
 * Each macro is an expression, evaluates its arguments once, and has the value of the function that it calls. The class
 * of a lock is the caller's expression, such as "&session->mutex": read-rip shows it for locks without a name.
 */
#ifndef LCK_H
#define LCK_H 1

#include <errno.h>
#include <librip.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct lock {
    pthread_mutex_t mutex;
};

/* Tries first: a free lock then costs no time stamp. */
#define Lck_Lock(l)                                                                                                  \
    __extension__({                                                                                                  \
        struct lock *rip_lock = (l);                                                                                 \
        if (Lck__Trylock(rip_lock)) {                                                                                \
            RIP_LOCK_WAIT_CLASS(rip_lock, RIP_EXCLUSIVE, #l);                                                        \
            Lck__Lock(rip_lock);                                                                                     \
        }                                                                                                            \
        RIP_LOCK_ACQUIRED_CLASS(rip_lock, RIP_EXCLUSIVE, #l);                                                        \
    })

/* 0 if the thread has acquired the lock, else EBUSY. */
#define Lck_Trylock(l)                                                                                               \
    __extension__({                                                                                                  \
        struct lock *rip_lock = (l);                                                                                 \
        int rip_result = Lck__Trylock(rip_lock);                                                                     \
        if (rip_result)                                                                                              \
            RIP_LOCK_TRY_FAILED_CLASS(rip_lock, RIP_EXCLUSIVE, #l);                                                  \
        else                                                                                                         \
            RIP_LOCK_ACQUIRED_CLASS(rip_lock, RIP_EXCLUSIVE | RIP_TRY, #l);                                          \
        rip_result;                                                                                                  \
    })

#define Lck_Unlock(l)                                                                                                \
    __extension__({                                                                                                  \
        struct lock *rip_lock = (l);                                                                                 \
        Lck__Unlock(rip_lock);                                                                                       \
        RIP_LOCK_RELEASED_CLASS(rip_lock, RIP_EXCLUSIVE, #l);                                                        \
    })

#define Lck_CondWait(c, l)                                                                                           \
    __extension__({                                                                                                  \
        pthread_cond_t *rip_condition = (c);                                                                         \
        struct lock *rip_lock = (l);                                                                                 \
        RIP_CONDITION_WAIT(rip_condition, rip_lock, 0);                                                              \
        Lck__CondWait(rip_condition, rip_lock);                                                                      \
        RIP_CONDITION_WOKEN(rip_condition, rip_lock, 0);                                                             \
    })

/* 0 if the thread was woken, ETIMEDOUT if not. It has the lock in both cases. */
#define Lck_CondWaitUntil(c, l, when)                                                                                \
    __extension__({                                                                                                  \
        pthread_cond_t *rip_condition = (c);                                                                         \
        struct lock *rip_lock = (l);                                                                                 \
        RIP_CONDITION_WAIT(rip_condition, rip_lock, RIP_TRY);                                                        \
        int rip_result = Lck__CondWaitUntil(rip_condition, rip_lock, when);                                          \
        RIP_CONDITION_WOKEN(rip_condition, rip_lock, RIP_TRY);                                                       \
        rip_result;                                                                                                  \
    })

static inline void Lck__must(int error, const char *what) {
    if (error) {
        fprintf(stderr, "%s: %s\n", what, strerror(error));
        exit(1);
    }
}

static inline void Lck__Lock(struct lock *l) {
    Lck__must(pthread_mutex_lock(&l->mutex), "pthread_mutex_lock");
}

static inline int Lck__Trylock(struct lock *l) {
    int error = pthread_mutex_trylock(&l->mutex);
    if (error != EBUSY) Lck__must(error, "pthread_mutex_trylock");
    return error;
}

static inline void Lck__Unlock(struct lock *l) {
    Lck__must(pthread_mutex_unlock(&l->mutex), "pthread_mutex_unlock");
}

static inline void Lck__CondWait(pthread_cond_t *c, struct lock *l) {
    Lck__must(pthread_cond_wait(c, &l->mutex), "pthread_cond_wait");
}

static inline int Lck__CondWaitUntil(pthread_cond_t *c, struct lock *l, const struct timespec *when) {
    int error = pthread_cond_timedwait(c, &l->mutex, when);
    if (error != ETIMEDOUT) Lck__must(error, "pthread_cond_timedwait");
    return error;
}

#endif
