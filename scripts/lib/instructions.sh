# Counts the instructions of a benchmark's loops with callgrind: the same numbers on each machine of a kind. Sourced by
# scripts/bench.
# shellcheck shell=bash

# Says that valgrind is missing, if it is.
has_valgrind() {
    command -v valgrind >/dev/null && return
    printf 'skipped: valgrind is not installed; apt install valgrind\n'
    return 1
}

# count_loops TITLE COMMAND...: prints the instructions of a round of each loop in `turns/loops.rs`, without those of
# the loop itself. The first word of the command runs what it is given: callgrind, with the rest of the command. Each
# loop runs at two lengths. The difference of both is that of the rounds alone.
count_loops() {
    local title=$1 runner=$2 files file said
    shift 2
    files=$(mktemp -d)
    # The program may run as another user.
    chmod 777 "$files"
    # The two patterns differ because callgrind keeps one option for a pattern.
    said=$("$runner" env RIP_BENCH_COUNT=1 valgrind --tool=callgrind --callgrind-out-file="$files/counts" \
        --toggle-collect='*loops::counted*' --dump-after='*::counted*' "$@" 2>"$files/errors") ||
        fail "valgrind failed: $(<"$files/errors")"
    printf '%s\n' "$title"
    {
        printf '%s\n' "$said"
        # The files of the calls are counts.1, counts.2 and so on.
        for file in $(find "$files" -name 'counts.*' | sort -t . -k 3 -n); do
            sed -n 's/^totals: //p' "$file" | tail -n 1
        done
    } | awk '
        !/^[0-9]+$/ { names[++count] = $0; next }
        { calls[++called] = $0 }
        # The difference of the two lengths is 1000 rounds.
        function of(loop) { return (calls[2 * loop] - calls[2 * loop - 1]) / 1000 }
        END {
            if (called != 2 * count) { print "  callgrind did not count each loop: is its symbol there?"; exit 1 }
            for (loop = 1; loop <= count; loop++) if (names[loop] == "the loop alone") empty = of(loop)
            for (loop = 1; loop <= count; loop++)
                if (names[loop] != "the loop alone") printf "%-44s%10.2f\n", names[loop], of(loop) - empty
        }'
    rm -rf "$files"
}

# benchmark_program CARGO-ARGUMENTS...: builds a benchmark and prints where its program is.
benchmark_program() {
    local program
    program=$(cargo bench --quiet "$@" --no-run --message-format json |
        sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)
    [[ -x $program ]] || fail 'could not find the benchmark program in the output of cargo bench'
    printf '%s' "$program"
}
