//! Text in HTTP headers: the modern era repeats the method and the target of a request there.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const START: &str = "=?base64?";
const END: &str = "?=";

/// The value of a header that stands for this text: the text itself, or `=?base64?…?=` if a header
/// cannot carry it.
#[must_use]
pub fn encode(text: &str) -> Cow<'_, str> {
    let is_plain = text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
        && text.trim() == text
        && !text.starts_with(START);
    if is_plain { text.into() } else { format!("{START}{}{END}", STANDARD.encode(text)).into() }
}

/// The text that the value of a header stands for; `None` if it is not valid.
#[must_use]
pub fn decode(value: &str) -> Option<Cow<'_, str>> {
    let value = value.trim();
    let coded = value.strip_prefix(START).and_then(|rest| rest.strip_suffix(END));
    match coded {
        None => Some(value.into()),
        Some(coded) => String::from_utf8(STANDARD.decode(coded).ok()?).ok().map(Cow::Owned),
    }
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    #[test]
    fn only_a_whole_base64_wrapper_is_decoded() {
        assert_eq!(decode("=?base64?SGVsbG8=?=").as_deref(), Some("Hello"));
        assert_eq!(decode("=?base64?SGVsbG8?="), None);
        assert_eq!(decode("=?base64?SGVs!!!bG8=?="), None);
        assert_eq!(decode("=?base64?SGVsbG8=").as_deref(), Some("=?base64?SGVsbG8="));
        assert_eq!(decode("  ping ").as_deref(), Some("ping"));
    }

    #[test]
    fn every_text_is_read_as_it_was_written() {
        assert_eq!(encode("tools/call"), "tools/call");
        for text in ["", "a b", " a", "a\nb", "é", "=?base64?x?=", "=?base64?", "\u{7f}"] {
            let value = encode(text);
            assert!(value.bytes().all(|byte| (0x20..0x7f).contains(&byte)), "{value}");
            assert_eq!(decode(&value).as_deref(), Some(text), "{value}");
        }
    }
}
