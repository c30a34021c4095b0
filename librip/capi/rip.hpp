// rip.hpp: mutexes and condition variables with the interface of those in std, which are recorded.
//
//     #include <rip.hpp>
//
//     rip::mutex cache("cache");               // the name is optional
//
//     void fill() {
//         std::lock_guard<rip::mutex> guard(cache);
//         ...
//     }
//
//     int main() {
//         rip_start();                         // see librip.h: without it, they are plain mutexes
//         ...
//     }
//
//     c++ -std=c++17 server.cc $(pkg-config --cflags --libs librip)
//
//     rip::mutex, rip::timed_mutex                          as std::mutex and std::timed_mutex
//     rip::recursive_mutex, rip::recursive_timed_mutex      as those of std
//     rip::shared_mutex, rip::shared_timed_mutex            as those of std, from C++11 on
//     rip::condition_variable                               as that of std, for std::unique_lock<rip::mutex>
//
// std::lock_guard, unique_lock, scoped_lock, shared_lock and std::lock work with them, and so do
// std::condition_variable_any and whatever else takes a lockable type. For C++11 to C++23, with exceptions or without.
//
// Inside is a lock of the C library, at the address of the object. So read-rip proves deadlocks, from the record and
// from what the kernel and the memory say. While a thread waits on a condition variable, the record says that it does
// not hold the mutex.
//
// What is recorded is the line of the caller, however the program was compiled: each function takes its `place` where
// it is called, and the guards of std, which this header specialises, hand theirs on. To hand a place on in a class of
// your own, take one in the same way:
//
//     void Table::lock(rip::place at = rip::place::here()) { mutex.lock(at); }
//
// With RIP_DISABLE, all of this is a plain lock of the C library, and no library is needed.
#ifndef RIP_HPP
#define RIP_HPP 1

#include <librip.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <system_error>
#include <utility>
#if __cplusplus >= 201402L
#include <shared_mutex>
#endif
#ifndef __OPTIMIZE__
#include <cstring>
#endif

#ifndef RIP_DISABLE
#pragma GCC visibility push(default)
extern "C" {
int librip_acquire_1(void *lock, uint64_t pc, const char *file, uint32_t line, uint32_t how, const timespec *until);
int librip_release_1(void *lock, uint64_t pc, uint32_t how);
void librip_lock_ends_1(void *lock, uint64_t pc, uint32_t how);
void librip_condition_begin_1(void *condition, void *lock, uint64_t pc, const char *file, uint32_t line, bool is_timed);
void librip_condition_end_1(void *condition, void *lock, uint64_t pc, bool is_timed);
void librip_condition_signals_1(void *condition, uint64_t pc, bool is_heard);
void librip_condition_ends_1(void *condition, uint64_t pc);
}
#pragma GCC visibility pop
#endif

// Each function that takes a place is inlined, also without optimisation.
#define LIBRIP_HERE_ __attribute__((always_inline, no_instrument_function)) inline

namespace rip {

// A place in the source: an address of code, the file and the line.
struct place {
#ifdef RIP_DISABLE
    static LIBRIP_HERE_ place here() noexcept { return place(); }
    static LIBRIP_HERE_ place code() noexcept { return place(); }
#else
    uint64_t pc;
    const char *file;
    uint32_t line;

