//! Required and forbidden text in files.

use super::source::SourceFile;
use super::{Finding, is_in};

const RULE_MODULE_DOC: &str = "module-doc";
const RULE_INVARIANTS: &str = "invariants";
const RULE_CODE: &str = "code-pattern";
const RULE_LATER: &str = "later-without-link";
const RULE_WORDS: &str = "machine-words";
const RULE_LOCK: &str = "lock-source";

/// What must not be in the code, where, and what to do instead.
const CODE_PATTERNS: &[Pattern] = &[
    Pattern { text: "tokio::spawn(", only_in: "", instead: "spawn into a stage or a JoinSet" },
    Pattern { text: "#[ignore", only_in: "", instead: "make the test run, or remove it" },
    Pattern { text: "#[should_panic", only_in: "", instead: "assert on a result" },
    Pattern { text: "Instant::now(", only_in: "crates/core", instead: "take the time as a value" },
    Pattern {
        text: "SystemTime::now(",
        only_in: "crates/core",
        instead: "take the time as a value",
    },
    Pattern { text: "Instant::now(", only_in: "crates/proto", instead: "take the time as a value" },
    Pattern {
        text: "SystemTime::now(",
        only_in: "crates/proto",
        instead: "take the time as a value",
    },
];

struct Pattern {
    text: &'static str,
    /// A directory; empty means everywhere.
    only_in: &'static str,
    instead: &'static str,
}

/// Words that postpone work.
const LATER_WORDS: &[&str] = &["TODO", "FIXME"];

/// Absolute directories that exist on a single machine only.
const MACHINE_DIRECTORIES: &[&str] = &[concat!("/", "work/"), concat!("/", "root/")];

/// The pip option for another package registry.
const REGISTRY_OPTION: &str = concat!("index", "-url");

/// The only source that `Cargo.lock` may name.
const LOCK_SOURCE: &str = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";

pub(crate) fn check(file: &SourceFile) -> Vec<Finding> {
    let mut findings = Findings { file, found: Vec::new() };
    if file.is_rust() {
        module_doc(&mut findings);
        invariants(&mut findings);
        code_patterns(&mut findings);
    }
    later_without_link(&mut findings);
    machine_words(&mut findings);
    lock_sources(&mut findings);
    findings.found
}

struct Findings<'a> {
    file: &'a SourceFile,
    found: Vec<Finding>,
}

impl Findings<'_> {
    fn add(&mut self, rule: &'static str, line: usize, message: String) {
        self.found.push(Finding { rule, path: self.file.path.clone(), line, message });
    }
}

/// Returns whether a file is a source of the program, as opposed to its tests and benches.
fn is_program(path: &str) -> bool {
    let mut parts = path.split('/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some("crates"), _, Some("src")) | (Some("xtask"), Some("src"), _) => true,
        (Some(_) | None, _, _) => false,
    }
}

fn module_doc(findings: &mut Findings<'_>) {
    if is_program(&findings.file.path) && !findings.file.text.starts_with("//! ") {
        let message = "the file does not start with a `//!` sentence that describes it";
        findings.add(RULE_MODULE_DOC, 1, message.to_owned());
    }
}

fn invariants(findings: &mut Findings<'_>) {
    let file = findings.file;
    if !is_program(&file.path) || !file.path.ends_with("/src/lib.rs") {
        return;
    }
    let mut list = file
        .text
        .lines()
        .take_while(|line| line.starts_with("//!"))
        .skip_while(|line| !line.contains("Invariants:"))
        .skip(1);
    if !list.any(|line| line.starts_with("//! * ") || line.starts_with("//! - ")) {
        let message = "the crate's doc has no list under `Invariants:`";
        findings.add(RULE_INVARIANTS, 1, message.to_owned());
    }
}

fn code_patterns(findings: &mut Findings<'_>) {
    let file = findings.file;
    let here: Vec<_> = CODE_PATTERNS
        .iter()
        .filter(|pattern| pattern.only_in.is_empty() || is_in(&file.path, pattern.only_in))
        .collect();
    for (line_idx, line) in file.views.code.lines().enumerate() {
        for pattern in &here {
            if line.contains(pattern.text) {
                let message =
                    format!("`{}` is not allowed here: {}", pattern.text, pattern.instead);
                findings.add(RULE_CODE, line_idx + 1, message);
            }
        }
    }
}

/// Checks comments in Rust, and all text in scripts and settings; documents may mention the words.
fn later_without_link(findings: &mut Findings<'_>) {
    let file = findings.file;
    let text = match file.path.rsplit('.').next() {
        Some("rs") => &file.views.comments,
        Some("py" | "toml" | "sh" | "yml" | "yaml") => &file.text,
        Some(_) | None => return,
    };
    for (line_idx, line) in text.lines().enumerate() {
        if LATER_WORDS.iter().any(|word| line.contains(word)) && !line.contains("https://") {
            let message = "do it now, or link to where it is tracked";
            findings.add(RULE_LATER, line_idx + 1, message.to_owned());
        }
    }
}

