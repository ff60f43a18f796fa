//! Finds the known name nearest to an unknown one.

/// A longer name is not a typo. Names come from callers too, and comparing takes time and memory by
/// their length.
const NAME_BYTES_MAX: usize = 128;

/// Returns the nearest name, if few enough letters differ that it was probably meant.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest_by(name, known, |known| (*known).to_owned())
}

/// Returns the item with the nearest name, under the same rule.
pub(crate) fn nearest_by<T>(
    name: &str,
    known: impl IntoIterator<Item = T>,
    name_of: impl Fn(&T) -> String,
) -> Option<T> {
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    let name = name.to_lowercase();
    let allowed = (name.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|known| (distance(&name, &name_of(&known)), known))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// Counts the letters to insert, remove, replace or swap with their neighbour to get from one word
/// to the other.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=to.len()).collect()];
    for (i, a) in from.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in to.iter().enumerate() {
            let replaced = rows[i][j] + usize::from(a != b);
            let mut best = replaced.min(row[j] + 1).min(rows[i][j + 1] + 1);
            if i > 0 && j > 0 && *a == to[j - 1] && from[i - 1] == *b {
                best = best.min(rows[i - 1][j - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::{NAME_BYTES_MAX, distance, nearest};

    #[test]
    fn distances_count_single_letters() {
        for (from, to, expected) in [
            ("", "", 0),
            ("a", "", 1),
            ("listen", "lisen", 1),
            ("ping", "pign", 1),
            ("host", "hosts", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(
                (distance(from, to), distance(to, from)),
                (expected, expected),
                "{from} {to}"
            );
        }
    }

    #[test]
    fn a_far_name_is_not_suggested() {
        assert_eq!(nearest("pin", ["ping", "tools"]), Some("ping"));
        assert_eq!(nearest("zebra", ["ping", "tools"]), None);
    }

    #[test]
    fn a_name_of_any_length_costs_nothing() {
        let known = "x".repeat(NAME_BYTES_MAX);
        assert_eq!(nearest(&known, [&*known]), Some(&*known));
        let long = "x".repeat(16 << 20);
        assert_eq!(nearest(&long, [&*long]), None);
    }
}
