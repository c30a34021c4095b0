//! The `symbols` layer when debug information is compressed, or in another file: separate, split or packed.
//!
//! `gcc` and `rustc` compile the fixtures here, and binutils take them apart. Not tested here: which file is read for a
//! module (`module_files.rs`).

use std::fs;
use std::path::Path;

use object::{Object, ObjectSection};
use read_rip_symbols::{Options, Problem, Resolver};

use crate::support::compiled::{Fixture, RUST_SOURCE, address, bare, build_id_name, check_c, problems};

/// A stripped program, and next to it a file with its debug information.
fn separated() -> (Fixture, u64) {
    let fixture = Fixture::c("-g");
    let mark = address(&fixture.path("prog"), "c_mark");
    fixture.run("objcopy --only-keep-debug prog prog.debug");
    fixture.run("strip prog");
    (fixture, mark)
}

#[test]
fn a_separate_debug_file_is_found_by_build_id() {
    let (fixture, mark) = separated();
    let module = fixture.module("prog");
    let debug_file = fixture.path("debug/.build-id").join(build_id_name(&module.build_id));
    fs::create_dir_all(debug_file.parent().unwrap()).unwrap();
    fs::rename(fixture.path("prog.debug"), debug_file).unwrap();
    let options = Options { debug_dirs: vec!["/nonexistent".into(), fixture.path("debug")], ..bare() };
    let mut resolver = Resolver::new(&[module], options.clone());
    fixture.check_c_frames(&resolver.resolve(0, mark));
    assert_eq!(problems(&resolver), []);

    // The program itself is not needed: the build id in the ring is enough.
    let module = fixture.module("prog");
    fs::remove_file(fixture.path("prog")).unwrap();
    let mut resolver = Resolver::new(&[module], options);
    fixture.check_c_frames(&resolver.resolve(0, mark));
    assert_eq!(problems(&resolver), []);
}

#[test]
fn a_separate_debug_file_of_another_build_is_refused() {
    let (fixture, mark) = separated();
    let other = Fixture::c("-g -O0");
    let module = fixture.module("prog");
    let debug_file = fixture.path("debug/.build-id").join(build_id_name(&module.build_id));
    fs::create_dir_all(debug_file.parent().unwrap()).unwrap();
    fs::copy(other.path("prog"), debug_file).unwrap();
    let options = Options { debug_dirs: vec![fixture.path("debug")], ..bare() };
    let mut resolver = Resolver::new(&[module], options);
    assert_eq!(resolver.resolve(0, mark), []);
    assert!(problems(&resolver).iter().any(|problem| matches!(problem, Problem::WrongBuildId { .. })));
}

#[test]
fn a_separate_debug_file_is_found_by_its_path_in_a_debug_directory() {
    let (fixture, mark) = separated();
    let debug_file = fixture.path("debug").join(fixture.path("prog.debug").strip_prefix("/").unwrap());
    fs::create_dir_all(debug_file.parent().unwrap()).unwrap();
    fs::rename(fixture.path("prog.debug"), debug_file).unwrap();
    let options = Options { debug_dirs: vec![fixture.path("debug")], ..bare() };
    let mut resolver = Resolver::new(&[fixture.module("prog")], options);
    fixture.check_c_frames(&resolver.resolve(0, mark));
}

#[test]
fn a_debug_link_is_looked_up_next_to_the_file_in_its_debug_subdirectory_and_in_debug_directories() {
    let (fixture, mark) = separated();
    fixture.run("objcopy --add-gnu-debuglink=prog.debug prog");
    let below = fixture.path("prog.debug");
    let far = fixture.path("global").join(below.strip_prefix("/").unwrap());
    let debug_files = [below, fixture.path(".debug/prog.debug"), far];
    for (index, debug_file) in debug_files.iter().enumerate() {
        if index > 0 {
            fs::create_dir_all(debug_file.parent().unwrap()).unwrap();
            fs::rename(&debug_files[index - 1], debug_file).unwrap();
        }
        let options = Options { debug_dirs: vec![fixture.path("global")], ..bare() };
        let mut resolver = Resolver::new(&[fixture.module("prog")], options);
        fixture.check_c_frames(&resolver.resolve(0, mark));
        assert_eq!(problems(&resolver), []);
    }
}

#[test]
fn a_debug_link_with_another_checksum_is_not_followed() {
    let (fixture, mark) = separated();
    fixture.run("objcopy --add-gnu-debuglink=prog.debug prog");
    // The build id is the same, the content is not.
    let mut bytes = fs::read(fixture.path("prog.debug")).unwrap();
    bytes.push(0);
    fs::write(fixture.path("prog.debug"), bytes).unwrap();
    let mut resolver = fixture.resolver("prog");
    assert_eq!(resolver.resolve(0, mark), []);
    assert!(problems(&resolver).iter().any(|problem| matches!(problem, Problem::WrongChecksum { .. })));
}

