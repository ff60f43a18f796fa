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
    use std::error::Error;
    use std::fmt;
    use std::io;

    use super::chain;

    #[derive(Debug)]
    struct Above(&'static str, Option<Box<dyn Error>>);

    impl fmt::Display for Above {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Above {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref()
        }
    }

    #[test]
    fn every_cause_is_named_once_and_in_order() {
        let cause = io::Error::other("no such luck");
        let listen = Above("cannot listen", Some(Box::new(cause)));
        let start = Above("cannot start", Some(Box::new(listen)));
        assert_eq!(chain(&start), "cannot start: cannot listen: no such luck");
        assert_eq!(chain(&Above("alone", None)), "alone");
    }
}
