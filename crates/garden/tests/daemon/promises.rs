//! Regions whose content a job is making: what becomes of them, and the timeline as a file.

use std::sync::Arc;

use camino::Utf8PathBuf;
use ringback_client::{Client, Outcome};
use ringback_garden::{DeviceChoice, Settings};
use ringback_proto::garden::{RegionState, TransportState};
use ringback_proto::ids::{BlobHash, JobId, RegionId};
use ringback_proto::record::JobState;
use ringback_proto::request::{
    ArtifactCreateRequest, ArtifactsCreatedResponse, GardenApproveRequest,
    GardenCreateRegionRequest, GardenDeleteRegionRequest, GardenExportRequest,
    GardenGetRegionsRequest, GardenRegionInfo, GardenRejectRequest, JobCancelRequest,
    JobSleepRequest, JobStatusRequest, MadeArtifact, MidiToWavRequest, RegionApproval,
    RegionBehavior, SampleFormat,
};
use ringback_proto::tool::tools::{
    ArtifactCreate, GardenApprove, GardenCreateRegion, GardenDeleteRegion, GardenExport,
    GardenGetRegions, GardenReject, JobCancel, JobSleep, JobStatus, MidiToWav,
};
use ringback_proto::{ErrorKind, Tool};
use ringback_testkit::{Fault, GRACE, GatedStudio, Proxy, Setup, World, wait_for, within};

use crate::{Running, play, ready, region, sound, status, store, wav};

/// A daemon whose music tools answer when a test says so.
struct Studio {
    world: World,
    client: Client,
    tools: GatedStudio,
}

impl Studio {
    async fn open() -> Self {
        let tools = GatedStudio::default();
        let studio = Arc::new(tools.clone());
        let world = Setup::new().hoot().config(move |config| config.studio = studio).start().await;
        let client = world.admin().await;
        Self { world, client, tools }
    }

    /// Starts a job that makes an artifact once it is let.
    async fn job(&self) -> JobId {
        let request = MidiToWavRequest {
            input_hash: BlobHash::from_bytes([1; 32]),
            soundfont_hash: None,
            sample_rate: None,
            format: None,
            gain_db: None,
            tags: Vec::new(),
            creator: None,
            parent_id: None,
            variation_set_id: None,
        };
        started::<MidiToWav>(&self.client, request).await
    }

    /// Ends the jobs with artifacts of these contents.
    async fn make(&self, contents: &[(&[u8], &str)]) {
        let mut artifacts = Vec::new();
        for (bytes, mime_type) in contents {
            let stored = self.client.upload(*bytes, mime_type).await.unwrap();
            let content_hash = stored.hash.unwrap();
            let request = ArtifactCreateRequest {
                content_hash,
                metadata: None,
                tags: Vec::new(),
                creator: None,
                parent_id: None,
                variation_set_id: None,
            };
            let created = self.client.call::<ArtifactCreate>(request).await.unwrap();
            artifacts.push(MadeArtifact {
                artifact_id: created.artifact_id,
                content_hash,
                mime_type: (*mime_type).to_owned(),
                duration_seconds: None,
            });
        }
        let (backend, variation_set_id) = ("test".to_owned(), None);
        self.tools.open(ArtifactsCreatedResponse { artifacts, backend, variation_set_id });
    }

    async fn make_sound(&self) {
        // Of several artifacts, the first that is sound counts.
        self.make(&[(b"a picture", "image/png"), (&wav(&sound()), "audio/wav")]).await;
    }

    async fn cancel(&self, job_id: JobId) {
        let cancelled = self.client.call::<JobCancel>(JobCancelRequest { job_id });
        within("the end of the job", cancelled).await.unwrap();
    }

    async fn place(&self, job_id: JobId, position: f64) -> RegionId {
        place(&self.client, latent(job_id, position)).await
    }

    async fn region_is(&self, region_id: RegionId, state: RegionState) -> GardenRegionInfo {
        region_is(&self.client, region_id, state).await
    }
}

async fn started<T: Tool>(client: &Client, request: T::Request) -> JobId {
    match within("the job", client.submit::<T>(request)).await.unwrap() {
        Outcome::Job { job_id, .. } => job_id,
        Outcome::Done(_) | Outcome::Accepted { .. } => panic!("not a job"),
    }
}

async fn job_is(client: &Client, job_id: JobId, state: JobState) {
    wait_for("the job", async || {
        let job = client.call::<JobStatus>(JobStatusRequest { job_id }).await;
        job.unwrap().status == state
    })
    .await;
}

/// A region of a second, at 120 beats per minute.
fn latent(job_id: JobId, position: f64) -> GardenCreateRegionRequest {
    GardenCreateRegionRequest {
        duration: Some(2.0),
        behavior_type: RegionBehavior::Latent,
        content_id: job_id.to_string(),
        ..region("", position)
    }
}

