//! The description of a route in the document.

use std::collections::BTreeSet;

use schemars::{JsonSchema, Schema, SchemaGenerator};

/// Generates the schema of one type.
pub(super) type SchemaFn = fn(&mut SchemaGenerator) -> Schema;

/// Who may send the request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Auth {
    /// Any client that reaches the listener.
    Nobody,
    /// A client with a token.
    Token,
    /// A client with a token or a ticket.
    TokenOrTicket,
}

/// The content of a body.
#[derive(Clone, Copy)]
pub(crate) enum Content {
    /// Nothing.
    Nothing,
    /// JSON of a type.
    Json(SchemaFn),
    /// Server-sent events; the text describes them.
    Events(&'static str),
    /// Bytes of any kind.
    Bytes,
    /// Bytes of this type.
    Media(&'static str),
    /// Text of this type.
    Text(&'static str),
}

/// A successful answer.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) about: &'static str,
    pub(super) content: Vec<Content>,
    pub(super) headers: Vec<(&'static str, &'static str)>,
}

/// The description of a route in the document.
pub(crate) struct Operation {
    pub(super) id: &'static str,
    pub(super) tag: &'static str,
    pub(super) about: &'static str,
    pub(super) auth: Auth,
    pub(super) query: Vec<SchemaFn>,
    pub(super) headers: Vec<(&'static str, &'static str)>,
    pub(super) body: Option<(Content, bool)>,
    pub(super) answers: Vec<Answer>,
    pub(super) fails: BTreeSet<u16>,
}

/// Errors of the listener itself: a bad `Host`, a foreign `Origin`, a `Host` of another site, an
/// internal error, and too many connections.
const FAILS_EVERYWHERE: [u16; 5] = [400, 403, 421, 500, 503];

impl Content {
    /// JSON of this type.
    pub(crate) fn json<T: JsonSchema>() -> Self {
        Self::Json(SchemaGenerator::subschema_for::<T>)
    }
}

impl Operation {
    /// An operation that needs a token.
    pub(crate) fn new(tag: &'static str, id: &'static str, about: &'static str) -> Self {
        Self {
            id,
            tag,
            about,
            auth: Auth::Token,
            query: Vec::new(),
            headers: Vec::new(),
            body: None,
            answers: Vec::new(),
            fails: FAILS_EVERYWHERE.into_iter().chain([401]).collect(),
        }
    }

    /// Sets who may send it; the default is a client with a token.
    pub(crate) fn auth(mut self, auth: Auth) -> Self {
        self.auth = auth;
        if auth == Auth::Nobody {
            self.fails.remove(&401);
        }
        self
    }

    /// Sets the query parameters.
    pub(crate) fn query<T: JsonSchema>(mut self) -> Self {
        self.query.push(T::json_schema);
        self
    }

    /// Adds a request header.
    pub(crate) fn header(mut self, name: &'static str, about: &'static str) -> Self {
        self.headers.push((name, about));
        self
    }

    /// Sets a required body.
    pub(crate) fn body(mut self, content: Content) -> Self {
        self.body = Some((content, true));
        self.fails([408, 413, 415])
    }

    /// Sets an optional body.
    pub(crate) fn optional_body(mut self, content: Content) -> Self {
        self.body = Some((content, false));
        self.fails([408, 413, 415])
    }

    /// Adds an answer.
    pub(crate) fn answers(mut self, status: u16, about: &'static str, content: Content) -> Self {
        let content = vec![content];
        self.answers.push(Answer { status, about, content, headers: Vec::new() });
        self
    }

    /// Adds another form of the last answer.
    pub(crate) fn or(mut self, content: Content) -> Self {
        if let Some(answer) = self.answers.last_mut() {
            answer.content.push(content);
        }
        self
    }

    /// Adds a header to the last answer.
    pub(crate) fn with(mut self, name: &'static str, about: &'static str) -> Self {
        if let Some(answer) = self.answers.last_mut() {
            answer.headers.push((name, about));
        }
        self
    }

    /// Adds error statuses.
    pub(crate) fn fails<const N: usize>(mut self, statuses: [u16; N]) -> Self {
        self.fails.extend(statuses);
        self
    }
}
