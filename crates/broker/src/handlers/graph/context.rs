//! `graph_context`: a short text about what was made, what failed and what waits.

use ringback_proto::error::ToolError;
use ringback_proto::record::{
    AnnotationRecord, ArtifactRecord, ConnectionRecord, IdentityRecord, JobState, UnixMs,
};
use ringback_proto::request::{GraphContextRequest, GraphContextResponse};
use ringback_proto::value::Value;
use ringback_proto::{Error, Result};
use ringback_store::{
    ArtifactFilter, IdentityFilter, JobSummary, ReadError, RowVisibility, Store, VisibleSource,
};

use super::LABEL_CHARS_MAX;
use crate::handler::Context;
use crate::handlers::{check_text, list_limit};

/// The most bytes of a context: a model reads it whole.
const CONTEXT_BYTES_MAX: usize = 8 * 1024;
/// The default number of artifacts.
const ARTIFACTS: u32 = 20;
/// The most bytes about jobs and identities, so that artifacts have room.
const REST_BYTES_MAX: usize = 3 * 1024;
/// The jobs of each state and the identities that are described.
const JOBS_MAX: usize = 10;
const IDENTITIES_MAX: usize = 10;
/// The newest annotations of an artifact, and the connections of an identity.
const ANNOTATIONS_MAX: usize = 3;
const CONNECTIONS_MAX: usize = 3;
/// The sources of an artifact that are named.
const SOURCES_MAX: usize = 8;
/// The most characters of a text that someone wrote.
const TEXT_CHARS_MAX: usize = 240;
const MS_PER_MINUTE: u64 = 60_000;

/// An artifact, with what a context says about it.
struct Made {
    artifact: ArtifactRecord,
    sources: Vec<VisibleSource>,
    annotations: Vec<AnnotationRecord>,
}

/// The contents of a context.
struct Found {
    made: Vec<Made>,
    failed: Vec<JobSummary>,
    waiting: Vec<JobSummary>,
    identities: Vec<(IdentityRecord, Vec<ConnectionRecord>)>,
}

/// What to look for.
struct Wanted {
    visible: RowVisibility,
    request: GraphContextRequest,
    limit: usize,
    since: UnixMs,
}

pub(super) async fn describe(
    ctx: &Context,
    request: GraphContextRequest,
) -> Result<GraphContextResponse> {
    let limit = list_limit(Some(request.limit.unwrap_or(ARTIFACTS)))?;
    let labels = [
        ("tag", &request.tag),
        ("creator", &request.creator),
        ("vibe_search", &request.vibe_search),
    ];
    for (field, label) in labels {
        label.as_ref().map_or(Ok(()), |label| check_text(field, label, LABEL_CHARS_MAX))?;
    }
    let has_no_letter = |word: &str| !word.chars().any(char::is_alphanumeric);
    if request.vibe_search.as_deref().is_some_and(|text| {
        text.split_whitespace().next().is_none() || text.split_whitespace().any(has_no_letter)
    }) {
        let message = "`vibe_search` needs words of letters or digits";
        return Err(Error::invalid_field("vibe_search", message));
    }
    let now = ctx.now().unix;
    let since = match request.within_minutes {
        Some(0) => {
            let message = "`within_minutes` must be at least 1";
            return Err(Error::invalid_field("within_minutes", message));
        }
        Some(minutes) => now.saturating_sub(u64::from(minutes) * MS_PER_MINUTE),
        None => 0,
    };
    let with_metadata = request.include_metadata.unwrap_or(false);
    let wanted = Wanted { visible: ctx.visible(), request, limit, since };
    let found = ctx.read(move |store| wanted.find(store)).await?;
    Ok(write(&found, now, with_metadata))
}

impl Wanted {
    fn find(&self, store: &Store) -> Result<Found, ReadError> {
        let mut made = Vec::new();
        for artifact in self.artifacts(store)? {
            made.push(self.made(store, artifact)?);
        }
        let failed = self.jobs(store, &[JobState::Failed])?;
        let waiting = self.jobs(store, &[JobState::Pending, JobState::Running])?;
        let graph = store.graph();
        let every = IdentityFilter::default();
        let mut identities = Vec::new();
        for identity in graph.identities(&self.visible, &every, None, IDENTITIES_MAX)?.items {
            if identity.created_at >= self.since {
                let key = &identity.key;
                let to = graph.connections_from(key, &self.visible, CONNECTIONS_MAX)?;
                identities.push((identity, to));
            }
        }
        Ok(Found { made, failed, waiting, identities })
    }

    fn artifacts(&self, store: &Store) -> Result<Vec<ArtifactRecord>, ReadError> {
        let GraphContextRequest { tag, creator, vibe_search, .. } = &self.request;
        let filter = ArtifactFilter { tag: tag.as_deref(), creator: creator.as_deref() };
        match vibe_search {
            Some(text) => {
                let graph = store.graph();
                graph.artifacts_like(&self.visible, filter, text, self.since, self.limit)
            }
            None => {
                let mut found = store.artifacts(&self.visible, filter, None, self.limit)?.items;
                found.retain(|artifact| artifact.created_at >= self.since);
                Ok(found)
            }
        }
    }

