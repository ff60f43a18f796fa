//! The model door: lets the agent of a session talk to one configured model, without the key. The
//! daemon serves HTTP on a Unix socket in the session's directory, takes away whatever credential a
//! request carries, sets the real one, and passes the request to the model's provider.
//!
//! Main types:
//!
//! * [`ModelDoors`] opens the doors for the broker; [`Config`] has their limits.
//! * [`Provider`]: where a model is ([`BaseUrl`]), and its key ([`KeyFile`], [`KeyHeader`]).
//! * [`Recorder`] hears of every request once; [`Usage`] is what a session has used so far.
//!
//! Invariants:
//!
//! * The key goes to the provider and nowhere else: it is in no log, event, error or `Debug`. Where a
//!   provider repeats it, the header is dropped and the body masked.
//! * No credential of the agent reaches the provider.
//! * A request goes to the provider of the door or nowhere: its path is appended to the configured
//!   one, a redirect is not followed, and there is no upgrade and no tunnel.
//! * Bodies pass piece by piece; nothing is collected. Sizes, requests, connections and waits have
//!   limits, and hitting one is an answer.
//! * The end of a session closes its door, with every connection and request.

mod client;
mod config;
mod doors;
mod forward;
mod headers;
mod key;
mod refusal;
mod serving;
mod tap;
mod url;
mod usage;

pub use client::ProviderError;
pub use config::{Config, Provider};
pub use doors::{ModelDoors, Recorder};
pub use headers::KeyHeader;
pub use key::{KeyError, KeyFile};
pub use url::{BaseUrl, UrlError};
pub use usage::Usage;
