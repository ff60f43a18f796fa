//! A garden that does as a test says, and helpers for requests.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use ringback_client::{Client, Outcome, Worker, WorkerCall, WorkerTools};
use ringback_proto::garden::command::*;
use ringback_proto::garden::*;
use ringback_proto::ids::{BlobHash, JobId};
use ringback_proto::principal::Level;
use ringback_proto::ready::OfferedTool;
use ringback_proto::request::*;
use ringback_proto::secret::Secret;
use ringback_proto::tool::tools::*;
use ringback_proto::{Error, Tool, ToolTiming};
use ringback_testkit::{World, within};

/// The length of content, as the scripted garden measures it: four beats.
pub(crate) const CONTENT_TICKS: Ticks = Ticks(4 * Ticks::PER_BEAT);

/// What the scripted garden does with a tool.
#[derive(Debug, Clone)]
pub(crate) enum Script {
    /// Answers with an error.
    Refuse(Error),
    /// Never answers.
    Hang,
}

/// A command that the scripted garden got.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Got {
    pub(crate) tool: &'static str,
    pub(crate) job_id: Option<String>,
    pub(crate) arguments: serde_json::Value,
}

type Shared<T> = Arc<Mutex<T>>;

/// A garden that does as a test says.
pub(crate) struct ScriptedGarden {
    got: Shared<Vec<Got>>,
    script: Shared<HashMap<&'static str, Script>>,
    exported: Shared<Option<(BlobHash, Vec<ExportedRegion>)>>,
    workers: Vec<Worker>,
}

impl ScriptedGarden {
    pub(crate) async fn of(daemon: &World) -> Self {
        let (got, script) = (Shared::default(), Shared::default());
        let exported: Shared<Option<(BlobHash, Vec<ExportedRegion>)>> = Shared::default();
        let mut workers = Vec::new();
        for (service, names) in [
            (
                SERVICE,
                &[
                    STATUS,
                    PLAY,
                    PAUSE,
                    STOP,
                    SEEK,
                    SET_TEMPO,
                    PREPARE_REGION,
                    CREATE_REGION,
                    MOVE_REGION,
                    DELETE_REGION,
                    SET_LOOP,
                    SET_REGION_STATE,
                    EXPORT,
                    MONITOR,
                    RELOAD,
                ][..],
            ),
            (CONTROL_SERVICE, &[EMERGENCY_PAUSE][..]),
        ] {
            let mut tools = WorkerTools::new(service);
            for name in names {
                let (got, script) = (Arc::clone(&got), Arc::clone(&script));
                let exported = Arc::clone(&exported);
                tools = tools.raw_tool(OfferedTool::Name((*name).to_owned()), move |call| {
                    let exported = exported.lock().unwrap().clone();
                    answer(name, call, Arc::clone(&got), Arc::clone(&script), exported)
                });
            }
            let config = daemon.client_config(daemon.admin_token());
            workers.push(within("the garden", Worker::serve(config, tools)).await.unwrap());
        }
        Self { got, script, exported, workers }
    }

    /// Sets the content that it exports, and the regions in it.
    pub(crate) fn export(&self, hash: BlobHash, regions: Vec<ExportedRegion>) {
        *self.exported.lock().unwrap() = Some((hash, regions));
    }

    /// Sets what it does with a tool from now on.
    pub(crate) fn script(&self, tool: &'static str, script: Script) {
        self.script.lock().unwrap().insert(tool, script);
    }

    /// Does its usual work again.
    pub(crate) fn behave(&self) {
        self.script.lock().unwrap().clear();
    }

    /// Returns what it got so far.
    pub(crate) fn got(&self) -> Vec<Got> {
        self.got.lock().unwrap().clone()
    }

    /// Returns the last command of a tool.
    pub(crate) fn last(&self, tool: &str) -> Option<Got> {
        self.got().into_iter().rev().find(|got| got.tool == tool)
    }

    pub(crate) async fn leave(self) {
        for worker in self.workers {
            within("the garden's end", worker.close()).await;
        }
    }
}

macro_rules! encoded {
    ($value:expr) => {
        Bytes::from(rmp_serde::to_vec_named($value).unwrap())
    };
}

