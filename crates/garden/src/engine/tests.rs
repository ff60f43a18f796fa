//! The engine with its ring and its callback, on a clock of frames: no real time passes.

mod repeats;

use std::sync::Mutex;

use proptest::prelude::*;
use ringback_proto::ErrorKind;
use ringback_proto::garden::command::SetTempoArguments;
use ringback_proto::garden::{GardenAt, GardenRegion, TempoChange, TransportState};

use super::*;
use crate::player::Player;
use crate::renderer::{Delivery, Listener, Orders, Renderer};
use crate::testing::region;
use crate::transport::Action;

const RATE: u32 = 48_000;
const BUFFER: usize = 128;
const AHEAD: u64 = 4800;
/// A beat at 120 quarter notes per minute.
const BEAT: u64 = 24_000;
const FADE: usize = 240;

/// What the listener was given.
#[derive(Debug, Default)]
struct Told {
    /// All but positions.
    events: Vec<GardenEvent>,
    positions: Vec<GardenPositionEvent>,
    requests: Vec<SoundKey>,
    wants: Vec<Want>,
}

struct Ear(Arc<Mutex<Told>>);

impl Listener for Ear {
    fn wants(&mut self, wants: Vec<Want>) {
        self.0.lock().unwrap().wants = wants;
    }

    fn requests(&mut self, keys: Vec<SoundKey>) {
        self.0.lock().unwrap().requests.extend(keys);
    }

    fn events(&mut self, events: Vec<GardenEvent>) {
        let mut told = self.0.lock().unwrap();
        for event in events {
            match event {
                GardenEvent::Position(position) => told.positions.push(position),
                GardenEvent::Transport(_)
                | GardenEvent::Region(_)
                | GardenEvent::Trouble(_)
                | GardenEvent::Heard(_) => told.events.push(event),
            }
        }
    }
}

/// A garden whose device is a list of samples.
struct Rig {
    renderer: Renderer,
    orders: Orders,
    player: Player,
    told: Arc<Mutex<Told>>,
    /// Left channel of everything played.
    left: Vec<f32>,
}

impl Rig {
    fn new(regions: Vec<GardenRegion>) -> Self {
        let mut engine = Engine::new(RATE);
        let timeline = GardenTimeline { revision: 0, tempo: vec![], loop_range: None, regions };
        engine.load(timeline);
        let told = Arc::default();
        let ear = Box::new(Ear(Arc::clone(&told)));
        let (renderer, orders, player) = Renderer::new(engine, AHEAD, ear);
        let mut rig = Self { renderer, orders, player, told, left: Vec::new() };
        rig.renderer.turn();
        rig
    }

    /// A rig whose regions all have a sound.
    fn ready(regions: &[GardenRegion], sound: impl Fn(&GardenRegion) -> Sound) -> Self {
        let mut rig = Self::new(regions.to_vec());
        for region in regions {
            rig.deliver(region, sound(region));
        }
        rig
    }

    fn deliver(&mut self, region: &GardenRegion, sound: Sound) {
        let key = crate::sound::key_of(region, self.renderer.engine().tempo()).unwrap();
        assert!(self.orders.deliver(Delivery::Ready(key, Arc::new(sound))));
        self.renderer.turn();
    }

    fn order<R: Send + 'static>(
        &mut self,
        run: impl FnOnce(&mut Engine) -> R + Send + 'static,
    ) -> R {
        let (sender, receiver) = std::sync::mpsc::channel();
        self.orders.send(Box::new(move |engine| drop(sender.send(run(engine))))).unwrap();
        self.renderer.turn();
        receiver.recv().unwrap()
    }

    fn transport(&mut self, action: Action, at: GardenAt) {
        self.order(move |engine| engine.transport(action, Some(at), None)).unwrap();
    }

    fn buffer(&mut self) {
        let mut out = [0.0; BUFFER * CHANNELS];
        self.player.fill(&mut out);
        self.left.extend(out.iter().step_by(CHANNELS));
    }

    /// Plays, with the renderer at work between buffers.
    fn play(&mut self, n_frames: usize) {
        for _ in 0..n_frames.div_ceil(BUFFER) {
            self.buffer();
            self.renderer.turn();
        }
    }

    fn status(&self) -> (TransportState, u64) {
        let engine = self.renderer.engine();
        (engine.heard.state(), engine.heard.frame())
    }

    fn underruns(&self) -> u64 {
        self.renderer.shared().n_underruns()
    }
}

