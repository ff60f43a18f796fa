//! Read-only SQL of callers over views, on connections and threads of its own.
//!
//! Invariants:
//! * A caller's SQL reads tables only through inner views, which have random names for each query
//!   and show rows that the caller may see; it calls only listed functions; it never writes.
//! * Nothing in an answer or an error depends on rows that the caller may not see.
//! * A query ends after a second, sooner if its caller stops it, also while SQLite compiles it. Its
//!   snapshot ends with it.
//! * SQLite allocates at most [`MEMORY_MAX`] for a query, also while it compiles it.

mod advice;
mod budget;
mod connection;
mod decode;
mod engine;
mod guard;
mod patterns;
mod run;
mod text;
mod views;

#[cfg(test)]
mod tests;

use std::time::Duration;

use ringback_proto::value::Value;

pub(crate) use self::budget::install as install_budget;
pub(crate) use self::engine::Engine;
use crate::read::page::RowVisibility;

/// The most bytes of a query.
pub const SQL_BYTES_MAX: usize = 16 << 10;
/// The most bytes of a value and of a variable.
pub const VALUE_BYTES_MAX: usize = 64 << 10;
/// The most bytes of all rows of an answer.
pub const ROWS_BYTES_MAX: usize = 256 << 10;
/// The time that a query may take.
pub const TIME_MAX: Duration = Duration::from_secs(1);
/// What SQLite may allocate for a query: temporary tables and sorts take 2 MiB each before they go to
/// files, and values 64 KiB.
pub const MEMORY_MAX: usize = 16 << 20;
/// Queries that run at the same time.
pub const QUERIES_MAX: usize = 2;

/// A query.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// One SELECT.
    pub sql: String,
    /// The values of its variables, by their names without the colon.
    pub variables: Vec<(String, Value)>,
    /// The most rows of the answer.
    pub rows_max: usize,
    /// The rows that the caller may see.
    pub visible: RowVisibility,
}

/// The answer to a query.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryAnswer {
    /// Its rows: names and values in the order of the query.
    pub rows: Vec<Value>,
    /// Whether there are more rows.
    pub is_truncated: bool,
}

/// Why a query has no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum QueryError {
    /// The query is wrong, or not allowed.
    #[error("{0}")]
    Invalid(String),
    /// A variable is missing, unknown, or no value that SQL has.
    #[error("{0}")]
    Variable(String),
    /// The query, a value or a variable is too long.
    #[error("{0}")]
    TooLarge(String),
    /// It took too long.
    #[error(
        "the query took more than {} ms; search by an id, a tag or a time, or select fewer rows",
        TIME_MAX.as_millis()
    )]
    Timeout,
    /// Its caller stopped it.
    #[error("the query was stopped")]
    Stopped,
    /// Too many queries are waiting.
    #[error("all connections for queries are in use")]
    Busy,
    /// The database failed.
    #[error("cannot run a query")]
    Database {
        /// The cause.
        #[source]
        source: std::sync::Arc<dyn std::error::Error + Send + Sync>,
    },
}

/// Runs when a query has ended, on the thread that ran it: it must be short and never wait.
pub type QueryDone = Box<dyn FnOnce(Result<QueryAnswer, QueryError>) + Send>;

/// Returns whether a query is to be stopped; asked every few hundred steps. It never uses
/// SQLite: it may be asked inside an allocation.
pub type StopSignal = Box<dyn Fn() -> bool + Send>;
