//! The model proxies of sessions.

mod doors;
mod forward;
mod proxy;
mod refusal;
mod tap;

pub use self::doors::{AdmissionFuture, ModelDoors, Recorder};
pub(crate) use self::tap::Upload;
