//! The MCP server of the scripted agent, whose answers may come in any order.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};

use ringback_mcp_wire::{Era, RawValue};
use tokio::time::{Instant, timeout_at};

use crate::mcp_client::{ServerAnswer, ServerMessage, ServerSpec, ToolServer};

/// An MCP server.
#[derive(Debug)]
pub(super) struct Mcp {
    server: ToolServer,
    /// Answers that were not waited for yet.
    answers: HashMap<u64, Answer>,
    /// Announced changes of the tool list that were not waited for yet.
    n_changes: u64,
}

/// The result of a request.
pub(super) type Answer = ServerAnswer;

impl Mcp {
    /// Starts a server and shakes hands with it, according to the era.
    pub(super) async fn start(
        program: &OsStr,
        args: &[OsString],
        env: &[(String, String)],
        era: Era,
    ) -> Result<Self, String> {
        let (command, args) = (program.to_owned(), args.to_owned());
        let spec = ServerSpec { command, args, era, more_env: env.to_vec() };
        let server = ToolServer::start(&spec).await.map_err(|error| error.to_string())?;
        Ok(Self { server, answers: HashMap::new(), n_changes: 0 })
    }

    /// Sends a request, and returns its ID.
    pub(super) async fn ask(&mut self, method: &str, params: &RawValue) -> Result<u64, String> {
        let id = self.server.ask(method, params).map_err(|error| error.to_string())?;
        self.flush().await?;
        Ok(id)
    }

    /// Cancels a request.
    pub(super) async fn cancel(&mut self, id: u64) -> Result<(), String> {
        self.server.cancel(id).map_err(|error| error.to_string())?;
        self.flush().await
    }

    async fn flush(&mut self) -> Result<(), String> {
        self.server.flush().await.map_err(|error| error.to_string())
    }

    /// Waits for an answer until a deadline; `None` if it does not come.
    pub(super) async fn answer_or_not(
        &mut self,
        id: u64,
        until: Instant,
    ) -> Result<Option<Answer>, String> {
        loop {
            if let Some(answer) = self.answers.remove(&id) {
                return Ok(Some(answer));
            }
            if self.read(until).await?.is_none() {
                return Ok(None);
            }
        }
    }

    /// Waits until a change of the tool list is announced; `false` after the deadline.
    pub(super) async fn change(&mut self, until: Instant) -> Result<bool, String> {
        while self.n_changes == 0 {
            if self.read(until).await?.is_none() {
                return Ok(false);
            }
        }
        self.n_changes = 0;
        Ok(true)
    }

    /// Returns the names of all tools.
    pub(super) async fn tools(&mut self, until: Instant) -> Result<Vec<String>, String> {
        let tools = self.server.tools(until).await.map_err(|error| error.to_string())?;
        Ok(tools.into_iter().map(|tool| tool.name).collect())
    }

    /// Reads the next message; `None` after the deadline.
    async fn read(&mut self, until: Instant) -> Result<Option<()>, String> {
        match timeout_at(until, self.server.next()).await {
            Err(_) => return Ok(None),
            Ok(Err(error)) => return Err(error.to_string()),
            Ok(Ok(ServerMessage::Answer(id, answer))) => drop(self.answers.insert(id, answer)),
            Ok(Ok(ServerMessage::Changed)) => self.n_changes += 1,
            Ok(Ok(ServerMessage::Progress { .. })) => {}
        }
        Ok(Some(()))
    }
}
