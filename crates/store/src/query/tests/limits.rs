//! What a query may take: time, memory, and the patience of the writer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use ringback_proto::ids::BlobHash;
use ringback_proto::record::Record;
use rusqlite::config::DbConfig;

use super::super::{SQL_BYTES_MAX, StopSignal, VALUE_BYTES_MAX, views};
use super::*;
use crate::{Limits, Store};

/// Never ends by itself.
const ENDLESS: &str =
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";

/// Rule: a query ends after a second, or when its caller leaves.
#[test]
fn a_query_ends_in_time_and_when_its_caller_stops_it() {
    let mut world = World::new();
    assert!(matches!(world.ask(ENDLESS), Err(QueryError::Timeout)));
    let query = Query { sql: ENDLESS.to_owned(), variables: vec![], rows_max: 1, visible: mine() };
    let stopped = run::run(&mut world.connection, &query, Box::new(|| true));
    assert!(matches!(stopped, Err(QueryError::Stopped)), "{stopped:?}");
    assert_eq!(world.values("SELECT count(*) FROM artifacts"), ["Int(3)"]);
}

/// Rule: the number and the size of rows are bounded, and the answer says so.
#[test]
fn rows_over_the_limit_and_over_256_kib_are_left_off() {
    let mut world = World::new();
    let ask = |world: &mut World, sql: &str, rows_max| {
        let query = Query { sql: sql.to_owned(), variables: vec![], rows_max, visible: mine() };
        let answer = run::run(&mut world.connection, &query, Box::new(|| false)).unwrap();
        (answer.rows.len(), answer.is_truncated)
    };
    assert_eq!(ask(&mut world, "SELECT id FROM artifacts", 3), (3, false));
    assert_eq!(ask(&mut world, "SELECT id FROM artifacts", 2), (2, true));
    let large = "SELECT printf('%60000c', 'x') AS x FROM help";
    assert_eq!(ask(&mut world, large, 1000), (4, true));
}

/// Rule: memory does not grow with a query.
#[test]
fn a_query_that_would_hold_much_in_memory_is_refused() {
    let mut world = World::new();
    let columns: Vec<String> =
        (0..90).map(|n| format!("upper(lower(upper(:v))) AS c{n}")).collect();
    let many = format!("SELECT {}", columns.join(", "));
    let given = [("v", Value::Text("x".repeat(60_000)))];
    let refused = world.ask_as(mine(), &many, &given).unwrap_err().to_string();
    assert!(refused.contains("values for a row"), "{refused}");
    let sorts: Vec<String> =
        (0..8).map(|n| format!("(SELECT x FROM (SELECT DISTINCT tool AS x FROM jobs ORDER BY 1 LIMIT 1) t{n}) AS c{n}")).collect();
    let refused = world.ask(&format!("SELECT {}", sorts.join(", "))).unwrap_err().to_string();
    assert!(refused.contains("temporary tables"), "{refused}");
}

/// Rule: SQLite copies expressions into each other while it compiles a query; that takes no more memory
/// than anything else.
#[test]
fn a_query_that_grows_while_it_is_compiled_is_refused() {
    let nested = |select: &str, n: usize| {
        (0..n).fold("SELECT length(about) AS x FROM help".to_owned(), |inner, _| {
            format!("SELECT {select} AS x FROM ({inner})")
        })
    };
    let sum = |of: &str| vec![of; 40].join("+");
    let tables = format!(
        "WITH a(x) AS (SELECT length(about) FROM help), b(x) AS (SELECT {0} FROM a), \
         c(x) AS (SELECT {0} FROM b), d(x) AS (SELECT {0} FROM c), e(x) AS (SELECT {0} FROM d) \
         SELECT {0} AS x FROM e",
        sum("x")
    );
    let pushed = format!("SELECT * FROM ({}) WHERE x = 1", nested("DISTINCT x+x", 22));
    for sql in [nested("x+x", 22), tables, pushed] {
        let mut world = World::new();
        let refused = world.ask(&sql);
        let Err(QueryError::TooLarge(message)) = &refused else { panic!("{sql}: {refused:?}") };
        assert!(message.contains("16 MiB"), "{message}");
        assert!(world.connection.is_spoilt, "the connection is not used again");
        assert_eq!(world.values("SELECT count(*) FROM artifacts"), ["Int(3)"]);
    }
    let mut world = World::new();
    assert_eq!(world.values(&nested("x+x", 6)).len(), views::help().count());
    assert!(!world.connection.is_spoilt);
}

