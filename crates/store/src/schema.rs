//! Connections and the schema's versions. Migrations only go forward, each in its own transaction
//! together with its version.

use std::sync::Arc;

use camino::Utf8Path;
use rusqlite::{Connection, OpenFlags};

use crate::error::OpenStoreError;
use crate::query;

/// The migrations in order; the version of a database is the number of migrations applied.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001.sql"),
    include_str!("../migrations/0002.sql"),
    include_str!("../migrations/0003.sql"),
    include_str!("../migrations/0004.sql"),
    include_str!("../migrations/0005.sql"),
    include_str!("../migrations/0006.sql"),
    include_str!("../migrations/0007.sql"),
    include_str!("../migrations/0008.sql"),
    include_str!("../migrations/0009.sql"),
    include_str!("../migrations/0010.sql"),
    include_str!("../migrations/0011.sql"),
    include_str!("../migrations/0012.sql"),
    include_str!("../migrations/0013.sql"),
];

/// "RING", so that a database of another program is recognised.
const APPLICATION_ID: i32 = 0x5249_4e47;

/// Enough for all statements of one connection.
const STATEMENTS_MAX: usize = 64;

/// Pages in the log before it is copied back (16 MiB): few enough for a quick copy, many enough to
/// make the syncs of a copy rare.
const CHECKPOINT_PAGES: i64 = 4096;

/// The page cache of the writer: new ids are random, so inserts touch all of an index. Allocated
/// only as the database grows.
const CACHE_KIB: i64 = 16 << 10;

/// Opens the connection that writes, and migrates the schema.
pub(crate) fn open_writer(path: &Utf8Path) -> Result<Connection, OpenStoreError> {
    open_migrated(path, MIGRATIONS)
}

