// librip_coroutine.hpp: coroutines in C++ that have histories and locks of their own.
//
//     struct job {
//         struct promise_type : librip::traced_promise {
//             promise_type() : traced_promise("job") {}
//             auto initial_suspend() noexcept { return traced_start(std::suspend_always{}); }
//             auto final_suspend() noexcept { return traced_end(std::suspend_always{}); }
//             ...
//         };
//     };
//
// From C++11 on there are librip::context and librip::resumed, for coroutines with stacks of their own. With coroutines
// of C++20 there is librip::traced_promise too. It resumes nothing and chooses nothing: it only tells the library which
// coroutine the thread is in. librip.h says what that is good for.
#ifndef LIBRIP_COROUTINE_HPP
#define LIBRIP_COROUTINE_HPP 1

#include <librip.h>

#if defined(__cpp_impl_coroutine)
#include <coroutine>
#include <type_traits>
#include <utility>
#endif

namespace librip {

// A coroutine, which ends with this object. It has none if there is no ring or no room: then everything is recorded for
// the thread.
class context {
public:
    context() noexcept : handle(nullptr) {}
    // Each caller has its own place in the source, and a program that calls it has room for coroutines.
#ifdef RIP_DISABLE
    explicit context(const char *name) noexcept : handle(rip_context_create(name)) {}
#else
    __attribute__((always_inline)) explicit context(const char *name, const char *file = __builtin_FILE(),
                                                    unsigned line = __builtin_LINE()) noexcept
        : handle(librip_context_create_1(name, LIBRIP_SITE_VALUE_(LIBRIP_KIND_TASK, 0, 0, 0, ""), file, line)) {}
#endif
    context(context &&other) noexcept : handle(other.handle) { other.handle = nullptr; }
    context &operator=(context &&other) noexcept {
        if (this != &other) {
            rip_context_destroy(handle);
            handle = other.handle;
            other.handle = nullptr;
        }
        return *this;
    }
    context(const context &) = delete;
    context &operator=(const context &) = delete;
    ~context() { rip_context_destroy(handle); }

    rip_context *get() const noexcept { return handle; }

private:
    rip_context *handle;
};

// The calling thread is in a coroutine as long as this object exists. Then the thread goes back to where it was: on its
// own stack, or in another coroutine, which has resumed this one.
class resumed {
public:
    explicit resumed(const context &to) noexcept : is_in(to.get() != nullptr), former(rip_context_current()) {
        if (is_in) rip_context_switch(to.get());
    }
    resumed(const resumed &) = delete;
    resumed &operator=(const resumed &) = delete;
    ~resumed() {
        if (is_in) rip_context_switch(former);
    }

private:
    const bool is_in;
    rip_context *const former;
};

#if defined(__cpp_impl_coroutine)

// A base of promises. The coroutine is recorded from when its promise is made until its frame is destroyed.
//
// It wraps what the coroutine awaits. The thread leaves the coroutine before the awaiter gets the handle, because
// another thread may resume the coroutine at once. A thread that resumes it enters it. So whoever resumes it need not
// know of librip, and coroutines may resume one another, directly or by symmetric transfer.
//
// A promise with an await_transform of its own returns traced(...) there, and so does yield_value. If the frame of a
// suspended coroutine is destroyed, its local variables are destroyed by the thread that does so, and for that thread.
class traced_promise {
    template <class Awaiter, bool is_start, bool is_end>
    class traced_awaiter;

public:
    __attribute__((always_inline)) explicit traced_promise(const char *name, const char *file = __builtin_FILE(),
                                                           unsigned line = __builtin_LINE()) noexcept
#ifdef RIP_DISABLE
        : own(name), former(nullptr) {
        (void)file;
        (void)line;
    }
#else
        : own(name, file, line), former(nullptr) {
    }
#endif
    traced_promise(const traced_promise &) = delete;
    traced_promise &operator=(const traced_promise &) = delete;

