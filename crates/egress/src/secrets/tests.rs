//! Secrets in their own directory.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;

use super::*;

const VALUE: &str = "sk-very-secret-0123456789";

fn name(name: &str) -> SecretName {
    name.parse().unwrap()
}

fn vault(dir: &Path) -> Vault {
    Vault::new(dir.join("secrets"), CommandRules::default())
}

fn words(words: &[&str]) -> SecretSource {
    SecretSource::Command { command: words.iter().map(|word| (*word).to_owned()).collect() }
}

fn shell(script: &str) -> SecretSource {
    words(&["/bin/sh", "-c", script])
}

/// REQ: "kept sealed in the data directory, 0600": the value is in no file, and all files are their
/// owner's alone.
#[tokio::test]
async fn a_value_is_sealed_for_its_owner_alone_and_found_by_the_next_process() {
    let dir = tempfile::tempdir().unwrap();
    let first = vault(dir.path());
    first.set(&name("one"), SecretSource::value(&format!(" {VALUE}\n")).unwrap(), 7).unwrap();
    first.set(&name("two"), SecretSource::value("other").unwrap(), 8).unwrap();
    assert_eq!(std::fs::metadata(dir.path().join("secrets")).unwrap().mode() & 0o777, 0o700);
    let mut n_files = 0;
    for entry in std::fs::read_dir(dir.path().join("secrets")).unwrap() {
        let entry = entry.unwrap();
        n_files += 1;
        assert_eq!(entry.metadata().unwrap().mode() & 0o777, 0o600);
        let bytes = std::fs::read(entry.path()).unwrap();
        assert!(memchr::memmem::find(&bytes, b"secret-0").is_none());
    }
    assert_eq!(n_files, 3, "two secrets and the key, and nothing temporary");
    let next = vault(dir.path());
    assert_eq!(next.get(&name("one")).await.unwrap().expose(), VALUE);
    let listed = next.list().unwrap();
    let listed: Vec<_> = listed.iter().map(|it| (it.name.as_str(), it.kind, it.since_ms)).collect();
    assert_eq!(listed, [("one", "value", Some(7)), ("two", "value", Some(8))]);
    assert!(!format!("{next:?} {:?}", next.sealed.read(&name("one"))).contains(VALUE));
}

/// Rule: a changed secret is used by the next request, in every process.
#[tokio::test]
async fn a_secret_that_was_changed_or_removed_is_so_immediately() {
    let dir = tempfile::tempdir().unwrap();
    let (sets, reads) = (vault(dir.path()), vault(dir.path()));
    sets.set(&name("a"), shell("echo from-a-command"), 1).unwrap();
    assert_eq!(reads.get(&name("a")).await.unwrap().expose(), "from-a-command");
    sets.set(&name("a"), SecretSource::value("a-value").unwrap(), 2).unwrap();
    assert_eq!(reads.get(&name("a")).await.unwrap().expose(), "a-value");
    sets.remove(&name("a")).unwrap();
    let error = reads.get(&name("a")).await.unwrap_err().to_string();
    assert!(error.contains("ringback secret set a"), "{error}");
    assert!(matches!(sets.remove(&name("a")), Err(SecretError::Missing { .. })));
    assert!(vault(&dir.path().join("none")).list().unwrap().is_empty());
}

/// Rule: a file that was changed, renamed or sealed elsewhere is not opened.
#[tokio::test]
async fn a_sealed_file_is_good_under_its_own_name_and_key_alone() {
    let dir = tempfile::tempdir().unwrap();
    let vault = vault(dir.path());
    vault.set(&name("a"), SecretSource::value(VALUE).unwrap(), 1).unwrap();
    let file = |name: &str| dir.path().join("secrets").join(name);
    std::fs::copy(file("a.sealed"), file("b.sealed")).unwrap();
    assert!(matches!(vault.get(&name("b")).await, Err(SecretError::NotOpened { .. })));
    let whole = std::fs::read(file("a.sealed")).unwrap();
    for at in 0..whole.len() {
        let mut bent = whole.clone();
        bent[at] ^= 1;
        std::fs::write(file("a.sealed"), bent).unwrap();
        assert!(matches!(vault.look(&name("a")), Err(SecretError::NotOpened { .. })), "{at}");
    }
    for end in 0..whole.len() {
        std::fs::write(file("a.sealed"), &whole[..end]).unwrap();
        assert!(matches!(vault.look(&name("a")), Err(SecretError::NotOpened { .. })), "{end}");
    }
    assert_eq!(vault.list().unwrap()[0].kind, "damaged");
    std::fs::write(file("a.sealed"), &whole).unwrap();
    vault.look(&name("a")).unwrap();
    std::fs::write(file("sealing.key"), [0; 32]).unwrap();
    assert!(matches!(vault.look(&name("a")), Err(SecretError::NotOpened { .. })));
    std::fs::write(file("sealing.key"), [0; 31]).unwrap();
    assert!(matches!(vault.look(&name("a")), Err(SecretError::SealingKey { .. })));
}

