//! What the user has chosen: a view, a row, a filter, an order, a moment. Keys change it; nothing else does.
//!
//! It does no input or output. What only the reader of the process can do is a [`Request`].

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::hash::Hash;
use std::rc::Rc;

use foldhash::HashMap;
use read_rip_report::{LockKey, LockRow, Picture, ProcessRow, ProcessTable, ThreadKey, ThreadRow};
use regex::Regex;

use super::update::Update;

/// No picture is kept for longer, ns.
const HISTORY_MAX_NS: u64 = 300_000_000_000;
/// All pictures together take at most this much memory, bytes, but for the last one.
const HISTORY_MAX_BYTES: usize = 64 << 20;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tab {
    Processes,
    /// The locks of a process.
    #[default]
    Locks,
    Threads,
    /// What `check` says.
    Findings,
}

/// In which order locks and threads are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// What hurts most first.
    #[default]
    Hurt,
    /// The longest wait, then the most acquisitions; or the most words recorded.
    Amount,
    Name,
}

/// What is shown of one row instead of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Everything about a lock.
    Lock(LockKey),
    /// The history and the stack of a thread, as lines that were read when the page was opened.
    Thread(ThreadKey, Option<Vec<String>>),
    /// What the keys do.
    Help,
}

/// What a key or the mouse asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Input {
    Character(char),
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Left,
    Right,
    Enter,
    Escape,
    Backspace,
    Tab,
    /// A click on this line of the screen.
    Click(u16),
}

/// What is left to do after a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    Quit,
    /// To read the history and the stack of a thread.
    Thread(ThreadKey),
    /// To save a copy of the ring.
    Save,
    /// To write a page for browsers.
    Report,
    /// To show this process or ring.
    Process(String),
}

/// Everything that is on the screen.
#[derive(Debug, Default)]
pub struct State {
    /// The processes of this machine; `None` before they were looked at.
    pub machine: Option<ProcessTable>,
    /// The pictures of the last minutes, the oldest first.
    pub pictures: VecDeque<Rc<Picture>>,
    bytes: usize,
    /// What has moved since the last picture, if that takes long to make.
    pub update: Option<Update>,
    /// The picture that is shown while the screen is frozen, and how many later ones there are of it.
    frozen: Option<Rc<Picture>>,
    pub tab: Tab,
    pub order: Order,
    /// What is shown instead of the list, the last one on top.
    pub pages: Vec<Detail>,
    /// The row that is chosen, by its position in the list.
    pub at: usize,
    lock: Option<LockKey>,
    thread: Option<ThreadKey>,
    /// The first line that is shown of a page or of the findings.
    pub scroll: usize,
    /// Only rows that match are listed.
    pub filter: Option<Regex>,
    /// The text of a filter that is being typed.
    pub typing: Option<String>,
    /// A message about the last key or the last reading.
    pub message: String,
    /// Why no picture follows, if the process cannot be read any more.
    pub ended: Option<String>,
    /// How many rows of the list are on the screen, and the line of the first one. `draw` sets both.
    pub rows: (usize, u16),
    /// Whether the list of processes is above this process.
    pub has_processes: bool,
}

impl State {
    /// Takes a new picture. The oldest are dropped.
    pub fn add(&mut self, picture: Picture) {
        self.bytes += picture.bytes();
        let taken_ns = picture.taken_ns;
        self.update = None;
        self.pictures.push_back(Rc::new(picture));
        while self.pictures.len() > 1
            && (self.bytes > HISTORY_MAX_BYTES
                || self.pictures[0].taken_ns.saturating_add(HISTORY_MAX_NS) < taken_ns)
        {
            self.bytes -= self.pictures.pop_front().map_or(0, |oldest| oldest.bytes());
        }
        self.find_selected();
    }

    /// Takes what was read of a thread, if its page is still open.
    pub fn add_thread(&mut self, key: ThreadKey, lines: Vec<String>) {
        for page in &mut self.pages {
            if matches!(page, Detail::Thread(of, _) if *of == key) {
                *page = Detail::Thread(key, Some(lines));
                return;
            }
        }
    }

