//! Limits on files and functions, so that a reader can keep one in mind.

use super::Finding;
use super::source::SourceFile;

const RULE_FILE: &str = "file-length";
const RULE_FUNCTION: &str = "function-length";

/// Twice the length at which a file should be reconsidered.
const FILE_LINES_MAX: usize = 800;

/// About one screen; the same number as in `clippy.toml`.
const FUNCTION_LINES_MAX: usize = 70;

pub(crate) fn check(file: &SourceFile) -> Vec<Finding> {
    if !file.is_rust() {
        return Vec::new();
    }
    let mut findings: Vec<_> = long_functions(&file.views.code)
        .map(|function| {
            let Function { name, line, n_lines } = function;
            let message =
                format!("`{name}` has {n_lines} lines, the limit is {FUNCTION_LINES_MAX}");
            Finding { rule: RULE_FUNCTION, path: file.path.clone(), line, message }
        })
        .collect();
    let n_lines = file.text.lines().count();
    if n_lines > FILE_LINES_MAX {
        let message = format!("{n_lines} lines, the limit is {FILE_LINES_MAX}: split the file");
        findings.push(Finding { rule: RULE_FILE, path: file.path.clone(), line: 0, message });
    }
    findings
}

struct Function {
    name: String,
    line: usize,
    /// Lines between the braces, without blank ones and comments.
    n_lines: usize,
}

fn long_functions(code: &str) -> impl Iterator<Item = Function> {
    starts(code)
        .filter_map(|start| measure(code, start))
        .filter(|function| function.n_lines > FUNCTION_LINES_MAX)
}

/// Returns where the word `fn` is followed by a name.
fn starts(code: &str) -> impl Iterator<Item = usize> {
    code.match_indices("fn ").map(|(start, _)| start).filter(|start| {
        code[..*start].chars().next_back().is_none_or(|c| !c.is_alphanumeric() && c != '_')
    })
}

/// Returns the function at `start`; `None` if it has no body.
fn measure(code: &str, start: usize) -> Option<Function> {
    let rest = &code[start + "fn ".len()..];
    let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    let open = body_start(rest)?;
    let end = closing_brace(&rest[open..])?;
    let body = &rest[open + 1..open + end];
    let n_lines = body.lines().filter(|line| !line.trim().is_empty()).count();
    let line = code[..start].matches('\n').count() + 1;
    Some(Function { name, line, n_lines })
}

/// Returns the opening brace after a signature; a semicolon ends a declaration, except inside
/// brackets.
fn body_start(signature: &str) -> Option<usize> {
    let mut depth = 0_i32;
    for (at, c) in signature.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            '{' if depth == 0 => return Some(at),
            ';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// Returns the brace that closes the one at the start of `block`.
fn closing_brace(block: &str) -> Option<usize> {
    let mut depth = 0_i32;
    block.char_indices().find_map(|(at, c)| {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(source: &str) -> Vec<(&'static str, usize)> {
        let file = SourceFile::new("crates/x/src/a.rs", source);
        check(&file).iter().map(|finding| (finding.rule, finding.line)).collect()
    }

    fn function(n_lines: usize) -> String {
        format!(
            "//! Doc.\n\nfn long<'a>(\n    a: &'a [u8; 4],\n) {{\n{}}}\n",
            "    a();\n".repeat(n_lines)
        )
    }

    #[test]
    fn a_function_over_the_limit_is_found_at_its_first_line() {
        assert_eq!(broken(&function(FUNCTION_LINES_MAX)), []);
        assert_eq!(broken(&function(FUNCTION_LINES_MAX + 1)), [(RULE_FUNCTION, 3)]);
    }

    #[test]
    fn comments_and_braces_in_literals_do_not_count() {
        let body = "    // why\n\n    a(\"}\");\n".repeat(FUNCTION_LINES_MAX);
        assert_eq!(broken(&format!("fn long() {{\n{body}}}\n")), []);
    }

    #[test]
    fn a_declaration_without_a_body_is_no_function() {
        let body = "    a();\n".repeat(FUNCTION_LINES_MAX + 1);
        let source = format!("trait A {{\n    fn short();\n}}\nstatic B: C = C {{\n{body}}};\n");
        assert_eq!(broken(&source), []);
    }

    #[test]
    fn a_file_over_the_limit_is_found() {
        assert_eq!(broken(&"a();\n".repeat(FILE_LINES_MAX)), []);
        assert_eq!(broken(&"a();\n".repeat(FILE_LINES_MAX + 1)), [(RULE_FILE, 0)]);
    }
}
