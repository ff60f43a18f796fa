//! Protection of the shared disk: a writer that fills it is stopped before the others run out of
//! space. Writers are agents with their workspaces and homes, tool servers, containers, and
//! commands in their own sandboxes. Content that a session stores counts towards that session.

mod space;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use camino::Utf8PathBuf;
use ringback_agents::AgentHandle;
use ringback_blobs::tree::Usage;
use ringback_core::sessions::SessionPlace;
use ringback_proto::ids::{ProjectId, SessionId};
use ringback_proto::principal::Principal;
use ringback_proto::request::SessionEventInfo;
use ringback_proto::{Certainty, Error, ErrorKind, Result};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use self::space::{Disk, DiskLimits, DiskReserve, Inodes, Space};
use crate::kernel::Kernel;
use crate::sessions::{Conversations, event};
use crate::sync::lock;
use crate::workspaces::Workspaces;

/// How often the disk is checked while an agent runs: a fast disk takes a gigabyte in this time.
const PERIOD: Duration = Duration::from_millis(250);
/// The same while the disk is about to be full.
const PERIOD_URGENT: Duration = Duration::from_millis(25);
/// The disk is about to be full if it has room for this many drops like the last one: some hundred
/// milliseconds.
const FALLS_LEFT: u64 = 8;
/// Measuring takes at most about one part in this many of the time.
const MEASURE_SHARE: u32 = 4;
/// How often workspaces are measured while the disk is quiet.
const MEASURE_PERIOD: Duration = Duration::from_secs(5);
/// A drop by this much triggers a measurement immediately.
const FALL_BYTES: u64 = 16 << 20;
/// The same for files.
const FALL_INODES: u64 = 1000;
/// Directory entries counted per round; more are ignored.
const ENTRIES_MAX: u64 = 500_000;
/// A writer that grew by less in a round is not the cause of a shortage.
const GROWTH_BYTES: u64 = 1 << 20;
/// The same for files.
const GROWTH_INODES: u64 = 100;
/// Content below this size is stored without a disk check, which would take longer than storing.
const UNCHECKED_BYTES: u64 = 256 << 10;
/// Below this, the reserve is released without waiting.
const NOTHING_LEFT: u64 = 1 << 20;

/// All watched writers.
#[derive(Debug)]
pub(crate) struct DiskGuard {
    kernel: Arc<Kernel>,
    workspaces: Arc<Workspaces>,
    conversations: Arc<Conversations>,
    watched: Mutex<HashMap<u64, WatchedWriter>>,
    n_watched: AtomicU64,
    /// Bytes of content stored by live sessions.
    stored: Mutex<HashMap<SessionId, u64>>,
    bell: Notify,
}

/// A writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writer {
    /// The agent of a session.
    Agent(SessionId),
    /// A container, a tool server, or a command in its own sandbox.
    Box(ProjectId),
}

/// How to stop it.
#[derive(Debug, Clone)]
enum StopHandle {
    Agent(AgentHandle),
    Box(BoxEnd),
}

/// The stop signal for a sandbox that uses too much disk space, with the reason.
#[derive(Debug, Clone, Default)]
pub(crate) struct BoxEnd {
    /// Stops it.
    pub(crate) stop: CancellationToken,
    why: Arc<OnceLock<String>>,
}

impl BoxEnd {
    pub(crate) fn by(stop: CancellationToken) -> Self {
        Self { stop, why: Arc::default() }
    }

    /// Returns the reason, if it was stopped because of the disk.
    pub(crate) fn why(&self) -> Option<&str> {
        self.why.get().map(String::as_str)
    }
}

#[derive(Debug)]
struct WatchedWriter {
    writer: Writer,
    ender: StopHandle,
    dirs: Vec<Utf8PathBuf>,
    /// Usage of the directories at the last measurement.
    last: Usage,
    /// Content it had stored by then.
    last_stored: u64,
}

/// The directories of an agent, and their usage before it started.
#[derive(Debug)]
pub(crate) struct MeasuredDirs {
    dirs: Vec<Utf8PathBuf>,
    usage: Usage,
}

/// A writer that is watched until this is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    disk: Arc<DiskGuard>,
    id: u64,
}

/// The result of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Measurement {
    id: u64,
    /// Its usage.
    usage: Usage,
    /// Growth since the last measurement.
    growth: u64,
    growth_inodes: u64,
}

impl Drop for Watch {
    fn drop(&mut self) {
        lock(&self.disk.watched).remove(&self.id);
    }
}

