//! A JSON-RPC message, parsed without copying.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::fault::{Code, Fault};
use crate::id::Id;
use crate::limits::Limits;
use crate::meta::Meta;
use crate::object::Object;

/// Longer than any method; untrusted input.
const METHOD_BYTES_MAX: usize = 200;

/// A message from a peer.
#[derive(Debug)]
pub enum Message<'a> {
    /// A request, which needs an answer.
    Request(Request<'a>),
    /// A notification.
    Notification(Notification<'a>),
    /// An answer to a request of ours.
    Reply(Reply<'a>),
}

/// A request.
#[derive(Debug)]
pub struct Request<'a> {
    /// The id of its answer.
    pub id: Id,
    /// The method.
    pub method: Cow<'a, str>,
    /// The parameters; empty if absent.
    pub params: Object<'a>,
}

/// A notification.
#[derive(Debug)]
pub struct Notification<'a> {
    /// The method.
    pub method: Cow<'a, str>,
    /// The parameters; empty if absent.
    pub params: Object<'a>,
}

/// An answer to a request of ours.
#[derive(Debug)]
pub struct Reply<'a> {
    /// The id of the request.
    pub id: Id,
    /// The result, or the error.
    pub outcome: Result<&'a RawValue, &'a RawValue>,
}

/// Bytes that are not a message, and the id to answer under if one could be read.
#[derive(Debug, thiserror::Error)]
#[error("{fault}")]
pub struct MalformedMessage {
    /// The id of the intended request.
    pub id: Option<Id>,
    /// What is wrong.
    #[source]
    pub fault: Fault,
}

impl<'a> Message<'a> {
    /// Reads one message.
    ///
    /// # Errors
    /// What is wrong with it, as the error to answer with.
    pub fn decode(bytes: &'a [u8], limits: Limits) -> Result<Self, MalformedMessage> {
        let refused =
            |code, message: String| MalformedMessage { id: None, fault: Fault::new(code, message) };
        limits.check(bytes).map_err(|error| refused(Code::InvalidRequest, error.to_string()))?;
        if bytes.trim_ascii_start().first() == Some(&b'[') {
            let message = "batches are not supported; send each message on its own";
            return Err(refused(Code::InvalidRequest, message.to_owned()));
        }
        let object = Object::parse(bytes).map_err(|error| {
            let is_json = serde_json::from_slice::<&RawValue>(bytes).is_ok();
            let code = if is_json { Code::InvalidRequest } else { Code::Parse };
            refused(code, format!("this is not a JSON-RPC message: {error}"))
        })?;
        Self::of(&object)
    }

    fn of(object: &Object<'a>) -> Result<Self, MalformedMessage> {
        let id = object.get("id").map(Id::from_raw);
        let wrong = |message: &str| MalformedMessage {
            id: id.clone().flatten(),
            fault: Fault::new(Code::InvalidRequest, message),
        };
        if object.text("jsonrpc").as_deref() != Some("2.0") {
            return Err(wrong("a message must have `\"jsonrpc\": \"2.0\"`"));
        }
        if object.get("method").is_none() {
            return Self::reply(object, id.clone().flatten()).ok_or_else(|| {
                wrong("a message must have a method, or an id and a result or an error")
            });
        }
        let method = object
            .text("method")
            .filter(|method| method.len() <= METHOD_BYTES_MAX)
            .ok_or_else(|| wrong("a method must be a short string"))?;
        let params = match object.get("params") {
            None => Object::default(),
            Some(raw) => Object::of(raw).map_err(|error| MalformedMessage {
                id: id.clone().flatten(),
                fault: Fault::invalid_params(format!("params must be an object: {error}")),
            })?,
        };
        match id.clone() {
            None => Ok(Self::Notification(Notification { method, params })),
            Some(Some(id)) => Ok(Self::Request(Request { id, method, params })),
            Some(None) => Err(wrong("an id must be a number or a string")),
        }
    }

    fn reply(object: &Object<'a>, id: Option<Id>) -> Option<Self> {
        let outcome = match (object.get("result"), object.get("error")) {
            (Some(result), None) => Ok(result),
            (None, Some(error)) => Err(error),
            (Some(_), Some(_)) | (None, None) => return None,
        };
        Some(Self::Reply(Reply { id: id?, outcome }))
    }
}

impl<'a> Request<'a> {
    /// Its metadata.
    ///
    /// # Errors
    /// When `_meta` is not an object.
    pub fn meta(&self) -> Result<Meta<'a>, Fault> {
        Meta::of(&self.params)
    }
}

#[cfg(test)]
mod tests {
    use super::{Id, Message};
    use crate::fault::Code;
    use crate::limits::Limits;

    fn refused(text: &str) -> (Option<Id>, Code) {
        let malformed = Message::decode(text.as_bytes(), Limits::default()).unwrap_err();
        (malformed.id, malformed.fault.code)
    }

    #[test]
    fn each_kind_of_message_is_told_apart() {
        let decode = |text: &'static str| Message::decode(text.as_bytes(), Limits::default());
        let request = decode(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).unwrap();
        assert!(matches!(request, Message::Request(it) if it.method == "ping"));
        let told = decode(r#"{"method":"x","params":{"a":1},"jsonrpc":"2.0"}"#).unwrap();
        assert!(matches!(told, Message::Notification(it) if it.params.get("a").is_some()));
        let reply = decode(r#"{"jsonrpc":"2.0","id":"a","result":null}"#).unwrap();
        assert!(matches!(reply, Message::Reply(it) if it.outcome.unwrap().get() == "null"));
    }

    #[test]
    fn what_is_no_message_is_refused_under_its_id_where_it_has_one() {
        let one = Some(Id::from(1));
        for (text, id, code) in [
            ("", None, Code::Parse),
            ("{", None, Code::Parse),
            ("[]", None, Code::InvalidRequest),
            ("1", None, Code::InvalidRequest),
            ("{}", None, Code::InvalidRequest),
            (r#"{"id":1,"method":"x"}"#, one.clone(), Code::InvalidRequest),
            (r#"{"jsonrpc":"2.0","id":1}"#, one.clone(), Code::InvalidRequest),
            (r#"{"jsonrpc":"2.0","id":1,"method":5}"#, one.clone(), Code::InvalidRequest),
            (r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#, None, Code::InvalidRequest),
            (r#"{"jsonrpc":"2.0","id":1,"method":"x","params":[]}"#, one, Code::InvalidParams),
        ] {
            assert_eq!(refused(text), (id, code), "{text}");
        }
        let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        assert_eq!(refused(&format!("{{\"a\":{deep}}}")).1, Code::InvalidRequest);
    }
}
