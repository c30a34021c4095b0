/* librip.h: marks for about a nanosecond each, in a file that outlives the process. For C99 to C23 and C++11 to C++23.
 *
 *     #include <librip.h>
 *     #include <pthread.h>
 *
 *     static pthread_mutex_t cache = PTHREAD_MUTEX_INITIALIZER;
 *
 *     int main(void) {
 *         rip_start();                          // failing to record is no reason to fail
 *         RIP_SNAP();                           // this place was passed
 *
 *         if (pthread_mutex_trylock(&cache)) {
 *             RIP_LOCK_WAIT(&cache, RIP_EXCLUSIVE);
 *             pthread_mutex_lock(&cache);
 *         }
 *         RIP_LOCK_ACQUIRED(&cache, RIP_EXCLUSIVE);
 *         ...
 *         pthread_mutex_unlock(&cache);
 *         RIP_LOCK_RELEASED(&cache, RIP_EXCLUSIVE);
 *     }
 *
 *     cc server.c $(pkg-config --cflags --libs librip)
 *
 * A mark stores its own address, with a sequence number, in the calling thread's part of a shared file. It takes no
 * lock, makes no system call and no function call; the first mark of a thread, which claims a slot, is the exception
 * to the last two. Marks for locks call the library in all but the most usual cases: see there. read-rip reads the
 * file, of a living process or of a dead one, and shows where every thread is.
 * Marks work in signal handlers, in children of a fork, in destructors of thread-locals, in threads that are cancelled,
 * asynchronously too, and in libraries, loaded at the start or by dlopen. Before there is a ring, or where one cannot be
 * made, they record nowhere. No call here is a cancellation point.
 *
 * Rust and C parts of a program share one ring: the words and the notes are those of the Rust macros. What they mean
 * is written down in librip/src/layout.rs and librip/src/site.rs.
 *
 * Linux, on x86-64 and little-endian aarch64; gcc and clang. With RIP_DISABLE defined before it is included, nothing
 * is recorded, all marks are empty, and no library is needed.
 */
#ifndef LIBRIP_H
#define LIBRIP_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#if !defined(RIP_DISABLE)
#if !defined(__GNUC__)
#error "librip.h needs gcc or clang"
#elif !defined(__linux__) || !defined(__LP64__)
#error "librip records on 64-bit Linux only; define RIP_DISABLE to compile without"
#elif !defined(__x86_64__) && !(defined(__aarch64__) && defined(__AARCH64EL__))
#error "librip records on x86-64 and little-endian aarch64 only; define RIP_DISABLE to compile without"
#endif
#endif

/* C23 and C++ have it as a keyword, <threads.h> has it like this. */
#if !defined(__cplusplus) && !defined(thread_local) && !(defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L)
#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define thread_local _Thread_local
#else
#define thread_local __thread
#endif
#endif

/* Without recording, calls are empty functions in each translation unit: see the end. */
#ifdef RIP_DISABLE
#define LIBRIP_CALL_ static __inline__ __attribute__((unused))
#else
#define LIBRIP_CALL_ extern
#endif

/* Whatever the program's own visibility is: what is the library's is found there. */
#pragma GCC visibility push(default)

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Starting ------------------------------------------------------------------------------------------------- */

/* What becomes of the ring when the process calls exit or returns from main. In any other case it stays. */
enum rip_keep {
    RIP_KEEP_ON_FAILURE = 0, /* removed when the status is 0, or nothing was marked */
    RIP_KEEP_ALWAYS = 1,
    RIP_KEEP_NEVER = 2
};

/* Which lock events carry times. */
enum rip_clock {
    RIP_CLOCK_CONTENDED = 0, /* where a thread waits, and how long it then held the lock */
    RIP_CLOCK_OFF = 1,
    RIP_CLOCK_ALL = 2
};

/* Zero stands for a default, and a number that is out of range for the nearest in it. RIP_RING, RIP_WORDS, RIP_SLOTS,
 * RIP_KEEP and RIP_CLOCK in the environment override. */
struct rip_options {
    size_t size;                  /* sizeof(struct rip_options) */
    const char *path;             /* a file, or a directory; /dev/shm/rip.PROGRAM.PID.START. A file that is there is left
                                     alone, and the new one called PATH.1, PATH.2, and so on */
    uint32_t words;               /* history of a thread: 16 to 16384 words, rounded up to a power of two; 64 */
    uint32_t slots;               /* threads at a time, to 16777216; 65536. Unused slots take no memory */
    uint32_t keep;                /* enum rip_keep */
    uint32_t clock;               /* enum rip_clock */
    uint32_t leaves_sigbus_alone; /* not 0: no handler for the SIGBUS that marks raise once the file was truncated */
    uint32_t reserved;            /* 0 */
};

