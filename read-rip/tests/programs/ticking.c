/*
 * Threads that wait for one another beside one that sleeps for a time again and again, or waits for connections.
 *
 * ticking CASE [server|calls|echo|pause|handler|disarmed]
 *
 * With `server`, the first thread waits for connections, and gives a unit for each. With `calls`, it calls a function
 * for that by a pointer. With `echo`, it answers, and gives nothing. With `handler`, it
 * waits for a signal. With `pause`, no signal has a handler. With `disarmed`, it reads a timer that is not armed. No
 * other thread ticks in these three.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define MUST(call)              \
    do {                        \
        if ((call) != 0) {      \
            perror(#call);      \
            _exit(2);           \
        }                       \
    } while (0)

static sem_t units;
static int events[2];
static pthread_barrier_t gate;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* The only signal came before. */
static void *misses_signal(void *unused) {
    MUST(pthread_cond_signal(&changed));
    MUST(pthread_mutex_lock(&lock));
    MUST(pthread_cond_wait(&changed, &lock));
    MUST(pthread_mutex_unlock(&lock));
    return unused;
}

/* Reads one eventfd, and writes to the other one only then. */
static void *answers(void *first) {
    int *own = first, *other = own == events ? events + 1 : events;
    eventfd_t value;
    MUST(eventfd_read(*own, &value));
    MUST(eventfd_write(*other, value));
    return NULL;
}

static void *takes_units(void *unused) {
    while (sem_wait(&units) == 0) continue;
    return unused;
}

static void *ticks(void *unused) {
    for (;;) usleep(20 * 1000);
    return unused;
}

static pthread_t start_with(void *(*body)(void *), void *argument) {
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, body, argument));
    return thread;
}

static pthread_t start(void *(*body)(void *)) {
    return start_with(body, NULL);
}

static void *meets(void *unused) {
    pthread_barrier_wait(&gate);
    return unused;
}

static void gives_unit(int connection) {
    close(connection);
    MUST(sem_post(&units));
}

static void answers_connection(int connection) {
    char text[64];
    ssize_t len;
    while ((len = read(connection, text, sizeof text)) > 0) (void)!write(connection, text, len);
    close(connection);
}

static void (*volatile connected)(int) = gives_unit;

static int listens(void) {
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    MUST(bind(listener, (struct sockaddr *)&any, sizeof any));
    MUST(listen(listener, 1));
    return listener;
}

static void handles(int signal) {
    (void)signal;
}

static void reads_timer(void) {
    unsigned long long expirations;
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    for (;;) (void)!read(timer, &expirations, sizeof expirations);
}

/* The process alone could write. */
static void reads_pipe(void) {
    int ends[2];
    char byte;
    MUST(pipe(ends));
    for (;;) (void)!read(ends[0], &byte, 1);
}

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "", *first = argc > 2 ? argv[2] : "";
    pthread_t last = 0;
    MUST(sem_init(&units, 0, 0));
    MUST(pthread_barrier_init(&gate, NULL, 3));
    if (argc < 3 || !strcmp(first, "server")) start(ticks);
    if (!strcmp(name, "signal")) {
        last = start(misses_signal);
    } else if (!strcmp(name, "events")) {
        for (int at = 0; at < 2; at++) MUST((events[at] = eventfd(0, 0)) < 0);
        for (int at = 0; at < 2; at++) last = start_with(answers, &events[at]);
    } else if (!strcmp(name, "barrier")) {
        start(meets);
        last = start(meets);
    } else if (!strcmp(name, "idle")) {
        start(takes_units);
        last = start(takes_units);
    }
    int listener = listens();
    while (!strcmp(first, "server")) gives_unit(accept(listener, NULL, NULL));
    while (!strcmp(first, "calls")) connected(accept(listener, NULL, NULL));
    while (!strcmp(first, "echo")) answers_connection(accept(listener, NULL, NULL));
    if (!strcmp(first, "disarmed")) reads_timer();
    if (!strcmp(first, "pipe")) reads_pipe();
    if (!strcmp(first, "handler")) signal(SIGUSR1, handles);
    if (argc > 2) for (;;) pause();
    MUST(pthread_join(last, NULL));
    return 2;
}