impl DiskGuard {
    pub(crate) fn new(
        kernel: Arc<Kernel>,
        workspaces: Arc<Workspaces>,
        conversations: Arc<Conversations>,
    ) -> Self {
        Self {
            kernel,
            workspaces,
            conversations,
            watched: Mutex::default(),
            n_watched: AtomicU64::new(0),
            stored: Mutex::default(),
            bell: Notify::new(),
        }
    }

    /// Measures the directories of a session before its agent starts: its workspace, its home and
    /// the caches of its project.
    pub(crate) async fn measured_before(
        &self,
        place: SessionPlace,
        cache: Option<Utf8PathBuf>,
    ) -> MeasuredDirs {
        let mut dirs = vec![
            self.workspaces.workspace_path(place.workspace),
            self.workspaces.home_path(place.workspace),
        ];
        dirs.extend(cache);
        let usage = self.usage_of(dirs.clone()).await;
        MeasuredDirs { dirs, usage }
    }

    /// Watches a started agent.
    pub(crate) fn watch(
        self: &Arc<Self>,
        place: SessionPlace,
        handle: &AgentHandle,
        MeasuredDirs { dirs, usage: before }: MeasuredDirs,
    ) -> Watch {
        let (writer, ender) = (Writer::Agent(place.id), StopHandle::Agent(handle.clone()));
        let last_stored = self.stored_by(place.id);
        self.watch_these(WatchedWriter { writer, ender, dirs, last: before, last_stored })
    }

    /// Watches a sandbox that is about to start.
    pub(crate) async fn watch_box(
        self: &Arc<Self>,
        project: ProjectId,
        dir: Utf8PathBuf,
        end: BoxEnd,
    ) -> Watch {
        let last = self.usage_of(vec![dir.clone()]).await;
        let (writer, ender) = (Writer::Box(project), StopHandle::Box(end));
        self.watch_these(WatchedWriter { writer, ender, dirs: vec![dir], last, last_stored: 0 })
    }

    fn watch_these(self: &Arc<Self>, watched: WatchedWriter) -> Watch {
        let id = self.n_watched.fetch_add(1, Ordering::Relaxed);
        lock(&self.watched).insert(id, watched);
        self.bell.notify_one();
        Watch { disk: Arc::clone(self), id }
    }

    async fn usage_of(&self, dirs: Vec<Utf8PathBuf>) -> Usage {
        self.kernel.blocking(move || Ok(usage(&dirs))).await.unwrap_or_default()
    }

    /// Checks that there is room to start an agent.
    pub(crate) async fn check_disk(&self) -> Result<()> {
        let Some(space) = self.space().await else { return Ok(()) };
        let short = self.kernel.config.sessions.disk.shortage(space);
        let Some(short) = short else { return Ok(()) };
        let message = format!(
            "cannot start an agent: the disk of {} {short}; delete what is not needed, such as old \
             workspaces",
            self.kernel.config.data_dir
        );
        Err(Error::new(ErrorKind::Busy, message).with_certainty(Certainty::NotStarted))
    }

    /// Checks that content of this size can be stored, before storing it: against the free space,
    /// and for a session against its own limit.
    pub(crate) async fn check_room(&self, principal: &Principal, bytes: u64) -> Result<()> {
        self.check_account(principal, bytes)?;
        if bytes < UNCHECKED_BYTES { Ok(()) } else { self.check_free(bytes).await }
    }

    /// Checks content of this size against the limit of a session, if the principal is its key.
    pub(crate) fn check_account(&self, principal: &Principal, bytes: u64) -> Result<()> {
        let Some(max) = self.kernel.config.sessions.disk.workspace_bytes else { return Ok(()) };
        let Some(session) = principal.held_by.map(|held_by| held_by.session) else { return Ok(()) };
        let dirs = {
            let watched = lock(&self.watched);
            let own = watched.values().find(|it| it.writer == Writer::Agent(session));
            own.map_or(0, |own| own.last.bytes)
        };
        let used = dirs.saturating_add(self.stored_by(session)).saturating_add(bytes);
        if used <= max {
            return Ok(());
        }
        let message = format!(
            "the session would use {} for its workspace, its home and stored content, over its \
             limit of {} (`sandbox.workspace`)",
            space::shown(used),
            space::shown(max)
        );
        Err(Error::new(ErrorKind::TooLarge, message))
    }

    /// Checks that the disk has room for this much more.
    pub(crate) async fn check_free(&self, bytes: u64) -> Result<()> {
        let Some(space) = self.space().await else { return Ok(()) };
        let left = Space { free: space.free.saturating_sub(bytes), ..space };
        let Some(short) = self.kernel.config.sessions.disk.shortage(left) else { return Ok(()) };
        let message = format!("cannot store {}: then the disk {short}", space::shown(bytes));
        Err(Error::new(ErrorKind::Busy, message).with_certainty(Certainty::NotStarted))
    }

