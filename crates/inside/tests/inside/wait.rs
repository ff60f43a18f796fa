//! `wait`: the process of a container without a command of its own.

use std::process::Stdio;

use ringback_testkit::{soon, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Command;

use crate::support::program;

/// SIGTERM in the mask of handled signals in `/proc`.
const TERMINATE: u64 = 1 << (15 - 1);

/// Whether a process handles SIGTERM and has no children left.
fn is_settled(pid: i32) -> bool {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap();
    let status = read("status");
    let handled = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    let handled = u64::from_str_radix(handled.trim(), 16).unwrap();
    handled & TERMINATE != 0 && read(&format!("task/{pid}/children")).trim().is_empty()
}

/// Rule: the waiting process of a container reaps orphaned children, and ends on a signal.
#[tokio::test]
async fn it_reaps_what_it_inherits_and_ends_when_it_is_told() {
    let mut child = Command::new("/bin/sh")
        .args(["-c", "(exit 3) & exec \"$0\" wait"])
        .arg(program())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let pid = child.id().unwrap().cast_signed();
    wait_for("it waits", async || is_settled(pid)).await;
    assert!(child.try_wait().unwrap().is_none(), "it waits although its input has ended");
    kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
    assert_eq!(soon(child.wait()).await.unwrap().code(), Some(0));
}
