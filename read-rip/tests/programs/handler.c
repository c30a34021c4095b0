/*
 * A timer's signal handler allocates, as the program does. Sooner or later the signal interrupts malloc, which has the
 * lock of its arena. No other thread allocates, and no thread sleeps in a futex before that.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

/* So that no compiler leaves the calls out. */
static void *volatile kept;

static void reports(int signal) {
    (void)signal;
    kept = malloc(100000);
    free(kept);
}

/* With a second thread, malloc acquires its lock. */
static void *idles(void *unused) {
    sigset_t none;
    sigfillset(&none);
    sigdelset(&none, SIGALRM);
    for (int signal;;) sigwait(&none, &signal);
    return unused;
}

int main(void) {
    struct sigaction action = {.sa_handler = reports};
    struct itimerval often = {{0, 100}, {0, 100}};
    sigset_t alarm;
    pthread_t other;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    /* The other thread does not handle the signal. */
    pthread_sigmask(SIG_BLOCK, &alarm, NULL);
    if (pthread_create(&other, NULL, idles, NULL) != 0) return 2;
    sigaction(SIGALRM, &action, NULL);
    pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (unsigned round = 0;; round++) {
        void *volatile all[50];
        for (unsigned at = 0; at < 50; at++) all[at] = malloc(2000 + (round * 37 + at * 101) % 9000);
        for (unsigned at = 0; at < 50; at++) free(all[at]);
    }
}
