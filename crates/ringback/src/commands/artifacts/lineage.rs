//! `ringback artifacts lineage`: what an artifact was made from, and what was made from it.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use ringback_client::Client;
use ringback_proto::ids::ArtifactId;
use ringback_proto::request::{ArtifactGetRequest, ArtifactInfoResponse};
use ringback_proto::tool::tools::ArtifactGet;
use ringback_proto::{Error, ErrorKind};
use serde::Serialize;

use crate::failure::Failure;
use crate::screen::{Screen, one_line};

/// The most artifacts in one lineage: more is no picture.
const ARTIFACTS_MAX: usize = 200;
/// `artifact_get` names this many of the artifacts that were made from one.
const DERIVED_MAX: usize = 100;
/// The size of a box of the drawing and the gaps between them, in pixels.
const BOX_WIDTH: usize = 230;
const BOX_HEIGHT: usize = 48;
const GAP_X: usize = 110;
const GAP_Y: usize = 24;
const MARGIN: usize = 20;
/// The role of an artifact that its caller named as the parent.
const PARENT: &str = "parent";

/// A lineage, with each artifact once.
#[derive(Debug, Serialize)]
pub(super) struct Lineage {
    /// Where it was looked from.
    artifact_id: ArtifactId,
    /// The artifacts, nearest first.
    artifacts: Vec<LineageArtifact>,
    /// What was made from what.
    sources: Vec<Edge>,
    /// Whether there are more artifacts, or may be.
    truncated: bool,
}

#[derive(Debug, Serialize)]
struct LineageArtifact {
    id: ArtifactId,
    mime_type: String,
    creator: String,
    tool: Option<String>,
    /// How far it is from the first: negative for what that was made from.
    distance: i32,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Edge {
    /// What was made.
    artifact_id: ArtifactId,
    /// What it was made from, if it is an artifact that the caller sees.
    source_id: Option<ArtifactId>,
    /// The hash of the content, if the caller may see it.
    source_hash: Option<String>,
    /// What it was used for.
    role: &'static str,
}

/// The two directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

impl Lineage {
    /// Follows sources upwards and artifacts made from it downwards. Each artifact is visited once
    /// in each direction, so a circle ends.
    pub(super) async fn find(client: &Client, id: ArtifactId) -> Result<Self, Failure> {
        let mut known = HashMap::from([(id, get(client, id).await?)]);
        let mut distances = BTreeMap::from([(id, 0)]);
        let mut truncated = false;
        for way in [Way::Up, Way::Down] {
            let mut queue = VecDeque::from([(id, 0)]);
            let mut visited = HashSet::from([id]);
            while let Some((at, distance)) = queue.pop_front() {
                truncated |= way == Way::Down && known[&at].derived_ids.len() >= DERIVED_MAX;
                for next in way.next(&known[&at]) {
                    if !visited.insert(next) {
                        continue;
                    }
                    if known.len() >= ARTIFACTS_MAX {
                        truncated = true;
                        continue;
                    }
                    if let Entry::Vacant(unknown) = known.entry(next) {
                        // A stated parent may be one that this caller does not see.
                        let Some(found) = seen(get(client, next).await)? else { continue };
                        unknown.insert(found);
                    }
                    let distance = distance + way.step();
                    distances.entry(next).or_insert(distance);
                    queue.push_back((next, distance));
                }
            }
        }
        Ok(Self::of(id, known, &distances, truncated))
    }

    fn of(
        id: ArtifactId,
        known: HashMap<ArtifactId, ArtifactInfoResponse>,
        distances: &BTreeMap<ArtifactId, i32>,
        truncated: bool,
    ) -> Self {
        let mut sources: Vec<_> = known.values().flat_map(edges).collect();
        sources.sort();
        let artifact = |info: ArtifactInfoResponse| LineageArtifact {
            distance: distances.get(&info.id).copied().unwrap_or_default(),
            id: info.id,
            mime_type: info.mime_type,
            creator: info.creator,
            tool: info.tool,
        };
        let mut artifacts: Vec<_> = known.into_values().map(artifact).collect();
        artifacts.sort_by_key(|artifact| (artifact.distance.abs(), artifact.distance, artifact.id));
        Self { artifact_id: id, artifacts, sources, truncated }
    }

    /// Formats it as two trees: upwards, then downwards.
    pub(super) fn tree(&self, screen: Screen) -> String {
        let mut lines = vec![screen.bold("made from")];
        self.branch(&mut lines, self.artifact_id, Way::Up);
        lines.push(screen.bold("made into"));
        self.branch(&mut lines, self.artifact_id, Way::Down);
        if self.truncated {
            lines.push(format!(
                "… perhaps more: at most {ARTIFACTS_MAX} artifacts, and {DERIVED_MAX} made from each"
            ));
        }
        lines.join("\n")
    }

