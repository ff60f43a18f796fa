//! A request, parsed without copying.

use std::borrow::Cow;

use ringback_mcp_wire::{LimitError, Limits, Object, RawValue};
use serde::Deserialize;

use crate::refusal::Refusal;

/// Longer than any id a client generates; it is kept as long as its request.
const ID_BYTES_MAX: usize = 1024;

/// A request.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    /// The id of the answer, unchanged.
    pub(crate) id: Option<&'a RawValue>,
    /// The method.
    pub(crate) method: Cow<'a, str>,
    params: Option<&'a RawValue>,
}

/// A line that is not a request, and the id to answer under if one could be read.
#[derive(Debug)]
pub(crate) struct MalformedRequest<'a> {
    pub(crate) id: Option<&'a RawValue>,
    pub(crate) refusal: Refusal,
}

impl<'a> Request<'a> {
    /// Parses a line.
    pub(crate) fn decode(line: &'a [u8], limits: Limits) -> Result<Self, MalformedRequest<'a>> {
        let wrong = |refusal| MalformedRequest { id: None, refusal };
        limits.check(line).map_err(|error| {
            wrong(match error {
                LimitError::TooLong { max, .. } => Refusal::long_line(max),
                LimitError::TooDeep { .. } => Refusal::no_request(error.to_string()),
            })
        })?;
        let object = Object::parse(line).map_err(|error| {
            wrong(match serde_json::from_slice::<&RawValue>(line) {
                Ok(_) if line.starts_with(b"[") => {
                    Refusal::no_request("batches are not supported; send each request on its own")
                }
                Ok(_) => Refusal::no_request(format!("this is not a request: {error}")),
                Err(error) => Refusal::no_json(error),
            })
        })?;
        let id = object.get("id");
        if id.is_some_and(|id| id.get().len() > ID_BYTES_MAX) {
            let message = format!("an id must have at most {ID_BYTES_MAX} bytes");
            return Err(wrong(Refusal::no_request(message)));
        }
        let wrong = |refusal| MalformedRequest { id, refusal };
        let method = object
            .text("method")
            .ok_or_else(|| wrong(Refusal::no_request("a request needs a `method`, a string")))?;
        let params = object.get("params").filter(|raw| raw.get() != "null");
        if params.is_some_and(|raw| !raw.get().starts_with('{')) {
            return Err(wrong(Refusal::bad_params("`params` must be an object")));
        }
        Ok(Self { id, method, params })
    }

    /// Decodes the params.
    pub(crate) fn params<P: Deserialize<'a>>(&self) -> Result<P, Refusal> {
        let text = self.params.map_or("{}", RawValue::get);
        serde_json::from_str(text).map_err(Refusal::bad_params)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> String {
        let malformed = Request::decode(line.as_bytes(), Limits::default()).unwrap_err();
        let code = serde_json::to_value(&malformed.refusal).unwrap()["code"].to_string();
        format!("{} {code}", malformed.id.map_or("none", RawValue::get))
    }

    /// REQ: design "The sandbox socket": `jsonrpc` is optional, any id type is echoed.
    #[test]
    fn a_request_needs_a_method_and_nothing_else() {
        for id in ["7", "\"a\"", "null", "-0.5e7", "[1, {}]", "12345678901234567890123", "true"] {
            let line = format!(r#"{{"id":{id},"method":"x"}}"#);
            let request = Request::decode(line.as_bytes(), Limits::default()).unwrap();
            assert_eq!(request.id.unwrap().get(), id);
        }
        let bare = Request::decode(br#"{"method":"x","params":null}"#, Limits::default()).unwrap();
        assert!(bare.id.is_none() && bare.params.is_none());
    }

    #[test]
    fn what_is_no_request_is_refused_under_its_id_where_it_has_one() {
        let long = format!(r#"{{"id":"{}","method":"x"}}"#, "x".repeat(ID_BYTES_MAX));
        let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        for (line, expected) in [
            ("garbage", "none -32700"),
            ("{", "none -32700"),
            ("\u{0}\u{1}", "none -32700"),
            ("[]", "none -32600"),
            ("1", "none -32600"),
            ("{}", "none -32600"),
            (r#"{"id":1}"#, "1 -32600"),
            (r#"{"id":1,"id":2,"method":"x"}"#, "none -32600"),
            (r#"{"id":[1],"method":5}"#, "[1] -32600"),
            (r#"{"id":1,"method":"x","params":[]}"#, "1 -32602"),
            (long.as_str(), "none -32600"),
            (deep.as_str(), "none -32600"),
        ] {
            assert_eq!(refused(line), expected, "{line}");
        }
    }
}
