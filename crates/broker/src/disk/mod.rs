//! The room on the disk, which all share: whoever fills it is ended, before the others have none. Looked
//! after are agents with their workspaces and homes, containers, and commands in sandboxes of their own;
//! what a session stores as content counts as its own.

mod space;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use camino::Utf8PathBuf;
use ringback_agents::AgentHandle;
use ringback_blobs::tree::Usage;
use ringback_core::sessions::Where;
use ringback_proto::ids::{ProjectId, SessionId};
use ringback_proto::principal::Principal;
use ringback_proto::request::SessionEventInfo;
use ringback_proto::{Certainty, Error, ErrorKind, Result};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use self::space::{Disk, DiskLimits, Inodes, KeepFree, Space};
use crate::kernel::Kernel;
use crate::sessions::{Conversations, event};
use crate::sync::lock;
use crate::workspaces::Workspaces;

/// How often the disk is looked at while an agent runs: a fast disk takes a gigabyte meanwhile.
const PERIOD: Duration = Duration::from_millis(250);
/// How often while it is about to be full.
const PERIOD_URGENT: Duration = Duration::from_millis(25);
/// It is about to be full if so many falls like the last one are left: some hundred milliseconds.
const FALLS_LEFT: u64 = 8;
/// Of the time, measuring takes one part in so many.
const MEASURE_SHARE: u32 = 4;
/// How often workspaces are measured where nothing seems to happen.
const MEASURE_PERIOD: Duration = Duration::from_secs(5);
/// They are measured at once when the disk has so much less.
const FALL_BYTES: u64 = 16 << 20;
/// Or so many files fewer.
const FALL_INODES: u64 = 1000;
/// Entries of one directory that are looked at in one round: what is beyond is not counted.
const ENTRIES_MAX: u64 = 500_000;
/// When the disk runs short, one that grew by less in a round is not the reason.
const GROWTH_BYTES: u64 = 1 << 20;
/// The same for files.
const GROWTH_INODES: u64 = 100;
/// Content that is stored without looking at the disk first, which would take longer than storing it.
const UNCHECKED_BYTES: u64 = 256 << 10;
/// With less than this left there is no time to wait for anybody.
const NOTHING_LEFT: u64 = 1 << 20;

/// All that write on the disk and are looked after.
#[derive(Debug)]
pub(crate) struct DiskGuard {
    kernel: Arc<Kernel>,
    workspaces: Arc<Workspaces>,
    conversations: Arc<Conversations>,
    watched: Mutex<HashMap<u64, Watched>>,
    n_watched: AtomicU64,
    /// Bytes of content that live sessions have stored.
    stored: Mutex<HashMap<SessionId, u64>>,
    bell: Notify,
}

/// Who writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writer {
    /// The agent of a session.
    Agent(SessionId),
    /// A container, or a command in a box of its own.
    Box(ProjectId),
}

/// How it is ended.
#[derive(Debug, Clone)]
enum Ender {
    Agent(AgentHandle),
    Box(BoxEnd),
}

/// How a container or a command is ended for the disk's sake, and learns why.
#[derive(Debug, Clone, Default)]
pub(crate) struct BoxEnd {
    /// Ends it.
    pub(crate) stop: CancellationToken,
    why: Arc<OnceLock<String>>,
}

impl BoxEnd {
    pub(crate) fn by(stop: CancellationToken) -> Self {
        Self { stop, why: Arc::default() }
    }

    /// Why it was ended, if it was for the disk's sake.
    pub(crate) fn why(&self) -> Option<&str> {
        self.why.get().map(String::as_str)
    }
}

#[derive(Debug)]
struct Watched {
    writer: Writer,
    ender: Ender,
    dirs: Vec<Utf8PathBuf>,
    /// What was in them when they were last measured.
    last: Usage,
    /// What it had stored as content by then.
    last_stored: u64,
}

/// A writer that is looked after until this is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    disk: Arc<DiskGuard>,
    id: u64,
}

