//! Rings made by hand: well-formed ones, and then whatever damage a test wants.
//!
//! This is a second writer of the format, typed from its description and not from its code: all places are
//! literal numbers. Where reader and recorder share a mistake, this disagrees with both.

use std::fs::File;
use std::io::Write;
use std::path::Path;

/// The length of the header of version 1.0.
pub(crate) const HEADER: usize = 800;
/// The same of version 1.1.
pub(crate) const HEADER_1_1: usize = 920;
/// Where the words of a slot begin.
pub(crate) const SLOT_HEADER: usize = 512;
/// The bias that [`Module::program`] is loaded at.
pub(crate) const BIAS: u64 = 0x5555_5555_4000;

/// States of a slot.
pub(crate) const LIVE: u32 = 1;
pub(crate) const EXITED: u32 = 2;
pub(crate) const CLAIMING: u32 = 3;

/// Kinds of regions.
pub(crate) const MODULES: u32 = 1;
pub(crate) const SITES: u32 = 2;
pub(crate) const TEXTS: u32 = 3;
pub(crate) const EXITS: u32 = 4;
pub(crate) const SLOTS: u32 = 5;
pub(crate) const NAMES: u32 = 6;

/// A word, as the format has it: 15 bits of sequence, the operand flag, 48 bits of payload.
pub(crate) fn word(sequence: u64, operand: bool, payload: u64) -> u64 {
    (sequence % 32_768) * (1 << 49) + u64::from(operand) * (1 << 48) + payload % (1 << 48)
}

/// A ring to be.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    pub(crate) version: (u16, u16),
    pub(crate) machine: u32,
    pub(crate) uid: u32,
    pub(crate) boot_id: [u8; 16],
    pub(crate) pid: u32,
    pub(crate) start_time_ticks: u64,
    pub(crate) pid_namespace: u64,
    pub(crate) created_realtime_ns: u64,
    pub(crate) file_system: u64,
    pub(crate) host: Vec<u8>,
    pub(crate) settings_ignored: u32,
    pub(crate) refused_full: u64,
    pub(crate) refused_memory: u64,
    pub(crate) without_exit: u64,
    pub(crate) reused: u64,
    pub(crate) metadata_refused: u64,
    pub(crate) held_overflows: u64,
    pub(crate) releases_unmatched: u64,
    /// Level, ticks at the base, ns since boot at the base; 8 ns a tick. None before version 1.1.
    pub(crate) clock: Option<(u32, u64, u64)>,
    /// Process, lock and name. None before version 1.1.
    pub(crate) lock_names: Vec<(u32, u64, String)>,
    /// The exit status, if the process called `exit`.
    pub(crate) exit_status: Option<i32>,
    pub(crate) slot_words: u32,
    /// Slots there is room for beyond those used.
    pub(crate) spare_slots: usize,
    pub(crate) modules: Vec<Module>,
    pub(crate) sites: Vec<Site>,
    pub(crate) slots: Vec<Slot>,
    /// Bytes that a later minor version has appended to each module, site and slot, and put between header and
    /// regions.
    pub(crate) extra_bytes: usize,
    /// Whether there are regions of kinds that version 1.0 does not know.
    pub(crate) unknown_regions: bool,
}

impl Ring {
    /// A ring of a process that is long gone: of another boot.
    pub(crate) fn new() -> Ring {
        Ring {
            version: (1, 0),
            machine: 62,
            uid: 1000,
            boot_id: *b"\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff\x01",
            pid: 4321,
            start_time_ticks: 98_765,
            pid_namespace: 0xeffe_0001,
            created_realtime_ns: 1_700_000_000_000_000_000,
            file_system: 0x0102_1994,
            host: b"build-host".to_vec(),
            settings_ignored: 0,
            refused_full: 0,
            refused_memory: 0,
            without_exit: 0,
            reused: 0,
            metadata_refused: 0,
            held_overflows: 0,
            releases_unmatched: 0,
            clock: None,
            lock_names: Vec::new(),
            exit_status: None,
            slot_words: 64,
            spare_slots: 2,
            modules: Vec::new(),
            sites: Vec::new(),
            slots: Vec::new(),
            extra_bytes: 0,
            unknown_regions: false,
        }
    }

