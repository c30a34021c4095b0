//! Makes a frame of the state: the verdict first, then the list or the page, then the keys. It changes nothing but what
//! the state has to know of the screen.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use read_rip_model::locks::{Quantiles, Rate};
use read_rip_report::{LockKey, LockRow, Picture, ProcessRow, Severity, ThreadKey, ThreadRow};
use read_rip_report::{amount, duration};

use super::spark::sparkline;
use super::state::{Detail, Order, State, Tab};
use super::table::{Column, headings, row};

/// The verdict takes at most this many lines.
const VERDICT_LINES_MAX: usize = 4;
/// The worst finding is shown with this many sentences of its evidence, each on at most so many lines.
const EVIDENCE_MAX: usize = 3;
const EVIDENCE_LINE_MAX: usize = 3;
/// Where such a sentence goes on.
const EVIDENCE_INDENT: &str = "        ";
/// What the threads and tasks do takes at most this many lines.
const DOING_LINES_MAX: usize = 3;
/// A screen that is lower has no evidence above the list.
const EVIDENCE_LINES: u16 = 20;
/// A screen that is lower has no line about what the threads and tasks do.
const LOW_LINES: u16 = 12;

/// The screen says how old a judgement is if it is older than this.
const OLD_NS: u64 = 1_000_000_000;

/// A narrower screen has no column with how often a lock is acquired.
const RATE_WIDTH: u16 = 70;
/// A narrower screen has no column with how often that takes a wait, no lengths of waits and holds, and no history.
const RATES_WIDTH: u16 = 100;
/// A narrower screen has the longer one of two percentiles only, and short histories.
const WIDE_WIDTH: u16 = 150;
/// What other columns leave to the names, on such a screen.
const SHORT_NAME: u16 = 24;
/// A list below another one has at least this many lines, with its heading.
const SECOND_LIST_LINES: u16 = 4;

const HELP: &[&str] = &[
    "1 2 3, Tab     locks, threads and tasks, findings",
    "Up Down j k    choose a row; PgUp PgDn Home End; a click chooses too",
    "Enter          open a lock: its holder and waiters; a holder or thread: its history and stack; a task: its awaits",
    "Esc            back",
    "/              list only rows that a regular expression matches; Esc lists all",
    "s              another order: what hurts, amounts, names",
    "ACQ/S CONT/S   how often a lock was acquired between the last two readings, and how often after a wait, \
     in a second;",
    "               ~ where words were replaced before they were read: estimated from those that are left",
    "WAIT HELD      lengths of waits and of holds: half are no longer than P50, and 99 of 100 than P99; ~ where words",
    "               were replaced, so that they are those of a part",
    "CPU ON         the share of a processor between the two looks of a reading, and the processor it ran on last",
    "LAST READINGS  ACQ/S of a lock, or CPU of a thread, in this reading and those before it: the latest at the right",
    "Space          freeze the screen, and let it go on; reading goes on",
    "Left Right     the reading before or after this one, of the last minutes",
    "r              read the history and the stack of this thread or task again",
    "w              save a copy of the ring in the present directory",
    "R              write a page for browsers there, as read-rip report does",
    "q, ^C          quit",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// Colours, and bold and reversed text.
    Yes,
    /// Only bold and reversed text.
    No,
}

pub fn draw(frame: &mut Frame<'_>, state: &mut State, colours: Colours) {
    let area = frame.area();
    let mut screen = Screen { frame, left: area, colours };
    let picture = state.picture().cloned().unwrap_or_default();
    match state.tab {
        Tab::Processes => screen.processes_heading(state),
        _ => screen.heading(state, &picture),
    }
    screen.footer(state);
    match (state.pages.last().cloned(), state.tab) {
        (Some(Detail::Help), _) => {
            screen.lines(&HELP.iter().map(|&line| line.to_owned()).collect::<Vec<_>>(), state);
        }
        (Some(Detail::Lock(key)), _) => {
            let lock = picture.locks.iter().find(|lock| lock.key == key);
            let gone = || vec!["the lock is not in this reading".to_owned()];
            screen.lines(&lock.map_or_else(gone, |lock| lock.lines.clone()), state);
        }
        (Some(Detail::Thread(_, lines)), _) => {
            screen.lines(&lines.unwrap_or_else(|| vec!["reading ...".to_owned()]), state);
        }
        (None, Tab::Processes) if state.machine.is_none() => {}
        (None, Tab::Locks | Tab::Threads | Tab::Findings) if state.picture().is_none() => {}
        (None, Tab::Findings) => screen.lines(&picture.findings, state),
        (None, Tab::Processes) => screen.processes(state),
        (None, Tab::Locks) => {
            screen.locks(state);
            if screen.left.height > SECOND_LIST_LINES && !picture.threads.is_empty() {
                screen.line();
                screen.threads(state, &picture, false);
            }
            screen.chosen_lock(state);
        }
        (None, Tab::Threads) => screen.threads(state, &picture, true),
    }
}

