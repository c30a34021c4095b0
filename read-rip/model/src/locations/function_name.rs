//! Names of functions, shortened.
//!
//! It does not demangle: `symbols` does.

use std::borrow::Cow;

/// A function's name without type arguments: `lock<Cache, F>` becomes `lock`. `<A as B>::c` stays.
pub fn without_arguments(function: &str) -> Cow<'_, str> {
    if !function.contains('<') {
        return Cow::Borrowed(function);
    }
    let mut short = String::with_capacity(function.len());
    // The number of open brackets whose content is left out.
    let mut depth = 0usize;
    let mut previous = ' ';
    for letter in function.chars() {
        // The end of an arrow is not a bracket. Neither is the name of an operator, such as `operator<`.
        let is_arrow = letter == '>' && previous == '-';
        let begins_arguments = previous.is_alphanumeric() || matches!(previous, '_' | ':' | '}');
        if depth > 0 {
            match letter {
                '<' => depth += 1,
                '>' if !is_arrow => depth -= 1,
                _ => {}
            }
        } else if letter == '<' && begins_arguments && !short.ends_with("operator") {
            depth = 1;
            while short.ends_with(':') {
                short.pop();
            }
        } else {
            short.push(letter);
        }
        previous = letter;
    }
    // If brackets do not match, the whole name is better than half of it.
    if depth > 0 { Cow::Borrowed(function) } else { Cow::Owned(short) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_arguments_are_left_out() {
        for (whole, short) in [
            ("main", "main"),
            ("lock<Cache, a::{closure_env#0}>", "lock"),
            ("{closure#0}<Cache>", "{closure#0}"),
            ("a::b::<i32>::c", "a::b::c"),
            ("<A<B> as C<D>>::c", "<A as C>::c"),
            ("std::map<int, std::less<int> >::find(int)", "std::map::find(int)"),
            ("f<fn() -> i32>::g", "f::g"),
            ("operator<", "operator<"),
            ("broken<a", "broken<a"),
        ] {
            assert_eq!(without_arguments(whole), short);
        }
    }
}
