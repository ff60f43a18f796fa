//! The tools as MCP shows and calls them, the same in both eras.

mod arguments;
mod call;
mod follow;
mod interest;
mod list;
mod names;
mod native;
mod outcome;

pub(crate) use call::{Asked, Begun, again, begin};
pub(crate) use follow::{Canceller, Follow, Step, Wanted};
pub(crate) use interest::{Interest, Subject, rests};
pub(crate) use list::{fault as list_fault, page};
pub(crate) use outcome::Outcome;
