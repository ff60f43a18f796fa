//! Compares every blob with its name. It changes nothing, so a daemon may use the directory at the
//! same time.

use camino::Utf8Path;
use ringback_proto::ids::BlobHash;

use crate::blobs::{fan_out_dirs, hashes_in, open_file};
use crate::error::{OpenBlobsError, ReadBlobError};
use crate::layout;
use crate::verified;

/// The progress of a survey.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// The number of blobs read.
    pub blobs: u64,
    /// The number of bytes read.
    pub bytes: u64,
    /// Blobs that do not match their names, or cannot be read.
    pub damaged: Vec<BlobHash>,
}

/// Reads all blobs below `root`, and reports its progress after each one. A missing directory has
/// no blobs.
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
                // Deleted in the meantime.
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
