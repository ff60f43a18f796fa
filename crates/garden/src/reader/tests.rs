//! The cache of the reader: what is needed soon is there, and nothing is tried twice for nothing.

use std::sync::mpsc::Receiver;

use camino::Utf8Path;
use ringback_blobs::{BlobReader, Blobs};
use ringback_proto::ids::RegionId;

use super::*;
use crate::content::Source;
use crate::engine::Engine;
use crate::renderer::{Listener, Renderer};

const RATE: u32 = 48_000;
/// A second of one channel.
const SOUND_BYTES: u64 = 4 * RATE as u64;

struct Deaf;

impl Listener for Deaf {
    fn wants(&mut self, _: Vec<Want>) {}
    fn requests(&mut self, _: Vec<SoundKey>) {}
    fn events(&mut self, _: Vec<ringback_proto::garden::GardenEvent>) {}
}

/// A reader whose deliveries are looked at.
struct Rig {
    reader: Reader,
    deliveries: Receiver<Delivery>,
    keys: Vec<SoundKey>,
    _dir: tempfile::TempDir,
}

impl Rig {
    /// A store with as many sounds, and a cache for `n_cached` of them.
    fn new(n_sounds: u8, n_cached: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap().join("blobs");
        let blobs = Blobs::open(&root).unwrap();
        let keys = (0..n_sounds).map(|number| {
            let stored = blobs.put(&wav(number), "audio/wav").unwrap();
            SoundKey { hash: stored.hash, notes: None }
        });
        let keys = keys.collect();
        let (_, orders, _) = Renderer::new(Engine::new(RATE), 4800, Box::new(Deaf));
        let (orders, deliveries) = orders.delivering_elsewhere();
        let source = Source::new(Some(BlobReader::open(&root).unwrap()), None);
        let bytes_max = n_cached * SOUND_BYTES;
        let preparer = Preparer::new(source, RATE, bytes_max, None);
        let reader = Reader::new(Desk::default(), orders, preparer, RATE, bytes_max);
        Self { reader, deliveries, keys, _dir: dir }
    }

    /// Returns what regions at these distances want.
    fn wants(&self, distances: &[u64]) -> Vec<Want> {
        let mut wants: Vec<Want> = distances
            .iter()
            .zip(&self.keys)
            .map(|(distance, key)| Want {
                region_id: RegionId::from_random([1; 16]),
                key: key.clone(),
                distance: *distance,
                is_ready: self.reader.sounds.contains_key(key),
            })
            .collect();
        wants.sort_by_key(|want| want.distance);
        wants
    }

    /// Works until nothing is left to do; returns which sounds were delivered, were dropped, and
    /// failed or found no room.
    fn work(&mut self, distances: &[u64]) -> [Vec<usize>; 3] {
        self.reader.desk.set_wants(self.wants(distances));
        let mut found = [Vec::new(), Vec::new(), Vec::new()];
        loop {
            let wants = self.reader.desk.lock().wants.clone();
            if self.reader.next(&wants).is_none() {
                return found;
            }
            assert!(self.reader.prepare_next(&wants));
            for delivery in self.deliveries.try_iter() {
                let (kind, key) = match delivery {
                    Delivery::Ready(key, _) => (0, key),
                    Delivery::Dropped(key) => (1, key),
                    Delivery::Failed(key, _) | Delivery::Crowded(key) => (2, key),
                    Delivery::DeviceTrouble(cause) => panic!("{cause}"),
                };
                found[kind].push(self.keys.iter().position(|other| *other == key).unwrap());
            }
        }
    }
}

