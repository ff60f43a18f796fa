//! `[sandbox.images.NAME]`: images built here, for Docker.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ringback_broker::ImageName;
use ringback_sandbox::BuildNetwork;
use toml::de::DeValue;

use super::section::Raw;
use super::value::{Value, mismatch, text};

const NONE: &str = "none";
const HOST: &str = "host";
const EXPECTED: &str = "a table of images such as `{ rust = { dir = \"/path/with/Dockerfile\" } }`";

/// Images by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Images(pub BTreeMap<ImageName, ImageEntry>);

/// The source of one image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageEntry {
    /// The directory with its `Dockerfile`; the build can read all of it.
    pub dir: PathBuf,
    /// The network of its build.
    pub network: BuildNetwork,
}

impl Value for Images {
    const KIND: &'static str = "table";

    /// Text is parsed as an inline TOML table.
    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        let table = match raw {
            Raw::Toml(DeValue::Table(table)) => table,
            Raw::Toml(_) => return Err(format!("expected {EXPECTED}")),
            Raw::Text(text) => {
                let parsed = DeValue::parse(text).map_err(|_| format!("expected {EXPECTED}"))?;
                return Self::parse(Raw::Toml(parsed.get_ref()));
            }
        };
        let mut images = BTreeMap::new();
        for (name, value) in table {
            let name = name.get_ref().as_ref();
            let entry = entry(value.get_ref()).map_err(|reason| format!("`{name}`: {reason}"))?;
            let name = ImageName::new(name).map_err(|error| error.to_string())?;
            images.insert(name, entry);
        }
        Ok(Self(images))
    }

    fn show(&self) -> Option<toml::Value> {
        let shown = |(name, image): (&ImageName, &ImageEntry)| {
            let entries = [("dir", image.dir.show()), ("network", image.network.show())];
            let entries = entries.into_iter();
            let entry = entries.filter_map(|(key, value)| Some((key.to_owned(), value?)));
            (name.to_string(), toml::Value::Table(entry.collect()))
        };
        (!self.0.is_empty()).then(|| toml::Value::Table(self.0.iter().map(shown).collect()))
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

fn entry(value: &DeValue<'_>) -> Result<ImageEntry, String> {
    let DeValue::Table(table) = value else { return Err(format!("expected {EXPECTED}")) };
    let (mut dir, mut network) = (None, BuildNetwork::default());
    for (name, value) in table {
        let (name, raw) = (name.get_ref().as_ref(), Raw::Toml(value.get_ref()));
        let set = match name {
            "dir" => Value::parse(raw).map(|value| dir = Some(value)),
            "network" => Value::parse(raw).map(|value| network = value),
            unknown => {
                return Err(format!("unknown key `{unknown}`; known keys: `dir`, `network`"));
            }
        };
        set.map_err(|reason| format!("`{name}`: {reason}"))?;
    }
    let dir = dir.ok_or("`dir` is missing: the directory with its `Dockerfile`")?;
    Ok(ImageEntry { dir, network })
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
            .map(|(name, image)| (name.as_str(), image.dir.to_str().unwrap(), image.network))
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