    // What the coroutine awaits.
    template <class T>
    auto traced(T &&awaitable) {
        return wrap<false, false>(static_cast<T &&>(awaitable));
    }
    // What initial_suspend returns.
    template <class T>
    auto traced_start(T &&awaitable) noexcept {
        return wrap<true, false>(static_cast<T &&>(awaitable));
    }
    // What final_suspend returns.
    template <class T>
    auto traced_end(T &&awaitable) noexcept {
        return wrap<false, true>(static_cast<T &&>(awaitable));
    }
    template <class T>
    auto await_transform(T &&awaitable) {
        return traced(static_cast<T &&>(awaitable));
    }

    const context &rip_context_of() const noexcept { return own; }

private:
    void enter() noexcept {
        if (own.get()) {
            former = rip_context_current();
            rip_context_switch(own.get());
        }
    }
    void leave() noexcept {
        if (own.get()) rip_context_switch(former);
    }

    template <bool is_start, bool is_end, class T>
    auto wrap(T &&awaitable) {
        if constexpr (requires { static_cast<T &&>(awaitable).operator co_await(); }) {
            using Awaiter = decltype(static_cast<T &&>(awaitable).operator co_await());
            return traced_awaiter<Awaiter, is_start, is_end>(
                *this, [&]() -> Awaiter { return static_cast<T &&>(awaitable).operator co_await(); });
        } else if constexpr (requires { operator co_await(static_cast<T &&>(awaitable)); }) {
            using Awaiter = decltype(operator co_await(static_cast<T &&>(awaitable)));
            return traced_awaiter<Awaiter, is_start, is_end>(
                *this, [&]() -> Awaiter { return operator co_await(static_cast<T &&>(awaitable)); });
        } else {
            // A temporary is moved, because yield_value may have made it. Otherwise the operand outlives the wait.
            constexpr bool is_moved = !std::is_lvalue_reference_v<T> && std::is_move_constructible_v<T>;
            using Awaiter = std::conditional_t<is_moved, std::remove_cvref_t<T>, T &&>;
            return traced_awaiter<Awaiter, is_start, is_end>(
                *this, [&]() -> Awaiter { return static_cast<T &&>(awaitable); });
        }
    }

    context own;
    // The coroutine that the thread was in before, which has resumed this one.
    rip_context *former;
};

template <class Awaiter, bool is_start, bool is_end>
class traced_promise::traced_awaiter {
public:
    template <class Make>
    traced_awaiter(traced_promise &of, Make make) : promise(of), awaiter(make()) {}
    traced_awaiter(const traced_awaiter &) = delete;
    traced_awaiter &operator=(const traced_awaiter &) = delete;

    bool await_ready() noexcept(noexcept(std::declval<Awaiter &>().await_ready())) {
        const bool is_ready = static_cast<bool>(awaiter.await_ready());
        // The frame is about to be destroyed.
        if (is_end && is_ready) promise.leave();
        return is_ready;
    }

    // FOLKLORE: clang keeps local variables of an inlined await_suspend in the frame of the coroutine. Another thread
    // may have destroyed the frame by the time they are used. So it is not inlined.
    template <class Promise>
    __attribute__((noinline)) auto await_suspend(std::coroutine_handle<Promise> coroutine) noexcept(
        noexcept(std::declval<Awaiter &>().await_suspend(coroutine))) {
        is_suspended = true;
        // If the awaiter throws, the coroutine goes on.
        struct Reentry {
            traced_promise *promise;
            ~Reentry() {
                if (promise) promise->enter();
            }
        } reentry{&promise};
        if (!is_start) promise.leave();
        else reentry.promise = nullptr;
        // After this call, the frame may be gone, and this object with it.
        if constexpr (std::is_void_v<decltype(awaiter.await_suspend(coroutine))>) {
            awaiter.await_suspend(coroutine);
            reentry.promise = nullptr;
        } else {
            auto next = awaiter.await_suspend(coroutine);
            reentry.promise = nullptr;
            return next;
        }
    }

    decltype(auto) await_resume() noexcept(noexcept(std::declval<Awaiter &>().await_resume())) {
        if (is_start || is_suspended) promise.enter();
        return awaiter.await_resume();
    }

private:
    traced_promise &promise;
    Awaiter awaiter;
    bool is_suspended = false;
};

#endif // __cpp_impl_coroutine

} // namespace librip

#endif // LIBRIP_COROUTINE_HPP
