//! Arguments and results for people: one row each, or in full where a person decides on them.

use serde_json::Value;

use crate::screen::{Screen, cut, one_line};

/// The longest name of a tool in a row: some agents describe the whole call in it.
const NAME_COLUMNS_MAX: usize = 60;

/// Returns the arguments of a call in one row, or an empty text.
pub(super) fn line(arguments: &str) -> String {
    match arguments.trim() {
        "" | "null" | "{}" | "[]" => String::new(),
        arguments => one_row(arguments),
    }
}

/// Returns what a result says: its texts if it has any, else its JSON.
pub(super) fn gist(result: &str) -> String {
    let Ok(value) = serde_json::from_str::<Value>(result) else { return result.to_owned() };
    match &value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Object(fields) if fields.is_empty() => String::new(),
        Value::Object(fields) => match fields.get("content").and_then(texts) {
            Some(text) => text,
            None => result.to_owned(),
        },
        Value::Array(_) => texts(&value).unwrap_or_else(|| result.to_owned()),
        Value::Bool(_) | Value::Number(_) => result.to_owned(),
    }
}

/// Joins the texts of content blocks; `None` if these are no blocks.
fn texts(blocks: &Value) -> Option<String> {
    let text = |block: &Value| {
        let inner = block.get("content").unwrap_or(block);
        Some(inner.get("text")?.as_str()?.to_owned())
    };
    let texts: Vec<_> = blocks.as_array()?.iter().map(text).collect::<Option<_>>()?;
    Some(texts.join("\n"))
}

/// Returns a text as one row: its lines follow each other.
pub(super) fn one_row(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    one_line(&lines.join(" "))
}

/// Returns the name of a tool, or the start of what an agent calls it.
pub(super) fn short_name(tool: &str) -> String {
    cut(&one_row(tool), NAME_COLUMNS_MAX)
}

/// Cuts a line that may have styles to the width of the terminal.
pub(super) fn cut_styled(screen: Screen, line: &str) -> String {
    match screen.width() {
        Some(width) => console::truncate_str(line, width, "…").into_owned(),
        None => line.to_owned(),
    }
}

/// Formats the arguments that a question is about: a change as a diff, everything else as its fields.
pub(super) fn in_full(screen: Screen, arguments: Option<&str>) -> Vec<String> {
    let Some(arguments) = arguments else { return Vec::new() };
    match serde_json::from_str::<Value>(arguments) {
        Ok(Value::Object(fields)) => {
            fields.iter().map(|(name, value)| field(screen, name, value)).collect()
        }
        Ok(Value::Array(blocks)) => blocks.iter().map(|block| shown_block(screen, block)).collect(),
        Ok(Value::String(text)) => vec![indented(&screen.printable(&text))],
        Ok(Value::Null) => Vec::new(),
        Ok(Value::Bool(_) | Value::Number(_)) | Err(_) => {
            vec![indented(&screen.printable(arguments))]
        }
    }
}

fn field(screen: Screen, name: &str, value: &Value) -> String {
    let name = one_line(name);
    let text = match value {
        Value::String(text) if matches!(name.as_str(), "diff" | "patch") => {
            return indented(&screen.diff(text));
        }
        Value::String(text) => screen.printable(text.trim_end()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            screen.printable(&value.to_string())
        }
    };
    if text.contains('\n') {
        return indented(&format!("{name}:\n  {}", text.replace('\n', "\n  ")));
    }
    indented(&format!("{name}: {text}"))
}

/// Formats a content block of the Agent Client Protocol.
fn shown_block(screen: Screen, block: &Value) -> String {
    let text = |name: &str| block.get(name).and_then(Value::as_str);
    if let (Some("diff"), Some(path), Some(new)) = (text("type"), text("path"), text("newText")) {
        let old = text("oldText").unwrap_or_default();
        let mut diff = format!("--- {path}\n+++ {path}\n");
        let (gone, come) = changed_lines(old, new);
        for (sign, lines) in [('-', gone), ('+', come)] {
            for line in lines {
                diff.push(sign);
                diff.push_str(line);
                diff.push('\n');
            }
        }
        return indented(&screen.diff(&diff));
    }
    let shown = gist(&Value::Array(vec![block.clone()]).to_string());
    indented(&screen.printable(&shown))
}

/// Returns the lines in which two texts differ: without those that they start and end with.
fn changed_lines<'a>(old: &'a str, new: &'a str) -> (Vec<&'a str>, Vec<&'a str>) {
    let (mut old, mut new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
    let n_same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    old.drain(..n_same);
    new.drain(..n_same);
    let n_same = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    old.truncate(old.len() - n_same);
    new.truncate(new.len() - n_same);
    (old, new)
}

fn indented(text: &str) -> String {
    format!("    {}", text.replace('\n', "\n    "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_what_it_says() {
        for (result, text) in [
            ("null", ""),
            ("{}", ""),
            (r#""HELLO""#, "HELLO"),
            (r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#, "a\nb"),
            (r#"[{"type":"content","content":{"type":"text","text":"c"}}]"#, "c"),
            (r#"{"n":1}"#, r#"{"n":1}"#),
            (r#"{"n": [cut]"#, r#"{"n": [cut]"#),
        ] {
            assert_eq!(gist(result), text);
        }
        assert_eq!(one_row("a\n\n  b\u{1b}[2J\n"), "a b\\u{1b}[2J");
        assert_eq!(line("{}"), "");
    }

    #[test]
    fn a_question_shows_a_change_as_a_diff() {
        let screen = Screen::new(false);
        let blocks =
            r#"[{"type":"diff","path":"a.py","oldText":"x\none\ny","newText":"x\ntwo\ny"}]"#;
        let shown = in_full(screen, Some(blocks)).join("\n");
        assert_eq!(shown, "    --- a.py\n    +++ a.py\n    -one\n    +two");
        let shown = in_full(screen, Some(r#"{"command":"ls\nrm x","n":1,"diff":"-a\n+b\n"}"#));
        assert_eq!(shown.concat(), "    command:\n      ls\n      rm x    -a\n    +b    n: 1");
        assert!(in_full(screen, None).is_empty());
    }
}
