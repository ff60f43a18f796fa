//! What `ringback garden watch` shows, as rows of text.

use ringback_edge_http::picture::{bar_lines, end_of, lanes};
use ringback_proto::garden::{GardenPositionEvent, GardenTroubleEvent, RegionState};
use ringback_proto::request::{GardenRegionInfo, GardenRegionsResponse, GardenStatusResponse};

/// The rows that are no lanes: state, ruler, two meters, trouble.
const OTHER_ROWS: usize = 5;
/// The narrowest screen: a meter and its number.
const WIDTH_MIN: usize = 20;
/// The bottom of the meters.
const QUIET_DB: f32 = -60.0;
/// Room for the level behind a meter.
const LEVEL_WIDTH: usize = 12;

/// The state of the screen.
#[derive(Debug)]
pub(super) struct View {
    timeline: Option<GardenRegionsResponse>,
    status: Option<GardenStatusResponse>,
    position: f64,
    peaks: [f32; 2],
    trouble: Option<String>,
    /// The beats of one row.
    beats: f64,
}

impl View {
    pub(super) const fn new(beats: f64) -> Self {
        Self { timeline: None, status: None, position: 0.0, peaks: [0.0; 2], trouble: None, beats }
    }

    pub(super) fn set(
        &mut self,
        timeline: GardenRegionsResponse,
        status: Option<GardenStatusResponse>,
    ) {
        self.position = status.as_ref().map_or(0.0, |status| status.position_beats);
        (self.timeline, self.status) = (Some(timeline), status);
    }

    pub(super) fn moved(&mut self, position: &GardenPositionEvent) {
        (self.position, self.peaks) = (position.position_beats, position.peaks);
    }

    pub(super) fn trouble(&mut self, trouble: &GardenTroubleEvent) {
        self.trouble = Some(format!("at beat {:.1}: {}", trouble.position_beats, trouble.cause));
    }

    /// Returns the rows of a screen, none wider than it.
    pub(super) fn rows(&self, width: usize, height: usize) -> Vec<String> {
        let width = width.max(WIDTH_MIN);
        let mut rows = vec![self.head()];
        if let Some(timeline) = &self.timeline {
            let start = (self.position / self.beats).floor() * self.beats;
            let page = Page { start, beats: self.beats, width };
            rows.push(page.ruler(timeline));
            let n_lanes = height.saturating_sub(OTHER_ROWS).max(1);
            rows.extend(page.lanes(timeline, n_lanes, self.position));
        }
        for (name, peak) in ["L", "R"].into_iter().zip(self.peaks) {
            rows.push(meter(name, peak, width));
        }
        rows.extend(self.trouble.clone());
        rows.into_iter().map(|row| printable(&row).chars().take(width).collect()).collect()
    }

    fn head(&self) -> String {
        let Some(status) = &self.status else {
            return "no garden runs; `ringback garden play` starts it".to_owned();
        };
        let range = status.loop_range.as_ref();
        let range = range.map_or(String::new(), |it| format!("  loop {}-{}", it.start, it.end));
        let waiting = if status.waiting_for.is_some() { "  waits for content" } else { "" };
        format!(
            "{}  beat {:.2}  {} in {}{range}{waiting}  {} ({})",
            status.state.as_str(),
            self.position,
            status.tempo_bpm,
            status.time_signature,
            status.device.name,
            status.device.kind
        )
    }
}

/// The beats that fit into the width of the screen.
struct Page {
    start: f64,
    beats: f64,
    width: usize,
}

impl Page {
    /// Returns the column of a beat, which may lie outside.
    fn column(&self, beat: f64) -> f64 {
        (beat - self.start) / self.beats * self.width as f64
    }

    /// Returns the columns from one beat to another; at least one, if they are on the page.
    fn columns(&self, from: f64, to: f64) -> std::ops::Range<usize> {
        if to <= self.start || from >= self.start + self.beats {
            return 0..0;
        }
        let first = self.column(from).max(0.0) as usize;
        let last = (self.column(to).ceil().max(0.0) as usize).min(self.width);
        first..last.max(first + 1).min(self.width)
    }

    fn ruler(&self, timeline: &GardenRegionsResponse) -> String {
        let mut row = vec![' '; self.width];
        for line in bar_lines(&timeline.tempo, self.start, self.start + self.beats) {
            let columns = self.columns(line.beat, line.beat);
            let label = format!("|{}", line.bar);
            // A label that would lie on the next one is cut by it.
            for (cell, letter) in row.iter_mut().skip(columns.start).zip(label.chars()) {
                *cell = letter;
            }
        }
        row.into_iter().collect()
    }

    fn lanes(
        &self,
        timeline: &GardenRegionsResponse,
        n_lanes: usize,
        position: f64,
    ) -> Vec<String> {
        let on_page =
            |region: &&GardenRegionInfo| !self.columns(region.position, end_of(region)).is_empty();
        let regions: Vec<GardenRegionInfo> =
            timeline.regions.iter().filter(on_page).cloned().collect();
        let places = lanes(&regions);
        let n_needed = places.iter().max().map_or(1, |last| last + 1);
        let mut rows = vec![vec![' '; self.width]; n_needed];
        for (region, lane) in regions.iter().zip(places) {
            self.draw(&mut rows[lane], region);
        }
        let n_hidden = n_needed.saturating_sub(n_lanes);
        rows.truncate(n_lanes);
        let head = self.columns(position, position).start;
        for row in &mut rows {
            if let Some(cell) = row.get_mut(head) {
                *cell = '│';
            }
        }
        let mut rows: Vec<String> = rows.into_iter().map(|row| row.into_iter().collect()).collect();
        if n_hidden > 0
            && let Some(last) = rows.last_mut()
        {
            *last = format!("… {} more lanes", n_hidden + 1);
        }
        rows
    }

