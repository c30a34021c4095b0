//! Gives the shared library its name, says where the header is, and compiles the C part of the benchmark.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // What programs ask the loader for. It changes with the interface between header and library.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,librip.so.1");
    let directory = variable("CARGO_MANIFEST_DIR");
    println!("cargo::metadata=include={directory}");
    if std::env::var_os("CARGO_FEATURE_BENCH").is_some() {
        compile_benchmark(Path::new(&directory));
    }
}

fn compile_benchmark(directory: &Path) {
    let source = directory.join("benches/marks.c");
    println!("cargo::rerun-if-changed={}", source.display());
    println!("cargo::rerun-if-changed={}", directory.join("librip.h").display());
    println!("cargo::rerun-if-env-changed=CC");
    let object = Path::new(&variable("OUT_DIR")).join("marks.o");
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = Command::new(&compiler);
    command
        .args(["-O2", "-fPIE", "-Wall", "-Wextra", "-c", "-I"])
        .arg(directory)
        .arg(&source)
        .arg("-o")
        .arg(&object);
    match command.status() {
        Ok(status) if status.success() => {}
        failed => {
            println!("cargo::error={} failed: {failed:?}", compiler.display());
            return;
        }
    }
    println!("cargo::rustc-link-arg-benches={}", object.display());
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}