/// Says at which frame of its region it is, in steps that a float has exactly.
fn ramp(n_frames: usize) -> Sound {
    Sound::new(1, (0..n_frames).map(|idx| idx as f32 / (1 << 20) as f32).collect())
}

fn step_of(sample: f32) -> usize {
    (sample * (1 << 20) as f32).round() as usize
}

fn whole(_: &GardenRegion) -> Sound {
    ramp(1_000_000)
}

fn long() -> GardenRegion {
    region(1, 0.0, Some(40.0), "audio/wav")
}

#[test]
fn a_region_plays_from_its_first_sample_and_the_position_is_the_frames_played() {
    let mut rig = Rig::ready(&[long()], whole);
    rig.transport(Action::Play, GardenAt::Now);
    rig.play(10 * BUFFER);
    let steps: Vec<usize> = rig.left.iter().map(|sample| step_of(*sample)).collect();
    assert_eq!(steps, (0..10 * BUFFER).collect::<Vec<_>>());
    assert_eq!(rig.status(), (TransportState::Playing, 10 * BUFFER as u64));
}

/// Rule: a seek plays the place it names, and the position is right from there on.
#[test]
fn a_seek_is_heard_in_the_next_buffer_at_its_exact_frame() {
    let mut rig = Rig::ready(&[long()], whole);
    rig.transport(Action::Play, GardenAt::Now);
    rig.play(1024);
    rig.transport(Action::Seek(Ticks(10 * 960)), GardenAt::Now);
    rig.play(1024);
    let from = 10 * BEAT as usize;
    for idx in FADE..1024 {
        assert_eq!(step_of(rig.left[1024 + idx]), from + idx, "{idx}");
    }
    assert_eq!(rig.status(), (TransportState::Playing, (from + 1024) as u64));
    assert_eq!(rig.underruns(), 0);
}

#[test]
fn a_planned_seek_acts_at_its_exact_frame_even_if_that_was_already_in_the_ring() {
    let mut rig = Rig::ready(&[long()], whole);
    rig.transport(Action::Play, GardenAt::Now);
    let before = BEAT as usize / BUFFER * BUFFER;
    rig.play(before);
    rig.transport(Action::Seek(Ticks(20 * 960)), GardenAt::NextBeat);
    rig.play(2048);
    let cut = BEAT as usize;
    assert_eq!(step_of(rig.left[cut - 1]), cut - 1);
    for idx in FADE..1000 {
        assert_eq!(step_of(rig.left[cut + idx]), 20 * BEAT as usize + idx, "{idx}");
    }
}

/// Rule: a change of tempo during playback moves no position.
#[test]
fn a_tempo_change_while_playing_keeps_the_place_and_later_beats_follow_it() {
    let mut rig = Rig::ready(&[long()], whole);
    rig.transport(Action::Play, GardenAt::Now);
    rig.play(1024);
    let arguments = |bpm, position, revision| SetTempoArguments {
        bpm,
        position,
        time_signature: None,
        at: None,
        revision,
    };
    let change = rig.order(move |engine| engine.set_tempo(&arguments(60.0, None, 1))).unwrap();
    assert_eq!(change.at, Ticks(4 * 960), "at the next bar");
    rig.play(4 * BEAT as usize);
    let beats = rig.renderer.engine().position_beats();
    assert!((beats - (4.0 + 1024.0 / 48_000.0)).abs() < 1e-6, "{beats}");
    let steps = (0..rig.left.len()).filter(|idx| step_of(rig.left[*idx]) != *idx).count();
    assert_eq!(steps, 0, "audio plays on at its own speed");
    let before = rig.renderer.engine().position_beats();
    rig.order(move |engine| engine.set_tempo(&arguments(240.0, Some(Ticks(0)), 2))).unwrap();
    let after = rig.renderer.engine().position_beats();
    assert!((before - after).abs() < 1e-3, "{before} to {after}");
    assert_eq!(rig.underruns(), 0);
}

