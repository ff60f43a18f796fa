//! Where a tool server runs: in its own sandbox, with its own home. Agents cannot write to its
//! working directory, its home or the search path of its program. Where agents are not confined,
//! it is a plain child process with the same directory and home.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use ringback_agents::{AgentLimits, AgentSpec, Installed, LaunchedProcess, Programs};
use ringback_core::sessions::SessionPlace;
use ringback_proto::network::{NetworkMode, NetworkPolicy};
use ringback_proto::request::{CallerServer, ServerWorkspace};
use ringback_proto::{Error, ErrorKind, Result};
use ringback_sandbox::{ConfinedProgram, ReadOnly, SandboxGuard, SandboxSpec, Workspace, places};
use tokio::sync::watch;

use crate::Broker;
use crate::confinement::{BoxProcess, Confiner};
use crate::disk::{BoxEnd, Watch};
use crate::failure::chain;
use crate::kernel::Kernel;
use crate::sessions::Offers;
use crate::sessions::lifecycle::agent::{PATH, proxy_env};
use crate::sessions::lifecycle::start::{not_made, private_dir};
use crate::sessions::reach::{Socket, check_network};
use crate::workspaces;

/// Placeholder in arguments for the path of the workspace.
const WORKSPACE: &str = "{workspace}";
/// Socket of its network proxy, as seen in the sandbox.
const DOOR: &str = "/mcp/network.sock";

/// Everything that exists for a tool server while it runs.
#[derive(Debug)]
pub(super) struct ServerResources {
    kernel: Arc<Kernel>,
    own: Option<OwnedResources>,
}

#[derive(Debug)]
struct OwnedResources {
    /// Its home, and the directory of its network proxy.
    dirs: Vec<Utf8PathBuf>,
    /// Disk watch.
    watch: Watch,
    /// Stops it when it uses too much disk space.
    end: BoxEnd,
    hold: Option<SandboxGuard>,
    door: Option<Door>,
}

/// Its network proxy.
#[derive(Debug)]
struct Door {
    _socket: Socket,
    /// The policy that the proxy watches.
    _policy: watch::Sender<Arc<NetworkPolicy>>,
}

/// The program to start.
#[derive(Debug)]
struct ServerCommand {
    installed: Installed,
    args: Vec<OsString>,
    env: BTreeMap<OsString, OsString>,
}

impl ServerResources {
    /// Waits until the tool server exceeds its disk limit, and returns the reason.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(super) async fn is_full(&self) -> String {
        let Some(own) = &self.own else { return std::future::pending().await };
        own.end.stop.cancelled().await;
        own.end.why().unwrap_or_default().to_owned()
    }

    /// Ends the rest of the tool server, and removes its directories.
    ///
    /// # Cancel safety
    /// The work continues in a task.
    pub(super) async fn gone(mut self) {
        if let Some(own) = self.own.take() {
            let kernel = Arc::clone(&self.kernel);
            let removing = kernel.tasks.spawn(own.remove(Arc::clone(&kernel)));
            drop(removing.await);
        }
    }
}

impl Drop for ServerResources {
    fn drop(&mut self) {
        if let Some(own) = self.own.take() {
            drop(self.kernel.tasks.spawn(own.remove(Arc::clone(&self.kernel))));
        }
    }
}

impl OwnedResources {
    async fn remove(self, kernel: Arc<Kernel>) {
        let Self { dirs, watch, hold, door, .. } = self;
        drop((door, watch));
        if let Some(hold) = hold {
            hold.gone().await;
        }
        let removed = kernel.blocking(move || {
            let removed: Vec<_> = dirs.iter().map(|dir| workspaces::remove(dir)).collect();
            removed.into_iter().collect::<Result<()>>()
        });
        if let Err(error) = removed.await {
            tracing::warn!(%error, "cannot remove a tool server's directory before the next start");
        }
    }
}

impl Offers {
    /// Starts the program of a tool server.
    pub(super) async fn launch_server(
        self: &Arc<Self>,
        place: SessionPlace,
        named: &CallerServer,
    ) -> Result<(LaunchedProcess, ServerResources)> {
        let confiner = self.sandboxes.confiner.clone();
        if confiner.is_none() {
            check_unconfined(named)?;
        }
        if let Some(network) = &named.network {
            check_network(network)?;
        }
        let home = self.server_homes().join(self.random_name());
        let end = BoxEnd::default();
        let watch = self.disk.watch_box(place.project, home.clone(), end.clone()).await;
        let dirs = vec![home.clone()];
        let own = OwnedResources { dirs, watch, end, hold: None, door: None };
        let mut resources = ServerResources { kernel: Arc::clone(&self.kernel), own: Some(own) };
        let made = home.clone();
        let make = move || {
            private_dir(&made).map_err(|error| not_made("the home of a tool server", error))
        };
        self.kernel.blocking(make).await?;
        let launched = match confiner {
            None => self.launch_plain(place, named, &home).await,
            Some(confiner) => {
                self.launch_confined(&confiner, place, named, &home, &mut resources).await
            }
        };
        Ok((launched?, resources))
    }

