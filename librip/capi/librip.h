/* librip.h: records where each thread is, which locks it holds, and what it says, in a file that outlives the process.
 * A mark takes about a nanosecond. For C99 to C23 and C++11 to C++23. It is long because programs install and
 * include one file.
 *
 *     #include <librip.h>
 *     #include <pthread.h>
 *
 *     static pthread_mutex_t cache = PTHREAD_MUTEX_INITIALIZER;
 *
 *     int main(void) {
 *         rip_start();                          // if it fails, the program runs on without recording
 *         RIP_SNAP();                           // the thread was here
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
 * A mark stores its own address and a sequence number in the calling thread's slot of a shared file, the ring. A mark
 * takes no lock, makes no system call, and calls no function. The first mark of a thread is an exception: it claims a
 * slot, which takes a function call and system calls. Marks for locks call the library in all but the most common
 * cases: see RIP_LOCK_ACQUIRED. Events and spans call the library too. The program read-rip reads the ring of a live or
 * a dead process and shows where each thread is.
 *
 * Marks work in signal handlers, in forked children, in destructors of thread-locals, in threads that are cancelled
 * (also asynchronously), and in libraries that are linked or loaded by dlopen. If there is no ring, they record
 * nowhere. No function of this header is a cancellation point.
 *
 * Rust and C parts of a program share one ring: the C macros write the same words and notes as the Rust macros. The
 * documentation of the crate librip-format describes them.
 *
 * For Linux on x86-64 and little-endian aarch64, with gcc or clang. If RIP_DISABLE is defined before this header is
 * included, all marks are empty, nothing is recorded, and no library is needed.
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

/* A keyword in C23 and C++. <threads.h> defines it like this in C11. */
#if !defined(__cplusplus) && !defined(thread_local) && !(defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L)
#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define thread_local _Thread_local
#else
#define thread_local __thread
#endif
#endif

/* With RIP_DISABLE, calls are empty functions in each translation unit: see the end of this file. */
#ifdef RIP_DISABLE
#define LIBRIP_CALL_ static __inline__ __attribute__((unused))
#else
#define LIBRIP_CALL_ extern
#endif

/* The library's functions have default visibility, whatever -fvisibility the program uses. */
#pragma GCC visibility push(default)

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Starting ------------------------------------------------------------------------------------------------- */

/* Whether the ring stays when the process calls exit or returns from main. After any other end it stays. */
enum rip_keep {
    RIP_KEEP_ON_FAILURE = 0, /* stays if the exit status is not 0 and there is at least one mark */
    RIP_KEEP_ALWAYS = 1,
    RIP_KEEP_NEVER = 2
};

/* Which lock events have times. */
enum rip_clock {
    RIP_CLOCK_CONTENDED = 0, /* waits, and how long a thread then holds the lock that it waited for */
    RIP_CLOCK_OFF = 1,
    RIP_CLOCK_ALL = 2
};

/* What the recorder asks the kernel about cycles of RIP_SLOW_CYCLE, so that read-rip knows why a slow one was slow. */
enum rip_usage {
    RIP_USAGE_OFF = 0,
    RIP_USAGE_COUNTS = 1, /* the time on a processor, switches, page faults: getrusage and clock_gettime */
    RIP_USAGE_DELAYS = 2  /* the time of being ready too: reads /proc/thread-self/schedstat */
};

/* Zero means the default. A number out of range means the nearest number in the range. The environment variables
 * RIP_RING, RIP_WORDS, RIP_SLOTS, RIP_KEEP, RIP_CLOCK and RIP_USAGE override these options. RIP_POLLS=times counts how
 * long the turns of coroutines take. */
struct rip_options {
    size_t size;                  /* sizeof(struct rip_options) */
    const char *path;             /* a file or a directory; default /dev/shm/rip.PROGRAM.PID.START. An existing file is
                                     left alone, and the new one is called PATH.1, PATH.2, and so on */
    uint32_t words;               /* history of a thread: 16 to 16384 words, rounded up to a power of two; default 64 */
    uint32_t slots;               /* threads at a time: 1 to 16777216; default 65536. Unused slots take nothing */
    uint32_t keep;                /* enum rip_keep */
    uint32_t clock;               /* enum rip_clock */
    uint32_t leaves_sigbus_alone; /* not 0: no handler for the SIGBUS that marks raise if the file is truncated */
    uint32_t usage;               /* enum rip_usage */
};

/* Starts recording with the defaults. Returns 0, also if the process records already, or an error number of
 * rip_start_with. */
LIBRIP_CALL_ int rip_start(void);

/* Starts recording. Returns 0, or an error number of errno.h: EALREADY if the process records already, ECANCELED if
 * RIP_RING=off, EINVAL if `size` is too small, or `keep`, `clock` or `usage` is unknown, ENOSPC if the file
 * system is full, or the error of open or mmap. After an error the program is unchanged, and marks record nowhere. */
LIBRIP_CALL_ int rip_start_with(const struct rip_options *options);

/* Whether this process records. */
LIBRIP_CALL_ bool rip_is_recording(void);

/* Writes the path of the ring to `path`, with a terminating zero, truncated to `size` bytes. Returns the length of the
 * whole path, as snprintf does. Returns 0 if there is no ring, or if another copy of librip in this process made
 * it. */
LIBRIP_CALL_ size_t rip_ring_path(char *path, size_t size);

/* Names the calling thread in the ring: up to 40 bytes. Without this call, the thread has the name that the kernel has
   for it: as long as the process lives the present one, later the one that it had at its first mark. */
LIBRIP_CALL_ void rip_set_thread_name(const char *name);

/* Registers libraries that were loaded after the ring was made. Libraries that include this header register
 * themselves. */
LIBRIP_CALL_ void rip_refresh_modules(void);

/* From now on, the recorder makes no system call that the program does not make itself. Call it before the program
 * installs a filter of its system calls (seccomp) that kills for the calls that it does not list. The calling thread
 * and those that have recorded before go on to record. Later threads record nowhere and are counted. The ring stays at
 * a clean exit. */
LIBRIP_CALL_ void rip_avoid_system_calls(void);

/* ---- Calls of the earlier C header ---------------------------------------------------------------------------- */

/* Programs that were written for that header compile unchanged and get the new ring. rip_snap() is below. */

/* Makes a ring for `max_procs` threads at a time. Returns false if that fails. Returns true also if the process
 * records already or if RIP_RING=off, so that a program that requires its ring runs on. */
LIBRIP_CALL_ bool rip_create_ring(const char *file, size_t max_procs);

/* Claims a slot for the calling thread and names the thread. Optional: the first mark of a thread claims a slot too.
 * The arguments `id`, `idx` and `ctr` are ignored: the recorder uses the kernel's thread id and its own counts. */
LIBRIP_CALL_ void rip_init(pid_t id, const char *name, size_t namelen, uint8_t idx, uint8_t ctr);

/* Releases the calling thread's slot. The thread then records nowhere until it calls rip_init. Optional: the end of a
 * thread releases its slot too. */
LIBRIP_CALL_ void rip_exit(void);

/* Variables of the program. librip does not use them. */
struct rip_ring;
extern struct rip_ring *rip_ring;
extern thread_local pid_t rip_tid;
extern thread_local uint8_t rip_idx;
extern thread_local uint8_t rip_ctr;

/* ---- Marks ---------------------------------------------------------------------------------------------------- */

/* RIP_SNAP()             the thread was here. The value is the address of the mark, a uintptr_t.
 * RIP_SNAP_LABEL("...")  the same, with a text that read-rip -v shows. The text costs nothing at run time.
 * RIP_PROGRESS()         useful work was done: lets read-rip check tell a livelock from progress.
 * rip_snap()             the earlier name of RIP_SNAP().
 *
 * Use them within functions only. */
#define RIP_SNAP() RIP_SNAP_LABEL("")
#define RIP_SNAP_LABEL(label) LIBRIP_MARK_(LIBRIP_KIND_SNAP, label)
#define RIP_PROGRESS() LIBRIP_MARK_(LIBRIP_KIND_PROGRESS, "")
#define rip_snap() RIP_SNAP()

/* Marks for locks. `lock` is a pointer to the lock; only its address counts. `flags` is a constant: RIP_EXCLUSIVE or
 * RIP_SHARED, combined by `|` with others of the list below.
 *
 * RIP_LOCK_ACQUIRED and RIP_LOCK_RELEASED call no function if the thread holds no other lock and did not wait for this
 * one.
 *
 * RIP_LOCK_WAIT        put it before the thread blocks. It reads the clock, so it costs some nanoseconds more.
 * RIP_LOCK_ACQUIRED    put it directly after the acquisition, with or without a wait before it.
 * RIP_LOCK_RELEASED    put it directly after the release, in the thread that releases.
 * RIP_LOCK_TRY_FAILED  put it where a try failed, or where a wait timed out.
 *
 * A thread that waits on a condition variable does not hold the mutex meanwhile. Put these around each such wait, with
 * RIP_TRY instead of 0 if the wait has a timeout, and however it ends:
 *
 *     RIP_CONDITION_WAIT(&filled, &queue, 0);
 *     pthread_cond_wait(&filled, &queue);
 *     RIP_CONDITION_WOKEN(&filled, &queue, 0);
 *
 * RIP_LOCK_NAME        names the lock: up to 48 bytes. A static lock without a name is shown as its variable.
 * RIP_LOCK_DESTROYED   put it where the lock ends: another lock may get the same address later.
 *
 * The marks whose names end in _CLASS also say of which class the lock is: a string literal, which costs nothing at run
 * time. read-rip shows it for locks without a name of their own. In a macro that has the lock as its parameter `l`, the
 * class may be `#l`: the caller's expression. */
#define RIP_LOCK_WAIT(lock, flags) RIP_LOCK_WAIT_CLASS(lock, flags, "")
#define RIP_LOCK_ACQUIRED(lock, flags) RIP_LOCK_ACQUIRED_CLASS(lock, flags, "")
#define RIP_LOCK_RELEASED(lock, flags) RIP_LOCK_RELEASED_CLASS(lock, flags, "")
#define RIP_LOCK_TRY_FAILED(lock, flags) RIP_LOCK_TRY_FAILED_CLASS(lock, flags, "")
#define RIP_LOCK_WAIT_CLASS(lock, flags, class_)                                                                     \
    librip_wait_(lock, LIBRIP_SITE_VALUE_(LIBRIP_KIND_LOCK_WAIT, flags, 2, LIBRIP_TYPES_TIME_LOCK_, class_), flags)
