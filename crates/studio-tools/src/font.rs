//! `soundfont_inspect` and `soundfont_preset_inspect`.

use std::io::Read;
use std::path::PathBuf;
use std::time::SystemTime;

use ringback_broker::studio::{Content, hash_of, internal};
use ringback_proto::ids::BlobHash;
use ringback_proto::request::{
    SoundfontDrumKey, SoundfontDrumMap, SoundfontInfoResponse, SoundfontInspectRequest,
    SoundfontPreset, SoundfontPresetInfoResponse, SoundfontPresetInspectRequest, SoundfontRegion,
    SourceRole,
};
use ringback_proto::{Error, Result};
use ringback_studio::soundfont::{
    DrumKey, FONT_BYTES_MAX, Font, FontInfo, PresetId, Region, SEARCHED_DIRS, find,
};

use crate::context::compute;
use crate::{Context, failure};

pub(crate) async fn inspect(
    ctx: Context,
    request: SoundfontInspectRequest,
) -> Result<SoundfontInfoResponse> {
    let SoundfontInspectRequest { soundfont_hash, include_drum_map } = request;
    with_font(&ctx, soundfont_hash, move |font| {
        let maps = include_drum_map.then(|| font.drum_maps());
        Ok(info_response(font.info(), maps))
    })
    .await
}

pub(crate) async fn inspect_preset(
    ctx: Context,
    request: SoundfontPresetInspectRequest,
) -> Result<SoundfontPresetInfoResponse> {
    let SoundfontPresetInspectRequest { soundfont_hash, bank, program } = request;
    with_font(&ctx, soundfont_hash, move |font| {
        let preset =
            font.preset(PresetId { bank, program }).map_err(|error| failure::font(&error))?;
        let regions = preset.regions.into_iter().map(region).collect();
        Ok(SoundfontPresetInfoResponse { bank, program, name: preset.name, regions })
    })
    .await
}

async fn with_font<T: Send + 'static>(
    ctx: &Context,
    hash: Option<BlobHash>,
    look: impl FnOnce(&Font) -> Result<T> + Send + 'static,
) -> Result<T> {
    let named = named(ctx, hash).await?;
    compute(ctx, move |ctx, _| look(&load(ctx, named)?.0)).await
}

/// Returns the font that the caller names, if it names one and may read it.
pub(crate) async fn named(ctx: &Context, hash: Option<BlobHash>) -> Result<Option<Content>> {
    match hash {
        Some(hash) => ctx.broker.content(SourceRole::Soundfont, hash).await.map(Some),
        None => Ok(None),
    }
}

/// Returns the font that a caller names, or the daemon's own, and its display name.
pub(crate) fn load(ctx: &Context, named: Option<Content>) -> Result<(Font, String)> {
    let (bytes, name) = match named {
        Some(font) => (ctx.broker.read(font, FONT_BYTES_MAX)?.to_vec(), font.hash().to_string()),
        None => own_font(ctx)?,
    };
    let font = Font::read(&bytes).map_err(|error| failure::font(&error))?;
    Ok((font, name))
}

fn own_font(ctx: &Context) -> Result<(Vec<u8>, String)> {
    let configured = ctx.studio.settings.soundfont.as_deref();
    let path = find(configured.map(AsRef::as_ref), &SEARCHED_DIRS)
        .map_err(|error| failure::find_font(&error))?;
    let mut bytes = Vec::new();
    let file = std::fs::File::open(&path).map_err(internal)?;
    let modified = file.metadata().and_then(|metadata| metadata.modified()).map_err(internal)?;
    // One byte more than allowed, so that a larger font is recognised.
    file.take(FONT_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(internal)?;
    let name =
        path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let state = FontState { path, modified, n_bytes: bytes.len() };
    let mut known = ctx.studio.own_font.blocking_lock();
    let hash = match &*known {
        Some((known, hash)) if *known == state => *hash,
        Some(_) | None => {
            let hash = hash_of(&*bytes).map_err(internal)?;
            *known = Some((state, hash));
            hash
        }
    };
    drop(known);
    ctx.broker.add_source(SourceRole::Soundfont, hash);
    Ok((bytes, name))
}

/// The daemon's own SoundFont as it was hashed: a render need not hash it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FontState {
    path: PathBuf,
    modified: SystemTime,
    n_bytes: usize,
}

fn info_response(
    info: FontInfo,
    drum_maps: Option<Vec<(PresetId, Vec<DrumKey>)>>,
) -> SoundfontInfoResponse {
    let text = |text: String| Some(text).filter(|text| !text.is_empty());
    let preset = |(id, name): (PresetId, String)| SoundfontPreset {
        bank: id.bank,
        program: id.program,
        name,
    };
    SoundfontInfoResponse {
        name: info.name,
        preset_count: info.presets.len() as u64,
        presets: info.presets.into_iter().map(preset).collect(),
        instrument_count: info.n_instruments as u64,
        sample_count: info.n_samples as u64,
        author: text(info.author),
        copyright: text(info.copyright),
        drum_maps: drum_maps.map(|maps| maps.into_iter().map(drum_map).collect()),
    }
}

fn drum_map((id, keys): (PresetId, Vec<DrumKey>)) -> SoundfontDrumMap {
    let key = |DrumKey { key, instrument, sample }| SoundfontDrumKey {
        key,
        sample_name: sample,
        instrument_name: instrument,
    };
    let keys = keys.into_iter().map(key).collect();
    SoundfontDrumMap { bank: id.bank, program: id.program, keys }
}

fn region(region: Region) -> SoundfontRegion {
    SoundfontRegion {
        key_low: region.key_low,
        key_high: region.key_high,
        velocity_low: region.velocity_low,
        velocity_high: region.velocity_high,
        sample_name: Some(region.sample),
        instrument_name: Some(region.instrument),
        root_key: region.root_key,
        tuning_cents: region.tuning_cents,
        pan: region.pan,
        attenuation_db: region.attenuation_db,
        looped: region.looped,
        exclusive_class: region.exclusive_class,
    }
}

/// Refuses a value outside its range.
pub(crate) fn check_range(
    field: &str,
    value: f32,
    range: std::ops::RangeInclusive<f32>,
) -> Result<()> {
    if range.contains(&value) {
        return Ok(());
    }
    let (low, high) = range.into_inner();
    Err(Error::invalid_field(field, format!("`{field}` must be {low} to {high}")))
}
