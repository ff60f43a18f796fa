//! The mapping between values and columns.

use bytes::Bytes;
use ringback_proto::ids::{BlobHash, ProjectId, SessionId, TokenId};
use ringback_proto::network::NetworkPolicy;
use ringback_proto::permission::PermissionPolicy;
use ringback_proto::principal::{Level, PrincipalId, Target};
use ringback_proto::record::{JobState, SessionState};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, Type, ValueRef};
use rusqlite::{Error, Result, Row};

/// The stored value where a key needs a project or a session and has none.
const NOTHING: &[u8] = &[];

/// A time, a size or a count. Values beyond SQLite's range never occur in practice.
pub(crate) fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub(crate) fn opt_int(value: Option<u64>) -> Option<i64> {
    value.map(int)
}

pub(crate) fn owner_bytes(owner: &PrincipalId) -> &[u8] {
    match owner {
        PrincipalId::Local => &[],
        PrincipalId::Token(id) => id.as_bytes(),
    }
}

pub(crate) fn project_bytes(project: Option<&ProjectId>) -> &[u8] {
    project.map_or(NOTHING, |project| project.as_bytes())
}

pub(crate) fn session_bytes(session: Option<&SessionId>) -> &[u8] {
    session.map_or(NOTHING, |session| session.as_bytes())
}

pub(crate) const fn state_int(state: JobState) -> i64 {
    match state {
        JobState::Pending => 0,
        JobState::Running => 1,
        JobState::Complete => 2,
        JobState::Failed => 3,
        JobState::Cancelled => 4,
    }
}

pub(crate) const fn session_state_int(state: SessionState) -> i64 {
    match state {
        SessionState::Starting => 0,
        SessionState::Running => 1,
        SessionState::Idle => 2,
        SessionState::Ended => 3,
        SessionState::Failed => 4,
        SessionState::Interrupted => 5,
    }
}

pub(crate) const fn level_int(level: Level) -> i64 {
    match level {
        Level::Read => 0,
        Level::Write => 1,
        Level::Admin => 2,
    }
}

pub(crate) fn target_bytes(target: &Target) -> Option<Vec<u8>> {
    match target {
        Target::Everything => None,
        Target::Projects(projects) => {
            Some(projects.iter().flat_map(|project| *project.as_bytes()).collect())
        }
    }
}

pub(crate) fn tags_bytes(tags: &[String]) -> Vec<u8> {
    rmp_serde::to_vec(tags).expect("strings always have a MsgPack form")
}

/// Reads columns as our types; a column that does not match means a damaged database.
pub(crate) trait Columns {
    fn u64(&self, column: &str) -> Result<u64>;
    fn opt_u64(&self, column: &str) -> Result<Option<u64>>;
    fn bytes(&self, column: &str) -> Result<Bytes>;
    fn opt_bytes(&self, column: &str) -> Result<Option<Bytes>>;
    fn id<T>(&self, column: &str, make: impl FnOnce([u8; 16]) -> T) -> Result<T>;
    fn opt_id<T>(&self, column: &str, make: impl FnOnce([u8; 16]) -> T) -> Result<Option<T>>;
    fn hash(&self, column: &str) -> Result<BlobHash>;
    fn opt_hash(&self, column: &str) -> Result<Option<BlobHash>>;
    fn owner(&self) -> Result<PrincipalId>;
    fn state(&self) -> Result<JobState>;
    fn session_state(&self) -> Result<SessionState>;
    fn level(&self) -> Result<Level>;
    fn opt_level(&self, column: &str) -> Result<Option<Level>>;
    fn opt_network(&self) -> Result<Option<NetworkPolicy>>;
    fn opt_permissions(&self) -> Result<Option<PermissionPolicy>>;
    fn target(&self) -> Result<Target>;
    fn tags(&self) -> Result<Vec<String>>;
    /// Reads the name of one of a few values.
    fn name<T: Copy>(&self, column: &str, all: &[T], name: fn(T) -> &'static str) -> Result<T>;
}

impl Columns for Row<'_> {
    fn u64(&self, column: &str) -> Result<u64> {
        let value: i64 = self.get(column)?;
        u64::try_from(value).map_err(|_| damaged(column, Type::Integer))
    }

    fn opt_u64(&self, column: &str) -> Result<Option<u64>> {
        let value: Option<i64> = self.get(column)?;
        let convert = |value| u64::try_from(value).map_err(|_| damaged(column, Type::Integer));
        value.map(convert).transpose()
    }

