//! The picture of the crates in `ARCHITECTURE.md`: drawn from their dependencies, and compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context;

use super::Finding;
use super::metadata::Workspace;
use super::source::Tree;

const RULE: &str = "picture";

/// From the workspace root.
const FILE: &str = "ARCHITECTURE.md";

/// Where the picture starts and ends.
const START: &str = "<!-- crates: `cargo xtask fix` draws this -->\n";
const END: &str = "<!-- end of crates -->";

/// No part of the daemon.
const LEFT_OUT: &[&str] = &["xtask", "ringback-bench"];

type Arrows<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

pub(crate) fn check(workspace: &Workspace, tree: &Tree) -> Vec<Finding> {
    let page = tree.files.iter().find(|file| file.path == FILE);
    let is_drawn = page.is_some_and(|page| page.text.contains(&framed(workspace)));
    let message = "the picture of the crates is out of date; run `cargo xtask fix`".to_owned();
    let finding = Finding { rule: RULE, path: FILE.to_owned(), line: 0, message };
    if is_drawn { Vec::new() } else { vec![finding] }
}

/// Draws the picture into the page.
pub(crate) fn draw(workspace: &Workspace, root: &Path) -> anyhow::Result<()> {
    let path = root.join(FILE);
    let page = std::fs::read_to_string(&path).with_context(|| format!("cannot read `{FILE}`"))?;
    let (before, rest) = page.split_once(START).context("the page has no place for the picture")?;
    let (_, after) = rest.split_once(END).context("the place of the picture has no end")?;
    let page = format!("{before}{}{after}", framed(workspace));
    std::fs::write(&path, page).with_context(|| format!("cannot write `{FILE}`"))
}

fn framed(workspace: &Workspace) -> String {
    format!("{START}\n{}\n{END}", picture(workspace))
}

/// Every dependency that no other one implies.
fn picture(workspace: &Workspace) -> String {
    let arrows = arrows(workspace);
    let mut picture = "```mermaid\nflowchart LR\n".to_owned();
    for (from, direct) in &arrows {
        let implied: BTreeSet<_> = direct.iter().flat_map(|to| reached(&arrows, to)).collect();
        for to in direct.iter().filter(|to| !implied.contains(*to)) {
            let (from, to) = (short(from), short(to));
            writeln!(picture, "    {from} --> {to}").expect("a string takes everything");
        }
    }
    picture.push_str("```\n");
    picture
}

fn arrows(workspace: &Workspace) -> Arrows<'_> {
    let drawn = workspace.packages.iter().filter(|it| !LEFT_OUT.contains(&it.name.as_str()));
    let arrows = drawn.map(|package| {
        let ours = package.dependencies.iter().filter(|it| it.path.is_some() && !it.is_dev());
        (package.name.as_str(), ours.map(|dependency| dependency.name.as_str()).collect())
    });
    arrows.collect()
}

/// Everything below a crate.
fn reached<'a>(arrows: &Arrows<'a>, from: &str) -> BTreeSet<&'a str> {
    let direct = arrows.get(from).into_iter().flatten();
    direct.flat_map(|to| reached(arrows, to).into_iter().chain([*to])).collect()
}

fn short(name: &str) -> &str {
    name.strip_prefix("ringback-").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::super::metadata::{Dependency, Package};
    use super::*;

    #[test]
    fn only_what_nothing_else_implies_is_drawn() {
        let package = |name: &str, to: &[&str]| Package {
            name: name.to_owned(),
            dependencies: to
                .iter()
                .map(|to| Dependency {
                    name: (*to).to_owned(),
                    kind: None,
                    path: Some("crates/x".to_owned()),
                })
                .collect(),
            manifest_path: String::new(),
        };
        let packages = vec![
            package("ringback-a", &["ringback-b", "ringback-c"]),
            package("ringback-b", &["ringback-c"]),
            package("ringback-c", &[]),
            package("xtask", &["ringback-c"]),
        ];
        let drawn = picture(&Workspace { packages });
        assert_eq!(drawn, "```mermaid\nflowchart LR\n    a --> b\n    b --> c\n```\n");
    }
}
