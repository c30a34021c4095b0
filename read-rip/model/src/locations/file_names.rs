//! Short names of source files.
//!
//! It compares paths and opens no files.

use std::collections::HashMap;

use read_rip_symbols::Frame;

use super::Location;

/// Short names of source files: the last component, and as many before it as distinguish the file from all others.
#[derive(Debug, Default)]
pub struct FileNames(HashMap<String, String>);

impl FileNames {
    pub fn choose<'p>(locations: impl Iterator<Item = &'p Location>) -> FileNames {
        FileNames::choose_with(locations, std::iter::empty())
    }

    /// Chooses names for the files of these locations and of these other frames. The name of a package stands before
    /// the names of its files.
    pub fn choose_with<'p>(
        locations: impl Iterator<Item = &'p Location>,
        others: impl Iterator<Item = &'p Frame>,
    ) -> FileNames {
        let mut by_package: HashMap<Option<&str>, Vec<&str>> = HashMap::new();
        let of_frame = |frame: &'p Frame| Some((frame.whose.package_or_language(), frame.file.as_deref()?));
        let of_locations = locations.flat_map(|location| {
            let own = location.source.iter().chain(&location.folded).map(|(file, _)| &**file);
            let package = location.whose.package_or_language();
            let callers = location.callers.iter().chain(&location.outer);
            own.map(move |file| (package, file)).chain(callers.filter_map(of_frame))
        });
        for (package, file) in of_locations.chain(others.filter_map(of_frame)) {
            by_package.entry(package).or_default().push(file);
        }
        let names = by_package.into_values().map(|files| FileNames::of_paths(files.into_iter()));
        FileNames(names.flat_map(|names| names.0).collect())
    }

    /// Chooses names for these files.
    pub(crate) fn of_paths<'p>(paths: impl Iterator<Item = &'p str>) -> FileNames {
        let mut files: Vec<&str> = paths.collect();
        files.sort_unstable();
        files.dedup();
        // Bounds the work: there can be many files, and nobody reads longer names.
        const COMPONENTS_MAX: usize = 16;
        let suffixes = |file: &'p str| {
            let short = file.rmatch_indices('/').map(move |(at, _)| &file[at + 1..]).take(COMPONENTS_MAX);
            short.filter(|name| !name.is_empty()).chain([file])
        };
        let mut by_suffix: HashMap<&str, Vec<&str>> = HashMap::new();
        for &file in &files {
            for suffix in suffixes(file) {
                by_suffix.entry(suffix).or_default().push(file);
            }
        }
        let names = files.iter().map(|&file| {
            // Two spellings of one file do not conflict: relative in a note, absolute in debug information.
            let is_unique = |name: &&str| {
                let alike = by_suffix.get(name).into_iter().flatten();
                alike.into_iter().all(|other| ends_with_path(other, file) || ends_with_path(file, other))
            };
            let name = suffixes(file).find(is_unique).unwrap_or(file);
            (file.to_owned(), name.to_owned())
        });
        FileNames(names.collect())
    }

    /// The name of a file; the file itself if it was not among the locations.
    pub fn get<'a>(&'a self, file: &'a str) -> &'a str {
        self.0.get(file).map_or(file, String::as_str)
    }
}

fn ends_with_path(path: &str, end: &str) -> bool {
    path.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('/') || end.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(file: &str) -> Location {
        Location { source: Some((file.into(), 1)), ..Location::default() }
    }

    #[test]
    fn file_names_are_as_short_as_they_can_be() {
        let locations = ["src/cache/mod.rs", "src/net/mod.rs", "src/main.rs", "/home/a/src/main.rs", "x.c"];
        let locations: Vec<Location> = locations.into_iter().map(location).collect();
        let names = FileNames::choose(locations.iter());
        assert_eq!(names.get("src/cache/mod.rs"), "cache/mod.rs");
        assert_eq!(names.get("src/net/mod.rs"), "net/mod.rs");
        assert_eq!(names.get("src/main.rs"), "main.rs");
        assert_eq!(names.get("/home/a/src/main.rs"), "main.rs");
        assert_eq!(names.get("x.c"), "x.c");
    }
}
