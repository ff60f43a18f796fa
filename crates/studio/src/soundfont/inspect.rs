//! The contents of a font: its presets, their regions, and the drum on each key.

use std::fmt;

use rustysynth::{InstrumentRegion, LoopMode, Preset, PresetRegion};

use super::{Font, FontError};

/// The bank of drum kits.
const DRUM_BANK: u16 = 128;

/// A font with this few presets is often a single drum kit, whatever its bank is.
const DRUM_FONT_PRESETS_MAX: usize = 2;

/// The velocity for looking up a drum's sound: many kits have several layers.
const DRUM_VELOCITY: u8 = 100;

/// The ID of a preset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PresetId {
    /// Its bank; 128 has the drum kits.
    pub bank: u16,
    /// Its program in the bank.
    pub program: u16,
}

impl fmt::Display for PresetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.bank, self.program)
    }
}

/// Information about a font.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FontInfo {
    /// Its name.
    pub name: String,
    /// Its author.
    pub author: String,
    /// Its copyright.
    pub copyright: String,
    /// Its author's comment.
    pub comment: String,
    /// Its presets and their names, by bank and program.
    pub presets: Vec<(PresetId, String)>,
    /// The number of instruments.
    pub n_instruments: usize,
    /// The number of samples.
    pub n_samples: usize,
}

/// One preset.
#[derive(Debug, Clone, PartialEq)]
pub struct PresetInfo {
    /// Its ID.
    pub id: PresetId,
    /// Its name.
    pub name: String,
    /// Its regions, in the order of the font.
    pub regions: Vec<Region>,
}

/// The sample for keys and velocities in a range.
#[derive(Debug, Clone, PartialEq)]
pub struct Region {
    /// Lowest key.
    pub key_low: u8,
    /// Highest key.
    pub key_high: u8,
    /// Softest velocity.
    pub velocity_low: u8,
    /// Hardest velocity.
    pub velocity_high: u8,
    /// The instrument.
    pub instrument: String,
    /// The sample.
    pub sample: String,
    /// The key at which the sample sounds as recorded.
    pub root_key: u8,
    /// The tuning relative to that, in cents.
    pub tuning_cents: i32,
    /// The pan position: -50 left to 50 right, as in the format.
    pub pan: f32,
    /// The attenuation.
    pub attenuation_db: f32,
    /// Whether the sample loops while the key is held.
    pub looped: bool,
    /// Regions of one class silence each other, such as the open and the closed hi-hat.
    pub exclusive_class: u8,
}

/// One key of a drum kit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrumKey {
    /// The key.
    pub key: u8,
    /// The instrument.
    pub instrument: String,
    /// The sample.
    pub sample: String,
}

impl Font {
    /// Returns the font's information and its presets.
    #[must_use]
    pub fn info(&self) -> FontInfo {
        let (font, info) = (self.inner(), self.inner().get_info());
        let mut presets: Vec<_> = font
            .get_presets()
            .iter()
            .map(|preset| (preset_id(preset), preset.get_name().trim().to_owned()))
            .collect();
        presets.sort();
        FontInfo {
            name: info.get_bank_name().trim().to_owned(),
            author: info.get_author().trim().to_owned(),
            copyright: info.get_copyright().trim().to_owned(),
            comment: info.get_comments().trim().to_owned(),
            presets,
            n_instruments: font.get_instruments().len(),
            n_samples: font.get_sample_headers().len(),
        }
    }

    /// Returns one preset with its regions.
    ///
    /// # Errors
    /// If the preset does not exist.
    pub fn preset(&self, id: PresetId) -> Result<PresetInfo, FontError> {
        let preset = self.inner().get_presets().iter().find(|preset| preset_id(preset) == id);
        let preset = preset.ok_or(FontError::NoPreset { id })?;
        let name = preset.get_name().trim().to_owned();
        Ok(PresetInfo { id, name, regions: self.regions(preset) })
    }

    /// Returns the drum kits with the sound of each key: all presets of the drum bank, or of a font
    /// with hardly any others.
    #[must_use]
    pub fn drum_maps(&self) -> Vec<(PresetId, Vec<DrumKey>)> {
        let presets = self.inner().get_presets();
        let small = presets.len() <= DRUM_FONT_PRESETS_MAX;
        let mut maps: Vec<_> = presets
            .iter()
            .filter(|preset| small || preset_id(preset).bank == DRUM_BANK)
            .map(|preset| (preset_id(preset), drum_keys(&self.regions(preset))))
            .collect();
        maps.sort_by_key(|(id, _)| *id);
        maps
    }

    fn regions(&self, preset: &Preset) -> Vec<Region> {
        let font = self.inner();
        preset
            .get_regions()
            .iter()
            .filter_map(|outer| {
                Some((outer, font.get_instruments().get(outer.get_instrument_id())?))
            })
            .flat_map(|(outer, instrument)| {
                instrument.get_regions().iter().filter_map(move |inner| {
                    let sample = font.get_sample_headers().get(inner.get_sample_id())?;
                    region(outer, inner, instrument.get_name(), sample.get_name())
                })
            })
            .collect()
    }
}

fn preset_id(preset: &Preset) -> PresetId {
    let number = |value: i32| u16::try_from(value).unwrap_or(u16::MAX);
    PresetId { bank: number(preset.get_bank_number()), program: number(preset.get_patch_number()) }
}

/// A preset's region plays an instrument's region where both ranges overlap.
fn region(
    outer: &PresetRegion,
    inner: &InstrumentRegion,
    instrument: &str,
    sample: &str,
) -> Option<Region> {
    let key_low = outer.get_key_range_start().max(inner.get_key_range_start());
    let key_high = outer.get_key_range_end().min(inner.get_key_range_end());
    let velocity_low = outer.get_velocity_range_start().max(inner.get_velocity_range_start());
    let velocity_high = outer.get_velocity_range_end().min(inner.get_velocity_range_end());
    if key_low > key_high || velocity_low > velocity_high {
        return None;
    }
    let coarse = outer.get_coarse_tune().saturating_add(inner.get_coarse_tune());
    let fine = outer.get_fine_tune().saturating_add(inner.get_fine_tune());
    let byte = |value: i32| u8::try_from(value.clamp(0, 255)).unwrap_or(u8::MAX);
    Some(Region {
        key_low: byte(key_low),
        key_high: byte(key_high),
        velocity_low: byte(velocity_low),
        velocity_high: byte(velocity_high),
        instrument: instrument.trim().to_owned(),
        sample: sample.trim().to_owned(),
        root_key: byte(inner.get_root_key()),
        tuning_cents: coarse.saturating_mul(100).saturating_add(fine),
        pan: outer.get_pan() + inner.get_pan(),
        attenuation_db: outer.get_initial_attenuation() + inner.get_initial_attenuation(),
        looped: inner.get_sample_modes() != LoopMode::NoLoop,
        exclusive_class: byte(inner.get_exclusive_class()),
    })
}

fn drum_keys(regions: &[Region]) -> Vec<DrumKey> {
    let sounds = |region: &&Region, key: u8| {
        (region.key_low..=region.key_high).contains(&key)
            && (region.velocity_low..=region.velocity_high).contains(&DRUM_VELOCITY)
    };
    (0..=127)
        .filter_map(|key| {
            let region = regions.iter().find(|region| sounds(region, key))?;
            let (instrument, sample) = (region.instrument.clone(), region.sample.clone());
            Some(DrumKey { key, instrument, sample })
        })
        .collect()
}