async fn place(client: &Client, request: GardenCreateRegionRequest) -> RegionId {
    within("it", client.call::<GardenCreateRegion>(request)).await.unwrap().region_id
}

async fn look(client: &Client, region_id: RegionId) -> Option<GardenRegionInfo> {
    let request = GardenGetRegionsRequest::default();
    let regions = within("it", client.call::<GardenGetRegions>(request)).await.unwrap().regions;
    regions.into_iter().find(|region| region.region_id == region_id)
}

async fn region_is(client: &Client, region_id: RegionId, state: RegionState) -> GardenRegionInfo {
    wait_for(state.as_str(), async || look(client, region_id).await.unwrap().state == state).await;
    look(client, region_id).await.unwrap()
}

/// Waits until the garden has the timeline of the daemon, which commits first.
async fn garden_follows(client: &Client) {
    wait_for("the garden", async || {
        let request = GardenGetRegionsRequest::default();
        let revision = client.call::<GardenGetRegions>(request).await.unwrap().revision;
        status(client).await.is_some_and(|status| status.revision == revision)
    })
    .await;
}

async fn played_to_the_end(client: &Client, n_frames: u64) {
    play(client).await;
    wait_for("the end", async || {
        status(client).await.is_some_and(|status| {
            status.state == TransportState::Stopped && status.counters.frames >= n_frames
        })
    })
    .await;
}

fn samples(path: &Utf8PathBuf) -> Vec<f32> {
    hound::WavReader::open(path).unwrap().samples().map(Result::unwrap).collect()
}

/// Rule: a region is played once the job that makes its content has ended, whether the garden
/// hears events or asks.
#[tokio::test(flavor = "multi_thread")]
async fn a_region_is_played_once_its_job_has_ended() {
    for has_events in [true, false] {
        let studio = Studio::open().await;
        let path = Utf8PathBuf::from_path_buf(studio.world.dir().join("played.wav")).unwrap();
        let settings = Running::settings(&studio.world, DeviceChoice::File(path.clone()), true);
        let events = settings.events.clone().filter(|_| has_events);
        let garden = Running::with(Settings { events, ..settings });
        ready(&studio.client).await;
        let job_id = studio.job().await;
        let region_id = studio.place(job_id, 0.0).await;
        // A command after it shows that the region waits.
        let other = studio.place(job_id, 4.0).await;
        assert_eq!(look(&studio.client, region_id).await.unwrap().state, RegionState::Pending);
        studio.make_sound().await;
        let settled = studio.region_is(region_id, RegionState::Ready).await;
        let content = settled.content.unwrap();
        assert_eq!(content.mime_type.as_deref(), Some("audio/wav"));
        assert!(content.artifact_id.is_some() && content.job_id == Some(job_id));
        studio.region_is(other, RegionState::Ready).await;
        garden_follows(&studio.client).await;
        played_to_the_end(&studio.client, 3 * 48_000).await;
        garden.end().await;
        let (played, expected) = (samples(&path), sound());
        let expected: Vec<f32> = expected.into_iter().flatten().collect();
        assert!(played[..expected.len()] == expected, "events: {has_events}");
        assert!(played[2 * expected.len()..3 * expected.len()] == expected, "the other region");
        studio.client.close().await;
        drop(studio.world.stop().await);
    }
}

/// Rule: a job that fails, makes no sound, or makes what cannot be played leaves a failed region.
#[tokio::test(flavor = "multi_thread")]
async fn a_region_without_content_fails_and_says_why() {
    let studio = Studio::open().await;
    let garden = Running::start(&studio.world, DeviceChoice::Null, true);
    ready(&studio.client).await;
    let (cancelled, bad) = (studio.job().await, studio.job().await);
    let region_id = studio.place(cancelled, 0.0).await;
    let bad_region = studio.place(bad, 4.0).await;
    let sleep = JobSleepRequest { milliseconds: 1 };
    let silent = started::<JobSleep>(&studio.client, sleep).await;
    let silent_region = studio.place(silent, 8.0).await;
    studio.cancel(cancelled).await;
    studio.make(&[(b"this is no sound", "audio/wav")]).await;
    let reason = async |region_id| {
        let failed = studio.region_is(region_id, RegionState::Failed).await;
        failed.content.unwrap().reason.unwrap()
    };
    let why = reason(region_id).await;
    assert!(why.contains("cancelled"), "{why}");
    let why = reason(silent_region).await;
    assert!(why.contains("neither audio nor MIDI"), "{why}");
    let why = reason(bad_region).await;
    assert!(!why.is_empty(), "{why}");
    garden_follows(&studio.client).await;
    let nothing = crate::try_play(&studio.client).await.unwrap_err();
    assert_eq!(nothing.kind(), ErrorKind::Conflict, "nothing may sound any more");
    garden.end().await;
    studio.client.close().await;
    drop(studio.world.stop().await);
}

