//! Checks formats of events when the program is compiled.
//!
//! `format_args!` checks that places and values fit each other. It would also accept what the reader cannot know: the
//! names of the program's variables.

/// Fails to compile if a format names variables, or takes a width or a precision from a value.
pub const fn check(format: &str) {
    let format = format.as_bytes();
    let mut at = 0;
    while at < format.len() {
        assert!(format[at] != 0, "the format of an event has no zero bytes");
        if format[at] == b'{' {
            at += 1;
            if at < format.len() && format[at] == b'{' {
                at += 1;
                continue;
            }
            assert!(
                at == format.len() || !is_name_start(format[at]),
                "an event knows no names of variables: write {{}} and pass the variable as a value"
            );
            while at < format.len() && format[at] != b'}' {
                assert!(
                    format[at] != b'$' && format[at] != b'*',
                    "widths and precisions in the format of an event are constants"
                );
                at += 1;
            }
        }
        at += 1;
    }
}

const fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || !byte.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn formats_with_places_for_values_are_accepted() {
        for format in ["", "plain", "{} of {}", "{0:>8.3} {1:#x}", "{{name}}", "{:?}", "100 %"] {
            check(format);
        }
    }

    #[test]
    #[should_panic(expected = "knows no names")]
    fn a_captured_variable_is_refused() {
        check("took {elapsed} ns");
    }

    #[test]
    #[should_panic(expected = "are constants")]
    fn a_width_from_a_value_is_refused() {
        check("{:1$}");
    }
}
