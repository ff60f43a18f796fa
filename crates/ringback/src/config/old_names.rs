//! Old names of keys, accepted for one release. Each use is a warning that names the new one.

use std::collections::BTreeMap;
use std::fmt;

use super::{ConfigError, Name, Origin, env};

/// Every old name and its new one.
pub(super) const RENAMED: [(&str, &str); 26] = [
    ("http.max_body_bytes", "http.max_body"),
    ("hoot.message_bytes_max", "hoot.message_max"),
    ("hoot.send_queue_bytes", "hoot.send_queue"),
    ("hoot.peer_idle_secs", "hoot.peer_idle"),
    ("sessions.event_bytes", "sessions.event_memory"),
    ("sessions.event_bytes_total", "sessions.event_memory_total"),
    ("sessions.max_usd", "sessions.max_cost"),
    ("sandbox.readOnly", "sandbox.read_only"),
    ("sandbox.openFiles", "sandbox.open_files"),
    ("sandbox.keepFree", "sandbox.keep_free"),
    ("sandbox.keepFreeInodes", "sandbox.keep_free_inodes"),
    ("callerTools.timeout", "caller_tools.timeout"),
    ("callerTools.pollGrace", "caller_tools.poll_grace"),
    ("mcp.session_idle_secs", "mcp.session_idle"),
    ("limits.upload_bytes_max", "limits.upload_max"),
    ("studio.render_seconds_max", "studio.render_max"),
    ("studio.audio_seconds_max", "studio.audio_max"),
    ("models.orpheus", "studio.services.orpheus"),
    ("models.orpheus_classifier", "studio.services.orpheus_classifier"),
    ("models.orpheus_bridge", "studio.services.orpheus_bridge"),
    ("models.orpheus_loops", "studio.services.orpheus_loops"),
    ("models.musicgen", "studio.services.musicgen"),
    ("models.yue", "studio.services.yue"),
    ("models.clap", "studio.services.clap"),
    ("models.beatthis", "studio.services.beatthis"),
    ("models.timeout_secs", "studio.services.timeout"),
];

/// A key that was set under its old name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldName {
    /// The old name as given: a key, or a variable.
    pub old: String,
    /// The name to use instead.
    pub new: String,
    /// Where it was set.
    pub origin: Origin,
    /// The key under its new name.
    key: Name<'static>,
}

/// The keys that were set under their old names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OldNames(pub(super) Vec<OldName>);

impl OldName {
    /// Returns this use of a name, if it is an old one.
    fn of(name: Name<'_>, origin: &Origin) -> Option<Self> {
        let full = name.full();
        let (_, new) = RENAMED.into_iter().find(|(old, _)| *old == full)?;
        let key = Name::split(new);
        let (old, new) = match origin {
            Origin::Variable(variable) => (variable.clone(), env::variable(key)),
            Origin::Default | Origin::File { .. } | Origin::Flag(_) => (full, new.to_owned()),
        };
        Some(Self { old, new, origin: origin.clone(), key })
    }

    /// Whether this place is in the same file or environment.
    fn is_beside(&self, other: &Origin) -> bool {
        std::mem::discriminant(&self.origin) == std::mem::discriminant(other)
    }

    fn conflict(&self, origin: &Origin) -> ConfigError {
        let (old, new) = (self.old.clone(), self.new.clone());
        ConfigError::TwoNames { origin: origin.clone(), old, new }
    }
}

impl OldNames {
    /// Returns the current name of a key, and notes the use of an old one. `set` has the keys that
    /// are set already.
    ///
    /// A value may be overridden under either name, but one file or environment must not have both:
    /// nothing says which one was meant.
    pub(super) fn resolve<'a>(
        &mut self,
        name: Name<'a>,
        origin: &Origin,
        set: &BTreeMap<String, Origin>,
    ) -> Result<Name<'a>, ConfigError> {
        let Some(used) = OldName::of(name, origin) else {
            let before = self.0.iter().find(|used| used.key == name && used.is_beside(origin));
            return before.map_or(Ok(name), |before| Err(before.conflict(origin)));
        };
        if set.get(&used.key.full()).is_some_and(|other| used.is_beside(other)) {
            return Err(used.conflict(origin));
        }
        let key = used.key;
        self.0.push(used);
        Ok(key)
    }
}

impl fmt::Display for OldName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { old, new, origin, .. } = self;
        write!(f, "{origin}: `{old}` is now `{new}`; the next release refuses the old name")
    }
}

/// Returns every old name.
pub(super) fn old_names() -> impl Iterator<Item = Name<'static>> {
    RENAMED.into_iter().map(|(old, _)| Name::split(old))
}

/// Returns the current name of a section.
pub(super) fn section(name: &str) -> &str {
    let mut renamed = RENAMED.into_iter().map(|(old, new)| (Name::split(old), Name::split(new)));
    let found = renamed.find(|(old, new)| old.section == name && old.section != new.section);
    found.map_or(name, |(_, new)| new.section)
}
