//! Turns rows into records. Every statement that only reads is below here.

mod artifacts;
mod garden;
pub(crate) mod graph;
mod identities;
mod jobs;
pub(crate) mod lists;
pub(crate) mod page;
mod projects;
mod sessions;
mod tokens;
mod tree;
pub(crate) mod words;

pub use artifacts::ArtifactFilter;
pub(crate) use artifacts::artifact;
pub use garden::{StoredTimeline, TimelineSize};
pub use graph::{Graph, VisibleSource};
pub use identities::{IdentityFilter, NamedIdentity};
pub use jobs::{JobCounts, JobSummary};
pub use sessions::SessionFilter;

#[cfg(test)]
mod tests {
    use camino::Utf8Path;

    use super::{artifacts, graph, identities, jobs, page, projects, sessions};
    use crate::schema;

    /// Rule: a page costs the same however many rows there are.
    #[test]
    fn pages_and_permissions_search_an_index_and_sort_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(dir.path()).unwrap().join("test.db");
        let connection = schema::open_writer(&path).unwrap();
        for sql in [
            jobs::PAGE_OF_ALL,
            jobs::PAGE_OF_STATE,
            jobs::PAGE_OF_OWNER,
            jobs::PAGE_OF_PROJECT,
            jobs::PAGE_OF_SESSION,
            page::IN_TREE,
            graph::NEWEST_ANNOTATIONS,
            artifacts::PAGE,
            artifacts::OF_OWNER,
            artifacts::OF_PROJECT,
            artifacts::OF_TREE,
            graph::NEWEST,
            graph::NEWEST_OF_OWNER,
            graph::NEWEST_OF_PROJECT,
            graph::NEWEST_OF_TREE,
            graph::SOURCES,
            graph::DERIVED,
            graph::CHILDREN,
            identities::OWN,
            identities::NAMED,
            identities::OF_ALL,
            identities::OF_OWNER,
            identities::OF_PROJECT,
            identities::OF_SESSION,
            identities::WITH_HINT,
            identities::TAGGED,
            identities::CONNECTED,
            identities::CONNECTION,
            projects::PAGE_OF_ALL,
            projects::PAGE_OF_OWNER,
            projects::PAGE_OF_ONE,
            sessions::PAGE_OF_ALL,
            sessions::PAGE_OF_OWNER,
            sessions::PAGE_OF_PROJECT,
            sessions::PAGE_OF_OWNER_IN_PROJECT,
        ] {
            let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let nulls = vec![rusqlite::types::Null; explain.parameter_count()];
            let steps: Vec<String> = explain
                .query_map(rusqlite::params_from_iter(nulls), |row| row.get("detail"))
                .unwrap()
                .map(Result::unwrap)
                .collect();
            assert!(steps.iter().any(|step| step.starts_with("SEARCH")), "{sql}: {steps:?}");
            let is_slow = |step: &String| {
                (step.starts_with("SCAN") && !step.contains("CONSTANT ROW"))
                    || step.contains("TEMP B-TREE")
            };
            assert!(!steps.iter().any(is_slow), "{sql}: {steps:?}");
        }
    }
}
