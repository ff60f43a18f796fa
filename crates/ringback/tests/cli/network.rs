//! An agent in a real sandbox that tries to reach forbidden hosts: the real daemon, the real
//! program inside, hosts on loopback addresses of this machine, and an agent that runs its
//! messages.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ringback_testkit::engine;
use serde_json::{Value, json};

use crate::support::{Daemon, file, wait_for};

/// Runs each message as a script, with a few functions for network access.
const AGENT: &str = r#"
proxy=${https_proxy#http://}
# A connection that is closed immediately is not fatal.
trap '' PIPE
# Prints the first line of the proxy's answer to a request, or that none came.
ask() {
  { exec 3<>"/dev/tcp/${proxy%%:*}/${proxy##*:}"; } 2>/dev/null || { echo no-proxy; return; }
  printf '%s HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n' "$1" 2>/dev/null >&3
  # A close with unread data is a reset, which is an end as well.
  answer=$(timeout 20 cat <&3 2>/dev/null | tr -d '\r')
  exec 3>&-
  echo "${answer:-closed}"
}
status() { ask "$1" | sed -n 1p | cut -d " " -f 2; }
get() { status "GET http://$1/"; }
# Requests a page through a tunnel.
page() {
  { exec 3<>"/dev/tcp/${proxy%%:*}/${proxy##*:}"; } 2>/dev/null || { echo no-proxy; return; }
  printf 'CONNECT %s HTTP/1.1\r\nhost: here\r\n\r\n' "$1" >&3
  read -r -t 20 line <&3
  echo "${line:9:3}"
  if [ "${line:9:3}" = 200 ]; then
    printf 'GET / HTTP/1.1\r\nhost: there\r\nconnection: close\r\n\r\n' >&3
    timeout 20 tail -n 1 <&3 2>/dev/null
  fi
  exec 3>&-
}
# Opens a tunnel and keeps it open.
hold() {
  exec 4<>"/dev/tcp/${proxy%%:*}/${proxy##*:}"
  printf 'CONNECT %s HTTP/1.1\r\nhost: here\r\n\r\n' "$1" >&4
  read -r -t 20 line <&4
  echo "${line:9:3}"
}
# Checks whether it is still open: an end is seen immediately, anything else is not.
held() { timeout 20 cat <&4 >/dev/null 2>&1; [ $? = 124 ] && echo open || echo closed; }
direct() { { exec 3<>"/dev/tcp/$1/$2"; } 2>/dev/null && echo reached || echo unreachable; }
while read -r line; do
  text=$(printf '%s' "$line" | sed 's/.*"text":"\(.*\)"}/\1/')
  eval "$text" >/tmp/said 2>&1
  printf '{"type":"message","text":"%s"}\n' "$(tr '\n"\\' '   ' </tmp/said)"
  echo '{"type":"done"}'
done"#;

/// A host that answers with its address, and counts its requests.
struct Server {
    port: u16,
    n_asked: Arc<AtomicUsize>,
}

impl Server {
    fn start(address: &'static str, moved_to: Option<String>) -> Self {
        let listener = TcpListener::bind((address, 0)).unwrap();
        let (port, n_asked) =
            (listener.local_addr().unwrap().port(), Arc::<AtomicUsize>::default());
        let counted = Arc::clone(&n_asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                counted.fetch_add(1, Ordering::SeqCst);
                let moved_to = moved_to.clone();
                std::thread::spawn(move || serve(&stream.unwrap(), address, moved_to));
            }
        });
        Self { port, n_asked }
    }

    fn n_asked(&self) -> usize {
        self.n_asked.load(Ordering::SeqCst)
    }
}

fn serve(mut stream: &TcpStream, address: &str, moved_to: Option<String>) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return;
        }
    }
    let answer = match moved_to {
        Some(to) => format!("302 Found\r\nlocation: http://{to}/\r\ncontent-length: 0\r\n\r\n"),
        None => format!("200 OK\r\ncontent-length: {}\r\n\r\n{address}\n", address.len() + 1),
    };
    // The agent may have left.
    drop(stream.write_all(format!("HTTP/1.1 {answer}").as_bytes()));
}

