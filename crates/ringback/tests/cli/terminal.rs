//! What a terminal shows: real pseudoterminals of a given width, with the real program on them.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::support::{Daemon, Run, ended, file, ringback, send, wait_for};

/// Moves the cursor home and clears the screen.
const EVIL: &str = "\u{1b}[2J";
/// The same, made visible.
const HARMLESS: &str = "\\u{1b}[2J";

/// A command on a terminal of its own.
struct Terminal {
    child: Child,
    shown: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
    /// The user's side of the terminal.
    keys: File,
}

impl Terminal {
    fn start(mut command: Command, columns: u16) -> Self {
        let user = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&user).unwrap();
        unlockpt(&user).unwrap();
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&user, size).unwrap();
        let name = ptsname(&user, Vec::new()).unwrap();
        let path = Path::new(OsStr::from_bytes(name.as_bytes()));
        let other = || Stdio::from(File::options().read(true).write(true).open(path).unwrap());
        command.stdin(other()).stdout(other()).stderr(other());
        let child = command.spawn().unwrap();
        // It holds the other side open.
        drop(command);
        let keys = File::from(user);
        let mut output = keys.try_clone().unwrap();
        let shown = Arc::<Mutex<Vec<u8>>>::default();
        let noted = Arc::clone(&shown);
        let reader = std::thread::spawn(move || {
            let mut piece = [0; 4096];
            // An error is the end: nobody has the terminal open any more.
            while let Ok(n_bytes @ 1..) = output.read(&mut piece) {
                noted.lock().unwrap().extend_from_slice(&piece[..n_bytes]);
            }
        });
        Self { child, shown, reader, keys }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).replace("\r\n", "\n")
    }

    fn wait_for(&self, part: &str) {
        wait_for(part, || self.text().contains(part).then_some(()));
    }

    fn types(&self, text: &str) {
        std::io::Write::write_all(&mut &self.keys, text.as_bytes()).unwrap();
    }

    /// Waits for the end of the command. Returns its exit code and everything it showed.
    fn ended(mut self) -> (Option<i32>, String) {
        let code = ended(&mut self.child).code();
        self.reader.join().unwrap();
        let shown = std::mem::take(&mut *self.shown.lock().unwrap());
        (code, String::from_utf8(shown).unwrap().replace("\r\n", "\n"))
    }
}

/// A command as a person with a colour terminal runs it.
fn on_terminal(mut command: Command) -> Command {
    command.env("TERM", "xterm-256color").env("PATH", "/usr/bin:/bin");
    command
}

fn shown(daemon: &Daemon, words: &[&str], columns: u16) -> String {
    Terminal::start(on_terminal(daemon.client(words)), columns).ended().1
}

fn work(daemon: &Daemon) -> PathBuf {
    let dir = daemon.home().join("work");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("old.txt"), "old\n").unwrap();
    dir
}

/// Returns text as a terminal shows it in the end: without styles and without lines that were redrawn.
fn settled(shown: &str) -> String {
    let plain = console::strip_ansi_codes(shown).into_owned();
    let last = |line: &str| line.rsplit('\r').next().unwrap_or_default().to_owned();
    plain.lines().map(last).collect::<Vec<_>>().join("\n")
}

