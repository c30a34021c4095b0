/*
 * Threads of one kind, which acquire a lock at one place. The holder does something that is no wait for work: it
 * sleeps, writes to a socket from which nobody reads, waits for a child, or for the answer of a server. With the
 * argument "idle", it reads from a pipe, as the workers of a pool do.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOCKED(name, lock, action)                                                                                     \
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;                                                           \
    static void *name(void *unused) {                                                                                  \
        for (;;) {                                                                                                     \
            pthread_mutex_lock(&lock);                                                                                 \
            action;                                                                                                    \
            pthread_mutex_unlock(&lock);                                                                               \
        }                                                                                                              \
        return unused;                                                                                                 \
    }

static int connection[2], jobs[2], server;
static pid_t child;
static char page[1 << 20];

LOCKED(naps, cache, sleep(1000))
LOCKED(answers, table, (void)!write(connection[0], page, sizeof page))
LOCKED(reaps, children, waitpid(child, NULL, 0))
LOCKED(asks, session, (void)!read(server, page, 1))
LOCKED(works, queue, (void)!read(jobs[0], page, 1))

int main(int count, char **arguments) {
    void *(*kinds[])(void *) = {naps, answers, reaps, asks};
    int is_idle = count > 1 && !strcmp(arguments[1], "idle");
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, connection) || pipe(jobs)) return 1;
    child = fork();
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        /* It alone could read from the connection, and does not. */
        for (;;) pause();
    }
    close(connection[1]);
    /* The kernel connects to a socket that listens, and nobody accepts the connection. */
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listening = socket(AF_INET, SOCK_STREAM, 0);
    server = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listening, (struct sockaddr *)&address, length) || listen(listening, 1) ||
        getsockname(listening, (struct sockaddr *)&address, &length) ||
        connect(server, (struct sockaddr *)&address, length))
        return 1;
    for (int at = 0; at < 12; at++) {
        pthread_t thread;
        pthread_create(&thread, NULL, is_idle ? works : kinds[at % 4], NULL);
    }
    puts("ready");
    fflush(stdout);
    /* Its standard input ends with the test. */
    (void)!read(0, page, 1);
    kill(child, SIGKILL);
    return 0;
}