#define RIP_LOCK_ACQUIRED_CLASS(lock, flags, class_)                                                                 \
    librip_acquired_(lock, LIBRIP_SITE_VALUE_(LIBRIP_KIND_LOCK_ACQUIRED, flags, 1, LIBRIP_TYPES_LOCK_, class_),      \
                     LIBRIP_SITE_VALUE_(LIBRIP_KIND_LOCK_ACQUIRED, flags, 2, LIBRIP_TYPES_TIME_LOCK_, class_), flags)
#define RIP_LOCK_RELEASED_CLASS(lock, flags, class_)                                                                 \
    librip_released_(lock, LIBRIP_SITE_VALUE_(LIBRIP_KIND_LOCK_RELEASED, flags, 1, LIBRIP_TYPES_LOCK_, class_),      \
                     LIBRIP_SITE_VALUE_(LIBRIP_KIND_LOCK_RELEASED, flags, 3, LIBRIP_TYPES_TIME_SINCE_LOCK_, class_))
#define RIP_LOCK_TRY_FAILED_CLASS(lock, flags, class_)                                                               \
    librip_try_failed_(                                                                                              \
        lock, LIBRIP_SITE_VALUE_(LIBRIP_KIND_LOCK_TRY_FAILED, (flags) | RIP_TRY, 1, LIBRIP_TYPES_LOCK_, class_))
#define RIP_CONDITION_WAIT(condition, lock, flags)                                                                   \
    librip_condition_wait_(                                                                                          \
        condition, lock,                                                                                             \
        LIBRIP_SITE_VALUE_(LIBRIP_KIND_CONDITION_WAIT, flags, 3, LIBRIP_TYPES_TIME_LOCK_CONDITION_, ""))
#define RIP_CONDITION_WOKEN(condition, lock, flags)                                                                  \
    librip_condition_woken_(                                                                                         \
        condition, lock,                                                                                             \
        LIBRIP_SITE_VALUE_(LIBRIP_KIND_CONDITION_WOKEN, flags, 3, LIBRIP_TYPES_TIME_LOCK_CONDITION_, ""))
#define RIP_LOCK_NAME(lock, name) rip_lock_name(lock, name)
#define RIP_LOCK_DESTROYED(lock)                                                                                     \
    librip_destroyed_(lock, LIBRIP_SITE_VALUE_(LIBRIP_KIND_LOCK_DESTROYED, 0, 1, LIBRIP_TYPES_LOCK_, ""))

/* Flags of lock marks. They have an effect on RIP_LOCK_WAIT and RIP_LOCK_ACQUIRED. */
#define RIP_EXCLUSIVE 0      /* one thread holds the lock at a time */
#define RIP_SHARED 1         /* several threads may hold the lock: it is taken for reading */
#define RIP_TRY 2            /* the wait has a timeout, or the lock was acquired by a try */
#define RIP_REENTRANT 8      /* the holder may take the lock again */
#define RIP_READERS_FIRST 16 /* with RIP_SHARED: readers overtake waiting writers */

LIBRIP_CALL_ void rip_lock_name(const volatile void *lock, const char *name);

/* ---- Events, spans and captures ------------------------------------------------------------------------------- */

/* RIP_EVENT("...", ...)               something happened: `read-rip log` shows it. Arguments as for printf.
 * RIP_EVENT_LEVEL(level, "...", ...)  the same with a level: RIP_TRACE, RIP_DEBUG, RIP_INFO, RIP_WARN or RIP_ERROR.
 *                                     Without one, an event has RIP_INFO.
 *
 *     RIP_EVENT("move a disk from %d to %d", from, to);
 *     RIP_EVENT_LEVEL(RIP_WARN, "cannot open %s: %d", path, errno);
 *
 * The program formats nothing. It stores the values, at most ten, in the calling thread's slot, and read-rip formats
 * them. That takes 10 to 30 ns. The format is a string literal, and the compiler checks it against the values as it
 * does for printf (-Wformat). An event may stand wherever a call may, also in a signal handler. Each value is evaluated
 * once.
 *
 * Values are integers of up to 64 bits, enums, bool, floats and pointers. A long double is recorded as a double. What
 * %s shows is recorded by value: up to 48 bytes, or 18 in an event with many texts. As printf does, the event reads it
 * up to its zero byte, or as many bytes as the precision says ("%.*s"). A null pointer is "(null)". A `char *` with
 * another conversion, such as %p, is an address, and nothing is read there.
 *
 * RIP_TEXT(text)                      as a value for %s: records the text by reference. The text must last as long as
 *                                     the process, and must not change: a literal, for example, or an element of a
 *                                     table of literals. It takes less time, and the text may have any length. The
 *                                     ring has up to 256 bytes of it. */
#define RIP_EVENT(...) RIP_EVENT_LEVEL(RIP_INFO, __VA_ARGS__)
#define RIP_EVENT_LEVEL(level, ...) LIBRIP_EVENT_(librip_event_, level, __VA_ARGS__)
#define RIP_TEXT(text) librip_text_(text)

#define RIP_TRACE 1
#define RIP_DEBUG 2
#define RIP_INFO 3
#define RIP_WARN 4
#define RIP_ERROR 5

/* Something lasts from here to there. `read-rip spans` shows how long spans took, and which are open and since when,
 * also after a crash: a thread's slot has a table of its open spans, with room for 16. Of an open span, the table has
 * the first value.
 *
 * RIP_SPAN("name");                   the span lasts until the end of the enclosing block. It is a declaration.
 * RIP_SPAN_WITH("name", "...", ...);  the same with values, as RIP_EVENT has them.
 *
 *     void parse(const char *text, size_t size) {
 *         RIP_SPAN_WITH("parse", "%zu bytes", size);
 *         ...
 *     }
 *
 * RIP_SPAN_BEGIN("name")              begins a span, and returns it as a struct rip_span.
 * RIP_SPAN_BEGIN_WITH("name", "...", ...)
 * RIP_SPAN_END(span)                  ends it. Use it once for each span, in the thread that began the span. Spans may
 *                                     end in any order. A struct rip_span that is all zeros is no span. */
struct rip_span {
    uint64_t begin;
    uint64_t since;
    uint64_t pc_end;
    uint64_t cursor;
    uint64_t entry;
};
#define RIP_SPAN(name) LIBRIP_SPAN_GUARD_(RIP_SPAN_BEGIN(name))
#define RIP_SPAN_WITH(name, ...) LIBRIP_SPAN_GUARD_(RIP_SPAN_BEGIN_WITH(name, __VA_ARGS__))
#define RIP_SPAN_BEGIN(name) LIBRIP_SPAN_BEGIN_(name, "", LIBRIP_NULL_, 0)
#define RIP_SPAN_BEGIN_WITH(name, ...)                                                                               \
    (LIBRIP_CHECK_(__VA_ARGS__), LIBRIP_SPAN_BEGIN_(name, LIBRIP_FIRST_(__VA_ARGS__, 0), LIBRIP_VALUES_(__VA_ARGS__)))
#define RIP_SPAN_END(span) librip_span_end_(span)

/* A channel has words of its own in each thread, so that frequent events do not replace rare ones. `read-rip log` shows
 * the events of all channels in one order with the others, and `read-rip set PID CONFIGURATION=off` switches a channel
 * off in the running process, or `=warn` what is below that level.
 *
 *     RIP_CHANNEL(CONFIGURATION, 256);
 *
 *     RIP_EVENT_IN(CONFIGURATION, RIP_INFO, "now %d workers", workers);
 *
 * An event that is switched off takes a few loads and a branch, and evaluates none of its values. A span in a channel
 * has RIP_INFO. With RIP_DISABLE, all of them are switched off. A ring has room for eight channels, and for 32 MiB of
 * their words. It counts what finds no room.
 *
 * RIP_CHANNEL(NAME, words);           a static struct rip_channel NAME. It has so many words for each thread: 16 to
 *                                     16384, a constant, rounded up to a power of two. An event takes two words, one
 *                                     for its time, and one or two for each number. A name has at most 40 bytes.
 * RIP_EVENT_IN(channel, level, "...", ...)
 * RIP_SPAN_IN(channel, "name");
 * RIP_SPAN_IN_WITH(channel, "name", "...", ...);
 * RIP_SPAN_BEGIN_IN(channel, "name")  ends with RIP_SPAN_END too.
 * RIP_SPAN_BEGIN_IN_WITH(channel, "name", "...", ...)
 *
 * `channel` is the name of a channel, or another expression for a struct rip_channel, which may be evaluated twice. Two
 * channels with one name and one number of words are one channel, also if one is in Rust or in a library. So several
 * files may include a header with a RIP_CHANNEL. An inline function in such a header needs one with external linkage,
 * which one file defines, and the others declare:
 *
 *     struct rip_channel configuration = RIP_CHANNEL_INIT("CONFIGURATION", 256);
 *     extern struct rip_channel configuration;
 *
 * A channel must last as long as the process. The program does not use the fields. */
