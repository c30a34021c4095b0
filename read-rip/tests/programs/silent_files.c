/* A process that uses a file whose file system does not answer any more.
 *
 *   silent_files DIRECTORY            one of its threads has its stack pointer in a page of the file
 *   silent_files DIRECTORY PROGRAM    the file is a copy of this program, PROGRAM, and the process runs that
 *   silent_files DIRECTORY locked     a thread waits for a page of the file by way of /proc/self/mem, and holds the
 *                                     memory lock of the process; another thread waits for the lock, and so does
 *                                     whoever reads what the process has mapped
 *
 * It mounts a FUSE on DIRECTORY, in a mount namespace of its own, and serves it until the file is in use. From then on
 * nothing is answered. It prints "ready" and the pid of the server when the thread is about to wait, or "skipped: WHY"
 * if the machine does not allow it. Whoever ends it ends the server first: until then, nothing that waits for the file
 * system can end.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILE_NODE = 2, FILE_BYTES = 1 << 20, READ_BYTES = 1 << 16 };

/* What the file has; NULL if it is never read. */
static char *content;
static uint64_t content_bytes = FILE_BYTES;

static void skip(const char *why) {
    printf("skipped: %s: %s\n", why, strerror(errno));
    exit(0);
}

static struct fuse_attr attributes(uint64_t node) {
    struct fuse_attr attr = { .ino = node, .nlink = 1 };
    attr.mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0755;
    attr.size = node == FUSE_ROOT_ID ? 0 : content_bytes;
    return attr;
}

static void answer(int fuse, uint64_t unique, int error, const void *body, size_t length) {
    static struct { struct fuse_out_header head; char body[READ_BYTES]; } out;
    out.head = (struct fuse_out_header){ sizeof out.head + length, -error, unique };
    memcpy(out.body, body, length);
    if (write(fuse, &out, out.head.len) < 0 && errno != ENOENT)
        _exit(1);
}

static void answer_read(int fuse, uint64_t unique, const struct fuse_read_in *in) {
    uint64_t left = in->offset < content_bytes ? content_bytes - in->offset : 0;
    uint64_t length = left < in->size ? left : in->size;
    answer(fuse, unique, 0, content + in->offset, length < READ_BYTES ? length : READ_BYTES);
}

/* Answers requests until the pipe says that enough was answered. Then it keeps silent. The first read of a file that
   has nothing is not answered: `asked` gets a byte, and nothing more is answered. */
static void serve(int fuse, int enough, int asked) {
    static char request[1 << 17];
    /* Nobody waits for longer, whatever the reader does. */
    alarm(60);
    fcntl(fuse, F_SETFL, O_NONBLOCK);
    for (char byte; read(enough, &byte, 1) != 1;) {
        ssize_t got = read(fuse, request, sizeof request);
        if (got <= 0) {
            usleep(200);
            continue;
        }
        const struct fuse_in_header *in = (const void *)request;
        struct fuse_entry_out entry = { .nodeid = FILE_NODE, .attr = attributes(FILE_NODE), .entry_valid = 1000 };
        struct fuse_attr_out attr = { .attr = attributes(in->nodeid), .attr_valid = 1000 };
        struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION };
        struct fuse_open_out opened = { 0 };
        init.max_write = READ_BYTES;
        entry.attr_valid = 1000;
        switch (in->opcode) {
        case FUSE_INIT: answer(fuse, in->unique, 0, &init, sizeof init); break;
        case FUSE_LOOKUP: answer(fuse, in->unique, 0, &entry, sizeof entry); break;
        case FUSE_GETATTR: answer(fuse, in->unique, 0, &attr, sizeof attr); break;
        case FUSE_OPEN: answer(fuse, in->unique, 0, &opened, sizeof opened); break;
        case FUSE_READ:
            if (content) {
                answer_read(fuse, in->unique, (const void *)(request + sizeof *in));
                break;
            }
            if (write(asked, "", 1) != 1)
                _exit(1);
            for (;;)
                pause();
        default: answer(fuse, in->unique, ENOSYS, "", 0);
        }
    }
    for (;;)
        pause();
}

static unsigned word = 7;

