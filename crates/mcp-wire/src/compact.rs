//! JSON on one line: whitespace between tokens is removed, every token stays.

use std::borrow::Cow;

use serde_json::value::RawValue;

/// The same JSON without whitespace between its tokens, as the framing of lines and of server-sent
/// events requires. Tokens are copied unchanged.
///
/// # Panics
/// Never: JSON without whitespace between its tokens is JSON.
#[must_use]
pub fn compact(json: &RawValue) -> Box<RawValue> {
    let text = json.get();
    let mut packed = String::with_capacity(text.len());
    let (mut in_string, mut escaped) = (false, false);
    for c in text.chars() {
        match (in_string, c) {
            (true, _) if escaped => escaped = false,
            (true, '\\') => escaped = true,
            (_, '"') => in_string = !in_string,
            (false, ' ' | '\t' | '\n' | '\r') => continue,
            (true | false, _) => {}
        }
        packed.push(c);
    }
    RawValue::from_string(packed).expect("JSON without whitespace between its tokens")
}

/// The same JSON on one line; copied only if it is not on one already.
#[must_use]
pub fn on_one_line(json: &RawValue) -> Cow<'_, RawValue> {
    let breaks = json.get().contains(['\n', '\r']);
    if breaks { Cow::Owned(compact(json)) } else { Cow::Borrowed(json) }
}

#[cfg(test)]
mod tests {
    use super::compact;

    #[test]
    fn whitespace_goes_and_tokens_stay() {
        let text = "{ \"b\" : [ 12345678901234567890 ,\r\n 1e2, -0.0 ],\t\"a\": \" \\\" \\n\", \"\\u0061\": null }";
        let raw = serde_json::from_str(text).unwrap();
        let expected = r#"{"b":[12345678901234567890,1e2,-0.0],"a":" \" \n","\u0061":null}"#;
        assert_eq!(compact(raw).get(), expected);
    }
}
