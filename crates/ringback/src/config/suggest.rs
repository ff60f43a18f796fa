//! Finds the known key nearest to an unknown one.

use super::section::Key;
use super::{Config, full_name};
use crate::nearest::nearest_by;

/// Returns the nearest key, if few enough letters differ that it was probably meant.
pub(super) fn nearest_key(section: &str, key: &str) -> Option<Key> {
    nearest_by(&full_name(section, key), Config::keys(), Key::full_name)
}

/// Returns the nearest section.
pub(super) fn nearest_section(section: &str) -> Option<&'static str> {
    nearest_by(section, Config::keys(), |key| key.section.to_owned()).map(|key| key.section)
}

#[cfg(test)]
mod tests {
    use super::{nearest_key, nearest_section};

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