    fn made(&self, store: &Store, artifact: ArtifactRecord) -> Result<Made, ReadError> {
        let sources = store.graph().sources(artifact.id, &self.visible, SOURCES_MAX + 1)?;
        let annotations = if self.request.include_annotations.unwrap_or(true) {
            store.graph().newest_annotations(artifact.id, ANNOTATIONS_MAX)?
        } else {
            Vec::new()
        };
        Ok(Made { artifact, sources, annotations })
    }

    fn jobs(&self, store: &Store, states: &[JobState]) -> Result<Vec<JobSummary>, ReadError> {
        let mut jobs = Vec::new();
        for state in states {
            jobs.extend(store.jobs(&self.visible, Some(*state), None, JOBS_MAX)?.items);
        }
        jobs.retain(|job| job.completed_at.unwrap_or(job.created_at) >= self.since);
        jobs.sort_by_key(|job| std::cmp::Reverse(job.created_at));
        jobs.truncate(JOBS_MAX);
        Ok(jobs)
    }
}

/// Writes what fits: first jobs and identities in their own share, then artifacts in the rest.
fn write(found: &Found, now: UnixMs, with_metadata: bool) -> GraphContextResponse {
    let mut rest = Text::new(REST_BYTES_MAX);
    rest.section("failed", found.failed.iter().map(|job| failed(job, now)));
    rest.section("waiting", found.waiting.iter().map(|job| waiting(job, now)));
    let identities = found.identities.iter().map(|(identity, to)| identified(identity, to));
    let identity_count = rest.section("identities", identities);
    let mut text = Text::new(CONTEXT_BYTES_MAX - rest.text.len());
    let made = found.made.iter().map(|made| made.told(now, with_metadata));
    let artifact_count = text.section("made, newest first", made);
    if artifact_count == 0 && found.made.is_empty() {
        text.add("nothing was made\n");
    }
    text.text.push_str(&rest.text);
    GraphContextResponse { context: text.text, artifact_count, identity_count }
}

/// Text that never exceeds a size.
struct Text {
    text: String,
    bytes_max: usize,
}

impl Text {
    const fn new(bytes_max: usize) -> Self {
        Self { text: String::new(), bytes_max }
    }

    /// Adds a text if it fits.
    fn add(&mut self, text: &str) -> bool {
        let fits = self.text.len() + text.len() <= self.bytes_max;
        if fits {
            self.text.push_str(text);
        }
        fits
    }

    /// Adds a heading and those first items that fit; returns how many do.
    fn section(&mut self, title: &str, items: impl Iterator<Item = String>) -> u64 {
        let mut n_added = 0;
        for item in items {
            let text = if n_added == 0 { format!("{title}:\n{item}") } else { item };
            if !self.add(&text) {
                break;
            }
            n_added += 1;
        }
        n_added
    }
}

impl Made {
    fn told(&self, now: UnixMs, with_metadata: bool) -> String {
        let Self { artifact, sources, annotations } = self;
        let (id, mime, size) = (artifact.id, plain(&artifact.mime_type), artifact.size);
        let (creator, age) = (plain(&artifact.creator), age(now, artifact.created_at));
        let mut text = format!("- {id} {age}: {mime}, {size} bytes, by {creator}");
        if let Some(tool) = &artifact.tool {
            text += &format!(" with {}", plain(tool));
        }
        if let Some(session) = artifact.session {
            text += &format!(" in {session}");
        }
        text += &format!("\n  content {}\n", artifact.content_hash);
        if !artifact.tags.is_empty() {
            let tags: Vec<_> = artifact.tags.iter().map(|tag| plain(tag)).collect();
            text += &format!("  tags: {}\n", shortened(&tags.join(", ")));
        }
        if !sources.is_empty() {
            let named: Vec<_> = sources.iter().take(SOURCES_MAX).map(source).collect();
            let more = if sources.len() > SOURCES_MAX { ", …" } else { "" };
            text += &format!("  from: {}{more}\n", named.join(", "));
        }
        if let Some(parent) = artifact.parent_id {
            text += &format!("  parent: {parent}\n");
        }
        for annotation in annotations {
            let vibe = annotation.vibe.as_deref().map(|vibe| format!(" [{}]", plain(vibe)));
            let (by, vibe) = (plain(&annotation.source), vibe.unwrap_or_default());
            text += &format!("  remark by {by}{vibe}: {}\n", plain(&annotation.message));
        }
        if with_metadata && let Some(metadata) = &artifact.metadata {
            let value: Value = rmp_serde::from_slice(metadata).unwrap_or_default();
            text += &format!("  metadata: {}\n", plain(&flat(&value)));
        }
        text
    }
}