    /// The process cannot be read any more. Its last picture stays.
    pub fn end(&mut self, why: String) {
        self.ended = Some(why);
    }

    /// Forgets the process that was shown.
    pub fn clear(&mut self) {
        self.pictures.clear();
        self.pages.clear();
        (self.bytes, self.update, self.frozen, self.filter, self.ended) = (0, None, None, None, None);
        (self.lock, self.thread, self.at, self.scroll) = (None, None, 0, 0);
    }

    pub fn picture(&self) -> Option<&Rc<Picture>> {
        self.frozen.as_ref().or(self.pictures.back())
    }

    /// What has moved since the picture that is shown; `None` if that is not the last one, or final.
    pub fn present(&self) -> Option<&Update> {
        let is_last = self.frozen.is_none() && self.ended.is_none();
        self.update.as_ref().filter(|_| is_last && !self.pictures.back().is_some_and(|last| last.is_final))
    }

    /// If the screen is frozen: how long before the newest picture that of the screen was taken, ns.
    pub fn behind_ns(&self) -> Option<u64> {
        let newest = self.pictures.back()?.taken_ns;
        self.frozen.as_ref().map(|frozen| newest.saturating_sub(frozen.taken_ns))
    }

    /// For each of these keys, its numbers in the pictures up to the one that is shown, at most so many, the oldest
    /// first. `numbers` calls with each key of a picture and its number.
    pub fn histories<K: Copy + Eq + Hash>(
        &self,
        keys: &[K],
        most: usize,
        numbers: impl Fn(&Picture, &mut dyn FnMut(K, Option<u64>)),
    ) -> Vec<Vec<Option<u64>>> {
        let mut histories = vec![Vec::new(); keys.len()];
        let Some(shown) = self.picture().filter(|_| most > 0) else { return histories };
        let at: HashMap<K, usize> = keys.iter().enumerate().map(|(at, key)| (*key, at)).collect();
        let last = self.pictures.iter().rposition(|picture| Rc::ptr_eq(picture, shown));
        let pictures = self.pictures.iter().take(last.map_or(0, |last| last + 1));
        let skipped = pictures.len().saturating_sub(most);
        for picture in pictures.skip(skipped) {
            histories.iter_mut().for_each(|history| history.push(None));
            numbers(picture, &mut |key, number| {
                if let Some(last) = at.get(&key).and_then(|at| histories[*at].last_mut()) {
                    *last = number;
                }
            });
        }
        histories
    }

    /// The locks that are listed, in order.
    pub fn locks(&self) -> Vec<&LockRow> {
        let Some(picture) = self.picture() else { return Vec::new() };
        let matches = |lock: &&LockRow| self.is_match(&[&lock.name, &lock.held]);
        let mut locks: Vec<&LockRow> = picture.locks.iter().filter(matches).collect();
        match self.order {
            Order::Hurt => {}
            Order::Amount => {
                locks.sort_by_key(|lock| Reverse((lock.longest_ns, lock.rate.map(|rate| rate.acquired))));
            }
            Order::Name => locks.sort_by(|one, other| one.name.cmp(&other.name)),
        }
        locks
    }

    /// The threads that are listed, in order.
    pub fn threads(&self) -> Vec<&ThreadRow> {
        let Some(picture) = self.picture() else { return Vec::new() };
        let matches = |thread: &&ThreadRow| {
            self.is_match(&[&thread.name, picture.text(thread.doing), picture.text(thread.place)])
        };
        let mut threads: Vec<&ThreadRow> = picture.threads.iter().filter(matches).collect();
        match self.order {
            Order::Hurt => {}
            Order::Amount => threads.sort_by_key(|thread| {
                Reverse(self.present().map_or(thread.advanced, |update| update.advanced(thread)))
            }),
            Order::Name => threads.sort_by(|one, other| one.name.cmp(&other.name)),
        }
        threads
    }

