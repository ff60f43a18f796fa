//! One query, from its text to its rows.

use std::sync::{Arc, Mutex};

use ringback_proto::data::Data;
use ringback_proto::value::Value;
use ringback_sync::lock;
use rusqlite::Statement;
use rusqlite::types::{ToSqlOutput, ValueRef};

use super::budget::{Budget, Exceeded};
use super::connection::QueryConnection;
use super::guard::{Guard, Noticed};
use super::text::{self, EXPANSIONS_MAX, PATTERN_BYTES_MAX, TABLES_MAX, Token, TokenKind};
use super::views::{Fence, VIEWS, View};
use super::{
    Query, QueryAnswer, QueryError, ROWS_BYTES_MAX, SQL_BYTES_MAX, StopSignal, VALUE_BYTES_MAX,
    advice,
};
use crate::error::Cause;

/// The most temporary tables, indexes and sorts of a query. Each holds up to 2 MiB in memory before
/// it goes to a file.
const TEMPORARY_MAX: usize = 6;

/// The most instructions of a compiled query that make a value. Each value may take 64 KiB until its
/// row is done.
const VALUES_MAX: usize = 200;

/// About the size of a value in an answer besides its bytes.
const VALUE_OVERHEAD: usize = 9;

/// Why an attempt ended without an answer.
enum Failure {
    /// The query may meet errors in rows that its caller may not see; it needs the fence.
    NeedsFence,
    /// SQLite failed while it ran the query.
    Running(rusqlite::Error),
    /// The query has no answer.
    Final(QueryError),
}

impl From<QueryError> for Failure {
    fn from(error: QueryError) -> Self {
        Self::Final(error)
    }
}

/// Runs a query.
pub(super) fn run(
    connection: &mut QueryConnection,
    query: &Query,
    stop: StopSignal,
) -> Result<QueryAnswer, QueryError> {
    if query.sql.len() > SQL_BYTES_MAX {
        return Err(advice::too_long());
    }
    let tokens = text::tokens(&query.sql);
    check_text(query, &tokens)?;
    let budget = Budget::start(stop);
    let is_short = |variable: &str| is_short(query, variable);
    let mut fence = if text::may_fail(&tokens, is_short) { Fence::Closed } else { Fence::Open };
    let used: Vec<&View> = VIEWS.iter().filter(|view| text::names(&tokens, view.name)).collect();
    let answer = loop {
        match attempt(connection, query, &tokens, &used, fence, &budget) {
            Ok(answer) => break Ok(answer),
            Err(Failure::Final(error)) => break Err(error),
            Err(Failure::NeedsFence) if fence == Fence::Open => fence = Fence::Closed,
            // Not expected: what may fail runs behind the fence. But an error may tell of a row, so
            // the answer is the one without that row.
            Err(Failure::Running(error))
                if fence == Fence::Open && advice::is_about_values(&error) =>
            {
                tracing::warn!(%error, "a query failed without the fence");
                fence = Fence::Closed;
            }
            Err(Failure::NeedsFence) => break Err(QueryError::Stopped),
            Err(Failure::Running(error)) if advice::is_internal(&error) => {
                break Err(database(error));
            }
            Err(Failure::Running(error)) => {
                break Err(advice::explain(&error, &query.sql, &tokens));
            }
        }
    };
    let Some(exceeded) = budget.exceeded() else { return answer };
    connection.is_spoilt |= exceeded == Exceeded::Memory;
    answer.map_err(|error| match exceeded {
        Exceeded::Time => QueryError::Timeout,
        Exceeded::Patience => QueryError::Stopped,
        Exceeded::Memory => error,
    })
}

