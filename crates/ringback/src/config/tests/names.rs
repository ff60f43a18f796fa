//! Old names of keys, and bare numbers.

use super::super::old_names::RENAMED;
use super::super::{Config, Key, Name, Origin, env};
use super::{ServeFlags, complaint, from_env, from_file, load};

/// Keys whose bare numbers are seconds; those of all other durations are milliseconds.
const IN_SECONDS: [&str; 5] = [
    "hoot.peer_idle",
    "mcp.session_idle",
    "studio.render_max",
    "studio.audio_max",
    "studio.services.timeout",
];

/// Returns a value that the key accepts and that is not its default.
fn sample(key: &Key) -> &'static str {
    match key.kind.split(' ').next().unwrap() {
        "duration" => "'90s'",
        "size" => "'70MiB'",
        "whole" => "4242",
        "list" => "['/srv/shown']",
        "http://" => "'http://127.0.0.1:2000'",
        "dollars" => "'$2.50'",
        other => panic!("no sample for {other}"),
    }
}

fn shown(config: &Config, key: &Key) -> toml::Value {
    config.lookup(Some(key.section), Some(key.name)).unwrap().unwrap()
}

fn renamed() -> Vec<(&'static str, Key)> {
    let key = |new| Config::keys().into_iter().find(|key| key.full_name() == new).expect(new);
    RENAMED.map(|(old, new)| (old, key(new))).into()
}

/// Rule: an old name works for one release, with one warning that names the new one.
#[test]
fn every_old_name_works_and_its_warning_names_the_new_one() {
    for (old, key) in renamed() {
        let (new, value) = (key.full_name(), sample(&key));
        let expected = from_file(&format!("{new} = {value}")).unwrap();
        assert_eq!(expected.old_names(), [], "{new}");
        assert_ne!(Some(shown(&expected, &key)), key.default, "{new}");

        let in_file = from_file(&format!("{old} = {value}")).unwrap();
        assert_eq!(shown(&in_file, &key), shown(&expected, &key), "{old}");
        let [warning] = in_file.old_names() else { panic!("{:?}", in_file.old_names()) };
        let text = warning.to_string();
        assert!(text.contains(&format!("line 1: `{old}` is now `{new}`")), "{text}");
        assert!(matches!(in_file.origin(&new), Origin::File { line: 1, .. }));

        let variable = env::variable(Name::split(old));
        let in_env = from_env(&[(&variable, value.trim_matches('\''))]).unwrap();
        assert_eq!(shown(&in_env, &key), shown(&expected, &key), "{variable}");
        let [warning] = in_env.old_names() else { panic!("{:?}", in_env.old_names()) };
        let text = warning.to_string();
        assert!(text.contains(&format!("`{variable}` is now `{}`", key.variable())), "{text}");
    }
}

/// Rule: a key that is set under both names is refused; nothing says which one was meant.
#[test]
fn both_names_in_one_place_are_an_error_that_names_both() {
    for (old, key) in renamed() {
        let (new, value) = (key.full_name(), sample(&key));
        let error = complaint(&format!("{old} = {value}\n{new} = {value}"));
        let expected = format!("`{old}` is the old name of `{new}`, and both are set");
        assert!(error.contains(&expected), "{error}");

        let (old, new) = (env::variable(Name::split(old)), key.variable());
        let value = value.trim_matches('\'');
        let error = from_env(&[(&old, value), (&new, value)]).unwrap_err();
        assert!(error.contains(&format!("`{old}` is the old name of `{new}`")), "{error}");
    }
}

#[test]
fn a_variable_overrides_a_file_whichever_names_they_use() {
    for (in_file, variable) in [
        ("sandbox.readOnly = ['/a']", "RINGBACK_SANDBOX__READ_ONLY"),
        ("sandbox.read_only = ['/a']", "RINGBACK_SANDBOX__READONLY"),
        ("sandbox.readOnly = ['/a']", "RINGBACK_SANDBOX__READONLY"),
    ] {
        let config = load(in_file, &[(variable, "/b")], &ServeFlags::default()).unwrap();
        assert_eq!(config.sandbox.read_only, [std::path::Path::new("/b")], "{in_file} {variable}");
    }
}

#[test]
fn an_old_section_may_be_empty_and_its_unknown_keys_are_found() {
    assert_eq!(from_file("[models]\n[callerTools]\n").unwrap().old_names(), []);
    let error = complaint("[models]\nyuee = 'http://127.0.0.1:1'");
    assert!(error.contains("`models.yuee`; did you mean `studio.services.yue`?"), "{error}");
    let error = complaint("[studio.services]\nyuee = 'http://127.0.0.1:1'");
    assert!(error.contains("did you mean `studio.services.yue`?"), "{error}");
    let error = from_env(&[("RINGBACK_STUDIO__SERVICES__YUEE", "x")]).unwrap_err();
    assert!(error.contains("did you mean `RINGBACK_STUDIO__SERVICES__YUE`?"), "{error}");
}

#[test]
fn no_old_name_is_also_a_current_one() {
    let keys = Config::keys();
    for (old, _) in RENAMED {
        let variable = env::variable(Name::split(old));
        assert!(!keys.iter().any(|key| key.full_name() == old || key.variable() == variable));
    }
}

/// Rule: a bare number has the unit that its key always had.
#[test]
fn a_bare_number_keeps_its_unit_for_every_key() {
    let mut n_keys = 0;
    for key in Config::keys() {
        let name = key.full_name();
        let expected: toml::Value = match key.kind.split(' ').next().unwrap() {
            "duration" if key.section == "clientTools" => 2000.into(),
            "duration" if IN_SECONDS.contains(&name.as_str()) => "33m 20s".into(),
            "duration" => "2s".into(),
            "size" => "64MiB".into(),
            "percentage" => "67108864%".into(),
            _ => continue,
        };
        let number = if key.kind.starts_with("duration") { 2000 } else { 64 << 20 };
        // A default must not exceed its maximum.
        let is_maximum = name == "clientTools.maxTimeout";
        let rest = if is_maximum { "clientTools.defaultTimeout = 1" } else { "" };
        let config = from_file(&format!("{name} = {number}\n{rest}")).unwrap();
        assert_eq!(shown(&config, &key), expected, "{name}");
        n_keys += 1;
    }
    assert_eq!(n_keys, 33, "every key with a unit is checked");
}

#[test]
fn a_bad_quantity_names_key_and_line() {
    for (file, expected) in [
        ("sessions.idle = '30 minuten'", "`sessions.idle`: expected a duration such as"),
        ("sessions.idle = -1", "`sessions.idle`: expected a duration such as"),
        ("sessions.idle = '1800000'", "found `1800000`"),
        ("hoot.peer_idle = 9223372036854775807", "`hoot.peer_idle`: expected a duration"),
        ("http.max_body = '16M'", "`http.max_body`: expected a size such as `512MB` or `4GiB`"),
        ("http.max_body = '-1MiB'", "found `-1MiB`"),
        ("sandbox.memory = '4 elephants'", "size (bare number: bytes) or `none`"),
        ("sandbox.cpu = 'half'", "percentage or `none`"),
    ] {
        let error = complaint(file);
        assert!(error.starts_with("config.toml, line 1: bad value for"), "{error}");
        assert!(error.contains(expected), "{error}");
    }
}
