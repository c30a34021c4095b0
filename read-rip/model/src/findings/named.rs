//! Enums whose values have stable names, which JSON, suppression files and scripts use; and words for people.
//!
//! It has no such enum itself.

/// Defines an enum with a name for each value, and `ALL`, `name` and `Serialize` from that one list.
macro_rules! named {
    (
        $(#[$about:meta])*
        pub enum $Enum:ident {
            $( $(#[$doc:meta])* $Value:ident = $name:literal, )*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum $Enum {
            $( $(#[$doc])* #[serde(rename = $name)] $Value, )*
        }

        impl $Enum {
            /// All values, in the order of their declaration.
            pub const ALL: &[$Enum] = &[$($Enum::$Value),*];

            /// Its stable name.
            pub fn name(self) -> &'static str {
                match self {
                    $( $Enum::$Value => $name, )*
                }
            }
        }
    };
}
pub(super) use named;

/// Defines an enum like `named`, with words for each value. They are its documentation too.
macro_rules! worded {
    (
        $(#[$about:meta])*
        pub enum $Enum:ident {
            $( $Value:ident = $name:literal: $text:literal, )*
        }
    ) => {
        crate::findings::named::named! {
            $(#[$about])*
            pub enum $Enum {
                $( #[doc = $text] $Value = $name, )*
            }
        }

        impl $Enum {
            /// What it says to people, as a part of a sentence.
            pub fn text(self) -> &'static str {
                match self {
                    $( $Enum::$Value => $text, )*
                }
            }
        }
    };
}
pub(super) use worded;

#[cfg(test)]
mod tests {
    use crate::findings::{Advice, Confidence, Doubt, Kind, Premise};

    #[test]
    fn names_are_unique_and_in_kebab_case() {
        fn check<T: Copy>(all: &[T], name: impl Fn(T) -> &'static str) {
            let mut seen = std::collections::HashSet::new();
            for &value in all {
                let name = name(value);
                assert!(seen.insert(name), "{name} is there twice");
                assert!(name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-'), "{name}");
            }
        }
        check(Kind::ALL, Kind::name);
        check(Confidence::ALL, Confidence::name);
        check(Doubt::ALL, Doubt::name);
        check(Premise::ALL, Premise::name);
        check(Advice::ALL, Advice::name);
    }
}
