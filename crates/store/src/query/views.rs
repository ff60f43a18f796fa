//! The views that a query may name, and the rows of them that a reader sees.
//!
//! Each public view selects from an inner view, whose name is random for each query. Only inner
//! views read tables, only the columns listed here, and only rows that the reader may see.

use std::fmt::Write as _;

use crate::read::page::RowVisibility;
use crate::row::owner_bytes;

/// A column of a view.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: &'static str,
    /// Its value, in the words of the tables.
    value: &'static str,
    pub(super) about: &'static str,
}

/// A view.
#[derive(Debug)]
pub(super) struct View {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// The table it reads, with its joins.
    from: &'static str,
    rows: Rows,
    pub(super) columns: &'static [Column],
    /// The columns that it reads, by table. Nothing else is ever readable.
    pub(super) reads: &'static [(&'static str, &'static [&'static str])],
}

/// The rows of a view that a reader sees.
#[derive(Debug, Clone, Copy)]
enum Rows {
    /// All: they say nothing of what others made.
    All,
    /// By the `owner`, `project` and `session` of this table.
    Of(&'static str),
    /// By the artifact whose first column has the value of the second.
    OfArtifact(&'static str, &'static str),
    /// Sessions: those of the reader's projects, its own, or its tree.
    Sessions,
}

const fn column(name: &'static str, value: &'static str, about: &'static str) -> Column {
    Column { name, value, about }
}

/// Readable by every inner view: it decides what the key of a session sees.
pub(super) const SESSION_TREE: (&str, &[&str]) = ("session_tree", &["ancestor", "session"]);

const CREATED: &str = "milliseconds since 1970";

/// Stands for the condition that the reader may see what a region plays.
const REGION_VISIBLE: &str = "{visible}";
/// Stands for the condition that the reader may see the source of an artifact.
const SOURCE_VISIBLE: &str = "{visible_source}";
/// Stands for the condition that the reader may see the identity where a connection starts.
const FROM_VISIBLE: &str = "{visible_from}";
/// Stands for the condition that the reader may see the identity where a connection ends.
const TO_VISIBLE: &str = "{visible_to}";
/// Stands for the condition that the reader may see the artifact that was heard.
const HEARD_VISIBLE: &str = "{visible_artifact}";

/// The views, `help` excepted.
pub(super) const VIEWS: &[View] = &[
    View {
        name: "artifacts",
        about: "content with its creator and where it came from",
        from: "artifact",
        rows: Rows::Of("artifact"),
        columns: &[
            column("id", "artifact.id_text", "art_… and 32 hex digits"),
            column(
                "content_hash",
                "lower(hex(artifact.content_hash))",
                "hash of the content, 64 hex digits",
            ),
            column("mime_type", "artifact.mime_type", "type of the content, such as audio/midi"),
            column("size", "artifact.size", "bytes of the content"),
            column("creator", "artifact.creator", "who made it, as its caller said"),
            column("tool", "artifact.tool", "tool that made it"),
            column(
                "job_id",
                "artifact.job_text",
                "job that made it, also after the job has expired",
            ),
            column("session_id", "artifact.session_text", "agent session that made it"),
            column(
                "project_id",
                "nullif('proj_' || lower(hex(artifact.project)), 'proj_')",
                "project it belongs to",
            ),
            column(
                "parent_id",
                "artifact.parent_text",
                "artifact it was derived from, as its caller said; see also sources",
            ),
            column(
                "variation_set_id",
                "nullif('vset_' || lower(hex(artifact.variation_set)), 'vset_')",
                "group of variations",
            ),
            column("variation_index", "artifact.variation_index", "place in that group, from 0"),
            column(
                "metadata",
                "as_json(artifact.metadata)",
                "JSON; NULL if it has none, or more than 64 KiB of it",
            ),
            column("created_at", "artifact.created_at", CREATED),
        ],
        reads: &[(
            "artifact",
            &[
                "id_text",
                "content_hash",
                "mime_type",
                "size",
                "creator",
                "tool",
                "job_text",
                "session_text",
                "session",
                "project",
                "owner",
                "parent_text",
                "variation_set",
                "variation_index",
                "metadata",
                "created_at",
            ],
        )],
    },
    View {
        name: "artifact_tags",
        about: "tags of artifacts, one row each",
        from: "artifact_tag JOIN artifact ON artifact.n = artifact_tag.n",
        rows: Rows::Of("artifact"),
        columns: &[
            column("artifact_id", "artifact.id_text", "the artifact"),
            column("tag", "artifact_tag.tag", "the tag, such as type:midi"),
            column("created_at", "artifact.created_at", "of the artifact, milliseconds since 1970"),
        ],
        reads: &[
            ("artifact", &["n", "id_text", "owner", "project", "session", "created_at"]),
            ("artifact_tag", &["n", "tag"]),
        ],
    },
    View {
        name: "sources",
        about: "what each artifact was made from, as its tool recorded it",
        from: "artifact_source LEFT JOIN artifact AS src ON src.id = artifact_source.source AND {visible_source}",
        rows: Rows::OfArtifact("n", "artifact_source.n"),
        columns: &[
            column("artifact_id", "artifact_source.artifact_text", "the artifact that was made"),
            column(
                "source_id",
                "src.id_text",
                "artifact it was made from; NULL if its tool was given content, or if you may not see it",
            ),
            column(
                "source_hash",
                "CASE WHEN artifact_source.is_hidden = 0 OR src.n IS NOT NULL THEN lower(hex(artifact_source.source_hash)) END",
                "hash of the content it was made from; NULL if its maker could not see it and you cannot",
            ),
            column("role", "artifact_source.role", "what the tool used it for"),
            column(
                "created_at",
                "(SELECT created_at FROM artifact WHERE n = artifact_source.n)",
                "of the artifact that was made, milliseconds since 1970",
            ),
        ],
        reads: &[
            (
                "artifact_source",
                &["n", "artifact_text", "source", "source_hash", "role", "is_hidden"],
            ),
            ("artifact", &["n", "id", "id_text", "owner", "project", "session", "created_at"]),
        ],
    },
    View {
        name: "annotations",
        about: "remarks about artifacts",
        from: "annotation",
        rows: Rows::OfArtifact("id", "annotation.artifact"),
        columns: &[
            column("id", "annotation.id_text", "ann_… and 32 hex digits"),
            column("artifact_id", "annotation.artifact_text", "the artifact"),
            column("message", "annotation.message", "the text"),
            column("source", "annotation.source", "who said it"),
            column("vibe", "annotation.vibe", "mood in a few words"),
            column("created_at", "annotation.created_at", CREATED),
        ],
        reads: &[
            (
                "annotation",
                &[
                    "id_text",
                    "artifact",
                    "artifact_text",
                    "message",
                    "source",
                    "vibe",
                    "created_at",
                ],
            ),
            ("artifact", &["id", "owner", "project", "session"]),
        ],
    },
    View {
        name: "jobs",
        about: "work that was tracked, until it expires",
        from: "job",
        rows: Rows::Of("job"),
        columns: &[
            column("id", "job.id_text", "job_… and 32 hex digits"),
            column("tool", "job.tool", "tool that runs"),
            column(
                "state",
                "CASE job.state WHEN 0 THEN 'pending' WHEN 1 THEN 'running' WHEN 2 THEN 'complete' WHEN 3 THEN 'failed' WHEN 4 THEN 'cancelled' END",
                "pending, running, complete, failed or cancelled",
            ),
            column(
                "error_code",
                "CASE WHEN length(job.error) <= 65536 THEN error_code(job.error) END",
                "code of the error, if it failed",
            ),
            column("started_at", "job.started_at", "milliseconds since 1970, NULL before"),
            column("completed_at", "job.completed_at", "milliseconds since 1970, NULL before"),
            column(
                "project_id",
                "nullif('proj_' || lower(hex(job.project)), 'proj_')",
                "project it belongs to",
            ),
            column("created_at", "job.created_at", CREATED),
        ],
        reads: &[(
            "job",
            &[
                "id_text",
                "tool",
                "state",
                "error",
                "started_at",
                "completed_at",
                "session",
                "project",
                "owner",
                "created_at",
            ],
        )],
    },
    View {
        name: "sessions",
        about: "agent sessions",
        from: "session",
        rows: Rows::Sessions,
        columns: &[
            column("id", "session.id_text", "gogol_… and 32 hex digits"),
            column("project_id", "'proj_' || lower(hex(session.project))", "its project"),
            column("agent", "session.agent", "its agent"),
            column(
                "status",
                "CASE session.state WHEN 0 THEN 'starting' WHEN 1 THEN 'running' WHEN 2 THEN 'idle' WHEN 3 THEN 'ended' WHEN 4 THEN 'failed' WHEN 5 THEN 'interrupted' END",
                "starting, running, idle, ended, failed or interrupted",
            ),
            column("ended_at", "session.ended_at", "milliseconds since 1970, NULL before"),
            column("created_at", "session.created_at", CREATED),
        ],
        reads: &[(
            "session",
            &["id", "id_text", "project", "agent", "state", "ended_at", "created_at", "owner"],
        )],
    },
    View {
        name: "identities",
        about: "devices, ports and whatever else was given a name with graph_bind",
        from: "identity",
        rows: Rows::Of("identity"),
        columns: &[
            column("id", "identity.id", "its id, unique for its owner"),
            column("name", "identity.name", "its name"),
            column("created_at", "identity.created_at", CREATED),
        ],
        reads: &[("identity", &["n", "id", "name", "owner", "project", "session", "created_at"])],
    },
    View {
        name: "hints",
        about: "what identities are recognised by",
        from: "identity_hint JOIN identity ON identity.n = identity_hint.identity",
        rows: Rows::Of("identity"),
        columns: &[
            column("identity_id", "identity.id", "the identity"),
            column("kind", "identity_hint.kind", "kind of hint, such as usb_serial"),
            column("value", "identity_hint.value", "its value"),
            column("confidence", "identity_hint.confidence", "0 to 1"),
            column("created_at", "identity_hint.created_at", CREATED),
        ],
        reads: &[
            ("identity_hint", &["identity", "kind", "value", "confidence", "created_at"]),
            ("identity", &["n", "id", "owner", "project", "session"]),
        ],
    },
    View {
        name: "identity_tags",
        about: "tags of identities, one row each",
        from: "identity_tag JOIN identity ON identity.n = identity_tag.identity",
        rows: Rows::Of("identity"),
        columns: &[
            column("identity_id", "identity.id", "the identity"),
            column("namespace", "identity_tag.namespace", "namespace of the tag"),
            column("value", "identity_tag.value", "value of the tag"),
            column("created_at", "identity_tag.created_at", CREATED),
        ],
        reads: &[
            ("identity_tag", &["identity", "namespace", "value", "created_at"]),
            ("identity", &["n", "id", "owner", "project", "session"]),
        ],
    },
    View {
        name: "connections",
        about: "connections between ports of identities that you see",
        from: "identity_connection JOIN identity AS from_end ON from_end.n = identity_connection.from_identity AND {visible_from} JOIN identity AS to_end ON to_end.n = identity_connection.to_identity AND {visible_to}",
        rows: Rows::Of("identity_connection"),
        columns: &[
            column("from_identity", "from_end.id", "identity it leads from"),
            column("from_port", "identity_connection.from_port", "port it leads from"),
            column("to_identity", "to_end.id", "identity it leads to"),
            column("to_port", "identity_connection.to_port", "port it leads to"),
            column(
                "transport",
                "nullif(identity_connection.transport, '')",
                "how it is made, such as usb or din",
            ),
            column("created_at", "identity_connection.created_at", CREATED),
        ],
        reads: &[
            (
                "identity_connection",
                &[
                    "from_identity",
                    "from_port",
                    "to_identity",
                    "to_port",
                    "transport",
                    "created_at",
                    "owner",
                    "project",
                    "session",
                ],
            ),
            ("identity", &["n", "id", "owner", "project", "session"]),
        ],
    },
    View {
        name: "regions",
        about: "regions of the timeline: their place is shown to everyone, their content to those who may see it",
        from: "garden_region",
        rows: Rows::All,
        columns: &[
            column("id", "'reg_' || lower(hex(garden_region.id))", "reg_… and 32 hex digits"),
            column("position", "garden_region.position / 960.0", "start, in beats"),
            column("duration", "garden_region.duration / 960.0", "length, in beats"),
            column("repeat", "garden_region.repeat", "how often it is played"),
            column(
                "state",
                "garden_region.state",
                "pending, awaiting_approval, ready, failed or rejected",
            ),
            column(
                "artifact_id",
                "CASE WHEN {visible} THEN nullif('art_' || lower(hex(garden_region.artifact)), 'art_') END",
                "artifact it plays",
            ),
            column(
                "content_hash",
                "CASE WHEN {visible} THEN nullif(lower(hex(garden_region.content_hash)), '') END",
                "hash of what it plays",
            ),
            column(
                "mime_type",
                "CASE WHEN {visible} THEN garden_region.mime_type END",
                "type of what it plays",
            ),
            column(
                "job_id",
                "CASE WHEN {visible} THEN nullif('job_' || lower(hex(garden_region.job)), 'job_') END",
                "job that makes its content",
            ),
            column("name", "CASE WHEN {visible} THEN garden_region.name END", "its name"),
            column(
                "gain_db",
                "CASE WHEN {visible} THEN garden_region.gain_db END",
                "gain in decibels",
            ),
            column("pan", "CASE WHEN {visible} THEN garden_region.pan END", "-1 left to 1 right"),
            column("created_at", "garden_region.created_at", CREATED),
        ],
        reads: &[(
            "garden_region",
            &[
                "id",
                "position",
                "duration",
                "repeat",
                "state",
                "artifact",
                "content_hash",
                "mime_type",
                "job",
                "name",
                "gain_db",
                "pan",
                "created_at",
                "owner",
                "project",
            ],
        )],
    },
    View {
        name: "tempo",
        about: "tempo and metre of the timeline",
        from: "garden_tempo",
        rows: Rows::All,
        columns: &[
            column("position", "garden_tempo.at / 960.0", "where it starts, in beats"),
            column("bpm", "garden_tempo.bpm", "quarter notes per minute"),
            column("beats_per_bar", "garden_tempo.beats_per_bar", "upper number of the metre"),
            column("beat_unit", "garden_tempo.beat_unit", "lower number of the metre"),
        ],
        reads: &[("garden_tempo", &["at", "bpm", "beats_per_bar", "beat_unit"])],
    },
    View {
        name: "heard",
        about: "when regions were heard",
        from: "garden_heard",
        rows: Rows::All,
        columns: &[
            column(
                "region_id",
                "'reg_' || lower(hex(garden_heard.region))",
                "the region, perhaps deleted since",
            ),
            column(
                "artifact_id",
                "CASE WHEN {visible_artifact} THEN nullif('art_' || lower(hex(garden_heard.artifact)), 'art_') END",
                "artifact that was heard, if you may see it",
            ),
            column(
                "start_position",
                "garden_heard.from_tick / 960.0",
                "start of the part that was heard, in beats",
            ),
            column("end_position", "garden_heard.to_tick / 960.0", "its end, in beats"),
            column("created_at", "garden_heard.at", "when it was heard, milliseconds since 1970"),
        ],
        reads: &[
            ("garden_heard", &["region", "artifact", "from_tick", "to_tick", "at"]),
            ("artifact", &["id", "owner", "project", "session"]),
        ],
    },
];

impl View {
    /// Returns the tables of which a reader may count all rows without a look at them. SQLite then
    /// names no view as the one that reads.
    pub(super) fn counted_tables(&self, visible: &RowVisibility) -> Vec<&'static str> {
        let n_tables = match (visible, self.rows) {
            (RowVisibility::All, _) => self.reads.len(),
            (RowVisibility::Owner { .. } | RowVisibility::Tree { .. }, Rows::All) => 1,
            (
                RowVisibility::Owner { .. } | RowVisibility::Tree { .. },
                Rows::Of(_) | Rows::OfArtifact(..) | Rows::Sessions,
            ) => 0,
        };
        self.reads.iter().take(n_tables).map(|(table, _)| *table).collect()
    }
}

