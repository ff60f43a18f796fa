//! Promises: regions whose content a job is making. When the job has ended, its content is prepared
//! and the daemon learns what became of the region.
//!
//! A job's row is the truth. An event only says which job to look at, so a lost one costs time: the
//! jobs are looked at again after a gap and after a reconnection, and now and then.

mod ears;
mod settle;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ringback_client::{Client, Credentials, LinkState};
use ringback_proto::garden::RegionState;
use ringback_proto::ids::{JobId, RegionId};
use ringback_proto::request::{JobPollRequest, JobPollResponse};
use ringback_proto::tool::tools::JobPoll;
use ringback_proto::{Error, ErrorKind};
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::ears::{Ears, Heard};
use self::settle::Fate;
use crate::garden::GardenHandle;

/// The pause before another attempt to settle a region, so that a daemon in trouble is left alone.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Jobs of one `job_poll`.
const JOBS_PER_POLL: usize = 100;

/// Regions that are settled at the same time: fewer than the reader has places, so that new regions find
/// one too.
const SETTLED_TOGETHER: usize = 16;

/// Settles regions until it is stopped.
#[derive(Debug)]
pub(crate) struct Promises {
    tasks: JoinSet<()>,
}

impl Promises {
    /// Starts the task. With the daemon's endpoint for events it is quicker and asks less.
    pub(crate) fn start(
        garden: &GardenHandle,
        client: &Client,
        events: Option<(String, Credentials)>,
    ) -> Self {
        let mut tasks = JoinSet::new();
        let (garden, client) = (garden.clone(), client.clone());
        let link = client.link();
        let keeper = Keeper {
            garden,
            client,
            link,
            waiting: BTreeMap::new(),
            due: BTreeSet::new(),
            settled: BTreeSet::new(),
        };
        tasks.spawn(keeper.run(events));
        Self { tasks }
    }

    /// Stops the task and waits for it.
    pub(crate) async fn stop(mut self) {
        self.tasks.shutdown().await;
    }
}

/// Knows which regions wait for which jobs.
struct Keeper {
    garden: GardenHandle,
    client: Client,
    link: watch::Receiver<LinkState>,
    waiting: BTreeMap<RegionId, JobId>,
    /// Regions whose job has to be looked at.
    due: BTreeSet<RegionId>,
    /// Regions that the daemon has settled, but that still wait in the garden's timeline.
    settled: BTreeSet<RegionId>,
}

impl Keeper {
    async fn run(mut self, events: Option<(String, Credentials)>) {
        let mut ears = Ears::open(events).await;
        while self.update().await.is_ok() {
            self.settle_due().await;
            let due = self.due.clone();
            let jobs = self.waiting.iter().filter(|(region_id, _)| !due.contains(region_id));
            let jobs: BTreeSet<JobId> = jobs.map(|(_, job_id)| *job_id).collect();
            let mut link = self.link.clone();
            let (garden, client) = (self.garden.clone(), self.client.clone());
            tokio::select! {
                () = garden.changed() => {}
                is_there = came_back(&mut self.link) => {
                    if !is_there {
                        return;
                    }
                    self.look_at_all().await;
                }
                () = retry_time(&mut link), if !due.is_empty() => {}
                heard = ears.listen(&client, &jobs) => self.on_heard(heard).await,
            }
        }
    }

    /// Reads which regions wait. A job may have ended before its region was placed, so the jobs of
    /// new ones have to be looked at.
    async fn update(&mut self) -> Result<(), Error> {
        let waiting = match self.garden.ask(|engine| waiting(engine.timeline())).await {
            Err(error) if error.kind() == ErrorKind::Busy => {
                tokio::time::sleep(RETRY_PAUSE).await;
                return Ok(());
            }
            asked => asked?,
        };
        let is_new = |region_id: &&RegionId| !self.waiting.contains_key(region_id);
        self.due.extend(waiting.keys().filter(is_new));
        self.settled.retain(|region_id| waiting.contains_key(region_id));
        self.waiting = waiting;
        self.waiting.retain(|region_id, _| !self.settled.contains(region_id));
        self.due.retain(|region_id| self.waiting.contains_key(region_id));
        Ok(())
    }

