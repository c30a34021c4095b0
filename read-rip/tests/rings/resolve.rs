//! The `symbols` layer on sound files: functions, lines, inlined callers, demangled names and statics.
//!
//! `gcc`, `g++` and `rustc` compile the fixtures here. Not tested here: debug information in other files
//! (`debug_files.rs`), which file is read for a module (`module_files.rs`), rings, and processes in containers.

use read_rip_files::Module;
use read_rip_symbols::{Frame, Options, Problem, Resolver, Whose};

use crate::support::compiled::{
    C_SOURCE, CPP_SOURCE, Fixture, RUST_SOURCE, address, bare, check_c, problems, symbol,
};

#[test]
fn an_address_in_a_position_independent_program_has_its_inlined_callers_innermost_first() {
    let fixture = Fixture::c("-g -fPIE -pie");
    check_c(&fixture, "prog");
}

#[test]
fn an_address_in_a_program_at_a_fixed_address_is_resolved() {
    let fixture = Fixture::c("-g -no-pie");
    assert!(address(&fixture.path("prog"), "c_mark") >= 0x40_0000, "not at a fixed address");
    check_c(&fixture, "prog");
}

#[test]
fn an_address_in_a_static_position_independent_program_is_resolved() {
    check_c(&Fixture::c("-g -static-pie"), "prog");
}

#[test]
fn an_address_in_a_shared_library_is_resolved() {
    let fixture = Fixture::new("fixture.c", C_SOURCE);
    fixture.run("gcc -g -O1 -fPIC -shared fixture.c -o libfixture.so");
    let mut module = fixture.module("libfixture.so");
    module.is_executable = false;
    // The given executable replaces the program, not its libraries.
    let options = Options { executable: Some("/nonexistent".into()), ..bare() };
    let mut resolver = Resolver::new(&[Module::default(), module], options);
    fixture.check_c_frames(&resolver.resolve(1, address(&fixture.path("libfixture.so"), "c_mark")));
    assert_eq!(problems(&resolver), []);
}

#[test]
fn all_versions_of_dwarf_are_read() {
    for version in 2..=5 {
        check_c(&Fixture::c(&format!("-gdwarf-{version}")), "prog");
    }
}

#[test]
fn a_pc_at_the_very_start_of_a_function_belongs_to_it_and_not_to_the_one_before() {
    let fixture = Fixture::c("-g");
    let frames = fixture.resolver("prog").resolve(0, address(&fixture.path("prog"), "outermost"));
    assert_eq!(frames.last().unwrap().function.as_deref(), Some("outermost"));
}

#[test]
fn a_symbol_table_alone_gives_functions_without_lines() {
    let fixture = Fixture::c("-g0");
    let mut resolver = fixture.resolver("prog");
    let frames = resolver.resolve(0, address(&fixture.path("prog"), "c_mark"));
    let expected = Frame { function: Some("outermost".into()), whose: Whose::User, ..Frame::default() };
    assert_eq!(frames, [expected]);
    assert_eq!(problems(&resolver), [Problem::NoDebugInfo { functions_from_symbols: true }]);
}

#[test]
fn all_functions_at_one_address_are_named() {
    let fixture = Fixture::new(
        "fixture.c",
        r#"
        __attribute__((noipa)) int opens(void) { return 1; }
        int closes(void) __attribute__((alias("opens")));
        __attribute__((noipa)) int differs(void) { return 2; }
        int main(void) { return opens() + closes() + differs(); }
        "#,
    );
    fixture.run("gcc -O1 -g -Wl,--build-id fixture.c -o prog");
    let mut resolver = fixture.resolver("prog");
    assert_eq!(resolver.namesakes(0, address(&fixture.path("prog"), "closes")), ["closes", "opens"]);
    assert_eq!(resolver.namesakes(0, address(&fixture.path("prog"), "differs")), ["differs"]);
    assert!(resolver.namesakes(0, 1).is_empty());
}

#[test]
fn exported_symbols_answer_when_the_full_table_was_stripped() {
    let fixture = Fixture::c("-g0 -rdynamic");
    let mark = address(&fixture.path("prog"), "c_mark");
    fixture.run("strip prog");
    let frames = fixture.resolver("prog").resolve(0, mark);
    assert_eq!(frames[0].function.as_deref(), Some("outermost"));
}

#[test]
fn a_fully_stripped_program_has_no_frames_and_says_why() {
    let fixture = Fixture::c("-g");
    let mark = address(&fixture.path("prog"), "c_mark");
    fixture.run("strip prog");
    let mut resolver = fixture.resolver("prog");
    assert_eq!(problems(&resolver), [], "no file is opened before an address is looked up");
    assert_eq!(resolver.resolve(0, mark), []);
    let [problem] = &resolver.problems()[..] else { panic!() };
    assert_eq!(problem.what, Problem::NoDebugInfo { functions_from_symbols: false });
    assert_eq!(problem.what.to_string(), "no debug information and no symbol table");
    assert!(problem.hint().contains("--debug-dir"));
}

