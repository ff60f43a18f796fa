//! What the events of a session show of the arguments and results of its calls: JSON on one line,
//! without secrets.
//!
//! Hidden are tokens of this daemon, the keys that the session's model proxy used, and the fields
//! that the schema of a tool declares as `writeOnly` or as a password. A secret that an agent
//! changes before it shows it, by encoding it for example, is not recognized.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use ringback_proto::ids::SessionId;
use ringback_proto::secret::Secret;
use serde_json::Value;

use crate::identity::SECRET_PREFIX;

/// What stands in place of a secret.
const HIDDEN: &str = "[redacted]";
/// The digits from which on a text that starts like a token is one; a token has 64.
const TOKEN_DIGITS_MIN: usize = 16;
/// Keys of one session: more than its providers have, so that no key that is still used is dropped.
const KEYS_MAX: usize = 8;
/// A shorter key would hide ordinary words.
const KEY_BYTES_MIN: usize = 8;
/// The depth to which a schema is searched.
const SCHEMA_DEPTH_MAX: usize = 16;

/// The keys that model proxies used, until their session ends.
#[derive(Debug, Default)]
pub(in crate::sessions) struct Concealed(HashMap<SessionId, Vec<Secret>>);

impl Concealed {
    /// Hides a key in the events of a session from now on.
    pub(in crate::sessions) fn add(&mut self, session: SessionId, key: &Secret) {
        let known = self.0.entry(session).or_default();
        if key.expose().len() < KEY_BYTES_MIN || known.contains(key) {
            return;
        }
        if known.len() == KEYS_MAX {
            known.remove(0);
        }
        known.push(key.clone());
    }

    pub(in crate::sessions) fn of(&self, session: SessionId) -> Vec<Secret> {
        self.0.get(&session).cloned().unwrap_or_default()
    }

    pub(in crate::sessions) fn forget(&mut self, session: SessionId) {
        self.0.remove(&session);
    }
}

/// Hides the secrets in one call.
#[derive(Debug, Default)]
pub(in crate::sessions) struct Redactor {
    keys: Vec<Secret>,
    /// The names of fields that are secret as a whole.
    fields: HashSet<String>,
}

impl Redactor {
    /// Hides these keys, and the secret fields of a tool with this schema.
    pub(in crate::sessions) fn new(keys: Vec<Secret>, schema: Option<&[u8]>) -> Self {
        let mut fields = HashSet::new();
        if let Some(schema) = schema.and_then(|schema| serde_json::from_slice(schema).ok()) {
            secret_fields(&schema, SCHEMA_DEPTH_MAX, &mut fields);
        }
        Self { keys, fields }
    }

    /// Returns a text without secrets.
    pub(in crate::sessions) fn text(&self, text: &str) -> String {
        let mut shown = without_tokens(text);
        for key in self.keys.iter().filter(|key| text.contains(key.expose())) {
            shown = shown.replace(key.expose(), HIDDEN).into();
        }
        shown.into_owned()
    }

    /// Returns valid JSON without secrets and without space between its parts. Stops once more than
    /// `bytes_max` are written.
    pub(in crate::sessions) fn json(&self, json: &str, bytes_max: usize) -> String {
        let mut shown = String::with_capacity(json.len().min(bytes_max));
        let (mut at, mut is_secret) = (0, false);
        while shown.len() <= bytes_max
            && let Some(byte) = json.as_bytes().get(at)
        {
            let end = match byte {
                b' ' | b'\t' | b'\n' | b'\r' => {
                    at += 1;
                    continue;
                }
                b'"' => string_end(json, at),
                b'{' | b'[' if is_secret => value_end(json, at),
                b'{' | b'}' | b'[' | b']' | b',' | b':' => at + 1,
                _ => scalar_end(json, at),
            };
            let part = &json[at..end];
            at = end;
            let is_name = *byte == b'"' && json[at..].trim_start().starts_with(':');
            if is_secret && !matches!(byte, b':') {
                is_secret = false;
                shown.push('"');
                shown.push_str(HIDDEN);
                shown.push('"');
            } else if *byte == b'"' {
                let text = decoded(part);
                is_secret = is_name && self.fields.contains(text.as_ref());
                shown.push_str(&self.literal(part, &text));
            } else {
                shown.push_str(part);
            }
        }
        shown
    }

    /// Returns a string of JSON, which means `text`, without secrets.
    fn literal<'a>(&self, literal: &'a str, text: &str) -> Cow<'a, str> {
        let shown = self.text(text);
        if shown == text {
            return literal.into();
        }
        serde_json::to_string(&shown).unwrap_or_else(|_| format!("\"{HIDDEN}\"")).into()
    }
}

/// Returns a text with every token replaced.
fn without_tokens(text: &str) -> Cow<'_, str> {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(SECRET_PREFIX) {
        let (before, token) = rest.split_at(start + SECRET_PREFIX.len());
        let n_digits = token.bytes().take_while(u8::is_ascii_hexdigit).count();
        shown.push_str(before);
        if n_digits >= TOKEN_DIGITS_MIN {
            shown.push_str(HIDDEN);
            rest = &token[n_digits..];
        } else {
            rest = token;
        }
    }
    if shown.is_empty() {
        return text.into();
    }
    shown.push_str(rest);
    shown.into()
}

