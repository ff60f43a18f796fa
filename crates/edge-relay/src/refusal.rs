//! Errors as JSON-RPC: the one place that turns kinds of errors into numbers.

use std::borrow::Cow;

use ringback_proto::error::{ErrorContext, TokenProblem};
use ringback_proto::{Certainty, Error, ErrorKind};
use serde::{Serialize, Serializer};

/// The message for an invalid or expired key.
const BAD_KEY: &str = "invalid or expired API key";
/// The message for a key without permission.
const NOT_ALLOWED: &str = "tool not allowed for this token scope";
/// Quoted text is untrusted.
const QUOTED_CHARS_MAX: usize = 300;

/// An error answer.
#[derive(Debug)]
pub(crate) struct Refusal {
    code: i32,
    message: Cow<'static, str>,
    error: Error,
}

/// Fields for programs.
#[derive(Serialize)]
struct Data<'a> {
    kind: &'static str,
    retryable: bool,
    certainty: Certainty,
    #[serde(flatten)]
    context: &'a ErrorContext,
}

impl Refusal {
    /// The line is not JSON.
    pub(crate) fn no_json(why: impl std::fmt::Display) -> Self {
        Self::with_code(-32700, format!("this line is not JSON: {}", quoted(why)))
    }

    /// The line is JSON, but not a request.
    pub(crate) fn no_request(message: impl Into<String>) -> Self {
        Self::with_code(-32600, message)
    }

    /// The line is longer than allowed.
    pub(crate) fn long_line(bytes_max: usize) -> Self {
        let message = format!("a line has at most {bytes_max} bytes; skipped a longer one");
        let error = Error::new(ErrorKind::TooLarge, message.clone());
        Self { code: -32600, message: message.into(), error }
    }

    /// Unknown method.
    pub(crate) fn no_method(method: &str) -> Self {
        let message = format!("unknown method `{}`", quoted(method));
        let error = Error::new(ErrorKind::NotFound, message.clone());
        Self { code: -32601, message: message.into(), error }
    }

    /// Invalid params.
    pub(crate) fn bad_params(why: impl std::fmt::Display) -> Self {
        Error::invalid(format!("invalid params: {}", quoted(why))).into()
    }

    /// The error of a request with a key.
    pub(crate) fn with_key(error: Error) -> Self {
        let message = match error.kind().token_problem() {
            Some(TokenProblem::Invalid) => BAD_KEY,
            Some(TokenProblem::TooWeak) => NOT_ALLOWED,
            None => return error.into(),
        };
        Self { code: code(error.kind()), message: message.into(), error }
    }

    fn with_code(code: i32, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, message: message.clone().into(), error: Error::invalid(message) }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self { code: code(error.kind()), message: error.message().to_owned().into(), error }
    }
}

impl Serialize for Refusal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Body<'a> {
            code: i32,
            message: &'a str,
            data: Data<'a>,
        }
        let Self { code, message, error } = self;
        let kind = error.kind();
        let data = Data {
            kind: kind.as_str(),
            retryable: kind.is_retryable(),
            certainty: error.certainty(),
            context: error.context(),
        };
        Body { code: *code, message, data }.serialize(serializer)
    }
}

const fn code(kind: ErrorKind) -> i32 {
    match kind.token_problem() {
        Some(TokenProblem::Invalid) => -32001,
        Some(TokenProblem::TooWeak) => -32002,
        None if matches!(kind, ErrorKind::Invalid) => -32602,
        None => -32000,
    }
}

fn quoted(text: impl std::fmt::Display) -> String {
    text.to_string().chars().take(QUOTED_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(refusal: &Refusal) -> String {
        serde_json::to_string(refusal).unwrap()
    }

    /// REQ: design "One error, four faces": the relay's column.
    #[test]
    fn every_kind_has_its_number_and_says_kind_retryable_and_certainty() {
        for kind in ErrorKind::ALL {
            let error = Error::new(kind, "no").with_certainty(Certainty::MayHaveRun);
            let text = json(&error.into());
            let number = match kind.as_str() {
                "invalid" => -32602,
                "unauthenticated" => -32001,
                "forbidden" => -32002,
                _ => -32000,
            };
            let (name, again) = (kind.as_str(), kind.is_retryable());
            let expected = format!(
                r#"{{"code":{number},"message":"no","data":{{"kind":"{name}","retryable":{again},"certainty":"may_have_run"}}}}"#
            );
            assert_eq!(text, expected);
        }
    }

    /// REQ: seed 002 "Socket Protocol Extensions": the texts of the two errors about keys.
    #[test]
    fn errors_about_keys_say_what_the_protocol_says_and_what_is_missing() {
        let bad = Error::new(ErrorKind::Unauthenticated, "the token was revoked");
        let text = json(&Refusal::with_key(bad));
        assert!(text.contains(r#""code":-32001,"message":"invalid or expired API key""#), "{text}");
        let text = json(&Refusal::with_key(Error::forbidden("`x`", "a token of level write")));
        let expected = r#""code":-32002,"message":"tool not allowed for this token scope""#;
        assert!(text.contains(expected), "{text}");
        assert!(text.contains(r#""missing":"a token of level write""#), "{text}");
    }
}