    // That of the call, if it is the default of a parameter: the compiler evaluates it in the function that calls.
    static LIBRIP_HERE_ place here(const char *file = __builtin_FILE(), uint32_t line = __builtin_LINE()) noexcept {
#ifndef __OPTIMIZE__
        // A function of std is not inlined. What has called it is more likely a line of the program.
        if (std::strstr(file, "/c++/") || std::strstr(file, "libcxx/"))
            return place{reinterpret_cast<uint64_t>(__builtin_return_address(0)) - 1, nullptr, 0};
#endif
        uint64_t pc;
        // The line makes each place different, so that the compiler merges no two of them.
        __asm__ __volatile__("20:\n\t" LIBRIP_LOAD_PC_ "/* %[line] */" : [pc] "=r"(pc) : [line] "ri"(line));
        return place{pc, file, line};
    }
    // An address in the function that this is inlined into, for a function that takes no place.
    static LIBRIP_HERE_ place code() noexcept {
        uint64_t pc;
        __asm__ __volatile__("20:\n\t" LIBRIP_LOAD_PC_ : [pc] "=r"(pc));
        return place{pc, nullptr, 0};
    }
#endif
};

// What kind of lock it is.
enum class kind { plain, timed, recursive, recursive_timed, shared, shared_timed };

namespace internal {

// How a lock is acquired: see librip/capi/src/locks.rs.
enum : uint32_t { of_mutex = 0, of_recursive = 1, of_writer = 2, of_reader = 3, tries = 4, until = 8 };

[[noreturn]] inline void fail(int error) {
#if defined(__cpp_exceptions) || defined(__EXCEPTIONS)
    throw std::system_error(std::error_code(error, std::generic_category()));
#else
    (void)error;
    std::abort();
#endif
}

LIBRIP_HERE_ int plain_acquire(pthread_mutex_t *lock, uint32_t how, const timespec *time) noexcept {
    if (how & tries) return pthread_mutex_trylock(lock);
    return how & until ? pthread_mutex_timedlock(lock, time) : pthread_mutex_lock(lock);
}
LIBRIP_HERE_ int plain_acquire(pthread_rwlock_t *lock, uint32_t how, const timespec *time) noexcept {
    const bool is_shared = (how & of_reader) == of_reader;
    if (how & tries) return is_shared ? pthread_rwlock_tryrdlock(lock) : pthread_rwlock_trywrlock(lock);
    if (how & until) return is_shared ? pthread_rwlock_timedrdlock(lock, time) : pthread_rwlock_timedwrlock(lock, time);
    return is_shared ? pthread_rwlock_rdlock(lock) : pthread_rwlock_wrlock(lock);
}
LIBRIP_HERE_ void plain_release(pthread_mutex_t *lock) noexcept { pthread_mutex_unlock(lock); }
LIBRIP_HERE_ void plain_release(pthread_rwlock_t *lock) noexcept { pthread_rwlock_unlock(lock); }

// Returns 0, or an error number.
template <class Native>
LIBRIP_HERE_ int acquire(Native *lock, const place &at, uint32_t how, const timespec *time = nullptr) noexcept {
#ifndef RIP_DISABLE
    if (LIBRIP_LIKELY_(librip_is_active_())) return librip_acquire_1(lock, at.pc, at.file, at.line, how, time);
#endif
    (void)at;
    return plain_acquire(lock, how, time);
}

template <class Native>
LIBRIP_HERE_ void release(Native *lock, const place &at, uint32_t how) noexcept {
#ifndef RIP_DISABLE
    if (LIBRIP_LIKELY_(librip_is_active_())) {
        librip_release_1(lock, at.pc, how);
        return;
    }
#endif
    (void)at;
    (void)how;
    plain_release(lock);
}

// The record forgets the lock and its name: another lock may begin at this address.
LIBRIP_HERE_ void ends(void *lock, uint32_t how) noexcept {
#ifndef RIP_DISABLE
    librip_lock_ends_1(lock, place::code().pc, how);
#endif
    (void)lock;
    (void)how;
}

// Calls `wait` with a time of the system's clock until it returns something else than ETIMEDOUT, or until the time has
// come: the system's clock may be set meanwhile, and other clocks may go differently.
template <class Clock, class Duration, class Wait>
LIBRIP_HERE_ int wait_until(const std::chrono::time_point<Clock, Duration> &time, const Wait &wait) {
    using std::chrono::nanoseconds;
    const std::chrono::hours far(24 * 365);
    for (;;) {
        const auto now = Clock::now();
        nanoseconds left(0);
        if (time > now) left = time - now < far ? std::chrono::duration_cast<nanoseconds>(time - now) + nanoseconds(1) : far;
        const auto end = std::chrono::system_clock::now().time_since_epoch() + left;
        const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(end);
        timespec when;
        when.tv_sec = static_cast<decltype(when.tv_sec)>(seconds.count());
        when.tv_nsec = static_cast<decltype(when.tv_nsec)>(std::chrono::duration_cast<nanoseconds>(end - seconds).count());
        const int error = wait(when);
        if (error != ETIMEDOUT || Clock::now() >= time) return error;
    }
}

template <class Rep, class Period>
inline std::chrono::steady_clock::time_point after(const std::chrono::duration<Rep, Period> &time) {
    using clock = std::chrono::steady_clock;
    const auto now = clock::now();
    const std::chrono::hours far(24 * 365 * 100);
    if (time > far) return now + far;
    auto length = std::chrono::duration_cast<clock::duration>(time);
    if (length < time) ++length;
    return now + length;
}

// What all locks have in common.
template <class Native, uint32_t Of>
class lock_base {
public:
    using native_handle_type = Native *;

