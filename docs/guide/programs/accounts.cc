// Two threads move money between two accounts, and take the two locks in opposite orders.
#include <rip.hpp>

#include <atomic>
#include <cstdio>
#include <thread>

struct Account {
    explicit Account(const char *name) : mutex(name) {}
    rip::mutex mutex;
    long balance = 1000;
};

static std::atomic<int> halfway;

static void transfer(Account &from, Account &to, long amount) {
    std::lock_guard<rip::mutex> first(from.mutex);
    halfway++;
    while (halfway < 2) std::this_thread::yield();
    std::lock_guard<rip::mutex> second(to.mutex);
    from.balance -= amount;
    to.balance += amount;
}

int main() {
    rip_start();
    Account alice("alice"), bob("bob");
    std::thread there(transfer, std::ref(alice), std::ref(bob), 100);
    std::thread back(transfer, std::ref(bob), std::ref(alice), 10);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    std::puts("stuck");
    std::fflush(stdout);
    there.join();
    back.join();
}
