//! Files that come with a message.

use std::path::Path;

use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What stays as it is in the path of a URI.
const PLAIN: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A file that comes with a message. The agent has it in its workspace already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attached {
    /// Its name there.
    pub name: String,
    /// Its type, if somebody said.
    pub mime_type: Option<String>,
    /// How long it is.
    pub size: usize,
    /// What is in it; nothing if that is too much to be shown.
    pub data: Option<Bytes>,
}

impl Attached {
    /// Where it is, as the agent sees it.
    pub(crate) fn uri(&self, workspace: &Path) -> String {
        let path = workspace.join(&self.name);
        format!("file://{}", utf8_percent_encode(&path.to_string_lossy(), PLAIN))
    }

    /// Whether its type begins so.
    pub(crate) fn is_a(&self, kind: &str) -> bool {
        self.mime_type.as_deref().is_some_and(|mime| mime.starts_with(kind))
    }

    /// Its text, if it is one.
    pub(crate) fn text(&self) -> Option<&str> {
        std::str::from_utf8(self.data.as_ref()?).ok().filter(|text| !text.contains('\0'))
    }
}
