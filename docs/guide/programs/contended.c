/* Four threads write to one journal, and each holds its lock while it waits for the disk. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t journal = PTHREAD_MUTEX_INITIALIZER;

static void *append(void *unused) {
    for (;;) {
        pthread_mutex_lock(&journal);
        usleep(12000); /* the disk */
        pthread_mutex_unlock(&journal);
        usleep(5000);
    }
    return unused;
}

int main(void) {
    pthread_t writer;
    for (int index = 0; index < 4; index++) {
        char name[16];
        snprintf(name, sizeof name, "writer %d", index);
        pthread_create(&writer, NULL, append, NULL);
        pthread_setname_np(writer, name);
    }
    puts("ready");
    fflush(stdout);
    for (;;) pause();
}
