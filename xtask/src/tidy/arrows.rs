//! Which crate depends on which. `picture` draws the table for `ARCHITECTURE.md`.

use super::Finding;
use super::metadata::{Dependency, Package, Workspace};

const RULE_ARROW: &str = "arrow";
const RULE_OWNER: &str = "owner";
const RULE_BAN: &str = "ban";

/// A crate of this workspace and the crates of this workspace that it names, no more and no fewer. A
/// crate that is not here may not exist: adding one is a change of the architecture.
const ARROWS: &[(&str, &[&str])] = &[
    ("ringback-proto", &[]),
    ("ringback-sync", &[]),
    ("ringback-sandbox", &["ringback-sync"]),
    ("ringback-service", &["ringback-sync"]),
    ("ringback-studio", &[]),
    ("ringback-music-services", &["ringback-sync"]),
    ("ringback-sse", &[]),
    ("ringback-core", &["ringback-proto"]),
    ("ringback-store", &["ringback-proto", "ringback-sync"]),
    ("ringback-blobs", &["ringback-proto", "ringback-sync"]),
    ("ringback-hoot-wire", &["ringback-proto"]),
    ("ringback-client", &["ringback-proto", "ringback-hoot-wire", "ringback-sse"]),
    (
        "ringback-broker",
        &[
            "ringback-proto",
            "ringback-core",
            "ringback-store",
            "ringback-blobs",
            "ringback-agents",
            "ringback-sandbox",
            "ringback-sync",
        ],
    ),
    (
        "ringback-studio-tools",
        &["ringback-proto", "ringback-broker", "ringback-studio", "ringback-music-services"],
    ),
    (
        "ringback-edge-hoot",
        &["ringback-proto", "ringback-broker", "ringback-hoot-wire", "ringback-sync"],
    ),
    (
        "ringback-edge-http",
        &["ringback-proto", "ringback-broker", "ringback-service", "ringback-sync"],
    ),
    ("ringback-mcp-wire", &[]),
    ("ringback-mcp-bridge", &["ringback-mcp-wire", "ringback-sse"]),
    ("ringback-inside", &["ringback-mcp-bridge", "ringback-mcp-wire"]),
    ("ringback-inside-embed", &["ringback-sync"]),
    ("ringback-agents", &["ringback-mcp-wire", "ringback-sync"]),
    (
        "ringback-edge-mcp",
        &["ringback-proto", "ringback-broker", "ringback-mcp-wire", "ringback-sync"],
    ),
    (
        "ringback-edge-relay",
        &["ringback-proto", "ringback-broker", "ringback-service", "ringback-mcp-wire"],
    ),
    (
        "ringback-egress",
        &["ringback-proto", "ringback-broker", "ringback-service", "ringback-sync"],
    ),
    (
        "ringback-garden",
        &[
            "ringback-proto",
            "ringback-blobs",
            "ringback-client",
            "ringback-studio",
            "ringback-sync",
        ],
    ),
    (
        "ringback",
        &[
            "ringback-proto",
            "ringback-broker",
            "ringback-service",
            "ringback-edge-hoot",
            "ringback-edge-http",
            "ringback-edge-mcp",
            "ringback-edge-relay",
            "ringback-egress",
            "ringback-mcp-bridge",
            "ringback-mcp-wire",
            "ringback-client",
            "ringback-studio",
            "ringback-studio-tools",
            "ringback-garden",
            "ringback-music-services",
            "ringback-inside",
            "ringback-inside-embed",
            "ringback-agents",
            // `doctor` and `demo` probe this machine before a broker exists.
            "ringback-sandbox",
            // `run` and `session apply` read and write directories as the daemon does: through no
            // symlink.
            "ringback-blobs",
            "ringback-sync",
        ],
    ),
    (
        TESTKIT,
        &[
            "ringback-proto",
            "ringback-broker",
            "ringback-service",
            "ringback-edge-hoot",
            "ringback-edge-http",
            "ringback-edge-mcp",
            "ringback-edge-relay",
            "ringback-client",
            "ringback-sync",
        ],
    ),
    (
        "ringback-bench",
        &[
            "ringback-proto",
            "ringback-store",
            "ringback-client",
            "ringback-garden",
            "ringback-studio",
        ],
    ),
    ("ringback-sim", &["ringback-proto", "ringback-store", "ringback-broker", "ringback-sync"]),
    ("xtask", &[]),
];

/// What the tests of a crate name besides.
const TEST_ARROWS: &[(&str, &[&str])] = &[
    ("ringback-edge-hoot", &["ringback-client"]),
    (TESTKIT, &["ringback-studio", "ringback-studio-tools", "ringback-music-services"]),
];