    /// The same, as if this very process had made it.
    pub(crate) fn of_this_process(mut self) -> Ring {
        self.boot_id = own_boot_id();
        self.pid = std::process::id();
        self.start_time_ticks = own_start_time_ticks();
        self.pid_namespace = own_pid_namespace();
        self
    }

    /// Made by a process of this boot that has ended: by one that had our pid, and started a tick later.
    pub(crate) fn of_a_dead_process(self) -> Ring {
        let alive = self.of_this_process();
        Ring { start_time_ticks: alive.start_time_ticks + 1, ..alive }
    }

    /// The same in format 1.1, with times of this level: 8 ns a tick, and 1000 ticks at 2 s since boot.
    pub(crate) fn with_clock(self, level: u32) -> Ring {
        Ring { version: (1, 1), clock: Some((level, 1000, 2_000_000_000)), ..self }
    }

    /// Adds the program `/nowhere/server`, and a site for each `FILE:LINE` at the module-relative address.
    pub(crate) fn with_sites(mut self, sites: &[(u64, &str, u32)]) -> Ring {
        let module = self.modules.len() as u32;
        self.modules.push(Module::program());
        self.sites.extend(sites.iter().map(|&(pc, file, line)| Site { module, ..Site::new(pc, file, line) }));
        self
    }

    pub(crate) fn with_slots(mut self, slots: impl IntoIterator<Item = Slot>) -> Ring {
        self.slots.extend(slots);
        self
    }

    /// All bytes.
    pub(crate) fn build(&self) -> Image {
        let mut image = self.head();
        for slot in &self.slots {
            image.bytes.extend(self.slot_bytes(slot));
        }
        image.bytes.resize(image.file_len, 0);
        image
    }

    /// All bytes before the slots. For rings that are too large to be built in memory.
    pub(crate) fn head(&self) -> Image {
        let mut texts = Vec::new();
        let mut text = |bytes: &[u8]| {
            // Something in front, so that no text is at 0.
            texts.extend(b"//");
            let offset = texts.len() as u32;
            texts.extend(bytes);
            (offset, bytes.len() as u32)
        };
        let modules: Vec<u8> = self
            .modules
            .iter()
            .flat_map(|module| {
                let path = text(&module.path);
                let mut entry = module.bytes(path);
                entry.resize(128 + self.extra_bytes, 0xee);
                entry
            })
            .collect();
        let sites: Vec<u8> = self
            .sites
            .iter()
            .flat_map(|site| {
                let text = text(
                    &[site.file.as_bytes(), site.module_path.as_bytes(), site.label.as_bytes()].join(&0),
                );
                let mut entry = site.bytes(text);
                entry.resize(48 + self.extra_bytes, 0xee);
                entry
            })
            .collect();
        let slot_capacity = self.slots.len() + self.spare_slots;
        let slot_len = self.slot_len();
        // kind, bytes an entry, content, capacity in entries, entries used
        let mut regions = vec![
            (MODULES, 128 + self.extra_bytes, modules, self.modules.len() + 3, self.modules.len()),
            (SITES, 48 + self.extra_bytes, sites, self.sites.len() + 3, self.sites.len()),
            (TEXTS, 1, texts.clone(), texts.len() + 64, texts.len()),
            (EXITS, 8, Vec::new(), slot_capacity, slot_capacity),
        ];
        if self.unknown_regions {
            regions.insert(2, (77, 24, vec![0xab; 240], 10, 10));
            regions.insert(0, (0, 0, Vec::new(), 0, 0));
            regions.push((0x8000_0001, 0, Vec::new(), 0, 0));
        }
        if self.version.1 >= 1 {
            let names: Vec<u8> = self.lock_names.iter().flat_map(lock_name).collect();
            regions.push((NAMES, 64, names, self.lock_names.len() + 5, self.lock_names.len()));
        }
        regions.push((SLOTS, slot_len, Vec::new(), slot_capacity, self.slots.len()));

        let mut bytes = vec![0u8; (self.header_len() + self.extra_bytes).next_multiple_of(4096)];
        for (index, (kind, len, content, capacity, used)) in regions.iter().enumerate() {
            let entry = 192 + 32 * index;
            let offset = bytes.len().next_multiple_of(4096);
            bytes.resize(offset, 0);
            put32(&mut bytes, entry, *kind);
            put32(&mut bytes, entry + 4, *len as u32);
            put64(&mut bytes, entry + 8, if *len == 0 { 0 } else { offset as u64 });
            put64(&mut bytes, entry + 16, *capacity as u64);
            put64(&mut bytes, entry + 24, *used as u64);
            if *kind != SLOTS {
                bytes.extend(content);
                bytes.resize((offset + len * capacity).next_multiple_of(4096), 0);
            }
        }
        let file_len = (bytes.len() + slot_capacity * slot_len).next_multiple_of(4096);
        self.header(&mut bytes, file_len);
        Image { bytes, file_len }
    }

