//! `ringback session apply`: applies an agent's changes to the original directory.

use std::collections::BTreeMap;
use std::io::{Cursor, Read, Seek as _};
use std::path::{Component, Path, PathBuf};

use clap::Args;
use ringback_blobs::Tree;
use ringback_blobs::tree::{EntryKind, TreeError};
use ringback_client::Client;
use ringback_proto::ids::BlobHash;
use ringback_proto::request::{
    FileKind, FileState, SessionGetRequest, SessionResponse, WorkspaceChange,
    WorkspaceContentResponse, WorkspaceGetRequest,
};
use ringback_proto::tool::tools::{SessionGet, WorkspaceGet};
use serde::Serialize;

use super::links::Links;
use super::origin::Origins;
use super::{branch, changes};
use crate::config::Environment;
use crate::connection::Target;
use crate::failure::Failure;
use crate::pick::{IdArg, SessionArg};
use crate::screen::{Screen, counted};

/// The remedy for a file that cannot be applied.
pub(super) const LEAVE_OUT: &str = "`--except PATH` leaves a file out";

/// What to apply, and where.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ringback session apply gogol_… --dry-run\n  ringback session apply gogol_…\n  ringback session apply gogol_… --except target\n  ringback session apply gogol_… --branch fix-the-test\n\nNothing is \
                  written if a file here matches neither the copy nor the agent's version, unless \
                  `--force`\nis given. No symbolic link is followed, none is created that leads out of the \
                  directory, and\nnothing is written below `.git`."
)]
pub struct ApplyArgs {
    /// The session: its id, the start of it, or `last`
    pub id: SessionArg,
    /// Directory to change [default: the one that `ringback run` copied]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Only show what would be done
    #[arg(long)]
    pub dry_run: bool,
    /// File or directory to leave out; may be given several times
    #[arg(long, value_name = "PATH")]
    pub except: Vec<PathBuf>,
    /// Overwrite files that changed here since the copy
    #[arg(long)]
    pub force: bool,
    /// Commit the changes to this new branch of the repository, and leave the directory as it is
    #[arg(long, value_name = "NAME", conflicts_with_all = ["dry_run", "force"])]
    pub branch: Option<String>,
}

/// The action for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum FileAction {
    Write,
    Remove,
    /// The file is already as the agent left it.
    Nothing,
}

/// A file and the action for it.
#[derive(Debug, Serialize)]
struct AppliedChange<'a> {
    path: &'a str,
    deed: FileAction,
    /// Whether it was only shown.
    dry_run: bool,
}

pub(super) async fn run(
    mut args: ApplyArgs,
    target: &Target,
    screen: Screen,
    environment: &Environment,
) -> Result<(), Failure> {
    let id = args.id.find_at(target).await?;
    args.id = IdArg::Whole(id);
    let origin = Origins::of(environment).find(id);
    let named = args.dir.clone().or_else(|| origin.as_ref().map(|origin| origin.dir.clone()));
    let dir = named.ok_or_else(|| {
        let text =
            format!("unknown directory of session {id}; give the one to change with `--dir DIR`");
        Failure::Usage(text)
    })?;
    let failed = |source| Failure::File { action: "open", path: dir.clone(), source };
    let dir = dir.canonicalize().map_err(failed)?;
    let tree = Tree::open(&dir).map_err(|error| wrong(&error))?;
    if let Some(name) = &args.branch {
        let base = origin.and_then(|origin| origin.base);
        let branch = branch::NewBranch { name, base, dir: &dir, tree: &tree, environment };
        return target.run(async |client| branch.make(client, screen, &args).await).await;
    }
    target.run(async |client| apply(client, screen, &args, &tree, &dir).await).await
}

async fn apply(
    client: &Client,
    screen: Screen,
    args: &ApplyArgs,
    tree: &Tree,
    dir: &Path,
) -> Result<(), Failure> {
    let session_id = args.id.find(client).await?;
    let session = client.call::<SessionGet>(SessionGetRequest { session_id }).await?;
    let WantedChanges { changes, n_left_out } = wanted(client, screen, args).await?;
    let mut plan = plan(tree, &changes, args.force)?;
    check_links(client, &session, tree, &changes).await?;
    // Removals first: a directory may have become a file, or a file a directory.
    plan.sort_by_key(|(_, deed)| *deed != FileAction::Remove);
    for (change, deed) in &plan {
        if !args.dry_run {
            carry_out(client, &session, tree, change, *deed).await?;
        }
        let applied = AppliedChange { path: &change.path, deed: *deed, dry_run: args.dry_run };
        screen.item(&applied, |applied| {
            let word = match applied.deed {
                FileAction::Write => change.change.as_str(),
                FileAction::Remove => "removed",
                FileAction::Nothing => "already applied",
            };
            format!("{word}  {}", screen.printable(applied.path))
        })?;
    }
    let n_done = plan.iter().filter(|(_, deed)| *deed != FileAction::Nothing).count();
    let (files, would) = (counted(n_done, "file"), if args.dry_run { "would be " } else { "" });
    screen.remark(format_args!("{files} {would}changed in {}", dir.display()));
    if n_left_out > 0 {
        screen.remark(format_args!("{} left out", counted(n_left_out, "file")));
    }
    Ok(())
}

