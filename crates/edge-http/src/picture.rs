//! The garden's timeline as a picture: lanes of regions under a ruler of bars, with tempo, loop and
//! play head, as SVG.

use std::fmt::Write as _;

use ringback_proto::garden::RegionState;
use ringback_proto::request::{GardenRegionInfo, GardenRegionsResponse, GardenTempoPoint};

/// The widths a picture can have, in pixels: from a thumbnail to a poster.
pub const WIDTHS: std::ops::RangeInclusive<u32> = 200..=8000;
/// The width if nobody chooses one.
pub const WIDTH: u32 = 1200;

/// Bar lines of one picture: more would touch each other.
const BARS_MAX: f64 = 64.0;
const MARGIN: f64 = 8.0;
const RULER: f64 = 40.0;
const LANE: f64 = 30.0;
/// A region narrower than this is still visible.
const WIDTH_MIN: f64 = 2.0;
/// The width of a character of a label, about.
const CHARACTER: f64 = 6.5;

const STYLE: &str = "text{font:11px system-ui,sans-serif;fill:#333}.bar{stroke:#0002}\
.loop{fill:#f5b40033}.head{stroke:#d22;stroke-width:2}.bg{fill:#fff}\
.ready{fill:#7fb3e6;stroke:#3a78b5}.pending{fill:#ddd;stroke:#888;stroke-dasharray:4 3}\
.awaiting_approval{fill:#ffe08a;stroke:#b58a00}.failed,.rejected{fill:#f3c0c0;stroke:#b03030}\
@media(prefers-color-scheme:dark){.bg{fill:#1b1d21}text{fill:#ddd}.bar{stroke:#fff2}\
.ready{fill:#2f5f8f;stroke:#7fb3e6}.pending{fill:#444}.awaiting_approval{fill:#7a6200}\
.failed,.rejected{fill:#6b2b2b}}";

/// What to draw.
#[derive(Debug)]
pub struct TimelinePicture<'a> {
    /// The regions, as their viewer may see them.
    pub timeline: &'a GardenRegionsResponse,
    /// The beats to show; all of them if absent.
    pub range: (Option<f64>, Option<f64>),
    /// Where playback is, in beats.
    pub position: Option<f64>,
    /// The width in pixels.
    pub width: u32,
}

/// A bar line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BarLine {
    /// The number of its bar, from 1.
    pub bar: u64,
    /// Its beat.
    pub beat: f64,
}

impl TimelinePicture<'_> {
    /// Draws it.
    #[must_use]
    pub fn svg(&self) -> String {
        let (start, end) = self.span();
        let regions = &self.timeline.regions;
        let lanes = lanes(regions);
        let n_lanes = lanes.iter().max().map_or(1, |last| last + 1);
        let (width, height) = (f64::from(self.width), RULER + n_lanes as f64 * LANE + 2.0 * MARGIN);
        let scale = (width - 2.0 * MARGIN) / (end - start);
        let x = |beat: f64| MARGIN + (beat.clamp(start, end) - start) * scale;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\"><title>The garden's timeline, beats \
             {start} to {end}</title><style>{STYLE}</style><rect class=\"bg\" width=\"{width}\" \
             height=\"{height}\"/>"
        );
        self.draw_ruler(&mut svg, (start, end), height, &x);
        for (region, lane) in regions.iter().zip(&lanes) {
            let y = RULER + *lane as f64 * LANE + MARGIN;
            draw_region(&mut svg, region, y, &x);
        }
        if let Some(beat) = self.position.filter(|beat| (start..=end).contains(beat)) {
            let x = x(beat);
            push(
                &mut svg,
                format_args!(
                    "<line class=\"head\" x1=\"{x:.2}\" x2=\"{x:.2}\" y1=\"{MARGIN}\" y2=\"{:.2}\">\
                 <title>beat {beat:.3}</title></line>",
                    height - MARGIN
                ),
            );
        }
        svg.push_str("</svg>\n");
        svg
    }

    /// Returns the beats to show: never nothing.
    fn span(&self) -> (f64, f64) {
        let last = self.timeline.regions.iter().map(end_of).fold(0.0, f64::max);
        let last = self.timeline.loop_range.as_ref().map_or(last, |range| last.max(range.end));
        let start = self.range.0.unwrap_or(0.0);
        // An empty timeline shows four bars.
        let end = self.range.1.unwrap_or(if last > start { last } else { start + 16.0 });
        (start, end.max(start + 0.25))
    }

    fn draw_ruler(
        &self,
        svg: &mut String,
        (start, end): (f64, f64),
        height: f64,
        x: &impl Fn(f64) -> f64,
    ) {
        if let Some(range) = &self.timeline.loop_range {
            let (left, right) = (x(range.start), x(range.end));
            push(
                svg,
                format_args!(
                    "<rect class=\"loop\" x=\"{left:.2}\" y=\"{MARGIN}\" width=\"{:.2}\" \
                 height=\"{:.2}\"><title>loop, beats {} to {}</title></rect>",
                    (right - left).max(0.0),
                    height - 2.0 * MARGIN,
                    range.start,
                    range.end
                ),
            );
        }
        for BarLine { bar, beat } in bar_lines(&self.timeline.tempo, start, end) {
            let x = x(beat);
            push(
                svg,
                format_args!(
                    "<line class=\"bar\" x1=\"{x:.2}\" x2=\"{x:.2}\" y1=\"{:.2}\" y2=\"{:.2}\"/>\
                 <text x=\"{:.2}\" y=\"{:.2}\">{bar}</text>",
                    RULER - MARGIN,
                    height - MARGIN,
                    x + 3.0,
                    RULER + 1.0
                ),
            );
        }
        let mut free_from = f64::MIN;
        for point in self.timeline.tempo.iter().filter(|point| point.beat < end) {
            let (x, label) = (x(point.beat), format!("{} {}", point.bpm, point.time_signature));
            // Labels that would lie on each other are left out.
            if x >= free_from {
                free_from = x + (label.len() + 2) as f64 * CHARACTER;
                push(
                    svg,
                    format_args!("<text x=\"{:.2}\" y=\"20\">{}</text>", x + 3.0, escaped(&label)),
                );
            }
        }
    }
}

