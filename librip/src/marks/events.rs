//! The macros of events with values, and of spans.

/// Records that something happened, with values. Takes some nanoseconds.
///
/// The first argument is a format as in `format!`, a string literal. The values follow, at most ten: see
/// [`Value`](crate::Value) for their types. The program formats nothing. It stores the values in the calling thread's
/// slot, and `read-rip log` shows them in the format. An event has a time, unless `RIP_CLOCK` is `off`. Like a mark, it
/// never blocks, allocates or fails, and may be used in signal handlers.
///
/// A text is recorded by value, up to 48 bytes of it, or up to 18 if the event has many texts. [`Text`](crate::Text)
/// records a text by reference. An event takes two words, one for the time, one for each value of up to 32 bits, and
/// two for others. So programs with events may want more words for each thread than the default of 64 (`RIP_WORDS`).
///
/// A level may precede the format: `trace`, `debug`, `info`, `warn` or `error`. Without one, an event has `info`.
///
/// # Examples
///
/// ```
/// use librip::rip_event;
///
/// fn move_disk(from: usize, to: usize) {
///     rip_event!("move a disk from {} to {}", from, to);
/// }
/// # move_disk(1, 3);
/// # let (path, error) = ("/etc/passwd", 13);
/// rip_event!(level warn, "cannot open {:?}: {}", path, error);
/// ```
///
/// An event may be in a [channel](crate::rip_channel), which precedes the level:
///
/// ```
/// librip::rip_channel!(DISKS, words = 256);
///
/// librip::rip_event!(channel DISKS, level error, "disk {} has failed", 7);
/// ```
///
/// A format and values that do not fit each other do not compile:
///
/// ```compile_fail
/// librip::rip_event!("{} of {}", 1);
/// ```
///
/// ```compile_fail
/// librip::rip_event!("{:x}", "text");
/// ```
///
/// The reader does not know the names of the program's variables:
///
/// ```compile_fail
/// let count = 1;
/// librip::rip_event!("{count} done");
/// ```
#[macro_export]
macro_rules! rip_event {
    (channel $channel:path, level $level:ident, $format:literal $(, $value:expr)* $(,)?) => {
        if $crate::Channel::takes(&$channel, $crate::__rip_level!($level)) {
            $crate::__rip_with_values!(
                $format, [], [a b c d e f g h i j], [$($value),*],
                |values| $crate::__private::event_in(
                    &$channel,
                    $crate::__rip_text_site!(
                        KIND_EVENT,
                        $crate::__rip_level!($level) | $crate::__private::format::SITE_CHANNEL,
                        [OPERAND_SHAPE],
                        $format
                    ),
                    values,
                )
            )
        }
    };
    (channel $channel:path, $format:literal $(, $value:expr)* $(,)?) => {
        $crate::rip_event!(channel $channel, level info, $format $(, $value)*)
    };
    (level $level:ident, $format:literal $(, $value:expr)* $(,)?) => {
        $crate::__rip_with_values!(
            $format, [], [a b c d e f g h i j], [$($value),*],
            |values| $crate::__private::event(
                $crate::__rip_text_site!(KIND_EVENT, $crate::__rip_level!($level), [OPERAND_SHAPE], $format),
                values,
            )
        )
    };
    ($format:literal $(, $value:expr)* $(,)?) => {
        $crate::rip_event!(level info, $format $(, $value)*)
    };
}

