//! A garden with a store of its own and no daemon, and sound files.

use std::collections::HashMap;
use std::f64::consts::TAU;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use ringback_blobs::{BlobReader, Blobs};
use ringback_client::{Config, Credentials};
use ringback_garden::content::{Preparer, Source};
use ringback_garden::export::{Export, file_format};
use ringback_garden::garden::Garden;
use ringback_garden::transport::Action;
use ringback_garden::{DeviceChoice, Settings};
use ringback_proto::garden::command::{CreateRegionArguments, SetLoopArguments};
use ringback_proto::garden::{
    GardenContent, GardenEvent, GardenRegion, GardenTimeline, RegionState, TempoChange, Ticks,
    TransportCause,
};
use ringback_proto::ids::{BlobHash, RegionId};
use ringback_proto::request::SampleFormat;
use ringback_studio::soundfont::{SEARCHED_DIRS, find};

pub(crate) const RATE: u32 = 48_000;
/// -90 dB of full scale.
pub(crate) const CLOSE: f32 = 3.2e-5;

/// Longer than any of these pieces plays.
const TIME_MAX: Duration = Duration::from_secs(60);

/// A directory of sound files, and a store with some of them.
pub(crate) struct Shop {
    dir: Utf8PathBuf,
    blobs: Blobs,
    /// Removes the directory in the end.
    _owned: Option<tempfile::TempDir>,
}

impl Shop {
    pub(crate) fn new() -> Self {
        let owned = tempfile::tempdir().unwrap();
        let shop = Self::at(owned.path());
        Self { _owned: Some(owned), ..shop }
    }

    /// Uses the files of another process.
    pub(crate) fn at(dir: &Path) -> Self {
        let dir = Utf8Path::from_path(dir).unwrap().to_owned();
        Self { blobs: Blobs::open(&dir.join("blobs")).unwrap(), dir, _owned: None }
    }

    pub(crate) fn path(&self, name: &str) -> Utf8PathBuf {
        self.dir.join(name)
    }

    pub(crate) fn store(&self, name: &str, mime_type: &str) -> BlobHash {
        self.blobs.put(&std::fs::read(self.path(name)).unwrap(), mime_type).unwrap().hash
    }

    pub(crate) fn source(&self) -> Source {
        Source::new(Some(BlobReader::open(&self.path("blobs")).unwrap()), None)
    }

    /// Writes a stereo file of 32-bit floats.
    pub(crate) fn write(&self, name: &str, rate: u32, frames: &[[f32; 2]]) {
        let spec = hound::WavSpec {
            channels: 2,
            sample_rate: rate,
            bits_per_sample: 32,
            sample_format: hound::SampleFormat::Float,
        };
        let mut writer = hound::WavWriter::create(self.path(name), spec).unwrap();
        for sample in frames.iter().flatten() {
            writer.write_sample(*sample).unwrap();
        }
        writer.finalize().unwrap();
    }

    /// Plays a timeline to its end on a device.
    pub(crate) async fn play(&self, timeline: GardenTimeline, device: DeviceChoice) {
        // A sound server of a test has no real-time rights, and shares the machine with other tests:
        // both sides hold two seconds of sound.
        let buffer_frames = if device == DeviceChoice::Pulse { RATE / 2 } else { 1024 };
        let settings = Settings { device, buffer_frames, ..settings() };
        let (garden, mut events) = Garden::start(&settings, self.source()).unwrap();
        let regions = timeline.regions.clone();
        garden.handle().load(GardenTimeline { regions: Vec::new(), ..timeline }).await.unwrap();
        for region in regions {
            let revision = garden.handle().revision().await.unwrap() + 1;
            let arguments = CreateRegionArguments { region, revision };
            garden.handle().create_region(arguments, TIME_MAX).await.unwrap();
        }
        garden.handle().transport(Action::Play, None, None).await.unwrap();
        let ended = async {
            while let Some(event) = events.recv().await {
                match event {
                    GardenEvent::Transport(event) if event.cause == TransportCause::End => return,
                    GardenEvent::Trouble(trouble) => panic!("{trouble:?}"),
                    GardenEvent::Transport(_)
                    | GardenEvent::Region(_)
                    | GardenEvent::Heard(_)
                    | GardenEvent::Position(_) => {}
                }
            }
            panic!("the garden ended");
        };
        tokio::time::timeout(TIME_MAX, ended).await.unwrap();
        tokio::task::spawn_blocking(|| garden.close()).await.unwrap();
    }

    /// Plays a timeline in its loop, and on to its end once the loop was repeated.
    pub(crate) async fn play_rounds(&self, timeline: GardenTimeline, device: DeviceChoice) {
        let (garden, mut events) =
            Garden::start(&Settings { device, ..settings() }, self.source()).unwrap();
        let handle = garden.handle();
        let (regions, loop_range) = (timeline.regions.clone(), timeline.loop_range.clone());
        let empty = GardenTimeline { regions: Vec::new(), loop_range: None, ..timeline };
        handle.load(empty).await.unwrap();
        let revision = async || handle.revision().await.unwrap() + 1;
        for region in regions {
            let arguments = CreateRegionArguments { region, revision: revision().await };
            handle.create_region(arguments, TIME_MAX).await.unwrap();
        }
        let looped = SetLoopArguments { loop_range, revision: revision().await };
        handle.set_loop(looped).await.unwrap();
        handle.transport(Action::Play, None, None).await.unwrap();
        let ended = async {
            while let Some(event) = events.recv().await {
                let GardenEvent::Transport(event) = event else { continue };
                if event.cause == TransportCause::Loop {
                    let over = SetLoopArguments { loop_range: None, revision: revision().await };
                    handle.set_loop(over).await.unwrap();
                }
                if event.cause == TransportCause::End {
                    return;
                }
            }
        };
        tokio::time::timeout(TIME_MAX, ended).await.unwrap();
        tokio::task::spawn_blocking(|| garden.close()).await.unwrap();
    }

