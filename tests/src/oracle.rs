//! An independent reader of rings: the guard against drift of the format and against believing ourselves.
//!
//! It is written from the text of `librip_format` with offsets of its own, and shares no code with the
//! recorder or with `read-rip`. It is strict where they are lenient: what the format does not allow is an
//! error here, because the tests know that nobody damaged the file. It resolves no symbols.

use std::fmt;
use std::fs;
use std::path::Path;

/// Offsets in the header, in the order of the fields.
pub mod header_at {
    #![allow(missing_docs, reason = "the names are those of librip_format::Header")]
    pub const MAGIC: usize = 0;
    pub const BYTE_ORDER: usize = 8;
    pub const VERSION_MAJOR: usize = 12;
    pub const VERSION_MINOR: usize = 14;
    pub const HEADER_LEN: usize = 16;
    pub const MACHINE: usize = 20;
    pub const PAGE_LEN: usize = 24;
    pub const UID: usize = 28;
    pub const BOOT_ID: usize = 32;
    pub const PID: usize = 48;
    pub const TICKS_PER_SECOND: usize = 52;
    pub const START_TIME: usize = 56;
    pub const PID_NAMESPACE: usize = 64;
    pub const SETTINGS_IGNORED: usize = 160;
    pub const SLOT_WORDS: usize = 164;
    pub const SLOT_LEN: usize = 168;
    pub const FILE_LEN: usize = 176;
    pub const REGIONS: usize = 192;
    pub const SLOTS_RESERVED: usize = 704;
    pub const REFUSED_FULL: usize = 728;
    pub const REFUSED_MEMORY: usize = 736;
    pub const WITHOUT_EXIT: usize = 744;
    pub const SLOTS_REUSED: usize = 752;
    pub const METADATA_REFUSED: usize = 760;
    pub const EXIT_STATE: usize = 776;
    pub const EXIT_STATUS: usize = 780;
    pub const CLOCK_LEVEL: usize = 800;
    pub const HELD_OVERFLOWS: usize = 840;
    pub const RELEASES_UNMATCHED: usize = 848;
    pub const FORKS: usize = 856;
    pub const RECENT_CHILDREN: usize = 860;
    pub const LEN: usize = 920;
}

/// Offsets in a slot, in the order of the fields.
pub mod slot_at {
    #![allow(missing_docs, reason = "the names are those of librip_format::SlotHeader")]
    pub const STATE: usize = 0;
    pub const KIND: usize = 4;
    pub const GENERATION: usize = 8;
    pub const PID: usize = 12;
    pub const TID: usize = 16;
    pub const CLAIMED: usize = 24;
    pub const EXITED: usize = 32;
    pub const FIRST_SEQUENCE: usize = 40;
    pub const PID_NAMESPACE: usize = 48;
    pub const NAME: usize = 64;
    pub const NAME_END: usize = 112;
    pub const HELD_BEYOND: usize = 60;
    pub const HELD: usize = 112;
    pub const COUNT: usize = 496;
    pub const MASK: usize = 504;
    pub const WORDS: usize = 512;
}

/// Offsets in an entry of the module table.
pub mod module_at {
    #![allow(missing_docs, reason = "the names are those of librip_format::Module")]
    pub const STATE: usize = 0;
    pub const LOAD_BIAS: usize = 8;
    pub const BEGIN: usize = 16;
    pub const END: usize = 24;
    pub const PATH: usize = 32;
    pub const BUILD_ID_LEN: usize = 40;
    pub const IS_EXECUTABLE: usize = 44;
    pub const BUILD_ID: usize = 48;
    pub const LEN: usize = 128;
}

/// Offsets in an entry of the site table.
pub mod site_at {
    #![allow(missing_docs, reason = "the names are those of librip_format::Site")]
    pub const STATE: usize = 0;
    pub const MODULE: usize = 4;
    pub const PC: usize = 8;
    pub const TEXT: usize = 16;
    pub const LINE: usize = 24;
    pub const COLUMN: usize = 28;
    pub const KIND: usize = 32;
    pub const OPERAND_COUNT: usize = 33;
    pub const FLAGS: usize = 34;
    pub const OPERAND_TYPES: usize = 36;
    pub const LEN: usize = 48;
}

/// Offsets in an entry of a held-lock table, and the bits of its place.
pub mod held_at {
    #![allow(missing_docs, reason = "the names are those of librip_format::HeldLock")]
    pub const LOCK: usize = 0;
    pub const PLACE: usize = 8;
    pub const SINCE: usize = 16;
    pub const LEN: usize = 24;
    pub const ENTRIES: usize = 16;
    pub const STATE_SHIFT: u32 = 48;
    pub const SHARED_BIT: u32 = 51;
    pub const SINCE_BIT: u32 = 52;
    pub const CALLER_BIT: u32 = 53;
    pub const TRY_BIT: u32 = 54;
    pub const PROCESS_SHARED_BIT: u32 = 55;
    pub const SEQUENCE_SHIFT: u32 = 56;
    pub const AGAIN_SHIFT: u32 = 48;
}