    lock_base(const lock_base &) = delete;
    lock_base &operator=(const lock_base &) = delete;

    LIBRIP_HERE_ void lock(place at = place::here()) {
        const int error = acquire(&native, at, Of);
        if (error) fail(error);
    }
    LIBRIP_HERE_ bool try_lock(place at = place::here()) noexcept { return acquire(&native, at, Of | tries) == 0; }
    LIBRIP_HERE_ void unlock(place at = place::here()) noexcept { release(&native, at, Of); }
    native_handle_type native_handle() noexcept { return &native; }

    // Names the lock in the record, up to 48 bytes.
    void set_name(const char *name) noexcept { rip_lock_name(&native, name); }

protected:
    constexpr explicit lock_base(const Native &initial) noexcept : native(initial) {}
    LIBRIP_HERE_ ~lock_base() { ends(&native, Of); }

    template <class Clock, class Duration>
    LIBRIP_HERE_ bool acquire_until(const std::chrono::time_point<Clock, Duration> &time, const place &at, uint32_t of) {
        Native *lock = &native;
        return wait_until(time, [lock, &at, of](const timespec &when) {
                   return acquire(lock, at, of | until, &when);
               }) == 0;
    }

    Native native;
};

// A base that can wait for a limited time.
template <class Base, uint32_t Of>
class timed : public Base {
public:
    template <class Clock, class Duration>
    LIBRIP_HERE_ bool try_lock_until(const std::chrono::time_point<Clock, Duration> &time, place at = place::here()) {
        return this->acquire_until(time, at, Of);
    }
    template <class Rep, class Period>
    LIBRIP_HERE_ bool try_lock_for(const std::chrono::duration<Rep, Period> &time, place at = place::here()) {
        return this->acquire_until(after(time), at, Of);
    }

protected:
    using Base::Base;
};

class exclusive : public lock_base<pthread_mutex_t, of_mutex> {
protected:
    constexpr exclusive() noexcept : lock_base(pthread_mutex_t(PTHREAD_MUTEX_INITIALIZER)) {}
};

class recursive : public lock_base<pthread_mutex_t, of_recursive> {
protected:
#ifdef PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP
    constexpr recursive() noexcept : lock_base(pthread_mutex_t(PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP)) {}
#else
    recursive() : lock_base(pthread_mutex_t(PTHREAD_MUTEX_INITIALIZER)) {
        pthread_mutexattr_t attributes;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
        const int error = pthread_mutex_init(&native, &attributes);
        pthread_mutexattr_destroy(&attributes);
        if (error) fail(error);
    }
#endif
};

class shareable : public lock_base<pthread_rwlock_t, of_writer> {
public:
    LIBRIP_HERE_ void lock_shared(place at = place::here()) {
        int error;
        do error = acquire(&native, at, of_reader);
        while (error == EAGAIN);  // there are too many readers
        if (error) fail(error);
    }
    LIBRIP_HERE_ bool try_lock_shared(place at = place::here()) noexcept {
        return acquire(&native, at, of_reader | tries) == 0;
    }
    LIBRIP_HERE_ void unlock_shared(place at = place::here()) noexcept { release(&native, at, of_reader); }

protected:
    constexpr shareable() noexcept : lock_base(pthread_rwlock_t(PTHREAD_RWLOCK_INITIALIZER)) {}
};

class shareable_timed : public timed<shareable, of_writer> {
public:
    template <class Clock, class Duration>
    LIBRIP_HERE_ bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration> &time,
                                            place at = place::here()) {
        return acquire_until(time, at, of_reader);
    }
    template <class Rep, class Period>
    LIBRIP_HERE_ bool try_lock_shared_for(const std::chrono::duration<Rep, Period> &time, place at = place::here()) {
        return acquire_until(after(time), at, of_reader);
    }
};

template <kind>
struct base;
template <>
struct base<kind::plain> { using type = exclusive; };
template <>
struct base<kind::timed> { using type = timed<exclusive, of_mutex>; };
template <>
struct base<kind::recursive> { using type = recursive; };
template <>
struct base<kind::recursive_timed> { using type = timed<recursive, of_recursive>; };
template <>
struct base<kind::shared> { using type = shareable; };
template <>
struct base<kind::shared_timed> { using type = shareable_timed; };

}  // namespace internal