/// Checks what can be seen without SQLite.
fn check_text(query: &Query, tokens: &[Token<'_>]) -> Result<(), QueryError> {
    let views: Vec<&str> = VIEWS.iter().map(|view| view.name).collect();
    let n_tables = text::count_table_expressions(tokens);
    if n_tables > TABLES_MAX {
        return Err(QueryError::Invalid(format!(
            "the query has {n_tables} common table expressions, and can have {TABLES_MAX}; use fewer"
        )));
    }
    if text::expansions(tokens, &views) > EXPANSIONS_MAX {
        return Err(QueryError::Invalid(format!(
            "the query uses views and common table expressions more than {EXPANSIONS_MAX} times, \
             counting those within each other; use fewer"
        )));
    }
    for (name, value) in &query.variables {
        let bytes = match value {
            Value::Text(text) => text.len(),
            Value::Bytes(Data(bytes)) => bytes.len(),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => 0,
            Value::UInt(_) | Value::List(_) | Value::Map(_) => {
                return Err(QueryError::Variable(format!(
                    "the variable `{name}` must be text, a number, true, false or null"
                )));
            }
        };
        if bytes > VALUE_BYTES_MAX {
            return Err(QueryError::TooLarge(format!(
                "the variable `{name}` has {bytes} bytes; at most {VALUE_BYTES_MAX} are allowed"
            )));
        }
    }
    Ok(())
}

/// Returns whether a variable holds a pattern that LIKE accepts.
fn is_short(query: &Query, variable: &str) -> bool {
    let value = query.variables.iter().find(|(name, _)| variable.get(1..) == Some(name.as_str()));
    value.is_some_and(|(_, value)| match value {
        Value::Text(text) => text.len() <= PATTERN_BYTES_MAX,
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => true,
        Value::UInt(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_) => false,
    })
}

/// Runs a query once, with or without the fence.
fn attempt(
    connection: &mut QueryConnection,
    query: &Query,
    tokens: &[Token<'_>],
    used: &[&View],
    fence: Fence,
    budget: &Budget,
) -> Result<QueryAnswer, Failure> {
    let internal = |error| Failure::Final(database(error));
    // Until the views are gone again: a failure may leave some of them, or a transaction.
    let was_spoilt = std::mem::replace(&mut connection.is_spoilt, true);
    let prefix = connection.create_views(used, &query.visible, fence).map_err(internal)?;
    let guard = Guard::new(prefix.clone(), Arc::clone(&connection.existing), used, &query.visible);
    let noticed = guard.noticed();
    let guarded = connection
        .sqlite
        .authorizer(Some(move |context: rusqlite::hooks::AuthContext<'_>| guard.decide(&context)));
    let answer = match guarded {
        Ok(()) => budget.spend(|| answer(connection, query, tokens, fence, &noticed)),
        Err(error) => Err(internal(error)),
    };
    let unguarded = connection.sqlite.authorizer(None::<fn(rusqlite::hooks::AuthContext<'_>) -> _>);
    unguarded.and_then(|()| connection.drop_views(used, &prefix)).map_err(internal)?;
    connection.is_spoilt = was_spoilt;
    answer
}

/// Prepares and runs a query under the authorizer.
fn answer(
    connection: &QueryConnection,
    query: &Query,
    tokens: &[Token<'_>],
    fence: Fence,
    noticed: &Mutex<Noticed>,
) -> Result<QueryAnswer, Failure> {
    let prepared = connection.sqlite.prepare(&query.sql);
    let noticed = lock(noticed).clone();
    let mut statement = prepared.map_err(|error| match &noticed.refused {
        Some(refused) => advice::refusal(refused, &query.sql, tokens),
        None if advice::is_internal(&error) => database(error),
        None => advice::explain(&error, &query.sql, tokens),
    })?;
    if statement.column_count() == 0 || !statement.readonly() || statement.is_explain() != 0 {
        let message = "a query is one SELECT".to_owned();
        return Err(QueryError::Invalid(message).into());
    }
    let is_long = noticed.reads_long && text::is_nested(tokens);
    if fence == Fence::Open && (noticed.may_fail || is_long) {
        return Err(Failure::NeedsFence);
    }
    weigh(connection, &query.sql)?;
    bind(&mut statement, query, tokens)?;
    rows(&mut statement, query.rows_max)
}

/// Refuses a query that could hold much in memory, by what SQLite compiled it to.
fn weigh(connection: &QueryConnection, sql: &str) -> Result<(), Failure> {
    let mut explain =
        connection.sqlite.prepare(&format!("EXPLAIN {sql}")).map_err(Failure::Running)?;
    let (mut n_temporary, mut n_values) = (0, 0);
    let mut instructions = explain.raw_query();
    while let Some(instruction) = instructions.next().map_err(Failure::Running)? {
        match instruction.get_ref("opcode").ok().and_then(|opcode| opcode.as_str().ok()) {
            Some("OpenEphemeral" | "OpenAutoindex" | "SorterOpen") => n_temporary += 1,
            Some("Concat" | "Function" | "PureFunc" | "AggStep" | "AggStep1" | "AggValue") => {
                n_values += 1;
            }
            _ => {}
        }
    }
    if n_temporary > TEMPORARY_MAX {
        return Err(QueryError::Invalid(format!(
            "the query needs {n_temporary} temporary tables and sorts, and can have \
             {TEMPORARY_MAX}; use fewer subqueries, IN lists, DISTINCT, GROUP BY and ORDER BY"
        ))
        .into());
    }
    if n_values > VALUES_MAX {
        return Err(QueryError::Invalid(format!(
            "the query computes {n_values} values for a row, and can have {VALUES_MAX}; select \
             fewer columns, or name them instead of `*`"
        ))
        .into());
    }
    Ok(())
}

fn bind(
    statement: &mut Statement<'_>,
    query: &Query,
    tokens: &[Token<'_>],
) -> Result<(), QueryError> {
    let wrong = |message: String| Err(QueryError::Variable(message));
    let mut used = Vec::new();
    for index in 1..=statement.parameter_count() {
        let written = statement.parameter_name(index).unwrap_or("?").to_owned();
        let Some(name) = written.strip_prefix(':') else {
            return wrong(format!("write the variable `{written}` as `:name`"));
        };
        let Some((name, value)) = query.variables.iter().find(|(known, _)| known == name) else {
            return wrong(format!("the query uses `:{name}`; give it in `variables`"));
        };
        let bound = statement.raw_bind_parameter(index, SqlValue(value));
        bound.map_err(database)?;
        used.push(name);
    }
    let is_used = |name: &String| used.contains(&name);
    match query.variables.iter().find(|(name, _)| !is_used(name)) {
        None => Ok(()),
        Some((name, _)) => {
            let in_text = tokens.iter().any(|token| {
                token.kind == TokenKind::Text && token.text.contains(&format!(":{name}"))
            });
            let hint = if in_text { "; it stands inside a text" } else { "" };
            wrong(format!("the query does not use the variable `{name}`{hint}"))
        }
    }
}

fn rows(statement: &mut Statement<'_>, rows_max: usize) -> Result<QueryAnswer, Failure> {
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut sorted: Vec<&String> = names.iter().collect();
    sorted.sort();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(QueryError::Invalid(format!(
            "two columns of the answer have the name `{}`; rename one with AS",
            pair[0]
        ))
        .into());
    }
    let mut answer = QueryAnswer { rows: Vec::new(), is_truncated: false };
    let mut bytes = 0;
    let mut found = statement.raw_query();
    while let Some(row) = found.next().map_err(Failure::Running)? {
        let mut entries = Vec::with_capacity(names.len());
        for (index, name) in names.iter().enumerate() {
            let value = row.get_ref(index).map_err(Failure::Running)?;
            bytes += name.len() + VALUE_OVERHEAD + len(value);
            entries.push((name.clone(), taken(name, value)?));
        }
        if answer.rows.len() == rows_max || bytes > ROWS_BYTES_MAX {
            answer.is_truncated = true;
            break;
        }
        answer.rows.push(Value::Map(entries));
    }
    Ok(answer)
}

fn len(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => 0,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
    }
}

fn taken(name: &str, value: ValueRef<'_>) -> Result<Value, QueryError> {
    Ok(match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Int(number),
        ValueRef::Real(number) if number.is_finite() => Value::Float(number),
        ValueRef::Real(_) => {
            let message = format!("the column `{name}` has a number that is not finite");
            return Err(QueryError::Invalid(message));
        }
        ValueRef::Text(bytes) => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Blob(bytes) => Value::Bytes(Data(bytes.to_vec().into())),
    })
}

/// A variable, as SQLite binds it.
struct SqlValue<'a>(&'a Value);

impl rusqlite::ToSql for SqlValue<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = match self.0 {
            Value::Bool(value) => ValueRef::Integer(i64::from(*value)),
            Value::Int(value) => ValueRef::Integer(*value),
            Value::Float(value) => ValueRef::Real(*value),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Bytes(Data(bytes)) => ValueRef::Blob(bytes),
            // The others were refused before.
            Value::Null | Value::UInt(_) | Value::List(_) | Value::Map(_) => ValueRef::Null,
        };
        Ok(ToSqlOutput::Borrowed(value))
    }
}

fn database(error: rusqlite::Error) -> QueryError {
    let source: Cause = Arc::new(error);
    QueryError::Database { source }
}