/* Waits for ever for a futex, with a stack pointer in the middle of the mapping. No instruction touches the page. */
static void *wait_there(void *mapping) {
    void *stack = (char *)mapping + FILE_BYTES / 2 + 512;
#if defined(__x86_64__)
    __asm__ volatile("mov %[stack], %%rsp\n"
                     "1: mov %[futex], %%eax\n"
                     "lea %[word], %%rdi\n"
                     "mov $128, %%esi\n" /* FUTEX_WAIT, FUTEX_PRIVATE_FLAG */
                     "mov $7, %%edx\n"
                     "xor %%r10d, %%r10d\n"
                     "syscall\n"
                     "jmp 1b"
                     :
                     : [stack] "r"(stack), [futex] "i"(SYS_futex), [word] "m"(word)
                     : "rax", "rcx", "rdx", "rdi", "rsi", "r10", "r11", "memory");
#else
    (void)stack;
    skip("another processor");
#endif
    return NULL;
}

static pid_t locker;

/* Waits for the memory lock, once the file system was asked. */
static void *lock_own_memory(void *asked) {
    char byte;
    if (read((int)(intptr_t)asked, &byte, 1) != 1)
        exit(1);
    __atomic_store_n(&locker, gettid(), __ATOMIC_RELEASE);
    return mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* The state of a thread of this process, as the kernel has it. */
static char state(pid_t tid) {
    char path[64], text[512] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    int file = open(path, O_RDONLY);
    if (file < 0 || read(file, text, sizeof text - 1) <= 0)
        exit(1);
    close(file);
    return strrchr(text, ')')[2];
}

static void *read_own_memory(void *mapping) {
    char byte;
    int memory = open("/proc/self/mem", O_RDONLY);
    return (void *)pread(memory, &byte, 1, (off_t)mapping);
}

/* Lets a thread wait for a page of the mapping, and another one for the memory lock. The main thread needs no memory
   from then on. */
static void lock_memory(void *mapping, int asked) {
    pthread_t thread;
    pthread_create(&thread, NULL, lock_own_memory, (void *)(intptr_t)asked);
    pthread_create(&thread, NULL, read_own_memory, mapping);
    pid_t tid;
    while ((tid = __atomic_load_n(&locker, __ATOMIC_ACQUIRE)) == 0 || state(tid) != 'D')
        usleep(200);
}

static void load(const char *path) {
    int file = open(path, O_RDONLY);
    struct stat found;
    if (file < 0 || fstat(file, &found))
        skip(path);
    content_bytes = found.st_size;
    content = malloc(content_bytes);
    if (read(file, content, content_bytes) != (ssize_t)content_bytes)
        skip(path);
    close(file);
}

/* Lets the server be silent, and waits for ever. */
static void wait_in_the_copy(int enough, const char *server) {
    if (write(enough, "", 1) != 1)
        exit(1);
    printf("ready %s\n", server);
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, word, NULL);
}

int main(int count, char **arguments) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (count == 4 && !strcmp(arguments[1], "copy"))
        wait_in_the_copy(atoi(arguments[2]), arguments[3]);
    if (count != 2 && count != 3)
        return 2;
    int is_locked = count == 3 && !strcmp(arguments[2], "locked");
    if (count == 3 && !is_locked)
        load(arguments[2]);
    if (unshare(CLONE_NEWNS) && unshare(CLONE_NEWUSER | CLONE_NEWNS))
        skip("no mount namespace");
    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
    int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC), enough[2], asked[2];
    if (fuse < 0)
        skip("/dev/fuse");
    char options[100];
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=%d,group_id=%d", fuse, getuid(), getgid());
    if (mount("silent", arguments[1], "fuse", MS_NOSUID | MS_NODEV, options))
        skip("mount");
    if (pipe2(enough, O_NONBLOCK) || pipe(asked))
        return 1;
    pid_t server = fork();
    if (server == 0)
        serve(fuse, enough[0], asked[1]);
    /* The file system ends with its server. */
    close(fuse);
    char path[4096];
    snprintf(path, sizeof path, "%s/file", arguments[1]);
    if (content) {
        char of_pipe[12], of_server[12];
        snprintf(of_pipe, sizeof of_pipe, "%d", enough[1]);
        snprintf(of_server, sizeof of_server, "%d", server);
        execl(path, path, "copy", of_pipe, of_server, NULL);
        skip("the copy");
    }
    int file = open(path, O_RDONLY);
    void *mapping = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    if (file < 0 || mapping == MAP_FAILED)
        skip("the file");
    if (is_locked) {
        lock_memory(mapping, asked[0]);
    } else {
        pthread_t thread;
        pthread_create(&thread, NULL, wait_there, mapping);
        if (write(enough[1], "", 1) != 1)
            return 1;
    }
    /* Without a buffer from the heap. */
    dprintf(1, "ready %d\n", server);
    for (;;)
        pause();
}