fn source(source: &VisibleSource) -> String {
    let role = source.role.as_str();
    match (source.artifact, source.content_hash) {
        (Some(artifact), _) => format!("{role} {artifact}"),
        (None, Some(hash)) => format!("{role} {hash}"),
        (None, None) => format!("{role} of another owner"),
    }
}

fn failed(job: &JobSummary, now: UnixMs) -> String {
    let (id, tool) = (job.id, plain(&job.tool));
    let at = age(now, job.completed_at.unwrap_or(job.created_at));
    let error = job.error.as_deref().and_then(ToolError::decode);
    let why = error.map_or_else(String::new, |error| format!(": {}", plain(&error.message)));
    format!("- {id} {at}: {tool}{why}\n")
}

fn waiting(job: &JobSummary, now: UnixMs) -> String {
    let (id, tool, state) = (job.id, plain(&job.tool), job.state.as_str());
    format!("- {id} {}: {tool} is {state}\n", age(now, job.created_at))
}

fn identified(identity: &IdentityRecord, to: &[ConnectionRecord]) -> String {
    let mut text = format!("- {} \"{}\"", plain(&identity.key.id), plain(&identity.name));
    let tags = identity.tags.iter().map(|(space, value)| format!("{space}:{value}"));
    let tags: Vec<_> = tags.collect();
    if !tags.is_empty() {
        text += &format!(", tags {}", plain(&tags.join(", ")));
    }
    let hints = identity.hints.iter().map(|hint| format!("{}={}", hint.kind.as_str(), hint.value));
    let hints: Vec<_> = hints.collect();
    if !hints.is_empty() {
        text += &format!(", hints {}", plain(&hints.join(", ")));
    }
    text.push('\n');
    for made in to {
        let (from, to) = (plain(&made.from_port), plain(&made.to_port));
        let (to_id, by) = (plain(&made.to.id), made.transport.as_deref().map(plain));
        let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
        text += &format!("  {from} -> {to_id} {to}{by}\n");
    }
    text
}

/// Returns how long ago something happened.
fn age(now: UnixMs, at: UnixMs) -> String {
    const MINUTES_PER_HOUR: u64 = 60;
    const MINUTES_PER_DAY: u64 = 24 * MINUTES_PER_HOUR;
    match now.saturating_sub(at) / MS_PER_MINUTE {
        0 => "just now".to_owned(),
        minutes @ 1..MINUTES_PER_HOUR => format!("{minutes} min ago"),
        minutes @ MINUTES_PER_HOUR..MINUTES_PER_DAY => {
            format!("{} h ago", minutes / MINUTES_PER_HOUR)
        }
        minutes => format!("{} days ago", minutes / MINUTES_PER_DAY),
    }
}

/// Makes one short line of a text that someone wrote: it can neither pass for another line of the
/// context nor control a terminal.
fn plain(text: &str) -> String {
    let mut line = String::new();
    for letter in shortened(text).chars() {
        if letter.is_control() || is_invisible(letter) {
            line.extend(letter.escape_unicode());
        } else {
            line.push(letter);
        }
    }
    line
}

/// Returns whether a character separates lines or changes the direction of others.
const fn is_invisible(letter: char) -> bool {
    matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(TEXT_CHARS_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// Writes a value on one line.
fn flat(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::UInt(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Text(value) => value.clone(),
        Value::Bytes(value) => format!("{} bytes", value.0.len()),
        Value::List(values) => {
            let values: Vec<_> = values.iter().map(flat).collect();
            format!("[{}]", values.join(", "))
        }
        Value::Map(entries) => {
            let entry = |(name, value): &(String, Value)| format!("{name}: {}", flat(value));
            let entries: Vec<_> = entries.iter().map(entry).collect();
            format!("{{{}}}", entries.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: a text of another cannot pass for a line of the context, and is short.
    #[test]
    fn a_text_becomes_one_short_line() {
        assert_eq!(plain("a\nb\r\u{1b}[2J\u{202e}"), "a\\u{a}b\\u{d}\\u{1b}[2J\\u{202e}");
        assert_eq!(plain("zażółć 音楽"), "zażółć 音楽");
        let long = plain(&"ż".repeat(TEXT_CHARS_MAX + 1));
        assert_eq!(long.chars().count(), TEXT_CHARS_MAX + 1);
    }

    #[test]
    fn ages_are_counted_in_minutes_hours_and_days() {
        let minute = MS_PER_MINUTE;
        for (elapsed, told) in [
            (0, "just now"),
            (minute, "1 min ago"),
            (90 * minute, "1 h ago"),
            (50 * 60 * minute, "2 days ago"),
        ] {
            assert_eq!(age(1 << 50, (1 << 50) - elapsed), told);
        }
    }

    #[test]
    fn a_section_stops_where_it_would_be_too_long() {
        let mut text = Text::new(12);
        let items = ["1234\n", "56\n", "too long for it\n", "7\n"].map(str::to_owned);
        assert_eq!(text.section("t", items.into_iter()), 2);
        assert_eq!(text.text, "t:\n1234\n56\n");
    }
}
