/* Processes that wait for one another, and healthy ones that look like them. The argument says which. After "beat+",
   each process has one more thread, which sleeps again and again. The first line of output has the pids of all. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fuse.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

static char block[1 << 20];
static const char *mode;
/* Whether each process has a thread that sleeps for a moment, again and again. */
static int beats;

static int is(const char *name) { return !strcmp(mode, name); }

static void *beats_on(void *arg) {
    for (;;) usleep(100000);
    return arg;
}

static void beat(void) {
    pthread_t thread;
    if (beats) pthread_create(&thread, NULL, beats_on, NULL);
}

/* A child that ends with its parent. */
static pid_t child(void) {
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);
        beat();
    }
    return pid;
}

static void told(pid_t other, pid_t third) {
    beat();
    printf("%d %d %d\n", getpid(), other, third);
    fflush(stdout);
}

static void fill(int fd) {
    while (write(fd, block, sizeof block) > 0) {}
}

static void wait_for_child(pid_t pid) { waitpid(pid, NULL, 0); }

static void *sleeps(void *arg) {
    for (;;) sleep(1000);
    return arg;
}

static void on_signal(int number) { (void)number; }

/* The parent waits for the end of a child that writes to it. */
static void *fills(void *fd) {
    fill((int)(long)fd);
    return NULL;
}

/* Reads a little of what the child writes, and sleeps in between. */
static void *reads_slowly(void *fd) {
    for (;;) {
        read((int)(long)fd, block, 1 << 16);
        usleep(400000);
    }
}

static void waits_for_writer(void) {
    int ends[2];
    pipe(ends);
    pid_t pid = child();
    if (pid == 0) {
        close(ends[0]);
        if (is("writer-without-first-thread")) {
            pthread_t thread;
            pthread_create(&thread, NULL, fills, (void *)(long)ends[1]);
            pthread_exit(NULL);
        }
        fill(ends[1]);
        _exit(0);
    }
    close(ends[1]);
    if (is("writer-and-thread")) {
        pthread_t thread;
        pthread_create(&thread, NULL, sleeps, NULL);
    }
    if (is("writer-and-reader")) {
        pthread_t thread;
        pthread_create(&thread, NULL, reads_slowly, (void *)(long)ends[0]);
    }
    if (is("writer-and-alarm")) signal(SIGALRM, on_signal);
    told(pid, 0);
    wait_for_child(pid);
}

/* Both write, and neither reads. */
static void write_both(void) {
    int to[2], from[2];
    pipe(to);
    pipe(from);
    pid_t pid = child();
    if (pid == 0) {
        close(to[1]);
        close(from[0]);
        fill(from[1]);
    }
    close(to[0]);
    close(from[1]);
    told(pid, 0);
    fill(to[1]);
}

static void read_one(int fd) { read(fd, block, sizeof block); }

/* Both read from one socket. A third process may have an end too. */
static void read_both(int one, int other) {
    pid_t third = 0;
    if (is("sockets-and-third")) {
        third = child();
        if (third == 0) sleeps(NULL);
    }
    pid_t pid = child();
    if (pid == 0) {
        close(one);
        read_one(other);
        _exit(0);
    }
    close(other);
    if (is("sockets-and-term")) signal(SIGTERM, on_signal);
    if (is("sockets-and-interrupt")) signal(SIGINT, on_signal);
    told(pid, third);
    if (is("producer")) sleeps(NULL);
    read_one(one);
}

