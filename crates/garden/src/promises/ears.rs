//! How the garden learns that a job has ended: from events, or by asking.

use std::collections::BTreeSet;
use std::time::Duration;

use ringback_client::{Client, Credentials, Notice, Subscriber};
use ringback_proto::Event;
use ringback_proto::ids::JobId;

use super::{JOBS_PER_POLL, RETRY_PAUSE, ended_of};

/// The topic of the events about jobs.
const TOPIC: &str = "job.state_changed";

/// How often all jobs are looked at: an event may be lost before the subscription is in effect,
/// and that leaves no gap to see.
const LOOK_TIME: Duration = Duration::from_secs(15);

/// How long the daemon may wait with its answer, without events.
const POLL_TIME: Duration = Duration::from_secs(20);

/// The same while there are more jobs than one question takes.
const SHORT_POLL_TIME: Duration = Duration::from_secs(1);

/// What was heard.
#[derive(Debug)]
pub(super) enum Heard {
    /// These jobs have ended.
    Ended(Vec<JobId>),
    /// Any job may have ended.
    Unclear,
}

/// Where news of jobs come from.
pub(super) enum Ears {
    /// From the daemon's events.
    Events(Subscriber),
    /// From questions; the jobs from this one on are asked for next.
    Questions(Option<JobId>),
}

impl Ears {
    /// Subscribes to the events, if the endpoint is known and answers.
    pub(super) async fn open(events: Option<(String, Credentials)>) -> Self {
        let Some((endpoint, credentials)) = events else { return Self::Questions(None) };
        match Subscriber::connect(&endpoint, &credentials, vec![TOPIC.to_owned()]).await {
            Ok(subscriber) => Self::Events(subscriber),
            Err(error) => {
                tracing::warn!(%error, "asking for jobs instead of listening to events");
                Self::Questions(None)
            }
        }
    }

    /// Waits for news of the jobs.
    ///
    /// # Cancel safety
    /// A wait that is dropped loses no event.
    pub(super) async fn listen(&mut self, client: &Client, jobs: &BTreeSet<JobId>) -> Heard {
        match self {
            Self::Events(subscriber) => {
                let heard = listen_to_events(subscriber, jobs);
                match tokio::time::timeout(LOOK_TIME, heard).await {
                    Ok(Some(heard)) => heard,
                    Ok(None) => {
                        *self = Self::Questions(None);
                        Heard::Unclear
                    }
                    Err(_) => Heard::Unclear,
                }
            }
            Self::Questions(from) => ask(client, jobs, from).await,
        }
    }
}

/// Waits for the next event about one of the jobs; `None` if no more come.
async fn listen_to_events(subscriber: &mut Subscriber, jobs: &BTreeSet<JobId>) -> Option<Heard> {
    loop {
        match subscriber.next().await.ok()? {
            Notice::Event(event) => {
                if let Event::JobStateChanged { job_id, state, .. } = event.event
                    && state.is_terminal()
                    && jobs.contains(&job_id)
                {
                    return Some(Heard::Ended(vec![job_id]));
                }
            }
            Notice::Missed(_) => return Some(Heard::Unclear),
            Notice::Data(_) | Notice::Other { .. } => {}
        }
    }
}

/// Asks for some of the jobs, others each time.
async fn ask(client: &Client, jobs: &BTreeSet<JobId>, from: &mut Option<JobId>) -> Heard {
    let rest = jobs.iter().filter(|job_id| from.is_none_or(|from| **job_id >= from));
    let mut asked: Vec<JobId> = rest.copied().take(JOBS_PER_POLL + 1).collect();
    let next = if asked.len() > JOBS_PER_POLL { asked.pop() } else { None };
    if asked.is_empty() && from.is_none() {
        return std::future::pending().await;
    }
    let wait = if next.is_none() && from.is_none() { POLL_TIME } else { SHORT_POLL_TIME };
    let ended = if asked.is_empty() { Ok(asked) } else { ended_of(client, asked, wait).await };
    *from = next;
    match ended {
        Ok(ended) => Heard::Ended(ended),
        Err(error) => {
            tracing::debug!(%error, "cannot ask for jobs");
            tokio::time::sleep(RETRY_PAUSE).await;
            Heard::Unclear
        }
    }
}
