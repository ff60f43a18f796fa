//! What SQLite may do for a caller's SQL: the authorizer's decisions.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use ringback_sync::lock;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

use super::views::{Column, SESSION_TREE, VIEWS, View};
use crate::read::page::RowVisibility;

/// Functions that never fail, whatever the values.
const TOTAL: &[&str] = &[
    "avg",
    "coalesce",
    "count",
    "cume_dist",
    "date",
    "datetime",
    "dense_rank",
    "first_value",
    "ifnull",
    "iif",
    "instr",
    "julianday",
    "lag",
    "last_value",
    "lead",
    "length",
    "lower",
    "max",
    "min",
    "nullif",
    "percent_rank",
    "rank",
    "round",
    "row_number",
    "sign",
    "substr",
    "substring",
    "time",
    "total",
    "typeof",
    "unicode",
    "unixepoch",
    "upper",
];

/// Functions that fail for some values: an error would tell of rows that the caller may not see. A
/// query with one of them gets no such rows (`views::Fence`). `trim` is in neither list: with two
/// long texts it takes 20 s, in which nothing can interrupt it.
const FALLIBLE: &[&str] = &[
    "->",
    "->>",
    "abs",
    "char",
    "concat",
    "concat_ws",
    "format",
    "group_concat",
    "hex",
    "json",
    "json_array",
    "json_array_length",
    "json_extract",
    "json_group_array",
    "json_group_object",
    "json_object",
    "json_quote",
    "json_type",
    "json_valid",
    "nth_value",
    "ntile",
    "octet_length",
    "printf",
    "quote",
    "replace",
    "strftime",
    "string_agg",
    "sum",
];

/// The operators that SQLite implements as functions. `text::may_fail` looks at their patterns.
const PATTERNS: &[&str] = &["glob", "like"];

/// The columns with long values: two of them in one row of a temporary table are too much for it.
const LONG: &[&str] = &["message", "metadata"];

/// What the authorizer noticed while a statement was prepared.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Noticed {
    /// The first thing it refused.
    pub(super) refused: Option<Refused>,
    /// Whether the query uses a function that may fail.
    pub(super) may_fail: bool,
    /// Whether it reads a column whose values may be nearly as long as a value can be.
    pub(super) reads_long: bool,
}

/// What the authorizer refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refused {
    /// To read this table or view.
    Table(String),
    /// To call this function.
    Function(String),
    /// To do anything but read.
    Action,
}

/// The authorizer of one query.
#[derive(Debug)]
pub(super) struct Guard {
    /// The first part of the names of the inner views.
    prefix: String,
    /// Everything in the database that has a name, in small letters.
    existing: Arc<HashSet<String>>,
    /// Tables of which the reader may count all rows.
    counted: Vec<&'static str>,
    noticed: Arc<Mutex<Noticed>>,
}

impl Guard {
    pub(super) fn new(
        prefix: String,
        existing: Arc<HashSet<String>>,
        used: &[&View],
        visible: &RowVisibility,
    ) -> Self {
        let counted = used.iter().flat_map(|view| view.counted_tables(visible)).collect();
        Self { prefix, existing, counted, noticed: Arc::default() }
    }

    pub(super) fn noticed(&self) -> Arc<Mutex<Noticed>> {
        Arc::clone(&self.noticed)
    }

    /// Decides about one action.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the actions are SQLite's; a new one must be refused"
    )]
    pub(super) fn decide(&self, context: &AuthContext<'_>) -> Authorization {
        let refused = match context.action {
            AuthAction::Select | AuthAction::Recursive => None,
            AuthAction::Function { function_name } => {
                self.function(function_name, context.accessor)
            }
            AuthAction::Read { table_name, column_name } => {
                let may = self.may_read(context, table_name, column_name);
                (!may).then(|| Refused::Table(table_name.to_owned()))
            }
            _ => Some(Refused::Action),
        };
        let Some(refused) = refused else { return Authorization::Allow };
        let mut noticed = lock(&self.noticed);
        noticed.refused.get_or_insert(refused);
        Authorization::Deny
    }

    fn function(&self, name: &str, accessor: Option<&str>) -> Option<Refused> {
        if self.is_inner(accessor) {
            return None;
        }
        let name = name.to_ascii_lowercase();
        let is_in = |list: &[&str]| list.contains(&name.as_str());
        if is_in(FALLIBLE) {
            lock(&self.noticed).may_fail = true;
        }
        let may = is_in(TOTAL) || is_in(FALLIBLE) || is_in(PATTERNS);
        (!may).then_some(Refused::Function(name))
    }

    /// Tables are read by inner views only; inner views by what passes for a public view, which
    /// shows no more than the view itself; public views by everyone.
    fn may_read(&self, context: &AuthContext<'_>, table: &str, column: &str) -> bool {
        let has = |columns: &[Column]| {
            column.is_empty() || columns.iter().any(|known| known.name == column)
        };
        if let Some(view) = VIEWS.iter().find(|view| view.name == table) {
            lock(&self.noticed).reads_long |= LONG.contains(&column);
            return has(view.columns);
        }
        if let Some(name) = self.inner(table) {
            let view = VIEWS.iter().find(|view| view.name == name);
            let is_public = context.accessor == Some(name);
            return is_public && view.is_some_and(|view| has(view.columns));
        }
        if let Some(name) = context.accessor.and_then(|accessor| self.inner(accessor)) {
            let view = VIEWS.iter().find(|view| view.name == name);
            let reads = view.map_or(&[][..], |view| view.reads);
            let is_listed = |(read, columns): &(&str, &[&str])| {
                *read == table && (column.is_empty() || columns.contains(&column))
            };
            let reads = reads.iter().chain([&SESSION_TREE]);
            return context.database_name == Some("main") && reads.into_iter().any(is_listed);
        }
        if table == "help" {
            return ["view", "column", "about", ""].contains(&column);
        }
        // No column is used: of a table whose rows are counted through its view, or of a common table
        // expression. That hides a table of its name, but this does not show which of the two is meant.
        column.is_empty() && (self.counted.contains(&table) || !self.exists(table))
    }

    fn exists(&self, table: &str) -> bool {
        let name = table.to_ascii_lowercase();
        name.starts_with("sqlite_") || name.starts_with("pragma_") || self.existing.contains(&name)
    }

    fn is_inner(&self, accessor: Option<&str>) -> bool {
        accessor.is_some_and(|accessor| self.inner(accessor).is_some())
    }

    /// Returns the public name of an inner view.
    fn inner<'a>(&self, name: &'a str) -> Option<&'a str> {
        name.strip_prefix(self.prefix.as_str())?.strip_prefix('_')
    }
}
