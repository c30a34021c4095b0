/* A registry behind a mutex. One thread has the mutex and calls back, another one wants it: tests/unprepared/python.rs
   has the interpreter's lock on the other side. */
#include <pthread.h>
#include <stdatomic.h>
#include <sched.h>

static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static atomic_int is_flushing, is_adding;

void add_entry(void) {
    while (!is_flushing)
        sched_yield();
    is_adding = 1;
    pthread_mutex_lock(&registry);
    pthread_mutex_unlock(&registry);
}

void flush_registry(void (*callback)(void)) {
    pthread_mutex_lock(&registry);
    is_flushing = 1;
    while (!is_adding)
        sched_yield();
    callback();
    pthread_mutex_unlock(&registry);
}