/// Opens a connection that only reads.
pub(crate) fn open_reader(path: &Utf8Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = open(path, flags)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// Opens a connection. The budget of queries must be there before the first.
pub(crate) fn open(path: &Utf8Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    query::install_budget();
    Connection::open_with_flags(path, flags)
}

fn open_migrated(path: &Utf8Path, migrations: &[&str]) -> Result<Connection, OpenStoreError> {
    let failed = |source: rusqlite::Error| OpenStoreError::Database {
        path: path.to_owned(),
        source: Arc::new(source),
    };
    let mut connection = connect(path).map_err(failed)?;
    let found = version(&connection).map_err(failed)?;
    let newest = u32::try_from(migrations.len()).unwrap_or(u32::MAX);
    if application_id(&connection).map_err(failed)? != if found == 0 { 0 } else { APPLICATION_ID } {
        return Err(OpenStoreError::NotOurs { path: path.to_owned() });
    }
    if found > newest {
        return Err(OpenStoreError::TooNew { path: path.to_owned(), found, newest });
    }
    // Only now: a file that may belong to a newer build must not be changed before.
    configure(&connection).map_err(failed)?;
    for (version, sql) in (1_u32..).zip(migrations).skip(found as usize) {
        migrate(&mut connection, version, sql).map_err(failed)?;
    }
    Ok(connection)
}

fn connect(path: &Utf8Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = open(path, flags)?;
    // There is no other writer; waiting could only hide one.
    connection.busy_timeout(std::time::Duration::ZERO)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    Ok(connection)
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    // Every commit is synced: what was acknowledged must survive a power failure.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    // Savepoints keep their undo pages in memory instead of a file.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update_and_check(None, "wal_autocheckpoint", CHECKPOINT_PAGES, |_| Ok(()))
}

fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn application_id(connection: &Connection) -> rusqlite::Result<i32> {
    connection.pragma_query_value(None, "application_id", |row| row.get(0))
}

fn migrate(connection: &mut Connection, version: u32, sql: &str) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    transaction.execute_batch(sql)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", version)?;
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir() -> (tempfile::TempDir, camino::Utf8PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(dir.path()).unwrap().join("test.db");
        (dir, path)
    }

    const ONE: &str = "CREATE TABLE a (x INTEGER); INSERT INTO a VALUES (7);";
    const TWO: &str = "ALTER TABLE a ADD COLUMN y INTEGER; UPDATE a SET y = x + 1;";

    #[test]
    fn an_old_database_is_brought_forward_and_keeps_its_rows() {
        let (_guard, path) = dir();
        drop(open_migrated(&path, &[ONE]).unwrap());
        for _ in 0..2 {
            let connection = open_migrated(&path, &[ONE, TWO]).unwrap();
            assert_eq!(version(&connection).unwrap(), 2);
            let y: i64 = connection.query_row("SELECT y FROM a", [], |row| row.get(0)).unwrap();
            assert_eq!(y, 8);
        }
    }

    #[test]
    fn a_migration_that_fails_leaves_the_version_before_it() {
        let (_guard, path) = dir();
        drop(open_migrated(&path, &[ONE]).unwrap());
        let broken = "ALTER TABLE a ADD COLUMN z INTEGER; SELECT nonsense;";
        assert!(open_migrated(&path, &[ONE, broken]).is_err());
        let connection = open_migrated(&path, &[ONE, TWO]).unwrap();
        assert!(connection.prepare("SELECT z FROM a").is_err());
    }

    #[test]
    fn a_newer_database_and_a_foreign_one_are_refused_unchanged() {
        let (_guard, path) = dir();
        drop(open_migrated(&path, &[ONE, TWO]).unwrap());
        let before = std::fs::read(&path).unwrap();
        let refused = open_migrated(&path, &[ONE]);
        assert!(matches!(refused, Err(OpenStoreError::TooNew { found: 2, newest: 1, .. })));
        assert_eq!(std::fs::read(&path).unwrap(), before);

        let (_guard, path) = dir();
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let foreign = open(&path, flags).unwrap();
        foreign.execute_batch("PRAGMA user_version = 1; CREATE TABLE other (x)").unwrap();
        drop(foreign);
        assert!(matches!(open_migrated(&path, &[ONE]), Err(OpenStoreError::NotOurs { .. })));
    }

    #[test]
    fn the_shipped_schema_applies_to_an_empty_file() {
        let (_guard, path) = dir();
        let connection = open_writer(&path).unwrap();
        let mode: String =
            connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        let synchronous: i64 =
            connection.pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap();
        assert_eq!((mode.as_str(), synchronous), ("wal", 2));
    }

    #[test]
    fn a_project_from_before_there_were_images_has_none() {
        let (_guard, path) = dir();
        let old = open_migrated(&path, &MIGRATIONS[..3]).unwrap();
        old.execute_batch(
            "INSERT INTO project (id, name, name_small, owner, created_at)
             VALUES (zeroblob(16), 'Old', 'old', zeroblob(0), 1)",
        )
        .unwrap();
        drop(old);
        let connection = open_writer(&path).unwrap();
        let (name, image): (String, Option<String>) = connection
            .query_row(
                "SELECT name, coalesce(image_name, image_reference) FROM project",
                [],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .unwrap();
        assert_eq!((name.as_str(), image), ("Old", None));
    }

    #[test]
    fn a_key_of_an_administrator_becomes_one_that_writes() {
        let (_guard, path) = dir();
        let old = open_migrated(&path, &MIGRATIONS[..6]).unwrap();
        for (name, level) in [("none", "NULL"), ("read", "0"), ("write", "1"), ("admin", "2")] {
            old.execute_batch(&format!(
                "INSERT INTO project (id, name, name_small, owner, key_level, created_at)
                 VALUES (randomblob(16), '{name}', '{name}', zeroblob(0), {level}, 1)",
            ))
            .unwrap();
        }
        drop(old);
        let connection = open_writer(&path).unwrap();
        let mut select = connection.prepare("SELECT key_level FROM project ORDER BY n").unwrap();
        let levels: Vec<Option<i64>> =
            select.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
        assert_eq!(levels, [None, Some(0), Some(1), Some(1)]);
    }

    /// Rule: what was made before provenance was kept has none, and is found as before.
    #[test]
    fn an_artifact_from_before_there_was_provenance_has_none_and_its_words_are_found() {
        let (_guard, path) = dir();
        let old = open_migrated(&path, &MIGRATIONS[..10]).unwrap();
        let facet = |tag: &str| crate::read::lists::facet(Some(tag), None);
        old.execute_batch(
            "INSERT INTO artifact (id, content_hash, mime_type, size, owner, creator, created_at,
                 tags)
             VALUES (zeroblob(16), zeroblob(32), 'a/b', 1, zeroblob(0), 'ada', 1, x'90');
             INSERT INTO annotation (id, artifact, message, source, vibe, created_at)
             VALUES (zeroblob(16), zeroblob(16), 'too loud', 'me', NULL, 1),
                    (x'01', zeroblob(16), 'better', 'me', 'warm', 2);
             INSERT INTO upload (hash, owner, project, uploaded_at) VALUES (x'07', x'', x'', 3);",
        )
        .unwrap();
        for tag in ["warm:pad", &"ż".repeat(200)] {
            for view in [&b"e"[..], b"o"] {
                let sql = "INSERT INTO artifact_list (view, facet, n) VALUES (?1, ?2, 1)";
                old.execute(sql, rusqlite::params![view, facet(tag)]).unwrap();
                let with_creator = crate::read::lists::facet(Some(tag), Some("ada"));
                old.execute(sql, rusqlite::params![view, with_creator]).unwrap();
            }
        }
        drop(old);
        let connection = open_writer(&path).unwrap();
        let count = |sql: &str| -> i64 { connection.query_row(sql, [], |row| row.get(0)).unwrap() };
        assert_eq!(count("SELECT count(*) FROM artifact_tag"), 2);
        let bare = "SELECT count(*) FROM artifact
                    WHERE tool IS NULL AND job IS NULL AND session IS NULL";
        assert_eq!(count(bare), 1);
        assert_eq!(count("SELECT count(*) FROM upload WHERE session = x'' AND mime IS NULL"), 1);
        assert_eq!(count("SELECT sum(position) FROM annotation"), 1);
        let words = |table: &str, query: &str| {
            count(&format!("SELECT count(*) FROM {table} WHERE {table} MATCH '{query}'"))
        };
        assert_eq!(words("artifact_words", "keys : (o AND c616461) AND words : pad"), 1);
        assert_eq!(words("annotation_words", "keys : e AND words : warm"), 1);
        assert_eq!(words("annotation_words", "keys : o AND words : (loud OR better)"), 2);
    }

    #[test]
    fn a_database_from_before_there_were_sessions_keeps_its_tokens() {
        let (_guard, path) = dir();
        let old = open_migrated(&path, &MIGRATIONS[..1]).unwrap();
        old.execute_batch(
            "INSERT INTO token (id, name, secret_hash, public_key, level, created_at)
             VALUES (zeroblob(16), 'old', zeroblob(32), zeroblob(32), 2, 1)",
        )
        .unwrap();
        drop(old);
        let connection = open_writer(&path).unwrap();
        let (name, session): (String, Option<Vec<u8>>) = connection
            .query_row("SELECT name, session FROM token", [], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap();
        assert_eq!((name.as_str(), session), ("old", None));
    }
}