/// Returns the lane of each region: the first in which nothing else lies there.
#[must_use]
pub fn lanes(regions: &[GardenRegionInfo]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..regions.len()).collect();
    order.sort_by(|a, b| regions[*a].position.total_cmp(&regions[*b].position));
    let (mut lanes, mut ends) = (vec![0; regions.len()], Vec::<f64>::new());
    for idx in order {
        let region = &regions[idx];
        let free = ends.iter().position(|end| *end <= region.position);
        let lane = free.unwrap_or(ends.len());
        if lane == ends.len() {
            ends.push(0.0);
        }
        (ends[lane], lanes[idx]) = (end_of(region), lane);
    }
    lanes
}

/// Returns the beat at which a region ends.
#[must_use]
pub fn end_of(region: &GardenRegionInfo) -> f64 {
    region.position + region.duration * f64::from(region.repeat)
}

/// Returns the bar lines from one beat to another; of many, every second, fourth and so on.
#[must_use]
pub fn bar_lines(tempo: &[GardenTempoPoint], start: f64, end: f64) -> Vec<BarLine> {
    let mut step = 1;
    loop {
        let lines = lines_at(tempo, start, end, step);
        if let Some(lines) = lines {
            return lines;
        }
        step *= 2;
    }
}

/// Returns every `step`-th bar line, if these are few enough.
fn lines_at(tempo: &[GardenTempoPoint], start: f64, end: f64, step: u64) -> Option<Vec<BarLine>> {
    let first = (0.0, 4.0);
    let mut spans: Vec<(f64, f64)> =
        tempo.iter().map(|point| (point.beat, bar_length(&point.time_signature))).collect();
    if spans.first().is_none_or(|(beat, _)| *beat > 0.0) {
        spans.insert(0, first);
    }
    let (mut lines, mut bars_before) = (Vec::new(), 0_u64);
    for (idx, (from, length)) in spans.iter().enumerate() {
        let to = spans.get(idx + 1).map_or(f64::INFINITY, |(next, _)| *next);
        let n_here = ((to.min(end) - from) / length).ceil().max(0.0) as u64;
        let skipped = ((start - from) / length).ceil().max(0.0) as u64;
        // The next bar whose number, from 0, is a multiple of the step.
        let mut bar = (bars_before + skipped).next_multiple_of(step) - bars_before;
        while bar < n_here {
            lines.push(BarLine { bar: bars_before + bar + 1, beat: from + bar as f64 * length });
            if lines.len() as f64 > BARS_MAX {
                return None;
            }
            bar += step;
        }
        if to >= end {
            break;
        }
        bars_before += ((to - from) / length).ceil() as u64;
    }
    Some(lines)
}

/// Returns the quarter notes of a bar.
fn bar_length(time_signature: &str) -> f64 {
    let numbers = time_signature
        .split_once('/')
        .and_then(|(beats, unit)| Some((beats.parse::<f64>().ok()?, unit.parse::<f64>().ok()?)));
    numbers.map_or(4.0, |(beats, unit)| beats * 4.0 / unit).max(1.0 / 16.0)
}

fn draw_region(svg: &mut String, region: &GardenRegionInfo, y: f64, x: &impl Fn(f64) -> f64) {
    let (left, right) = (x(region.position), x(end_of(region)));
    let width = (right - left).max(WIDTH_MIN);
    let content = region.content.as_ref();
    let name =
        content.and_then(|content| content.name.clone().or_else(|| content.mime_type.clone()));
    let mut label = name.unwrap_or_else(|| "hidden".to_owned());
    if region.state != RegionState::Ready {
        label = format!("{label} ({})", region.state.as_str().replace('_', " "));
    }
    let shown: String = label.chars().take(((width - 8.0) / CHARACTER).max(0.0) as usize).collect();
    push(
        svg,
        format_args!(
            "<g><title>{}: {}, beats {} to {}</title><rect class=\"{}\" x=\"{left:.2}\" y=\"{y:.2}\" \
         width=\"{width:.2}\" height=\"{:.2}\" rx=\"4\"/><text x=\"{:.2}\" y=\"{:.2}\">{}</text></g>",
            region.region_id,
            escaped(&label),
            region.position,
            end_of(region),
            region.state.as_str(),
            LANE - 4.0,
            left + 4.0,
            y + LANE / 2.0 + 2.0,
            escaped(&shown)
        ),
    );
}

