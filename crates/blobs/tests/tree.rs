//! Trees that an untrusted process may be writing in. Rule: nothing in a tree is read or written
//! through a link, and nothing that would block is opened.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

use std::ffi::OsStr;
use std::fs;
use std::io::{Cursor, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use ringback_blobs::Tree;
use ringback_blobs::tree::{
    ArchiveSummary, EntryKind, SkipReason, Skipped, TreeError, TreeLimits, TreeListing, Usage,
    pack, remove_tree, unpack,
};
use rustix::fs::{CWD, FileType, Mode, RenameFlags};

const LIMITS: TreeLimits = TreeLimits { entries_max: 100, bytes_max: 10_000 };

/// A tree with `sub/file`, and a secret beside it.
fn tree() -> (tempfile::TempDir, PathBuf, Tree) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("tree");
    fs::create_dir_all(root.join("sub")).unwrap();
    fs::create_dir(dir.path().join("secret")).unwrap();
    fs::write(dir.path().join("secret/file"), "secret").unwrap();
    fs::write(root.join("sub/file"), "inside").unwrap();
    let tree = Tree::open(&root).unwrap();
    (dir, root, tree)
}

fn read(tree: &Tree, path: impl AsRef<Path>) -> Result<String, TreeError> {
    let mut text = String::new();
    tree.open_file(path.as_ref())?.read_to_string(&mut text).unwrap();
    Ok(text)
}

fn write(tree: &Tree, path: impl AsRef<Path>, text: &str) -> Result<u64, TreeError> {
    tree.write(path.as_ref(), &mut text.as_bytes(), false)
}

fn paths(tree: &Tree) -> Vec<PathBuf> {
    let entries = tree.walk(Path::new(""), LIMITS, |_| true).unwrap().entries;
    entries.into_iter().map(|entry| entry.path).collect()
}

#[test]
fn files_are_read_and_written_and_a_write_replaces_in_one_step() {
    let (_dir, root, tree) = tree();
    assert_eq!(read(&tree, "./sub/file").unwrap(), "inside");
    assert_eq!(write(&tree, "new/deep/file", "text").unwrap(), 4);
    assert_eq!(read(&tree, "new/deep/file").unwrap(), "text");
    tree.write(Path::new("sub/file"), &mut "#!/bin/sh".as_bytes(), true).unwrap();
    assert!(tree.entry(Path::new("sub/file")).unwrap().executable);
    assert_eq!(fs::metadata(root.join("sub/file")).unwrap().permissions().mode() & 0o777, 0o755);
    fs::set_permissions(root.join("sub/file"), fs::Permissions::from_mode(0o600)).unwrap();
    tree.write(Path::new("sub/file"), &mut "private".as_bytes(), true).unwrap();
    let mode = fs::metadata(root.join("sub/file")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "a private file stays private");
    let refused = write(&tree, "sub", "text");
    assert!(matches!(refused, Err(TreeError::NotAFile { .. })), "{refused:?}");
    assert_eq!(fs::read_dir(&root).unwrap().count(), 2, "no half-written file is left");
    tree.remove(Path::new("new/deep/file")).unwrap();
    assert!(!root.join("new").exists(), "empty directories are removed too");
    assert!(root.join("sub").exists());
}

