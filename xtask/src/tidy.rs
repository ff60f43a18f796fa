//! `cargo xtask tidy`: the house rules as tests over `cargo metadata` and the sources.
//!
//! Each rule is a function from what was read to [`Finding`]s; `tidy-exceptions.toml` lists the
//! places where a rule is broken on purpose, each with its reason.

mod arrows;
mod differences;
mod exceptions;
mod lexer;
mod metadata;
mod methods;
mod orphans;
mod picture;
mod promises;
mod requirements;
mod size;
mod source;
mod text;
mod words;

use std::fmt;
use std::path::Path;

use anyhow::bail;

use crate::steps::{Outcome, Steps};
use crate::{Run, Subcommand};
use exceptions::Exceptions;
use metadata::Workspace;
use source::Tree;

pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "tidy",
    about: "Check the house rules: arrows, sizes, docs, words",
    run: Run::Alone(run),
};

/// A place that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Finding {
    rule: &'static str,
    /// Relative to the workspace root, with `/`.
    path: String,
    /// Counted from 1; 0 is the file as a whole.
    line: usize,
    message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, path, line, message } = self;
        match line {
            0 => write!(f, "{path}: {message} [{rule}]"),
            _ => write!(f, "{path}:{line}: {message} [{rule}]"),
        }
    }
}

pub(crate) fn run(steps: &mut Steps) -> Outcome {
    let metadata = steps.cargo("metadata --no-deps --offline --format-version 1");
    steps.function("tidy", |root| {
        let workspace = Workspace::read(metadata, root)?;
        let tree = Tree::read(root)?;
        let exceptions = Exceptions::read(root)?;
        let findings = exceptions.apply(&findings(&workspace, &tree));
        report(&findings, tree.files.len())
    })
}

/// Draws what is generated from the sources.
pub(crate) fn draw(steps: &mut Steps) -> Outcome {
    let metadata = steps.cargo("metadata --no-deps --offline --format-version 1");
    steps.function("picture", |root| picture::draw(&Workspace::read(metadata, root)?, root))
}

fn findings(workspace: &Workspace, tree: &Tree) -> Vec<Finding> {
    let mut findings = arrows::check(workspace);
    for file in &tree.files {
        findings.extend(text::check(file));
        findings.extend(size::check(file));
        findings.extend(words::check(file));
    }
    findings.extend(methods::check(tree));
    findings.extend(orphans::check(tree));
    findings.extend(picture::check(workspace, tree));
    findings.extend(requirements::check(tree));
    findings.extend(differences::check(tree));
    findings.extend(promises::check(tree));
    findings
}

fn report(findings: &[Finding], n_files: usize) -> anyhow::Result<()> {
    for finding in findings {
        println!("{finding}");
    }
    if !findings.is_empty() {
        bail!(
            "{} places break a house rule (fix them, or list them in tidy-exceptions.toml)",
            findings.len()
        );
    }
    println!("{n_files} files are tidy");
    Ok(())
}

/// Returns whether `path` is in `directory`, by whole components.
fn is_in(path: &str, directory: &str) -> bool {
    Path::new(path).starts_with(directory)
}
