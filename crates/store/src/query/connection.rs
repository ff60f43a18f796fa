//! A connection that only answers queries of callers, and how it is confined.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8Path;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags, ffi};

use super::text::PATTERN_BYTES_MAX;
use super::views::{self, Fence, VIEWS, View};
use super::{SQL_BYTES_MAX, VALUE_BYTES_MAX, budget, decode, patterns};
use crate::read::page::RowVisibility;
use crate::schema;

/// The page cache (1 MiB): the system caches the file anyway.
const CACHE_KIB: i64 = 1 << 10;

/// How long to wait for a lock. Readers hardly ever wait in this mode.
const LOCK_WAIT: Duration = Duration::from_millis(100);

/// Steps of SQLite's virtual machine between two looks at the clock: hardly ever a millisecond, and 50
/// if each turns a text of 64 KiB into a number.
const STEPS: i32 = 500;

/// The most operations of a compiled query.
pub(super) const OPERATIONS_MAX: i32 = 25_000;

/// SQLite's limits for a caller's SQL. With `LIMIT_LENGTH` they also bound what one row of the
/// virtual machine can hold in memory.
const LIMITS: &[(Limit, i32)] = &[
    (Limit::SQLITE_LIMIT_COLUMN, 100),
    (Limit::SQLITE_LIMIT_EXPR_DEPTH, 50),
    (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 10),
    (Limit::SQLITE_LIMIT_VDBE_OP, OPERATIONS_MAX),
    (Limit::SQLITE_LIMIT_FUNCTION_ARG, 32),
    (Limit::SQLITE_LIMIT_ATTACHED, 0),
    (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, 100),
    (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 0),
    (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
];

/// A confined connection.
#[derive(Debug)]
pub(super) struct QueryConnection {
    pub(super) sqlite: Connection,
    /// Everything in the database that has a name, in small letters.
    pub(super) existing: Arc<HashSet<String>>,
    /// Whether it may be in a state that the next query must not find.
    pub(super) is_spoilt: bool,
}

impl QueryConnection {
    pub(super) fn open(path: &Utf8Path) -> rusqlite::Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut sqlite = schema::open(path, flags)?;
        if !budget::install() {
            // Without a budget, one query could take all memory.
            let error = ffi::Error::new(ffi::SQLITE_MISUSE);
            let message = "SQLite was in use before its memory could be limited".to_owned();
            return Err(rusqlite::Error::SqliteFailure(error, Some(message)));
        }
        sqlite.progress_handler(STEPS, Some(budget::is_over))?;
        sqlite.busy_timeout(LOCK_WAIT)?;
        sqlite.pragma_update(None, "cache_size", -CACHE_KIB)?;
        // A sort or a temporary table may be large, memory is not.
        sqlite.pragma_update(None, "temp_store", "FILE")?;
        for (config, value) in [
            (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
            (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
            (DbConfig::SQLITE_DBCONFIG_DQS_DML, false),
            (DbConfig::SQLITE_DBCONFIG_DQS_DDL, false),
            (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
            // Views of the temporary schema are not affected.
            (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
        ] {
            sqlite.set_db_config(config, value)?;
        }
        decode::add_functions(&sqlite)?;
        patterns::add_functions(&sqlite)?;
        add_help(&sqlite)?;
        let existing = Arc::new(names(&sqlite)?);
        sqlite.pragma_update(None, "query_only", true)?;
        let confined = Self { sqlite, existing, is_spoilt: false };
        confined.limit_callers()?;
        Ok(confined)
    }

    /// Creates the views that one query uses, and returns the first part of the names of the inner ones.
    pub(super) fn create_views(
        &self,
        used: &[&View],
        visible: &RowVisibility,
        fence: Fence,
    ) -> rusqlite::Result<String> {
        let random: String =
            self.sqlite.query_row("SELECT lower(hex(randomblob(16)))", [], |row| row.get(0))?;
        let prefix = format!("inner_{random}");
        self.change_views(&views::create(used, &prefix, visible, fence))?;
        Ok(prefix)
    }

    pub(super) fn drop_views(&self, used: &[&View], prefix: &str) -> rusqlite::Result<()> {
        self.change_views(&views::drop_again(used, prefix))
    }

    /// Only our own SQL runs while the connection may write to its temporary schema.
    fn change_views(&self, sql: &str) -> rusqlite::Result<()> {
        self.set_limits(&[], SQL_BYTES_MAX_OF_VIEWS, SQL_BYTES_MAX_OF_VIEWS)?;
        self.sqlite.pragma_update(None, "query_only", false)?;
        let changed = self.sqlite.execute_batch(sql);
        self.sqlite.pragma_update(None, "query_only", true)?;
        self.limit_callers()?;
        changed
    }

    fn limit_callers(&self) -> rusqlite::Result<()> {
        self.set_limits(LIMITS, SQL_BYTES_MAX + EXPLAIN_BYTES, VALUE_BYTES_MAX)
    }

    fn set_limits(
        &self,
        limits: &[(Limit, i32)],
        sql_bytes: usize,
        value_bytes: usize,
    ) -> rusqlite::Result<()> {
        let int = |bytes: usize| i32::try_from(bytes).unwrap_or(i32::MAX);
        self.sqlite.set_limit(Limit::SQLITE_LIMIT_LENGTH, int(value_bytes))?;
        self.sqlite.set_limit(Limit::SQLITE_LIMIT_SQL_LENGTH, int(sql_bytes))?;
        let patterns = int(PATTERN_BYTES_MAX);
        self.sqlite.set_limit(Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, patterns)?;
        for (limit, value) in limits {
            self.sqlite.set_limit(*limit, *value)?;
        }
        Ok(())
    }
}

/// Room for our `EXPLAIN` before a caller's query.
const EXPLAIN_BYTES: usize = 16;

/// The most bytes of the SQL that creates all views, for a token with a thousand projects.
const SQL_BYTES_MAX_OF_VIEWS: usize = 4 << 20;

fn add_help(sqlite: &Connection) -> rusqlite::Result<()> {
    sqlite.execute_batch(
        "CREATE TEMP TABLE help (\"view\" TEXT NOT NULL, \"column\" TEXT, about TEXT NOT NULL)",
    )?;
    let mut insert = sqlite.prepare("INSERT INTO temp.help VALUES (?1, ?2, ?3)")?;
    for (view, column, about) in views::help() {
        insert.execute((view, column, about))?;
    }
    Ok(())
}

/// Returns the names of all tables, views, indexes and table-valued functions.
fn names(sqlite: &Connection) -> rusqlite::Result<HashSet<String>> {
    let mut select = sqlite.prepare(
        "SELECT lower(name) FROM main.sqlite_schema
         UNION SELECT lower(name) FROM temp.sqlite_schema
         UNION SELECT lower(name) FROM pragma_module_list",
    )?;
    let found = select.query_map([], |row| row.get(0))?;
    let mut found: HashSet<String> = found.collect::<rusqlite::Result<_>>()?;
    let schemas = ["sqlite_schema", "sqlite_master", "sqlite_temp_schema", "sqlite_temp_master"];
    found.extend(schemas.map(str::to_owned));
    // SQLite adds these modules when they are first used.
    let functions = ["json_each", "json_tree", "jsonb_each", "jsonb_tree"];
    found.extend(functions.map(str::to_owned));
    found.extend(VIEWS.iter().map(|view| view.name.to_owned()));
    Ok(found)
}
