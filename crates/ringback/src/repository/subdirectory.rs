//! The history of a directory below the root of a repository: what was committed beside it is not
//! the agent's, so it is left out. The commits have other ids than the user's.

use std::collections::BTreeMap;
use std::path::Path;

use super::git::{Git, RepositoryError, is_id};
use super::references::References;

/// The newest commits that touch the directory; older ones are left out.
const COMMITS_MAX: usize = 1000;
/// The branch of a detached `HEAD`.
const BRANCH: &str = "refs/heads/main";
/// Lines of a commit that are kept.
const KEPT: &[&[u8]] = &[b"author ", b"committer ", b"encoding "];

/// Replaces the references by one to the history of a directory. Returns whether older commits were
/// left out.
pub(super) fn keep(
    git: &Git,
    below: &Path,
    references: &mut References,
) -> Result<bool, RepositoryError> {
    let branch = references.branch.clone().unwrap_or_else(|| BRANCH.to_owned());
    references.all.clear();
    let Some(head) = references.head.take() else { return Ok(false) };
    let below = below
        .to_str()
        .ok_or_else(|| RepositoryError::Refused(format!("`{}` is not UTF-8", below.display())))?;
    let max = format!("--max-count={}", COMMITS_MAX + 1);
    let order = ["rev-list", "--parents", "--topo-order", &max, &head, "--", below];
    let listed = git.run(&order, &[])?;
    let listed = String::from_utf8_lossy(&listed).into_owned();
    let mut commits: Vec<Vec<_>> = listed.lines().map(|line| line.split(' ').collect()).collect();
    let is_part = commits.len() > COMMITS_MAX;
    commits.truncate(COMMITS_MAX);
    commits.reverse();
    let stream = stream(git, below, &branch, &commits)?;
    if stream.is_empty() {
        return Ok(false);
    }
    git.run(&["fast-import", "--quiet", "--force", "--date-format=raw-permissive"], &stream)?;
    let found = git.run(&["rev-parse", "--verify", &branch], &[])?;
    let found = String::from_utf8_lossy(&found).trim().to_owned();
    if is_id(&found) {
        references.all.insert(branch.clone(), found.clone());
        (references.branch, references.head) = (Some(branch), Some(found));
    }
    Ok(is_part)
}

/// Returns the commits with the directory as their root, as `git fast-import` reads them.
fn stream(
    git: &Git,
    below: &str,
    branch: &str,
    commits: &[Vec<&str>],
) -> Result<Vec<u8>, RepositoryError> {
    let ids: Vec<_> = commits.iter().filter_map(|ids| ids.first().copied()).collect();
    let names: String = ids.iter().map(|id| format!("{id}:{below}\n")).collect();
    let trees =
        git.run(&["cat-file", "--batch-check=%(objectname) %(objecttype)"], names.as_bytes())?;
    let trees = String::from_utf8_lossy(&trees).into_owned();
    let input: String = ids.iter().map(|id| format!("{id}\n")).collect();
    let texts = git.run(&["cat-file", "--batch=%(objectsize)"], input.as_bytes())?;
    let (mut stream, mut marks, mut rest) = (Vec::new(), BTreeMap::new(), &*texts);
    for (number, (commit, tree)) in commits.iter().zip(trees.lines()).enumerate() {
        let Some(text) = object(&mut rest) else { break };
        let (head, message) = split(text);
        let mark = number + 1;
        stream.extend(format!("commit {branch}\nmark :{mark}\n").into_bytes());
        for line in head.split(|byte| *byte == b'\n') {
            if KEPT.iter().any(|kept| line.starts_with(kept)) {
                stream.extend_from_slice(line);
                stream.push(b'\n');
            }
        }
        stream.extend(format!("data {}\n", message.len()).into_bytes());
        stream.extend_from_slice(message);
        stream.push(b'\n');
        let known = commit.iter().skip(1).filter_map(|parent| marks.get(parent));
        for (nth, parent) in known.enumerate() {
            let word = if nth == 0 { "from" } else { "merge" };
            stream.extend(format!("{word} :{parent}\n").into_bytes());
        }
        if let Some(tree) = tree.strip_suffix(" tree").filter(|tree| is_id(tree)) {
            stream.extend(format!("M 040000 {tree} \n").into_bytes());
        } else {
            stream.extend_from_slice(b"deleteall\n");
        }
        stream.push(b'\n');
        marks.extend(commit.first().map(|id| (*id, mark)));
    }
    Ok(stream)
}

/// Takes the next object of a list: its size, its bytes and an end of line.
fn object<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let size: usize = str::from_utf8(rest.get(..end)?).ok()?.parse().ok()?;
    let text = rest.get(end + 1..end + 1 + size)?;
    *rest = rest.get(end + 2 + size..)?;
    Some(text)
}

/// Splits a commit into its head and its message.
fn split(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.windows(2).position(|pair| pair == b"\n\n");
    end.map_or((text, &[]), |end| (&text[..end], &text[end + 2..]))
}
