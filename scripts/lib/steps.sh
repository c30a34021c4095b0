# The steps of scripts/check and scripts/test: runs them, shows what fails, adds up the results of tests. Sourced.
# shellcheck shell=bash

tests_passed=0
tests_failed=0
steps_failed=0

# step NAME COMMAND...: shows the output of the command only if the command fails. Adds up its lines `test result:`; a
# failure without such a line, for example a compile error, counts as one.
step() {
    local name=$1 log status=0 seconds=$SECONDS passed failed groups
    shift
    printf '%-28s' "$name"
    log=$(mktemp)
    "$@" >"$log" 2>&1 </dev/null || status=$?
    read -r passed failed < <(awk '
        /^test result: / {
            for (i = 2; i <= NF; i++) {
                if ($i ~ /^passed;?$/) passed += $(i - 1)
                if ($i ~ /^failed;?$/) failed += $(i - 1)
            }
        }
        END { print passed + 0, failed + 0 }' "$log")
    if [[ " $* " == *' test '* || $1 == at_once ]] && ((status == 0 && passed == 0)); then
        printf 'no test ran: a filter of the step matches nothing\n' >>"$log"
        status=1
    fi
    if ((status != 0 && failed == 0)); then
        failed=1
    fi
    tests_passed=$((tests_passed + passed))
    tests_failed=$((tests_failed + failed))
    if ((status != 0 || failed != 0)); then
        steps_failed=$((steps_failed + 1))
        printf 'FAILED (status %d, %d s)\n' "$status" $((SECONDS - seconds))
        sed 's/^/    /' "$log"
    elif ((passed > 0)); then
        groups=$(sed -n 's/^group //p' "$log" | paste -sd ';')
        printf 'ok, %d passed (%d s%s)\n' "$passed" $((SECONDS - seconds)) "${groups:+: ${groups//;/, }}"
    else
        printf 'ok (%d s)\n' $((SECONDS - seconds))
    fi
    rm -f "$log"
}

# at_once FUNCTION...: runs them at the same time, and shows what each has written, one after the other, and its time:
# whoever moves tests between groups wants these to be equal.
at_once() {
    local logs each status=0 pids=() index
    logs=$(mktemp -d)
    for each; do
        in_group "$each" >"$logs/$each" 2>&1 &
        pids+=($!)
    done
    for index in "${!pids[@]}"; do
        wait "${pids[$index]}" || status=1
    done
    for each; do
        cat "$logs/$each"
    done
    rm -rf "$logs"
    return $status
}

# in_group FUNCTION
in_group() {
    local status=0 seconds=$SECONDS
    "$1" || status=$?
    printf 'group %s %d s\n' "${1%%_*}" $((SECONDS - seconds))
    return $status
}

# skip NAME WHY
skip() {
    printf '%-28sskipped: %s\n' "$1" "$2"
}

formatting_steps() {
    local workspace
    if cargo fmt --version >/dev/null 2>&1; then
        step 'formatting' cargo fmt --all --check -- --color never
        # Workspaces of their own.
        for workspace in tests/fuzz examples/patched tests/build/patched/one librip/parking_lot_0_13 \
            librip/tokio/benches/http librip/tokio/servers librip/tokio/watched tests/build/awaits; do
            step "formatting of $(basename "$workspace")" \
                cargo fmt --manifest-path "$workspace/Cargo.toml" --check -- --color never
        done
    else
        skip 'formatting' 'rustfmt is missing; rustup component add rustfmt'
    fi
}

has_clippy() {
    cargo clippy --version >/dev/null 2>&1 && type -P clippy-driver >/dev/null && return
    skip 'clippy' 'clippy is missing; rustup component add clippy'
    return 1
}

clippy_step() {
    ! has_clippy || step 'clippy' cargo clippy --workspace --all-targets --quiet -- -D warnings
}

# `cargo clippy` compiles everything once more, up to where code is generated. Clippy's compiler generates code too, so
# it builds here. All builds of the workspace need it then: with another compiler, cargo builds again.
build_step() {
    local name='building'
    if has_clippy; then
        export RUSTC_WORKSPACE_WRAPPER=clippy-driver
        name='building, with clippy'
    fi
    # Tests run programs of other packages, above all the reader. `cargo test` builds those of the tested packages only.
    # Nothing here runs a bench: `scripts/check` and `scripts/bench` compile them.
    step "$name" without_warnings cargo build --workspace --lib --bins --tests --examples --quiet
}

# without_warnings COMMAND...: fails also if the command warns.
without_warnings() {
    local log status=0
    log=$(mktemp)
    CARGO_TERM_COLOR=never "$@" >"$log" 2>&1 || status=$?
    cat "$log"
    ! grep -q '^warning' "$log" || status=1
    rm -f "$log"
    return $status
}

# documentation_step [PACKAGE...]: of all packages, or of these.
documentation_step() {
    local packages=(--workspace)
    (($# == 0)) || packages=("${@/#/--package=}")
    step 'documentation' env RUSTDOCFLAGS="${RUSTDOCFLAGS:-} -D warnings" \
        cargo doc "${packages[@]}" --no-deps --quiet
}

# Miri, for what it can run: no system calls, no assembly. The queue of free slots under load takes Miri minutes.
miri_step() {
    local miri
    if cargo miri --version >/dev/null 2>&1; then
        miri=(cargo miri)
    elif cargo +nightly miri --version >/dev/null 2>&1; then
        miri=(cargo +nightly miri)
    else
        skip 'miri' 'no toolchain has it; rustup toolchain install nightly --component miri,rust-src'
        return
    fi
    step 'miri' env CARGO_TARGET_DIR="$(target_dir)/miri" "${miri[@]}" test --quiet -p librip --lib -- \
        ring::exit_queue ring::geometry start::config --skip under_load
    step 'miri, format' env CARGO_TARGET_DIR="$(target_dir)/miri" "${miri[@]}" test --quiet -p librip-format
}

# The last line, and the exit status.
finish() {
    printf '%d passed, %d failed\n' "$tests_passed" "$tests_failed"
    ((steps_failed == 0)) || exit 1
    exit 0
}