    /// Returns the directory of tool server homes: next to those of agents, and visible in no other
    /// sandbox.
    fn server_homes(&self) -> Utf8PathBuf {
        self.kernel.config.data_dir.join("servers")
    }

    /// Removes the homes of tool servers of an earlier run.
    pub(crate) async fn remove_leftover_servers(&self) {
        let dir = self.server_homes();
        let removed = self.kernel.blocking(move || workspaces::remove(&dir));
        if let Err(error) = removed.await {
            tracing::warn!(%error, "cannot remove the tool server homes of an earlier run");
        }
    }

    fn random_name(&self) -> String {
        let digits = blake3::Hash::from_bytes(self.kernel.entropy.bytes()).to_hex();
        digits[..12].to_owned()
    }

    async fn launch_plain(
        &self,
        place: SessionPlace,
        named: &CallerServer,
        home: &Utf8Path,
    ) -> Result<LaunchedProcess> {
        let workspace = self.workspaces.workspace_path(place.workspace);
        let ServerCommand { installed, args, env } =
            self.started(None, named, home, &workspace).await?;
        let spec = AgentSpec {
            command: installed.program,
            args,
            env: env.into_iter().collect(),
            workspace: home.into(),
            home: home.into(),
            limits: AgentLimits::default(),
            launcher: None,
        };
        ringback_agents::spawn(&spec).map_err(|error| unusable(named, &chain(&error)))
    }

    async fn launch_confined(
        self: &Arc<Self>,
        confiner: &Arc<Confiner>,
        place: SessionPlace,
        named: &CallerServer,
        home: &Utf8Path,
        resources: &mut ServerResources,
    ) -> Result<LaunchedProcess> {
        let id = place.project;
        let project = self.kernel.read(move |store| store.project(id)).await?;
        let project = project.ok_or_else(|| Error::not_found("project", id))?;
        let boxes = self.sandboxes.boxes("a tool server").await?;
        self.sandboxes.check_boxes(&project).await?;
        let image = self.images.image_of_sessions(&project).await?;
        let inner = [places::HOME, places::WORKSPACE].map(Utf8Path::new);
        let mut started = self.started(Some(confiner), named, inner[0], inner[1]).await?;
        let door = self.server_door(place, named, resources).await?;
        let (session_dir, inside) = door.unzip();
        if session_dir.is_some() {
            started.forward();
        }
        let ServerCommand { installed, args, env } = started;
        let workspace = self.workspaces.workspace_path(place.workspace).into_std_path_buf();
        let plain = boxes.plain();
        let shown = installed.shown.iter().map(ReadOnly::same);
        let spec = SandboxSpec {
            program: installed.program,
            args,
            env: env.into_iter().collect(),
            workspace: match named.workspace {
                ServerWorkspace::None => Workspace::None,
                ServerWorkspace::Read => Workspace::Read(workspace),
                ServerWorkspace::Write => Workspace::Write(workspace),
            },
            working_dir: Some(places::HOME.into()),
            home: Some(home.into()),
            session_dir: session_dir.map(Into::into),
            inside: inside.map(Into::into),
            read_only: plain.read_only.iter().cloned().chain(shown).collect(),
            image,
            ..plain
        };
        let confined = boxes.sandbox.start(spec).await;
        let confined = confined.map_err(|error| unusable(named, &chain(&error)))?;
        let ConfinedProgram { pipes, process, hold } = confined;
        if let Some(own) = &mut resources.own {
            own.hold = Some(hold);
        }
        Ok(LaunchedProcess {
            stdin: pipes.stdin,
            stdout: pipes.stdout,
            stderr: pipes.stderr,
            process: Box::new(BoxProcess(process)),
        })
    }

    /// Prepares the program of a tool server that sees its home and the workspace at these paths.
    async fn started(
        &self,
        confiner: Option<&Arc<Confiner>>,
        named: &CallerServer,
        home: &Utf8Path,
        workspace: &Utf8Path,
    ) -> Result<ServerCommand> {
        let args = named.args.iter().map(|arg| filled(arg, named.workspace, workspace));
        let args = args.collect::<Result<_>>()?;
        let (path, command) = (self.kernel.config.sessions.path.clone(), named.command.clone());
        let confiner = confiner.cloned();
        let find = move || {
            let programs = match &confiner {
                None => Programs::Here(path),
                Some(confiner) => confiner.programs(path).map_err(|error| {
                    Error::new(ErrorKind::Internal, chain(&error)).with_source(error)
                })?,
            };
            Ok(programs.find(&command))
        };
        let installed = self.kernel.blocking(find).await?;
        let installed = installed.ok_or_else(|| unusable(named, "program not found"))?;
        let dir = installed.interpreter_dir.as_ref();
        let path = dir.map_or_else(|| PATH.to_owned(), |dir| format!("{}:{PATH}", dir.display()));
        let own = [("PATH", path.as_str()), ("HOME", home.as_str()), ("LANG", "C.UTF-8")];
        let mut env: BTreeMap<OsString, OsString> =
            own.map(|(name, value)| (name.into(), value.into())).into();
        for name in &named.env {
            let value = std::env::var_os(name).ok_or_else(|| {
                let message = format!("`{name}` is not set in the daemon's environment");
                Error::invalid_field("caller_server", message)
            })?;
            env.insert(name.into(), value);
        }
        Ok(ServerCommand { installed, args, env })
    }

