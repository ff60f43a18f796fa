//! Compares every blob with its name. It changes nothing, so a daemon may be using the directory
//! meanwhile.

use camino::Utf8Path;
use ringback_proto::ids::BlobHash;

use crate::blobs::{fan_out_dirs, hashes_in, open_file};
use crate::error::{OpenBlobsError, ReadBlobError};
use crate::layout;
use crate::verified;

/// What was read so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// Blobs that were read.
    pub blobs: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// Those that are not what their names say, or cannot be read.
    pub damaged: Vec<BlobHash>,
}

/// Reads all blobs below `root`, and tells after each one how far it is. A directory that is not
/// there has none.
pub fn survey(root: &Utf8Path, mut so_far: impl FnMut(&Survey)) -> Result<Survey, OpenBlobsError> {
    let mut survey = Survey::default();
    if !root.exists() {
        return Ok(survey);
    }
    for dir in fan_out_dirs(root, None)? {
        let mut hashes = hashes_in(&dir)?;
        hashes.sort_unstable();
        for hash in hashes {
            let path = layout::blob(root, &hash);
            let checked = open_file(&path, hash).and_then(|mut file| {
                survey.bytes += file.metadata().map_or(0, |metadata| metadata.len());
                verified::check(&mut file, &path, hash)
            });
            match checked {
                Ok(()) => {}
                // Deleted while the others were read.
                Err(ReadBlobError::NotFound { .. }) => continue,
                Err(error) => {
                    tracing::warn!(%hash, %error, "a blob is damaged");
                    survey.damaged.push(hash);
                }
            }
            survey.blobs += 1;
            so_far(&survey);
        }
    }
    Ok(survey)
}
