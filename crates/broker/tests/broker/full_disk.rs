//! A disk that is really full: a small file system of the test's own. Ending and deleting need no
//! space on it, and a deadline is met whatever the store does.

use std::fs;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ringback_broker::{Answer, Config, Credential, DiskReserve};
use ringback_proto::envelope::CallOptions;
use ringback_proto::ids::{ProjectId, SessionId, WorkspaceId};
use ringback_proto::principal::KeyLevel;
use ringback_proto::record::SessionState;
use ringback_proto::request::{
    JobSleepRequest, ProjectCreateRequest, ProjectDeleteRequest, ProjectResponse,
    SessionCleanupRequest, SessionEventInfo, SessionEventsRequest, SessionGetRequest,
    SessionResponse, WorkspaceContentResponse, WorkspaceDeleteRequest, WorkspaceGetRequest,
    WorkspaceListRequest, WorkspaceListResponse,
};
use ringback_proto::{Certainty, ResponseEnvelope, ToolRequest};
use ringback_testkit::{wait_for, within};

use crate::common::{self, World, result};
use crate::confinement::with_shell;
use crate::sessions::{
    call, end, is_idle, named, project, refused, say, to_project, to_session, until, with_echo,
};

const MIB: u64 = 1 << 20;

/// A file system that ends with the test. Mounting one needs root, as sandboxes with limits do.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path, options: &str) -> Self {
        fs::create_dir_all(at).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "ringback-test"])
            .arg(at)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&mounted.stderr);
        assert!(mounted.status.success(), "these tests need root to mount a small disk: {said}");
        Self(at.to_owned())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Files that a task still has open go with the last of them.
        drop(Command::new("umount").arg("-l").arg(&self.0).status());
    }
}

/// A broker with its data on a small disk.
struct Place {
    // First, so that nothing uses the disk when it is unmounted.
    fixture: World,
    disk: SmallDisk,
    who: Credential,
}

fn small(config: &mut Config) {
    with_echo(config);
    config.sessions.disk.keep_free = DiskReserve::Bytes(0);
    config.sessions.disk.reserve_bytes = 2 * MIB;
    config.upload_bytes_max = 4 << 30;
}

impl Place {
    async fn new(options: &str, change: impl FnOnce(&mut Config)) -> Self {
        let mut disk = None;
        let fixture = common::start_with(|config| {
            small(config);
            change(config);
            disk = Some(SmallDisk::mount(config.data_dir.as_std_path(), options));
        })
        .await;
        Self { fixture, disk: disk.unwrap(), who: Credential::local() }
    }

    fn data(&self, name: &str) -> PathBuf {
        self.disk.0.join(name)
    }

    /// Starts a session and waits until its agent is idle.
    async fn session(&self) -> (ProjectId, SessionId, WorkspaceId) {
        let project = project(&self.fixture, &self.who).await;
        let told = say(&self.fixture, &self.who, to_project(project, "hello")).await;
        until(&self.fixture, &self.who, told.session_id, -1, is_idle).await;
        let get = SessionGetRequest { session_id: told.session_id };
        let session: SessionResponse = call(&self.fixture, &self.who, get).await;
        (project, told.session_id, session.workspace_id)
    }

    /// Fills the disk as an agent in this workspace does, until the store has no space for
    /// anything, and no reserve is left.
    async fn fill(&self, workspace: WorkspaceId) {
        let path = self.data("workspaces").join(workspace.to_string()).join("filler");
        for _ in 0..2000 {
            drop(fs::remove_file(self.data("reserve")));
            let mut file = fs::OpenOptions::new().append(true).create(true).open(&path).unwrap();
            while file.write_all(&[1; 64 << 10]).is_ok() {}
            while file.write_all(&[1; 512]).is_ok() {}
            let made = result(&self.fixture.broker, &self.who, named("more")).await;
            if let Err(error) = made {
                assert!(error.message.contains("the disk is full"), "{error:?}");
                return;
            }
        }
        panic!("the disk does not get full");
    }

