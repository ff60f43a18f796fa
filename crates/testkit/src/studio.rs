//! Music tools that answer when a test says so.

use std::sync::Arc;

use ringback_broker::studio::{AsyncTool, StudioContext, StudioTools, SyncTool, ToolFuture};
use ringback_proto::{Error, ErrorKind, Result, Tool, ToolResponse};
use tokio::sync::watch;

/// Music tools whose calls wait until there is an answer. Clones share it.
#[derive(Debug, Clone)]
pub struct GatedStudio {
    answer: Arc<watch::Sender<Option<ToolResponse>>>,
}

impl Default for GatedStudio {
    fn default() -> Self {
        Self { answer: Arc::new(watch::Sender::new(None)) }
    }
}

impl GatedStudio {
    /// Answers the calls that wait, and those to come.
    pub fn open(&self, answer: impl Into<ToolResponse>) {
        self.answer.send_replace(Some(answer.into()));
    }

    /// Lets calls wait again.
    pub fn close(&self) {
        self.answer.send_replace(None);
    }
}

impl<T: Tool> SyncTool<T> for GatedStudio {
    fn answer(&self, _: T::Request) -> Result<T::Response> {
        Err(Error::new(ErrorKind::NotFound, "a tool that cannot wait"))
    }
}

impl<T: Tool + 'static> AsyncTool<T> for GatedStudio {
    fn work(self: Arc<Self>, _: StudioContext, _: T::Request) -> ToolFuture<T> {
        let mut answer = self.answer.subscribe();
        Box::pin(async move {
            let answer = answer.wait_for(Option::is_some).await.ok().and_then(|it| it.clone());
            let answer = answer.and_then(|answer| T::Response::try_from(answer).ok());
            answer.ok_or_else(|| Error::new(ErrorKind::ToolFailed, "an answer of another tool"))
        })
    }
}

impl StudioTools for GatedStudio {
    fn services(&self) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }
}
