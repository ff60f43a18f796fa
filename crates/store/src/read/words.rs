//! The words of the full-text tables: the keys that keep a search within what its reader sees, and
//! the query of a text.

use ringback_proto::ids::{ProjectId, SessionId};
use ringback_proto::principal::PrincipalId;

use super::ArtifactFilter;
use super::page::RowVisibility;
use crate::row::owner_bytes;

/// The key of every artifact.
pub(crate) const EVERYBODY: &str = "e";

pub(crate) fn of_owner(owner: &PrincipalId) -> String {
    key('o', owner_bytes(owner))
}

pub(crate) fn of_project(project: &ProjectId) -> String {
    key('p', project.as_bytes())
}

pub(crate) fn of_session(session: &SessionId) -> String {
    key('s', session.as_bytes())
}

pub(crate) fn of_tag(tag: &str) -> String {
    key('t', tag.as_bytes())
}

pub(crate) fn of_creator(creator: &str) -> String {
    key('c', creator.as_bytes())
}

/// In hex, so that the tokenizer neither splits nor changes it.
fn key(kind: char, bytes: &[u8]) -> String {
    let mut key = String::with_capacity(1 + bytes.len() * 2);
    key.push(kind);
    for byte in bytes {
        key += &format!("{byte:02x}");
    }
    key
}

/// Returns the query for every word of a text, within what a reader sees. Each word is quoted, so
/// that nothing in it is an operator.
pub(crate) fn query(visible: &RowVisibility, filter: ArtifactFilter<'_>, text: &str) -> String {
    let readers = match visible {
        RowVisibility::All => vec![EVERYBODY.to_owned()],
        RowVisibility::Owner { owner, projects } => {
            let own = std::iter::once(of_owner(owner));
            own.chain(projects.iter().map(of_project)).collect()
        }
        RowVisibility::Tree { owner, session } => vec![of_owner(owner), of_session(session)],
    };
    let mut query = format!("keys : ({})", readers.join(" OR "));
    for key in [filter.tag.map(of_tag), filter.creator.map(of_creator)].into_iter().flatten() {
        query += &format!(" AND keys : {key}");
    }
    // The parser ends at a zero byte.
    let words = text.split(|letter: char| letter.is_whitespace() || letter == '\0');
    for word in words.filter(|word| !word.is_empty()) {
        query += &format!(" AND words : \"{}\"", word.replace('"', "\"\""));
    }
    query
}
