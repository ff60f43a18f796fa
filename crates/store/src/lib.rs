//! What survives a restart: records in SQLite, and append-only files for the audit and for what
//! happens in sessions.
//!
//! Main types: [`Store`] (writes by [`Store::commit`], reads by the methods beside it),
//! [`Visible`] (whose rows a reader may see), [`audit::Audit`], [`journal::Journal`],
//! [`by_hand::Hand`] for simulations.
//!
//! Invariants:
//! * One process holds a data directory, by a lock that ends with the process.
//! * One thread writes. It takes whatever waits as one transaction; each request in it is atomic on
//!   its own, and its callback runs after the disk has it, in the order of the requests.
//! * Nobody can read what is not yet durable: SQLite shows a commit to readers after its sync.
//! * A job's state only goes forward. A count of jobs changes in the transaction that changes a job.
//! * After a failed write the store stays failed; it never tries to sync the same data again.
//! * No wall clock is read: time comes with the records. No other crate names SQLite.

pub mod audit;
pub mod by_hand;
mod error;
mod frames;
pub mod journal;
mod lock;
mod private;
mod read;
mod readers;
mod row;
mod schema;
mod store;
mod write;
mod writer;

pub use error::{CommitError, Full, OpenStoreError, ReadError};
pub use read::page::{Page, Visible};
pub use read::{ArtifactFilter, JobCounts, JobSummary, SessionFilter};
pub use store::{Done, Limits, Stats, Store};
pub use write::Applied;
