//! A daemon that is killed at a random moment under load: everything it had acknowledged is there.

#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test names what it expects and fails on everything else"
)]

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use ringback_client::{Client, Config, Credentials};
use ringback_proto::frame::{self, Body, Frame};
use ringback_proto::ids::{ArtifactId, BlobHash, JobId, RequestId};
use ringback_proto::principal::Level;
use ringback_proto::record::JobState;
use ringback_proto::request::*;
use ringback_proto::secret::Secret;
use ringback_proto::tool::tools::*;
use ringback_proto::{CallOptions, Error, RequestEnvelope, ResponseEnvelope, ToolCall};
use ringback_testkit::{envelope, within};
use tokio::task::JoinSet;

/// The number of rounds in daily use; set `RINGBACK_CRASH_ROUNDS` for more.
const ROUNDS: u32 = 20;
/// Concurrent clients.
const N_CLIENTS: u32 = 4;

/// A daemon in a process of its own.
struct DaemonProcess {
    child: Child,
    endpoint: String,
    first_token: Option<Secret>,
}

impl DaemonProcess {
    fn start(data_dir: &Utf8Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_testkit-daemon"))
            .arg(data_dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (endpoint, token) = line.trim().split_once(' ').expect("a daemon that starts");
        let first_token = (token != "-").then(|| Secret::new(token.to_owned()));
        Self { child, endpoint: endpoint.to_owned(), first_token }
    }

    async fn client(&self, token: &Secret) -> Result<Client, ringback_client::ConnectError> {
        Client::connect(Config::new(&self.endpoint, Credentials::Token(token.clone()))).await
    }

    /// Kills it like the kernel: nothing is closed, flushed or announced.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for DaemonProcess {
    fn drop(&mut self) {
        // After a kill the process is gone, which is fine.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// What the daemon acknowledged.
#[derive(Default)]
struct AcknowledgedState {
    jobs: Vec<(RequestId, JobId)>,
    finished: Vec<JobId>,
    blobs: Vec<(BlobHash, Vec<u8>)>,
    artifacts: Vec<ArtifactId>,
    annotations: Vec<(ArtifactId, String)>,
    tokens: Vec<Secret>,
}

type Shared = Arc<Mutex<AcknowledgedState>>;

/// Returns a job with an ID of its own, so that it can be repeated.
fn sleep_frame(request_id: RequestId) -> Frame {
    let request = ToolCall::Native(JobSleepRequest { milliseconds: 0 }.into());
    let body = RequestEnvelope { request, options: CallOptions::default() }.encode();
    Frame::new(frame::Command::Request, request_id, Body::MsgPack(body.into()))
}

async fn start_job(client: &Client, request_id: RequestId) -> Result<JobId, Error> {
    match envelope(&client.call_raw(sleep_frame(request_id)).await?) {
        ResponseEnvelope::JobStarted { job_id, .. } => Ok(job_id),
        ResponseEnvelope::Error(error) => Err(error.into()),
        other => panic!("neither a job nor an error: {other:?}"),
    }
}

/// Requests one of everything, repeatedly, until the daemon is gone. Every answer is recorded after
/// it arrived, so only acknowledged requests are.
async fn load(client: Client, number: u32, acknowledged: Shared) {
    let mut round = 0;
    let gone: Result<(), Error> = async {
        loop {
            round += 1;
            one_of_each(&client, &format!("{number} {round}"), &acknowledged).await?;
        }
    }
    .await;
    // It was killed in the middle of a call, which is the point.
    drop(gone);
}

async fn one_of_each(client: &Client, name: &str, acknowledged: &Shared) -> Result<(), Error> {
    let note = |note: &dyn Fn(&mut AcknowledgedState)| note(&mut acknowledged.lock().unwrap());
    let request_id = RequestId::random();
    let job_id = start_job(client, request_id).await?;
    note(&|all| all.jobs.push((request_id, job_id)));
    let content = format!("content {name} {request_id}").into_bytes();
    let stored = client.upload(&content[..], "text/plain").await?;
    let hash = stored.hash.unwrap();
    note(&|all| all.blobs.push((hash, content.clone())));
    let request = ArtifactCreateRequest {
        content_hash: hash,
        metadata: None,
        tags: vec!["crash".to_owned()],
        creator: None,
        parent_id: None,
        variation_set_id: None,
    };
    let artifact_id = client.call::<ArtifactCreate>(request).await?.artifact_id;
    note(&|all| all.artifacts.push(artifact_id));
    let message = format!("annotation {name}");
    let request =
        AddAnnotationRequest { artifact_id, message: message.clone(), source: None, vibe: None };
    client.call::<AddAnnotation>(request).await?;
    note(&|all| all.annotations.push((artifact_id, message.clone())));
    let request = TokenCreateRequest {
        name: name.to_owned(),
        scope: Level::Read,
        projects: None,
        expires_in: None,
    };
    let token = client.call::<TokenCreate>(request).await?.token;
    note(&|all| all.tokens.push(token.clone()));
    let poll = JobPollRequest { job_ids: vec![job_id], timeout_ms: 30_000, mode: None };
    let polled = client.call::<JobPoll>(poll).await?;
    assert_eq!(polled.completed, [job_id]);
    note(&|all| all.finished.push(job_id));
    Ok(())
}

/// Checks that everything acknowledged is there, complete, and that a repeat changes nothing.
async fn check(daemon: &DaemonProcess, client: &Client, acknowledged: &AcknowledgedState) {
    for (request_id, job_id) in &acknowledged.jobs {
        let again = start_job(client, *request_id).await.unwrap();
        assert_eq!(again, *job_id, "a repeat is the same job");
        let job = client.call::<JobStatus>(JobStatusRequest { job_id: *job_id }).await.unwrap();
        assert_eq!(job.result.is_some(), job.status == JobState::Complete, "{job:?}");
        assert_eq!(job.error.is_some(), job.status == JobState::Failed, "{job:?}");
        let was_finished = acknowledged.finished.contains(job_id);
        assert!(!was_finished || job.status == JobState::Complete, "{job:?}");
    }
    for (hash, content) in &acknowledged.blobs {
        let mut back = Vec::new();
        client.download(*hash, &mut back).await.unwrap();
        assert_eq!(back, *content);
        assert_eq!(*hash.as_bytes(), *blake3::hash(&back).as_bytes());
    }
    for id in &acknowledged.artifacts {
        let artifact = client.call::<ArtifactGet>(ArtifactGetRequest { id: *id }).await.unwrap();
        assert_eq!(artifact.tags, ["crash"]);
        let wanted = acknowledged.annotations.iter().filter(|(on, _)| on == id);
        for (_, message) in wanted {
            assert!(artifact.annotations.iter().any(|note| note.message == *message));
        }
    }
    // A few are enough: each needs a connection of its own.
    for token in acknowledged.tokens.iter().rev().take(3) {
        let client = daemon.client(token).await.unwrap();
        client.call::<Ping>(PingRequest {}).await.unwrap();
    }
}

/// Checks that nothing is half there: everything listed can be looked up and read, and jobs that
/// ran have ended.
async fn check_whole(client: &Client) {
    let request = ArtifactListRequest { limit: Some(500), ..ArtifactListRequest::default() };
    for artifact in client.call::<ArtifactList>(request).await.unwrap().artifacts {
        let mut back = Vec::new();
        client.download(artifact.content_hash, &mut back).await.unwrap();
        assert_eq!(back.len() as u64, artifact.size);
    }
    let request = JobListRequest { limit: Some(500), ..JobListRequest::default() };
    let jobs = client.call::<JobList>(request).await.unwrap();
    let job_ids: Vec<_> = jobs.jobs.iter().map(|job| job.job_id).collect();
    for job_ids in job_ids.chunks(100) {
        let poll = JobPollRequest {
            job_ids: job_ids.to_vec(),
            timeout_ms: 20_000,
            mode: Some(PollMode::All),
        };
        let polled = client.call::<JobPoll>(poll).await.unwrap();
        assert_eq!(polled.pending, [], "pending jobs run after a restart");
    }
}

async fn round(data_dir: &Utf8Path, token: &mut Option<Secret>, run_for: Duration) -> usize {
    let daemon = DaemonProcess::start(data_dir);
    let token = &*token.get_or_insert_with(|| daemon.first_token.clone().unwrap());
    let acknowledged = Shared::default();
    let mut loading = JoinSet::new();
    for number in 0..N_CLIENTS {
        let client = daemon.client(token).await.unwrap();
        loading.spawn(load(client, number, Arc::clone(&acknowledged)));
    }
    tokio::time::sleep(run_for).await;
    daemon.kill();
    within("the end of the load", loading.join_all()).await;

    let daemon = DaemonProcess::start(data_dir);
    let client = daemon.client(token).await.unwrap();
    let acknowledged = std::mem::take(&mut *acknowledged.lock().unwrap());
    within("the check", check(&daemon, &client, &acknowledged)).await;
    within("the check", check_whole(&client)).await;
    // The next round starts with a second crash, right after the first was cleaned up.
    daemon.kill();
    acknowledged.jobs.len()
}

/// Rule: a job ID that was handed out, and everything else that was acknowledged, survives `kill
/// -9`; a retry with the same request ID runs nothing twice.
#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::print_stderr, reason = "a failed test has to print its seed")]
async fn after_a_crash_everything_acknowledged_is_there() {
    let set = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let rounds = set("RINGBACK_CRASH_ROUNDS").map_or(ROUNDS, |rounds: u64| rounds as u32);
    let seed = set("RINGBACK_CRASH_SEED").unwrap_or_else(rand::random);
    eprintln!("RINGBACK_CRASH_SEED={seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    let dir = tempfile::tempdir().unwrap();
    let data_dir: Utf8PathBuf = Utf8Path::from_path(dir.path()).unwrap().join("data");
    let mut token = None;
    let mut n_jobs = 0;
    for _ in 0..rounds {
        let run_for = Duration::from_millis(rng.random_range(1..250));
        n_jobs += round(&data_dir, &mut token, run_for).await;
    }
    assert!(n_jobs > 0, "nothing was ever acknowledged");
}