/// Whether the planner may look through the inner views.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fence {
    /// It may: a search by id uses the index. SQLite then evaluates conditions of the query on rows
    /// that the reader may not see, before it drops them. So nothing in the query may fail.
    Open,
    /// It may not: the query gets rows that the reader may see, and no others. This reads all of
    /// them.
    Closed,
}

/// What `help` says, one row for each view and column: view, column, about.
pub(super) fn help() -> impl Iterator<Item = (&'static str, Option<&'static str>, &'static str)> {
    let of_help = [
        ("help", None, "this list"),
        ("help", Some("view"), "a view"),
        ("help", Some("column"), "a column of it; NULL for the view itself"),
        ("help", Some("about"), "what it holds"),
    ];
    let of_views = VIEWS.iter().flat_map(|view| {
        let columns = view.columns.iter();
        std::iter::once((view.name, None, view.about))
            .chain(columns.map(|column| (view.name, Some(column.name), column.about)))
    });
    of_views.chain(of_help)
}

/// Returns the name of an inner view.
fn inner_name(prefix: &str, view: &View) -> String {
    format!("{prefix}_{}", view.name)
}

/// Returns the statements that create views for a reader. `prefix` is unknown to the reader.
pub(super) fn create(
    used: &[&View],
    prefix: &str,
    visible: &RowVisibility,
    fence: Fence,
) -> String {
    let mut sql = String::from("BEGIN;");
    for view in used {
        let inner = inner_name(prefix, view);
        let columns: Vec<String> = view
            .columns
            .iter()
            .map(|column| format!("{} AS {}", with_conditions(column.value, visible), column.name))
            .collect();
        let rows =
            rows(view.rows, visible).map_or_else(String::new, |rows| format!("WHERE {rows}"));
        let fence = match fence {
            Fence::Open => "",
            // SQLite neither merges a query with an offset into another nor moves conditions into it.
            Fence::Closed => "LIMIT -1 OFFSET 0",
        };
        let names: Vec<&str> = view.columns.iter().map(|column| column.name).collect();
        let created = write!(
            sql,
            "CREATE TEMP VIEW {inner} AS SELECT {} FROM {} {rows} {fence};\
             CREATE TEMP VIEW {} AS SELECT {} FROM {inner};",
            columns.join(", "),
            with_conditions(view.from, visible),
            view.name,
            names.join(", "),
        );
        created.expect("a string takes all text");
    }
    sql.push_str("COMMIT;");
    sql
}

