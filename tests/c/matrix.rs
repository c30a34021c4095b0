//! Every compiler, standard, optimisation level and code model: no warning, and the marks are exact.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use librip_test_kit::oracle::Ring;
use librip_test_kit::tool::can;
use librip_test_kit::victim::Plan;

use crate::{
    CLANG, CLANGPP, Compiler, GCC, GPP, STRICT, build, build_with, directory, fixture, installed,
    is_installed, main_slot, package, prefix, repository, run, tool,
};

const ALL: [Compiler; 4] = [GCC, GPP, CLANG, CLANGPP];

/// Compiles without linking.
fn compile(compiler: Compiler, source: &str, name: &str, flags: &[&str]) {
    let mut command = Command::new(compiler.name);
    if compiler.is_cpp {
        command.args(["-x", "c++"]);
    }
    command.arg(fixture(source)).args(STRICT).args(flags).args(package("Cflags")).arg("-c").arg("-o");
    tool(command.arg(directory().join(name)));
}

#[test]
#[ignore = "compiles for long: scripts/test-builds"]
fn the_header_compiles_without_a_warning_in_all_standards_and_levels() {
    for compiler in installed(&ALL) {
        for standard in compiler.standards {
            for (level, more) in [("-O0", "-fPIC"), ("-O1", "-fPIE"), ("-O2", "-pedantic"), ("-O3", "-flto")]
            {
                let flags = [&format!("-std={standard}")[..], level, more];
                let name = format!("warnings-{}.o", compiler.name);
                compile(compiler, "marks.c", &name, &flags);
            }
            let flags = [&format!("-std={standard}")[..], "-O2"];
            let name = format!("warnings-{}.o", compiler.name);
            compile(compiler, if compiler.is_cpp { "language.cc" } else { "locks.c" }, &name, &flags);
        }
    }
}

#[test]
fn the_header_compiles_without_rarely_enabled_warnings_and_in_any_visibility() {
    let all =
        ["-O2", "-pedantic", "-Wcast-qual", "-Wcast-align", "-Wconversion", "-Wsign-conversion", "-Wshadow"];
    for compiler in installed(&ALL) {
        let more: &[&str] = match compiler.name {
            "gcc" => &["-Wstrict-prototypes", "-Wmissing-prototypes", "-Wundef", "-Wredundant-decls"],
            "clang" => &["-Wstrict-prototypes", "-Wmissing-variable-declarations", "-Wundef"],
            "g++" => &["-Wold-style-cast", "-Wuseless-cast", "-Wzero-as-null-pointer-constant"],
            _ => &["-Wold-style-cast", "-Wmissing-variable-declarations", "-Wzero-as-null-pointer-constant"],
        };
        for disabled in [&["-DRIP_DISABLE"][..], &[]] {
            let flags = [&all[..], more, disabled].concat();
            let program = build(compiler, &["strict.c"], &format!("strict-{}", compiler.name), &flags);
            if disabled.is_empty() {
                run(&program, &[]);
            }
        }
    }
}

#[test]
fn hooks_of_instrumented_functions_may_mark() {
    for compiler in installed(&[GCC, CLANG]) {
        for level in ["-O0", "-O2"] {
            let name = format!("hooks-{}{level}", compiler.name);
            let ring =
                run(&build(compiler, &["hooks.c"], &name, &[level, "-finstrument-functions"]), &[]).ring();
            assert_eq!(ring.labels(main_slot(&ring)), ["enters", "works", "leaves"], "{name}");
        }
    }
}

