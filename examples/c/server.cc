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
// The locks are those of rip.hpp, which have the interface of std's. read-rip shows the lines where guards are made.
#include <rip.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <unistd.h>

struct Account {
    explicit Account(const char *name) : mutex(name) {}
    rip::mutex mutex;
    long balance = 1000;
};

// The number of threads that hold their first account. Each waits for the other here, so that the first transfer
// always deadlocks.
static std::atomic<int> halfway;

template <class Money>
static void transfer(Account &from, Account &to, Money amount) {
    RIP_SNAP_LABEL("transfer");
    std::unique_lock<rip::mutex> first(from.mutex);
    halfway++;
    while (halfway < 2) std::this_thread::yield();
    std::unique_lock<rip::mutex> second(to.mutex);
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
