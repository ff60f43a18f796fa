//! A store without a thread of its own: the owner of the [`ManualWriter`] decides when waiting
//! requests are written, and which faults occur. For simulations, which must be reproducible.

use std::fs::{self, File};
use std::sync::Arc;
use std::{fmt, io};

use camino::{Utf8Path, Utf8PathBuf};
use ringback_proto::ids::JobId;
use ringback_proto::record::Record;
use tokio::sync::Notify;

use crate::writer::{Message, Writer};

const DATABASE: &str = "ringback.db";
const WAL: &str = "ringback.db-wal";
const SHARED_MEMORY: &str = "ringback.db-shm";
/// Where a crash leaves its files until the database is closed everywhere.
const ASIDE: &str = "crashed";

/// A fault during one commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// The disk is full: nothing is written, and every request gets that error.
    DiskFull,
    /// The process dies before anything is written.
    CrashBefore,
    /// The process dies half-way: this share of the commit's bytes, in 256ths, is in the log.
    CrashWithin(u8),
    /// The process dies after everything is durable and before any reply.
    CrashAfter,
}

/// The result of one commit.
#[derive(Debug, Default, PartialEq)]
pub struct CommitReport {
    /// The records of each accepted request.
    pub written: Vec<Vec<Record>>,
    /// The jobs that were dropped because they had expired.
    pub purged: Vec<JobId>,
    /// Whether the process died here, as far as the store is concerned.
    pub crashed: bool,
}

/// Drives the writer of a store opened by [`Store::open_by_hand`].
///
/// [`Store::open_by_hand`]: crate::Store::open_by_hand
pub struct ManualWriter {
    dir: Utf8PathBuf,
    writer: Writer,
    bell: Arc<Notify>,
    /// Requests to a dead process: kept, because dropping them would be an answer.
    unanswered: Vec<Message>,
    is_dead: bool,
}

impl fmt::Debug for ManualWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hand({})", self.dir)
    }
}

impl ManualWriter {
    pub(crate) fn new(dir: &Utf8Path, writer: Writer, bell: Arc<Notify>) -> Self {
        Self { dir: dir.to_owned(), writer, bell, unanswered: Vec::new(), is_dead: false }
    }

    /// Waits until there may be something to write.
    ///
    /// # Cancel safety
    /// Dropping it loses only a wake-up that [`Self::turn`] makes unnecessary.
    pub async fn waiting(&mut self) {
        self.bell.notified().await;
    }

    /// Writes all waiting requests as one commit.
    ///
    /// # Errors
    /// When the files of a simulated crash cannot be moved aside.
    pub fn turn(&mut self, fault: Fault) -> io::Result<CommitReport> {
        let batch = self.writer.take_waiting();
        if self.is_dead || batch.is_empty() {
            self.unanswered.extend(batch);
            return Ok(CommitReport::default());
        }
        match fault {
            Fault::None => Ok(self.writer.commit_and_reply(batch)),
            Fault::DiskFull => {
                self.writer.refuse_as_full(batch);
                Ok(CommitReport::default())
            }
            Fault::CrashBefore => self.crash(batch, 0),
            Fault::CrashWithin(share) => self.crash(batch, share),
            Fault::CrashAfter => self.crash(batch, u8::MAX),
        }
    }

    /// Commits without replying, and moves the files aside as a process that dies here leaves them:
    /// an orderly close would repair what the next open must repair.
    fn crash(&mut self, batch: Vec<Message>, share: u8) -> io::Result<CommitReport> {
        self.is_dead = true;
        let before = wal_length(&self.dir)?;
        let turn =
            if share > 0 { self.writer.commit_in_silence(&batch) } else { CommitReport::default() };
        self.unanswered.extend(batch);
        let after = wal_length(&self.dir)?;
        let aside = self.dir.join(ASIDE);
        fs::create_dir_all(&aside)?;
        for name in [DATABASE, WAL] {
            fs::copy(self.dir.join(name), aside.join(name))?;
        }
        // A log that did not grow was restarted or overwritten, and cannot be cut at a position
        // known to be inside this commit.
        let is_torn = share < u8::MAX && after > before;
        if is_torn {
            let kept = before + (after - before) * u64::from(share) / 256;
            File::options().write(true).open(aside.join(WAL))?.set_len(kept)?;
        }
        let durable = if is_torn { CommitReport::default() } else { turn };
        Ok(CommitReport { crashed: true, ..durable })
    }
}