/// Checks what must hold for every build of `marks.c`.
fn check(program: &Path) -> Ring {
    let remains = run(program, &[]);
    let ring = remains.ring();
    assert_eq!((ring.metadata_refused, ring.refused_full, ring.without_exit), (0, 0, 0));
    // `rip_exit` released the first slot. It is not reused while there are fresh slots.
    assert_eq!(ring.slots.len(), 2, "{program:?}");
    assert_eq!(ring.labels(&ring.slots[0]), ["leaf"]);
    let labels = ring.labels(&ring.slots[1]);
    let expected = [
        "floating",
        "arm",
        "arm",
        "inlined",
        "inlined",
        "in a loop",
        "in a loop",
        "in a loop",
        "quoted \"%s\" {a|b} \\ 100%",
        "same line",
        "",
        "",
    ];
    assert_eq!(labels, expected, "{program:?}");
    let events = ring.slots[1].events().events;
    let pcs = |label: &str| {
        let of_label = events.iter().filter(|event| ring.label(event.pc) == label);
        of_label.map(|event| event.pc).collect::<BTreeSet<u64>>()
    };
    assert_eq!(pcs("arm").len(), 2, "two arms on one line have two addresses: {program:?}");
    assert_eq!(u64::from_str_radix(remains.stdout.trim(), 16).unwrap(), events[10].pc, "rip_snap()'s value");
    let source = std::fs::read_to_string(fixture("marks.c")).unwrap();
    let lines: Vec<&str> = source.lines().collect();
    for event in &events {
        let site = ring.site_of(event.pc).unwrap();
        assert!(site.file.ends_with("fixtures/marks.c"), "{site:?}");
        assert!(lines[site.line as usize - 1].contains("RIP_"), "{site:?}");
        assert_eq!((site.column, &site.module_path[..]), (0, ""));
    }
    assert_eq!(ring.site_of(events[11].pc).unwrap().kind, 1, "progress");
    let distinct: BTreeSet<(usize, u64)> = ring.sites.iter().map(|site| (site.module, site.pc)).collect();
    assert_eq!(distinct.len(), ring.sites.len(), "no two sites share an address");
    ring
}

