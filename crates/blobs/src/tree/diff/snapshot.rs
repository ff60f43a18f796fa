//! An earlier state of a tree: an archive that [`pack`](crate::tree::pack) wrote.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use ringback_proto::ids::BlobHash;
use ringback_proto::request::{FileKind, FileState};

/// An earlier state of a tree. The content of its files is read when it is needed.
#[derive(Debug)]
pub struct Snapshot {
    file: File,
    /// Files and symlinks.
    pub(super) files: BTreeMap<PathBuf, SnapshotEntry>,
}

/// A file or symlink of a snapshot.
#[derive(Debug)]
pub(super) enum SnapshotEntry {
    File {
        executable: bool,
        size: u64,
        /// Offset of its content in the archive.
        offset: u64,
    },
    Symlink {
        target: PathBuf,
    },
}

impl Snapshot {
    /// Opens the archive at a path.
    ///
    /// # Errors
    /// When it does not exist, cannot be read, or is not an archive.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut files = BTreeMap::new();
        let mut archive = tar::Archive::new(BufReader::new(File::open(path)?));
        for entry in archive.entries_with_seek()? {
            let entry = entry?;
            let kind = entry.header().entry_type();
            let before = if kind.is_file() {
                let executable = entry.header().mode()? & 0o100 != 0;
                SnapshotEntry::File {
                    executable,
                    size: entry.size(),
                    offset: entry.raw_file_position(),
                }
            } else if kind.is_symlink() {
                SnapshotEntry::Symlink {
                    target: entry.link_name()?.unwrap_or_default().into_owned(),
                }
            } else {
                continue;
            };
            files.insert(entry.path()?.into_owned(), before);
        }
        Ok(Self { file: File::open(path)?, files })
    }

    /// Returns the content of a file, or the target of a symlink.
    pub(super) fn content(&self, before: &SnapshotEntry) -> io::Result<impl Read + use<'_>> {
        let (offset, size, text) = match before {
            SnapshotEntry::File { size, offset, .. } => (*offset, *size, Vec::new()),
            SnapshotEntry::Symlink { target } => {
                (0, 0, target.as_os_str().as_encoded_bytes().to_vec())
            }
        };
        (&self.file).seek(SeekFrom::Start(offset))?;
        Ok((&self.file).take(size).chain(io::Cursor::new(text)))
    }

    /// Returns the whole content of a file or symlink; empty if there was none.
    pub(super) fn content_of(&self, before: Option<&SnapshotEntry>) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if let Some(before) = before {
            self.content(before)?.read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    }

    /// Returns the state of a file or symlink, for an answer.
    pub(super) fn state(&self, before: &SnapshotEntry) -> io::Result<FileState> {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(self.content(before)?)?;
        let hash = BlobHash::from_bytes(*hasher.finalize().as_bytes());
        let size = hasher.count();
        Ok(match before {
            SnapshotEntry::File { executable, .. } => {
                FileState { kind: FileKind::File, size, executable: *executable, hash }
            }
            SnapshotEntry::Symlink { .. } => {
                FileState { kind: FileKind::Symlink, size, executable: false, hash }
            }
        })
    }
}
