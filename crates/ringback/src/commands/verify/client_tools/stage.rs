//! The daemon of a verification, the proxy to it, and a caller of the candidate's tools.

use std::net::SocketAddr;
use std::time::Duration;

use ringback_client::line::{ClientAnswer, LineCaller, LineError};
use ringback_proto::secret::Secret;
use serde_json::value::RawValue;

use super::proxy::Proxy;
use crate::commands::temporary_daemon::TemporaryDaemon;
use crate::config::PlainMillis;
use crate::failure::Failure;

/// Often enough that every check sees several.
const PING: PlainMillis = PlainMillis(200);
/// The polling interval.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Reached only when a candidate does not do what it should.
const PATIENCE: Duration = Duration::from_secs(10);

/// Everything the checks use.
pub(super) struct Stage {
    daemon: TemporaryDaemon,
    pub(super) proxy: Proxy,
    pub(super) token: Secret,
    caller: LineCaller,
}

/// The candidate's tools, by their full names.
#[derive(Debug)]
pub(super) struct Tools {
    pub(super) echo: String,
    pub(super) slow: String,
    pub(super) fail: String,
}

impl Stage {
    /// Starts a daemon, and listens for the candidate at `listen`.
    pub(super) async fn open(listen: SocketAddr) -> Result<Self, Failure> {
        let daemon = TemporaryDaemon::start("verify", |config| {
            config.client_tools.keepaliveInterval = PING;
        });
        let daemon = daemon.await?;
        let token = daemon.token()?;
        let address = daemon.listening().http.trim_start_matches("http://").to_owned();
        let http = address
            .parse()
            .map_err(|_| Failure::Wrong(format!("`{address}` is not an address")))?;
        let action = "listen for the candidate";
        let proxy = Proxy::start(listen, http)
            .await
            .map_err(|source| Failure::System { action, source })?;
        let caller = LineCaller::new(address, Some(&token))?;
        Ok(Self { daemon, proxy, token, caller })
    }

    pub(super) fn token_file(&self) -> String {
        let file = self.daemon.listening().token_file.as_ref();
        file.map(|path| path.display().to_string()).unwrap_or_default()
    }

    /// Waits until a client offers the three tools on one line.
    pub(super) async fn candidate(&self, wait: Duration) -> Result<Tools, Failure> {
        let looking = async {
            loop {
                let names = self.caller.tools().await?;
                if let Some(tools) = Tools::among(&names) {
                    return Ok(tools);
                }
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        tokio::time::timeout(wait, looking).await.unwrap_or_else(|_| {
            let text = format!(
                "no candidate registered `echo`, `slow` and `fail` under one clientID within {wait:?}"
            );
            Err(Failure::Wrong(text))
        })
    }

    /// Calls a tool of the candidate.
    pub(super) async fn call(
        &self,
        tool: &str,
        request_id: &str,
        input: &str,
    ) -> Result<ClientAnswer, LineError> {
        let input = RawValue::from_string(input.to_owned()).map_err(|error| {
            LineError::Unreadable { action: "call a client tool", reason: error.to_string() }
        })?;
        self.caller.execute(tool, request_id, &input).await
    }

    /// Waits until a call was sent to the candidate this many times.
    pub(super) async fn delivered(&self, request_id: &str, times: usize) -> Result<(), String> {
        let looking = async {
            while self.proxy.n_delivered(request_id) < times {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        tokio::time::timeout(PATIENCE, looking).await.map_err(|_| match times {
            1 => "the call did not reach the candidate: is its stream open?".to_owned(),
            _ => "the stream was not reopened within 10 s".to_owned(),
        })
    }

    /// Stops the daemon and removes its directory.
    pub(super) async fn close(self) -> Result<(), Failure> {
        drop(self.proxy);
        self.daemon.close().await
    }
}

impl Tools {
    /// Returns the tools of the first client that has all three.
    fn among(names: &[String]) -> Option<Self> {
        let has = |name: &String| names.contains(name);
        names.iter().find_map(|echo| {
            let client = echo.strip_suffix("_echo")?;
            let (slow, fail) = (format!("{client}_slow"), format!("{client}_fail"));
            (has(&slow) && has(&fail)).then(|| Self { echo: echo.clone(), slow, fail })
        })
    }
}
