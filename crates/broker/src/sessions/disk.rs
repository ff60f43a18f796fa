//! A full disk hurts nobody but who fills it: agents whose workspace and home have more than they may
//! are ended, and when the disk runs short, the one that grows fastest.
//!
//! One task looks after all of them, and sleeps while no agent runs. What it cannot look into it does
//! not count; what is kept free holds all the same.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use ringback_agents::AgentHandle;
use ringback_core::sessions::Where;
use ringback_proto::ids::SessionId;
use ringback_proto::request::SessionEventInfo;
use ringback_proto::{Certainty, Error, ErrorKind, Result};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat};
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior};

use super::say::event;
use crate::shared::Shared;
use crate::sync::lock;

/// How often the disk is looked at while an agent runs: a fast disk takes a gigabyte meanwhile.
const PERIOD: Duration = Duration::from_millis(250);
/// How often workspaces are measured where nothing seems to happen.
const MEASURE_PERIOD: Duration = Duration::from_secs(5);
/// They are measured at once when the disk has so much less.
const FALL_BYTES: u64 = 16 << 20;
/// Entries of one workspace that are looked at in one round: what is beyond is not counted.
const ENTRIES_MAX: usize = 500_000;
/// Directories deeper than this are not looked into: each takes two open files.
const DEPTH_MAX: usize = 64;
/// When the disk runs short, a workspace that grew by less in a round is not the reason.
const GROWTH_BYTES: u64 = 1 << 20;

/// How much room agents have on the disk.
#[derive(Debug, Clone)]
pub struct DiskLimits {
    /// What a workspace with its home may have; no limit if absent.
    pub workspace_bytes: Option<u64>,
    /// What of the disk is kept free.
    pub keep_free: KeepFree,
    /// Who says how full the disk is.
    pub disk: Arc<dyn Disk>,
}

/// What of the disk is kept free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepFree {
    /// A gigabyte, or a twentieth of the disk if that is less.
    Usual,
    /// So many bytes.
    Bytes(u64),
}

/// A disk.
pub trait Disk: Send + Sync + fmt::Debug {
    /// How full the disk is that a directory is on. May block.
    ///
    /// # Errors
    /// When it does not say.
    fn space(&self, path: &Utf8Path) -> io::Result<Space>;
}

/// How full a disk is, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// What may still be written.
    pub free: u64,
    /// All of it.
    pub total: u64,
}

/// The disk that the system has.
#[derive(Debug)]
struct SystemDisk;

/// The agents that are looked after.
#[derive(Debug, Default)]
pub(super) struct Guard {
    watched: Mutex<HashMap<SessionId, Watched>>,
    bell: Notify,
}

#[derive(Debug)]
struct Watched {
    handle: AgentHandle,
    place: Place,
    /// What it had when it was last measured.
    last: Option<u64>,
}

/// What belongs to an agent on the disk.
#[derive(Debug, Clone)]
struct Place {
    workspace: Utf8PathBuf,
    home: Utf8PathBuf,
}

/// An agent that is looked after until this is dropped.
#[derive(Debug)]
pub(super) struct Watch {
    shared: Arc<Shared>,
    session: SessionId,
}

/// What a round found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Measured {
    session: SessionId,
    bytes: u64,
    growth: u64,
}

impl Default for DiskLimits {
    fn default() -> Self {
        Self {
            // Sources, what is built of them, and what package managers keep.
            workspace_bytes: Some(10 << 30),
            keep_free: KeepFree::Usual,
            disk: Arc::new(SystemDisk),
        }
    }
}

