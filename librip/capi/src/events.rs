//! What the macros for events, spans and captures call.
//!
//! It passes on the values that the header has packed. A `char *` is a text only if its conversion shows one: a format
//! may show the address of characters that are no text.
//!
//! Nothing here has anything to clean up, so cancellation may interrupt it.

use core::ffi::{CStr, c_char};
use core::ptr;

use librip::capi::{
    ChannelByHand, CycleByHand, PackedTypes, PackedValue, PackedValues, SpanByHand, is_plain, note_plain,
    packed_capture, packed_event, packed_event_in,
};
use librip_format::printf::{Conversion, Count, Length, conversion_of};
use librip_format::{BYTES_LEN_MAX, VALUE_BYTES, VALUE_POINTER, VALUES_MAX};

/// What a null pointer to a text shows.
static NULL_TEXT: &[u8] = b"(null)";

/// `RIP_EVENT`.
///
/// # Safety
///
/// `format` is a zero-terminated string. There are `count` values. `printf` may show them with this format, and texts
/// by reference last as long as the process.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn librip_event_1(
    pc: u64,
    format: *const c_char,
    values: *const PackedValue,
    count: usize,
) {
    // SAFETY: the caller's promise.
    unsafe { with_values(pc, format, (values, count), |values| packed_event(pc, values)) };
}

/// `RIP_CAPTURE`.
///
/// # Safety
///
/// As [`librip_event_1`].
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn librip_capture_1(
    pc: u64,
    format: *const c_char,
    values: *const PackedValue,
    count: usize,
) {
    // SAFETY: the caller's promise.
    unsafe { with_values(pc, format, (values, count), |values| packed_capture(pc, values)) };
}

/// `RIP_SPAN_BEGIN`.
///
/// # Safety
///
/// As [`librip_event_1`].
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn librip_span_begin_1(
    pc: u64,
    pc_end: u64,
    format: *const c_char,
    values: *const PackedValue,
    count: usize,
) -> SpanByHand {
    // SAFETY: the caller's promise.
    unsafe { with_values(pc, format, (values, count), |values| SpanByHand::begin(pc, pc_end, values)) }
}

/// `RIP_EVENT_IN` and the spans in channels: whether events of this level are recorded. The header asks until the ring
/// has the channel, and then looks at the channel's level itself.
///
/// # Safety
///
/// The channel is a `RIP_CHANNEL`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn librip_channel_takes_1(channel: &ChannelByHand, level: u16) -> bool {
    // SAFETY: the caller's promise.
    unsafe { channel.takes(level) }
}

/// `RIP_EVENT_IN`.
///
/// # Safety
///
/// As [`librip_event_1`] and [`librip_channel_takes_1`].
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn librip_event_in_1(
    channel: &ChannelByHand,
    pc: u64,
    format: *const c_char,
    values: *const PackedValue,
    count: usize,
) {
    let record = |values: PackedValues<'_>| {
        // SAFETY: the caller's promise.
        unsafe { packed_event_in(channel, pc, values) };
    };
    // SAFETY: the caller's promise.
    unsafe { with_values(pc, format, (values, count), record) };
}

/// `RIP_SPAN_BEGIN_IN`.
///
/// # Safety
///
/// As [`librip_event_in_1`].
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn librip_span_begin_in_1(
    channel: &ChannelByHand,
    pc: u64,
    pc_end: u64,
    format: *const c_char,
    values: *const PackedValue,
    count: usize,
) -> SpanByHand {
    let begin = |values: PackedValues<'_>| {
        // SAFETY: the caller's promise.
        unsafe { SpanByHand::begin_in(channel, pc, pc_end, values) }
    };
    // SAFETY: the caller's promise.
    unsafe { with_values(pc, format, (values, count), begin) }
}

/// `RIP_SPAN_END`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn librip_span_end_1(span: SpanByHand) {
    span.end();
}

/// `RIP_SLOW_CYCLE`: the cycle begins.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn librip_cycle_begin_1(pc: u64, pc_usage: u64, limit_us: u64) -> CycleByHand {
    CycleByHand::begin(pc, pc_usage, limit_us.saturating_mul(1000))
}

/// `RIP_SLOW_CYCLE`: the cycle ends.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn librip_cycle_end_1(cycle: CycleByHand) {
    cycle.end();
}

