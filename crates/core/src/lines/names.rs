//! The names tools on lines are called by. A name is looked up as a whole, never taken apart: a
//! client `a_b` with a tool `c` and a client `a` with a tool `b_c` cannot both have `client_a_b_c`.

use std::sync::Arc;

use ringback_proto::{Error, Result};

use super::{LineKind, LineName};

/// The longest name of a line, and of a tool as its party calls it.
const PART_BYTES_MAX: usize = 120;
/// What belongs to the daemon's own tools, seen from inside a sandbox.
const DAEMON_PREFIX: &str = "oubliette";
/// What belongs to the tools of HTTP clients.
const CLIENT_PREFIX: &str = "client";

/// Whether a line may have this name.
pub(super) fn check_line(line: &LineName) -> Result<()> {
    let field = match line.kind {
        LineKind::Client => "clientID",
        LineKind::Worker => "service",
        LineKind::Caller => "caller_id",
    };
    check_part(field, &line.name)?;
    let is_reserved = |prefix: &str| {
        line.name.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    };
    match line.kind {
        LineKind::Client => Ok(()),
        LineKind::Worker | LineKind::Caller
            if is_reserved(DAEMON_PREFIX) || is_reserved(CLIENT_PREFIX) =>
        {
            Err(Error::invalid_field(
                field,
                format!("`{}` is reserved; choose another {field}", line.name),
            ))
        }
        LineKind::Worker | LineKind::Caller => Ok(()),
    }
}

/// The name a tool of this line is called by.
pub(super) fn full_name(line: &LineName, tool: &str) -> Result<Arc<str>> {
    check_part("id", tool)?;
    Ok(match line.kind {
        LineKind::Client => format!("{CLIENT_PREFIX}_{}_{tool}", line.name).into(),
        LineKind::Worker | LineKind::Caller => format!("{}_{tool}", line.name).into(),
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
