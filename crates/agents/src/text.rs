//! Joins small pieces of text into blocks of whole lines.

/// A block is reported when it has this many bytes: short answers are one event, long ones flow.
const BLOCK_BYTES: usize = 512;
/// A longer line of text is split.
const BLOCK_BYTES_MAX: usize = 16 * 1024;

/// Text that has not been reported yet.
#[derive(Debug, Default)]
pub(crate) struct Text {
    held: String,
}

impl Text {
    pub(crate) fn push(&mut self, text: &str) {
        self.held.push_str(text);
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Returns whole lines that may be reported while more is to come, without the last line break.
    pub(crate) fn block(&mut self) -> Option<String> {
        if self.held.len() < BLOCK_BYTES {
            return None;
        }
        match self.held.rfind('\n') {
            Some(end) => {
                let rest = self.held.split_off(end + 1);
                Some(trimmed(std::mem::replace(&mut self.held, rest))?)
            }
            None if self.held.len() >= BLOCK_BYTES_MAX => self.rest(),
            None => None,
        }
    }

    /// Returns all of it: no more is to come.
    pub(crate) fn rest(&mut self) -> Option<String> {
        trimmed(std::mem::take(&mut self.held))
    }
}

/// Returns it without the last line break; `None` if it is blank.
fn trimmed(mut text: String) -> Option<String> {
    text.truncate(text.trim_end_matches(['\r', '\n']).len());
    (!text.trim().is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_text_is_told_once_and_whole() {
        let mut text = Text::default();
        for piece in ["one ", "two\n", "three", "\n\n"] {
            text.push(piece);
            assert_eq!(text.block(), None);
        }
        assert_eq!(text.rest().as_deref(), Some("one two\nthree"));
        assert_eq!(text.rest(), None);
    }

    /// Rule: an agent's output is reported in whole lines while it is still writing.
    #[test]
    fn a_long_text_flows_in_whole_lines() {
        let mut text = Text::default();
        let line = "x".repeat(300);
        text.push(&format!("{line}\n{line}\nhalf"));
        assert_eq!(text.block(), Some(format!("{line}\n{line}")));
        assert_eq!(text.block(), None);
        assert_eq!(text.rest().as_deref(), Some("half"));
    }

    /// Rule: every buffer has a limit.
    #[test]
    fn a_line_without_an_end_is_told_in_parts() {
        let mut text = Text::default();
        text.push(&"x".repeat(BLOCK_BYTES_MAX));
        assert_eq!(text.block().map(|text| text.len()), Some(BLOCK_BYTES_MAX));
        assert_eq!(text.rest(), None);
    }
}