struct rip_channel {
    const char *name;
    const uint32_t *level;
    uint32_t words;
    uint32_t index;
};
#define RIP_CHANNEL(name, words)                                                                                     \
    __attribute__((unused)) static struct rip_channel name = RIP_CHANNEL_INIT(#name, words)
#define RIP_CHANNEL_INIT(name, words) {"" name, LIBRIP_NULL_, LIBRIP_WORDS_(words, sizeof(name)), UINT32_MAX}
#define RIP_EVENT_IN(channel, level, ...) LIBRIP_EVENT_IN_(channel, level, __VA_ARGS__)
#define RIP_SPAN_IN(channel, name) LIBRIP_SPAN_GUARD_(RIP_SPAN_BEGIN_IN(channel, name))
#define RIP_SPAN_IN_WITH(channel, name, ...) LIBRIP_SPAN_GUARD_(RIP_SPAN_BEGIN_IN_WITH(channel, name, __VA_ARGS__))
#define RIP_SPAN_BEGIN_IN(channel, name) LIBRIP_SPAN_BEGIN_IN_(channel, name, "", LIBRIP_NULL_, 0)
#define RIP_SPAN_BEGIN_IN_WITH(channel, name, ...)                                                                   \
    (LIBRIP_CHECK_(__VA_ARGS__),                                                                                     \
     LIBRIP_SPAN_BEGIN_IN_(channel, name, LIBRIP_FIRST_(__VA_ARGS__, 0), LIBRIP_VALUES_(__VA_ARGS__)))

/* A thread's history has room for its last words alone. These keep a copy of it where something is wrong that will be
 * explained by what came before. `read-rip captures` shows the copies. A ring has the last 64 of them.
 *
 * RIP_CAPTURE("...", ...)             records an event, and keeps what this thread has recorded up to it. The level is
 *                                     RIP_WARN.
 * RIP_CAPTURE_LEVEL(level, "...", ...)
 * RIP_SLOW_CYCLE("name", limit_us);   a declaration. If the enclosing block takes longer than this many microseconds,
 *                                     an event says so at its end, and what the thread has recorded in it is kept.
 *
 *     for (;;) {
 *         RIP_SLOW_CYCLE("loop", 20000);
 *         serve(next_request());
 *     } */
#define RIP_CAPTURE(...) RIP_CAPTURE_LEVEL(RIP_WARN, __VA_ARGS__)
#define RIP_CAPTURE_LEVEL(level, ...) LIBRIP_EVENT_(librip_capture_, level, __VA_ARGS__)
#define RIP_SLOW_CYCLE(name, limit_us) LIBRIP_SLOW_CYCLE_(name, limit_us)

/* Copies the ring to a file, while threads record on. read-rip reads the copy as it would read the ring. Only its owner
 * may read it. A file of this name is replaced. Returns 0, or an error number: ENOENT if this process does not record,
 * if another copy of librip in it made the ring, or if the ring's file was removed, EFBIG if the copy would be longer
 * than the process's limit on files, or the error of writing the file. */
LIBRIP_CALL_ int rip_dump(const char *path);

/* From now on, this signal makes a dump, each time it comes, and does nothing else any more. What fails then is not
 * reported. Returns 0, or an error number: EINVAL if there is no such signal, or none that can be handled. With
 * RIP_DISABLE, the signal does what it did before. */
LIBRIP_CALL_ int rip_dump_at_signal(int signal, const char *path);

/* ---- Coroutines ------------------------------------------------------------------------------------------------ */

/* A coroutine that runs on a stack of its own has a history and locks of its own, as a thread has. They follow it from
 * thread to thread, and stay while it is suspended. The scheduler says so, for ucontext, Boost.Context, and switches
 * in assembly:
 *
 *     rip_context *context = rip_context_create("reader");
 *
 *     rip_context_switch(context);               a thread resumes the coroutine:
 *     swapcontext(&scheduler, &reader);          call it on the old stack, right before the switch
 *
 *     rip_context_switch(NULL);                  the coroutine returns to the thread's own stack
 *     swapcontext(&reader, &scheduler);
 *
 *     rip_context_switch(other);                 the coroutine hands over to another one
 *     swapcontext(&reader, &writer);
 *
 *     rip_context_destroy(context);              the coroutine has ended
 *
 * So there is one call for each switch of stacks, with what runs afterwards. Between the two, the program has no marks,
 * and no other thread can resume the coroutine that is left: a scheduler that puts it into a queue does so after the
 * switch. For coroutines of C++20, librip_coroutine.hpp makes these calls.
 *
 * rip_context_create(name)   a coroutine. `name` is null, or up to 40 bytes of it are kept. It is a macro, and where it
 *                            is used is where the coroutine was made. The result is null if there is no ring, or no
 *                            room for another coroutine. Null is no error: all functions accept it, and what the
 *                            coroutine does is then recorded for the thread. If the ring was made before a library with
 *                            the first use of this macro was loaded, there is room for none.
 * rip_context_switch         the calling thread is about to go on in this coroutine; with null, on its own stack. It is
 *                            a call of the library. If another thread is in the coroutine, the program has an error,
 *                            and the calling thread records for itself. Not for signal handlers.
 * rip_context_current        the coroutine that the calling thread is in; null if it is in none.
 * rip_context_destroy        ends the coroutine. A lock that it holds stays visible as one that it has left behind. If
 *                            the calling thread is in the coroutine, it records for itself from now on. If another
 *                            thread is in it, nothing happens. The context must not be used afterwards.
 *
 * In a forked child, a context of the parent records nothing, and the child records for itself. */
typedef struct rip_context rip_context;
#ifndef RIP_DISABLE
#define rip_context_create(name)                                                                                     \
    librip_context_create_1(name, LIBRIP_SITE_VALUE_(LIBRIP_KIND_TASK, 0, 0, 0, ""), __FILE__, __LINE__)
#endif
LIBRIP_CALL_ void rip_context_switch(rip_context *context);
LIBRIP_CALL_ rip_context *rip_context_current(void);
LIBRIP_CALL_ void rip_context_destroy(rip_context *context);

/* ---- Places of other languages ---------------------------------------------------------------------------------- */

/* For bindings. A mark has the file and line of its C source. A binding for another language learns its places when the
 * program runs, and records at a place what the program does there. The module for Python in librip/python is one.
 *
 *     static rip_place *place;                           once for each place of the program, and kept
 *     place = rip_place_create("shop.py", 12, "pay", "", "");
 *
 *     if (!try_lock(lock)) {
 *         rip_place_lock_wait(place, id, RIP_OWNED);
 *         wait_for(lock);
 *     }
 *     rip_place_lock_acquired(place, id, RIP_OWNED);
 *     ...
 *     rip_place_lock_released(place, id, RIP_OWNED);     before the release: another thread may acquire it then
 *     unlock(lock);
 *
 * rip_place_create           a place that lasts as long as the process. `label` is the format of the events of this
 *                            place as Rust has it ("{} rows"), or the name of its spans, or the class of the locks that
 *                            are used there. `format` is that of the values of its spans. The texts are copied. Null
 *                            means "".
 * rip_place_lock_...         as the macros RIP_LOCK_WAIT and so on. `lock` is a number that identifies the lock, of at
 *                            most 48 bits: its address, for example. A binding records all that is done with a lock,
 *                            so a deadlock of such locks is proven. `flags` is 0, or these, combined by `|`: RIP_TRY,
 *                            RIP_REENTRANT, which says too that only the owner can release the lock, and RIP_OWNED:
 *                            the thread that acquired the lock releases it, as the end of a block does. A wait, its end
 *                            and the acquisition after it have the same flags. With RIP_BY_HAND, the program does
 *                            things with the lock that the binding does not record: then a deadlock is suspected.
 * rip_lock_number            a number for a lock that no other lock of the process has or had. It is 0 without the
 *                            library.
 * rip_place_event            the values are those of the format.
 * rip_place_span_begin       begins a span, which the same thread ends.
 * rip_place_snap             the thread was here.
 *
 * A process that has made a place before rip_start has room for 16 open spans in each slot, which take 384 bytes.
 * Without a ring, or with a null place, they do nothing. If the ring has no room for another place, no
 * acquisition is recorded there, and the ring counts it. The release of a recorded acquisition is always recorded.
 * These are calls of the library: they take tens of nanoseconds. */
typedef struct rip_place rip_place;

/* A value: the bits of a number, or the address of a text. `type` is one of these; the length of a text is above its
 * lowest 8 bits. Up to 48 bytes of a text are kept. */
struct rip_value {
    uint64_t bits;
    uint64_t type;
};
#define RIP_VALUE_U64 5
#define RIP_VALUE_I64 6
#define RIP_VALUE_F64 8
#define RIP_VALUE_BOOL 9
#define RIP_VALUE_TEXT 12

#define RIP_OWNED 32
#define RIP_BY_HAND 64

LIBRIP_CALL_ rip_place *rip_place_create(const char *file, uint32_t line, const char *function, const char *label,
                                         const char *format);
LIBRIP_CALL_ uint64_t rip_lock_number(void);
LIBRIP_CALL_ void rip_place_lock_wait(rip_place *place, uint64_t lock, uint32_t flags);
LIBRIP_CALL_ void rip_place_lock_acquired(rip_place *place, uint64_t lock, uint32_t flags);
LIBRIP_CALL_ void rip_place_lock_released(rip_place *place, uint64_t lock, uint32_t flags);
LIBRIP_CALL_ void rip_place_lock_try_failed(rip_place *place, uint64_t lock, uint32_t flags);
LIBRIP_CALL_ void rip_place_event(rip_place *place, uint32_t level, const struct rip_value *values, size_t count);
LIBRIP_CALL_ struct rip_span rip_place_span_begin(rip_place *place, const struct rip_value *values, size_t count);
LIBRIP_CALL_ void rip_place_span_end(struct rip_span span);
LIBRIP_CALL_ void rip_place_snap(rip_place *place);

/* ==== Implementation of the macros: not part of the interface =================================================== */

/* Numbers of the format. The crate librip-format defines them. */
#define LIBRIP_KIND_SNAP 0
#define LIBRIP_KIND_PROGRESS 1
#define LIBRIP_KIND_LOCK_WAIT 2
#define LIBRIP_KIND_LOCK_ACQUIRED 3
#define LIBRIP_KIND_LOCK_RELEASED 4
#define LIBRIP_KIND_LOCK_TRY_FAILED 5
#define LIBRIP_KIND_CONDITION_WAIT 7
#define LIBRIP_KIND_CONDITION_WOKEN 8
#define LIBRIP_KIND_LOCK_DESTROYED 9
#define LIBRIP_KIND_EVENT 14
#define LIBRIP_KIND_SPAN_BEGIN 15
#define LIBRIP_KIND_SPAN_END 16
#define LIBRIP_KIND_TASK 17 /* no event has it: the module has coroutines */

#define LIBRIP_SITE_PRINTF_ 8   /* the format is one of printf */
#define LIBRIP_SITE_CHANNEL_ 16 /* the event is in a channel */
#define LIBRIP_SITE_USAGE_ 32   /* the values say what the thread used in a cycle */

#define LIBRIP_OPERAND_LOCK_ 3
#define LIBRIP_OPERAND_TIME_ 4
#define LIBRIP_OPERAND_SINCE_ 5
#define LIBRIP_OPERAND_CONDITION_ 6
#define LIBRIP_OPERAND_SHAPE_ 10
#define LIBRIP_TYPES_LOCK_ LIBRIP_OPERAND_LOCK_
#define LIBRIP_TYPES_TIME_LOCK_ (LIBRIP_OPERAND_TIME_ | LIBRIP_OPERAND_LOCK_ << 8)
#define LIBRIP_TYPES_TIME_LOCK_CONDITION_                                                                            \
    (LIBRIP_OPERAND_TIME_ | LIBRIP_OPERAND_LOCK_ << 8 | LIBRIP_OPERAND_CONDITION_ << 16)
#define LIBRIP_TYPES_TIME_SINCE_LOCK_ (LIBRIP_OPERAND_TIME_ | LIBRIP_OPERAND_SINCE_ << 8 | LIBRIP_OPERAND_LOCK_ << 16)
#define LIBRIP_TYPES_TIME_SINCE_ (LIBRIP_OPERAND_TIME_ | LIBRIP_OPERAND_SINCE_ << 8)

/* Types of values. */
#define LIBRIP_VALUE_UNSIGNED_ 1
#define LIBRIP_VALUE_I32_ 4
#define LIBRIP_VALUE_U64_ 5
#define LIBRIP_VALUE_I64_ 6
#define LIBRIP_VALUE_F64_ 8
#define LIBRIP_VALUE_BOOL_ 9
#define LIBRIP_VALUE_POINTER_ 11
#define LIBRIP_VALUE_BYTES_ 12
#define LIBRIP_VALUE_TEXT_ 13

#define LIBRIP_SEQUENCE_SHIFT_ 49
#define LIBRIP_SEQUENCE_MASK_ ((UINT64_C(1) << (64 - LIBRIP_SEQUENCE_SHIFT_)) - 1)
#define LIBRIP_OPERAND_FLAG_ (UINT64_C(1) << 48)
#define LIBRIP_PAYLOAD_MASK_ (LIBRIP_OPERAND_FLAG_ - 1)

#define LIBRIP_HELD_MAX_ 16
#define LIBRIP_HELD_STATE_SHIFT_ 60
#define LIBRIP_HELD_NONE_ UINT64_C(0)
#define LIBRIP_HELD_ACQUIRING_ UINT64_C(1)
#define LIBRIP_HELD_HELD_ UINT64_C(3)
#define LIBRIP_HELD_SHARED_ (UINT64_C(1) << 56)
#define LIBRIP_HELD_BITS_SHIFT_ 56
#define LIBRIP_HELD_PC_SHIFT_ 8
#define LIBRIP_CHECKSUM_FACTOR_ UINT64_C(0x9e3779b97f4a7c15)
/* What is xored with `meta` to change these bits of the state and the flags: the checksum covers them. */
#define LIBRIP_HELD_CHANGE_(bits) ((bits) ^ (bits) >> LIBRIP_HELD_BITS_SHIFT_)
#define LIBRIP_CLOCK_LEVEL_TICKS_ 2

#ifdef __cplusplus
#define LIBRIP_CAST_(type, value) reinterpret_cast<type>(value)
#define LIBRIP_NULL_ nullptr
#else
#define LIBRIP_CAST_(type, value) ((type)(value))
#define LIBRIP_NULL_ NULL
#endif

#define LIBRIP_JOIN_(a, b) LIBRIP_JOIN_NOW_(a, b)
#define LIBRIP_JOIN_NOW_(a, b) a##b
#define LIBRIP_FIRST_(first, ...) first

/* The number of values after the format, or MANY. */
#define LIBRIP_COUNT_(...)                                                                                           \
    LIBRIP_AT_31_(__VA_ARGS__, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY,   \
                  MANY, MANY, MANY, MANY, MANY, MANY, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0)
#define LIBRIP_AT_31_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad,  \
                      ae, at_31, ...)                                                                                \
    at_31