/// Offsets in an entry of the table of lock names.
pub mod lock_name_at {
    #![allow(missing_docs, reason = "the names are those of librip_format::LockName")]
    pub const STATE: usize = 0;
    pub const PID: usize = 4;
    pub const LOCK: usize = 8;
    pub const NAME: usize = 16;
    pub const LEN: usize = 64;
}

const REGION_LEN: usize = 32;
const REGIONS: usize = 16;

/// The four states of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the format")]
pub enum State {
    Free,
    Live,
    Exited,
    Claiming,
}

/// A ring, read.
#[derive(Debug)]
#[allow(missing_docs, reason = "the names are those of librip_format::Header")]
pub struct Ring {
    pub pid: u32,
    pub uid: u32,
    pub start_time_ticks: u64,
    pub settings_ignored: u32,
    pub slot_words: u32,
    pub slot_capacity: u64,
    pub slots_used: u64,
    pub slots_reserved: u64,
    pub refused_full: u64,
    pub refused_memory: u64,
    pub without_exit: u64,
    pub slots_reused: u64,
    pub metadata_refused: u64,
    pub clock_level: u32,
    pub held_overflows: u64,
    pub releases_unmatched: u64,
    /// The names that locks have now: process, address, name.
    pub lock_names: Vec<(u32, u64, String)>,
    /// The status that the creator gave to `exit`, if it came to that.
    pub exit_status: Option<i32>,
    pub modules: Vec<Module>,
    pub sites: Vec<Site>,
    /// Those that have been handed out.
    pub slots: Vec<Slot>,
}

/// An executable or library.
#[derive(Debug)]
#[allow(missing_docs, reason = "the names are those of librip_format::Module")]
pub struct Module {
    pub path: String,
    pub load_bias: u64,
    pub begin: u64,
    pub end: u64,
    pub is_executable: bool,
    pub build_id: Vec<u8>,
}

/// A mark in the source.
#[derive(Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of librip_format::Site")]
pub struct Site {
    pub module: usize,
    /// Module-relative.
    pub pc: u64,
    pub file: String,
    pub module_path: String,
    pub label: String,
    pub line: u32,
    pub column: u32,
    pub kind: u8,
    pub flags: u16,
    pub operand_types: Vec<u8>,
}

/// One thread's part.
#[derive(Debug)]
#[allow(missing_docs, reason = "the names are those of librip_format::SlotHeader")]
pub struct Slot {
    pub index: usize,
    pub state: State,
    pub generation: u32,
    pub pid: u32,
    pub tid: u32,
    pub claimed_ns: u64,
    pub exited_ns: u64,
    pub first_sequence: u64,
    pub name: String,
    pub count: u64,
    pub mask: u64,
    pub words: Vec<u64>,
    pub held_beyond: u32,
    /// The entries in use of the held-lock table, but those that were being written.
    pub held: Vec<Held>,
}

/// What a thread does with a lock: see `HELD_*` in `librip_format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the format")]
pub enum Holding {
    Taking,
    Waiting,
    Held,
    Releasing,
    Condition,
    Destroyed,
    Unit,
}

/// An entry of a held-lock table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The lock's address.
    pub lock: u64,
    /// An actual address.
    pub pc: u64,
    /// It is a return address.
    pub is_caller: bool,
    /// What of it.
    pub state: Holding,
    /// In shared mode.
    pub shared: bool,
    /// Ticks, 0 for not known, where the entry says so at all.
    pub since: Option<u64>,
    /// How often it was taken again.
    pub again: u64,
}

/// A recorded program counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The full sequence, not only the 15 bits that the word holds.
    pub sequence: u64,
    /// An actual address.
    pub pc: u64,
    /// The operand words before it, as far as the slot still has them.
    pub operands: Vec<u64>,
}

/// What a slot's owner recorded, as far as the slot still has it.
#[derive(Debug, Default)]
pub struct Events {
    /// Oldest first.
    pub events: Vec<Event>,
    /// Sequences that were reserved and whose word is not there.
    pub missing: Vec<u64>,
}

/// Why a file is no ring, or not a ring that the recorder may leave behind.
#[derive(Debug)]
pub enum Damage {
    /// There is no such file, or it cannot be read.
    NoFile(std::io::Error),
    /// The magic is zero: it was never finished.
    Unfinished,
    /// The format does not allow this.
    Defect(String),
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::NoFile(error) => write!(f, "no file: {error}"),
            Damage::Unfinished => write!(f, "never finished"),
            Damage::Defect(what) => f.write_str(what),
        }
    }
}

