//! Writes a change as a unified diff, in the format of `git apply`.

use std::path::Path;
use std::time::Duration;

use ringback_proto::request::{FileKind, FileState};
use similar::TextDiff;

/// Reached only by texts crafted to be hard to compare; the result so far is shown.
const COMPARE_TIMEOUT: Duration = Duration::from_millis(500);

/// A file on one side of a change.
#[derive(Debug, Clone, Copy)]
pub(super) struct Side<'a> {
    pub(super) state: &'a FileState,
    /// Its content; `None` if it is not text, or too long to show.
    pub(super) text: Option<&'a str>,
}

/// Appends the change of a file to a diff.
pub(super) fn write(diff: &mut String, path: &Path, old: Option<Side<'_>>, new: Option<Side<'_>>) {
    match (old, new) {
        (Some(old), Some(new)) if old.state.kind != new.state.kind => {
            // A change of kind is a removal and an addition.
            section(diff, path, Some(old), None);
            section(diff, path, None, Some(new));
        }
        (old, new) => section(diff, path, old, new),
    }
}

fn section(diff: &mut String, path: &Path, old: Option<Side<'_>>, new: Option<Side<'_>>) {
    let (a, b) = (quoted("a/", path), quoted("b/", path));
    diff.push_str(&format!("diff --git {a} {b}\n"));
    match (old.map(mode), new.map(mode)) {
        (Some(old), Some(new)) if old != new => {
            diff.push_str(&format!("old mode {old}\nnew mode {new}\n"));
        }
        (Some(old), None) => diff.push_str(&format!("deleted file mode {old}\n")),
        (None, Some(new)) => diff.push_str(&format!("new file mode {new}\n")),
        (Some(_), Some(_)) | (None, None) => {}
    }
    let hash = |side: Option<Side<'_>>| side.map(|side| side.state.hash);
    if hash(old) == hash(new) {
        return;
    }
    let nothing = || "/dev/null".to_owned();
    let a = if old.is_some() { a } else { nothing() };
    let b = if new.is_some() { b } else { nothing() };
    let (Some(old), Some(new)) = (text(old), text(new)) else {
        diff.push_str(&format!("Binary files {a} and {b} differ\n"));
        return;
    };
    // An empty file has no lines to show.
    if old == new {
        return;
    }
    let compared = TextDiff::configure().timeout(COMPARE_TIMEOUT).diff_lines(old, new);
    // Without the tab, text after a name with a space would be part of the name.
    let end = |name: &str| if name.contains(' ') { "\t" } else { "" };
    diff.push_str(&format!("--- {a}{}\n+++ {b}{}\n", end(&a), end(&b)));
    diff.push_str(&compared.unified_diff().to_string());
}

/// Returns the content of a file; empty if it does not exist.
fn text(side: Option<Side<'_>>) -> Option<&str> {
    side.map_or(Some(""), |side| side.text)
}

const fn mode(side: Side<'_>) -> &'static str {
    match (side.state.kind, side.state.executable) {
        (FileKind::Symlink, _) => "120000",
        (_, true) => "100755",
        (_, false) => "100644",
    }
}

/// Quotes a name like `git`: control characters and invalid UTF-8 cannot pass for something else.
fn quoted(prefix: &str, path: &Path) -> String {
    let bytes = path.as_os_str().as_encoded_bytes();
    let plain = |text: &str| !text.contains(|c: char| c.is_control() || matches!(c, '"' | '\\'));
    if let Some(text) = path.to_str().filter(|text| plain(text)) {
        return format!("{prefix}{text}");
    }
    let mut text = format!("\"{prefix}");
    for byte in bytes {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => text.push(char::from(*byte)),
            byte => text.push_str(&format!("\\{byte:03o}")),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn names_cannot_pass_for_lines() {
        assert_eq!(quoted("a/", Path::new("söme file")), "a/söme file");
        assert_eq!(quoted("a/", Path::new("x\n+++ b/y\u{1b}[")), "\"a/x\\012+++ b/y\\033[\"");
        assert_eq!(quoted("b/", Path::new(OsStr::from_bytes(b"\"\\\xff"))), "\"b/\\\"\\\\\\377\"");
    }
}
