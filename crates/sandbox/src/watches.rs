//! Ends the sandbox that uses up what the kernel counts per user.
//!
//! To the kernel, a sandbox has the daemon's user, and a user may have a limited number of watches:
//! of connections (epoll) and of files (inotify). Once a sandbox has taken the last one, the daemon
//! cannot accept connections any more, not even the one that would end the sandbox. So a separate
//! thread regularly tries to get another watch, with files that it already has open, and if that
//! fails ends the sandbox that has the most.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use ringback_sync::lock;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll};
use rustix::fs::inotify;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, pidfd_send_signal};

use crate::error::OpenError;

/// How often to try to get a watch.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long a sandbox may take to release its watches: millions of them take seconds.
const PATIENCE: Timespec = Timespec { tv_sec: 60, tv_nsec: 0 };
/// The square of this is the number of epoll watches that must be left. Each connection of the
/// daemon needs one, and a sandbox that stops at the last one leaves those that others release
/// meanwhile.
const LEFT_MIN: usize = 16;
/// A sandbox with less than this fraction of the limit is not to blame.
const PART_MIN: u64 = 32;

/// Why a sandbox was ended, once it was.
pub(crate) type Reason = Arc<OnceLock<String>>;

/// Watches over sandboxes.
#[derive(Debug)]
pub(crate) struct Guard {
    boxes: Boxes,
    /// Dropping it ends the thread.
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Clone, Default)]
struct Boxes(Arc<Mutex<HashMap<Arc<str>, GuardedSandbox>>>);

#[derive(Debug)]
struct GuardedSandbox {
    first: Pid,
    held: OwnedFd,
    why: Reason,
}

/// A resource that the kernel limits per user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Files and connections in epoll.
    Polled,
    /// inotify instances.
    Watchers,
    /// Files watched with inotify.
    Watched,
}

/// What one sandbox has.
#[derive(Debug, Default, PartialEq, Eq)]
struct WatchCount {
    n_watches: u64,
    /// Processes that cannot be inspected.
    n_closed: u64,
}

/// The files needed for the trial.
#[derive(Debug)]
struct Trial {
    polls: Vec<OwnedFd>,
    /// Each of these is watched by each of the others.
    polled: Vec<OwnedFd>,
    watcher: Option<OwnedFd>,
}

impl Guard {
    pub(crate) fn start() -> Result<Self, OpenError> {
        let boxes = Boxes::default();
        let (stop, stopped) = sync_channel(0);
        let (looked_after, trial) = (boxes.clone(), Trial::new().map_err(OpenError::Thread)?);
        let thread = std::thread::Builder::new()
            .name("sandbox-watches".to_owned())
            .spawn(move || {
                while stopped.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                    looked_after.look(|kind| trial.is_used_up(kind).then(|| kind.limit()));
                }
            })
            .map_err(OpenError::Thread)?;
        Ok(Self { boxes, stop: Some(stop), thread: Some(thread) })
    }

    /// Watches over a sandbox, given its first process, until it is forgotten.
    pub(crate) fn add(&self, name: Arc<str>, first: Pid, held: OwnedFd) -> Reason {
        let why = Reason::default();
        let guarded = GuardedSandbox { first, held, why: Arc::clone(&why) };
        self.boxes.lock().insert(name, guarded);
        why
    }

    pub(crate) fn forget(&self, name: &str) {
        self.boxes.lock().remove(name);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.stop.take());
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("a thread of the sandbox panicked");
        }
    }
}

impl Boxes {
    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, GuardedSandbox>> {
        // Nothing panics while it is held.
        lock(&self.0)
    }

    /// Ends the sandbox that has the most of an exhausted resource; `used_up` returns the limit of
    /// that.
    fn look(&self, used_up: impl Fn(Kind) -> Option<u64>) {
        if self.lock().is_empty() {
            return;
        }
        for kind in [Kind::Polled, Kind::Watchers, Kind::Watched] {
            if let Some(limit) = used_up(kind) {
                self.end_greediest(kind, limit);
            }
        }
    }

    fn end_greediest(&self, kind: Kind, limit: u64) {
        let firsts: Vec<_> =
            self.lock().iter().map(|(name, guarded)| (Arc::clone(name), guarded.first)).collect();
        let parents = parents();
        // More than half is certainly the most, and there may be millions to count.
        let held = |first: Pid| WatchCount::of(kind, &members(first, &parents), limit / 2);
        let counted: Vec<_> = firsts.into_iter().map(|(name, first)| (name, held(first))).collect();
        let Some((name, held)) = greediest(counted, limit) else {
            return tracing::warn!(?kind, limit, "a kernel limit is used up, but not by a sandbox");
        };
        let n_watches = held.n_watches;
        tracing::warn!(
            ?kind,
            limit,
            name = &*name,
            n_watches,
            "ending a sandbox: it has used up a kernel limit"
        );
        let Some(held) = self.end(&name, kind.why(n_watches, limit)) else { return };
        // Its watches are released until it is gone; only then can another sandbox be to blame.
        let mut ended = [PollFd::new(&held, PollFlags::IN)];
        poll(&mut ended, Some(&PATIENCE)).unwrap_or_default();
    }