/// What a column says of a lock. A sign stands before what is known of a part.
type LockCell = fn(&LockRow, &str) -> String;

struct Screen<'s, 'f> {
    frame: &'s mut Frame<'f>,
    /// The part that is still empty.
    left: Rect,
    colours: Colours,
}

impl Screen<'_, '_> {
    /// Takes the next line from the top; `None` if there is none.
    fn line(&mut self) -> Option<Rect> {
        let line = Rect { height: 1, ..self.left };
        self.left.y = self.left.y.saturating_add(1);
        self.left.height = self.left.height.checked_sub(1)?;
        Some(line)
    }

    fn write(&mut self, text: &str, style: Style) {
        if let Some(line) = self.line() {
            self.frame.buffer_mut().set_stringn(line.x, line.y, text, usize::from(line.width), style);
        }
    }

    fn wrapped(&mut self, text: &str, max: usize, style: Style) {
        self.wrapped_with(text, "", max, style);
    }

    /// Writes a text on at most `max` lines. All but the first begin with the indent.
    fn wrapped_with(&mut self, text: &str, indent: &str, max: usize, style: Style) {
        let width = usize::from(self.left.width.max(1));
        let lines = textwrap::wrap(text, textwrap::Options::new(width).subsequent_indent(indent));
        let is_cut = lines.len() > max;
        for (at, line) in lines.iter().take(max).enumerate() {
            match is_cut && at + 1 == max {
                true => self.write(&format!("{:.1$} ...", line, width.saturating_sub(4)), style),
                false => self.write(line, style),
            }
        }
    }

    fn colour(&self, of: Severity) -> Style {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        match (self.colours, of) {
            (Colours::No, _) => bold,
            (_, Severity::Proven) => bold.fg(Color::Red),
            (_, Severity::Potential) => bold.fg(Color::Yellow),
            (_, Severity::Suspected) => bold.fg(Color::Cyan),
            (_, Severity::None) => bold.fg(Color::Green),
        }
    }

    fn heading(&mut self, state: &State, picture: &Picture) {
        if state.picture().is_none() {
            let why = state.ended.as_deref().unwrap_or("reading the process for the first time ...");
            self.wrapped(why, VERDICT_LINES_MAX, Style::new());
            return;
        }
        self.wrapped(&picture.verdict, VERDICT_LINES_MAX, self.colour(picture.severity));
        if self.frame.area().height >= EVIDENCE_LINES {
            // The finding that the verdict is about comes first, and its first line is the verdict.
            let evidence = picture.findings.iter().skip(1).take_while(|line| line.starts_with("  "));
            let evidence = evidence.filter(|_| picture.severity != Severity::None);
            for line in evidence.take(EVIDENCE_MAX) {
                self.wrapped_with(line, EVIDENCE_INDENT, EVIDENCE_LINE_MAX, Style::new());
            }
        }
        let state_of = match state.behind_ns() {
            Some(0) => "FROZEN  ".to_owned(),
            Some(behind_ns) => format!("FROZEN, {} ago  ", duration(behind_ns)),
            None if state.ended.is_some() => "ENDED, this is the last reading: ".to_owned(),
            None if picture.is_final => "DEAD  ".to_owned(),
            None => String::new(),
        };
        self.write(&format!("{state_of}{}", picture.heading), Style::new());
        if self.frame.area().height < LOW_LINES {
            return;
        }
        let update = state.present();
        let rate = match update {
            Some(update) => update.words_per_second(),
            None => picture.words_per_second,
        };
        let rate = rate.map(|rate| format!("{rate} words/s recorded"));
        let now = update.map(|update| {
            let waiting = format!("now {} wait for locks and {} hold some", update.waiting, update.holding);
            let age_ns = update.taken_ns.saturating_sub(picture.taken_ns);
            let judged = format!("judged {} ago", duration(age_ns));
            if age_ns < OLD_NS { waiting } else { format!("{waiting}; {judged}") }
        });
        let doing = Some(picture.doing.trim().to_owned()).filter(|doing| !doing.is_empty());
        let doing: Vec<String> = rate.into_iter().chain(now).chain(doing).collect();
        self.wrapped(&doing.join("; "), DOING_LINES_MAX, Style::new());
        if !picture.slow_cycles.is_empty() {
            self.wrapped(&picture.slow_cycles, DOING_LINES_MAX, Style::new());
        }
    }

