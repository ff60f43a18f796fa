//! `ringback verify`: a conformance kit for programs that offer tools, in any language.

mod candidate;
mod check;
mod client_tools;
mod worker;

use clap::{Args, Subcommand};

pub use self::candidate::CandidateArgs;
pub use self::client_tools::ClientToolsArgs;
pub use self::worker::WorkerArgs;
use crate::failure::Failure;

/// `ringback verify`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ringback verify client-tools -- node my-client.js\n  ringback verify worker -- python \
                  my_worker.py\n  ringback verify client-tools http://127.0.0.1:8099    for a program started \
                  by hand"
)]
pub struct VerifyArgs {
    /// The protocol to check.
    #[command(subcommand)]
    pub what: VerifyTarget,
}

/// The protocols that can be checked.
#[derive(Debug, Subcommand)]
pub enum VerifyTarget {
    /// Check a program that offers tools over `/client-tools`
    ClientTools(ClientToolsArgs),
    /// Check a program that offers tools over HOOT01
    Worker(WorkerArgs),
}

impl VerifyArgs {
    pub(crate) const fn wants_json(&self) -> bool {
        match &self.what {
            VerifyTarget::ClientTools(args) => args.candidate.json,
            VerifyTarget::Worker(args) => args.candidate.json,
        }
    }
}

pub(crate) async fn run(args: VerifyArgs) -> Result<(), Failure> {
    match args.what {
        VerifyTarget::ClientTools(args) => client_tools::run(&args).await,
        VerifyTarget::Worker(args) => worker::run(&args).await,
    }
}