    /// Counts stored content towards the session whose key stored it.
    pub(crate) fn count_stored(&self, principal: &Principal, bytes: u64) {
        let Some(session) = principal.held_by.map(|held_by| held_by.session) else { return };
        let mut stored = lock(&self.stored);
        let stored = stored.entry(session).or_default();
        *stored = stored.saturating_add(bytes);
    }

    /// Drops the count of an ended session.
    pub(crate) fn forget_stored(&self, session: SessionId) {
        lock(&self.stored).remove(&session);
    }

    fn stored_by(&self, session: SessionId) -> u64 {
        lock(&self.stored).get(&session).copied().unwrap_or_default()
    }

    /// Returns how full the disk is; `None` if unknown.
    async fn space(&self) -> Option<Space> {
        let (disk, path) = (
            Arc::clone(&self.kernel.config.sessions.disk.disk),
            self.kernel.config.data_dir.clone(),
        );
        let looked =
            self.kernel.blocking(move || disk.space(&path).map_err(crate::failure::internal));
        match looked.await {
            Ok(space) => Some(space),
            Err(error) => {
                tracing::warn!(%error, "cannot read how full the disk is");
                None
            }
        }
    }

    /// Creates the reserve if it is missing and there is plenty of room for it.
    pub(crate) async fn take_reserve(self: &Arc<Self>) {
        let Some(space) = self.space().await else { return };
        let left = space.free.saturating_sub(self.kernel.reserve.bytes().saturating_mul(2));
        if self.kernel.config.sessions.disk.shortage(Space { free: left, ..space }).is_none() {
            let kernel = Arc::clone(&self.kernel);
            let taken = self.kernel.blocking(move || {
                kernel.reserve.take();
                Ok(())
            });
            drop(taken.await);
        }
    }

    /// Checks the disk while there are writers, until the broker stops.
    pub(crate) async fn guard_disk(self: Arc<Self>) {
        let mut round = Round::default();
        let mut period = PERIOD;
        loop {
            let is_idle = lock(&self.watched).is_empty();
            tokio::select! {
                biased;
                () = self.kernel.stopping.cancelled() => return,
                () = self.bell.notified(), if is_idle => {}
                () = tokio::time::sleep(period), if !is_idle => {
                    let began = Instant::now();
                    let is_urgent = self.look(&mut round).await;
                    let least = if is_urgent { PERIOD_URGENT } else { PERIOD };
                    period = least.max(began.elapsed() * MEASURE_SHARE);
                }
            }
        }
    }

    /// Checks the disk, and stops writers that fill it. Returns whether it is about to be full.
    async fn look(self: &Arc<Self>, round: &mut Round) -> bool {
        let limits = &self.kernel.config.sessions.disk;
        let Some(space) = self.space().await else { return false };
        let shortage = limits.shortage(space);
        let fall = round.fall(space);
        let is_falling = fall.bytes >= FALL_BYTES || fall.inodes >= FALL_INODES;
        if shortage.is_none() && !is_falling && !round.is_over() {
            return false;
        }
        let is_told = std::mem::replace(&mut round.is_told, shortage.is_some());
        round.last = Some((Instant::now(), space));
        let found = self.measure().await;
        if let Some(max) = limits.workspace_bytes {
            for over in found.iter().filter(|found| found.usage.bytes > max) {
                let why = format!(
                    "it uses {} on the disk, over its limit of {} (`sandbox.workspace`); delete \
                     files there before it continues, or raise the limit",
                    space::shown(over.usage.bytes),
                    space::shown(max)
                );
                self.end_writer(over.id, &why);
            }
        }
        if let Some(short) = shortage {
            let fastest = reason(&found, space, fall, limits);
            // A writer that was just stopped goes on until it is dead, and would take the reserve.
            let is_stopping = fastest.is_some();
            match fastest {
                Some(fastest) => {
                    let why = format!(
                        "the disk {short}, and it grew fastest, by {} and {} files; delete what is \
                         not needed before it continues",
                        space::shown(fastest.growth),
                        fastest.growth_inodes
                    );
                    self.end_writer(fastest.id, &why);
                }
                None if is_told => {}
                None => {
                    tracing::warn!(%short, "the disk runs short, but nothing here is the cause");
                }
            }
            if space.free < NOTHING_LEFT && !is_stopping {
                self.kernel.reserve.give_up();
            }
        }
        let keep = limits.keep_free.of(space.total);
        is_falling && space.free < keep.saturating_add(fall.bytes.saturating_mul(FALLS_LEFT))
    }