/// Rule: a deleted region is not heard from the ring.
#[test]
fn a_deleted_region_is_silent_after_its_fade() {
    let mut rig = Rig::ready(&[long(), region(2, 0.0, Some(8.0), "audio/wav")], |region| {
        let level = if region.region_id == long().region_id { 0.25 } else { 0.5 };
        Sound::new(1, vec![level; 400_000])
    });
    rig.transport(Action::Play, GardenAt::Now);
    rig.play(1024);
    let region_id = region(2, 0.0, None, "").region_id;
    rig.order(move |engine| engine.delete_region(region_id, 1)).unwrap();
    rig.play(2048);
    assert!(rig.left[..1024].iter().all(|sample| (sample - 0.75).abs() < 1e-6));
    let after = &rig.left[1024 + FADE..];
    assert!(after.iter().all(|sample| (sample - 0.25).abs() < 1e-6));
    let fade = &rig.left[1024..1024 + FADE];
    assert!(fade.windows(2).all(|pair| pair[1] <= pair[0] && pair[0] - pair[1] < 0.01));
    assert_eq!((rig.underruns(), rig.status().1), (0, 3072));
}

#[test]
fn a_change_elsewhere_leaves_every_sample_as_it_was() {
    let mut rig = Rig::ready(&[long()], whole);
    rig.transport(Action::Play, GardenAt::Now);
    for number in 2..50_u8 {
        let far = region(number, 60.0, Some(1.0), "audio/wav");
        let revision = u64::from(number) - 1;
        rig.order(move |engine| engine.create_region(far, None, revision)).unwrap();
        rig.play(BUFFER);
    }
    for (idx, sample) in rig.left.iter().enumerate() {
        assert_eq!(step_of(*sample), idx);
    }
    assert_eq!(rig.underruns(), 0);
}

/// Rule: an emergency pause waits for no other command.
#[test]
fn an_emergency_pause_overtakes_a_queue_of_commands() {
    let mut rig = Rig::ready(&[long()], whole);
    rig.transport(Action::Play, GardenAt::Now);
    rig.play(1024);
    for n in 0..1000 {
        let seek = Action::Seek(Ticks(n));
        let order = move |engine: &mut Engine| drop(engine.transport(seek, None, None));
        rig.orders.send(Box::new(order)).unwrap();
    }
    rig.orders
        .send_urgent(Box::new(|engine| {
            engine.emergency_pause();
        }))
        .unwrap();
    assert!(rig.renderer.turn(), "commands still wait");
    assert_eq!(rig.status().0, TransportState::Paused);
    rig.buffer();
    rig.buffer();
    assert!(rig.left[1024 + FADE..].iter().all(|sample| *sample == 0.0));
}

/// Rule: neither 10,000 commands nor a listener that takes nothing causes an underrun.
#[test]
fn ten_thousand_commands_cause_no_underrun() {
    let mut rig = Rig::ready(&[long()], whole);
    rig.transport(Action::Play, GardenAt::Now);
    for n in 0..10_000_u64 {
        let revision = n + 1;
        let command = move |engine: &mut Engine| {
            if n % 2 == 0 {
                let far = region(7, 50.0, Some(1.0), "audio/wav");
                engine.create_region(far, None, revision).unwrap();
            } else {
                engine.delete_region(region(7, 0.0, None, "").region_id, revision).unwrap();
            }
        };
        rig.orders.send(Box::new(command)).unwrap();
        if n % 16 == 15 {
            rig.play(BUFFER);
        }
    }
    while rig.renderer.turn() {}
    rig.play(1024);
    for (idx, sample) in rig.left.iter().enumerate() {
        assert_eq!(step_of(*sample), idx);
    }
    assert_eq!(rig.underruns(), 0);
}

/// Rule: commands that come faster than the device asks for sound leave no gap.
#[test]
fn many_edits_within_a_buffer_are_not_heard() {
    let mut rig = Rig::ready(&[long()], whole);
    rig.transport(Action::Play, GardenAt::Now);
    rig.play(BUFFER);
    let mut revision = 0;
    for _ in 0..100 {
        for _ in 0..8 {
            revision += 1;
            let edit = move |engine: &mut Engine| {
                if revision % 2 == 1 {
                    let far = region(7, 50.0, Some(1.0), "audio/wav");
                    engine.create_region(far, None, revision)
                } else {
                    engine.delete_region(region(7, 0.0, None, "").region_id, revision)
                }
            };
            rig.order(edit).unwrap();
        }
        rig.buffer();
    }
    for (idx, sample) in rig.left.iter().enumerate() {
        assert_eq!(step_of(*sample), idx);
    }
    assert_eq!(rig.underruns(), 0);
}