/// Rule: the second also holds for functions that take long, one after the other. Not a measurement:
/// without the rule these take more than ten seconds.
#[test]
fn functions_of_long_texts_are_interrupted() {
    let mut world = World::new();
    let texts = "WITH t AS MATERIALIZED \
        (SELECT printf('%*c', 50000 + length(about), 'a') AS s FROM help) SELECT count(*) FROM t WHERE ";
    let glob = format!("s GLOB '*{}c'", "[a-b]".repeat(50));
    let like = format!("s LIKE '%{}c'", "_a".repeat(120));
    let instr = "instr(s, printf('%*c', 25000, 'a') || 'b') > 0";
    for condition in [glob.as_str(), like.as_str(), instr] {
        let sql = format!("{texts}{}", vec![condition; 45].join(" OR "));
        let started = Instant::now();
        let asked = world.ask(&sql);
        assert!(started.elapsed() < Duration::from_secs(4), "{sql}: {:?}", started.elapsed());
        let is_expected = asked.is_ok() || matches!(asked, Err(QueryError::Timeout));
        assert!(is_expected, "{sql}: {asked:?}");
    }
}

/// Rule: every limit of the page holds.
#[test]
fn what_exceeds_a_limit_is_refused() {
    let mut world = World::new();
    let deep = format!("SELECT {}1{} AS x", "1+(".repeat(60), ")".repeat(60));
    let parts: Vec<_> = (0..11).map(|n| format!("SELECT {n} AS x")).collect();
    let tables: Vec<_> = (0..900).map(|n| format!("t{n} as(t{})", n + 1)).collect();
    let long = format!("SELECT 1 AS x -- {}", "x".repeat(SQL_BYTES_MAX));
    let pattern = format!("SELECT 'x' LIKE '{}' AS x", "x".repeat(257));
    for (sql, expected) in [
        (deep, "maximum depth 50"),
        (parts.join(" UNION ALL "), "too many terms in compound SELECT"),
        (format!("WITH {} SELECT 1", tables.join(",")), "900 common table expressions"),
        (long, "at most 16384 bytes"),
        (pattern, "pattern too complex"),
    ] {
        let error = world.ask(&sql).unwrap_err().to_string();
        assert!(error.contains(expected), "{}: {error}", &sql[..100]);
    }
    let given = [("v", Value::Text("x".repeat(VALUE_BYTES_MAX + 1)))];
    let error = world.ask_as(mine(), "SELECT :v AS v", &given).unwrap_err().to_string();
    assert!(error.contains("at most 65536"), "{error}");
    let defensive = world.connection.sqlite.db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE);
    assert!(defensive.unwrap());
}

/// Rule: what one query leaves behind, the next does not find.
#[test]
fn a_stopped_query_leaves_no_view_and_no_transaction() {
    let mut world = World::new();
    let names: Vec<_> =
        VIEWS.iter().map(|view| format!("{} AS t_{}", view.name, view.name)).collect();
    let sql = format!("SELECT 1 AS x FROM {}", names.join(", "));
    for n_looks in 0..20 {
        let looks = std::cell::Cell::new(0);
        let stop = move || looks.replace(looks.get() + 1) >= n_looks;
        let query = Query { sql: sql.clone(), variables: vec![], rows_max: 1, visible: mine() };
        run::run(&mut world.connection, &query, Box::new(stop)).ok();
        assert!(world.connection.sqlite.is_autocommit());
        let views = "SELECT count(*) FROM temp.sqlite_schema WHERE type = 'view'";
        let n_views = world.connection.sqlite.query_row(views, [], |row| row.get::<_, i64>(0));
        assert_eq!(n_views.unwrap(), 0);
        assert_eq!(world.values("SELECT count(*) FROM artifacts"), ["Int(3)"]);
    }
}

/// A store in a directory of its own.
fn store(log_bytes_max: u64) -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { log_bytes_max, ..Limits::default() };
    let store = Store::open_with(Utf8Path::from_path(dir.path()).unwrap(), limits).unwrap();
    (dir, store)
}

fn ask(store: &Store, sql: &str, stop: StopSignal) -> Receiver<Result<QueryAnswer, QueryError>> {
    let (sender, receiver) = channel();
    let query =
        Query { sql: sql.to_owned(), variables: vec![], rows_max: 1, visible: RowVisibility::All };
    let done = Box::new(move |answer| {
        sender.send(answer).ok();
    });
    store.query(query, stop, done);
    receiver
}