/// Rule: a region is settled although its job had ended before it was placed, although it is moved or
/// others are deleted meanwhile, and although the garden was not there when the job ended.
#[tokio::test(flavor = "multi_thread")]
async fn a_region_is_settled_whenever_its_job_ended() {
    let studio = Studio::open().await;
    let garden = Running::start(&studio.world, DeviceChoice::Null, true);
    ready(&studio.client).await;
    let done = studio.job().await;
    studio.make_sound().await;
    job_is(&studio.client, done, JobState::Complete).await;
    let region_id = studio.place(done, 0.0).await;
    studio.region_is(region_id, RegionState::Ready).await;

    studio.tools.close();
    let job_id = studio.job().await;
    let (gone, kept) = (studio.place(job_id, 4.0).await, studio.place(job_id, 8.0).await);
    let delete = GardenDeleteRegionRequest { region_id: gone };
    studio.client.submit::<GardenDeleteRegion>(delete).await.unwrap();
    garden.end().await;
    studio.make_sound().await;
    job_is(&studio.client, job_id, JobState::Complete).await;
    assert_eq!(look(&studio.client, kept).await.unwrap().state, RegionState::Pending);
    let garden = Running::start(&studio.world, DeviceChoice::Null, true);
    ready(&studio.client).await;
    studio.region_is(kept, RegionState::Ready).await;
    assert!(look(&studio.client, gone).await.is_none());
    garden_follows(&studio.client).await;
    garden.end().await;
    studio.client.close().await;
    drop(studio.world.stop().await);
}

/// Rule: a restart of the daemon between the end of a job and the settling of its region loses
/// nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_region_is_settled_after_a_restart_of_the_daemon() {
    let Studio { world, client, tools } = Studio::open().await;
    let [calls, events] = [world.calls().to_owned(), world.events().to_owned()];
    let (calls, events) = (Proxy::start(&calls).await, Proxy::start(&events).await);
    let mut settings = Running::settings(&world, DeviceChoice::Null, true);
    settings.daemon.endpoint = calls.endpoint().to_owned();
    settings.events = Some(events.endpoint().to_owned());
    let garden = Running::with(settings);
    ready(&client).await;
    let studio = Studio { world, client, tools };
    let job_id = studio.job().await;
    let region_id = studio.place(job_id, 0.0).await;
    // The garden hears and says nothing until the daemon is back.
    calls.set(Fault::Cut);
    events.set(Fault::Cut);
    studio.make_sound().await;
    job_is(&studio.client, job_id, JobState::Complete).await;
    assert_eq!(look(&studio.client, region_id).await.unwrap().state, RegionState::Pending);
    let Studio { world, client, tools } = studio;
    client.close().await;
    let world = world.restart(GRACE).await;
    let client = world.admin().await;
    calls.set(Fault::None);
    events.set(Fault::None);
    let studio = Studio { world, client, tools };
    studio.region_is(region_id, RegionState::Ready).await;
    ready(&studio.client).await;
    garden_follows(&studio.client).await;
    garden.end().await;
    studio.client.close().await;
    drop(studio.world.stop().await);
}

/// Rule: what needs approval is heard after it, and never if it is rejected.
#[tokio::test(flavor = "multi_thread")]
async fn a_region_is_heard_after_approval_and_never_after_a_rejection() {
    let studio = Studio::open().await;
    let path = Utf8PathBuf::from_path_buf(studio.world.dir().join("played.wav")).unwrap();
    let garden = Running::start(&studio.world, DeviceChoice::File(path.clone()), true);
    ready(&studio.client).await;
    let job_id = studio.job().await;
    studio.make_sound().await;
    let asking = |position| GardenCreateRegionRequest {
        approval: Some(RegionApproval::Required),
        ..latent(job_id, position)
    };
    let mut regions = Vec::new();
    for position in [0.0, 2.0, 4.0] {
        let region_id = place(&studio.client, asking(position)).await;
        studio.region_is(region_id, RegionState::AwaitingApproval).await;
        regions.push(region_id);
    }
    for region_id in [regions[0], regions[2]] {
        let approve = GardenApproveRequest { region_id, reason: None };
        studio.client.submit::<GardenApprove>(approve).await.unwrap();
    }
    let reason = Some("too loud".to_owned());
    let reject = GardenRejectRequest { region_id: regions[1], reason };
    studio.client.submit::<GardenReject>(reject).await.unwrap();
    let rejected = studio.region_is(regions[1], RegionState::Rejected).await;
    assert_eq!(rejected.content.unwrap().reason.as_deref(), Some("too loud"));
    played_to_the_end(&studio.client, 3 * 48_000).await;
    garden.end().await;
    let (played, expected) = (samples(&path), sound());
    let expected: Vec<f32> = expected.into_iter().flatten().collect();
    let seconds: Vec<&[f32]> = played.chunks(expected.len()).collect();
    assert!(seconds[0] == expected && seconds[2] == expected, "approved");
    assert!(seconds[1].iter().all(|sample| *sample == 0.0), "rejected");
    studio.client.close().await;
    drop(studio.world.stop().await);
}

