//! The names under which tools on lines are called. A name is looked up as a whole, never split: a
//! client `a_b` with a tool `c` and a client `a` with a tool `b_c` cannot both have `client_a_b_c`.

use std::sync::Arc;

use ringback_proto::ids::SessionId;
use ringback_proto::{Error, Result};

use super::{LineKind, LineName};

/// The maximum length of a line name, and of a tool name as given by its party.
const PART_BYTES_MAX: usize = 120;
/// The maximum length of a caller id: what agent programs allow for a whole name.
const CALLER_ID_CHARS_MAX: usize = 64;
/// The prefix of the daemon's own tools, as seen inside a sandbox.
const DAEMON_PREFIX: &str = "oubliette";
/// The prefix of tools of HTTP clients.
const CLIENT_PREFIX: &str = "client";

impl LineName {
    /// Returns the line name of a session's caller. No session id or caller id contains a `/`.
    #[must_use]
    pub fn caller(session: SessionId, caller_id: &str) -> Self {
        Self { kind: LineKind::Caller, name: format!("{session}/{caller_id}").into() }
    }

    /// Returns the session of a caller's line.
    #[must_use]
    pub fn session(&self) -> Option<SessionId> {
        self.caller_parts()?.0.parse().ok()
    }

    /// Returns the caller id of a caller's line.
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

/// Checks the name of a line that a party opens itself.
pub(super) fn check_line(line: &LineName) -> Result<()> {
    match line.kind {
        LineKind::Client => check_part("clientID", &line.name),
        LineKind::Worker => {
            check_part("service", &line.name)?;
            check_reserved("service", &line.name)
        }
        LineKind::Caller => Err(Error::invalid_field(
            "caller_id",
            "caller tools are declared for a session: send them with a message to it",
        )),
    }
}

/// Checks a caller id.
pub(super) fn check_caller(caller_id: &str) -> Result<()> {
    check_part("caller_id", caller_id)?;
    if caller_id.chars().count() > CALLER_ID_CHARS_MAX {
        let message = format!("`caller_id` has more than {CALLER_ID_CHARS_MAX} characters");
        return Err(Error::invalid_field("caller_id", message));
    }
    if caller_id.contains('/') {
        return Err(Error::invalid_field("caller_id", "`caller_id` must not contain `/`"));
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

/// Returns the name under which a tool of this line is called; for a caller tool, the one its
/// agents see.
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
        return Err(Error::invalid_field(field, format!("`{field}` contains control characters")));
    }
    Ok(())
}
