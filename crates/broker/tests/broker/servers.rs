//! Tool servers that an administrator names: where they run, and what they see.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ringback_broker::{Config, Confinement, Credential};
use ringback_proto::ids::SessionId;
use ringback_proto::request::{
    CallerServer, ServerWorkspace, SessionContext, SessionGetRequest, SessionMessageRequest,
    SessionResponse,
};
use ringback_testkit::wait_for;
use serde_json::Value;

use crate::common::{World, start_with};
use crate::confinement::{Inside, with_shell};
use crate::sessions::{call, end, is_idle, project, refused, say, to_project, to_session, until};

/// A tool server that reports what it sees, as the description of its only tool.
const SERVER: &str = r#"
import json, os, sys
def wrote(path):
    try: open(path, 'w').close(); return True
    except OSError: return False
def seen():
    workspace = (sys.argv + ['/workspace'])[1]
    return json.dumps({
        'cwd': os.getcwd(), 'home': os.environ['HOME'], 'in_home': sorted(os.listdir(os.environ['HOME'])),
        'workspace': workspace, 'reads': os.path.exists(workspace + '/mine'),
        'writes': wrote(workspace + '/theirs'), 'env': sorted(os.environ), 'pid': os.getpid()})
for line in sys.stdin:
    said = json.loads(line)
    if 'id' not in said: continue
    if said['method'] == 'initialize':
        result = {'protocolVersion': said['params']['protocolVersion'],
            'capabilities': {'tools': {}}, 'serverInfo': {'name': 's', 'version': '1'}}
    else:
        result = {'tools': [{'name': 'look', 'description': seen(), 'inputSchema': {'type': 'object'}}]}
    print('complaining', file=sys.stderr, flush=True)
    print(json.dumps({'jsonrpc': '2.0', 'id': said['id'], 'result': result}), flush=True)
"#;

fn unconfined(config: &mut Config) {
    with_shell(config);
    config.sessions.inside = Some(Arc::new(Inside("/usr/bin/env".into())));
    config.sessions.confinement = Confinement::Unconfined;
}

fn server(args: &[&str], workspace: ServerWorkspace) -> CallerServer {
    CallerServer {
        command: "/usr/bin/python3".to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: Vec::new(),
        workspace,
        network: None,
    }
}

/// A session whose agent has left files in its workspace and its home.
async fn started_session(fixture: &World) -> (SessionId, PathBuf) {
    let who = Credential::local();
    let project = project(fixture, &who).await;
    let started =
        say(fixture, &who, to_project(project, "echo x > mine; echo x > $HOME/mine")).await;
    let (session, since) = (started.session_id, started.last_event_index);
    until(fixture, &who, session, since, is_idle).await;
    let shown: SessionResponse =
        call(fixture, &who, SessionGetRequest { session_id: session }).await;
    (session, shown.workspace_path.into())
}

fn offering(session: SessionId, server: CallerServer) -> SessionMessageRequest {
    let context = SessionContext {
        caller_id: Some("srv".to_owned()),
        caller_tools: None,
        caller_server: Some(Box::new(server)),
    };
    SessionMessageRequest { context: Some(context), ..to_session(session, "true") }
}

/// Returns the report of a session's tool server.
fn told(fixture: &World, session: SessionId) -> Value {
    let offered = fixture.broker.session_caller_tools(session);
    let tool = offered.iter().flat_map(|caller| &caller.tools).next().unwrap();
    serde_json::from_str(&tool.info.description).unwrap()
}

/// Returns the homes of tool servers that exist.
fn homes(fixture: &World) -> usize {
    fs::read_dir(fixture.dir().join("data/servers")).map_or(0, Iterator::count)
}

/// Rule: a tool server runs in its own sandbox, and works in an empty home that is not an agent's.
/// It sees the workspace only as configured, and leaves nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_has_a_box_and_a_home_of_its_own() {
    let fixture = start_with(with_shell).await;
    let who = Credential::local();
    for (access, reads, writes) in [
        (ServerWorkspace::None, false, false),
        (ServerWorkspace::Read, true, false),
        (ServerWorkspace::Write, true, true),
    ] {
        let (session, workspace) = started_session(&fixture).await;
        say(&fixture, &who, offering(session, server(&["-c", SERVER], access))).await;
        let seen = told(&fixture, session);
        assert_eq!((&seen["cwd"], &seen["home"]), (&"/home/agent".into(), &"/home/agent".into()));
        assert_eq!(seen["in_home"], serde_json::json!([]), "{access:?}");
        assert_eq!(
            (&seen["reads"], &seen["writes"]),
            (&reads.into(), &writes.into()),
            "{access:?}"
        );
        assert_eq!(workspace.join("theirs").exists(), writes, "{access:?}");
        // In a sandbox, the program is one of the first.
        assert!(seen["pid"].as_u64().unwrap() < 10, "{seen}");
        assert_eq!(homes(&fixture), 1);
        end(&fixture, &who, session).await;
        assert_eq!(homes(&fixture), 0, "nothing is left of it");
    }
    let notes = fixture.dir().join("data/sandbox/boxes");
    assert_eq!(fs::read_dir(notes).unwrap().count(), 0);
}

