//! `docs/security.md`: every promise names the test that covers it and the case that attacks it,
//! and the cases exist.
//!
//! A row is `| promise | test | attack |`. The cases in the last cell are written as in
//! `docs/requirements.md`: `attack::file::name` is a Python case, `crate::path::name` a test in
//! Rust.

use super::Finding;
use super::requirements;
use super::source::Tree;

const RULE: &str = "promises";

/// Relative to the workspace root.
const FILE: &str = "docs/security.md";

/// The head of the table.
const HEAD: &str = "| promise | test | attack |";

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(page) = tree.files.iter().find(|file| file.path == FILE) else {
        return vec![finding(0, "the page about security is missing".to_owned())];
    };
    let lines = page.text.lines().enumerate().map(|(line_idx, line)| (line_idx + 1, line));
    // The ruler follows the head.
    let rows = lines.skip_while(|(_, line)| *line != HEAD).skip(2);
    let rows: Vec<_> = rows.take_while(|(_, line)| line.starts_with('|')).collect();
    if rows.is_empty() {
        return vec![finding(0, format!("the table of promises, `{HEAD}`, is missing"))];
    }
    let complaints = rows.into_iter().flat_map(|(line, row)| {
        complaints(row, tree).into_iter().map(move |message| finding(line, message))
    });
    complaints.collect()
}

fn finding(line: usize, message: String) -> Finding {
    Finding { rule: RULE, path: FILE.to_owned(), line, message }
}

fn complaints(row: &str, tree: &Tree) -> Vec<String> {
    let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
    let [_, tests, attacks] = cells.as_slice() else {
        return vec!["a promise has three cells: promise, test, attack".to_owned()];
    };
    let mut complaints = Vec::new();
    if !tests.contains('`') {
        complaints.push("no test covers this promise".to_owned());
    }
    let cases: Vec<_> = attacks
        .split(',')
        .map(|case| case.trim().trim_matches('`'))
        .filter(|case| !case.is_empty())
        .collect();
    if cases.is_empty() {
        complaints.push("no case attacks this promise".to_owned());
    }
    let missing = cases.iter().filter(|case| !requirements::exists(case, tree));
    complaints.extend(missing.map(|case| format!("unknown case `{case}`")));
    complaints
}

#[cfg(test)]
mod tests {
    use super::super::source::SourceFile;
    use super::*;

    fn check_row(row: &str, expected: &[&str]) {
        let page = format!("# Security\n\n{HEAD}\n|---|---|---|\n{row}\n\n| other | table |\n");
        let tree = Tree {
            files: vec![
                SourceFile::new(FILE, &page),
                SourceFile::new(
                    "tests/attack/keys.py",
                    "def helper(world):\n    pass\n\n\n@quick\ndef a_key_opens_nothing(world):\n    pass\n",
                ),
                SourceFile::new(
                    "crates/sandbox/tests/escape/calls.rs",
                    "fn a_call_is_refused() {}",
                ),
            ],
        };
        let messages: Vec<_> = check(&tree).into_iter().map(|finding| finding.message).collect();
        assert_eq!(messages, expected, "{row}");
    }

    #[test]
    fn a_promise_with_a_test_and_a_case_is_fine() {
        check_row("| p | `a::b` | `attack::keys::a_key_opens_nothing` |", &[]);
        check_row("| p | broker: `a::b` | `sandbox::escape::calls::a_call_is_refused` |", &[]);
    }

    #[test]
    fn a_promise_that_nothing_attacks_is_found() {
        check_row("| p | `a::b` | |", &["no case attacks this promise"]);
        check_row("| p | | |", &["no test covers this promise", "no case attacks this promise"]);
        check_row("| p | `a::b` |", &["a promise has three cells: promise, test, attack"]);
    }

    #[test]
    fn a_case_that_does_not_exist_is_found() {
        for case in
            ["attack::keys::gone", "attack::disk::a_key_opens_nothing", "attack::keys::helper"]
        {
            check_row(&format!("| p | `a::b` | `{case}` |"), &[&format!("unknown case `{case}`")]);
        }
    }

    #[test]
    fn a_page_without_its_table_is_found() {
        let page = |text: &str| Tree { files: vec![SourceFile::new(FILE, text)] };
        assert_eq!(check(&page("# Security\n")).len(), 1);
        assert_eq!(check(&Tree { files: Vec::new() }).len(), 1);
    }
}
