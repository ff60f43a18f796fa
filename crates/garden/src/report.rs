//! Reports events to the daemon, in the order in which they happened. Nothing waits for it.

use ringback_client::{Client, LinkState};
use ringback_proto::garden::GardenEvent;
use ringback_proto::request::GardenReportRequest;
use ringback_proto::tool::tools::GardenReport;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Events of one report.
const EVENTS_PER_REPORT: usize = 256;

/// How long the last events may take when the garden ends.
const LAST_REPORT_TIME: std::time::Duration = std::time::Duration::from_secs(1);

/// Reports events until the garden ends.
#[derive(Debug)]
pub(crate) struct Reporter {
    tasks: JoinSet<()>,
}

impl Reporter {
    pub(crate) fn start(client: Client, events: mpsc::Receiver<GardenEvent>) -> Self {
        let mut tasks = JoinSet::new();
        tasks.spawn(report_all(client, events));
        Self { tasks }
    }

    /// Waits for the last events, after the garden has ended.
    pub(crate) async fn finish(mut self) {
        if tokio::time::timeout(LAST_REPORT_TIME, self.tasks.join_next()).await.is_err() {
            tracing::debug!("the daemon did not take the last events of the garden");
        }
    }
}

async fn report_all(client: Client, mut events: mpsc::Receiver<GardenEvent>) {
    let mut link = client.link();
    let mut batch = Vec::new();
    while events.recv_many(&mut batch, EVENTS_PER_REPORT).await > 0 {
        let mut report = std::mem::take(&mut batch);
        while let Err(error) = send(&client, &report).await {
            tracing::debug!(%error, "events of the garden wait for the daemon");
            // A position is of no use later.
            report.retain(|event| !matches!(event, GardenEvent::Position(_)));
            let is_down = *link.borrow() != LinkState::Up;
            if report.is_empty() || !is_down {
                break;
            }
            if link.wait_for(|state| *state == LinkState::Up).await.is_err() {
                return;
            }
        }
    }
}

async fn send(client: &Client, events: &[GardenEvent]) -> Result<(), ringback_proto::Error> {
    let request = GardenReportRequest { events: events.to_vec() };
    client.submit::<GardenReport>(request).await.map(drop)
}
