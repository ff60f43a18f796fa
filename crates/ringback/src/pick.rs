//! Ids as people type them: whole, the start of one, or `last` for the newest.

use std::fmt::Display;
use std::str::FromStr;

use ringback_client::Client;
use ringback_proto::ids::{ArtifactId, JobId, SessionId};
use ringback_proto::request::{ArtifactListRequest, JobListRequest, SessionListRequest};
use ringback_proto::tool::tools::{ArtifactList, JobList, SessionList};

use crate::connection::Target;
use crate::failure::Failure;
use crate::screen::{ago, one_line};

/// The largest page size.
const PAGE: u32 = 500;
/// Pages that are searched for the start of an id: more than a person remembers.
const PAGES_MAX: usize = 20;
/// Candidates that are shown.
const CANDIDATES_MAX: usize = 10;
/// The digits of an id.
const DIGITS: usize = 32;
/// The digits shown of an id at least: enough to be the only one among many thousands.
const SHORT_DIGITS: usize = 8;

/// An id as it was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdArg<T> {
    /// All of it.
    Whole(T),
    /// Its first digits.
    Start(String),
    /// The newest one.
    Last,
}

/// The session that a command is about.
pub type SessionArg = IdArg<SessionId>;
/// The job that a command is about.
pub type JobArg = IdArg<JobId>;
/// The artifact that a command is about.
pub type ArtifactArg = IdArg<ArtifactId>;

/// Something that is found by the start of its id.
#[expect(async_fn_in_trait, reason = "only this crate calls it, on one thread")]
pub trait Listed: Sized + Copy + Display {
    /// The prefix of its text form.
    const START: &'static str;
    /// What it is called.
    const NAME: &'static str;
    /// The command that lists all.
    const LIST: &'static str;

    /// Returns a page, newest first, each with what tells it from others, and the next cursor.
    async fn page(
        client: &Client,
        limit: u32,
        cursor: Option<String>,
    ) -> Result<(Vec<(Self, String)>, Option<String>), Failure>;
}

impl<T: FromStr> FromStr for IdArg<T>
where
    T: Listed,
{
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        if text == "last" {
            return Ok(Self::Last);
        }
        // As a narrow table shows it.
        let text = text.strip_suffix('…').unwrap_or(text);
        let digits = text.strip_prefix(T::START).unwrap_or(text);
        let is_start = !digits.is_empty()
            && digits.len() < DIGITS
            && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if is_start {
            return Ok(Self::Start(digits.to_owned()));
        }
        text.parse().map(Self::Whole)
    }
}

impl<T: Listed> IdArg<T> {
    /// Returns the id; asks the daemon unless it was typed as a whole.
    pub(crate) async fn find(&self, client: &Client) -> Result<T, Failure> {
        let start = match self {
            Self::Whole(id) => return Ok(*id),
            Self::Start(digits) => Some(format!("{}{digits}", T::START)),
            Self::Last => None,
        };
        let (mut cursor, mut found) = (None, Vec::new());
        for _ in 0..PAGES_MAX {
            let limit = if start.is_some() { PAGE } else { 1 };
            let (page, next) = T::page(client, limit, cursor).await?;
            let Some(start) = &start else {
                let newest = page.first().map(|(id, _)| *id);
                return newest.ok_or_else(|| Failure::Wrong(format!("no {}s yet", T::NAME)));
            };
            found.extend(page.into_iter().filter(|(id, _)| id.to_string().starts_with(start)));
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
        match found.as_slice() {
            [(id, _)] => Ok(*id),
            [] => Err(Failure::Wrong(format!(
                "no {} starts with `{}`; `{}` lists them",
                T::NAME,
                start.unwrap_or_default(),
                T::LIST
            ))),
            many => Err(ambiguous(&start.unwrap_or_default(), many)),
        }
    }

    /// Like [`Self::find`], for a command that has no connection of its own.
    pub(crate) async fn find_at(&self, target: &Target) -> Result<T, Failure> {
        if let Self::Whole(id) = self {
            return Ok(*id);
        }
        let client = target.connect().await?;
        let found = self.find(&client).await;
        client.close().await;
        found
    }
}

fn ambiguous<T: Listed>(start: &str, many: &[(T, String)]) -> Failure {
    let mut text = format!("`{start}` is the start of {} {}s:", many.len(), T::NAME);
    for (id, label) in many.iter().take(CANDIDATES_MAX) {
        text.push_str(&format!("\n  {id}  {}", one_line(label)));
    }
    if many.len() > CANDIDATES_MAX {
        text.push_str("\n  …");
    }
    Failure::Wrong(text)
}

/// Shortens ids, each to the same number of digits, so that none of them is the start of another.
pub(crate) fn shortened<T: Listed>(ids: &[T]) -> Vec<String> {
    let ids: Vec<_> = ids.iter().map(ToString::to_string).collect();
    let is_clear = |n_digits: &usize| {
        let mut starts: Vec<_> =
            ids.iter().map(|id| id.get(..T::START.len() + n_digits).unwrap_or(id)).collect();
        starts.sort_unstable();
        starts.windows(2).all(|pair| pair[0] != pair[1])
    };
    let n_digits = (SHORT_DIGITS..DIGITS).find(is_clear).unwrap_or(DIGITS);
    let short = |id: &String| id.chars().take(T::START.len() + n_digits).collect();
    ids.iter().map(short).collect()
}

impl Listed for SessionId {
    const START: &'static str = Self::PREFIX;
    const NAME: &'static str = "session";
    const LIST: &'static str = "ringback session list";

