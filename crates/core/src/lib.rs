//! The rules of Ringback, without IO: who may call what, how long a call may take, how a job lives,
//! what counts as a repeat, how a call on a line finds its answer, what a slow reader of a stream
//! misses, in which order events happened, which places an agent may reach,
//! and what it may spend.
//!
//! Main types: [`policy::authorize`], [`keys::made`], [`calls::CallTable`], [`jobs::JobTable`],
//! [`repeats::RepeatTable`], [`lines::LineTable`], [`events::EventRing`], [`stream::ChunkBuffer`],
//! [`trace::TraceRing`], [`network::permits`], [`spending::Ledger`], [`Effects`].
//!
//! Invariants:
//! * Never reads a clock and never makes randomness: both are passed in.
//! * No tokio, no JSON, no serde, no IO, no logging.
//! * What must be durable comes out as records; what may be said once it is comes out beside it.
//! * Every table has a limit, and reaching it is `busy`, at once.

pub mod calls;
pub mod deadline;
pub mod effects;
pub mod events;
pub mod jobs;
pub mod keys;
pub mod lines;
pub mod network;
pub mod policy;
pub mod repeats;
pub mod sessions;
pub mod spending;
pub mod stream;
pub mod time;
pub mod trace;
pub mod waiting;

pub use effects::Effects;
pub use time::Now;
