//! Queries over the rows of two owners. What the other owner has contains a canary.

mod against_lists;
mod limits;

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use ringback_proto::ids::{ProjectId, SessionId, TokenId};
use ringback_proto::principal::PrincipalId;
use ringback_proto::value::Value;
use rusqlite::Connection;

use super::connection::QueryConnection;
use super::views::{Fence, VIEWS, View};
use super::{Query, QueryAnswer, QueryError, run};
use crate::read::page::RowVisibility;
use crate::schema;

/// In every text and number of the other owner.
const CANARY: &str = "canary";
const NUMBER: i64 = 7_070_707;
/// A project of the other owner.
const SHARED: &str = "x'0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c'";

/// A database with rows of two owners, and a connection for queries.
struct World {
    _dir: tempfile::TempDir,
    path: Utf8PathBuf,
    connection: QueryConnection,
}

fn owner() -> PrincipalId {
    PrincipalId::Token(TokenId::from_random([1; 16]))
}

fn mine() -> RowVisibility {
    RowVisibility::Owner { owner: owner(), projects: Vec::new() }
}

/// The queries that are also run against a daemon.
const HOSTILE: &str = include_str!("../../../../tests/attack/queries.sql");

/// Fills a database: three artifacts of the reader, three of another owner, with everything that
/// belongs to them.
fn fill(path: &Utf8Path) -> Connection {
    let n_hidden = 3;
    let writer = schema::open_writer(path).unwrap();
    writer.pragma_update(None, "foreign_keys", false).unwrap();
    let own = "x'01010101010101010101010101010101'";
    let other = "x'02020202020202020202020202020202'";
    for n in 1..=3 + n_hidden {
        let is_mine = n <= 3;
        let who = if is_mine { own } else { other };
        let text = if is_mine { "mine" } else { CANARY };
        let number = if is_mine { 10 } else { NUMBER };
        // {"k": text} as MsgPack.
        let metadata = format!("81a16b{:02x}{}", 0xa0 + text.len(), hex(text));
        let project = if n % 2 == 0 { "x'0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a'" } else { "NULL" };
        writer
            .execute_batch(&format!(
                "INSERT INTO artifact (n, id, content_hash, mime_type, size, owner, project, creator, parent,
                     created_at, tags, metadata, tool, job, session)
                 VALUES ({n}, unhex(printf('%032x', {n})), zeroblob(32), 'audio/midi', {number}, {who},
                     {project}, '{text}', NULL, {number} + {n}, x'90', x'{metadata}', '{text}', NULL, NULL);
                 INSERT INTO artifact_tag (n, tag) VALUES ({n}, '{text}');
                 INSERT INTO artifact_source (artifact, n, position, source, source_hash, is_hidden, role)
                 VALUES (unhex(printf('%032x', {n})), {n}, 0, unhex(printf('%032x', 7 - {n})), zeroblob(32), {n} = 1, '{text}');
                 INSERT INTO annotation (id, artifact, position, message, source, vibe, created_at)
                 VALUES (unhex(printf('%032x', {n})), unhex(printf('%032x', {n})), 0, '{text}', '{text}', '{text}', {number});
                 INSERT INTO job (id, owner, project, state, tool, created_at, request)
                 VALUES (unhex(printf('%032x', {n})), {who}, {project}, 3, '{text}', {number}, CAST('{text}' AS BLOB));
                 INSERT INTO identity (n, owner, id, name, name_small, created_at)
                 VALUES ({n}, {who}, '{text}{n}', '{text}', '{text}', {number});
                 INSERT INTO identity_hint VALUES ({n}, '{text}', '{text}', 1.0, {number});
                 INSERT INTO identity_tag VALUES ({n}, '{text}', '{text}', {number});
                 INSERT INTO identity_connection (owner, from_identity, from_port, to_identity, to_port, transport, created_at)
                 VALUES ({who}, {n}, '{text}', {n}, '{text}', '{text}', {number});
                 INSERT INTO garden_region (id, owner, position, duration, repeat, state, artifact, content_hash, mime_type,
                     approval, gain_db, pan, offset_seconds, fade_in, fade_out, crossfade, name, tags, created_at)
                 VALUES (unhex(printf('%032x', {n})), {who}, 0, 960, 1, 'ready', unhex(printf('%032x', {n})), zeroblob(32),
                     '{text}', 'auto', {number}, 0.0, 0.0, 0, 0, 0, '{text}', x'90', 5);
                 INSERT INTO garden_heard (region, artifact, from_tick, to_tick, at)
                 VALUES (unhex(printf('%032x', {n})), unhex(printf('%032x', {n})), 0, 960, 5);
                 INSERT INTO token (id, name, secret_hash, public_key, level, created_at)
                 VALUES (unhex(printf('%032x', {n})), '{CANARY}', CAST('{CANARY}{n}' AS BLOB), randomblob(32), 2, {NUMBER});",
            ))
            .unwrap();
    }
    writer
        .execute_batch(&format!(
            "INSERT INTO project (id, name, name_small, owner, created_at)
             VALUES (x'0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b', '{CANARY}', '{CANARY}', {other}, 1);
             INSERT INTO workspace (id, project, created_at) VALUES (zeroblob(16), x'0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b', 1);"
        ))
        .unwrap();
    // Reader and other owner share a project, and with it connections to identities outside of it.
    writer
        .execute_batch(&format!(
            "INSERT INTO identity (n, owner, project, id, name, name_small, created_at)
             VALUES (7, {other}, {SHARED}, 'shared', 'shared', 'shared', 5);
             INSERT INTO identity_connection (owner, project, from_identity, from_port, to_identity, to_port, transport, created_at)
             VALUES ({other}, {SHARED}, 7, 'a', 5, 'b', '', 5), ({other}, {SHARED}, 5, 'c', 7, 'd', '', 5),
                 ({other}, {SHARED}, 7, 'e', 7, 'f', '', 5);",
        ))
        .unwrap();
    for n in 1..=n_hidden {
        writer
            .execute_batch(&format!(
                "INSERT INTO session (id, project, workspace, owner, root, depth, agent, state, created_at, updated_at)
                 VALUES (unhex(printf('%032x', {n})), x'0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b', zeroblob(16), {other},
                     zeroblob(16), 0, '{CANARY}', 2, {NUMBER}, 1);"
            ))
            .unwrap();
    }
    writer
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