    /// Runs a request, within the time limit.
    async fn done(&self, request: impl Into<ToolRequest>) {
        let answer = result(&self.fixture.broker, &self.who, request);
        within("an answer", answer).await.unwrap();
    }

    async fn workspaces(&self, project_id: ProjectId) -> usize {
        let list = WorkspaceListRequest { project_id };
        let found: WorkspaceListResponse = call(&self.fixture, &self.who, list).await;
        found.workspaces.len()
    }
}

fn delete(project_id: ProjectId, workspace_id: WorkspaceId) -> WorkspaceDeleteRequest {
    WorkspaceDeleteRequest { project_id, workspace_id }
}

/// REQ: "`session_end`, `workspace_delete` [..] work on a full disk": a session ends, and deleting
/// its workspace frees space, without a restart or other help.
#[tokio::test(flavor = "multi_thread")]
async fn what_ends_and_what_is_deleted_needs_no_room() {
    let place = Place::new("size=24m", |_| ()).await;
    let (project, session, workspace) = place.session().await;
    place.fill(workspace).await;
    within("an end", end(&place.fixture, &place.who, session)).await;
    let get = SessionGetRequest { session_id: session };
    let found: SessionResponse = call(&place.fixture, &place.who, get).await;
    assert_eq!(found.status, SessionState::Ended);
    place.done(delete(project, workspace)).await;
    assert!(!place.data("workspaces").join(workspace.to_string()).exists());
    assert_eq!(place.workspaces(project).await, 0);
    // There is space for everything again.
    let (project, session, workspace) = place.session().await;
    place.fill(workspace).await;
    end(&place.fixture, &place.who, session).await;
    let cleanup = SessionCleanupRequest { project_id: Some(project), max_age_hours: Some(0) };
    let cleaned = result(&place.fixture.broker, &place.who, cleanup);
    within("a cleanup", cleaned).await.unwrap();
    place.done(ProjectDeleteRequest { project_id: project }).await;
    place.done(named("room again")).await;
}

/// REQ: "the daemon's start work[s] on a full disk": it reads, ends and deletes, and refuses the
/// rest with a reason.
#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_starts_on_a_full_disk() {
    let place = Place::new("size=24m", |_| ()).await;
    let (project, session, workspace) = place.session().await;
    place.fill(workspace).await;
    let Place { fixture, disk, who } = place;
    let fixture = fixture.restart(Duration::from_secs(1)).await;
    let place = Place { fixture, disk, who };
    let (code, message) = refused(&place.fixture, &place.who, named("one more")).await;
    assert!(code == "busy" && message.contains("the disk is full"), "{code}: {message}");
    let get = SessionGetRequest { session_id: session };
    place.done(get).await;
    place.done(delete(project, workspace)).await;
    place.done(named("room again")).await;
}

/// Rule: the reserve is taken when there is space, released for records that must be written, and
/// not available to new work.
#[tokio::test(flavor = "multi_thread")]
async fn the_reserve_is_for_what_ends() {
    let place = Place::new("size=24m", |_| ()).await;
    let (_, session, workspace) = place.session().await;
    let reserve = place.data("reserve");
    wait_for("the reserve is taken automatically", async || reserve.exists()).await;
    // As `fill`, except for the reserve.
    let path = place.data("workspaces").join(workspace.to_string()).join("filler");
    for round in 0.. {
        let mut file = fs::OpenOptions::new().append(true).create(true).open(&path).unwrap();
        while file.write_all(&[1; 4096]).is_ok() {}
        if result(&place.fixture.broker, &place.who, named("more")).await.is_err() {
            break;
        }
        assert!(round < 2000);
    }
    assert!(reserve.exists(), "new work is refused before the reserve is released");
    end(&place.fixture, &place.who, session).await;
    assert!(!reserve.exists(), "an end is stored, at the cost of the reserve");
}

