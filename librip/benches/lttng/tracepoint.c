/* The library that the benchmark lttng.rs loads. scripts/lib/lttng.sh builds it. */
#include <stdint.h>

#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "librip_bench.h"

int librip_lttng_is_enabled(void);
void librip_lttng_events(uint64_t rounds);

int librip_lttng_is_enabled(void) { return lttng_ust_tracepoint_enabled(librip_bench, moved); }

void librip_lttng_events(uint64_t rounds) {
    for (uint64_t i = 0; i < rounds; i++) lttng_ust_tracepoint(librip_bench, moved, i, rounds);
}