    fn draw(&self, row: &mut [char], region: &GardenRegionInfo) {
        let columns = self.columns(region.position, end_of(region));
        let fill = match region.state {
            RegionState::Ready => '▒',
            RegionState::Pending => '░',
            RegionState::AwaitingApproval => '?',
            RegionState::Failed | RegionState::Rejected => '×',
        };
        let content = region.content.as_ref();
        let name = content.and_then(|content| content.name.as_deref()).unwrap_or_default();
        let cells = &mut row[columns];
        cells.fill(fill);
        for (cell, letter) in cells.iter_mut().skip(1).zip(name.chars()) {
            *cell = letter;
        }
    }
}

/// Returns a level as a bar and in decibels.
fn meter(name: &str, peak: f32, width: usize) -> String {
    let level = if peak > 0.0 { (20.0 * peak.log10()).max(QUIET_DB) } else { QUIET_DB };
    let n_cells = width.saturating_sub(LEVEL_WIDTH);
    let n_full = ((level / -QUIET_DB + 1.0) * n_cells as f32) as usize;
    let n_full = n_full.min(n_cells);
    let text = if peak > 0.0 { format!("{level:.1} dB") } else { "silent".to_owned() };
    format!("{name} {}{} {text}", "█".repeat(n_full), "·".repeat(n_cells - n_full))
}

/// Returns text without characters that control a terminal: names come from callers.
fn printable(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use ringback_proto::garden::{GardenLoop, TransportState};
    use ringback_proto::ids::RegionId;
    use ringback_proto::request::{GardenRegionContent, RegionApproval, RegionBehavior};

    use super::*;

    fn region(number: u8, position: f64, duration: f64, name: &str) -> GardenRegionInfo {
        GardenRegionInfo {
            region_id: RegionId::from_random([number; 16]),
            position,
            duration,
            repeat: 1,
            state: RegionState::Ready,
            yours: true,
            last_heard_at: None,
            content: Some(GardenRegionContent {
                behavior_type: RegionBehavior::PlayContent,
                artifact_id: None,
                content_hash: None,
                mime_type: None,
                job_id: None,
                if_late: None,
                approval: RegionApproval::Auto,
                reason: None,
                gain_db: 0.0,
                pan: 0.0,
                offset_seconds: 0.0,
                fade_in: 0.0,
                fade_out: 0.0,
                crossfade: 0.0,
                name: Some(name.to_owned()),
                tags: vec![],
            }),
        }
    }

    fn view(regions: Vec<GardenRegionInfo>) -> View {
        let mut view = View::new(16.0);
        let count = regions.len() as u64;
        let loop_range = Some(GardenLoop { start: 0.0, end: 8.0 });
        let timeline =
            GardenRegionsResponse { regions, count, tempo: vec![], loop_range, revision: 1 };
        view.set(timeline, None);
        view
    }

    #[test]
    fn lanes_bars_and_the_play_head_have_their_columns() {
        let mut view = view(vec![region(1, 0.0, 8.0, "drums"), region(2, 4.0, 8.0, "bass")]);
        view.moved(&GardenPositionEvent {
            position_beats: 10.0,
            state: TransportState::Playing,
            peaks: [1.0, 0.0],
        });
        let rows = view.rows(32, 24);
        assert!(rows[0].contains("no garden runs"), "{rows:?}");
        assert_eq!(rows[1], "|1      |2      |3      |4      ");
        assert_eq!(rows[2], "▒drums▒▒▒▒▒▒▒▒▒▒    │           ");
        assert_eq!(rows[3], "        ▒bass▒▒▒▒▒▒▒│▒▒▒        ");
        assert!(rows[4].starts_with("L ████") && rows[4].ends_with("0.0 dB"), "{rows:?}");
        assert!(rows[5].starts_with("R ····") && rows[5].ends_with("silent"), "{rows:?}");
    }

    #[test]
    fn a_page_turns_when_the_play_head_leaves_it() {
        let mut view = view(vec![region(1, 0.0, 8.0, "drums"), region(2, 20.0, 4.0, "bass")]);
        let moved = GardenPositionEvent {
            position_beats: 17.0,
            state: TransportState::Playing,
            peaks: [0.0; 2],
        };
        view.moved(&moved);
        let rows = view.rows(32, 24);
        assert!(rows[1].starts_with("|5"), "{rows:?}");
        assert!(rows[2].contains("bass") && !rows[2].contains("drums"), "{rows:?}");
    }

    /// Rule: names cannot control the terminal, and no row is wider than the screen.
    #[test]
    fn rows_are_harmless_and_fit() {
        let regions = (0..30).map(|n| region(n, 0.0, 400.0, "\u{1b}[2Jevil")).collect();
        let mut view = view(regions);
        view.trouble(&GardenTroubleEvent {
            kind: ringback_proto::garden::TroubleKind::Device,
            position_beats: 1.0,
            cause: "\u{1b}]0;x\u{7}".repeat(40),
            region_id: None,
        });
        let rows = view.rows(40, 12);
        assert!(rows.len() <= 12, "{}", rows.len());
        assert!(rows.iter().all(|row| row.chars().count() <= 40), "{rows:?}");
        assert!(rows.iter().all(|row| !row.contains('\u{1b}')), "{rows:?}");
        assert!(rows.iter().any(|row| row.contains("more lanes")), "{rows:?}");
    }
}
