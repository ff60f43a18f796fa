//! A type has few methods, over all files: one that has many is several types in one name.

use std::collections::BTreeMap;

use super::Finding;
use super::source::{SourceFile, Tree};

const RULE: &str = "methods";

/// A wide type of a calm codebase has about this many.
const METHODS_MAX: usize = 40;

/// The tests at the end of a file.
const TESTS: &str = "#[cfg(test)]\nmod tests";

/// Where a type has methods, and how many.
#[derive(Debug, Default)]
struct Methods {
    n_methods: usize,
    files: Vec<String>,
}

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut types: BTreeMap<(String, String), Methods> = BTreeMap::new();
    for file in tree.files.iter().filter(|file| file.is_rust()) {
        let Some(package) = package(file) else { continue };
        for (name, n_methods) in impls(&file.views.code) {
            let methods = types.entry((package.to_owned(), name)).or_default();
            methods.n_methods += n_methods;
            methods.files.push(file.path.clone());
        }
    }
    let wide = types.into_iter().filter(|(_, methods)| methods.n_methods > METHODS_MAX);
    wide.map(|((_, name), Methods { n_methods, mut files })| {
        files.dedup();
        let message = format!(
            "`{name}` has {n_methods} methods in {} files, the limit is {METHODS_MAX}",
            files.len()
        );
        Finding { rule: RULE, path: files.swap_remove(0), line: 0, message }
    })
    .collect()
}

/// The package whose program a file is part of.
fn package(file: &SourceFile) -> Option<&str> {
    let mut parts = file.path.split('/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some("crates"), Some(package), Some("src")) => Some(package),
        (Some("xtask"), Some("src"), _) => Some("xtask"),
        (Some(_) | None, _, _) => None,
    }
}

/// The types that have methods of their own in this code, and how many. What a trait asks for does
/// not count.
fn impls(code: &str) -> Vec<(String, usize)> {
    let code = code.split(TESTS).next().unwrap_or_default();
    let starts = code.match_indices("\nimpl").map(|(at, _)| &code[at + 1..]);
    let first = code.starts_with("impl").then_some(code);
    starts.chain(first).filter_map(inherent).collect()
}

fn inherent(block: &str) -> Option<(String, usize)> {
    let (head, _) = block.split_once('{')?;
    let body = &block[head.len()..];
    let body = &body[..body.find("\n}").unwrap_or(body.len())];
    let head = without_generics(head.strip_prefix("impl")?);
    if head.split_whitespace().any(|word| word == "for") {
        return None;
    }
    let name: String =
        head.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    let is_method = |line: &&str| {
        let words = line.strip_prefix("    ").filter(|line| !line.starts_with(' '));
        words.is_some_and(|line| line.split_whitespace().any(|word| word == "fn"))
    };
    (!name.is_empty()).then(|| (name, body.lines().filter(is_method).count()))
}

/// What follows the generic parameters, if there are any.
fn without_generics(head: &str) -> &str {
    if !head.starts_with('<') {
        return head;
    }
    let mut depth = 0_i32;
    for (at, c) in head.char_indices() {
        match c {
            '<' => depth += 1,
            '>' if !head[..at].ends_with('-') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &head[at + 1..];
        }
    }
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, String)]) -> Tree {
        let files = files.iter().map(|(path, text)| SourceFile::new(path, text)).collect();
        Tree { files }
    }

    fn block(head: &str, n_methods: usize) -> String {
        format!("{head} {{\n{}}}\n", "    pub(crate) async fn a(&self) {}\n".repeat(n_methods))
    }

    #[test]
    fn methods_of_a_type_are_counted_over_all_files() {
        let half = block("impl Wide", METHODS_MAX / 2);
        let more = block("impl<'a, L: Links<Out = u8>> Wide<'a, L>", METHODS_MAX / 2);
        let paths = ["crates/x/src/a.rs", "crates/x/src/b.rs", "crates/x/src/c.rs"];
        let fits = [(paths[0], half.clone()), (paths[1], more.clone())];
        assert!(check(&tree(&fits)).is_empty());
        let wide = [(paths[0], half), (paths[1], more), (paths[2], block("impl Wide", 1))];
        let found = check(&tree(&wide));
        assert_eq!(found.len(), 1);
        assert!(found[0].message.contains("41 methods in 3 files"), "{}", found[0].message);
    }

    #[test]
    fn traits_tests_and_types_of_other_crates_do_not_count() {
        let full = block("impl Wide", METHODS_MAX);
        let files = [
            ("crates/x/src/a.rs", full.clone()),
            ("crates/x/src/b.rs", block("impl<T> Trait<T> for Wide", 9)),
            ("crates/x/src/c.rs", format!("{TESTS} {{\n}}\n{}", block("impl Wide", 9))),
            ("crates/y/src/a.rs", full.clone()),
            ("crates/x/tests/a.rs", full),
        ];
        assert!(check(&tree(&files)).is_empty());
    }
}