    /// Ends a sandbox; `None` if it has already ended.
    fn end(&self, name: &str, why: String) -> Option<OwnedFd> {
        let boxes = self.lock();
        let guarded = boxes.get(name)?;
        guarded.why.set(why).unwrap_or_default();
        if let Err(error) = pidfd_send_signal(&guarded.held, Signal::KILL) {
            tracing::error!(%error, name, "cannot end a sandbox");
        }
        guarded.held.try_clone().ok()
    }
}

/// Returns the sandbox that has the most, if that is a significant fraction. If the visible watches
/// do not explain it, a sandbox whose processes cannot be inspected is to blame.
fn greediest(counted: Vec<(Arc<str>, WatchCount)>, limit: u64) -> Option<(Arc<str>, WatchCount)> {
    let is_worth = |(_, held): &&(Arc<str>, WatchCount)| held.n_watches >= limit / PART_MIN;
    let explains = counted.iter().any(|counted| is_worth(&counted));
    let greed = |held: &WatchCount| if explains { held.n_watches } else { held.n_closed };
    counted.into_iter().filter(|(_, held)| greed(held) > 0).max_by_key(|(_, held)| greed(held))
}

impl WatchCount {
    /// Counts what these processes have, up to `enough`.
    fn of(kind: Kind, members: &[Pid], enough: u64) -> Self {
        let mut held = Self::default();
        for pid in members.iter().map(|pid| pid.as_raw_nonzero()) {
            let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else {
                held.n_closed += 1;
                continue;
            };
            for file in files.flatten() {
                if held.n_watches > enough {
                    return held;
                }
                let is_of_kind =
                    fs::read_link(file.path()).is_ok_and(|link| kind.is_held_by(&link));
                if is_of_kind {
                    let number = file.file_name();
                    let info = format!("/proc/{pid}/fdinfo/{}", number.display());
                    held.n_watches += kind.count(&fs::read_to_string(info).unwrap_or_default());
                }
            }
        }
        held
    }
}

impl Kind {
    fn is_held_by(self, link: &std::path::Path) -> bool {
        let name = match self {
            Self::Polled => "anon_inode:[eventpoll]",
            Self::Watchers | Self::Watched => "anon_inode:inotify",
        };
        link.as_os_str() == name
    }

    /// Counts the entries in the kernel's description of an open file.
    fn count(self, info: &str) -> u64 {
        let starting = |start: &str| info.lines().filter(|line| line.starts_with(start)).count();
        let n_lines = match self {
            Self::Polled => starting("tfd:"),
            Self::Watchers => 1,
            Self::Watched => starting("inotify wd:"),
        };
        u64::try_from(n_lines).unwrap_or(u64::MAX)
    }

    /// Returns the kernel's limit per user.
    fn limit(self) -> u64 {
        let path = match self {
            Self::Polled => "/proc/sys/fs/epoll/max_user_watches",
            Self::Watchers => "/proc/sys/fs/inotify/max_user_instances",
            Self::Watched => "/proc/sys/fs/inotify/max_user_watches",
        };
        fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
    }

    fn why(self, n_watches: u64, limit: u64) -> String {
        let (what, key) = match self {
            Self::Polled => ("watches of connections", "fs.epoll.max_user_watches"),
            Self::Watchers => ("watchers of files", "fs.inotify.max_user_instances"),
            Self::Watched => ("watches of files", "fs.inotify.max_user_watches"),
        };
        format!(
            "the sandbox was ended: it had {n_watches} of the {limit} {what} that the kernel \
             grants the daemon's user ({key}), and none were left"
        )
    }
}