/// REQ: "a deadline is answered whatever the store does": that of a job whose end cannot be stored,
/// and that of a call beside it.
#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_is_answered_on_a_full_disk() {
    let place = Place::new("size=24m", |_| ()).await;
    let (_, session, workspace) = place.session().await;
    let job = waiting(&place, JobSleepRequest { milliseconds: 600_000 }.into(), 5000);
    place.fill(workspace).await;
    let poll = SessionEventsRequest {
        session_id: session,
        since_index: Some(10_000),
        max_events: None,
        wait_ms: Some(20_000),
        include_children: false,
        follow: false,
    };
    for call in [job, waiting(&place, poll.into(), 6000)] {
        let reply = within("an answer", call).await;
        let ResponseEnvelope::Error(error) = reply else { panic!("{reply:?}") };
        assert_eq!((error.code.as_str(), error.certainty), ("timeout", Certainty::MayHaveRun));
    }
}

/// A call that is waited for until this deadline. It has started when this returns.
fn waiting(
    place: &Place,
    request: ToolRequest,
    deadline_ms: u64,
) -> impl Future<Output = ResponseEnvelope> + use<> {
    let mut call = common::call(&place.who, request);
    call.envelope.options = CallOptions {
        wait_ms: Some(600_000),
        deadline_ms: std::num::NonZeroU64::new(deadline_ms),
        ..CallOptions::default()
    };
    let answer = place.fixture.broker.call(call);
    async move {
        match answer {
            Answer::Now(reply) => reply,
            Answer::Later(mut replies, _) => replies.next().await.unwrap(),
        }
    }
}

fn is_ended(event: &SessionEventInfo) -> bool {
    event.kind == "error" && event.text.as_deref().is_some_and(|it| it.contains("agent stopped: "))
}

/// Rule: inodes run out as bytes do: the agent that uses them up is ended, and no new agent starts.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_makes_too_many_files_is_ended() {
    let place = Place::new("size=64m,nr_inodes=4000", |config| {
        with_shell(config);
        config.sessions.disk.keep_free_inodes = DiskReserve::Bytes(1000);
    })
    .await;
    let one = project(&place.fixture, &place.who).await;
    let other = project(&place.fixture, &place.who).await;
    let text = "n=0; while : > file$n; do n=$((n+1)); sleep 0.001; done";
    let session = say(&place.fixture, &place.who, to_project(one, text)).await.session_id;
    let events = until(&place.fixture, &place.who, session, -1, is_ended).await;
    let text = events.last().unwrap().text.clone().unwrap();
    assert!(text.contains("sandbox.keep_free_inodes"), "{text}");
    let since = i64::try_from(events.last().unwrap().index).unwrap();
    until(&place.fixture, &place.who, session, since, is_idle).await;
    let (code, message) =
        refused(&place.fixture, &place.who, to_project(other, "echo again")).await;
    assert!(code == "busy" && message.contains("sandbox.keep_free_inodes"), "{code}: {message}");
}

/// Rule: a hole in a file takes no space in the workspace, and is not stored if there is no space
/// for it; nothing of it is left.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_with_holes_does_not_become_content_without_room() {
    let place =
        Place::new("size=64m", |config| config.sessions.disk.keep_free = DiskReserve::Bytes(MIB))
            .await;
    let (project_id, session, workspace_id) = place.session().await;
    let dir = place.data("workspaces").join(workspace_id.to_string());
    fs::File::create(dir.join("sparse")).unwrap().set_len(2_000_000_000).unwrap();
    fs::write(dir.join("large"), vec![7; 2 << 20]).unwrap();
    let get = |path: &str, archive| WorkspaceGetRequest {
        project_id,
        workspace_id,
        path: Some(path.to_owned()),
        recursive: false,
        archive,
        limit: None,
        cursor: None,
    };
    let (code, message) = refused(&place.fixture, &place.who, get("sparse", false)).await;
    assert!(code == "busy" && message.contains("sandbox.keep_free"), "{code}: {message}");
    let large: WorkspaceContentResponse =
        call(&place.fixture, &place.who, get("large", false)).await;
    assert!(large.content_hash.is_some());
    // The agent beside it is not ended for the attempts of others.
    let told = say(&place.fixture, &place.who, to_session(session, "still")).await;
    until(&place.fixture, &place.who, session, told.last_event_index, is_idle).await;
}