/* Starts recording with the defaults. Returns 0, or an error number (errno.h), ECANCELED if RIP_RING=off; see
 * rip_start_with. But 0 if the process records already. */
LIBRIP_CALL_ int rip_start(void);

/* Starts recording. Returns 0, or an error number: EALREADY if the process records already, ECANCELED if
 * RIP_RING=off, EINVAL for a `size` that is too small, a `keep` or `clock` that is none, or a `reserved` that is not 0,
 * ENOSPC where there is no room, or what open or mmap said.
 * The program is as it was before, and marks record nowhere. */
LIBRIP_CALL_ int rip_start_with(const struct rip_options *options);

/* Whether this process records. */
LIBRIP_CALL_ bool rip_is_recording(void);

/* Writes the ring's path to `path`, terminated, cut to `size` bytes. Returns its length, as snprintf does; 0
 * where there is no ring, or another copy of librip in this process has made it. */
LIBRIP_CALL_ size_t rip_ring_path(char *path, size_t size);

/* Names the calling thread: up to 48 bytes. Without it the name is the one that it had at its first mark. */
LIBRIP_CALL_ void rip_set_thread_name(const char *name);

/* Registers libraries that were loaded after the ring was made. Those that include this header do it by
 * themselves. */
LIBRIP_CALL_ void rip_refresh_modules(void);

/* ---- The calls of the C header that came before --------------------------------------------------------------- */

/* Programs that were written for it compile and run as they are, and get the new ring; rip_snap() is below. */

/* Makes a ring for `max_procs` threads at a time. False if it could not be made. True as well if the process records
 * already, or if RIP_RING=off, so that a program that insists on its ring runs on. */
LIBRIP_CALL_ bool rip_create_ring(const char *file, size_t max_procs);

/* The calling thread has a slot from here on, under this name. Not needed: a thread's first mark does it as well. The
 * thread's id is the kernel's, and slots count by themselves: `id`, `idx` and `ctr` are not used. */
LIBRIP_CALL_ void rip_init(pid_t id, const char *name, size_t namelen, uint8_t idx, uint8_t ctr);

/* The calling thread gives its slot back, and records nowhere until it calls rip_init. Not needed: threads that
 * end do it as well. */
LIBRIP_CALL_ void rip_exit(void);

/* The program's own; nothing here uses them. */
struct rip_ring;
extern struct rip_ring *rip_ring;
extern thread_local pid_t rip_tid;
extern thread_local uint8_t rip_idx;
extern thread_local uint8_t rip_ctr;

/* ---- Marks ---------------------------------------------------------------------------------------------------- */

/* RIP_SNAP()             this place was passed. Its value is the place's address, uintptr_t.
 * RIP_SNAP_LABEL("...")  the same, with a text that read-rip -v shows. It costs nothing at run time.
 * RIP_PROGRESS()         useful work has been done: tells a program that works from one that only runs.
 * rip_snap()             RIP_SNAP() under its first name.
 *
 * Within functions only. */
#define RIP_SNAP() RIP_SNAP_LABEL("")
#define RIP_SNAP_LABEL(label) LIBRIP_MARK_(LIBRIP_KIND_SNAP, label)
#define RIP_PROGRESS() LIBRIP_MARK_(LIBRIP_KIND_PROGRESS, "")
#define rip_snap() RIP_SNAP()

/* Marks for locks. `lock` is a pointer to the lock; what counts is the address. `flags` is a constant: one of the first
 * two below, and more of them by `|`.
 *
 * RIP_LOCK_ACQUIRED and RIP_LOCK_RELEASED make no call for the one lock that a thread has, if it has not waited for it.
 *
 * RIP_LOCK_WAIT        before the thread blocks. Notes the time: some nanoseconds more than other marks.
 * RIP_LOCK_ACQUIRED    directly behind the acquisition, with or without a wait before it.
 * RIP_LOCK_RELEASED    directly behind the release, by whichever thread.
 * RIP_LOCK_TRY_FAILED  the lock was tried in vain, or waited for until the time was up.
 *
 * While a thread waits for a condition it does not have the mutex:
 *
 *     RIP_LOCK_RELEASED(&queue, RIP_EXCLUSIVE);
 *     pthread_cond_wait(&filled, &queue);
 *     RIP_LOCK_ACQUIRED(&queue, RIP_EXCLUSIVE);
 *
 * RIP_LOCK_NAME        names it, up to 48 bytes; a static lock is shown by the name of its variable even without.
 * RIP_LOCK_DESTROYED   the lock ends: another one may come to lie there. */
