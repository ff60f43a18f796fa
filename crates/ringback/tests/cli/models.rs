//! An agent that uses a model through its session's model proxy: the real daemon, the real program
//! inside, a provider that records requests, and an agent of a few lines.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::support::{Daemon, Run, file, ringback, serve};

pub(crate) const KEY: &str = "sk-real-0123456789abcdef";
const PLACEHOLDER: &str = "placeholder-of-the-agent";

/// Passes its message to its model, says the answer, and logs its whole environment.
const AGENT: &str = r#"while read -r line; do
  place=${BASE#http://}
  exec 3<>"/dev/tcp/${place%%:*}/${place#*:}"
  printf 'POST /v1/messages?key=%s HTTP/1.1\r\nhost: here\r\nx-api-key: %s\r\nauthorization: Bearer %s\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}' "$KEY" "$KEY" "$KEY" >&3
  answer=$(cat <&3 | tail -n 1 | tr -d '\r')
  exec 3>&-
  printf '{"type":"message","text":"%s"}\n' "$answer"
  printf '{"type":"log","text":"%s"}\n' "$(env | tr '\n"\\' '   ')"
  echo '{"type":"done"}'
done"#;

/// A provider that answers requests one by one, and the heads of these requests.
pub(crate) fn provider() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let noted = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            noted.lock().unwrap().push(answer(&stream.unwrap()));
        }
    });
    (url, asked)
}

fn answer(mut stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut head).unwrap(), 0, "{head}");
    }
    let mut body = [0; 2];
    reader.read_exact(&mut body).unwrap();
    assert_eq!(&body, b"{}");
    stream
        .write_all(
            b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 17\r\n\r\nthe answer is 42\n",
        )
        .unwrap();
    head
}

/// A directory with a key file of this mode, and a configuration with one provider and one agent
/// that uses it.
fn config(url: &str, mode: u32) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let key = file(dir.path(), "model.key", format!("{KEY}\n").as_bytes());
    std::fs::set_permissions(&key, PermissionsExt::from_mode(mode)).unwrap();
    let agent = file(dir.path(), "agent.sh", AGENT.as_bytes());
    let text = format!(
        "[providers.mine]\nurl = '{url}'\nkey_file = '{}'\nheader = 'x-api-key'\n\
         [sessions.agents.asks]\ncommand = ['/bin/bash', '{}']\nprovider = 'mine'\n\
         env = {{ BASE = '{{model}}', KEY = '{PLACEHOLDER}' }}\n\
         [sandbox]\nread_only = ['{}']\n",
        key.display(),
        agent.display(),
        agent.display()
    );
    file(dir.path(), "config.toml", text.as_bytes());
    dir
}

fn config_file(dir: &tempfile::TempDir) -> String {
    dir.path().join("config.toml").to_str().unwrap().to_owned()
}

/// REQ: "Model access without the key in the box", end to end: the provider sees the key and
/// nothing of the agent, the agent sees the answer and nothing of the key.
#[test]
fn an_agent_asks_its_model_and_never_sees_the_key() {
    let (url, asked) = provider();
    let dir = config(&url, 0o600);
    let daemon = Daemon::start_with(&["--config", &config_file(&dir)]);
    let start = ["session", "start", "hello", "--agent", "asks", "--json"];
    let shown = Run::of(daemon.client(&start).env("PATH", "/usr/bin:/bin")).done();
    let events: Vec<Value> =
        shown.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(events.iter().any(|event| event["text"] == "the answer is 42"), "{shown:?}");
    assert!(shown.stdout.contains("BASE=http://127.0.0.1:"), "{shown:?}");

    let request = events.iter().find(|event| event["type"] == "model_request").unwrap();
    let text = request["text"].as_str().unwrap();
    assert!(text.starts_with("POST /v1/messages: 200, "), "{text}");
    assert!(text.ends_with("2 bytes sent, 17 received"), "{text}");
    let heads = asked.lock().unwrap().clone();
    assert_eq!(heads.len(), 1);
    assert!(heads[0].starts_with("POST /v1/messages HTTP/1.1\r\n"), "{heads:?}");
    assert!(heads[0].contains(&format!("x-api-key: {KEY}\r\n")), "{heads:?}");
    assert!(!heads[0].contains(PLACEHOLDER), "{heads:?}");

    let audit = daemon.home().join(".local/share/ringback/audit");
    let written = text_in(&audit);
    assert!(written.contains("model:mine"), "{written}");
    let config = daemon.run(&["call", "config_get", "--output", "json"]).done().stdout;
    let sessions = text_in(&daemon.home().join(".local/share/ringback/sessions"));
    for text in [shown.stdout, shown.stderr, daemon.log(), written, config, sessions] {
        assert!(!text.contains(KEY), "{text}");
    }
}

/// Rule: a key file that other users can read is refused by name, before anything starts and by the
/// doctor.
#[test]
fn a_key_file_that_others_can_read_is_refused_before_anything_starts() {
    let dir = config("http://127.0.0.1:1", 0o640);
    let home = tempfile::tempdir().unwrap();
    let refused = Run::of(serve(home.path()).args(["--config", &config_file(&dir)]));
    assert_eq!(refused.code, 64, "{refused:?}");
    assert!(refused.stderr.contains("model.key` has mode 640"), "{refused:?}");
    assert!(refused.stderr.contains("providers.mine"), "{refused:?}");
    let doctor = |mode| {
        let key = dir.path().join("model.key");
        std::fs::set_permissions(key, PermissionsExt::from_mode(mode)).unwrap();
        let mut command = ringback(home.path());
        Run::of(command.env("RINGBACK_CONFIG", config_file(&dir)).args(["doctor", "--json"]))
    };
    let bad = doctor(0o640);
    assert!(bad.code == 1 && bad.stdout.contains("chmod 600"), "{bad:?}");
    let good = doctor(0o600);
    assert!(good.stdout.contains("with its key") && !good.stdout.contains(KEY), "{good:?}");
}

#[test]
fn an_agent_with_a_model_that_is_not_there_is_refused_before_anything_starts() {
    let home = tempfile::tempdir().unwrap();
    let text = b"[sessions.agents.asks]\ncommand = ['/bin/true']\nprovider = 'gone'\n";
    let path = file(home.path(), "config.toml", text);
    let refused = Run::of(serve(home.path()).arg("--config").arg(path));
    assert_eq!(refused.code, 64, "{refused:?}");
    assert!(refused.stderr.contains("`asks`") && refused.stderr.contains("`gone`"), "{refused:?}");
}

/// Returns the text of all files in a directory.
fn text_in(dir: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            text.push_str(&text_in(&path));
        } else {
            text.push_str(&String::from_utf8_lossy(&std::fs::read(path).unwrap()));
        }
    }
    text
}