static void sockets(void) {
    int ends[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    if (is("sockets-limited")) {
        struct timeval limit = {.tv_sec = 1000};
        for (int at = 0; at < 2; at++) setsockopt(ends[at], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    }
    read_both(ends[0], ends[1]);
}

static void tcp(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    bind(listener, (struct sockaddr *)&at, len);
    listen(listener, 1);
    getsockname(listener, (struct sockaddr *)&at, &len);
    connect(client, (struct sockaddr *)&at, len);
    int server = accept(listener, NULL, NULL);
    close(listener);
    read_both(client, server);
}

/* A child that stops itself. Returns when it is stopped. */
static pid_t stopped_child(int unused) {
    pid_t pid = child();
    if (pid == 0) {
        close(unused);
        raise(SIGSTOP);
        sleeps(NULL);
    }
    waitpid(pid, NULL, WUNTRACED);
    return pid;
}

/* The parent waits for a child that is stopped: for its end, or until it reads or writes. */
static void waits_for_stopped(void) {
    int ends[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    pid_t pid = stopped_child(ends[0]), other = is("stopped-and-another") ? child() : 0;
    if (is("stopped-and-another") && other == 0) sleeps(NULL);
    close(ends[1]);
    told(pid, other);
    if (is("stopped-reader")) fill(ends[0]);
    if (is("stopped-client")) read_one(ends[0]);
    waitpid(other ? -1 : pid, NULL, 0);
}

/* A process whose first thread has ended. */
static pid_t sleeper(void) {
    pid_t pid = child();
    if (pid) return pid;
    pthread_t other;
    pthread_create(&other, NULL, sleeps, NULL);
    pthread_exit(NULL);
}

/* A process that reads until all who can write have closed the pipe, and it can itself. */
static void own_end(void) {
    int ends[2];
    pipe(ends);
    if (is("own-end-and-term")) signal(SIGTERM, on_signal);
    told(is("own-end-and-sleeper") ? sleeper() : 0, 0);
    read_one(ends[0]);
}

/* A process that keeps a FIFO open for both, so that it outlives those who write to it. */
static void fifo_for_both(const char *path) {
    mkfifo(path, 0600);
    int fd = open(path, O_RDWR);
    told(0, 0);
    read_one(fd);
}

/* The child has the memory of its parent, who sleeps until it ends. */
static void child_in_the_same_memory(void) {
    if (vfork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        told(getppid(), 0);
        sleep(1000);
        _exit(0);
    }
}

static void lock_file(int fd) {
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (is("ofd"))
        fcntl(fd, F_OFD_SETLKW, &whole);
    else if (is("posix-held"))
        fcntl(fd, F_SETLKW, &whole);
    else
        flock(fd, LOCK_EX);
}

static void *locks_file(void *path) {
    lock_file(open(path, O_RDWR | O_CREAT, 0600));
    return NULL;
}

/* Two files, locked in opposite orders. */
static void locks(const char *one, const char *other) {
    int locked[2];
    char byte = 0;
    socketpair(AF_UNIX, SOCK_STREAM, 0, locked);
    pid_t pid = child();
    int first = open(pid ? one : other, O_RDWR | O_CREAT, 0600);
    lock_file(first);
    write(locked[!pid], &byte, 1);
    read(locked[!pid], &byte, 1);
    close(locked[0]);
    close(locked[1]);
    if (pid) told(pid, 0);
    if (pid && (is("flock-held") || is("posix-held"))) sleeps(NULL);
    if (!pid && is("flock-without-first-thread")) {
        pthread_t thread;
        pthread_create(&thread, NULL, locks_file, (void *)one);
        pthread_exit(NULL);
    }
    locks_file((void *)(pid ? other : one));
}

/* One file, locked twice: by one process, or by a parent and the child for whose end it waits. */
static void one_lock(const char *path) {
    flock(open(path, O_RDWR | O_CREAT, 0600), LOCK_EX);
    pid_t pid = is("flock-of-parent") ? child() : 0;
    if (pid) {
        told(pid, 0);
        wait_for_child(pid);
    }
    if (is("flock-twice")) told(0, 0);
    flock(open(path, O_RDWR), LOCK_EX);
}

static void wait_for_event(int first, int second) {
    struct epoll_event event = {.events = EPOLLIN};
    struct pollfd both[] = {{.fd = first, .events = POLLIN}, {.fd = second, .events = POLLIN}};
    int all = epoll_create1(0);
    epoll_ctl(all, EPOLL_CTL_ADD, first, &event);
    epoll_ctl(all, EPOLL_CTL_ADD, second, &event);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(first, &set);
    FD_SET(second, &set);
    if (is("events-of-poll"))
        poll(both, 2, -1);
    else if (is("events-of-select"))
        pselect((first > second ? first : second) + 1, &set, NULL, NULL, NULL, NULL);
    else
        epoll_wait(all, &event, 1, -1);
}

/* Both wait for data of the other one, and for an eventfd that both have; one may wait for a clock too. The kernel may
   write to an eventfd for who has a context of io_setup, and to anything for who has an io_uring. */
static void events(void) {
    int ends[2], common = eventfd(0, 0);
    unsigned long context = 0;
    unsigned parameters[64] = {0};
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    if (is("events-and-clock")) common = timerfd_create(CLOCK_MONOTONIC, 0);
    pid_t pid = child();
    close(ends[!pid]);
    if (is("events-and-term")) signal(SIGTERM, on_signal);
    if (!pid && is("eventfd-of-kernel")) syscall(SYS_io_setup, 1, &context);
    if (!pid && is("event-of-ring")) syscall(SYS_io_uring_setup, 1, parameters);
    if (pid) told(pid, 0);
    if (pid && is("events-and-worker")) sleeps(NULL);
    if (is("eventfd") || is("eventfd-of-kernel"))
        read_one(common);
    else if (is("event-of-none") || is("event-of-ring"))
        read_one(ends[!!pid]);
    else
        wait_for_event(ends[!!pid], common);
}

/* A child waits for the end of its parent by a pidfd, and its parent for the child, or for a time. */
static void end_of_parent(void) {
    struct pollfd parent = {.fd = syscall(SYS_pidfd_open, getpid(), 0), .events = POLLIN};
    pid_t pid = child();
    if (pid == 0) poll(&parent, 1, -1);
    if (pid == 0) _exit(0);
    told(pid, 0);
    if (is("pidfd-of-worker")) sleeps(NULL);
    wait_for_child(pid);
}

/* A process waits for the end of its child, which waits for a unit that nobody gives. */
static void stuck_child(void) {
    pid_t pid = child();
    sem_t none;
    sem_init(&none, 0, 0);
    if (pid == 0) sem_wait(&none);
    told(pid, 0);
    wait_for_child(pid);
}

/* A server of files that uses them itself. */
static void files_of_itself(const char *point) {
    char request[1 << 16], options[64], path[PATH_MAX];
    int fuse = open("/dev/fuse", O_RDWR);
    unshare(CLONE_NEWNS);
    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
    mkdir(point, 0700);
    sprintf(options, "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
    if (fuse < 0 || mount("own", point, "fuse.own", 0, options)) return;
    read(fuse, request, sizeof request);
    struct {
        struct fuse_out_header head;
        struct fuse_init_out init;
    } answer = {{sizeof answer, 0, ((struct fuse_in_header *)request)->unique},
                {.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_write = 4096}};
    write(fuse, &answer, sizeof answer);
    told(0, 0);
    snprintf(path, sizeof path, "%s/file", point);
    open(path, O_RDONLY);
}

static pthread_mutex_t *mutexes;

/* Two mutexes in shared memory, locked in opposite orders. */
static void shared_mutexes(void) {
    pthread_mutexattr_t shared;
    pthread_barrierattr_t of_barrier;
    char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrier_t *both = (pthread_barrier_t *)(memory + 1024);
    mutexes = (pthread_mutex_t *)memory;
    pthread_mutexattr_init(&shared);
    pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&mutexes[0], &shared);
    pthread_mutex_init(&mutexes[1], &shared);
    pthread_barrierattr_init(&of_barrier);
    pthread_barrierattr_setpshared(&of_barrier, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(both, &of_barrier, 2);
    pid_t pid = child();
    pthread_mutex_lock(&mutexes[!pid]);
    pthread_barrier_wait(both);
    if (pid) told(pid, 0);
    if (pid && is("mutex-held")) sleeps(NULL);
    if (is("mutex-lost") || is("mutex-of-zombie")) {
        if (!pid) _exit(0);
        siginfo_t end;
        waitid(P_PID, pid, &end, WEXITED | (is("mutex-of-zombie") ? WNOWAIT : 0));
    }
    pthread_mutex_lock(&mutexes[!!pid]);
}

/* Objects in shared memory that do not say who has them. With a path, the memory can be found by it. */
static void shared_objects(const char *path) {
    int fd = path ? open(path, O_RDWR | O_CREAT, 0600) : -1;
    if (path) ftruncate(fd, 4096);
    char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, path ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS, fd, 0);
    if (path) close(fd);
    sem_t *semaphores = (sem_t *)memory;
    pthread_barrier_t *both = (pthread_barrier_t *)(memory + 1024), *three = (pthread_barrier_t *)(memory + 1536);
    pthread_mutex_t *mutex = (pthread_mutex_t *)(memory + 2048);
    pthread_cond_t *condition = (pthread_cond_t *)(memory + 3072);
    pthread_barrierattr_t of_barrier;
    pthread_mutexattr_t of_mutex;
    pthread_condattr_t of_condition;
    sem_init(&semaphores[0], 1, 1);
    sem_init(&semaphores[1], 1, 1);
    pthread_barrierattr_init(&of_barrier);
    pthread_barrierattr_setpshared(&of_barrier, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(both, &of_barrier, 2);
    pthread_barrier_init(three, &of_barrier, 3);
    pthread_mutexattr_init(&of_mutex);
    pthread_mutexattr_setpshared(&of_mutex, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(mutex, &of_mutex);
    pthread_condattr_init(&of_condition);
    pthread_condattr_setpshared(&of_condition, PTHREAD_PROCESS_SHARED);
    pthread_cond_init(condition, &of_condition);
    pid_t third = is("shared-semaphore-and-third") ? child() : 0;
    if (is("shared-semaphore-and-third") && third == 0) sleeps(NULL);
    pid_t pid = child();
    if (is("shared-semaphores")) sem_wait(&semaphores[!pid]);
    pthread_barrier_wait(both);
    if (pid) told(pid, third);
    if (is("shared-semaphores")) sem_wait(&semaphores[!!pid]);
    if (is("shared-barrier")) pthread_barrier_wait(three);
    if (is("shared-condition")) {
        pthread_mutex_lock(mutex);
        for (;;) pthread_cond_wait(condition, mutex);
    }
    if (pid && is("shared-semaphore-and-producer")) sleeps(NULL);
    for (;;) sem_wait(&semaphores[0]);
}

/* A child that removes objects of System V when all have ended that have the end of its pipe. */
static void removed_at_end(int semaphores, int queues[2]) {
    int ends[2];
    char byte;
    if (pipe(ends)) _exit(1);
    if (fork()) {
        close(ends[0]);
        return;
    }
    /* Whoever ends the test's processes ends their group. */
    setsid();
    close(ends[1]);
    close(1);
    while (read(ends[0], &byte, 1) > 0) {}
    if (semaphores >= 0) semctl(semaphores, 0, IPC_RMID);
    for (int at = 0; queues && at < 2; at++) msgctl(queues[at], IPC_RMID, NULL);
    _exit(0);
}

static void change(int set, int number, int by) {
    struct sembuf operation = {.sem_num = number, .sem_op = by};
    /* Some C libraries make another call of `semop`. */
    syscall(SYS_semop, set, &operation, 1);
}

/* Two semaphores of System V as locks, acquired in opposite orders or in one; or of a queue that is empty. */
static void semaphores_of_system_v(void) {
    int set = semget(IPC_PRIVATE, 2, 0600), ready[2], units = !is("sysv-empty");
    if (set < 0 || pipe(ready)) _exit(1);
    semctl(set, 0, SETVAL, units);
    semctl(set, 1, SETVAL, units);
    removed_at_end(set, NULL);
    if (units) change(set, 0, -1);
    pid_t pid = child();
    char byte = 0;
    if (!units) {
        if (pid) told(pid, 0);
        change(set, pid == 0, -1);
    }
    if (pid == 0) {
        if (is("sysv")) change(set, 1, -1);
        if (write(ready[1], &byte, 1) == 1) change(set, 0, -1);
        _exit(1);
    }
    if (read(ready[0], &byte, 1) != 1) _exit(1);
    told(pid, 0);
    if (is("sysv-order")) sleeps(NULL);
    change(set, 1, -1);
}

/* Two processes that send to queues of System V from which the other one receives, or wait for messages. */
static void queues_of_system_v(void) {
    struct { long type; char text[64]; } message = {.type = 1};
    struct msqid_ds limits;
    int queues[2];
    for (int at = 0; at < 2; at++) {
        queues[at] = msgget(IPC_PRIVATE, 0600);
        if (queues[at] < 0 || msgctl(queues[at], IPC_STAT, &limits)) _exit(1);
        limits.msg_qbytes = sizeof message.text;
        msgctl(queues[at], IPC_SET, &limits);
    }
    removed_at_end(-1, queues);
    pid_t pid = child();
    int own = queues[pid == 0], other = queues[pid != 0];
    msgsnd(other, &message, sizeof message.text, 0);
    msgrcv(own, &message, sizeof message.text, 0, 0);
    if (pid) told(pid, 0);
    while (is("messages-full") && msgsnd(other, &message, sizeof message.text, 0) == 0) {}
    msgrcv(own, &message, sizeof message.text, 0, 0);
}

/* A process that waits for a child, which waits for it, and traces a process that is no child of its own. */
static void tracer(void) {
    int ends[2], told_by[2];
    pid_t traced = 0;
    if (pipe(told_by)) _exit(1);
    pid_t between = fork();
    if (between == 0) {
        traced = fork();
        if (traced == 0) sleeps(NULL);
        if (write(told_by[1], &traced, sizeof traced) != sizeof traced) _exit(1);
        _exit(0);
    }
    wait_for_child(between);
    if (read(told_by[0], &traced, sizeof traced) != sizeof traced) _exit(1);
    if (ptrace(PTRACE_SEIZE, traced, NULL, PTRACE_O_EXITKILL)) {
        kill(traced, SIGKILL);
        _exit(1);
    }
    close(told_by[0]);
    close(told_by[1]);
    if (pipe(ends)) _exit(1);
    pid_t pid = child();
    if (pid == 0) {
        char byte;
        close(ends[1]);
        _exit(read(ends[0], &byte, 1));
    }
    told(pid, 0);
    wait_for_child(-1);
}

/* A process has a lease on a file, and another one opens it. */
static void lease(const char *path) {
    signal(SIGIO, SIG_IGN);
    int file = open(path, O_RDWR | O_CREAT, 0600);
    if (file < 0 || fcntl(file, F_SETLEASE, F_WRLCK)) _exit(1);
    pid_t pid = child();
    if (pid) told(pid, 0);
    if (pid) sleeps(NULL);
    open(path, O_RDONLY);
    sleeps(NULL);
}

/* Two FIFOs, opened in opposite orders. */
static void fifos(const char *one, const char *other) {
    mkfifo(one, 0600);
    mkfifo(other, 0600);
    pid_t pid = child();
    if (pid && is("fifos-of-children")) {
        pid_t second = child();
        if (second) {
            told(pid, second);
            for (;;) usleep(1000);
        }
    } else if (pid) {
        told(pid, 0);
    }
    open(pid ? one : other, O_RDONLY);
    open(pid ? other : one, O_WRONLY);
}

int main(int count, char **arguments) {
    mode = arguments[1];
    beats = !strncmp(mode, "beat+", 5);
    if (beats) mode += 5;
    if (!strncmp(mode, "writer", 6)) waits_for_writer();
    if (!strncmp(mode, "stopped", 7)) waits_for_stopped();
    if (!strncmp(mode, "sysv", 4)) semaphores_of_system_v();
    if (!strncmp(mode, "messages", 8)) queues_of_system_v();
    if (is("tracer")) tracer();
    if (!strncmp(mode, "pidfd", 5)) end_of_parent();
    if (count > 3 && is("lease")) lease(arguments[2]);
    if (is("pipes")) write_both();
    if (!strncmp(mode, "sockets", 7) || is("producer")) sockets();
    if (is("tcp")) tcp();
    if (!strncmp(mode, "own-end", 7)) own_end();
    if (count > 3 && is("fifo-for-both")) fifo_for_both(arguments[2]);
    if (is("vfork")) child_in_the_same_memory();
    if (count > 3 && (is("flock") || is("flock-without-first-thread") || is("ofd") || is("flock-held") ||
                      is("posix-held")))
        locks(arguments[2], arguments[3]);
    if (count > 3 && (is("flock-twice") || is("flock-of-parent"))) one_lock(arguments[2]);
    if (!strncmp(mode, "mutex", 5)) shared_mutexes();
    if (is("stuck-child")) stuck_child();
    if (!strncmp(mode, "event", 5)) events();
    if (count > 3 && is("files-of-itself")) files_of_itself(arguments[2]);
    if (count > 3 && !strncmp(mode, "shared-", 7))
        shared_objects(is("shared-semaphore-of-file") ? arguments[2] : NULL);
    if (count > 3 && !strncmp(mode, "fifos", 5)) fifos(arguments[2], arguments[3]);
    return 0;
}