#[test]
fn names_in_cpp_are_demangled_from_dwarf_and_from_symbols() {
    for flags in ["-g", "-g0", "-g1"] {
        let fixture = Fixture::new("fixture.cpp", CPP_SOURCE);
        fixture.run(&format!("g++ -O1 {flags} fixture.cpp -o prog"));
        let frames = fixture.resolver("prog").resolve(0, address(&fixture.path("prog"), "cpp_mark"));
        assert_eq!(frames[0].function.as_deref(), Some("cache::Table::lookup(int, char const*)"), "{flags}");
        assert_eq!(frames[0].line, (flags != "-g0").then(|| fixture.line("lookup")));
    }
}

#[test]
fn names_in_rust_are_demangled_without_their_hash_from_dwarf_and_from_symbols() {
    for mangling in ["", "-C symbol-mangling-version=v0"] {
        for debug in ["2", "line-tables-only", "0"] {
            let fixture = Fixture::new("fixture.rs", RUST_SOURCE);
            fixture.run(&format!("rustc -C opt-level=1 -C debuginfo={debug} {mangling} fixture.rs -o prog"));
            let frames = fixture.resolver("prog").resolve(0, address(&fixture.path("prog"), "rust_mark"));
            let name = frames[0].function.as_deref().unwrap();
            assert!(
                ["fixture::cache::Table::lookup", "<fixture::cache::Table>::lookup"].contains(&name),
                "{name}"
            );
            assert_eq!(frames[0].line, (debug != "0").then(|| fixture.line("lookup")));
        }
    }
}

#[test]
fn a_static_lock_has_the_name_of_its_symbol() {
    let fixture = Fixture::new("fixture.rs", RUST_SOURCE);
    fixture.run("rustc -g fixture.rs -o prog");
    let (address, len_bytes) = symbol(&fixture.path("prog"), "CACHE_LOCK");
    let mut resolver = fixture.resolver("prog");
    for offset in [0, len_bytes - 1] {
        let expected = Some(("fixture::cache::CACHE_LOCK".to_owned(), offset));
        assert_eq!(resolver.static_at(0, address + offset), expected);
    }
    let after = resolver.static_at(0, address + len_bytes);
    assert_ne!(after.map(|(name, _)| name).as_deref(), Some("fixture::cache::CACHE_LOCK"));
    let function = self::address(&fixture.path("prog"), "lookup");
    assert_eq!(resolver.static_at(0, function), None, "a function is not a static");
}

#[test]
fn a_module_that_does_not_exist_has_no_frames() {
    let mut resolver = Resolver::new(&[], bare());
    assert_eq!(resolver.resolve(3, 0), []);
    assert_eq!(resolver.static_at(3, 0), None);
}

#[test]
fn the_md5_of_a_source_file_is_found_where_the_line_table_has_it() {
    // gcc writes no MD5. Its assembly gets one, as clang's has it.
    let fixture = Fixture::c("-gdwarf-5");
    let md5 = |module: &str| {
        let mut resolver = fixture.resolver(module);
        let address = address(&fixture.path(module), "c_mark");
        assert!(resolver.source_md5(0, address, "fixture.c").is_none(), "no file was opened yet");
        assert!(!resolver.resolve(0, address).is_empty());
        let of = |file: &str| resolver.source_md5(0, address, file);
        (of("fixture.c"), of("other.c"))
    };
    assert_eq!(md5("prog"), (None, None));
    fixture.run("gcc -gdwarf-5 -O1 -S fixture.c -o fixture.s");
    let assembly = std::fs::read_to_string(fixture.path("fixture.s")).unwrap();
    let sum = "0x11223344556677888877665544332211";
    let is_file =
        |line: &&str| line.trim_start().starts_with(".file") && !line.trim_start().starts_with(".file\t\"");
    let lines: Vec<String> = assembly
        .lines()
        .map(|line| if is_file(&line) { format!("{line} md5 {sum}") } else { line.to_owned() })
        .collect();
    std::fs::write(fixture.path("with.s"), lines.join("\n") + "\n").unwrap();
    fixture.run("gcc with.s -o with");
    // The same in both directions: versions of the assembler differ in the order of the bytes.
    let half: [u8; 8] = std::array::from_fn(|index| (index as u8 + 1) * 0x11);
    let bytes: [u8; 16] = std::array::from_fn(|index| half[index.min(15 - index)]);
    assert_eq!(md5("with"), (Some(bytes), None));
}