/// Records that something begins, and when it ends. Returns a [`Span`](crate::Span); the span ends when that is
/// dropped.
///
/// The first argument is the name, a string literal. A format and values may follow, as in
/// [`rip_event!`](crate::rip_event). Open spans are in a table of the thread's slot, with their name, their beginning
/// and their first value. So they are known when the process dies, however long ago they began. The table has room for
/// 16 spans of a thread. `read-rip spans` shows how long spans take, and which are open.
///
/// With a closure as the last argument, the span lasts while the closure runs, and the result is the closure's.
///
/// A span may be in a [channel](crate::rip_channel), which precedes the name: `rip_span!(channel DISKS, "format")`.
///
/// With `usage` before the name, the recorder asks the kernel at both ends what the thread uses, if
/// [`Usage`](crate::Usage) (`RIP_USAGE`) is on. An event after the end says it: processor time, switches and page
/// faults. `read-rip spans` shows how much of the time the thread ran, was ready and slept. The kernel's answers take
/// some microseconds, so this is for spans that take longer. The macro returns a [`MeasuredSpan`](crate::MeasuredSpan).
///
/// # Examples
///
/// ```
/// use librip::rip_span;
///
/// fn parse(text: &str) -> usize {
///     let _span = rip_span!("parse", "{} bytes", text.len());
///     text.lines().count()
/// }
///
/// let lines = rip_span!("read", || parse("a\nb"));
/// assert_eq!(lines, 2);
///
/// let rows = rip_span!(usage, "sort", || (0..1000).rev().max());
/// assert_eq!(rows, Some(999));
/// ```
#[macro_export]
macro_rules! rip_span {
    (usage, $name:literal, || $body:expr) => {{
        let _span = $crate::rip_span!(usage, $name);
        $body
    }};
    (usage, $name:literal $($rest:tt)*) => {
        $crate::__private::measured(
            $crate::__private::Before::ask(true),
            $crate::__rip_usage_site!(NO_SITE_FLAGS, $name),
            $crate::rip_span!($name $($rest)*),
        )
    };
    (channel $channel:path, usage, $name:literal, || $body:expr) => {{
        let _span = $crate::rip_span!(channel $channel, usage, $name);
        $body
    }};
    (channel $channel:path, usage, $name:literal $($rest:tt)*) => {
        $crate::__private::measured(
            $crate::__private::Before::ask($crate::Channel::takes(&$channel, $crate::__rip_level!(info))),
            $crate::__rip_usage_site!(SITE_CHANNEL, $name),
            $crate::rip_span!(channel $channel, $name $($rest)*),
        )
    };
    (channel $channel:path, $name:literal, || $body:expr) => {{
        let _span = $crate::rip_span!(channel $channel, $name);
        $body
    }};
    (channel $channel:path, $name:literal) => {
        $crate::rip_span!(channel $channel, $name, "")
    };
    (channel $channel:path, $name:literal, $format:literal $(, $value:expr)* $(,)?) => {
        $crate::__rip_with_values!(
            $format, [], [a b c d e f g h i j], [$($value),*],
            |values| $crate::__private::span_in(
                &$channel,
                $crate::__rip_span_site!($name, $format, KIND_SPAN_BEGIN, SITE_CHANNEL, [OPERAND_SHAPE]),
                $crate::__rip_span_site!($name, "", KIND_SPAN_END, SITE_CHANNEL, [OPERAND_TIME, OPERAND_SINCE]),
                values,
            )
        )
    };
    ($name:literal, || $body:expr) => {{
        let _span = $crate::rip_span!($name);
        $body
    }};
    ($name:literal) => {
        $crate::rip_span!($name, "")
    };
    ($name:literal, $format:literal $(, $value:expr)* $(,)?) => {
        $crate::__rip_with_values!(
            $format, [], [a b c d e f g h i j], [$($value),*],
            |values| $crate::__private::span(
                $crate::__rip_span_site!($name, $format, KIND_SPAN_BEGIN, NO_SITE_FLAGS, [OPERAND_SHAPE]),
                $crate::__rip_span_site!($name, "", KIND_SPAN_END, NO_SITE_FLAGS, [OPERAND_TIME, OPERAND_SINCE]),
                values,
            )
        )
    };
}

/// Declares a channel: words of their own, in each thread, for some of the program's events.
///
/// Events that are rare are soon replaced by frequent ones in a thread's history. In a channel they replace only one
/// another. The arguments are the name of a `static`, which `pub` may precede, and the number of words of a thread:
/// from 16 to 16384, rounded up to a power of two. [`rip_event!`](crate::rip_event) and [`rip_span!`](crate::rip_span)
/// say how many words events take. A thread takes the words, and 64 bytes, at its first event in the channel.
///
/// `read-rip log` shows the events of all channels in one order with the others. `read-rip set PID NAME=off` switches a
/// channel off in a running process, and `read-rip set PID NAME=warn` all events below that level. A ring has room for
/// eight channels, and for 32 MiB of their words. It counts what finds no room.
///
/// # Examples
///
/// ```
/// use librip::{rip_channel, rip_event};
///
/// rip_channel!(CONFIGURATION, words = 128);
///
/// rip_event!(channel CONFIGURATION, "now {} workers", 12);
/// ```
///
/// A number of words that cannot be does not compile:
///
/// ```compile_fail
/// librip::rip_channel!(HUGE, words = 1_000_000_000);
/// ```
#[macro_export]
macro_rules! rip_channel {
    ($visibility:vis $name:ident, words = $words:expr $(,)?) => {
        #[doc = ::core::concat!("The channel `", ::core::stringify!($name), "`.")]
        $visibility static $name: $crate::Channel = $crate::Channel::new(::core::stringify!($name), $words);
    };
}

/// Records an event as [`rip_event!`](crate::rip_event) does, and keeps all that this thread has recorded up to it.
///
/// A thread's history has room for its last words alone. A copy of it stays when the thread goes on: use this where
/// something is wrong that will be explained by what came before. `read-rip captures` shows the copies. A ring keeps
/// the last 64 of them, or a quarter as many as it has slots, if that is less. A copy of 64 words takes about half a
/// microsecond.
///
/// The level is `warn` unless it precedes the format.
///
/// # Examples
///
/// ```
/// # let (took_ms, user) = (1700, 12);
/// if took_ms > 1000 {
///     librip::rip_capture!("the request of user {} took {} ms", user, took_ms);
/// }
/// ```
#[macro_export]
macro_rules! rip_capture {
    (level $level:ident, $format:literal $(, $value:expr)* $(,)?) => {
        $crate::__rip_with_values!(
            $format, [], [a b c d e f g h i j], [$($value),*],
            |values| $crate::__private::capture(
                $crate::__rip_text_site!(KIND_EVENT, $crate::__rip_level!($level), [OPERAND_SHAPE], $format),
                values,
            )
        )
    };
    ($format:literal $(, $value:expr)* $(,)?) => {
        $crate::rip_capture!(level warn, $format $(, $value)*)
    };
}