/// Whether a file has a section that starts with these bytes.
fn has_section(path: &Path, name: &str, start: &[u8]) -> bool {
    let data = fs::read(path).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let section = file.section_by_name_bytes(name.as_bytes());
    section.is_some_and(|section| {
        let (offset, _) = section.file_range().unwrap();
        data[offset as usize..].starts_with(start)
    })
}

#[test]
fn sections_compressed_with_zlib_are_read() {
    let fixture = Fixture::c("-g");
    fixture.run("objcopy --compress-debug-sections=zlib prog");
    assert!(has_section(&fixture.path("prog"), ".debug_info", &[1, 0, 0, 0]), "not compressed");
    check_c(&fixture, "prog");
    fixture.run("objcopy --decompress-debug-sections prog");
    fixture.run("objcopy --compress-debug-sections=zlib-gnu prog");
    assert!(has_section(&fixture.path("prog"), ".zdebug_info", b"ZLIB"), "not compressed");
    check_c(&fixture, "prog");
}

#[test]
fn sections_compressed_with_zstd_are_read() {
    let fixture = Fixture::c("-g");
    fixture.run("objcopy --compress-debug-sections=zstd prog");
    assert!(has_section(&fixture.path("prog"), ".debug_info", &[2, 0, 0, 0]), "not compressed");
    check_c(&fixture, "prog");
}

#[test]
fn split_debug_information_is_read_from_where_the_compiler_put_it() {
    for version in [4, 5] {
        let fixture = Fixture::c(&format!("-gdwarf-{version} -gsplit-dwarf"));
        assert!(fixture.path("prog-fixture.dwo").exists());
        check_c(&fixture, "prog");
    }
}

// FOLKLORE: dwp of binutils 2.40 crashes on DWARF 5, and llvm-dwp 14 runs forever on gcc's DWARF 5. So dwp packs
// version 4 here, and rustc itself packs version 5.
#[test]
fn split_debug_information_is_read_from_a_package_next_to_the_program() {
    let fixture = Fixture::c("-gdwarf-4 -gsplit-dwarf");
    fixture.run("dwp -e prog -o prog.dwp");
    fs::remove_file(fixture.path("prog-fixture.dwo")).unwrap();
    check_c(&fixture, "prog");

    for version in [4, 5] {
        let fixture = Fixture::new("fixture.rs", RUST_SOURCE);
        let packed = "-C split-debuginfo=packed";
        fixture.run(&format!("rustc -C debuginfo=2 -C dwarf-version={version} {packed} fixture.rs -o prog"));
        assert!(fixture.path("prog.dwp").exists());
        let mark = address(&fixture.path("prog"), "rust_mark");
        let mut resolver = fixture.resolver("prog");
        let frames = resolver.resolve(0, mark);
        assert_eq!(frames[0].function.as_deref(), Some("fixture::cache::Table::lookup"));
        assert_eq!(problems(&resolver), []);
        // Without the package, the symbol table still has the function.
        fs::remove_file(fixture.path("prog.dwp")).unwrap();
        let mut resolver = fixture.resolver("prog");
        assert_eq!(resolver.resolve(0, mark)[0].function, frames[0].function);
        assert_eq!(problems(&resolver), [Problem::MissingSplit]);
    }
}

#[test]
fn without_its_split_debug_information_a_program_still_has_lines_and_outer_functions() {
    for version in [4, 5] {
        let fixture = Fixture::c(&format!("-gdwarf-{version} -gsplit-dwarf"));
        fs::remove_file(fixture.path("prog-fixture.dwo")).unwrap();
        let mut resolver = fixture.resolver("prog");
        let frames = resolver.resolve(0, address(&fixture.path("prog"), "c_mark"));
        let [frame] = &frames[..] else { panic!("{frames:?}") };
        assert_eq!(frame.function.as_deref(), Some("outermost"));
        assert_eq!(frame.line, Some(fixture.line("innermost")));
        let [problem] = &resolver.problems()[..] else { panic!() };
        assert_eq!(problem.what, Problem::MissingSplit);
        assert!(problem.path.ends_with("prog-fixture.dwo"), "{problem:?}");
    }
}

#[test]
fn split_debug_information_of_another_build_is_not_used() {
    let fixture = Fixture::c("-g -gsplit-dwarf");
    let other = Fixture::c("-g -gsplit-dwarf -O0");
    fs::copy(other.path("prog-fixture.dwo"), fixture.path("prog-fixture.dwo")).unwrap();
    let mut resolver = fixture.resolver("prog");
    assert_eq!(resolver.resolve(0, address(&fixture.path("prog"), "c_mark")).len(), 1);
    assert_eq!(problems(&resolver), [Problem::MissingSplit]);
}
