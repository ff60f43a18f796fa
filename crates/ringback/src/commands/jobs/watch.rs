//! `ringback jobs watch`: progress bars on a terminal, lines of text elsewhere.

use std::collections::HashMap;

use indicatif::{MultiProgress, ProgressBar};
use ringback_client::Client;
use ringback_proto::Event;
use ringback_proto::event::SequencedEvent;
use ringback_proto::ids::JobId;
use ringback_proto::record::JobState;
use ringback_proto::request::{JobListRequest, JobStatusRequest, JobStatusResponse};
use ringback_proto::tool::tools::{JobList, JobStatus};

use crate::commands::events::event_text;
use crate::failure::Failure;
use crate::feed::Feed;
use crate::progress;
use crate::screen::Screen;

/// The progress bars on the screen.
struct Board {
    screen: Screen,
    bars: MultiProgress,
    jobs: HashMap<JobId, ProgressBar>,
}

/// Follows one job to its end, and fails if it does.
pub(super) async fn one(client: &Client, screen: Screen, job_id: JobId) -> Result<(), Failure> {
    // The event cursor is taken before the status, so that no change falls between the two.
    let mut feed = Feed::from_now(client, &types()).await?;
    let mut job = client.call::<JobStatus>(JobStatusRequest { job_id }).await?;
    let mut board = Board::new(screen);
    board.add(job_id, &job.source);
    while !job.status.is_terminal() {
        let page = feed.next().await?;
        let about = |event: &&SequencedEvent| event.event.job_id() == Some(job_id);
        for event in page.events.iter().filter(about) {
            board.show(event)?;
        }
        job = client.call::<JobStatus>(JobStatusRequest { job_id }).await?;
    }
    board.clear();
    outcome(screen, job)
}

/// Follows all jobs until Ctrl-C.
pub(super) async fn all(client: &Client, screen: Screen) -> Result<(), Failure> {
    let mut feed = Feed::from_now(client, &types()).await?;
    let mut board = Board::new(screen);
    for state in [JobState::Running, JobState::Pending] {
        let request = JobListRequest { status: Some(state), ..JobListRequest::default() };
        for job in client.call::<JobList>(request).await?.jobs {
            board.add(job.job_id, &job.source);
        }
    }
    screen.remark("watching all jobs; stop with Ctrl-C");
    loop {
        let page = feed.next().await?;
        if let Some(missed) = page.missed {
            screen.remark(format_args!("missed {missed} events: too many at once"));
        }
        for event in &page.events {
            board.show(event)?;
        }
    }
}

impl Board {
    fn new(screen: Screen) -> Self {
        Self { screen, bars: MultiProgress::new(), jobs: HashMap::new() }
    }

    fn add(&mut self, job_id: JobId, tool: &str) {
        if self.screen.is_watched() && !self.jobs.contains_key(&job_id) {
            let bar = progress::job(self.screen, &format!("{job_id} {tool}"));
            self.jobs.insert(job_id, self.bars.add(bar));
        }
    }

    fn show(&mut self, event: &SequencedEvent) -> Result<(), Failure> {
        match &event.event {
            Event::JobStateChanged { job_id, tool, .. } if self.screen.is_watched() => {
                self.add(*job_id, tool);
            }
            Event::JobProgress { job_id, percent, message } if self.screen.is_watched() => {
                if let Some(bar) = self.jobs.get(job_id) {
                    progress::job_at(bar, *percent, message);
                }
                return Ok(());
            }
            Event::JobStateChanged { .. }
            | Event::JobProgress { .. }
            | Event::StreamChunk { .. }
            | Event::ArtifactCreated { .. }
            | Event::ToolsChanged { .. }
            | Event::ClientToolRequest(_)
            | Event::ClientToolRegistered(_)
            | Event::ClientToolUnregistered(_)
            | Event::ClientToolExecuting(_)
            | Event::ClientToolCompleted { .. }
            | Event::ClientToolFailed { .. }
            | Event::SessionStateChanged { .. }
            | Event::StreamStarted { .. }
            | Event::StreamEnded { .. }
            | Event::GardenTransport(_)
            | Event::GardenRegion(_)
            | Event::GardenTrouble(_)
            | Event::GardenPosition(_) => {}
        }
        if let Event::JobStateChanged { job_id, state, .. } = &event.event
            && state.is_terminal()
            && let Some(bar) = self.jobs.remove(job_id)
        {
            bar.finish_and_clear();
        }
        self.bars.suspend(|| self.screen.item(event, event_text))
    }

    fn clear(&mut self) {
        for bar in self.jobs.values() {
            bar.finish_and_clear();
        }
    }
}

fn types() -> Vec<String> {
    ["job.state_changed", "job.progress"].map(str::to_owned).to_vec()
}

fn outcome(screen: Screen, job: JobStatusResponse) -> Result<(), Failure> {
    match job.error {
        Some(error) => Err(ringback_proto::Error::from(error).into()),
        None if screen.is_json() => screen.item(&job, |_| String::new()),
        None => super::show(screen, &job),
    }
}
