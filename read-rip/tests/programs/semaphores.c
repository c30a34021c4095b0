/*
 * Two threads that take units of semaphores, beside one that waits for input. The argument says which.
 *
 *     names       stuck: they take two variables in opposite orders
 *     arguments   stuck: a function gets the two as arguments
 *     made        stuck: each is made of a mutex and a condition variable
 *     held        healthy: the thread that waits for input has a unit, and another one waits for that
 *     limited     idle: a worker takes a unit of a limit, and waits for work of its own pool
 *     pairs       idle: they take from two queues in opposite orders, and give to a third one
 *     turns       idle: they ask, and wait for the answer, in turn
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static sem_t pens, paper, limit[2], work[2], done;
static atomic_int begun;
static int is_alone;

struct account {
    sem_t free;
    long money;
};

static struct account accounts[2];

struct made {
    pthread_mutex_t mutex;
    pthread_cond_t freed;
    int left;
};

static struct made made[2];

/* Both have taken their first one. */
static void meet(void) {
    begun++;
    while (!is_alone && begun < 2) usleep(1000);
}

static void *writes(void *unused) {
    sem_wait(&pens);
    meet();
    sem_wait(&paper);
    sem_post(&paper);
    sem_post(&pens);
    return unused;
}

static void *draws(void *unused) {
    sem_wait(&paper);
    meet();
    sem_wait(&pens);
    sem_post(&pens);
    sem_post(&paper);
    return unused;
}

__attribute__((noinline)) static void transfer(struct account *from, struct account *to) {
    sem_wait(&from->free);
    meet();
    sem_wait(&to->free);
    from->money--;
    to->money++;
    sem_post(&to->free);
    sem_post(&from->free);
}

static void *pays(void *from) {
    transfer(from, from == accounts ? accounts + 1 : accounts);
    return NULL;
}

__attribute__((noinline)) static void acquire(struct made *of) {
    pthread_mutex_lock(&of->mutex);
    while (of->left == 0) pthread_cond_wait(&of->freed, &of->mutex);
    of->left--;
    pthread_mutex_unlock(&of->mutex);
}

__attribute__((noinline)) static void release(struct made *of) {
    pthread_mutex_lock(&of->mutex);
    of->left++;
    pthread_cond_signal(&of->freed);
    pthread_mutex_unlock(&of->mutex);
}

static void *borrows(void *first) {
    struct made *other = first == made ? made + 1 : made;
    acquire(first);
    meet();
    acquire(other);
    release(other);
    release(first);
    return NULL;
}

static void *serves(void *pool) {
    long at = (long)pool;
    for (;;) {
        sem_wait(&limit[at]);
        sem_wait(&work[at]);
        sem_post(&limit[at]);
    }
    return NULL;
}

static void *joins(void *first) {
    long at = (long)first;
    for (;;) {
        sem_wait(&work[at]);
        sem_wait(&work[!at]);
        sem_post(&done);
    }
    return NULL;
}

static void *asks(void *unused) {
    for (;;) {
        sem_wait(&work[0]);
        sem_post(&done);
        sem_wait(&work[1]);
        sem_post(&done);
    }
    return unused;
}

static void both_of(void *(*first)(void *), void *its, void *(*second)(void *), void *others) {
    pthread_t thread;
    pthread_create(&thread, NULL, first, its);
    pthread_create(&thread, NULL, second, others);
}

int main(int count, char **arguments) {
    if (count < 2) return 2;
    const char *which = arguments[1];
    sem_init(&pens, 0, 1);
    sem_init(&paper, 0, 1);
    sem_init(&done, 0, 0);
    for (int at = 0; at < 2; at++) {
        sem_init(&limit[at], 0, 1);
        sem_init(&work[at], 0, 0);
        sem_init(&accounts[at].free, 0, 1);
        pthread_mutex_init(&made[at].mutex, NULL);
        pthread_cond_init(&made[at].freed, NULL);
        made[at].left = 1;
    }
    void *one = (void *)1;
    if (strcmp(which, "names") == 0) both_of(writes, NULL, draws, NULL);
    if (strcmp(which, "arguments") == 0) both_of(pays, accounts, pays, accounts + 1);
    if (strcmp(which, "made") == 0) both_of(borrows, made, borrows, made + 1);
    if (strcmp(which, "held") == 0) {
        is_alone = 1;
        sem_wait(&pens);
        both_of(draws, NULL, draws, NULL);
    }
    if (strcmp(which, "limited") == 0) both_of(serves, NULL, serves, one);
    if (strcmp(which, "turns") == 0) both_of(asks, NULL, asks, NULL);
    if (strcmp(which, "pairs") == 0) {
        sem_post(&work[0]);
        sem_post(&work[1]);
        both_of(joins, NULL, joins, one);
    }
    /* What comes is work, or an end of it. */
    char input;
    while (read(0, &input, 1) > 0) {
        sem_post(&work[0]);
        sem_post(&work[1]);
        if (is_alone) sem_post(&pens);
    }
    return 0;
}