/// Rule: nothing outside a tree is read, by an absolute path, by `..`, by a link or through one.
#[test]
fn nothing_is_read_outside() {
    let (dir, root, tree) = tree();
    symlink(dir.path().join("secret/file"), root.join("to-file")).unwrap();
    symlink(dir.path().join("secret"), root.join("to-dir")).unwrap();
    symlink("../secret", root.join("relative")).unwrap();
    symlink("/proc/self/root", root.join("magic")).unwrap();
    symlink("sub", root.join("alias")).unwrap();
    let secret = dir.path().join("secret/file");
    for path in [secret.as_path(), Path::new("../secret/file"), Path::new("sub/../../secret/file")]
    {
        let refused = read(&tree, path);
        assert!(matches!(refused, Err(TreeError::Outside { .. })), "{path:?}: {refused:?}");
    }
    for path in ["to-dir/file", "relative/file", "magic/etc/passwd", "alias/file"] {
        let refused = read(&tree, path);
        assert!(matches!(refused, Err(TreeError::Link { .. })), "{path}: {refused:?}");
        let refused = tree.entry(Path::new(path));
        assert!(matches!(refused, Err(TreeError::Link { .. })), "{path}: {refused:?}");
    }
    for path in ["to-file", "to-dir", "sub"] {
        let refused = read(&tree, path);
        assert!(matches!(refused, Err(TreeError::NotAFile { .. })), "{path}: {refused:?}");
    }
    assert_eq!(tree.entry(Path::new("to-file")).unwrap().kind, EntryKind::Symlink);
    assert_eq!(tree.read_link(Path::new("relative")).unwrap(), Path::new("../secret"));
    assert!(tree.list(Path::new("to-dir"), 10).is_err());
    let within = |path: &PathBuf| path.parent() == Some(Path::new("to-dir"));
    assert!(!paths(&tree).iter().any(within), "{:?}", paths(&tree));
    symlink(&root, dir.path().join("link-to-tree")).unwrap();
    assert!(Tree::open(&dir.path().join("link-to-tree")).is_err());
}

/// Rule: nothing outside a tree is written, and a link in the way is replaced, not followed.
#[test]
fn nothing_is_written_outside() {
    let (dir, root, tree) = tree();
    let secret = dir.path().join("secret/file");
    symlink(&secret, root.join("to-file")).unwrap();
    symlink(dir.path().join("secret"), root.join("to-dir")).unwrap();
    write(&tree, "to-file", "mine").unwrap();
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
    assert_eq!(read(&tree, "to-file").unwrap(), "mine");
    for path in ["to-dir/file", "to-dir/new/file"] {
        assert!(matches!(write(&tree, path, "mine"), Err(TreeError::Link { .. })), "{path}");
        assert!(tree.link(Path::new(path), Path::new("x")).is_err());
        assert!(tree.remove(Path::new(path)).is_err());
        assert!(tree.make_dir(Path::new(path)).is_err());
    }
    let refused = write(&tree, "sub/file/below", "mine");
    assert!(matches!(refused, Err(TreeError::NotADirectory { .. })), "{refused:?}");
    for path in ["../secret/file", "", ".", "sub/../file"] {
        assert!(write(&tree, path, "mine").is_err(), "{path}");
    }
    assert!(write(&tree, &secret, "mine").is_err());
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
    assert_eq!(fs::read_dir(dir.path().join("secret")).unwrap().count(), 1);
}

