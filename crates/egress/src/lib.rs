//! The proxies of a session that lead out of its sandbox. The model proxy lets an agent talk to one
//! configured model without the key: the daemon serves HTTP on a Unix socket in the session's
//! directory, removes any credential from a request, adds the real one, and forwards the request to
//! the model's provider. The network proxy is an HTTP proxy on another such socket, to the places
//! that the session's policy allows.
//!
//! Main types:
//!
//! * [`ModelDoors`] opens model proxies for the broker; [`Config`] has their limits.
//! * [`Provider`]: the address of a model ([`BaseUrl`]), and its key ([`KeySource`],
//!   [`KeyHeader`]).
//! * [`Vault`]: secrets by name, sealed in files, from a value, a file or a command.
//! * [`Prices`]: the prices of models; an answer's tokens are counted as it passes.
//! * [`Recorder`] records every request once.
//! * [`NetworkDoors`] opens network proxies; [`NetworkConfig`] has their limits, [`Resolver`] looks
//!   up names, [`NetworkRecorder`] records every connection once.
//!
//! Invariants of a network proxy:
//!
//! * Core judges every connection: the place before its name is looked up, each of its addresses,
//!   and all of it again when the policy changes. A name is looked up once, and the proxy connects
//!   to an address that was judged.
//! * Nothing that passes is kept: neither paths nor headers nor bodies.
//!
//! Invariants of a model proxy:
//!
//! * The key goes to the provider and nowhere else: it is in no log, event, error or `Debug`. Where
//!   a provider repeats it, the header is dropped and the body masked.
//! * No credential of the agent reaches the provider.
//! * A request goes to the provider of the proxy or nowhere: its path is appended to the configured
//!   one, redirects are not followed, and there is no upgrade and no tunnel.
//! * The token counts and the model's name are read from an answer as it passes, in constant
//!   memory; text that the model wrote never counts.
//!
//! Invariants of secrets:
//!
//! * A value is on disk only sealed, in files that only the daemon's user can read; a value that
//!   was written survives a crash, whole.
//! * A new value is used by the next request; the output of a command is kept only in memory.
//!
//! Invariants:
//!
//! * Bodies pass in pieces; nothing is collected. Sizes, requests, connections and waits have
//!   limits, and hitting one is an answer.
//! * The end of a session closes its proxies, with every connection and request.

mod client;
mod config;
mod headers;
mod key;
mod model;
mod network;
mod prices;
mod secrets;
mod tokens;
mod url;
mod usage;

pub use client::ProviderError;
pub use config::{Config, Provider};
pub use headers::KeyHeader;
pub use key::{KeyError, KeyFile, KeySource};
pub use model::{AdmissionFuture, ModelDoors, Recorder};
pub use network::{
    LookupFuture, NetworkConfig, NetworkDoors, NetworkRecorder, Resolver, SystemResolver,
};
pub use prices::{Price, Prices};
pub use secrets::{
    CommandRules, SecretError, SecretInfo, SecretName, SecretNameError, SecretSource, Vault,
};
pub use url::{BaseUrl, UrlError};

use ringback_sync as sync;