    /// Exports a timeline into a file and reads it back.
    pub(crate) fn exported(&self, export: Export) -> Vec<[f32; 2]> {
        let bytes_max = settings().cache_bytes;
        let mut preparer = Preparer::new(self.source(), export.sample_rate, bytes_max, font());
        let file = std::fs::File::create(self.path("exported.wav")).unwrap();
        let (writer, format) = (std::io::BufWriter::new(file), file_format(SampleFormat::F32));
        let written = export.write(&mut preparer, writer, format, &AtomicBool::new(false));
        let exported = written.unwrap();
        let frames = self.read("exported.wav");
        assert_eq!(frames.len() as u64, exported.n_frames);
        frames
    }

    /// Plays into a file and reads it back.
    pub(crate) async fn played(&self, regions: Vec<GardenRegion>) -> Vec<[f32; 2]> {
        let path = self.path("played.wav");
        let timeline = timeline(regions);
        self.play(timeline, DeviceChoice::File(path)).await;
        self.read("played.wav")
    }

    pub(crate) fn read(&self, name: &str) -> Vec<[f32; 2]> {
        let mut reader = hound::WavReader::open(self.path(name)).unwrap();
        assert_eq!((reader.spec().sample_rate, reader.spec().channels), (RATE, 2));
        let samples: Vec<f32> = reader.samples::<f32>().map(Result::unwrap).collect();
        samples.chunks_exact(2).map(|frame| [frame[0], frame[1]]).collect()
    }

    /// Runs `sox` in the directory of the files.
    pub(crate) fn sox(&self, arguments: &[&str]) {
        let status = Command::new("sox").args(arguments).current_dir(&self.dir).status();
        assert!(status.expect("`sox` is installed by the tests' preparation").success());
    }
}

/// Settings with large buffers: these tests are about sound, not about speed.
pub(crate) fn settings() -> Settings {
    let daemon = Config::new("ipc:///nowhere", Credentials::None);
    Settings { sample_rate: RATE, buffer_frames: 1024, soundfont: font(), ..Settings::new(daemon) }
}

/// The SoundFont of this machine, if it has one.
pub(crate) fn font() -> Option<Utf8PathBuf> {
    let font = find(None, &SEARCHED_DIRS).ok()?;
    Some(Utf8PathBuf::from_path_buf(font).unwrap())
}

/// Everything of a timeline, without prepared sounds.
pub(crate) fn everything(timeline: GardenTimeline) -> Export {
    Export {
        timeline,
        sounds: HashMap::new(),
        start: Ticks(0),
        end: None,
        sample_rate: RATE,
        cache_bytes: settings().cache_bytes,
    }
}

/// A tempo at which a beat lasts a second.
pub(crate) fn slow() -> Vec<TempoChange> {
    vec![TempoChange { bpm: 60.0, ..TempoChange::DEFAULT }]
}

pub(crate) fn timeline(regions: Vec<GardenRegion>) -> GardenTimeline {
    GardenTimeline { revision: 0, tempo: slow(), loop_range: None, regions }
}

pub(crate) fn midi(number: u8, hash: BlobHash, beat: f64) -> GardenRegion {
    let content = Some(GardenContent { hash, mime_type: "audio/midi".to_owned() });
    GardenRegion { content, ..region(number, hash, beat) }
}

pub(crate) fn region(number: u8, hash: BlobHash, beat: f64) -> GardenRegion {
    GardenRegion {
        region_id: RegionId::from_random([number; 16]),
        position: Ticks::nearest(beat).unwrap(),
        duration: None,
        state: RegionState::Ready,
        content: Some(GardenContent { hash, mime_type: "audio/wav".to_owned() }),
        promise: None,
        repeat: 1,
        gain_db: 0.0,
        pan: 0.0,
        offset_seconds: 0.0,
        fade_in: Ticks(0),
        fade_out: Ticks(0),
        crossfade: Ticks(0),
        name: None,
    }
}

/// A chord, another one on each side, within a tenth of full scale of `level`.
pub(crate) fn chord(rate: u32, seconds: f64, level: f64, hertz: &[f64]) -> Vec<[f32; 2]> {
    let n_frames = (seconds * f64::from(rate)) as usize;
    let side = |at: f64, factor: f64| {
        let tones = hertz.iter().map(|hertz| (TAU * hertz * factor * at).sin());
        (tones.sum::<f64>() * level / hertz.len() as f64) as f32
    };
    (0..n_frames)
        .map(|idx| idx as f64 / f64::from(rate))
        .map(|at| [side(at, 1.0), side(at, 1.5)])
        .collect()
}

/// Returns the largest difference of two sounds in a range of frames.
pub(crate) fn difference(a: &[[f32; 2]], b: &[[f32; 2]], range: std::ops::Range<usize>) -> f32 {
    let pairs = a[range.clone()].iter().flatten().zip(b[range].iter().flatten());
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}
