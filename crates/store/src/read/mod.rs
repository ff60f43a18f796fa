//! Rows into records. Every statement that only looks is below here.

mod artifacts;
mod jobs;
pub(crate) mod lists;
pub(crate) mod page;
mod tokens;

pub use artifacts::ArtifactFilter;
pub use jobs::{JobCounts, JobSummary};
