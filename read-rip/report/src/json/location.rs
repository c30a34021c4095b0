//! A location as JSON.
//!
//! It resolves no address.

use std::borrow::Cow;

use read_rip_model::locations::{Location, LocationId, Locations, MARKS_MAX, Spot};
use read_rip_ring::{Site, SiteKind, Snapshot};
#[cfg(test)]
use read_rip_symbols::Whose;
use serde::Serialize;

use super::values::Address;

/// Where a mark is.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Location"))]
pub(super) struct JsonLocation<'a> {
    /// The number by which evidence refers to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<LocationId>,
    /// The full name of the innermost function of the user, with type arguments. If none is known to be the user's, the
    /// innermost function.
    #[serde(skip_serializing_if = "str::is_empty")]
    function: &'a str,
    /// Whose code that function is.
    #[cfg_attr(test, schemars(extend("enum" = owners())))]
    whose: &'static str,
    /// The package of a library, or the language of a runtime.
    #[serde(skip_serializing_if = "Option::is_none")]
    package: Option<&'a str>,
    /// The source file, as its path was given to the compiler.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    /// The line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    /// The label of the mark.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'a str>,
    /// What the mark means. Left out where the meaning is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(extend("enum" = mark_kinds())))]
    kind: Option<&'static str>,
    /// The address relative to the module.
    address: Address,
    /// The address in the process.
    pc: Address,
    /// The path of the module.
    #[serde(skip_serializing_if = "Option::is_none")]
    module: Option<Cow<'a, str>>,
    /// The functions of libraries in which the user's function is, innermost first: the last one is what it has called.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    inside: Vec<Caller<'a>>,
    /// The functions that the function was inlined into, innermost first. After them the calls further out that a
    /// thread's stack shows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    callers: Vec<Caller<'a>>,
    /// At most eight of the marks that the linker folded into one: any may have been passed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    one_of: Vec<Mark<'a>>,
}

/// A mark.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Mark<'a> {
    /// The source file.
    file: &'a str,
    /// The line, from 1.
    line: u32,
    /// The label.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'a str>,
    /// What it means. Left out where the meaning is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(extend("enum" = mark_kinds())))]
    kind: Option<&'static str>,
}

/// A function.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Caller<'a> {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<&'a str>,
    /// The source file of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    /// The line of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    /// Whose code it is.
    #[cfg_attr(test, schemars(extend("enum" = owners())))]
    whose: &'static str,
    /// The package of a library, or the language of a runtime.
    #[serde(skip_serializing_if = "Option::is_none")]
    package: Option<&'a str>,
}

impl<'a> Caller<'a> {
    fn of(spot: Spot<'a>) -> Caller<'a> {
        let (file, line) = spot.source.unzip();
        Caller {
            function: Some(spot.function).filter(|function| !function.is_empty()),
            file,
            line,
            whose: spot.whose.name(),
            package: spot.whose.package_or_language(),
        }
    }
}

impl JsonLocation<'_> {
    /// With the number by which evidence refers to it.
    pub(super) fn with_id(self, id: LocationId) -> Self {
        JsonLocation { id: Some(id), ..self }
    }
}

/// What a site's mark means; `None` for kinds of later versions.
pub fn kind_name(kind: SiteKind) -> Option<&'static str> {
    match kind {
        SiteKind::Snap => Some("snap"),
        SiteKind::Progress => Some("progress"),
        SiteKind::LockWait => Some("lock_wait"),
        SiteKind::LockAcquired => Some("lock_acquired"),
        SiteKind::LockReleased => Some("lock_released"),
        SiteKind::LockTryFailed => Some("lock_try_failed"),
        SiteKind::LockAcquireBegin => Some("lock_acquire_begin"),
        SiteKind::ConditionWait => Some("condition_wait"),
        SiteKind::ConditionWoken => Some("condition_woken"),
        SiteKind::ConditionSignalled => Some("condition_signalled"),
        SiteKind::ConditionUnheard => Some("condition_unheard"),
        SiteKind::ConditionDestroyed => Some("condition_destroyed"),
        SiteKind::LockDestroyed => Some("lock_destroyed"),
        SiteKind::LockInitialised => Some("lock_initialised"),
        SiteKind::Event => Some("event"),
        SiteKind::SpanBegin => Some("span_begin"),
        SiteKind::SpanEnd => Some("span_end"),
        SiteKind::ChannelPeer => Some("channel_peer"),
        SiteKind::Unknown(_) => None,
    }
}

/// All names of kinds.
#[cfg(test)]
fn mark_kinds() -> Vec<&'static str> {
    (0..=u8::MAX).filter_map(|raw| kind_name(raw.into())).collect()
}

/// All names of those whose code a function may be.
#[cfg(test)]
pub(super) fn owners() -> [&'static str; 5] {
    let name: std::sync::Arc<str> = "".into();
    let all =
        [Whose::User, Whose::Library(name.clone()), Whose::Runtime(name), Whose::System, Whose::Unknown];
    all.each_ref().map(Whose::name)
}

/// A location with what its site and its module say.
pub(super) fn json_location<'a>(
    location: &'a Location,
    locations: &Locations<'a>,
    snapshot: &'a Snapshot,
) -> JsonLocation<'a> {
    let label = |site: &'a Site| Some(&*site.label).filter(|label| !label.is_empty());
    let sites = || location.sites.iter().map(|&site| locations.site(site));
    let site = sites().next();
    let users = location.users_line();
    let (file, line) = users.at.source.unzip();
    JsonLocation {
        id: None,
        function: users.at.function,
        whose: users.at.whose.name(),
        package: users.at.whose.package_or_language(),
        file,
        line,
        kind: site.filter(|_| !location.is_ambiguous).and_then(|site| kind_name(site.kind)),
        label: site.and_then(label),
        address: Address(location.address),
        pc: Address(location.pc),
        module: location.module.map(|module| snapshot.modules[module].path.to_string_lossy()),
        inside: location.spots().take(users.index).map(Caller::of).collect(),
        callers: location.spots().skip(users.index + 1).map(Caller::of).collect(),
        one_of: sites()
            .take(if location.sites.len() > 1 { MARKS_MAX } else { 0 })
            .map(|site| Mark {
                file: &site.file,
                line: site.line,
                label: label(site),
                kind: kind_name(site.kind),
            })
            .collect(),
    }
}