/// Rule: content that a session stores with its key counts towards its account, before it is
/// stored.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_stores_no_more_than_its_account_has() {
    let place = Place::new("size=64m", |config| {
        config.sessions.disk.workspace_bytes = Some(8 * MIB);
    })
    .await;
    let keyed = ProjectCreateRequest { key_level: Some(KeyLevel::Write), ..named("keyed") };
    let made: ProjectResponse = call(&place.fixture, &place.who, keyed).await;
    let told = say(&place.fixture, &place.who, to_project(made.project_id, "env")).await;
    let events = until(&place.fixture, &place.who, told.session_id, -1, is_idle).await;
    let env = crate::sessions::said(&events)[0].to_owned();
    let key = env.split("OUBLIETTE_API_KEY=").nth(1).unwrap().split(' ').next().unwrap();
    let agent = place.fixture.broker.authenticate_in(told.session_id, key).unwrap();
    let dir = place.data("workspaces").join(told.workspace_id.to_string());
    let get = WorkspaceGetRequest {
        project_id: made.project_id,
        workspace_id: told.workspace_id,
        path: Some("sparse".to_owned()),
        recursive: false,
        archive: false,
        limit: None,
        cursor: None,
    };
    for length in [3, 4] {
        // Different content each time: content that exists already takes no more space.
        fs::File::create(dir.join("sparse")).unwrap().set_len(length * MIB).unwrap();
        result(&place.fixture.broker, &agent, get.clone()).await.unwrap();
    }
    fs::File::create(dir.join("sparse")).unwrap().set_len(2 * MIB).unwrap();
    let (code, message) = refused(&place.fixture, &agent, get.clone()).await;
    assert!(code == "too_large" && message.contains("sandbox.workspace"), "{code}: {message}");
    place.done(get).await;
}

/// Rule: files are deleted before the record: a workspace that cannot be removed can still be
/// deleted later, and the error says what is in the way.
#[tokio::test]
async fn a_workspace_that_cannot_be_removed_keeps_its_record() {
    let place = Place::new("size=64m", |_| ()).await;
    let (project, session, workspace) = place.session().await;
    end(&place.fixture, &place.who, session).await;
    let inner = place.data("workspaces").join(workspace.to_string()).join("mounted");
    let mounted = SmallDisk::mount(&inner, "size=1m");
    let (code, message) = refused(&place.fixture, &place.who, delete(project, workspace)).await;
    assert!(
        message.contains("mounted") && message.contains("delete it again"),
        "{code}: {message}"
    );
    assert_eq!(place.workspaces(project).await, 1);
    drop(mounted);
    place.done(delete(project, workspace)).await;
    assert_eq!(place.workspaces(project).await, 0);
}

/// REQ: "15,000 directories in each other" do not crash the daemon when their workspace is deleted,
/// and nothing of them is left.
#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_of_any_depth_is_deleted() {
    let place = Place::new("size=64m", |_| ()).await;
    let (project, session, workspace) = place.session().await;
    let mut at = place.data("workspaces").join(workspace.to_string());
    let mut held = None;
    for _ in 0..15_000 {
        let next = at.join("d");
        fs::create_dir(&next).unwrap();
        let open = fs::File::open(&next).unwrap();
        // No path is long enough for all of them.
        at = format!("/proc/self/fd/{}", open.as_raw_fd()).into();
        held = Some(open);
    }
    drop(held);
    let recursive = WorkspaceGetRequest {
        project_id: project,
        workspace_id: workspace,
        path: None,
        recursive: true,
        archive: false,
        limit: None,
        cursor: None,
    };
    let listed: WorkspaceContentResponse = call(&place.fixture, &place.who, recursive).await;
    assert_eq!(listed.skipped.len(), 1, "{:?}", listed.skipped.len());
    end(&place.fixture, &place.who, session).await;
    place.done(delete(project, workspace)).await;
    assert!(!place.data("workspaces").join(workspace.to_string()).exists());
}
