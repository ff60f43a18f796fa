//! How sessions start, run and end.

pub(super) mod agent;
pub(super) mod end;
pub(super) mod keeper;
pub(super) mod key;
pub(super) mod remote;
pub(super) mod start;
