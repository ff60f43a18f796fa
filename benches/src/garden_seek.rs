//! How soon a seek is heard: the garden's renderer and callback in this process, on a device that only
//! keeps time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use ringback_garden::engine::Engine;
use ringback_garden::mixer::Want;
use ringback_garden::renderer::{Delivery, Listener, Orders, Renderer};
use ringback_garden::sound::{Sound, SoundKey, key_of};
use ringback_garden::transport::Action;
use ringback_proto::garden::{
    GardenContent, GardenEvent, GardenRegion, GardenTimeline, RegionState, Ticks,
};
use ringback_proto::ids::{BlobHash, RegionId};

use crate::figure::{Figure, Line};

const RATE: u32 = 48_000;
const BUFFER_FRAMES: usize = 128;
/// As the garden has them by default: 100 ms mixed in advance, and a renderer that sleeps 10 ms.
const AHEAD_FRAMES: u64 = 4800;
const RENDERER_SLEEP: Duration = Duration::from_millis(10);
/// A quiet place and a loud one: the first loud sample is the first frame after a seek.
const PLACES: [(u64, f32); 2] = [(0, 0.1), (1000 * Ticks::PER_BEAT, 0.75)];
/// Buffers before the next seek.
const REST: usize = 7;
/// A seek that is never heard.
const BUFFERS_MAX: usize = 1000;

struct Deaf;

impl Listener for Deaf {
    fn wants(&mut self, _: Vec<Want>) {}
    fn requests(&mut self, _: Vec<SoundKey>) {}
    fn events(&mut self, _: Vec<GardenEvent>) {}
}

pub(crate) fn run(count: usize) -> anyhow::Result<Figure> {
    let regions: Vec<GardenRegion> = PLACES.iter().zip(1..).map(region).collect();
    let mut engine = Engine::new(RATE);
    let timeline = GardenTimeline { revision: 0, tempo: vec![], loop_range: None, regions };
    engine.load(timeline.clone());
    let (mut renderer, orders, mut player) = Renderer::new(engine, AHEAD_FRAMES, Box::new(Deaf));
    for (region, (_, level)) in timeline.regions.iter().zip(PLACES) {
        let sound = Arc::new(Sound::new(2, vec![level; 60 * RATE as usize * 2]));
        let key = key_of(region, renderer.engine().tempo()).context("a region without content")?;
        orders.deliver(Delivery::Ready(key, sound));
        renderer.turn();
    }
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let rendering = std::thread::spawn(move || {
        while !flag.load(Ordering::Relaxed) {
            if !renderer.turn() {
                std::thread::park_timeout(RENDERER_SLEEP);
            }
        }
    });
    let orders = orders.waking(rendering.thread().clone());
    orders.send(Box::new(|engine| drop(engine.transport(Action::Play, None, None))))?;
    let mut buffer = [0.0; BUFFER_FRAMES * 2];
    let mut play = |player: &mut ringback_garden::player::Player| {
        std::thread::sleep(Duration::from_secs_f64(BUFFER_FRAMES as f64 / f64::from(RATE)));
        player.fill(&mut buffer);
        buffer
    };
    let mut worst = 0;
    let [quiet, loud] = PLACES;
    let is_loud = |buffer: &[f32]| buffer.iter().any(|sample| *sample >= loud.1);
    for _ in 0..count {
        seek(&orders, quiet.0)?;
        for _ in 0..REST {
            play(&mut player);
        }
        seek(&orders, loud.0)?;
        let heard = (1..BUFFERS_MAX).find(|_| is_loud(&play(&mut player)));
        worst = worst.max(heard.unwrap_or(BUFFERS_MAX));
    }
    stop.store(true, Ordering::Relaxed);
    drop(rendering.join());
    let name = "garden: buffers until a seek is heard, most";
    Ok(Figure::value(name, "buffers", worst as f64, Line::AtMost(2.0)))
}

fn seek(orders: &Orders, tick: u64) -> anyhow::Result<()> {
    let seek = Action::Seek(Ticks(tick));
    orders.send(Box::new(move |engine| drop(engine.transport(seek, None, None))))?;
    Ok(())
}

fn region(((tick, _), number): (&(u64, f32), u8)) -> GardenRegion {
    GardenRegion {
        region_id: RegionId::from_random([number; 16]),
        position: Ticks(*tick),
        duration: Some(Ticks(100 * Ticks::PER_BEAT)),
        state: RegionState::Ready,
        content: Some(GardenContent {
            hash: BlobHash::from_bytes([number; 32]),
            mime_type: "audio/wav".to_owned(),
        }),
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