    async fn page(
        client: &Client,
        limit: u32,
        cursor: Option<String>,
    ) -> Result<(Vec<(Self, String)>, Option<String>), Failure> {
        let request = SessionListRequest { limit: Some(limit), cursor, ..Default::default() };
        let page = client.call::<SessionList>(request).await?;
        let sessions = page.sessions.into_iter().map(|it| {
            let label = format!("{}, {}, {}", it.agent, it.status.as_str(), ago(it.created_at));
            (it.session_id, label)
        });
        Ok((sessions.collect(), page.next_cursor))
    }
}

impl Listed for JobId {
    const START: &'static str = Self::PREFIX;
    const NAME: &'static str = "job";
    const LIST: &'static str = "ringback jobs";

    async fn page(
        client: &Client,
        limit: u32,
        cursor: Option<String>,
    ) -> Result<(Vec<(Self, String)>, Option<String>), Failure> {
        let request = JobListRequest { limit: Some(limit), cursor, ..Default::default() };
        let page = client.call::<JobList>(request).await?;
        let jobs = page.jobs.into_iter().map(|it| {
            let label = format!("{}, {}, {}", it.source, it.status.as_str(), ago(it.created_at));
            (it.job_id, label)
        });
        Ok((jobs.collect(), page.next_cursor))
    }
}

impl Listed for ArtifactId {
    const START: &'static str = Self::PREFIX;
    const NAME: &'static str = "artifact";
    const LIST: &'static str = "ringback artifacts";

    async fn page(
        client: &Client,
        limit: u32,
        cursor: Option<String>,
    ) -> Result<(Vec<(Self, String)>, Option<String>), Failure> {
        let request = ArtifactListRequest { limit: Some(limit), cursor, ..Default::default() };
        let page = client.call::<ArtifactList>(request).await?;
        let artifacts = page.artifacts.into_iter().map(|it| {
            let label = format!("{}, {}, {}", it.mime_type, it.creator, ago(it.created_at));
            (it.id, label)
        });
        Ok((artifacts.collect(), page.next_cursor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_whole_or_the_start_of_one_or_the_last() {
        let whole = format!("gogol_{}", "0a".repeat(16));
        assert_eq!(whole.parse::<SessionArg>().unwrap(), IdArg::Whole(whole.parse().unwrap()));
        for start in ["gogol_0a1", "0a1", "gogol_0a1…"] {
            assert_eq!(start.parse::<SessionArg>().unwrap(), IdArg::Start("0a1".to_owned()));
        }
        assert_eq!("last".parse::<SessionArg>().unwrap(), IdArg::Last);
        for wrong in ["", "gogol_", "job_0a1", "xyz", "0A", &"0".repeat(33)] {
            assert!(wrong.parse::<SessionArg>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn short_ids_are_as_long_as_they_must_be() {
        let id = |digits: &str| format!("job_{digits:0<32}").parse::<JobId>().unwrap();
        let short = shortened(&[id("0123456789a"), id("9")]);
        assert_eq!(short, ["job_01234567", "job_90000000"]);
        let alike = shortened(&[id("0123456789a"), id("0123456789b")]);
        assert_eq!(alike, ["job_0123456789a", "job_0123456789b"]);
        assert!(shortened::<JobId>(&[]).is_empty());
    }
}