// A recorded lock of a kind. It is one template so that the guards below need one specialisation each.
template <kind Kind>
class basic_mutex : public internal::base<Kind>::type {
public:
    constexpr basic_mutex() = default;
    // A lock with a name, which is up to 48 bytes long.
    explicit basic_mutex(const char *name) noexcept { this->set_name(name); }
};

using mutex = basic_mutex<kind::plain>;
using timed_mutex = basic_mutex<kind::timed>;
using recursive_mutex = basic_mutex<kind::recursive>;
using recursive_timed_mutex = basic_mutex<kind::recursive_timed>;
using shared_mutex = basic_mutex<kind::shared>;
using shared_timed_mutex = basic_mutex<kind::shared_timed>;

namespace internal {

// Calls with a place what takes one: locks of this header, and those of users that hand it on.
template <class Mutex>
LIBRIP_HERE_ auto lock_at(Mutex &mutex, const place &at, int) -> decltype(mutex.lock(at)) {
    return mutex.lock(at);
}
template <class Mutex>
LIBRIP_HERE_ void lock_at(Mutex &mutex, const place &, long) {
    mutex.lock();
}
template <class Mutex>
LIBRIP_HERE_ auto try_lock_at(Mutex &mutex, const place &at, int) -> decltype(mutex.try_lock(at)) {
    return mutex.try_lock(at);
}
template <class Mutex>
LIBRIP_HERE_ bool try_lock_at(Mutex &mutex, const place &, long) {
    return mutex.try_lock();
}
template <class Mutex>
LIBRIP_HERE_ auto unlock_at(Mutex &mutex, const place &at, int) -> decltype(mutex.unlock(at)) {
    return mutex.unlock(at);
}
template <class Mutex>
LIBRIP_HERE_ void unlock_at(Mutex &mutex, const place &, long) {
    mutex.unlock();
}

// One of several locks.
struct lockable {
    void *mutex;
    void (*lock)(void *mutex, const place &at);
    bool (*try_lock)(void *mutex, const place &at);
    void (*unlock)(void *mutex, const place &at);

    template <class Mutex>
    static lockable of(Mutex &mutex) noexcept {
        return lockable{&mutex, &locks<Mutex>, &tries_to_lock<Mutex>, &unlocks<Mutex>};
    }

private:
    template <class Mutex>
    static void locks(void *mutex, const place &at) {
        lock_at(*static_cast<Mutex *>(mutex), at, 0);
    }
    template <class Mutex>
    static bool tries_to_lock(void *mutex, const place &at) {
        return try_lock_at(*static_cast<Mutex *>(mutex), at, 0);
    }
    template <class Mutex>
    static void unlocks(void *mutex, const place &at) {
        unlock_at(*static_cast<Mutex *>(mutex), at, 0);
    }
};

// Some of several locks, in a circle. Releases them at its end.
struct some_locks {
    const lockable *all;
    std::size_t of;
    std::size_t first;
    std::size_t count;
    const place &at;

