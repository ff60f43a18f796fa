//! The callback under an allocator that aborts: it must work in the memory it has. And on a thread
//! that counts its waits: it must wait for its device alone.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ringback_garden::device::{Device, DeviceError, Stop};
use ringback_garden::engine::Engine;
use ringback_garden::mixer::Want;
use ringback_garden::player::Player;
use ringback_garden::renderer::{Delivery, Listener, Renderer};
use ringback_garden::sound::{Sound, SoundKey, key_of};
use ringback_garden::tap::tap;
use ringback_garden::transport::Action;
use ringback_proto::garden::{
    GardenAt, GardenContent, GardenEvent, GardenRegion, GardenTimeline, RegionState, Ticks,
};
use ringback_proto::ids::{BlobHash, RegionId};

struct Guard;

thread_local! {
    static IS_FORBIDDEN: Cell<bool> = const { Cell::new(false) };
}

fn check() {
    if IS_FORBIDDEN.with(Cell::get) {
        std::process::abort();
    }
}

#[expect(unsafe_code, reason = "an allocator is the only witness of allocations")]
// SAFETY: every call is passed on unchanged.
unsafe impl GlobalAlloc for Guard {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        check();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        check();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static GUARD: Guard = Guard;

struct Deaf;

impl Listener for Deaf {
    fn wants(&mut self, _: Vec<Want>) {}
    fn requests(&mut self, _: Vec<SoundKey>) {}
    fn events(&mut self, _: Vec<GardenEvent>) {}
}

fn region() -> GardenRegion {
    GardenRegion {
        region_id: RegionId::from_random([1; 16]),
        position: Ticks(0),
        duration: Some(Ticks(40 * 960)),
        state: RegionState::Ready,
        content: Some(GardenContent {
            hash: BlobHash::from_bytes([1; 32]),
            mime_type: "audio/wav".to_owned(),
        }),
        promise: None,
        repeat: 1,
        gain_db: 6.0,
        pan: 0.5,
        offset_seconds: 0.0,
        fade_in: Ticks(100),
        fade_out: Ticks(100),
        crossfade: Ticks(0),
        name: None,
    }
}

/// Who listens to the tap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heard {
    ByNobody,
    /// By one that takes everything.
    Whole,
    /// By one that takes nothing, so that the ring is full.
    Missed,
}

/// Rule: the callback does not allocate, through starts, seeks, edits, underruns and ends, whether
/// somebody listens to the tap or not, and also when its ring is full.
#[test]
fn the_callback_allocates_and_frees_nothing() {
    for heard in [Heard::ByNobody, Heard::Whole, Heard::Missed] {
        play(heard);
    }
}

