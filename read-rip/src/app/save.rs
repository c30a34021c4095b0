//! `read-rip save`: a compressed copy of a ring that another machine reads with the same result.
//!
//! The copy has two images of the ring of a living process, what the system knows of the process and its threads, and
//! what the program's files say about the addresses. `ring::Saved` describes the file, `Context` what is in it besides
//! the images. It is written beside its final place, and renamed when it is complete.

use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use flate2::Compression;
use flate2::write::GzEncoder;
use read_rip_case::{Context, Inspection, Options, Reading, Subject, answers};
use read_rip_evidence::process::Ends;
use read_rip_evidence::standing::Standings;
use read_rip_report::printable;
use read_rip_ring::{self as ring, Saved, Source};
use read_rip_symbols::Answers;

use super::check::Filter;
use super::collect::Collection;
use super::error::AppError;
use super::output::remark;
use super::written::{Unfinished, is_standard_output, name_of};
use crate::cli::{Common, SaveArgs, SourceArgs};

/// A process that dies between the two images is read again, this many times.
const ATTEMPTS: u32 = 3;

/// `read-rip save`.
pub(super) fn save(args: &SaveArgs, common: &Common) -> Result<u8, AppError> {
    let subject = super::rings::choose(&args.ring, common)?;
    let options = Options { window: args.window, stops_threads: args.stop.stop, ..common.options() };
    let target = args.output.clone().unwrap_or_else(|| default_target(&subject.path()));
    let written_kib = write(&subject, &target, &options)? / 1024;
    if is_standard_output(&target) {
        remark(format_args!("Saved, {written_kib} KiB."));
        return Ok(super::output::SOUND);
    }
    let (filter, source, options) = (Filter::default(), SourceArgs::default(), common.options());
    let mut collection = Collection::new(filter, &source, &options, common);
    collection.check_file(&target, &Ends::default())?;
    let status = collection.status();
    let target = target.to_string_lossy();
    remark(format_args!("Saved to {}, {written_kib} KiB. The copy says:", printable(&target)));
    // Findings are no failure of saving.
    Ok(if status == super::output::ERROR { status } else { super::output::SOUND })
}

/// The file that is written if the user names none.
pub(super) fn default_target(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}.saved.gz", name_of(path)))
}

/// Writes the file. Returns its length, bytes.
pub(super) fn write(subject: &Subject, target: &Path, options: &Options) -> Result<u64, AppError> {
    let path = subject.path().into_owned();
    match subject {
        Subject::Core(_) => return Err(AppError::NotForCores { path }),
        Subject::Process(_) => return Err(AppError::NoEvents { path }),
        // A recording whose recorder was killed is no saved ring.
        Subject::Recording(source) if Saved::of(source).is_none() => {}
        Subject::Saved(_) | Subject::Recording(_) => return Err(AppError::AlreadySaved { path }),
        Subject::Ring { .. } | Subject::Copy(_) => {}
    }
    let source = &Source::open_within(&path, options.unpack_limit)?;
    let failed = |source| AppError::Save { path: target.to_owned(), source };
    let unfinished = Unfinished::new(target).map_err(failed)?;
    source.keep_owner(unfinished.file()).map_err(failed)?;
    let (context, images) = images(subject, source, &unfinished, options, &failed)?;
    let answers = saved_answers(unfinished.path(), &images, &context, options)?;
    let bytes = context.with_answers(answers).to_bytes().map_err(io::Error::from).map_err(failed)?;
    let file = unfinished.file().try_clone().map_err(failed)?;
    let mut packed = GzEncoder::new(BufWriter::new(file), Compression::default());
    Saved::write_rest(&mut packed, images.later_bytes, images.earlier_bytes, &bytes).map_err(failed)?;
    let file = finish(packed).map_err(failed)?;
    let len = file.metadata().map_err(failed)?.len();
    unfinished.complete().map_err(failed)?;
    Ok(len)
}

/// The file without what an earlier attempt has written.
fn emptied(unfinished: &Unfinished) -> io::Result<File> {
    let mut file = unfinished.file().try_clone()?;
    file.set_len(0)?;
    file.rewind()?;
    Ok(file)
}

fn finish(packed: GzEncoder<BufWriter<File>>) -> io::Result<File> {
    packed.finish()?.into_inner().map_err(io::IntoInnerError::into_error)
}

/// The lengths of the images of a file, bytes.
struct Images {
    earlier_bytes: u64,
    later_bytes: u64,
}

/// Writes one image of a ring that cannot change any more, and two of any other.
fn images(
    subject: &Subject,
    source: &Source,
    unfinished: &Unfinished,
    options: &Options,
    failed: &dyn Fn(io::Error) -> AppError,
) -> Result<(Context, Images), AppError> {
    // The images have all processes.
    let subject = &subject.clone().of_process(None);
    for _ in 0..ATTEMPTS {
        let before = Reading::of(subject, options)?;
        let header = before.snapshot.header.as_ref();
        let file = emptied(unfinished).map_err(failed)?;
        let mut packed = GzEncoder::new(BufWriter::new(file), Compression::default());
        let mut image = || ring::write_image(source, header, &mut packed).map_err(failed);
        let first_bytes = image()?;
        if before.is_final() {
            finish(packed).map_err(failed)?;
            let images = Images { earlier_bytes: 0, later_bytes: first_bytes };
            return Ok((Context::of(before, None), images));
        }
        let written = Instant::now();
        let inspections = Inspection::begin_all(&before.living_processes(), options);
        std::thread::sleep(options.window);
        let seen = Inspection::end_all(inspections);
        let window_ns = u64::try_from(written.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let later_bytes = image()?;
        packed.flush().map_err(failed)?;
        finish(packed).map_err(failed)?;
        let mut after = Reading::of(subject, options)?;
        // If the process died meanwhile, the second image may be of any moment before its death.
        if !after.is_final() {
            let images = Images { earlier_bytes: first_bytes, later_bytes };
            seen.into_iter().for_each(|seen| after.add_seen(seen));
            if !options.window.is_zero() {
                after.add_partners(options);
            }
            let mut seen = after.take_standings();
            seen.iter_mut().for_each(Standings::compact);
            return Ok((Context::of(after, Some(window_ns)).with_seen(seen), images));
        }
    }
    Err(failed(io::Error::other("the process called exec again and again while read-rip read it")))
}

/// What the program's files say about the addresses of the images.
fn saved_answers(
    unfinished: &Path,
    images: &Images,
    context: &Context,
    options: &Options,
) -> Result<Answers, AppError> {
    let source = Source::open(unfinished)?;
    let (later, earlier) = Saved::images(&source, images.later_bytes, images.earlier_bytes);
    let mut known = None;
    // The earlier image may have addresses that are overwritten in the later one. Ids of modules only grow.
    for (image, is_later) in earlier.iter().map(|image| (image, false)).chain([(&later, true)]) {
        let mut reading = Reading::of_image(image, context, options)?;
        if is_later {
            context.seen().for_each(|seen| reading.add_seen(seen.clone()));
        }
        known = Some(answers(&reading, known, options));
    }
    Ok(known.unwrap_or_default())
}