async fn answer(
    tool: &'static str,
    call: WorkerCall,
    got: Shared<Vec<Got>>,
    script: Shared<HashMap<&'static str, Script>>,
    exported: Option<(BlobHash, Vec<ExportedRegion>)>,
) -> Result<Bytes, Error> {
    let job_id = call.job_id().map(ToOwned::to_owned);
    got.lock().unwrap().push(Got { tool, job_id, arguments: call.decode()? });
    let scripted = script.lock().unwrap().get(tool).cloned();
    match scripted {
        Some(Script::Refuse(error)) => return Err(error),
        Some(Script::Hang) => std::future::pending().await,
        None => {}
    }
    Ok(match tool {
        STATUS => encoded!(&status()),
        PLAY | PAUSE | STOP | SEEK | EMERGENCY_PAUSE => encoded!(&TransportAnswer {
            state: if tool == PLAY { TransportState::Playing } else { TransportState::Paused },
            position: Ticks(480),
        }),
        SET_TEMPO => {
            let asked: SetTempoArguments = call.decode()?;
            let (beats_per_bar, beat_unit) =
                asked.time_signature.map_or((4, 4), |it| (it.beats_per_bar, it.beat_unit));
            let at = asked.position.unwrap_or_default();
            encoded!(&TempoAnswer {
                change: TempoChange { at, bpm: asked.bpm, beats_per_bar, beat_unit },
            })
        }
        CREATE_REGION => {
            let asked: CreateRegionArguments = call.decode()?;
            encoded!(&CreateRegionAnswer {
                duration: asked.region.duration.unwrap_or(CONTENT_TICKS),
            })
        }
        EXPORT => {
            let (hash, regions) = exported.unwrap();
            encoded!(&ExportAnswer {
                content: GardenContent { hash, mime_type: "audio/wav".to_owned() },
                size: 15,
                duration_seconds: 2.0,
                regions,
                soundfont: Some(BlobHash::from_bytes([0x5f; 32])),
            })
        }
        MONITOR => encoded!(&MonitorAnswer { sample_rate: 48_000 }),
        _ => Bytes::from_static(&[0x80]),
    })
}

fn status() -> GardenStatusResponse {
    GardenStatusResponse {
        state: TransportState::Playing,
        position: Ticks(960),
        position_beats: 1.0,
        position_seconds: 0.5,
        bar: 1,
        beat_in_bar: 2.0,
        tempo_bpm: 120.0,
        time_signature: "4/4".to_owned(),
        loop_range: None,
        waiting_for: None,
        region_count: 0,
        revision: 0,
        device: GardenDevice {
            kind: "null".to_owned(),
            name: "null".to_owned(),
            sample_rate: 48_000,
            buffer_frames: 128,
            state: GardenDeviceState::Running,
            message: None,
            realtime: false,
        },
        counters: GardenCounters::default(),
    }
}

/// A daemon and its garden.
pub(crate) async fn with_garden() -> (World, ScriptedGarden) {
    let daemon = World::with_hoot().await;
    let garden = ScriptedGarden::of(&daemon).await;
    (daemon, garden)
}

pub(crate) async fn token(daemon: &World, scope: Level) -> Secret {
    daemon.new_token(scope, None).await.token
}

/// Sends a command and returns its acknowledgement.
pub(crate) async fn command<T: Tool>(
    client: &Client,
    request: T::Request,
) -> Result<(String, JobId), Error> {
    assert_eq!(T::TIMING, ToolTiming::FireAndForget);
    match within("an answer", client.submit::<T>(request)).await? {
        Outcome::Accepted { message, job_id } => Ok((message, job_id.unwrap())),
        Outcome::Done(_) | Outcome::Job { .. } => panic!("not an acknowledgement"),
    }
}

pub(crate) async fn job(client: &Client, job_id: JobId) -> JobStatusResponse {
    within("its job", client.call::<JobStatus>(JobStatusRequest { job_id })).await.unwrap()
}

pub(crate) async fn store(client: &Client, data: &'static [u8]) -> BlobHash {
    let request = CasStoreRequest {
        data: ringback_proto::data::Data(Bytes::from_static(data)),
        mime_type: "audio/wav".to_owned(),
        upload_id: None,
        offset: None,
        last: None,
    };
    within("the upload", client.call::<CasStore>(request)).await.unwrap().hash.unwrap()
}

/// A region with this content at a beat.
pub(crate) fn region(content_id: &impl ToString, position: f64) -> GardenCreateRegionRequest {
    GardenCreateRegionRequest {
        position,
        duration: None,
        behavior_type: RegionBehavior::PlayContent,
        content_id: content_id.to_string(),
        gain_db: None,
        pan: None,
        offset_seconds: None,
        fade_in: None,
        fade_out: None,
        crossfade: None,
        repeat: None,
        approval: None,
        if_late: None,
        name: None,
        tags: vec![],
    }
}

pub(crate) async fn regions(client: &Client) -> GardenRegionsResponse {
    let request = GardenGetRegionsRequest::default();
    within("the regions", client.call::<GardenGetRegions>(request)).await.unwrap()
}