macro_rules! require {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err(Damage::Defect(format!($($message)+)));
        }
    };
}

struct Bytes(Vec<u8>);

impl Bytes {
    fn get<const N: usize>(&self, at: usize) -> Result<[u8; N], Damage> {
        let end = at.checked_add(N);
        let bytes = end.and_then(|end| self.0.get(at..end));
        let bytes = bytes.ok_or_else(|| Damage::Defect(format!("file ends before offset {at}")))?;
        Ok(bytes.try_into().expect("the slice has this length"))
    }
    fn u16(&self, at: usize) -> Result<u16, Damage> {
        Ok(u16::from_le_bytes(self.get(at)?))
    }
    fn u32(&self, at: usize) -> Result<u32, Damage> {
        Ok(u32::from_le_bytes(self.get(at)?))
    }
    fn u64(&self, at: usize) -> Result<u64, Damage> {
        Ok(u64::from_le_bytes(self.get(at)?))
    }
}

struct Region {
    entry_len: usize,
    offset: usize,
    capacity: u64,
    used: u64,
}

impl Ring {
    /// Reads a ring.
    ///
    /// # Errors
    ///
    /// [`Damage`], at the first thing that the format does not allow.
    pub fn read(path: impl AsRef<Path>) -> Result<Ring, Damage> {
        Ring::parse(fs::read(path).map_err(Damage::NoFile)?)
    }

    /// Parses the bytes of a ring.
    ///
    /// # Errors
    ///
    /// As [`Ring::read`].
    pub fn parse(bytes: Vec<u8>) -> Result<Ring, Damage> {
        let bytes = Bytes(bytes);
        if bytes.0.is_empty() || bytes.u64(header_at::MAGIC)? == 0 {
            return Err(Damage::Unfinished);
        }
        require!(bytes.get::<8>(header_at::MAGIC)? == *b"\x7fRIPRING", "magic");
        require!(bytes.u32(header_at::BYTE_ORDER)? == 0x0102_0304, "byte order");
        require!(bytes.u16(header_at::VERSION_MAJOR)? == 1, "major version");
        require!(bytes.u32(header_at::HEADER_LEN)? as usize >= header_at::LEN, "header length");
        let machine = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
        require!(bytes.u32(header_at::MACHINE)? == machine, "machine");
        require!(bytes.u64(header_at::FILE_LEN)? == bytes.0.len() as u64, "file length");
        let words = bytes.u32(header_at::SLOT_WORDS)?;
        require!(words.is_power_of_two() && (16..=16384).contains(&words), "{words} words a slot");
        let slot_len = bytes.u64(header_at::SLOT_LEN)?;
        require!(slot_len == 512 + 8 * u64::from(words), "slot length {slot_len}");

        let modules_at = region(&bytes, 1)?;
        let sites_at = region(&bytes, 2)?;
        let texts_at = region(&bytes, 3)?;
        let slots_at = region(&bytes, 5)?;
        require!(modules_at.entry_len >= module_at::LEN, "module entries");
        require!(sites_at.entry_len >= site_at::LEN, "site entries");
        require!(slots_at.entry_len as u64 == slot_len, "slot entries");
        let exit_status = match bytes.u32(header_at::EXIT_STATE)? {
            0 => None,
            1 => Some(bytes.u32(header_at::EXIT_STATUS)? as i32),
            other => return Err(Damage::Defect(format!("exit state {other}"))),
        };
        let mut ring = Ring {
            pid: bytes.u32(header_at::PID)?,
            uid: bytes.u32(header_at::UID)?,
            start_time_ticks: bytes.u64(header_at::START_TIME)?,
            settings_ignored: bytes.u32(header_at::SETTINGS_IGNORED)?,
            slot_words: words,
            slot_capacity: slots_at.capacity,
            slots_used: slots_at.used,
            slots_reserved: bytes.u64(header_at::SLOTS_RESERVED)?,
            refused_full: bytes.u64(header_at::REFUSED_FULL)?,
            refused_memory: bytes.u64(header_at::REFUSED_MEMORY)?,
            without_exit: bytes.u64(header_at::WITHOUT_EXIT)?,
            slots_reused: bytes.u64(header_at::SLOTS_REUSED)?,
            metadata_refused: bytes.u64(header_at::METADATA_REFUSED)?,
            clock_level: bytes.u32(header_at::CLOCK_LEVEL)?,
            held_overflows: bytes.u64(header_at::HELD_OVERFLOWS)?,
            releases_unmatched: bytes.u64(header_at::RELEASES_UNMATCHED)?,
            lock_names: lock_names(&bytes)?,
            exit_status,
            modules: Vec::new(),
            sites: Vec::new(),
            slots: Vec::new(),
        };
        require!(ring.slots_used <= ring.slots_reserved, "slots were handed out without memory");

        let text = |at: usize| -> Result<String, Damage> {
            let (offset, len) = (bytes.u32(at)? as usize, bytes.u32(at + 4)? as usize);
            require!((offset + len) as u64 <= texts_at.used, "text outside its region");
            let start = texts_at.offset + offset;
            Ok(String::from_utf8_lossy(&bytes.0[start..start + len]).into_owned())
        };
        for index in 0..modules_at.used as usize {
            let at = modules_at.offset + index * modules_at.entry_len;
            require!(bytes.u32(at + module_at::STATE)? == 1, "module {index} is incomplete");
            let id_len = bytes.u32(at + module_at::BUILD_ID_LEN)? as usize;
            require!(id_len <= 32, "build id of {id_len} bytes");
            ring.modules.push(Module {
                path: text(at + module_at::PATH)?,
                load_bias: bytes.u64(at + module_at::LOAD_BIAS)?,
                begin: bytes.u64(at + module_at::BEGIN)?,
                end: bytes.u64(at + module_at::END)?,
                is_executable: bytes.u32(at + module_at::IS_EXECUTABLE)? == 1,
                build_id: bytes.get::<32>(at + module_at::BUILD_ID)?[..id_len].to_vec(),
            });
        }
        for index in 0..sites_at.used as usize {
            let at = sites_at.offset + index * sites_at.entry_len;
            require!(bytes.u32(at + site_at::STATE)? == 1, "site {index} is incomplete");
            let text = text(at + site_at::TEXT)?;
            let mut parts = text.split('\0').map(str::to_owned);
            let (Some(file), Some(module_path), Some(label), None) =
                (parts.next(), parts.next(), parts.next(), parts.next())
            else {
                return Err(Damage::Defect(format!("site {index} has the text {text:?}")));
            };
            let module = bytes.u32(at + site_at::MODULE)? as usize;
            let pc = bytes.u64(at + site_at::PC)?;
            let Some(home) = ring.modules.get(module) else {
                return Err(Damage::Defect(format!("site {index} is of module {module}")));
            };
            require!((home.begin..home.end).contains(&pc), "site {index} is outside its module");
            let operands = bytes.get::<1>(at + site_at::OPERAND_COUNT)?[0] as usize;
            let operand_types = bytes.get::<12>(at + site_at::OPERAND_TYPES)?;
            require!(operands <= 12, "site {index} has {operands} operands");
            require!(
                operand_types[..operands].iter().all(|&operand| matches!(operand, 3..=7))
                    && operand_types[operands..].iter().all(|&operand| operand == 0),
                "site {index} has operands of the types {operand_types:?}"
            );
            ring.sites.push(Site {
                module,
                pc,
                file,
                module_path,
                label,
                line: bytes.u32(at + site_at::LINE)?,
                column: bytes.u32(at + site_at::COLUMN)?,
                kind: bytes.get::<1>(at + site_at::KIND)?[0],
                flags: bytes.u16(at + site_at::FLAGS)?,
                operand_types: operand_types[..operands].to_vec(),
            });
        }
        for index in 0..slots_at.used as usize {
            let at = slots_at.offset + index * slots_at.entry_len;
            ring.slots.push(slot(&bytes, at, index, words)?);
        }
        ring.slots.iter().try_for_each(|slot| ring.check_operands(slot))?;
        Ok(ring)
    }