#define RIP_LOCK_WAIT(lock, flags)                                                                                   \
    librip_wait_(lock, LIBRIP_SITE_VALUE_(LIBRIP_KIND_LOCK_WAIT, flags, 2, LIBRIP_TYPES_TIME_LOCK_, ""), flags)
#define RIP_LOCK_ACQUIRED(lock, flags)                                                                               \
    librip_acquired_(lock, LIBRIP_SITE_VALUE_(LIBRIP_KIND_LOCK_ACQUIRED, flags, 1, LIBRIP_TYPES_LOCK_, ""),          \
                     LIBRIP_SITE_VALUE_(LIBRIP_KIND_LOCK_ACQUIRED, flags, 2, LIBRIP_TYPES_TIME_LOCK_, ""), flags)
#define RIP_LOCK_RELEASED(lock, flags)                                                                               \
    librip_released_(lock, LIBRIP_SITE_VALUE_(LIBRIP_KIND_LOCK_RELEASED, flags, 1, LIBRIP_TYPES_LOCK_, ""),          \
                     LIBRIP_SITE_VALUE_(LIBRIP_KIND_LOCK_RELEASED, flags, 3, LIBRIP_TYPES_TIME_SINCE_LOCK_, ""))
#define RIP_LOCK_TRY_FAILED(lock, flags)                                                                             \
    librip_try_failed_(                                                                                              \
        lock, LIBRIP_SITE_VALUE_(LIBRIP_KIND_LOCK_TRY_FAILED, (flags) | RIP_TRY, 1, LIBRIP_TYPES_LOCK_, ""))
#define RIP_LOCK_NAME(lock, name) rip_lock_name(lock, name)
#define RIP_LOCK_DESTROYED(lock) rip_lock_destroyed(lock)

/* They count on RIP_LOCK_WAIT and RIP_LOCK_ACQUIRED. */
#define RIP_EXCLUSIVE 0      /* one thread has it at a time */
#define RIP_SHARED 1         /* taken for reading */
#define RIP_TRY 2            /* the waiting ends by itself after a time; the lock was got by trying */
#define RIP_REENTRANT 8      /* the owner may take it again */
#define RIP_READERS_FIRST 16 /* with RIP_SHARED: these readers pass waiting writers */

LIBRIP_CALL_ void rip_lock_name(const volatile void *lock, const char *name);
LIBRIP_CALL_ void rip_lock_destroyed(const volatile void *lock);

/* ==== What is behind the marks: no part of the interface ======================================================= */

/* Numbers of the format: librip/src/layout.rs defines them. */
#define LIBRIP_KIND_SNAP 0
#define LIBRIP_KIND_PROGRESS 1
#define LIBRIP_KIND_LOCK_WAIT 2
#define LIBRIP_KIND_LOCK_ACQUIRED 3
#define LIBRIP_KIND_LOCK_RELEASED 4
#define LIBRIP_KIND_LOCK_TRY_FAILED 5

#define LIBRIP_OPERAND_LOCK_ 3
#define LIBRIP_OPERAND_TIME_ 4
#define LIBRIP_OPERAND_SINCE_ 5
#define LIBRIP_TYPES_LOCK_ LIBRIP_OPERAND_LOCK_
#define LIBRIP_TYPES_TIME_LOCK_ (LIBRIP_OPERAND_TIME_ | LIBRIP_OPERAND_LOCK_ << 8)
#define LIBRIP_TYPES_TIME_SINCE_LOCK_ (LIBRIP_OPERAND_TIME_ | LIBRIP_OPERAND_SINCE_ << 8 | LIBRIP_OPERAND_LOCK_ << 16)

#define LIBRIP_SEQUENCE_SHIFT_ 49
#define LIBRIP_SEQUENCE_MASK_ ((UINT64_C(1) << (64 - LIBRIP_SEQUENCE_SHIFT_)) - 1)
#define LIBRIP_OPERAND_FLAG_ (UINT64_C(1) << 48)
#define LIBRIP_PAYLOAD_MASK_ (LIBRIP_OPERAND_FLAG_ - 1)

