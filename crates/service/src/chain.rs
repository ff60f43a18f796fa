//! Formats an error for a log: the whole chain of causes, once.

use std::error::Error;

/// The error and all its sources on one line, joined by `: `.
///
/// Errors of this workspace never repeat their source in their own text, so this is the only place
/// that joins them.
#[must_use]
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::chain;
    use crate::BindError;

    #[test]
    fn every_cause_is_named_once_and_in_order() {
        let error = BindError::Listen {
            listen: "127.0.0.1:1".parse().unwrap(),
            source: io::Error::other("no such luck"),
        };
        assert_eq!(chain(&error), format!("{error}: no such luck"));
    }
}
