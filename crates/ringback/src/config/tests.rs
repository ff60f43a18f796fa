//! Loading as a whole: layers, errors, masking.

mod names;

use std::fs;
use std::path::Path;

use ringback_proto::chain;
use ringback_proto::secret::Secret;

use super::section::{Raw, Section, section};
use super::{Config, Environment, Origin, ServeFlags};

/// Loads `file` as the default configuration file of a user whose home is a fresh directory.
fn load(file: &str, variables: &[(&str, &str)], flags: &ServeFlags) -> Result<Config, String> {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(".config/ringback");
    fs::create_dir_all(&path).unwrap();
    fs::write(path.join("config.toml"), file).unwrap();
    load_in(home.path(), variables, flags)
}

fn load_in(home: &Path, variables: &[(&str, &str)], flags: &ServeFlags) -> Result<Config, String> {
    let home = [("HOME", home.to_str().unwrap())];
    let environment: Environment = home.iter().chain(variables).copied().collect();
    Config::load(flags, &environment).map_err(|error| chain(&error))
}

fn from_file(file: &str) -> Result<Config, String> {
    load(file, &[], &ServeFlags::default())
}

fn from_env(variables: &[(&str, &str)]) -> Result<Config, String> {
    load("", variables, &ServeFlags::default())
}

/// Returns the error about a file, without the part of its path that differs between runs.
fn complaint(file: &str) -> String {
    let text = from_file(file).unwrap_err();
    assert!(!text.contains('\n'), "one line: {text}");
    let (_, rest) = text.split_once("/.config/ringback/").expect("the file is named");
    rest.to_owned()
}

#[test]
fn an_empty_file_gives_the_defaults() {
    let config = from_file("").unwrap();
    assert_eq!(config.http, super::Http::default());
    assert!(config.root.data_dir.ends_with(".local/share/ringback"));
    assert!(config.root.runtime_dir.ends_with(".local/share/ringback/run"));
    assert_eq!(config.origin("http.listen"), Origin::Default);
}

#[test]
fn no_file_at_all_is_fine_unless_it_was_named() {
    let home = tempfile::tempdir().unwrap();
    load_in(home.path(), &[], &ServeFlags::default()).unwrap();
    let missing = home.path().join("missing.toml");
    let flags = ServeFlags { config: Some(missing.clone()), ..ServeFlags::default() };
    let named = load_in(
        home.path(),
        &[("RINGBACK_CONFIG", missing.to_str().unwrap())],
        &ServeFlags::default(),
    );
    for refused in [load_in(home.path(), &[], &flags), named] {
        assert!(refused.unwrap_err().contains("missing.toml"));
    }
}

/// Rule: a bad container engine is refused before anything starts; `DOCKER_HOST` is checked only if
/// an engine is wanted.
#[test]
fn an_engine_elsewhere_and_a_bad_image_are_refused_at_once() {
    let elsewhere = complaint("[sandbox]\ndocker = 'tcp://192.0.2.1:2375'\n");
    assert!(elsewhere.contains("not a socket on this machine"), "{elsewhere}");
    let image = complaint("[sandbox]\nimage = 'two words'\n");
    assert!(image.contains("sandbox.image"), "{image}");
    let host = ("DOCKER_HOST", "tcp://192.0.2.1:2375");
    assert!(from_env(&[host]).is_ok());
    let wanted = from_env(&[host, ("RINGBACK_SANDBOX__BACKEND", "docker")]).unwrap_err();
    assert!(wanted.contains("sandbox.docker"), "{wanted}");
}

#[test]
fn flags_win_over_the_environment_and_the_environment_over_the_file() {
    let file = "[http]\nlisten = '127.0.0.1:1'\nmax_connections = 1\n[hoot]\nipc = false\n";
    let variables =
        [("RINGBACK_HTTP__LISTEN", "127.0.0.1:2"), ("RINGBACK_HTTP__MAX_CONNECTIONS", "2")];
    let flags = ServeFlags { http: Some("localhost:3".to_owned()), ..ServeFlags::default() };
    let config = load(file, &variables, &flags).unwrap();
    assert_eq!(config.http.listen, "127.0.0.1:3".parse().unwrap());
    assert_eq!((config.http.max_connections, config.hoot.ipc), (2, false));
    assert_eq!(config.origin("http.listen"), Origin::Flag("--http"));
    let variable = "RINGBACK_HTTP__MAX_CONNECTIONS".to_owned();
    assert_eq!(config.origin("http.max_connections"), Origin::Variable(variable));
    assert!(matches!(config.origin("hoot.ipc"), Origin::File { line: 5, .. }));
}