    fn processes_heading(&mut self, state: &State) {
        let Some(machine) = &state.machine else {
            return self.write("reading the processes of this machine ...", Style::new());
        };
        let worst = machine.rows.iter().map(|row| row.severity).max().unwrap_or_default();
        for (at, line) in machine.examined.iter().enumerate() {
            let style = if at == 0 { self.colour(worst) } else { Style::new() };
            self.wrapped(line, 2, style);
        }
    }

    /// The last line: a message, a filter that is being typed, or the keys.
    fn footer(&mut self, state: &State) {
        let Some(height) = self.left.height.checked_sub(1) else { return };
        let line = Rect { y: self.left.y + height, height: 1, ..self.left };
        self.left.height = height;
        let filter = state.filter.as_ref().map(|filter| format!("/{filter}  "));
        let order = match state.order {
            Order::Hurt => "",
            Order::Amount => "by amount  ",
            Order::Name => "by name  ",
        };
        let text = match (&state.typing, &*state.message) {
            (Some(typed), _) => format!("/{typed}_"),
            (None, "") if state.pages.is_empty() && state.ended.is_some() && state.picture().is_some() => {
                format!("{}; q quits, ? shows all keys", state.ended.as_deref().unwrap_or_default())
            }
            (None, "") => format!(
                "{}{order}Enter open  Esc back  1 locks 2 threads 3 findings  / filter  ? keys  q quit",
                filter.unwrap_or_default()
            ),
            (None, message) => message.to_owned(),
        };
        let text = read_rip_report::printable(&text).into_owned();
        let style = Style::new().add_modifier(Modifier::REVERSED);
        let buffer = self.frame.buffer_mut();
        buffer.set_style(line, style);
        buffer.set_stringn(line.x, line.y, text, usize::from(line.width), style);
    }

    /// Lines that can be scrolled, broken between words.
    fn lines(&mut self, lines: &[String], state: &mut State) {
        let width = usize::from(self.left.width.max(1));
        let options = textwrap::Options::new(width).subsequent_indent("    ");
        let wrapped: Vec<_> = lines.iter().flat_map(|line| textwrap::wrap(line, &options)).collect();
        state.rows = (usize::from(self.left.height), self.left.y);
        state.scroll = state.scroll.min(wrapped.len().saturating_sub(state.rows.0));
        for line in wrapped.iter().skip(state.scroll).take(state.rows.0) {
            self.write(line, Style::new());
        }
    }

    /// The rows of the list that keys move in. Only those on the screen are made.
    fn list<T>(
        &mut self,
        state: &mut State,
        columns: &[Column],
        count: usize,
        make: impl Fn(&State, usize, usize) -> Vec<T>,
        cells: impl Fn(&T) -> Vec<String>,
    ) {
        self.column_headings(columns);
        state.rows = (usize::from(self.left.height), self.left.y);
        state.at = state.at.min(count.saturating_sub(1));
        let first = state.first_row();
        let rows = make(state, first, state.rows.0);
        self.rows(columns, rows.iter().map(&cells), Some(state.at - first));
        if count == 0 {
            self.write("nothing to list", Style::new());
        }
    }

    fn column_headings(&mut self, columns: &[Column]) {
        if let Some(line) = self.line() {
            let style = Style::new().add_modifier(Modifier::UNDERLINED);
            headings(self.frame.buffer_mut(), line, columns, style);
        }
    }