/// The changes to apply.
pub(super) struct WantedChanges {
    pub(super) changes: Vec<WorkspaceChange>,
    pub(super) n_left_out: usize,
}

/// Returns the changes, without those that are to be left out.
pub(super) async fn wanted(
    client: &Client,
    screen: Screen,
    args: &ApplyArgs,
) -> Result<WantedChanges, Failure> {
    let changed = changes::of(client, args.id.find(client).await?, None).await?;
    changes::remark_skipped(screen, &changed);
    let mut changes = changed.changes;
    let n_changed = changes.len();
    changes
        .retain(|change| !args.except.iter().any(|path| Path::new(&change.path).starts_with(path)));
    Ok(WantedChanges { n_left_out: n_changed - changes.len(), changes })
}

/// Plans the action for each file, and checks all of them before anything is written.
fn plan<'a>(
    tree: &Tree,
    changes: &'a [WorkspaceChange],
    force: bool,
) -> Result<Vec<(&'a WorkspaceChange, FileAction)>, Failure> {
    let mut plan = Vec::new();
    let (mut refused, mut conflicts) = (Vec::new(), Vec::new());
    for change in changes {
        let path = Path::new(&change.path);
        if let Some(why) = refusal(change) {
            refused.push(format!("`{}` {why}", change.path));
            continue;
        }
        let here = match here(tree, path) {
            Ok(here) => here,
            Err(error @ (TreeError::Link { .. } | TreeError::Outside { .. })) => {
                refused.push(error.to_string());
                continue;
            }
            Err(error) => return Err(wrong(&error)),
        };
        let deed = match &change.after {
            after if *after == here => FileAction::Nothing,
            Some(_) => FileAction::Write,
            None => FileAction::Remove,
        };
        if deed != FileAction::Nothing && change.before != here {
            conflicts.push(format!("`{}`", change.path));
        }
        plan.push((change, deed));
    }
    if !refused.is_empty() {
        let text = format!("nothing was written: {}; {LEAVE_OUT}", refused.join("; "));
        return Err(Failure::Wrong(text));
    }
    if !conflicts.is_empty() && !force {
        let text = format!(
            "nothing was written: these files changed here since the copy: {}; `--force` overwrites \
             them",
            conflicts.join(", ")
        );
        return Err(Failure::Wrong(text));
    }
    Ok(plan)
}

/// Returns why a change is refused even with `--force`.
pub(super) fn refusal(change: &WorkspaceChange) -> Option<&'static str> {
    let path = Path::new(&change.path);
    if change.lossy {
        return Some("has a name that is not UTF-8");
    }
    // `git` runs files from there without anyone reviewing them.
    let is_git = |part: Component<'_>| part.as_os_str().eq_ignore_ascii_case(".git");
    path.components().any(is_git).then_some("is part of the repository itself")
}

/// Returns the current state of a file; `None` if it does not exist.
fn here(tree: &Tree, path: &Path) -> Result<Option<FileState>, TreeError> {
    let entry = match tree.entry(path) {
        Err(TreeError::NotFound { .. }) => return Ok(None),
        entry => entry?,
    };
    let (kind, size, hash) = match entry.kind {
        EntryKind::File => (FileKind::File, entry.size, tree.hash(path)?),
        EntryKind::Symlink => {
            let target = tree.read_link(path)?;
            let text = target.as_os_str().as_encoded_bytes();
            let hash = BlobHash::from_bytes(*blake3::hash(text).as_bytes());
            (FileKind::Symlink, text.len() as u64, hash)
        }
        // Matches neither the copy nor the agent's version.
        EntryKind::Directory | EntryKind::Other => {
            (FileKind::Other, 0, BlobHash::from_bytes([0; 32]))
        }
    };
    Ok(Some(FileState { kind, size, executable: entry.executable, hash }))
}

