// A thread initialises something, and needs a mutex for it. Another one has the mutex, and needs what is initialised.
// The argument says what that is: the static variable of a function, or what pthread_once does. With a second argument,
// the other thread gives the mutex back first: nothing is wrong.
#include <mutex>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <signal.h>
#include <thread>
#include <unistd.h>

static std::mutex registry;
static sem_t begun, taken;

static void needs_registry() {
    sem_post(&begun);
    sem_wait(&taken);
    std::lock_guard<std::mutex> guard(registry);
}

struct Settings {
    Settings() { needs_registry(); }
};

static Settings &settings() {
    static Settings all;
    return all;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_variable;

static void initialises() {
    if (is_variable) {
        settings();
    } else {
        pthread_once(&once, needs_registry);
    }
}

int main(int count, char **arguments) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    is_variable = count > 1 && !strcmp(arguments[1], "variable");
    bool is_healthy = count > 2;
    sem_init(&begun, 0, 0);
    sem_init(&taken, 0, 0);
    std::thread first([] {
        pthread_setname_np(pthread_self(), "first");
        initialises();
    });
    std::thread second([=] {
        pthread_setname_np(pthread_self(), "second");
        sem_wait(&begun);
        std::unique_lock<std::mutex> guard(registry);
        sem_post(&taken);
        if (is_healthy) guard.unlock();
        initialises();
    });
    std::thread([] { for (;;) pause(); }).detach();
    puts("begun");
    fflush(stdout);
    first.join();
    second.join();
    for (;;) pause();
}
