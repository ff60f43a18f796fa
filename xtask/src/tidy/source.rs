//! The text files of the workspace.

use std::fs;
use std::path::Path;

use anyhow::Context;

use super::lexer::{self, Views};

/// Directories without sources of ours.
const SKIPPED_DIRECTORIES: &[&str] = &[
    ".git",
    "target",
    "node_modules",
    ".venv",
    "__pycache__",
    ".ruff_cache",
    "proptest-regressions",
];

/// Extensions of files that people write.
const TEXT_ENDINGS: &[&str] =
    &["rs", "toml", "md", "py", "sh", "txt", "json", "yml", "yaml", "lock", "html", "js", "css"];

/// All text files of the workspace, ordered by path.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) files: Vec<SourceFile>,
}

/// One text file.
#[derive(Debug)]
pub(crate) struct SourceFile {
    /// Relative to the workspace root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
    /// The views of a Rust source; empty for other files.
    pub(crate) views: Views,
}

impl Tree {
    pub(crate) fn read(root: &Path) -> anyhow::Result<Self> {
        let mut files = Vec::new();
        read_directory(root, root, &mut files)?;
        files.sort_by(|left, right| left.path.cmp(&right.path));
        Ok(Self { files })
    }
}

impl SourceFile {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let is_rust = Path::new(path).extension().is_some_and(|ending| ending == "rs");
        let views = if is_rust { lexer::split(text) } else { Views::default() };
        Self { path: path.to_owned(), text: text.to_owned(), views }
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }
}

fn read_directory(
    root: &Path,
    directory: &Path,
    files: &mut Vec<SourceFile>,
) -> anyhow::Result<()> {
    let shown = directory.display();
    for entry in fs::read_dir(directory).with_context(|| format!("cannot list `{shown}`"))? {
        let entry = entry.with_context(|| format!("cannot list `{shown}`"))?;
        let (path, name) = (entry.path(), entry.file_name());
        let kind =
            entry.file_type().with_context(|| format!("cannot examine `{}`", path.display()))?;
        if kind.is_dir() && !SKIPPED_DIRECTORIES.iter().any(|skipped| name == *skipped) {
            read_directory(root, &path, files)?;
        } else if kind.is_file() && is_text(&path) {
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read `{}` as text", path.display()))?;
            let relative = path.strip_prefix(root).unwrap_or(&path);
            files.push(SourceFile::new(&relative.to_string_lossy(), &text));
        }
    }
    Ok(())
}

fn is_text(path: &Path) -> bool {
    match path.extension() {
        Some(ending) => TEXT_ENDINGS.iter().any(|known| ending == *known),
        None => path.parent().and_then(Path::file_name).is_some_and(|parent| parent == ".ci"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_has_sources_and_not_what_the_compiler_made() {
        let root = tempfile::tempdir().unwrap();
        for path in ["a/b.rs", ".ci/run", "target/c.rs", "d.png"] {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        let tree = Tree::read(root.path()).unwrap();
        let paths: Vec<_> = tree.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, [".ci/run", "a/b.rs"]);
    }
}