/// A daemon with that agent, and a project.
struct World {
    daemon: Daemon,
    project: String,
    _dir: tempfile::TempDir,
    seen: Mutex<BTreeSet<u64>>,
}

/// Runs a test with an agent in a bubblewrap sandbox and in a container.
macro_rules! everywhere {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        mod $name {
            #[test]
            fn in_a_box() {
                if ringback_testkit::is_root() {
                    super::$name(&super::World::in_boxes());
                }
            }

            #[test]
            fn in_a_container() {
                if let Some(world) = super::World::in_containers() {
                    super::$name(&world);
                }
            }
        }
    };
}

impl World {
    fn in_boxes() -> Self {
        Self::start("", "")
    }

    /// Uses this machine's programs in a nearly empty image; `None` if the tests run without
    /// containers.
    fn in_containers() -> Option<Self> {
        let (socket, image) = (engine::socket()?, engine::IMAGE);
        let engine = format!("backend = 'docker'\ndocker = 'unix://{socket}'\nimage = '{image}'\n");
        Some(Self::start(&engine, ", '/usr/bin', '/usr/lib', '/usr/lib64'"))
    }

    fn start(sandbox: &str, shown: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let agent = file(dir.path(), "agent.sh", AGENT.as_bytes());
        let agent = agent.display();
        let text = format!(
            "[sessions.agents.obeys]\ncommand = ['/usr/bin/bash', '{agent}']\n\
             [sandbox]\n{sandbox}read_only = ['{agent}'{shown}]\n"
        );
        let config = file(dir.path(), "config.toml", text.as_bytes());
        let daemon = Daemon::start_with(&["--config", config.to_str().unwrap()]);
        let project = daemon.run(&["project", "create", "p", "--agent", "obeys"]).line();
        Self { daemon, project, _dir: dir, seen: Mutex::default() }
    }

