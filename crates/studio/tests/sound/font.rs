//! The contents of a font.

use ringback_studio::soundfont::{FontError, PresetId};

use crate::support::font;

/// REQ: `soundfont_inspect` lists the presets of a font by bank and program.
#[test]
fn a_general_midi_font_has_its_presets_in_order() {
    let info = font().info();
    assert!(!info.name.is_empty());
    assert!(info.presets.len() >= 128, "{}", info.presets.len());
    assert!(info.presets.is_sorted());
    assert!(info.presets.iter().any(|(id, _)| *id == PresetId { bank: 0, program: 0 }));
    assert!(info.n_samples > 0 && info.n_instruments > 0);
}

/// REQ: `soundfont_preset_inspect` shows real regions: the keys of a piano are spread over several
/// samples, each near the pitch it was recorded at.
#[test]
fn the_regions_of_a_piano_cover_the_keys() {
    let piano = font().preset(PresetId { bank: 0, program: 0 }).unwrap();
    for key in 21..=108 {
        let covered = |velocity: u8| {
            piano.regions.iter().any(|region| {
                (region.key_low..=region.key_high).contains(&key)
                    && (region.velocity_low..=region.velocity_high).contains(&velocity)
            })
        };
        assert!(covered(1) && covered(100) && covered(127), "{key}");
    }
    let samples: std::collections::BTreeSet<_> =
        piano.regions.iter().map(|region| &region.sample).collect();
    assert!(samples.len() > 3, "{samples:?}");
}

/// REQ: a drum map has the sound of each key of a kit.
#[test]
fn the_drum_map_has_different_sounds_on_different_keys() {
    let maps = font().drum_maps();
    let (id, keys) = &maps[0];
    assert_eq!(id.bank, 128);
    let sound = |key: u8| &keys.iter().find(|drum| drum.key == key).unwrap().sample;
    assert!((35..=81).all(|key| keys.iter().any(|drum| drum.key == key)));
    assert_ne!(sound(36), sound(38));
    assert_ne!(sound(38), sound(42));
}

#[test]
fn a_preset_that_is_not_there_is_named() {
    let id = PresetId { bank: 77, program: 5 };
    let error = font().preset(id).unwrap_err();
    assert!(matches!(error, FontError::NoPreset { .. }));
    assert!(error.to_string().contains("77:5"));
}
