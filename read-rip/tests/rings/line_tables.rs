//! Line tables that expand to more than any compiler's are not read, and ordinary ones are.
//!
//! `gcc` assembles the programs. Their debug information consists of units that share one line program. What the
//! resolver says is looked at.

use read_rip_symbols::{Frame, Problem, Whose};

use crate::support::compiled::{Fixture, address, problems};

/// A program whose debug information is `units` units that share one line program of DWARF 5.
struct Tables<'a> {
    units: u32,
    /// The directory of each unit, and the name of each file.
    directory_len: u32,
    name_len: u32,
    files: u32,
    /// The instructions of the line program after it has set its address.
    instructions: &'a str,
}

impl Tables<'_> {
    fn source(&self) -> String {
        let Tables { units, directory_len, name_len, files, instructions } = self;
        format!(
            r#"
            .text
            .globl main, mark
            .type main, @function
        main:
        mark:
            xorl %eax, %eax
            ret
            .size main, . - main
        end:
            .section .debug_abbrev, "", @progbits
            .uleb128 1, 0x11        # a compilation unit
            .byte 0
            .uleb128 0x10, 0x17     # its line program
            .uleb128 0x1b, 0x1f     # its directory
            .uleb128 0x11, 0x01     # its first address
            .uleb128 0x12, 0x07     # its length
            .byte 0, 0, 0
            .section .debug_line_str, "", @progbits
        directory:
            .fill {directory_len}, 1, 'd'
            .byte 0
        name:
            .fill {name_len}, 1, 'n'
            .byte 0
            .section .debug_info, "", @progbits
            .rept {units}
            .long 36                # what follows
            .short 5
            .byte 1, 8
            .long .debug_abbrev
            .uleb128 1
            .long .debug_line
            .long directory
            .quad main
            .quad end - main
            .byte 0, 0, 0           # no children; padding
            .endr
            .section .debug_line, "", @progbits
            .long program_end - . - 4
            .short 5
            .byte 8, 0
            .long program - . - 4
            .byte 1, 1, 1, 1, 1, 1  # every opcode from 1 on makes a row
            .byte 1
            .uleb128 1, 0x1f        # directories: a text each
            .uleb128 1
            .long directory
            .byte 1
            .uleb128 1, 0x1f        # files: a text each
            .uleb128 {files}
            .rept {files}
            .long name
            .endr
        program:
            .byte 0, 9, 2           # begin at this address
            .quad main
            .byte 1                 # a row here
            {instructions}
            .byte 0, 1, 1           # the end of the rows
        program_end:
            .section .note.GNU-stack, "", @progbits
            "#
        )
    }

    /// The program, assembled.
    fn assembled(&self) -> Fixture {
        let fixture = Fixture::new("tables.s", &self.source());
        fixture.run("gcc -nostartfiles -Wl,--compress-debug-sections=zlib -Wl,-e,main -Wl,--build-id tables.s -o prog");
        fixture
    }
}

/// Two files, and two rows.
const ORDINARY: Tables<'static> =
    Tables { units: 1, directory_len: 1, name_len: 1, files: 2, instructions: ".byte 33" };

/// The frame of an address of which only the symbol table is read.
fn from_symbols() -> [Frame; 1] {
    [Frame { function: Some("main".into()), whose: Whose::User, ..Frame::default() }]
}

#[test]
fn ordinary_tables_are_read() {
    let many: &str = ".fill 100000, 1, 0x20";
    let cases = [
        ORDINARY,
        Tables { units: 100, ..ORDINARY },
        Tables { files: 1000, name_len: 1000, directory_len: 1000, ..ORDINARY },
        Tables { units: 10, instructions: many, ..ORDINARY },
    ];
    for (at, tables) in cases.iter().enumerate() {
        let program = tables.assembled();
        let mut resolver = program.resolver("prog");
        let frames = resolver.resolve(0, address(&program.path("prog"), "mark"));
        assert_eq!(problems(&resolver), [], "case {at}");
        assert!(frames[0].file.is_some() && frames[0].line.is_some(), "case {at}: {frames:?}");
    }
}

#[test]
fn tables_that_expand_to_gigabytes_are_not_read() {
    let cases = [
        // A row for each byte, for each unit: 2.4 GB.
        Tables { units: 100, instructions: ".fill 1000000, 1, 0x20", ..ORDINARY },
        // One program of 20 MB: 480 MB of rows. The file is compressed.
        Tables { instructions: ".fill 20000000, 1, 0x20", ..ORDINARY },
        // Instructions that make no rows, 9 GB in all units.
        Tables { units: 10_000, instructions: ".fill 300000, 3, 0x800100", ..ORDINARY },
        // Each file has a name of 1 MB.
        Tables { files: 1000, name_len: 1_000_000, ..ORDINARY },
        // Each file is in a directory of 1 MB.
        Tables { files: 1000, directory_len: 1_000_000, ..ORDINARY },
        // Each unit has a list of 10,000 files.
        Tables { files: 10_000, units: 1000, ..ORDINARY },
        // A list that is longer than any program has files.
        Tables { files: 1_000_000, ..ORDINARY },
    ];
    for (at, tables) in cases.iter().enumerate() {
        let program = tables.assembled();
        let mut resolver = program.resolver("prog");
        let frames = resolver.resolve(0, address(&program.path("prog"), "mark"));
        let found = problems(&resolver);
        assert!(matches!(found[..], [Problem::LineTables { .. }]), "case {at}: {found:?}");
        assert_eq!(frames, from_symbols(), "case {at}");
        assert!(!resolver.has_debug_info(0), "case {at}");
    }
}
