//! Pages of lists, newest first. A reader sees the union of a few ordered lists; a page takes the
//! newest of each and keeps the newest of all, so its cost does not grow with the lists.

use std::collections::BTreeSet;

use ringback_proto::ids::{ProjectId, SessionId};
use ringback_proto::principal::PrincipalId;
use rusqlite::{CachedStatement, Connection, Params, params};

use crate::error::ReadError;

/// The rows that a reader may see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowVisibility {
    /// All rows.
    All,
    /// The reader's own, and those of its projects.
    Owner {
        /// The reader.
        owner: PrincipalId,
        /// Its projects.
        projects: Vec<ProjectId>,
    },
    /// The reader's own, and those of a session and its descendants.
    Tree {
        /// The reader.
        owner: PrincipalId,
        /// The session.
        session: SessionId,
    },
}

/// The origin of a row, which decides who sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    pub(crate) owner: PrincipalId,
    pub(crate) project: Option<ProjectId>,
    pub(crate) session: Option<SessionId>,
}

pub(crate) const IN_TREE: &str =
    "SELECT EXISTS (SELECT 1 FROM session_tree WHERE ancestor = ?1 AND session = ?2)";

impl RowVisibility {
    /// Returns whether a reader sees a row.
    pub(crate) fn shows(&self, connection: &Connection, row: Origin) -> rusqlite::Result<bool> {
        match self {
            Self::All => Ok(true),
            Self::Owner { owner, projects } => Ok(*owner == row.owner
                || row.project.is_some_and(|project| projects.contains(&project))),
            Self::Tree { owner, .. } if *owner == row.owner => Ok(true),
            Self::Tree { session, .. } => {
                let Some(made_in) = row.session else { return Ok(false) };
                connection
                    .prepare_cached(IN_TREE)?
                    .query_row(params![session.as_bytes(), made_in.as_bytes()], |row| row.get(0))
            }
        }
    }
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// Its rows, newest first.
    pub items: Vec<T>,
    /// The cursor of the next page; `None` on the last.
    pub next_cursor: Option<String>,
}

/// The row before which a page starts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageStart(pub(crate) i64);

impl PageStart {
    pub(crate) fn parse(cursor: Option<&str>) -> Result<Self, ReadError> {
        let Some(text) = cursor else { return Ok(Self(i64::MAX)) };
        // A number has exactly one text form, so that foreign cursors are recognised.
        let parsed = i64::from_str_radix(text, 16).map_err(|_| ReadError::BadCursor)?;
        if parsed > 0 && text == Self(parsed).text() {
            Ok(Self(parsed))
        } else {
            Err(ReadError::BadCursor)
        }
    }

    fn text(self) -> String {
        format!("{:x}", self.0)
    }
}

/// Adds the numbers of the newest rows of one list.
pub(crate) fn gather(
    numbers: &mut BTreeSet<i64>,
    mut list: CachedStatement<'_>,
    params: impl Params,
) -> rusqlite::Result<()> {
    for n in list.query_map(params, |row| row.get(0))? {
        numbers.insert(n?);
    }
    Ok(())
}

/// Makes a page of the gathered numbers; each list was asked for one more than `limit`.
pub(crate) fn page<T>(
    numbers: &BTreeSet<i64>,
    limit: usize,
    mut read: impl FnMut(i64) -> rusqlite::Result<T>,
) -> rusqlite::Result<Page<T>> {
    let taken: Vec<i64> = numbers.iter().rev().take(limit).copied().collect();
    let last = taken.last().filter(|_| numbers.len() > limit);
    let next_cursor = last.map(|n| PageStart(*n).text());
    let items = taken.into_iter().map(&mut read).collect::<Result<_, _>>()?;
    Ok(Page { items, next_cursor })
}
