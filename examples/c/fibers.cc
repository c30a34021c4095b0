// Fibers of Boost.Context that are recorded: one holds a lock while it awaits another one, which needs that lock.
//
//     c++ -g -O2 fibers.cc $(pkg-config --cflags --libs librip) -lboost_context -o fibers-cc && ./fibers-cc
//
// Boost.Context switches stacks and has no scheduler: the class Scheduler is one. Each switch is in resume() or in
// suspend(), with a call of rip_context_switch right before it. The program has one thread, and a debugger shows only
// that the scheduler has nothing to run. When it prints "stuck", read its ring, or kill it before:
//
//     read-rip tasks -t PATH   shows where each fiber is suspended, which lock it holds and which one it waits for
//     read-rip check PATH      says who keeps the lock, and where: of the living program, after a second
//
// Boost is in Debian's package libboost-context-dev.
#include <librip_coroutine.hpp>

#include <boost/context/fiber.hpp>
#include <cstdio>
#include <deque>
#include <mutex>
#include <string>
#include <unistd.h>
#include <utility>

class Fiber {
public:
    Fiber(const char *name, void (*body)())
        : context(name), own([this, body](boost::context::fiber &&resumer) {
              caller = std::move(resumer);
              body();
              rip_context_switch(nullptr); // this function returns to the scheduler's stack
              return std::move(caller);
          }) {}

    // On in this fiber, until it is suspended or ends.
    void resume() {
        rip_context_switch(context.get());
        own = std::move(own).resume();
    }
    // Back to the scheduler.
    void suspend() {
        rip_context_switch(nullptr);
        caller = std::move(caller).resume();
    }

private:
    librip::context context;
    boost::context::fiber own, caller; // each is empty while its stack is in use
};

class Scheduler {
public:
    void add(Fiber &fiber) { ready.push_back(&fiber); }
    // The fiber that runs.
    Fiber &current() { return *running; }
    // Runs fibers until none can go on.
    void run() {
        while (!ready.empty()) {
            running = ready.front();
            ready.pop_front();
            running->resume();
        }
    }

private:
    std::deque<Fiber *> ready;
    Fiber *running = nullptr;
};

static Scheduler scheduler;

// Fibers that wait.
class Queue {
public:
    void wait() {
        fibers.push_back(&scheduler.current());
        scheduler.current().suspend();
    }
    // The first one can go on. Returns false if there is none.
    bool wake() {
        if (fibers.empty()) return false;
        scheduler.add(*fibers.front());
        fibers.pop_front();
        return true;
    }

private:
    std::deque<Fiber *> fibers;
};

// A lock for fibers. Who releases it hands it over to the first one that waits.
class Mutex {
public:
    // Always inlined, so that each caller has its own marks.
    __attribute__((always_inline)) void lock() {
        if (is_held) {
            RIP_LOCK_WAIT(this, RIP_EXCLUSIVE);
            waiters.wait();
        }
        is_held = true;
        RIP_LOCK_ACQUIRED(this, RIP_EXCLUSIVE);
    }
    __attribute__((always_inline)) void unlock() {
        RIP_LOCK_RELEASED(this, RIP_EXCLUSIVE);
        is_held = waiters.wake();
    }

private:
    bool is_held = false;
    Queue waiters;
};

static Mutex journal;
static Queue flushed;
static std::string lines;

// The mistake: it keeps the lock while it awaits the flusher.
static void write() {
    std::lock_guard<Mutex> guard(journal);
    lines += "a line\n";
    RIP_SNAP_LABEL("awaits the flusher");
    flushed.wait();
    RIP_PROGRESS();
}

static void flush() {
    RIP_SNAP_LABEL("wants to flush");
    std::lock_guard<Mutex> guard(journal);
    lines.clear();
    flushed.wake();
}

int main() {
    // Failing to record is no reason to fail.
    if (rip_start()) std::fprintf(stderr, "fibers: could not start recording\n");
    rip_set_thread_name("scheduler");
    std::string path(4096, '\0');
    path.resize(rip_ring_path(&path[0], path.size()));
    std::printf("running: pid %d, ring %s\n", static_cast<int>(getpid()), path.c_str());
    Fiber writer("writer", write), flusher("flusher", flush);
    scheduler.add(writer);
    scheduler.add(flusher);
    scheduler.run();
    RIP_SNAP_LABEL("has nothing to run");
    std::printf("stuck\n");
    std::fflush(stdout);
    pause();
}