    pub fn processes(&self) -> Vec<&ProcessRow> {
        self.machine
            .iter()
            .flat_map(|machine| &machine.rows)
            .filter(|row| self.is_match(&[&row.program, &row.text]))
            .collect()
    }

    fn is_match(&self, texts: &[&str]) -> bool {
        self.filter.as_ref().is_none_or(|filter| texts.iter().any(|text| filter.is_match(text)))
    }

    /// Does what a key asks for.
    pub fn input(&mut self, input: Input) -> Option<Request> {
        self.message.clear();
        if self.typing.is_some() {
            self.type_filter(input);
            return None;
        }
        match input {
            Input::Character('q') => return Some(Request::Quit),
            Input::Character('?') if self.pages.last() != Some(&Detail::Help) => self.open(Detail::Help),
            Input::Escape | Input::Backspace => self.leave(),
            Input::Enter | Input::Character('h') => return self.enter(),
            Input::Character('w' | 'R') if self.tab == Tab::Processes => self.want_process(),
            Input::Character('w') => return Some(Request::Save),
            Input::Character('R') => return Some(Request::Report),
            Input::Character('r') => return self.pages.last().and_then(reread),
            Input::Character(' ' | 'f') => self.freeze(),
            Input::Left => self.step(-1),
            Input::Right => self.step(1),
            Input::Character('/') => self.typing = Some(String::new()),
            Input::Character('s') => self.next_order(),
            Input::Tab => self.show(match self.tab {
                Tab::Locks => Tab::Threads,
                Tab::Threads => Tab::Findings,
                Tab::Findings => Tab::Locks,
                Tab::Processes => Tab::Processes,
            }),
            Input::Character('1') => self.show(Tab::Locks),
            Input::Character('2') => self.show(Tab::Threads),
            Input::Character('3') => self.show(Tab::Findings),
            Input::Click(line) => self.click(line),
            other => self.go(other),
        }
        None
    }

    fn open(&mut self, page: Detail) {
        self.pages.push(page);
        self.scroll = 0;
    }

    /// Back to the list, from it to all rows, and from these to the processes.
    fn leave(&mut self) {
        self.scroll = 0;
        if self.pages.pop().is_some() {
            return;
        }
        if self.filter.take().is_none() && self.has_processes && self.tab != Tab::Processes {
            self.tab = Tab::Processes;
            self.at = 0;
        }
        self.find_selected();
    }

    fn show(&mut self, view: Tab) {
        if self.tab == Tab::Processes {
            return self.want_process();
        }
        self.pages.clear();
        (self.tab, self.at, self.scroll) = (view, 0, 0);
        self.find_selected();
    }

    fn want_process(&mut self) {
        self.message = "choose a process first".to_owned();
    }

    fn next_order(&mut self) {
        self.order = match self.order {
            Order::Hurt => Order::Amount,
            Order::Amount => Order::Name,
            Order::Name => Order::Hurt,
        };
        self.find_selected();
    }

    /// From a process to its locks, from a lock to its page, from there to its holder.
    fn enter(&mut self) -> Option<Request> {
        let thread = match (self.pages.last(), self.tab) {
            (Some(&Detail::Lock(key)), _) => {
                let lock = self.picture()?.locks.iter().find(|lock| lock.key == key);
                let holder = lock.and_then(|lock| lock.holder);
                if holder.is_none() {
                    self.message = "no thread is known to hold it".to_owned();
                }
                holder?
            }
            (Some(_), _) | (None, Tab::Findings) => return None,
            (None, Tab::Processes) => {
                return self.processes().get(self.at).map(|row| Request::Process(row.name.clone()));
            }
            (None, Tab::Locks) => {
                let key = self.locks().get(self.at)?.key;
                self.open(Detail::Lock(key));
                return None;
            }
            (None, Tab::Threads) => self.threads().get(self.at)?.key,
        };
        self.open(Detail::Thread(thread, None));
        Some(Request::Thread(thread))
    }

