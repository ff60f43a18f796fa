//! The export against what is played: the same samples.

use std::sync::Arc;

use ringback_garden::DeviceChoice;
use ringback_garden::content::Preparer;
use ringback_garden::engine::Engine;
use ringback_garden::export::{Export, ExportError, file_format};
use ringback_garden::mix::jump_fade_frames;
use ringback_garden::mixer::Want;
use ringback_garden::renderer::{Delivery, Listener, Renderer};
use ringback_garden::sound::{Sound, SoundKey, key_of};
use ringback_garden::tempo::TempoMap;
use ringback_garden::transport::Action;
use ringback_proto::garden::{
    GardenEvent, GardenRegion, GardenTimeline, LoopRange, RegionState, TempoChange, Ticks,
};
use ringback_proto::request::SampleFormat;
use ringback_proto::{Error, ErrorKind};

use crate::fluidsynth::file;
use crate::support::{RATE, Shop, chord, everything, font, midi, region, settings, timeline};

const BEAT: u64 = Ticks::PER_BEAT;

/// A piece of everything: tempo changes, fades, a crossfade, repeats, MIDI and another sample rate.
fn piece(shop: &Shop) -> GardenTimeline {
    shop.write("a.wav", RATE, &chord(RATE, 1.5, 0.4, &[220.0, 333.0, 1234.5]));
    shop.write("b.wav", 44_100, &chord(44_100, 1.0, 0.3, &[441.0, 2876.0]));
    std::fs::write(shop.path("c.mid"), file(500_000)).unwrap();
    let [a, b] = ["a.wav", "b.wav"].map(|name| shop.store(name, "audio/wav"));
    let notes = shop.store("c.mid", "audio/midi");
    let long = |beats: f64| Ticks::nearest(beats);
    let regions = vec![
        GardenRegion {
            duration: long(2.0),
            fade_in: Ticks(BEAT / 4),
            fade_out: Ticks(BEAT / 2),
            pan: -0.3,
            ..region(1, a, 0.0)
        },
        GardenRegion { duration: long(1.5), crossfade: Ticks(BEAT), ..region(2, b, 1.25) },
        GardenRegion { duration: long(0.7), repeat: 3, gain_db: -3.0, ..region(3, b, 2.5) },
        GardenRegion { duration: long(3.5), ..midi(4, notes, 1.5) },
        GardenRegion { duration: long(0.4), repeat: 2, offset_seconds: 0.2, ..region(5, a, 4.1) },
    ];
    let change = |beat: f64, bpm| TempoChange {
        at: Ticks::nearest(beat).unwrap(),
        bpm,
        ..TempoChange::DEFAULT
    };
    let tempo = vec![change(0.0, 120.0), change(2.0, 93.0), change(3.25, 150.0)];
    GardenTimeline { tempo, ..timeline(regions) }
}

/// Rule: the export has the samples that the file device writes.
#[tokio::test]
async fn an_export_has_the_samples_that_the_file_device_writes() {
    let shop = Shop::new();
    let piece = piece(&shop);
    shop.play(piece.clone(), DeviceChoice::File(shop.path("played.wav"))).await;
    let (played, exported) = (shop.read("played.wav"), shop.exported(everything(piece)));
    assert!(exported.len() > 3 * RATE as usize, "what rings on is in it: {}", exported.len());
    assert!(played[..exported.len()] == exported, "the same samples");
    let after = &played[exported.len()..];
    assert!(after.len() < 1024 && after.iter().flatten().all(|sample| *sample == 0.0));
    let is_loud = |part: &[[f32; 2]]| part.iter().flatten().any(|sample| sample.abs() > 0.05);
    assert!(exported.chunks(RATE as usize / 2).take(5).all(is_loud), "there is something to hear");
}

/// Rule: in a loop too, the file device gets the samples of the export, except in the fades of jumps.
#[tokio::test]
async fn a_piece_in_a_loop_has_the_samples_of_the_export_in_every_round() {
    let shop = Shop::new();
    let loop_range = Some(LoopRange { start: Ticks(BEAT), end: Ticks(4 * BEAT) });
    let piece = GardenTimeline { loop_range, ..piece(&shop) };
    let path = shop.path("looped.wav");
    shop.play_rounds(piece.clone(), DeviceChoice::File(path)).await;
    let played = shop.read("looped.wav");
    let map = TempoMap::new(&piece.tempo, RATE);
    let [start, end] = [BEAT, 4 * BEAT].map(|tick| map.frame(Ticks(tick)) as usize);
    let exported = shop.exported(everything(piece));
    let fade = jump_fade_frames(RATE) as usize;
    assert!(played[..end] == exported[..end], "the first round");
    let round = end - start;
    // The loop was ended in its second round, or later on a busy machine.
    // What fades after the end may be cut, because the garden is closed there.
    let n_exported = exported.len() - fade;
    let n_more = (played.len() - n_exported) / round;
    assert!(n_more >= 1, "{} of {}", played.len(), exported.len());
    for number in 0..n_more {
        let at = end + number * round;
        let same = fade..round;
        let found = &played[at..at + round];
        assert!(found[same.clone()] == exported[start..end][same], "round {number}");
    }
    let rest = &played[end + n_more * round..];
    assert!(rest[..n_exported - end] == exported[end..n_exported], "the rest");
}

