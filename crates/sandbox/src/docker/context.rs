//! A directory as an archive, for a build. Nothing outside the directory gets into it, even if
//! files are swapped while it is read: every name is opened relative to its own directory, and no
//! link is followed.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fstat, openat, readlinkat, statat};
use tar::{Builder, EntryType, Header};

use crate::error::BuildError;

/// The most that an image may be built from: more than any source tree, less than a disk.
const BYTES_MAX: u64 = 1 << 30;
/// The most files and directories,
const ENTRIES_MAX: usize = 100_000;
/// and the deepest nesting: each open directory is an open file.
const DEPTH_MAX: usize = 64;

/// An archive in progress.
struct Packer {
    archive: Builder<File>,
    root: PathBuf,
    n_bytes: u64,
    n_entries: usize,
}

/// Writes the archive into an unnamed file, and rewinds it. Blocks.
pub(super) fn pack(dir: &Path, scratch_dir: &Path) -> Result<File, BuildError> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source: io::Error| BuildError::Read { path, source }
    };
    let file = tempfile::tempfile_in(scratch_dir).map_err(at(scratch_dir))?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = openat(CWD, dir, flags, Mode::empty()).map_err(|error| at(dir)(error.into()))?;
    let mut packer =
        Packer { archive: Builder::new(file), root: dir.to_owned(), n_bytes: 0, n_entries: 0 };
    packer.directory(&root, Path::new(""), 0)?;
    let mut file = packer.archive.into_inner().map_err(at(scratch_dir))?;
    file.rewind().map_err(at(scratch_dir))?;
    Ok(file)
}

impl Packer {
    fn directory(&mut self, dir: &OwnedFd, path: &Path, depth: usize) -> Result<(), BuildError> {
        if depth > DEPTH_MAX {
            return Err(self.too_large(format!("{DEPTH_MAX} levels of directories")));
        }
        let listed = Dir::read_from(dir).map_err(|error| self.unread(path, error.into()))?;
        for entry in listed {
            let entry = entry.map_err(|error| self.unread(path, error.into()))?;
            let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
            if name != "." && name != ".." {
                self.n_entries += 1;
                if self.n_entries > ENTRIES_MAX {
                    return Err(self.too_large(format!("{ENTRIES_MAX} files")));
                }
                self.entry(dir, &path.join(&name), Path::new(&name), depth)?;
            }
        }
        Ok(())
    }

    fn entry(
        &mut self,
        dir: &OwnedFd,
        path: &Path,
        name: &Path,
        depth: usize,
    ) -> Result<(), BuildError> {
        let failed = |error: rustix::io::Errno| self.unread(path, error.into());
        let seen = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        match FileType::from_raw_mode(seen.st_mode) {
            FileType::Symlink => {
                let target = readlinkat(dir, name, Vec::new()).map_err(failed)?;
                let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                let mut header = header(EntryType::Symlink, 0o777, 0);
                let added = self.archive.append_link(&mut header, path, target);
                added.map_err(|error| self.unread(path, error))
            }
            FileType::Directory | FileType::RegularFile => {
                // The entry may have been replaced meanwhile: it is examined again, and a pipe does
                // not block.
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let opened = openat(dir, name, flags, Mode::empty()).map_err(failed)?;
                self.opened(opened, path, depth)
            }
            // These do not belong in an image.
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Ok(()),
        }
    }

    fn opened(&mut self, opened: OwnedFd, path: &Path, depth: usize) -> Result<(), BuildError> {
        let found = fstat(&opened).map_err(|error| self.unread(path, error.into()))?;
        let mode = found.st_mode & 0o777;
        let added = match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => {
                let mut header = header(EntryType::Directory, mode, 0);
                self.archive
                    .append_data(&mut header, path, io::empty())
                    .map_err(|error| self.unread(path, error))?;
                return self.directory(&opened, path, depth + 1);
            }
            FileType::RegularFile => {
                let n_bytes = u64::try_from(found.st_size).unwrap_or_default();
                self.n_bytes = self.n_bytes.saturating_add(n_bytes);
                if self.n_bytes > BYTES_MAX {
                    return Err(self.too_large(format!("{} MiB", BYTES_MAX >> 20)));
                }
                let mut header = header(EntryType::Regular, mode, n_bytes);
                // A file that shrinks meanwhile is padded, so that the archive stays valid.
                let content = File::from(opened).chain(io::repeat(0)).take(n_bytes);
                self.archive.append_data(&mut header, path, content)
            }
            FileType::Symlink
            | FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Ok(()),
        };
        added.map_err(|error| self.unread(path, error))
    }

    fn unread(&self, path: &Path, source: io::Error) -> BuildError {
        BuildError::Read { path: self.root.join(path), source }
    }

    fn too_large(&self, limit: String) -> BuildError {
        BuildError::TooLarge { dir: self.root.clone(), limit }
    }
}

fn header(kind: EntryType, mode: u32, n_bytes: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(n_bytes);
    // Files in an image belong to root, so that the same content is built once.
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// Rule: an image is built from the directory alone; no link leads out of it.
    #[test]
    fn nothing_outside_of_the_directory_is_packed() {
        let dir = tempfile::tempdir().unwrap();
        let context = dir.path().join("context");
        fs::create_dir_all(context.join("sub")).unwrap();
        fs::write(dir.path().join("secret"), "SECRET").unwrap();
        fs::write(context.join("Dockerfile"), "FROM scratch\n").unwrap();
        fs::write(context.join("sub/file"), "text").unwrap();
        symlink("../secret", context.join("link")).unwrap();
        symlink("..", context.join("sub/up")).unwrap();
        rustix::fs::mknodat(CWD, context.join("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        let mut packed = tar::Archive::new(pack(&context, dir.path()).unwrap());
        let mut found = BTreeMap::new();
        for entry in packed.entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            let path = entry.path().unwrap().display().to_string();
            found.insert(path, (entry.header().entry_type(), text));
        }
        let names: Vec<_> = found.keys().map(String::as_str).collect();
        assert_eq!(names, ["Dockerfile", "link", "sub", "sub/file", "sub/up"]);
        assert_eq!(found["link"], (EntryType::Symlink, String::new()));
        assert_eq!(found["sub/file"].1, "text");
    }
}
