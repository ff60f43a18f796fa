//! `docs/requirements.md`: a row with the status `done` names tests, and the tests exist.
//!
//! A row is `| requirement | test | status |`. A test is `crate::path::name` in backticks, several
//! are separated by commas; `interop::name` is a Python function in `tests/interop`,
//! `attack::file::name` a case in `tests/attack`, and `crate::path::doctest` an example in the docs
//! of a module that must not compile. A status is `done`, `open` or `waits for: …`.

use super::source::{SourceFile, Tree};
use super::{Finding, is_in};

const RULE: &str = "requirements";

/// Relative to the workspace root.
const FILE: &str = "docs/requirements.md";

/// The name of an example that must not compile, and its first line.
const DOCTEST: &str = "doctest";
const DOCTEST_FENCE: &str = "```compile_fail";

/// The directories of `interop::name` and `attack::name`.
const INTEROP: &str = "tests/interop";
const ATTACK: &str = "tests/attack";

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(table) = tree.files.iter().find(|file| file.path == FILE) else {
        return vec![finding(0, "the table of requirements is missing".to_owned())];
    };
    let rows = table
        .text
        .lines()
        .enumerate()
        .filter_map(|(line_idx, line)| Row::parse(line).map(|row| (line_idx + 1, row)));
    rows.flat_map(|(line, row)| {
        row.complaints(tree).into_iter().map(move |message| finding(line, message))
    })
    .collect()
}

fn finding(line: usize, message: String) -> Finding {
    Finding { rule: RULE, path: FILE.to_owned(), line, message }
}

struct Row<'a> {
    tests: Vec<&'a str>,
    status: &'a str,
}

impl<'a> Row<'a> {
    /// Returns `None` for text, headings and rulers.
    fn parse(line: &'a str) -> Option<Self> {
        let cells: Vec<_> =
            line.strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim).collect();
        let is_head = cells.first().is_some_and(|cell| *cell == "requirement" || is_ruler(cell));
        if is_head {
            return None;
        }
        let tests = cells.get(1).copied().unwrap_or_default();
        let tests = tests.split(',').map(|test| test.trim().trim_matches('`'));
        let tests = tests.filter(|test| !test.is_empty()).collect();
        // A row with another number of cells has no status, which is a finding of its own.
        let status = if cells.len() == 3 { cells[2] } else { "" };
        Some(Self { tests, status })
    }

    fn complaints(&self, tree: &Tree) -> Vec<String> {
        let missing = self.tests.iter().filter(|test| !exists(test, tree));
        let mut complaints: Vec<_> = missing.map(|test| format!("unknown test `{test}`")).collect();
        let waits = self.status.strip_prefix("waits for: ").is_some_and(|what| !what.is_empty());
        match self.status {
            "done" if self.tests.is_empty() => {
                complaints.push("`done` without a test".to_owned());
            }
            "done" | "open" => {}
            _ if waits => {}
            other => complaints.push(format!(
                "a row has three cells and ends in `done`, `open` or `waits for: …`, not in `{other}`"
            )),
        }
        complaints
    }
}

fn is_ruler(cell: &str) -> bool {
    !cell.is_empty() && cell.chars().all(|c| c == '-' || c == ':')
}

/// Returns whether a file of the named crate has the function, under the named modules.
pub(super) fn exists(test: &str, tree: &Tree) -> bool {
    let Some((owner, rest)) = test.split_once("::") else { return false };
    let (modules, name) = rest.rsplit_once("::").unwrap_or(("", rest));
    let modules: Vec<_> = modules.split("::").filter(|module| !module.is_empty()).collect();
    let (directory, keyword) = match owner {
        "interop" => (INTEROP.to_owned(), "def "),
        // A function that is not marked as a case is a helper, and attacks nothing.
        "attack" => (ATTACK.to_owned(), "@quick\ndef "),
        "xtask" => ("xtask".to_owned(), "fn "),
        _ => (format!("crates/{}", owner.replace('_', "-")), "fn "),
    };
    let definition = format!("{keyword}{name}(");
    tree.files.iter().filter(|file| is_in(&file.path, &directory)).any(|file| {
        let code = if file.is_rust() { &file.views.code } else { &file.text };
        let is_here = if name == DOCTEST {
            file.views.comments.contains(DOCTEST_FENCE)
        } else {
            code.contains(&definition)
        };
        is_here && modules.iter().all(|module| is_under(file, code, module))
    })
}

/// A module is a directory, a file, or a block in the file.
fn is_under(file: &SourceFile, code: &str, module: &str) -> bool {
    let parts =
        file.path.split('/').map(|part| part.trim_end_matches(".rs").trim_end_matches(".py"));
    parts.into_iter().any(|part| part == module) || code.contains(&format!("mod {module} {{"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_row(row: &str, expected: &[&str]) {
        let head = "# Requirements\n\n| requirement | test | status |\n|---|---|---|\n";
        let tree = Tree {
            files: vec![
                SourceFile::new(FILE, &format!("{head}{row}\n")),
                SourceFile::new(
                    "crates/edge-hoot/tests/peers.rs",
                    "mod late {\n fn it_waits() {} }",
                ),
                SourceFile::new(
                    "crates/core/src/job.rs",
                    "// fn in_a_comment()\nfn ends_once() {}",
                ),
                SourceFile::new("crates/proto/src/tool.rs", "/// ```compile_fail\n/// ```\n"),
                SourceFile::new("tests/interop/calls.py", "def test_ping():\n    pass\n"),
            ],
        };
        let messages: Vec<_> = check(&tree).into_iter().map(|finding| finding.message).collect();
        assert_eq!(messages, expected, "{row}");
    }

    #[test]
    fn a_row_with_tests_that_exist_is_fine() {
        check_row("| a | `edge_hoot::peers::late::it_waits`, `core::job::ends_once` | done |", &[]);
        check_row("| a | `interop::calls::test_ping` | done |", &[]);
        check_row("| a | `proto::tool::doctest` | done |", &[]);
        check_row("| a | | open |", &[]);
        check_row("| a | | waits for: lines |", &[]);
    }

    #[test]
    fn a_test_that_does_not_exist_is_found_whatever_the_status() {
        for test in [
            "core::job::doctest",
            "core::job::never",
            "core::line::ends_once",
            "store::job::ends_once",
        ] {
            let message = format!("unknown test `{test}`");
            check_row(&format!("| a | `{test}` | done |"), &[&message]);
            check_row(&format!("| a | `{test}` | open |"), &[&message]);
        }
        check_row(
            "| a | `core::job::in_a_comment` | open |",
            &["unknown test `core::job::in_a_comment`"],
        );
        check_row("| a | `interop::test_gone` | open |", &["unknown test `interop::test_gone`"]);
    }

    #[test]
    fn a_missing_table_is_found() {
        let findings = check(&Tree { files: Vec::new() });
        assert_eq!(findings.iter().map(|finding| finding.rule).collect::<Vec<_>>(), [RULE]);
    }

    #[test]
    fn done_without_a_test_is_found() {
        check_row("| a | | done |", &["`done` without a test"]);
    }

    #[test]
    fn a_row_without_a_known_status_is_found() {
        let complaint = |status: &str| {
            format!(
                "a row has three cells and ends in `done`, `open` or `waits for: …`, not in `{status}`"
            )
        };
        check_row("| a | | soon |", &[&complaint("soon")]);
        check_row("| a | done |", &["unknown test `done`", &complaint("")]);
        check_row("| a | | waits for: |", &[&complaint("waits for:")]);
    }
}
