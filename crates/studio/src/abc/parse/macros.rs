//! Macros (`m:`): abbreviations in music.

use super::LimitError;

/// The longest line after macro expansion.
pub(super) const CHARS_MAX: usize = 64 * 1024;
/// More macros than this are ignored.
const MACROS_MAX: usize = 100;

/// `m: target = replacement`.
#[derive(Debug, Clone)]
struct Macro {
    target: Vec<char>,
    replacement: Vec<char>,
    /// Whether `n` in the target stands for any note.
    transposing: bool,
}

/// The characters of a line, and the column of each before macros were expanded.
pub(super) type ExpandedLine = (Vec<char>, Vec<u32>);

/// The defined macros.
#[derive(Debug, Clone, Default)]
pub(super) struct Macros(Vec<Macro>);

impl Macros {
    /// Reads the text after `m:`; `None` if it is not a macro.
    pub(super) fn define(&mut self, text: &str) -> Option<()> {
        let (target, replacement) = text.split_once('=')?;
        let target: Vec<char> = target.trim().chars().collect();
        if target.is_empty() || target.len() > 31 {
            return None;
        }
        let transposing = target.contains(&'n');
        let replacement = replacement.trim().chars().collect();
        self.0.retain(|known| known.target != target);
        if self.0.len() < MACROS_MAX {
            self.0.push(Macro { target, replacement, transposing });
        }
        // Longer targets first, so that `~G3` is not read as `~G`.
        self.0.sort_by_key(|known| std::cmp::Reverse(known.target.len()));
        Some(())
    }

    /// Expands macros, with the original column of each character; `None` if there are no macros.
    /// The expansion is not expanded again, so this ends.
    pub(super) fn expand(
        &self,
        line: u32,
        chars: &[char],
    ) -> Result<Option<ExpandedLine>, LimitError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let (mut out, mut columns) = (Vec::new(), Vec::new());
        let mut pos = 0;
        while pos < chars.len() {
            let column = pos as u32 + 1;
            let found = self.0.iter().find_map(|known| known.apply(&chars[pos..]));
            let (piece, n_taken) = found.unwrap_or_else(|| (vec![chars[pos]], 1));
            columns.extend(std::iter::repeat_n(column, piece.len()));
            out.extend(piece);
            pos += n_taken;
            if out.len() > CHARS_MAX {
                return Err(LimitError::Macros { line });
            }
        }
        Ok(Some((out, columns)))
    }
}

impl Macro {
    /// Returns the expansion if the text starts with its target, and the length it replaces.
    fn apply(&self, text: &[char]) -> Option<(Vec<char>, usize)> {
        if !self.transposing {
            let fits = text.starts_with(&self.target);
            return fits.then(|| (self.replacement.clone(), self.target.len()));
        }
        let mut step = None;
        let mut pos = 0;
        for wanted in &self.target {
            if *wanted == 'n' {
                let (found, n_taken) = read_step(&text[pos..])?;
                step = Some(found);
                pos += n_taken;
            } else {
                if text.get(pos) != Some(wanted) {
                    return None;
                }
                pos += 1;
            }
        }
        let step = step?;
        let write = |c: &char| match c {
            'h'..='z' => write_step(step + *c as i32 - 'n' as i32),
            _ => vec![*c],
        };
        Some((self.replacement.iter().flat_map(write).collect(), pos))
    }
}

/// Reads a note without accidental as a number of steps, 0 for `C`.
fn read_step(text: &[char]) -> Option<(i32, usize)> {
    let letter = *text.first()?;
    let index = "CDEFGAB".find(letter.to_ascii_uppercase())? as i32;
    let mut step = index + if letter.is_ascii_lowercase() { 7 } else { 0 };
    let mut n = 1;
    while let Some(mark) = text.get(n) {
        match mark {
            '\'' => step += 7,
            ',' => step -= 7,
            _ => break,
        }
        n += 1;
    }
    Some((step, n))
}

fn write_step(step: i32) -> Vec<char> {
    let letter = b"CDEFGAB"[step.rem_euclid(7) as usize] as char;
    let octave = step.div_euclid(7);
    let mut out = vec![if octave > 0 { letter.to_ascii_lowercase() } else { letter }];
    let mark = if octave > 0 { '\'' } else { ',' };
    let n_marks = if octave > 0 { octave - 1 } else { -octave };
    out.extend(std::iter::repeat_n(mark, n_marks as usize));
    out
}