    fn freeze(&mut self) {
        self.frozen = match self.frozen {
            Some(_) => None,
            None => self.pictures.back().cloned(),
        };
        self.find_selected();
    }

    /// To the picture before or after that of the screen, which is then frozen.
    fn step(&mut self, by: isize) {
        let Some(shown) = self.picture() else { return };
        let at = self.pictures.iter().position(|picture| Rc::ptr_eq(picture, shown)).unwrap_or(0);
        let last = self.pictures.len() - 1;
        if by < 0 && at == 0 {
            self.message = "this is the oldest reading that is kept".to_owned();
        }
        self.frozen = match at.saturating_add_signed(by) {
            at if by > 0 && at >= last => None,
            at => self.pictures.get(at).cloned(),
        };
        self.find_selected();
    }

    fn type_filter(&mut self, input: Input) {
        let Some(text) = &mut self.typing else { return };
        match input {
            Input::Character(character) => text.push(character),
            Input::Backspace => drop(text.pop()),
            Input::Escape => self.typing = None,
            Input::Enter => {
                match Regex::new(text) {
                    Ok(_) if text.is_empty() => self.filter = None,
                    Ok(filter) => self.filter = Some(filter),
                    Err(_) => self.message = format!("not a regular expression: {text}"),
                }
                self.typing = None;
                self.at = 0;
                self.find_selected();
            }
            _ => {}
        }
    }

    fn click(&mut self, line: u16) {
        let (rows, first_line) = self.rows;
        let Some(row) = line.checked_sub(first_line).map(usize::from).filter(|&row| row < rows) else {
            return;
        };
        if self.pages.is_empty() && self.tab != Tab::Findings {
            let at = self.first_row() + row;
            if at < self.len() {
                self.select(at);
            }
        }
    }

    /// The position of the first row on the screen.
    pub fn first_row(&self) -> usize {
        let rows = self.rows.0.max(1);
        self.at / rows * rows
    }

    fn len(&self) -> usize {
        match self.tab {
            Tab::Processes => self.processes().len(),
            Tab::Locks => self.locks().len(),
            Tab::Threads => self.threads().len(),
            Tab::Findings => 0,
        }
    }

    fn go(&mut self, input: Input) {
        let page = self.rows.0.max(1) as isize;
        let by = match input {
            Input::Up | Input::Character('k') => -1,
            Input::Down | Input::Character('j') => 1,
            Input::PageUp => -page,
            Input::PageDown => page,
            Input::Home => isize::MIN,
            Input::End => isize::MAX,
            _ => return,
        };
        if !self.pages.is_empty() || self.tab == Tab::Findings {
            self.scroll = self.scroll.saturating_add_signed(by);
            return;
        }
        let last = self.len().saturating_sub(1);
        self.select(self.at.saturating_add_signed(by).min(last));
    }

    fn select(&mut self, at: usize) {
        self.at = at;
        match self.tab {
            Tab::Locks => self.lock = self.locks().get(at).map(|row| row.key),
            Tab::Threads => self.thread = self.threads().get(at).map(|row| row.key),
            Tab::Processes | Tab::Findings => {}
        }
    }

    /// The chosen row stays the same lock or thread, wherever it is listed. If it is gone, the position stays.
    fn find_selected(&mut self) {
        let found = match self.tab {
            Tab::Locks => self.lock.and_then(|key| self.locks().iter().position(|row| row.key == key)),
            Tab::Threads => self.thread.and_then(|key| self.threads().iter().position(|row| row.key == key)),
            Tab::Processes | Tab::Findings => None,
        };
        self.at = found.unwrap_or(self.at).min(self.len().saturating_sub(1));
    }
}

/// What is read again of a page that does not change by itself.
fn reread(page: &Detail) -> Option<Request> {
    match page {
        Detail::Thread(key, _) => Some(Request::Thread(*key)),
        Detail::Lock(_) | Detail::Help => None,
    }
}
