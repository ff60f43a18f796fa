//! The known name that is nearest to one that is not known.

/// The nearest name, if few enough letters differ that it was probably meant.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest_by(name, known, |known| (*known).to_owned())
}

/// The thing whose name is nearest, under the same rule.
pub(crate) fn nearest_by<T>(
    name: &str,
    known: impl IntoIterator<Item = T>,
    name_of: impl Fn(&T) -> String,
) -> Option<T> {
    let name = name.to_lowercase();
    let allowed = (name.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|known| (distance(&name, &name_of(&known)), known))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// Letters to insert, remove or replace to get from one word to the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn distances_count_single_letters() {
        for (from, to, expected) in [
            ("", "", 0),
            ("a", "", 1),
            ("listen", "lisen", 1),
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
}