#[test]
fn many_seeks_within_a_buffer_are_heard_and_a_pause_waits_for_none_of_them() {
    let mut rig = Rig::ready(&[long()], |_| Sound::new(1, vec![0.25; 1_000_000]));
    rig.transport(Action::Play, GardenAt::Now);
    rig.play(4 * BUFFER);
    for round in 0..100 {
        for beat in 0..8 {
            rig.transport(Action::Seek(Ticks(beat * 960)), GardenAt::Now);
        }
        rig.buffer();
        let last = &rig.left[rig.left.len() - BUFFER..];
        assert!(last.iter().any(|sample| *sample > 0.01), "{round}");
    }
    assert_eq!(rig.underruns(), 0);
    for beat in 0..8 {
        rig.transport(Action::Seek(Ticks(beat * 960)), GardenAt::Now);
    }
    let pause = |engine: &mut Engine| {
        engine.emergency_pause();
    };
    rig.orders.send_urgent(Box::new(pause)).unwrap();
    rig.renderer.turn();
    let n_before = rig.left.len();
    for _ in 0..4 {
        rig.buffer();
    }
    assert!(rig.left[n_before + FADE..].iter().all(|sample| *sample == 0.0));
    assert_eq!(rig.status().0, TransportState::Paused);
}

impl Rig {
    /// The trouble that was reported, with its beat.
    fn troubles(&self) -> Vec<(TroubleKind, f64)> {
        let told = self.told.lock().unwrap();
        let troubles = told.events.iter().filter_map(|event| match event {
            GardenEvent::Trouble(trouble) => Some((trouble.kind, trouble.position_beats)),
            GardenEvent::Region(_)
            | GardenEvent::Transport(_)
            | GardenEvent::Position(_)
            | GardenEvent::Heard(_) => None,
        });
        troubles.collect()
    }
}

/// Rule: the position is reported ten times a second while it plays, with peaks, and not at rest.
#[test]
fn the_position_is_reported_ten_times_a_second_with_peaks() {
    let mut rig = Rig::ready(&[long()], |_| Sound::new(1, vec![0.25; 1_000_000]));
    rig.play(RATE as usize);
    assert!(rig.told.lock().unwrap().positions.is_empty(), "nothing plays");
    rig.transport(Action::Play, GardenAt::Now);
    rig.play(3 * RATE as usize);
    rig.transport(Action::Pause, GardenAt::Now);
    rig.play(RATE as usize);
    let told = rig.told.lock().unwrap();
    assert!((29..=31).contains(&told.positions.len()), "{}", told.positions.len());
    for pair in told.positions.windows(2) {
        let beats = pair[1].position_beats - pair[0].position_beats;
        assert!((beats - 0.2).abs() < 0.01, "a tenth of a second: {beats}");
        assert_eq!((pair[1].peaks, pair[1].state), ([0.25; 2], TransportState::Playing));
    }
}

#[test]
fn an_underrun_is_reported_with_its_beat() {
    let mut rig = Rig::ready(&[long()], whole);
    rig.transport(Action::Play, GardenAt::Now);
    rig.play(BEAT as usize / BUFFER * BUFFER);
    assert_eq!(rig.troubles(), []);
    for _ in 0..AHEAD as usize / BUFFER + 20 {
        rig.buffer();
    }
    rig.renderer.turn();
    let troubles = rig.troubles();
    let [(TroubleKind::Underrun, beat)] = troubles[..] else { panic!("{troubles:?}") };
    assert!((beat - 1.0).abs() < 0.3, "{beat}");
}

