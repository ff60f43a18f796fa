//! Persistent state: records in SQLite, and append-only files for the audit log and the events of
//! sessions.
//!
//! Main types: [`Store`] (writes by [`Store::commit`], reads by the methods beside it), [`Graph`]
//! (what was made from what, and identities),
//! [`RowVisibility`] (which rows a reader may see), [`audit::Audit`], [`journal::Journal`],
//! [`query`] (SQL of callers), [`manual_writer::ManualWriter`] for simulations.
//!
//! Invariants:
//! * One process holds a data directory, by a lock that ends with the process.
//! * One thread writes. It takes whatever waits as one transaction; each request in it is atomic on
//!   its own, and its callback runs after the disk has it, in the order of the requests.
//! * What is not yet durable cannot be read: SQLite shows a commit to readers after its sync.
//! * A job's state only moves forward. The count of jobs changes in the same transaction as a job.
//! * After a failed write the store stays failed; it never tries to sync the same data again.
//! * No wall clock is read: times are part of the records. No other crate names SQLite.

pub mod audit;
mod error;
mod frames;
pub mod journal;
mod lock;
pub mod manual_writer;
mod private;
pub mod query;
mod read;
mod readers;
mod row;
mod schema;
mod store;
mod write;
mod writer;

pub use error::{CommitError, OpenStoreError, QueueFull, ReadError};
pub use read::page::{Page, RowVisibility};
pub use read::{
    ArtifactFilter, Graph, IdentityFilter, JobCounts, JobSummary, NamedIdentity, SessionFilter,
    StoredTimeline, TimelineSize, VisibleSource,
};
pub use store::{Completion, Limits, Stats, Store};
pub use write::WriteOutcome;
