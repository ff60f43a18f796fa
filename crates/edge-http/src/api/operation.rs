//! What the document says of a route.

use std::collections::BTreeSet;

use schemars::{JsonSchema, Schema, SchemaGenerator};

/// Makes the schema of one type.
pub(super) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// Who may send it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Auth {
    /// Anybody who reaches the listener.
    Nobody,
    /// Whoever has a token.
    Token,
    /// Whoever has a token or a ticket.
    TokenOrTicket,
}

/// What a body holds.
#[derive(Clone, Copy)]
pub(crate) enum Content {
    /// Nothing.
    Nothing,
    /// JSON of a type.
    Json(SchemaOf),
    /// Server-sent events; the text says which.
    Events(&'static str),
    /// Bytes of any kind.
    Bytes,
    /// Text of a kind.
    Text(&'static str),
}

/// An answer that is no error.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) about: &'static str,
    pub(super) content: Vec<Content>,
    pub(super) headers: Vec<(&'static str, &'static str)>,
}

/// What the document says of a route.
pub(crate) struct Operation {
    pub(super) id: &'static str,
    pub(super) tag: &'static str,
    pub(super) about: &'static str,
    pub(super) auth: Auth,
    pub(super) query: Vec<SchemaOf>,
    pub(super) headers: Vec<(&'static str, &'static str)>,
    pub(super) body: Option<(Content, bool)>,
    pub(super) answers: Vec<Answer>,
    pub(super) fails: BTreeSet<u16>,
}

/// What the listener itself may answer: a bad `Host`, a foreign `Origin`, another site's `Host`, our
/// fault, and a full house.
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

    /// Who may send it, if not whoever has a token.
    pub(crate) fn auth(mut self, auth: Auth) -> Self {
        self.auth = auth;
        if auth == Auth::Nobody {
            self.fails.remove(&401);
        }
        self
    }

    /// What may stand in the query.
    pub(crate) fn query<T: JsonSchema>(mut self) -> Self {
        self.query.push(T::json_schema);
        self
    }

    /// A header that means something.
    pub(crate) fn header(mut self, name: &'static str, about: &'static str) -> Self {
        self.headers.push((name, about));
        self
    }

    /// The body, which must be there.
    pub(crate) fn body(mut self, content: Content) -> Self {
        self.body = Some((content, true));
        self.fails([408, 413, 415])
    }

    /// The body, which may be absent.
    pub(crate) fn optional_body(mut self, content: Content) -> Self {
        self.body = Some((content, false));
        self.fails([408, 413, 415])
    }

    /// An answer.
    pub(crate) fn answers(mut self, status: u16, about: &'static str, content: Content) -> Self {
        let content = vec![content];
        self.answers.push(Answer { status, about, content, headers: Vec::new() });
        self
    }

    /// Another form of the answer before.
    pub(crate) fn or(mut self, content: Content) -> Self {
        if let Some(answer) = self.answers.last_mut() {
            answer.content.push(content);
        }
        self
    }

    /// A header of the answer before.
    pub(crate) fn with(mut self, name: &'static str, about: &'static str) -> Self {
        if let Some(answer) = self.answers.last_mut() {
            answer.headers.push((name, about));
        }
        self
    }

    /// How it may fail besides.
    pub(crate) fn fails<const N: usize>(mut self, statuses: [u16; N]) -> Self {
        self.fails.extend(statuses);
        self
    }
}
