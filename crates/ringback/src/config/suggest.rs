//! The known key that is nearest to one that is not known.

use super::section::Key;
use super::{Config, full_name};

/// The nearest key, if few enough letters differ that it was probably meant.
pub(super) fn nearest_key(section: &str, key: &str) -> Option<Key> {
    nearest(&full_name(section, key), Config::keys(), Key::full_name)
}

/// The nearest section.
pub(super) fn nearest_section(section: &str) -> Option<&'static str> {
    nearest(section, Config::keys(), |key| key.section.to_owned()).map(|key| key.section)
}

fn nearest<T>(name: &str, known: Vec<T>, name_of: impl Fn(&T) -> String) -> Option<T> {
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
    use super::{distance, nearest_key, nearest_section};

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
    fn a_near_name_is_suggested_and_a_far_one_is_not() {
        let name = |section, key| nearest_key(section, key).map(|key| key.full_name());
        assert_eq!(name("http", "lisen").as_deref(), Some("http.listen"));
        assert_eq!(name("htp", "listen").as_deref(), Some("http.listen"));
        assert_eq!(name("", "datadir").as_deref(), Some("data_dir"));
        assert_eq!(name("zebra", "crossing"), None);
        assert_eq!((nearest_section("htp"), nearest_section("zebra")), (Some("http"), None));
    }
}