#[test]
fn a_pipe_does_not_block_and_is_named_as_other() {
    let (_dir, root, tree) = tree();
    rustix::fs::mknodat(CWD, root.join("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    assert!(matches!(read(&tree, "pipe"), Err(TreeError::NotAFile { .. })));
    let listed = tree.list(Path::new(""), 10).unwrap();
    assert_eq!(listed[0].kind, EntryKind::Other);
    let mut archive = Vec::new();
    assert_eq!(pack(&tree, &listed, &mut archive).unwrap(), ArchiveSummary::default());
    write(&tree, "pipe", "a file now").unwrap();
    assert_eq!(read(&tree, "pipe").unwrap(), "a file now");
}

#[test]
fn a_tree_is_walked_in_order_and_only_up_to_its_limits() {
    let (_dir, root, tree) = tree();
    for name in ["b", "a", "sub/z", "sub-1"] {
        fs::write(root.join(name), "12345").unwrap();
    }
    assert_eq!(paths(&tree), ["a", "b", "sub", "sub/file", "sub/z", "sub-1"].map(PathBuf::from));
    let walk = |limits| tree.walk(Path::new(""), limits, |_| true);
    let few = walk(TreeLimits { entries_max: 5, ..LIMITS });
    assert!(matches!(few, Err(TreeError::TooManyEntries { max: 5 })), "{few:?}");
    let small = walk(TreeLimits { bytes_max: 20, ..LIMITS }).unwrap();
    let large = ["sub/z", "sub-1"].map(PathBuf::from);
    let large = large.map(|path| Skipped { path, why: SkipReason::TooLarge });
    assert_eq!((small.entries.len(), small.skipped), (4, large.to_vec()));
    assert!(tree.list(Path::new(""), 3).is_err());
    let only = tree.walk(Path::new(""), LIMITS, |entry| entry.path != Path::new("sub")).unwrap();
    assert_eq!(only.entries.len(), 3);
}

/// Rule: a directory that is too deep or unreadable does not make the rest of a tree fail.
#[test]
fn a_directory_deeper_than_a_path_can_be_is_skipped_and_named() {
    let (_dir, root, tree) = tree();
    dig(&root, &"d".repeat(250), 20);
    let walked = tree.walk(Path::new(""), LIMITS, |_| true).unwrap();
    assert_eq!(walked.skipped.len(), 1, "{walked:?}");
    assert_eq!(walked.skipped[0].why, SkipReason::TooDeep);
    assert!(walked.entries.iter().any(|entry| entry.path == Path::new("sub/file")));
    let packed = pack(&tree, &walked.entries, &mut Vec::new()).unwrap();
    assert_eq!((packed.files, packed.skipped), (1, vec![]));
}

/// Nests directories step by step, because no path is long enough for all of them.
fn dig(root: &Path, name: &str, depth: usize) {
    let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::RDONLY;
    let mut dir = rustix::fs::open(root, flags, Mode::empty()).unwrap();
    for _ in 0..depth {
        rustix::fs::mkdirat(&dir, name, Mode::RWXU).unwrap();
        dir = rustix::fs::openat(&dir, name, flags, Mode::empty()).unwrap();
    }
    rustix::fs::mknodat(&dir, "file", FileType::RegularFile, Mode::RWXU, 0).unwrap();
}

/// Rule: removing a tree needs the same stack and a few descriptors at any depth, and the other
/// walks do not overflow either.
#[test]
fn a_tree_of_any_depth_is_measured_and_removed() {
    const DEPTH: usize = 15_000;
    let (dir, root, tree) = tree();
    dig(&root, "d", DEPTH);
    let work = move || {
        let walked =
            tree.walk(Path::new(""), TreeLimits { entries_max: 100_000, ..LIMITS }, |_| true);
        assert!(walked.unwrap().skipped.iter().all(|skipped| skipped.why == SkipReason::TooDeep));
        let usage = Usage::of(&root, 100_000);
        assert_eq!((usage.entries, usage.is_partial), (DEPTH as u64 + 3, false));
        remove_tree(&root).unwrap();
        assert!(!root.exists());
        remove_tree(&root).unwrap();
    };
    // Less than a thread usually has; a stack frame for each level would need far more.
    let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(work).unwrap();
    thread.join().unwrap();
    assert!(dir.path().join("secret/file").exists());
}

/// Rule: links are removed, not followed, and wide trees need no more than narrow ones.
#[test]
fn a_removal_follows_no_link() {
    let (dir, root, _tree) = tree();
    symlink(dir.path().join("secret"), root.join("door")).unwrap();
    symlink(dir.path().join("secret/file"), root.join("sub/hole")).unwrap();
    rustix::fs::mknodat(CWD, root.join("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    for number in 0..300 {
        fs::create_dir_all(root.join(format!("wide/{number}/inner"))).unwrap();
        fs::write(root.join(format!("wide/{number}/file")), "x").unwrap();
    }
    remove_tree(&root).unwrap();
    assert!(!root.exists());
    assert_eq!(fs::read_to_string(dir.path().join("secret/file")).unwrap(), "secret");
    symlink(dir.path().join("secret"), &root).unwrap();
    assert!(remove_tree(&root).is_err(), "a link is not a tree");
    assert!(dir.path().join("secret/file").exists());
}

/// Reruns a test as a user without special rights; returns whether this is that run.
fn is_ordinary_user(test: &str) -> bool {
    use std::os::unix::process::CommandExt as _;
    const NOBODY: u32 = 65_534;
    if !rustix::process::geteuid().is_root() {
        return true;
    }
    // Where everyone may run it: the build may lie in a home that is closed to others.
    let public = tempfile::tempdir().unwrap();
    fs::set_permissions(public.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = public.path().join("test");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let mut again = std::process::Command::new(program);
    let ran = again.args(["--exact", test]).current_dir("/").uid(NOBODY).gid(NOBODY).output();
    let ran = ran.unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
    false
}

/// Rule: an ordinary user can remove directories that their owner may not read, write or enter, as
/// in module caches; until then they are reported, and do not make the rest fail.
#[test]
fn directories_without_permissions_are_named_and_removed() {
    if !is_ordinary_user("directories_without_permissions_are_named_and_removed") {
        return;
    }
    let (_dir, root, tree) = tree();
    for (name, mode) in [("read-only", 0o555), ("closed", 0o000), ("unsearchable", 0o644)] {
        fs::create_dir_all(root.join(name).join("inner/most")).unwrap();
        fs::write(root.join(name).join("inner/most/file"), "x").unwrap();
        for path in
            [root.join(name).join("inner/most"), root.join(name).join("inner"), root.join(name)]
        {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
    }
    fs::write(root.join("private"), "x").unwrap();
    fs::set_permissions(root.join("private"), fs::Permissions::from_mode(0o000)).unwrap();
    let walked = tree.walk(Path::new(""), LIMITS, |_| true).unwrap();
    let skipped = |path: &str| Skipped { path: path.into(), why: SkipReason::Unreadable };
    assert_eq!(walked.skipped, [skipped("closed"), skipped("unsearchable")]);
    let packed = pack(&tree, &walked.entries, &mut Vec::new()).unwrap();
    assert_eq!((packed.files, packed.skipped), (2, vec![skipped("private")]));
    assert!(Usage::of(&root, 100).is_partial);
    remove_tree(&root).unwrap();
    assert!(!root.exists());
}

/// Rule: a process that keeps writing does not delay a removal forever, and leads it nowhere.
#[test]
fn a_removal_ends_while_somebody_moves_directories() {
    let (dir, root, _tree) = tree();
    fs::write(dir.path().join("secret/more"), "secret").unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                drop(fs::create_dir_all(root.join("a/b/c")));
                drop(fs::create_dir_all(root.join("other")));
                drop(fs::rename(root.join("a/b"), root.join("other/b")));
                drop(symlink(dir.path().join("secret"), root.join("a/door")));
            }
        });
        for _ in 0..200 {
            drop(remove_tree(&root));
        }
        stop.store(true, Ordering::Relaxed);
    });
    remove_tree(&root).unwrap();
    assert_eq!(fs::read_dir(dir.path().join("secret")).unwrap().count(), 2);
}