    /// Measures the usage and growth of all writers.
    async fn measure(&self) -> Vec<Measurement> {
        let places: Vec<_> = {
            let watched = lock(&self.watched);
            let place =
                |(id, watched): (&u64, &WatchedWriter)| (*id, watched.writer, watched.dirs.clone());
            watched.iter().map(place).collect()
        };
        let measured = self.kernel.blocking(move || {
            let each = |(id, writer, dirs): &(u64, Writer, Vec<_>)| (*id, *writer, usage(dirs));
            Ok(places.iter().map(each).collect::<Vec<_>>())
        });
        let Ok(measured) = measured.await else { return Vec::new() };
        let with_stored: Vec<_> = measured
            .into_iter()
            .map(|(id, writer, dirs)| match writer {
                Writer::Agent(session) => (id, dirs, self.stored_by(session)),
                Writer::Box(_) => (id, dirs, 0),
            })
            .collect();
        let mut watched = lock(&self.watched);
        let noted = with_stored.into_iter().filter_map(|(id, dirs, stored)| {
            let watched = watched.get_mut(&id)?;
            let last = std::mem::replace(&mut watched.last, dirs);
            let last_stored = std::mem::replace(&mut watched.last_stored, stored);
            let usage = Usage { bytes: dirs.bytes.saturating_add(stored), ..dirs };
            let growth = usage.bytes.saturating_sub(last.bytes.saturating_add(last_stored));
            let growth_inodes = usage.entries.saturating_sub(last.entries);
            Some(Measurement { id, usage, growth, growth_inodes })
        });
        noted.collect()
    }

    /// Stops a writer immediately: with a grace period it would go on writing.
    fn end_writer(&self, id: u64, why: &str) {
        let found =
            lock(&self.watched).get(&id).map(|watched| (watched.writer, watched.ender.clone()));
        let Some((writer, ender)) = found else { return };
        tracing::warn!(?writer, why, "stopping a writer to protect the disk");
        if let Writer::Agent(session) = writer {
            let text = Some(format!("agent stopped: {why}"));
            self.conversations.say(session, SessionEventInfo { text, ..event("error") });
        }
        match ender {
            StopHandle::Agent(handle) => handle.terminate(Duration::ZERO),
            StopHandle::Box(end) => {
                drop(end.why.set(why.to_owned()));
                end.stop.cancel();
            }
        }
    }
}

/// The last measurement, and how full the disk was then.
#[derive(Debug, Default)]
struct Round {
    last: Option<(Instant, Space)>,
    /// Whether the disk was short then.
    is_told: bool,
}

/// The drop in free space since the last measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct SpaceDrop {
    bytes: u64,
    inodes: u64,
}

impl Round {
    /// Returns the drop since the last measurement. Space freed meanwhile raises the baseline.
    fn fall(&mut self, space: Space) -> SpaceDrop {
        let Some((_, last)) = &mut self.last else { return SpaceDrop::default() };
        last.free = last.free.max(space.free);
        let inodes = match (&mut last.inodes, space.inodes) {
            (Some(last), Some(now)) => {
                last.free = last.free.max(now.free);
                last.free - now.free
            }
            (None, _) | (_, None) => 0,
        };
        SpaceDrop { bytes: last.free - space.free, inodes }
    }

    fn is_over(&self) -> bool {
        self.last.is_none_or(|(at, _)| at.elapsed() >= MEASURE_PERIOD)
    }
}

/// Returns the writer that causes a shortage, if one does. The less space is left, the less growth
/// it takes. If others used most of the lost space, no writer is stopped for it, unless one has
/// files that cannot be measured.
fn reason<'a>(
    found: &'a [Measurement],
    space: Space,
    fall: SpaceDrop,
    limits: &DiskLimits,
) -> Option<&'a Measurement> {
    type Growth = fn(&Measurement) -> u64;
    let is_bytes = space.free < limits.keep_free.of(space.total);
    let of: Growth = if is_bytes { |found| found.growth } else { |found| found.growth_inodes };
    let fallen = if is_bytes { fall.bytes } else { fall.inodes };
    let is_last_moment = if is_bytes {
        space.free < limits.keep_free.of(space.total) / 4
    } else {
        let inodes = space.inodes.unwrap_or_default();
        inodes.free < limits.keep_free_inodes.of_inodes(inodes.total) / 4
    };
    let least = match (is_last_moment, is_bytes) {
        (true, _) => 1,
        (false, true) => GROWTH_BYTES,
        (false, false) => GROWTH_INODES,
    };
    let explained = found.iter().map(of).fold(0, u64::saturating_add);
    if explained < fallen / 2 {
        let hides = |found: &&Measurement| found.usage.is_partial;
        return found.iter().filter(hides).max_by_key(|found| of(found));
    }
    found.iter().filter(|found| of(found) >= least).max_by_key(|found| of(found))
}