    fn header(&self, bytes: &mut [u8], file_len: usize) {
        bytes[0..8].copy_from_slice(b"\x7fRIPRING");
        put32(bytes, 8, 0x0102_0304);
        bytes[12..14].copy_from_slice(&self.version.0.to_le_bytes());
        bytes[14..16].copy_from_slice(&self.version.1.to_le_bytes());
        put32(bytes, 16, (self.header_len() + self.extra_bytes) as u32);
        put32(bytes, 20, self.machine);
        put32(bytes, 24, 4096);
        put32(bytes, 28, self.uid);
        bytes[32..48].copy_from_slice(&self.boot_id);
        put32(bytes, 48, self.pid);
        put32(bytes, 52, 100);
        put64(bytes, 56, self.start_time_ticks);
        put64(bytes, 64, self.pid_namespace);
        put64(bytes, 72, self.created_realtime_ns);
        put64(bytes, 80, 55_000_000_000);
        put64(bytes, 88, self.file_system);
        bytes[96..96 + self.host.len()].copy_from_slice(&self.host);
        put32(bytes, 160, self.settings_ignored);
        put32(bytes, 164, self.slot_words);
        put64(bytes, 168, self.slot_len() as u64);
        put64(bytes, 176, file_len as u64);
        put64(bytes, 704, self.slots.len() as u64);
        put64(bytes, 792, self.slots.len() as u64);
        put64(bytes, 728, self.refused_full);
        put64(bytes, 736, self.refused_memory);
        put64(bytes, 744, self.without_exit);
        put64(bytes, 752, self.reused);
        put64(bytes, 760, self.metadata_refused);
        if self.version.1 >= 1 {
            if let Some((level, base_ticks, base_ns)) = self.clock {
                put32(bytes, 800, level);
                put32(bytes, 804, 1);
                put32(bytes, 808, 4);
                put64(bytes, 816, base_ticks);
                put64(bytes, 824, base_ns);
                put64(bytes, 832, 125_000_000_000);
            }
            put64(bytes, 840, self.held_overflows);
            put64(bytes, 848, self.releases_unmatched);
        }
        if let Some(status) = self.exit_status {
            put32(bytes, 776, 1);
            put32(bytes, 780, status as u32);
            put64(bytes, 784, 66_000_000_000);
        }
    }

    fn header_len(&self) -> usize {
        if self.version.1 >= 1 { HEADER_1_1 } else { HEADER }
    }

    fn slot_len(&self) -> usize {
        SLOT_HEADER + 8 * self.slot_words as usize + self.extra_bytes
    }

