//! The tools as MCP lists and calls them, the same in both eras.

mod arguments;
mod call;
mod follow;
mod interest;
mod list;
mod native;
mod outcome;

pub(crate) use arguments::object;
pub(crate) use call::{Asked, Begun, again, begin, begun, native as call_native};
pub(crate) use follow::{Canceller, Facts, Follow, Step, Wanted};
pub(crate) use interest::{Interest, Subject, rests};
pub(crate) use list::{TTL_MS, fault as list_fault, page, with_type};
pub(crate) use native::{Listed, ListedMeta, in_session};
pub(crate) use outcome::Outcome;
