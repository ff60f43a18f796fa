//! Local files that a caller names. Rule: no file outside the allowed roots is read, through `..`
//! or a link.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;

use camino::{Utf8Path, Utf8PathBuf};
use ringback_blobs::{OpenRootedError, Roots};
use rustix::fs::{CWD, FileType, Mode};

fn tree() -> (tempfile::TempDir, Utf8PathBuf, Roots) {
    let dir = tempfile::tempdir().unwrap();
    let base = Utf8Path::from_path(dir.path()).unwrap().canonicalize_utf8().unwrap();
    let root = base.join("root");
    fs::create_dir_all(root.join("sub")).unwrap();
    fs::create_dir_all(base.join("root-secret")).unwrap();
    fs::write(base.join("root-secret/file"), "secret").unwrap();
    fs::write(root.join("sub/file"), "inside").unwrap();
    let roots = Roots::open([&*root]).unwrap();
    (dir, base, roots)
}

#[test]
fn a_file_inside_a_root_is_opened_by_absolute_and_relative_path() {
    let (_dir, base, roots) = tree();
    symlink("sub", base.join("root/alias")).unwrap();
    let absolute = base.join("root/sub/file");
    for path in [absolute.as_str(), "sub/file", "./sub/file", "alias/file"] {
        let mut text = String::new();
        roots.open_file(path.into()).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "inside", "{path}");
    }
}

#[test]
fn dots_and_links_never_lead_outside() {
    let (_dir, base, roots) = tree();
    let root = base.join("root");
    symlink(base.join("root-secret/file"), root.join("link-file")).unwrap();
    symlink(base.join("root-secret"), root.join("link-dir")).unwrap();
    symlink("../root-secret", root.join("link-relative")).unwrap();
    symlink("/proc/self/root", root.join("link-magic")).unwrap();
    let secret = base.join("root-secret/file");
    for path in [
        "../root-secret/file".into(),
        "sub/../../root-secret/file".into(),
        root.join("../root-secret/file"),
        secret.clone(),
        "link-dir/file".into(),
        "link-relative/file".into(),
        format!("link-magic{secret}").into(),
        "/etc/passwd".into(),
    ] {
        let refused = roots.open_file(&path);
        assert!(matches!(refused, Err(OpenRootedError::Outside { .. })), "{path}: {refused:?}");
    }
    let refused = roots.open_file("link-file".into());
    assert!(matches!(refused, Err(OpenRootedError::NotAFile { .. })), "{refused:?}");
}

#[test]
fn only_regular_files_are_opened_and_a_pipe_does_not_block() {
    let (_dir, base, roots) = tree();
    let pipe = base.join("root/pipe");
    rustix::fs::mknodat(CWD, pipe.as_str(), FileType::Fifo, Mode::RWXU, 0).unwrap();
    for path in ["pipe", "sub", "."] {
        let refused = roots.open_file(path.into());
        assert!(matches!(refused, Err(OpenRootedError::NotAFile { .. })), "{path}: {refused:?}");
    }
    let refused = roots.open_file("missing".into());
    assert!(matches!(refused, Err(OpenRootedError::NotFound { .. })), "{refused:?}");
}

#[test]
fn without_roots_nothing_is_opened() {
    let roots = Roots::open([]).unwrap();
    assert!(matches!(roots.open_file("file".into()), Err(OpenRootedError::Outside { .. })));
    assert!(Roots::open(["/nonexistent-root".into()]).is_err());
}

#[test]
fn a_root_may_be_named_through_a_link() {
    let (_dir, base, _) = tree();
    symlink(base.join("root"), base.join("alias")).unwrap();
    let alias = base.join("alias");
    let roots = Roots::open([&*alias]).unwrap();
    roots.open_file(&alias.join("sub/file")).unwrap();
    roots.open_file(&base.join("root/sub/file")).unwrap();
}
