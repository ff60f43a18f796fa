//! `ringback session apply --branch`: commits an agent's changes to a new branch.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use ringback_blobs::Tree;
use ringback_client::Client;
use ringback_proto::request::{SessionGetRequest, SessionResponse, WorkspaceChange};
use ringback_proto::tool::tools::SessionGet;
use serde::Serialize;

use super::apply::wanted;
use super::apply::{ApplyArgs, Fetched, LEAVE_OUT, WantedChanges, check_links, fetch, refusal};
use crate::config::Environment;
use crate::failure::Failure;
use crate::repository::{BranchChange, BranchCommit, Content, Repository, RepositoryError};
use crate::screen::{Screen, counted};

/// All content of a commit, which is in memory at once.
const BYTES_MAX: usize = 512 << 20;

/// The branch to make.
#[derive(Debug)]
pub(super) struct NewBranch<'a> {
    pub(super) name: &'a str,
    /// The commit that the copy was made at.
    pub(super) base: Option<String>,
    /// The directory that was copied.
    pub(super) dir: &'a Path,
    pub(super) tree: &'a Tree,
    pub(super) environment: &'a Environment,
}

/// The branch that was made.
#[derive(Debug, Serialize)]
struct MadeBranch<'a> {
    branch: &'a str,
    commit: &'a str,
    files: usize,
}

impl NewBranch<'_> {
    pub(super) async fn make(
        &self,
        client: &Client,
        screen: Screen,
        args: &ApplyArgs,
    ) -> Result<(), Failure> {
        let repository =
            Repository::of(self.dir).map_err(|error| wrong(&error))?.ok_or_else(|| {
                let text = format!(
                    "`{}` is in no repository; apply without `--branch`",
                    self.dir.display()
                );
                Failure::Usage(text)
            })?;
        let session_id = args.id.find(client).await?;
        let base = self.base.as_deref().ok_or_else(|| {
            let text = format!(
                "unknown commit of the copy of session {session_id}: it was made elsewhere, without a \
                 repository, or before the first commit; apply without `--branch`"
            );
            Failure::Usage(text)
        })?;
        let session = client.call::<SessionGet>(SessionGetRequest { session_id }).await?;
        let home = self.environment.absolute_dir("HOME");
        let message = format!("Changes of session {}\n", session.session_id);
        let commit = BranchCommit {
            branch: self.name,
            base,
            message: &message,
            agent: &session.agent,
            at: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
            path: self.environment.get("PATH"),
            home: home.as_deref(),
        };
        commit.check(&repository).map_err(|error| wrong(&error))?;
        let WantedChanges { changes, n_left_out } = wanted(client, screen, args).await?;
        if changes.is_empty() {
            return Err(Failure::Wrong(
                "nothing changed, so there is nothing to commit".to_owned(),
            ));
        }
        let refused = changes.iter().find_map(|change| Some((&change.path, refusal(change)?)));
        if let Some((path, why)) = refused {
            let text = format!("no branch was made: `{path}` {why}; {LEAVE_OUT}");
            return Err(Failure::Wrong(text));
        }
        check_links(client, &session, self.tree, &changes).await?;
        let files = fetched(client, &session, &changes).await?;
        let id = commit.make(&repository, self.dir, &files).map_err(|error| wrong(&error))?;
        let made = MadeBranch { branch: self.name, commit: &id, files: files.len() };
        screen
            .answer(&made, |made| format!("{}  {}", made.commit, screen.printable(made.branch)))?;
        screen.remark(format_args!(
            "{} committed; see them with `git diff {}...{}`",
            counted(files.len(), "file"),
            &base[..base.len().min(12)],
            screen.printable(self.name)
        ));
        if n_left_out > 0 {
            screen.remark(format_args!("{} left out", counted(n_left_out, "file")));
        }
        Ok(())
    }
}

/// Fetches the content of all changed files.
async fn fetched(
    client: &Client,
    session: &SessionResponse,
    changes: &[WorkspaceChange],
) -> Result<Vec<BranchChange>, Failure> {
    let (mut files, mut n_bytes) = (Vec::new(), 0_usize);
    for change in changes {
        let content = match &change.after {
            None => None,
            Some(after) => match fetch(client, session, change, after).await? {
                Fetched::Link(target) => Some(Content::Link(target.into_bytes())),
                Fetched::File(content) => {
                    let mut bytes = Vec::new();
                    let left = (BYTES_MAX - n_bytes) as u64;
                    content.take(left + 1).read_to_end(&mut bytes).map_err(|source| {
                        Failure::System { action: "read a temporary file", source }
                    })?;
                    n_bytes = n_bytes.saturating_add(bytes.len());
                    Some(Content::File { bytes, executable: after.executable })
                }
            },
        };
        if n_bytes > BYTES_MAX {
            let text = format!("a commit has at most {BYTES_MAX} bytes; {LEAVE_OUT}");
            return Err(Failure::Wrong(text));
        }
        files.push(BranchChange { path: PathBuf::from(&change.path), content });
    }
    Ok(files)
}

fn wrong(error: &RepositoryError) -> Failure {
    Failure::Wrong(format!("cannot use the repository: {error}"))
}
