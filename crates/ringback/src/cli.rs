//! The command line syntax; [`crate::commands`] implements it.

use clap::{Parser, Subcommand};

use crate::commands::{
    agents, artifacts, audit, call, cas, completions, config, container, demo, doctor, events,
    garden, graph, image, jobs, mcp, offer, project, run, secret, serve, session, stop, studio,
    token, tools, verify, why,
};

/// The program that connects an agent to its session: `ringback inside`.
pub const INSIDE: &str = "inside";
/// The agent that runs its message line by line: `ringback scripted-agent`.
pub const SCRIPTED: &str = "scripted-agent";

/// Call any tool, wherever it lives, from any agent, wherever it runs.
#[derive(Debug, Parser)]
#[command(
    name = "ringback",
    version,
    after_help = "Start with:\n  ringback demo     see what Ringback does, in one minute\n  \
                  ringback run      let an agent work on a copy of this directory\n  ringback serve    run a \
                  daemon as a service\n  ringback tools    list its tools\n\n\
                  Exit codes: 0 success, 1 failure, 2 usage error, 64 bad configuration, 69 no daemon,\n\
                  77 permission denied, 130 interrupted."
)]
pub struct Cli {
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the daemon
    Serve(serve::ServeArgs),
    /// Stop this user's daemon
    Stop(stop::StopArgs),
    /// Run an agent on a copy of a directory with local commands as tools, and show its changes
    Run(run::RunArgs),
    /// Show what Ringback does, with a temporary daemon
    Demo(demo::DemoArgs),
    /// Call a tool
    Call(call::CallArgs),
    /// Offer a local command as a tool
    Offer(offer::OfferArgs),
    /// Create, list, update or delete projects, which group agent sessions
    Project(project::ProjectArgs),
    /// Start an agent with local commands as its tools; talk to it, watch it, end it
    Session(session::SessionArgs),
    /// Start or stop a project's container, and run commands in it
    Container(container::ContainerArgs),
    /// List configured images, or rebuild one
    Image(image::ImageArgs),
    /// List known agents and whether they are installed
    Agents(agents::AgentsArgs),
    /// List the tools you may call
    Tools(tools::ToolsArgs),
    /// List, show, watch or cancel jobs
    Jobs(jobs::JobsArgs),
    /// Show past events, or follow new ones
    Events(events::EventsArgs),
    /// Store content and retrieve it by its hash
    Cas(cas::CasArgs),
    /// List, show, create or annotate artifacts, or show their lineage
    Artifacts(artifacts::ArtifactsArgs),
    /// Describe or query what was made; name, tag and connect devices, and find them again
    Graph(graph::GraphArgs),
    /// Place sound on the timeline and play it, or run the process that plays
    Garden(garden::GardenArgs),
    /// Check tunes and make music files from them, without a daemon
    Studio(studio::StudioArgs),
    /// Manage the sealed keys of model providers for this user's daemon
    Secret(secret::SecretArgs),
    /// Create, list or revoke tokens
    Token(token::TokenArgs),
    /// Serve MCP on standard input and output, or configure an agent to use it
    Mcp(mcp::McpArgs),
    /// Show past calls: who made them and how they ended
    Audit(audit::AuditArgs),
    /// Explain what happened to a call
    Why(why::WhyArgs),
    /// Check that your program implements the tool protocol
    Verify(verify::VerifyArgs),
    /// Check ports, tokens and settings, and suggest fixes
    Doctor(doctor::DoctorArgs),
    /// Show or check the configuration
    Config(config::ConfigArgs),
    /// Print a shell completion script
    Completions(completions::CompletionsArgs),
}

impl Command {
    /// Whether answers are JSON, so that errors are JSON too.
    #[must_use]
    pub const fn wants_json(&self) -> bool {
        match self {
            Self::Serve(args) => args.json,
            Self::Stop(args) => args.local.json,
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
            Self::Graph(args) => args.json,
            Self::Garden(args) => args.json,
            Self::Studio(args) => args.json,
            Self::Secret(args) => args.local.json,
            Self::Token(args) => args.json,
            Self::Mcp(_) => false,
            Self::Audit(args) => args.json,
            Self::Why(args) => args.json,
            Self::Verify(args) => args.wants_json(),
            Self::Doctor(args) => args.json,
            Self::Config(args) => args.local.json,
            Self::Completions(_) => false,
        }
    }
}