    fn branch(&self, lines: &mut Vec<String>, root: ArtifactId, way: Way) {
        let mut shown = HashSet::from([root]);
        lines.push(self.label(root));
        let mut stack: Vec<_> = self.edges_of(root, way, "");
        while let Some(TreeLine { edge, before, is_last }) = stack.pop() {
            let (joint, below) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            let other = way.other_end(edge);
            let what = other.map_or_else(
                || edge.source_hash.clone().unwrap_or_else(|| "of another owner".to_owned()),
                |id| self.label(id),
            );
            let is_new = other.is_some_and(|id| shown.insert(id));
            let again = if other.is_some() && !is_new { " (shown before)" } else { "" };
            lines.push(format!("{before}{joint}{} {what}{again}", edge.role));
            if let Some(id) = other.filter(|_| is_new) {
                stack.extend(self.edges_of(id, way, &format!("{before}{below}")));
            }
        }
    }

    /// Returns the lines below an artifact, the last first.
    fn edges_of(&self, id: ArtifactId, way: Way, before: &str) -> Vec<TreeLine<'_>> {
        let is_of = |edge: &&Edge| match way {
            Way::Up => edge.artifact_id == id,
            Way::Down => edge.source_id == Some(id),
        };
        let edges = self.sources.iter().filter(is_of).rev().enumerate();
        let line =
            |(from_end, edge)| TreeLine { edge, before: before.to_owned(), is_last: from_end == 0 };
        edges.map(line).collect()
    }

    fn label(&self, id: ArtifactId) -> String {
        let found = self.artifacts.iter().find(|artifact| artifact.id == id);
        found.map_or_else(|| id.to_string(), |artifact| format!("{id} {}", artifact.about()))
    }

    /// Draws it: what it was made from on the left, what was made from it on the right.
    pub(super) fn svg(&self) -> String {
        let mut columns: BTreeMap<i32, Vec<&LineageArtifact>> = BTreeMap::new();
        for artifact in &self.artifacts {
            columns.entry(artifact.distance).or_default().push(artifact);
        }
        let mut places = HashMap::new();
        for (column, artifacts) in columns.values().enumerate() {
            for (row, artifact) in artifacts.iter().enumerate() {
                let x = MARGIN + column * (BOX_WIDTH + GAP_X);
                places.insert(artifact.id, (x, MARGIN + row * (BOX_HEIGHT + GAP_Y)));
            }
        }
        let n_rows = columns.values().map(Vec::len).max().unwrap_or_default();
        let width = 2 * MARGIN + columns.len() * (BOX_WIDTH + GAP_X) - GAP_X;
        let height = 2 * MARGIN + n_rows * (BOX_HEIGHT + GAP_Y) - GAP_Y;
        let mut parts = vec![format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">"
        )];
        for edge in &self.sources {
            let ends = edge.source_id.and_then(|source| places.get(&source));
            if let (Some(from), Some(to)) = (ends, places.get(&edge.artifact_id)) {
                parts.push(arrow(*from, *to, edge.role));
            }
        }
        for artifact in &self.artifacts {
            let (x, y) = places[&artifact.id];
            parts.push(artifact.drawn(x, y, artifact.id == self.artifact_id));
        }
        parts.push("</svg>".to_owned());
        parts.join("\n")
    }
}

/// A line of a tree.
struct TreeLine<'a> {
    edge: &'a Edge,
    /// What stands before it, from the lines above.
    before: String,
    is_last: bool,
}

impl LineageArtifact {
    fn about(&self) -> String {
        let by = self.tool.as_deref().unwrap_or(&self.creator);
        format!("{} by {}", one_line(&self.mime_type), one_line(by))
    }

    fn drawn(&self, x: usize, y: usize, is_first: bool) -> String {
        let fill = if is_first { "#fff3c4" } else { "#f4f4f4" };
        let (text_x, id_y, about_y) = (x + 8, y + 19, y + 38);
        let id = self.id.to_string();
        let short: String = id.chars().take(16).collect();
        format!(
            "<g><title>{id}</title><rect x=\"{x}\" y=\"{y}\" width=\"{BOX_WIDTH}\" \
             height=\"{BOX_HEIGHT}\" rx=\"6\" fill=\"{fill}\" stroke=\"#555\"/>\
             <text x=\"{text_x}\" y=\"{id_y}\">{short}…</text>\
             <text x=\"{text_x}\" y=\"{about_y}\" fill=\"#555\">{}</text></g>",
            xml(&self.about())
        )
    }
}

