//! Reads the garden's timeline.

use ringback_proto::garden::{GardenRegion, TempoChange, Ticks};
use ringback_proto::ids::{ArtifactId, ProjectId, RegionId};
use ringback_proto::record::RegionRecord;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::error::ReadError;
use crate::row::{Columns, int};
use crate::store::Store;

/// Regions that start before the end of a range and end after its start. A region is at most as
/// long as the timeline, so the index helps with one side only.
const OVERLAPPING: &str = "SELECT * FROM garden_region
     WHERE position < ?2 AND position + duration > ?1 ORDER BY position, n";

/// The size of the timeline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimelineSize {
    /// The number of changes so far.
    pub revision: u64,
    /// The number of regions.
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
    /// The regions, by position.
    pub regions: Vec<RegionRecord>,
}

/// Reads block; async callers go through a blocking pool.
impl Store {
    /// Returns the revision and the counts of the timeline.
    pub fn timeline_size(&self) -> Result<TimelineSize, ReadError> {
        self.readers().read("the timeline", |connection| {
            let sql = "SELECT revision, (SELECT count(*) FROM garden_region) AS n_regions,
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
            let sql = "SELECT revision FROM garden";
            let revision =
                connection.prepare_cached(sql)?.query_row([], |row| row.u64("revision"))?;
            let tempo = tempo_map(connection)?;
            let regions = connection
                .prepare_cached(OVERLAPPING)?
                .query_map(params![int(start.0), int(end.0)], region)?
                .collect::<rusqlite::Result<_>>()?;
            Ok(StoredTimeline { revision, tempo, regions })
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
            content_hash: row.hash("content_hash")?,
            mime_type: row.get("mime_type")?,
            gain_db: row.get::<_, f64>("gain_db")? as f32,
            pan: row.get::<_, f64>("pan")? as f32,
            offset_seconds: row.get("offset_seconds")?,
            fade_in: Ticks(row.u64("fade_in")?),
            fade_out: Ticks(row.u64("fade_out")?),
            name: row.get("name")?,
        },
        owner: row.owner()?,
        project: row.opt_id("project", ProjectId::from_random)?,
        artifact: row.opt_id("artifact", ArtifactId::from_random)?,
        tags: row.tags()?,
        created_at: row.u64("created_at")?,
    })
}