/// What a round found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Measured {
    id: u64,
    /// What it has.
    usage: Usage,
    /// By how much that grew.
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

    /// What the directories of a session have before its agent starts.
    pub(crate) async fn measured_before(&self, place: Where) -> Usage {
        let (workspace, home) = (
            self.workspaces.workspace_path(place.workspace),
            self.workspaces.home_path(place.workspace),
        );
        self.usage_of(vec![workspace, home]).await
    }

    /// Looks after an agent that was started.
    pub(crate) fn watch(
        self: &Arc<Self>,
        place: Where,
        handle: &AgentHandle,
        before: Usage,
    ) -> Watch {
        let dirs = vec![
            self.workspaces.workspace_path(place.workspace),
            self.workspaces.home_path(place.workspace),
        ];
        let (writer, ender) = (Writer::Agent(place.id), Ender::Agent(handle.clone()));
        let last_stored = self.stored_by(place.id);
        self.watch_these(Watched { writer, ender, dirs, last: before, last_stored })
    }

    /// Looks after a container or a command that is about to be started.
    pub(crate) async fn watch_box(
        self: &Arc<Self>,
        project: ProjectId,
        dir: Utf8PathBuf,
        end: BoxEnd,
    ) -> Watch {
        let last = self.usage_of(vec![dir.clone()]).await;
        let (writer, ender) = (Writer::Box(project), Ender::Box(end));
        self.watch_these(Watched { writer, ender, dirs: vec![dir], last, last_stored: 0 })
    }

    fn watch_these(self: &Arc<Self>, watched: Watched) -> Watch {
        let id = self.n_watched.fetch_add(1, Ordering::Relaxed);
        lock(&self.watched).insert(id, watched);
        self.bell.notify_one();
        Watch { disk: Arc::clone(self), id }
    }

    async fn usage_of(&self, dirs: Vec<Utf8PathBuf>) -> Usage {
        self.kernel.blocking(move || Ok(usage(&dirs))).await.unwrap_or_default()
    }

    /// Whether there is room to start an agent.
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

    /// Whether so much content can be stored, before any of it is: by anybody as far as the disk goes,
    /// and by a session as far as its own account goes.
    pub(crate) async fn check_room(&self, principal: &Principal, bytes: u64) -> Result<()> {
        self.check_account(principal, bytes)?;
        if bytes < UNCHECKED_BYTES { Ok(()) } else { self.check_free(bytes).await }
    }

    /// Whether the account of a session has room for so much more content, if it is one's key.
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
            "the session would use {} for its workspace, its home and stored content, over its limit \
             of {} (`sandbox.workspace`)",
            space::shown(used),
            space::shown(max)
        );
        Err(Error::new(ErrorKind::TooLarge, message))
    }

    /// Whether the disk has room for so much more.
    pub(crate) async fn check_free(&self, bytes: u64) -> Result<()> {
        let Some(space) = self.space().await else { return Ok(()) };
        let left = Space { free: space.free.saturating_sub(bytes), ..space };
        let Some(short) = self.kernel.config.sessions.disk.shortage(left) else { return Ok(()) };
        let message = format!("cannot store {}: then the disk {short}", space::shown(bytes));
        Err(Error::new(ErrorKind::Busy, message).with_certainty(Certainty::NotStarted))
    }

    /// Counts content that was stored to the session whose key it was stored with.
    pub(crate) fn count_stored(&self, principal: &Principal, bytes: u64) {
        let Some(session) = principal.held_by.map(|held_by| held_by.session) else { return };
        let mut stored = lock(&self.stored);
        let stored = stored.entry(session).or_default();
        *stored = stored.saturating_add(bytes);
    }

    /// A session has ended: what it stored is nobody's account any more.
    pub(crate) fn forget_stored(&self, session: SessionId) {
        lock(&self.stored).remove(&session);
    }

    fn stored_by(&self, session: SessionId) -> u64 {
        lock(&self.stored).get(&session).copied().unwrap_or_default()
    }

    /// How full the disk is; nothing if that cannot be told.
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

    /// Takes the reserve if it is not there and there is plenty of room for it.
    pub(crate) async fn take_reserve(self: &Arc<Self>) {
        let Some(space) = self.space().await else { return };
        let left = space.free.saturating_sub(self.kernel.reserve.bytes().saturating_mul(2));
        if self.kernel.config.sessions.disk.shortage(Space { free: left, ..space }).is_none() {
            let shared = Arc::clone(self);
            let taken = self.kernel.blocking(move || {
                shared.kernel.reserve.take();
                Ok(())
            });
            drop(taken.await);
        }
    }

    /// Looks after the disk while anybody writes, until the broker stops.
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

    /// Looks at the disk, and ends who fills it. Whether it is about to be full.
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
                    "it uses {} on the disk, over its limit of {} (`sandbox.workspace`); delete files \
                     there before it continues, or raise the limit",
                    space::shown(over.usage.bytes),
                    space::shown(max)
                );
                self.end_writer(over.id, &why);
            }
        }
        if let Some(short) = shortage {
            match reason(&found, space, fall, limits) {
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
            if space.free < NOTHING_LEFT {
                self.kernel.reserve.give_up();
            }
        }
        let keep = limits.keep_free.of(space.total);
        is_falling && space.free < keep.saturating_add(fall.bytes.saturating_mul(FALLS_LEFT))
    }

    /// What everybody has on the disk, and how much more than last time.
    async fn measure(&self) -> Vec<Measured> {
        let places: Vec<_> = {
            let watched = lock(&self.watched);
            let place =
                |(id, watched): (&u64, &Watched)| (*id, watched.writer, watched.dirs.clone());
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
            Some(Measured { id, usage, growth, growth_inodes })
        });
        noted.collect()
    }

    /// Ends a writer at once: one that is given time has it for writing on.
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
            Ender::Agent(handle) => handle.terminate(Duration::ZERO),
            Ender::Box(end) => {
                drop(end.why.set(why.to_owned()));
                end.stop.cancel();
            }
        }
    }
}