#[test]
fn clipping_is_limited_counted_and_reported_once_a_second() {
    let mut rig = Rig::ready(&[long()], |_| Sound::new(1, vec![1.5; 1_000_000]));
    rig.transport(Action::Play, GardenAt::Now);
    let n_frames = 3 * RATE as usize;
    rig.play(n_frames);
    assert!(rig.left.iter().all(|sample| *sample == 1.0));
    let n_clipped = rig.renderer.shared().n_clipped();
    assert!(n_clipped >= 2 * n_frames as u64, "both channels: {n_clipped}");
    let troubles = rig.troubles();
    assert!((3..=4).contains(&troubles.len()), "{troubles:?}");
    assert!(troubles.iter().all(|(kind, _)| *kind == TroubleKind::Clipping), "{troubles:?}");
}

/// A renderer that does not keep its promise is counted, also right after a command.
#[test]
fn a_plan_that_is_not_there_is_an_underrun() {
    let mut rig = Rig::ready(&[long()], whole);
    rig.transport(Action::Play, GardenAt::Now);
    rig.play(BUFFER);
    rig.renderer.shared().want(100);
    rig.buffer();
    assert_eq!(rig.underruns(), 1);
}

/// Rule: content that is not ready is silent, counted once, and requested once more.
#[test]
fn late_content_is_silent_counted_once_and_heard_when_it_comes() {
    let mut rig = Rig::ready(&[long()], |_| Sound::new(1, vec![0.25; 1_000_000]));
    let late = region(2, 0.0, Some(40.0), "audio/wav");
    let placed = late.clone();
    rig.order(move |engine| engine.create_region(placed, None, 1)).unwrap();
    rig.transport(Action::Play, GardenAt::Now);
    // Two seconds of a disk that does not answer.
    rig.play(2 * RATE as usize);
    assert!(rig.left.iter().all(|sample| (sample - 0.25).abs() < 1e-6));
    assert_eq!(rig.told.lock().unwrap().requests.len(), 1);
    assert_eq!((rig.renderer.engine().n_late, rig.underruns()), (1, 0));
    rig.deliver(&late, Sound::new(1, vec![0.5; 1_000_000]));
    let n_before = rig.left.len();
    rig.play(1024);
    assert!(rig.left[n_before + FADE..].iter().all(|sample| (sample - 0.75).abs() < 1e-6));
}

/// Rule: a missing or corrupt blob does not stop the music and is not tried at every block.
#[test]
fn failed_content_is_reported_and_the_rest_plays_on() {
    let mut rig = Rig::ready(&[long()], whole);
    let broken = region(2, 0.0, Some(40.0), "audio/wav");
    let placed = broken.clone();
    rig.order(move |engine| engine.create_region(placed, None, 1)).unwrap();
    let key = crate::sound::key_of(&broken, rig.renderer.engine().tempo()).unwrap();
    rig.orders.deliver(Delivery::Failed(key, "damaged".to_owned()));
    rig.transport(Action::Play, GardenAt::Now);
    rig.play(RATE as usize);
    for (idx, sample) in rig.left.iter().enumerate() {
        assert_eq!(step_of(*sample), idx);
    }
    let told = rig.told.lock().unwrap();
    assert_eq!(told.requests.len(), 1);
    let is_failed = |event: &&GardenEvent| matches!(event, GardenEvent::Region(failed) if failed.region_id == broken.region_id);
    assert_eq!(told.events.iter().filter(is_failed).count(), 1);
}

#[test]
fn the_end_stops_playback_and_says_so() {
    let short = region(1, 0.0, Some(1.0), "audio/wav");
    let mut rig = Rig::ready(&[short], whole);
    rig.transport(Action::Play, GardenAt::Now);
    rig.play(BEAT as usize + 2000);
    assert_eq!(rig.status(), (TransportState::Stopped, 0));
    assert_eq!(rig.underruns(), 0);
    assert!(rig.left[BEAT as usize..].iter().all(|sample| *sample == 0.0));
    let told = rig.told.lock().unwrap();
    let ends = told.events.iter().filter(|event| {
        matches!(event, GardenEvent::Transport(event) if event.cause == TransportCause::End)
    });
    assert_eq!(ends.count(), 1);
}