    /// Before each PC stand as many operands as its site has, no more and no less.
    fn check_operands(&self, slot: &Slot) -> Result<(), Damage> {
        let events = slot.events();
        for (index, event) in events.events.iter().enumerate() {
            let site = self.site_of(event.pc);
            let wanted = site.map_or(0, |site| site.operand_types.len());
            // The oldest event may have lost operands to newer words, and the newest to death.
            let first = event.sequence - event.operands.len() as u64;
            let is_cut = index == 0 || events.missing.contains(&(first.wrapping_sub(1)));
            let (slot, had) = (slot.index, event.operands.len());
            require!(
                had == wanted || is_cut && had < wanted,
                "slot {slot}: {had} operands instead of {wanted}, at {}",
                event.sequence
            );
        }
        Ok(())
    }

    /// What a slot's owner did with locks: the kind of each event, its flags, and its operands by type.
    pub fn lock_events(&self, slot: &Slot) -> Vec<LockEvent> {
        let events = slot.events().events;
        let with_site = events.iter().filter_map(|event| Some((event, self.site_of(event.pc)?)));
        with_site
            .filter(|(event, site)| site.kind > 1 && event.operands.len() == site.operand_types.len())
            .map(|(event, site)| {
                let operand = |wanted: u8| {
                    let at = site.operand_types.iter().position(|&operand| operand == wanted)?;
                    Some(event.operands[at])
                };
                LockEvent {
                    kind: site.kind,
                    flags: site.flags,
                    pc: event.pc,
                    lock: operand(3).unwrap_or_default(),
                    time: operand(4),
                    since: operand(5),
                    condition: operand(6),
                }
            })
            .collect()
    }

