/*
 * A pool of threads whose jobs wait, or which has nothing to do: jobs CASE.
 *
 * The first thread waits for connections, and another one sleeps for a time again and again.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MUST(call)              \
    do {                        \
        if ((call) != 0) {      \
            perror(#call);      \
            _exit(2);           \
        }                       \
    } while (0)

enum { WORKERS = 2 };

struct job {
    void (*run)(struct job *);
    struct job *next;
    bool is_done;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queued = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static struct job *queue, *urgent;
static int taken;

static void submit(struct job *job) {
    MUST(pthread_mutex_lock(&lock));
    job->next = queue;
    queue = job;
    MUST(pthread_cond_signal(&queued));
    MUST(pthread_mutex_unlock(&lock));
}

static void *works(void *unused) {
    for (;;) {
        MUST(pthread_mutex_lock(&lock));
        while (queue == NULL) MUST(pthread_cond_wait(&queued, &lock));
        struct job *job = queue;
        queue = job->next;
        taken++;
        MUST(pthread_mutex_unlock(&lock));
        job->run(job); /* the job */
        MUST(pthread_mutex_lock(&lock));
        job->is_done = true;
        MUST(pthread_cond_broadcast(&done));
        MUST(pthread_mutex_unlock(&lock));
    }
    return unused;
}

static void computes(struct job *job) { job->next = NULL; }

/* Waits for a job of the same pool. All workers do, before one is queued. */
static void needs_another(struct job *job) {
    struct job *other = calloc(1, sizeof *other);
    MUST(pthread_mutex_lock(&lock));
    while (taken < WORKERS) {
        MUST(pthread_mutex_unlock(&lock));
        usleep(1000);
        MUST(pthread_mutex_lock(&lock));
    }
    MUST(pthread_mutex_unlock(&lock));
    other->run = computes;
    submit(other);
    MUST(pthread_mutex_lock(&lock));
    while (!other->is_done) MUST(pthread_cond_wait(&done, &lock));
    MUST(pthread_mutex_unlock(&lock));
    free(other);
    (void)job;
}

/* Waits for what nobody brings. */
static __attribute__((noinline)) void needs_signal(struct job *job) {
    MUST(pthread_mutex_lock(&lock));
    while (!job->is_done) MUST(pthread_cond_wait(&done, &lock));
    MUST(pthread_mutex_unlock(&lock));
}

static __attribute__((noinline)) struct job *get(void) {
    MUST(pthread_mutex_lock(&lock));
    while (queue == NULL) MUST(pthread_cond_wait(&queued, &lock));
    struct job *job = queue;
    queue = job->next;
    MUST(pthread_mutex_unlock(&lock));
    return job;
}

static __attribute__((noinline)) struct job *get_urgent(void) {
    MUST(pthread_mutex_lock(&lock));
    while (urgent == NULL) MUST(pthread_cond_wait(&queued, &lock));
    struct job *job = urgent;
    urgent = job->next;
    MUST(pthread_mutex_unlock(&lock));
    return job;
}

static struct job *(*volatile source)(void) = get;
static volatile bool is_urgent;

/* A virtual function gets the jobs, and a function with a name runs them, which may wait. */
static void *works_for_source(void *unused) {
    for (;;) needs_signal(source());
    return unused;
}

/* Two functions get jobs. The worker has nothing to do in the second one. */
static void *works_for_two(void *unused) {
    for (;;) {
        struct job *job = is_urgent ? get_urgent() : get();
        job->run(job);
    }
    return unused;
}

static void *ticks(void *unused) {
    for (;;) usleep(20 * 1000);
    return unused;
}

static void start(int count, void *(*body)(void *)) {
    for (int index = 0; index < count; index++) {
        pthread_t thread;
        MUST(pthread_create(&thread, NULL, body, NULL));
    }
}

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "";
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    static struct job jobs[WORKERS];
    MUST(bind(listener, (struct sockaddr *)&any, sizeof any));
    MUST(listen(listener, 1));
    bool has_source = !strcmp(name, "source"), has_two = !strcmp(name, "two");
    bool is_idle = has_source || has_two || !strcmp(name, "idle");
    start(WORKERS, has_source ? works_for_source : has_two ? works_for_two : works);
    start(1, ticks);
    /* The second job of `one` ends, and its worker has nothing to do. */
    for (int index = 0; !is_idle && index < WORKERS; index++) {
        bool is_stuck = !strcmp(name, "stuck");
        jobs[index].run = is_stuck ? needs_another : index == 0 ? needs_signal : computes;
        submit(&jobs[index]);
    }
    for (;;) {
        struct job *job = calloc(1, sizeof *job);
        close(accept(listener, NULL, NULL));
        job->run = computes;
        submit(job);
    }
}
