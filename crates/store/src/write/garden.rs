//! Writes the garden's timeline.

use ringback_proto::garden::{TempoChange, Ticks};
use ringback_proto::ids::RegionId;
use ringback_proto::record::{RegionRecord, TimelineChange};
use rusqlite::{Connection, params};

use super::{ApplyError, found};
use crate::error::CommitError;
use crate::row::{int, owner_bytes, tags_bytes};

/// Writes a change of the timeline as its next revision.
pub(super) fn changed(
    connection: &Connection,
    revision: u64,
    change: &TimelineChange,
) -> Result<(), ApplyError> {
    let sql = "SELECT revision FROM garden";
    let stored: i64 = connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
    if stored.saturating_add(1) != int(revision) {
        return Err(CommitError::StaleTimeline { revision }.into());
    }
    match change {
        TimelineChange::Placed(region) => placed(connection, region)?,
        TimelineChange::Moved { id, position } => moved(connection, *id, *position)?,
        TimelineChange::Deleted { id } => deleted(connection, *id)?,
        TimelineChange::Tempo(change) => tempo(connection, change)?,
    }
    connection.prepare_cached("UPDATE garden SET revision = ?1")?.execute([int(revision)])?;
    Ok(())
}

fn placed(connection: &Connection, record: &RegionRecord) -> Result<(), ApplyError> {
    let RegionRecord { region, owner, project, artifact, tags, created_at } = record;
    let n_changed = connection
        .prepare_cached(
            "INSERT INTO garden_region (id, owner, project, position, duration, artifact,
                 content_hash, mime_type, gain_db, pan, offset_seconds, fade_in, fade_out, name,
                 tags, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
             ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            region.region_id.as_bytes(),
            owner_bytes(owner),
            project.as_ref().map(|project| project.as_bytes()),
            int(region.position.0),
            int(region.duration.unwrap_or_default().0),
            artifact.as_ref().map(|artifact| artifact.as_bytes()),
            region.content_hash.as_bytes(),
            region.mime_type,
            f64::from(region.gain_db),
            f64::from(region.pan),
            region.offset_seconds,
            int(region.fade_in.0),
            int(region.fade_out.0),
            region.name,
            tags_bytes(tags),
            int(*created_at),
        ])?;
    found(n_changed, CommitError::Taken { what: format!("region {}", region.region_id) })
}

fn moved(connection: &Connection, id: RegionId, position: Ticks) -> Result<(), ApplyError> {
    let sql = "UPDATE garden_region SET position = ?2 WHERE id = ?1";
    let n_changed =
        connection.prepare_cached(sql)?.execute(params![id.as_bytes(), int(position.0)])?;
    found(n_changed, CommitError::NoRegion { id })
}

fn deleted(connection: &Connection, id: RegionId) -> Result<(), ApplyError> {
    let sql = "DELETE FROM garden_region WHERE id = ?1";
    let n_changed = connection.prepare_cached(sql)?.execute([id.as_bytes()])?;
    found(n_changed, CommitError::NoRegion { id })
}

fn tempo(connection: &Connection, change: &TempoChange) -> Result<(), ApplyError> {
    let TempoChange { at, bpm, beats_per_bar, beat_unit } = change;
    connection
        .prepare_cached(
            "INSERT INTO garden_tempo (at, bpm, beats_per_bar, beat_unit) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET bpm = excluded.bpm,
                 beats_per_bar = excluded.beats_per_bar, beat_unit = excluded.beat_unit",
        )?
        .execute(params![int(at.0), bpm, beats_per_bar, beat_unit])?;
    Ok(())
}