impl World {
    fn new() -> Self {
        Self::with("")
    }

    /// A world in which the reader sees the same, and what it does not see is not there.
    fn without_hidden() -> Self {
        Self::with(
            "DELETE FROM artifact_tag WHERE n > 3; DELETE FROM artifact_source WHERE n > 3;
             DELETE FROM annotation WHERE n > 3; DELETE FROM artifact WHERE n > 3;
             DELETE FROM job WHERE n > 3; DELETE FROM identity WHERE n > 3; DELETE FROM session;
             DELETE FROM identity_hint WHERE identity > 3; DELETE FROM identity_tag WHERE identity > 3;
             DELETE FROM identity_connection WHERE n > 3; DELETE FROM token; DELETE FROM project;
             UPDATE garden_region SET name = NULL, artifact = NULL, mime_type = NULL, gain_db = 0 WHERE n > 3;
             UPDATE garden_heard SET artifact = NULL WHERE n > 3;",
        )
    }

    fn with(changes: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(dir.path()).unwrap().join("test.db");
        fill(&path).execute_batch(changes).unwrap();
        let connection = QueryConnection::open(&path).unwrap();
        Self { _dir: dir, path, connection }
    }

    fn ask(&mut self, sql: &str) -> Result<QueryAnswer, QueryError> {
        self.ask_as(mine(), sql, &[])
    }

    fn ask_as(
        &mut self,
        visible: RowVisibility,
        sql: &str,
        variables: &[(&str, Value)],
    ) -> Result<QueryAnswer, QueryError> {
        let variables =
            variables.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let query = Query { sql: sql.to_owned(), variables, rows_max: 1000, visible };
        run::run(&mut self.connection, &query, Box::new(|| false))
    }