impl Trial {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            polls: (0..LEFT_MIN)
                .map(|_| epoll::create(epoll::CreateFlags::CLOEXEC))
                .collect::<rustix::io::Result<_>>()?,
            polled: (0..LEFT_MIN)
                .map(|_| eventfd(0, EventfdFlags::CLOEXEC))
                .collect::<rustix::io::Result<_>>()?,
            // Another program of this user may have them all.
            watcher: inotify::init(inotify::CreateFlags::CLOEXEC).ok(),
        })
    }

    fn is_used_up(&self, kind: Kind) -> bool {
        let tried = match kind {
            Kind::Polled => self.poll_all(),
            Kind::Watchers => inotify::init(inotify::CreateFlags::CLOEXEC).map(drop),
            Kind::Watched => match &self.watcher {
                None => return false,
                Some(watcher) => inotify::add_watch(watcher, "/", inotify::WatchFlags::DELETE_SELF)
                    .and_then(|watch| inotify::remove_watch(watcher, watch)),
            },
        };
        match tried {
            Err(Errno::NOSPC) => true,
            // Also reported if this process has too many open files, which is not a sandbox's
            // fault.
            Err(Errno::MFILE) => self.polled.iter().all(|file| file.try_clone().is_ok()),
            Ok(()) | Err(_) => false,
        }
    }

    /// Takes as many watches as must be left, and releases them.
    fn poll_all(&self) -> rustix::io::Result<()> {
        let all =
            || self.polls.iter().flat_map(|polls| self.polled.iter().map(move |it| (polls, it)));
        let flags = epoll::EventFlags::empty();
        let taken = all().try_for_each(|(polls, polled)| {
            epoll::add(polls, polled, epoll::EventData::new_u64(0), flags)
        });
        for (polls, polled) in all() {
            // A watch that was not taken need not be released.
            epoll::delete(polls, polled).unwrap_or_default();
        }
        taken
    }
}

/// Returns the parent of every process.
fn parents() -> HashMap<i32, i32> {
    let processes = procfs::process::all_processes().into_iter().flatten().flatten();
    let stats = processes.filter_map(|process| process.stat().ok());
    stats.map(|stat| (stat.pid, stat.ppid)).collect()
}

/// Returns the processes of a sandbox: the descendants of its first one, and those that joined
/// later.
fn members(first: Pid, parents: &HashMap<i32, i32>) -> Vec<Pid> {
    let namespace = |pid: i32| fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
    let first = first.as_raw_nonzero().get();
    let own = namespace(first);
    let mut members = HashSet::from([first]);
    let mut n_before = 0;
    // A parent may be listed after its child.
    while members.len() > n_before {
        n_before = members.len();
        let children = parents.iter().filter(|(_, parent)| members.contains(parent));
        let children: Vec<_> = children.map(|(pid, _)| *pid).collect();
        members.extend(children);
    }
    members.extend(parents.keys().filter(|pid| own.is_some() && namespace(**pid) == own));
    members.into_iter().filter_map(Pid::from_raw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(name: &str, n_watches: u64, n_closed: u64) -> (Arc<str>, WatchCount) {
        (name.into(), WatchCount { n_watches, n_closed })
    }

    /// Rule: the sandbox with the most is ended. One with next to nothing is not, even if no other
    /// has more: another program of the user has them. If they cannot be seen, a sandbox that hides
    /// its processes is to blame.
    #[test]
    fn the_greediest_is_who_has_most_of_what_there_is() {
        let name = |counted: Vec<_>| greediest(counted, 3200).map(|(name, _)| name.to_string());
        assert_eq!(name(vec![held("a", 3000, 0), held("b", 90, 7)]).as_deref(), Some("a"));
        assert_eq!(name(vec![held("a", 99, 0), held("b", 12, 0)]), None);
        assert_eq!(name(vec![held("a", 99, 0), held("b", 12, 1)]).as_deref(), Some("b"));
        assert_eq!(name(Vec::new()), None);
    }

    /// Rule: what a process has is what the kernel reports about its open files.
    #[test]
    fn what_a_process_has_is_counted() {
        let polls = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let files: Vec<_> = (0..7).map(|_| eventfd(0, EventfdFlags::CLOEXEC).unwrap()).collect();
        let own = [rustix::process::getpid()];
        let before = WatchCount::of(Kind::Polled, &own, u64::MAX);
        for file in &files {
            let (data, flags) = (epoll::EventData::new_u64(0), epoll::EventFlags::IN);
            epoll::add(&polls, file, data, flags).unwrap();
        }
        let after = WatchCount::of(Kind::Polled, &own, u64::MAX);
        assert_eq!((after.n_watches, after.n_closed), (before.n_watches + 7, 0));
        let watchers = WatchCount::of(Kind::Watchers, &own, u64::MAX).n_watches;
        let watcher = inotify::init(inotify::CreateFlags::CLOEXEC).unwrap();
        inotify::add_watch(&watcher, "/", inotify::WatchFlags::DELETE_SELF).unwrap();
        assert_eq!(WatchCount::of(Kind::Watchers, &own, u64::MAX).n_watches, watchers + 1);
        assert!(WatchCount::of(Kind::Watched, &own, u64::MAX).n_watches > 0);
    }
}