/// Returns the statements that drop views again.
pub(super) fn drop_again(used: &[&View], prefix: &str) -> String {
    let mut sql = String::from("BEGIN;");
    for view in used {
        let inner = inner_name(prefix, view);
        let dropped = write!(sql, "DROP VIEW temp.{}; DROP VIEW temp.{inner};", view.name);
        dropped.expect("a string takes all text");
    }
    sql.push_str("COMMIT;");
    sql
}

/// Fills in what a reader may see.
fn with_conditions(sql: &str, visible: &RowVisibility) -> String {
    let mut sql = sql.to_owned();
    let conditions = [
        (REGION_VISIBLE, region_seen(visible)),
        (SOURCE_VISIBLE, seen("src", visible)),
        (FROM_VISIBLE, seen("from_end", visible)),
        (TO_VISIBLE, seen("to_end", visible)),
        (HEARD_VISIBLE, of_artifact("id", "garden_heard.artifact", visible)),
    ];
    for (name, condition) in conditions {
        sql = sql.replace(name, condition.as_deref().unwrap_or("1"));
    }
    sql
}

fn rows(rows: Rows, visible: &RowVisibility) -> Option<String> {
    match rows {
        Rows::All => None,
        Rows::Of(table) => seen(table, visible),
        Rows::OfArtifact(key, column) => of_artifact(key, column, visible),
        Rows::Sessions => seen_by("session", "id", visible),
    }
}