/// Rule: how much memory an export has, and which sounds are there already, changes no sample.
#[tokio::test]
async fn an_export_with_little_memory_or_prepared_sounds_is_the_same() {
    let shop = Shop::new();
    shop.write("a.wav", RATE, &chord(RATE, 1.0, 0.4, &[220.0]));
    shop.write("b.wav", RATE, &chord(RATE, 1.0, 0.4, &[330.0]));
    let [a, b] = ["a.wav", "b.wav"].map(|name| shop.store(name, "audio/wav"));
    let second = |number, hash, beat| GardenRegion {
        duration: Some(Ticks(BEAT)),
        ..region(number, hash, beat)
    };
    let regions = vec![second(1, a, 0.0), second(2, b, 1.0), second(3, a, 2.0), second(4, b, 3.0)];
    let piece = || timeline(regions.clone());
    let whole = shop.exported(everything(piece()));
    // Room for one of the sounds.
    let cache_bytes = u64::from(RATE) * 8 + 1000;
    let small = shop.exported(Export { cache_bytes, ..everything(piece()) });
    assert!(small == whole);
    let mut preparer = Preparer::new(shop.source(), RATE, 1 << 30, None);
    let key = key_of(&regions[0], Engine::new(RATE).tempo()).unwrap();
    let sound = Arc::new(preparer.prepare(&key).unwrap());
    let sounds = [(key, sound)].into_iter().collect();
    assert!(shop.exported(Export { sounds, cache_bytes, ..everything(piece()) }) == whole);
    let together = vec![second(1, a, 0.0), second(2, b, 0.5)];
    let refused = refused(&shop, Export { cache_bytes, ..everything(timeline(together)) });
    assert!(matches!(refused, ExportError::Memory { .. }), "{refused}");
}

/// Rule: an export knows what it was made from: the regions that are heard in it, and no others.
#[tokio::test]
async fn an_export_names_the_regions_that_are_heard_in_it() {
    let shop = Shop::new();
    shop.write("a.wav", RATE, &chord(RATE, 1.0, 0.4, &[220.0]));
    let sound = shop.store("a.wav", "audio/wav");
    let beat =
        |number, beat| GardenRegion { duration: Some(Ticks(BEAT)), ..region(number, sound, beat) };
    let regions = vec![beat(1, 0.0), beat(2, 1.0), beat(3, 2.0), beat(4, 3.0)];
    let (start, end) = (Ticks(BEAT), Some(Ticks(3 * BEAT)));
    let export = Export { start, end, ..everything(timeline(regions.clone())) };
    let mut preparer = Preparer::new(shop.source(), RATE, settings().cache_bytes, font());
    let (writer, stop) = (std::io::Cursor::new(Vec::new()), false.into());
    let format = file_format(SampleFormat::S16);
    let exported = export.write(&mut preparer, writer, format, &stop).unwrap();
    let heard: Vec<_> = exported.regions.iter().map(|it| (it.region_id, it.hash)).collect();
    assert_eq!(heard, [(regions[1].region_id, sound), (regions[2].region_id, sound)]);
    assert!(!exported.has_midi);
}

fn refused(shop: &Shop, export: Export) -> ExportError {
    let mut preparer = Preparer::new(shop.source(), RATE, settings().cache_bytes, font());
    let (writer, stop) = (std::io::Cursor::new(Vec::new()), false.into());
    export.write(&mut preparer, writer, file_format(SampleFormat::S16), &stop).unwrap_err()
}

#[tokio::test]
async fn a_part_is_cut_at_its_end_or_filled_up_to_it() {
    let shop = Shop::new();
    let piece = piece(&shop);
    let whole = shop.exported(everything(piece.clone()));
    // At 120 beats per minute a beat is half a second.
    let part = Export {
        start: Ticks(BEAT / 2),
        end: Some(Ticks(3 * BEAT / 2)),
        ..everything(piece.clone())
    };
    let part = shop.exported(part);
    assert_eq!(part.len(), 24_000);
    let fade = jump_fade_frames(RATE) as usize;
    assert!(part[fade..] == whole[12_000 + fade..36_000], "what had started fades in");
    let filled = shop.exported(Export { end: Some(Ticks(40 * BEAT)), ..everything(piece) });
    assert!(filled.len() > 2 * whole.len() && filled[..whole.len()] == whole);
    assert!(filled[whole.len()..].iter().flatten().all(|sample| *sample == 0.0));
}

