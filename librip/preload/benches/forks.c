/* Measures what a fork and a start cost under the interposer, compared with the bare ones.
 *
 *   forks LIBRARY [MEBIBYTES [MAPPINGS]]
 *
 * Five copies of this program fork in turns: a bare one, one under the interposer without a ring, one with a ring, and
 * two whose children lock a mutex once. Each copy has written to so many MEBIBYTES of memory, and has so many more
 * MAPPINGS. A turn is FORKS forks of children that end. Between them, the program starts /bin/true, bare and under the
 * interposer. The output has a line for each: a name, a tab, the median of the times in microseconds, a tab, and the
 * median of the ratios to the bare one of the same turn.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TURNS = 301, FORKS = 20, KINDS = 5 };

/* Who locks a mutex before it forks or ends. */
enum locks { NOBODY, PARENT, CHILDREN_TOO };

static double now_us(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void lock_once(void) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}

/* A copy: forks as often as it is asked to, and answers with the time. */
static int copy(enum locks locks, size_t mebibytes, int mappings) {
    memset(malloc((mebibytes << 20) + 1), 1, mebibytes << 20);
    for (int index = 0; index < mappings; index++)
        /* Rights that alternate keep the kernel from joining neighbours. */
        mmap(NULL, 4096, index % 2 ? PROT_READ : PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (locks != NOBODY)
        lock_once();
    char asked;
    while (read(0, &asked, 1) == 1) {
        double begin = now_us();
        for (int index = 0; index < FORKS; index++) {
            pid_t child = fork();
            if (child == 0) {
                if (locks == CHILDREN_TOO)
                    lock_once();
                _exit(0);
            }
            if (child < 0 || waitpid(child, NULL, 0) != child)
                fail("fork");
        }
        double each = (now_us() - begin) / FORKS;
        if (write(1, &each, sizeof each) != sizeof each)
            fail("write");
    }
    return 0;
}

static char *bare[] = { "RIP_KEEP=never", NULL }, *interposed[] = { "RIP_KEEP=never", NULL, NULL };

/* What a copy does. Its ring is made at the first lock. */
struct kind { const char *name; char **environment; enum locks locks; int compared_with; };

static const struct kind kinds[KINDS] = {
    { "fork, bare", bare, PARENT, 0 },
    { "fork, without a ring", interposed, NOBODY, 0 },
    { "fork, with a ring", interposed, PARENT, 0 },
    { "fork and lock, bare", bare, CHILDREN_TOO, 3 },
    { "fork and lock, recorded", interposed, CHILDREN_TOO, 3 },
};

struct copy { int to, from; };

static struct copy start_copy(struct kind kind, char *mebibytes, char *mappings) {
    int to[2], from[2];
    pid_t pid;
    if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
        fail("pipe2");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to[0], 0);
    posix_spawn_file_actions_adddup2(&actions, from[1], 1);
    char locks[] = { (char)('0' + kind.locks), 0 };
    char *arguments[] = { "forks", "copy", locks, mebibytes, mappings, NULL };
    if (posix_spawn(&pid, "/proc/self/exe", &actions, NULL, arguments, kind.environment))
        fail("posix_spawn");
    close(to[0]);
    close(from[1]);
    return (struct copy){ to[1], from[0] };
}

static double turn(struct copy copy) {
    double each;
    if (write(copy.to, "", 1) != 1 || read(copy.from, &each, sizeof each) != sizeof each)
        fail("a copy has ended");
    return each;
}

static double start(char **environment) {
    char *arguments[] = { "true", NULL };
    pid_t pid;
    double begin = now_us();
    if (posix_spawn(&pid, "/bin/true", NULL, NULL, arguments, environment) || waitpid(pid, NULL, 0) != pid)
        fail("/bin/true");
    return now_us() - begin;
}

static int compare(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static double median(double *values) {
    qsort(values, TURNS, sizeof *values, compare);
    return values[TURNS / 2];
}

static void print(const char *name, double *times, double *ratios) {
    printf("%s\t%.1f\t%.3f\n", name, median(times), median(ratios));
}

int main(int count, char **arguments) {
    if (count == 5 && !strcmp(arguments[1], "copy"))
        return copy(atoi(arguments[2]), atol(arguments[3]), atoi(arguments[4]));
    if (count < 2)
        return 2;
    char *mebibytes = count > 2 ? arguments[2] : "0", *mappings = count > 3 ? arguments[3] : "0";
    if (asprintf(&interposed[1], "LD_PRELOAD=%s", arguments[1]) < 0)
        fail("asprintf");
    struct copy copies[KINDS];
    for (int kind = 0; kind < KINDS; kind++)
        copies[kind] = start_copy(kinds[kind], mebibytes, mappings);
    static double forks[KINDS][TURNS], fork_ratios[KINDS][TURNS], starts[2][TURNS], start_ratios[2][TURNS];
    for (int at = 0; at < TURNS; at++) {
        for (int kind = 0; kind < KINDS; kind++) {
            forks[kind][at] = turn(copies[kind]);
            fork_ratios[kind][at] = forks[kind][at] / forks[kinds[kind].compared_with][at];
        }
        for (int kind = 0; kind < 2; kind++) {
            starts[kind][at] = start(kind ? interposed : bare);
            start_ratios[kind][at] = starts[kind][at] / starts[0][at];
        }
    }
    for (int kind = 0; kind < KINDS; kind++)
        print(kinds[kind].name, forks[kind], fork_ratios[kind]);
    print("start, bare", starts[0], start_ratios[0]);
    print("start, interposed", starts[1], start_ratios[1]);
    return 0;
}
