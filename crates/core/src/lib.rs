//! The rules of Ringback, without IO: who may call what, how long a call may take, the life of a
//! job, what counts as a repeat, how a call on a line gets its answer, what a slow reader of a
//! stream misses, the order of events, what an agent may reach, and what it may spend.
//!
//! Main types: [`policy::authorize`], [`keys::made`], [`calls::CallTable`], [`jobs::JobTable`],
//! [`repeats::RepeatTable`], [`lines::LineTable`], [`containers::ContainerTable`], [`events::EventRing`], [`stream::ChunkBuffer`],
//! [`stream_data::DataRing`],//! [`trace::TraceRing`], [`network::permits`], [`spending::Ledger`], [`Effects`].
//!
//! Invariants:
//! * Never reads a clock and never generates randomness: both are passed in.
//! * No tokio, no JSON, no serde, no IO, no logging.
//! * What must be durable is returned as records; what may be sent once it is comes beside it.
//! * Every table has a limit; reaching it is an immediate `busy`.

pub mod calls;
pub mod containers;
pub mod deadline;
pub mod effects;
pub mod events;
pub mod garden;
pub mod jobs;
pub mod keys;
pub mod lines;
pub mod network;
pub mod policy;
pub mod repeats;
pub mod reply_mode;
pub mod sessions;
pub mod spending;
pub mod stream;
pub mod stream_data;
pub mod time;
pub mod trace;

pub use effects::Effects;
pub use time::Now;