    /// Returns the values of a query, one after the other, as text.
    fn values(&mut self, sql: &str) -> Vec<String> {
        flat(&self.ask(sql).unwrap_or_else(|error| panic!("{sql}: {error}")))
    }
}

fn flat(answer: &QueryAnswer) -> Vec<String> {
    let mut found = Vec::new();
    for row in &answer.rows {
        let Value::Map(entries) = row else { panic!("{row:?}") };
        found.extend(entries.iter().map(|(_, value)| match value {
            Value::Text(text) => text.clone(),
            Value::Null => "NULL".to_owned(),
            Value::Bool(_)
            | Value::Int(_)
            | Value::UInt(_)
            | Value::Float(_)
            | Value::Bytes(_)
            | Value::List(_)
            | Value::Map(_) => format!("{value:?}"),
        }));
    }
    found
}

#[test]
fn a_reader_gets_its_own_rows_and_an_administrator_all() {
    let mut world = World::new();
    for view in
        VIEWS.iter().filter(|view| !["regions", "heard", "tempo", "sessions"].contains(&view.name))
    {
        let sql = format!("SELECT count(*) FROM {}", view.name);
        assert_eq!(world.values(&sql), ["Int(3)"], "{sql}");
        let all = world.ask_as(RowVisibility::All, &sql, &[]).unwrap();
        let n = match view.name {
            "identities" => 7,
            "connections" => 9,
            _ => 6,
        };
        assert_eq!(flat(&all), [format!("Int({n})")], "{sql}");
        // The second project of three artifacts is of the other owner.
        let project = ProjectId::from_random([10; 16]);
        let both = RowVisibility::Owner { owner: owner(), projects: vec![project] };
        let n = if ["artifacts", "artifact_tags", "sources", "annotations", "jobs"]
            .contains(&view.name)
        {
            5
        } else {
            3
        };
        assert_eq!(flat(&world.ask_as(both, &sql, &[]).unwrap()), [format!("Int({n})")], "{sql}");
    }
    assert_eq!(world.values("SELECT count(*), count(name) FROM regions"), ["Int(6)", "Int(3)"]);
    assert_eq!(
        world.values("SELECT count(*), count(artifact_id) FROM heard"),
        ["Int(6)", "Int(3)"]
    );
    assert_eq!(world.values("SELECT count(*) FROM sessions"), ["Int(0)"]);
    let id = "art_00000000000000000000000000000001";
    assert_eq!(
        world.values(&format!("SELECT metadata FROM artifacts WHERE id = '{id}'")),
        ["{\"k\":\"mine\"}"]
    );
    assert_eq!(world.values("SELECT DISTINCT metadata ->> '$.k' AS k FROM artifacts"), ["mine"]);
}

/// Rule: a reader of a project sees no identity outside of it, also not as the end of a connection.
#[test]
fn a_connection_to_an_identity_that_the_reader_may_not_see_is_not_shown() {
    let mut world = World::new();
    let projects = vec![ProjectId::from_random([12; 16])];
    let shared = RowVisibility::Owner { owner: owner(), projects };
    let sql =
        "SELECT from_identity, from_port, to_identity FROM connections WHERE from_port <> 'mine'";
    let seen = world.ask_as(shared.clone(), sql, &[]).unwrap();
    assert_eq!(flat(&seen), ["shared", "e", "shared"]);
    let sql = "SELECT count(*) FROM connections";
    assert_eq!(flat(&world.ask_as(shared, sql, &[]).unwrap()), ["Int(4)"]);
}

/// The hostile queries, each with the comment above its section.
fn hostile() -> Vec<(&'static str, String)> {
    let id = "art_00000000000000000000000000000005";
    let mut section = "";
    let mut queries = Vec::new();
    for paragraph in HOSTILE.split("\n\n").map(str::trim) {
        match paragraph.strip_prefix("-- ") {
            Some(comment) => section = comment,
            None => queries.push((section, paragraph.replace("{id}", id))),
        }
    }
    queries
}

/// Sections of which nothing is allowed to anyone.
const REFUSED: &[&str] = &[
    "Quoted and qualified names.",
    "The schema of SQLite.",
    "Table-valued functions and virtual tables.",
    "Writing, files, pragmas, other databases.",
    "Not one statement.",
];

