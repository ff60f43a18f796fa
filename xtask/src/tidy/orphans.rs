//! Every Rust file belongs to a crate: a file that no module names is never compiled, and its tests
//! never run.

use super::Finding;
use super::source::{SourceFile, Tree};

const RULE: &str = "orphans";

/// Files that Cargo finds by their name.
const ROOTS: &[&str] = &["lib.rs", "main.rs", "build.rs"];

/// Directories in which Cargo takes every file for a crate.
const ROOT_DIRECTORIES: &[&str] = &["tests", "benches", "examples", "bin"];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let sources: Vec<&SourceFile> = tree.files.iter().filter(|file| file.is_rust()).collect();
    let orphans = sources.iter().filter(|file| !is_root(&file.path) && !is_named(file, &sources));
    orphans
        .map(|file| Finding {
            rule: RULE,
            path: file.path.clone(),
            line: 0,
            message: "no module names this file, so it is never compiled".to_owned(),
        })
        .collect()
}

fn is_root(path: &str) -> bool {
    let (directory, name) = split(path);
    let parent = split(directory).1;
    // A module of a library may be called `tests` too.
    let is_of_library = path.contains("/src/") && parent != "bin";
    ROOTS.contains(&name) || (ROOT_DIRECTORIES.contains(&parent) && !is_of_library)
}

/// Returns whether the module above a file names it, or a path in the same crate does.
fn is_named(file: &SourceFile, sources: &[&SourceFile]) -> bool {
    let (directory, name) = split(&file.path);
    let (directory, module) = match name.strip_suffix(".rs") {
        Some("mod") => split(directory),
        Some(module) => (directory, module),
        None => return true,
    };
    let is_above = |path: &str| {
        let (at, name) = split(path);
        path.strip_suffix(".rs") == Some(directory)
            || (at == directory && (name == "mod.rs" || is_root(path)))
    };
    let declarations = [format!("mod {module};"), format!("mod {module} {{")];
    let by_path = format!("/{name}\"]");
    let by_own_path = format!("#[path = \"{name}\"]");
    sources.iter().any(|other| {
        let names = || declarations.iter().any(|mod_line| other.views.code.contains(mod_line));
        (is_above(&other.path) && names())
            || (is_near(&other.path, directory)
                && (other.text.contains(&by_own_path) || other.text.contains(&by_path)))
    })
}

/// Returns whether a file lies above a directory, in the same crate.
fn is_near(path: &str, directory: &str) -> bool {
    let (at, _) = split(path);
    directory.starts_with(at) && at.contains('/')
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orphans(files: &[(&str, &str)]) -> Vec<String> {
        let files = files.iter().map(|(path, text)| SourceFile::new(path, text)).collect();
        check(&Tree { files }).into_iter().map(|finding| finding.path).collect()
    }

    #[test]
    fn a_file_that_no_module_names_is_found() {
        let files = [
            ("crates/a/src/lib.rs", "mod b;\n// mod lost;"),
            ("crates/a/src/b.rs", "mod c;\n#[cfg(test)]\nmod tests;"),
            ("crates/a/src/b/c.rs", ""),
            ("crates/a/src/b/tests.rs", ""),
            ("crates/a/src/lost.rs", ""),
            ("crates/a/src/d/mod.rs", ""),
        ];
        assert_eq!(orphans(&files), ["crates/a/src/lost.rs", "crates/a/src/d/mod.rs"]);
    }

    #[test]
    fn tests_are_crates_and_have_modules() {
        let files = [
            ("crates/a/tests/one.rs", "mod support;\n#[path = \"one/part.rs\"]\nmod part;"),
            ("crates/a/tests/one/part.rs", ""),
            ("crates/a/tests/support/mod.rs", ""),
            ("crates/a/tests/two/main.rs", "mod in_it;"),
            ("crates/a/tests/two/in_it.rs", ""),
            ("crates/a/tests/two/forgotten.rs", ""),
        ];
        assert_eq!(orphans(&files), ["crates/a/tests/two/forgotten.rs"]);
    }
}