/* LIBRIP_EACH_(macro, "format", a, b) is macro(a), macro(b). */
#define LIBRIP_EACH_(m, ...) LIBRIP_JOIN_(LIBRIP_EACH_, LIBRIP_COUNT_(__VA_ARGS__))(m, __VA_ARGS__)
#define LIBRIP_EACH_MANY(m, ...) AN_EVENT_HAS_AT_MOST_TEN_VALUES
#define LIBRIP_EACH_1(m, format, a) m(a)
#define LIBRIP_EACH_2(m, format, a, b) m(a), m(b)
#define LIBRIP_EACH_3(m, format, a, b, c) m(a), m(b), m(c)
#define LIBRIP_EACH_4(m, format, a, b, c, d) m(a), m(b), m(c), m(d)
#define LIBRIP_EACH_5(m, format, a, b, c, d, e) m(a), m(b), m(c), m(d), m(e)
#define LIBRIP_EACH_6(m, format, a, b, c, d, e, f) m(a), m(b), m(c), m(d), m(e), m(f)
#define LIBRIP_EACH_7(m, format, a, b, c, d, e, f, g) m(a), m(b), m(c), m(d), m(e), m(f), m(g)
#define LIBRIP_EACH_8(m, format, a, b, c, d, e, f, g, h) m(a), m(b), m(c), m(d), m(e), m(f), m(g), m(h)
#define LIBRIP_EACH_9(m, format, a, b, c, d, e, f, g, h, i) m(a), m(b), m(c), m(d), m(e), m(f), m(g), m(h), m(i)
#define LIBRIP_EACH_10(m, format, a, b, c, d, e, f, g, h, i, j)                                                      \
    m(a), m(b), m(c), m(d), m(e), m(f), m(g), m(h), m(i), m(j)

/* Chooses what to do if there are values, and if there are none. */
#define LIBRIP_IF_VALUES_(s, none, ...)                                                                              \
    LIBRIP_AT_31_(__VA_ARGS__, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s,   \
                  s, s, none, 0)

/* Lets the compiler check a format against its values. It is never called. */
static __inline__ __attribute__((unused, no_instrument_function, format(printf, 1, 2))) int librip_check_format_(
    const char *format, ...) {
    (void)format;
    return 0;
}
#define LIBRIP_CHECK_(...)                                                                                           \
    ((void)(0 ? LIBRIP_IF_VALUES_(LIBRIP_CHECK_VALUES_, LIBRIP_CHECK_FORMAT_, __VA_ARGS__)(__VA_ARGS__) : 0))
#define LIBRIP_CHECK_FORMAT_(format) librip_check_format_(format)
#define LIBRIP_CHECK_VALUES_(...)                                                                                    \
    librip_check_format_(LIBRIP_FIRST_(__VA_ARGS__, 0), LIBRIP_EACH_(LIBRIP_CHECKED_, __VA_ARGS__))

/* The words of a channel, checked, and rounded up to a power of two. `name_size` includes the zero byte. */
#define LIBRIP_WORDS_CAN_BE_(words) ((words) >= 16 && (words) <= 16384)
#define LIBRIP_NAME_CAN_BE_(name_size) ((name_size) > 1 && (name_size) <= 41)
#define LIBRIP_ROUNDED_(words)                                                                                       \
    ((words) > 8192   ? 16384                                                                                        \
     : (words) > 4096 ? 8192                                                                                         \
     : (words) > 2048 ? 4096                                                                                         \
     : (words) > 1024 ? 2048                                                                                         \
     : (words) > 512  ? 1024                                                                                         \
     : (words) > 256  ? 512                                                                                          \
     : (words) > 128  ? 256                                                                                          \
     : (words) > 64   ? 128                                                                                          \
     : (words) > 32   ? 64                                                                                           \
     : (words) > 16   ? 32                                                                                           \
                      : 16)
#ifdef __cplusplus
extern "C++" {
template <long long words, size_t name_size>
struct librip_words_1 {
    static_assert(LIBRIP_WORDS_CAN_BE_(words), "a channel has 16 to 16384 words");
    static_assert(LIBRIP_NAME_CAN_BE_(name_size), "the name of a channel has 1 to 40 bytes");
    static constexpr uint32_t rounded = LIBRIP_ROUNDED_(words);
};
}
#define LIBRIP_WORDS_(words, name_size) librip_words_1<(words), name_size>::rounded
#else
/* A compiler that refuses a bit-field names it. */
#define LIBRIP_WORDS_(words, name_size)                                                                              \
    (LIBRIP_ROUNDED_(words) +                                                                                        \
     0 * (uint32_t)sizeof(struct {                                                                                   \
         int a_channel_has_16_to_16384_words : LIBRIP_WORDS_CAN_BE_(words) ? 1 : -1;                                 \
         int the_name_of_a_channel_has_1_to_40_bytes : LIBRIP_NAME_CAN_BE_(name_size) ? 1 : -1;                      \
     }))
#endif

#define LIBRIP_CYCLE_FORMAT_(name) name ": a cycle took %lu us, more than %lu us"
#define LIBRIP_USAGE_FORMAT_(name)                                                                                   \
    name ": %u us, and %u us around it: %u us on a processor, %u us of it in the kernel, %d us ready for one; "      \
         "%u voluntary and %u involuntary switches; %u minor and %u major page faults"

#ifndef RIP_DISABLE

/* The header of a slot, which precedes the slot's words. */
struct librip_slot_1 {
    uint32_t state;
    uint32_t kind;
    uint32_t generation;
    uint32_t pid;
    uint32_t tid;
    uint32_t creator_slot;
    uint64_t claimed_boottime_ns;
    uint64_t exited_boottime_ns;
    uint64_t first_sequence;
    uint32_t pid_namespace;
    uint32_t joiner_slot;
    uint32_t held_overflowed;
    uint16_t flags;
    uint16_t held_end;
    uint64_t name[5];
    uint64_t joiner_count;
    struct {
        uint64_t lock;
        uint64_t meta;
        uint64_t since;
    } held[LIBRIP_HELD_MAX_];
    uint64_t creator_count;
    uint64_t count;
};

/* The thread-local block of this module, an executable or a library: see ThreadBlock in librip/src/arch/mod.rs. */
struct librip_block_1 {
    uint64_t *cursor;   /* the words of the thread's slot, or null */
    uint64_t is_absent; /* not 0: the thread records nowhere */
    const void *next;
    uint64_t exit_rounds;
    uint64_t due; /* an event with this sequence or a later one takes the time; plain marks do not look */
    uint64_t period;
    uint64_t sampled_ticks;
};

/* What the marks of this module need to know of the ring: see ModuleState in librip/src/arch/mod.rs. */
struct librip_module_state_1 {
    uint64_t mask;    /* words of a slot minus one */
    uint32_t clock;   /* the level of times in the lowest byte */
    uint32_t is_open; /* not 0: there is a ring */
};

/* A value of an event: the bits of a number, or an address. The lowest 8 bits of `type` are one of LIBRIP_VALUE_*_. The
 * length of a text by reference is above. */
struct librip_value_1 {
    uint64_t bits;
    uint64_t type;
};

/* What RIP_SLOW_CYCLE needs to know at the end of the block. */
struct librip_cycle_1 {
    uint64_t pc;
    uint64_t pc_usage;
    uint64_t begun_ns;
    uint64_t limit_ns;
    uint64_t cursor;
    uint64_t first;
    uint64_t used[9];
};

/* A check at compile time that works in C99 too. */
#define LIBRIP_ASSERT_(name, condition) typedef char librip_assert_##name##_[(condition) ? 1 : -1]
LIBRIP_ASSERT_(slot, sizeof(struct librip_slot_1) == 512);
LIBRIP_ASSERT_(held, offsetof(struct librip_slot_1, held) == 112);
LIBRIP_ASSERT_(held_end, offsetof(struct librip_slot_1, held_end) == 62);
LIBRIP_ASSERT_(count, offsetof(struct librip_slot_1, count) == 504);
LIBRIP_ASSERT_(block, sizeof(struct librip_block_1) == 56 && offsetof(struct librip_block_1, due) == 32);
LIBRIP_ASSERT_(module, sizeof(struct librip_module_state_1) == 16);
LIBRIP_ASSERT_(is_open, offsetof(struct librip_module_state_1, is_open) == 12);
LIBRIP_ASSERT_(channel, sizeof(struct rip_channel) == 24 && offsetof(struct rip_channel, level) == 8);