/// Refuses links that would lead out of the directory, directly or through other links.
pub(super) async fn check_links(
    client: &Client,
    session: &SessionResponse,
    tree: &Tree,
    changes: &[WorkspaceChange],
) -> Result<(), Failure> {
    let mut targets = BTreeMap::new();
    for change in changes {
        let after = change.after.as_ref().filter(|after| after.kind == FileKind::Symlink);
        let target = match after {
            None => None,
            Some(after) => {
                let target = get(client, session, change).await?.target.unwrap_or_default();
                // The checked target must be the one that is applied.
                if blake3::hash(target.as_bytes()).as_bytes() != after.hash.as_bytes() {
                    return Err(changing(change));
                }
                Some(PathBuf::from(target))
            }
        };
        targets.insert(PathBuf::from(&change.path), target);
    }
    let leading_out = Links::new(tree, targets).leading_out().map_err(|error| wrong(&error))?;
    let Some((link, target)) = leading_out else { return Ok(()) };
    let text = format!(
        "nothing was written: `{}` is a link out of the directory, to `{}`; {LEAVE_OUT}",
        link.display(),
        target.display()
    );
    Err(Failure::Wrong(text))
}

/// The failure when the agent is still changing a file.
fn changing(change: &WorkspaceChange) -> Failure {
    let text = format!(
        "`{}` changed while it was being applied; wait until the agent is idle",
        change.path
    );
    Failure::Wrong(text)
}

async fn get(
    client: &Client,
    session: &SessionResponse,
    change: &WorkspaceChange,
) -> Result<WorkspaceContentResponse, Failure> {
    let request = WorkspaceGetRequest {
        project_id: session.project_id,
        workspace_id: session.workspace_id,
        path: Some(change.path.clone()),
        recursive: false,
        archive: false,
        limit: None,
        cursor: None,
    };
    Ok(client.call::<WorkspaceGet>(request).await?)
}

async fn carry_out(
    client: &Client,
    session: &SessionResponse,
    tree: &Tree,
    change: &WorkspaceChange,
    deed: FileAction,
) -> Result<(), Failure> {
    let path = Path::new(&change.path);
    let after = match (deed, &change.after) {
        (FileAction::Write, Some(after)) => after,
        (FileAction::Remove, _) => return tree.remove(path).map_err(|error| wrong(&error)),
        (FileAction::Write | FileAction::Nothing, _) => return Ok(()),
    };
    match fetch(client, session, change, after).await? {
        Fetched::Link(target) => tree.link(path, Path::new(&target)),
        Fetched::File(mut content) => tree.write(path, &mut content, after.executable).map(drop),
    }
    .map_err(|error| wrong(&error))
}

/// A file or a symbolic link of the agent.
pub(super) enum Fetched {
    File(Box<dyn Read>),
    Link(String),
}

/// Fetches a file, as it was when the changes were listed.
pub(super) async fn fetch(
    client: &Client,
    session: &SessionResponse,
    change: &WorkspaceChange,
    after: &FileState,
) -> Result<Fetched, Failure> {
    let got = get(client, session, change).await?;
    if let Some(target) = got.target {
        let hash = BlobHash::from_bytes(*blake3::hash(target.as_bytes()).as_bytes());
        return if hash == after.hash { Ok(Fetched::Link(target)) } else { Err(changing(change)) };
    }
    match (got.data, got.content_hash) {
        (Some(data), _) if blake3::hash(&data.0).as_bytes() == after.hash.as_bytes() => {
            Ok(Fetched::File(Box::new(Cursor::new(data.0))))
        }
        (None, Some(hash)) if hash == after.hash => {
            Ok(Fetched::File(Box::new(downloaded(client, hash).await?)))
        }
        (Some(_) | None, _) => Err(changing(change)),
    }
}

/// Downloads content to an unnamed temporary file.
async fn downloaded(client: &Client, hash: BlobHash) -> Result<std::fs::File, Failure> {
    let failed = |source| Failure::System { action: "write a temporary file", source };
    let mut file = tempfile::tempfile().map_err(failed)?;
    let sink = tokio::fs::File::from_std(file.try_clone().map_err(failed)?);
    client.download(hash, sink).await?;
    file.rewind().map_err(failed)?;
    Ok(file)
}

fn wrong(error: &TreeError) -> Failure {
    Failure::Wrong(ringback_proto::chain(error))
}
