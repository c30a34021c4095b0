# What the project's bash scripts share; sourced, not run. Brings them to the root of the repository.
# shellcheck shell=bash

set -euo pipefail

root=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"

# Prints the header comment of a script: its first comment block, without the leading signs.
usage() {
    sed -n '2,/^[^#]/{/^#/!d;s/^# \{0,1\}//;p}' "$1"
}

# Ends with a plain message: what is wrong, and what to do.
fail() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 2
}

# need PROGRAM WHERE-FROM: ends unless the program is there.
need() {
    command -v "$1" >/dev/null || fail "$1 is missing; $2"
}

need_cargo() {
    # rustup puts it there, and a shell that has not been started anew does not look.
    if ! command -v cargo >/dev/null && [[ -x ${HOME:-/nonexistent}/.cargo/bin/cargo ]]; then
        PATH=$HOME/.cargo/bin:$PATH
    fi
    need cargo 'see https://rustup.rs'
    command -v cc >/dev/null || command -v gcc >/dev/null || fail 'no C compiler to link with; apt install gcc'
}

# Where cargo puts what it builds, whatever the environment and the configuration say.
target_dir() {
    cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/'
}

# quietly COMMAND...: its output is shown only if it fails.
quietly() {
    local output status=0
    output=$("$@" 2>&1) || status=$?
    ((status == 0)) || printf '%s\n' "$output" >&2
    return "$status"
}
