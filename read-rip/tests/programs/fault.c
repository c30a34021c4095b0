/* A thread of it writes to an address where nothing is mapped. */
#include <pthread.h>
#include <unistd.h>

static int *volatile nowhere = (int *)16;

__attribute__((noinline)) static void write_nowhere(void) {
    *nowhere = 1; /* the fault */
}

static void *body(void *unused) {
    write_nowhere();
    return unused;
}

int main(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, NULL)) return 2;
    pthread_join(thread, NULL);
    return 0;
}