/// Any crate may use it in its tests.
const TESTKIT: &str = "ringback-testkit";

/// A crate that only its owners name, so that replacing it is a change of one crate.
const OWNERS: &[(&str, &[&str])] = &[
    ("rusqlite", &["ringback-store"]),
    // The benchmarks measure the daemon against the library alone.
    (
        "omq-tokio",
        &["ringback-edge-hoot", "ringback-client", "ringback-hoot-wire", "ringback-bench"],
    ),
    ("axum", &["ringback-service", "ringback-edge-http", "ringback-edge-mcp", "ringback-bench"]),
    // The client holds lines over HTTP; `mcp-bridge` reaches an MCP server, `egress` a model.
    ("hyper", HTTP_SPEAKERS),
    ("hyper-util", HTTP_SPEAKERS),
    // Music and sound take long to compile, and little of the daemon needs them.
    ("ebur128", STUDIO),
    ("flac-codec", STUDIO),
    ("hound", STUDIO),
    ("midly", STUDIO),
    ("realfft", STUDIO),
    ("rubato", STUDIO),
    ("rustysynth", STUDIO),
    ("symphonia", STUDIO),
    ("pulseaudio", GARDEN),
    ("rtrb", GARDEN),
    ("thread-priority", WITH_PRIORITIES),
];

/// Sound runs before everything else, queries of callers after it.
const WITH_PRIORITIES: &[&str] = &["ringback-garden", "ringback-store"];
const STUDIO: &[&str] = &["ringback-studio"];

const GARDEN: &[&str] = &["ringback-garden"];

const HTTP_SPEAKERS: &[&str] = &[
    "ringback-service",
    "ringback-edge-http",
    "ringback-mcp-bridge",
    "ringback-client",
    "ringback-bench",
    "ringback-music-services",
    "ringback-egress",
];

/// A crate that some of ours must not name: what it stands for is absent there on purpose.
const BANS: &[(&str, &[&str])] = &[
    // `proto` needs it for payloads that pass through with their text kept.
    ("serde_json", &["ringback-core", "ringback-store", "ringback-blobs"]),
    ("tokio", &["ringback-proto", "ringback-core", "ringback-mcp-wire", "ringback-sse"]),
    ("serde", &["ringback-core"]),
    ("rand", &["ringback-proto", "ringback-core"]),
];

pub(crate) fn check(workspace: &Workspace) -> Vec<Finding> {
    workspace.packages.iter().flat_map(check_package).collect()
}

fn check_package(package: &Package) -> Vec<Finding> {
    let Some(arrows) = arrows_of(ARROWS, package) else {
        let message = format!("`{}` is not in the table of crates (tidy/arrows.rs)", package.name);
        return vec![finding(package, RULE_ARROW, message)];
    };
    let test_arrows = arrows_of(TEST_ARROWS, package).unwrap_or_default();
    let broken = package.dependencies.iter().filter_map(|dependency| {
        if dependency.path.is_some() {
            check_arrow(package, arrows, test_arrows, dependency)
        } else if dependency.is_dev() {
            None // tests may look from outside, with any crate
        } else {
            check_foreign(package, &dependency.name)
        }
    });
    let missing = |to: &&&str, is_dev: bool| {
        !package.dependencies.iter().any(|it| it.name == **to && it.is_dev() == is_dev)
    };
    let stale = arrows.iter().filter(|to| missing(to, false));
    let stale = stale.chain(test_arrows.iter().filter(|to| missing(to, true))).map(|to| {
        let message = format!("`{}` no longer depends on `{to}`: remove the arrow", package.name);
        finding(package, RULE_ARROW, message)
    });
    broken.chain(stale).collect()
}