/// The outcome of a query as a reader sees it.
fn outcome(asked: &Result<QueryAnswer, QueryError>) -> String {
    match asked {
        Ok(answer) => format!("{:?} {}", answer.rows, answer.is_truncated),
        Err(error @ QueryError::Database { .. }) => panic!("{error:?}"),
        Err(error) => error.to_string(),
    }
}

/// Readers that see the same rows: an owner, one with a project of its own, the key of a session.
fn readers() -> [RowVisibility; 3] {
    let projects = vec![ProjectId::from_random([13; 16])];
    let session = SessionId::from_random([14; 16]);
    [
        mine(),
        RowVisibility::Owner { owner: owner(), projects },
        RowVisibility::Tree { owner: owner(), session },
    ]
}

/// Rule: no row, count or error depends on what the caller may not see.
#[test]
fn a_hostile_query_reveals_no_row_no_count_and_no_error_of_another_owner() {
    let (mut world, mut empty) = (World::new(), World::without_hidden());
    let watcher = schema::open_reader(&world.path).unwrap();
    let version =
        || watcher.query_row("PRAGMA data_version", [], |row| row.get::<_, i64>(0)).unwrap();
    let before = (std::fs::read(&world.path).unwrap(), version());
    let queries = hostile();
    assert!(queries.len() > 120, "{}", queries.len());
    for (section, sql) in &queries {
        // What takes its whole second is asked once.
        let readers = readers();
        let readers = if section.starts_with("Bombs") { &readers[..1] } else { &readers[..] };
        for reader in readers {
            let started = Instant::now();
            let asked = world.ask_as(reader.clone(), sql, &[]);
            assert!(started.elapsed() < Duration::from_secs(5), "{sql}: {:?}", started.elapsed());
            let seen = outcome(&asked);
            assert_eq!(seen, outcome(&empty.ask_as(reader.clone(), sql, &[])), "{sql}");
            assert!(!seen.contains("inner_") || sql.contains("inner_"), "{sql}: {seen}");
            if !sql.contains(CANARY) {
                let number = NUMBER.to_string();
                assert!(!seen.contains(CANARY) && !seen.contains(&number), "{sql}: {seen}");
            }
        }
        if REFUSED.contains(section) {
            for reader in readers.iter().chain([&RowVisibility::All]) {
                let asked = world.ask_as(reader.clone(), sql, &[]);
                assert!(matches!(asked, Err(QueryError::Invalid(_))), "{sql}: {asked:?}");
            }
        }
    }
    for section in REFUSED {
        assert!(queries.iter().any(|(of, _)| of == section), "no query in {section}");
    }
    assert_eq!((std::fs::read(&world.path).unwrap(), version()), before, "a query wrote");
    assert_eq!(world.values("SELECT count(*) FROM artifacts"), ["Int(3)"]);
}

/// Rule: the fence is what keeps errors about hidden rows back; without it they show.
#[test]
fn without_the_fence_an_error_would_tell_of_a_hidden_row() {
    let mut world = World::new();
    let sql = "SELECT count(*) FROM annotations \
               WHERE abs(CASE WHEN message = 'canary' THEN -9223372036854775807 - 1 ELSE 1 END) = 1";
    assert_eq!(world.values(sql), ["Int(3)"]);
    let all: Vec<&View> = VIEWS.iter().collect();
    for (fence, fails) in [(Fence::Open, true), (Fence::Closed, false)] {
        let prefix = world.connection.create_views(&all, &mine(), fence).unwrap();
        let ran = world.connection.sqlite.query_row(sql, [], |row| row.get::<_, i64>(0));
        assert_eq!(ran.is_err(), fails, "{fence:?}: {ran:?}");
        world.connection.drop_views(&all, &prefix).unwrap();
    }
}

/// Random numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % n
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

