//! Names of functions without what compilers add, and patterns of them.

/// Removes what compilers and linkers add to a function's name: versions, parts, brackets, leading underscores.
pub(super) fn plain(name: &str) -> String {
    let name = name.split('@').next().unwrap_or_default();
    if name.contains("::") {
        // Functions that C++ makes of templates say first what they return.
        let name = name.strip_prefix("void ").or(name.strip_prefix("bool ")).unwrap_or(name);
        // `<a::B<T> as c::D>::e` is matched from its beginning.
        return name.trim_start_matches('<').replace(">::", "::");
    }
    let name = PARTS.iter().fold(name, |name, part| name.split(part).next().unwrap_or_default());
    let name = name.trim_start_matches('_');
    name.strip_prefix("GI_").unwrap_or(name).trim_start_matches('_').to_owned()
}

/// What begins what compilers add to a C function's name. A Go function has other dots.
const PARTS: &[&str] = &["(", ".constprop.", ".part.", ".isra.", ".cold", ".llvm.", ".lto_priv."];

/// Whether a name has the form of one of these patterns: see [`glob`].
pub(crate) fn is_one_of(patterns: &[&str], name: &str) -> bool {
    patterns.iter().any(|pattern| glob(pattern, name))
}

/// Whether a name matches a pattern, in which `*` is any text.
pub(super) fn glob(pattern: &str, name: &str) -> bool {
    let Some((head, mut rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(head) else { return false };
    while let Some((middle, next)) = rest.split_once('*') {
        let Some(at) = name.find(middle) else { return false };
        (name, rest) = (&name[at + middle.len()..], next);
    }
    name.ends_with(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_in_order_and_at_both_ends() {
        assert!(glob("a*b*c", "a1b2c") && glob("a*", "a") && glob("*::x", "a::x") && glob("ab", "ab"));
        assert!(!glob("a*b*c", "a1c2b") && !glob("ab", "abc") && !glob("a*b", "ab1") && !glob("a*aa", "aa"));
    }
}