fn arrows_of<'a>(table: &[(&str, &'a [&'a str])], package: &Package) -> Option<&'a [&'a str]> {
    table.iter().find(|(name, _)| *name == package.name).map(|(_, to)| *to)
}

fn check_arrow(
    package: &Package,
    arrows: &[&str],
    test_arrows: &[&str],
    dependency: &Dependency,
) -> Option<Finding> {
    let to = dependency.name.as_str();
    let in_tests = dependency.is_dev() && (to == TESTKIT || test_arrows.contains(&to));
    (!arrows.contains(&to) && !in_tests).then(|| {
        let message = format!("`{}` must not depend on `{to}`", package.name);
        finding(package, RULE_ARROW, message)
    })
}

fn check_foreign(package: &Package, name: &str) -> Option<Finding> {
    let here = package.name.as_str();
    if let Some((_, owners)) = OWNERS.iter().find(|(heavy, _)| *heavy == name)
        && !owners.contains(&here)
    {
        let message = format!("only {} may name `{name}`", owners.join(" and "));
        return Some(finding(package, RULE_OWNER, message));
    }
    let (_, banned_in) = BANS.iter().find(|(banned, _)| *banned == name)?;
    banned_in
        .contains(&here)
        .then(|| finding(package, RULE_BAN, format!("`{here}` must not name `{name}`")))
}

fn finding(package: &Package, rule: &'static str, message: String) -> Finding {
    Finding { rule, path: package.manifest_path.clone(), line: 0, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules that `name` breaks with these dependencies; `=` marks a crate of the workspace,
    /// `dev:` a dependency of the tests.
    fn broken(name: &str, dependencies: &[&str]) -> Vec<&'static str> {
        let dependencies = dependencies
            .iter()
            .map(|text| {
                let (kind, text) = match text.strip_prefix("dev:") {
                    Some(rest) => (Some("dev".to_owned()), rest),
                    None => (None, *text),
                };
                let path = text.starts_with('=').then(|| "crates/x".to_owned());
                Dependency { name: text.trim_start_matches('=').to_owned(), kind, path }
            })
            .collect();
        let manifest_path = "crates/x/Cargo.toml".to_owned();
        let package = Package { name: name.to_owned(), dependencies, manifest_path };
        check(&Workspace { packages: vec![package] }).iter().map(|finding| finding.rule).collect()
    }

    /// The same for `name` with all of its arrows and one more dependency.
    fn broken_with(name: &str, more: &str) -> Vec<&'static str> {
        let (_, arrows) = ARROWS.iter().find(|(known, _)| *known == name).unwrap();
        let arrows: Vec<_> = arrows.iter().map(|to| format!("={to}")).collect();
        broken(name, &arrows.iter().map(String::as_str).chain([more]).collect::<Vec<_>>())
    }

    #[test]
    fn an_arrow_of_the_table_is_fine() {
        assert!(broken("ringback-core", &["=ringback-proto"]).is_empty());
    }

    #[test]
    fn an_arrow_that_is_not_in_the_table_is_found() {
        assert_eq!(broken_with("ringback-core", "=ringback-store"), [RULE_ARROW]);
        assert_eq!(broken_with("ringback-store", "=ringback-edge-hoot"), [RULE_ARROW]);
        assert_eq!(broken_with("ringback-blobs", "=ringback-store"), [RULE_ARROW]);
    }

    #[test]
    fn an_arrow_without_a_dependency_is_found() {
        assert_eq!(broken("ringback-core", &[]), [RULE_ARROW]);
        assert_eq!(broken("ringback-core", &["dev:=ringback-proto"]), [RULE_ARROW]);
        let edge = ["=ringback-proto", "=ringback-broker", "=ringback-hoot-wire", "=ringback-sync"];
        assert_eq!(broken("ringback-edge-hoot", &edge), [RULE_ARROW], "a test arrow");
    }

    #[test]
    fn a_test_may_use_the_testkit_and_no_other_crate_it_could_not_name_anyway() {
        assert!(broken_with("ringback-blobs", "dev:=ringback-testkit").is_empty());
        assert_eq!(broken_with("ringback-blobs", "=ringback-testkit"), [RULE_ARROW]);
        assert_eq!(broken_with("ringback-blobs", "dev:=ringback-store"), [RULE_ARROW]);
    }

    #[test]
    fn a_crate_that_is_not_in_the_table_is_found() {
        assert_eq!(broken("ringback-surprise", &[]), [RULE_ARROW]);
    }

    #[test]
    fn a_heavy_crate_outside_its_owner_is_found() {
        assert!(broken_with("ringback-store", "rusqlite").is_empty());
        assert_eq!(broken_with("ringback-studio", "rusqlite"), [RULE_OWNER]);
        assert_eq!(broken_with("ringback-sandbox", "omq-tokio"), [RULE_OWNER]);
        assert_eq!(broken_with("ringback-mcp-wire", "axum"), [RULE_OWNER]);
        assert_eq!(broken_with("ringback-service", "symphonia"), [RULE_OWNER]);
    }

    #[test]
    fn json_below_the_edges_is_found_except_in_tests() {
        for name in ["ringback-core", "ringback-store", "ringback-blobs"] {
            assert_eq!(broken_with(name, "serde_json"), [RULE_BAN], "{name}");
            assert!(broken_with(name, "dev:serde_json").is_empty(), "{name}");
        }
    }
}