/* Functions of the library. librip_enter_c_1 preserves all registers except those that librip_enter_ below lists. */
void librip_enter_c_1(void);
void librip_lock_wait_1(const volatile void *lock, uint64_t pc, uint16_t site_flags);
void librip_lock_acquired_1(const volatile void *lock, uint64_t pc, uint64_t pc_timed, uint16_t site_flags);
void librip_lock_released_1(const volatile void *lock, uint64_t pc, uint64_t pc_timed);
void librip_lock_try_failed_1(const volatile void *lock, uint64_t pc);
void librip_lock_destroyed_1(const volatile void *lock, uint64_t pc);
void librip_condition_wait_1(const volatile void *condition, const volatile void *lock, uint64_t pc);
void librip_condition_woken_1(const volatile void *condition, const volatile void *lock, uint64_t pc);
void librip_event_1(uint64_t pc, const char *format, const struct librip_value_1 *values, size_t count);
void librip_capture_1(uint64_t pc, const char *format, const struct librip_value_1 *values, size_t count);
struct rip_span librip_span_begin_1(uint64_t pc, uint64_t pc_end, const char *format,
                                    const struct librip_value_1 *values, size_t count);
void librip_span_end_1(struct rip_span span);
bool librip_channel_takes_1(struct rip_channel *channel, uint16_t level);
void librip_event_in_1(struct rip_channel *channel, uint64_t pc, const char *format,
                       const struct librip_value_1 *values, size_t count);
struct rip_span librip_span_begin_in_1(struct rip_channel *channel, uint64_t pc, uint64_t pc_end, const char *format,
                                       const struct librip_value_1 *values, size_t count);
struct librip_cycle_1 librip_cycle_begin_1(uint64_t pc, uint64_t pc_usage, uint64_t limit_us);
void librip_cycle_end_1(struct librip_cycle_1 cycle);
rip_context *librip_context_create_1(const char *name, uint64_t pc, const char *file, uint32_t line);

/* One block in each module: the linker keeps one of the definitions of all translation units, or that of the Rust
 * parts. It is hidden and uses the initial-exec model, so that a mark in a library reaches it without a call. */
#define LIBRIP_TLS_ __attribute__((weak, visibility("hidden"), tls_model("initial-exec"))) __thread
extern LIBRIP_TLS_ struct librip_block_1 librip_tls_1;
LIBRIP_TLS_ struct librip_block_1 librip_tls_1;

/* The constraint for the address of a symbol of this module, which also works in position-independent code. */
#if defined(__x86_64__)
#define LIBRIP_SYMBOL_(address) "i"(address)
#else
#define LIBRIP_SYMBOL_(address) "S"(address)
#endif

/* What this module knows of the ring. Each module has one such state, and the library finds it through a note. The note
 * names it in assembly, where the compiler does not see the use: hence `used`. */
extern __attribute__((visibility("hidden"))) struct librip_module_state_1 librip_module_1;
__attribute__((weak, used)) struct librip_module_state_1 librip_module_1 = {0, 0, 0};

/* If this module is loaded after the ring was made, its sites must be registered before its own constructors mark.
 * Each translation unit calls the constructor, and the first call registers. The reference to the library is weak: a
 * program that includes this header but has no marks needs no library. */
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
        : /* The symbol is no operand: with -flto gcc sees no constant in it. The colons require "%%" above. */
        :);
    if (!librip_is_loaded_1 && librip_refresh_1) {
        librip_is_loaded_1 = 1;
        librip_refresh_1();
    }
}

/* Not instrumented, so that a mark may stand in the hooks of -finstrument-functions. */
#define LIBRIP_INLINE_ static __inline__ __attribute__((always_inline, unused, no_instrument_function))
#ifdef __cplusplus
#define LIBRIP_NUMBER_(type, value) static_cast<type>(value)
#define LIBRIP_METHOD_ __attribute__((always_inline, no_instrument_function)) inline
#else
#define LIBRIP_NUMBER_(type, value) ((type)(value))
#endif
#define LIBRIP_LIKELY_(condition) __builtin_expect(!!(condition), 1)

#if defined(__x86_64__)
#define LIBRIP_LOAD_PC_ "{leaq 20b(%%rip), %[pc]|lea %[pc], [rip + 20b]}\n\t"
#else
#define LIBRIP_LOAD_PC_ "adr %[pc], 20b\n\t"
#endif

/* Loads the address of its first instruction, and describes the site in a note that is loaded with the module. It is a
 * macro so that it gets the user's file and line. The numbers and the text are operands, because the name of a file
 * may contain any character. "?" puts the note into the section group of the function, so that the linker drops the
 * note when it drops a copy of an inline function or a template. The last line is a comment that makes the text
 * unique: compilers merge identical assembly, and two sites would then have one address. */
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

/* File, module path (empty in C) and label. */
#define LIBRIP_TEXT_(label) __FILE__ "\0\0" label

#define LIBRIP_SITE_VALUE_(kind, flags, count, types, label)                                                         \
    __extension__({                                                                                                  \
        uint64_t librip_pc_;                                                                                         \
        LIBRIP_SITE_(librip_pc_, kind, flags, count, types, LIBRIP_TEXT_(label));                                    \
        librip_pc_;                                                                                                  \
    })

#define LIBRIP_MARK_(kind, label)                                                                                    \
    librip_mark_(LIBRIP_SITE_VALUE_(kind, 0, 0, 0, label), (kind) == LIBRIP_KIND_PROGRESS)

/* Gets a cursor for the thread's block in this module; null if there is no ring. Called by the first mark of a thread,
 * and by each mark of progress or of a lock whose time is due.
 * The call preserves the registers, so that a function that only marks stays a leaf function. It goes through a
 * pointer that the loader fills in, because lazy binding would not preserve all registers. The clobbers are the
 * registers that a stub of the linker may change, if it inserts one that binds lazily. */
static __inline__ __attribute__((unused, no_instrument_function)) uint64_t *librip_enter_(void) {
    static void (*volatile entry)(void) = librip_enter_c_1;
    void (*enter)(void) = entry;
#if defined(__x86_64__)
    void *block = &librip_tls_1;
    /* Leaves the red zone alone: the data of a leaf function below the stack pointer. */
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
        : "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "v16", "v17", "v18", "v19", "v20", "v21", "v22",
          "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "cc", "memory");
#endif
    return LIBRIP_CAST_(uint64_t *, block);
}

/* Reserves words of a slot and returns the sequence of the first. There is no lock prefix, because no other thread
 * reserves words in this slot. A signal handler of this thread may, at any instruction. On x86-64 the count then is not
 * what it was plus the words: xadd, which is one instruction, reserves others, and the first ones may stay unwritten.
 * On aarch64 the pair starts again. xadd alone would be exact too, but takes four times as long on some processors. */
