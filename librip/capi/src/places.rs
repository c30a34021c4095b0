//! Places of other languages: what `librip.h` declares for bindings.
//!
//! A place is never freed, because the ring knows it by addresses in it.

use core::ffi::{c_char, c_void};
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use librip::capi::binding::MadePlace;
use librip::capi::{PackedTypes, PackedValue, PackedValues, SpanByHand, with_cancellation_off};

use crate::bytes_of;

/// The next number of a lock. The first one is larger than the addresses of small programs, so a reader sees numbers.
static LOCK_NUMBERS: AtomicU64 = AtomicU64::new(1 << 40);

/// A number for a lock that no other lock of the process has had, by this function.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn rip_lock_number() -> u64 {
    // ORDERING: relaxed, each number is given once.
    LOCK_NUMBERS.fetch_add(8, Relaxed)
}

/// Makes a place, which lasts as long as the process.
///
/// # Safety
///
/// The texts are null, or zero-terminated strings.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn rip_place_create(
    file: *const c_char,
    line: u32,
    function: *const c_char,
    label: *const c_char,
    format: *const c_char,
) -> *const c_void {
    with_cancellation_off(|| {
        // SAFETY: the caller's promise.
        let text = |text: &*const c_char| unsafe { bytes_of(text) }.unwrap_or_default().to_vec();
        let [file, function, label, format] = [&file, &function, &label, &format].map(|of| lossy(text(of)));
        let place = MadePlace::new(&file, line, &function, &label, &format);
        let place: &'static MadePlace = Box::leak(Box::new(place));
        core::ptr::from_ref(place).cast()
    })
}

fn lossy(text: Vec<u8>) -> String {
    String::from_utf8_lossy(&text).into_owned()
}

/// The place of a pointer that `rip_place_create` returned; `None` for null.
///
/// # Safety
///
/// It is one of these.
unsafe fn place_of(place: *const c_void) -> Option<&'static MadePlace> {
    // SAFETY: the caller's promise. Places are never freed, and are changed by atomic operations alone.
    unsafe { place.cast::<MadePlace>().as_ref() }
}

macro_rules! of_locks {
    ($($name:ident: $method:ident;)*) => {
        $(
            /// See `librip.h`.
            ///
            /// # Safety
            ///
            /// The place is null, or one of `rip_place_create`.
            #[unsafe(no_mangle)]
            pub unsafe extern "C-unwind" fn $name(place: *const c_void, lock: u64, flags: u32) {
                // SAFETY: the caller's promise.
                if let Some(place) = unsafe { place_of(place) } {
                    place.$method(lock, flags);
                }
            }
        )*
    };
}

of_locks! {
    rip_place_lock_wait: wait;
    rip_place_lock_acquired: acquired;
    rip_place_lock_released: released;
    rip_place_lock_try_failed: try_failed;
}

/// Records an event.
///
/// # Safety
///
/// As the functions for locks. There are `count` values, and texts among them can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn rip_place_event(
    place: *const c_void,
    level: u32,
    values: *const PackedValue,
    count: usize,
) {
    // SAFETY: the caller's promise.
    if let Some(place) = unsafe { place_of(place) } {
        // SAFETY: the caller's promise.
        place.event(level, unsafe { packed(values, count) });
    }
}

/// Begins a span.
///
/// # Safety
///
/// As [`rip_place_event`].
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn rip_place_span_begin(
    place: *const c_void,
    values: *const PackedValue,
    count: usize,
) -> SpanByHand {
    // SAFETY: the caller's promise.
    match unsafe { place_of(place) } {
        // SAFETY: the caller's promise.
        Some(place) => place.span(unsafe { packed(values, count) }),
        None => SpanByHand::default(),
    }
}

/// Ends a span.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn rip_place_span_end(span: SpanByHand) {
    span.end();
}

/// The thread was here.
///
/// # Safety
///
/// As the functions for locks.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn rip_place_snap(place: *const c_void) {
    // SAFETY: the caller's promise.
    if let Some(place) = unsafe { place_of(place) } {
        place.snap();
    }
}

/// # Safety
///
/// There are `count` values, or the pointer is null. Texts among them can be read.
unsafe fn packed<'a>(values: *const PackedValue, count: usize) -> PackedValues<'a> {
    let values: &[PackedValue] = match values.is_null() || count == 0 {
        true => &[],
        // SAFETY: the caller's promise.
        false => unsafe { core::slice::from_raw_parts(values, count) },
    };
    // SAFETY: the caller's promise.
    unsafe { PackedValues::new(values, PackedTypes::of(values)) }
}
