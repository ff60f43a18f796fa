//! The configuration of the broker.

use std::sync::Arc;

use camino::Utf8PathBuf;
use ringback_proto::value::Value;

use crate::containers::ContainerSettings;
use crate::garden::GardenProcess;
use crate::lines::LineSettings;
use crate::sessions::SessionSettings;
use crate::studio::StudioTools;

/// The daemon's configuration as tools may see it: secrets masked.
pub trait ConfigView: Send + Sync + std::fmt::Debug {
    /// Returns all of it, a section, or a key of a section; `None` if it does not exist.
    fn get(&self, section: Option<&str>, key: Option<&str>) -> Option<Value>;
}

/// The configuration of the broker.
#[derive(Debug, Clone)]
pub struct Config {
    /// The directory of everything that lasts.
    pub data_dir: Utf8PathBuf,
    /// Directories whose files callers may name.
    pub file_roots: Vec<Utf8PathBuf>,
    /// The daemon's version.
    pub version: String,
    /// The configuration as tools may see it.
    pub view: Arc<dyn ConfigView>,
    /// Calls that one principal may have in progress.
    pub calls_per_principal_max: usize,
    /// Jobs that run at the same time.
    pub jobs_running_max: usize,
    /// Jobs that run or wait.
    pub jobs_live_max: usize,
    /// Jobs of one principal that run or wait.
    pub jobs_per_principal_max: usize,
    /// Events that are kept for readers.
    pub events_kept_max: usize,
    /// Open uploads in pieces.
    pub uploads_open_max: usize,
    /// Bytes of one upload.
    pub upload_bytes_max: u64,
    /// The longest any call may take, in milliseconds.
    pub call_ms_max: u64,
    /// The settings of lines.
    pub lines: LineSettings,
    /// The music tools; [`NoStudio`](crate::studio::NoStudio) for a broker without them.
    pub studio: Arc<dyn StudioTools>,
    /// The garden process; [`NoGardenProcess`](crate::NoGardenProcess) for a broker that starts none.
    pub garden: Arc<dyn GardenProcess>,
    /// The settings of sessions.
    pub sessions: SessionSettings,
    /// The settings of containers.
    pub containers: ContainerSettings,
}
