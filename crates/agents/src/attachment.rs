//! Attachments of a message.

use std::path::Path;

use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Characters that are not escaped in the path of a URI.
const PLAIN: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// An attachment of a message. The agent already has it in its workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageAttachment {
    /// Its name there.
    pub name: String,
    /// Its media type, if known.
    pub mime_type: Option<String>,
    /// Its size.
    pub size: usize,
    /// Its content; absent if it is too large to be shown.
    pub data: Option<Bytes>,
}

impl MessageAttachment {
    /// Returns its URI, as the agent sees it.
    pub(crate) fn uri(&self, workspace: &Path) -> String {
        let path = workspace.join(&self.name);
        format!("file://{}", utf8_percent_encode(&path.to_string_lossy(), PLAIN))
    }

    /// Returns whether its media type has this prefix.
    pub(crate) fn is_a(&self, kind: &str) -> bool {
        self.mime_type.as_deref().is_some_and(|mime| mime.starts_with(kind))
    }

    /// Returns its text, if it is text.
    pub(crate) fn text(&self) -> Option<&str> {
        std::str::from_utf8(self.data.as_ref()?).ok().filter(|text| !text.contains('\0'))
    }
}