#[tokio::test]
async fn an_export_says_what_it_cannot_render() {
    let shop = Shop::new();
    let kind = |error: ExportError| Error::from(error).kind();
    let nothing = refused(&shop, everything(timeline(Vec::new())));
    assert_eq!(kind(nothing), ErrorKind::Conflict);
    shop.write("a.wav", RATE, &chord(RATE, 0.5, 0.4, &[220.0]));
    let hash = shop.store("a.wav", "audio/wav");
    let placed = GardenRegion { duration: Some(Ticks(BEAT)), ..region(1, hash, 0.0) };
    for state in [RegionState::Pending, RegionState::AwaitingApproval, RegionState::Rejected] {
        let silent = vec![GardenRegion { state, ..placed.clone() }];
        assert_eq!(kind(refused(&shop, everything(timeline(silent)))), ErrorKind::Conflict);
    }
    let late = everything(timeline(vec![placed.clone()]));
    let late = Export { start: Ticks(5 * BEAT), ..late };
    assert_eq!(kind(refused(&shop, late)), ErrorKind::Conflict);
    let long = everything(timeline(vec![placed.clone()]));
    let long = Error::from(refused(&shop, Export { end: Some(Ticks(900_000 * BEAT)), ..long }));
    assert_eq!(long.kind(), ErrorKind::Invalid);
    assert_eq!(long.context().field.as_deref(), Some("end"));
    std::fs::write(shop.path("text"), b"this is no sound").unwrap();
    let text = shop.store("text", "audio/wav");
    let bad = GardenRegion { duration: Some(Ticks(BEAT)), ..region(9, text, 1.0) };
    let message = refused(&shop, everything(timeline(vec![placed, bad.clone()]))).to_string();
    assert!(message.contains(&bad.region_id.to_string()), "{message}");
    assert!(!message.contains(&text.to_string()), "{message}");
}

struct Deaf;

impl Listener for Deaf {
    fn wants(&mut self, _: Vec<Want>) {}
    fn requests(&mut self, _: Vec<SoundKey>) {}
    fn events(&mut self, _: Vec<GardenEvent>) {}
}

/// Plays a looped timeline in a time of its own, and ends the loop after a number of frames.
fn play_looped(timeline: GardenTimeline, shop: &Shop, loop_end: usize) -> Vec<[f32; 2]> {
    let mut preparer = Preparer::new(shop.source(), RATE, 1 << 30, None);
    let (revision, regions) = (timeline.revision + 1, timeline.regions.clone());
    let mut engine = Engine::new(RATE);
    engine.load(timeline);
    let (mut renderer, orders, mut player) = Renderer::new(engine, 4800, Box::new(Deaf));
    for region in regions {
        let key = key_of(&region, renderer.engine().tempo()).unwrap();
        let sound: Arc<Sound> = Arc::new(preparer.prepare(&key).unwrap());
        orders.deliver(Delivery::Ready(key, sound));
        renderer.turn();
    }
    let play = |engine: &mut Engine| engine.transport(Action::Play, None, None).map(drop).unwrap();
    orders.send(Box::new(play)).unwrap();
    renderer.turn();
    let mut buffer = vec![0.0; 2 * 100];
    let mut played: Vec<[f32; 2]> = Vec::new();
    let mut is_looped = true;
    while player.is_active() {
        player.fill(&mut buffer);
        played.extend(buffer.chunks_exact(2).map(|frame| [frame[0], frame[1]]));
        if is_looped && played.len() >= loop_end {
            is_looped = false;
            let end = move |engine: &mut Engine| engine.set_loop(None, revision).unwrap();
            orders.send(Box::new(end)).unwrap();
        }
        renderer.turn();
    }
    assert_eq!(renderer.shared().n_underruns(), 0);
    played
}

/// Rule: each round of a loop has the samples of the export, except in the fades of the jumps; an
/// export goes through the piece once.
#[test]
fn each_round_of_a_loop_has_the_samples_of_the_export() {
    let shop = Shop::new();
    shop.write("a.wav", RATE, &chord(RATE, 4.0, 0.3, &[220.0, 333.0]));
    shop.write("b.wav", RATE, &chord(RATE, 1.3, 0.3, &[441.0]));
    let [a, b] = ["a.wav", "b.wav"].map(|name| shop.store(name, "audio/wav"));
    let lasting = |beats| Ticks::nearest(beats);
    let regions = vec![
        GardenRegion { duration: lasting(4.0), ..region(1, a, 0.0) },
        GardenRegion { duration: lasting(1.3), ..region(2, b, 1.0) },
        GardenRegion { duration: lasting(1.3), fade_in: Ticks(200), ..region(3, b, 2.4) },
    ];
    let loop_range = Some(LoopRange { start: Ticks(BEAT), end: Ticks(3 * BEAT) });
    let piece = GardenTimeline { loop_range, ..timeline(regions) };
    let exported = shop.exported(everything(piece.clone()));
    // A beat is a second. The loop ends in the middle of its third round.
    let (start, end) = (48_000, 144_000);
    let round = end - start;
    let played = play_looped(piece, &shop, end + round + round / 2);
    let fade = jump_fade_frames(RATE) as usize;
    assert!(played[..end] == exported[..end], "the first round");
    let second = &played[end..end + round];
    assert!(second[fade..] == exported[start + fade..end], "the second round");
    assert!(second[..fade] != exported[start..start + fade], "a jump fades");
    let third = &played[end + round..];
    let rest = &exported[start + fade..];
    assert!(third[fade..fade + rest.len()] == *rest, "the third round, and the rest");
    assert!(third[fade + rest.len()..].iter().flatten().all(|sample| *sample == 0.0));
}