/// Passes on the values of an event.
///
/// # Safety
///
/// As [`librip_event_1`].
#[inline(always)]
unsafe fn with_values<T>(
    pc: u64,
    format: *const c_char,
    (values, count): (*const PackedValue, usize),
    record: impl Fn(PackedValues<'_>) -> T,
) -> T {
    let values = if count == 0 {
        &[]
    } else {
        // SAFETY: the caller's promise.
        unsafe { core::slice::from_raw_parts(values, count.min(VALUES_MAX)) }
    };
    let types = PackedTypes::of(values);
    if !types.has(VALUE_BYTES) {
        // SAFETY: there are no texts but those by reference, and the caller promises that they last.
        return record(unsafe { PackedValues::new(values, types) });
    }
    let mut resolved = [PackedValue { bits: 0, kind: 0 }; VALUES_MAX];
    // SAFETY: the caller's promise.
    let resolved = unsafe { resolve(pc, format, values, &mut resolved) };
    // SAFETY: `resolve` found the ends of the texts by value. The caller promises that the others last.
    record(unsafe { PackedValues::new(resolved, PackedTypes::of(resolved)) })
}

/// Finds the end of each `char *` that is a text.
///
/// # Safety
///
/// As [`librip_event_1`]. The result has the caller's texts.
#[inline(always)]
unsafe fn resolve<'a>(
    pc: u64,
    format: *const c_char,
    values: &[PackedValue],
    resolved: &'a mut [PackedValue; VALUES_MAX],
) -> &'a [PackedValue] {
    if !is_plain(pc) {
        // SAFETY: the caller's promise.
        return unsafe { resolve_by_format(pc, format, values, resolved) };
    }
    for (into, &value) in resolved.iter_mut().zip(values) {
        *into = value;
        if value.value_type() == VALUE_BYTES {
            // SAFETY: the caller's promise. At this site each text ends with a zero byte.
            *into = unsafe { text(value.bits, None) };
        }
    }
    &resolved[..values.len()]
}

/// Does so by what the conversions of the format say.
///
/// # Safety
///
/// As [`resolve`].
#[inline(never)]
unsafe fn resolve_by_format<'a>(
    pc: u64,
    format: *const c_char,
    values: &[PackedValue],
    resolved: &'a mut [PackedValue; VALUES_MAX],
) -> &'a [PackedValue] {
    // SAFETY: the caller's promise.
    let format = unsafe { CStr::from_ptr(format) }.to_bytes();
    let mut are_plain = true;
    for (index, (into, &value)) in resolved.iter_mut().zip(values).enumerate() {
        *into = value;
        if value.value_type() != VALUE_BYTES {
            continue;
        }
        let conversion = conversion_of(format, index);
        let is_text = |found: &Conversion<'_>| found.letter == b's' && found.length == Length::None;
        let Some(conversion) = conversion.filter(is_text) else {
            are_plain = false;
            *into = PackedValue { bits: value.bits, kind: VALUE_POINTER };
            continue;
        };
        are_plain &= conversion.precision == Count::None;
        let len_max = match conversion.precision {
            Count::None => None,
            Count::Constant(precision) => Some(precision as usize),
            // An `int`. If it is negative, the text ends with a zero byte.
            Count::Value(index) => {
                values.get(index).and_then(|value| usize::try_from(value.bits as i32).ok())
            }
        };
        // SAFETY: the caller's promise: the text has a zero byte, or as many bytes as the precision says.
        *into = unsafe { text(value.bits, len_max) };
    }
    if are_plain {
        note_plain(pc);
    }
    &resolved[..values.len()]
}

/// A text, or what stands for a null pointer.
///
/// # Safety
///
/// The text has a zero byte, or `len_max` bytes.
#[inline(always)]
unsafe fn text(address: u64, len_max: Option<usize>) -> PackedValue {
    if address == 0 {
        return PackedValue::bytes(NULL_TEXT);
    }
    let text = ptr::with_exposed_provenance::<c_char>(address as usize);
    // SAFETY: the caller's promise.
    let len = unsafe { libc::strnlen(text, len_max.unwrap_or(BYTES_LEN_MAX as usize)) };
    PackedValue { bits: address, kind: VALUE_BYTES | (len as u64) << 8 }
}