/// Returns text that XML takes for text: names come from callers.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // XML has no form for these.
            control if control.is_control() || matches!(control, '\u{fffe}' | '\u{ffff}') => {
                safe.push('\u{fffd}');
            }
            other => safe.push(other),
        }
    }
    safe
}

fn push(svg: &mut String, piece: std::fmt::Arguments<'_>) {
    svg.write_fmt(piece).expect("writing to a string does not fail");
}

#[cfg(test)]
mod tests {
    use ringback_proto::garden::GardenLoop;
    use ringback_proto::ids::RegionId;
    use ringback_proto::request::{GardenRegionContent, RegionApproval, RegionBehavior};

    use super::*;

    fn region(number: u8, position: f64, duration: f64) -> GardenRegionInfo {
        GardenRegionInfo {
            region_id: RegionId::from_random([number; 16]),
            position,
            duration,
            repeat: 1,
            state: RegionState::Ready,
            yours: false,
            last_heard_at: None,
            content: None,
        }
    }

    fn named(name: &str) -> GardenRegionInfo {
        let content = GardenRegionContent {
            behavior_type: RegionBehavior::PlayContent,
            artifact_id: None,
            content_hash: None,
            mime_type: Some("audio/wav".to_owned()),
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
        };
        GardenRegionInfo { content: Some(content), ..region(9, 0.0, 1000.0) }
    }

    fn timeline(regions: Vec<GardenRegionInfo>) -> GardenRegionsResponse {
        let count = regions.len() as u64;
        GardenRegionsResponse { regions, count, tempo: vec![], loop_range: None, revision: 1 }
    }

    fn svg(timeline: &GardenRegionsResponse) -> String {
        TimelinePicture { timeline, range: (None, None), position: Some(2.0), width: WIDTH }.svg()
    }

    fn point(beat: f64, time_signature: &str) -> GardenTempoPoint {
        GardenTempoPoint { beat, bpm: 120.0, time_signature: time_signature.to_owned() }
    }

    #[test]
    fn regions_that_overlap_lie_in_lanes_of_their_own() {
        let mut repeated = region(2, 4.0, 2.0);
        repeated.repeat = 3;
        let regions = [region(1, 0.0, 8.0), repeated, region(3, 8.0, 1.0), region(4, 9.0, 1.0)];
        assert_eq!(lanes(&regions), [0, 1, 0, 0]);
        assert_eq!(lanes(&[region(1, 5.0, 1.0), region(2, 0.0, 5.0)]), [0, 0], "in any order");
    }

    #[test]
    fn bar_lines_follow_the_time_signature_and_stay_few() {
        let lines = bar_lines(&[point(0.0, "3/4"), point(7.0, "4/4")], 0.0, 15.0);
        let found: Vec<_> = lines.iter().map(|line| (line.bar, line.beat)).collect();
        // A new time signature starts a bar, also where the old one was not over.
        assert_eq!(found, [(1, 0.0), (2, 3.0), (3, 6.0), (4, 7.0), (5, 11.0)]);
        let many = bar_lines(&[], 0.0, 1_000_000.0);
        assert!(many.len() > 16 && many.len() <= 64, "{}", many.len());
        assert!(many.iter().all(|line| (line.beat - (line.bar - 1) as f64 * 4.0).abs() < 1e-6));
        let part = bar_lines(&[], 10.0, 21.0);
        assert_eq!(part.iter().map(|line| line.bar).collect::<Vec<_>>(), [4, 5, 6]);
    }

    #[test]
    fn a_picture_shows_regions_loop_and_play_head() {
        let mut waiting = region(2, 4.0, 4.0);
        waiting.state = RegionState::AwaitingApproval;
        let mut timeline = timeline(vec![named("drums"), waiting]);
        timeline.loop_range = Some(GardenLoop { start: 0.0, end: 8.0 });
        timeline.tempo = vec![point(0.0, "4/4")];
        let svg = svg(&timeline);
        for part in ["drums", "hidden (awaiting approval)", "loop, beats 0 to 8", "120 4/4", "head"]
        {
            assert!(svg.contains(part), "{part}: {svg}");
        }
    }

    /// Rule: what callers write never becomes markup.
    #[test]
    fn a_name_cannot_break_out_of_its_text() {
        let svg = svg(&timeline(vec![named("</text><script>alert(1)</script>\u{0}'\"&")]));
        assert!(!svg.contains("<script"), "{svg}");
        assert!(svg.contains("&lt;/text&gt;&lt;script&gt;") && svg.contains("&amp;"), "{svg}");
        assert!(!svg.contains('\u{0}'));
    }

    #[test]
    fn an_empty_timeline_is_a_picture_too() {
        let svg = svg(&timeline(vec![]));
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