/// Collects the names of the fields that a schema declares as secret, wherever they are in it.
fn secret_fields(schema: &Value, depth: usize, fields: &mut HashSet<String>) {
    if depth == 0 {
        return;
    }
    match schema {
        Value::Object(members) => {
            for (name, member) in members {
                let is_flagged = member.get("writeOnly") == Some(&Value::Bool(true));
                if is_flagged || member.get("format").is_some_and(|format| format == "password") {
                    fields.insert(name.clone());
                }
                secret_fields(member, depth - 1, fields);
            }
        }
        Value::Array(members) => {
            members.iter().for_each(|member| secret_fields(member, depth - 1, fields));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn decoded(literal: &str) -> Cow<'_, str> {
    if !literal.contains('\\') {
        return literal.trim_matches('"').into();
    }
    serde_json::from_str::<String>(literal).map_or_else(|_| literal.into(), Into::into)
}

/// Returns where the string that starts at `at` ends.
fn string_end(json: &str, at: usize) -> usize {
    let mut is_escaped = false;
    for (index, byte) in json.bytes().enumerate().skip(at + 1) {
        match byte {
            b'"' if !is_escaped => return index + 1,
            b'\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    json.len()
}

/// Returns where the object or array that starts at `at` ends.
fn value_end(json: &str, mut at: usize) -> usize {
    let mut depth = 0_usize;
    while let Some(byte) = json.as_bytes().get(at) {
        at = match byte {
            b'"' => string_end(json, at),
            b'{' | b'[' => {
                depth += 1;
                at + 1
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                at + 1
            }
            _ => at + 1,
        };
        if depth == 0 {
            return at;
        }
    }
    at
}

/// Returns where the number or word that starts at `at` ends.
fn scalar_end(json: &str, at: usize) -> usize {
    let rest = json.get(at..).unwrap_or_default();
    let end = rest.find([',', ']', '}', ':', '"', ' ', '\t', '\n', '\r']);
    end.filter(|end| *end > 0).map_or(json.len(), |end| at + end)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "oub_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    const MAX: usize = 4096;

    fn shown(json: &str) -> String {
        Redactor::default().json(json, MAX)
    }

    /// Rule: no token is shown, wherever it stands and however JSON writes it.
    #[test]
    fn a_token_is_hidden_wherever_it_stands() {
        let escaped = TOKEN.replace('b', "\\u0062");
        let inner = format!("{{\\\"token\\\":\\\"{TOKEN}\\\"}}");
        for json in [
            format!("\"{TOKEN}\""),
            format!("[1, \"Bearer {TOKEN}!\"]"),
            format!("{{\"{TOKEN}\": null}}"),
            format!("{{\"a\": \"{escaped}\"}}"),
            format!("{{\"content\": [{{\"text\": \"{inner}\"}}]}}"),
            format!("\"{TOKEN}{TOKEN}\""),
        ] {
            let shown = shown(&json);
            assert!(!shown.contains("0123456789"), "{shown}");
            assert!(shown.contains("oub_[redacted]"), "{shown}");
            serde_json::from_str::<Value>(&shown).unwrap();
        }
    }

    #[test]
    fn everything_else_is_shown_as_it_is_on_one_line() {
        let json = "{\n  \"n\": 12345678901234567890.10, \"s\": \"a\\\"\\\\b: oub_12\",\r\n \"l\": [ true, null ] }";
        let line = r#"{"n":12345678901234567890.10,"s":"a\"\\b: oub_12","l":[true,null]}"#;
        assert_eq!(shown(json), line);
        assert_eq!(shown("\"\""), "\"\"");
        assert_eq!(shown("-1.5e3"), "-1.5e3");
    }

    #[test]
    fn a_field_that_a_schema_calls_secret_is_hidden_as_a_whole() {
        let schema = br#"{"properties":{"pin":{"type":"integer","writeOnly":true},
            "login":{"properties":{"pass":{"type":"string","format":"password"}}},"user":{}}}"#;
        let redactor = Redactor::new(Vec::new(), Some(schema));
        let json = r#"{"user":"ada","pin":[1,{"a":"}"}],"login":{"pass":"x\"y","pin":4,"u":1}}"#;
        let expected = r#"{"user":"ada","pin":"[redacted]","login":{"pass":"[redacted]","pin":"[redacted]","u":1}}"#;
        assert_eq!(redactor.json(json, MAX), expected);
        assert_eq!(Redactor::new(Vec::new(), Some(b"no schema")).json("{}", MAX), "{}");
    }

    #[test]
    fn a_key_that_was_used_is_hidden_until_its_session_ends() {
        let session = SessionId::from_random([1; 16]);
        let mut concealed = Concealed::default();
        for key in ["short", "sk-very-secret", "sk-very-secret"] {
            concealed.add(session, &Secret::new(key.to_owned()));
        }
        let redactor = Redactor::new(concealed.of(session), None);
        assert_eq!(redactor.json(r#""short sk-very-secret""#, MAX), r#""short [redacted]""#);
        for number in 0..2 * KEYS_MAX {
            concealed.add(session, &Secret::new(format!("key-number-{number}")));
        }
        assert_eq!(concealed.of(session).len(), KEYS_MAX);
        concealed.forget(session);
        assert!(concealed.of(session).is_empty());
    }

    #[test]
    fn a_long_text_is_not_read_to_its_end() {
        let long = format!("[{}1]", "\"aaaaaaaa\",".repeat(10_000));
        let shown = shown(&long);
        assert!(shown.len() > MAX && shown.len() < MAX + 20, "{}", shown.len());
    }
}
