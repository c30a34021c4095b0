/* The C part of the benchmark c.rs. */
#include <librip.h>
#include <pthread.h>

pthread_mutex_t rip_bench_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t rip_bench_second = PTHREAD_MUTEX_INITIALIZER;
static volatile uint64_t work;

void rip_bench_marks(uint64_t rounds);
void rip_bench_pthread(uint64_t rounds);
void rip_bench_pthread_snaps(uint64_t rounds);
void rip_bench_pthread_marks(uint64_t rounds);
void rip_bench_pthread_nested(uint64_t rounds);
void rip_bench_pthread_nested_marks(uint64_t rounds);
void rip_bench_events(uint64_t rounds);
void rip_bench_events_with_values(uint64_t rounds);
void rip_bench_events_with_long_values(uint64_t rounds);
void rip_bench_events_with_text(uint64_t rounds);
void rip_bench_events_with_static_text(uint64_t rounds);
void rip_bench_spans(uint64_t rounds);
void rip_bench_snaps(uint64_t rounds);
void rip_bench_lock_marks(uint64_t rounds);
void rip_bench_events_in_a_channel(uint64_t rounds);
void rip_bench_events_below_the_level(uint64_t rounds);
void rip_bench_events_in_a_channel_that_is_off(uint64_t rounds);
void rip_bench_spans_in_a_channel(uint64_t rounds);
void rip_bench_cycles(uint64_t rounds);
void rip_bench_captures(uint64_t rounds);

void rip_bench_marks(uint64_t rounds) {
    for (uint64_t i = 0; i < rounds; i++) {
        RIP_SNAP();
        RIP_SNAP();
        RIP_SNAP();
        RIP_SNAP();
    }
}

void rip_bench_pthread(uint64_t rounds) {
    for (uint64_t i = 0; i < rounds; i++) {
        pthread_mutex_lock(&rip_bench_mutex);
        work++;
        pthread_mutex_unlock(&rip_bench_mutex);
    }
}

void rip_bench_pthread_snaps(uint64_t rounds) {
    for (uint64_t i = 0; i < rounds; i++) {
        RIP_SNAP();
        pthread_mutex_lock(&rip_bench_mutex);
        RIP_SNAP();
        work++;
        pthread_mutex_unlock(&rip_bench_mutex);
        RIP_SNAP();
    }
}

void rip_bench_pthread_marks(uint64_t rounds) {
    for (uint64_t i = 0; i < rounds; i++) {
        pthread_mutex_lock(&rip_bench_mutex);
        RIP_LOCK_ACQUIRED(&rip_bench_mutex, RIP_EXCLUSIVE);
        work++;
        pthread_mutex_unlock(&rip_bench_mutex);
        RIP_LOCK_RELEASED(&rip_bench_mutex, RIP_EXCLUSIVE);
    }
}

void rip_bench_pthread_nested(uint64_t rounds) {
    for (uint64_t i = 0; i < rounds; i++) {
        pthread_mutex_lock(&rip_bench_mutex);
        pthread_mutex_lock(&rip_bench_second);
        work++;
        pthread_mutex_unlock(&rip_bench_second);
        pthread_mutex_unlock(&rip_bench_mutex);
    }
}

void rip_bench_pthread_nested_marks(uint64_t rounds) {
    for (uint64_t i = 0; i < rounds; i++) {
        pthread_mutex_lock(&rip_bench_mutex);
        RIP_LOCK_ACQUIRED(&rip_bench_mutex, RIP_EXCLUSIVE);
        pthread_mutex_lock(&rip_bench_second);
        RIP_LOCK_ACQUIRED(&rip_bench_second, RIP_EXCLUSIVE);
        work++;
        pthread_mutex_unlock(&rip_bench_second);
        RIP_LOCK_RELEASED(&rip_bench_second, RIP_EXCLUSIVE);
        pthread_mutex_unlock(&rip_bench_mutex);
        RIP_LOCK_RELEASED(&rip_bench_mutex, RIP_EXCLUSIVE);
    }
}

void rip_bench_events(uint64_t rounds) {
    for (uint64_t i = 0; i < rounds; i++) {
        RIP_EVENT("happened");
    }
}

void rip_bench_events_with_values(uint64_t rounds) {
    for (uint64_t i = 0; i < rounds; i++) {
        RIP_EVENT("%u of %u", (uint32_t)i, (uint32_t)rounds);
    }
}

void rip_bench_events_with_long_values(uint64_t rounds) {
    for (uint64_t i = 0; i < rounds; i++) {
        RIP_EVENT("%lu of %lu", i, rounds);
    }
}

/* Not a constant for the compiler. */
static const char *volatile text = "twelve bytes";

void rip_bench_events_with_text(uint64_t rounds) {
    for (uint64_t i = 0; i < rounds; i++) {
        RIP_EVENT("opened %s", text);
    }
}

void rip_bench_events_with_static_text(uint64_t rounds) {
    for (uint64_t i = 0; i < rounds; i++) {
        RIP_EVENT("opened %s", RIP_TEXT(text));
    }
}

void rip_bench_spans(uint64_t rounds) {
    for (uint64_t i = 0; i < rounds; i++) {
        RIP_SPAN("work");
    }
}

void rip_bench_snaps(uint64_t rounds) {
    for (uint64_t i = 0; i < rounds; i++) RIP_SNAP();
}

void rip_bench_lock_marks(uint64_t rounds) {
    for (uint64_t i = 0; i < rounds; i++) {
        RIP_LOCK_ACQUIRED(&rip_bench_mutex, RIP_EXCLUSIVE);
        RIP_LOCK_RELEASED(&rip_bench_mutex, RIP_EXCLUSIVE);
    }
}

/* c.rs switches the last two. Their first events are in this order. */
RIP_CHANNEL(frequent, 64);
RIP_CHANNEL(warnings, 64);
RIP_CHANNEL(off, 64);

void rip_bench_events_in_a_channel(uint64_t rounds) {
    for (uint64_t i = 0; i < rounds; i++) RIP_EVENT_IN(frequent, RIP_INFO, "%u of %u", (uint32_t)i, (uint32_t)rounds);
}

void rip_bench_events_below_the_level(uint64_t rounds) {
    for (uint64_t i = 0; i < rounds; i++) RIP_EVENT_IN(warnings, RIP_INFO, "%u of %u", (uint32_t)i, (uint32_t)rounds);
}

void rip_bench_events_in_a_channel_that_is_off(uint64_t rounds) {
    for (uint64_t i = 0; i < rounds; i++) RIP_EVENT_IN(off, RIP_INFO, "%u of %u", (uint32_t)i, (uint32_t)rounds);
}

void rip_bench_spans_in_a_channel(uint64_t rounds) {
    for (uint64_t i = 0; i < rounds; i++) {
        RIP_SPAN_IN(frequent, "work");
    }
}

void rip_bench_cycles(uint64_t rounds) {
    for (uint64_t i = 0; i < rounds; i++) {
        RIP_SLOW_CYCLE("work", 1000000);
    }
}

void rip_bench_captures(uint64_t rounds) {
    for (uint64_t i = 0; i < rounds; i++) RIP_CAPTURE("kept");
}
