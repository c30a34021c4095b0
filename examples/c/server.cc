// A server in C++ that deadlocks: two threads move money between accounts, and take the two locks in different orders.
//
//     c++ -g -O2 server.cc $(pkg-config --cflags --libs librip) -pthread -o server-cc && ./server-cc
//
// Kill it when it says that it is stuck, and ask what is left:
//
//     read-rip locks PATH      who has which lock, and who waits for it
//     read-rip check PATH      the deadlock, as a cycle
//
// Mutex is the recipe for a lock class: it has the interface of std::mutex, records what is done with it, and works with
// std::unique_lock and the other guards. They are at work inside of it, so what is shown are the lines of lock() and
// unlock() with their callers, as far as those are inlined. To have marks at the callers' own lines, use macros, as
// server.c does.
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

    // Always inlined, so that each caller has marks of its own.
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

// How many have one account and go for the other: the deadlock is made to happen on the first transfer.
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
    if (rip_start()) std::fprintf(stderr, "server: not recording\n");
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