const TABLES: &[&str] = &[
    "artifacts",
    "artifacts",
    "artifacts",
    "annotations",
    "annotations",
    "artifact_tags",
    "sources",
    "jobs",
    "sessions",
    "identities",
    "hints",
    "identity_tags",
    "connections",
    "regions",
    "tempo",
    "heard",
    "help",
    "artifact",
    "main.artifact",
    "token",
    "job",
    "session",
    "sqlite_schema",
    "artifact_list",
    "identity",
    "upload",
    "t",
    "artifact_words",
];
const COLUMNS: &[&str] = &[
    "id",
    "id",
    "creator",
    "creator",
    "size",
    "created_at",
    "artifact_id",
    "tag",
    "message",
    "vibe",
    "role",
    "metadata",
    "name",
    "tool",
    "state",
    "source_id",
    "parent_id",
    "kind",
    "value",
    "owner",
    "secret_hash",
    "n",
    "id_text",
    "x",
    "a.id",
    "b.id",
    "a.creator",
    "b.created_at",
    "a.owner",
    "count(*)",
    "'canary'",
    "7070707",
    "1",
    "NULL",
    "a.metadata",
];
const FUNCTIONS: &[&str] = &[
    "length",
    "upper",
    "max",
    "min",
    "count",
    "sum",
    "abs",
    "hex",
    "json",
    "json_extract",
    "group_concat",
    "printf",
    "typeof",
    "coalesce",
    "nullif",
    "substr",
    "replace",
    "quote",
    "total",
    "char",
    "unicode",
    "like",
    "as_json",
    "instr",
];
const OPERATORS: &[&str] = &[
    "=", "<>", "<", ">", "AND", "OR", "+", "-", "*", "/", "%", "||", "LIKE", "GLOB", "IS",
    "IS NOT", "->", "->>", "<<",
];

/// An expression over columns that mostly exist.
fn expression(random: &mut Random, scope: &[String], depth: usize) -> String {
    if depth == 0 {
        return if random.below(5) > 0 && !scope.is_empty() {
            scope[random.below(scope.len())].clone()
        } else {
            random.one(COLUMNS).to_owned()
        };
    }
    let inner = |random: &mut Random| {
        let depth = random.below(depth);
        expression(random, scope, depth)
    };
    match random.below(9) {
        0 | 1 => {
            let (left, right) = (inner(random), inner(random));
            format!("({left} {} {right})", random.one(OPERATORS))
        }
        2 => {
            let argument = inner(random);
            format!("{}({argument})", random.one(FUNCTIONS))
        }
        3 => {
            let (first, second) = (inner(random), inner(random));
            format!("{}({first}, {second})", random.one(FUNCTIONS))
        }
        4 => {
            let (when, then) = (inner(random), inner(random));
            format!("CASE WHEN {when} THEN {then} ELSE -9223372036854775807 - 1 END")
        }
        5 => format!("({})", select(random, scope, depth - 1)),
        6 => format!("EXISTS ({})", select(random, scope, depth - 1)),
        7 => {
            let left = inner(random);
            format!("{left} IN ({})", select(random, scope, depth - 1))
        }
        _ => expression(random, scope, 0),
    }
}

fn select(random: &mut Random, outer: &[String], depth: usize) -> String {
    let mut scope = outer.to_vec();
    let mut table = |random: &mut Random, alias: String| {
        let table =
            if random.below(8) == 0 { random.one(TABLES) } else { random.one(&TABLES[..16]) };
        let view = VIEWS.iter().find(|view| view.name == table);
        let columns = view.map_or(&[][..], |view| view.columns);
        scope.extend(columns.iter().map(|column| format!("{alias}.{}", column.name)));
        format!("{table} {alias}")
    };
    let (a, b) = (format!("a{depth}"), format!("b{depth}"));
    let mut from = table(random, a);
    if random.below(3) == 0 {
        let kind = random.one(&["JOIN", "LEFT JOIN", "CROSS JOIN"]);
        let right = table(random, b);
        write!(from, " {kind} {right} ON {}", expression(random, &scope, depth)).unwrap();
    }
    let distinct = if random.below(6) == 0 { "DISTINCT " } else { "" };
    let mut sql =
        format!("SELECT {distinct}{} AS x FROM {from}", expression(random, &scope, depth));
    if random.below(2) == 0 {
        write!(sql, " WHERE {}", expression(random, &scope, depth)).unwrap();
    }
    if random.below(8) == 0 {
        write!(sql, " GROUP BY {}", expression(random, &scope, 0)).unwrap();
    }
    // Without an order, a plan may choose any.
    sql.push_str(" ORDER BY 1");
    if random.below(6) == 0 {
        write!(sql, " LIMIT {}", random.one(&["1", "2", "a0.size", "-1"])).unwrap();
    }
    sql
}

