//! Options of `ringback run` that choose what an agent gets.

use std::path::PathBuf;

use clap::Args;

/// What the agent gets besides the files that `git` sees.
#[derive(Debug, Clone, Default, Args)]
pub struct CopyArgs {
    /// Ignored file or directory to copy as well, below the directory; may be given several times
    #[arg(long, value_name = "PATH")]
    pub include: Vec<PathBuf>,
    /// Files to leave out, as a pattern of `.gitignore`; may be given several times
    #[arg(long, value_name = "PATTERN")]
    pub exclude: Vec<String>,
    /// Leave out the history of the repository
    #[arg(long)]
    pub no_git: bool,
    /// Leave out the toolchains on your `PATH`, and their caches
    #[arg(long)]
    pub no_toolchains: bool,
}
