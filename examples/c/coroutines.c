/* Two coroutines that deadlock: a scheduler with ucontext switches between them in turn, and both wait for ever.
 *
 *     cc -g -O2 coroutines.c $(pkg-config --cflags --libs librip) -o coroutines-c && ./coroutines-c
 *
 * It has one thread, so a debugger shows a scheduler with nothing to do. The two coroutines have no stack that is in
 * use. The ring has a history of each of them, the lock that it holds and the lock that it waits for. When it prints
 * "stuck", kill it and read its ring:
 *
 *     read-rip tasks PATH      shows the coroutines
 *     read-rip check PATH      shows the deadlock, as a cycle
 */
#include <librip.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>

enum { COROUTINES = 2, STACK_SIZE = 64 * 1024, PATIENCE = 1000 };

struct coroutine {
    ucontext_t stack;
    rip_context *context;
    bool has_ended;
};

/* A lock for coroutines: who cannot have it lets the others run. */
struct lock {
    bool is_held;
};

struct account {
    struct lock lock;
    long balance;
};

static struct coroutine coroutines[COROUTINES];
static struct coroutine *running;
static ucontext_t scheduler;
static struct account alice = {{false}, 1000}, bob = {{false}, 1000};

/* Back to the scheduler. The thread leaves the coroutine right before it leaves the stack. */
static void yield(void) {
    rip_context_switch(NULL);
    swapcontext(&running->stack, &scheduler);
}

/* On in a coroutine, until it yields. */
static void resume(struct coroutine *coroutine) {
    running = coroutine;
    rip_context_switch(coroutine->context);
    swapcontext(&scheduler, &coroutine->stack);
}

static void acquire(struct lock *lock) {
    if (lock->is_held) {
        RIP_LOCK_WAIT(lock, RIP_EXCLUSIVE);
        while (lock->is_held) yield();
    }
    lock->is_held = true;
    RIP_LOCK_ACQUIRED(lock, RIP_EXCLUSIVE);
}

static void release(struct lock *lock) {
    lock->is_held = false;
    RIP_LOCK_RELEASED(lock, RIP_EXCLUSIVE);
}

static void transfer(struct account *from, struct account *to, long amount) {
    RIP_SNAP_LABEL("begins a transfer");
    acquire(&from->lock);
    yield(); /* the other one gets its first lock */
    RIP_SNAP_LABEL("was resumed");
    acquire(&to->lock);
    from->balance -= amount;
    to->balance += amount;
    release(&to->lock);
    release(&from->lock);
    RIP_PROGRESS();
}

static void there(void) {
    transfer(&alice, &bob, 100);
    running->has_ended = true;
    rip_context_switch(NULL); /* the function returns to the scheduler's stack */
}

static void back(void) {
    transfer(&bob, &alice, 10);
    running->has_ended = true;
    rip_context_switch(NULL);
}

static void start(struct coroutine *coroutine, const char *name, void (*body)(void)) {
    getcontext(&coroutine->stack);
    coroutine->stack.uc_stack.ss_size = STACK_SIZE;
    coroutine->stack.uc_stack.ss_sp = malloc(STACK_SIZE);
    if (!coroutine->stack.uc_stack.ss_sp) exit(1);
    coroutine->stack.uc_link = &scheduler;
    coroutine->context = rip_context_create(name);
    makecontext(&coroutine->stack, body, 0);
}

int main(void) {
    char path[4096];
    /* Failing to record is no reason to fail. */
    if (rip_start()) fprintf(stderr, "coroutines: could not start recording\n");
    rip_set_thread_name("scheduler");
    RIP_LOCK_NAME(&alice.lock, "alice");
    RIP_LOCK_NAME(&bob.lock, "bob");
    rip_ring_path(path, sizeof path);
    printf("running: pid %d, ring %s\n", (int)getpid(), path);
    start(&coroutines[0], "there", there);
    start(&coroutines[1], "back", back);
    for (int round = 0; round < PATIENCE; round++) {
        for (int i = 0; i < COROUTINES; i++) {
            if (!coroutines[i].has_ended) resume(&coroutines[i]);
        }
    }
    RIP_SNAP_LABEL("gives up");
    printf("stuck\n");
    fflush(stdout);
    pause();
    for (int i = 0; i < COROUTINES; i++) {
        rip_context_destroy(coroutines[i].context);
        free(coroutines[i].stack.uc_stack.ss_sp);
    }
    return 0;
}
