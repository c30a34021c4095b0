/* Stands in for databases, by the names of its functions: those on the stack of a thread that waits for a lock of the
   database, and those of one that waits for something else. The argument says which. The first line of output has the
   pids of a client, which waits for the server, and of the server; or of a process with a lock on a file, and of one
   that looks from time to time whether it is free. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* So that no call is the last thing that a function does. */
static volatile int calls;
#define OUT_OF_LINE __attribute__((noinline, noclone))

OUT_OF_LINE void WaitEventSetWait(void) {
    struct epoll_event event = {.events = EPOLLIN};
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGURG);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    int latch = signalfd(-1, &signals, 0), set = epoll_create1(0);
    epoll_ctl(set, EPOLL_CTL_ADD, latch, &event);
    for (;;) epoll_wait(set, &event, 1, -1);
}

OUT_OF_LINE void WaitLatch(void) { WaitEventSetWait(), calls++; }
OUT_OF_LINE void ProcSleep(void) { WaitLatch(), calls++; }
OUT_OF_LINE void LockAcquireExtended(void) { ProcSleep(), calls++; }
OUT_OF_LINE void pg_sleep(void) { WaitLatch(), calls++; }

/* SQLite sleeps for up to 0.1 s. Here it is longer, so that both readings see it. */
OUT_OF_LINE void unixSleep(void) { usleep(10000000), calls++; }
OUT_OF_LINE void sqlite3InvokeBusyHandler(void) { unixSleep(), calls++; }
OUT_OF_LINE void sqlite3_sleep(void) { unixSleep(), calls++; }

OUT_OF_LINE void sqlite3_step(int file) {
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    while (fcntl(file, F_SETLK, &all)) sqlite3InvokeBusyHandler();
    calls++;
}

/* A child that ends with its parent. */
static pid_t child(void) {
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);
    }
    return pid;
}

static void told(pid_t other) {
    printf("%d %d\n", getpid(), other);
    fflush(stdout);
}

/* A client that waits for an answer, and a server that works for it. */
static void client(void (*work)(void)) {
    int ends[2];
    char answer;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) _exit(1);
    pid_t server = child();
    close(ends[server != 0]);
    if (server == 0) work();
    told(server);
    while (read(ends[0], &answer, 1) > 0) {}
}

static void runs(void) {
    for (;;) calls++;
}

/* A process has a lock on a file, and another one wants it. */
static void file(const char *path) {
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int file = open(path, O_RDWR | O_CREAT, 0600);
    if (file < 0 || fcntl(file, F_SETLK, &all)) _exit(1);
    pid_t other = child();
    if (other == 0) sqlite3_step(file);
    told(other);
    for (;;) sleep(1000);
}

int main(int count, char **arguments) {
    const char *mode = count > 2 ? arguments[1] : "";
    if (!strcmp(mode, "lock")) client(LockAcquireExtended);
    if (!strcmp(mode, "sleep")) client(pg_sleep);
    if (!strcmp(mode, "query")) client(runs);
    if (!strcmp(mode, "file")) file(arguments[2]);
    if (!strcmp(mode, "sleeps")) {
        told(getpid());
        for (;;) sqlite3_sleep();
    }
    return 0;
}
