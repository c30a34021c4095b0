//! The macro that makes a mark.

/// Records that this place was passed: takes about a nanosecond.
///
/// Stores the address of the current instruction, with a sequence number, in the calling thread's slot of
/// the process's ring. Before [`init`](crate::init) has made a ring it records nowhere. It never blocks,
/// allocates or fails, and may be used in signal handlers and in destructors of thread-locals.
///
/// A label, a string literal, is kept in the program's notes and shown by `read-rip -v`; it costs nothing at
/// run time.
///
/// # Examples
///
/// Around a lock, this pattern tells who waits, who holds and who has released:
///
/// ```
/// use librip::rip_snap;
/// use std::sync::Mutex;
///
/// static CACHE: Mutex<Vec<u32>> = Mutex::new(Vec::new());
///
/// rip_snap!("waits for the cache");
/// let mut cache = CACHE.lock().unwrap();
/// rip_snap!("has the cache");
/// cache.push(1);
/// drop(cache);
/// rip_snap!("released the cache");
/// ```
#[macro_export]
macro_rules! rip_snap {
    () => {
        $crate::rip_snap!("")
    };
    ($label:literal) => {{
        const TEXT: &str = ::core::concat!(::core::file!(), "\0", ::core::module_path!(), "\0", $label);
        // A static of its own for each site: see `__rip_mark`.
        static BYTES: [u8; TEXT.len()] = $crate::__private::text_bytes(TEXT);
        // SAFETY: the assembly advances the thread's count and stores one word at its cursor, which points
        // at a slot that is this thread's, or at its sink. It changes no other memory and no register that
        // the compiler is not told of.
        unsafe { $crate::__rip_mark!(BYTES, TEXT.len(), $crate::__private::format::KIND_SNAP) }
    }};
}

/// A string as an array, for a `static` that assembly can point at.
#[doc(hidden)]
pub const fn text_bytes<const LEN: usize>(text: &str) -> [u8; LEN] {
    let source = text.as_bytes();
    let mut bytes = [0; LEN];
    let mut at = 0;
    while at < LEN {
        bytes[at] = source[at];
        at += 1;
    }
    bytes
}

/// The first four operand types as a note keeps them.
#[doc(hidden)]
pub const fn types(operands: &[u8]) -> u32 {
    assert!(operands.len() <= 4, "the assembly of a site has room for four");
    let mut packed = 0;
    let mut at = 0;
    while at < operands.len() {
        packed |= (operands[at] as u32) << (8 * at);
        at += 1;
    }
    packed
}
