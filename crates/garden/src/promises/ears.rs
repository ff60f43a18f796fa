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
        if let Some(heard) = heard(&subscriber.next().await.ok()?, jobs) {
            return Some(heard);
        }
    }
}

/// Returns what a notice says about the jobs. After a gap, any of them may have ended.
fn heard(notice: &Notice, jobs: &BTreeSet<JobId>) -> Option<Heard> {
    match notice {
        Notice::Event(event) => {
            if let Event::JobStateChanged { job_id, state, .. } = &event.event
                && state.is_terminal()
                && jobs.contains(job_id)
            {
                return Some(Heard::Ended(vec![*job_id]));
            }
            None
        }
        Notice::Missed(_) => Some(Heard::Unclear),
        Notice::Data(_) | Notice::Other { .. } => None,
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

#[cfg(test)]
mod tests {
    use ringback_client::Gap;
    use ringback_proto::event::SequencedEvent;
    use ringback_proto::record::JobState;

    use super::*;

    fn notice(job_id: JobId, state: JobState) -> Notice {
        let event = Event::JobStateChanged { job_id, tool: "render".to_owned(), state };
        Notice::Event(SequencedEvent { epoch: 1, seq: 1, topic_seq: 1, at_ms: 1, event })
    }

    /// Rule: an event says which job to look at; after a gap, all of them are looked at.
    #[test]
    fn a_gap_in_the_events_makes_every_job_unclear() {
        let [ours, other] = [1, 2].map(|number| JobId::from_random([number; 16]));
        let jobs = BTreeSet::from([ours]);
        for state in [JobState::Complete, JobState::Failed, JobState::Cancelled] {
            let ended = heard(&notice(ours, state), &jobs);
            assert!(matches!(ended, Some(Heard::Ended(ended)) if ended == [ours]), "{state:?}");
            assert!(heard(&notice(other, state), &jobs).is_none(), "{state:?}");
        }
        assert!(heard(&notice(ours, JobState::Running), &jobs).is_none());
        let gap = Gap { topic: TOPIC.to_owned(), missed: 3..=4 };
        assert!(matches!(heard(&Notice::Missed(gap), &jobs), Some(Heard::Unclear)));
    }
}
