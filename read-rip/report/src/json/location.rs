//! A location as JSON.
//!
//! It resolves no address.

use std::borrow::Cow;

use read_rip_model::locations::{Location, LocationId, Locations, MARKS_MAX};
use read_rip_ring::{Site, SiteKind, Snapshot};
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct JsonLocation<'a> {
    /// What evidence calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<LocationId>,
    #[serde(skip_serializing_if = "str::is_empty")]
    function: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    address: String,
    pc: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    module: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    callers: Vec<Caller<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    one_of: Vec<Mark<'a>>,
}

#[derive(Serialize)]
struct Mark<'a> {
    file: &'a str,
    line: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
}

#[derive(Serialize)]
struct Caller<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
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

/// A location with what its site and its module say.
pub(super) fn json_location<'a>(
    location: &'a Location,
    locations: &Locations<'a>,
    snapshot: &'a Snapshot,
) -> JsonLocation<'a> {
    let label = |site: &'a Site| Some(&*site.label).filter(|label| !label.is_empty());
    let sites = || location.sites.iter().map(|&site| locations.site(site));
    let site = sites().next();
    JsonLocation {
        id: None,
        function: &location.full_function,
        file: location.source.as_ref().map(|(file, _)| &**file),
        line: location.source.as_ref().map(|&(_, line)| line),
        kind: site.filter(|_| !location.is_ambiguous).and_then(|site| kind_name(site.kind)),
        label: site.and_then(label),
        address: format!("{:#x}", location.address),
        pc: format!("{:#x}", location.pc),
        module: location.module.map(|module| snapshot.modules[module].path.to_string_lossy()),
        callers: location
            .callers
            .iter()
            .chain(&location.outer)
            .map(|caller| Caller {
                function: caller.function.as_deref(),
                file: caller.file.as_deref(),
                line: caller.line,
            })
            .collect(),
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