    /// Starts a session with this network; returns its agent's answer to a first message.
    fn session(&self, network: &Value, message: &str) -> (String, String) {
        let request = json!({
            "project_id": self.project, "message": message, "create_workspace": true,
            "network": network,
        });
        let call = ["call", "session_message", "--json", &request.to_string(), "--output", "json"];
        let told = self.daemon.run(&call).json();
        let session = told["session_id"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned();
        self.seen.lock().unwrap().clear();
        let said = self.said(&session);
        (session, said)
    }

    fn tell(&self, session: &str, message: &str) -> String {
        self.daemon.run(&["session", "message", session, message]).done();
        self.said(session)
    }

    /// Returns what the agent says next.
    fn said(&self, session: &str) -> String {
        wait_for("the agent to say something", || {
            let request = json!({ "session_id": session, "max_events": 1000 }).to_string();
            let call = ["call", "session_events", "--json", &request, "--output", "json"];
            let page = self.daemon.run(&call).json();
            let events = page["events"].as_array().unwrap();
            let mut seen = self.seen.lock().unwrap();
            let new = events.iter().find(|event| {
                event["role"] == "assistant" && !seen.contains(&event["index"].as_u64().unwrap())
            })?;
            seen.insert(new["index"].as_u64().unwrap());
            Some(new["text"].as_str().unwrap().trim().to_owned())
        })
    }

    fn change(&self, session: &str, network: &[&str]) {
        self.daemon.run(&[&["session", "network", session], network].concat()).done();
    }
}

everywhere! {
    /// REQ: network policy: no network with `none`: no network proxy, no variable and no route.
    with_none_there_is_no_door_at_all
}
fn with_none_there_is_no_door_at_all(world: &World) {
    let server = Server::start("127.0.0.2", None);
    let port = server.port;
    let tries = format!(
        "env | grep -ci proxy; ls /mcp | xargs; get 127.0.0.2:{port}; \
         direct 127.0.0.2 {port}; direct localhost {port}; direct ::1 {port}"
    );
    let (_, said) = world.session(&json!({ "mode": "none" }), &tries);
    assert_eq!(said, "0 relay.sock no-proxy unreachable unreachable unreachable");
    let (_, said) = world.session(&Value::Null, &tries);
    assert_eq!(said, "0 relay.sock no-proxy unreachable unreachable unreachable", "by default");
    assert_eq!(server.n_asked(), 0);
}

everywhere! {
    /// REQ: a host not on the list with `allow`, by name, by address, by redirect, by DNS; nothing
    /// past the proxy, and nothing by IPv6.
    with_allow_only_what_is_listed_is_reached_from_the_sandbox
}
fn with_allow_only_what_is_listed_is_reached_from_the_sandbox(world: &World) {
    let hidden = Server::start("127.0.0.3", None);
    let listed = Server::start("127.0.0.2", None);
    let moving = Server::start("127.0.0.2", Some(format!("127.0.0.3:{}", hidden.port)));
    let own = Server::start("127.0.0.1", None);
    let places = [("127.0.0.2", listed.port), ("127.0.0.2", moving.port), ("localhost", own.port)];
    let allow: Vec<_> = places.iter().map(|(host, port)| format!("{host}:{port}")).collect();
    let network = json!({ "mode": "allow", "allow": allow });
    let (fine, other, moved, own_port) = (listed.port, hidden.port, moving.port, own.port);
    let (session, said) = world
        .session(&network, &format!("get 127.0.0.2:{fine}; page 127.0.0.2:{fine}; echo $NO_PROXY"));
    assert_eq!(said, "200 200 127.0.0.2 localhost,127.0.0.1,::1");

    let by_address = format!(
        "get 127.0.0.3:{other}; page 127.0.0.3:{other}; get 127.0.0.2:{other}; \
         get 127.0.0.1:{own_port}; get [::ffff:127.0.0.3]:{other}; get 2130706435:{other}"
    );
    assert_eq!(world.tell(&session, &by_address), "403 403 403 403 403 400");
    let by_name = format!("get example.org:{fine}; page example.org:443");
    assert_eq!(world.tell(&session, &by_name), "403 403");
    let by_redirect = format!(
        "to=$(ask 'GET http://127.0.0.2:{moved}/' | grep -i ^location: | cut -d / -f 3); \
         echo $to; get $to; page $to"
    );
    let redirected = format!("127.0.0.3:{other} 403 403");
    assert_eq!(world.tell(&session, &by_redirect), redirected);
    // `localhost` is listed, but none of its addresses is.
    let by_dns = format!("get localhost:{own_port}; page localhost:{own_port}");
    assert_eq!(world.tell(&session, &by_dns), "403 403");
    let past_the_proxy = format!(
        "direct 127.0.0.2 {fine}; direct 127.0.0.3 {other}; direct localhost {own_port}; \
         direct ::1 {own_port}; direct 192.0.2.1 80; direct 2001:db8::1 80; get [::1]:{own_port}"
    );
    let expected = format!("{}403", "unreachable ".repeat(6));
    assert_eq!(world.tell(&session, &past_the_proxy), expected);
    assert_eq!((hidden.n_asked(), own.n_asked()), (0, 0));

    let http = world.daemon.told("http").trim_start_matches("http://");
    let audit = ["audit", "--http", http, "--session", &session, "--json"];
    let audit = world.daemon.run(&audit).json();
    let entries = audit["entries"].as_array().unwrap();
    let of = |tool: String| entries.iter().filter(move |entry| entry["tool"] == tool);
    let passed = of(format!("network:127.0.0.2:{fine}"));
    let passed: Vec<_> = passed.filter(|entry| entry["outcome"] == "success").collect();
    assert_eq!(passed.len(), 2, "{audit:#}");
    assert!(passed.iter().all(|entry| entry["bytes_down"].as_u64().unwrap() > 40), "{passed:?}");
    assert!(
        of("network:example.org:443".to_owned()).all(|entry| entry["outcome"] == "host_refused")
    );
    let by_dns = of(format!("network:localhost:{own_port}"));
    assert_eq!(by_dns.filter(|entry| entry["outcome"] == "address_refused").count(), 2);
}

everywhere! {
    /// REQ: network policy `full`: also through the network proxy, and this machine must be listed.
    with_full_this_machine_is_still_out_of_reach_unless_it_is_listed
}
fn with_full_this_machine_is_still_out_of_reach_unless_it_is_listed(world: &World) {
    let (listed, hidden) = (Server::start("127.0.0.2", None), Server::start("127.0.0.3", None));
    let http = world.daemon.told("http").trim_start_matches("http://").to_owned();
    let network = json!({ "mode": "full", "allow": [format!("127.0.0.2:{}", listed.port)] });
    let tries = format!(
        "get 127.0.0.2:{}; get 127.0.0.3:{}; get {http}; direct 127.0.0.2 {}",
        listed.port, hidden.port, listed.port
    );
    assert_eq!(world.session(&network, &tries).1, "200 403 403 unreachable");
    assert_eq!(hidden.n_asked(), 0);
}

everywhere! {
    /// REQ: changeable while a session runs, both ways; connections that are no longer allowed are
    /// closed.
    a_change_holds_at_once_for_an_agent_at_work
}
fn a_change_holds_at_once_for_an_agent_at_work(world: &World) {
    let (first, second) = (Server::start("127.0.0.2", None), Server::start("127.0.0.3", None));
    let (one, two) = (format!("127.0.0.2:{}", first.port), format!("127.0.0.3:{}", second.port));
    let tries = format!("get {one}; get {two}");
    let network = json!({ "mode": "allow", "allow": [one] });
    let (session, said) = world.session(&network, &tries);
    assert_eq!(said, "200 403");
    world.change(&session, &["allow", &one, &two]);
    assert_eq!(world.tell(&session, &format!("{tries}; hold {two}")), "200 200 200");
    world.change(&session, &["allow", &one]);
    assert_eq!(world.tell(&session, &format!("held; {tries}")), "closed 200 403");
    world.change(&session, &["none"]);
    assert_eq!(
        world.tell(&session, &format!("{tries}; ls /mcp | xargs")),
        "closed closed bin relay.sock"
    );
    world.change(&session, &["allow", &two]);
    assert_eq!(world.tell(&session, &tries), "403 200");
    let shown = world.daemon.run(&["session", "show", &session]).done().stdout;
    assert!(shown.contains(&format!("allow {two}")), "{shown}");
}

/// Rule: the options of `session start` and `project create` match the tools' input, and a
/// malformed host is refused before anything starts.
#[test]
fn the_network_is_an_option_of_session_start_and_of_project_create() {
    if !ringback_testkit::is_root() {
        return;
    }
    let (world, server) = (World::in_boxes(), Server::start("127.0.0.2", None));
    let place = format!("127.0.0.2:{}", server.port);
    let ask = format!("get {place}");
    let start = ["session", "start", &ask, "--project", "p", "--json"];
    let started = |more: &[&str]| {
        let mut command = world.daemon.client(&[&start, more].concat());
        crate::support::Run::of(command.env("PATH", "/usr/bin:/bin"))
    };
    let shown = started(&["--allow", &place]).done().stdout;
    assert!(shown.contains(r#""text":"200 ""#), "{shown}");
    let shown = started(&["--network", "none"]).done().stdout;
    assert!(shown.contains(r#""text":"no-proxy ""#), "{shown}");
    let make =
        ["project", "create", "q", "--agent", "obeys", "--network", "full", "--allow", &place];
    let project = world.daemon.run(&make).line();
    let shown = world.daemon.run(&["project", "show", &project]).done().stdout;
    assert!(shown.contains(&format!("full {place}")), "{shown}");
    for (wrong, part) in [
        (["--allow", "example.org"], "has no port"),
        (["--allow", "*:443"], "`full`"),
        (["--network", "open"], "`none`, `model`, `allow` or `full`"),
    ] {
        let refused = started(&wrong);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.stderr.contains(part), "{refused:?}");
    }
}
