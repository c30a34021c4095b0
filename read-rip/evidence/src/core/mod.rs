//! Core files: what the kernel, or a debugger, kept of a process that died or was stuck.
//!
//! A core becomes a [`Target`] with its memory, as a living process does, and says why the process died. Of the file
//! only what is asked for is read: its notes, and pages of memory. It is not mapped. Every number in it may be wrong:
//! each is checked, and each loop has a bound.
//!
//! # What a core does not have
//!
//! * Names of threads, but for the first one's.
//! * What is behind descriptors.
//! * Pages that are as they are in a file: the code of programs. They are read from that file, if it has the build id
//!   of the module in the core, or without one the bytes that the core has of it.
//!
//! | file | what it has |
//! |---|---|
//! | `header` | the ELF header and the segments |
//! | `notes` | the notes: threads, process, signal, files |
//! | `status` | the registers of a thread, and the system call that they show |
//! | `death` | why the process died |
//! | `files` | which files were mapped |
//! | `fitting` | whether a file without a build id is the one that was mapped |
//! | `mappings` | segments and files, as ranges of memory |
//! | `memory` | the memory |
//! | `error` | why a file cannot be used |

mod death;
mod error;
mod files;
mod fitting;
mod header;
mod mappings;
mod memory;
mod notes;
mod status;
#[cfg(test)]
mod tests;

pub use death::Death;
pub use error::{Error, Gap};
pub use memory::CoreMemory;

use std::path::{Path, PathBuf};

use read_rip_files::Module;
use read_rip_ring::{Source, UnpackLimit};
use read_rip_symbols::Options;

use crate::target::{Memory, Target, modules_of};
use header::{Header, Segment};
use notes::Notes;

/// `AT_SYSINFO_EHDR`: where the kernel's own library is.
const VDSO: u64 = 33;

#[derive(Debug)]
pub struct Core {
    source: Source,
    header: Header,
    notes: Notes,
    gaps: Vec<Gap>,
}

/// Whether a file is a core, by its first bytes. Of a compressed file only these are unpacked.
pub fn is_core(path: &Path) -> bool {
    let mut start = [0; header::START_LEN];
    Source::read_start(path, &mut start).is_ok_and(|got| got == start.len() && header::is_core(&start))
}

impl Core {
    /// Opens a core file, and reads its notes. `limit` is what a compressed one may take.
    ///
    /// # Errors
    ///
    /// If it cannot be read, if it is none, or if it is of a processor that this program does not know.
    pub fn open(path: &Path, limit: UnpackLimit) -> Result<Core, Error> {
        let source = Source::open_within(path, limit).map_err(Error::Open)?;
        Core::of(source)
    }

    fn of(source: Source) -> Result<Core, Error> {
        let mut header = Header::read(&source)?;
        let mut gaps = Vec::new();
        if let Some(cut) = source.cut() {
            gaps.push(Gap::Unpacked(cut.to_string()));
        }
        let (found_bytes, expected_bytes) = (source.len_bytes(), header.end());
        if found_bytes < expected_bytes {
            gaps.push(Gap::Cut { found_bytes, expected_bytes });
        }
        let notes = Notes::read(&source, &header, &mut gaps);
        if notes.threads.is_empty() {
            return Err(Error::NoThreads { path: source.path().to_owned() });
        }
        header.add_left_out(&notes.files);
        if notes.files.is_empty() {
            gaps.push(Gap::NoFiles);
        }
        Ok(Core { source, header, notes, gaps })
    }

    /// Why the process died.
    pub fn death(&self) -> &Death {
        &self.notes.death
    }

    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// The arguments with which the program was started, as far as the kernel keeps them.
    pub fn command_line(&self) -> &str {
        &self.notes.command_line
    }

    /// The memory, with the code of these modules.
    pub fn memory(&self, modules: &[Module], options: Options) -> CoreMemory<'_> {
        CoreMemory::new(&self.source, self.segments(), modules, options)
    }

    /// The threads and the memory's ranges. `options` says where the files of modules are.
    pub fn target(&self, options: Options) -> Target {
        let notes = &self.notes;
        let auxiliary =
            |key| notes.auxiliary.iter().find(|&&(found, _)| found == key).map(|&(_, value)| value);
        let mut mappings = mappings::mappings(self.segments(), &notes.files, auxiliary(VDSO), |address| {
            let mut start = [0; 4];
            memory::read_dumped(&self.source, self.segments(), address, &mut start) == 4
                && start == object::elf::ELFMAG
        });
        let mut modules =
            modules_of(&mappings, &self.memory(&[], Options::default()), auxiliary(libc::AT_ENTRY));
        modules.iter_mut().for_each(|module| module.pid = notes.pid);
        fitting::identify(&mut modules, &mappings, &self.source, self.segments());
        for (mapping, segment) in mappings.iter_mut().zip(self.segments()) {
            // Linkers may let code begin within a page.
            let has_code = |module: &Module| {
                let actual = |relative: u64| module.load_bias.wrapping_add(relative);
                actual(module.code.start) < mapping.end && mapping.begin < actual(module.code.end)
            };
            if segment.is_left_out {
                mapping.is_executable = modules.iter().any(has_code);
            }
        }
        let program = modules.iter().find(|module| module.is_executable);
        let file_name = program.and_then(|module| module.path.file_name());
        let name = match file_name {
            Some(name) if !notes.files.is_empty() => name.to_string_lossy().into_owned(),
            _ => notes.name.clone(),
        };
        let architecture = self.header.architecture;
        let memory = self.memory(&modules, options);
        let memory: &dyn Memory = &memory;
        let tasks = notes.tasks(architecture, |pc| memory.u32(pc).ok());
        Target {
            pid: notes.pid,
            own_pid: notes.pid,
            name,
            architecture,
            start_ticks: None,
            taken_ns: None,
            tasks,
            mappings,
            modules,
            hidden: None,
            freezer: None,
            is_fork: notes.is_fork,
        }
    }

    /// The files that were mapped and begin like a ring's name, and each one's image in the core if it has all of it.
    pub fn rings(&self) -> Vec<(PathBuf, Option<Source>)> {
        let is_ring =
            |path: &Path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"rip."));
        let files = self.notes.files.iter().filter(|file| file.offset == 0 && is_ring(&file.path));
        let image = |file: &files::File| {
            let at = self.segments().iter().find(|segment| segment.begin == file.begin)?;
            let is_whole = at.dumped_bytes > 0 && at.end == file.end && at.dumped_bytes == at.end - at.begin;
            is_whole.then(|| self.source.part(at.offset, at.dumped_bytes))
        };
        files.map(|file| (file.path.clone(), image(file))).collect()
    }

    fn segments(&self) -> &[Segment] {
        &self.header.segments
    }
}
