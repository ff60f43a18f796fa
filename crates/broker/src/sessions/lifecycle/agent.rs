//! Turns a configured agent into a command that can be started.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use camino::Utf8PathBuf;
use ringback_agents::preset::{ModelDoor, PresetProtocol, Setting, preset};
use ringback_agents::{
    AcpOptions, AgentLimits, AgentSpec, ConfigFile, Installed, McpServer, OneShot, Permissions,
    Programs, Protocol, SharedPolicy,
};

use crate::sessions::AgentCommand;

/// Placeholder in an agent's command for the program inside.
pub(in crate::sessions) const INSIDE: &str = "{inside}";
/// Name of the agent's MCP server.
const SERVER: &str = "ringback";
/// Placeholder that the forwarder replaces by the address of the model proxy.
const MODEL: &str = "{model}";
/// Placeholder that it replaces by the address of the network proxy.
const PROXY: &str = "{proxy}";
/// Environment variables in which programs look for a proxy.
const PROXY_NAMES: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];
/// Reached without the proxy: the agent's own machine, where its model has an address.
const NO_PROXY: &str = "localhost,127.0.0.1,::1";
/// Sent by the agent in place of an API key, which it does not have.
const PLACEHOLDER: &str = "placeholder";
/// `PATH` of agents.
pub(in crate::sessions) const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The protocol an agent speaks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum AgentProtocol {
    /// JSON lines.
    #[default]
    Lines,
    /// The Agent Client Protocol.
    Acp,
    /// Started once per message.
    OneShot,
    /// The protocol of the preset of this name.
    Preset(String),
}

/// The paths and environment of a session, as its agent sees them.
#[derive(Debug)]
pub(in crate::sessions) struct Place {
    /// Path of its workspace on the host.
    pub(in crate::sessions) host_workspace: Utf8PathBuf,
    pub(in crate::sessions) workspace: Utf8PathBuf,
    /// Path of its home on the host.
    pub(in crate::sessions) host_home: Utf8PathBuf,
    pub(in crate::sessions) home: Utf8PathBuf,
    pub(in crate::sessions) socket: Utf8PathBuf,
    /// Path of the program inside, if there is one.
    pub(in crate::sessions) inside: Option<String>,
    /// Socket of the model proxy.
    pub(in crate::sessions) model_socket: Utf8PathBuf,
    /// Socket of the network proxy, if it has one.
    pub(in crate::sessions) network_socket: Option<Utf8PathBuf>,
    /// Environment of every agent.
    pub(in crate::sessions) env: BTreeMap<String, String>,
    /// The part of it that the program inside needs.
    pub(in crate::sessions) server_env: Vec<(String, String)>,
    /// The toolchains of its user.
    pub(in crate::sessions) toolchains: PlacedToolchains,
}

/// The toolchains of a user, as an agent sees them.
#[derive(Debug, Default)]
pub(in crate::sessions) struct PlacedToolchains {
    /// The `PATH`; the system's alone if absent.
    pub(in crate::sessions) path: Option<String>,
    /// Variables that name toolchains and caches.
    pub(in crate::sessions) env: BTreeMap<String, String>,
}

/// The answers to an agent's permission requests.
#[derive(Debug)]
pub(in crate::sessions) struct Answers {
    /// The answer to every request; `Ask` if it depends on the request.
    pub(in crate::sessions) overall: Permissions,
    pub(in crate::sessions) policy: SharedPolicy,
}

/// An agent that can be started.
#[derive(Debug)]
pub(in crate::sessions) struct Ready {
    pub(in crate::sessions) spec: AgentSpec,
    /// Further paths that its program needs to read.
    pub(in crate::sessions) shown: Vec<PathBuf>,
    pub(in crate::sessions) protocol: Protocol,
    pub(in crate::sessions) files: Vec<ConfigFile>,
}

/// A command before environment and paths are added.
struct BaseCommand {
    command: Vec<String>,
    env: BTreeMap<String, String>,
    files: Vec<ConfigFile>,
    protocol: Protocol,
}