    /// One slot of this ring.
    pub(crate) fn slot_bytes(&self, slot: &Slot) -> Vec<u8> {
        let mut bytes = vec![0; SLOT_HEADER];
        put32(&mut bytes, 0, slot.state);
        put32(&mut bytes, 4, 1);
        put32(&mut bytes, 8, slot.generation);
        put32(&mut bytes, 12, slot.pid.unwrap_or(self.pid));
        put32(&mut bytes, 16, slot.tid);
        put64(&mut bytes, 24, slot.claimed_ns);
        put64(&mut bytes, 32, if slot.state == EXITED { slot.claimed_ns + 1 } else { 0 });
        put64(&mut bytes, 40, slot.first_sequence);
        put64(&mut bytes, 48, self.pid_namespace);
        bytes[64..64 + slot.name.len()].copy_from_slice(&slot.name);
        put32(&mut bytes, 60, slot.held_beyond);
        for (index, entry) in slot.held.iter().enumerate() {
            for (field, &word) in entry.iter().enumerate() {
                put64(&mut bytes, 112 + 24 * index + 8 * field, word);
            }
        }
        put64(&mut bytes, 496, slot.count);
        put64(&mut bytes, 504, u64::from(self.slot_words) - 1);
        bytes.resize(SLOT_HEADER + 8 * self.slot_words as usize, 0);
        for &(sequence, operand, payload) in &slot.words {
            let index = (sequence % u64::from(self.slot_words)) as usize;
            put64(&mut bytes, SLOT_HEADER + 8 * index, word(sequence, operand, payload));
        }
        bytes.resize(self.slot_len(), 0xee);
        bytes
    }
}

/// A program or library.
#[derive(Clone, Debug)]
pub(crate) struct Module {
    pub(crate) state: u32,
    pub(crate) pid: u32,
    pub(crate) load_bias: u64,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) path: Vec<u8>,
    pub(crate) build_id: Vec<u8>,
    pub(crate) is_executable: bool,
    pub(crate) file_len: u64,
    pub(crate) modified_ns: u64,
}

impl Module {
    /// The program, whose file is gone.
    pub(crate) fn program() -> Module {
        Module {
            state: 1,
            pid: 4321,
            load_bias: BIAS,
            begin: 0x1000,
            end: 0x100_0000,
            path: b"/nowhere/server".to_vec(),
            build_id: vec![0xc0, 0xff, 0xee, 0x00, 0x11, 0x22, 0x33, 0x44],
            is_executable: true,
            file_len: 123_456,
            modified_ns: 1_699_999_999_000_000_000,
        }
    }

    /// A library, loaded elsewhere.
    pub(crate) fn library(path: &str, load_bias: u64) -> Module {
        let build_id = vec![0x11, 0xb1, 0xb1, 0xb1];
        Module { load_bias, path: path.into(), is_executable: false, build_id, ..Module::program() }
    }

    fn bytes(&self, path: (u32, u32)) -> Vec<u8> {
        let mut bytes = vec![0; 128];
        put32(&mut bytes, 0, self.state);
        put32(&mut bytes, 4, self.pid);
        put64(&mut bytes, 8, self.load_bias);
        put64(&mut bytes, 16, self.begin);
        put64(&mut bytes, 24, self.end);
        put32(&mut bytes, 32, path.0);
        put32(&mut bytes, 36, path.1);
        put32(&mut bytes, 40, self.build_id.len() as u32);
        put32(&mut bytes, 44, u32::from(self.is_executable));
        bytes[48..48 + self.build_id.len()].copy_from_slice(&self.build_id);
        put64(&mut bytes, 80, self.file_len);
        put64(&mut bytes, 88, self.modified_ns);
        bytes
    }
}

/// A mark in the source.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) state: u32,
    pub(crate) module: u32,
    pub(crate) pc: u64,
    pub(crate) file: String,
    pub(crate) module_path: String,
    pub(crate) label: String,
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) kind: u8,
    /// 1 shared, 2 try, 4 wrapper, 8 reentrant, 16 readers first; from bit 8 on 1 mutex, 2 readers-writer lock.
    pub(crate) flags: u16,
    /// The types of its operands: 1 takes one word, 2 takes two; 3 lock, 4 time, 5 since, 6 condition.
    pub(crate) operands: Vec<u8>,
}

impl Site {
    pub(crate) fn new(pc: u64, file: &str, line: u32) -> Site {
        Site {
            state: 1,
            module: 0,
            pc,
            file: file.into(),
            module_path: String::new(),
            label: String::new(),
            line,
            column: 5,
            kind: 0,
            flags: 0,
            operands: Vec::new(),
        }
    }

