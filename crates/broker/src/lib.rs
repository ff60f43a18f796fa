//! The core of the daemon: takes calls from the edges, applies the rules of `core`, stores what
//! must last, runs the native tools and answers. [`Broker`] is the only entry point.
//!
//! Main types: [`Broker`], [`Config`], [`Call`] and [`Answer`], [`Credential`],
//! [`handler::Handler`] for native tools, [`studio::StudioTools`] for the music tools, which are
//! passed in at the start.
//!
//! Invariants:
//! * Nothing is announced before it is durable: records are committed first, then effects run.
//! * Every task is tracked, and joined at shutdown.
//! * No lock is held across an await, and no two locks at the same time.
//! * `Sync` tools get no handle to anything that can wait.
//! * No library for music or sound is named here.
//! * JSON appears only in `payload`, for content that passes through, and in
//!   `sessions::conversation::redaction`, for what events show of it; frames, headers and sockets
//!   belong to the edges.

mod audit;
mod broadcast;
mod broker;
mod call;
mod config;
mod confinement;
mod containers;
mod content;
mod disk;
mod failure;
mod follower;
mod garden;
pub mod handler;
mod handlers;
mod identity;
mod jobs;
mod kernel;
mod lines;
mod native_call;
mod payload;
mod queries;
mod repeats;
mod replies;
mod review;
mod rooms;
mod sessions;
mod stream;
pub mod studio;
mod upkeep;
mod workspaces;

pub use broker::{Activity, Broker, Environment, StartError, TableSizes};
pub use call::{Answer, Call, CallControl, Edge};
pub use config::{Config, ConfigView};
pub use confinement::{Confinement, SandboxRules};
pub use containers::{ContainerSettings, ImageName, ImageNameError, ImageSource};
pub use content::{BlobReader, BlobWriter, StoredBlob};
pub use disk::{Disk, DiskLimits, DiskReserve, Inodes, Space};
pub use follower::{CallEvent, CallFollower};
pub use garden::{GardenProcess, Monitor, NoGardenProcess};
pub use identity::{Credential, Door};
pub use kernel::{Blocking, Clock, DataListener, Entropy, Heard, Subscription};
pub use lines::{
    CallContext, CallerCall, CallerStream, CallerTools, Callers, ChunkInbox, ChunkSink, LineCall,
    LineOffer, LineRequest, LineSettings, LineStream, Lines, OfferedTool, ToolFace, ToolOffer,
};
pub use payload::request_from_json;
pub use replies::Replies;
pub use review::{Audit, AuditPage};
pub use ringback_blobs::DIR as BLOBS_DIR;
pub use ringback_core::Now;
pub use ringback_core::events::Published;
pub use ringback_core::lines::{
    Audience, CancelReason, LineKind, LineLimits, LineName, PartyMessage, StreamMode, same_job,
};
pub use ringback_core::network;
pub use ringback_core::policy::Visibility;
pub use ringback_core::sessions::{EventLimits, SessionLimits};
pub use ringback_core::stream_data::PublishedData;
pub use ringback_store::audit::{Entry as AuditEntry, Line as AuditLine};
pub use sessions::{
    AgentCommand, AgentProtocol, InsideProgram, LimitReached, ModelDoor, ModelRequest,
    NetworkConnection, NetworkDoor, NetworkOutcome, ProviderKey, RelayDoor, SessionDoors,
    SessionFollower, SessionKey, SessionPass, SessionSettings, SessionView,
};
pub use workspaces::START_LIMITS;

use ringback_sync as sync;
