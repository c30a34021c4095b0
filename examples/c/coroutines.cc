// Coroutines of C++20 that are recorded: one awaits another, and that one awaits a reply which never comes.
//
//     c++ -std=c++20 -g -O2 coroutines.cc $(pkg-config --cflags --libs librip) -pthread -o coroutines-cc
//     ./coroutines-cc
//
// A promise with the base librip::traced_promise has a context, and each wait leaves and enters it. The two workers
// resume the coroutines in any order, so a coroutine moves from thread to thread, and its history follows it. When it
// prints "stuck", kill it and read its ring:
//
//     read-rip tasks PATH      shows each coroutine, and where it is suspended
#include <librip_coroutine.hpp>

#include <condition_variable>
#include <coroutine>
#include <cstdio>
#include <deque>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>

// The coroutines that can go on, and the threads that resume them.
class Pool {
public:
    void put(std::coroutine_handle<> coroutine) {
        std::lock_guard<std::mutex> guard(mutex);
        ready.push_back(coroutine);
        filled.notify_one();
    }
    // Does not know of librip: the promises do.
    void work() {
        for (;;) {
            std::unique_lock<std::mutex> guard(mutex);
            filled.wait(guard, [this] { return !ready.empty(); });
            const std::coroutine_handle<> next = ready.front();
            ready.pop_front();
            guard.unlock();
            next.resume();
        }
    }

private:
    std::mutex mutex;
    std::condition_variable filled;
    std::deque<std::coroutine_handle<>> ready;
};
static Pool pool;

// Lets others run: any of the workers resumes the coroutine.
struct Yield {
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> coroutine) const { pool.put(coroutine); }
    void await_resume() const noexcept {}
};

// Nobody sends it.
struct Reply {
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<>) const {
        std::printf("stuck\n");
        std::fflush(stdout);
    }
    int await_resume() const noexcept { return 0; }
};

// A coroutine that another one awaits.
class Task {
public:
    struct promise_type;
    using Handle = std::coroutine_handle<promise_type>;

    struct promise_type : librip::traced_promise {
        // The arguments of the coroutine: the first is its name.
        template <class... Others>
        explicit promise_type(const char *name, Others &&...) : traced_promise(name) {}
        Task get_return_object() { return Task(Handle::from_promise(*this)); }
        auto initial_suspend() noexcept { return traced_start(std::suspend_always{}); }
        auto final_suspend() noexcept { return traced_end(End{}); }
        void return_value(int value) { result = value; }
        void unhandled_exception() { std::terminate(); }

        std::coroutine_handle<> waiter = std::noop_coroutine();
        int result = 0;
    };

    // Goes on in the coroutine that waits for this one.
    struct End {
        bool await_ready() const noexcept { return false; }
        std::coroutine_handle<> await_suspend(Handle ended) const noexcept { return ended.promise().waiter; }
        void await_resume() const noexcept {}
    };

    explicit Task(Handle own) : handle(own) {}
    Task(const Task &) = delete;
    Task &operator=(const Task &) = delete;
    ~Task() { handle.destroy(); }

    bool await_ready() const noexcept { return false; }
    Handle await_suspend(std::coroutine_handle<> waiter) const noexcept {
        handle.promise().waiter = waiter;
        return handle;
    }
    int await_resume() const noexcept { return handle.promise().result; }

    void start() const { pool.put(handle); }

private:
    const Handle handle;
};

static Task fetch(const char *, int page) {
    RIP_EVENT("asks for page %d", page);
    co_await Yield{};
    RIP_EVENT("reads page %d", page);
    if (page == 3) co_await Reply{};
    co_return page * 100;
}

static Task serve(const char *) {
    int sum = 0;
    for (int page = 1;; page++) {
        RIP_EVENT("wants page %d", page);
        sum += co_await fetch("fetch", page);
        RIP_EVENT("has pages of %d bytes", sum);
    }
}

int main() {
    // Failing to record is no reason to fail.
    if (rip_start()) std::fprintf(stderr, "coroutines: could not start recording\n");
    rip_set_thread_name("main");
    std::string path(4096, '\0');
    path.resize(rip_ring_path(&path[0], path.size()));
    std::printf("running: pid %d, ring %s\n", static_cast<int>(getpid()), path.c_str());
    std::fflush(stdout);
    const Task server = serve("serve");
    server.start();
    std::thread first([] { pool.work(); }), second([] { pool.work(); });
    first.join();
    second.join();
}
