//! Bytes to a [`Ring`], or to the first thing that the format does not allow.
//!
//! It does not repair or guess anything.

use std::fs;
use std::path::Path;

use super::{Call, Damage, LongPoll, Module, Polls, Ring, Site, Slot};
use crate::checksum;
use crate::format::{
    BYTE_ORDER, MACHINES, MAGIC, POLL_COUNTS, POLL_LANES, REGION_ALIGN, REGIONS, call_at, header_at,
    lock_name_at, long_poll_at, module_at, name_state, operand, poll_lane_at, poll_lengths_at, poll_place_at,
    region, region_at, site_at, slot_at, span_at, task_at,
};

macro_rules! require {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err(Damage::Defect(format!($($message)+)));
        }
    };
}

mod slot;

use slot::slot;

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

/// Where words may be that were reserved and not written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unwritten {
    /// Among the newest: the program died before it wrote them.
    AtTheEnd,
    /// Signal handlers may have come while words were being reserved.
    Anywhere,
}

struct Region {
    entry_len: usize,
    offset: usize,
    capacity: u64,
    used: u64,
}

impl Region {
    /// The offsets of the entries in use.
    fn entries(&self) -> impl Iterator<Item = usize> {
        (0..self.used as usize).map(|index| self.offset + index * self.entry_len)
    }
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

    /// Reads the ring of a program whose signal handlers record. A handler may come while words are being reserved.
    /// Then they may stay unwritten: [`Slot::events`] has them as missing.
    ///
    /// # Errors
    ///
    /// As [`Ring::read`].
    pub fn read_interrupted(path: impl AsRef<Path>) -> Result<Ring, Damage> {
        Ring::parse_with(fs::read(path).map_err(Damage::NoFile)?, Unwritten::Anywhere)
    }

    /// Parses the bytes of a ring.
    ///
    /// # Errors
    ///
    /// As [`Ring::read`].
    pub fn parse(bytes: Vec<u8>) -> Result<Ring, Damage> {
        Ring::parse_with(bytes, Unwritten::AtTheEnd)
    }

    fn parse_with(bytes: Vec<u8>, unwritten: Unwritten) -> Result<Ring, Damage> {
        let bytes = Bytes(bytes);
        check_header(&bytes)?;
        let mut ring = counters(&bytes)?;
        let texts = region(&bytes, region::TEXTS)?;
        let modules = region(&bytes, region::MODULES)?;
        require!(modules.entry_len >= module_at::LEN, "module entries");
        for at in modules.entries() {
            ring.modules.push(module(&bytes, at, &texts)?);
        }
        let sites = region(&bytes, region::SITES)?;
        require!(sites.entry_len >= site_at::LEN, "site entries");
        for at in sites.entries() {
            ring.sites.push(site(&bytes, at, &texts, &ring.modules)?);
        }
        let slots = region(&bytes, region::SLOTS)?;
        for (index, at) in slots.entries().enumerate() {
            let times = bytes.u32(header_at::SAMPLED_TIMES)? as usize;
            let end = at + bytes.u64(header_at::SLOT_LEN)? as usize;
            let end = end - bytes.u32(header_at::TASK_LEN)? as usize;
            let slot = slot(&bytes, at, index, ring.slot_words, end - 16 * times..end, unwritten)?;
            match slot.is_capture {
                true => ring.captures.push(slot),
                false => ring.slots.push(slot),
            }
        }
        ring.slots.iter().try_for_each(|slot| ring.check_operands(slot))?;
        Ok(ring)
    }

    /// Checks that each PC follows exactly as many operands as its site has.
    fn check_operands(&self, slot: &Slot) -> Result<(), Damage> {
        let events = slot.events();
        for (index, event) in events.events.iter().enumerate() {
            let site = self.site_of(event.pc);
            let without_site = usize::from(self.is_call(event.pc));
            // The last operand of an event with values says how many words are before it.
            let shaped = || 1 + event.operands.last().map_or(0, |shape| shape >> 40 & 63) as usize;
            let wanted = site.map_or(without_site, |site| match site.operand_types[..] {
                [operand::SHAPE] => shaped(),
                _ => site.operand_types.len(),
            });
            // The oldest event may have lost operands to newer words, and the newest to the process's death.
            let first = event.sequence - event.operands.len() as u64;
            let is_cut = index == 0 || events.missing.contains(&(first.wrapping_sub(1)));
            let (slot, found) = (slot.index, event.operands.len());
            require!(
                found == wanted || is_cut && found < wanted,
                "slot {slot}: {found} operands instead of {wanted}, at {}",
                event.sequence
            );
        }
        Ok(())
    }
}