/// Moves the files of a crashed store back, once they are closed everywhere.
///
/// # Errors
/// When a file cannot be moved.
pub fn restore_crashed(dir: &Utf8Path) -> io::Result<()> {
    let aside = dir.join(ASIDE);
    for name in [DATABASE, WAL] {
        fs::rename(aside.join(name), dir.join(name))?;
    }
    match fs::remove_file(dir.join(SHARED_MEMORY)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn wal_length(dir: &Utf8Path) -> io::Result<u64> {
    fs::metadata(dir.join(WAL)).map(|metadata| metadata.len())
}

#[cfg(test)]
mod tests {
    use ringback_proto::ids::BlobHash;
    use ringback_proto::principal::PrincipalId;

    use super::*;
    use crate::{CommitError, RowVisibility, Store};

    fn uploaded(number: u8) -> Vec<Record> {
        let hash = BlobHash::from_bytes([number; 32]);
        vec![Record::BlobUploaded {
            hash,
            owner: PrincipalId::Local,
            project: None,
            session: None,
            mime_type: "a/b".to_owned(),
            at: 1,
        }]
    }

    fn is_there(store: &Store, number: u8) -> bool {
        let visible = RowVisibility::Owner { owner: PrincipalId::Local, projects: Vec::new() };
        store.may_read_blob(BlobHash::from_bytes([number; 32]), &visible).unwrap()
    }

    /// Commits 1, then crashes with 2; returns whether 2 exists after the next open.
    fn survives(fault: Fault) -> bool {
        let guard = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(guard.path()).unwrap();
        let (store, mut hand) = Store::open_by_hand(dir).unwrap();
        store.commit(uploaded(1), Box::new(|outcome| drop(outcome.unwrap()))).unwrap();
        assert_eq!(hand.turn(Fault::None).unwrap().written, [uploaded(1)]);
        store.commit(uploaded(2), Box::new(|_| panic!("a dead process does not reply"))).unwrap();
        let turn = hand.turn(fault).unwrap();
        assert!(turn.crashed);
        store.commit(uploaded(3), Box::new(|_| panic!("a dead process does not reply"))).unwrap();
        assert_eq!(hand.turn(Fault::None).unwrap(), CommitReport::default());
        drop((store, hand));
        restore_crashed(dir).unwrap();
        let (store, _hand) = Store::open_by_hand(dir).unwrap();
        assert!(is_there(&store, 1), "{fault:?} lost what was durable before");
        assert!(!is_there(&store, 3));
        assert_eq!(is_there(&store, 2), turn.written == [uploaded(2)], "{fault:?}");
        is_there(&store, 2)
    }

    /// Rule: what was durable before a crash exists after it, and half a commit counts as no
    /// commit.
    #[test]
    fn a_commit_that_a_crash_cuts_short_is_none_and_one_before_the_crash_is_whole() {
        assert!(!survives(Fault::CrashBefore));
        for share in [1, 40, 128, 200, 254] {
            assert!(!survives(Fault::CrashWithin(share)), "{share}");
        }
        assert!(survives(Fault::CrashAfter));
    }

    #[test]
    fn a_full_disk_refuses_one_commit_and_takes_the_next() {
        let guard = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(guard.path()).unwrap();
        let (store, mut hand) = Store::open_by_hand(dir).unwrap();
        let full = |outcome| assert!(matches!(outcome, Err(CommitError::DiskFull)));
        store.commit(uploaded(1), Box::new(full)).unwrap();
        assert_eq!(hand.turn(Fault::DiskFull).unwrap(), CommitReport::default());
        assert!(!is_there(&store, 1));
        store.commit(uploaded(1), Box::new(|outcome| drop(outcome.unwrap()))).unwrap();
        hand.turn(Fault::None).unwrap();
        assert!(is_there(&store, 1));
    }
}