    fn bytes(&self, column: &str) -> Result<Bytes> {
        self.get::<_, Vec<u8>>(column).map(Bytes::from)
    }

    fn opt_bytes(&self, column: &str) -> Result<Option<Bytes>> {
        Ok(self.get::<_, Option<Vec<u8>>>(column)?.map(Bytes::from))
    }

    fn id<T>(&self, column: &str, make: impl FnOnce([u8; 16]) -> T) -> Result<T> {
        self.get::<_, FixedBytes<16>>(column).map(|fixed| make(fixed.0))
    }

    fn opt_id<T>(&self, column: &str, make: impl FnOnce([u8; 16]) -> T) -> Result<Option<T>> {
        Ok(self.get::<_, Option<FixedBytes<16>>>(column)?.map(|fixed| make(fixed.0)))
    }

    fn hash(&self, column: &str) -> Result<BlobHash> {
        self.get::<_, FixedBytes<32>>(column).map(|fixed| BlobHash::from_bytes(fixed.0))
    }

    fn opt_hash(&self, column: &str) -> Result<Option<BlobHash>> {
        Ok(self
            .get::<_, Option<FixedBytes<32>>>(column)?
            .map(|fixed| BlobHash::from_bytes(fixed.0)))
    }

    fn owner(&self) -> Result<PrincipalId> {
        if self.get_ref("owner")?.as_blob().is_ok_and(<[u8]>::is_empty) {
            return Ok(PrincipalId::Local);
        }
        self.id("owner", TokenId::from_random).map(PrincipalId::Token)
    }

    fn state(&self) -> Result<JobState> {
        let value: i64 = self.get("state")?;
        JobState::ALL
            .into_iter()
            .find(|state| state_int(*state) == value)
            .ok_or_else(|| damaged("state", Type::Integer))
    }

    fn session_state(&self) -> Result<SessionState> {
        let value: i64 = self.get("state")?;
        SessionState::ALL
            .into_iter()
            .find(|state| session_state_int(*state) == value)
            .ok_or_else(|| damaged("state", Type::Integer))
    }

    fn level(&self) -> Result<Level> {
        self.opt_level("level")?.ok_or_else(|| damaged("level", Type::Null))
    }

    fn opt_level(&self, column: &str) -> Result<Option<Level>> {
        let value: Option<i64> = self.get(column)?;
        let convert = |value| {
            [Level::Read, Level::Write, Level::Admin]
                .into_iter()
                .find(|level| level_int(*level) == value)
                .ok_or_else(|| damaged(column, Type::Integer))
        };
        value.map(convert).transpose()
    }

    fn opt_network(&self) -> Result<Option<NetworkPolicy>> {
        let text: Option<String> = self.get("network")?;
        let convert = |text: String| text.parse().map_err(|_| damaged("network", Type::Text));
        text.map(convert).transpose()
    }

    fn opt_permissions(&self) -> Result<Option<PermissionPolicy>> {
        let text: Option<String> = self.get("permissions")?;
        let convert = |text: String| text.parse().map_err(|_| damaged("permissions", Type::Text));
        text.map(convert).transpose()
    }

    fn target(&self) -> Result<Target> {
        let Some(bytes) = self.get::<_, Option<Vec<u8>>>("projects")? else {
            return Ok(Target::Everything);
        };
        let (ids, rest) = bytes.as_chunks::<16>();
        if !rest.is_empty() {
            return Err(damaged("projects", Type::Blob));
        }
        Ok(Target::Projects(ids.iter().copied().map(ProjectId::from_random).collect()))
    }

    fn tags(&self) -> Result<Vec<String>> {
        let bytes: Vec<u8> = self.get("tags")?;
        rmp_serde::from_slice(&bytes).map_err(|_| damaged("tags", Type::Blob))
    }

    fn name<T: Copy>(&self, column: &str, all: &[T], name: fn(T) -> &'static str) -> Result<T> {
        let text: String = self.get(column)?;
        let found = all.iter().copied().find(|value| name(*value) == text);
        found.ok_or_else(|| damaged(column, Type::Text))
    }
}

struct FixedBytes<const N: usize>([u8; N]);

impl<const N: usize> FromSql for FixedBytes<N> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let bytes = value.as_blob()?;
        let wrong_size =
            |_| FromSqlError::InvalidBlobSize { expected_size: N, blob_size: bytes.len() };
        bytes.try_into().map(Self).map_err(wrong_size)
    }
}

pub(crate) fn damaged(column: &str, found: Type) -> Error {
    Error::InvalidColumnType(0, column.to_owned(), found)
}
