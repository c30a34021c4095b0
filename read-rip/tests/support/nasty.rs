//! Names that want to be more than names: in a page of HTML, in its script, or for its reader's eyes.

use super::locks::*;
use super::synth::{Held, Module, Ring, Site, Slot};

/// Each sets `__hostile` if it runs, or ends what it is in. None is longer than the name of a lock or of a thread.
pub(crate) const NASTY: [&str; 12] = [
    "</script><script>__hostile=1</script>",
    "<img src=x onerror=__hostile=2>",
    "</title><svg onload=__hostile=3>",
    "javascript:__hostile=4",
    "\" onmouseover=\"__hostile=5\" x=\"",
    "' autofocus onfocus='__hostile=6",
    "--><!--<script>__hostile=7;//",
    "]]></style><script>__hostile=8;/*",
    "\u{202e}desrever\u{2066}\u{200b}\u{feff}",
    "a\u{2028}b\u{2029}c\r\n\u{0}\u{1b}[31m",
    "&lt;b&gt;&amp;&#60;",
    "${__hostile=9}`\\u003c\\",
];

/// The numbers of sites of what a program says, with one value.
const SAID: u64 = 0x5000;
/// Has one value of 32 bits, and nothing else before it.
const SHAPE: u64 = 1 | 1 << 40;

/// What a program can say of it: the texts of a site end at a NUL.
pub(crate) fn said(nasty: &str) -> String {
    nasty.replace('\0', "")
}

/// A deadlock, waits, events and a program whose names are all of that kind.
pub(crate) fn ring() -> Ring {
    let mut ring = super::locks::ring();
    ring.host = NASTY[0].into();
    ring.modules[0] =
        Module { path: format!("/nowhere/{}", NASTY[1].replace('/', "|")).into(), ..Module::program() };
    for (at, nasty) in NASTY.iter().enumerate() {
        let nasty = said(nasty);
        let file = format!("src/{}.rs", nasty.replace('/', "|"));
        let format = format!("{} {{}}", nasty.replace('{', "{{").replace('}', "}}"));
        let line = 1 + u32::try_from(at).unwrap();
        let site = Site::new(SAID + 0x10 * at as u64, &file, line).within(&nasty).of(14, 3, &[10]);
        ring.sites.push(Site { label: format, ..site });
    }
    ring.lock_names = (NASTY.iter().enumerate())
        .map(|(at, nasty)| (ring.pid, A + 0x100 * at as u64, (*nasty).to_owned()))
        .collect();
    let deadlock = [transfer(NASTY[0], 1, A, A + 0x100), transfer(NASTY[1], 2, A + 0x100, A)];
    let others = NASTY.iter().enumerate().map(|(at, nasty)| {
        let lock = A + 0x100 * at as u64;
        let thread = Slot::thread(nasty, 10 + u32::try_from(at).unwrap());
        let thread = thread.event(SAID + 0x10 * at as u64, &[7, SHAPE]).event(TAKES, &[at_seconds(3), lock]);
        let thread = thread.event(RELEASED, &[at_seconds(4), at_seconds(3), lock]);
        thread.event(WAIT, &[at_seconds(5), lock]).has(Held::new(WAITING, lock, WAIT).since(at_seconds(5)))
    });
    // The name of one is cut within a letter.
    let broken = Slot { name: b"\xff\xfe<b>\xe2\x80".to_vec(), ..Slot::thread("", 99).marks([SNAP]) };
    let slots: Vec<Slot> = deadlock.into_iter().chain(others).chain([broken]).collect();
    ring.with_slots(slots)
}

fn at_seconds(seconds: u32) -> u64 {
    at(f64::from(seconds))
}