#define LIBRIP_HELD_MAX_ 16
#define LIBRIP_HELD_STATE_SHIFT_ 48
#define LIBRIP_HELD_STATE_MASK_ (UINT64_C(7) << LIBRIP_HELD_STATE_SHIFT_)
#define LIBRIP_HELD_NONE_ UINT64_C(0)
#define LIBRIP_HELD_ACQUIRING_ UINT64_C(1)
#define LIBRIP_HELD_HELD_ UINT64_C(3)
#define LIBRIP_HELD_SHARED_ (UINT64_C(1) << 51)
#define LIBRIP_HELD_SINCE_ (UINT64_C(1) << 52)
#define LIBRIP_HELD_SEQUENCE_SHIFT_ 56
#define LIBRIP_HELD_SEQUENCE_MASK_ ((UINT64_C(1) << (64 - LIBRIP_HELD_SEQUENCE_SHIFT_)) - 1)
#define LIBRIP_CLOCK_LEVEL_ALL_ 2

#ifndef RIP_DISABLE

/* What precedes the words of a slot. */
struct librip_slot_1 {
    uint32_t state;
    uint32_t kind;
    uint32_t generation;
    uint32_t pid;
    uint32_t tid;
    uint32_t reserved_running_tid;
    uint64_t claimed_boottime_ns;
    uint64_t exited_boottime_ns;
    uint64_t first_sequence;
    uint64_t pid_namespace;
    uint32_t held_overflowed;
    uint32_t reserved;
    uint64_t name[6];
    struct {
        uint64_t lock;
        uint64_t meta;
        uint64_t since;
    } held[LIBRIP_HELD_MAX_];
    uint64_t reserved_before_count;
    uint64_t count;
};

/* A thread's block in this module, executable or library: see ThreadBlock in librip/src/arch/mod.rs. */
struct librip_block_1 {
    uint64_t *cursor;   /* the words of the thread's slot, or null */
    uint64_t is_absent; /* not 0: the thread records nowhere */
    const void *next;
    uint64_t exit_rounds;
};

/* What the marks of this module need to know of the ring: see ModuleState in librip/src/arch/mod.rs. */
struct librip_module_state_1 {
    uint64_t mask;    /* words of a slot minus one */
    uint32_t clock;   /* the level of times in the lowest byte */
    uint32_t is_open; /* not 0: there is a ring */
};

/* A compile-time check; C99 has no other. */
#define LIBRIP_ASSERT_(name, condition) typedef char librip_assert_##name##_[(condition) ? 1 : -1]
LIBRIP_ASSERT_(slot, sizeof(struct librip_slot_1) == 512);
LIBRIP_ASSERT_(held, offsetof(struct librip_slot_1, held) == 112);
LIBRIP_ASSERT_(count, offsetof(struct librip_slot_1, count) == 504);
LIBRIP_ASSERT_(block, sizeof(struct librip_block_1) == 32 && offsetof(struct librip_block_1, is_absent) == 8);
LIBRIP_ASSERT_(module, sizeof(struct librip_module_state_1) == 16 && offsetof(struct librip_module_state_1, is_open) == 12);

/* The library's part. The first keeps all registers, as far as librip_enter_ below says. */
void librip_enter_c_1(void);
void librip_lock_wait_1(const volatile void *lock, uint64_t pc, uint16_t site_flags);
void librip_lock_acquired_1(const volatile void *lock, uint64_t pc, uint64_t pc_timed, uint16_t site_flags);
void librip_lock_released_1(const volatile void *lock, uint64_t pc, uint64_t pc_timed);
void librip_lock_try_failed_1(const volatile void *lock, uint64_t pc);

/* One in each module: the linker takes one of those of all translation units, or the one of the Rust parts.
 * Hidden, and in the initial-exec model, so that a mark reaches it without a call in a library, too. */
#define LIBRIP_TLS_ __attribute__((weak, visibility("hidden"), tls_model("initial-exec"))) __thread
extern LIBRIP_TLS_ struct librip_block_1 librip_tls_1;
LIBRIP_TLS_ struct librip_block_1 librip_tls_1;

/* The constraint for the address of something in this module, also in position-independent code. */
#if defined(__x86_64__)
#define LIBRIP_SYMBOL_(address) "i"(address)
#else
#define LIBRIP_SYMBOL_(address) "S"(address)
#endif

