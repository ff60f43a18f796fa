//! What an agent gets of its user's toolchains: paths and variables, and caches of its own.

use std::ffi::OsString;

use ringback_agents::Programs;
use ringback_sandbox::{Toolchains, places};

use crate::confinement::{Confiner, Equipment};
use crate::sessions::lifecycle::agent::{PATH, PlacedToolchains};
use crate::workspaces::Tooling;

/// Where each package manager keeps its cache, below the caches of a project. Most of them can be
/// told by a variable; what one of them keeps elsewhere is in the agent's home.
const CACHES: &[(&str, &str)] = &[
    ("CARGO_HOME", "cargo"),
    ("GOCACHE", "go-build"),
    ("GOMODCACHE", "go-mod"),
    ("GRADLE_USER_HOME", "gradle"),
    ("PIP_CACHE_DIR", "pip"),
    ("UV_CACHE_DIR", "uv"),
    ("YARN_CACHE_FOLDER", "yarn"),
    ("npm_config_cache", "npm"),
];
/// Maven has no variable of its own for its repository.
const MAVEN: (&str, &str) = ("MAVEN_OPTS", "-Dmaven.repo.local=");
/// Caches and workspace are different mounts: no file can have a name in both.
const NO_LINKS: (&str, &str) = ("UV_LINK_MODE", "copy");

/// Finds what an agent gets. In a container it has what its image has. May block.
pub(in crate::sessions) fn equipped(
    tooling: Option<Tooling>,
    confiner: Option<&Confiner>,
    programs: &Programs,
) -> (PlacedToolchains, Equipment) {
    let Some(Tooling { user, cache }) = tooling else { return Default::default() };
    match programs {
        Programs::Here(_) => {}
        Programs::Image => return Default::default(),
    }
    let rules = confiner.map(Confiner::rules);
    let hidden = rules.map_or(&[][..], |rules| &rules.hidden);
    let home = rules.and_then(|rules| rules.home.as_deref());
    let found = Toolchains::find(&user, home, hidden);
    let text = |text: OsString| text.into_string().ok();
    let env = found.env.iter().filter_map(|(name, value)| {
        let value = text(value.clone())?;
        Some((name.clone(), value))
    });
    let mut placed = PlacedToolchains { path: text(found.path_with(PATH)), env: env.collect() };
    let cache = cache.filter(|_| confiner.is_some());
    if cache.is_some() {
        let at = |name: &str| format!("{}/{name}", places::CACHE);
        let caches = CACHES.iter().map(|(name, below)| ((*name).to_owned(), at(below)));
        placed.env.extend(caches);
        placed.env.insert(MAVEN.0.to_owned(), format!("{}{}", MAVEN.1, at("maven")));
        placed.env.insert(NO_LINKS.0.to_owned(), NO_LINKS.1.to_owned());
    }
    let Toolchains { read_only, masked, .. } = found;
    (placed, Equipment { read_only, masked, cache: cache.map(Into::into) })
}
