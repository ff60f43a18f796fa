//! Starting, running and ending sessions: `choice` decides what one runs, `start` sets it up,
//! `keeper` supervises its agent, `end` tears it down; `remote` opens sessions for agents that run
//! elsewhere.

pub(super) mod agent;
pub(super) mod choice;
pub(super) mod end;
pub(super) mod equipment;
pub(super) mod keeper;
pub(super) mod key;
pub(super) mod remote;
pub(super) mod start;