/* The state is one in each module as well. A note leads the library to it, and names it in assembly, where the compiler
 * does not see that it is used. */
extern __attribute__((visibility("hidden"))) struct librip_module_state_1 librip_module_1;
__attribute__((weak, used)) struct librip_module_state_1 librip_module_1 = {0, 0, 0};

/* Where this module was loaded after the ring was made, its sites must be entered, before its own constructors mark.
 * Once a module, though each translation unit calls it. The reference is weak: a program that includes this header and
 * marks nothing needs no library. */
extern __attribute__((visibility("hidden"))) unsigned char librip_is_loaded_1;
__attribute__((weak)) unsigned char librip_is_loaded_1 = 0;
void librip_refresh_1(void) __attribute__((weak));
static __attribute__((constructor(101), used, no_instrument_function)) void librip_loaded_(void) {
    __asm__ __volatile__(
        ".pushsection .note.librip,\"a\",%%note\n\t"
        ".balign 4\n\t"
        ".4byte 7, 4, 3\n\t"
        ".asciz \"librip\"\n\t"
        ".balign 4\n\t"
        ".4byte librip_module_1 - .\n\t"
        ".popsection"
        : /* Not an operand: with -flto gcc finds no constant in it. The colons make it "%%" above. */
        :);
    if (!librip_is_loaded_1 && librip_refresh_1) {
        librip_is_loaded_1 = 1;
        librip_refresh_1();
    }
}

/* Not instrumented: a mark may stand in the hooks of -finstrument-functions. */
#define LIBRIP_INLINE_ static __inline__ __attribute__((always_inline, unused, no_instrument_function))
#ifdef __cplusplus
#define LIBRIP_CAST_(type, value) reinterpret_cast<type>(value)
#define LIBRIP_NULL_ nullptr
#else
#define LIBRIP_CAST_(type, value) ((type)(value))
#define LIBRIP_NULL_ NULL
#endif
#define LIBRIP_LIKELY_(condition) __builtin_expect(!!(condition), 1)

#if defined(__x86_64__)
#define LIBRIP_LOAD_PC_ "{leaq 20b(%%rip), %[pc]|lea %[pc], [rip + 20b]}\n\t"
#else
#define LIBRIP_LOAD_PC_ "adr %[pc], 20b\n\t"
#endif

/* Loads the address of this instruction, and describes the place in a note that is loaded with the module. It
 * has to be in a macro, for the user's file and line.  The numbers are operands, and so is the text: a file's
 * name may contain anything. "?" puts the note into the section group of the function, so that the linker drops
 * it with a copy of an inline function or a template. The last line is a comment: compilers merge assembly that
 * is the same to the letter, and two sites would have one address. */
#define LIBRIP_SITE_(pc_, kind_, flags_, count_, types_, text_)                                                      \
    __asm__ __volatile__(                                                                                            \
        "20:\n\t" LIBRIP_LOAD_PC_                                                                                    \
        ".pushsection .note.librip,\"a?\",%%note\n\t"                                                                \
        ".balign 4\n\t"                                                                                              \
        ".4byte 7, 36, 1\n\t"                                                                                        \
        ".asciz \"librip\"\n\t"                                                                                      \
        ".balign 4\n\t"                                                                                              \
        ".4byte 20b - .\n\t"                                                                                         \
        ".4byte %c[text] - .\n\t"                                                                                    \
        ".4byte %c[text_len], %c[line], 0\n\t"                                                                       \
        ".byte %c[kind], %c[count]\n\t"                                                                              \
        ".2byte %c[flags]\n\t"                                                                                       \
        ".4byte %c[types], 0, 0\n\t"                                                                                 \
        ".popsection\n\t"                                                                                            \
        "/* %c[unique] */"                                                                                           \
        : [pc] "=r"(pc_)                                                                                             \
        : [text] LIBRIP_SYMBOL_(text_), [text_len] "i"(sizeof(text_) - 1), [line] "i"(__LINE__), [kind] "i"(kind_),  \
          [count] "i"(count_), [flags] "i"(flags_), [types] "i"(types_), [unique] "i"(__COUNTER__))

/* File, module path and label. */
#define LIBRIP_TEXT_(label) __FILE__ "\0\0" label