#[test]
fn with_nothing_to_play_only_play_is_a_conflict() {
    let mut rig = Rig::new(Vec::new());
    for action in [Action::Seek(Ticks(960)), Action::Pause, Action::Stop] {
        rig.transport(action, GardenAt::Now);
    }
    let refused = rig.order(|engine| engine.transport(Action::Play, None, None)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    let mut rig = Rig::ready(&[region(1, 0.0, Some(1.0), "audio/wav")], whole);
    rig.transport(Action::Seek(Ticks(5000)), GardenAt::Now);
    let refused = rig.order(|engine| engine.transport(Action::Play, None, None)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
}

/// A renderer that stalls is an underrun, counted and reported; playback goes on where it was.
#[test]
fn an_underrun_moves_no_position() {
    let mut rig = Rig::ready(&[long()], whole);
    rig.transport(Action::Play, GardenAt::Now);
    for _ in 0..AHEAD as usize / BUFFER + 20 {
        rig.buffer();
    }
    assert!(rig.underruns() > 0);
    rig.renderer.turn();
    let frame = rig.status().1;
    rig.left.clear();
    rig.play(1024);
    assert_eq!(step_of(rig.left[0]) as u64, frame);
    assert_eq!(rig.status().1, frame + 1024);
}

#[test]
fn midi_keeps_its_sound_up_to_a_tempo_change_until_the_new_one_is_there() {
    let notes = region(1, 0.0, Some(40.0), "audio/midi");
    let mut rig = Rig::ready(std::slice::from_ref(&notes), |_| Sound::new(1, vec![0.5; 2_000_000]));
    rig.transport(Action::Play, GardenAt::Now);
    rig.play(1024);
    let arguments = SetTempoArguments {
        bpm: 60.0,
        position: None,
        time_signature: None,
        at: Some(GardenAt::NextBeat),
        revision: 1,
    };
    rig.order(move |engine| engine.set_tempo(&arguments)).unwrap();
    rig.play(BEAT as usize);
    assert!(rig.left[..BEAT as usize].iter().all(|sample| (sample - 0.5).abs() < 1e-6));
    assert!(rig.left[BEAT as usize + BUFFER..].iter().all(|sample| *sample == 0.0));
    rig.deliver(&notes, Sound::new(1, vec![0.25; 2_000_000]));
    let n_before = rig.left.len();
    rig.play(1024);
    assert!(rig.left[n_before + FADE..].iter().all(|sample| (sample - 0.25).abs() < 1e-6));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Rule: neither the size of the device's buffers nor when the renderer works changes a sample.
    #[test]
    fn buffers_of_any_size_play_the_same(
        buffer in 1..1500_usize,
        turns in 1..4_usize,
        seek in 0..8_u64,
        pause in 0.0..8.0_f64,
    ) {
        let run = |buffer: usize, turns: usize| {
            let mut rig = Rig::ready(&[long(), region(2, 1.0, Some(2.0), "audio/wav")], whole);
            rig.transport(Action::Play, GardenAt::Now);
            rig.transport(Action::Seek(Ticks(seek * 480)), GardenAt::Beat(1.5));
            rig.transport(Action::Pause, GardenAt::Beat(pause.max(1.5)));
            let mut played = Vec::new();
            while played.len() < 2 * 200_000 {
                let mut out = vec![0.0; buffer * CHANNELS];
                rig.player.fill(&mut out);
                played.extend(out);
                for _ in 0..turns {
                    rig.renderer.turn();
                }
            }
            played.truncate(2 * 200_000);
            // Up to a buffer more was played, so that the position is another one.
            (played, rig.underruns())
        };
        let expected = run(BUFFER, 1);
        prop_assert_eq!(expected.1, 0);
        prop_assert!(run(buffer, turns) == expected);
    }
}

#[test]
fn signatures_that_make_no_sense_are_refused() {
    let mut rig = Rig::new(Vec::new());
    for (bpm, unit) in [(4.0, 4), (961.0, 4), (f64::NAN, 4), (100.0, 3)] {
        let arguments = SetTempoArguments {
            bpm,
            position: None,
            time_signature: Some(ringback_proto::garden::command::TimeSignature {
                beats_per_bar: 4,
                beat_unit: unit,
            }),
            at: None,
            revision: 1,
        };
        let refused = rig.order(move |engine| engine.set_tempo(&arguments)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{bpm} in 4/{unit}");
    }
    assert_eq!(rig.renderer.engine().tempo().changes(), [TempoChange::DEFAULT]);
}