impl KeepFree {
    const fn of(self, space: Space) -> u64 {
        match self {
            Self::Usual if space.total / 20 < 1 << 30 => space.total / 20,
            Self::Usual => 1 << 30,
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl Disk for SystemDisk {
    fn space(&self, path: &Utf8Path) -> io::Result<Space> {
        let found = rustix::fs::statvfs(path.as_std_path())?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        Ok(Space { free: bytes(found.f_bavail), total: bytes(found.f_blocks) })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        lock(&self.shared.sessions.guard.watched).remove(&self.session);
    }
}

impl Shared {
    /// Looks after an agent that was started.
    pub(super) fn watch(self: &Arc<Self>, place: Where, handle: &AgentHandle) -> Watch {
        let on_disk = Place {
            workspace: self.workspace_path(place.workspace),
            home: self.home_path(place.workspace),
        };
        let watched = Watched { handle: handle.clone(), place: on_disk, last: None };
        lock(&self.sessions.guard.watched).insert(place.id, watched);
        self.sessions.guard.bell.notify_one();
        Watch { shared: Arc::clone(self), session: place.id }
    }

    /// Whether there is room to start an agent.
    pub(crate) async fn check_disk(&self) -> Result<()> {
        let Some((space, keep)) = self.space().await else { return Ok(()) };
        if space.free >= keep {
            return Ok(());
        }
        let message = format!(
            "no agent is started: the disk of {} has {} left, and {} are kept free \
             (`sandbox.keepFree`); delete what is not needed, such as old workspaces",
            self.config.data_dir,
            shown(space.free),
            shown(keep)
        );
        Err(Error::new(ErrorKind::Busy, message).with_certainty(Certainty::NotStarted))
    }

    /// How full the disk is, and what is kept free of it; nothing if that cannot be told.
    async fn space(&self) -> Option<(Space, u64)> {
        let limits = self.sessions.settings.disk.clone();
        let (disk, path) = (limits.disk, self.config.data_dir.clone());
        let looked = self.blocking(move || disk.space(&path).map_err(crate::failure::internal));
        match looked.await {
            Ok(space) => Some((space, limits.keep_free.of(space))),
            Err(error) => {
                tracing::warn!(%error, "nobody knows how full the disk is");
                None
            }
        }
    }

    /// Looks after the disk while agents run, until the broker stops.
    pub(crate) async fn guard_disk(self: Arc<Self>) {
        let mut period = tokio::time::interval(PERIOD);
        period.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut round = Round { at: Instant::now(), free: u64::MAX };
        loop {
            let is_idle = lock(&self.sessions.guard.watched).is_empty();
            tokio::select! {
                biased;
                () = self.stopping.cancelled() => return,
                () = self.sessions.guard.bell.notified(), if is_idle => {}
                _ = period.tick(), if !is_idle => self.look(&mut round).await,
            }
        }
    }

    async fn look(self: &Arc<Self>, round: &mut Round) {
        let Some((space, keep)) = self.space().await else { return };
        let is_short = space.free < keep;
        let fell = round.free.saturating_sub(space.free) >= FALL_BYTES;
        round.free = round.free.max(space.free);
        if !is_short && !fell && round.at.elapsed() < MEASURE_PERIOD {
            return;
        }
        *round = Round { at: Instant::now(), free: space.free };
        let found = self.measure().await;
        if let Some(max) = self.sessions.settings.disk.workspace_bytes {
            for over in found.iter().filter(|found| found.bytes > max) {
                let why = format!(
                    "its workspace and home have {}, more than the {} that they may \
                     (`sandbox.workspace`); delete files there before the next message, or raise \
                     the limit",
                    shown(over.bytes),
                    shown(max)
                );
                self.end_agent(over.session, &why);
            }
        }
        if is_short && let Some(fastest) = fastest(&found, space.free, keep) {
            let why = format!(
                "the disk has {} left, {} are kept free (`sandbox.keepFree`), and its workspace \
                 grew fastest, by {}; delete what is not needed before the next message",
                shown(space.free),
                shown(keep),
                shown(fastest.growth)
            );
            self.end_agent(fastest.session, &why);
        }
    }

    /// What every agent has on the disk, and how much more than last time.
    async fn measure(&self) -> Vec<Measured> {
        let places: Vec<_> = {
            let watched = lock(&self.sessions.guard.watched);
            watched.iter().map(|(id, watched)| (*id, watched.place.clone())).collect()
        };
        let measured = self.blocking(move || {
            let sum = |place: &Place| used(&place.workspace).saturating_add(used(&place.home));
            Ok(places.iter().map(|(id, place)| (*id, sum(place))).collect::<Vec<_>>())
        });
        let Ok(measured) = measured.await else { return Vec::new() };
        let mut watched = lock(&self.sessions.guard.watched);
        let noted = measured.into_iter().filter_map(|(session, bytes)| {
            // Of one that has just begun nobody knows how fast it grows.
            let last = watched.get_mut(&session)?.last.replace(bytes).unwrap_or(bytes);
            Some(Measured { session, bytes, growth: bytes.saturating_sub(last) })
        });
        noted.collect()
    }

    /// Ends an agent at once: one that is given time has it for writing on.
    fn end_agent(&self, session: SessionId, why: &str) {
        let handle = lock(&self.sessions.guard.watched).get(&session).map(|it| it.handle.clone());
        let Some(handle) = handle else { return };
        tracing::warn!(%session, why, "an agent is ended for the disk's sake");
        let text = Some(format!("the agent is ended: {why}"));
        self.say(session, SessionEventInfo { text, ..event("error") });
        handle.terminate(Duration::ZERO);
    }
}

/// The last time that workspaces were measured, and how much was free then or after.
#[derive(Debug)]
struct Round {
    at: Instant,
    free: u64,
}

/// The agent that is the reason why the disk runs short, if one is. The shorter it is, the less it
/// takes: at a quarter of what is kept free, any growth.
fn fastest(found: &[Measured], free: u64, keep: u64) -> Option<&Measured> {
    let least = if free < keep / 4 { 1 } else { GROWTH_BYTES };
    found.iter().filter(|found| found.growth >= least).max_by_key(|found| found.growth)
}

/// What a directory takes of the disk, as far as it can be looked into. Follows no link, and counts a
/// file that has several names once.
fn used(root: &Utf8Path) -> u64 {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut count = Count { n_left: ENTRIES_MAX, several: HashSet::new() };
    let root = openat(CWD, root.as_std_path(), flags, Mode::empty());
    root.map_or(0, |root| count.below(&root, DEPTH_MAX))
}

struct Count {
    n_left: usize,
    several: HashSet<u64>,
}

impl Count {
    fn below(&mut self, dir: &OwnedFd, depth_left: usize) -> u64 {
        let Ok(entries) = Dir::read_from(dir) else { return 0 };
        let mut bytes: u64 = 0;
        for entry in entries.flatten() {
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            let Some(left) = self.n_left.checked_sub(1) else { break };
            self.n_left = left;
            bytes = bytes.saturating_add(self.entry(dir, OsStr::from_bytes(name), depth_left));
        }
        bytes
    }

    fn entry(&mut self, dir: &OwnedFd, name: &OsStr, depth_left: usize) -> u64 {
        let Ok(found) = statat(dir.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW) else { return 0 };
        let is_dir = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
        if !is_dir && found.st_nlink > 1 && !self.several.insert(found.st_ino) {
            return 0;
        }
        // The system counts in halves of a kilobyte, whatever the size of a block is.
        let own = u64::try_from(found.st_blocks).unwrap_or(0).saturating_mul(512);
        let Some(depth_left) = depth_left.checked_sub(1).filter(|_| is_dir) else { return own };
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let below = openat(dir, name, flags, Mode::empty());
        own.saturating_add(below.map_or(0, |below| self.below(&below, depth_left)))
    }
}

/// Bytes for people.
fn shown(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = UNITS.into_iter().find(|(size, _)| bytes >= *size);
    match unit {
        Some((size, name)) => {
            let tenths = bytes.saturating_mul(10) / size;
            format!("{}.{} {name}", tenths / 10, tenths % 10)
        }
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_gigabyte_is_kept_free_or_a_twentieth_if_that_is_less() {
        let space = |total| Space { free: 0, total };
        assert_eq!(KeepFree::Usual.of(space(100 * GIB)), GIB);
        assert_eq!(KeepFree::Usual.of(space(GIB)), GIB / 20);
        assert_eq!(KeepFree::Bytes(7).of(space(GIB)), 7);
    }

    /// Rule: whoever writes little is not ended for somebody else, until nothing else helps.
    #[test]
    fn the_one_that_grows_fastest_is_the_reason_if_one_grows() {
        let found = |n: u8, growth| Measured {
            session: SessionId::from_random([n; 16]),
            bytes: GIB,
            growth,
        };
        let all = [found(1, 10), found(2, 50 << 20), found(3, 2 << 20)];
        assert_eq!(fastest(&all, GIB / 2, GIB), Some(&all[1]));
        assert_eq!(fastest(&all[..1], GIB / 2, GIB), None);
        assert_eq!(fastest(&all[..1], GIB / 5, GIB), Some(&all[0]));
        assert_eq!(fastest(&[found(4, 0)], 0, GIB), None, "what does not grow is not the reason");
    }

    /// Rule: what an agent has is counted as the disk has it: through no link, and each file once.
    #[test]
    fn a_directory_is_measured_as_the_disk_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let outside = tempfile::NamedTempFile::new_in(dir.path().parent().unwrap()).unwrap();
        outside.as_file().set_len(0).unwrap();
        std::fs::write(outside.path(), vec![1; 1 << 20]).unwrap();
        let root = dir.path().join("root");
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/b/file"), vec![1; 3 << 20]).unwrap();
        std::fs::hard_link(root.join("a/b/file"), root.join("again")).unwrap();
        std::os::unix::fs::symlink(outside.path(), root.join("link")).unwrap();
        std::os::unix::fs::symlink(dir.path(), root.join("up")).unwrap();
        std::fs::File::create(root.join("sparse")).unwrap().set_len(1 << 40).unwrap();
        let measured = used(Utf8Path::from_path(&root).unwrap());
        assert!((3 << 20..4 << 20).contains(&measured), "{measured}");
        assert_eq!(used("/nowhere/at/all".into()), 0);
        assert_eq!((shown(1536 << 20), shown(900)), ("1.5 GiB".to_owned(), "900 bytes".to_owned()));
    }
}