fn check_header(bytes: &Bytes) -> Result<(), Damage> {
    if bytes.0.is_empty() || bytes.u64(header_at::MAGIC)? == 0 {
        return Err(Damage::Unfinished);
    }
    require!(bytes.get::<8>(header_at::MAGIC)? == MAGIC, "magic");
    require!(bytes.u32(header_at::BYTE_ORDER)? == BYTE_ORDER, "byte order");
    require!(bytes.u16(header_at::VERSION_MAJOR)? == 1, "major version");
    require!(bytes.u32(header_at::HEADER_LEN)? as usize >= header_at::LEN, "header length");
    let machine = if cfg!(target_arch = "x86_64") { MACHINES[0] } else { MACHINES[1] };
    require!(bytes.u32(header_at::MACHINE)? == machine, "machine");
    require!(bytes.u64(header_at::FILE_LEN)? == bytes.0.len() as u64, "file length");
    let expected = checksum::of_header(&bytes.0);
    require!(bytes.u64(header_at::CHECKSUM)? == expected, "the header does not have its checksum");
    let words = bytes.u32(header_at::SLOT_WORDS)?;
    require!(words.is_power_of_two() && (16..=16384).contains(&words), "{words} words a slot");
    let slot_len = bytes.u64(header_at::SLOT_LEN)?;
    let spans = u64::from(bytes.u32(header_at::SPAN_ENTRIES)?);
    require!(spans == 0 || spans == 16, "{spans} open spans");
    let channels = u64::from(bytes.u32(header_at::CHANNEL_ENTRIES)?);
    require!(channels == 0 || channels == 8, "{channels} channels");
    let times = u64::from(bytes.u32(header_at::SAMPLED_TIMES)?);
    require!(times == 0 || times == 16, "{times} sampled times");
    let task_len = u64::from(bytes.u32(header_at::TASK_LEN)?);
    require!(task_len == 0 || task_len == task_at::LEN as u64, "{task_len} bytes for tasks");
    let words_len = slot_at::LEN as u64 + 8 * u64::from(words);
    let times_len = if times == 0 { 0 } else { 8 + 16 * times };
    let expected = words_len + span_at::LEN as u64 * spans + 8 * channels + times_len + task_len;
    require!(slot_len == expected, "slot length {slot_len}");
    require!(region(bytes, region::SLOTS)?.entry_len as u64 == slot_len, "slot entries");
    Ok(())
}

/// A ring with the values of the header and empty tables.
fn counters(bytes: &Bytes) -> Result<Ring, Damage> {
    let exit_status = match bytes.u32(header_at::EXIT_STATE)? {
        0 => None,
        1 => Some(bytes.u32(header_at::EXIT_STATUS)? as i32),
        other => return Err(Damage::Defect(format!("exit state {other}"))),
    };
    let slots = region(bytes, region::SLOTS)?;
    let ring = Ring {
        pid: bytes.u32(header_at::PID)?,
        uid: bytes.u32(header_at::UID)?,
        start_time_ticks: bytes.u64(header_at::START_TIME)?,
        settings_ignored: bytes.u32(header_at::SETTINGS_IGNORED)?,
        slot_words: bytes.u32(header_at::SLOT_WORDS)?,
        slot_capacity: slots.capacity,
        slots_used: slots.used,
        refused_full: bytes.u64(header_at::REFUSED_FULL)?,
        refused_memory: bytes.u64(header_at::REFUSED_MEMORY)?,
        refused_filter: bytes.u64(header_at::REFUSED_FILTER)?,
        without_exit: bytes.u64(header_at::WITHOUT_EXIT)?,
        slots_reused: bytes.u64(header_at::SLOTS_REUSED)?,
        metadata_refused: bytes.u64(header_at::METADATA_REFUSED)?,
        lock_names_refused: bytes.u64(header_at::LOCK_NAMES_REFUSED)?,
        captures_refused: bytes.u64(header_at::CAPTURES_REFUSED)?,
        clock_level: bytes.u32(header_at::CLOCK_LEVEL)?,
        held_overflows: bytes.u64(header_at::HELD_OVERFLOWS)?,
        releases_unmatched: bytes.u64(header_at::RELEASES_UNMATCHED)?,
        lock_names: lock_names(bytes)?,
        calls: calls(bytes)?,
        polls: polls(bytes)?,
        exit_status,
        modules: Vec::new(),
        sites: Vec::new(),
        slots: Vec::new(),
        captures: Vec::new(),
    };
    Ok(ring)
}

fn text(bytes: &Bytes, at: usize, texts: &Region) -> Result<String, Damage> {
    let (offset, len) = (bytes.u32(at)? as usize, bytes.u32(at + 4)? as usize);
    require!((offset + len) as u64 <= texts.used, "text outside its region");
    let start = texts.offset + offset;
    Ok(String::from_utf8_lossy(&bytes.0[start..start + len]).into_owned())
}