    fn rows(&mut self, columns: &[Column], rows: impl Iterator<Item = Vec<String>>, chosen: Option<usize>) {
        for (at, cells) in rows.enumerate() {
            let Some(line) = self.line() else { return };
            let is_chosen = chosen == Some(at);
            let style = if is_chosen { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
            row(self.frame.buffer_mut(), line, columns, &cells, style);
        }
    }

    fn name_width(&self, max: u16) -> u16 {
        (self.left.width / 3).clamp(8, max)
    }

    fn processes(&mut self, state: &mut State) {
        let columns =
            [Column { heading: "PROCESS", width: self.name_width(40), is_number: false }, rest("STATE")];
        let count = state.processes().len();
        let take = |state: &State, first, rows| {
            state.processes().into_iter().skip(first).take(rows).cloned().collect::<Vec<ProcessRow>>()
        };
        self.list(state, &columns, count, take, |row| vec![row.program.clone(), row.text.clone()]);
    }

    /// How many readings a history shows; 0: there is no room for one.
    fn history_width(&self) -> u16 {
        match self.left.width {
            ..RATES_WIDTH => 0,
            RATES_WIDTH..WIDE_WIDTH => 13,
            WIDE_WIDTH.. => 24,
        }
    }

    fn locks(&mut self, state: &mut State) {
        let number = |heading, width| Column { heading, width, is_number: true };
        let (width, history) = (self.left.width, self.history_width());
        let picture = state.picture().cloned().unwrap_or_default();
        let has = |known: fn(&LockRow) -> bool| picture.locks.iter().any(known);
        let (has_rates, is_wide) = (has(|lock| lock.rate.is_some()), width >= WIDE_WIDTH);
        let has_lengths = width >= RATES_WIDTH && has(|lock| lock.waits.is_some() || lock.holds.is_some());
        let has_history = history > 0 && has_rates;
        let sign = if picture.is_partial { "~" } else { "" };
        let optional: [(bool, Column, LockCell); 6] = [
            (has_rates && width >= RATE_WIDTH, number("ACQ/S", 7), |of, _| rate(of.rate, |it| it.acquired)),
            (has_rates && width >= RATES_WIDTH, number("CONT/S", 7), |of, _| {
                rate(of.rate, |it| it.contended)
            }),
            (has_lengths && is_wide, number("WAIT P50", 8), |of, sign| {
                length(of.waits, sign, |it| it.p50_ns)
            }),
            (has_lengths, number("WAIT P99", 8), |of, sign| length(of.waits, sign, |it| it.p99_ns)),
            (has_lengths && is_wide, number("HELD P50", 8), |of, sign| {
                length(of.holds, sign, |it| it.p50_ns)
            }),
            (has_lengths, number("HELD P99", 8), |of, sign| length(of.holds, sign, |it| it.p99_ns)),
        ];
        let mut columns = vec![number("WAIT", 6), number("LONGEST", 8), number("CONTENDED", 9)];
        let mut numbers = Vec::new();
        for (_, column, cell) in optional.into_iter().filter(|(is_shown, ..)| *is_shown) {
            columns.push(column);
            numbers.push(cell);
        }
        columns.extend(has_history.then(|| number("LAST READINGS", history)));
        let name_width = self.name_width(if has_history && !is_wide { SHORT_NAME } else { 50 });
        columns.push(Column { heading: "LOCK", width: name_width, is_number: false });
        columns.push(rest("HELD BY"));
        let count = state.locks().len();
        let history = if has_history { usize::from(history) } else { 0 };
        let take = |state: &State, first, rows| {
            let shown: Vec<&LockRow> = state.locks().into_iter().skip(first).take(rows).collect();
            let keys: Vec<LockKey> = shown.iter().map(|lock| lock.key).collect();
            let histories = state.histories(&keys, history, |picture, of| {
                picture.locks.iter().for_each(|lock| of(lock.key, lock.rate.map(|rate| rate.acquired)));
            });
            shown.into_iter().map(|lock| present_lock(state, lock)).zip(histories).collect::<Vec<_>>()
        };
        self.list(state, &columns, count, take, |(lock, of_lock)| {
            let longest = lock.longest_ns.map_or_else(String::new, duration);
            let contended = match lock.acquisitions {
                0 => String::new(),
                all => format!("{} %", lock.contended.saturating_mul(100) / all),
            };
            let mut cells = vec![lock.waiters.to_string(), longest, contended];
            cells.extend(numbers.iter().map(|cell| cell(lock, sign)));
            cells.extend(has_history.then(|| sparkline(of_lock, history, 0)));
            cells.extend([lock.name.clone(), lock.held.clone()]);
            cells
        });
        if picture.more_locks > 0 {
            self.write(&format!("{} more locks", picture.more_locks), Style::new());
        }
    }

    /// What the page of the chosen lock says, where the lists leave room.
    fn chosen_lock(&mut self, state: &State) {
        let locks = state.locks();
        let Some(lock) = locks.get(state.at).filter(|_| self.left.height > SECOND_LIST_LINES) else { return };
        self.line();
        for line in &lock.lines {
            self.wrapped_with(line, EVIDENCE_INDENT, EVIDENCE_LINE_MAX, Style::new());
        }
    }

    /// The threads and tasks: the list that keys move in, or one below another list.
    fn threads(&mut self, state: &mut State, picture: &Picture, is_first: bool) {
        let heading = if picture.has_tasks() { "THREAD OR TASK" } else { "THREAD" };
        let number = |heading, width| Column { heading, width, is_number: true };
        let has_processor = picture.threads.iter().any(|thread| thread.processor.is_some());
        let history = if has_processor { self.history_width() } else { 0 };
        let mut columns = vec![number("WORDS", 7), number("HOLDS", 5)];
        if has_processor {
            columns.extend([number("CPU", 5), number("ON", 3)]);
        }
        columns.extend((history > 0).then(|| number("LAST READINGS", history)));
        columns.push(Column { heading, width: self.name_width(30), is_number: false });
        columns.push(rest("WHAT AND WHERE"));
        let history = usize::from(history);
        let take = |state: &State, first, rows| {
            let shown: Vec<&ThreadRow> = state.threads().into_iter().skip(first).take(rows).collect();
            let keys: Vec<ThreadKey> = shown.iter().map(|thread| thread.key).collect();
            let histories = state.histories(&keys, history, |picture, of| {
                let percent = |thread: &ThreadRow| thread.processor.map(|of| of.percent.into());
                picture.threads.iter().for_each(|thread| of(thread.key, percent(thread)));
            });
            let present = |thread: &ThreadRow| ThreadRow {
                advanced: state.present().map_or(thread.advanced, |update| update.advanced(thread)),
                ..thread.clone()
            };
            shown.into_iter().map(present).zip(histories).collect::<Vec<_>>()
        };
        let cells = |(thread, of_thread): &(ThreadRow, Vec<Option<u64>>)| {
            let (doing, place) = (picture.text(thread.doing), picture.text(thread.place));
            let separator = if doing.is_empty() || place.is_empty() { "" } else { ", at " };
            let words = thread.advanced.map_or_else(String::new, |words| words.to_string());
            let holds = if thread.holds == 0 { String::new() } else { thread.holds.to_string() };
            let mut cells = vec![words, holds];
            if has_processor {
                let last = thread.processor.and_then(|of| of.last);
                cells.push(thread.processor.map_or_else(String::new, |of| format!("{} %", of.percent)));
                cells.push(last.map_or_else(String::new, |last| last.to_string()));
            }
            cells.extend((history > 0).then(|| sparkline(of_thread, history, 100)));
            cells.extend([thread.name.to_string(), format!("{doing}{separator}{place}")]);
            cells
        };
        if is_first {
            let count = state.threads().len();
            self.list(state, &columns, count, take, cells);
        } else {
            self.column_headings(&columns);
            let rows = take(state, 0, usize::from(self.left.height));
            self.rows(&columns, rows.iter().map(cells), None);
        }
    }
}

/// A lock as it is now: who waits for it, and who has it.
fn present_lock(state: &State, lock: &LockRow) -> LockRow {
    let mut lock = lock.clone();
    if let Some(update) = state.present() {
        lock.waiters = update.waiters(&lock);
        if let Some(key) = update.new_holder(&lock) {
            let picture = state.picture();
            let row = picture.and_then(|it| it.threads.iter().find(|thread| thread.key == key));
            lock.held = row.map_or_else(|| format!("[{}]", key.tid), |row| row.name.to_string());
        }
    }
    lock
}

/// How often something is in a second.
fn rate(of: Option<Rate>, pick: fn(&Rate) -> u64) -> String {
    match of.map(|of| (of.is_estimate, pick(&of))) {
        None => String::new(),
        // That says nothing.
        Some((true, 0)) => String::new(),
        Some((true, times)) => format!("~{}", amount(times)),
        Some((false, times)) => amount(times),
    }
}

/// A percentile of lengths of time, after a sign.
fn length(of: Option<Quantiles>, sign: &str, pick: fn(&Quantiles) -> u64) -> String {
    of.map_or_else(String::new, |of| format!("{sign}{}", duration(pick(&of))))
}

fn rest(heading: &'static str) -> Column {
    Column { heading, width: 0, is_number: false }
}
