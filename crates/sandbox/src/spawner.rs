//! Starts bubblewraps from one thread. The system ends a child with the thread that started it, and
//! a runtime's threads come and go.
//!
//! What is started twice in a row is probably started again. So when idle, the thread pre-starts
//! the next one. Because it is already in its cgroups, the sandbox saves the move, for which the
//! kernel takes ten to twenty milliseconds, and the fork of the daemon.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::{self, Handle};

use crate::bubblewrap::{Begun, Blank, Kit};
use crate::error::{OpenError, StartError};

/// The most starts that may wait; a further one is refused.
const WAITING_MAX: usize = 256;
/// How long after a sandbox the next one is pre-started: until then, the first one needs the
/// processor.
const QUIET: Duration = Duration::from_millis(100);

enum Job {
    Begin {
        next: Next,
        begun: SyncSender<Result<Begun, StartError>>,
    },
    /// A pre-started one has been taken.
    Taken(Next),
}

/// What to start, and on which runtime.
struct Next {
    blank: Blank,
    runtime: Handle,
}

/// A pre-started one.
#[derive(Debug)]
struct Ahead {
    blank: Blank,
    runtime: runtime::Id,
    begun: Begun,
}

/// Hands out bubblewraps that wait for their options.
#[derive(Debug, Clone)]
pub(crate) struct Spawner {
    jobs: SyncSender<Job>,
    kit: Kit,
    ahead: Arc<Mutex<Option<Box<Ahead>>>>,
}

/// The state of the thread.
struct Keeper {
    kit: Kit,
    ahead: Arc<Mutex<Option<Box<Ahead>>>>,
    /// The last one started.
    last: Option<Blank>,
}

impl Spawner {
    /// Starts the thread. It ends once every handle is gone; so does what it has started.
    pub(crate) fn start(kit: Kit) -> Result<(Self, JoinHandle<()>), OpenError> {
        let (jobs_in, jobs) = sync_channel::<Job>(WAITING_MAX);
        let ahead = Arc::new(Mutex::default());
        let keeper = Keeper { kit: kit.clone(), ahead: Arc::clone(&ahead), last: None };
        let thread = std::thread::Builder::new()
            .name("sandbox-spawner".to_owned())
            .spawn(move || keeper.run(&jobs))
            .map_err(OpenError::Thread)?;
        Ok((Self { jobs: jobs_in, kit, ahead }, thread))
    }

    /// Returns a bubblewrap, pre-started or new, whose note marks it as used. Blocks until it
    /// exists.
    pub(crate) fn begin(&self, blank: Blank, runtime: &Handle) -> Result<Begun, StartError> {
        let next = Next { blank, runtime: runtime.clone() };
        let begun = match self.take(&next) {
            Some(begun) => {
                // Skipped if the thread is too busy.
                drop(self.jobs.try_send(Job::Taken(next)));
                begun
            }
            None => self.begin_now(next)?,
        };
        match self.kit.notes.has_come(&begun.name) {
            Ok(()) => Ok(begun),
            Err(source) => {
                let path = self.kit.notes.path(&begun.name);
                self.kit.discard(begun);
                Err(StartError::State { path, source })
            }
        }
    }

    fn begin_now(&self, next: Next) -> Result<Begun, StartError> {
        let program = next.blank.bubblewrap.clone();
        let failed = |why: &str| {
            let (program, source) = (program.clone(), io::Error::other(why.to_owned()));
            StartError::Spawn { program, source }
        };
        let (begun_in, begun) = sync_channel(1);
        let sent = self.jobs.try_send(Job::Begin { next, begun: begun_in });
        sent.map_err(|_| failed("too many sandboxes are starting; try again later"))?;
        begun.recv().map_err(|_| failed("the thread that starts sandboxes has ended"))?
    }

    /// Returns the pre-started one, if it is of this kind and still running.
    fn take(&self, next: &Next) -> Option<Begun> {
        let mut ahead = lock(&self.ahead).take_if(|ahead| ahead.is_for(next))?;
        match ahead.begun.child.try_wait() {
            Ok(None) => Some(ahead.begun),
            Ok(Some(_)) | Err(_) => {
                self.kit.discard(ahead.begun);
                None
            }
        }
    }
}

#[cfg(test)]
impl Spawner {
    /// Returns the pre-started process.
    pub(crate) fn process_ahead(&self) -> Option<u32> {
        lock(&self.ahead).as_ref().and_then(|ahead| ahead.begun.child.id())
    }
}

impl Ahead {
    fn is_for(&self, next: &Next) -> bool {
        self.blank == next.blank && self.runtime == next.runtime.id()
    }
}

impl Keeper {
    fn run(mut self, jobs: &Receiver<Job>) {
        let mut next = None;
        loop {
            let job = match &next {
                Some(_) => jobs.recv_timeout(QUIET),
                None => jobs.recv().map_err(RecvTimeoutError::from),
            };
            match (job, next.take()) {
                (Ok(job), _) => next = self.carry_out(job),
                (Err(RecvTimeoutError::Timeout), Some(next)) => self.begin_ahead(next),
                (Err(_), _) => break,
            }
        }
        if let Some(unused) = lock(&self.ahead).take() {
            self.kit.discard(unused.begun);
        }
    }

    /// Returns what is probably started next.
    fn carry_out(&mut self, job: Job) -> Option<Next> {
        match job {
            Job::Begin { next, begun } => {
                let made = self.kit.begin(&next.blank, &next.runtime);
                if let Err(unsent) = begun.send(made)
                    && let Ok(unused) = unsent.0
                {
                    self.kit.discard(unused);
                }
                // Arguments that change between starts may be a user's words.
                let is_again = self.last.as_ref() == Some(&next.blank);
                self.last = Some(next.blank.clone());
                is_again.then_some(next)
            }
            Job::Taken(next) => Some(next),
        }
    }

    fn begin_ahead(&self, next: Next) {
        if lock(&self.ahead).as_ref().is_some_and(|ahead| ahead.is_for(&next)) {
            return;
        }
        let begun = match self.kit.begin(&next.blank, &next.runtime) {
            Ok(begun) => begun,
            // The next start tries again, and reports the error if that fails too.
            Err(error) => return tracing::debug!(%error, "cannot pre-start the next sandbox"),
        };
        let ahead = Ahead { blank: next.blank, runtime: next.runtime.id(), begun };
        if let Some(unused) = lock(&self.ahead).replace(Box::new(ahead)) {
            self.kit.discard(unused.begun);
        }
    }
}

fn lock(ahead: &Mutex<Option<Box<Ahead>>>) -> MutexGuard<'_, Option<Box<Ahead>>> {
    // Nothing panics while it is held.
    ahead.lock().unwrap_or_else(PoisonError::into_inner)
}
