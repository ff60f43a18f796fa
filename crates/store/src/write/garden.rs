//! Writes the garden's timeline.

use ringback_proto::garden::{GardenContent, LoopRange, RegionState, TempoChange, Ticks};
use ringback_proto::ids::{ArtifactId, RegionId};
use ringback_proto::record::{HeardRecord, RegionRecord, TimelineChange};
use rusqlite::{Connection, params};

use super::{ApplyError, found};
use crate::error::CommitError;
use crate::row::{int, opt_int, owner_bytes, tags_bytes};

/// Rows about what was heard; older ones are dropped. A piece of a hundred regions, played a thousand
/// times.
const HEARD_MAX: u64 = 100_000;

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
        TimelineChange::Loop(range) => loop_set(connection, range.as_ref())?,
        TimelineChange::State { id, state, reason } => {
            state_set(connection, *id, *state, reason.as_deref())?;
        }
        TimelineChange::Settled { id, state, content, artifact, reason } => {
            settled(connection, *id, content.as_ref(), artifact.as_ref())?;
            state_set(connection, *id, *state, reason.as_deref())?;
        }
    }
    connection.prepare_cached("UPDATE garden SET revision = ?1")?.execute([int(revision)])?;
    Ok(())
}

fn placed(connection: &Connection, record: &RegionRecord) -> Result<(), ApplyError> {
    let RegionRecord { region, owner, project, artifact, approval, reason, tags, created_at } =
        record;
    let (content, promise) = (region.content.as_ref(), region.promise.as_ref());
    let n_changed = connection
        .prepare_cached(
            "INSERT INTO garden_region (id, owner, project, position, duration, repeat, state,
                 artifact, content_hash, mime_type, job, if_late, approval, reason, gain_db, pan,
                 offset_seconds, fade_in, fade_out, crossfade, name, tags, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
                 ?18, ?19, ?20, ?21, ?22, ?23)
             ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            region.region_id.as_bytes(),
            owner_bytes(owner),
            project.as_ref().map(|project| project.as_bytes()),
            int(region.position.0),
            int(region.duration.unwrap_or_default().0),
            region.repeat,
            region.state.as_str(),
            artifact.as_ref().map(|artifact| artifact.as_bytes()),
            content.map(|content| content.hash.as_bytes()),
            content.map(|content| content.mime_type.as_str()),
            promise.map(|promise| promise.job_id.as_bytes()),
            promise.map(|promise| promise.if_late.as_str()),
            approval.as_str(),
            reason,
            f64::from(region.gain_db),
            f64::from(region.pan),
            region.offset_seconds,
            int(region.fade_in.0),
            int(region.fade_out.0),
            int(region.crossfade.0),
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

fn loop_set(connection: &Connection, range: Option<&LoopRange>) -> Result<(), ApplyError> {
    let (start, end) = (range.map(|range| range.start.0), range.map(|range| range.end.0));
    let sql = "UPDATE garden SET loop_start = ?1, loop_end = ?2";
    connection.prepare_cached(sql)?.execute(params![opt_int(start), opt_int(end)])?;
    Ok(())
}

fn state_set(
    connection: &Connection,
    id: RegionId,
    state: RegionState,
    reason: Option<&str>,
) -> Result<(), ApplyError> {
    let sql = "UPDATE garden_region SET state = ?2, reason = ?3 WHERE id = ?1";
    let n_changed =
        connection.prepare_cached(sql)?.execute(params![id.as_bytes(), state.as_str(), reason])?;
    found(n_changed, CommitError::NoRegion { id })
}

fn settled(
    connection: &Connection,
    id: RegionId,
    content: Option<&GardenContent>,
    artifact: Option<&ArtifactId>,
) -> Result<(), ApplyError> {
    let sql = "UPDATE garden_region SET content_hash = ?2, mime_type = ?3, artifact = ?4
               WHERE id = ?1";
    let n_changed = connection.prepare_cached(sql)?.execute(params![
        id.as_bytes(),
        content.map(|content| content.hash.as_bytes()),
        content.map(|content| content.mime_type.as_str()),
        artifact.map(|artifact| artifact.as_bytes()),
    ])?;
    found(n_changed, CommitError::NoRegion { id })
}

/// Records what was heard, and drops what is too old.
pub(super) fn heard(connection: &Connection, heard: &[HeardRecord]) -> Result<(), ApplyError> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO garden_heard (region, artifact, from_tick, to_tick, at)
         VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for HeardRecord { region, artifact, from, to, at } in heard {
        insert.execute(params![
            region.as_bytes(),
            artifact.as_ref().map(|artifact| artifact.as_bytes()),
            int(from.0),
            int(to.0),
            int(*at),
        ])?;
    }
    let sql = "DELETE FROM garden_heard WHERE n <= (SELECT max(n) FROM garden_heard) - ?1";
    connection.prepare_cached(sql)?.execute([int(HEARD_MAX)])?;
    Ok(())
}
