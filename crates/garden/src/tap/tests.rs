//! The tap in the callback, on a clock of frames: no real time passes.

use std::sync::Arc;

use ringback_proto::garden::{GardenAt, GardenEvent, GardenTimeline, Ticks};

use super::*;
use crate::engine::Engine;
use crate::mixer::Want;
use crate::player::Player;
use crate::renderer::{Delivery, Listener, Orders, Renderer};
use crate::sound::{Sound, SoundKey, key_of};
use crate::testing::region;
use crate::transport::Action;

const RATE: u32 = 48_000;
const AHEAD: u64 = 9600;
const PIECE_FRAMES: usize = 2400;

struct Deaf;

impl Listener for Deaf {
    fn wants(&mut self, _: Vec<Want>) {}
    fn requests(&mut self, _: Vec<SoundKey>) {}
    fn events(&mut self, _: Vec<GardenEvent>) {}
}

/// A garden whose device is a list of samples, with a tap.
struct Rig {
    renderer: Renderer,
    orders: Orders,
    player: Player,
    reader: TapReader,
    /// Everything the device got, as bytes.
    played: Vec<u8>,
}

impl Rig {
    /// A rig that plays a sound of which every frame differs.
    fn playing() -> Self {
        let long = region(1, 0.0, Some(40.0), "audio/wav");
        let mut engine = Engine::new(RATE);
        let regions = vec![long.clone()];
        engine.load(GardenTimeline { revision: 0, tempo: vec![], loop_range: None, regions });
        let (mut renderer, orders, player) = Renderer::new(engine, AHEAD, Box::new(Deaf));
        let key = key_of(&long, renderer.engine().tempo()).unwrap();
        let samples = (0..2_000_000).map(|idx| idx as f32 / (1 << 21) as f32).collect();
        assert!(orders.deliver(Delivery::Ready(key, Arc::new(Sound::new(2, samples)))));
        renderer.turn();
        let (tap, reader) = tap(RATE);
        let mut rig =
            Self { renderer, orders, player: player.tapped(tap), reader, played: Vec::new() };
        rig.transport(Action::Play);
        rig
    }

    fn transport(&mut self, action: Action) {
        let order =
            move |engine: &mut Engine| drop(engine.transport(action, Some(GardenAt::Now), None));
        self.orders.send(Box::new(order)).unwrap();
        self.renderer.turn();
    }

    fn buffer(&mut self, n_frames: usize) {
        let mut out = vec![0.0; n_frames * CHANNELS];
        self.player.fill(&mut out);
        self.played.extend(out.iter().flat_map(|sample| sample.to_le_bytes()));
        self.renderer.turn();
    }

    fn pieces(&mut self) -> Vec<TapPiece> {
        std::iter::from_fn(|| self.reader.take(PIECE_FRAMES)).collect()
    }
}

/// Rule: what a listener hears is what the device gets, sample by sample: jumps, fades and silence
/// too.
#[test]
fn the_tap_delivers_what_the_device_got() {
    let mut rig = Rig::playing();
    rig.reader.start();
    let mut heard = Vec::new();
    let actions = [Action::Seek(Ticks(9600)), Action::Pause, Action::Play, Action::Stop];
    for (idx, action) in actions.into_iter().enumerate() {
        for n_frames in [128, 16, 441, 1024, 3000] {
            rig.buffer(n_frames + idx);
        }
        rig.transport(action);
        for piece in rig.pieces() {
            assert_eq!(piece.n_missed, 0);
            assert!(piece.frames.len() <= PIECE_FRAMES * FRAME_BYTES);
            heard.extend(piece.frames);
        }
    }
    rig.buffer(4096);
    heard.extend(rig.pieces().into_iter().flat_map(|piece| piece.frames));
    assert!(heard == rig.played, "{} and {} bytes", heard.len(), rig.played.len());
    let silence = [0; 100 * FRAME_BYTES];
    assert!(rig.played.ends_with(&silence), "silence is heard as well");
    assert!(!rig.played.starts_with(&silence));
}

/// Rule: a listener that is too slow misses frames, knows where and how many, and playback does not
/// notice.
#[test]
fn a_full_ring_counts_what_is_missing_and_playback_goes_on() {
    let mut rig = Rig::playing();
    rig.reader.start();
    // Far more than the ring holds, and nothing is read.
    for _ in 0..3 {
        for _ in 0..RATE as usize * 5 / 2 / 480 {
            rig.buffer(480);
        }
        rig.transport(Action::Seek(Ticks(0)));
    }
    let before_gap = rig.pieces();
    assert!(before_gap.iter().all(|piece| piece.n_missed == 0));
    let n_before: usize = before_gap.iter().map(|piece| piece.frames.len()).sum();
    assert!(n_before >= RATE as usize * FRAME_BYTES, "the ring holds a second");
    let first: Vec<u8> = before_gap.into_iter().flat_map(|piece| piece.frames).collect();
    assert!(rig.played.starts_with(&first));
    let n_played = rig.played.len();
    rig.buffer(480);
    rig.buffer(480);
    let [after] = &rig.pieces()[..] else { panic!("one piece") };
    assert_eq!(after.n_missed as usize, (n_played - n_before) / FRAME_BYTES);
    assert!(after.frames == rig.played[n_played..]);
    assert_eq!(rig.renderer.shared().n_underruns(), 0);
}

/// Rule: while nobody listens nothing is copied, and a new listener hears nothing of before.
#[test]
fn what_was_played_while_nobody_listened_is_not_heard_later() {
    let mut rig = Rig::playing();
    rig.buffer(480);
    assert_eq!(rig.reader.ring.slots(), 0);
    rig.reader.start();
    rig.buffer(480);
    rig.reader.stop();
    let n_words = rig.reader.ring.slots();
    rig.buffer(480);
    assert_eq!(rig.reader.ring.slots(), n_words);
    let from = rig.played.len();
    rig.reader.start();
    rig.buffer(480);
    let [piece] = &rig.pieces()[..] else { panic!("one piece") };
    assert!(piece.frames == rig.played[from..] && piece.n_missed == 0);
}

#[test]
fn a_buffer_longer_than_the_ring_is_heard_as_far_as_it_fits() {
    let mut rig = Rig::playing();
    rig.reader.start();
    rig.buffer(3 * RATE as usize);
    let heard: Vec<u8> = rig.pieces().into_iter().flat_map(|piece| piece.frames).collect();
    assert!(heard.len() >= RATE as usize * FRAME_BYTES && rig.played.starts_with(&heard));
    rig.buffer(480);
    let [piece] = &rig.pieces()[..] else { panic!("one piece") };
    assert_eq!(piece.n_missed as usize, 3 * RATE as usize - heard.len() / FRAME_BYTES);
}
