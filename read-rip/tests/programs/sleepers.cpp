// Threads that sleep at a known depth of known functions.
#include <condition_variable>
#include <cstdio>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>
#include <unistd.h>

namespace pool {
std::mutex mutex;
std::condition_variable never;
volatile int sink;

struct Waiter {
    virtual ~Waiter() = default;
    virtual int wait(int n) = 0;
};

struct InMutex : Waiter {
    __attribute__((noipa)) int wait(int n) override {
        std::lock_guard<std::mutex> guard(mutex);
        return n + sink;
    }
};

struct InCondition : Waiter {
    __attribute__((noipa)) int wait(int n) override {
        std::mutex own;
        std::unique_lock<std::mutex> lock(own);
        never.wait(lock, [] { return sink == 77; });
        return n + sink;
    }
};

struct InException : Waiter {
    __attribute__((noipa)) int wait(int n) override {
        try {
            throw n;
        } catch (int thrown) {
            pause();
            return thrown + sink;
        }
    }
};

__attribute__((noipa)) int inner(const std::function<int(int)> &work, int n) {
    return work(n) + 1;
}

__attribute__((noipa)) int outer(Waiter &waiter, int n) {
    std::vector<int> numbers(10, n);
    return inner([&](int m) { return waiter.wait(m + numbers[3]); }, n) + 1;
}
}

int main() {
    std::lock_guard<std::mutex> guard(pool::mutex);
    static pool::InMutex in_mutex;
    static pool::InCondition in_condition;
    static pool::InException in_exception;
    std::vector<std::thread> threads;
    for (pool::Waiter *waiter : {static_cast<pool::Waiter *>(&in_mutex), static_cast<pool::Waiter *>(&in_condition),
                                 static_cast<pool::Waiter *>(&in_exception)}) {
        threads.emplace_back([waiter] { pool::sink += pool::outer(*waiter, 3); });
    }
    std::puts("3");
    std::fflush(stdout);
    pool::outer(in_exception, 4);
}