#define LIBRIP_SITE_VALUE_(kind, flags, count, types, label)                                                         \
    __extension__({                                                                                                  \
        uint64_t librip_pc_;                                                                                         \
        LIBRIP_SITE_(librip_pc_, kind, flags, count, types, LIBRIP_TEXT_(label));                                    \
        librip_pc_;                                                                                                  \
    })

#define LIBRIP_MARK_(kind, label) librip_mark_(LIBRIP_SITE_VALUE_(kind, 0, 0, 0, label))

/* The thread's first mark in this module gets the block a cursor; null if there is no ring. A call that keeps
 * the registers: a function that only marks stays a leaf. Through a pointer that is filled in when the module is
 * loaded, because binding at the first call would not keep them all; should the linker put a stub in between
 * that does bind then, the clobbers are what it may change. */
static __inline__ __attribute__((unused, no_instrument_function)) uint64_t *librip_enter_(void) {
    static void (*volatile entry)(void) = librip_enter_c_1;
    void (*enter)(void) = entry;
#if defined(__x86_64__)
    void *block = &librip_tls_1;
    /* Out of the way of a leaf function's data below the stack pointer. */
    __asm__ __volatile__(
        "{leaq -128(%%rsp), %%rsp|lea rsp, [rsp - 128]}\n\t"
        "{call *%[enter]|call %[enter]}\n\t"
        "{leaq 128(%%rsp), %%rsp|lea rsp, [rsp + 128]}"
        : "+a"(block)
        : [enter] "r"(enter)
        : "r10", "r11", "cc", "memory");
#else
    register void *block __asm__("x0") = &librip_tls_1;
    __asm__ __volatile__(
        "str x30, [sp, #-16]!\n\t"
        "blr %[enter]\n\t"
        "ldr x30, [sp], #16"
        : "+r"(block)
        : [enter] "r"(enter)
        : "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23",
          "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "cc", "memory");
#endif
    return LIBRIP_CAST_(uint64_t *, block);
}

/* Reserves words of a slot, and returns the first one's sequence. In one instruction, or in two that a signal
 * undoes, so that a handler that marks too comes wholly before or wholly after. No lock prefix: no other thread
 * reserves here. */
LIBRIP_INLINE_ uint64_t librip_reserve_(uint64_t *cursor, uint64_t words) {
#if defined(__x86_64__)
    __asm__ __volatile__("{xaddq %0, %1|xadd %1, %0}" : "+r"(words), "+m"(cursor[-1]) : : "cc", "memory");
    return words;
#else
    uint64_t first, next;
    uint32_t failed;
    __asm__ __volatile__(
        "2:\n\t"
        "ldxr %[first], [%[count]]\n\t"
        "add %[next], %[first], %[words]\n\t"
        "stxr %w[failed], %[next], [%[count]]\n\t"
        "cbnz %w[failed], 2b"
        : [first] "=&r"(first), [next] "=&r"(next), [failed] "=&r"(failed)
        : [count] "r"(cursor - 1), [words] "r"(words)
        : "memory");
    return first;
#endif
}

/* The calling thread's cursor in this module, or null. Each call looks again: a handler may set it at any time. */
LIBRIP_INLINE_ uint64_t *librip_cursor_(void) {
    return __atomic_load_n(&librip_tls_1.cursor, __ATOMIC_RELAXED);
}

/* Whether there is a ring, as far as is known here. */
LIBRIP_INLINE_ int librip_is_active_(void) {
    return __atomic_load_n(&librip_module_1.is_open, __ATOMIC_ACQUIRE) != 0;
}

/* Whether a thread without a cursor may get one. */
LIBRIP_INLINE_ int librip_may_enter_(void) {
    return librip_is_active_() && !__atomic_load_n(&librip_tls_1.is_absent, __ATOMIC_RELAXED);
}

/* Words of a slot minus one. It is private memory: nobody who changes the file can send a store elsewhere. */
LIBRIP_INLINE_ uint64_t librip_mask_(void) {
    return __atomic_load_n(&librip_module_1.mask, __ATOMIC_RELAXED);
}

/* What other threads' marks write too, when the slot is used again. The library orders that, and checkers for races
 * do not see how. */
LIBRIP_INLINE_ uint64_t librip_load_(const uint64_t *field) {
    return __atomic_load_n(field, __ATOMIC_RELAXED);
}

/* A word carries its sequence, so that its store needs no order. What does not fit is cut off beforehand, for
 * checkers of arithmetic. */
LIBRIP_INLINE_ void librip_store_(uint64_t *cursor, uint64_t sequence, uint64_t payload) {
    uint64_t word = (sequence & LIBRIP_SEQUENCE_MASK_) << LIBRIP_SEQUENCE_SHIFT_ | payload;
    __atomic_store_n(&cursor[sequence & librip_mask_()], word, __ATOMIC_RELAXED);
}

/* Behind RIP_SNAP and RIP_PROGRESS. The last line keeps what follows, a fault for example, behind the mark. */
LIBRIP_INLINE_ uintptr_t librip_mark_(uint64_t pc) {
    uint64_t *cursor = librip_cursor_();
    if (!LIBRIP_LIKELY_(cursor)) {
        if (!librip_may_enter_() || !(cursor = librip_enter_())) {
            return pc;
        }
    }
    librip_store_(cursor, librip_reserve_(cursor, 1), pc);
    __asm__ __volatile__("" : : : "memory");
    return pc;
}

/* The event of a lock without times. Returns the sequence of its last word. */
LIBRIP_INLINE_ uint64_t librip_lock_event_(uint64_t *cursor, uint64_t lock, uint64_t pc) {
    uint64_t sequence = librip_reserve_(cursor, 2);
    librip_store_(cursor, sequence, LIBRIP_OPERAND_FLAG_ | (lock & LIBRIP_PAYLOAD_MASK_));
    librip_store_(cursor, sequence + 1, pc);
    return sequence + 1;
}

/* The cursor behind a lock's mark. A thread's first mark in this module enters, so that the next finds it; null if there
 * is no ring. */
LIBRIP_INLINE_ uint64_t *librip_lock_cursor_(void) {
    uint64_t *cursor = librip_cursor_();
    if (!LIBRIP_LIKELY_(cursor) && librip_may_enter_()) {
        cursor = librip_enter_();
    }
    return cursor;
}

/* The slot of a cursor; null if there is none. */
LIBRIP_INLINE_ struct librip_slot_1 *librip_slot_(uint64_t *cursor) {
    return cursor ? LIBRIP_CAST_(struct librip_slot_1 *, cursor) - 1 : LIBRIP_NULL_;
}

/* Whether every lock event has a time. */
LIBRIP_INLINE_ int librip_times_all_(void) {
    return (__atomic_load_n(&librip_module_1.clock, __ATOMIC_RELAXED) & 0xff) == LIBRIP_CLOCK_LEVEL_ALL_;
}

LIBRIP_INLINE_ void librip_wait_(const volatile void *lock, uint64_t pc, uint16_t flags) {
    if (librip_is_active_()) {
        librip_lock_wait_1(lock, pc, flags);
    }
    __asm__ __volatile__("" : : : "memory");
}

/* Behind RIP_LOCK_ACQUIRED: librip/src/lock/by_hand.rs, where the lock is the only one that the thread has, and it
 * has never had two. All else is done there. Stores are releases, in the order that librip/src/lock/table.rs
 * wants: the place reserves the entry, the lock comes next, and then the state. */
LIBRIP_INLINE_ void librip_acquired_(const volatile void *lock, uint64_t pc, uint64_t pc_timed, uint16_t flags) {
    uint64_t *cursor = librip_lock_cursor_();
    struct librip_slot_1 *slot = librip_slot_(cursor);
    if (LIBRIP_LIKELY_(slot && !librip_times_all_() &&
                       !(librip_load_(&slot->held[0].meta) & LIBRIP_HELD_STATE_MASK_) &&
                       !(slot->held[1].lock | slot->held[1].meta))) {
        uint64_t address = LIBRIP_CAST_(uintptr_t, lock);
        uint64_t sequence = librip_lock_event_(cursor, address, pc);
        uint64_t meta = (sequence & LIBRIP_HELD_SEQUENCE_MASK_) << LIBRIP_HELD_SEQUENCE_SHIFT_ |
                         LIBRIP_HELD_ACQUIRING_ << LIBRIP_HELD_STATE_SHIFT_ | pc |
                         ((flags & RIP_SHARED) ? LIBRIP_HELD_SHARED_ : 0);
        __atomic_store_n(&slot->held[0].meta, meta, __ATOMIC_RELEASE);
        __atomic_store_n(&slot->held[0].lock,
                         (sequence & LIBRIP_SEQUENCE_MASK_) << LIBRIP_SEQUENCE_SHIFT_ | LIBRIP_OPERAND_FLAG_ |
                             (address & LIBRIP_PAYLOAD_MASK_),
                         __ATOMIC_RELEASE);
        meta ^= (LIBRIP_HELD_ACQUIRING_ ^ LIBRIP_HELD_HELD_) << LIBRIP_HELD_STATE_SHIFT_;
        __atomic_store_n(&slot->held[0].meta, meta, __ATOMIC_RELEASE);
    } else if (cursor) {
        librip_lock_acquired_1(lock, pc, pc_timed, flags);
    }
    __asm__ __volatile__("" : : : "memory");
}

/* Behind RIP_LOCK_RELEASED: the first entry is this lock's, held, without a time. All else is done in the library. */
LIBRIP_INLINE_ void librip_released_(const volatile void *lock, uint64_t pc, uint64_t pc_timed) {
    uint64_t *cursor = librip_lock_cursor_();
    struct librip_slot_1 *slot = librip_slot_(cursor);
    uint64_t address = LIBRIP_CAST_(uintptr_t, lock);
    if (LIBRIP_LIKELY_(slot && !librip_times_all_() &&
                       (librip_load_(&slot->held[0].meta) & (LIBRIP_HELD_STATE_MASK_ | LIBRIP_HELD_SINCE_)) ==
                           LIBRIP_HELD_HELD_ << LIBRIP_HELD_STATE_SHIFT_ &&
                       !((librip_load_(&slot->held[0].lock) ^ address) & LIBRIP_PAYLOAD_MASK_))) {
        __atomic_store_n(&slot->held[0].meta, UINT64_C(0), __ATOMIC_RELEASE);
        librip_lock_event_(cursor, address, pc);
    } else if (cursor) {
        librip_lock_released_1(lock, pc, pc_timed);
    }
    __asm__ __volatile__("" : : : "memory");
}

LIBRIP_INLINE_ void librip_try_failed_(const volatile void *lock, uint64_t pc) {
    if (librip_is_active_()) {
        librip_lock_try_failed_1(lock, pc);
    }
    __asm__ __volatile__("" : : : "memory");
}

#else /* RIP_DISABLE */

#undef RIP_SNAP_LABEL
#undef RIP_PROGRESS
#undef RIP_LOCK_WAIT
#undef RIP_LOCK_ACQUIRED
#undef RIP_LOCK_RELEASED
#undef RIP_LOCK_TRY_FAILED
#define RIP_SNAP_LABEL(label) librip_nothing_("" label)
#define RIP_PROGRESS() librip_nothing_("")
#define RIP_LOCK_WAIT(lock, flags) ((void)(lock), (void)(flags))
#define RIP_LOCK_ACQUIRED(lock, flags) ((void)(lock), (void)(flags))
#define RIP_LOCK_RELEASED(lock, flags) ((void)(lock), (void)(flags))
#define RIP_LOCK_TRY_FAILED(lock, flags) ((void)(lock), (void)(flags))

LIBRIP_CALL_ uintptr_t librip_nothing_(const char *label) {
    (void)label;
    return 0;
}
LIBRIP_CALL_ int rip_start(void) {
    return 0;
}
LIBRIP_CALL_ int rip_start_with(const struct rip_options *options) {
    (void)options;
    return 0;
}
LIBRIP_CALL_ bool rip_is_recording(void) {
    return false;
}
LIBRIP_CALL_ size_t rip_ring_path(char *path, size_t size) {
    if (size > 0) {
        *path = 0;
    }
    return 0;
}
LIBRIP_CALL_ void rip_set_thread_name(const char *name) {
    (void)name;
}
LIBRIP_CALL_ void rip_refresh_modules(void) {
}
LIBRIP_CALL_ bool rip_create_ring(const char *file, size_t max_procs) {
    (void)file;
    (void)max_procs;
    return true;
}
LIBRIP_CALL_ void rip_init(pid_t id, const char *name, size_t namelen, uint8_t idx, uint8_t ctr) {
    (void)id;
    (void)name;
    (void)namelen;
    (void)idx;
    (void)ctr;
}
LIBRIP_CALL_ void rip_exit(void) {
}
LIBRIP_CALL_ void rip_lock_name(const volatile void *lock, const char *name) {
    (void)lock;
    (void)name;
}
LIBRIP_CALL_ void rip_lock_destroyed(const volatile void *lock) {
    (void)lock;
}

#endif /* RIP_DISABLE */

#ifdef __cplusplus
}
#endif

#pragma GCC visibility pop

#endif /* LIBRIP_H */