/// Keeps what this thread records in a cycle of its work, if the cycle takes longer than a limit.
///
/// The first argument is the cycle's name, a string literal, the second one the limit, a
/// [`Duration`](core::time::Duration). Returns a [`Cycle`](crate::Cycle); the cycle ends when that is dropped. If it
/// was slow, an event says how long it took, and the thread's history from the beginning of the cycle on is kept, as
/// with [`rip_capture!`](crate::rip_capture). Other cycles leave nothing. So a program that runs for months keeps its
/// latest slow cycles, in memory that does not grow.
///
/// With [`Usage`](crate::Usage) (`RIP_USAGE`), the kernel says what the thread used in a slow cycle: so `read-rip
/// captures` knows why it was slow. Then a cycle that was not slow is kept four times a second too, for comparison.
///
/// With a closure as the last argument, the cycle lasts while the closure runs, and the result is the closure's.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use librip::{rip_event, rip_slow_cycle};
///
/// fn serve(request: u64) -> u64 {
///     let _cycle = rip_slow_cycle!("serve", Duration::from_millis(5));
///     rip_event!("request {}", request);
///     request + 1
/// }
///
/// let answer = rip_slow_cycle!("loop", Duration::from_millis(20), || serve(7));
/// assert_eq!(answer, 8);
/// ```
#[macro_export]
macro_rules! rip_slow_cycle {
    ($name:literal, $limit:expr, || $body:expr) => {{
        let _cycle = $crate::rip_slow_cycle!($name, $limit);
        $body
    }};
    ($name:literal, $limit:expr) => {{
        const _: () = $crate::__private::check_label($name);
        $crate::__private::cycle(
            $crate::__rip_text_site!(
                KIND_EVENT,
                $crate::__rip_level!(warn),
                [OPERAND_SHAPE],
                $name,
                ": a cycle took {} us, more than {} us"
            ),
            $crate::__rip_usage_site!(NO_SITE_FLAGS, $name),
            $limit,
        )
    }};
}

/// Gives each value a name, checks that what is recorded of them fits the format, and passes that on. Arguments: the
/// format, the named values so far, further names, further values, and what to do with all.
#[doc(hidden)]
#[macro_export]
macro_rules! __rip_with_values {
    ($format:literal, [$($name:ident $value:expr,)*], [$($free:ident)*], [], |$values:ident| $then:expr) => {
        match ($(&$value,)*) {
            ($($name,)*) => match ($($crate::Value::recorded($name),)*) {
                $values => {
                    const _: () = $crate::__private::check_format($format);
                    if false {
                        let ($($name,)*) = $values;
                        let _ = ::core::format_args!($format $(, $name)*);
                    }
                    $then
                }
            },
        }
    };
    (
        $format:literal, [$($done:tt)*], [$next:ident $($free:ident)*], [$value:expr $(, $rest:expr)*],
        |$values:ident| $then:expr
    ) => {
        $crate::__rip_with_values!(
            $format, [$($done)* $next $value,], [$($free)*], [$($rest),*], |$values| $then
        )
    };
    ($format:literal, [$($done:tt)*], [], [$($rest:expr),+], |$values:ident| $then:expr) => {
        ::core::compile_error!("an event has at most ten values")
    };
}

/// Expands to the number of a level.
#[doc(hidden)]
#[macro_export]
macro_rules! __rip_level {
    (trace) => {
        $crate::__private::format::LEVEL_TRACE
    };
    (debug) => {
        $crate::__private::format::LEVEL_DEBUG
    };
    (info) => {
        $crate::__private::format::LEVEL_INFO
    };
    (warn) => {
        $crate::__private::format::LEVEL_WARN
    };
    (error) => {
        $crate::__private::format::LEVEL_ERROR
    };
}

/// Expands to the PC of the site of an event that says what a thread used. Arguments: a flag, and the name of the cycle
/// or span.
#[doc(hidden)]
#[macro_export]
macro_rules! __rip_usage_site {
    ($flag:ident, $name:literal) => {
        $crate::__rip_text_site!(
            KIND_EVENT,
            $crate::__rip_level!(debug)
                | $crate::__private::format::SITE_USAGE
                | $crate::__private::format::$flag,
            [OPERAND_SHAPE],
            $name,
            ": {} us, and {} us around it: {} us on a processor, {} us of it in the kernel, {} us ready for one; ",
            "{} voluntary and {} involuntary switches; {} minor and {} major page faults"
        )
    };
}

/// Expands to the PC of a site of a span. Arguments: name, format, kind, flags, operands.
#[doc(hidden)]
#[macro_export]
macro_rules! __rip_span_site {
    ($name:literal, $format:literal, $kind:ident, $flags:ident, [$($operand:ident),*]) => {{
        const _: () = $crate::__private::check_label($name);
        $crate::__rip_text_site!($kind, $crate::__private::format::$flags, [$($operand),*], $name, "\0", $format)
    }};
}
