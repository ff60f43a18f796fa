//! Converts a tree to a tar archive, and back. The same tree always gives the same bytes: no
//! owners, no times.

use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use tar::{Archive, Builder, EntryType, Header};

use super::{Entry, EntryKind, Skipped, Tree, TreeError, TreeLimits, inner};

/// The result of packing or unpacking an archive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArchiveSummary {
    /// Files and links.
    pub files: u64,
    /// Bytes of files.
    pub bytes: u64,
    /// Entries that could not be read.
    pub skipped: Vec<Skipped>,
}

/// Writes these entries of a tree as an archive. Entries that are not a file, directory or link are
/// left out, and so are those that have disappeared; those that cannot be read are reported.
///
/// # Errors
/// When the archive cannot be written, or reading a file fails half-way.
pub fn pack(tree: &Tree, entries: &[Entry], out: impl Write) -> Result<ArchiveSummary, TreeError> {
    pack_all(&[(tree, entries)], out)
}

/// Writes entries of several trees as one archive, like [`pack`].
///
/// # Errors
/// As [`pack`].
pub fn pack_all(
    sources: &[(&Tree, &[Entry])],
    out: impl Write,
) -> Result<ArchiveSummary, TreeError> {
    let mut builder = Builder::new(BufWriter::new(out));
    let mut packed = ArchiveSummary::default();
    let all = sources.iter().flat_map(|(tree, entries)| entries.iter().map(move |it| (*tree, it)));
    for (tree, entry) in all {
        match add(tree, entry, &mut builder) {
            Ok(Some(n_bytes)) => {
                packed.files += 1;
                packed.bytes += n_bytes;
            }
            Ok(None) => {}
            Err(error) if error.is_change() => {}
            Err(error) => {
                let why = error.skip_reason().ok_or(error)?;
                packed.skipped.push(Skipped { path: entry.path.clone(), why });
            }
        }
    }
    let written = builder.into_inner().and_then(|mut out| out.flush());
    written.map_err(archive("write"))?;
    Ok(packed)
}

/// Adds an entry; returns the size of a file or a link.
fn add<W: Write>(
    tree: &Tree,
    entry: &Entry,
    builder: &mut Builder<W>,
) -> Result<Option<u64>, TreeError> {
    let mut header = Header::new_gnu();
    header.set_mode(0o644);
    match entry.kind {
        EntryKind::Other => Ok(None),
        EntryKind::Directory => {
            header.set_entry_type(EntryType::Directory);
            header.set_mode(0o755);
            header.set_size(0);
            let added = builder.append_data(&mut header, &entry.path, io::empty());
            added.map_err(archive("write")).map(|()| None)
        }
        EntryKind::Symlink => {
            let target = tree.read_link(&entry.path)?;
            header.set_entry_type(EntryType::Symlink);
            header.set_size(0);
            // Literally: the library would normalize it to another text.
            let added = match header.set_link_name_literal(target.as_os_str().as_bytes()) {
                Ok(()) => builder.append_data(&mut header, &entry.path, io::empty()),
                Err(_) => builder.append_link(&mut header, &entry.path, target),
            };
            added.map_err(archive("write")).map(|()| Some(0))
        }
        EntryKind::File => {
            let file = tree.open_file(&entry.path)?;
            let found = file.metadata().map_err(TreeError::on("inspect", &entry.path))?.len();
            // What was appended since it was counted is beyond the limit.
            let size = found.min(entry.size);
            if entry.executable {
                header.set_mode(0o755);
            }
            header.set_size(size);
            // The length is already written: a file that has shrunk is padded, one that has grown
            // is cut.
            let content = BufReader::new(file).chain(io::repeat(0)).take(size);
            let added = builder.append_data(&mut header, &entry.path, content);
            added.map_err(archive("write")).map(|()| Some(size))
        }
    }
}

/// Writes the content of an archive into a tree, below a directory. Everything is checked before
/// the first file is written.
///
/// # Errors
/// Past a limit, for names that lead outside, and for entries that are not a file, directory or
/// link; as [`Tree::write`].
pub fn unpack(
    tree: &Tree,
    below: &Path,
    mut content: impl Read + Seek,
    limits: TreeLimits,
) -> Result<ArchiveSummary, TreeError> {
    let below = inner(below)?;
    each(&mut content, limits, |_| Ok(()))?;
    content.rewind().map_err(archive("read"))?;
    each(&mut content, limits, |found| {
        let path = below.join(&found.path);
        match &found.what {
            ArchiveEntryKind::Directory => tree.make_dir(&path),
            ArchiveEntryKind::Symlink(target) => tree.link(&path, target),
            ArchiveEntryKind::File { executable } => {
                tree.write(&path, &mut *found.content, *executable).map(drop)
            }
        }
    })
}

/// An entry of an archive.
struct ArchiveEntry<'a> {
    path: PathBuf,
    what: ArchiveEntryKind,
    content: &'a mut dyn Read,
}

enum ArchiveEntryKind {
    File { executable: bool },
    Directory,
    Symlink(PathBuf),
}

fn each(
    content: &mut impl Read,
    limits: TreeLimits,
    mut take: impl FnMut(&mut ArchiveEntry<'_>) -> Result<(), TreeError>,
) -> Result<ArchiveSummary, TreeError> {
    let mut archived = Archive::new(BufReader::new(content));
    let (mut packed, mut n_entries) = (ArchiveSummary::default(), 0_usize);
    for entry in archived.entries().map_err(archive("read"))? {
        let mut entry = entry.map_err(archive("read"))?;
        let path = inner(&entry.path().map_err(archive("read"))?)?;
        n_entries += 1;
        if n_entries > limits.entries_max {
            return Err(TreeError::TooManyEntries { max: limits.entries_max });
        }
        let kind = entry.header().entry_type();
        let what = if kind.is_dir() {
            ArchiveEntryKind::Directory
        } else if kind.is_symlink() {
            let target = entry.link_name().map_err(archive("read"))?;
            let target = target.ok_or_else(|| TreeError::Unsupported { path: path.clone() })?;
            ArchiveEntryKind::Symlink(target.into_owned())
        } else if kind.is_file() {
            let mode = entry.header().mode().map_err(archive("read"))?;
            ArchiveEntryKind::File { executable: mode & 0o100 != 0 }
        } else if kind.is_pax_global_extensions() {
            continue;
        } else {
            return Err(TreeError::Unsupported { path });
        };
        if !matches!(what, ArchiveEntryKind::Directory) {
            packed.files += 1;
            packed.bytes = packed.bytes.saturating_add(entry.size());
        }
        if packed.bytes > limits.bytes_max {
            return Err(TreeError::TooManyBytes { max: limits.bytes_max });
        }
        // The top level of the archive itself.
        if path.as_os_str().is_empty() {
            continue;
        }
        take(&mut ArchiveEntry { path, what, content: &mut entry })?;
    }
    Ok(packed)
}

fn archive(action: &'static str) -> impl FnOnce(io::Error) -> TreeError {
    move |source| TreeError::Archive { action, source }
}