/// Asks for a file of the whole timeline.
fn export(format: SampleFormat, sample_rate: Option<u32>) -> GardenExportRequest {
    GardenExportRequest {
        start: None,
        end: None,
        format: Some(format),
        sample_rate,
        tags: Vec::new(),
        creator: None,
        parent_id: None,
        variation_set_id: None,
    }
}

/// Rule: an export is an artifact of the caller, with the sound of the timeline.
#[tokio::test(flavor = "multi_thread")]
async fn an_export_is_an_artifact_with_the_sound_of_the_timeline() {
    let world = World::with_hoot().await;
    let garden = Running::start(&world, DeviceChoice::Null, true);
    let client = world.admin().await;
    ready(&client).await;
    let nothing = client.call::<GardenExport>(export(SampleFormat::F32, None)).await.unwrap_err();
    assert_eq!(nothing.kind(), ErrorKind::Conflict, "{nothing}");
    let content = store(&client, &sound()).await;
    client.call::<GardenCreateRegion>(region(&content, 1.0)).await.unwrap();
    let made = client.call::<GardenExport>(export(SampleFormat::F32, None)).await.unwrap();
    let made = made.artifacts.into_iter().next().unwrap();
    assert_eq!(made.mime_type, "audio/wav");
    let mut bytes = Vec::new();
    client.download(made.content_hash, &mut bytes).await.unwrap();
    let reader = hound::WavReader::new(bytes.as_slice()).unwrap();
    let samples: Vec<f32> = reader.into_samples().map(Result::unwrap).collect();
    let expected: Vec<f32> = sound().into_iter().flatten().collect();
    // A beat of silence is half a second.
    let (before, after) = samples.split_at(48_000);
    assert!(before.iter().all(|sample| *sample == 0.0));
    assert!(after[..expected.len()] == expected);
    let seconds = samples.len() as f64 / 2.0 / 48_000.0;
    assert!((made.duration_seconds.unwrap() - seconds).abs() < 1e-9);
    let made = client.call::<GardenExport>(export(SampleFormat::Flac16, Some(44_100))).await;
    let made = made.unwrap().artifacts.into_iter().next().unwrap();
    assert_eq!(made.mime_type, "audio/flac");
    let mut bytes = Vec::new();
    client.download(made.content_hash, &mut bytes).await.unwrap();
    assert!(bytes.starts_with(b"fLaC"));
    garden.end().await;
    client.close().await;
    drop(world.stop().await);
}

/// Rule: exports take turns, and one that is cancelled stops and gives up its turn.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_export_makes_way_for_the_next_one() {
    let world = World::with_hoot().await;
    let garden = Running::start(&world, DeviceChoice::Null, true);
    let client = world.admin().await;
    ready(&client).await;
    let content = store(&client, &sound()).await;
    client.call::<GardenCreateRegion>(region(&content, 0.0)).await.unwrap();
    // Two hours at 120 beats per minute take much longer to compress than this test may.
    let hours = GardenExportRequest { end: Some(14_400.0), ..export(SampleFormat::Flac24, None) };
    let [endless, short] = [hours, export(SampleFormat::F32, None)];
    let Outcome::Job { job_id, .. } = client.submit::<GardenExport>(endless).await.unwrap() else {
        panic!("an export is a job");
    };
    let state = async || {
        let job = client.call::<JobStatus>(JobStatusRequest { job_id }).await;
        job.unwrap().status
    };
    wait_for("the work", async || state().await == JobState::Running).await;
    let Outcome::Job { job_id: next, .. } = client.submit::<GardenExport>(short).await.unwrap()
    else {
        panic!("an export is a job");
    };
    client.call::<JobCancel>(JobCancelRequest { job_id }).await.unwrap();
    wait_for("the end", async || state().await == JobState::Cancelled).await;
    wait_for("the next export", async || {
        let job = client.call::<JobStatus>(JobStatusRequest { job_id: next }).await.unwrap();
        assert!(!matches!(job.status, JobState::Failed | JobState::Cancelled), "{job:?}");
        job.status == JobState::Complete
    })
    .await;
    garden.end().await;
    client.close().await;
    drop(world.stop().await);
}