/// Rule: without a sandbox backend, a tool server still works in its own home; a limit that cannot
/// be enforced is refused, and the caller gets a notice that the server is not confined.
#[tokio::test]
async fn an_unconfined_server_has_a_home_of_its_own() {
    let fixture = start_with(unconfined).await;
    let who = Credential::local();
    let (session, workspace) = started_session(&fixture).await;
    let (code, why) =
        refused(&fixture, &who, offering(session, server(&[], ServerWorkspace::Read))).await;
    assert!(code == "invalid_params" && why.contains("sandbox.backend"), "{code} {why}");
    let wanted = server(&["-c", SERVER, "{workspace}"], ServerWorkspace::None);
    let (code, why) = refused(&fixture, &who, offering(session, wanted)).await;
    assert!(code == "invalid_params" && why.contains("`{workspace}`"), "{code} {why}");
    let wanted = server(&["-c", SERVER, "{workspace}"], ServerWorkspace::Write);
    say(&fixture, &who, offering(session, wanted)).await;
    let seen = told(&fixture, session);
    let home = Path::new(seen["home"].as_str().unwrap());
    assert!(home.starts_with(fixture.dir().join("data/servers")), "{seen}");
    assert_eq!((&seen["cwd"], &seen["in_home"]), (&seen["home"], &serde_json::json!([])));
    assert_eq!(seen["workspace"], workspace.to_str().unwrap());
    assert_eq!((&seen["reads"], &seen["writes"]), (&true.into(), &true.into()));
    let shown: SessionResponse =
        call(&fixture, &who, SessionGetRequest { session_id: session }).await;
    assert!(!shown.confined && shown.notice.unwrap().contains("without further confinement"));
    end(&fixture, &who, session).await;
    assert_eq!(homes(&fixture), 0);
}

