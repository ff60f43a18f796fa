//! The order in which the daemon ends: from the outside in, with one grace period per layer.

use std::fmt;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::stage::{Panics, Stage, StageEnd};

/// The layers of the daemon, outermost first. They stop in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// Accept loops: after this no new connection is accepted.
    Accepting,
    /// Connections and the requests on them.
    Edges,
    /// Jobs and sessions.
    Jobs,
    /// The broker's own tasks: upkeep, events, timers.
    Broker,
    /// The store's writer: everything acknowledged is on disk when it ends.
    Store,
}

/// The phase of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// All layers run.
    Running,
    /// This layer is stopping; those outside it have ended.
    Stopping(Layer),
    /// Nothing runs.
    Stopped,
}

/// How long each layer may take before its tasks are aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Graces {
    /// An accept loop has nothing to finish; a second covers a busy scheduler.
    pub accepting: Duration,
    /// Long enough for a request in flight; streams watch their token and end immediately.
    pub edges: Duration,
    /// Jobs are durable: one that does not end here is `interrupted` at the next start.
    pub jobs: Duration,
    /// The broker only has bookkeeping left when no one calls it any more.
    pub broker: Duration,
    /// The last commit must reach the disk, even a slow one.
    pub store: Duration,
}

/// How one layer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageReport {
    /// The layer.
    pub layer: Layer,
    /// Whether its tasks ended on their own.
    pub stopped: StageEnd,
    /// What panicked in it while it ran.
    pub panics: Panics,
}

/// Owns the stages of the daemon and ends them in order.
///
/// Dropping it aborts every task of every stage.
#[must_use = "dropping it aborts every task"]
#[derive(Debug)]
pub struct Shutdown {
    stages: [Stage; 5],
    graces: Graces,
    phase: watch::Sender<Phase>,
}

impl Layer {
    /// All layers, in the order in which they stop.
    pub const ALL: [Self; 5] =
        [Self::Accepting, Self::Edges, Self::Jobs, Self::Broker, Self::Store];

    /// The layer's name in logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accepting => "accepting",
            Self::Edges => "edges",
            Self::Jobs => "jobs",
            Self::Broker => "broker",
            Self::Store => "store",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running => f.write_str("running"),
            Self::Stopping(layer) => write!(f, "stopping {}", layer.name()),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

impl Default for Graces {
    fn default() -> Self {
        Self {
            accepting: Duration::from_secs(1),
            edges: Duration::from_secs(4),
            jobs: Duration::from_secs(3),
            broker: Duration::from_secs(1),
            store: Duration::from_secs(10),
        }
    }
}

impl Graces {
    const fn of(&self, layer: Layer) -> Duration {
        match layer {
            Layer::Accepting => self.accepting,
            Layer::Edges => self.edges,
            Layer::Jobs => self.jobs,
            Layer::Broker => self.broker,
            Layer::Store => self.store,
        }
    }
}

impl Shutdown {
    /// Creates five empty stages.
    pub fn new(graces: Graces) -> Self {
        let (phase, _) = watch::channel(Phase::Running);
        Self { stages: Layer::ALL.map(|layer| Stage::new(layer.name())), graces, phase }
    }

    /// The stage of a layer, to start tasks in.
    pub fn stage(&self, layer: Layer) -> &Stage {
        &self.stages[layer as usize]
    }

    /// Fires when a layer should stop.
    #[must_use]
    pub fn token(&self, layer: Layer) -> CancellationToken {
        self.stage(layer).token()
    }

    /// Follows the phase; readiness is `Phase::Running`.
    #[must_use]
    pub fn phase(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    /// Stops every layer, outermost first; each one only after the one before has ended.
    ///
    /// # Cancel safety
    /// Dropping the future aborts the remaining tasks.
    pub async fn run(self) -> Vec<StageReport> {
        let Self { stages, graces, phase } = self;
        let mut reports = Vec::with_capacity(stages.len());
        for (layer, stage) in Layer::ALL.into_iter().zip(stages) {
            enter(&phase, Phase::Stopping(layer));
            let panics = stage.panics();
            let stopped = stage.shutdown(graces.of(layer)).await;
            if let StageEnd::Forced { n_aborted, names } = &stopped {
                tracing::warn!(stage = layer.name(), n_aborted, ?names, "tasks had to be aborted");
            }
            let panics = panics.borrow().clone();
            reports.push(StageReport { layer, stopped, panics });
        }
        enter(&phase, Phase::Stopped);
        reports
    }
}

fn enter(sender: &watch::Sender<Phase>, phase: Phase) {
    tracing::info!(%phase, "shutdown");
    sender.send_replace(phase);
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::{Arc, Mutex};

    use tokio::sync::{mpsc, oneshot};

    use super::{Graces, Layer, Phase, Shutdown};
    use crate::StageEnd;

    type StatusRequest = oneshot::Sender<&'static str>;

    #[tokio::test(start_paused = true)]
    async fn an_edge_may_still_call_the_core_while_it_drains() {
        let shutdown = Shutdown::new(Graces::default());
        let (calls, mut inbox) = mpsc::channel::<StatusRequest>(1);
        let core_stop = shutdown.token(Layer::Broker);
        let core = async move {
            loop {
                tokio::select! {
                    biased;
                    () = core_stop.cancelled() => return,
                    Some(reply) = inbox.recv() => reply.send("answered").unwrap(),
                }
            }
        };
        shutdown.stage(Layer::Broker).spawn("core", core).unwrap();

        let edge_stop = shutdown.token(Layer::Edges);
        let (seen, answer) = oneshot::channel();
        let edge = async move {
            edge_stop.cancelled().await;
            let (reply, answer) = oneshot::channel();
            calls.send(reply).await.unwrap();
            seen.send(answer.await.unwrap()).unwrap();
        };
        shutdown.stage(Layer::Edges).spawn("edge", edge).unwrap();

        let reports = shutdown.run().await;
        assert_eq!(answer.await.unwrap(), "answered");
        assert!(reports.iter().all(|report| report.stopped == StageEnd::Clean), "{reports:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn layers_stop_outside_in_and_one_that_hangs_does_not_hold_up_the_rest() {
        let shutdown = Shutdown::new(Graces::default());
        let order = Arc::new(Mutex::new(Vec::new()));
        for layer in Layer::ALL {
            let (token, order) = (shutdown.token(layer), Arc::clone(&order));
            let task = async move {
                token.cancelled().await;
                order.lock().unwrap().push(layer);
            };
            shutdown.stage(layer).spawn("orderly", task).unwrap();
        }
        shutdown.stage(Layer::Jobs).spawn("endless", pending()).unwrap();
        let mut phase = shutdown.phase();
        assert_eq!(*phase.borrow_and_update(), Phase::Running);

        let reports = shutdown.run().await;
        assert_eq!(*order.lock().unwrap(), Layer::ALL);
        assert_eq!(*phase.borrow_and_update(), Phase::Stopped);
        let forced = StageEnd::Forced { n_aborted: 1, names: vec!["endless".to_owned()] };
        for report in reports {
            let expected = if report.layer == Layer::Jobs { &forced } else { &StageEnd::Clean };
            assert_eq!(&report.stopped, expected);
        }
    }

    #[tokio::test]
    async fn the_report_tells_which_task_panicked() {
        let shutdown = Shutdown::new(Graces::default());
        shutdown.stage(Layer::Store).spawn("writer", async { panic!("disk") }).unwrap();
        let reports = shutdown.run().await;
        let first = reports[4].panics.first.clone().unwrap();
        assert_eq!((first.task.as_str(), first.message.as_str()), ("writer", "disk"));
    }
}
