//! The user's toolchains in a sandbox, and the caches of package managers.

use std::fs;

use crate::boxed::{Boxed, between};
use crate::support::Run;

/// Looks for secrets, without the word itself, in everything a sandbox has but the system.
const SEARCH: &str = "for dir in /*; do case $dir in /usr|/proc|/sys|/dev|/bin|/sbin|/lib*) ;; \
    *) grep -rl 'TO[K]EN' $dir 2>/dev/null;; esac; done; env | grep 'TO[K]EN'";

/// Creates a home with toolchains, and with secrets where they usually are.
fn home(boxed: &Boxed) -> String {
    boxed.file(".cargo/bin/cargo", "#!/bin/sh\necho cargo $RUSTUP_HOME\n");
    boxed.file(".cargo/bin/rustup", "#!/bin/sh\n");
    boxed.file(".rustup/toolchains/stable/bin/rustc", "#!/bin/sh\n");
    boxed.file("node/bin/node", "#!/bin/sh\necho node\n");
    boxed.file("node/lib/node_modules/npm/index.js", "");
    for secret in [
        ".cargo/credentials.toml",
        ".cargo/config.toml",
        ".cargo/registry/TOKEN",
        ".config/gh/hosts.yml",
        ".npmrc",
        ".ssh/id_rsa",
        "bin/deploy",
        "node/bin/.npmrc",
        "node/etc/npmrc",
        "node/lib/node_modules/mine/.env",
        "node/lib/node_modules/mine/.aws/credentials",
    ] {
        boxed.file(secret, "TOKEN\n");
    }
    fs::write(boxed.at(".rustup/settings.toml"), "").unwrap();
    let dirs = [".cargo/bin", "node/bin", "bin", ".config/gh"].map(|dir| boxed.at(dir));
    let path = std::env::join_paths(dirs.into_iter().chain(["/usr/bin".into(), "/bin".into()]));
    path.unwrap().into_string().unwrap()
}

/// REQ: "Toolchains on the user's `PATH` are visible read-only, with their variables and with
/// `PATH` as the user has it, minus anything private".
#[test]
fn the_users_toolchains_are_in_the_box_and_nothing_private_is() {
    let Some(boxed) = Boxed::start() else { return };
    let path = home(&boxed);
    fs::create_dir(boxed.at("project")).unwrap();
    let dir = boxed.at("project");
    let script = format!(
        "cargo; node; echo $PATH; touch {0}/.cargo/bin/x {0}/node/bin/.npmrc; ls -A {0}; echo secrets; \
         {SEARCH}; echo end",
        boxed.daemon.home().display()
    );
    let words = ["run", &script, "--dir", dir.to_str().unwrap()];
    let shown = Run::of(boxed.daemon.client(&words).env("PATH", &path)).done();
    let home = boxed.daemon.home().display().to_string();
    for part in [&format!("cargo {home}/.rustup"), "node\n", "Read-only file system"] {
        assert!(shown.stdout.contains(part), "{part}: {shown:?}");
    }
    let seen = format!("{home}/.cargo/bin:{home}/node/bin:/usr/bin:/bin:/usr/local/bin");
    assert!(shown.stdout.contains(&seen), "{seen}: {shown:?}");
    assert_eq!(between(&shown, "secrets", "end"), [""; 0], "{shown:?}");
    for part in ["toolchains: cargo, rustup, node", &format!("{home}/bin")] {
        assert!(shown.stderr.contains(part), "{part}: {shown:?}");
    }
    let without = [&words[..], &["--no-toolchains"]].concat();
    let without = Run::of(boxed.daemon.client(&without).env("PATH", &path)).done();
    assert!(without.stdout.contains("cargo: not found"), "{without:?}");
}

/// Rule: paths of this machine are shown for the daemon's own user alone, and only toolchains are:
/// no other directory, whatever a request says.
#[test]
fn no_token_and_no_request_shows_another_path() {
    let Some(boxed) = Boxed::start() else { return };
    home(&boxed);
    boxed.file(".ssh/bin/node", "x");
    boxed.file(".ssh/lib/node_modules/npm/x", "x");
    let project = boxed.client(&["project", "create", "p", "--json"]).json();
    let project = project["project_id"].as_str().unwrap();
    let home = boxed.daemon.home().display();
    let request = serde_json::json!({
        "project_id": project,
        "create_workspace": true,
        "toolchains": {
            "path": format!("/etc:{home}:{home}/.ssh/bin:{home}/.config:{home}/bin:/root:/"),
            "variables": { "JAVA_HOME": format!("{home}"), "GOROOT": "/etc", "PYENV_ROOT": "/" },
            "directory": "/../../../etc",
        },
    });
    let request = request.to_string();
    let words = ["call", "session_spawn", "--output", "json", "--json", &request];
    let refused = boxed.daemon.run_as(&boxed.daemon.token(), &words);
    assert!(refused.code != 0, "{refused:?}");
    assert!(refused.stderr.contains("the daemon's own user"), "{refused:?}");

    let session = boxed.client(&words).json();
    let session = session["session_id"].as_str().unwrap();
    let script = format!("ls -A {home} 2>&1; echo $PATH; echo secrets; {SEARCH}; echo end");
    let words = ["session", "message", session, &script];
    boxed.client(&words).done();
    let shown = boxed.client(&["session", "watch", session, "--until-idle"]);
    assert_eq!(between(&shown, "secrets", "end"), [""; 0], "{shown:?}");
    assert!(shown.stdout.contains("No such file"), "{shown:?}");
    assert!(shown.stdout.contains("\n/usr/local/bin:/usr/bin:/bin\n"), "{shown:?}");
}

/// REQ: "Caches are writable per project, never the user's own". Rule: what one project leaves in
/// its caches, no other finds.
#[test]
fn a_cache_outlives_its_session_and_is_no_other_projects() {
    let Some(boxed) = Boxed::start() else { return };
    home(&boxed);
    for name in ["one", "two"] {
        fs::create_dir(boxed.at(name)).unwrap();
    }
    let [one, two] = ["one", "two"].map(|name| boxed.at(name));
    let leave = "mkdir -p $CARGO_HOME && echo poison > $CARGO_HOME/config.toml && echo $CARGO_HOME";
    let left = boxed.run(&one, leave, &[]).done();
    assert!(left.stdout.contains("/cache/cargo"), "{left:?}");
    let look = "echo found; ls -A /cache; echo end; touch /cache/.x";
    assert_eq!(between(&boxed.run(&one, look, &[]).done(), "found", "end"), ["cargo"]);
    let other = boxed.run(&two, look, &[]).done();
    assert_eq!(between(&other, "found", "end"), [""; 0], "{other:?}");
    boxed.client(&["project", "create", "another", "--json"]).json();
    let other = boxed.run(&one, look, &["--project", "another"]).done();
    assert_eq!(between(&other, "found", "end"), [""; 0], "{other:?}");
    assert_eq!(fs::read_to_string(boxed.at(".cargo/config.toml")).unwrap(), "TOKEN\n");

    let caches = boxed.daemon.told("data_dir").to_owned() + "/caches";
    assert_eq!(fs::read_dir(&caches).unwrap().count(), 2);
    let projects = boxed.client(&["project", "list", "--json"]).json();
    let projects = projects["projects"].as_array().unwrap();
    let terminal = projects.iter().find(|project| project["name"] == "terminal").unwrap();
    boxed.client(&["project", "delete", terminal["project_id"].as_str().unwrap()]).done();
    assert_eq!(fs::read_dir(&caches).unwrap().count(), 1, "they go with their project");
}
