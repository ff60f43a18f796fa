//! The model proxies of sessions.

mod doors;
mod forward;
mod refusal;
mod serving;
mod tap;

pub use self::doors::{Admitting, ModelDoors, Recorder};
pub(crate) use self::tap::Upload;
