# Real files for the mutator of scripts/fuzz; sourced, not run. Of programs that are stuck, and of one that is done:
# rings, saved copies, recordings, and where the system writes them here, cores.
# shellcheck shell=bash

# mutation_seeds FOLDER PROGRAMS: fills FOLDER. PROGRAMS is where read-rip and the examples are.
mutation_seeds() {
    local seeds=$1 programs=$2 place
    place=$(mktemp -d "$seeds.XXXXXX")
    mkdir -p "$seeds"
    export RIP_SLOTS=64 RIP_WORDS=256 RIP_RING=$place
    RIP_CLOCK=all _seeds_of_stuck deadlock
    RIP_CLOCK=ticks _seeds_of_stuck futurelock
    RIP_CLOCK=all _seeds_of_stuck server --threads 20
    "$programs/spikes" 1 >/dev/null
    mv "$place"/rip.spikes.* "$seeds/spikes.ring"
    rm -rf "$place"
    unset RIP_SLOTS RIP_WORDS RIP_RING
}

# A program that is stuck: read while it lives, and ended with a core if possible.
_seeds_of_stuck() {
    local name=$1 pid ring pattern
    (ulimit -c unlimited && cd "$place" && exec "$programs/$@" >/dev/null 2>&1) &
    pid=$!
    until ring=$(compgen -G "$place/rip.$name.*") &&
        [[ $("$programs/read-rip" check "$ring" 2>&1) == *'1 finding'* ]]; do
        kill -0 "$pid" 2>/dev/null || fail "$name has ended before it was stuck"
        sleep 0.1
    done
    quietly "$programs/read-rip" save -o "$seeds/$name.saved.gz" "$ring" || fail "$name cannot be saved"
    quietly "$programs/read-rip" record --for 300ms -o "$seeds/$name.recording" "$ring" ||
        fail "$name cannot be recorded"
    kill -ABRT "$pid"
    wait "$pid" 2>/dev/null || true
    mv "$ring" "$seeds/$name.ring"
    pattern=$(cat /proc/sys/kernel/core_pattern)
    if ! mv "$place"/core* "$seeds/$name.core" 2>/dev/null; then
        printf '    skipped: cores of %s, because core_pattern is %s\n' "$name" "$pattern"
    fi
}