/// Rule: no row, count or error depends on what the caller may not see.
#[test]
fn random_sql_over_every_name_says_the_same_with_and_without_another_owners_rows() {
    let (mut world, mut empty) = (World::new(), World::without_hidden());
    let mut random = Random(0x5eed_0017);
    let (mut n_answers, mut n_rows) = (0, 0);
    for _ in 0..6000 {
        let depth = random.below(4);
        let mut sql = select(&mut random, &[], depth);
        match random.below(8) {
            0 => {
                let name = random.one(TABLES).replace("main.", "");
                sql = format!("WITH {name} AS ({}) {sql}", select(&mut random, &[], depth));
            }
            1 => {
                let more = select(&mut random, &[], depth).replace(" ORDER BY 1", "");
                sql = format!("WITH RECURSIVE t(x) AS (SELECT 1 UNION {more}) {sql}");
            }
            _ => {}
        }
        let asked = world.ask(&sql);
        let seen = outcome(&asked);
        let other = outcome(&empty.ask(&sql));
        assert_eq!(seen, other, "{sql}");
        assert!(!seen.contains("inner_"), "{sql}: {seen}");
        if let Ok(answer) = asked {
            n_answers += 1;
            n_rows += answer.rows.len();
        }
    }
    // Enough of them are SQL for the comparison to mean something.
    assert!(n_answers > 600 && n_rows > 1000, "{n_answers} answers, {n_rows} rows");
}

/// The page whose examples are run.
const PAGE: &str = include_str!("../../../../docs/graph-query.md");

/// The examples of the page, with their variables.
fn examples() -> Vec<(String, Vec<(&'static str, Value)>)> {
    let blocks = PAGE.split("```sql\n").skip(1);
    let example = |block: &'static str| {
        let text = block.split("```").next().unwrap();
        let assigned = text.lines().filter_map(|line| line.strip_prefix("-- :")?.split_once(" = "));
        let variables = assigned.map(|(name, value)| {
            let value = match value.strip_prefix('"') {
                Some(text) => Value::Text(text.trim_end_matches('"').to_owned()),
                None => Value::Int(value.parse().unwrap()),
            };
            (name, value)
        });
        (text.to_owned(), variables.collect())
    };
    blocks.map(example).collect()
}

/// Rule: the cost of an example does not grow with the number of artifacts.
#[test]
fn the_examples_of_the_page_run_and_search_an_index() {
    let mut world = World::new();
    let examples = examples();
    assert!(examples.len() > 8);
    let all: Vec<&View> = VIEWS.iter().collect();
    let projects = vec![ProjectId::from_random([10; 16])];
    let of_project = RowVisibility::Owner { owner: owner(), projects };
    for (sql, variables) in &examples {
        for visible in [mine(), RowVisibility::All, of_project.clone()] {
            world.ask_as(visible.clone(), sql, variables).unwrap_or_else(|e| panic!("{sql}: {e}"));
            let prefix = world.connection.create_views(&all, &visible, Fence::Open).unwrap();
            let explained = format!("EXPLAIN QUERY PLAN {sql}");
            let mut explain = world.connection.sqlite.prepare(&explained).unwrap();
            let steps: Vec<String> =
                explain.raw_query().mapped(|row| row.get("detail")).map(Result::unwrap).collect();
            drop(explain);
            world.connection.drop_views(&all, &prefix).unwrap();
            let is_scan = |step: &&String| {
                let table = step.strip_prefix("SCAN ").and_then(|rest| rest.split(' ').next());
                table.is_some_and(|table| {
                    table != "help" && world.connection.existing.contains(table)
                }) || step.contains("AUTOMATIC")
            };
            let scan = steps.iter().find(is_scan);
            assert!(scan.is_none(), "{sql}\n{visible:?}: {steps:#?}");
        }
        let variable = |name: &str| variables.iter().any(|(known, _)| name == format!(":{known}"));
        let tokens = super::text::tokens(sql);
        assert!(!super::text::may_fail(&tokens, variable), "{sql} reads everything");
    }
}