    const lockable &next() const noexcept { return all[(first + count) % of]; }
    ~some_locks() {
        while (count > 0) {
            --count;
            next().unlock(next().mutex, at);
        }
    }
};

// Acquires several locks without a deadlock: it waits for one, tries the others, and waits for one that was not free.
inline void lock_all(const lockable *all, std::size_t count, const place &at) {
    for (std::size_t first = 0;;) {
        some_locks locked{all, count, first, 0, at};
        locked.next().lock(locked.next().mutex, at);
        locked.count = 1;
        while (locked.count < count && locked.next().try_lock(locked.next().mutex, at)) ++locked.count;
        if (locked.count == count) {
            locked.count = 0;
            return;
        }
        first = (first + locked.count) % count;
    }
}

// What a guard of std that can be moved has: a lock, and whether it has acquired it. `Guard` is the guard itself.
template <class Guard, class Mutex>
class movable_guard {
public:
    using mutex_type = Mutex;

    void swap(Guard &guard) noexcept {
        movable_guard &other = guard;
        std::swap(device, other.device);
        std::swap(owns, other.owns);
    }
    Mutex *release() noexcept {
        Mutex *const released = device;
        device = nullptr;
        owns = false;
        return released;
    }
    bool owns_lock() const noexcept { return owns; }
    explicit operator bool() const noexcept { return owns; }
    Mutex *mutex() const noexcept { return device; }

protected:
    movable_guard(Mutex *mutex, bool has_it) noexcept : device(mutex), owns(has_it) {}

    // Takes over what another guard has. This one has nothing.
    void take(movable_guard &other) noexcept {
        device = other.device;
        owns = other.owns;
        other.release();
    }
    void must_be_free() const {
        if (!device) fail(EPERM);
        if (owns) fail(EDEADLK);
    }

    Mutex *device;
    bool owns;
};

template <class... Mutexes>
LIBRIP_HERE_ void lock_all(const place &at, Mutexes &...mutexes) {
    const lockable all[] = {lockable::of(mutexes)...};
    lock_all(all, sizeof...(Mutexes), at);
}

}  // namespace internal

}  // namespace rip

// The guards of std for these locks: the same, but that they hand on the place where they are made. The standard allows
// a program to specialise them for its own types.
namespace std {

template <rip::kind Kind>
class lock_guard<rip::basic_mutex<Kind>> {
public:
    using mutex_type = rip::basic_mutex<Kind>;

