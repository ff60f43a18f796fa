//! MCP between a client on standard input and output and a server at a URL.
//!
//! Main types:
//!
//! * [`serve`]: the bridge: each line of the input is a message to the server, each line of the
//!   output one of its messages. [`version`] asks a daemon for its version.
//! * [`Endpoint`]: a server at a URL; [`SendError`] says why a request has no answer.
//! * [`Answer`]: the messages of an answer, from an event stream or a JSON body; [`AnswerError`]
//!   says why it is not whole.
//! * [`ModernHeaders`]: the headers of a request of the modern era.
//! * [`RunningRequests`]: the requests under way.
//!
//! Invariants:
//!
//! * Messages pass unchanged; only whitespace between tokens may be removed.
//! * A request that is dropped is cancelled: its connection closes.
//! * Messages, queues and the number of requests have limits, and hitting one is an answer.
//! * A credential is in no log and in no `Debug`.
//! * No thread, no runtime of its own: a program with one thread can contain it.

mod answer;
mod endpoint;
mod running_requests;
mod stdio;

pub use answer::{Answer, AnswerError};
pub use endpoint::{Endpoint, ModernHeaders, SendError};
pub use hyper::header::HeaderName;
pub use hyper::{StatusCode, Uri};
pub use running_requests::RunningRequests;
pub use stdio::{serve, version};
