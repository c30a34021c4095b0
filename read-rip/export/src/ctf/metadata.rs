//! The description of the streams, in the language of CTF 1.8 (TSDL).
//!
//! What it says of the order of fields is what `packets` and `body` write. All fields begin at whole bytes, and all
//! numbers are little-endian.

use std::io::{self, Write};

use super::classes::{Class, Fields};

/// What a trace says of itself.
pub(super) struct Description<'a> {
    pub(super) uuid: [u8; 16],
    pub(super) host: &'a str,
    pub(super) program: &'a str,
    pub(super) pid: u32,
    /// When the machine was started, ns since 1970; `None` if that is not known.
    pub(super) booted_ns: Option<u64>,
}

const TYPES: &str = "\
typealias integer { size = 8; align = 8; signed = false; } := u8;
typealias integer { size = 16; align = 8; signed = false; } := u16;
typealias integer { size = 32; align = 8; signed = false; } := u32;
typealias integer { size = 64; align = 8; signed = false; } := u64;
typealias integer { size = 64; align = 8; signed = false; base = hex; } := address;
typealias integer { size = 64; align = 8; signed = false; map = clock.boottime.value; } := moment;
";

const PACKETS: &str = "\
  packet.context := struct {
    moment timestamp_begin;
    moment timestamp_end;
    u64 content_size;
    u64 packet_size;
    u64 packet_seq_num;
    u64 events_discarded;
  };
  event.header := struct { u16 id; moment timestamp; };
";

/// Writes the metadata.
///
/// # Errors
///
/// Those of `out`.
pub(super) fn metadata(out: &mut dyn Write, trace: &Description<'_>) -> io::Result<()> {
    writeln!(out, "/* CTF 1.8 */\n")?;
    let uuid = uuid_text(trace.uuid);
    // The types refer to the clock.
    writeln!(out, "trace {{\n  major = 1;\n  minor = 8;\n  uuid = \"{uuid}\";\n  byte_order = le;")?;
    writeln!(out, "  packet.header := struct {{")?;
    writeln!(out, "    integer {{ size = 32; align = 8; signed = false; base = hex; }} magic;")?;
    writeln!(out, "    integer {{ size = 8; align = 8; signed = false; }} uuid[16];")?;
    writeln!(out, "    integer {{ size = 32; align = 8; signed = false; }} stream_id;")?;
    writeln!(out, "    integer {{ size = 64; align = 8; signed = false; }} stream_instance_id;")?;
    writeln!(out, "  }};\n}};\n")?;
    writeln!(out, "env {{")?;
    for (name, value) in [("hostname", trace.host), ("procname", trace.program), ("tracer_name", "librip")] {
        writeln!(out, "  {name} = {};", literal(value))?;
    }
    writeln!(out, "  vpid = {};\n}};\n", trace.pid)?;
    writeln!(
        out,
        "clock {{\n  name = boottime;\n  description = \"nanoseconds since the machine was started\";"
    )?;
    writeln!(out, "  freq = 1000000000;")?;
    if let Some(ns) = trace.booted_ns {
        writeln!(out, "  offset_s = {};\n  offset = {};", ns / 1_000_000_000, ns % 1_000_000_000)?;
        writeln!(out, "  absolute = true;")?;
    }
    writeln!(out, "}};\n\n{TYPES}")?;
    writeln!(out, "stream {{\n  id = 0;\n{PACKETS}  event.context := struct {{")?;
    for field in [
        "u32 pid",
        "u32 tid",
        "string thread",
        "u32 task",
        "string channel",
        "string function",
        "string file",
        "u32 line",
        "address pc",
        "u64 sequence",
        "u8 is_exact",
        "u64 latest_time",
    ] {
        writeln!(out, "    {field};")?;
    }
    writeln!(out, "  }};\n}};\n")?;
    for class in Class::all() {
        writeln!(out, "event {{\n  id = {};\n  name = \"{}\";\n  stream_id = 0;", class.id(), class.name())?;
        writeln!(out, "  fields := struct {{ {} }};\n}};\n", fields(class.fields()))?;
    }
    Ok(())
}

/// The fields that only events of some classes have.
fn fields(fields: Fields) -> &'static str {
    match fields {
        Fields::Mark => "string label;",
        Fields::Lock => {
            "address lock; string lock_name; address condition; u8 is_shared; u8 is_try; u64 since_time;"
        }
        Fields::Event => "string level; string text;",
        Fields::SpanBegin => "string text;",
        Fields::SpanEnd => "string text; u64 took_ns;",
        Fields::Overwritten => "u64 words;",
    }
}

/// A string of the language, as one of C. The texts are printable: they have no control characters.
fn literal(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn uuid_text(uuid: [u8; 16]) -> String {
    let mut text = String::new();
    for (index, byte) in uuid.iter().enumerate() {
        if [4, 6, 8, 10].contains(&index) {
            text.push('-');
        }
        text += &format!("{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_leave_its_string() {
        assert_eq!(literal(r#"a" = 1, }; \"#), r#""a\" = 1, }; \\""#);
    }

    #[test]
    fn a_uuid_has_its_groups() {
        let uuid: [u8; 16] = std::array::from_fn(|index| index as u8);
        assert_eq!(uuid_text(uuid), "00010203-0405-0607-0809-0a0b0c0d0e0f");
    }
}