    /// The same with a kind, flags and operands.
    pub(crate) fn of(mut self, kind: u8, flags: u16, operands: &[u8]) -> Site {
        (self.kind, self.flags, self.operands) = (kind, flags, operands.to_vec());
        self
    }

    /// The same in a Rust module.
    pub(crate) fn within(mut self, module_path: &str) -> Site {
        self.module_path = module_path.into();
        self
    }

    fn bytes(&self, text: (u32, u32)) -> Vec<u8> {
        let mut bytes = vec![0; 48];
        put32(&mut bytes, 0, self.state);
        put32(&mut bytes, 4, self.module);
        put64(&mut bytes, 8, self.pc);
        put32(&mut bytes, 16, text.0);
        put32(&mut bytes, 20, text.1);
        put32(&mut bytes, 24, self.line);
        put32(&mut bytes, 28, self.column);
        bytes[32] = self.kind;
        bytes[33] = self.operands.len() as u8;
        bytes[34..36].copy_from_slice(&self.flags.to_le_bytes());
        bytes[36..36 + self.operands.len()].copy_from_slice(&self.operands);
        bytes
    }
}

/// A thread.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) state: u32,
    pub(crate) generation: u32,
    /// The ring's process unless it is another.
    pub(crate) pid: Option<u32>,
    pub(crate) tid: u32,
    pub(crate) claimed_ns: u64,
    pub(crate) name: Vec<u8>,
    pub(crate) first_sequence: u64,
    pub(crate) count: u64,
    /// Entries of the held-lock table: lock, place, since.
    pub(crate) held: Vec<[u64; 3]>,
    pub(crate) held_beyond: u32,
    /// Sequence, whether it is an operand, payload.
    pub(crate) words: Vec<(u64, bool, u64)>,
}

impl Slot {
    /// A living thread without a mark.
    pub(crate) fn thread(name: &str, tid: u32) -> Slot {
        Slot {
            state: LIVE,
            generation: 1,
            pid: None,
            tid,
            claimed_ns: 1_000 + u64::from(tid),
            name: name.into(),
            first_sequence: 0,
            count: 0,
            held: Vec::new(),
            held_beyond: 0,
            words: Vec::new(),
        }
    }

    /// The same, beginning with this sequence: earlier ones were a predecessor's.
    pub(crate) fn from(mut self, sequence: u64) -> Slot {
        self.first_sequence = sequence;
        self.at(sequence)
    }

    /// The same, about to write this sequence.
    pub(crate) fn at(mut self, sequence: u64) -> Slot {
        self.count = sequence;
        self
    }

    pub(crate) fn operand(mut self, value: u64) -> Slot {
        self.words.push((self.count, true, value));
        self.count += 1;
        self
    }

    /// An event at this place of [`Module::program`], with its operands.
    pub(crate) fn event(self, address: u64, operands: &[u64]) -> Slot {
        operands.iter().fold(self, |slot, &value| slot.operand(value)).marks([address])
    }

    /// An entry of the held-lock table.
    pub(crate) fn has(mut self, held: Held) -> Slot {
        self.held.push(held.words());
        self
    }

    /// Marks at these places of [`Module::program`].
    pub(crate) fn marks(self, addresses: impl IntoIterator<Item = u64>) -> Slot {
        self.actual_marks(addresses.into_iter().map(|address| BIAS + address))
    }

    /// Marks at actual addresses.
    pub(crate) fn actual_marks(mut self, pcs: impl IntoIterator<Item = u64>) -> Slot {
        for pc in pcs {
            self.words.push((self.count, false, pc));
            self.count += 1;
        }
        self
    }

    pub(crate) fn exited(mut self) -> Slot {
        self.state = EXITED;
        self
    }

    /// Another thread takes it over: what was written stays in memory.
    pub(crate) fn reused_by(mut self, name: &str, tid: u32) -> Slot {
        self.state = LIVE;
        self.generation += 1;
        self.tid = tid;
        self.claimed_ns += 10;
        self.name = name.into();
        self.first_sequence = self.count;
        self
    }
}