#[test]
fn names_need_not_be_utf8() {
    let (_dir, root, tree) = tree();
    let name = Path::new(OsStr::from_bytes(b"\xff\xfe"));
    fs::write(root.join(name), "odd").unwrap();
    assert_eq!(read(&tree, name).unwrap(), "odd");
    assert!(paths(&tree).iter().any(|path| path == name));
}

/// Rule: an archive of a tree unpacks to the same tree, including links, odd names and long ones.
#[test]
fn an_archive_becomes_the_same_tree_again() {
    let (dir, root, tree) = tree();
    let long = format!("{}/{}", "d".repeat(120), "n".repeat(200));
    write(&tree, &long, "long").unwrap();
    tree.write(Path::new("run.sh"), &mut "#!".as_bytes(), true).unwrap();
    symlink("/etc/passwd", root.join("link")).unwrap();
    symlink("a//./b/", root.join("untidy")).unwrap();
    symlink("../".repeat(60), root.join("up")).unwrap();
    fs::write(root.join(OsStr::from_bytes(b"odd\xff")), "odd").unwrap();
    fs::create_dir(root.join("empty")).unwrap();
    let entries = tree.walk(Path::new(""), LIMITS, |_| true).unwrap().entries;
    let mut archive = Vec::new();
    let packed = pack(&tree, &entries, &mut archive).unwrap();
    assert_eq!(packed, ArchiveSummary { files: 7, bytes: 15, skipped: vec![] });

    fs::create_dir(dir.path().join("copy")).unwrap();
    let copy = Tree::open(&dir.path().join("copy")).unwrap();
    assert_eq!(unpack(&copy, Path::new(""), Cursor::new(&archive), LIMITS).unwrap(), packed);
    assert_eq!(copy.walk(Path::new(""), LIMITS, |_| true).unwrap().entries, entries);
    assert_eq!(copy.read_link(Path::new("link")).unwrap(), Path::new("/etc/passwd"));
    assert_eq!(copy.read_link(Path::new("untidy")).unwrap().as_os_str(), "a//./b/");
    assert_eq!(copy.read_link(Path::new("up")).unwrap().as_os_str(), "../".repeat(60).as_str());
    let mut again = Vec::new();
    pack(&copy, &entries, &mut again).unwrap();
    assert_eq!(archive, again, "the same tree gives the same bytes");
}

