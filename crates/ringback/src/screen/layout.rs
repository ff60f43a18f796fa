//! Tables, pairs and lines that fit the width of a terminal.

use console::measure_text_width;

/// Between two columns.
const GAP: usize = 2;
/// The narrowest that a column becomes: enough to tell two values apart.
const COLUMN_MIN: usize = 6;
/// The narrowest first column: the start of an id that names no other.
const FIRST_COLUMN_MIN: usize = 16;
/// The narrowest column of text in which words are wrapped.
const WRAP_MIN: usize = 20;

/// Formats rows as columns without borders, cut where they are wider than `width`.
pub(super) fn table(rows: &[Vec<String>], width: Option<usize>) -> Vec<String> {
    let n_columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let widest = |column: usize| {
        let cells = rows.iter().filter_map(|row: &Vec<String>| row.get(column));
        cells.map(|cell| measure_text_width(cell)).max().unwrap_or_default()
    };
    let mut widths: Vec<usize> = (0..n_columns).map(widest).collect();
    if let Some(width) = width {
        shrink(&mut widths, width);
    }
    rows.iter().map(|row| line(row, &widths)).collect()
}

/// Makes the widest columns narrower until all fit.
fn shrink(widths: &mut [usize], width: usize) {
    let gaps = GAP * widths.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > width {
        let min = |column| if column == 0 { FIRST_COLUMN_MIN } else { COLUMN_MIN };
        let wide = widths.iter_mut().enumerate().filter(|(column, width)| **width > min(*column));
        let Some((_, widest)) = wide.max_by_key(|(_, width)| **width) else { return };
        *widest -= 1;
    }
}

fn line(row: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (cell, width) in row.iter().zip(widths) {
        let cell = cut(cell, *width);
        let padding = (width + GAP).saturating_sub(measure_text_width(&cell));
        line.push_str(&cell);
        line.extend(std::iter::repeat_n(' ', padding));
    }
    line.truncate(line.trim_end().len());
    line
}

/// Cuts a line to a number of columns; a mark shows that something is missing.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if measure_text_width(text) <= width {
        return text.to_owned();
    }
    let mut shown = String::new();
    let mut left = width.saturating_sub(1);
    for c in text.chars() {
        let columns = measure_text_width(c.encode_utf8(&mut [0; 4]));
        if columns > left {
            break;
        }
        left -= columns;
        shown.push(c);
    }
    shown.truncate(shown.trim_end().len());
    shown.push('…');
    shown
}

/// Breaks a value between words; a longer word stays whole, so that it can be copied.
pub(super) fn wrapped(value: &str, indent: usize, width: Option<usize>) -> String {
    let Some(room) = width.and_then(|width| width.checked_sub(indent)) else {
        return value.to_owned();
    };
    if room < WRAP_MIN || value.lines().all(|line| measure_text_width(line) <= room) {
        return value.to_owned();
    }
    let mut lines = Vec::new();
    for line in value.lines() {
        let mut current = String::new();
        for word in line.split(' ') {
            let taken = measure_text_width(&current);
            if !current.is_empty() && taken + 1 + measure_text_width(word) > room {
                lines.push(std::mem::take(&mut current));
            } else if !current.is_empty() {
                current.push(' ');
            }
            current.push_str(word);
        }
        lines.push(current);
    }
    lines.join(&format!("\n{}", " ".repeat(indent)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[&[&str]]) -> Vec<Vec<String>> {
        rows.iter().map(|row| row.iter().map(|&cell| cell.to_owned()).collect()).collect()
    }

    #[test]
    fn a_table_fits_a_narrow_window() {
        let id = format!("gogol_{}", "0123456789abcdef".repeat(2));
        let wide = rows(&[
            &["SESSION", "AGENT", "STATUS", "MESSAGE"],
            &[&id, "goose", "running", "fix the failing test and then tell me about it"],
        ]);
        for width in [60, 42] {
            let lines = table(&wide, Some(width));
            assert!(lines.iter().all(|line| measure_text_width(line) <= width), "{lines:#?}");
            assert!(lines[1].contains("goose") && lines[1].contains("gogol_"), "{lines:#?}");
        }
        assert!(table(&wide, None)[1].contains(&id), "nothing is cut where there is no window");
    }

    #[test]
    fn wide_letters_count_twice() {
        assert_eq!(cut("日本語のテスト", 7), "日本語…");
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("a bc", 3), "a…");
    }

    #[test]
    fn a_value_is_wrapped_between_words() {
        let text = "one two three four five six seven";
        assert_eq!(wrapped(text, 4, Some(26)), "one two three four\n    five six seven");
        let path = "/a/very/long/path/that/has/no/spaces/at/all";
        assert_eq!(wrapped(path, 4, Some(30)), path);
        assert_eq!(wrapped(text, 4, None), text);
    }
}
