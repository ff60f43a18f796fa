//! The callback under an allocator that aborts: it must work in the memory it has.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use ringback_garden::engine::{Engine, Want};
use ringback_garden::renderer::{Delivery, Listener, Renderer};
use ringback_garden::sound::{Sound, SoundKey, key_of};
use ringback_garden::transport::Action;
use ringback_proto::garden::{GardenAt, GardenEvent, GardenRegion, GardenTimeline, Ticks};
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
        content_hash: BlobHash::from_bytes([1; 32]),
        mime_type: "audio/wav".to_owned(),
        gain_db: 6.0,
        pan: 0.5,
        offset_seconds: 0.0,
        fade_in: Ticks(100),
        fade_out: Ticks(100),
        name: None,
    }
}

/// Rule: the callback does not allocate, through starts, seeks, edits, underruns and ends.
#[test]
fn the_callback_allocates_and_frees_nothing() {
    let mut engine = Engine::new(48_000);
    engine.load(GardenTimeline { revision: 0, tempo: Vec::new(), regions: vec![region()] });
    let (mut renderer, orders, mut player) = Renderer::new(engine, 4800, Box::new(Deaf));
    let key = key_of(&region(), renderer.engine().tempo());
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
        }
    }
    let shared = renderer.shared();
    assert!(shared.n_frames() > 100_000 && shared.n_underruns() > 0 && shared.n_clipped() > 0);
}