fn usage(dirs: &[Utf8PathBuf]) -> Usage {
    let each = dirs.iter().map(|dir| Usage::of(dir.as_std_path(), ENTRIES_MAX));
    each.fold(Usage::default(), Usage::and)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn space(free: u64) -> Space {
        Space { free, total: 20 * GIB, inodes: None }
    }

    fn found(id: u64, growth: u64) -> Measurement {
        let usage = Usage { bytes: GIB, entries: 1, is_partial: false };
        Measurement { id, usage, growth, growth_inodes: growth / 4096 }
    }

    /// Rule: a writer with little growth is not stopped for others, until nothing else helps.
    #[test]
    fn the_one_that_grows_fastest_is_the_reason_if_one_grows() {
        let limits = DiskLimits::default();
        let reason = |found, free| reason(found, space(free), SpaceDrop::default(), &limits);
        let all = [found(1, 10), found(2, 50 << 20), found(3, 2 << 20)];
        assert_eq!(reason(&all, GIB / 2), Some(&all[1]));
        assert_eq!(reason(&all[..1], GIB / 2), None);
        assert_eq!(reason(&all[..1], GIB / 5), Some(&all[0]));
        assert_eq!(reason(&[found(4, 0)], 0), None, "a writer that does not grow is not the cause");
    }

    /// Rule: no writer is stopped for space that others used, however short it is, except one whose
    /// usage cannot be measured.
    #[test]
    fn who_grew_little_is_not_ended_for_what_others_took() {
        let limits = DiskLimits::default();
        let fall = SpaceDrop { bytes: 2 * GIB, inodes: 0 };
        let mut all = [found(1, 2 << 20), found(2, 10)];
        assert_eq!(reason(&all, space(1000), fall, &limits), None);
        all[1].usage.is_partial = true;
        assert_eq!(reason(&all, space(1000), fall, &limits), Some(&all[1]));
        let all = [found(1, 2 << 20), found(2, 2 * GIB)];
        assert_eq!(reason(&all, space(1000), fall, &limits), Some(&all[1]));
    }

    /// Rule: files count like bytes.
    #[test]
    fn who_makes_most_files_is_the_reason_where_these_run_short() {
        let limits = DiskLimits::default();
        let inodes = Some(Inodes { free: 100, total: 8000 });
        let short = Space { inodes, ..space(10 * GIB) };
        let mut all = [found(1, GIB), found(2, 0)];
        all[1].growth_inodes = 8_000_000;
        assert_eq!(
            reason(&all, short, SpaceDrop { bytes: 0, inodes: 7000 }, &limits),
            Some(&all[1])
        );
    }

    /// Rule: space freed in between does not count as a drop.
    #[test]
    fn a_fall_is_counted_from_the_most_there_was() {
        let mut round = Round::default();
        assert_eq!(
            round.fall(space(GIB)),
            SpaceDrop::default(),
            "nothing is known before the first measurement"
        );
        round.last = Some((Instant::now(), space(GIB)));
        assert_eq!(round.fall(space(2 * GIB)), SpaceDrop::default());
        assert_eq!(round.fall(space(GIB)), SpaceDrop { bytes: GIB, inodes: 0 });
    }

    /// Rule: usage is counted as on the disk: no links are followed, each file counts once, at any
    /// depth.
    #[test]
    fn a_directory_is_measured_as_the_disk_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let outside = tempfile::NamedTempFile::new_in(dir.path().parent().unwrap()).unwrap();
        std::fs::write(outside.path(), vec![1; 1 << 20]).unwrap();
        let root = dir.path().join("root");
        let deep = root.join("a/".repeat(200));
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::write(deep.join("file"), vec![1; 3 << 20]).unwrap();
        std::fs::hard_link(deep.join("file"), root.join("again")).unwrap();
        std::os::unix::fs::symlink(outside.path(), root.join("link")).unwrap();
        std::os::unix::fs::symlink(dir.path(), root.join("up")).unwrap();
        std::fs::File::create(root.join("sparse")).unwrap().set_len(1 << 40).unwrap();
        let measured = usage(&[Utf8PathBuf::from_path_buf(root).unwrap()]);
        assert!((3 << 20..5 << 20).contains(&measured.bytes), "{measured:?}");
        assert_eq!((measured.entries, measured.is_partial), (205, false));
        assert_eq!(usage(&["/nowhere/at/all".into()]), Usage::default());
    }
}
