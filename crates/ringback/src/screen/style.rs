//! Colours and weights, where the terminal has them and the user wants them.

use std::ffi::OsString;

/// Ends every style.
pub(super) const RESET: &str = "\u{1b}[0m";

/// How a text is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Bold,
    Dim,
    Red,
    Green,
}

impl Style {
    pub(super) const ALL: [Self; 4] = [Self::Bold, Self::Dim, Self::Red, Self::Green];

    /// Returns what switches it on.
    pub(super) const fn code(self) -> &'static str {
        match self {
            Self::Bold => "\u{1b}[1m",
            Self::Dim => "\u{1b}[2m",
            Self::Red => "\u{1b}[31m",
            Self::Green => "\u{1b}[32m",
        }
    }
}

/// Whether the environment asks for colours: not with `NO_COLOR`, `CLICOLOR=0`, or a terminal that
/// has none.
pub(super) fn wants_colours(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let is_set = |name| variable(name).is_some_and(|value| !value.is_empty());
    let is_off = variable("CLICOLOR").is_some_and(|value| value == "0");
    !is_set("NO_COLOR") && !is_off && can_move(variable)
}

/// Whether the terminal can do more than print one line after the other.
pub(super) fn can_move(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    variable("TERM").is_some_and(|name| !name.is_empty() && name != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// REQ: `NO_COLOR`, `CLICOLOR=0` and `TERM=dumb` are respected.
    #[test]
    fn colours_are_a_choice_of_the_environment() {
        let wants = |pairs: &[(&str, &str)]| {
            wants_colours(|name| {
                pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into())
            })
        };
        let xterm = ("TERM", "xterm");
        assert!(wants(&[xterm]) && wants(&[xterm, ("NO_COLOR", "")]));
        assert!(wants(&[xterm, ("CLICOLOR", "1")]));
        assert!(!wants(&[xterm, ("NO_COLOR", "1")]) && !wants(&[xterm, ("CLICOLOR", "0")]));
        assert!(!wants(&[("TERM", "dumb")]) && !wants(&[]));
    }
}
