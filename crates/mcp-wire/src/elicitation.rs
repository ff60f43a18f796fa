//! A question to the person behind a client: a form with a few answers.

use std::borrow::Cow;

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::object::Object;
use crate::version::Version;

/// The name of the method.
pub const METHOD: &str = "elicitation/create";
/// The one field of the form.
const FIELD: &str = "answer";

/// A form with a few answers to choose from.
#[derive(Debug, Clone)]
pub struct Form<'a> {
    /// The question.
    pub message: &'a str,
    /// The answers: the value sent back, and the label for a person.
    pub answers: Vec<(&'a str, &'a str)>,
    /// The protocol version of its reader.
    pub version: Version,
}

/// The result of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FormResult<'a> {
    /// It was filled in, with this answer.
    Accepted(Cow<'a, str>),
    /// It was declined.
    Declined,
    /// It was dismissed.
    Cancelled,
}

/// Whether a client with these capabilities supports forms. Older ones declare it with an empty
/// object.
#[must_use]
pub fn takes_forms(capabilities: &Object<'_>) -> bool {
    let elicitation = capabilities.get("elicitation").and_then(|raw| Object::of(raw).ok());
    elicitation.is_some_and(|can| can.is_empty() || can.get("form").is_some())
}

impl<'a> FormResult<'a> {
    /// Reads a result; `None` if it is not one.
    #[must_use]
    pub fn of(result: &'a RawValue) -> Option<Self> {
        let result = Object::of(result).ok()?;
        match result.text("action")?.as_ref() {
            "accept" => {
                let content = Object::of(result.get("content")?).ok()?;
                content.text(FIELD).map(Self::Accepted)
            }
            "decline" => Some(Self::Declined),
            "cancel" => Some(Self::Cancelled),
            _ => None,
        }
    }
}

/// Serializes as the parameters of the method.
impl Serialize for Form<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct RequestedSchema<'a> {
            r#type: &'static str,
            properties: Properties<'a>,
            required: [&'static str; 1],
        }
        #[derive(Serialize)]
        struct Properties<'a> {
            answer: Answers<'a>,
        }
        let mut map = serializer.serialize_map(None)?;
        if self.version >= Version::V2025_11_25 {
            map.serialize_entry("mode", "form")?;
        }
        map.serialize_entry("message", self.message)?;
        let schema = RequestedSchema {
            r#type: "object",
            properties: Properties { answer: Answers(self) },
            required: [FIELD],
        };
        map.serialize_entry("requestedSchema", &schema)?;
        map.end()
    }
}

/// The schema of the field, with labels in the form of its reader's version.
struct Answers<'a>(&'a Form<'a>);

impl Serialize for Answers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct TitledOption<'a> {
            r#const: &'a str,
            title: &'a str,
        }
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "string")?;
        map.serialize_entry("title", "Answer")?;
        let answers = &self.0.answers;
        if self.0.version >= Version::V2025_11_25 {
            let titled: Vec<_> = answers
                .iter()
                .map(|(id, name)| TitledOption { r#const: id, title: name })
                .collect();
            map.serialize_entry("oneOf", &titled)?;
        } else {
            let (ids, names): (Vec<_>, Vec<_>) = answers.iter().copied().unzip();
            map.serialize_entry("enum", &ids)?;
            map.serialize_entry("enumNames", &names)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn a_form_has_its_answers_as_each_version_names_them() {
        let form = |version| {
            let answers = vec![("yes", "Yes"), ("no", "No")];
            serde_json::to_string(&Form { message: "May it?", answers, version }).unwrap()
        };
        assert_eq!(
            form(Version::V2025_06_18),
            concat!(
                r#"{"message":"May it?","requestedSchema":{"type":"object","properties":{"answer":"#,
                r#"{"type":"string","title":"Answer","enum":["yes","no"],"enumNames":["Yes","No"]}},"#,
                r#""required":["answer"]}}"#
            )
        );
        assert_eq!(
            form(Version::V2026_07_28),
            concat!(
                r#"{"mode":"form","message":"May it?","requestedSchema":{"type":"object","properties":"#,
                r#"{"answer":{"type":"string","title":"Answer","oneOf":[{"const":"yes","title":"Yes"},"#,
                r#"{"const":"no","title":"No"}]}},"required":["answer"]}}"#
            )
        );
    }

    #[test]
    fn what_came_of_a_form_is_read() {
        for (text, expected) in [
            (
                r#"{"action":"accept","content":{"answer":"yes"}}"#,
                Some(FormResult::Accepted("yes".into())),
            ),
            (r#"{"action":"decline","content":null}"#, Some(FormResult::Declined)),
            (r#"{"action":"cancel"}"#, Some(FormResult::Cancelled)),
            (r#"{"action":"accept"}"#, None),
            (r#"{"action":"accept","content":{"answer":7}}"#, None),
            (r#"{"action":"maybe"}"#, None),
            ("[]", None),
        ] {
            assert_eq!(FormResult::of(&raw(text)), expected, "{text}");
        }
    }

    #[test]
    fn only_who_shows_forms_is_asked() {
        for (text, expected) in [
            ("{}", false),
            (r#"{"elicitation":{}}"#, true),
            (r#"{"elicitation":{"form":{}}}"#, true),
            (r#"{"elicitation":{"url":{}}}"#, false),
            (r#"{"elicitation":true}"#, false),
        ] {
            let raw = raw(text);
            assert_eq!(takes_forms(&Object::of(&raw).unwrap()), expected, "{text}");
        }
    }
}
