//! The tools as MCP lists and calls them, the same in both eras.

mod arguments;
mod call;
mod interest;
mod list;
mod native;
mod outcome;
mod running_call;

pub(crate) use arguments::object;
pub(crate) use call::{CallRequest, CallState, again, begin, call_state, native as call_native};
pub(crate) use interest::{Interest, Subject, rests};
pub(crate) use list::{TTL_MS, fault as list_fault, page, with_type};
pub(crate) use native::{ToolListing, ToolMeta, in_session};
pub(crate) use outcome::Outcome;
pub(crate) use running_call::{Canceller, Facts, NotificationOptions, RunningCall, Step};
