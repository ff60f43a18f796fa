//! Reads the garden's timeline.

use std::collections::HashMap;

use ringback_proto::garden::{
    GardenContent, GardenPromise, GardenRegion, IfLate, LoopRange, RegionState, TempoChange, Ticks,
};
use ringback_proto::ids::{ArtifactId, JobId, ProjectId, RegionId};
use ringback_proto::record::{RegionRecord, UnixMs};
use ringback_proto::request::RegionApproval;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::error::ReadError;
use crate::row::{Columns, int};
use crate::store::Store;

/// Regions that start before the end of a range and end after its start. A region is at most as
/// long as the timeline, so the index helps with one side only.
const OVERLAPPING: &str = "SELECT * FROM garden_region
     WHERE position < ?2 AND position + duration * repeat > ?1 ORDER BY position, n";

/// The size of the timeline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimelineSize {
    /// The number of changes so far.
    pub revision: u64,
    /// The number of regions, each counted as often as it is played.
    pub n_regions: u64,
    /// The number of points of the tempo map.
    pub n_tempo_changes: u64,
}

/// The timeline, or the part of it that overlaps a range.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StoredTimeline {
    /// The number of changes that led to it.
    pub revision: u64,
    /// The tempo map, in order.
    pub tempo: Vec<TempoChange>,
    /// The loop.
    pub loop_range: Option<LoopRange>,
    /// The regions, by position.
    pub regions: Vec<RegionRecord>,
}

/// Reads block; async callers go through a blocking pool.
impl Store {
    /// Returns the revision and the counts of the timeline.
    pub fn timeline_size(&self) -> Result<TimelineSize, ReadError> {
        self.readers().read("the timeline", |connection| {
            let sql = "SELECT revision, (SELECT coalesce(sum(repeat), 0) FROM garden_region) AS n_regions,
                       (SELECT count(*) FROM garden_tempo) AS n_tempo FROM garden";
            connection.prepare_cached(sql)?.query_row([], |row| {
                Ok(TimelineSize {
                    revision: row.u64("revision")?,
                    n_regions: row.u64("n_regions")?,
                    n_tempo_changes: row.u64("n_tempo")?,
                })
            })
        })
    }

    /// Returns the tempo map and the regions that overlap a range, at one moment.
    pub fn timeline(&self, start: Ticks, end: Ticks) -> Result<StoredTimeline, ReadError> {
        self.readers().read("the timeline", |connection| {
            let sql = "SELECT revision, loop_start, loop_end FROM garden";
            let (revision, loop_range) = connection
                .prepare_cached(sql)?
                .query_row([], |row| Ok((row.u64("revision")?, loop_of(row)?)))?;
            let tempo = tempo_map(connection)?;
            let regions = connection
                .prepare_cached(OVERLAPPING)?
                .query_map(params![int(start.0), int(end.0)], region)?
                .collect::<rusqlite::Result<_>>()?;
            Ok(StoredTimeline { revision, tempo, loop_range, regions })
        })
    }

    /// Returns when each region that is there was last heard.
    pub fn last_heard(&self) -> Result<HashMap<RegionId, UnixMs>, ReadError> {
        self.readers().read("what was heard", |connection| {
            // One look at the index for each region, however often it was heard.
            let sql = "SELECT id AS region, at FROM (SELECT id, (SELECT max(at) FROM garden_heard
                       WHERE region = garden_region.id) AS at FROM garden_region)
                       WHERE at IS NOT NULL";
            connection
                .prepare_cached(sql)?
                .query_map([], |row| {
                    Ok((row.id("region", RegionId::from_random)?, row.u64("at")?))
                })?
                .collect()
        })
    }

    /// Returns a region.
    pub fn region(&self, id: RegionId) -> Result<Option<RegionRecord>, ReadError> {
        self.readers().read("a region", |connection| {
            let sql = "SELECT * FROM garden_region WHERE id = ?1";
            connection.prepare_cached(sql)?.query_row([id.as_bytes()], region).optional()
        })
    }
}

fn loop_of(row: &Row<'_>) -> rusqlite::Result<Option<LoopRange>> {
    let (start, end) = (row.opt_u64("loop_start")?, row.opt_u64("loop_end")?);
    Ok(start.zip(end).map(|(start, end)| LoopRange { start: Ticks(start), end: Ticks(end) }))
}

fn tempo_map(connection: &Connection) -> rusqlite::Result<Vec<TempoChange>> {
    connection
        .prepare_cached("SELECT * FROM garden_tempo ORDER BY at")?
        .query_map([], |row| {
            Ok(TempoChange {
                at: Ticks(row.u64("at")?),
                bpm: row.get("bpm")?,
                beats_per_bar: row.get("beats_per_bar")?,
                beat_unit: row.get("beat_unit")?,
            })
        })?
        .collect()
}

#[expect(clippy::cast_possible_truncation, reason = "they were written as 32-bit numbers")]
fn region(row: &Row<'_>) -> rusqlite::Result<RegionRecord> {
    Ok(RegionRecord {
        region: GardenRegion {
            region_id: row.id("id", RegionId::from_random)?,
            position: Ticks(row.u64("position")?),
            duration: Some(Ticks(row.u64("duration")?)),
            state: row.name("state", &RegionState::ALL, RegionState::as_str)?,
            content: content(row)?,
            promise: promise(row)?,
            repeat: row.get("repeat")?,
            gain_db: row.get::<_, f64>("gain_db")? as f32,
            pan: row.get::<_, f64>("pan")? as f32,
            offset_seconds: row.get("offset_seconds")?,
            fade_in: Ticks(row.u64("fade_in")?),
            fade_out: Ticks(row.u64("fade_out")?),
            crossfade: Ticks(row.u64("crossfade")?),
            name: row.get("name")?,
        },
        owner: row.owner()?,
        project: row.opt_id("project", ProjectId::from_random)?,
        artifact: row.opt_id("artifact", ArtifactId::from_random)?,
        approval: row.name("approval", &RegionApproval::ALL, RegionApproval::as_str)?,
        reason: row.get("reason")?,
        tags: row.tags()?,
        created_at: row.u64("created_at")?,
    })
}

fn content(row: &Row<'_>) -> rusqlite::Result<Option<GardenContent>> {
    let (hash, mime_type) = (row.opt_hash("content_hash")?, row.get("mime_type")?);
    Ok(hash.zip(mime_type).map(|(hash, mime_type)| GardenContent { hash, mime_type }))
}

fn promise(row: &Row<'_>) -> rusqlite::Result<Option<GardenPromise>> {
    let Some(job_id) = row.opt_id("job", JobId::from_random)? else { return Ok(None) };
    let if_late = row.name("if_late", &IfLate::ALL, IfLate::as_str)?;
    Ok(Some(GardenPromise { job_id, if_late }))
}
