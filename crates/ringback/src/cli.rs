//! The command line: what can be typed. What it does is in [`crate::commands`].

use clap::{Parser, Subcommand};

use crate::commands::{
    agents, artifacts, audit, call, cas, completions, config, container, demo, doctor, events,
    image, jobs, mcp, offer, project, run, secret, serve, session, studio, token, tools, verify,
    why,
};

/// What an agent starts to reach its session: `ringback inside`.
pub const INSIDE: &str = "inside";
/// The agent that does what it is told, line by line: `ringback scripted-agent`.
pub const SCRIPTED: &str = "scripted-agent";

/// Call any tool, wherever it lives, from any agent, wherever it runs.
#[derive(Debug, Parser)]
#[command(
    name = "ringback",
    version,
    after_help = "Start with:\n  ringback demo     what Ringback is, in one minute\n  ringback serve    \
                  a daemon for this user\n  ringback tools    what it can do\n\n\
                  Exit codes: 0 done, 1 failed, 2 wrong usage, 64 bad configuration, 69 no daemon, \
                  77 not allowed, 130 interrupted."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What the program can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the daemon
    Serve(serve::ServeArgs),
    /// Let an agent work on a copy of a directory, with commands of this machine as its tools, and show
    /// what it changed
    Run(run::RunArgs),
    /// Show what Ringback does, with a daemon of its own in a temporary directory
    Demo(demo::DemoArgs),
    /// Call a tool
    Call(call::CallArgs),
    /// Offer a command of this machine as a tool
    Offer(offer::OfferArgs),
    /// Make, list or delete projects, where sessions of agents belong
    Project(project::ProjectArgs),
    /// Start an agent with commands of this machine as its tools; talk to it, watch it, end it
    Session(session::SessionArgs),
    /// Start and stop the container of a project, and run commands in it
    Container(container::ContainerArgs),
    /// List the images of the configuration, or build one anew
    Image(image::ImageArgs),
    /// Show which agents are known by name, and whether they are here
    Agents(agents::AgentsArgs),
    /// List the tools you may call
    Tools(tools::ToolsArgs),
    /// List, show, watch or cancel jobs
    Jobs(jobs::JobsArgs),
    /// Show what happened, or follow what happens
    Events(events::EventsArgs),
    /// Store content and get it back by its hash
    Cas(cas::CasArgs),
    /// List, show, create or annotate artifacts
    Artifacts(artifacts::ArtifactsArgs),
    /// Check tunes and make music files of them, without a daemon
    Studio(studio::StudioArgs),
    /// Keep the keys of model providers, sealed, for the daemon of this user
    Secret(secret::SecretArgs),
    /// Create, list or revoke tokens
    Token(token::TokenArgs),
    /// Serve an agent on standard input and output, or set one up to do so
    Mcp(mcp::McpArgs),
    /// Show which calls there were, whose, and how they ended
    Audit(audit::AuditArgs),
    /// Explain what happened to a call
    Why(why::WhyArgs),
    /// Prove that a program of yours offers tools as it should
    Verify(verify::VerifyArgs),
    /// Check ports, tokens and settings, and say what to do
    Doctor(doctor::DoctorArgs),
    /// Show or check the configuration
    Config(config::ConfigArgs),
    /// Print a completion script for a shell
    Completions(completions::CompletionsArgs),
}

impl Command {
    /// Whether a program reads the answers, so that it can read the errors too.
    #[must_use]
    pub const fn wants_json(&self) -> bool {
        match self {
            Self::Serve(args) => args.json,
            Self::Run(args) => args.json,
            Self::Demo(args) => args.json,
            Self::Call(args) => args.wants_json(),
            Self::Offer(args) => args.json,
            Self::Project(args) => args.json,
            Self::Session(args) => args.json,
            Self::Container(args) => args.json,
            Self::Image(args) => args.json,
            Self::Agents(args) => args.json,
            Self::Tools(args) => args.json,
            Self::Jobs(args) => args.json,
            Self::Events(args) => args.json,
            Self::Cas(args) => args.json,
            Self::Artifacts(args) => args.json,
            Self::Studio(args) => args.json,
            Self::Secret(args) => args.json,
            Self::Token(args) => args.json,
            Self::Mcp(_) => false,
            Self::Audit(args) => args.json,
            Self::Why(args) => args.json,
            Self::Verify(args) => args.wants_json(),
            Self::Doctor(args) => args.json,
            Self::Config(args) => args.json,
            Self::Completions(_) => false,
        }
    }
}
