//! `docs/differences.md`: every difference from the specification names tests, and they exist.
//!
//! A row is `| the specification says | Ringback does | why | test |`, with tests written as in
//! `docs/requirements.md`.

use super::source::Tree;
use super::{Finding, requirements};

const RULE: &str = "differences";

/// Relative to the workspace root.
const FILE: &str = "docs/differences.md";

/// The first cell of each table's head.
const HEAD: &str = "the specification says";

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(page) = tree.files.iter().find(|file| file.path == FILE) else {
        return vec![finding(0, "the page about differences is missing".to_owned())];
    };
    let rows = page.text.lines().enumerate().filter(|(_, line)| line.starts_with('|'));
    rows.flat_map(|(line_idx, row)| {
        complaints(row, tree).into_iter().map(move |message| finding(line_idx + 1, message))
    })
    .collect()
}

fn finding(line: usize, message: String) -> Finding {
    Finding { rule: RULE, path: FILE.to_owned(), line, message }
}

fn complaints(row: &str, tree: &Tree) -> Vec<String> {
    let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
    let [said, _, _, tests] = cells.as_slice() else {
        return vec![
            "a difference has four cells: what is said, what is done, why, test".to_owned(),
        ];
    };
    if *said == HEAD || said.starts_with("---") {
        return Vec::new();
    }
    let tests: Vec<_> = tests.split(',').map(|test| test.trim().trim_matches('`')).collect();
    let missing = tests.iter().filter(|test| !requirements::exists(test, tree));
    missing.map(|test| format!("unknown test `{test}`")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::source::SourceFile;
    use super::*;

    fn check_row(row: &str, expected: &[&str]) {
        let page =
            format!("# Differences\n\n| {HEAD} | a | b | test |\n|---|---|---|---|\n{row}\n");
        let files = vec![
            SourceFile::new(FILE, &page),
            SourceFile::new("crates/core/src/job.rs", "fn ends_once() {}"),
        ];
        let messages: Vec<_> =
            check(&Tree { files }).into_iter().map(|finding| finding.message).collect();
        assert_eq!(messages, expected, "{row}");
    }

    #[test]
    fn a_difference_names_a_test_that_exists() {
        check_row("| \"A\" | B | because | `core::job::ends_once` |", &[]);
        check_row(
            "| \"A\" | B | because | `core::job::lost` |",
            &["unknown test `core::job::lost`"],
        );
        check_row("| \"A\" | B | because | |", &["unknown test ``"]);
        let cells = "a difference has four cells: what is said, what is done, why, test";
        check_row("| \"A\" | B | because |", &[cells]);
    }
}
