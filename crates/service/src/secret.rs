//! A value that must not be seen in a log, an event or an error.

use std::fmt;

/// A secret: `Debug` prints `***`, there is no `Display` and no serialisation.
///
/// Reading it takes a call to [`Secret::expose`], which a reviewer can search for.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    /// Wraps a value.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// The value itself. Never log it, never put it in an error.
    pub const fn expose(&self) -> &T {
        &self.0
    }
}

impl<T> From<T> for Secret<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    /// Rule: a secret never appears in a log.
    #[test]
    fn a_secret_prints_as_stars_wherever_it_is_nested() {
        let secret = Secret::new("oub_0123".to_owned());
        assert_eq!(format!("{:?}", Some(&secret)), "Some(***)");
        assert_eq!(secret.expose(), "oub_0123");
    }
}