    /// The site of an actual address.
    pub fn site_of(&self, pc: u64) -> Option<&Site> {
        self.sites.iter().find(|site| self.modules[site.module].load_bias.wrapping_add(site.pc) == pc)
    }

    /// The label of the site of an actual address.
    ///
    /// # Panics
    ///
    /// When no site is there: the recorder stored an address that is no mark's.
    pub fn label(&self, pc: u64) -> &str {
        match self.site_of(pc) {
            Some(site) => &site.label,
            None => panic!("{pc:#x} is no site's"),
        }
    }

    /// The slots whose owner had this name.
    pub fn slots_named<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Slot> {
        let name = name.to_owned();
        self.slots.iter().filter(move |slot| slot.name == name)
    }

    /// The one slot whose owner had this name.
    ///
    /// # Panics
    ///
    /// When there is none, or more than one.
    pub fn slot_named(&self, name: &str) -> &Slot {
        let found: Vec<&Slot> = self.slots_named(name).collect();
        let names: Vec<&str> = self.slots.iter().map(|slot| slot.name.as_str()).collect();
        assert_eq!(found.len(), 1, "slots named {name:?}; there are {names:?}");
        found[0]
    }

    /// The labels that a slot's owner recorded and the slot still holds, oldest first.
    ///
    /// # Panics
    ///
    /// When a word is missing or is no site's.
    pub fn labels(&self, slot: &Slot) -> Vec<&str> {
        let events = slot.events();
        assert!(events.missing.is_empty(), "slot {} lacks {:?}", slot.index, events.missing);
        events.events.iter().map(|event| self.label(event.pc)).collect()
    }
}

/// An event of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the format")]
pub struct LockEvent {
    pub kind: u8,
    pub flags: u16,
    pub pc: u64,
    pub lock: u64,
    pub time: Option<u64>,
    pub since: Option<u64>,
    pub condition: Option<u64>,
}

impl Slot {
    /// The entry of a lock in the held-lock table.
    ///
    /// # Panics
    ///
    /// When there are several.
    pub fn held_of(&self, lock: u64) -> Option<Held> {
        let found: Vec<&Held> = self.held.iter().filter(|held| held.lock == lock).collect();
        assert!(found.len() < 2, "{found:?}");
        found.first().copied().copied()
    }

    /// What the present owner recorded.
    pub fn events(&self) -> Events {
        let oldest = self.count.saturating_sub(self.words.len() as u64).max(self.first_sequence);
        let mut events = Events::default();
        let mut operands = Vec::new();
        for sequence in oldest..self.count {
            let word = self.words[(sequence % self.words.len() as u64) as usize];
            let payload = word & 0xffff_ffff_ffff;
            if word == 0 || word >> 49 != sequence & 0x7fff {
                events.missing.push(sequence);
                operands.clear();
            } else if word & 1 << 48 != 0 {
                operands.push(payload);
            } else {
                events.events.push(Event { sequence, pc: payload, operands: std::mem::take(&mut operands) });
            }
        }
        events
    }
}

fn region(bytes: &Bytes, wanted: u32) -> Result<Region, Damage> {
    for index in 0..REGIONS {
        let at = header_at::REGIONS + index * REGION_LEN;
        if bytes.u32(at)? != wanted {
            continue;
        }
        let region = Region {
            entry_len: bytes.u32(at + 4)? as usize,
            offset: bytes.u64(at + 8)? as usize,
            capacity: bytes.u64(at + 16)?,
            used: bytes.u64(at + 24)?,
        };
        require!(region.offset.is_multiple_of(4096), "region {wanted} begins at {}", region.offset);
        require!(region.used <= region.capacity, "region {wanted} is overfull");
        let end = region.offset as u64 + region.capacity * region.entry_len as u64;
        require!(end <= bytes.0.len() as u64, "region {wanted} ends at {end}");
        return Ok(region);
    }
    Err(Damage::Defect(format!("no region {wanted}")))
}

/// The names in the table that are complete. Rings of programs that name no lock have the table too.
fn lock_names(bytes: &Bytes) -> Result<Vec<(u32, u64, String)>, Damage> {
    let table = region(bytes, 6)?;
    require!(table.entry_len >= lock_name_at::LEN, "lock name entries");
    let mut names = Vec::new();
    for index in 0..table.used as usize {
        let at = table.offset + index * table.entry_len;
        let state = bytes.u32(at + lock_name_at::STATE)?;
        require!(state <= 2, "lock name {index} has state {state}");
        if state == 1 {
            let name = bytes.get::<48>(at + lock_name_at::NAME)?;
            let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
            let (pid, lock) = (bytes.u32(at + lock_name_at::PID)?, bytes.u64(at + lock_name_at::LOCK)?);
            names.push((pid, lock, String::from_utf8_lossy(name).into_owned()));
        }
    }
    Ok(names)
}