fn play(heard: Heard) {
    let mut engine = Engine::new(48_000);
    let regions = vec![region()];
    engine.load(GardenTimeline { revision: 0, tempo: Vec::new(), loop_range: None, regions });
    let (mut renderer, orders, player) = Renderer::new(engine, 4800, Box::new(Deaf));
    let (tap, mut reader) = tap(48_000);
    let mut player = player.tapped(tap);
    if heard != Heard::ByNobody {
        reader.start();
    }
    let (mut n_heard, mut n_missed) = (0, 0);
    let key = key_of(&region(), renderer.engine().tempo()).expect("it has content");
    let sound = Sound::new(2, vec![0.9; 2 * 48_000]);
    orders.deliver(Delivery::Ready(key, Arc::new(sound)));
    let commands = [
        (Action::Play, GardenAt::Now),
        (Action::Seek(Ticks(500)), GardenAt::Now),
        (Action::Seek(Ticks(100)), GardenAt::NextBeat),
        (Action::Pause, GardenAt::Now),
        (Action::Play, GardenAt::Now),
        (Action::Stop, GardenAt::NextBeat),
    ];
    let mut buffer = vec![0.0; 2 * 300];
    for (action, at) in commands.into_iter().cycle().take(60) {
        let order = move |engine: &mut Engine| drop(engine.transport(action, Some(at), None));
        orders.send(Box::new(order)).expect("there is room");
        renderer.turn();
        // More than lies ahead, so that the ring also runs dry.
        for n_buffer in 0..40 {
            IS_FORBIDDEN.with(|flag| flag.set(true));
            player.fill(&mut buffer);
            IS_FORBIDDEN.with(|flag| flag.set(false));
            if n_buffer % 3 == 0 && n_buffer < 20 {
                renderer.turn();
            }
            while heard == Heard::Whole
                && let Some(piece) = reader.take(4800)
            {
                n_heard += piece.frames.len();
                n_missed += piece.n_missed;
            }
        }
    }
    if heard == Heard::Missed {
        while reader.take(4800).is_some() {}
        player.fill(&mut buffer);
        n_missed += reader.take(4800).expect("there is room again").n_missed;
    }
    assert_eq!(n_heard > 0, heard == Heard::Whole);
    assert_eq!(n_missed > 0, heard == Heard::Missed);
    let shared = renderer.shared();
    assert!(shared.n_frames() > 100_000 && shared.n_underruns() > 0 && shared.n_clipped() > 0);
}

/// A device that takes a buffer, waits, and counts.
struct Counted {
    n_waits: u64,
    n_switches: u64,
}

/// Long enough that every wait gives up the processor.
const DEVICE_WAIT: Duration = Duration::from_millis(2);

impl Device for Counted {
    fn kind(&self) -> &'static str {
        "counted"
    }

    fn name(&self) -> String {
        self.kind().to_owned()
    }

    fn run(&mut self, player: &mut Player, stop: &Stop) -> Result<(), DeviceError> {
        let mut buffer = vec![0.0; 2 * 128];
        let before = voluntary_switches();
        while !stop.is_set() {
            player.fill(&mut buffer);
            std::thread::sleep(DEVICE_WAIT);
            self.n_waits += 1;
        }
        self.n_switches = voluntary_switches() - before;
        Ok(())
    }
}

/// Returns how often this thread has given up the processor to wait.
fn voluntary_switches() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.and_then(|count| count.trim().parse().ok()).expect("it is a number")
}

/// Rule: the callback's thread waits for its device and for nothing else, while the renderer works
/// and commands arrive.
#[test]
fn the_callback_waits_for_its_device_alone() {
    let mut engine = Engine::new(48_000);
    let (tempo, regions) = (Vec::new(), vec![region()]);
    engine.load(GardenTimeline { revision: 0, tempo, loop_range: None, regions });
    let (mut renderer, orders, mut player) = Renderer::new(engine, 4800, Box::new(Deaf));
    let key = key_of(&region(), renderer.engine().tempo()).expect("it has content");
    orders.deliver(Delivery::Ready(key, Arc::new(Sound::new(2, vec![0.9; 2 * 48_000]))));
    let ended = AtomicBool::new(false);
    let device = std::thread::scope(|scope| {
        let playing = scope.spawn(|| {
            let mut device = Counted { n_waits: 0, n_switches: 0 };
            device.run(&mut player, &Stop::new(&ended, None)).expect("it cannot be lost");
            device
        });
        for action in [Action::Play, Action::Seek(Ticks(500))].into_iter().cycle().take(100) {
            let order = move |engine: &mut Engine| drop(engine.transport(action, None, None));
            orders.send(Box::new(order)).expect("there is room");
            let n_played = renderer.shared().n_frames();
            while renderer.shared().n_frames() < n_played + 512 {
                renderer.turn();
                std::thread::yield_now();
            }
        }
        ended.store(true, Ordering::Relaxed);
        playing.join().expect("it does not panic")
    });
    assert!(device.n_waits > 100, "{} waits", device.n_waits);
    assert_eq!(device.n_switches, device.n_waits);
}
