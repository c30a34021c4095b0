//! Where the commands write: results, remarks, and the exit status. It formats nothing.

use std::fmt::Display;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;

use anstream::{AutoStream, ColorChoice};
use read_rip_evidence::patience::all_silent;
use read_rip_report::remarks::{of_silence, of_silent_process, of_unasked};

use super::wrap::{Wrapping, wrap};
use crate::cli::Common;

/// The ring was read, and nothing is wrong.
pub(super) const SOUND: u8 = 0;
/// The ring was read, and there are findings.
pub(super) const FINDINGS: u8 = 1;
/// An error, or part of the ring could not be read.
pub(super) const ERROR: u8 = 2;

/// The ring was read, and there is nothing in it that could be judged.
pub(super) const UNJUDGED: u8 = 3;

/// Output is written in pieces of this length.
const BUFFER_BYTES: usize = 64 << 10;

/// Standard output, with colours where the options say so.
pub(super) fn output(common: &Common) -> impl Write + use<> {
    let choice = match common.color {
        clap::ColorChoice::Auto => AutoStream::choice(&io::stdout()),
        clap::ColorChoice::Always => ColorChoice::Always,
        clap::ColorChoice::Never => ColorChoice::Never,
    };
    // Buffered before and after the filter that removes colours, because it writes many small pieces.
    let stdout: Box<dyn Write> = Box::new(BufWriter::with_capacity(BUFFER_BYTES, io::stdout()));
    BufWriter::with_capacity(BUFFER_BYTES, AutoStream::new(stdout, choice))
}

/// Standard output for what is no text.
///
/// # Errors
///
/// It is a terminal.
pub(super) fn bytes() -> io::Result<impl Write + use<>> {
    if is_terminal() {
        return Err(io::Error::other("it is a terminal, and this format is not text"));
    }
    Ok(BufWriter::with_capacity(BUFFER_BYTES, io::stdout()))
}

/// Standard output for sentences: on a terminal, lines that are too long are broken between words.
pub(super) fn prose(common: &Common) -> Box<dyn Write> {
    match width(io::stdout()) {
        Some(width) if !common.json => Box::new(Wrapping::new(output(common), width)),
        _ => Box::new(output(common)),
    }
}

/// The output of a view: on a terminal, a legend follows signs that are not words.
pub(super) enum View {
    Terminal(Box<Wrapping<Box<dyn Write>>>),
    Plain(Box<dyn Write>),
}

impl View {
    pub(super) fn new(common: &Common) -> View {
        let out: Box<dyn Write> = Box::new(output(common));
        match width(io::stdout()) {
            Some(width) if !common.json => View::Terminal(Box::new(Wrapping::with_legend(out, width))),
            _ => View::Plain(out),
        }
    }

    /// Writes what is left, and the legend.
    pub(super) fn end(mut self) -> io::Result<()> {
        self.flush()?;
        match &mut self {
            View::Terminal(out) => out.end()?,
            View::Plain(_) => {}
        }
        self.flush()
    }
}

impl Write for View {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            View::Terminal(out) => out.write(bytes),
            View::Plain(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            View::Terminal(out) => out.flush(),
            View::Plain(out) => out.flush(),
        }
    }
}

/// Writes a line to standard error. A failure is ignored: with `2>&1 | head` nothing may read it.
pub(super) fn remark(line: impl Display) {
    let text = line.to_string();
    let lines = text.split('\n').map(|line| match width(io::stderr()) {
        Some(width) => String::from_utf8_lossy(&wrap(line.as_bytes(), width)).into_owned(),
        None => line.to_owned(),
    });
    let _ = writeln!(io::stderr(), "{}", lines.collect::<Vec<String>>().join("\n"));
}

/// Whether standard output is a terminal.
pub(super) fn is_terminal() -> bool {
    width(io::stdout()).is_some()
}

/// The columns of a terminal; `None` if it is something else.
pub(super) fn width(stream: impl AsFd) -> Option<usize> {
    terminal_size::terminal_size_of(stream).map(|(width, _)| usize::from(width.0))
}

/// What did not answer so far, or was not asked because it may not answer: a sentence each.
pub(super) fn unanswered() -> Vec<String> {
    let files = read_rip_files::unanswered();
    let silent = files.iter().map(|path| of_silence(path, read_rip_files::PATIENCE));
    let processes = all_silent().into_iter().map(of_silent_process);
    let unasked = read_rip_files::unasked();
    silent.chain(processes).chain(unasked.iter().map(|path| of_unasked(path))).collect()
}