/// The last time that everything was measured, and how full the disk was then.
#[derive(Debug, Default)]
struct Round {
    last: Option<(Instant, Space)>,
    /// Whether it was short then.
    is_told: bool,
}

/// What the disk has less than when it was last measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Fall {
    bytes: u64,
    inodes: u64,
}

impl Round {
    /// How much less there is. What became free in between counts as if it had been then.
    fn fall(&mut self, space: Space) -> Fall {
        let Some((_, last)) = &mut self.last else { return Fall::default() };
        last.free = last.free.max(space.free);
        let inodes = match (&mut last.inodes, space.inodes) {
            (Some(last), Some(now)) => {
                last.free = last.free.max(now.free);
                last.free - now.free
            }
            (None, _) | (_, None) => 0,
        };
        Fall { bytes: last.free - space.free, inodes }
    }

    fn is_over(&self) -> bool {
        self.last.is_none_or(|(at, _)| at.elapsed() >= MEASURE_PERIOD)
    }
}

/// Who is the reason why the disk runs short, if one of these is. The shorter it is, the less it takes.
/// Where most of what is gone was taken by somebody else, none of these is ended for it, unless one has
/// something that cannot be looked at.
fn reason<'a>(
    found: &'a [Measured],
    space: Space,
    fall: Fall,
    limits: &DiskLimits,
) -> Option<&'a Measured> {
    type Growth = fn(&Measured) -> u64;
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
        let hides = |found: &&Measured| found.usage.is_partial;
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

    fn found(id: u64, growth: u64) -> Measured {
        let usage = Usage { bytes: GIB, entries: 1, is_partial: false };
        Measured { id, usage, growth, growth_inodes: growth / 4096 }
    }

    /// Rule: whoever writes little is not ended for somebody else, until nothing else helps.
    #[test]
    fn the_one_that_grows_fastest_is_the_reason_if_one_grows() {
        let limits = DiskLimits::default();
        let reason = |found, free| reason(found, space(free), Fall::default(), &limits);
        let all = [found(1, 10), found(2, 50 << 20), found(3, 2 << 20)];
        assert_eq!(reason(&all, GIB / 2), Some(&all[1]));
        assert_eq!(reason(&all[..1], GIB / 2), None);
        assert_eq!(reason(&all[..1], GIB / 5), Some(&all[0]));
        assert_eq!(reason(&[found(4, 0)], 0), None, "what does not grow is not the reason");
    }

    /// Rule: nobody is ended for what others took of the disk, however short it is; but one that hides
    /// what it has is.
    #[test]
    fn who_grew_little_is_not_ended_for_what_others_took() {
        let limits = DiskLimits::default();
        let fall = Fall { bytes: 2 * GIB, inodes: 0 };
        let mut all = [found(1, 2 << 20), found(2, 10)];
        assert_eq!(reason(&all, space(1000), fall, &limits), None);
        all[1].usage.is_partial = true;
        assert_eq!(reason(&all, space(1000), fall, &limits), Some(&all[1]));
        let all = [found(1, 2 << 20), found(2, 2 * GIB)];
        assert_eq!(reason(&all, space(1000), fall, &limits), Some(&all[1]));
    }

    /// Rule: files count as bytes do.
    #[test]
    fn who_makes_most_files_is_the_reason_where_these_run_short() {
        let limits = DiskLimits::default();
        let inodes = Some(Inodes { free: 100, total: 8000 });
        let short = Space { inodes, ..space(10 * GIB) };
        let mut all = [found(1, GIB), found(2, 0)];
        all[1].growth_inodes = 8_000_000;
        assert_eq!(reason(&all, short, Fall { bytes: 0, inodes: 7000 }, &limits), Some(&all[1]));
    }

    /// Rule: what became free in between is not taken for a fall.
    #[test]
    fn a_fall_is_counted_from_the_most_there_was() {
        let mut round = Round::default();
        assert_eq!(
            round.fall(space(GIB)),
            Fall::default(),
            "nothing is known before the first look"
        );
        round.last = Some((Instant::now(), space(GIB)));
        assert_eq!(round.fall(space(2 * GIB)), Fall::default());
        assert_eq!(round.fall(space(GIB)), Fall { bytes: GIB, inodes: 0 });
    }

    /// Rule: what an agent has is counted as the disk has it: through no link, each file once, and at
    /// any depth.
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
