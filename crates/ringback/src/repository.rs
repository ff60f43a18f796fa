//! A user's `git` repository: a private copy of it for an agent, and commits from what the agent
//! did.
//!
//! A repository can name programs: hooks, filters, aliases, a monitor, a diff driver. None of them
//! ever runs here, because `git` never reads the repository's own configuration: it works in a
//! directory of ours, with a configuration of ours, and the repository is only where it finds
//! objects. References and `HEAD` are read as files.
//!
//! * `discovery`: finds the repository of a directory, and refuses one that points elsewhere.
//! * `references`: its branches and tags, read and written as files.
//! * `git`: runs `git` without the repository's configuration.
//! * `private_copy`: the repository in the copy of a directory.
//! * `subdirectory`: the history of a directory below the root.
//! * `branch`: a commit on a new branch.

mod branch;
mod discovery;
mod git;
mod private_copy;
mod references;
mod subdirectory;

pub(crate) use self::branch::{BranchChange, BranchCommit, Content};
pub(crate) use self::discovery::Repository;
pub(crate) use self::git::RepositoryError;
pub(crate) use self::private_copy::PrivateCopy;
