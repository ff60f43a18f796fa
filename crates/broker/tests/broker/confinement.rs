//! Sessions with agents in a sandbox, through the broker's entry point.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use camino::Utf8PathBuf;
use ringback_broker::{
    AgentCommand, AgentProtocol, Config, Confinement, Credential, InsideProgram, SandboxRules,
};
use ringback_proto::request::{SessionListRequest, SessionListResponse, SessionMessageRequest};
use ringback_sandbox::{BackendChoice, DockerSettings, Limits};

use crate::common::{World, start_with};
use crate::sessions::{call, end, is_idle, project, refused, said, say, to_project, until};

/// Runs each message in a shell, and reports the output.
pub(crate) const SHELL: &str = r#"while read -r line; do
  text=$(printf '%s' "$line" | sed 's/.*"text":"\(.*\)"}/\1/')
  printf '{"type":"message","text":"%s"}\n' "$(eval "$text" 2>&1 | tr '\n' ' ')"
  echo '{"type":"done"}'
done"#;

#[derive(Debug)]
pub(crate) struct Inside(pub(crate) Utf8PathBuf);

impl InsideProgram for Inside {
    fn path(&self) -> std::io::Result<Utf8PathBuf> {
        Ok(self.0.clone())
    }
}

pub(crate) fn rules(config: &Config) -> SandboxRules {
    let is_root = rustix::process::geteuid().is_root();
    SandboxRules {
        state_dir: config.data_dir.join("sandbox"),
        limits: if is_root { Limits::default() } else { Limits::none() },
        read_only: Vec::new(),
        hidden: [&config.data_dir, &config.sessions.run_dir].map(Into::into).to_vec(),
        home: None,
        backend: BackendChoice::Bubblewrap,
        program: None,
        docker: DockerSettings::default(),
    }
}

pub(crate) fn with_shell(config: &mut Config) {
    let command = ["/bin/sh", "-c", SHELL, "{inside}"].map(str::to_owned).to_vec();
    let agent = AgentCommand { command, ..AgentCommand::default() };
    config.sessions.agents.insert("shell".to_owned(), agent);
    config.sessions.agent_default = "shell".to_owned();
    config.sessions.inside = Some(Arc::new(Inside("/usr/bin/env".into())));
    config.sessions.confinement = Confinement::Sandbox(Box::new(rules(config)));
}

/// Returns the agent's answer to one message.
async fn ask(fixture: &World, text: &str) -> String {
    let who = Credential::local();
    let project = project(fixture, &who).await;
    let started = say(fixture, &who, to_project(project, text)).await;
    let (session, since) = (started.session_id, started.last_event_index);
    let events = until(fixture, &who, session, since, is_idle).await;
    assert_eq!(said(&events).len(), 1, "{events:?}");
    let answer = said(&events)[0].to_owned();
    end(fixture, &who, session).await;
    answer
}

/// Rule: a confined agent finds its workspace, its socket and its program inside in the usual
/// places, and the response says that it is confined.
#[tokio::test]
async fn a_confined_agent_finds_everything_where_it_always_is() {
    let fixture = start_with(with_shell).await;
    let who = Credential::local();
    let project = project(&fixture, &who).await;
    let text = "echo $0 $RINGBACK_SOCKET $HOME $PWD; test -x $0 && ls -A /mcp; touch made";
    let started = say(&fixture, &who, to_project(project, text)).await;
    assert!(started.confined);
    let (session, since) = (started.session_id, started.last_event_index);
    let events = until(&fixture, &who, session, since, is_idle).await;
    let expected = "/mcp/bin/ringback-inside /mcp/relay.sock /home/agent /workspace bin ";
    assert_eq!(said(&events), [expected], "{events:?}");
    let listed: SessionListResponse = call(&fixture, &who, SessionListRequest::default()).await;
    assert!(listed.sessions[0].confined && listed.sessions[0].notice.is_none());
    let workspace = std::path::Path::new(&listed.sessions[0].workspace_path);
    assert!(workspace.join("made").exists(), "the workspace is shared with this machine");
    end(&fixture, &who, session).await;
    let notes = fixture.dir().join("data/sandbox/boxes");
    assert_eq!(std::fs::read_dir(notes).unwrap().count(), 0, "nothing is left of the sandbox");
}

/// Rule: an agent sees neither the data directory nor the workspace or socket of another session.
#[tokio::test]
async fn a_confined_agent_sees_nothing_of_the_daemon_or_of_others() {
    let fixture = start_with(with_shell).await;
    let dir = fixture.dir().display().to_string();
    let script = format!("ls -d {dir} {dir}/data {dir}/run /proc/1/root{dir} || true");
    let answer = ask(&fixture, &script).await;
    assert_eq!(answer.matches("No such file").count(), 4, "{answer}");
    assert_eq!(ask(&fixture, "ls -A /workspace /tmp | grep -v :; true").await.trim(), "");
}

