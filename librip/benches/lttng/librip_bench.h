/* A tracepoint of LTTng-UST with two integers. The library includes this file several times. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER librip_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "librip_bench.h"

#if !defined(LIBRIP_BENCH_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define LIBRIP_BENCH_H

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(
    librip_bench, moved, LTTNG_UST_TP_ARGS(uint64_t, from, uint64_t, to),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint64_t, from, from) lttng_ust_field_integer(uint64_t, to, to)))

#endif

#include <lttng/tracepoint-event.h>
