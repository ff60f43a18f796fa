//! The keys of `artifact_list`: the owner of a list, and its filter.

use ringback_proto::ids::{ProjectId, SessionId};
use ringback_proto::principal::PrincipalId;

use super::page::RowVisibility;
use crate::row::owner_bytes;

/// The list of all artifacts.
pub(crate) const EVERYBODY: &[u8] = b"e";

pub(crate) fn of_owner(owner: &PrincipalId) -> Vec<u8> {
    [b"o", owner_bytes(owner)].concat()
}

pub(crate) fn of_project(project: &ProjectId) -> Vec<u8> {
    [&b"p"[..], project.as_bytes()].concat()
}

/// The list of what a session and its descendants made.
pub(crate) fn of_session(session: &SessionId) -> Vec<u8> {
    [&b"s"[..], session.as_bytes()].concat()
}

/// Returns the lists whose union a reader sees.
pub(crate) fn views(visible: &RowVisibility) -> Vec<Vec<u8>> {
    match visible {
        RowVisibility::All => vec![EVERYBODY.to_vec()],
        RowVisibility::Owner { owner, projects } => {
            let own = std::iter::once(of_owner(owner));
            own.chain(projects.iter().map(of_project)).collect()
        }
        RowVisibility::Tree { owner, session } => vec![of_owner(owner), of_session(session)],
    }
}

/// The length of the tag is between the two, so that no other pair has the same bytes.
pub(crate) fn facet(tag: Option<&str>, creator: Option<&str>) -> Vec<u8> {
    let mut key = Vec::new();
    if let Some(tag) = tag {
        key.push(b't');
        key.extend_from_slice(&(tag.len() as u64).to_be_bytes());
        key.extend_from_slice(tag.as_bytes());
    }
    if let Some(creator) = creator {
        key.push(b'c');
        key.extend_from_slice(creator.as_bytes());
    }
    key
}