    LIBRIP_HERE_ explicit lock_guard(mutex_type &mutex, rip::place at = rip::place::here()) : held(mutex) {
        held.lock(at);
    }
    lock_guard(mutex_type &mutex, adopt_lock_t) noexcept : held(mutex) {}
    LIBRIP_HERE_ ~lock_guard() { held.unlock(rip::place::code()); }
    lock_guard(const lock_guard &) = delete;
    lock_guard &operator=(const lock_guard &) = delete;

private:
    mutex_type &held;
};

template <rip::kind Kind>
class unique_lock<rip::basic_mutex<Kind>>
    : public rip::internal::movable_guard<unique_lock<rip::basic_mutex<Kind>>, rip::basic_mutex<Kind>> {
    using base = rip::internal::movable_guard<unique_lock, rip::basic_mutex<Kind>>;
    using base::device;
    using base::must_be_free;
    using base::owns;

public:
    using typename base::mutex_type;

    unique_lock() noexcept : base(nullptr, false) {}
    LIBRIP_HERE_ explicit unique_lock(mutex_type &mutex, rip::place at = rip::place::here())
        : base(&mutex, false) {
        lock(at);
    }
    unique_lock(mutex_type &mutex, defer_lock_t) noexcept : base(&mutex, false) {}
    LIBRIP_HERE_ unique_lock(mutex_type &mutex, try_to_lock_t, rip::place at = rip::place::here())
        : base(&mutex, mutex.try_lock(at)) {}
    unique_lock(mutex_type &mutex, adopt_lock_t) noexcept : base(&mutex, true) {}
    template <class Clock, class Duration>
    LIBRIP_HERE_ unique_lock(mutex_type &mutex, const chrono::time_point<Clock, Duration> &time,
                             rip::place at = rip::place::here())
        : base(&mutex, mutex.try_lock_until(time, at)) {}
    template <class Rep, class Period>
    LIBRIP_HERE_ unique_lock(mutex_type &mutex, const chrono::duration<Rep, Period> &time,
                             rip::place at = rip::place::here())
        : base(&mutex, mutex.try_lock_for(time, at)) {}
    LIBRIP_HERE_ ~unique_lock() {
        if (owns) device->unlock(rip::place::code());
    }
    unique_lock(unique_lock &&other) noexcept : base(nullptr, false) { this->take(other); }
    LIBRIP_HERE_ unique_lock &operator=(unique_lock &&other) noexcept {
        if (this == &other) return *this;
        if (owns) device->unlock(rip::place::code());
        this->take(other);
        return *this;
    }

    LIBRIP_HERE_ void lock(rip::place at = rip::place::here()) {
        must_be_free();
        device->lock(at);
        owns = true;
    }
    LIBRIP_HERE_ bool try_lock(rip::place at = rip::place::here()) {
        must_be_free();
        return owns = device->try_lock(at);
    }
    template <class Clock, class Duration>
    LIBRIP_HERE_ bool try_lock_until(const chrono::time_point<Clock, Duration> &time,
                                     rip::place at = rip::place::here()) {
        must_be_free();
        return owns = device->try_lock_until(time, at);
    }
    template <class Rep, class Period>
    LIBRIP_HERE_ bool try_lock_for(const chrono::duration<Rep, Period> &time, rip::place at = rip::place::here()) {
        must_be_free();
        return owns = device->try_lock_for(time, at);
    }
    LIBRIP_HERE_ void unlock(rip::place at = rip::place::here()) {
        if (!owns) rip::internal::fail(EPERM);
        owns = false;
        device->unlock(at);
    }
};

#if __cplusplus >= 201402L
template <rip::kind Kind>
class shared_lock<rip::basic_mutex<Kind>>
    : public rip::internal::movable_guard<shared_lock<rip::basic_mutex<Kind>>, rip::basic_mutex<Kind>> {
    using base = rip::internal::movable_guard<shared_lock, rip::basic_mutex<Kind>>;
    using base::device;
    using base::must_be_free;
    using base::owns;

public:
    using typename base::mutex_type;

    shared_lock() noexcept : base(nullptr, false) {}
    LIBRIP_HERE_ explicit shared_lock(mutex_type &mutex, rip::place at = rip::place::here())
        : base(&mutex, false) {
        lock(at);
    }
    shared_lock(mutex_type &mutex, defer_lock_t) noexcept : base(&mutex, false) {}
    LIBRIP_HERE_ shared_lock(mutex_type &mutex, try_to_lock_t, rip::place at = rip::place::here())
        : base(&mutex, mutex.try_lock_shared(at)) {}
    shared_lock(mutex_type &mutex, adopt_lock_t) noexcept : base(&mutex, true) {}
    template <class Clock, class Duration>
    LIBRIP_HERE_ shared_lock(mutex_type &mutex, const chrono::time_point<Clock, Duration> &time,
                             rip::place at = rip::place::here())
        : base(&mutex, mutex.try_lock_shared_until(time, at)) {}
    template <class Rep, class Period>
    LIBRIP_HERE_ shared_lock(mutex_type &mutex, const chrono::duration<Rep, Period> &time,
                             rip::place at = rip::place::here())
        : base(&mutex, mutex.try_lock_shared_for(time, at)) {}
    LIBRIP_HERE_ ~shared_lock() {
        if (owns) device->unlock_shared(rip::place::code());
    }
    shared_lock(shared_lock &&other) noexcept : base(nullptr, false) { this->take(other); }
    LIBRIP_HERE_ shared_lock &operator=(shared_lock &&other) noexcept {
        if (this == &other) return *this;
        if (owns) device->unlock_shared(rip::place::code());
        this->take(other);
        return *this;
    }

    LIBRIP_HERE_ void lock(rip::place at = rip::place::here()) {
        must_be_free();
        device->lock_shared(at);
        owns = true;
    }
    LIBRIP_HERE_ bool try_lock(rip::place at = rip::place::here()) {
        must_be_free();
        return owns = device->try_lock_shared(at);
    }
    template <class Clock, class Duration>
    LIBRIP_HERE_ bool try_lock_until(const chrono::time_point<Clock, Duration> &time,
                                     rip::place at = rip::place::here()) {
        must_be_free();
        return owns = device->try_lock_shared_until(time, at);
    }
    template <class Rep, class Period>
    LIBRIP_HERE_ bool try_lock_for(const chrono::duration<Rep, Period> &time, rip::place at = rip::place::here()) {
        must_be_free();
        return owns = device->try_lock_shared_for(time, at);
    }
    LIBRIP_HERE_ void unlock(rip::place at = rip::place::here()) {
        if (!owns) rip::internal::fail(EPERM);
        owns = false;
        device->unlock_shared(at);
    }
};
#endif

#if __cplusplus >= 201703L
template <rip::kind Kind>
class scoped_lock<rip::basic_mutex<Kind>> {
public:
    using mutex_type = rip::basic_mutex<Kind>;