/// Returns the environment by which programs find the network proxy.
pub(in crate::sessions) fn proxy_env() -> BTreeMap<String, String> {
    let proxy = PROXY_NAMES.map(|name| (name, PROXY));
    let direct = [("NO_PROXY", NO_PROXY), ("no_proxy", NO_PROXY)];
    // Node uses a proxy only with this flag.
    let all = proxy.into_iter().chain(direct).chain([("NODE_USE_ENV_PROXY", "1")]);
    all.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Returns a `PATH` with the directory of the agent's interpreter. Where the user has it anyway, it
/// keeps its place: another version before it is meant.
fn path_with(interpreter_dir: Option<&Path>, path: &str) -> String {
    match interpreter_dir {
        Some(dir) if !std::env::split_paths(path).any(|known| known == dir) => {
            format!("{}:{path}", dir.display())
        }
        Some(_) | None => path.to_owned(),
    }
}

impl AgentCommand {
    /// Returns whether it needs the path of the program inside.
    pub(in crate::sessions) fn wants_inside(&self, is_there: bool, has_network: bool) -> bool {
        let is_named = has_network
            || self.provider.is_some()
            || self.command.iter().any(|word| word == INSIDE);
        match self.protocol {
            AgentProtocol::Lines | AgentProtocol::OneShot => is_named,
            AgentProtocol::Acp | AgentProtocol::Preset(_) => is_named || is_there,
        }
    }

    /// Prepares an agent, which continues a conversation if there is one.
    pub(in crate::sessions) fn ready(
        &self,
        place: Place,
        programs: &Programs,
        permissions: &Answers,
        conversation: Option<String>,
    ) -> Result<Ready, String> {
        let mut started = self.started(&place, permissions, conversation)?;
        let Installed { shown, interpreter_dir, .. } =
            self.install(&mut started.command, &place, programs)?;
        let path = place.toolchains.path.as_deref().unwrap_or(PATH);
        let path = path_with(interpreter_dir.as_deref(), path);
        let mut command = self.forwarded(&place, started.command).into_iter();
        let mut env = started.env;
        env.extend(place.toolchains.env);
        if place.network_socket.is_some() {
            env.extend(proxy_env());
        }
        env.extend(self.env.clone());
        env.extend(place.env);
        let home = place.home.as_str();
        for (name, value) in [("PATH", &*path), ("HOME", home), ("LANG", "C.UTF-8")] {
            env.entry(name.to_owned()).or_insert_with(|| value.to_owned());
        }
        let spec = AgentSpec {
            command: command.next().unwrap_or_default().into(),
            args: command.map(Into::into).collect(),
            env: env.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            workspace: place.host_workspace.into(),
            home: place.host_home.into(),
            limits: AgentLimits::default(),
            launcher: None,
        };
        Ok(Ready { spec, shown, protocol: started.protocol, files: started.files })
    }

    /// Replaces the program in the command by its full path.
    fn install(
        &self,
        command: &mut [String],
        place: &Place,
        programs: &Programs,
    ) -> Result<Installed, String> {
        let Some(program) = command.first_mut() else { return Ok(Installed::default()) };
        if place.inside.as_ref() == Some(program) {
            return Ok(Installed::default());
        }
        let installed = programs.find(program).or_else(|| self.find_packaged(programs));
        let installed = installed.ok_or_else(|| self.not_here(program))?;
        if let Some(found) = installed.program.to_str() {
            found.clone_into(program);
        }
        Ok(installed)
    }

    /// Finds the program of a preset under the names that its packages give it.
    fn find_packaged(&self, programs: &Programs) -> Option<Installed> {
        let AgentProtocol::Preset(name) = &self.protocol else { return None };
        let preset = preset(name).filter(|_| self.command.is_empty())?;
        preset.other_names.iter().find_map(|name| programs.find(name))
    }

    fn not_here(&self, program: &str) -> String {
        let what_to_do = match &self.protocol {
            AgentProtocol::Preset(name) => format!(
                "`ringback agents check {name}` shows how to install it; if it is already \
                 installed, set `command = [\"/path/to/{program}\"]`"
            ),
            AgentProtocol::Lines | AgentProtocol::Acp | AgentProtocol::OneShot => {
                "set its path in the agent's `command`".to_owned()
            }
        };
        let place = if program.contains('/') { "" } else { " in the daemon's PATH" };
        format!("program `{program}` not found{place}; {what_to_do}")
    }

    /// Prepends the program that forwards addresses to the proxies, if it has any.
    fn forwarded(&self, place: &Place, command: Vec<String>) -> Vec<String> {
        let model = self.provider.as_ref().map(|_| ["--socket", place.model_socket.as_str()]);
        let network = place.network_socket.as_ref().map(|socket| ["--proxy", socket.as_str()]);
        if model.is_none() && network.is_none() {
            return command;
        }
        let inside = place.inside.as_deref().unwrap_or_default();
        let doors = model.into_iter().chain(network).flatten();
        let before = [inside, "forward"].into_iter().chain(doors).chain(["--"]);
        before.map(str::to_owned).chain(command).collect()
    }

    fn started(
        &self,
        place: &Place,
        permissions: &Answers,
        conversation: Option<String>,
    ) -> Result<BaseCommand, String> {
        let inside = place.inside.clone().unwrap_or_default();
        let filled = |word: &String| if word == INSIDE { inside.clone() } else { word.clone() };
        let mut command: Vec<_> = self.command.iter().map(filled).collect();
        let (env, files) = (BTreeMap::new(), Vec::new());
        let protocol = match &self.protocol {
            AgentProtocol::Lines => Protocol::Lines,
            AgentProtocol::Acp => Protocol::Acp(place.acp(permissions, conversation)),
            AgentProtocol::OneShot => {
                let args = command.split_off(command.len().min(1));
                let has_started = conversation.is_some();
                Protocol::OneShot(OneShot { args, args_again: Vec::new(), has_started })
            }
            AgentProtocol::Preset(name) => {
                return self.of_preset(name, place, permissions, conversation);
            }
        };
        Ok(BaseCommand { command, env, files, protocol })
    }

    fn of_preset(
        &self,
        name: &str,
        place: &Place,
        permissions: &Answers,
        conversation: Option<String>,
    ) -> Result<BaseCommand, String> {
        let preset = preset(name).ok_or_else(|| format!("unknown preset `{name}`"))?;
        let server = place.server();
        let door = self.provider.as_ref().map(|_| ModelDoor {
            url: MODEL.to_owned(),
            key: PLACEHOLDER.to_owned(),
            model: self.model.clone().unwrap_or_default(),
        });
        let prepared = preset.prepare(&Setting {
            inside: place.inside.as_deref().unwrap_or_default(),
            inside_args: &server.args,
            home: place.home.as_str(),
            model: door.as_ref(),
            permissions: permissions.overall,
        });
        let mut command = self.command.clone();
        if command.is_empty() {
            command.push(prepared.program);
        }
        let protocol = match prepared.protocol {
            PresetProtocol::Acp => {
                command.extend(prepared.args);
                Protocol::Acp(place.acp(permissions, conversation))
            }
            PresetProtocol::OneShot => Protocol::OneShot(OneShot {
                args: prepared.args,
                args_again: prepared.again,
                has_started: conversation.is_some(),
            }),
        };
        Ok(BaseCommand { command, env: prepared.env, files: prepared.files, protocol })
    }
}

impl Place {
    fn acp(&self, permissions: &Answers, resume: Option<String>) -> AcpOptions {
        let servers = self.inside.iter().map(|_| self.server()).collect();
        let permissions = permissions.policy.clone();
        AcpOptions { cwd: self.workspace.clone().into(), servers, resume, permissions }
    }

    fn server(&self) -> McpServer {
        McpServer {
            name: SERVER.to_owned(),
            command: self.inside.clone().unwrap_or_default().into(),
            args: vec!["--socket".to_owned(), self.socket.to_string()],
            env: self.server_env.clone(),
        }
    }
}