#[test]
fn a_variable_is_read_as_the_type_of_its_key() {
    let config = from_env(&[
        ("RINGBACK_HTTP__HOSTS", "a.example, b.example:8443"),
        ("RINGBACK_HTTP__ORIGINS", r#"["https://a.example"]"#),
        ("RINGBACK_HOOT__IPC", "false"),
        ("RINGBACK_HOOT__LISTEN", "tcp://localhost:0"),
        ("RINGBACK_HTTP__TLS", "{ cert = '/x/cert.pem', key = '/x/key.pem' }"),
        ("RINGBACK_CLIENTTOOLS__DEFAULTTIMEOUT", "5000"),
        ("RINGBACK_LIMITS__EVENT_RING", "1_000"),
        ("RINGBACK_LOG__FORMAT", "json"),
        ("RINGBACK_FILES__ROOTS", "/srv/a,/srv/b"),
        ("RINGBACK_TELEMETRY__OTLP_ENDPOINT", ""),
        ("RINGBACK_DATA_DIR", "/srv/data"),
        ("RINGBACK_TOKEN", "not a key"),
    ])
    .unwrap();
    assert_eq!(config.http.hosts, ["a.example", "b.example:8443"]);
    assert_eq!(config.http.origins, ["https://a.example"]);
    assert_eq!((config.hoot.ipc, config.hoot.listen.0.port()), (false, 0));
    assert_eq!((config.limits.event_ring, config.log.format.name()), (1000, "json"));
    assert_eq!(config.http.tls.unwrap().key, Path::new("/x/key.pem"));
    assert_eq!(config.client_tools.defaultTimeout.0, 5000);
    assert_eq!(config.files.roots, [Path::new("/srv/a"), Path::new("/srv/b")]);
    assert_eq!(config.telemetry.otlp_endpoint, None);
    assert_eq!(config.root.runtime_dir, Path::new("/srv/data/run"));
}

#[test]
fn the_xdg_directories_are_used_when_they_are_absolute() {
    let config = from_env(&[("XDG_DATA_HOME", "/x/data"), ("XDG_RUNTIME_DIR", "/x/run")]).unwrap();
    assert_eq!(config.root.data_dir, Path::new("/x/data/ringback"));
    assert_eq!(config.root.runtime_dir, Path::new("/x/run/ringback"));
    let relative = from_env(&[("XDG_DATA_HOME", "data")]).unwrap();
    assert!(relative.root.data_dir.ends_with(".local/share/ringback"));
}

#[test]
fn without_a_home_the_complaint_says_what_to_set() {
    let environment = Environment::default();
    let error = Config::load(&ServeFlags::default(), &environment).unwrap_err();
    assert!(error.to_string().contains("RINGBACK_DATA_DIR"), "{error}");
}

#[test]
fn an_unknown_key_is_an_error_that_names_line_and_nearest_key() {
    let check =
        |file, expected: &str| assert_eq!(complaint(file), format!("config.toml, {expected}"));
    check("\n[http]\nlisen = 'x'", "line 3: unknown key `http.lisen`; did you mean `http.listen`?");
    check("http.lisen = 'x'", "line 1: unknown key `http.lisen`; did you mean `http.listen`?");
    check("data_dirr = '/x'", "line 1: unknown key `data_dirr`; did you mean `data_dir`?");
    check("[htpp]\nlisten = 'x'", "line 1: unknown key `htpp`; did you mean `http`?");
    check("[zebra]", "line 1: unknown key `zebra`; see docs/configuration.md for all keys");
    check("http = 3", "line 1: unknown key `http`; see docs/configuration.md for all keys");
}

#[test]
fn an_unknown_variable_is_an_error_that_names_the_nearest_one() {
    assert_eq!(
        from_env(&[("RINGBACK_HTTP__LISEN", "x")]).unwrap_err(),
        "environment variable RINGBACK_HTTP__LISEN: unknown key `RINGBACK_HTTP__LISEN`; \
         did you mean `RINGBACK_HTTP__LISTEN`?"
    );
}

#[test]
fn a_bad_value_names_file_line_key_and_what_was_expected() {
    let check =
        |file, expected: &str| assert_eq!(complaint(file), format!("config.toml, {expected}"));
    check(
        "[http]\nlisten = 7180",
        "line 2: bad value for `http.listen`: expected an address with a port such as \
         `127.0.0.1:7180`, found 7180",
    );
    check("data_dir = 'x'", "line 1: bad value for `data_dir`: expected absolute path, found `x`");
    check(
        "[hoot]\nipc = 'yes'",
        "line 2: bad value for `hoot.ipc`: expected true or false, found `yes`",
    );
    check(
        "[limits]\n\nevent_ring = 0",
        "line 3: bad value for `limits.event_ring`: expected 1 to 100000000, found 0",
    );
    check(
        "[limits]\nevent_ring = -1",
        "line 2: bad value for `limits.event_ring`: expected a whole number, not negative, found -1",
    );
    check(
        "[log]\nformat = 'xml'",
        "line 2: bad value for `log.format`: expected `text` or `json`, found `xml`",
    );
    check("[http]\nhosts = 'a'", "line 2: bad value for `http.hosts`: expected a list, found `a`");
}

#[test]
fn a_file_that_is_not_toml_names_the_line() {
    let text = complaint("[http]\nlisten = \n");
    assert!(text.starts_with("config.toml, line 2: "), "{text}");
    let twice = complaint("[log]\nformat = 'text'\nformat = 'json'\n");
    assert!(twice.starts_with("config.toml, line 3: "), "{twice}");
}

#[test]
fn keys_that_disagree_are_refused() {
    let check = |file, key: &str, hint: &str| {
        let text = complaint(file);
        assert!(text.contains(&format!("`{key}`")) && text.contains(hint), "{text}");
    };
    check("[http]\nlisten = '0.0.0.0:1'", "http.listen", "`http.tls`");
    check("[http.tls]\ncert = '/x'", "http.tls", "`key` is missing");
    check("[http]\ntls = { cert = '/x', key = '/y', ca = '/z' }", "http.tls", "unknown key `ca`");
    check("[http]\ntls = '/x'", "http.tls", "a table of two files");
    let too_long = "[clientTools]\ndefaultTimeout = 10\nmaxTimeout = 9";
    check(too_long, "clientTools.defaultTimeout", "1 to 9");
    check("[hoot]\nlisten = 'tcp://*:1'", "hoot.listen", "curve_secret_key_file");
    check("[hoot]\nlisten = 'tcp://127.0.0.1:7180'", "hoot.listen", "`http.listen`");
    check("[hoot]\nsend_queue = 1", "hoot.send_queue", "expected 64MiB to 64GiB, found 1B");
    check("[hoot]\npeer_idle = '2d'", "hoot.peer_idle", "expected 1s to 24h, found 48h");
    check("[sessions]\nmax_time = '0s'", "sessions.max_time", "more than zero");
    check("[http]\norigins = ['app.example']", "http.origins", "https://app.example");
    check("[http]\nhosts = ['http://a']", "http.hosts", "ring.example");
    check("[log]\nfilter = 'a=b=c'", "log.filter", "log filter");
}

#[test]
fn a_socket_path_that_the_system_cannot_bind_is_refused_with_the_limit() {
    // `/iopub.sock` takes 11 of the 107 bytes.
    let long = format!("/{}", "d".repeat(96));
    let text = from_env(&[("RINGBACK_RUNTIME_DIR", &long)]).unwrap_err();
    assert!(text.contains("RINGBACK_RUNTIME_DIR") && text.contains("allows 107"), "{text}");
    from_env(&[("RINGBACK_RUNTIME_DIR", &long[..96])]).unwrap();
    from_env(&[("RINGBACK_RUNTIME_DIR", &long), ("RINGBACK_HOOT__IPC", "false")]).unwrap();
}

/// REQ: seed 004 "Configuration".
#[test]
fn client_tools_have_the_keys_and_defaults_that_clients_know() {
    let default = from_file("").unwrap().client_tools;
    assert_eq!(
        (default.defaultTimeout.0, default.keepaliveInterval.0, default.maxTimeout.0),
        (30_000, 30_000, 3_600_000)
    );
    let file =
        "[clientTools]\ndefaultTimeout = 1000\nkeepaliveInterval = 2000\nmaxTimeout = 3000\n";
    let config = from_file(file).unwrap();
    let set = &config.client_tools;
    assert_eq!(
        (set.defaultTimeout.0, set.keepaliveInterval.0, set.maxTimeout.0),
        (1000, 2000, 3000)
    );
    let shown = config.lookup(Some("clientTools"), Some("maxTimeout")).unwrap();
    assert_eq!(shown, Some(3000.into()), "programs read a number");
}

#[test]
fn beyond_loopback_it_is_tls_or_a_stated_proxy() {
    from_file("[http]\nlisten = '0.0.0.0:1'\ntls = { cert = '/c', key = '/k' }").unwrap();
    from_file("[http]\nlisten = '0.0.0.0:1'\nbehind_proxy = true").unwrap();
    from_file("[http]\nlisten = '0.0.0.0:1'").unwrap_err();
}

/// Rule: a daemon without tokens is reachable only from this machine.
#[test]
fn open_is_refused_beyond_loopback_even_behind_a_proxy() {
    let flags = ServeFlags { open: true, ..ServeFlags::default() };
    load("", &[], &flags).unwrap();
    let beyond =
        load("[http]\nlisten = '10.0.0.1:1'\nbehind_proxy = true", &[], &flags).unwrap_err();
    assert!(beyond.contains("`http.listen`") && beyond.contains("--open"), "{beyond}");
    let proxied = load("[http]\nbehind_proxy = true", &[], &flags).unwrap_err();
    assert!(proxied.contains("`http.behind_proxy`"), "{proxied}");
}

#[test]
fn what_is_shown_can_be_loaded_again() {
    let file = "[http]\nhosts = ['a.example']\ntls = {cert = '/c', key = '/k'}\n[telemetry]\notlp_endpoint = 'http://127.0.0.1:4317/'\n\
        [sessions]\nmax_cost = '$2.50'\nmax_time = '1h 30m'\n[sandbox]\ncpu = 150\nmemory = '3GB'\n\
        [studio.services]\nyue = 'http://127.0.0.1:2008'\ntimeout = 90\n";
    let config = from_file(file).unwrap();
    let shown = config.to_toml_masked();
    let again = from_file(&shown).unwrap();
    assert_eq!(again.to_toml_masked(), shown);
    assert_eq!(
        (again.http, again.telemetry, again.root),
        (config.http, config.telemetry, config.root)
    );
    assert_eq!(
        (again.sessions, again.sandbox, again.services),
        (config.sessions, config.sandbox, config.services)
    );
}

#[test]
fn a_lookup_finds_everything_a_section_or_a_key() {
    let config = from_file("").unwrap();
    let listen = config.lookup(Some("http"), Some("listen")).unwrap().unwrap();
    assert_eq!(listen.as_str(), Some("127.0.0.1:7180"));
    assert!(config.lookup(None, Some("data_dir")).unwrap().is_some());
    assert_eq!(config.lookup(Some("telemetry"), Some("otlp_endpoint")), Ok(None));
    let section = config.lookup(Some("hoot"), None).unwrap().unwrap();
    assert_eq!(section["peer_idle"].as_str(), Some("30s"));
    let whole = config.lookup(None, None).unwrap().unwrap();
    assert_eq!(whole["http"]["listen"], listen);
    let services = config.lookup(Some("studio.services"), None).unwrap().unwrap();
    assert_eq!(whole["studio"]["services"], services);
    assert_eq!(config.lookup(Some("studio"), Some("services")), Ok(Some(services)));
    assert_eq!(config.lookup(Some("studio"), None).unwrap().unwrap(), whole["studio"]);
    let unknown = config.lookup(Some("http"), Some("lisen")).unwrap_err();
    assert_eq!(unknown.nearest.as_deref(), Some("http.listen"));
    assert_eq!(config.lookup(Some("htp"), None).unwrap_err().nearest.as_deref(), Some("http"));
}

section! {
    /// A section with a secret.
    struct Sample = "sample" {
        /// A secret.
        pub password: Secret = Secret::new(String::new()),
    }
}

/// Rule: a secret never appears in a log, an error or `config show`.
#[test]
fn a_secret_is_masked_wherever_it_could_be_seen() {
    let mut sample = Sample::default();
    sample.set("password", Raw::Text("hunter2")).unwrap();
    assert_eq!(sample.password.expose(), "hunter2");
    assert_eq!(sample.show("password"), Some(Some("***".into())));
    assert!(!format!("{sample:?}").contains("hunter2"));
    let environment: Environment = [("RINGBACK_TOKEN", "oub_1")].into_iter().collect();
    assert!(!format!("{environment:?}").contains("oub_1"));
    let pasted = from_env(&[("RINGBACK_TELEMETRY__OTLP_ENDPOINT", "http://me:hunter2@collector")]);
    assert!(!pasted.unwrap_err().contains("hunter2"));
}
