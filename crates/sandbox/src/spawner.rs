//! Starts children from one thread. The system ends a child with the thread that started it, and a
//! runtime's threads come and go. Where it can, the thread waits in the control groups of the next box.

use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use tokio::process::Child;
use tokio::runtime::Handle;

use crate::cgroups::{self, Group, Homes, Seat};
use crate::error::OpenError;
use crate::leftovers::{Notes, PATIENCE};
use crate::spec::Limits;

/// Children that wait to be started; whoever wants another is told that it is too much.
const WAITING_MAX: usize = 256;

enum Job {
    Spawn {
        command: Box<Command>,
        runtime: Handle,
        /// What the next child will probably have.
        limits: Limits,
        /// Whether the child is the one that the thread waits for.
        is_seated: bool,
        started: SyncSender<io::Result<Child>>,
    },
    /// The child that the thread waits for does not come.
    GiveUp,
}

/// Where the thread is.
#[derive(Debug, Default)]
enum Waiting {
    #[default]
    AtHome,
    /// In the groups of whoever comes next.
    For(Box<Seat>),
    /// In the groups of a child that is about to be started.
    Taken,
}

/// Hands commands to the thread.
#[derive(Debug, Clone)]
pub(crate) struct Spawner {
    jobs: SyncSender<Job>,
    notes: Notes,
    waiting: Arc<Mutex<Waiting>>,
}

/// Control groups that the thread is in, until a child is started there or this is dropped.
#[derive(Debug)]
pub(crate) struct TakenSeat {
    pub(crate) name: String,
    pub(crate) group: Group,
    spawner: Option<Spawner>,
}

/// What the thread has.
struct Keeper {
    homes: Homes,
    notes: Notes,
    waiting: Arc<Mutex<Waiting>>,
}

impl Spawner {
    /// The thread ends once every handle is gone; what it has started ends with it.
    pub(crate) fn start(homes: Homes, notes: Notes) -> Result<(Self, JoinHandle<()>), OpenError> {
        let (jobs_in, jobs) = sync_channel::<Job>(WAITING_MAX);
        let waiting = Arc::new(Mutex::default());
        let keeper = Keeper { homes, notes: notes.clone(), waiting: Arc::clone(&waiting) };
        let thread = std::thread::Builder::new()
            .name("sandbox-spawner".to_owned())
            .spawn(move || {
                for job in jobs {
                    keeper.carry_out(job);
                }
                keeper.leave();
            })
            .map_err(OpenError::Thread)?;
        Ok((Self { jobs: jobs_in, notes, waiting }, thread))
    }

    /// The control groups that the thread waits in, if they are for such a box.
    pub(crate) fn take_seat(&self, limits: &Limits) -> Option<TakenSeat> {
        let mut waiting = lock(&self.waiting);
        match std::mem::take(&mut *waiting) {
            // One whose note cannot be kept up is nobody's.
            Waiting::For(seat)
                if seat.is_for(limits) && self.notes.has_come(&seat.name).is_ok() =>
            {
                *waiting = Waiting::Taken;
                let Seat { name, group, .. } = *seat;
                Some(TakenSeat { name, group, spawner: Some(self.clone()) })
            }
            other @ (Waiting::AtHome | Waiting::For(_) | Waiting::Taken) => {
                *waiting = other;
                None
            }
        }
    }

    /// Starts a child, and ends it when its handle is dropped. Waits for it: call it where that may be.
    pub(crate) fn spawn(
        &self,
        command: Command,
        seat: Option<TakenSeat>,
        limits: Limits,
        runtime: &Handle,
    ) -> io::Result<Child> {
        let (started, child) = sync_channel(1);
        let is_seated = seat.is_some();
        let (command, runtime) = (Box::new(command), runtime.clone());
        let job = Job::Spawn { command, runtime, limits, is_seated, started };
        let too_many = |_| io::Error::other("too many sandboxes start at once");
        self.jobs.try_send(job).map_err(too_many)?;
        if let Some(mut seat) = seat {
            seat.spawner = None;
        }
        child.recv().map_err(|_| io::Error::other("the thread that starts sandboxes has ended"))?
    }
}

impl Drop for TakenSeat {
    fn drop(&mut self) {
        if let Some(spawner) = self.spawner.take()
            && spawner.jobs.try_send(Job::GiveUp).is_err()
        {
            // Whoever is next in the full queue moves the thread on as well.
            *lock(&spawner.waiting) = Waiting::AtHome;
        }
    }
}

impl Keeper {
    fn carry_out(&self, job: Job) {
        match job {
            Job::Spawn { command, runtime, limits, is_seated, started } => {
                let _entered = runtime.enter();
                let child = tokio::process::Command::from(*command).kill_on_drop(true).spawn();
                // Whoever does not wait any more gets nothing: the child ends with its handle.
                drop(started.send(child));
                if is_seated {
                    *lock(&self.waiting) = Waiting::AtHome;
                }
                self.move_on(limits);
            }
            Job::GiveUp => {
                cgroups::leave(&self.homes);
                *lock(&self.waiting) = Waiting::AtHome;
            }
        }
    }

    /// Waits in new groups, unless somebody counts on where it is.
    fn move_on(&self, limits: Limits) {
        let before = std::mem::take(&mut *lock(&self.waiting));
        let unused = match before {
            Waiting::AtHome => None,
            Waiting::For(seat) if !seat.is_for(&limits) => Some(seat),
            stays @ (Waiting::For(_) | Waiting::Taken) => {
                *lock(&self.waiting) = stays;
                return;
            }
        };
        let name = Notes::new_name();
        let dirs = Group::plan(&self.homes, &name, &limits);
        let dirs = dirs.map(|group| group.dirs().to_vec()).unwrap_or_default();
        let noted = self.notes.write_next(&name, &dirs);
        match noted.and_then(|()| Seat::take(&self.homes, name.clone(), limits)) {
            Ok(Some(seat)) => *lock(&self.waiting) = Waiting::For(Box::new(seat)),
            Ok(None) => self.remove(&name, &[]),
            Err(error) => {
                tracing::debug!(%error, "the next sandbox has no control groups yet");
                cgroups::leave(&self.homes);
                self.remove(&name, &dirs);
            }
        }
        if let Some(seat) = unused {
            self.remove(&seat.name, seat.group.dirs());
        }
    }

    /// Goes home from groups that nobody needs.
    fn leave(&self) {
        let before = std::mem::take(&mut *lock(&self.waiting));
        if let Waiting::For(seat) = before {
            cgroups::leave(&self.homes);
            self.remove(&seat.name, seat.group.dirs());
        }
    }

    /// Nobody is in these groups any more.
    fn remove(&self, name: &str, dirs: &[PathBuf]) {
        let until = Instant::now() + PATIENCE;
        let removed = dirs.iter().try_for_each(|dir| cgroups::remove(dir, until));
        if let Err(error) = removed.and_then(|()| std::fs::remove_file(self.notes.next_path(name)))
        {
            tracing::warn!(%error, "control groups are left; the next start removes them");
        }
    }
}

fn lock(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    // Nothing panics while it is held.
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}