/// Plants every file that programs look for in their working directory and their home: each reports
/// that it ran, and is a server that could be mistaken for the named one.
fn plant(workspace: &Path, home: &Path, ran: &Path) {
    let says = format!("open({:?}, 'a').write(__file__ + '\\n')\n", ran.display().to_string());
    let module = format!("try:\n  {says}except OSError: pass\n{SERVER}");
    for name in ["mcp_server_git.py", "json.py", "sitecustomize.py"] {
        fs::write(workspace.join(name), &module).unwrap();
    }
    let packages = home.join(".local/lib/python3.11/site-packages");
    fs::create_dir_all(&packages).unwrap();
    let user =
        format!("try:\n  {says}except OSError: pass\nimport builtins; builtins.planted = True\n");
    fs::write(packages.join("usercustomize.py"), &user).unwrap();
    let bin = workspace.join("node_modules/.bin");
    fs::create_dir_all(&bin).unwrap();
    let script = format!(
        "#!/bin/sh\necho bin >> {}\nexec /usr/bin/python3 -c '{}'\n",
        ran.display(),
        SERVER.replace('\'', "'\\''")
    );
    for place in [bin.join("mcp-server-filesystem"), workspace.join("mcp-server-filesystem")] {
        fs::write(&place, &script).unwrap();
        fs::set_permissions(&place, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    for dir in [workspace, home] {
        fs::write(dir.join(".npmrc"), "script-shell=/workspace/mcp-server-filesystem\n").unwrap();
        fs::write(dir.join(".profile"), format!("echo profile >> {}\n", ran.display())).unwrap();
    }
}

/// Rule: nothing that an agent wrote decides what runs outside its sandbox: not in its workspace,
/// not in its home, and not through the arguments of a tool server.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_an_agent_planted_is_run_as_a_server() {
    let confined: fn(&mut Config) = with_shell;
    for config in [confined, unconfined] {
        let fixture = start_with(config).await;
        let who = Credential::local();
        let (session, workspace) = started_session(&fixture).await;
        let id = workspace.file_name().unwrap();
        let home = fixture.dir().join("data/homes").join(id);
        assert!(home.join("mine").exists(), "that is where its agent wrote");
        let ran = fixture.dir().join("ran");
        plant(&workspace, &home, &ran);
        let as_npx = "exec ./node_modules/.bin/mcp-server-filesystem";
        for access in [ServerWorkspace::None, ServerWorkspace::Write] {
            let shell = |script: &str| CallerServer {
                command: "/bin/sh".to_owned(),
                ..server(&["-lc", script], access)
            };
            for planted in [
                server(&["-m", "mcp_server_git"], access),
                shell(as_npx),
                shell("exec mcp-server-filesystem"),
                CallerServer { command: "mcp-server-filesystem".to_owned(), ..server(&[], access) },
                CallerServer {
                    command: "./mcp-server-filesystem".to_owned(),
                    ..server(&[], access)
                },
            ] {
                let named = format!("{planted:?}");
                let (code, why) = refused(&fixture, &who, offering(session, planted)).await;
                assert_eq!(code, "invalid_params", "{named}: {why}");
            }
        }
        // A server that was intended runs, and uses nothing of the agent's.
        let asks = format!("import builtins; assert not hasattr(builtins, 'planted')\n{SERVER}");
        say(&fixture, &who, offering(session, server(&["-c", &asks], ServerWorkspace::None))).await;
        assert_eq!(told(&fixture, session)["in_home"], serde_json::json!([]));
        assert!(!ran.exists(), "{}", fs::read_to_string(&ran).unwrap_or_default());
        end(&fixture, &who, session).await;
    }
}

/// Rule: a tool server reaches nothing, or what was configured, through its own network proxy,
/// which closes with it. It does not use the proxy of its session's agent.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_reaches_what_was_said_and_nothing_else() {
    let (fixture, doors) = crate::network::confined().await;
    let who = Credential::local();
    let asks = "import os, sys; sys.argv += ['/mcp']\n";
    let server = |network: Option<&str>| CallerServer {
        network: network.map(|text| text.parse().unwrap()),
        ..server(&["-c", &format!("{asks}{SERVER}")], ServerWorkspace::None)
    };
    let has_proxy = |seen: &Value| seen["env"].as_array().unwrap().contains(&"HTTPS_PROXY".into());
    let (session, _) = started_session(&fixture).await;
    say(&fixture, &who, offering(session, server(None))).await;
    assert!(!has_proxy(&told(&fixture, session)));
    assert_eq!(doors.allows(session), None);
    end(&fixture, &who, session).await;

    let (session, _) = started_session(&fixture).await;
    let bad = CallerServer {
        network: Some(serde_json::from_str(r#"{"mode":"none","allow":["a.test:1"]}"#).unwrap()),
        ..server(None)
    };
    assert_eq!(refused(&fixture, &who, offering(session, bad)).await.0, "invalid_params");
    say(&fixture, &who, offering(session, server(Some("allow a.test:1")))).await;
    assert!(has_proxy(&told(&fixture, session)));
    assert_eq!(doors.allows(session).as_deref(), Some("allow a.test:1"));
    let shown: SessionResponse =
        call(&fixture, &who, SessionGetRequest { session_id: session }).await;
    assert_eq!(shown.network.unwrap().to_string(), "none", "that is its agent's");
    end(&fixture, &who, session).await;
    assert_eq!(doors.allows(session), None, "it closes with the server");
    let sockets = fs::read_dir(fixture.dir().join("run/s")).unwrap().count();
    assert_eq!(sockets, 0, "nothing is left of it");
}

/// Rule: a tool server that writes more to its home than a workspace may have is ended, and its
/// home is removed; its session goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_fills_its_home_is_ended() {
    let fixture = start_with(|config| {
        with_shell(config);
        config.sessions.disk.workspace_bytes = Some(16 << 20);
        config.sessions.disk.keep_free = ringback_broker::DiskReserve::Bytes(0);
    })
    .await;
    let who = Credential::local();
    let (session, _) = started_session(&fixture).await;
    // Once it has listed its tools.
    let fills = "import os, threading, time\ndef fill():\n  \
        while not os.path.exists('go'): time.sleep(0.01)\n  with open('big', 'wb') as big:\n    \
        while True: big.write(bytes(1 << 20)); big.flush(); time.sleep(0.01)\n\
        threading.Thread(target=fill, daemon=True).start()\n";
    let filling = server(&["-c", &format!("{fills}{SERVER}")], ServerWorkspace::None);
    say(&fixture, &who, offering(session, filling)).await;
    assert_eq!(homes(&fixture), 1);
    for home in fs::read_dir(fixture.dir().join("data/servers")).unwrap().flatten() {
        fs::write(home.path().join("go"), "").unwrap();
    }
    wait_for("it is ended, and does not fill the disk", async || homes(&fixture) == 0).await;
    let told = say(&fixture, &who, to_session(session, "echo goes on")).await;
    let events = until(&fixture, &who, session, told.last_event_index, is_idle).await;
    assert_eq!(crate::sessions::said(&events), ["goes on "]);
    end(&fixture, &who, session).await;
}