/// Parses a held-lock table. An entry whose halves have different sequences was being written.
fn held(bytes: &Bytes, at: usize) -> Result<Vec<Held>, Damage> {
    let mut entries = Vec::new();
    for index in 0..held_at::ENTRIES {
        let at = at + index * held_at::LEN;
        let (lock, place) = (bytes.u64(at + held_at::LOCK)?, bytes.u64(at + held_at::PLACE)?);
        let state = match place >> held_at::STATE_SHIFT & 7 {
            0 => continue,
            1 => Holding::Taking,
            2 => Holding::Waiting,
            3 => Holding::Held,
            4 => Holding::Releasing,
            5 => Holding::Condition,
            6 => Holding::Destroyed,
            _ => Holding::Unit,
        };
        if lock >> 49 & 0xff != place >> held_at::SEQUENCE_SHIFT {
            require!(state == Holding::Taking, "an entry is {state:?} and not whole");
            continue;
        }
        require!(lock & 1 << 48 != 0, "a lock's address is no operand");
        let since = bytes.u64(at + held_at::SINCE)?;
        let has_since = place >> held_at::SINCE_BIT & 1 == 1;
        entries.push(Held {
            lock: lock & 0xffff_ffff_ffff,
            pc: place & 0xffff_ffff_ffff,
            is_caller: place >> held_at::CALLER_BIT & 1 == 1,
            state,
            shared: place >> held_at::SHARED_BIT & 1 == 1,
            since: has_since.then_some(since & 0xffff_ffff_ffff),
            again: if has_since { since >> held_at::AGAIN_SHIFT } else { 0 },
        });
    }
    Ok(entries)
}

/// Parses a slot, and checks every word against its own place.
fn slot(bytes: &Bytes, at: usize, index: usize, words: u32) -> Result<Slot, Damage> {
    let state = match bytes.u32(at + slot_at::STATE)? {
        0 => State::Free,
        1 => State::Live,
        2 => State::Exited,
        3 => State::Claiming,
        other => return Err(Damage::Defect(format!("slot {index} has state {other}"))),
    };
    let name = &bytes.0[at + slot_at::NAME..at + slot_at::NAME_END];
    let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
    let slot = Slot {
        index,
        state,
        generation: bytes.u32(at + slot_at::GENERATION)?,
        pid: bytes.u32(at + slot_at::PID)?,
        tid: bytes.u32(at + slot_at::TID)?,
        claimed_ns: bytes.u64(at + slot_at::CLAIMED)?,
        exited_ns: bytes.u64(at + slot_at::EXITED)?,
        first_sequence: bytes.u64(at + slot_at::FIRST_SEQUENCE)?,
        name: String::from_utf8_lossy(name).into_owned(),
        count: bytes.u64(at + slot_at::COUNT)?,
        mask: bytes.u64(at + slot_at::MASK)?,
        words: (0..words as usize)
            .map(|word| bytes.u64(at + slot_at::WORDS + 8 * word))
            .collect::<Result<_, _>>()?,
        held_beyond: bytes.u32(at + slot_at::HELD_BEYOND)?,
        held: held(bytes, at + slot_at::HELD)?,
    };
    if matches!(state, State::Live | State::Exited) {
        require!(bytes.u32(at + slot_at::KIND)? == 1, "slot {index} has another kind");
        require!(slot.mask == u64::from(words) - 1, "slot {index} has mask {:#x}", slot.mask);
        require!(slot.first_sequence <= slot.count, "slot {index} begins behind its count");
        require!(slot.generation > 0 && slot.pid > 0 && slot.tid > 0, "slot {index} has no owner");
    }
    for (place, &word) in slot.words.iter().enumerate() {
        if word == 0 {
            require!(
                place as u64 >= slot.count || is_among_newest(&slot, place) || state == State::Claiming,
                "slot {index} has no word {place}, and count {}",
                slot.count
            );
            continue;
        }
        let sequence = word >> 49;
        require!(sequence % u64::from(words) == place as u64, "slot {index}: {word:#x} at place {place}");
        // Not newer than the count, and not older than the lap before (the newest may not have been stored).
        let age = slot.count.wrapping_sub(1).wrapping_sub(sequence) & 0x7fff;
        require!(age < 2 * u64::from(words), "slot {index}: {word:#x} is {age} words old");
    }
    Ok(slot)
}