    /// Opens the network proxy of a tool server, if its policy has one. Returns the directory of
    /// the socket, and the program that forwards an address to it.
    async fn server_door(
        &self,
        place: SessionPlace,
        named: &CallerServer,
        resources: &mut ServerResources,
    ) -> Result<Option<(Utf8PathBuf, Utf8PathBuf)>> {
        let network = named.network.clone().filter(|network| network.mode.has_door());
        let (Some(network), Some(own)) = (network, &mut resources.own) else { return Ok(None) };
        let no_door =
            |why: &str| not_made("the network proxy of a tool server", std::io::Error::other(why));
        let inside = self.kernel.config.sessions.inside.clone();
        let inside = inside.ok_or_else(|| no_door("this daemon has no program that reaches it"))?;
        let networks = self.kernel.config.sessions.doors.network.as_ref();
        let networks = networks.ok_or_else(|| no_door("this daemon has no network proxy"))?;
        let dir = self.kernel.config.sessions.run_dir.join("s").join(self.random_name());
        own.dirs.push(dir.clone());
        let made = dir.clone();
        let prepare = move || {
            private_dir(&made)
                .and_then(|()| inside.path())
                .map_err(|error| not_made("the network proxy of a tool server", error))
        };
        let inside = self.kernel.blocking(prepare).await?;
        let (policy, asked) = watch::channel(Arc::new(network));
        let broker =
            self.rooms.upgrade().map(Broker).ok_or_else(|| no_door("the daemon has stopped"))?;
        let socket = networks.open(broker, place.root, &dir, asked);
        let socket =
            socket.map_err(|error| not_made("the network proxy of a tool server", error))?;
        own.door = Some(Door { _socket: Socket(socket), _policy: policy });
        Ok(Some((dir, inside)))
    }
}

impl ServerCommand {
    /// Prepends the program that forwards an address to the network proxy.
    fn forward(&mut self) {
        let program = std::mem::replace(&mut self.installed.program, places::INSIDE.into());
        let before = ["forward", "--proxy", DOOR, "--"].map(OsString::from);
        let after = std::mem::take(&mut self.args);
        self.args = before.into_iter().chain([program.into()]).chain(after).collect();
        for (name, value) in proxy_env() {
            self.env.entry(name.into()).or_insert_with(|| value.into());
        }
    }
}

/// Fills in the path of the workspace.
fn filled(arg: &str, access: ServerWorkspace, workspace: &Utf8Path) -> Result<OsString> {
    match access {
        ServerWorkspace::None if arg.contains(WORKSPACE) => {
            let message = format!(
                "`args` contain `{WORKSPACE}`, but the tool server has no workspace; set \
                 `\"workspace\": \"read\"` or `\"write\"`"
            );
            Err(Error::invalid_field("caller_server", message))
        }
        ServerWorkspace::None => Ok(arg.into()),
        ServerWorkspace::Read | ServerWorkspace::Write => {
            Ok(arg.replace(WORKSPACE, workspace.as_str()).into())
        }
    }
}

/// Rejects restrictions that cannot be enforced on an unconfined tool server: it only has its own
/// home.
fn check_unconfined(named: &CallerServer) -> Result<()> {
    let cannot_be_kept = |what: &str, instead: &str| {
        let message = format!(
            "programs are not confined here (sandbox.backend = \"none\"), so {what} cannot be \
             enforced; set `sandbox.backend = \"auto\"`, or use `{instead}`"
        );
        Err(Error::invalid_field("caller_server", message))
    };
    if named.workspace == ServerWorkspace::Read {
        return cannot_be_kept("a read-only workspace", "\"workspace\": \"write\"");
    }
    match &named.network {
        Some(network) if network.mode != NetworkMode::Full => {
            cannot_be_kept(&format!("network mode `{}`", network.mode), "\"mode\": \"full\"")
        }
        Some(_) | None => Ok(()),
    }
}

pub(super) fn unusable(named: &CallerServer, why: &str) -> Error {
    let message = format!("`{}` cannot be used as a tool server: {why}", named.command);
    Error::invalid_field("caller_server", message)
}
