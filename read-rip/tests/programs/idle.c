/*
 * Threads that wait, as a healthy program has them or as a stuck one: idle CASE.
 *
 * No thread sleeps in a futex on its way, so a reader waits until as many sleep there as the case says.
 */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t cache = PTHREAD_MUTEX_INITIALIZER;
static sem_t units;
static int listener;
static int backend[2];
static atomic_bool cache_is_held;

#define MUST(call)              \
    do {                        \
        if ((call) != 0) {      \
            perror(#call);      \
            _exit(2);           \
        }                       \
    } while (0)

static void start(int count, void *(*body)(void *)) {
    for (int index = 0; index < count; index++) {
        pthread_t thread;
        MUST(pthread_create(&thread, NULL, body, NULL));
    }
}

static void listens(void) {
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    listener = socket(AF_INET, SOCK_STREAM, 0);
    MUST(bind(listener, (struct sockaddr *)&any, sizeof any));
    MUST(listen(listener, 1));
}

/* Takes work from a queue, under its mutex. */
static void *takes_work(void *unused) {
    MUST(pthread_mutex_lock(&queue));
    for (;;) MUST(pthread_cond_wait(&work, &queue));
    return unused;
}

/* Takes work from a queue that counts. */
static void *takes_units(void *unused) {
    while (sem_wait(&units) == 0) continue;
    return unused;
}

static void *takes_shared_units(void *shared) {
    while (sem_wait(shared) == 0) continue;
    return shared;
}

/* Accepts connections, one thread at a time. */
static void *accepts_in_turn(void *unused) {
    MUST(pthread_mutex_lock(&turn));
    for (;;) accept(listener, NULL, NULL);
    return unused;
}

/* Waits for work under the lock that the others wait for, as the workers of the Rust Book. */
static void *takes_turns(void *unused) {
    MUST(pthread_mutex_lock(&turn));
    while (sem_wait(&units) == 0) continue;
    return unused;
}

static void *expires(void *unused) {
    char byte;
    MUST(pthread_mutex_lock(&cache));
    cache_is_held = true;
    while (read(backend[0], &byte, 1) != 0) continue;
    return unused;
}

static void *looks_up(void *unused) {
    MUST(pthread_mutex_lock(&cache));
    return unused;
}

static void waits_for_signals(void) {
    sigset_t all;
    int signal;
    sigfillset(&all);
    for (;;) sigwait(&all, &signal);
}

static void polls(void) {
    struct epoll_event event;
    int epoll = epoll_create1(0);
    event.events = EPOLLIN;
    event.data.fd = listener;
    MUST(epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event));
    for (;;) epoll_wait(epoll, &event, 1, -1);
}

/* Works on what the cache protects for half a second, again and again. */
static void *keeps_for_a_while(void *unused) {
    for (;;) {
        MUST(pthread_mutex_lock(&cache));
        cache_is_held = true;
        usleep(500 * 1000);
        MUST(pthread_mutex_unlock(&cache));
        /* All others have their turn, also on a busy machine. */
        usleep(200 * 1000);
    }
    return unused;
}

static void *looks_up_again(void *unused) {
    for (;;) {
        MUST(pthread_mutex_lock(&cache));
        MUST(pthread_mutex_unlock(&cache));
        usleep(10 * 1000);
    }
    return unused;
}

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "";
    MUST(sem_init(&units, 0, 0));
    MUST(pipe(backend));
    listens();
    if (!strcmp(name, "queue")) {
        start(4, takes_work);
        waits_for_signals();
    } else if (!strcmp(name, "queue-and-epoll")) {
        start(4, takes_work);
        start(4, takes_units);
        polls();
    } else if (!strcmp(name, "leader")) {
        start(4, accepts_in_turn);
        waits_for_signals();
    } else if (!strcmp(name, "book-pool")) {
        start(4, takes_turns);
        polls();
    } else if (!strcmp(name, "nobody-left")) {
        /* Nobody is left who brings work, and the first thread waits for the end of a worker. */
        pthread_t last;
        start(3, takes_work);
        MUST(pthread_create(&last, NULL, takes_work, NULL));
        MUST(pthread_join(last, NULL));
    } else if (!strcmp(name, "pool-of-processes")) {
        /* Another process has the memory of the semaphore too, and brings work by it. */
        pthread_t taker;
        sem_t *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        MUST(shared == MAP_FAILED || sem_init(shared, 1, 0));
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;) pause();
        }
        MUST(pthread_create(&taker, NULL, takes_shared_units, shared));
        pthread_join(taker, NULL);
    } else if (!strcmp(name, "slow-turns")) {
        /* One window of a check is shorter than a turn. */
        start(1, keeps_for_a_while);
        while (!cache_is_held) sched_yield();
        start(4, looks_up_again);
        waits_for_signals();
    } else if (!strcmp(name, "backend")) {
        /* A thread keeps the cache while it waits for a backend that does not answer. */
        start(1, expires);
        while (!cache_is_held) sched_yield();
        start(4, looks_up);
        polls();
    }
    return 2;
}