/// REQ: `run` shows one readable transcript: a call is one line, its result another, and what the
/// daemon notes for programs is no line at all.
#[test]
fn a_run_is_one_readable_transcript() {
    let daemon = Daemon::start();
    let dir = work(&daemon);
    let script = r#"{"think":"hm"}
{"call":{"tool":"here_notify","arguments":{"text":"done"}}}
{"call":{"tool":"here_missing","arguments":{"n":1}}}
{"write":{"path":"new.txt","text":"new\n"}}
{"say":"All done."}"#;
    let words = [
        "run",
        script,
        "--agent",
        "scripted",
        "--dir",
        dir.to_str().unwrap(),
        "--tool",
        "notify=true",
    ];
    let (code, shown) = Terminal::start(on_terminal(daemon.client(&words)), 100).ended();
    let text = settled(&shown);
    assert_eq!(code, Some(0), "{text}");
    let (call, result) = ("\n→ notify {\"text\":\"done\"}\n", "\n← ok, ");
    for part in [call, result, "(hm)", "→ here_missing {\"n\":1}\n← failed", "\nAll done.\n"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(text.matches("→ ").count(), 2, "an own call is shown once: {text}");
    let noise = ["starting", "completion", "conversation", "running", "idle", "calls", "gogol_…"];
    for part in noise {
        assert!(!text.contains(part), "{part}: {text}");
    }
    assert!(shown.contains("\u{1b}[32m+new"), "a diff has colours: {shown:?}");
    assert!(shown.contains("· working, "), "the status line is drawn: {shown:?}");
    assert!(!text.contains("working"), "and gone in the end: {text}");
}

/// REQ: `NO_COLOR`, `CLICOLOR=0`, `TERM=dumb` and pipes are respected by tables, diffs, checks, the
/// transcript and progress bars.
#[test]
fn colours_are_shown_only_where_they_are_wanted() {
    let daemon = Daemon::start();
    let dir = work(&daemon);
    let bad = file(daemon.home(), "bad.abc", b"X:1\nT:t\nL:1/4\nK:C\nCD [CE\n");
    let script = r#"{"write":{"path":"new.txt","text":"new\n"}}"#;
    let run = ["run", script, "--agent", "scripted", "--dir", dir.to_str().unwrap()];
    let commands: [&[&str]; 5] = [
        &run,
        &["session", "diff", "last"],
        &["session", "list"],
        &["studio", "abc", "check", bad.to_str().unwrap()],
        &["call", "job_sleep", "milliseconds=20"],
    ];
    for words in commands {
        let plain = |name: &str, value: &str| {
            let mut command = on_terminal(daemon.client(words));
            command.env(name, value);
            Terminal::start(command, 100).ended().1
        };
        for (name, value) in [("NO_COLOR", "1"), ("CLICOLOR", "0")] {
            let shown = plain(name, value);
            let is_coloured = ["[1m", "[2m", "[31m", "[32m"]
                .iter()
                .any(|code| shown.contains(&format!("\u{1b}{code}")));
            assert!(!is_coloured, "{words:?} {name}: {shown:?}");
        }
        let dumb = plain("TERM", "dumb");
        assert!(!dumb.contains('\u{1b}'), "{words:?}: {dumb:?}");
        let piped = Run::of(daemon.client(words).env("TERM", "xterm").env("PATH", "/usr/bin:/bin"));
        assert!(!piped.stdout.contains('\u{1b}') && !piped.stderr.contains('\u{1b}'), "{piped:?}");
    }
    assert!(shown(&daemon, &["session", "list"], 100).contains("\u{1b}[1mSESSION"));
}

/// Rule: nothing that a tool, an agent or a file brings moves the cursor, in any command.
#[test]
fn nothing_that_others_wrote_moves_the_cursor() {
    let daemon = Daemon::start();
    let dir = work(&daemon);
    let escape = file(daemon.home(), "esc.sh", b"printf '\\033[2J'");
    let complain = file(daemon.home(), "no.sh", b"printf '\\033[2J' >&2; exit 3");
    let script = r#"{"call":{"tool":"here_esc","arguments":{"text":"\u001b[2J\u009b2J"}}}
{"call":{"tool":"here_no"}}
{"say":"said \u001b[2J"}
{"think":"thought \u001b[2J"}
{"write":{"path":"new.txt","text":"\u001b[2J\n"}}
{"remove":{"path":"\u001b[2J"}}"#;
    let (escape_tool, complain_tool) =
        (format!("esc=sh {}", escape.display()), format!("no=sh {}", complain.display()));
    let tools = ["--tool", &escape_tool, "--tool", &complain_tool];
    let words =
        [&["run", script, "--agent", "scripted", "--dir", dir.to_str().unwrap()][..], &tools[..]]
            .concat();
    let all = shown(&daemon, &words, 200);
    assert!(!all.contains(EVIL) && !all.contains('\u{9b}'), "{all:?}");
    let plain = console::strip_ansi_codes(&all);
    for part in ["← ok", "said ", "thought ", "+", "the agent failed: `"] {
        assert!(plain.contains(part), "{part}: {all:?}");
    }
    assert!(all.matches(HARMLESS).count() >= 6, "{all:?}");

    let shell = format!("sh {}", escape.display());
    let _offer = crate::offer::offer(&daemon, "esc", &[], &shell);
    let tune = format!("X:1\nT:t\nL:1/4\nK:C\nCD [CE {EVIL}\n");
    let tune = file(daemon.home(), "esc.abc", tune.as_bytes());
    let stored = file(daemon.home(), "esc.txt", EVIL.as_bytes());
    let put = ["cas", "put", stored.to_str().unwrap(), "--mime", "text/plain"];
    let hash = daemon.run(&put).line();
    for words in [
        &["call", "client_esc_esc"][..],
        &["call", "client_esc_esc", "--output", "json"],
        &["studio", "abc", "check", tune.to_str().unwrap()],
        &["session", "watch", "last"],
        &["session", "list"],
        &["session", "diff", "last"],
        &["cas", "get", &hash],
    ] {
        let shown = shown(&daemon, words, 200);
        assert!(!shown.contains(EVIL) && !shown.contains('\u{9b}'), "{words:?}: {shown:?}");
        assert!(shown.contains("[2J"), "it is shown, but not obeyed: {words:?}: {shown:?}");
    }
}

/// REQ: narrow windows: a table fits, and an id leaves room for the rest; its short form is accepted
/// everywhere.
#[test]
fn a_narrow_window_shows_the_session_its_message_and_its_directory() {
    let daemon = Daemon::start();
    let dir = work(&daemon);
    let message = "# fix the failing test, and tell me what was wrong with it in all its detail";
    crate::run::run(
        &daemon,
        &["run", message, "--agent", "scripted", "--dir", dir.to_str().unwrap()],
    )
    .done();
    let listed = shown(&daemon, &["session", "list"], 60);
    let plain = console::strip_ansi_codes(&listed).into_owned();
    for line in plain.lines() {
        assert!(console::measure_text_width(line) <= 60, "{plain}");
    }
    let row = plain.lines().nth(1).unwrap();
    assert!(row.contains("s ago") && row.contains("scrip") && row.contains("# fix"), "{plain}");
    let id = row.split_whitespace().next().unwrap();
    assert!(id.starts_with("gogol_") && id.chars().count() < 20, "{plain}");
    let wide = shown(&daemon, &["session", "list"], 160);
    assert!(wide.contains("# fix the failing test") && wide.contains("~/work"), "{wide}");
    let found = daemon.run(&["session", "show", id, "--json"]).json();
    assert_eq!(daemon.run(&["session", "show", "last", "--json"]).json(), found);
    assert_eq!(found["status"], "ended");
}

/// REQ: an id can be shortened to a unique prefix, and one that is not unique lists the candidates.
#[test]
fn an_ambiguous_id_lists_what_it_may_be() {
    let daemon = Daemon::start();
    let none = daemon.run(&["session", "show", "last"]);
    assert!(none.code == 1 && none.stderr.contains("no sessions yet"), "{none:?}");
    let mut ids = Vec::<String>::new();
    let digit = |id: &str| id["gogol_".len()..].chars().next();
    // Of 17 ids two start with the same digit.
    let (first, second) = loop {
        crate::run::run(&daemon, &["session", "start", "# nothing"]).done();
        let listed = daemon.run(&["session", "list", "--json"]).json();
        let id = listed["sessions"][0]["session_id"].as_str().unwrap().to_owned();
        if let Some(twin) = ids.iter().find(|it| digit(it) == digit(&id)) {
            break (twin.clone(), id);
        }
        ids.push(id);
    };
    let start = &first[..="gogol_".len()];
    let run = daemon.run(&["session", "end", start]);
    assert!(
        run.code == 1 && run.stderr.contains(&first) && run.stderr.contains(&second),
        "{run:?}"
    );
    let unknown = daemon.run(&["session", "show", &format!("{}0000000000", &first[..20])]);
    assert!(unknown.stderr.contains("ringback session list"), "{unknown:?}");
    let missing = daemon.run(&["jobs", "last"]);
    assert!(missing.stderr.contains("no jobs yet"), "{missing:?}");
    let job = daemon.run(&["call", "job_sleep", "milliseconds=1", "--output", "json"]);
    job.done();
    let job = daemon.run(&["jobs", "last", "--json"]).json();
    let id = job["job_id"].as_str().unwrap();
    assert_eq!(daemon.run(&["jobs", &id[..20], "--json"]).json()["job_id"], id);
}

/// Rule: no progress bar is left on the screen, neither after Ctrl-C nor beside the chunks of a
/// stream.
#[test]
fn no_dead_progress_bar_stays_on_the_screen() {
    let daemon = Daemon::start();
    let sleep = ["call", "job_sleep", "milliseconds=60000"];
    let terminal = Terminal::start(on_terminal(daemon.client(&sleep)), 80);
    terminal.wait_for("%");
    send(terminal.child.id(), Signal::INT);
    let (code, shown) = terminal.ended();
    assert_eq!(code, Some(130), "{shown:?}");
    let after = shown.rsplit('%').next().unwrap();
    assert!(after.contains("\u{1b}[2K"), "the bar is cleared: {shown:?}");
    let stream = ["call", "job_sleep", "milliseconds=50", "--stream"];
    let shown = self::shown(&daemon, &stream, 80);
    assert!(!shown.contains("\u{1b}[2K") && !shown.contains('░'), "{shown:?}");
}

/// REQ: a question shows what it is about, once, in one notation; a wrong answer says so and shows
/// the choices again.
#[test]
fn a_question_is_asked_in_one_notation() {
    let home = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_ringback");
    let config = format!(
        "[sessions]\nagent = \"talks\"\n[sessions.agents.talks]\nprotocol = \"acp\"\n\
         permissions = \"ask\"\ncommand = [\"{program}\", \"scripted-agent\", \"--acp\"]\n"
    );
    let path = file(home.path(), "config.toml", config.as_bytes());
    let daemon = Daemon::start_with(&["--config", path.to_str().unwrap()]);
    let dir = work(&daemon);
    let script = r#"{"ask":{"tool":"sed -i s/a/b/ x"}}
{"expect":{"is_error":false}}
{"say":"thanks"}"#;
    let command =
        daemon.client(&["run", script, "--agent", "talks", "--dir", dir.to_str().unwrap()]);
    let terminal = Terminal::start(on_terminal(command), 80);
    terminal.wait_for("type a number and press Enter");
    terminal.types("5\n");
    terminal.wait_for("`5` is not one of the choices");
    terminal.types("1\n");
    let (code, shown) = terminal.ended();
    let text = settled(&shown);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(text.matches("? Allow `sed -i s/a/b/ x`?").count(), 1, "{text}");
    assert_eq!(text.matches("  1  Allow once\n  2  Reject\n").count(), 2, "{text}");
    assert!(text.contains("thanks") && !text.contains("session answer"), "{text}");
}

/// REQ: `attach --tool` serves a kept session's tools again.
#[test]
fn attached_again_a_terminal_serves_its_tools() {
    let daemon = Daemon::start();
    let dir = work(&daemon);
    let words = [
        "run",
        r#"{"say":"first"}"#,
        "--agent",
        "scripted",
        "--keep",
        "--dir",
        dir.to_str().unwrap(),
    ];
    let tool = ["--tool", "shout=tr a-z A-Z"];
    crate::run::run(&daemon, &[&words[..], &tool[..]].concat()).done();
    let mut attach = daemon.client(&[&["session", "attach", "last"][..], &tool[..]].concat());
    let script = r#"{"call":{"tool":"here_shout","arguments":{"text":"hello"}}}"#;
    let attached = crate::support::run_with(
        attach.env("PATH", "/usr/bin:/bin"),
        format!("{script}\n").as_bytes(),
    );
    let attached = attached.done();
    // The call may come before what the session said earlier.
    for part in ["→ shout {\"text\":\"hello\"}\n", "\n← ok, ", "HELLO"] {
        assert!(attached.stdout.contains(part), "{part}: {attached:?}");
    }
    let ended = ringback(daemon.home()).args(["session", "end", "last"]).output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
}