/// Rule: an archive writes nothing outside, nothing through a link it created before, and nothing
/// at all if any part of it is refused.
#[test]
fn an_archive_writes_nothing_outside() {
    let (dir, root, tree) = tree();
    let made = |add: &dyn Fn(&mut tar::Builder<Vec<u8>>)| {
        let mut builder = tar::Builder::new(Vec::new());
        file(&mut builder, b"first", b"1");
        add(&mut builder);
        Cursor::new(builder.into_inner().unwrap())
    };
    let climbing = made(&|builder| file(builder, b"../secret/file", b"mine"));
    let absolute = made(&|builder| file(builder, b"/tmp/secret", b"mine"));
    for archive in [climbing, absolute] {
        let refused = unpack(&tree, Path::new(""), archive, LIMITS);
        assert!(matches!(refused, Err(TreeError::Outside { .. })), "{refused:?}");
    }
    let hard = made(&|builder| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Link);
        header.set_size(0);
        builder.append_link(&mut header, "hard", dir.path().join("secret/file")).unwrap();
    });
    let refused = unpack(&tree, Path::new(""), hard, LIMITS);
    assert!(matches!(refused, Err(TreeError::Unsupported { .. })), "{refused:?}");
    let large = made(&|builder| file(builder, b"large", &[0; 20_000]));
    let refused = unpack(&tree, Path::new(""), large, LIMITS);
    assert!(matches!(refused, Err(TreeError::TooManyBytes { .. })), "{refused:?}");
    assert!(!root.join("first").exists(), "nothing of a refused archive is written");

    let through = made(&|builder| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        builder.append_link(&mut header, "door", dir.path().join("secret")).unwrap();
        file(builder, b"door/file", b"mine");
    });
    let refused = unpack(&tree, Path::new(""), through, LIMITS);
    assert!(matches!(refused, Err(TreeError::Link { .. })), "{refused:?}");
    assert_eq!(fs::read_to_string(dir.path().join("secret/file")).unwrap(), "secret");
    assert!(unpack(&tree, Path::new(""), Cursor::new(b"no archive".repeat(100)), LIMITS).is_err());
}

/// Adds a file under a name that the library itself would refuse to write.
fn file(builder: &mut tar::Builder<Vec<u8>>, name: &[u8], content: &[u8]) {
    let mut header = tar::Header::new_gnu();
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    header.set_cksum();
    builder.append(&header, content).unwrap();
}

/// Rule: a link swapped in for a directory while a tree is walked, read and written leads nowhere.
#[test]
fn a_link_that_is_swapped_in_leads_nowhere() {
    let (dir, root, tree) = tree();
    fs::write(root.join("sub/more"), "inside").unwrap();
    fs::write(dir.path().join("secret/more"), "secret").unwrap();
    symlink(dir.path().join("secret"), root.join("door")).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let swap = RenameFlags::EXCHANGE;
                let (one, other) = (root.join("sub"), root.join("door"));
                rustix::fs::renameat_with(CWD, &one, CWD, &other, swap).unwrap();
            }
        });
        for _ in 0..2000 {
            if let Ok(text) = read(&tree, "sub/more") {
                assert_eq!(text, "inside");
            }
            drop(write(&tree, "sub/written", "text"));
            if let Ok(TreeListing { entries, .. }) = tree.walk(Path::new(""), LIMITS, |_| true) {
                let mut archive = Vec::new();
                // Only the link's own target may end with that word.
                if pack(&tree, &entries, &mut archive).is_ok() {
                    let mut packed = tar::Archive::new(Cursor::new(archive));
                    for entry in packed.entries().unwrap() {
                        let mut content = String::new();
                        entry.unwrap().read_to_string(&mut content).unwrap();
                        assert_ne!(content, "secret");
                    }
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(fs::read_to_string(dir.path().join("secret/more")).unwrap(), "secret");
    assert!(!dir.path().join("secret/written").exists());
}