/// Checks the state of a module or site, which is the checksum of the entry and of the text at `text`.
fn check_entry(bytes: &Bytes, at: usize, len: usize, text: usize, texts: &Region) -> Result<(), Damage> {
    let (offset, text_len) = (bytes.u32(text)? as usize, bytes.u32(text + 4)? as usize);
    require!((offset + text_len) as u64 <= texts.used, "text outside its region");
    let text = &bytes.0[texts.offset + offset..][..text_len];
    let expected = checksum::state_with_text(&bytes.0[at..at + len], text);
    require!(bytes.u32(at)? == expected, "the entry at {at} does not have its checksum");
    Ok(())
}

fn module(bytes: &Bytes, at: usize, texts: &Region) -> Result<Module, Damage> {
    check_entry(bytes, at, module_at::LEN, at + module_at::PATH, texts)?;
    let id_len = bytes.u32(at + module_at::BUILD_ID_LEN)? as usize;
    require!(id_len <= 32, "build id of {id_len} bytes");
    Ok(Module {
        path: text(bytes, at + module_at::PATH, texts)?,
        load_bias: bytes.u64(at + module_at::LOAD_BIAS)?,
        begin: bytes.u64(at + module_at::BEGIN)?,
        end: bytes.u64(at + module_at::END)?,
        is_executable: bytes.u32(at + module_at::IS_EXECUTABLE)? == 1,
        build_id: bytes.get::<32>(at + module_at::BUILD_ID)?[..id_len].to_vec(),
        code_begin: bytes.u64(at + module_at::CODE_BEGIN)?,
        code_end: bytes.u64(at + module_at::CODE_END)?,
    })
}

fn site(bytes: &Bytes, at: usize, texts: &Region, modules: &[Module]) -> Result<Site, Damage> {
    check_entry(bytes, at, site_at::LEN, at + site_at::TEXT, texts)?;
    let text = text(bytes, at + site_at::TEXT, texts)?;
    // The label of a span has a format after its name.
    let mut parts = text.splitn(3, '\0').map(str::to_owned);
    let (Some(file), Some(module_path), Some(label)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(Damage::Defect(format!("the site at {at} has the text {text:?}")));
    };
    let module = bytes.u32(at + site_at::MODULE)? as usize;
    let pc = bytes.u64(at + site_at::PC)?;
    // A site of a process is in no module.
    if module != u32::MAX as usize {
        let Some(home) = modules.get(module) else {
            return Err(Damage::Defect(format!("the site at {at} is of module {module}")));
        };
        require!((home.begin..home.end).contains(&pc), "the site at {at} is outside its module");
    }
    let operands = bytes.get::<1>(at + site_at::OPERAND_COUNT)?[0] as usize;
    let operand_types = bytes.get::<12>(at + site_at::OPERAND_TYPES)?;
    require!(operands <= 12, "the site at {at} has {operands} operands");
    require!(
        operand_types[..operands].iter().all(|&of| matches!(of, operand::LOCK..=operand::PEER))
            && operand_types[operands..].iter().all(|&of| of == 0),
        "the site at {at} has operands of the types {operand_types:?}"
    );
    Ok(Site {
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
    })
}

/// Names of locks have this many bytes.
const NAME_LEN: usize = 48;

fn region(bytes: &Bytes, wanted: u32) -> Result<Region, Damage> {
    for index in 0..REGIONS {
        let at = header_at::REGIONS + index * region_at::LEN;
        if bytes.u32(at + region_at::KIND)? != wanted {
            continue;
        }
        let region = Region {
            entry_len: bytes.u32(at + region_at::ENTRY_LEN)? as usize,
            offset: bytes.u64(at + region_at::OFFSET)? as usize,
            capacity: bytes.u64(at + region_at::CAPACITY)?,
            used: bytes.u64(at + region_at::USED)?,
        };
        require!(region.offset.is_multiple_of(REGION_ALIGN), "region {wanted} begins at {}", region.offset);
        require!(region.used <= region.capacity, "region {wanted} is overfull");
        let end = region.offset as u64 + region.capacity * region.entry_len as u64;
        require!(end <= bytes.0.len() as u64, "region {wanted} ends at {end}");
        return Ok(region);
    }
    Err(Damage::Defect(format!("no region {wanted}")))
}