/// Uploads something, and waits until the disk has it.
fn upload(store: &Store, n: u32) {
    let mut bytes = [0; 32];
    bytes[..4].copy_from_slice(&n.to_le_bytes());
    let record = Record::BlobUploaded {
        hash: BlobHash::from_bytes(bytes),
        owner: PrincipalId::Local,
        project: None,
        session: None,
        mime_type: "a/b".to_owned(),
        at: 1,
    };
    let (sender, receiver) = channel();
    let done = Box::new(move |outcome| sender.send(outcome).unwrap());
    store.commit(vec![record], done).unwrap();
    receiver.recv().unwrap().unwrap();
}

/// Rule: queries hold up neither the writer nor other reads.
#[test]
fn beside_two_endless_queries_the_store_writes_and_reads() {
    let (_dir, store) = store(Limits::default().log_bytes_max);
    let looked = [Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false))];
    let stop = Arc::new(AtomicBool::new(false));
    let answers: Vec<_> = looked
        .iter()
        .map(|looked| {
            let (looked, stop) = (Arc::clone(looked), Arc::clone(&stop));
            let signal = move || {
                looked.store(true, Ordering::Relaxed);
                stop.load(Ordering::Relaxed)
            };
            ask(&store, ENDLESS, Box::new(signal))
        })
        .collect();
    while !looked.iter().all(|looked| looked.load(Ordering::Relaxed)) {
        std::thread::yield_now();
    }
    for n in 0..10 {
        upload(&store, n);
        assert_eq!(
            store.artifacts(&RowVisibility::All, Default::default(), None, 1).unwrap().items,
            []
        );
    }
    stop.store(true, Ordering::Relaxed);
    for answer in answers {
        let ended = answer.recv().unwrap();
        assert!(matches!(ended, Err(QueryError::Stopped | QueryError::Timeout)), "{ended:?}");
    }
}

/// Rule: query threads run when nothing else does.
#[cfg(target_os = "linux")]
#[test]
fn query_threads_run_at_idle_priority() {
    /// The place of the policy in `stat`, after the name; and the policy.
    const POLICY: (usize, &str) = (38, "5");
    let (_dir, store) = store(Limits::default().log_bytes_max);
    ask(&store, "SELECT 1 AS x", Box::new(|| false)).recv().unwrap().unwrap();
    let mut policies = Vec::new();
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let stat = std::fs::read_to_string(task.unwrap().path().join("stat")).unwrap_or_default();
        if let Some((name, fields)) = stat.rsplit_once(") ")
            && name.contains("store-query-")
        {
            policies.push(fields.split(' ').nth(POLICY.0).unwrap().to_owned());
        }
    }
    assert!(policies.iter().any(|policy| policy == POLICY.1), "{policies:?}");
}

/// Rule: whatever a caller does with its answer, the next query runs.
#[test]
fn a_panic_beside_a_query_does_not_take_its_thread() {
    let (_dir, store) = store(Limits::default().log_bytes_max);
    for _ in 0..4 {
        let query = Query {
            sql: "SELECT 1 AS x".to_owned(),
            variables: vec![],
            rows_max: 1,
            visible: mine(),
        };
        let (sender, receiver) = channel::<()>();
        let done = Box::new(move |_| {
            let _sender = sender;
            panic!("on purpose");
        });
        store.query(query, Box::new(|| false), done);
        assert!(receiver.recv().is_err());
        let panics: StopSignal = Box::new(|| panic!("on purpose"));
        assert!(matches!(ask(&store, ENDLESS, panics).recv().unwrap(), Err(QueryError::Stopped)));
    }
    assert_eq!(
        flat(&ask(&store, "SELECT 1 AS x", Box::new(|| false)).recv().unwrap().unwrap()),
        ["Int(1)"]
    );
}

/// Rule: queries do not hold up a checkpoint, and their threads start with the first one.
#[test]
fn a_query_that_finds_the_log_large_has_it_emptied() {
    let (dir, store) = store(256 << 10);
    let count = || {
        let answer = ask(&store, "SELECT count(*) AS n FROM artifacts", Box::new(|| false));
        flat(&answer.recv().unwrap().unwrap())
    };
    let log = || std::fs::metadata(dir.path().join("ringback.db-wal")).unwrap().len();
    assert_eq!(count(), ["Int(0)"]);
    let mut n = 0;
    while log() <= 256 << 10 {
        n += 1;
        upload(&store, n);
    }
    assert_eq!(count(), ["Int(0)"]);
    assert_eq!(log(), 0);
}
