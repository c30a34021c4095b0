/* A server in C whose workers pile up at a lock. The program marks its lock functions once, not each call.
 *
 *     cc -g -O2 server.c $(pkg-config --cflags --libs librip) -pthread -o server-c && ./server-c
 *
 * The janitor locks the sessions and asks a backend that does not answer. All workers wait for that lock. When the
 * server prints "stuck", kill it and read its ring:
 *
 *     read-rip -t PATH         shows where each thread was
 *     read-rip locks PATH      shows which thread holds the lock, and which threads wait for it
 *
 * lck.h has the marks: the lock functions of the program, marked once for all callers. Copy its pattern.
 */
#include "lck.h"

#include <unistd.h>

enum { WORKERS = 20 };

static struct lock sessions_lock = {PTHREAD_MUTEX_INITIALIZER};
static unsigned long sessions;
/* The backend would send its answer here. */
static int backend[2];
/* Each worker writes a byte when it has served a request, and the janitor when it holds the lock. */
static int served[2];

static void ask_the_backend(void) {
    char answer;
    RIP_SNAP_LABEL("asks the backend");
    if (read(backend[0], &answer, 1) != 1) exit(1);
}

static void *janitor(void *unused) {
    rip_set_thread_name("janitor");
    Lck_Lock(&sessions_lock);
    if (write(served[1], "", 1) != 1) exit(1);
    ask_the_backend();
    sessions = 0;
    Lck_Unlock(&sessions_lock);
    return unused;
}

static void serve(void) {
    Lck_Lock(&sessions_lock);
    sessions++;
    Lck_Unlock(&sessions_lock);
    RIP_PROGRESS();
}

static void *worker(void *number) {
    char name[32];
    snprintf(name, sizeof name, "worker %d", *(int *)number);
    rip_set_thread_name(name);
    serve();
    if (write(served[1], "", 1) != 1) exit(1);
    for (;;) serve();
    return NULL;
}

static pthread_t start(void *(*body)(void *), void *argument) {
    pthread_t thread;
    Lck__must(pthread_create(&thread, NULL, body, argument), "pthread_create");
    return thread;
}

int main(void) {
    static int numbers[WORKERS];
    char path[4096], byte;

    /* Failing to record is no reason to fail. */
    if (rip_start()) fprintf(stderr, "server: could not start recording\n");
    rip_set_thread_name("main");
    RIP_LOCK_NAME(&sessions_lock, "sessions");
    if (pipe(backend) || pipe(served)) return 1;
    for (int i = 0; i < WORKERS; i++) {
        numbers[i] = i + 1;
        start(worker, &numbers[i]);
    }
    for (int i = 0; i < WORKERS; i++) {
        if (read(served[0], &byte, 1) != 1) return 1;
    }
    rip_ring_path(path, sizeof path);
    printf("serving: pid %d, ring %s\n", (int)getpid(), path);
    fflush(stdout);
    pthread_t last = start(janitor, NULL);
    if (read(served[0], &byte, 1) != 1) return 1;
    /* All workers wait for the lock a moment later. */
    sleep(1);
    printf("stuck\n");
    fflush(stdout);
    RIP_SNAP_LABEL("waits for the janitor");
    pthread_join(last, NULL);
    return 0;
}
