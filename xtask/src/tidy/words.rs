//! Words that make prose hard to read: each has a plainer one.

use super::Finding;
use super::source::SourceFile;

const RULE: &str = "words";

/// The words, and what to write instead.
const WORDS: &[(&str, &str)] = &[
    ("whoever", "name the subject: the caller, the owner, the client"),
    ("anew", "again, or the verb with re-: rebuild, regenerate, restart"),
    ("begun", "started, or pre-started"),
    ("is told", "gets, learns, is notified"),
    ("are told", "get, learn, are notified"),
    ("so many", "the number, or the limit"),
    ("is none", "is not a, or does not exist"),
    ("are none", "do not exist"),
];

/// The pages that list them.
const ABOUT_WORDS: &[&str] = &["CONTRIBUTING.md", "xtask/src/tidy/words.rs"];

pub(crate) fn check(file: &SourceFile) -> Vec<Finding> {
    if ABOUT_WORDS.contains(&file.path.as_str()) {
        return Vec::new();
    }
    let prose = match file.path.rsplit('.').next() {
        Some("rs") => rust_prose(file),
        Some("md") => without_code_spans(&file.text),
        Some(_) | None => return Vec::new(),
    };
    let lines = prose.lines().map(str::to_lowercase).enumerate();
    let found = lines.flat_map(|(line_idx, line)| {
        let words = WORDS.iter().filter(move |(word, _)| has_word(&line, word));
        words.map(move |(word, instead)| (line_idx + 1, word, instead))
    });
    found
        .map(|(line, word, instead)| {
            let message = format!("`{word}`: write {instead}");
            Finding { rule: RULE, path: file.path.clone(), line, message }
        })
        .collect()
}

/// The comments and literals of a source: what is neither is blank. Names follow other rules.
fn rust_prose(file: &SourceFile) -> String {
    let (text, code) = (file.text.chars(), file.views.code.chars());
    let prose = |(c, code): (char, char)| if c == code && c != '\n' { ' ' } else { c };
    text.zip(code).map(prose).collect()
}

/// A page without what it quotes: names of tests are not prose.
fn without_code_spans(text: &str) -> String {
    let mut is_code = false;
    let visible = |c: char| {
        if c == '`' {
            is_code = !is_code;
        } else if c == '\n' {
            is_code = false;
        }
        if is_code { ' ' } else { c }
    };
    text.chars().map(visible).collect()
}

fn has_word(line: &str, word: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(word).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + word.len()..]);
        !is_part(before.chars().next_back()) && !is_part(after.chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&SourceFile::new(path, text)).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_word_is_found_in_prose_and_not_in_names() {
        let path = "crates/x/src/a.rs";
        assert_eq!(lines(path, "//! For whoever calls.\n"), [1]);
        assert_eq!(lines(path, "let anew = 1;\nlet text = \"build it Anew\";\n"), [2]);
        assert!(lines(path, "fn is_begun_anew() {}\n").is_empty());
        assert_eq!(lines("docs/a.md", "He is told.\n`is told` is a name.\n"), [1]);
        assert!(lines("docs/a.md", "There are so manyfold ways.\n").is_empty());
        assert!(lines("a.toml", "# so many\n").is_empty());
    }
}