fn of_artifact(key: &str, column: &str, visible: &RowVisibility) -> Option<String> {
    let seen = seen("artifact", visible)?;
    Some(format!("EXISTS (SELECT 1 FROM artifact WHERE artifact.{key} = {column} AND {seen})"))
}

/// Returns the condition that a reader sees a row of a table with an owner; `None` if it sees all.
fn seen(table: &str, visible: &RowVisibility) -> Option<String> {
    seen_by(table, "session", visible)
}

/// Like [`seen`], where another column has the session of a row.
fn seen_by(table: &str, session_column: &str, visible: &RowVisibility) -> Option<String> {
    match visible {
        RowVisibility::All => None,
        RowVisibility::Owner { owner, projects } => {
            let own = format!("{table}.owner = {}", blob(owner_bytes(owner)));
            if projects.is_empty() {
                return Some(own);
            }
            let projects: Vec<String> =
                projects.iter().map(|project| blob(project.as_bytes())).collect();
            Some(format!("({own} OR {table}.project IN ({}))", projects.join(", ")))
        }
        RowVisibility::Tree { owner, session } => Some(format!(
            "({table}.owner = {} OR {table}.{session_column} IN \
             (SELECT session FROM session_tree WHERE ancestor = {}))",
            blob(owner_bytes(owner)),
            blob(session.as_bytes()),
        )),
    }
}

/// Returns the condition that a reader sees what a region plays. A region knows no session.
fn region_seen(visible: &RowVisibility) -> Option<String> {
    match visible {
        RowVisibility::All | RowVisibility::Owner { .. } => seen("garden_region", visible),
        RowVisibility::Tree { owner, .. } => {
            Some(format!("garden_region.owner = {}", blob(owner_bytes(owner))))
        }
    }
}

/// Writes bytes as SQL: in hex digits, so that nothing in them can be read as SQL.
fn blob(bytes: &[u8]) -> String {
    let mut sql = String::from("x'");
    for byte in bytes {
        write!(sql, "{byte:02x}").expect("a string takes all text");
    }
    sql.push('\'');
    sql
}
