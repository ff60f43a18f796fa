//! `ringback agents`: the known agents.

use std::ffi::OsString;

use clap::{Args, Subcommand};
use ringback_agents::preset::{InstalledAgent, Preset, check, preset, presets};
use serde::Serialize;

use crate::config::Environment;
use crate::failure::Failure;
use crate::screen::Screen;

/// Environment variables for a program that is asked for its version.
const PASSED_ON: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];

/// `ringback agents`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ringback agents list\n  ringback agents check\n  ringback agents check goose\n\n\
                  To use one in sessions, configure it:\n  [sessions.agents.goose]\n  preset = \"goose\"\n\n\
                  No daemon is needed. `check NAME` exits with 1 if the agent is not installed."
)]
pub struct AgentsArgs {
    /// What to do
    #[command(subcommand)]
    pub action: AgentsAction,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// Actions on agents.
#[derive(Debug, Subcommand)]
pub enum AgentsAction {
    /// List known agents and whether they are installed
    List,
    /// Show each agent's program and version, or how to install it
    Check {
        /// Only this agent; fails if it is not installed
        name: Option<String>,
    },
}

#[derive(Debug, Serialize)]
struct AgentList {
    agents: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    name: &'static str,
    title: &'static str,
    protocol: &'static str,
    program: &'static str,
    found: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    install: &'static str,
}

pub(crate) async fn run(args: &AgentsArgs, environment: &Environment) -> Result<(), Failure> {
    let screen = Screen::new(args.json);
    match &args.action {
        AgentsAction::List => {
            let path = environment.get("PATH").unwrap_or_default();
            let row = |preset: &'static Preset| {
                let program = preset.find(path);
                Row::of(preset, program.map(|program| InstalledAgent { program, version: None }))
            };
            let listed = AgentList { agents: presets().iter().map(row).collect() };
            screen.answer(&listed, |listed| table(screen, listed))
        }
        AgentsAction::Check { name: None } => {
            let mut agents = Vec::new();
            for preset in presets() {
                agents.push(checked(preset, environment).await);
            }
            screen.answer(&AgentList { agents }, |listed| findings(screen, listed))
        }
        AgentsAction::Check { name: Some(name) } => one(name, screen, environment).await,
    }
}

async fn one(name: &str, screen: Screen, environment: &Environment) -> Result<(), Failure> {
    let Some(preset) = preset(name) else {
        let names: Vec<_> = presets().iter().map(|preset| preset.name.as_str()).collect();
        let text = format!("unknown agent `{name}`; known agents: {}", names.join(", "));
        return Err(Failure::Usage(text));
    };
    let row = checked(preset, environment).await;
    if !row.found {
        let Row { title, program, install, .. } = row;
        let text = format!(
            "{title} is not installed: no `{program}` in PATH; install it with `{install}`"
        );
        return Err(Failure::Wrong(text));
    }
    screen.answer(&row, |row| {
        screen.pairs(&[
            ("agent", row.title.to_owned()),
            ("protocol", row.protocol.to_owned()),
            ("program", row.path.clone().unwrap_or_default()),
            ("version", row.version.clone().unwrap_or_else(|| "unknown".to_owned())),
        ])
    })?;
    let (name, program) = (row.name, row.path.unwrap_or_default());
    screen.remark(format_args!(
        "next: add these lines to the configuration (`ringback config path`) and restart the daemon\n\n\
         [sessions.agents.{name}]\npreset = \"{name}\"\ncommand = [\"{program}\"]\n\
         provider = \"NAME\"   # the [providers.NAME] that has the key\nmodel = \"MODEL\""
    ));
    Ok(())
}

async fn checked(preset: &'static Preset, environment: &Environment) -> Row {
    let path = environment.get("PATH").unwrap_or_default();
    let variable = |name: &str| Some((OsString::from(name), environment.get(name)?.to_owned()));
    let env = PASSED_ON.iter().filter_map(|name| variable(name)).collect();
    Row::of(preset, check(preset, path, env).await)
}

impl Row {
    fn of(preset: &'static Preset, found: Option<InstalledAgent>) -> Self {
        let is_found = found.is_some();
        let (path, version) = match found {
            Some(found) => (Some(found.program.display().to_string()), found.version),
            None => (None, None),
        };
        Self {
            name: &preset.name,
            title: &preset.title,
            protocol: preset.protocol.name(),
            program: &preset.program,
            found: is_found,
            path,
            version,
            install: &preset.install,
        }
    }
}

fn table(screen: Screen, listed: &AgentList) -> String {
    let rows = listed.agents.iter().map(|row| {
        let place = row.path.clone().unwrap_or_else(|| "not installed".to_owned());
        [row.name.to_owned(), row.title.to_owned(), row.protocol.to_owned(), place]
    });
    screen.table(["NAME", "AGENT", "PROTOCOL", "PROGRAM"], rows, "no agents")
}

fn findings(screen: Screen, listed: &AgentList) -> String {
    let rows = listed.agents.iter().map(|row| {
        let found = match (&row.path, &row.version) {
            (None, _) => format!("not installed; {}", row.install),
            (Some(path), None) => path.clone(),
            (Some(path), Some(version)) => format!("{version} at {path}"),
        };
        [row.name.to_owned(), row.title.to_owned(), found]
    });
    screen.table(["NAME", "AGENT", "FOUND"], rows, "no agents")
}
