//! Errors of a query in words that help: where, and which name was perhaps meant. No error names an
//! inner view.

use rusqlite::ErrorCode;
use rusqlite::ffi;

use super::connection::OPERATIONS_MAX;
use super::guard::Refused;
use super::text::{self, Token, TokenKind};
use super::views::{VIEWS, View};
use super::{MEMORY_MAX, QueryError, SQL_BYTES_MAX, VALUE_BYTES_MAX};

/// How different a name may be from the one that was perhaps meant.
const DISTANCE_MAX: usize = 3;

/// An error of SQLite, for a caller.
pub(super) fn explain(error: &rusqlite::Error, sql: &str, tokens: &[Token<'_>]) -> QueryError {
    let code = error.sqlite_error_code();
    match (error, code) {
        (rusqlite::Error::MultipleStatement, _) => {
            QueryError::Invalid("a query is one SELECT; send each on its own".to_owned())
        }
        (_, Some(ErrorCode::OutOfMemory)) => too_large(),
        (_, Some(ErrorCode::TooBig)) => QueryError::TooLarge(format!(
            "a value or row of the query has more than {VALUE_BYTES_MAX} bytes; select fewer or \
             shorter columns"
        )),
        (rusqlite::Error::SqlInputError { msg, offset, .. }, _) => {
            QueryError::Invalid(at(sql, usize::try_from(*offset).ok(), &advise(msg, tokens)))
        }
        (rusqlite::Error::SqliteFailure(_, Some(msg)), _) => {
            let named = msg.rsplit(": ").next().unwrap_or_default();
            QueryError::Invalid(at(sql, position(named, tokens), &advise(msg, tokens)))
        }
        _ => QueryError::Invalid("the query cannot be run; simplify it".to_owned()),
    }
}

/// The refusal of the authorizer, for a caller.
pub(super) fn refusal(refused: &Refused, sql: &str, tokens: &[Token<'_>]) -> QueryError {
    let message = match refused {
        Refused::Table(name) => match position(name, tokens) {
            None => "a query reads only views; `SELECT * FROM help` lists them".to_owned(),
            found => at(sql, found, &no_such_view(name)),
        },
        Refused::Function(name) => at(
            sql,
            position(name, tokens),
            &format!("the function `{name}` is not available in a query"),
        ),
        Refused::Action => "a query can only read: write one SELECT".to_owned(),
    };
    QueryError::Invalid(message)
}

/// The error for a query that is too long.
pub(super) fn too_long() -> QueryError {
    QueryError::TooLarge(format!(
        "a query can have at most {SQL_BYTES_MAX} bytes; pass long values as variables"
    ))
}

/// The error for a query that SQLite had no memory for, which it also says of too many operations.
fn too_large() -> QueryError {
    QueryError::TooLarge(format!(
        "the query needs more than {} MiB of memory or {OPERATIONS_MAX} compiled operations; use \
         fewer subqueries, and their columns less often",
        MEMORY_MAX >> 20
    ))
}

/// Returns whether an error may come from the values that a query met, and not from its text.
pub(super) fn is_about_values(error: &rusqlite::Error) -> bool {
    !matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::OperationInterrupted
                | ErrorCode::OutOfMemory
                | ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure
                | ErrorCode::DatabaseCorrupt
                | ErrorCode::DatabaseBusy
        )
    )
}

/// Returns whether an error is the daemon's, not the query's.
pub(super) fn is_internal(error: &rusqlite::Error) -> bool {
    match error.sqlite_error_code() {
        Some(
            ErrorCode::Unknown
            | ErrorCode::TooBig
            | ErrorCode::TypeMismatch
            | ErrorCode::OutOfMemory,
        )
        | None => false,
        Some(ErrorCode::AuthorizationForStatementDenied) => false,
        Some(_) => !matches!(error, rusqlite::Error::SqliteFailure(cause, _)
            if cause.extended_code == ffi::SQLITE_RANGE || cause.extended_code == ffi::SQLITE_ERROR),
    }
}

/// Adds the position, as line and column from 1.
fn at(sql: &str, offset: Option<usize>, message: &str) -> String {
    let Some(before) = offset.and_then(|offset| sql.get(..offset)) else {
        return message.to_owned();
    };
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("line {line}, column {column}: {message}")
}

/// Returns where a name is first used.
fn position(name: &str, tokens: &[Token<'_>]) -> Option<usize> {
    let name = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    let is_it = |token: &&Token<'_>| token.name().is_some_and(|found| found == name);
    tokens.iter().find(is_it).map(|token| token.at)
}

/// Turns SQLite's message into ours where a name may help.
fn advise(message: &str, tokens: &[Token<'_>]) -> String {
    if let Some(name) = message.strip_prefix("no such table: ") {
        return no_such_view(name);
    }
    if let Some(name) = message.strip_prefix("no such column: ") {
        let name = name.split(" - should this be").next().unwrap_or_default();
        return no_such_column(name.trim_matches('"'), tokens);
    }
    if let Some(name) = message.strip_prefix("no such function: ") {
        return format!("the function `{name}` is not available in a query");
    }
    // Names of inner views never come this far: SQLite names what the query wrote, and the columns
    // of both views are the same. Should it happen, the caller learns nothing.
    if message.contains("inner_") && !tokens.iter().any(|token| token.text.contains("inner_")) {
        return "the query cannot be run; simplify it".to_owned();
    }
    message.to_owned()
}

fn no_such_view(name: &str) -> String {
    let name = name.rsplit('.').next().unwrap_or_default();
    let views = VIEWS.iter().map(|view| view.name).chain(["help"]);
    let hint = match nearest(name, views) {
        Some(near) => format!("perhaps `{near}`; "),
        None => String::new(),
    };
    format!("no view `{name}`; {hint}`SELECT * FROM help` lists all views")
}

fn no_such_column(name: &str, tokens: &[Token<'_>]) -> String {
    let last = name.rsplit('.').next().unwrap_or_default();
    let used: Vec<&View> = VIEWS.iter().filter(|view| text::names(tokens, view.name)).collect();
    let columns = used.iter().flat_map(|view| view.columns).map(|column| column.name);
    let mut hint =
        nearest(last, columns).map_or_else(String::new, |near| format!("; perhaps `{near}`"));
    let is_quoted =
        |token: &Token<'_>| token.kind == TokenKind::Quoted && token.text.starts_with('"');
    if tokens.iter().any(|token| {
        is_quoted(token) && token.name().as_deref() == Some(&last.to_ascii_lowercase())
    }) {
        hint.push_str("; write texts in single quotes");
    }
    match used.first() {
        None => format!("no column `{name}`{hint}"),
        Some(view) => format!(
            "no column `{name}`{hint}; `SELECT * FROM help WHERE view = '{}'` lists the columns",
            view.name
        ),
    }
}

fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_ascii_lowercase();
    let close = known.map(|known| (distance(&name, known), known));
    let (distance, near) = close.min_by_key(|(distance, _)| *distance)?;
    (distance <= DISTANCE_MAX.min(near.len() / 2)).then_some(near)
}

/// The number of letters to change, add or remove. Long names are not compared.
fn distance(a: &str, b: &str) -> usize {
    const LETTERS_MAX: usize = 64;
    if a.len() > LETTERS_MAX {
        return usize::MAX;
    }
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
