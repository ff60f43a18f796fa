//! SQL functions of the inner views: stored MsgPack as text. They never fail.

use bytes::Bytes;
use ringback_proto::any::{Any, Format};
use ringback_proto::error::ToolError;
use rusqlite::Connection;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::ValueRef;

use super::VALUE_BYTES_MAX;

/// Adds the functions to a connection.
pub(super) fn add_functions(connection: &Connection) -> rusqlite::Result<()> {
    // Without INNOCUOUS, no view of an untrusted schema could use them.
    let flags = FunctionFlags::SQLITE_UTF8
        | FunctionFlags::SQLITE_DETERMINISTIC
        | FunctionFlags::SQLITE_INNOCUOUS;
    connection.create_scalar_function("as_json", 1, flags, |context| Ok(as_json(context)))?;
    connection.create_scalar_function("error_code", 1, flags, |context| Ok(error_code(context)))
}

/// Returns the argument as it was stored; `None` for everything else.
fn packed(context: &Context<'_>) -> Option<Any> {
    match context.get_raw(0) {
        ValueRef::Blob(bytes) => {
            Some(Any { format: Format::MsgPack, bytes: Bytes::copy_from_slice(bytes) })
        }
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Text(_) => None,
    }
}

fn as_json(context: &Context<'_>) -> Option<String> {
    let json = packed(context)?.translate(Format::Json).ok()?;
    let text = String::from_utf8(json.bytes.to_vec()).ok()?;
    (text.len() <= VALUE_BYTES_MAX).then_some(text)
}

fn error_code(context: &Context<'_>) -> Option<String> {
    ToolError::decode(&packed(context)?.bytes).map(|error| error.code)
}