LIBRIP_INLINE_ uint64_t librip_reserve_(uint64_t *cursor, uint64_t words) {
#if defined(__x86_64__)
    uint64_t first = __atomic_load_n(&cursor[-1], __ATOMIC_RELAXED);
    __asm__ __volatile__("{addq %1, %0|add %0, %1}" : "+m"(cursor[-1]) : "er"(words) : "cc", "memory");
    if (!LIBRIP_LIKELY_(__atomic_load_n(&cursor[-1], __ATOMIC_RELAXED) == first + words)) {
        first = words;
        __asm__ __volatile__("{xaddq %0, %1|xadd %1, %0}" : "+r"(first), "+m"(cursor[-1]) : : "cc", "memory");
    }
    return first;
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

/* The calling thread's cursor in this module, or null. Each call loads it again: a signal handler may set it. */
LIBRIP_INLINE_ uint64_t *librip_cursor_(void) {
    return __atomic_load_n(&librip_tls_1.cursor, __ATOMIC_RELAXED);
}

/* Whether there is a ring, as far as this module knows. */
LIBRIP_INLINE_ int librip_is_active_(void) {
    return __atomic_load_n(&librip_module_1.is_open, __ATOMIC_ACQUIRE) != 0;
}

/* Whether a thread without a cursor may get one. */
LIBRIP_INLINE_ int librip_may_enter_(void) {
    return librip_is_active_() && !__atomic_load_n(&librip_tls_1.is_absent, __ATOMIC_RELAXED);
}

/* Words of a slot minus one. It is in private memory, so that a process that changes the file cannot change it. */
LIBRIP_INLINE_ uint64_t librip_mask_(void) {
    return __atomic_load_n(&librip_module_1.mask, __ATOMIC_RELAXED);
}

/* Loads a field that other threads write too when they reuse the slot. The library orders these accesses; race
 * checkers do not see how, so the load is atomic. */
LIBRIP_INLINE_ uint64_t librip_load_(const uint64_t *field) {
    return __atomic_load_n(field, __ATOMIC_RELAXED);
}

/* Stores a word. The word contains its sequence, so the store needs no ordering. The sequence is masked before the
 * shift for sanitizers that report overflow. */
LIBRIP_INLINE_ void librip_store_(uint64_t *cursor, uint64_t sequence, uint64_t payload) {
    uint64_t word = (sequence & LIBRIP_SEQUENCE_MASK_) << LIBRIP_SEQUENCE_SHIFT_ | payload;
    __atomic_store_n(&cursor[sequence & librip_mask_()], word, __ATOMIC_RELAXED);
}

/* As librip_reserve_, for an event without a time: the library notes one if it is due. */
LIBRIP_INLINE_ uint64_t librip_reserve_timed_(uint64_t *cursor, uint64_t words) {
    uint64_t sequence = librip_reserve_(cursor, words);
    if (!LIBRIP_LIKELY_(sequence < librip_tls_1.due)) {
        librip_enter_();
    }
    return sequence;
}

/* Implements RIP_SNAP and RIP_PROGRESS. The last asm statement keeps later code, which may fault, after the mark.
 * is_timed: whether the mark notes a time if one is due. */
LIBRIP_INLINE_ uintptr_t librip_mark_(uint64_t pc, int is_timed) {
    uint64_t *cursor = librip_cursor_();
    if (!LIBRIP_LIKELY_(cursor)) {
        if (!librip_may_enter_() || !(cursor = librip_enter_())) {
            return pc;
        }
    }
    librip_store_(cursor, is_timed ? librip_reserve_timed_(cursor, 1) : librip_reserve_(cursor, 1), pc);
    __asm__ __volatile__("" : : : "memory");
    return pc;
}

/* Records a lock event of a thread that reads no clock for it. Returns the sequence of its last word. */
LIBRIP_INLINE_ uint64_t librip_lock_event_(uint64_t *cursor, uint64_t lock, uint64_t pc) {
    uint64_t sequence = librip_reserve_(cursor, 2);
    librip_store_(cursor, sequence, LIBRIP_OPERAND_FLAG_ | (lock & LIBRIP_PAYLOAD_MASK_));
    librip_store_(cursor, sequence + 1, pc);
    return sequence + 1;
}

/* The checksum of an entry of the held-lock table: see held_meta in librip/format/src/held.rs. Sanitizers are told that
 * the product may overflow. */
#if defined(__clang__)
__attribute__((no_sanitize("unsigned-integer-overflow")))
#endif
LIBRIP_INLINE_ uint64_t librip_held_check_(uint64_t lock, uint64_t pc) {
    return (lock + pc) * LIBRIP_CHECKSUM_FACTOR_ >> (64 - LIBRIP_HELD_PC_SHIFT_);
}

/* The cursor for a lock mark; null if there is no ring. The first mark of a thread in this module sets the cursor, so
 * that the next mark finds it. */
LIBRIP_INLINE_ uint64_t *librip_lock_cursor_(void) {
    uint64_t *cursor = librip_cursor_();
    if (!LIBRIP_LIKELY_(cursor) && librip_may_enter_()) {
        cursor = librip_enter_();
    }
    return cursor;
}

/* The slot of a cursor. Null if there is no cursor. */
LIBRIP_INLINE_ struct librip_slot_1 *librip_slot_(uint64_t *cursor) {
    return cursor ? LIBRIP_CAST_(struct librip_slot_1 *, cursor) - 1 : LIBRIP_NULL_;
}

/* Whether lock events read the clock: each of them, or one from time to time. */
LIBRIP_INLINE_ int librip_reads_clock_(void) {
    return (__atomic_load_n(&librip_module_1.clock, __ATOMIC_RELAXED) & 0xff) >= LIBRIP_CLOCK_LEVEL_TICKS_;
}

LIBRIP_INLINE_ void librip_wait_(const volatile void *lock, uint64_t pc, uint16_t flags) {
    if (librip_is_active_()) {
        librip_lock_wait_1(lock, pc, flags);
    }
    __asm__ __volatile__("" : : : "memory");
}

/* Implements RIP_LOCK_ACQUIRED for a thread that holds no other lock. The library, librip/src/lock/by_hand.rs, does all
 * other cases. The stores are releases in the order that librip/src/lock/table.rs
 * requires: `meta` reserves the entry, then comes `lock`, then the state in `meta`. */
LIBRIP_INLINE_ void librip_acquired_(const volatile void *lock, uint64_t pc, uint64_t pc_timed, uint16_t flags) {
    uint64_t *cursor = librip_lock_cursor_();
    struct librip_slot_1 *slot = librip_slot_(cursor);
    if (LIBRIP_LIKELY_(slot && !librip_reads_clock_() &&
                       !(librip_load_(&slot->held[0].meta) | slot->held[1].meta) && slot->held_end <= 2)) {
        uint64_t address = LIBRIP_CAST_(uintptr_t, lock);
        uint64_t sequence = librip_lock_event_(cursor, address, pc);
        uint64_t word = (sequence & LIBRIP_SEQUENCE_MASK_) << LIBRIP_SEQUENCE_SHIFT_ | LIBRIP_OPERAND_FLAG_ |
                        (address & LIBRIP_PAYLOAD_MASK_);
        uint64_t bits = LIBRIP_HELD_ACQUIRING_ << LIBRIP_HELD_STATE_SHIFT_ |
                        ((flags & RIP_SHARED) ? LIBRIP_HELD_SHARED_ : 0);
        uint64_t meta = librip_held_check_(word, pc) ^ LIBRIP_HELD_CHANGE_(bits) ^ pc << LIBRIP_HELD_PC_SHIFT_;
        __atomic_store_n(&slot->held[0].meta, meta, __ATOMIC_RELEASE);
        __atomic_store_n(&slot->held[0].lock, word, __ATOMIC_RELEASE);
        meta ^= LIBRIP_HELD_CHANGE_((LIBRIP_HELD_ACQUIRING_ ^ LIBRIP_HELD_HELD_) << LIBRIP_HELD_STATE_SHIFT_);
        __atomic_store_n(&slot->held[0].meta, meta, __ATOMIC_RELEASE);
    } else if (cursor) {
        librip_lock_acquired_1(lock, pc, pc_timed, flags);
    }
    __asm__ __volatile__("" : : : "memory");
}

/* Implements RIP_LOCK_RELEASED if the first entry is that of this lock, held, without a time, which the bit above the
 * state would say. The library does all other cases. */
LIBRIP_INLINE_ void librip_released_(const volatile void *lock, uint64_t pc, uint64_t pc_timed) {
    uint64_t *cursor = librip_lock_cursor_();
    struct librip_slot_1 *slot = librip_slot_(cursor);
    uint64_t address = LIBRIP_CAST_(uintptr_t, lock);
    if (LIBRIP_LIKELY_(slot && !librip_reads_clock_() &&
                       librip_load_(&slot->held[0].meta) >> LIBRIP_HELD_STATE_SHIFT_ == LIBRIP_HELD_HELD_ &&
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

LIBRIP_INLINE_ void librip_condition_wait_(const volatile void *condition, const volatile void *lock, uint64_t pc) {
    if (librip_is_active_()) {
        librip_condition_wait_1(condition, lock, pc);
    }
    __asm__ __volatile__("" : : : "memory");
}

LIBRIP_INLINE_ void librip_condition_woken_(const volatile void *condition, const volatile void *lock, uint64_t pc) {
    if (librip_is_active_()) {
        librip_condition_woken_1(condition, lock, pc);
    }
    __asm__ __volatile__("" : : : "memory");
}

LIBRIP_INLINE_ void librip_destroyed_(const volatile void *lock, uint64_t pc) {
    if (librip_is_active_()) {
        librip_lock_destroyed_1(lock, pc);
    }
    __asm__ __volatile__("" : : : "memory");
}

/* ---- Events ---------------------------------------------------------------------------------------------------- */

/* What RIP_TEXT returns is a pointer to the text. The type alone says that it is one by reference. */
struct librip_text_1;
LIBRIP_INLINE_ const struct librip_text_1 *librip_text_(const char *text) {
    return LIBRIP_CAST_(const struct librip_text_1 *, text);
}

/* The values of events. Types with fewer bits become an int, as they do for printf. */
LIBRIP_INLINE_ struct librip_value_1 librip_value_1_(uint64_t bits, uint64_t type) {
    struct librip_value_1 value = {bits, type};
    return value;
}
LIBRIP_INLINE_ struct librip_value_1 librip_of_bool_(bool value) {
    return librip_value_1_(value, LIBRIP_VALUE_BOOL_);
}
LIBRIP_INLINE_ struct librip_value_1 librip_of_i32_(int32_t value) {
    return librip_value_1_(LIBRIP_NUMBER_(uint32_t, value), LIBRIP_VALUE_I32_);
}
LIBRIP_INLINE_ struct librip_value_1 librip_of_u32_(uint32_t value) {
    return librip_value_1_(value, LIBRIP_VALUE_UNSIGNED_);
}
LIBRIP_INLINE_ struct librip_value_1 librip_of_i64_(int64_t value) {
    return librip_value_1_(LIBRIP_NUMBER_(uint64_t, value), LIBRIP_VALUE_I64_);
}
LIBRIP_INLINE_ struct librip_value_1 librip_of_u64_(uint64_t value) {
    return librip_value_1_(value, LIBRIP_VALUE_U64_);
}
LIBRIP_INLINE_ struct librip_value_1 librip_of_double_(double value) {
    uint64_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return librip_value_1_(bits, LIBRIP_VALUE_F64_);
}
LIBRIP_INLINE_ struct librip_value_1 librip_of_float_(float value) {
    return librip_of_double_(LIBRIP_NUMBER_(double, value));
}
LIBRIP_INLINE_ struct librip_value_1 librip_of_long_double_(long double value) {
    return librip_of_double_(LIBRIP_NUMBER_(double, value));
}
LIBRIP_INLINE_ struct librip_value_1 librip_of_pointer_(const volatile void *value) {
    return librip_value_1_(LIBRIP_CAST_(uintptr_t, value), LIBRIP_VALUE_POINTER_);
}
LIBRIP_INLINE_ struct librip_value_1 librip_of_characters_(const volatile void *value) {
    return librip_value_1_(LIBRIP_CAST_(uintptr_t, value), LIBRIP_VALUE_BYTES_);
}
LIBRIP_INLINE_ struct librip_value_1 librip_of_text_(const struct librip_text_1 *value) {
    const char *text = value ? LIBRIP_CAST_(const char *, value) : "(null)";
    return librip_value_1_(LIBRIP_CAST_(uintptr_t, text), LIBRIP_VALUE_TEXT_ | __builtin_strlen(text) << 8);
}

LIBRIP_INLINE_ void librip_event_(uint64_t pc, const char *format, const struct librip_value_1 *values, size_t count) {
    if (librip_is_active_()) {
        librip_event_1(pc, format, values, count);
    }
    __asm__ __volatile__("" : : : "memory");
}

LIBRIP_INLINE_ void librip_capture_(uint64_t pc, const char *format, const struct librip_value_1 *values,
                                    size_t count) {
    if (librip_is_active_()) {
        librip_capture_1(pc, format, values, count);
    }
    __asm__ __volatile__("" : : : "memory");
}

LIBRIP_INLINE_ struct rip_span librip_span_begin_(uint64_t pc, uint64_t pc_end, const char *format,
                                                  const struct librip_value_1 *values, size_t count) {
    struct rip_span span = {0, 0, 0, 0, 0};
    if (librip_is_active_()) {
        span = librip_span_begin_1(pc, pc_end, format, values, count);
    }
    __asm__ __volatile__("" : : : "memory");
    return span;
}

LIBRIP_INLINE_ void librip_span_end_(struct rip_span span) {
    if (span.begin) {
        librip_span_end_1(span);
    }
    __asm__ __volatile__("" : : : "memory");
}

/* Whether a channel records events of this level. The library stores where the level is, in the ring, as soon as the
 * ring has the channel. Without a ring, all events are taken, and record nowhere. */
LIBRIP_INLINE_ int librip_takes_(struct rip_channel *channel, uint16_t level) {
    const uint32_t *least = __atomic_load_n(&channel->level, __ATOMIC_ACQUIRE);
    if (LIBRIP_LIKELY_(least)) {
        return __atomic_load_n(least, __ATOMIC_RELAXED) <= level;
    }
    return !librip_is_active_() || librip_channel_takes_1(channel, level);
}

LIBRIP_INLINE_ void librip_event_in_(struct rip_channel *channel, uint64_t pc, const char *format,
                                     const struct librip_value_1 *values, size_t count) {
    if (librip_is_active_()) {
        librip_event_in_1(channel, pc, format, values, count);
    }
    __asm__ __volatile__("" : : : "memory");
}

LIBRIP_INLINE_ struct rip_span librip_span_begin_in_(struct rip_channel *channel, uint64_t pc, uint64_t pc_end,
                                                     const char *format, const struct librip_value_1 *values,
                                                     size_t count) {
    struct rip_span span = {0, 0, 0, 0, 0};
    if (librip_is_active_()) {
        span = librip_span_begin_in_1(channel, pc, pc_end, format, values, count);
    }
    __asm__ __volatile__("" : : : "memory");
    return span;
}

LIBRIP_INLINE_ struct rip_span librip_no_span_(void) {
    struct rip_span none = {0, 0, 0, 0, 0};
    return none;
}

LIBRIP_INLINE_ struct librip_cycle_1 librip_cycle_begin_(uint64_t pc, uint64_t pc_usage, uint64_t limit_us) {
    struct librip_cycle_1 cycle = {0, 0, 0, 0, 0, 0, {0, 0, 0, 0, 0, 0, 0, 0, 0}};
    if (librip_is_active_()) {
        cycle = librip_cycle_begin_1(pc, pc_usage, limit_us);
    }
    return cycle;
}

LIBRIP_INLINE_ void librip_cycle_end_(struct librip_cycle_1 cycle) {
    if (cycle.pc) {
        librip_cycle_end_1(cycle);
    }
}

#ifdef __cplusplus
} /* extern "C" */

/* The value of an expression of any type. */
LIBRIP_INLINE_ librip_value_1 librip_value_(bool value) { return librip_of_bool_(value); }
LIBRIP_INLINE_ librip_value_1 librip_value_(char value) { return librip_of_i32_(value); }
LIBRIP_INLINE_ librip_value_1 librip_value_(signed char value) { return librip_of_i32_(value); }
LIBRIP_INLINE_ librip_value_1 librip_value_(short value) { return librip_of_i32_(value); }
LIBRIP_INLINE_ librip_value_1 librip_value_(int value) { return librip_of_i32_(value); }
LIBRIP_INLINE_ librip_value_1 librip_value_(unsigned char value) { return librip_of_u32_(value); }
LIBRIP_INLINE_ librip_value_1 librip_value_(unsigned short value) { return librip_of_u32_(value); }
LIBRIP_INLINE_ librip_value_1 librip_value_(unsigned value) { return librip_of_u32_(value); }
LIBRIP_INLINE_ librip_value_1 librip_value_(wchar_t value) { return librip_of_i32_(static_cast<int32_t>(value)); }
LIBRIP_INLINE_ librip_value_1 librip_value_(char16_t value) { return librip_of_u32_(value); }
LIBRIP_INLINE_ librip_value_1 librip_value_(char32_t value) { return librip_of_u32_(value); }
LIBRIP_INLINE_ librip_value_1 librip_value_(long value) { return librip_of_i64_(value); }
LIBRIP_INLINE_ librip_value_1 librip_value_(long long value) { return librip_of_i64_(value); }
LIBRIP_INLINE_ librip_value_1 librip_value_(unsigned long value) { return librip_of_u64_(value); }
LIBRIP_INLINE_ librip_value_1 librip_value_(unsigned long long value) { return librip_of_u64_(value); }
LIBRIP_INLINE_ librip_value_1 librip_value_(float value) { return librip_of_float_(value); }
LIBRIP_INLINE_ librip_value_1 librip_value_(double value) { return librip_of_double_(value); }
LIBRIP_INLINE_ librip_value_1 librip_value_(long double value) { return librip_of_long_double_(value); }
LIBRIP_INLINE_ librip_value_1 librip_value_(const librip_text_1 *value) { return librip_of_text_(value); }
LIBRIP_INLINE_ librip_value_1 librip_value_(decltype(nullptr)) { return librip_of_pointer_(nullptr); }
LIBRIP_INLINE_ librip_value_1 librip_value_(char *value) { return librip_of_characters_(value); }
LIBRIP_INLINE_ librip_value_1 librip_value_(const char *value) { return librip_of_characters_(value); }
LIBRIP_INLINE_ librip_value_1 librip_value_(signed char *value) { return librip_of_characters_(value); }
LIBRIP_INLINE_ librip_value_1 librip_value_(const signed char *value) { return librip_of_characters_(value); }
LIBRIP_INLINE_ librip_value_1 librip_value_(unsigned char *value) { return librip_of_characters_(value); }
LIBRIP_INLINE_ librip_value_1 librip_value_(const unsigned char *value) { return librip_of_characters_(value); }
#ifdef __cpp_char8_t
LIBRIP_INLINE_ librip_value_1 librip_value_(char8_t value) { return librip_of_u32_(value); }
LIBRIP_INLINE_ librip_value_1 librip_value_(const char8_t *value) { return librip_of_characters_(value); }
#endif
template <class T>
LIBRIP_INLINE_ librip_value_1 librip_value_(T *value) {
    return librip_value_1_(reinterpret_cast<uintptr_t>(value), LIBRIP_VALUE_POINTER_);
}

/* A text by reference is a text for printf too. */
template <class T>
LIBRIP_INLINE_ T librip_checked_(T value) { return value; }
LIBRIP_INLINE_ const char *librip_checked_(const librip_text_1 *) { return ""; }

/* The values of one event, which last as long as temporary objects in them do. */
template <size_t count>
struct librip_values_1 {
    librip_value_1 all[count];
    LIBRIP_METHOD_ const librip_value_1 *get() const { return all; }
};

#define LIBRIP_CHECKED_(value) librip_checked_(value)
#define LIBRIP_VALUE_(value) librip_value_(value)
#define LIBRIP_SOME_VALUES_(count, ...) librip_values_1<count>{{LIBRIP_EACH_(LIBRIP_VALUE_, __VA_ARGS__)}}.get(), count

/* Ends a span, or a cycle, at the end of its block. */
struct librip_span_guard_ {
    explicit LIBRIP_METHOD_ librip_span_guard_(rip_span begun) : span(begun) {}
    LIBRIP_METHOD_ ~librip_span_guard_() { librip_span_end_(span); }
    librip_span_guard_(const librip_span_guard_ &) = delete;
    librip_span_guard_ &operator=(const librip_span_guard_ &) = delete;
    const rip_span span;
};
struct librip_cycle_guard_ {
    explicit LIBRIP_METHOD_ librip_cycle_guard_(librip_cycle_1 begun) : cycle(begun) {}
    LIBRIP_METHOD_ ~librip_cycle_guard_() { librip_cycle_end_(cycle); }
    librip_cycle_guard_(const librip_cycle_guard_ &) = delete;
    librip_cycle_guard_ &operator=(const librip_cycle_guard_ &) = delete;
    const librip_cycle_1 cycle;
};
#define LIBRIP_GUARD_(kind, begun) const librip_##kind##_guard_ LIBRIP_JOIN_(librip_guard_, __COUNTER__){begun}

extern "C" {
#else

#define LIBRIP_CHECKED_(value) __extension__ _Generic((value), const struct librip_text_1 *: "", default: (value))
/* For gcc, a bit-field has a type of its own. The inner selection is by what that becomes as an argument. */
#define LIBRIP_VALUE_(value)                                                                                         \
    __extension__ _Generic((value),                                                                                  \
        bool: librip_of_bool_,                                                                                       \
        char: librip_of_i32_,                                                                                        \
        signed char: librip_of_i32_,                                                                                 \
        short: librip_of_i32_,                                                                                       \
        int: librip_of_i32_,                                                                                         \
        unsigned char: librip_of_u32_,                                                                               \
        unsigned short: librip_of_u32_,                                                                              \
        unsigned: librip_of_u32_,                                                                                    \
        long: librip_of_i64_,                                                                                        \
        long long: librip_of_i64_,                                                                                   \
        unsigned long: librip_of_u64_,                                                                               \
        unsigned long long: librip_of_u64_,                                                                          \
        float: librip_of_float_,                                                                                     \
        double: librip_of_double_,                                                                                   \
        long double: librip_of_long_double_,                                                                         \
        const struct librip_text_1 *: librip_of_text_,                                                               \
        char *: librip_of_characters_,                                                                               \
        const char *: librip_of_characters_,                                                                         \
        signed char *: librip_of_characters_,                                                                        \
        const signed char *: librip_of_characters_,                                                                  \
        unsigned char *: librip_of_characters_,                                                                      \
        const unsigned char *: librip_of_characters_,                                                                \
        default: _Generic(1 ? (value) : 0,                                                                           \
            int: librip_of_i32_,                                                                                     \
            unsigned: librip_of_u32_,                                                                                \
            default: librip_of_pointer_))(value)
#define LIBRIP_SOME_VALUES_(count, ...)                                                                              \
    (const struct librip_value_1[]){LIBRIP_EACH_(LIBRIP_VALUE_, __VA_ARGS__)}, count

LIBRIP_INLINE_ void librip_end_span_(struct rip_span *span) {
    librip_span_end_(*span);
}
LIBRIP_INLINE_ void librip_end_cycle_(struct librip_cycle_1 *cycle) {
    librip_cycle_end_(*cycle);
}
#define LIBRIP_GUARD_(kind, begun)                                                                                   \
    __attribute__((cleanup(librip_end_##kind##_), unused))                                                           \
    LIBRIP_GUARDED_##kind LIBRIP_JOIN_(librip_guard_, __COUNTER__) = begun
#define LIBRIP_GUARDED_span struct rip_span
#define LIBRIP_GUARDED_cycle struct librip_cycle_1
#endif

/* The values after a format: a pointer and a number. */
#define LIBRIP_VALUES_(...) LIBRIP_IF_VALUES_(LIBRIP_COUNTED_VALUES_, LIBRIP_NO_VALUES_, __VA_ARGS__)(__VA_ARGS__)
#define LIBRIP_COUNTED_VALUES_(...) LIBRIP_SOME_VALUES_(LIBRIP_COUNT_(__VA_ARGS__), __VA_ARGS__)
#define LIBRIP_NO_VALUES_(format) LIBRIP_NULL_, 0

/* The label within the text of a site. It is the same constant, so it takes no memory of its own. */
#define LIBRIP_LABEL_(label) (&(LIBRIP_TEXT_(label))[sizeof(__FILE__) + 1])

#define LIBRIP_EVENT_(record, level, ...) (LIBRIP_CHECK_(__VA_ARGS__), record(LIBRIP_EVENT_SITE_(level, __VA_ARGS__)))
#define LIBRIP_EVENT_IN_(channel, level, ...)                                                                        \
    (LIBRIP_CHECK_(__VA_ARGS__),                                                                                     \
     librip_takes_(&(channel), level)                                                                                \
         ? librip_event_in_(&(channel), LIBRIP_EVENT_SITE_((level) | LIBRIP_SITE_CHANNEL_, __VA_ARGS__))             \
         : (void)0)
#define LIBRIP_EVENT_SITE_(flags, ...)                                                                               \
    LIBRIP_SITE_VALUE_(LIBRIP_KIND_EVENT, (flags) | LIBRIP_SITE_PRINTF_, 1, LIBRIP_OPERAND_SHAPE_,                   \
                       LIBRIP_FIRST_(__VA_ARGS__, 0)),                                                               \
        LIBRIP_LABEL_(LIBRIP_FIRST_(__VA_ARGS__, 0)), LIBRIP_VALUES_(__VA_ARGS__)

/* The label of a span is its name, a zero byte, and the format. */
#define LIBRIP_SPAN_BEGIN_(name, format, ...) librip_span_begin_(LIBRIP_SPAN_SITES_(0, name, format), __VA_ARGS__)
#define LIBRIP_SPAN_BEGIN_IN_(channel, name, format, ...)                                                            \
    (librip_takes_(&(channel), RIP_INFO)                                                                             \
         ? librip_span_begin_in_(&(channel), LIBRIP_SPAN_SITES_(LIBRIP_SITE_CHANNEL_, name, format), __VA_ARGS__)    \
         : librip_no_span_())
#define LIBRIP_SPAN_SITES_(flags, name, format)                                                                      \
    LIBRIP_SITE_VALUE_(LIBRIP_KIND_SPAN_BEGIN, (flags) | LIBRIP_SITE_PRINTF_, 1, LIBRIP_OPERAND_SHAPE_,              \
                       name "\0" format),                                                                            \
        LIBRIP_SITE_VALUE_(LIBRIP_KIND_SPAN_END, flags, 2, LIBRIP_TYPES_TIME_SINCE_, name "\0"),                     \
        LIBRIP_LABEL_(name "\0" format) + sizeof(name)
#define LIBRIP_SPAN_GUARD_(begun) LIBRIP_GUARD_(span, begun)

#define LIBRIP_SLOW_CYCLE_(name, limit_us)                                                                           \
    LIBRIP_GUARD_(cycle,                                                                                             \
                  (LIBRIP_CHECK_(LIBRIP_CYCLE_FORMAT_(name), 0ul, 0ul),                                              \
                   librip_cycle_begin_(LIBRIP_SITE_VALUE_(LIBRIP_KIND_EVENT, RIP_WARN | LIBRIP_SITE_PRINTF_, 1,      \
                                                          LIBRIP_OPERAND_SHAPE_, LIBRIP_CYCLE_FORMAT_(name)),        \
                                       LIBRIP_SITE_VALUE_(LIBRIP_KIND_EVENT,                                         \
                                                          RIP_DEBUG | LIBRIP_SITE_PRINTF_ | LIBRIP_SITE_USAGE_, 1,   \
                                                          LIBRIP_OPERAND_SHAPE_, LIBRIP_USAGE_FORMAT_(name)),        \
                                       limit_us)))

#else /* RIP_DISABLE */

#undef RIP_SNAP_LABEL
#undef RIP_PROGRESS
#undef RIP_LOCK_WAIT_CLASS
#undef RIP_LOCK_ACQUIRED_CLASS
#undef RIP_LOCK_RELEASED_CLASS
#undef RIP_LOCK_TRY_FAILED_CLASS
#undef RIP_CONDITION_WAIT
#undef RIP_CONDITION_WOKEN
#undef RIP_LOCK_DESTROYED
#define RIP_SNAP_LABEL(label) librip_nothing_("" label)
#define RIP_PROGRESS() librip_nothing_("")
#define RIP_LOCK_WAIT_CLASS(lock, flags, class_) ((void)(lock), (void)(flags), (void)("" class_))
#define RIP_LOCK_ACQUIRED_CLASS(lock, flags, class_) ((void)(lock), (void)(flags), (void)("" class_))
#define RIP_LOCK_RELEASED_CLASS(lock, flags, class_) ((void)(lock), (void)(flags), (void)("" class_))
#define RIP_LOCK_TRY_FAILED_CLASS(lock, flags, class_) ((void)(lock), (void)(flags), (void)("" class_))
#define RIP_CONDITION_WAIT(condition, lock, flags) ((void)(condition), (void)(lock), (void)(flags))
#define RIP_CONDITION_WOKEN(condition, lock, flags) ((void)(condition), (void)(lock), (void)(flags))
#define RIP_LOCK_DESTROYED(lock) ((void)(lock))

/* The values are evaluated, and formats are checked. */
#undef RIP_TEXT
#undef RIP_SPAN_END
#define RIP_TEXT(text) (text)
#define RIP_SPAN_END(span) ((void)(span))
#define LIBRIP_CHECKED_(value) (value)
#define LIBRIP_IGNORED_(value) (void)(value)
#define LIBRIP_EVENT_(record, level, ...)                                                                            \
    (LIBRIP_CHECK_(__VA_ARGS__), (void)("" LIBRIP_FIRST_(__VA_ARGS__, 0)), (void)(level), LIBRIP_VALUES_(__VA_ARGS__))
#define LIBRIP_VALUES_(...) LIBRIP_IF_VALUES_(LIBRIP_SOME_VALUES_, LIBRIP_NO_VALUES_, __VA_ARGS__)(__VA_ARGS__)
#define LIBRIP_SOME_VALUES_(...) LIBRIP_EACH_(LIBRIP_IGNORED_, __VA_ARGS__)
#define LIBRIP_NO_VALUES_(format) (void)0
#undef RIP_SPAN_BEGIN
#define RIP_SPAN_BEGIN(name) ((void)("" name), librip_no_span_())
#define LIBRIP_SPAN_BEGIN_(name, format, ...) (__VA_ARGS__, (void)("" name), librip_no_span_())
/* The values are not evaluated: the channel is switched off. */
#define LIBRIP_EVENT_IN_(channel, level, ...)                                                                        \
    (0 ? ((void)&(channel), LIBRIP_EVENT_(librip_event_, level, __VA_ARGS__)) : (void)0)
#define LIBRIP_SPAN_BEGIN_IN_(channel, name, format, ...)                                                            \
    (0 ? ((void)&(channel), LIBRIP_SPAN_BEGIN_(name, format, __VA_ARGS__)) : librip_no_span_())
#undef RIP_SPAN_BEGIN_IN
#define RIP_SPAN_BEGIN_IN(channel, name) (0 ? ((void)&(channel), RIP_SPAN_BEGIN(name)) : librip_no_span_())
#define LIBRIP_SPAN_GUARD_(begun)                                                                                    \
    __attribute__((unused)) const struct rip_span LIBRIP_JOIN_(librip_guard_, __COUNTER__) = begun
#define LIBRIP_SLOW_CYCLE_(name, limit_us)                                                                           \
    __attribute__((unused)) const int LIBRIP_JOIN_(librip_guard_, __COUNTER__) =                                     \
        (LIBRIP_CHECK_(LIBRIP_CYCLE_FORMAT_(name), 0ul, 0ul), (void)(limit_us), 0)

LIBRIP_CALL_ struct rip_span librip_no_span_(void) {
    struct rip_span none = {0, 0, 0, 0, 0};
    return none;
}

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
LIBRIP_CALL_ rip_context *rip_context_create(const char *name) {
    (void)name;
    return LIBRIP_NULL_;
}
LIBRIP_CALL_ void rip_context_switch(rip_context *context) {
    (void)context;
}
LIBRIP_CALL_ rip_context *rip_context_current(void) {
    return LIBRIP_NULL_;
}
LIBRIP_CALL_ void rip_context_destroy(rip_context *context) {
    (void)context;
}
LIBRIP_CALL_ void rip_avoid_system_calls(void) {
}
LIBRIP_CALL_ rip_place *rip_place_create(const char *file, uint32_t line, const char *function, const char *label,
                                         const char *format) {
    (void)format;
    (void)file;
    (void)line;
    (void)function;
    (void)label;
    return LIBRIP_NULL_;
}
LIBRIP_CALL_ uint64_t rip_lock_number(void) {
    return 0;
}
LIBRIP_CALL_ void rip_place_lock_wait(rip_place *place, uint64_t lock, uint32_t flags) {
    (void)place;
    (void)lock;
    (void)flags;
}
LIBRIP_CALL_ void rip_place_lock_acquired(rip_place *place, uint64_t lock, uint32_t flags) {
    rip_place_lock_wait(place, lock, flags);
}
LIBRIP_CALL_ void rip_place_lock_released(rip_place *place, uint64_t lock, uint32_t flags) {
    rip_place_lock_wait(place, lock, flags);
}
LIBRIP_CALL_ void rip_place_lock_try_failed(rip_place *place, uint64_t lock, uint32_t flags) {
    rip_place_lock_wait(place, lock, flags);
}
LIBRIP_CALL_ void rip_place_event(rip_place *place, uint32_t level, const struct rip_value *values, size_t count) {
    (void)place;
    (void)level;
    (void)values;
    (void)count;
}
LIBRIP_CALL_ struct rip_span rip_place_span_begin(rip_place *place, const struct rip_value *values, size_t count) {
    rip_place_event(place, 0, values, count);
    return librip_no_span_();
}
LIBRIP_CALL_ void rip_place_span_end(struct rip_span span) {
    (void)span;
}
LIBRIP_CALL_ void rip_place_snap(rip_place *place) {
    (void)place;
}
LIBRIP_CALL_ int rip_dump(const char *path) {
    (void)path;
    return 2; /* ENOENT: there is no ring */
}
LIBRIP_CALL_ int rip_dump_at_signal(int signal, const char *path) {
    (void)signal;
    (void)path;
    return 0;
}

#endif /* RIP_DISABLE */

#ifdef __cplusplus
}
#endif

#pragma GCC visibility pop

#endif /* LIBRIP_H */
