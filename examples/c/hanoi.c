/* The towers of Hanoi, recorded: what a program in C did, and what it was doing when it died.
 *
 *     cc -g -O2 hanoi.c $(pkg-config --cflags --libs librip) -o hanoi-c && ./hanoi-c [DISKS] [stop]     default 6
 *
 * It prints "running: pid P, ring PATH". With `stop`, it ends in the middle by SIGABRT.
 *
 *     read-rip log PATH        shows the moves
 *     read-rip spans PATH      shows how long each tower took, and which towers were open when it died
 */
#include <librip.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum post { LEFT, MIDDLE, RIGHT };
static const char *const names[] = {"left", "middle", "right"};
/* The names are constants, so events may refer to them. */
#define NAME(post) RIP_TEXT(names[post])

static void move(int disks, enum post from, enum post to, enum post other, bool stops) {
    RIP_EVENT_LEVEL(RIP_DEBUG, "%d disks from %-6s to %-6s", disks, NAME(from), NAME(to));
    if (disks == 1) {
        RIP_EVENT("move a disk from %s to %s", NAME(from), NAME(to));
        if (stops && to == MIDDLE) {
            RIP_EVENT_LEVEL(RIP_ERROR, "no disk may lie on the %s post", NAME(to));
            abort();
        }
        return;
    }
    RIP_SPAN_WITH("tower", "%d disks", disks);
    move(disks - 1, from, other, to, stops);
    move(1, from, to, other, stops);
    move(disks - 1, other, to, from, stops);
}

int main(int argc, char **argv) {
    struct rip_options options = {.size = sizeof options, .words = 4096, .keep = RIP_KEEP_ALWAYS};
    int disks = argc > 1 ? atoi(argv[1]) : 6;
    bool stops = argc > 2 && !strcmp(argv[2], "stop");
    char path[4096];
    if (disks < 1 || disks > 20) {
        fprintf(stderr, "hanoi: DISKS must be a number from 1 to 20\n");
        return 2;
    }
    /* Failing to record is no reason to fail. */
    if (rip_start_with(&options)) fprintf(stderr, "hanoi: not recording\n");
    rip_ring_path(path, sizeof path);
    printf("running: pid %d, ring %s\n", (int)getpid(), path);
    fflush(stdout);
    struct rip_span all = RIP_SPAN_BEGIN_WITH("all", "%d disks", disks);
    move(disks, LEFT, RIGHT, MIDDLE, stops);
    RIP_SPAN_END(all);
    return 0;
}