    LIBRIP_HERE_ explicit scoped_lock(mutex_type &mutex, rip::place at = rip::place::here()) : held(mutex) {
        held.lock(at);
    }
    explicit scoped_lock(adopt_lock_t, mutex_type &mutex) noexcept : held(mutex) {}
    LIBRIP_HERE_ ~scoped_lock() { held.unlock(rip::place::code()); }
    scoped_lock(const scoped_lock &) = delete;
    scoped_lock &operator=(const scoped_lock &) = delete;

private:
    mutex_type &held;
};

template <rip::kind Kind, class Second, class... Others>
class scoped_lock<rip::basic_mutex<Kind>, Second, Others...> {
    using First = rip::basic_mutex<Kind>;

public:
    LIBRIP_HERE_ explicit scoped_lock(First &first, Second &second, Others &...others,
                                      rip::place at = rip::place::here())
        : held{rip::internal::lockable::of(first), rip::internal::lockable::of(second),
               rip::internal::lockable::of(others)...} {
        rip::internal::lock_all(held, count, at);
    }
    explicit scoped_lock(adopt_lock_t, First &first, Second &second, Others &...others) noexcept
        : held{rip::internal::lockable::of(first), rip::internal::lockable::of(second),
               rip::internal::lockable::of(others)...} {}
    LIBRIP_HERE_ ~scoped_lock() {
        const rip::place at = rip::place::code();
        for (const rip::internal::lockable &lock : held) lock.unlock(lock.mutex, at);
    }
    scoped_lock(const scoped_lock &) = delete;
    scoped_lock &operator=(const scoped_lock &) = delete;

private:
    static constexpr size_t count = 2 + sizeof...(Others);
    const rip::internal::lockable held[count];
};
#endif

// For locks of this header, so that the place is that of the call and not one in std::lock.
template <rip::kind First, rip::kind Second>
LIBRIP_HERE_ void lock(rip::basic_mutex<First> &first, rip::basic_mutex<Second> &second) {
    rip::internal::lock_all(rip::place::code(), first, second);
}
template <rip::kind First, rip::kind Second, class Third, class... Others>
LIBRIP_HERE_ void lock(rip::basic_mutex<First> &first, rip::basic_mutex<Second> &second, Third &third,
                       Others &...others) {
    rip::internal::lock_all(rip::place::code(), first, second, third, others...);
}

}  // namespace std

namespace rip {

// As std::condition_variable.
class condition_variable {
public:
    using native_handle_type = pthread_cond_t *;

    constexpr condition_variable() noexcept : native(PTHREAD_COND_INITIALIZER), waiters(0) {}
    condition_variable(const condition_variable &) = delete;
    condition_variable &operator=(const condition_variable &) = delete;
    LIBRIP_HERE_ ~condition_variable() {
#ifndef RIP_DISABLE
        if (waiters.load(std::memory_order_relaxed) != 0 && librip_is_active_())
            librip_condition_ends_1(&native, place::code().pc);
#endif
        pthread_cond_destroy(&native);
    }

