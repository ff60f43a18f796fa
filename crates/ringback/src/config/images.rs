//! `[sandbox.images.NAME]`: images built here, for Docker.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use ringback_broker::{ImageName, ImageSource};
use ringback_sandbox::BuildNetwork;

use super::section::Raw;
use super::table::{self, Entry};
use super::value::{Value, mismatch, text};

const NONE: &str = "none";
const HOST: &str = "host";
const EXPECTED: &str = "a table of images such as `{ rust = { dir = \"/path/with/Dockerfile\" } }`";

/// Images by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Images(pub BTreeMap<ImageName, ImageSource>);

impl Value for Images {
    const KIND: &'static str = "table";

    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        let known = ["dir", "network"];
        let images = table::named(raw, EXPECTED, |raw| table::entry(raw, EXPECTED, &known, image))?;
        let checked = images.into_iter().map(|(name, image)| {
            let name = ImageName::new(&name).map_err(|error| error.to_string())?;
            Ok((name, image))
        });
        checked.collect::<Result<_, String>>().map(Self)
    }

    fn show(&self) -> Option<toml::Value> {
        table::shown_by_name(&self.0, |image| {
            table::shown([("dir", image.dir.show()), ("network", image.network.show())])
        })
    }
}

impl Value for BuildNetwork {
    const KIND: &'static str = "`none` or `host`";

    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        match text(raw) {
            Some(NONE) => Ok(Self::None),
            Some(HOST) => Ok(Self::Host),
            Some(_) | None => Err(mismatch(Self::KIND, raw)),
        }
    }

    fn show(&self) -> Option<toml::Value> {
        Some(match self {
            Self::None => NONE.into(),
            Self::Host => HOST.into(),
        })
    }
}

fn image(entry: &Entry<'_>) -> Result<ImageSource, String> {
    let dir: Option<Utf8PathBuf> = entry.get("dir")?;
    Ok(ImageSource {
        dir: dir.ok_or("`dir` is missing: the directory with its `Dockerfile`")?,
        network: entry.get("network")?.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: a build has no network unless the configuration allows it.
    #[test]
    fn an_image_is_read_whole_and_its_build_reaches_nothing_by_default() {
        let text =
            r#"{ rust = { dir = "/srv/rust" }, web = { dir = "/srv/web", network = "host" } }"#;
        let images = Images::parse(Raw::Text(text)).unwrap();
        let read: Vec<_> = images
            .0
            .iter()
            .map(|(name, image)| (name.as_str(), image.dir.as_str(), image.network))
            .collect();
        let expected =
            [("rust", "/srv/rust", BuildNetwork::None), ("web", "/srv/web", BuildNetwork::Host)];
        assert_eq!(read, expected);
        let shown = images.show().unwrap().to_string();
        assert_eq!(Images::parse(Raw::Text(&shown)).unwrap(), images);
        assert_eq!(Images::default().show(), None);
    }

    #[test]
    fn what_is_wrong_with_an_image_is_said() {
        for (text, expected) in [
            ("3", "a table of images such as"),
            ("{ rust = '/srv' }", "`rust`: expected a table"),
            ("{ rust = {} }", "`dir` is missing"),
            ("{ rust = { dir = 'relative' } }", "`rust`: `dir`: "),
            ("{ rust = { dir = '/a', network = 'full' } }", "`none` or `host`"),
            ("{ rust = { dir = '/a', tag = 'x' } }", "unknown key `tag`"),
            ("{ 'Rust/x' = { dir = '/a' } }", "`Rust/x`"),
        ] {
            let error = Images::parse(Raw::Text(text)).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