/// The names in the table that are complete. Rings of programs that name no lock have the table too.
fn lock_names(bytes: &Bytes) -> Result<Vec<(u32, u64, String)>, Damage> {
    let table = region(bytes, region::LOCK_NAMES)?;
    require!(table.entry_len >= lock_name_at::LEN, "lock name entries");
    let mut names = Vec::new();
    for at in table.entries() {
        let state = bytes.u32(at + lock_name_at::STATE)?;
        if state != name_state::FREE && state != name_state::CLAIMED {
            let expected = checksum::state(&bytes.0[at..at + lock_name_at::LEN]);
            require!(state == expected, "the lock name at {at} does not have its checksum");
            let name = bytes.get::<NAME_LEN>(at + lock_name_at::NAME)?;
            let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
            let (pid, lock) = (bytes.u32(at + lock_name_at::PID)?, bytes.u64(at + lock_name_at::LOCK)?);
            names.push((pid, lock, String::from_utf8_lossy(name).into_owned()));
        }
    }
    Ok(names)
}

/// The places of polls. Nobody writes any more.
fn polls(bytes: &Bytes) -> Result<Vec<Polls>, Damage> {
    let Ok(table) = region(bytes, region::POLLS) else { return Ok(Vec::new()) };
    require!(table.entry_len == poll_place_at::LEN, "entries of polls");
    let mut places = Vec::new();
    let text = |at: usize| -> Result<String, Damage> {
        let name = bytes.get::<40>(at)?;
        Ok(String::from_utf8_lossy(name.split(|&byte| byte == 0).next().unwrap_or_default()).into_owned())
    };
    for at in table.entries() {
        let state = bytes.u32(at + poll_place_at::STATE)?;
        if state == 0 && at == table.offset {
            // Nobody needed the entry for other places.
            continue;
        }
        require!(state == checksum::state(&bytes.0[at..at + poll_place_at::LONGEST]), "the polls at {at}");
        let lengths = |part: usize| -> Result<(Vec<u64>, u64), Damage> {
            let (mut counts, mut greatest) = (vec![0; POLL_COUNTS], 0);
            for lane in 0..POLL_LANES {
                let at = at + poll_place_at::LANES + lane * poll_lane_at::LEN + part;
                for (index, count) in counts.iter_mut().enumerate() {
                    *count += bytes.u64(at + poll_lengths_at::COUNTS + 8 * index)?;
                }
                greatest = bytes.u64(at + poll_lengths_at::GREATEST)?.max(greatest);
            }
            Ok((counts, greatest))
        };
        let mut longest = Vec::new();
        for at in (at + poll_place_at::LONGEST..at + poll_place_at::LANES).step_by(long_poll_at::LEN) {
            let state = bytes.u32(at + long_poll_at::STATE)?;
            // A killed process may have been writing it.
            if state != 0 && state == checksum::state(&bytes.0[at..at + long_poll_at::LEN]) {
                longest.push(LongPoll {
                    pid: bytes.u32(at + long_poll_at::PID)?,
                    task: bytes.u32(at + long_poll_at::TASK)?,
                    tid: bytes.u32(at + long_poll_at::TID)?,
                    began: bytes.u64(at + long_poll_at::BEGAN)?,
                    took: bytes.u64(at + long_poll_at::TOOK)?,
                    last: bytes.u64(at + long_poll_at::LAST)?,
                    name: text(at + long_poll_at::NAME)?,
                });
            }
        }
        places.push(Polls {
            pid: bytes.u32(at + poll_place_at::PID)?,
            location: bytes.u64(at + poll_place_at::LOCATION)?,
            name: text(at + poll_place_at::NAME)?,
            polls: lengths(poll_lane_at::POLLS)?,
            delays: lengths(poll_lane_at::DELAYS)?,
            longest,
        });
    }
    Ok(places)
}

/// The locations of calls that are complete.
fn calls(bytes: &Bytes) -> Result<Vec<Call>, Damage> {
    let table = region(bytes, region::CALLS)?;
    require!(table.entry_len >= call_at::LEN, "call entries");
    let mut calls = Vec::new();
    for at in table.entries() {
        if bytes.u32(at + call_at::STATE)? == 0 {
            continue;
        }
        let expected = checksum::state(&bytes.0[at..at + call_at::LEN]);
        let state = bytes.u32(at + call_at::STATE)?;
        require!(state == expected, "the call at {at} does not have its checksum");
        let file = bytes.get::<{ call_at::LEN - call_at::FILE }>(at + call_at::FILE)?;
        let len = (bytes.u32(at + call_at::FILE_LEN)? as usize).min(file.len());
        require!(file[len..].iter().all(|&byte| byte == 0), "the call at {at} has a longer file name");
        calls.push(Call {
            pid: bytes.u32(at + call_at::PID)?,
            address: bytes.u64(at + call_at::ADDRESS)?,
            line: bytes.u32(at + call_at::LINE)?,
            column: bytes.u32(at + call_at::COLUMN)?,
            file: String::from_utf8_lossy(&file[..len]).into_owned(),
        });
    }
    Ok(calls)
}