    LIBRIP_HERE_ void notify_one(place at = place::here()) noexcept {
        signals(at);
        pthread_cond_signal(&native);
    }
    LIBRIP_HERE_ void notify_all(place at = place::here()) noexcept {
        signals(at);
        pthread_cond_broadcast(&native);
    }

    LIBRIP_HERE_ void wait(std::unique_lock<mutex> &lock, place at = place::here()) {
        waiting wait(*this, lock, at, false);
        pthread_cond_wait(&native, lock.mutex()->native_handle());
    }
    template <class Predicate>
    LIBRIP_HERE_ void wait(std::unique_lock<mutex> &lock, Predicate is_over, place at = place::here()) {
        while (!is_over()) wait(lock, at);
    }
    template <class Clock, class Duration>
    LIBRIP_HERE_ std::cv_status wait_until(std::unique_lock<mutex> &lock,
                                           const std::chrono::time_point<Clock, Duration> &time,
                                           place at = place::here()) {
        pthread_cond_t *const condition = &native;
        pthread_mutex_t *const held = lock.mutex()->native_handle();
        waiting wait(*this, lock, at, true);
        const int error = internal::wait_until(time, [condition, held](const timespec &when) {
            return pthread_cond_timedwait(condition, held, &when);
        });
        return error == ETIMEDOUT ? std::cv_status::timeout : std::cv_status::no_timeout;
    }
    template <class Clock, class Duration, class Predicate>
    LIBRIP_HERE_ bool wait_until(std::unique_lock<mutex> &lock, const std::chrono::time_point<Clock, Duration> &time,
                                 Predicate is_over, place at = place::here()) {
        while (!is_over())
            if (wait_until(lock, time, at) == std::cv_status::timeout) return is_over();
        return true;
    }
    template <class Rep, class Period>
    LIBRIP_HERE_ std::cv_status wait_for(std::unique_lock<mutex> &lock, const std::chrono::duration<Rep, Period> &time,
                                         place at = place::here()) {
        return wait_until(lock, internal::after(time), at);
    }
    template <class Rep, class Period, class Predicate>
    LIBRIP_HERE_ bool wait_for(std::unique_lock<mutex> &lock, const std::chrono::duration<Rep, Period> &time,
                               Predicate is_over, place at = place::here()) {
        return wait_until(lock, internal::after(time), std::move(is_over), at);
    }

    native_handle_type native_handle() noexcept { return &native; }

private:
    // A wait, which ends with this object: also if the thread is cancelled.
    class waiting {
    public:
        LIBRIP_HERE_ waiting(condition_variable &waits_on, std::unique_lock<mutex> &lock, const place &where, bool has_end)
            : condition(waits_on), held(lock.mutex()->native_handle()), at(where), is_timed(has_end) {
            condition.waiters.fetch_add(1, std::memory_order_relaxed);
#ifndef RIP_DISABLE
            if (librip_is_active_())
                librip_condition_begin_1(&condition.native, held, at.pc, at.file, at.line, is_timed);
#endif
        }
        LIBRIP_HERE_ ~waiting() {
#ifndef RIP_DISABLE
            if (librip_is_active_()) librip_condition_end_1(&condition.native, held, at.pc, is_timed);
#endif
            condition.waiters.fetch_sub(1, std::memory_order_relaxed);
        }
        waiting(const waiting &) = delete;
        waiting &operator=(const waiting &) = delete;

    private:
        condition_variable &condition;
        pthread_mutex_t *const held;
        const place at;
        const bool is_timed;
    };

    LIBRIP_HERE_ void signals(const place &at) noexcept {
#ifndef RIP_DISABLE
        if (librip_is_active_())
            librip_condition_signals_1(&native, at.pc, waiters.load(std::memory_order_relaxed) != 0);
#endif
        (void)at;
    }

    pthread_cond_t native;
    // How many threads wait, or are about to. A signal that none of them hears has no effect on a later wait.
    std::atomic<uint32_t> waiters;
};

}  // namespace rip

#endif  // RIP_HPP
