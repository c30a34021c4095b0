# What the scripts that make packages share; sourced after common.sh.
# shellcheck shell=bash

# The version of all crates but the stand-ins.
version() {
    sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' "$root/Cargo.toml"
}

# Where packages are put.
packages_dir() {
    printf '%s/package\n' "$(cd "$root" && target_dir)"
}

# Builds read-rip without dependencies on libraries, and prints its path.
static_reader() {
    local triple target
    triple=$(uname -m)-unknown-linux-musl
    [[ -d $(rustc --print sysroot)/lib/rustlib/$triple ]] ||
        fail "Rust's library for $triple is missing; rustup target add $triple"
    target=$(target_dir)/static
    quietly env CARGO_PROFILE_RELEASE_STRIP=symbols \
        cargo build --locked --release -p read-rip --target "$triple" --target-dir "$target" ||
        fail 'the build failed; its output is above'
    printf '%s/%s/release/read-rip\n' "$target" "$triple"
}

# in_empty_root PROGRAM ARGUMENTS...: runs a static program where there is no other file, and prints what it says.
in_empty_root() {
    local program=$1 empty status=0
    shift
    empty=$(mktemp -d)
    cp "$program" "$empty/program"
    if unshare --map-root-user --root="$empty" /program --version >/dev/null 2>&1; then
        unshare --map-root-user --root="$empty" /program "$@" || status=$?
    elif ((EUID == 0)); then
        chroot "$empty" /program "$@" || status=$?
    else
        "$empty/program" "$@" || status=$?
    fi
    rm -rf "$empty"
    return $status
}

# glibc_of FILE...: the newest version of glibc that these files ask for.
glibc_of() {
    objdump -T "$@" | sed -n 's/.*GLIBC_\([0-9.]*\).*/\1/p' | sort -V | tail -1
}
