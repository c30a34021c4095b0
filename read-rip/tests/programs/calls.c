/*
 * Has a thread in each of several calls that do not return by themselves, one that computes, and one that counts
 * signals. For each line of input it says which calls have returned since it began, or that none has; and then, how
 * many signals were sent, and waits until as many have arrived.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SIGNALS 500

static char returned[1024];
static pthread_mutex_t returned_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t all_are_there;
static atomic_int arrived;
static int sockets[2], timed_sockets[2], pipes[2];
static sem_t units;
static uint32_t word;

static void says(const char *call) {
    int error = errno;
    pthread_mutex_lock(&returned_lock);
    size_t len = strlen(returned);
    snprintf(returned + len, sizeof returned - len, " %s (%s)", call, strerror(error));
    pthread_mutex_unlock(&returned_lock);
    for (;;) pause();
}

static struct timespec in_an_hour(void) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_sec += 3600;
    return time;
}

static void sleeps(void) { nanosleep(&(struct timespec){.tv_sec = 3600}, NULL); }
static void takes_a_unit(void) { sem_wait(&units); }
static void takes_a_unit_in_time(void) {
    struct timespec limit = in_an_hour();
    sem_timedwait(&units, &limit);
}
static void waits_for_a_word(void) { syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0); }
static void waits_for_a_word_in_time(void) {
    syscall(SYS_futex, &word, FUTEX_WAIT, 0, &(struct timespec){.tv_sec = 3600}, NULL, 0);
}
static void receives(void) {
    char byte;
    recv(sockets[0], &byte, 1, 0);
}
static void receives_in_time(void) {
    char byte;
    recv(timed_sockets[0], &byte, 1, 0);
}
static void waits_for_events(void) {
    struct epoll_event event;
    epoll_wait(epoll_create1(0), &event, 1, -1);
}
static void polls(void) { poll(&(struct pollfd){.fd = pipes[0], .events = POLLIN}, 1, -1); }
static void selects(void) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(pipes[0], &set);
    select(pipes[0] + 1, &set, NULL, NULL, NULL);
}
static void reads(void) {
    char byte;
    if (read(pipes[0], &byte, 1) < 0) return;
}
static void waits_for_a_child(void) {
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) pause();
    }
    wait(NULL);
}
static volatile unsigned long sum;
__attribute__((noinline)) static void computes(void) {
    for (;;) sum++; /* computes */
}
static void counts(void) {
    for (;;) pause();
}

static const struct {
    const char *name;
    void (*call)(void);
} calls[] = {{"sleeps", sleeps},
             {"takes", takes_a_unit},
             {"takes-timed", takes_a_unit_in_time},
             {"word", waits_for_a_word},
             {"word-timed", waits_for_a_word_in_time},
             {"receives", receives},
             {"receives-timed", receives_in_time},
             {"events", waits_for_events},
             {"polls", polls},
             {"selects", selects},
             {"reads", reads},
             {"child", waits_for_a_child},
             {"computes", computes},
             {"counts", counts}};
#define CALLS (sizeof calls / sizeof *calls)
static pthread_t threads[CALLS];

static void *thread(void *argument) {
    size_t at = (size_t)argument;
    prctl(PR_SET_NAME, calls[at].name);
    pthread_barrier_wait(&all_are_there);
    calls[at].call();
    says(calls[at].name);
    return NULL;
}

static void counts_one(int signal) {
    (void)signal;
    arrived++;
}

int main(void) {
    struct timeval hour = {.tv_sec = 3600};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) || socketpair(AF_UNIX, SOCK_STREAM, 0, timed_sockets) ||
        setsockopt(timed_sockets[0], SOL_SOCKET, SO_RCVTIMEO, &hour, sizeof hour) || pipe(pipes))
        return 2;
    signal(SIGRTMIN, counts_one);
    sem_init(&units, 0, 0);
    pthread_barrier_init(&all_are_there, NULL, CALLS + 1);
    for (size_t at = 0; at < CALLS; at++) pthread_create(&threads[at], NULL, thread, (void *)at);
    pthread_barrier_wait(&all_are_there);
    puts("ready");
    fflush(stdout);
    for (char line[100]; fgets(line, sizeof line, stdin);) {
        pthread_mutex_lock(&returned_lock);
        printf("returned:%s\n", *returned ? returned : " none");
        pthread_mutex_unlock(&returned_lock);
        fflush(stdout);
        /* Signals of real time queue: each arrives. */
        for (int sent = 0; sent < SIGNALS;)
            if (pthread_kill(threads[CALLS - 1], SIGRTMIN) == 0) sent++;
        int wanted = SIGNALS;
        while (arrived < wanted) usleep(100);
        arrived = 0;
        printf("arrived: %d\n", wanted);
        fflush(stdout);
    }
    return 0;
}
