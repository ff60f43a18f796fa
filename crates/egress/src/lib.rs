//! The doors of a session to the outside. The model door lets its agent talk to one configured model,
//! without the key: the daemon serves HTTP on a Unix socket in the session's directory, takes away
//! whatever credential a request carries, sets the real one, and passes the request to the model's
//! provider. The network door is a proxy on another such socket, to the places that the session's
//! policy allows.
//!
//! Main types:
//!
//! * [`ModelDoors`] opens doors to models for the broker; [`Config`] has their limits.
//! * [`Provider`]: where a model is ([`BaseUrl`]), and its key ([`KeySource`], [`KeyHeader`]).
//! * [`Vault`]: secrets by name, sealed in files, from a value, a file or a command.
//! * [`Prices`]: what models cost; an answer's tokens are counted as it passes.
//! * [`Recorder`] hears of every request once.
//! * [`NetworkDoors`] opens doors to the network; [`NetworkConfig`] has their limits, [`Resolver`]
//!   finds the addresses of names, [`NetworkRecorder`] hears of every connection once.
//!
//! Invariants of a door to the network:
//!
//! * Core judges every connection: the place before a name is looked up, each address of it, and all
//!   of it again when the policy changes. A name is looked up once, and connected to is an address
//!   that was judged.
//! * Nothing of what passes is kept: neither paths nor headers nor bodies.
//!
//! Invariants of a door to a model:
//!
//! * The key goes to the provider and nowhere else: it is in no log, event, error or `Debug`. Where a
//!   provider repeats it, the header is dropped and the body masked.
//! * No credential of the agent reaches the provider.
//! * A request goes to the provider of the door or nowhere: its path is appended to the configured
//!   one, a redirect is not followed, and there is no upgrade and no tunnel.
//! * Of an answer, numbers of tokens and the name of the model are found as it passes, in memory that
//!   does not grow with it; what a model wrote counts for nothing.
//!
//! Invariants of secrets:
//!
//! * A value is on disk only sealed, in files of the daemon's user alone; one that was written is there
//!   after a crash, whole.
//! * What was set is used by the next request; what a command printed is in memory alone.
//!
//! Invariants:
//!
//! * Bodies pass piece by piece; nothing is collected. Sizes, requests, connections and waits have
//!   limits, and hitting one is an answer.
//! * The end of a session closes its doors, with every connection and request.

mod client;
mod config;
mod doors;
mod forward;
mod headers;
mod key;
mod network;
mod prices;
mod refusal;
mod secrets;
mod serving;
mod tap;
mod tokens;
mod url;
mod usage;

pub use client::ProviderError;
pub use config::{Config, Provider};
pub use doors::{Admitting, ModelDoors, Recorder};
pub use headers::KeyHeader;
pub use key::{KeyError, KeyFile, KeySource};
pub use network::{
    NetworkConfig, NetworkDoors, NetworkRecorder, Resolver, Resolving, SystemResolver,
};
pub use prices::{Price, Prices};
pub use secrets::{
    CommandRules, SecretError, SecretInfo, SecretName, SecretNameError, SecretSource, Vault,
};
pub use url::{BaseUrl, UrlError};
