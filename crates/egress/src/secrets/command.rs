//! The output of a command, within the time and size limits of a key.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::key::KEY_BYTES_MAX;

/// Runs a program, without a shell and without input, and returns what it printed. Its error output
/// is dropped: it may be as secret as the rest.
pub(super) async fn output(command: &[String], patience: Duration) -> Result<String, String> {
    let Some((program, arguments)) = command.split_first() else {
        return Err("is empty".to_owned());
    };
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("cannot be started: {error}"))?;
    let group = child.id();
    match timeout(patience, printed(&mut child)).await {
        Ok(Ok(text)) => Ok(text),
        Ok(Err(reason)) => {
            end(group, &mut child).await;
            Err(reason)
        }
        Err(_) => {
            end(group, &mut child).await;
            Err(format!("did not finish within {} s", patience.as_secs()))
        }
    }
}

async fn printed(child: &mut Child) -> Result<String, String> {
    let mut bytes = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        let mut stdout = stdout.take(KEY_BYTES_MAX + 1);
        let read = stdout.read_to_end(&mut bytes).await;
        read.map_err(|error| format!("gave output that cannot be read: {error}"))?;
    }
    if bytes.len() as u64 > KEY_BYTES_MAX {
        return Err(format!("printed more than {KEY_BYTES_MAX} bytes"));
    }
    let status = child.wait().await.map_err(|error| format!("cannot be waited for: {error}"))?;
    if !status.success() {
        return Err(format!("failed ({status})"));
    }
    String::from_utf8(bytes).map_err(|_| "did not print UTF-8".to_owned())
}

/// Kills it and everything it started.
async fn end(group: Option<u32>, child: &mut Child) {
    let group = group.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    if let Some(group) = group
        && let Err(error) = kill_process_group(group, Signal::KILL)
    {
        tracing::debug!(%error, "a secret's command has already ended");
    }
    if let Err(error) = child.wait().await {
        tracing::debug!(%error, "cannot wait for a secret's command");
    }
}
