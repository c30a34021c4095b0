//! `read-rip save`: a compressed copy of a ring that another machine reads with the same result.
//!
//! The copy has two images of the ring of a living process, what the system knows of the process and its threads, and
//! what the program's files say about the addresses. `ring::Saved` describes the file, `saved` what is in it besides
//! the images. It is written beside its final place, and renamed when it is complete.

use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use flate2::Compression;
use flate2::write::GzEncoder;
use read_rip_evidence::core::is_core;
use read_rip_evidence::standing::Standings;
use read_rip_report::printable;
use read_rip_ring::{self as ring, Header, Saved, Source};
use read_rip_symbols::SavedAnswers;

use super::collect;
use super::error::AppError;
use super::look::Look;
use super::output::{now_ns, remark};
use super::reading::Reading;
use super::saved::{Context, State};
use super::written::{Unfinished, is_standard_output, name_of};
use crate::cli::{CheckArgs, Common, RingArgs, SaveArgs};

/// A process that dies between the two images is read again, this many times.
const ATTEMPTS: u32 = 3;

/// `read-rip save`.
pub(super) fn save(args: &SaveArgs, wanted: &Common) -> Result<u8, AppError> {
    let path = super::rings::choose(&args.ring, wanted)?;
    if is_core(&path) {
        return Err(AppError::NotForCores { path });
    }
    let source = Source::open_within(&path, wanted.unpack_limit())?;
    if Saved::of(&source).is_some() {
        return Err(AppError::AlreadySaved { path });
    }
    let target = args.output.clone().unwrap_or_else(|| default_target(&path));
    let written_kib = write(&source, &target, args, wanted)? / 1024;
    if is_standard_output(&target) {
        remark(format_args!("Saved, {written_kib} KiB."));
        return Ok(super::output::SOUND);
    }
    let ring = RingArgs { ring: Some(target.clone().into()), ring_option: None };
    let status = collect::check(&CheckArgs::of(ring), wanted)?;
    let target = target.to_string_lossy();
    remark(format_args!("Saved to {}, {written_kib} KiB. This is what it says.", printable(&target)));
    // Findings are no failure of saving.
    Ok(if status == super::output::ERROR { status } else { super::output::SOUND })
}

/// The file that is written if the user names none.
pub(super) fn default_target(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}.saved.gz", name_of(path)))
}

/// Writes the file. Returns its length, bytes.
pub(super) fn write(
    source: &Source,
    target: &Path,
    args: &SaveArgs,
    wanted: &Common,
) -> Result<u64, AppError> {
    let failed = |source| AppError::Save { path: target.to_owned(), source };
    let unfinished = Unfinished::new(target).map_err(failed)?;
    source.keep_owner(unfinished.file()).map_err(failed)?;
    let (context, images) = images(source, &unfinished, args, wanted, &failed)?;
    let answers = answers(unfinished.path(), &images, &context, wanted)?;
    let bytes = Context { answers, ..context }.to_bytes().map_err(io::Error::from).map_err(failed)?;
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
    source: &Source,
    unfinished: &Unfinished,
    args: &SaveArgs,
    wanted: &Common,
    failed: &dyn Fn(io::Error) -> AppError,
) -> Result<(Context, Images), AppError> {
    for _ in 0..ATTEMPTS {
        let before = Reading::of(source.path(), wanted)?;
        let header = before.snapshot.header.as_ref();
        let file = emptied(unfinished).map_err(failed)?;
        let mut packed = GzEncoder::new(BufWriter::new(file), Compression::default());
        let mut image = || ring::write_image(source, header, &mut packed).map_err(failed);
        let first_bytes = image()?;
        if before.is_final() {
            finish(packed).map_err(failed)?;
            let images = Images { earlier_bytes: 0, later_bytes: first_bytes };
            return Ok((context(before, None), images));
        }
        let written = Instant::now();
        let look = before.process().and_then(|pid| Look::begin(pid, wanted).ok());
        std::thread::sleep(args.window);
        let mut seen = look.and_then(Look::end);
        seen.iter_mut().for_each(Standings::compact);
        let window_ns = u64::try_from(written.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let later_bytes = image()?;
        packed.flush().map_err(failed)?;
        finish(packed).map_err(failed)?;
        let after = Reading::of(source.path(), wanted)?;
        // If the process died meanwhile, the second image may be of any moment before its death.
        if !after.is_final() {
            let images = Images { earlier_bytes: first_bytes, later_bytes };
            return Ok((Context { seen, ..context(after, Some(window_ns)) }, images));
        }
    }
    Err(failed(io::Error::other("the process was replaced again and again")))
}

pub(super) fn context(reading: Reading, window_ns: Option<u64>) -> Context {
    Context {
        saved_realtime_ns: now_ns(),
        state: reading.liveness.as_ref().map(State::from),
        program: reading.program(),
        owner: reading.snapshot.header.as_ref().map(Header::owner),
        is_copy: reading.is_copy(),
        names: reading.present_names(),
        living: reading.living,
        ended: reading.ended,
        now_ns: reading.now_ns,
        latest_end_ns: reading.latest_end_ns,
        window_ns,
        seen: None,
        answers: SavedAnswers::default(),
    }
}

/// What the program's files say about the addresses of the images.
fn answers(
    unfinished: &Path,
    images: &Images,
    context: &Context,
    wanted: &Common,
) -> Result<SavedAnswers, AppError> {
    let source = Source::open(unfinished)?;
    let (later, earlier) = Saved::images(&source, images.later_bytes, images.earlier_bytes);
    let mut known = None;
    // The earlier image may have addresses that are overwritten in the later one. Ids of modules only grow.
    for (image, is_later) in earlier.iter().map(|image| (image, false)).chain([(&later, true)]) {
        let mut reading = Reading::of_image(image, context, wanted)?;
        if is_later && let Some(seen) = &context.seen {
            reading.add_seen(seen.clone());
        }
        known = Some(super::answers::answers(&reading, known, wanted));
    }
    Ok(known.unwrap_or_default())
}