fn wav(number: u8) -> Vec<u8> {
    let mut file = std::io::Cursor::new(Vec::new());
    let spec = hound::WavSpec {
        channels: 1,
        sample_rate: RATE,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut writer = hound::WavWriter::new(&mut file, spec).unwrap();
    for _ in 0..RATE {
        writer.write_sample(i16::from(number)).unwrap();
    }
    writer.finalize().unwrap();
    file.into_inner()
}

const SECOND: u64 = RATE as u64;

#[test]
fn the_nearest_sounds_come_first_and_the_cache_has_a_limit() {
    let mut rig = Rig::new(4, 2);
    let [ready, dropped, failed] = rig.work(&[30 * SECOND, SECOND, 20 * SECOND, 10 * SECOND]);
    assert_eq!((ready, dropped.len(), failed.len()), (vec![1, 3], 0, 0));
    assert!(rig.reader.bytes <= rig.reader.bytes_max);
}

#[test]
fn what_is_needed_within_the_window_pushes_out_what_is_needed_later() {
    let mut rig = Rig::new(3, 2);
    assert_eq!(rig.work(&[0, 2 * SECOND, 60 * SECOND])[0], [0, 1]);
    // The position has moved on: the first is over.
    let [ready, dropped, failed] = rig.work(&[u64::MAX, 0, 3 * SECOND]);
    assert_eq!((ready, dropped, failed.len()), (vec![2], vec![0], 0));
}

#[test]
fn a_cache_full_of_what_is_needed_now_is_reported_once() {
    let mut rig = Rig::new(3, 2);
    let [ready, dropped, failed] = rig.work(&[0, 0, 0]);
    assert_eq!((ready.len(), dropped.len(), failed.len()), (2, 0, 1));
    assert!(rig.work(&[0, 0, 0]).iter().all(Vec::is_empty));
}

#[test]
fn a_sound_without_room_is_tried_again_when_there_is_some() {
    let mut rig = Rig::new(2, 1);
    let [ready, _, crowded] = rig.work(&[0, SECOND]);
    assert_eq!((ready, crowded), (vec![0], vec![1]));
    let [ready, dropped, crowded] = rig.work(&[u64::MAX, 0]);
    assert_eq!((ready, dropped, crowded.len()), (vec![1], vec![0], 0));
}

#[test]
fn a_sound_that_regions_share_is_as_near_as_the_nearest_of_them() {
    let mut rig = Rig::new(2, 1);
    rig.work(&[0]);
    let mut wants = rig.wants(&[0, SECOND]);
    let again = Want { distance: 60 * SECOND, ..wants[0].clone() };
    wants.push(again);
    rig.reader.desk.set_wants(wants.clone());
    assert!(rig.reader.prepare_next(&wants));
    assert!(rig.reader.sounds.contains_key(&rig.keys[0]), "it is heard now");
}

/// Rule: a region that finds no room is placed without its sound, so that the cache has its limit.
#[test]
fn a_region_that_is_placed_takes_no_memory_beside_the_cache() {
    let mut rig = Rig::new(2, 1);
    rig.work(&[0]);
    let (key, wants) = (rig.keys[1].clone(), rig.wants(&[0]));
    let probed = rig.reader.probe(&key, &wants).unwrap();
    assert_eq!((probed.n_frames, probed.sound.is_none()), (SECOND, true));
    assert!(rig.reader.bytes <= rig.reader.bytes_max);
    assert!(rig.deliveries.try_recv().is_err(), "what is heard now stays");
}

#[test]
fn a_sound_stays_in_the_cache_while_its_region_is_being_placed() {
    let mut rig = Rig::new(1, 1);
    let key = rig.keys[0].clone();
    let probed = rig.reader.probe(&key, &[]).unwrap();
    assert!(probed.sound.is_some());
    assert!(rig.reader.prepare_next(&[]));
    assert!(rig.deliveries.try_recv().is_err(), "no region plays it yet");
    drop(probed);
    assert!(rig.reader.prepare_next(&[]));
    assert!(matches!(rig.deliveries.try_recv(), Ok(Delivery::Dropped(dropped)) if dropped == key));
    assert_eq!(rig.reader.bytes, 0);
}

#[test]
fn a_region_that_is_never_placed_does_not_hold_its_sound_for_ever() {
    let mut rig = Rig::new(1, 1);
    let key = rig.keys[0].clone();
    let _probed = rig.reader.probe(&key, &[]).unwrap();
    for (_, since) in rig.reader.holds.values_mut() {
        *since = since.checked_sub(HOLD_TIME).unwrap();
    }
    assert!(rig.reader.prepare_next(&[]));
    assert_eq!(rig.reader.bytes, 0);
}

#[test]
fn failures_of_regions_that_are_gone_are_forgotten() {
    let mut rig = Rig::new(1, 1);
    for number in 0..=FAILED_KEPT {
        let mut hash = [0xff; 32];
        hash[..8].copy_from_slice(&number.to_le_bytes());
        let hash = ringback_proto::ids::BlobHash::from_bytes(hash);
        rig.reader.failed.insert(SoundKey { hash, notes: None });
    }
    let wants = rig.wants(&[0]);
    rig.reader.failed.insert(rig.keys[0].clone());
    assert!(rig.reader.prepare_next(&wants));
    assert_eq!(rig.reader.failed.len(), 1, "that of a region that is there");
}

/// Rule: a corrupt blob is not tried again until it is asked for.
#[test]
fn a_damaged_blob_fails_once_and_again_only_when_asked_for() {
    let mut rig = Rig::new(1, 2);
    let name = rig.keys[0].hash.to_string();
    let root = rig._dir.path().join("blobs");
    let path = root.join(&name[..2]).join(&name[2..4]).join(&name);
    let good = std::fs::read(&path).unwrap();
    std::fs::write(&path, b"noise").unwrap();
    assert_eq!(rig.work(&[0])[2], [0]);
    assert!(rig.work(&[0]).iter().all(Vec::is_empty));
    std::fs::write(&path, good).unwrap();
    let key = rig.keys[0].clone();
    rig.reader.failed.remove(&key);
    assert_eq!(rig.work(&[0])[0], [0], "it was repaired");
}

#[test]
fn a_probe_answers_with_the_sound_or_the_reason() {
    let rig = Rig::new(1, 2);
    let (desk, key) = (rig.reader.desk.clone(), rig.keys[0].clone());
    let missing =
        SoundKey { hash: ringback_proto::ids::BlobHash::from_bytes([9; 32]), notes: None };
    let working = std::thread::spawn(|| rig.reader.run());
    for (key, is_there) in [(key, true), (missing, false)] {
        let (answer, wait) = std::sync::mpsc::channel();
        let answer = move |probed: Result<Probed, ContentError>| {
            drop(answer.send(probed.map(|probed| probed.n_frames)));
        };
        assert!(desk.probe(key, Box::new(answer)));
        assert_eq!(wait.recv().unwrap().ok(), is_there.then_some(SECOND));
    }
    desk.close();
    working.join().unwrap();
}
