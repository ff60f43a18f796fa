//! Agents that fill the disk: they are ended, the daemon and the other agents go on.

use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use ringback_broker::{Credential, Disk, DiskLimits, DiskReserve, Space};
use ringback_proto::request::{ProjectResponse, SessionEventInfo};

use crate::common::start_with;
use crate::confinement::with_shell;
use crate::sessions::{
    call, is_idle, named, project, refused, said, say, to_project, to_session, until,
};

const MIB: u64 = 1 << 20;
/// Writes forever, in files of 4 MiB.
const WRITER: &str =
    "n=0; while head -c 4194304 /dev/zero > file$n; do n=$((n+1)); sleep 0.02; done";

/// A disk of this size that only the workspaces use: other use of the disk that the test runs on
/// does not matter.
#[derive(Debug)]
struct SmallDisk {
    total: u64,
    workspaces: Utf8PathBuf,
}

impl Disk for SmallDisk {
    fn space(&self, _: &Utf8Path) -> std::io::Result<Space> {
        let used = used(self.workspaces.as_std_path());
        Ok(Space { free: self.total.saturating_sub(used), total: self.total, inodes: None })
    }
}

fn used(path: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let size = |path: std::path::PathBuf| match path.symlink_metadata() {
        Ok(found) if found.is_dir() => used(&path),
        Ok(found) => found.blocks() * 512,
        Err(_) => 0,
    };
    entries.map(|entry| size(entry.path())).sum()
}

fn is_ended(event: &SessionEventInfo) -> bool {
    event.kind == "error" && event.text.as_deref().is_some_and(|it| it.contains("agent stopped: "))
}

/// Rule: an agent whose workspace exceeds its limit is ended, and the session says why; a message
/// resumes it once there is space.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_ended_that_has_more_than_it_may() {
    let fixture = start_with(|config| {
        with_shell(config);
        config.sessions.disk.workspace_bytes = Some(16 * MIB);
        config.sessions.disk.keep_free = DiskReserve::Bytes(0);
    })
    .await;
    let who = Credential::local();
    let project = project(&fixture, &who).await;
    // The home counts as well.
    let text = format!("cd ~; {WRITER}");
    let session = say(&fixture, &who, to_project(project, &text)).await.session_id;
    let events = until(&fixture, &who, session, -1, is_ended).await;
    let text = events.last().unwrap().text.clone().unwrap();
    assert!(text.contains("16.0 MiB") && text.contains("sandbox.workspace"), "{text}");
    let since = i64::try_from(events.last().unwrap().index).unwrap();
    until(&fixture, &who, session, since, is_idle).await;
    let homes = fixture.dir().join("data/homes");
    let left = used(&homes);
    assert!(left < 512 * MIB, "it was ended in time: {left}");
    for home in std::fs::read_dir(&homes).unwrap().flatten() {
        for file in std::fs::read_dir(home.path()).unwrap().flatten() {
            std::fs::remove_file(file.path()).unwrap();
        }
    }
    let told = say(&fixture, &who, to_session(session, "echo goes on")).await;
    let events = until(&fixture, &who, session, told.last_event_index, is_idle).await;
    assert_eq!(said(&events), ["goes on "]);
}

/// REQ: "a full disk [..] hurting the daemon or another session" must not happen: when the disk
/// runs short, the agent that fills it is ended; another agent and the store go on, and no new
/// agent starts.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_ends_who_fills_it_and_nobody_else() {
    let fixture = start_with(|config| {
        with_shell(config);
        let workspaces = config.data_dir.join("workspaces");
        let disk = Arc::new(SmallDisk { total: 512 * MIB, workspaces });
        let keep_free = DiskReserve::Bytes(400 * MIB);
        config.sessions.disk =
            DiskLimits { workspace_bytes: None, keep_free, disk, ..DiskLimits::default() };
    })
    .await;
    let who = Credential::local();
    let (one, two) = (project(&fixture, &who).await, project(&fixture, &who).await);
    let calm = say(&fixture, &who, to_project(two, "echo here")).await.session_id;
    until(&fixture, &who, calm, -1, is_idle).await;

    let writer = say(&fixture, &who, to_project(one, WRITER)).await.session_id;
    let events = until(&fixture, &who, writer, -1, is_ended).await;
    let text = events.last().unwrap().text.clone().unwrap();
    assert!(text.contains("sandbox.keep_free") && text.contains("grew fastest"), "{text}");
    let since = i64::try_from(events.last().unwrap().index).unwrap();
    until(&fixture, &who, writer, since, is_idle).await;
    assert!(used(&fixture.dir().join("data/workspaces")) < 512 * MIB, "some space was kept free");

    // The other one goes on, and so does the store.
    let told = say(&fixture, &who, to_session(calm, "echo small > note; cat note")).await;
    let events = until(&fixture, &who, calm, told.last_event_index, is_idle).await;
    assert_eq!(said(&events), ["small "]);
    let stored: ProjectResponse = call(&fixture, &who, named("still stored")).await;
    let (code, message) = refused(&fixture, &who, to_project(stored.project_id, "echo x")).await;
    assert!(code == "busy" && message.contains("sandbox.keep_free"), "{code}: {message}");
}