/// An entry of the held-lock table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) lock: u64,
    /// The place in [`Module::program`].
    pub(crate) address: u64,
    /// 1 taking, 2 waiting, 3 held, 4 releasing, 5 condition, 6 destroyed.
    pub(crate) state: u64,
    pub(crate) shared: bool,
    pub(crate) since: Option<u64>,
    pub(crate) again: u64,
    /// The sequence in the lock's word.
    pub(crate) sequence: u64,
    /// The sequence in the place's word, where it is another.
    pub(crate) place_sequence: Option<u64>,
}

impl Held {
    pub(crate) fn new(state: u64, lock: u64, address: u64) -> Held {
        Held { lock, address, state, shared: false, since: None, again: 0, sequence: 0, place_sequence: None }
    }

    pub(crate) fn since(self, ticks: u64) -> Held {
        Held { since: Some(ticks), ..self }
    }

    fn words(&self) -> [u64; 3] {
        let place_sequence = self.place_sequence.unwrap_or(self.sequence) % 2048;
        let has_since = self.since.is_some() || self.again > 0;
        [
            word(self.sequence, true, self.lock),
            place_sequence << 56
                | u64::from(has_since) << 52
                | u64::from(self.shared) << 51
                | self.state << 48
                | (BIAS + self.address),
            // What is left there means nothing without bit 52.
            if has_since { self.again << 48 | self.since.unwrap_or(0) } else { 0x7777_0000_1234_5678 },
        ]
    }
}

/// An entry of the table of names.
fn lock_name((pid, lock, name): &(u32, u64, String)) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    put32(&mut bytes, 0, 1);
    put32(&mut bytes, 4, *pid);
    put64(&mut bytes, 8, *lock);
    bytes[16..16 + name.len()].copy_from_slice(name.as_bytes());
    bytes
}

/// A ring's bytes, to be damaged.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    pub(crate) bytes: Vec<u8>,
    /// The length of the whole file.
    pub(crate) file_len: usize,
}

impl Image {
    pub(crate) fn set32(&mut self, at: usize, value: u32) {
        put32(&mut self.bytes, at, value);
    }

    pub(crate) fn set64(&mut self, at: usize, value: u64) {
        put64(&mut self.bytes, at, value);
    }

    fn get64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes[at..at + 8].try_into().unwrap())
    }

    /// Where the header describes the region of this kind: the kind at 0, bytes an entry at 4, offset at 8,
    /// capacity at 16, used at 24.
    pub(crate) fn region(&self, kind: u32) -> usize {
        let entry = |index: usize| 192 + 32 * index;
        (0..16).map(entry).find(|&at| self.bytes[at..at + 4] == kind.to_le_bytes()).expect("such a region")
    }

    /// Where that region begins.
    pub(crate) fn begin(&self, kind: u32) -> usize {
        self.get64(self.region(kind) + 8) as usize
    }

    /// Where an entry of that region begins.
    pub(crate) fn entry(&self, kind: u32, index: usize) -> usize {
        let len = u32::from_le_bytes(self.bytes[self.region(kind) + 4..][..4].try_into().unwrap());
        self.begin(kind) + index * len as usize
    }

    /// Writes it, without its zeros at the end.
    pub(crate) fn write(&self, path: &Path) {
        let mut file = File::create(path).unwrap();
        file.write_all(&self.bytes).unwrap();
        if self.bytes.len() < self.file_len {
            file.set_len(self.file_len as u64).unwrap();
        }
    }
}

fn put32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

fn put64(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// Field 22 of `/proc/self/stat`.
fn own_start_time_ticks() -> u64 {
    let status = std::fs::read_to_string("/proc/self/stat").unwrap();
    let behind_name = status.rsplit_once(')').unwrap().1;
    behind_name.split_whitespace().nth(19).unwrap().parse().unwrap()
}

fn own_boot_id() -> [u8; 16] {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    std::array::from_fn(|index| {
        let pair = std::str::from_utf8(&digits[2 * index..2 * index + 2]).unwrap();
        u8::from_str_radix(pair, 16).unwrap()
    })
}

/// The inode of this process's PID namespace.
pub(crate) fn own_pid_namespace() -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self/ns/pid").unwrap().ino()
}
