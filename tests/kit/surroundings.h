/* For programs whose ring a hostile process scribbles over: memory that no store of the recorder may reach, and how
 * such a program talks. A store to the pages around the ring's mapping faults. A private block has a pattern that is
 * checked. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define PATTERN 0x5afe5afe5afe5afeull
static uint64_t private_block[1 << 16];

static void must(int condition, const char *what) {
    if (condition) return;
    fprintf(stderr, "not so: %s\n", what);
    _exit(99);
}

static void say(const char *line) {
    printf("%s\n", line);
    fflush(stdout);
}

/* Maps pages that can be read and not written. Whether there was room for them. */
static int protect(uintptr_t at, size_t len) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    return mmap((void *)at, len, PROT_READ, flags, -1, 0) == (void *)at;
}

static void surround(void) {
    const char *ring = getenv("RIP_RING");
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096];
    unsigned long begin = 0, end = 0;
    must(ring && maps, "RIP_RING is set, and there are maps");
    while (fgets(line, sizeof line, maps)) {
        line[strcspn(line, "\n")] = 0;
        size_t len = strlen(line), ring_len = strlen(ring);
        if (len > ring_len && !strcmp(line + len - ring_len, ring)) {
            must(sscanf(line, "%lx-%lx", &begin, &end) == 2, "a line of maps");
            break;
        }
    }
    fclose(maps);
    must(begin != 0, "the ring is mapped");
    int before = 0, after = 0;
    for (int shift = 30; shift >= 16; shift--) { /* as much as is free there */
        before = before || protect(begin - (1ul << shift), 1ul << shift);
        after = after || protect(end, 1ul << shift);
    }
    for (size_t i = 0; i < sizeof private_block / sizeof *private_block; i++) private_block[i] = PATTERN;
}

static void check_surroundings(void) {
    for (size_t i = 0; i < sizeof private_block / sizeof *private_block; i++) {
        must(private_block[i] == PATTERN, "the private block is as it was");
    }
}

/* A child runs `body` and ends in one of two ways; no lock is held during the fork. */
static void in_child(void (*body)(void), int round) {
    pid_t pid = fork();
    must(pid >= 0, "fork");
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        body();
        if (round % 2) exit(0);
        _exit(0);
    }
    int status = 0;
    must(waitpid(pid, &status, 0) == pid && status == 0, "the child ends well");
}