/// Whether this is the place of a word that may have been reserved and not stored yet: of the last event, or, when
/// signal handlers interrupt one another between the two, one of the last few. An event has four words at most.
fn is_among_newest(slot: &Slot, place: usize) -> bool {
    let words = slot.words.len() as u64;
    (slot.count.saturating_sub(8)..slot.count).any(|sequence| sequence % words == place as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use librip_format::{
        self, Header, HeldLock, LockName, Module as RealModule, Region as RealRegion, Site as RealSite,
        SlotHeader,
    };
    use std::mem::{offset_of, size_of};

    #[test]
    fn the_oracles_offsets_are_those_of_the_format() {
        for (name, ours, theirs) in [
            ("magic", header_at::MAGIC, offset_of!(Header, magic)),
            ("byte_order", header_at::BYTE_ORDER, offset_of!(Header, byte_order)),
            ("version_major", header_at::VERSION_MAJOR, offset_of!(Header, version_major)),
            ("version_minor", header_at::VERSION_MINOR, offset_of!(Header, version_minor)),
            ("header_len", header_at::HEADER_LEN, offset_of!(Header, header_len_bytes)),
            ("machine", header_at::MACHINE, offset_of!(Header, machine)),
            ("page_len", header_at::PAGE_LEN, offset_of!(Header, page_len_bytes)),
            ("uid", header_at::UID, offset_of!(Header, uid)),
            ("boot_id", header_at::BOOT_ID, offset_of!(Header, boot_id)),
            ("pid", header_at::PID, offset_of!(Header, pid)),
            ("ticks", header_at::TICKS_PER_SECOND, offset_of!(Header, ticks_per_second)),
            ("start_time", header_at::START_TIME, offset_of!(Header, start_time_ticks)),
            ("pid_namespace", header_at::PID_NAMESPACE, offset_of!(Header, pid_namespace)),
            ("settings", header_at::SETTINGS_IGNORED, offset_of!(Header, settings_ignored)),
            ("slot_words", header_at::SLOT_WORDS, offset_of!(Header, slot_words)),
            ("slot_len", header_at::SLOT_LEN, offset_of!(Header, slot_len_bytes)),
            ("file_len", header_at::FILE_LEN, offset_of!(Header, file_len_bytes)),
            ("regions", header_at::REGIONS, offset_of!(Header, regions)),
            ("slots_reserved", header_at::SLOTS_RESERVED, offset_of!(Header, slots_reserved)),
            ("refused_full", header_at::REFUSED_FULL, offset_of!(Header, threads_refused_full)),
            ("refused_memory", header_at::REFUSED_MEMORY, offset_of!(Header, threads_refused_memory)),
            ("without_exit", header_at::WITHOUT_EXIT, offset_of!(Header, threads_without_exit)),
            ("slots_reused", header_at::SLOTS_REUSED, offset_of!(Header, slots_reused)),
            ("metadata_refused", header_at::METADATA_REFUSED, offset_of!(Header, metadata_refused)),
            ("exit_state", header_at::EXIT_STATE, offset_of!(Header, exit_state)),
            ("exit_status", header_at::EXIT_STATUS, offset_of!(Header, exit_status)),
            ("clock_level", header_at::CLOCK_LEVEL, offset_of!(Header, clock_level)),
            ("held_overflows", header_at::HELD_OVERFLOWS, offset_of!(Header, held_overflows)),
            ("releases_unmatched", header_at::RELEASES_UNMATCHED, offset_of!(Header, releases_unmatched)),
            ("forks", header_at::FORKS, offset_of!(Header, forks)),
            ("recent_children", header_at::RECENT_CHILDREN, offset_of!(Header, recent_children)),
            ("header", header_at::LEN, size_of::<Header>()),
            ("region", REGION_LEN, size_of::<RealRegion>()),
            ("regions", REGIONS, librip_format::REGIONS_MAX),
            ("module.load_bias", module_at::LOAD_BIAS, offset_of!(RealModule, load_bias)),
            ("module.path", module_at::PATH, offset_of!(RealModule, path)),
            ("module.build_id", module_at::BUILD_ID, offset_of!(RealModule, build_id)),
            ("module", module_at::LEN, size_of::<RealModule>()),
            ("site.pc", site_at::PC, offset_of!(RealSite, pc)),
            ("site.text", site_at::TEXT, offset_of!(RealSite, text)),
            ("site.line", site_at::LINE, offset_of!(RealSite, line)),
            ("site.kind", site_at::KIND, offset_of!(RealSite, kind)),
            ("site.flags", site_at::FLAGS, offset_of!(RealSite, flags)),
            ("site.operand_types", site_at::OPERAND_TYPES, offset_of!(RealSite, operand_types)),
            ("site", site_at::LEN, size_of::<RealSite>()),
            ("held.lock", held_at::LOCK, offset_of!(HeldLock, lock)),
            ("held.place", held_at::PLACE, offset_of!(HeldLock, meta)),
            ("held.since", held_at::SINCE, offset_of!(HeldLock, since)),
            ("held", held_at::LEN, size_of::<HeldLock>()),
            ("held entries", held_at::ENTRIES, librip_format::HELD_MAX),
            ("held state", held_at::STATE_SHIFT as usize, librip_format::HELD_STATE_SHIFT as usize),
            ("held shared", held_at::SHARED_BIT as usize, librip_format::HELD_SHARED.ilog2() as usize),
            ("held since", held_at::SINCE_BIT as usize, librip_format::HELD_SINCE.ilog2() as usize),
            ("held caller", held_at::CALLER_BIT as usize, librip_format::HELD_CALLER.ilog2() as usize),
            ("held try", held_at::TRY_BIT as usize, librip_format::HELD_TRY.ilog2() as usize),
            (
                "held process-shared",
                held_at::PROCESS_SHARED_BIT as usize,
                librip_format::HELD_PROCESS_SHARED.ilog2() as usize,
            ),
            ("held sequence", held_at::SEQUENCE_SHIFT as usize, librip_format::HELD_SEQUENCE_SHIFT as usize),
            ("held again", held_at::AGAIN_SHIFT as usize, librip_format::HELD_RECURSION_SHIFT as usize),
            ("lock_name.state", lock_name_at::STATE, offset_of!(LockName, state)),
            ("lock_name.pid", lock_name_at::PID, offset_of!(LockName, pid)),
            ("lock_name.lock", lock_name_at::LOCK, offset_of!(LockName, lock)),
            ("lock_name.name", lock_name_at::NAME, offset_of!(LockName, name)),
            ("lock_name", lock_name_at::LEN, size_of::<LockName>()),
            ("slot.held_beyond", slot_at::HELD_BEYOND, offset_of!(SlotHeader, held_overflowed)),
            ("slot.held", slot_at::HELD, offset_of!(SlotHeader, held)),
            ("slot.state", slot_at::STATE, offset_of!(SlotHeader, state)),
            ("slot.generation", slot_at::GENERATION, offset_of!(SlotHeader, generation)),
            ("slot.pid", slot_at::PID, offset_of!(SlotHeader, pid)),
            ("slot.tid", slot_at::TID, offset_of!(SlotHeader, tid)),
            ("slot.claimed", slot_at::CLAIMED, offset_of!(SlotHeader, claimed_boottime_ns)),
            ("slot.exited", slot_at::EXITED, offset_of!(SlotHeader, exited_boottime_ns)),
            ("slot.first", slot_at::FIRST_SEQUENCE, offset_of!(SlotHeader, first_sequence)),
            ("slot.pid_namespace", slot_at::PID_NAMESPACE, offset_of!(SlotHeader, pid_namespace)),
            ("slot.name", slot_at::NAME, offset_of!(SlotHeader, name)),
            ("slot.count", slot_at::COUNT, offset_of!(SlotHeader, count)),
            ("slot.mask", slot_at::MASK, offset_of!(SlotHeader, mask)),
            ("slot", slot_at::WORDS, size_of::<SlotHeader>()),
        ] {
            assert_eq!(ours, theirs, "{name}");
        }
    }

    #[test]
    fn the_oracle_refuses_a_word_in_the_wrong_place() {
        // A slot of 16 words by itself: count 20, so words 4..20 are there.
        let slot_of = |damage: &dyn Fn(&mut [u64])| {
            let mut words: Vec<u64> =
                (0..16).map(|place| if place < 4 { place + 16 } else { place }).collect();
            words.iter_mut().for_each(|word| *word = *word << 49 | 0x5555_0000_1000);
            damage(&mut words);
            let mut bytes = vec![0u8; 512];
            for (at, value) in [(0, 1u32), (4, 1), (8, 1), (12, 7), (16, 7)] {
                bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
            }
            bytes[496..504].copy_from_slice(&20u64.to_le_bytes());
            bytes[504..512].copy_from_slice(&15u64.to_le_bytes());
            bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
            slot(&Bytes(bytes), 0, 0, 16)
        };
        let good = slot_of(&|_| ()).unwrap().events();
        assert_eq!((good.events.len(), good.events[0].sequence, good.missing.len()), (16, 4, 0));
        assert!(slot_of(&|words| words.swap(5, 6)).is_err(), "two words changed places");
        assert!(slot_of(&|words| words[10] = 0).is_err(), "a word vanished");
        let operand = slot_of(&|words| words[10] |= 1 << 48).unwrap().events();
        assert_eq!(operand.events.len(), 15);
        assert_eq!(operand.events[6].operands, [0x5555_0000_1000]);
        assert!(slot_of(&|words| words[9] += 32 << 49).is_err(), "a word from the future");
        let unstored = slot_of(&|words| words[3] = 3 << 49 | 0x1000).unwrap().events();
        assert_eq!(unstored.missing, [19], "the newest may not have been stored when the program died");
    }
}
