//! The private repository of a copy, and commits from what an agent did.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::boxed::{Boxed, between};

/// Runs `git` as a user would, in a repository of a test.
fn git(dir: &Path, words: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]);
    command.args(["-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main"]);
    command.args(words).current_dir(dir).env("GIT_CONFIG_GLOBAL", "/dev/null");
    let output = command.env("GIT_CONFIG_NOSYSTEM", "1").output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn write(dir: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Creates a repository with two commits, and changes of every kind.
fn repository(boxed: &Boxed, name: &str) -> PathBuf {
    let dir = boxed.at(name);
    fs::create_dir_all(&dir).unwrap();
    git(&dir, &["init", "-q"]);
    write(&dir, &[("a.txt", "one\n"), ("sub/b.txt", "b\n"), ("gone.txt", "g\n")]);
    write(&dir, &[(".gitignore", "*.log\nout/\n"), ("kept.log", "tracked all the same\n")]);
    git(&dir, &["add", "-f", "."]);
    git(&dir, &["commit", "-qm", "first"]);
    write(&dir, &[("a.txt", "two\n"), ("sub/c.txt", "c\n")]);
    git(&dir, &["add", "."]);
    git(&dir, &["commit", "-qm", "second"]);
    git(&dir, &["tag", "v1"]);
    git(&dir, &["branch", "other", "HEAD~1"]);
    write(&dir, &[("a.txt", "two, changed\n"), ("staged.txt", "s\n"), ("new.txt", "n\n")]);
    write(&dir, &[("ignored.log", "x\n"), ("out/built", "x\n"), ("out/deep/x", "x\n")]);
    git(&dir, &["add", "staged.txt"]);
    fs::remove_file(dir.join("gone.txt")).unwrap();
    dir
}

/// Makes a repository run programs wherever `git` lets it; each leaves a trace.
fn arm(boxed: &Boxed, dir: &Path) -> PathBuf {
    let trace = boxed.at("trace");
    let program = format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n", trace.display());
    let program = boxed.file("armed", &program).display().to_string();
    for hook in [
        "applypatch-msg",
        "fsmonitor-watchman",
        "post-checkout",
        "post-commit",
        "post-index-change",
        "post-update",
        "pre-auto-gc",
        "pre-commit",
        "pre-receive",
        "reference-transaction",
        "update",
    ] {
        fs::copy(&program, dir.join(".git/hooks").join(hook)).unwrap();
    }
    fs::write(dir.join(".git/more"), format!("[core]\n\tsshCommand = {program}\n")).unwrap();
    let config = format!(
        "[core]\n\tfsmonitor = {program}\n\tpager = {program}\n\teditor = {program}\n\
         \taskPass = {program}\n\tgitProxy = {program}\n\talternateRefsCommand = {program}\n\
         [include]\n\tpath = more\n[alias]\n\tls-files = !{program}\n\tx = !{program}\n\
         [filter \"x\"]\n\tclean = {program}\n\tsmudge = {program}\n\tprocess = {program}\n\
         [diff]\n\texternal = {program}\n[diff \"x\"]\n\ttextconv = {program}\n\
         [merge \"x\"]\n\tdriver = {program}\n[gpg]\n\tprogram = {program}\n\
         [commit]\n\tgpgSign = true\n[uploadpack]\n\tpackObjectsHook = {program}\n\
         [credential]\n\thelper = !{program}\n[url \"ext::{program}\"]\n\tinsteadOf = https://\n\
         [remote \"origin\"]\n\turl = https://TOKEN@example.org/x\n\tpromisor = true\n\
         [submodule \"x\"]\n\tupdate = !{program}\n[user]\n\tname = Mallory\n"
    );
    let path = dir.join(".git/config");
    fs::write(&path, fs::read_to_string(&path).unwrap() + &config).unwrap();
    fs::write(dir.join(".git/info/attributes"), "* filter=x diff=x merge=x\n").unwrap();
    write(dir, &[(".gitattributes", "* filter=x diff=x merge=x\n")]);
    trace
}

/// REQ: "Git works: the box gets a private clone with history, without remotes, hooks, credentials
/// or anything that executes". Rule: the state of the working tree equals the user's.
#[test]
fn git_works_in_the_box_as_outside_of_it() {
    let Some(boxed) = Boxed::start() else { return };
    let dir = repository(&boxed, "project");
    let script = "echo status; git status --porcelain; echo log; git log --all --format='%H %D'; \
        echo index; git ls-files --stage; echo rest; git fsck --strict 2>&1; git remote -v; \
        ls .git/hooks .git/objects/info/alternates 2>/dev/null; cat kept.log ignored.log; echo end; \
        git add -A && git commit -qm mine && git stash list && git log -1 --format='%an %s' && \
        git diff --stat HEAD~1 && git checkout -q other && cat a.txt";
    let shown = boxed.run(&dir, script, &[]).done();
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(between(&shown, "status", "log"), lines(&git(&dir, &["status", "--porcelain"])));
    let log = git(&dir, &["log", "--all", "--format=%H %D"]);
    assert_eq!(between(&shown, "log", "index"), lines(&log));
    let index = git(&dir, &["ls-files", "--stage"]);
    assert_eq!(between(&shown, "index", "rest"), lines(&index));
    let rest = between(&shown, "rest", "end");
    let known = ["tracked all the same", "cat: ignored.log: No such file or directory"];
    assert!(
        rest.iter().all(|line| known.contains(line) || line.starts_with("dangling")),
        "{rest:?}"
    );
    for part in ["Agent mine", "\none\n", "\ncode 0\n"] {
        assert!(shown.stdout.contains(part), "{part}: {shown:?}");
    }
    assert!(!shown.stdout.contains(".git/"), "the repository is no part of the diff: {shown:?}");
    let outside = git(&dir, &["status", "--porcelain"]);
    assert!(outside.contains("A  staged.txt") && outside.contains("?? new.txt"), "{outside}");
}

/// Rule: no hook, filter, alias or monitor of a repository runs outside of the box, whether its
/// directory is copied or changes are applied, and no remote or credential is in the copy.
#[test]
fn nothing_of_a_repository_runs_outside() {
    let Some(boxed) = Boxed::start() else { return };
    let dir = repository(&boxed, "project");
    let trace = arm(&boxed, &dir);
    let script = "echo x > agent.txt; cat .git/config; echo config; \
        grep -r 'TO[K]EN\\|Mallory\\|armed' .git; echo end; git log -1 --format=%s";
    let shown = boxed.run(&dir, script, &[]).done();
    assert_eq!(between(&shown, "config", "end"), [""; 0], "{shown:?}");
    assert!(shown.stdout.contains("\nsecond\n"), "{shown:?}");
    let id = boxed.id();
    boxed.client(&["session", "apply", &id, "--dry-run"]).done();
    boxed.client(&["session", "apply", &id, "--branch", "agents/work"]).done();
    boxed.client(&["session", "apply", &id]).done();
    assert!(!trace.exists(), "{}", fs::read_to_string(&trace).unwrap());
    // The trap works.
    drop(Command::new("git").args(["status"]).current_dir(&dir).output().unwrap());
    assert!(trace.exists());
}

/// REQ: "`--branch NAME` makes commits on a branch". Rule: neither the working tree nor the index
/// changes, and an existing branch stays as it is.
#[test]
fn what_an_agent_did_becomes_a_commit_on_a_branch() {
    let Some(boxed) = Boxed::start() else { return };
    let dir = repository(&boxed, "project");
    let script = "echo three > a.txt; rm sub/b.txt; ln -s a.txt link; printf x > 'an odd\tname'; \
        mkdir deep; echo x > deep/run; chmod +x deep/run; git add -A; git commit -qm own";
    boxed.run(&dir, script, &[]).done();
    let (id, before) = (boxed.id(), git(&dir, &["status", "--porcelain"]));
    let made = boxed.client(&["session", "apply", &id, "--branch", "agents/work", "--json"]).json();
    assert_eq!(git(&dir, &["status", "--porcelain"]), before);
    assert_eq!(fs::read_to_string(dir.join("a.txt")).unwrap(), "two, changed\n");
    let commit = git(&dir, &["rev-parse", "agents/work"]);
    assert_eq!(commit.trim(), made["commit"].as_str().unwrap());
    assert_eq!(git(&dir, &["rev-parse", "agents/work^"]), git(&dir, &["rev-parse", "main"]));
    let changed = git(&dir, &["diff", "--raw", "--no-abbrev", "main", "agents/work"]);
    let changed: Vec<_> =
        changed.lines().map(|line| (&line[1..14], line.split_once('\t').unwrap().1)).collect();
    let expected = [
        ("100644 100644", "a.txt"),
        ("000000 100644", "\"an odd\\tname\""),
        ("000000 100755", "deep/run"),
        ("000000 120000", "link"),
        ("100644 000000", "sub/b.txt"),
    ];
    assert_eq!(changed, expected);
    assert_eq!(git(&dir, &["show", "agents/work:a.txt"]), "three\n");
    git(&dir, &["fsck", "--strict"]);
    for (name, why) in [
        ("agents/work", "already a branch"),
        ("agents", "already a branch"),
        ("main/x", "already a branch"),
        ("../../config", "not a name"),
    ] {
        let refused = boxed.client(&["session", "apply", &id, "--branch", name]);
        assert!(refused.code != 0 && refused.stderr.contains(why), "{name}: {refused:?}");
    }
}

/// REQ: "worktrees and submodules work", and "`--dir` may lie below a repository's root".
#[test]
fn worktrees_submodules_and_directories_below_the_root_have_their_history() {
    let Some(boxed) = Boxed::start() else { return };
    let dir = repository(&boxed, "project");
    let library = repository(&boxed, "library");
    git(&library, &["add", "-A"]);
    git(&library, &["commit", "-qm", "of the library"]);
    git(&dir, &["submodule", "--quiet", "add", library.to_str().unwrap(), "vendor/library"]);
    git(&dir, &["commit", "-qm", "with a submodule"]);
    let look = "echo look; git status --porcelain; git log --format=%s; echo end; \
        git -C vendor/library log -1 --format=%s; git submodule status";
    let shown = boxed.run(&dir, look, &[]).done();
    let log = ["with a submodule", "second", "first"];
    assert!(between(&shown, "look", "end").ends_with(&log), "{shown:?}");
    let status = git(&dir, &["submodule", "status"]);
    for part in ["\nof the library\n", status.trim()] {
        assert!(shown.stdout.contains(part), "{part}: {shown:?}");
    }
    let inner = boxed.run(&dir.join("vendor/library"), look, &[]).done();
    assert!(between(&inner, "look", "end").contains(&"of the library"), "{inner:?}");

    git(&dir, &["worktree", "add", "-q", "../tree", "other"]);
    let tree = boxed.at("tree");
    let look = "echo look; git status --porcelain; git branch --show-current; git log --format=%s; \
        echo end; echo x > made";
    let shown = boxed.run(&tree, look, &[]).done();
    assert_eq!(between(&shown, "look", "end"), ["other", "first"], "{shown:?}");
    boxed.client(&["session", "apply", &boxed.id(), "--branch", "from-tree"]).done();
    assert_eq!(git(&dir, &["log", "-1", "--format=%an %s", "from-tree~1"]).trim(), "Ada first");

    let look = "echo look; git status --porcelain; git log --format=%s; ls; echo end; \
        git show HEAD:c.txt; git cat-file -e $(printf 'two\\n' | git hash-object --stdin) || echo out; \
        echo c2 > c.txt";
    let shown = boxed.run(&dir.join("sub"), look, &[]).done();
    let expected = ["second", "first", "b.txt", "c.txt"];
    assert_eq!(between(&shown, "look", "end"), expected, "{shown:?}");
    assert!(shown.stdout.contains("c\nout\n"), "nothing beside the directory: {shown:?}");
    boxed.client(&["session", "apply", &boxed.id(), "--branch", "from-sub"]).done();
    let changed = git(&dir, &["diff", "--name-only", "main", "from-sub"]);
    assert_eq!(changed, "sub/c.txt\n");
}

/// Rule: a `.git` that leads to another repository of the user does not bring its history along.
#[test]
fn a_git_file_that_leads_elsewhere_brings_nothing_along() {
    let Some(boxed) = Boxed::start() else { return };
    let secret = repository(&boxed, "secret");
    let (secret, evil) = (secret.join(".git"), boxed.at("evil"));
    let look = "echo look; git log --format=%s 2>/dev/null; echo end";
    let prepare: [&dyn Fn(); 4] = [
        &|| write(&evil, &[(".git", &*format!("gitdir: {}\n", secret.display()))]),
        &|| std::os::unix::fs::symlink(&secret, evil.join(".git")).unwrap(),
        &|| {
            git(&evil, &["init", "-q"]);
            for name in ["objects", "refs"] {
                fs::remove_dir_all(evil.join(".git").join(name)).unwrap();
                std::os::unix::fs::symlink(secret.join(name), evil.join(".git").join(name))
                    .unwrap();
            }
        },
        &|| {
            git(&evil, &["init", "-q"]);
            write(&evil, &[(".git/commondir", &*secret.display().to_string())]);
        },
    ];
    for (number, prepare) in prepare.iter().enumerate() {
        fs::create_dir(&evil).unwrap();
        prepare();
        let shown = boxed.run(&evil, look, &[]).done();
        assert_eq!(between(&shown, "look", "end"), [""; 0], "{number}: {shown:?}");
        fs::remove_dir_all(&evil).unwrap();
    }
}

/// REQ: "`--include PATH` brings ignored files along", and `--exclude PATTERN` leaves files out.
#[test]
fn ignored_files_come_along_and_others_stay_out_as_asked() {
    let Some(boxed) = Boxed::start() else { return };
    let dir = repository(&boxed, "project");
    let look = "echo look; find . -path ./.git -prune -o -type f -print | sort; echo end; \
        echo status; git status --porcelain; echo done";
    let more =
        ["--include", "out", "--include", "ignored.log", "--exclude", "sub/", "--exclude", "deep"];
    let shown = boxed.run(&dir, look, &more).done();
    let files = [
        "./.gitignore",
        "./a.txt",
        "./ignored.log",
        "./kept.log",
        "./new.txt",
        "./out/built",
        "./staged.txt",
    ];
    assert_eq!(between(&shown, "look", "end"), files, "{shown:?}");
    let status: Vec<_> = between(&shown, "status", "done");
    assert!(!status.iter().any(|line| line.contains("sub/")), "not deleted: {status:?}");
    assert!(shown.stderr.contains("7 files"), "{shown:?}");
    let without = boxed.run(&dir, "git log", &["--no-git"]).done();
    assert!(without.stdout.contains("not a git repository"), "{without:?}");
    for wrong in [["--include", "nosuch"], ["--include", "../library"], ["--include", ".git"]] {
        let refused = boxed.run(&dir, look, &wrong);
        assert_eq!(refused.code, 2, "{wrong:?}: {refused:?}");
    }
}
