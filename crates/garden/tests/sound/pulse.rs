//! The sound server: what it plays is what the file device writes.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ringback_garden::DeviceChoice;
use ringback_proto::garden::GardenRegion;

use crate::support::{CLOSE, RATE, Shop, chord, difference, region, timeline};

/// Set for the process that plays on the test's own sound server.
const STORE: &str = "GARDEN_TEST_STORE";
const SERVER: &str = "PULSE_SERVER";

/// How long a sound server may take to start.
const START_TIME: Duration = Duration::from_secs(20);

/// Ends a program with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Starts a sound server with one sink that plays nowhere.
fn sound_server(dir: &Path) -> Running {
    let socket = dir.join("native");
    let protocol =
        format!("module-native-protocol-unix auth-anonymous=1 socket={}", socket.display());
    let sink = "module-null-sink sink_name=garden format=float32le rate=48000 channels=2";
    let child = Command::new("pulseaudio")
        .args(["-n", "--daemonize=no", "--use-pid-file=no", "--exit-idle-time=-1"])
        .args(["--disallow-exit=yes", "-L", &protocol, "-L", sink])
        .env("HOME", dir)
        .env("XDG_RUNTIME_DIR", dir)
        .env_remove(SERVER)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("`pulseaudio` is installed by the tests' preparation");
    let running = Running(child);
    wait_for("the sound server", || {
        let listed = Command::new("pactl")
            .args(["list", "short", "sinks"])
            .env(SERVER, format!("unix:{}", socket.display()))
            .output();
        listed.is_ok_and(|listed| String::from_utf8_lossy(&listed.stdout).contains("garden"))
    });
    running
}

fn wait_for(what: &str, is_there: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_there() {
        assert!(start.elapsed() < START_TIME, "{what} did not start");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A sound after two seconds. The server renders silence in advance, and a stream that starts takes
/// the place of up to half a second of it, which the recorder already has.
fn piece(shop: &Shop) -> Vec<GardenRegion> {
    vec![region(1, shop.store("a.wav", "audio/wav"), 4.0)]
}

/// Plays on the sound server of the environment: only for the test below, as a process of its own,
/// because the environment is that of a whole process.
#[tokio::test]
async fn a_process_plays_on_the_sound_server_it_is_given() {
    let Ok(dir) = std::env::var(STORE) else { return };
    let shop = Shop::at(Path::new(&dir));
    let timeline = timeline(piece(&shop));
    shop.play(timeline, DeviceChoice::Pulse).await;
}

/// Rule: what `parec` records from a private PulseAudio is the sound of the file device.
#[tokio::test]
async fn the_sound_server_plays_what_the_file_device_writes() {
    let shop = Shop::new();
    shop.write("a.wav", RATE, &chord(RATE, 1.5, 0.7, &[220.0, 333.0, 1234.5]));
    let played = shop.played(piece(&shop)).await;
    let server_dir = tempfile::tempdir().unwrap();
    let _server = sound_server(server_dir.path());
    let address = format!("unix:{}", server_dir.path().join("native").display());
    let recording = shop.path("recorded.raw");
    let recorder = Command::new("parec")
        .args(["-d", "garden.monitor", "--raw", "--format=float32le", "--rate=48000"])
        .args(["--channels=2", "--latency-msec=200"])
        .env(SERVER, &address)
        .stdout(std::fs::File::create(&recording).unwrap())
        .spawn()
        .unwrap();
    let recorder = Running(recorder);
    wait_for("the recording", || std::fs::metadata(&recording).is_ok_and(|file| file.len() > 0));
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "pulse::a_process_plays_on_the_sound_server_it_is_given"])
        .env(STORE, shop.path(""))
        .env(SERVER, &address)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let n_bytes = std::fs::metadata(&recording).unwrap().len();
    wait_for("the end of the recording", || {
        std::fs::metadata(&recording).unwrap().len() > n_bytes + u64::from(RATE) * 4
    });
    drop(recorder);
    let recorded = raw_frames(&std::fs::read(&recording).unwrap());
    let is_sound = |frame: &[f32; 2]| frame.iter().any(|sample| sample.abs() > 1e-4);
    let (ours, theirs) =
        (played.iter().position(is_sound).unwrap(), recorded.iter().position(is_sound).unwrap());
    let n_frames = played.len() - ours;
    assert!(n_frames > 71_000 && recorded.len() - theirs > n_frames);
    let worst = difference(&played[ours..], &recorded[theirs..], 0..n_frames);
    assert!(worst < CLOSE, "{worst}");
    let after = &recorded[theirs + n_frames..];
    assert!(!after.iter().any(is_sound), "silence follows");
}

fn raw_frames(bytes: &[u8]) -> Vec<[f32; 2]> {
    let sample = |bytes: &[u8]| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    bytes.chunks_exact(8).map(|frame| [sample(frame), sample(&frame[4..])]).collect()
}
