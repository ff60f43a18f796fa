//! Starts bubblewraps from one thread. The system ends a child with the thread that started it, and
//! a runtime's threads come and go.
//!
//! What is started twice in a row is probably started again. So when idle, the thread pre-starts
//! the next one. Because it is already in its cgroups, the sandbox saves the move, for which the
//! kernel takes ten to twenty milliseconds, and the fork of the daemon.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use ringback_sync::lock;
use tokio::runtime::{self, Handle};

use crate::bubblewrap::{Kit, Prestarted, StartSpec};
use crate::error::{OpenError, StartError};

/// The most starts that may wait; a further one is refused.
const WAITING_MAX: usize = 256;
/// How long after a sandbox the next one is pre-started: until then, the first one needs the
/// processor.
const QUIET: Duration = Duration::from_millis(100);

enum Job {
    Begin {
        next: StartOrder,
        prestarted: SyncSender<Result<Prestarted, StartError>>,
    },
    /// A pre-started one has been taken.
    Taken(StartOrder),
}

/// What to start, and on which runtime.
struct StartOrder {
    start_spec: StartSpec,
    runtime: Handle,
}

/// A pre-started one.
#[derive(Debug)]
struct Spare {
    start_spec: StartSpec,
    runtime: runtime::Id,
    prestarted: Prestarted,
}

/// Hands out bubblewraps that wait for their options.
#[derive(Debug, Clone)]
pub(crate) struct Spawner {
    jobs: SyncSender<Job>,
    kit: Kit,
    spare: Arc<Mutex<Option<Box<Spare>>>>,
}

/// The state of the thread.
struct Keeper {
    kit: Kit,
    spare: Arc<Mutex<Option<Box<Spare>>>>,
    /// The last one started.
    last: Option<StartSpec>,
}

impl Spawner {
    /// Starts the thread. It ends once every handle is gone; so does what it has started.
    pub(crate) fn start(kit: Kit) -> Result<(Self, JoinHandle<()>), OpenError> {
        let (jobs_in, jobs) = sync_channel::<Job>(WAITING_MAX);
        let spare = Arc::new(Mutex::default());
        let keeper = Keeper { kit: kit.clone(), spare: Arc::clone(&spare), last: None };
        let thread = std::thread::Builder::new()
            .name("sandbox-spawner".to_owned())
            .spawn(move || keeper.run(&jobs))
            .map_err(OpenError::Thread)?;
        Ok((Self { jobs: jobs_in, kit, spare }, thread))
    }

    /// Returns a bubblewrap, pre-started or new, whose note marks it as used. Blocks until it
    /// exists.
    pub(crate) fn begin(
        &self,
        start_spec: StartSpec,
        runtime: &Handle,
    ) -> Result<Prestarted, StartError> {
        let next = StartOrder { start_spec, runtime: runtime.clone() };
        let prestarted = match self.take(&next) {
            Some(prestarted) => {
                // Skipped if the thread is too busy.
                drop(self.jobs.try_send(Job::Taken(next)));
                prestarted
            }
            None => self.begin_now(next)?,
        };
        match self.kit.notes.has_come(&prestarted.name) {
            Ok(()) => Ok(prestarted),
            Err(source) => {
                let path = self.kit.notes.path(&prestarted.name);
                self.kit.discard(prestarted);
                Err(StartError::State { path, source })
            }
        }
    }

    fn begin_now(&self, next: StartOrder) -> Result<Prestarted, StartError> {
        let program = next.start_spec.bubblewrap.clone();
        let failed = |why: &str| {
            let (program, source) = (program.clone(), io::Error::other(why.to_owned()));
            StartError::Spawn { program, source }
        };
        let (prestarted_in, prestarted) = sync_channel(1);
        let sent = self.jobs.try_send(Job::Begin { next, prestarted: prestarted_in });
        sent.map_err(|_| failed("too many sandboxes are starting; try again later"))?;
        prestarted.recv().map_err(|_| failed("the thread that starts sandboxes has ended"))?
    }

    /// Returns the pre-started one, if it is of this kind and still running.
    fn take(&self, next: &StartOrder) -> Option<Prestarted> {
        let mut spare = lock(&self.spare).take_if(|spare| spare.is_for(next))?;
        match spare.prestarted.child.try_wait() {
            Ok(None) => Some(spare.prestarted),
            Ok(Some(_)) | Err(_) => {
                self.kit.discard(spare.prestarted);
                None
            }
        }
    }
}

#[cfg(test)]
impl Spawner {
    /// Returns the pre-started process.
    pub(crate) fn process_ahead(&self) -> Option<u32> {
        lock(&self.spare).as_ref().and_then(|spare| spare.prestarted.child.id())
    }
}

impl Spare {
    fn is_for(&self, next: &StartOrder) -> bool {
        self.start_spec == next.start_spec && self.runtime == next.runtime.id()
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
        if let Some(unused) = lock(&self.spare).take() {
            self.kit.discard(unused.prestarted);
        }
    }

    /// Returns what is probably started next.
    fn carry_out(&mut self, job: Job) -> Option<StartOrder> {
        match job {
            Job::Begin { next, prestarted } => {
                let made = self.kit.begin(&next.start_spec, &next.runtime);
                if let Err(unsent) = prestarted.send(made)
                    && let Ok(unused) = unsent.0
                {
                    self.kit.discard(unused);
                }
                // Arguments that change between starts may be a user's words.
                let is_again = self.last.as_ref() == Some(&next.start_spec);
                self.last = Some(next.start_spec.clone());
                is_again.then_some(next)
            }
            Job::Taken(next) => Some(next),
        }
    }

    fn begin_ahead(&self, next: StartOrder) {
        if lock(&self.spare).as_ref().is_some_and(|spare| spare.is_for(&next)) {
            return;
        }
        let prestarted = match self.kit.begin(&next.start_spec, &next.runtime) {
            Ok(prestarted) => prestarted,
            // The next start tries again, and reports the error if that fails too.
            Err(error) => return tracing::debug!(%error, "cannot pre-start the next sandbox"),
        };
        let spare = Spare { start_spec: next.start_spec, runtime: next.runtime.id(), prestarted };
        if let Some(unused) = lock(&self.spare).replace(Box::new(spare)) {
            self.kit.discard(unused.prestarted);
        }
    }
}
