//! The names under which tools on lines are called. A name is looked up as a whole, never split: a
//! client `a_b` with a tool `c` and a client `a` with a tool `b_c` cannot both have `client_a_b_c`.

use std::sync::Arc;

use ringback_proto::ids::SessionId;
use ringback_proto::principal::Principal;
use ringback_proto::tool::is_service_of_rows;
use ringback_proto::{Error, Result};

use super::{LineKind, LineName};
use crate::policy;

/// The maximum length of a line name, and of a tool name as given by its party.
const PART_BYTES_MAX: usize = 120;
/// The maximum length of a caller id: what agent programs allow for a whole name.
const CALLER_ID_CHARS_MAX: usize = 64;
/// The prefix of the daemon's own tools, as seen inside a sandbox.
const DAEMON_PREFIX: &str = "oubliette";
/// The prefix of tools of HTTP clients.
const CLIENT_PREFIX: &str = "client";

impl LineName {
    /// Returns the line name of a session's caller.
    #[must_use]
    pub fn caller(session: SessionId, caller_id: &str) -> Self {
        Self::Caller { session, caller_id: caller_id.into() }
    }

    /// Returns the kind of party that holds the line.
    #[must_use]
    pub const fn kind(&self) -> LineKind {
        match self {
            Self::Client(_) => LineKind::Client,
            Self::Worker(_) => LineKind::Worker,
            Self::Caller { .. } => LineKind::Caller,
        }
    }

    /// Returns the client ID, the service or the caller id.
    #[must_use]
    pub const fn name(&self) -> &Arc<str> {
        match self {
            Self::Client(name) | Self::Worker(name) | Self::Caller { caller_id: name, .. } => name,
        }
    }

    /// Returns the name as events have it: no other line of its kind has the same.
    #[must_use]
    pub fn address(&self) -> String {
        match self {
            Self::Client(name) | Self::Worker(name) => name.to_string(),
            // No session id or caller id contains a `/`.
            Self::Caller { session, caller_id } => format!("{session}/{caller_id}"),
        }
    }

    /// Returns the session of a caller's line.
    #[must_use]
    pub const fn session(&self) -> Option<SessionId> {
        match self {
            Self::Caller { session, .. } => Some(*session),
            Self::Client(_) | Self::Worker(_) => None,
        }
    }

    /// Returns the caller id of a caller's line.
    #[must_use]
    pub fn caller_id(&self) -> Option<&str> {
        match self {
            Self::Caller { caller_id, .. } => Some(caller_id),
            Self::Client(_) | Self::Worker(_) => None,
        }
    }
}

/// Checks the name of a line that a party opens itself.
pub(super) fn check_line(line: &LineName) -> Result<()> {
    match line {
        LineName::Client(name) => check_part("clientID", name),
        LineName::Worker(name) => {
            check_part("service", name)?;
            check_reserved("service", name)
        }
        LineName::Caller { .. } => Err(Error::invalid_field(
            "caller_id",
            "caller tools are declared for a session: send them with a message to it",
        )),
    }
}

/// Returns whether rows of the tool table name this line's service as the one that does their work.
/// Its tools are then called and listed only as those rows.
pub(super) fn works_for_rows(line: &LineName) -> bool {
    match line {
        LineName::Worker(service) => is_service_of_rows(service),
        LineName::Client(_) | LineName::Caller { .. } => false,
    }
}

/// Checks whether a principal may hold a line, regardless of its tools: one that does the work of
/// native tools must be as trusted as the daemon.
pub(super) fn may_hold(principal: &Principal, line: &LineName) -> Result<()> {
    if works_for_rows(line) && !policy::may_do_everything(principal) {
        let what = format!("serving `{}`", line.name());
        return Err(Error::forbidden(&what, "an admin token for all projects that no agent holds"));
    }
    Ok(())
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
        match line {
            LineName::Client(_) | LineName::Worker(_) => "id",
            LineName::Caller { .. } => "name",
        },
        tool,
    )?;
    Ok(match line {
        LineName::Client(name) => format!("{CLIENT_PREFIX}_{name}_{tool}").into(),
        LineName::Worker(name) | LineName::Caller { caller_id: name, .. } => {
            format!("{name}_{tool}").into()
        }
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