fn arrow((from_x, from_y): (usize, usize), (to_x, to_y): (usize, usize), role: &str) -> String {
    let (x1, y1) = (from_x + BOX_WIDTH, from_y + BOX_HEIGHT / 2);
    let (x2, y2) = (to_x, to_y + BOX_HEIGHT / 2);
    let (text_x, text_y) = (usize::midpoint(x1, x2), usize::midpoint(y1, y2) - 4);
    format!(
        "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" stroke=\"#555\"/>\
         <text x=\"{text_x}\" y=\"{text_y}\" text-anchor=\"middle\">{role}</text>"
    )
}

impl Way {
    const fn step(self) -> i32 {
        match self {
            Self::Up => -1,
            Self::Down => 1,
        }
    }

    /// Returns the next artifacts in this direction.
    fn next(self, info: &ArtifactInfoResponse) -> Vec<ArtifactId> {
        match self {
            Self::Up => edges(info).into_iter().filter_map(|edge| edge.source_id).collect(),
            Self::Down => info.derived_ids.clone(),
        }
    }

    /// Returns the artifact at the far end.
    const fn other_end(self, edge: &Edge) -> Option<ArtifactId> {
        match self {
            Self::Up => edge.source_id,
            Self::Down => Some(edge.artifact_id),
        }
    }
}

/// Returns what an artifact was made from, by its tool and as its caller stated.
fn edges(info: &ArtifactInfoResponse) -> Vec<Edge> {
    let edge =
        |source_id, source_hash, role| Edge { artifact_id: info.id, source_id, source_hash, role };
    let recorded = info.sources.iter().map(|source| {
        let hash = source.content_hash.map(|hash| hash.to_string());
        edge(source.artifact_id, hash, source.role.as_str())
    });
    let is_recorded = |id: &ArtifactId| info.sources.iter().any(|it| it.artifact_id == Some(*id));
    let stated = info.parent_id.filter(|id| !is_recorded(id));
    recorded.chain(stated.map(|id| edge(Some(id), None, PARENT))).collect()
}

async fn get(client: &Client, id: ArtifactId) -> Result<ArtifactInfoResponse, Error> {
    client.call::<ArtifactGet>(ArtifactGetRequest { id }).await
}

/// An artifact that the caller does not see is no part of the lineage.
fn seen(
    found: Result<ArtifactInfoResponse, Error>,
) -> Result<Option<ArtifactInfoResponse>, Failure> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use ringback_proto::ids::BlobHash;
    use ringback_proto::request::{SourceInfo, SourceRole};

    use super::*;

    fn art(n: u8) -> ArtifactId {
        ArtifactId::from_random([n; 16])
    }

    fn info(n: u8, sources: &[u8], derived: &[u8]) -> ArtifactInfoResponse {
        let source = |n: &u8| SourceInfo {
            role: SourceRole::Input,
            artifact_id: Some(art(*n)),
            content_hash: None,
        };
        ArtifactInfoResponse {
            id: art(n),
            content_hash: BlobHash::from_bytes([n; 32]),
            mime_type: "a/b".to_owned(),
            size: 1,
            tags: Vec::new(),
            creator: "<ada>\u{1b}[2J".to_owned(),
            created_at: 1,
            project_id: None,
            parent_id: None,
            variation_set_id: None,
            variation_index: None,
            metadata: None,
            annotations: Vec::new(),
            tool: None,
            job_id: None,
            session_id: None,
            sources: sources.iter().map(source).collect(),
            derived_ids: derived.iter().map(|n| art(*n)).collect(),
        }
    }

    fn lineage(infos: Vec<ArtifactInfoResponse>) -> Lineage {
        let known: HashMap<_, _> = infos.into_iter().map(|info| (info.id, info)).collect();
        let distances = known.keys().map(|id| (*id, 0)).collect();
        Lineage::of(art(1), known, &distances, false)
    }

    /// Rule: a circle is not followed for ever, and a name cannot control a terminal or a drawing.
    #[test]
    fn a_circle_is_shown_once_and_names_are_escaped() {
        let circle = lineage(vec![info(1, &[2], &[2]), info(2, &[1], &[1])]);
        let screen = Screen::new(false);
        let text = circle.tree(screen);
        assert_eq!(text.lines().count(), 8, "{text}");
        assert_eq!(text.matches("(shown before)").count(), 2, "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
        let drawing = circle.svg();
        assert!(drawing.contains("&lt;ada&gt;") && !drawing.contains('\u{1b}'), "{drawing}");
    }

    #[test]
    fn a_tree_shows_every_branch_with_its_role() {
        let sound = info(1, &[2, 3], &[]);
        let text =
            lineage(vec![sound, info(2, &[], &[1]), info(3, &[2], &[1])]).tree(Screen::new(false));
        let roles = text.lines().filter(|line| line.contains("─ input art_")).count();
        assert_eq!(roles, 3, "{text}");
        assert!(text.contains("├─ ") && text.contains("└─ ") && text.contains("   └─ "), "{text}");
    }
}
