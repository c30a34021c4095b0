# Steps of scripts/check and scripts/test: runs them, shows what fails, adds up what tests say. Sourced.
# shellcheck shell=bash

tests_passed=0
tests_failed=0
steps_failed=0

# step NAME COMMAND...: its output is shown only if it fails. What it says in lines `test result:` is added up;
# a failure without any such line, one of compiling for example, counts as one.
step() {
    local name=$1 log status=0 seconds=$SECONDS passed failed
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
        printf 'ok, %d passed (%d s)\n' "$passed" $((SECONDS - seconds))
    else
        printf 'ok (%d s)\n' $((SECONDS - seconds))
    fi
    rm -f "$log"
}

# skip NAME WHY
skip() {
    printf '%-28sskipped: %s\n' "$1" "$2"
}

check_steps() {
    if cargo fmt --version >/dev/null 2>&1; then
        step 'formatting' cargo fmt --all --check -- --color never
    else
        skip 'formatting' 'rustfmt is missing; rustup component add rustfmt'
    fi
    if cargo clippy --version >/dev/null 2>&1; then
        step 'clippy' cargo clippy --workspace --all-targets --quiet -- -D warnings
    else
        skip 'clippy' 'clippy is missing; rustup component add clippy'
    fi
    step 'documentation' env RUSTDOCFLAGS="${RUSTDOCFLAGS:-} -D warnings" \
        cargo doc --workspace --no-deps --quiet
}

# The last line, and the exit status.
finish() {
    printf '%d passed, %d failed\n' "$tests_passed" "$tests_failed"
    ((steps_failed == 0)) || exit 1
    exit 0
}
