/* A manager with workers, each a process of its own. One worker gets stuck.
 *
 *     cc -g -O2 manager.c $(pkg-config --cflags --libs librip) -pthread -o manager && ./manager
 *
 * Each worker calls rip_start() itself, after the fork and after it has given up its rights: so each has its own ring,
 * under its own name, and a worker that crashes again and again cannot overwrite the record of the first crash. Each
 * worker answers the manager's question whether it is well. When the manager prints "stuck: worker 2, pid PID":
 *
 *     read-rip check PID       says why
 *     read-rip list            lists the rings of all workers
 *
 * The requests of worker 2 lock a session and then the statistics. Its reporter locks them in the opposite order.
 */
#include "lck.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 3, FAULTY = 2, PATIENCE_MS = 2000 };

struct session {
    struct lock lock;
    unsigned requests;
};

struct worker {
    pid_t pid;
    int questions; /* the manager writes, the worker reads */
    int answers;
};

static struct lock statistics = {PTHREAD_MUTEX_INITIALIZER};
static unsigned served;
/* Requests that wait for a thread. */
static struct lock queue = {PTHREAD_MUTEX_INITIALIZER};
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static unsigned queued;
/* The faulty worker's threads meet here, each with its first lock. */
static pthread_barrier_t both_have_one;

static void fail_if(int failed, const char *what) {
    if (failed) {
        perror(what);
        exit(1);
    }
}

/* Answers a request, and counts it. */
static void answer(struct session *session, int is_faulty) {
    Lck_Lock(&session->lock);
    session->requests++;
    if (is_faulty) pthread_barrier_wait(&both_have_one);
    Lck_Lock(&statistics);
    served++;
    Lck_Unlock(&statistics);
    Lck_Unlock(&session->lock);
    RIP_PROGRESS();
}

static void *reporter(void *argument) {
    struct session *session = argument;
    rip_set_thread_name("reporter");
    Lck_Lock(&statistics);
    pthread_barrier_wait(&both_have_one);
    Lck_Lock(&session->lock);
    printf("%u of %u\n", session->requests, served);
    Lck_Unlock(&session->lock);
    Lck_Unlock(&statistics);
    return NULL;
}

/* Waits for requests. */
static void *idle(void *unused) {
    rip_set_thread_name("idle");
    Lck_Lock(&queue);
    while (queued == 0) Lck_CondWait(&filled, &queue);
    queued--;
    Lck_Unlock(&queue);
    return unused;
}

static void start(void *(*body)(void *), void *argument) {
    pthread_t thread;
    Lck__must(pthread_create(&thread, NULL, body, argument), "pthread_create");
}

/* Answers each question of the manager with a byte, after a request. */
static void serve(int number, int questions, int answers) {
    struct session *session = calloc(1, sizeof *session);
    char byte;

    /* In the worker, not in the manager. Failing to record is no reason to fail. */
    if (rip_start()) fprintf(stderr, "worker %d: could not start recording\n", number);
    rip_set_thread_name("worker");
    fail_if(!session, "calloc");
    Lck__must(pthread_mutex_init(&session->lock.mutex, NULL), "pthread_mutex_init");
    Lck__must(pthread_barrier_init(&both_have_one, NULL, 2), "pthread_barrier_init");
    start(idle, NULL);
    if (number == FAULTY) start(reporter, session);
    while (read(questions, &byte, 1) == 1) {
        answer(session, number == FAULTY);
        if (write(answers, "", 1) != 1) break;
    }
    exit(0);
}

static struct worker begin_worker(int number) {
    int questions[2], answers[2];
    struct worker worker;
    fail_if(pipe(questions) || pipe(answers), "pipe");
    worker.pid = fork();
    fail_if(worker.pid < 0, "fork");
    if (worker.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(questions[1]);
        serve(number, questions[0], answers[1]);
    }
    close(questions[0]);
    close(answers[1]);
    worker.questions = questions[1];
    worker.answers = answers[0];
    return worker;
}

/* Whether the worker answers in time. */
static int is_well(const struct worker *worker) {
    struct pollfd answers = {worker->answers, POLLIN, 0};
    char byte;
    if (write(worker->questions, "", 1) != 1) return 0;
    return poll(&answers, 1, PATIENCE_MS) == 1 && read(worker->answers, &byte, 1) == 1;
}

int main(void) {
    struct worker workers[WORKERS];
    for (int i = 0; i < WORKERS; i++) workers[i] = begin_worker(i + 1);
    for (int i = 0; i < WORKERS; i++) {
        if (is_well(&workers[i])) printf("well: worker %d, pid %d\n", i + 1, (int)workers[i].pid);
    }
    for (int i = 0; i < WORKERS; i++) {
        if (!is_well(&workers[i])) printf("stuck: worker %d, pid %d\n", i + 1, (int)workers[i].pid);
    }
    fflush(stdout);
    /* Here a real manager would run read-rip, end the worker, and start another. */
    return wait(NULL) < 0;
}
