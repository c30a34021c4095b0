# Runs a benchmark beside a session of LTTng-UST in snapshot mode. The session daemon has a home of its own in a
# temporary directory. Sourced by scripts/bench.
# shellcheck shell=bash

# Prints what is missing, if anything is.
has_lttng() {
    command -v lttng >/dev/null && command -v lttng-sessiond >/dev/null &&
        echo '#include <lttng/tracepoint.h>' | cc -E - >/dev/null 2>&1 && return
    printf 'LTTng-UST: skipped: it is not installed; '
    printf 'apt install --no-install-recommends lttng-tools liblttng-ust-dev\n'
    return 1
}

# beside_lttng COMMAND...: runs the benchmark lttng.rs by a command, to which it adds the program. For root, the daemon
# would use the system's directories, so daemon and program run as the user nobody then.
beside_lttng() (
    home=$(mktemp -d)
    as=()
    ((EUID != 0)) || as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    as+=(env "HOME=$home" "LTTNG_HOME=$home")
    # shellcheck disable=SC2012 # the names are LTTng's
    before=$(ls /dev/shm/lttng-ust-wait-* 2>/dev/null || true)
    trap 'end_lttng' EXIT
    cp "$(benchmark_program -p librip --bench lttng)" "$home/program"
    quietly cc -O2 -shared -fPIC -I librip/benches/lttng librip/benches/lttng/tracepoint.c -o "$home/tracepoint.so" \
        -llttng-ust || fail 'the build failed; its output is above'
    ((EUID != 0)) || chown -R 65534:65534 "$home"
    # The daemon keeps its standard output open, so that must not be a pipe to this shell.
    "${as[@]}" lttng-sessiond --no-kernel --background --pidfile "$home/pid" >"$home/said" 2>&1 </dev/null &&
        quietly "${as[@]}" lttng --no-sessiond create bench --snapshot --output="$home/snapshots" &&
        quietly "${as[@]}" lttng --no-sessiond enable-event --userspace librip_bench:moved &&
        quietly "${as[@]}" lttng --no-sessiond start || {
        cat "$home/said" >&2
        printf 'LTTng-UST: skipped: its session daemon does not run here; its output is above\n'
        return 0
    }
    "${as[@]}" RIP_LTTNG="$home/tracepoint.so" "$@" "$home/program"
)

# Ends the daemon, and removes what it and the program have left.
end_lttng() {
    local pid left
    if pid=$(cat "$home/pid" 2>/dev/null); then
        kill "$pid" 2>/dev/null || true
        # It ends its consumer first.
        for _ in {1..100}; do
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.1
        done
    fi
    for left in /dev/shm/lttng-ust-wait-*; do
        [[ $before == *"$left"* ]] || rm -f "$left"
    done
    rm -rf "$home"
}
