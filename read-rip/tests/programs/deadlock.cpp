// Two threads take two mutexes of the standard library in opposite orders. They sleep in a futex only when stuck.
#include <atomic>
#include <csignal>
#include <mutex>
#include <sched.h>
#include <sys/prctl.h>
#include <thread>
#include <unistd.h>

std::mutex savings, current_account;
std::atomic<int> arrived;

__attribute__((noipa)) void transfer(std::mutex &from, std::mutex &to) {
    std::lock_guard<std::mutex> first(from);
    arrived++;
    while (arrived < 2) sched_yield();
    std::lock_guard<std::mutex> second(to);
}

int main() {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::thread saver(transfer, std::ref(savings), std::ref(current_account));
    std::thread spender(transfer, std::ref(current_account), std::ref(savings));
    for (;;) pause();
}