/// Rule: every view and column is on the page, in the words of `help`.
#[test]
fn the_page_lists_every_view_and_column() {
    let mut table = String::from("| view | column | |\n|---|---|---|\n");
    for (view, column, about) in super::views::help() {
        let column = column.map_or(String::new(), |column| format!("`{column}`"));
        let view = if column.is_empty() { format!("`{view}`") } else { String::new() };
        writeln!(table, "| {view} | {column} | {about} |").unwrap();
    }
    let listed = PAGE.split("<!-- views -->\n").nth(1).unwrap();
    let listed = listed.split("<!-- end of views -->").next().unwrap();
    assert_eq!(listed.trim(), table.trim(), "copy this to docs/graph-query.md:\n{table}");
}

/// Rule: a variable is a value, whatever it contains.
#[test]
fn a_variable_never_becomes_sql() {
    let mut world = World::new();
    let value = "' OR 1 = 1 --";
    let given = [("v", Value::Text(value.to_owned()))];
    let sql = "SELECT :v AS v, count(*) AS n FROM artifacts WHERE creator = :v";
    assert_eq!(flat(&world.ask_as(mine(), sql, &given).unwrap()), [value, "Int(0)"]);
    let wrong = |world: &mut World, sql: &str, variables: &[(&str, Value)]| match world.ask_as(
        mine(),
        sql,
        variables,
    ) {
        Err(QueryError::Variable(message)) => message,
        other => panic!("{sql}: {other:?}"),
    };
    assert!(wrong(&mut world, "SELECT :w AS w", &given).contains(":w"));
    assert!(wrong(&mut world, "SELECT ':v' AS v", &given).contains("inside a text"));
    assert!(wrong(&mut world, "SELECT ?1 AS v", &[]).contains(":name"));
    let list = [("v", Value::List(vec![]))];
    assert!(wrong(&mut world, "SELECT :v AS v", &list).contains("must be text"));
}

/// Rule: an error gives its position and the nearest name.
#[test]
fn an_error_says_where_it_is_and_which_name_was_perhaps_meant() {
    let mut world = World::new();
    for (sql, expected) in [
        (
            "SELECT id,\n  creatr FROM artifacts",
            "line 2, column 3: no column `creatr`; perhaps `creator`",
        ),
        (
            "SELECT * FROM artifact_tag",
            "line 1, column 15: no view `artifact_tag`; perhaps `artifact_tags`",
        ),
        ("SELECT * FROM sesions", "perhaps `sessions`"),
        ("SELECT id FROM artifacts WHERE creator = \"ada\"", "write texts in single quotes"),
        ("SELECT id FORM artifacts", "line 1, column 16: near \"artifacts\": syntax error"),
        ("SELECT random()", "the function `random` is not available"),
        ("SELECT id, id FROM artifacts", "rename one with AS"),
    ] {
        let error = world.ask(sql).unwrap_err().to_string();
        assert!(error.contains(expected), "{sql}: {error}");
    }
}

/// Rule: the connection of queries cannot write, whatever SQL it gets.
#[test]
fn the_connection_is_confined_even_without_the_authorizer() {
    let world = World::new();
    let sqlite = &world.connection.sqlite;
    for sql in [
        "DELETE FROM main.artifact",
        "CREATE TEMP TABLE x (y)",
        "ATTACH ':memory:' AS other",
        "PRAGMA writable_schema = 1; UPDATE sqlite_schema SET sql = ''",
        "SELECT \"a text\"",
    ] {
        assert!(sqlite.execute_batch(sql).is_err(), "{sql}");
    }
    let number = |sql: &str| sqlite.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!((number("PRAGMA query_only"), number("PRAGMA trusted_schema")), (1, 0));
    assert_eq!(number("PRAGMA temp_store"), 1);
}