    /// Settles the regions whose jobs have to be looked at, several at a time: one whose content takes
    /// long to prepare keeps no other waiting.
    async fn settle_due(&mut self) {
        let mut due = std::mem::take(&mut self.due).into_iter();
        let mut settling = JoinSet::new();
        loop {
            while settling.len() < SETTLED_TOGETHER
                && let Some(region_id) = due.next()
            {
                let Some(job_id) = self.waiting.get(&region_id).copied() else { continue };
                let (garden, client) = (self.garden.clone(), self.client.clone());
                settling.spawn(async move {
                    (region_id, settle::settle(&garden, &client, region_id, job_id).await)
                });
            }
            match settling.join_next().await {
                None => return,
                Some(Ok((region_id, fate))) => self.on_fate(region_id, fate),
                Some(Err(error)) => tracing::error!(%error, "a region was not settled"),
            }
        }
    }

    fn on_fate(&mut self, region_id: RegionId, fate: Result<Fate, Error>) {
        match fate {
            Ok(Fate::Running) => {}
            Ok(Fate::Settled) => {
                self.waiting.remove(&region_id);
                self.settled.insert(region_id);
            }
            Err(error) => {
                tracing::info!(%error, %region_id, "the region is settled later");
                self.due.insert(region_id);
            }
        }
    }

    async fn on_heard(&mut self, heard: Heard) {
        match heard {
            Heard::Ended(jobs) => self.ended(&jobs),
            Heard::Unclear => self.look_at_all().await,
        }
    }

    fn ended(&mut self, jobs: &[JobId]) {
        let ended = self.waiting.iter().filter(|(_, job_id)| jobs.contains(job_id));
        self.due.extend(ended.map(|(region_id, _)| *region_id));
    }

    /// Asks which of the jobs have ended.
    async fn look_at_all(&mut self) {
        let jobs: BTreeSet<JobId> = self.waiting.values().copied().collect();
        let jobs: Vec<JobId> = jobs.into_iter().collect();
        for jobs in jobs.chunks(JOBS_PER_POLL) {
            match ended_of(&self.client, jobs.to_vec(), Duration::ZERO).await {
                Ok(ended) => self.ended(&ended),
                // One of them may be gone; each is looked at.
                Err(_) => self.ended(jobs),
            }
        }
    }
}

fn waiting(timeline: &crate::timeline::Timeline) -> BTreeMap<RegionId, JobId> {
    let pending = timeline.regions().filter(|region| region.state == RegionState::Pending);
    let promised = |region: &ringback_proto::garden::GardenRegion| {
        Some((region.region_id, region.promise.as_ref()?.job_id))
    };
    pending.filter_map(promised).collect()
}

/// Returns the jobs that have ended, or waits until one ends.
async fn ended_of(
    client: &Client,
    job_ids: Vec<JobId>,
    wait: Duration,
) -> Result<Vec<JobId>, Error> {
    let timeout_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    let request = JobPollRequest { job_ids, timeout_ms, mode: None };
    let JobPollResponse { mut completed, failed, .. } = client.call::<JobPoll>(request).await?;
    completed.extend(failed);
    Ok(completed)
}

/// Waits until a connection that was lost is there again; `false` if it never will.
async fn came_back(link: &mut watch::Receiver<LinkState>) -> bool {
    link.changed().await.is_ok() && is_up(link).await
}

/// Waits for another attempt, and for the daemon if it is away.
async fn retry_time(link: &mut watch::Receiver<LinkState>) {
    tokio::time::sleep(RETRY_PAUSE).await;
    is_up(link).await;
}

async fn is_up(link: &mut watch::Receiver<LinkState>) -> bool {
    link.wait_for(|state| *state == LinkState::Up).await.is_ok()
}
