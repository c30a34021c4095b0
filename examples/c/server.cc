// A server in C++ that deadlocks: two threads move money between two accounts, and take the two locks in opposite
// orders.
//
//     c++ -g -O2 server.cc $(pkg-config --cflags --libs librip) -pthread -o server-cc && ./server-cc
//
// When it prints "stuck", kill it and read its ring:
//
//     read-rip locks PATH      shows which thread holds each lock, and which threads wait for it
//     read-rip check PATH      shows the deadlock, as a cycle
//
// The class Mutex shows how to mark a lock class. It has the interface of std::mutex, so it works with
// std::unique_lock and the other guards. read-rip shows the lines of lock() and unlock(), and their callers as far as
// the compiler inlined the calls. To get marks with the lines of the callers themselves, use macros, as server.c does.
#include <librip.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>

class Mutex {
public:
    explicit Mutex(const char *name) { RIP_LOCK_NAME(this, name); }
    ~Mutex() { RIP_LOCK_DESTROYED(this); }
    Mutex(const Mutex &) = delete;
    Mutex &operator=(const Mutex &) = delete;

    // Always inlined, so that each caller has its own marks.
    __attribute__((always_inline)) void lock() {
        if (!mutex.try_lock()) {
            RIP_LOCK_WAIT(this, RIP_EXCLUSIVE);
            mutex.lock();
        }
        RIP_LOCK_ACQUIRED(this, RIP_EXCLUSIVE);
    }
    __attribute__((always_inline)) bool try_lock() {
        if (!mutex.try_lock()) {
            RIP_LOCK_TRY_FAILED(this, RIP_EXCLUSIVE);
            return false;
        }
        RIP_LOCK_ACQUIRED(this, RIP_EXCLUSIVE | RIP_TRY);
        return true;
    }
    __attribute__((always_inline)) void unlock() {
        mutex.unlock();
        RIP_LOCK_RELEASED(this, RIP_EXCLUSIVE);
    }

private:
    std::mutex mutex;
};

struct Account {
    explicit Account(const char *name) : mutex(name) {}
    Mutex mutex;
    long balance = 1000;
};

// The number of threads that hold their first account. Each waits for the other here, so that the first transfer
// always deadlocks.
static std::atomic<int> halfway;

template <class Money>
static void transfer(Account &from, Account &to, Money amount) {
    RIP_SNAP_LABEL("transfer");
    std::unique_lock<Mutex> first(from.mutex);
    halfway++;
    while (halfway < 2) std::this_thread::yield();
    std::unique_lock<Mutex> second(to.mutex);
    from.balance -= amount;
    to.balance += amount;
    RIP_PROGRESS();
}

int main() {
    // Failing to record is no reason to fail.
    if (rip_start()) std::fprintf(stderr, "server: could not start recording\n");
    rip_set_thread_name("main");
    Account alice("alice"), bob("bob");
    std::thread there([&] {
        rip_set_thread_name("there");
        transfer(alice, bob, 100);
    });
    std::thread back([&] {
        rip_set_thread_name("back");
        transfer(bob, alice, 10L);
    });
    std::string path(4096, '\0');
    path.resize(rip_ring_path(&path[0], path.size()));
    std::printf("serving: pid %d, ring %s\n", static_cast<int>(getpid()), path.c_str());
    std::fflush(stdout);
    std::this_thread::sleep_for(std::chrono::seconds(1));
    std::printf("stuck\n");
    std::fflush(stdout);
    RIP_SNAP_LABEL("waits for both");
    there.join();
    back.join();
}
