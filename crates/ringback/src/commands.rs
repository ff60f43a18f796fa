//! The commands, one file each.

pub mod agents;
pub mod artifacts;
pub mod audit;
pub mod call;
pub mod cas;
pub mod choice;
pub mod completions;
pub mod config;
pub mod container;
pub mod demo;
pub mod doctor;
pub mod events;
pub mod garden;
pub mod graph;
pub mod image;
pub mod jobs;
pub mod local;
pub mod mcp;
pub mod network;
pub mod offer;
mod permissions;
pub mod project;
pub mod run;
pub mod secret;
pub mod serve;
pub mod session;
pub mod spending;
pub mod stop;
pub mod studio;
mod temporary_daemon;
pub mod token;
pub mod tools;
pub mod verify;
pub mod why;

use crate::cli::Command;
use crate::config::Environment;
use crate::failure::Failure;

/// Runs a command.
///
/// # Errors
/// Why the command failed; the exit code follows from it.
pub async fn run(command: Command, environment: &Environment) -> Result<(), Failure> {
    match command {
        Command::Serve(args) => serve::run(&args, environment).await,
        Command::Stop(args) => stop::run(&args, environment).await,
        Command::Run(args) => run::run(args, environment).await,
        Command::Demo(args) => demo::run(&args).await,
        Command::Call(args) => call::run(args, environment).await,
        Command::Offer(args) => offer::run(args, environment).await,
        Command::Project(args) => project::run(args, environment).await,
        Command::Session(args) => session::run(args, environment).await,
        Command::Container(args) => container::run(args, environment).await,
        Command::Image(args) => image::run(args, environment).await,
        Command::Agents(args) => agents::run(&args, environment).await,
        Command::Tools(args) => tools::run(args, environment).await,
        Command::Jobs(args) => jobs::run(args, environment).await,
        Command::Events(args) => events::run(args, environment).await,
        Command::Cas(args) => cas::run(args, environment).await,
        Command::Artifacts(args) => artifacts::run(args, environment).await,
        Command::Graph(args) => graph::run(args, environment).await,
        Command::Garden(args) => garden::run(args, environment).await,
        Command::Studio(args) => studio::run(&args, environment),
        Command::Secret(args) => secret::run(args, environment).await,
        Command::Token(args) => token::run(args, environment).await,
        Command::Mcp(args) => mcp::run(args, environment).await,
        Command::Audit(args) => audit::run(args, environment).await,
        Command::Why(args) => why::run(args, environment).await,
        Command::Verify(args) => verify::run(args).await,
        Command::Doctor(args) => doctor::run(&args, environment).await,
        Command::Config(args) => config::run(&args, environment),
        Command::Completions(args) => completions::run(&args),
    }
}