#[tokio::test]
async fn a_sealed_file_or_a_key_that_others_can_read_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let vault = vault(dir.path());
    vault.set(&name("a"), SecretSource::value(VALUE).unwrap(), 1).unwrap();
    for file in ["a.sealed", "sealing.key"] {
        let path = dir.path().join("secrets").join(file);
        std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let error = vault.get(&name("a")).await.unwrap_err().to_string();
        assert!(error.contains(file) && error.contains("mode 640"), "{error}");
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    }
}

#[tokio::test]
async fn a_secret_in_a_file_is_read_as_that_file_is_now() {
    let dir = tempfile::tempdir().unwrap();
    let vault = vault(dir.path());
    let path = dir.path().join("mine");
    vault.set(&name("a"), SecretSource::File { path: path.clone() }, 1).unwrap();
    assert!(matches!(vault.look(&name("a")), Err(SecretError::File(_))));
    std::fs::write(&path, "first\n").unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    assert_eq!(vault.get(&name("a")).await.unwrap().expose(), "first");
    std::fs::write(&path, "second\n").unwrap();
    assert_eq!(vault.get(&name("a")).await.unwrap().expose(), "second");
}

/// Rule: a command runs once for all concurrent requests, and again when its output is old.
#[tokio::test]
async fn what_a_command_said_is_kept_for_a_short_time() {
    let dir = tempfile::tempdir().unwrap();
    let script = format!("echo x >> {0}/runs; echo said", dir.path().display());
    let runs = || std::fs::read_to_string(dir.path().join("runs")).unwrap().lines().count();
    let kept = Arc::new(vault(dir.path()));
    kept.set(&name("a"), shell(&script), 1).unwrap();
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let kept = Arc::clone(&kept);
        asking.spawn(async move { kept.get(&name("a")).await.unwrap().expose().to_owned() });
    }
    assert!(asking.join_all().await.iter().all(|said| said == "said"));
    assert_eq!(runs(), 1);
    let rules = CommandRules { kept: Duration::ZERO, ..CommandRules::default() };
    let forgets = Vault::new(dir.path().join("secrets"), rules);
    forgets.get(&name("a")).await.unwrap();
    forgets.get(&name("a")).await.unwrap();
    assert_eq!(runs(), 3);
}

/// Rule: a command that fails, prints too much or takes too long is ended, and its output is not in
/// the error.
#[tokio::test]
async fn a_command_that_does_not_say_a_key_is_told_apart_and_ended() {
    let dir = tempfile::tempdir().unwrap();
    let rules = CommandRules { timeout: Duration::from_millis(300), ..CommandRules::default() };
    let vault = Vault::new(dir.path().join("secrets"), rules);
    for (source, expected) in [
        (shell("echo sk-1234; exit 3"), "exit status: 3"),
        (shell("echo two words"), "printed no key"),
        (shell("yes sk-1234"), "more than 8192 bytes"),
        (shell("echo sk-1234; sleep 1000"), "did not finish within"),
        (shell("sleep 1000 & echo sk-1234"), "did not finish within"),
        (words(&["/nonexistent/program"]), "cannot be started"),
        (words(&[]), "is empty"),
        (words(&["/bin/echo", "$HOME", ";", "ls"]), "printed no key"),
    ] {
        vault.set(&name("a"), source, 1).unwrap();
        let error = vault.get(&name("a")).await.unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("secret set a"), "{error}");
        assert!(!error.contains("sk-1234"), "{error}");
    }
}

#[test]
fn a_name_is_no_path() {
    for text in ["", ".", "..", "a/b", "A", "-a", "a.b", "ä", &"a".repeat(65)] {
        assert!(text.parse::<SecretName>().is_err(), "{text}");
    }
    for text in ["a", "anthropic", "my-key_2", "0", &"a".repeat(64)] {
        assert_eq!(text.parse::<SecretName>().unwrap().to_string(), text);
    }
}

/// Rule: of two that make the sealing key at the same time, both have the same.
#[test]
fn the_sealing_key_is_made_once() {
    let dir = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let vault = vault(dir.path());
            scope.spawn(move || {
                let source = SecretSource::value("value").unwrap();
                vault.set(&name(&format!("s{number}")), source, 1).unwrap();
            });
        }
    });
    let vault = vault(dir.path());
    assert!(vault.list().unwrap().iter().all(|it| it.kind == "value"));
}
