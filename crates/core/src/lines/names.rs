//! The names tools on lines are called by. A name is looked up as a whole, never taken apart: a
//! client `a_b` with a tool `c` and a client `a` with a tool `b_c` cannot both have `client_a_b_c`.

use std::sync::Arc;

use ringback_proto::ids::SessionId;
use ringback_proto::{Error, Result};

use super::{LineKind, LineName};

/// The longest name of a line, and of a tool as its party calls it.
const PART_BYTES_MAX: usize = 120;
/// The longest id of a caller: what agents' programs allow for a whole name.
const CALLER_ID_CHARS_MAX: usize = 64;
/// What belongs to the daemon's own tools, seen from inside a sandbox.
const DAEMON_PREFIX: &str = "oubliette";
/// What belongs to the tools of HTTP clients.
const CLIENT_PREFIX: &str = "client";

impl LineName {
    /// The name of the line of a session's caller. No id of a session or a caller has a `/`.
    #[must_use]
    pub fn caller(session: SessionId, caller_id: &str) -> Self {
        Self { kind: LineKind::Caller, name: format!("{session}/{caller_id}").into() }
    }

    /// The session whose caller's line this is.
    #[must_use]
    pub fn session(&self) -> Option<SessionId> {
        self.caller_parts()?.0.parse().ok()
    }

    /// The id of the caller whose line this is.
    #[must_use]
    pub fn caller_id(&self) -> Option<&str> {
        self.caller_parts().map(|(_, caller_id)| caller_id)
    }

    fn caller_parts(&self) -> Option<(&str, &str)> {
        match self.kind {
            LineKind::Caller => self.name.split_once('/'),
            LineKind::Client | LineKind::Worker => None,
        }
    }
}

/// Whether a line that parties open themselves may have this name.
pub(super) fn check_line(line: &LineName) -> Result<()> {
    match line.kind {
        LineKind::Client => check_part("clientID", &line.name),
        LineKind::Worker => {
            check_part("service", &line.name)?;
            check_reserved("service", &line.name)
        }
        LineKind::Caller => Err(Error::invalid_field(
            "caller_id",
            "a caller's tools are declared for a session, with a message to it",
        )),
    }
}

/// Whether a caller may have this id.
pub(super) fn check_caller(caller_id: &str) -> Result<()> {
    check_part("caller_id", caller_id)?;
    if caller_id.chars().count() > CALLER_ID_CHARS_MAX {
        let message = format!("`caller_id` has more than {CALLER_ID_CHARS_MAX} characters");
        return Err(Error::invalid_field("caller_id", message));
    }
    if caller_id.contains('/') {
        return Err(Error::invalid_field("caller_id", "`caller_id` has a `/`; leave it out"));
    }
    check_reserved("caller_id", caller_id)
}

fn check_reserved(field: &str, name: &str) -> Result<()> {
    let is_of = |prefix: &str| {
        name.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    };
    if is_of(DAEMON_PREFIX) || is_of(CLIENT_PREFIX) {
        let message = format!("`{name}` is reserved; choose another {field}");
        return Err(Error::invalid_field(field, message));
    }
    Ok(())
}

/// The name a tool of this line is called by; of a caller's tool, the one its agents see.
pub(super) fn full_name(line: &LineName, tool: &str) -> Result<Arc<str>> {
    check_part(
        match line.kind {
            LineKind::Client | LineKind::Worker => "id",
            LineKind::Caller => "name",
        },
        tool,
    )?;
    Ok(match line.kind {
        LineKind::Client => format!("{CLIENT_PREFIX}_{}_{tool}", line.name).into(),
        LineKind::Worker => format!("{}_{tool}", line.name).into(),
        LineKind::Caller => format!("{}_{tool}", line.caller_id().unwrap_or_default()).into(),
    })
}

fn check_part(field: &str, part: &str) -> Result<()> {
    if part.is_empty() {
        return Err(Error::invalid_field(field, format!("`{field}` is empty")));
    }
    if part.len() > PART_BYTES_MAX {
        let message = format!("`{field}` has more than {PART_BYTES_MAX} bytes");
        return Err(Error::invalid_field(field, message));
    }
    if part.chars().any(char::is_control) {
        return Err(Error::invalid_field(field, format!("`{field}` has control characters")));
    }
    Ok(())
}
