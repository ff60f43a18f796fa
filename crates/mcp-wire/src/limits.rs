//! Limits on the size and depth of a message, checked in one pass before anything is parsed.

/// Deeper than any known schema or argument of a tool, and within what every JSON decoder accepts.
const DEPTH_MAX: usize = 120;

/// Room for large arguments; the same as the usual limit of a line on stdio.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// The limits of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of bytes.
    pub bytes_max: usize,
    /// The maximum nesting of objects and arrays.
    pub depth_max: usize,
}

/// A message over a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// Too many bytes.
    #[error("the message has {found} bytes; at most {max} are allowed")]
    TooLong {
        /// Its number of bytes.
        found: usize,
        /// The limit.
        max: usize,
    },
    /// Too deeply nested.
    #[error("the message nests deeper than {max} levels")]
    TooDeep {
        /// The limit.
        max: usize,
    },
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes_max: BYTES_MAX, depth_max: DEPTH_MAX }
    }
}

impl Limits {
    /// Checks a message that may not be JSON at all.
    ///
    /// # Errors
    /// The limit it exceeds.
    pub fn check(&self, bytes: &[u8]) -> Result<(), LimitError> {
        if bytes.len() > self.bytes_max {
            return Err(LimitError::TooLong { found: bytes.len(), max: self.bytes_max });
        }
        let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
        for byte in bytes {
            match (in_string, byte) {
                (true, _) if escaped => escaped = false,
                (true, b'\\') => escaped = true,
                (_, b'"') => in_string = !in_string,
                (false, b'{' | b'[') => depth += 1,
                (false, b'}' | b']') => depth = depth.saturating_sub(1),
                (true | false, _) => {}
            }
            if depth > self.depth_max {
                return Err(LimitError::TooDeep { max: self.depth_max });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{LimitError, Limits};

    #[test]
    fn depth_counts_brackets_outside_of_strings_only() {
        let limits = Limits { bytes_max: 100, depth_max: 2 };
        assert_eq!(limits.check(b"[[]]"), Ok(()));
        assert_eq!(limits.check(b"[[],[],{}]"), Ok(()));
        assert_eq!(limits.check(br#"["[[[\"[[["]"#), Ok(()));
        assert_eq!(limits.check(b"[[[]]]"), Err(LimitError::TooDeep { max: 2 }));
        assert_eq!(limits.check(&[b' '; 101]), Err(LimitError::TooLong { found: 101, max: 100 }));
    }
}
