// Threads that sleep at a known depth of known functions. Each line of output says that one more is about to sleep.
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static int pipes[2];
static volatile int sink;

static __attribute__((noipa)) int in_mutex(int n) {
    pthread_mutex_lock(&mutex);
    return n + sink;
}

static __attribute__((noipa)) int in_condition(int n) {
    pthread_mutex_lock(&other);
    pthread_cond_wait(&never, &other);
    return n + sink;
}

static __attribute__((noipa)) int in_read(int n) {
    char byte;
    return n + (int)read(pipes[0], &byte, 1);
}

static __attribute__((noipa)) int in_poll(int n) {
    struct pollfd end = {pipes[0], POLLIN, 0};
    return n + poll(&end, 1, -1);
}

static __attribute__((noipa)) int in_sleep(int n) {
    struct timespec time = {100000, 0};
    return n + nanosleep(&time, NULL);
}

typedef int wait_function(int);

/// Leaves return addresses and frame pointers of calls that are over where later frames have their variables.
static __attribute__((noipa)) int leave_traces(int n) {
    volatile char pad[64];
    pad[0] = (char)n;
    if (n > 0) {
        sink += leave_traces(n - 1);
    }
    return pad[0];
}

static __attribute__((noipa)) int inner(wait_function *wait, int n) {
    volatile char unused[2000];
    unused[n & 7] = (char)n;
    return wait(n) + unused[n & 7];
}

/// Its frame's size is not known before it runs.
static __attribute__((noipa)) int middle(wait_function *wait, int n) {
    volatile char *some = __builtin_alloca((size_t)(n & 63) + 40);
    some[0] = 1;
    return inner(wait, n + 1) + some[0];
}

/// Its frame is aligned further than the stack is.
static __attribute__((noipa)) int aligned(wait_function *wait, int n) {
    _Alignas(64) volatile char line[64];
    line[1] = (char)n;
    return middle(wait, n + 2) + line[1];
}

static __attribute__((noipa)) int outer(wait_function *wait, int n) {
    sink += leave_traces(20);
    return aligned(wait, n) + 1;
}

static __attribute__((noipa)) void handler(int signal) {
    sink += outer(in_read, signal);
}

static __attribute__((noipa)) int in_handler(int n) {
    pthread_kill(pthread_self(), SIGUSR1);
    return n + sink;
}

static __attribute__((noipa)) int on_other_stack(int n) {
    stack_t other_stack = {malloc(1 << 16), 0, 1 << 16};
    sigaltstack(&other_stack, NULL);
    pthread_kill(pthread_self(), SIGUSR2);
    return n + sink;
}

static void *worker(void *wait) {
    sink += outer((wait_function *)wait, 5);
    return NULL;
}

int main(int argc, char **argv) {
    static wait_function *const waits[] = {
        in_mutex, in_condition, in_read, in_poll, in_sleep, in_handler, on_other_stack,
    };
    int copies = argc > 1 ? atoi(argv[1]) : 1;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    sigaction(SIGUSR1, &action, NULL);
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR2, &action, NULL);
    if (pipe(pipes) != 0) {
        return 1;
    }
    pthread_mutex_lock(&mutex);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 1 << 17);
    for (int copy = 0; copy < copies; copy++) {
        for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
            pthread_t thread;
            if (pthread_create(&thread, &attributes, worker, (void *)waits[i]) != 0) {
                return 1;
            }
        }
    }
    printf("%d\n", (int)(copies * sizeof waits / sizeof *waits));
    fflush(stdout);
    return outer(in_read, 7);
}
