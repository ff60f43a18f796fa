//! A worker: offers tools to a daemon, and runs the calls that come back.

mod credit;
mod task;
mod tools;

use std::sync::Arc;

use ringback_proto::Error;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use self::task::WorkerTask;
pub use self::tools::{WorkerCall, WorkerTools};
use crate::config::Config;
use crate::error::{ConnectError, closed};
use crate::link_loop::LinkLoop;
use crate::transport::Dealer;

/// Why a worker cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The connection failed.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The daemon refuses its tools.
    #[error("the daemon refuses the tools of service `{service}`")]
    Refused {
        /// The name of the service.
        service: String,
        /// The reason it reports.
        #[source]
        source: Error,
    },
}

/// Whether the tools can be called.
#[derive(Debug, Clone)]
pub enum ServingState {
    /// The daemon has not answered yet.
    Asking,
    /// They can be called.
    Yes,
    /// The daemon refuses them.
    Refused(Error),
    /// The connection is lost; reconnecting.
    Down,
}

/// A worker that serves until it is closed or dropped. After a lost connection it offers its tools
/// again automatically.
#[derive(Debug)]
#[must_use = "a worker ends when it is dropped"]
pub struct Worker {
    serving: watch::Receiver<ServingState>,
    close: mpsc::Sender<oneshot::Sender<()>>,
    /// Aborts the task with the worker.
    _task: JoinSet<()>,
}

impl Worker {
    /// Connects and offers tools; returns once the daemon has accepted them.
    ///
    /// # Errors
    /// Without a connection, or when the daemon refuses the tools.
    ///
    /// # Cancel safety
    /// A wait that is dropped leaves no worker behind.
    pub async fn serve(config: Config, tools: WorkerTools) -> Result<Self, ServeError> {
        let (dealer, mut link) = Dealer::open(&config.endpoint, &config.credentials).await?;
        let connection_id = link.up(&config.endpoint, config.connect_timeout).await?;
        let (state, mut serving) = watch::channel(ServingState::Asking);
        let (close, closing) = mpsc::channel(1);
        let service = tools.service().to_owned();
        let link = LinkLoop::new(&config, dealer, link, connection_id);
        let task = WorkerTask::new(&config, Arc::new(tools), link, state, closing);
        let mut tasks = JoinSet::new();
        tasks.spawn(task.run());
        let is_answer = |serving: &ServingState| {
            matches!(serving, ServingState::Yes | ServingState::Refused(_))
        };
        let decided = tokio::time::timeout(config.connect_timeout, serving.wait_for(is_answer));
        let answer = match decided.await {
            Ok(Ok(answer)) => answer.clone(),
            Ok(Err(_)) => ServingState::Refused(closed()),
            Err(_) => {
                let (endpoint, timeout) = (config.endpoint.clone(), config.connect_timeout);
                return Err(ConnectError::Unreachable { endpoint, timeout }.into());
            }
        };
        match answer {
            ServingState::Refused(source) => Err(ServeError::Refused { service, source }),
            ServingState::Asking | ServingState::Yes | ServingState::Down => {
                Ok(Self { serving, close, _task: tasks })
            }
        }
    }

    /// Watches whether its tools can be called.
    #[must_use]
    pub fn serving(&self) -> watch::Receiver<ServingState> {
        self.serving.clone()
    }

    /// Disconnects: notifies the daemon, stops running calls, and returns when that is done.
    pub async fn close(self) {
        let (done, closed) = oneshot::channel();
        if self.close.send(done).await.is_ok() {
            // An error means that it had already ended.
            drop(closed.await);
        }
    }
}