/// Rule: when a session ends, nothing of its agent is left, whatever the agent did to stay.
#[tokio::test]
async fn ending_a_confined_session_ends_what_left_its_group() {
    let fixture = start_with(with_shell).await;
    let number = 1_000_000 + std::process::id();
    let script =
        format!("setsid sleep {number} >/dev/null 2>&1 & until pgrep -x sleep; do :; done");
    ask(&fixture, &script).await;
    let left = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|process| std::fs::read_to_string(process.path().join("cmdline")).ok());
    assert_eq!(left.filter(|said| said == &format!("sleep\0{number}\0")).count(), 0);
}

/// Rule: if a layer is missing, no session starts, and the error names the layer, its fix, and how
/// to run without it.
#[tokio::test]
async fn without_a_layer_no_session_starts() {
    let without = |config: &mut Config| {
        with_shell(config);
        let program = Some("/nowhere/bwrap".into());
        let rules = SandboxRules { program, ..rules(config) };
        config.sessions.confinement = Confinement::Sandbox(Box::new(rules));
    };
    let fixture = start_with(without).await;
    let who = Credential::local();
    let project = project(&fixture, &who).await;
    let (_, message) = refused(&fixture, &who, to_project(project, "echo ran")).await;
    for part in ["bubblewrap", "apt install bubblewrap", "sandbox.backend = \"none\""] {
        assert!(message.contains(part), "{part}: {message}");
    }
    let listed: SessionListResponse = call(&fixture, &who, SessionListRequest::default()).await;
    assert!(listed.sessions.is_empty(), "{listed:?}");
}

/// Rule: a missing program is reported as such, with what to do.
#[tokio::test]
async fn an_agent_that_is_not_here_is_told_with_what_to_do() {
    let agents = |config: &mut Config| {
        with_shell(config);
        let agent = |program: &str, protocol| AgentCommand {
            command: [program].into_iter().filter(|it| !it.is_empty()).map(Into::into).collect(),
            protocol,
            ..AgentCommand::default()
        };
        config.sessions.path = "/nowhere/bin".into();
        config.sessions.agents.extend([
            ("path".to_owned(), agent("/usr/bin/no-such-agent", AgentProtocol::Lines)),
            ("name".to_owned(), agent("no-such-agent", AgentProtocol::Lines)),
            ("preset".to_owned(), agent("", AgentProtocol::Preset("goose".to_owned()))),
        ]);
    };
    let fixture = start_with(agents).await;
    let who = Credential::local();
    for (agent, parts) in [
        ("path", ["program `/usr/bin/no-such-agent` not found;", "`command`"]),
        ("name", ["program `no-such-agent` not found in the daemon's PATH", "`command`"]),
        (
            "preset",
            ["program `goose` not found in the daemon's PATH", "ringback agents check goose"],
        ),
    ] {
        let project = project(&fixture, &who).await;
        let message =
            SessionMessageRequest { agent: Some(agent.to_owned()), ..to_project(project, "hello") };
        let session = say(&fixture, &who, message).await.session_id;
        let events = until(&fixture, &who, session, -1, |event| event.kind == "error").await;
        let text = events.last().unwrap().text.clone().unwrap();
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    }
}

/// Rule: an agent that is a script among packages runs in its sandbox with the interpreter that it
/// was installed with, wherever both are.
#[tokio::test]
async fn an_agent_of_packages_runs_in_its_box() {
    let machine = tempfile::tempdir().unwrap();
    let (bin, package) = (machine.path().join("bin"), machine.path().join("lib/node_modules/x"));
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::create_dir_all(&package).unwrap();
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::copy("/bin/sh", bin.join("its-own-sh")).unwrap();
    std::fs::write(package.join("rest.sh"), SHELL).unwrap();
    let script = package.join("agent.sh");
    std::fs::write(&script, "#!/usr/bin/env its-own-sh\n. \"$(dirname \"$0\")/rest.sh\"\n")
        .unwrap();
    std::fs::set_permissions(&script, executable).unwrap();
    std::os::unix::fs::symlink("../lib/node_modules/x/agent.sh", bin.join("agent")).unwrap();
    let agents = |config: &mut Config| {
        with_shell(config);
        config.sessions.path = bin.clone().into();
        let agent = AgentCommand { command: vec!["agent".to_owned()], ..AgentCommand::default() };
        config.sessions.agents.insert("shell".to_owned(), agent);
    };
    let fixture = start_with(agents).await;
    let answer = ask(&fixture, "readlink /proc/$$/exe; echo $0").await;
    let machine = std::fs::canonicalize(machine.path()).unwrap();
    let interpreter = machine.join("bin/its-own-sh");
    let script = machine.join("lib/node_modules/x/agent.sh");
    assert_eq!(answer, format!("{} {} ", interpreter.display(), script.display()));
    let outside = machine.join("bin/agent");
    let answer = ask(&fixture, &format!("ls {} || echo", outside.display())).await;
    assert!(answer.contains("No such file"), "{answer}");
}