fn machine_words(findings: &mut Findings<'_>) {
    let file = findings.file;
    for (line_idx, line) in file.text.lines().enumerate() {
        let directory = MACHINE_DIRECTORIES.iter().find(|directory| is_absolute(line, directory));
        let option = line.contains(REGISTRY_OPTION).then_some(&REGISTRY_OPTION);
        if let Some(word) = directory.or(option) {
            let message = format!("`{word}` is specific to one machine");
            findings.add(RULE_WORDS, line_idx + 1, message);
        }
    }
}

/// Returns whether `line` contains `directory`, not as part of a longer path.
fn is_absolute(line: &str, directory: &str) -> bool {
    line.match_indices(directory).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && !"_.-}$".contains(c))
    })
}

fn lock_sources(findings: &mut Findings<'_>) {
    let file = findings.file;
    if file.path != "Cargo.lock" {
        return;
    }
    for (line_idx, line) in file.text.lines().enumerate() {
        if line.starts_with("source = ") && line != LOCK_SOURCE {
            let message = "a dependency that does not come from crates.io".to_owned();
            findings.add(RULE_LOCK, line_idx + 1, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_text(path: &str, text: &str, expected: &[(&str, usize)]) {
        let findings = check(&SourceFile::new(path, text));
        let found: Vec<_> = findings.iter().map(|finding| (finding.rule, finding.line)).collect();
        assert_eq!(found, expected, "{path}: {text}");
    }

    #[test]
    fn a_source_without_a_module_doc_is_found() {
        check_text("crates/x/src/a.rs", "//! What it is.\n", &[]);
        check_text("crates/x/src/a.rs", "use std::fs;\n", &[(RULE_MODULE_DOC, 1)]);
        check_text("xtask/src/a.rs", "\n//! Late.\n", &[(RULE_MODULE_DOC, 1)]);
        check_text("crates/x/tests/a.rs", "use std::fs;\n", &[]);
    }

    #[test]
    fn a_crate_without_a_list_of_invariants_is_found() {
        let path = "crates/x/src/lib.rs";
        check_text(path, "//! X.\n//!\n//! Invariants:\n//! * No IO.\n", &[]);
        check_text(path, "//! X.\n", &[(RULE_INVARIANTS, 1)]);
        check_text(path, "//! X. Invariants:\n//! none.\n", &[(RULE_INVARIANTS, 1)]);
        check_text(path, "//! X.\n\n// Invariants:\n//! * a\n", &[(RULE_INVARIANTS, 1)]);
    }

    #[test]
    fn a_bare_spawn_is_found_in_code_and_not_in_words() {
        let path = "crates/x/tests/a.rs";
        check_text(path, "a();\ntokio::spawn(b);\n", &[(RULE_CODE, 2)]);
        check_text(path, "// never tokio::spawn(b)\nf(\"tokio::spawn(b)\");\n", &[]);
    }

    #[test]
    fn a_test_that_does_not_run_is_found() {
        let path = "crates/x/tests/a.rs";
        check_text(path, "#[ignore]\nfn a() {}\n", &[(RULE_CODE, 1)]);
        check_text(path, "#[ignore = \"slow\"]\nfn a() {}\n", &[(RULE_CODE, 1)]);
        check_text(path, "#[should_panic]\nfn a() {}\n", &[(RULE_CODE, 1)]);
    }

    #[test]
    fn a_clock_in_the_core_is_found_and_elsewhere_is_fine() {
        let text = "//! X.\nlet now = Instant::now();\n";
        check_text("crates/core/src/a.rs", text, &[(RULE_CODE, 2)]);
        check_text("crates/broker/src/a.rs", text, &[]);
        check_text("crates/core-other/src/a.rs", text, &[]);
    }

    #[test]
    fn a_promise_without_a_link_is_found() {
        let path = "crates/x/tests/a.rs";
        for word in LATER_WORDS {
            check_text(path, &format!("// {word}: more\n"), &[(RULE_LATER, 1)]);
            check_text(path, &format!("// {word} https://example.org/7\n"), &[]);
            check_text(path, &format!("f(\"{word}\");\n"), &[]);
            check_text("a.py", &format!("# {word}\n"), &[(RULE_LATER, 1)]);
        }
    }

    #[test]
    fn a_path_of_one_machine_is_found_in_any_file() {
        let path = concat!("/", "work/main");
        check_text("README.md", &format!("see {path}\n"), &[(RULE_WORDS, 1)]);
        check_text("a.toml", &format!("a = \"{path}\"\n"), &[(RULE_WORDS, 1)]);
        check_text("README.md", "docs/work/main and /workspace/a\n", &[]);
    }

    #[test]
    fn the_option_of_another_package_registry_is_found() {
        let option = concat!("--index", "-url");
        check_text("a.sh", &format!("pip install {option} x\n"), &[(RULE_WORDS, 1)]);
    }

    #[test]
    fn a_dependency_from_elsewhere_is_found_in_the_lock_file() {
        check_text("Cargo.lock", &format!("{LOCK_SOURCE}\n"), &[]);
        let elsewhere = "source = \"registry+https://example.org/index\"\n";
        check_text("Cargo.lock", elsewhere, &[(RULE_LOCK, 1)]);
    }
}
