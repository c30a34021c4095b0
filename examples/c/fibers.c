/* Fibers with a switch of stacks in assembly: a producer and a consumer hand over to each other, and one gets stuck.
 *
 *     cc -g -O2 fibers.c $(pkg-config --cflags --libs librip) -o fibers-c && ./fibers-c
 *
 * It shows where the call belongs in a scheduler that is written by hand: switch_to() has all of it. When it prints
 * "stuck", kill it and read its ring:
 *
 *     read-rip tasks PATH      shows which fiber was running, and where the other one was suspended
 */
#include <librip.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { STACK_SIZE = 64 * 1024, ITEMS = 3 };

struct fiber {
    void *stack_pointer; /* of a fiber that is suspended */
    rip_context *context;
};

/* Saves the registers that a call preserves on the stack, stores the stack pointer in `*from`, and does the reverse
 * with `to`. */
void switch_stacks(void **from, void *to);
#if defined(__x86_64__)
__asm__(
    ".pushsection .text\n"
    ".globl switch_stacks\n"
    ".type switch_stacks,@function\n"
    "switch_stacks:\n"
    "push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
    "mov %rsp, (%rdi)\n"
    "mov %rsi, %rsp\n"
    "pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n"
    "ret\n"
    ".size switch_stacks,.-switch_stacks\n"
    ".popsection\n");
/* Words that are saved, which of them is the return address, and words above: a function begins with a stack pointer
 * that is a multiple of 16 plus 8. */
enum { SAVED = 7, RETURN = 6, ABOVE = 3 };
#else
__asm__(
    ".pushsection .text\n"
    ".globl switch_stacks\n"
    ".type switch_stacks,%function\n"
    "switch_stacks:\n"
    "sub sp, sp, #160\n"
    "stp x19, x20, [sp]\n stp x21, x22, [sp, #16]\n stp x23, x24, [sp, #32]\n"
    "stp x25, x26, [sp, #48]\n stp x27, x28, [sp, #64]\n stp x29, x30, [sp, #80]\n"
    "stp d8, d9, [sp, #96]\n stp d10, d11, [sp, #112]\n stp d12, d13, [sp, #128]\n stp d14, d15, [sp, #144]\n"
    "mov x2, sp\n"
    "str x2, [x0]\n"
    "mov sp, x1\n"
    "ldp x19, x20, [sp]\n ldp x21, x22, [sp, #16]\n ldp x23, x24, [sp, #32]\n"
    "ldp x25, x26, [sp, #48]\n ldp x27, x28, [sp, #64]\n ldp x29, x30, [sp, #80]\n"
    "ldp d8, d9, [sp, #96]\n ldp d10, d11, [sp, #112]\n ldp d12, d13, [sp, #128]\n ldp d14, d15, [sp, #144]\n"
    "add sp, sp, #160\n"
    "ret\n"
    ".size switch_stacks,.-switch_stacks\n"
    ".popsection\n");
enum { SAVED = 20, RETURN = 11, ABOVE = 2 };
#endif

static struct fiber thread, producer, consumer; /* the thread's own stack has no context */
static struct fiber *current = &thread;
static int item;

static void switch_to(struct fiber *next) {
    struct fiber *former = current;
    current = next;
    rip_context_switch(next->context); /* right before the switch, on the old stack */
    switch_stacks(&former->stack_pointer, next->stack_pointer);
}

static void start(struct fiber *fiber, const char *name, void (*body)(void)) {
    char *stack = malloc(STACK_SIZE);
    if (!stack) exit(1);
    /* As if `body` had been called, and then had switched. It never returns. */
    void **top = (void **)(void *)(stack + STACK_SIZE) - ABOVE - SAVED;
    for (int i = 0; i < SAVED + ABOVE; i++) top[i] = NULL;
    *(void (**)(void))(void *)&top[RETURN] = body;
    fiber->stack_pointer = top;
    fiber->context = rip_context_create(name);
}

static void produce(void) {
    for (;;) {
        item++;
        RIP_EVENT("made item %d", item);
        switch_to(&consumer); /* not by way of the thread's own stack */
        RIP_SNAP_LABEL("wants to make another");
    }
}

static void consume(void) {
    for (;;) {
        RIP_EVENT("got item %d", item);
        if (item == ITEMS) {
            RIP_SNAP_LABEL("waits for nothing");
            printf("stuck\n");
            fflush(stdout);
            pause();
        }
        switch_to(&producer);
        RIP_SNAP_LABEL("wants another");
    }
}

int main(void) {
    char path[4096];
    /* Failing to record is no reason to fail. */
    if (rip_start()) fprintf(stderr, "fibers: could not start recording\n");
    rip_set_thread_name("thread");
    rip_ring_path(path, sizeof path);
    printf("running: pid %d, ring %s\n", (int)getpid(), path);
    start(&producer, "producer", produce);
    start(&consumer, "consumer", consume);
    RIP_SNAP_LABEL("starts the fibers");
    switch_to(&producer);
    return 0;
}