#[test]
#[ignore = "compiles for long: scripts/test-builds"]
fn marks_are_exact_at_every_level_and_in_every_model() {
    let variants: [&[&str]; 8] = [
        &["-O0"],
        &["-O1"],
        &["-O2"],
        &["-O3", "-fPIC"],
        &["-Os", "-fno-pic", "-no-pie"],
        &["-O2", "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections"],
        &["-O2", "-fno-plt", "-Wl,-z,now"],
        &["-O2", "-Wl,-s"],
    ];
    for compiler in installed(&ALL) {
        for (number, flags) in variants.iter().enumerate() {
            check(&build(compiler, &["marks.c"], &format!("marks-{}-{number}", compiler.name), flags));
        }
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn marks_are_exact_with_intel_assembly_syntax() {
    for compiler in installed(&ALL) {
        for level in ["-O0", "-O2"] {
            let name = format!("marks-{}-intel", compiler.name);
            check(&build(compiler, &["marks.c"], &name, &["-masm=intel", level]));
        }
    }
}

#[test]
fn marks_are_exact_with_link_time_optimisation() {
    for compiler in installed(&ALL) {
        let is_clang = compiler.name.starts_with("clang");
        if is_clang && !is_installed("ld.lld") {
            eprintln!("SKIPPED {} -flto: lld is not installed", compiler.name);
            continue;
        }
        let linker: &[&str] = if is_clang { &["-fuse-ld=lld"] } else { &[] };
        let name = format!("marks-{}-lto", compiler.name);
        check(&build(compiler, &["marks.c"], &name, &[&["-O2", "-flto"][..], linker].concat()));
    }
}

#[test]
fn marks_are_exact_with_the_static_library_and_in_static_programs() {
    let archive = [prefix().join("lib/librip.a").to_str().unwrap().to_owned()];
    let libraries = [&archive[..], &package("Libs.private")].concat();
    for compiler in installed(&[GCC, CLANG]) {
        for (name, flags) in [
            ("archive", &[][..]),
            ("static", &["-static"]),
            ("static-pie", &["-static-pie"]),
            ("lto", &["-flto"]),
        ] {
            let name = format!("marks-{}-{name}", compiler.name);
            let ring = check(&build_with(
                compiler,
                &["marks.c"],
                &name,
                &[&["-O2"][..], flags].concat(),
                &libraries,
            ));
            assert!(ring.modules.iter().all(|module| !module.path.contains("librip")), "{:?}", ring.modules);
        }
    }
}

/// Another library in Rust, which is linked into the same program or loaded by it.
fn another_in_rust() -> PathBuf {
    let source = directory().join("another.rs");
    let text = "#[unsafe(no_mangle)] pub extern \"C\" fn another() -> bool { \
                std::panic::catch_unwind(|| std::panic::resume_unwind(Box::new(1))).is_err() }";
    std::fs::write(&source, text).unwrap();
    let out = directory().join("libanother.a");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    tool(Command::new(rustc).args(["-O", "--crate-type", "staticlib"]).arg(&source).arg("-o").arg(&out));
    out
}

#[test]
fn the_static_library_can_be_linked_with_another_one_in_rust() {
    let source = directory().join("with_another.c");
    let text = "#include <librip.h>\n_Bool another(void);\n\
                int main(void) { if (rip_start()) return 1; RIP_SNAP(); return another() ? 0 : 2; }\n";
    std::fs::write(&source, text).unwrap();
    let another = another_in_rust();
    let archive = prefix().join("lib/librip.a");
    for flags in [&["-O2"][..], &["-static"], &["-static-pie"], &["-no-pie"]] {
        let libraries = [&archive, &another].map(|path| path.to_str().unwrap().to_owned());
        let libraries = [&libraries[..], &package("Libs.private")].concat();
        let program = build_with(GCC, &[source.to_str().unwrap()], "with_another", flags, &libraries);
        Plan::new(&program, &[]).run().expect_success();
    }
    let names = tool(Command::new("nm").args(["-g", "--defined-only"]).arg(archive));
    let is_rusts = |line: &&str| line.contains(" _RNv") || line.ends_with(" rust_eh_personality");
    assert_eq!(names.lines().find(is_rusts), None);
}

#[test]
fn sanitizers_for_races_and_for_arithmetic_report_nothing() {
    let variants = [
        (GCC, &["-fsanitize=thread"][..]),
        (CLANG, &["-fsanitize=thread"]),
        (CLANG, &["-fsanitize=integer", "-fno-sanitize-recover=all"]),
    ];
    for (compiler, flags) in variants {
        if !can(compiler.name, flags, directory()) {
            continue;
        }
        let name = format!("reuse-{}{}", compiler.name, flags[0]);
        let program = build(compiler, &["reuse.c"], &name, &[&["-O1", "-g"][..], flags].concat());
        // Three slots: one for the main thread, and two that the other threads reuse.
        let remains = Plan::new(&program, &["60"]).env("RIP_SLOTS", "3").run();
        assert_eq!((remains.status.code(), &remains.stderr[..]), (Some(3), ""), "{name}");
    }
}

#[test]
#[ignore = "compiles for long: scripts/test-builds"]
fn templates_inline_functions_exceptions_and_static_initialisers_may_mark() {
    for compiler in installed(&[GPP, CLANGPP]) {
        let variants: [&[&str]; 5] = [
            &["-O0"],
            &["-O2"],
            &["-O3", "-fPIC"],
            &["-O2", "-ffunction-sections", "-Wl,--gc-sections"],
            &["-O0", "-fno-inline", "-fno-pic", "-no-pie"],
        ];
        for (number, flags) in variants.iter().enumerate() {
            let name = format!("language-{}-{number}", compiler.name);
            let ring = run(&build(compiler, &["language.cc", "part.cc"], &name, flags), &[]).ring();
            assert_eq!(ring.metadata_refused, 0);
            let main = [
                "inline", "template", "inline", "template", "template", "throws", "unwound", "caught",
                "lambda",
            ];
            assert_eq!(ring.labels(main_slot(&ring)), main, "{name}");
            // The destructor runs last: it belongs to the C++ library's own destructors of thread-locals.
            let thread = ring.labels(ring.slot_named("thread"));
            assert_eq!(thread, ["in a thread", "thread-local destructor"], "{name}");
            // Copies that the linker dropped leave no note: each site is within its module's code.
            let pcs: BTreeSet<(usize, u64)> = ring.sites.iter().map(|site| (site.module, site.pc)).collect();
            assert_eq!(pcs.len(), ring.sites.len(), "{name}: {:?}", ring.sites);
            if *flags == ["-O0"] {
                let inline = ring.sites.iter().filter(|site| site.label == "inline");
                assert_eq!(inline.count(), 1, "one inline function in two files");
            }
        }
    }
}

#[test]
fn a_program_that_includes_the_header_and_marks_nothing_needs_no_library() {
    let source = directory().join("nothing.c");
    std::fs::write(&source, "#include <librip.h>\nint main(void) { return 3; }\n").unwrap();
    for compiler in installed(&[GCC, CLANG]) {
        for level in ["-O0", "-O2"] {
            let out = directory().join(format!("nothing-{}", compiler.name));
            let mut command = Command::new(compiler.name);
            tool(command.arg(&source).args(STRICT).arg(level).args(package("Cflags")).arg("-o").arg(&out));
            assert_eq!(Command::new(out).status().unwrap().code(), Some(3));
        }
    }
}

#[test]
fn installing_fails_if_it_would_do_something_else() {
    let install = || {
        let mut command = Command::new(repository().join("scripts/install-c"));
        command.env("CARGO_TARGET_DIR", directory().join("target")).env_remove("DESTDIR");
        command
    };
    for argument in ["uninstall", "--prefix=/x"] {
        let output = install().arg(argument).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
    for wrong in ["relative", "/with space", "/with&", "/with|"] {
        let output = install().env("PREFIX", wrong).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
    assert_eq!(install().arg("--help").output().unwrap().status.code(), Some(0));
}

#[test]
fn with_rip_disable_no_mark_is_compiled_and_no_library_is_needed() {
    for compiler in installed(&ALL) {
        for standard in [compiler.standards[0], compiler.standards[compiler.standards.len() - 1]] {
            let flags = ["-O2", &format!("-std={standard}")];
            let name = format!("disabled-{}", compiler.name);
            let program = build_with(compiler, &["disabled.c"], &name, &flags, &[]);
            assert_eq!(Command::new(&program).status().unwrap().code(), Some(3));
            let notes = tool(Command::new("readelf").arg("-n").arg(&program));
            assert!(!notes.contains("librip"), "{notes}");
            let symbols = tool(Command::new("nm").arg(&program));
            assert!(!symbols.contains("RARE") && !symbols.contains("UNUSED"), "{symbols}");
        }
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn with_rip_disable_the_header_compiles_for_processors_that_librip_does_not_know() {
    let directory = directory().join("m32");
    std::fs::create_dir_all(directory.join("sys")).unwrap();
    // The 32-bit headers of the C library may be missing.
    std::fs::write(directory.join("sys/types.h"), "typedef int pid_t;\n").unwrap();
    let source = directory.join("m32.c");
    std::fs::write(&source, "#include <librip.h>\nint f(void);\nint f(void) { return rip_start(); }\n")
        .unwrap();
    for compiler in installed(&[GCC, CLANG]) {
        let mut command = Command::new(compiler.name);
        command.args(["-m32", "-ffreestanding", "-fsyntax-only", "-DRIP_DISABLE", "-I"]).arg(&directory);
        tool(command.args(STRICT).args(package("Cflags")).arg(&source));
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_mark_is_a_handful_of_instructions_without_a_call_a_lock_prefix_or_a_fence() {
    let source = directory().join("assembly.c");
    std::fs::write(&source, "#include <librip.h>\nvoid mark(void);\nvoid mark(void) { RIP_SNAP(); }\n")
        .unwrap();
    for compiler in installed(&[GCC, CLANG]) {
        for pic in ["-fPIC", "-fPIE", "-fno-pic"] {
            let out = directory().join("assembly.s");
            let mut command = Command::new(compiler.name);
            command.args(["-O2", "-fno-asynchronous-unwind-tables", "-S", pic]).arg(&source);
            tool(command.args(package("Cflags")).arg("-o").arg(&out));
            let text = std::fs::read_to_string(&out).unwrap();
            // Leave out what follows the function, and the directives of the note.
            let lines = text.lines().map(str::trim).skip_while(|line| !line.starts_with("mark:"));
            let mut body = Vec::new();
            let mut in_note = false;
            for line in lines.skip(1) {
                in_note |= line.starts_with(".pushsection");
                let is_instruction = !in_note
                    && !line.is_empty()
                    && !line.starts_with(['.', '#', '/'])
                    && !line.contains(":\t")
                    && !line.ends_with(':');
                if is_instruction {
                    body.push(line);
                }
                in_note &= line != ".popsection";
                if line.starts_with("ret") {
                    break;
                }
            }
            let text = body.join("\n");
            // clang 14 copies the sequence once more.
            let most = if compiler.name == CLANG.name { 19 } else { 18 };
            assert!(body.len() <= most, "{} {pic}: {} instructions\n{text}", compiler.name, body.len());
            for word in ["call", "lock", "fence", "push"] {
                assert!(!text.contains(word), "{} {pic}: {word}\n{text}", compiler.name);
            }
            assert!(text.contains("addq") && body.last().unwrap().starts_with("ret"), "{text}");
        }
    }
}
