//! Which crate may depend on which: the diagram in `ARCHITECTURE.md` as a table.

use super::Finding;
use super::metadata::{Dependency, Package, Workspace};

const RULE_ARROW: &str = "arrow";
const RULE_OWNER: &str = "owner";
const RULE_BAN: &str = "ban";

/// A crate of this workspace and the crates of this workspace it may depend on. A crate that is not
/// listed may not exist: adding one changes the architecture.
const ARROWS: &[(&str, &[&str])] = &[
    ("ringback-proto", &[]),
    ("ringback-sandbox", &[]),
    ("ringback-service", &[]),
    ("ringback-studio", &[]),
    ("ringback-models", &[]),
    ("ringback-core", &["ringback-proto"]),
    ("ringback-store", &["ringback-proto"]),
    ("ringback-blobs", &["ringback-proto"]),
    ("ringback-client", &["ringback-proto"]),
    (
        "ringback-broker",
        &[
            "ringback-proto",
            "ringback-core",
            "ringback-store",
            "ringback-blobs",
            "ringback-studio",
            "ringback-models",
            "ringback-agents",
            "ringback-sandbox",
        ],
    ),
    ("ringback-edge-hoot", &["ringback-proto", "ringback-broker", "ringback-service"]),
    ("ringback-edge-http", &["ringback-proto", "ringback-broker", "ringback-service"]),
    ("ringback-mcp-wire", &[]),
    ("ringback-inside", &["ringback-mcp-wire"]),
    ("ringback-inside-embed", &[]),
    ("ringback-agents", &["ringback-mcp-wire"]),
    (
        "ringback-edge-mcp",
        &["ringback-proto", "ringback-broker", "ringback-service", "ringback-mcp-wire"],
    ),
    (
        "ringback-edge-relay",
        &["ringback-proto", "ringback-broker", "ringback-service", "ringback-mcp-wire"],
    ),
    ("ringback-egress", &["ringback-proto", "ringback-broker", "ringback-service"]),
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
            "ringback-mcp-wire",
            "ringback-client",
            "ringback-studio",
            "ringback-models",
            "ringback-inside",
            "ringback-inside-embed",
            "ringback-agents",
            // `doctor` and `demo` check what this machine provides before there is a broker.
            "ringback-sandbox",
            // `run` and `session apply` read and write directories like the daemon: without
            // following links.
            "ringback-blobs",
        ],
    ),
    (
        TESTKIT,
        &[
            "ringback-proto",
            "ringback-core",
            "ringback-store",
            "ringback-blobs",
            "ringback-broker",
            "ringback-service",
            "ringback-edge-hoot",
            "ringback-edge-http",
            "ringback-edge-mcp",
            "ringback-client",
            "ringback-studio",
            "ringback-models",
        ],
    ),
    ("ringback-bench", &["ringback-proto", "ringback-store", "ringback-client", "ringback-studio"]),
    ("ringback-sim", &["ringback-proto", "ringback-store", "ringback-broker"]),
    ("xtask", &[]),
];

/// Any crate may use it in its tests.
const TESTKIT: &str = "ringback-testkit";

/// A crate that only its owners may depend on, so that replacing it changes a single crate.
const OWNERS: &[(&str, &[&str])] = &[
    ("rusqlite", &["ringback-store"]),
    // The benchmarks measure the daemon against the library alone.
    ("omq-tokio", &["ringback-edge-hoot", "ringback-client", "ringback-bench"]),
    ("axum", &["ringback-service", "ringback-edge-http", "ringback-edge-mcp", "ringback-bench"]),
    // The client keeps lines open over HTTP; `inside` reaches a session at a URL, `egress` a model.
    ("hyper", HTTP_SPEAKERS),
    ("hyper-util", HTTP_SPEAKERS),
];

const HTTP_SPEAKERS: &[&str] = &[
    "ringback-service",
    "ringback-edge-http",
    "ringback-edge-mcp",
    "ringback-client",
    "ringback-bench",
    "ringback-models",
    "ringback-inside",
    "ringback-egress",
];

/// A crate that some of ours must not depend on: its function is absent there on purpose.
const BANS: &[(&str, &[&str])] = &[
    // `proto` needs it for payloads that pass through with their text unchanged.
    ("serde_json", &["ringback-core", "ringback-store", "ringback-blobs"]),
    ("tokio", &["ringback-proto", "ringback-core", "ringback-mcp-wire"]),
    ("serde", &["ringback-core"]),
    ("rand", &["ringback-proto", "ringback-core"]),
];

pub(crate) fn check(workspace: &Workspace) -> Vec<Finding> {
    workspace.packages.iter().flat_map(check_package).collect()
}

fn check_package(package: &Package) -> Vec<Finding> {
    let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == package.name) else {
        let message = format!("`{}` is not in the table of crates (tidy/arrows.rs)", package.name);
        return vec![finding(package, RULE_ARROW, message)];
    };
    package
        .dependencies
        .iter()
        .filter_map(|dependency| {
            if dependency.path.is_some() {
                check_arrow(package, allowed, dependency)
            } else if dependency.is_dev() {
                None // tests may use any crate
            } else {
                check_foreign(package, &dependency.name)
            }
        })
        .collect()
}

fn check_arrow(package: &Package, allowed: &[&str], dependency: &Dependency) -> Option<Finding> {
    let to = dependency.name.as_str();
    let fine = allowed.contains(&to) || (dependency.is_dev() && to == TESTKIT);
    (!fine).then(|| {
        let message = format!("`{}` must not depend on `{to}`", package.name);
        finding(package, RULE_ARROW, message)
    })
}

fn check_foreign(package: &Package, name: &str) -> Option<Finding> {
    let here = package.name.as_str();
    if let Some((_, owners)) = OWNERS.iter().find(|(heavy, _)| *heavy == name)
        && !owners.contains(&here)
    {
        let message = format!("only {} may depend on `{name}`", owners.join(" and "));
        return Some(finding(package, RULE_OWNER, message));
    }
    let (_, banned_in) = BANS.iter().find(|(banned, _)| *banned == name)?;
    banned_in
        .contains(&here)
        .then(|| finding(package, RULE_BAN, format!("`{here}` must not depend on `{name}`")))
}

fn finding(package: &Package, rule: &'static str, message: String) -> Finding {
    Finding { rule, path: package.manifest_path.clone(), line: 0, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the rules that `name` breaks with these dependencies; `=` marks a crate of the
    /// workspace, `dev:` a dependency of the tests.
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

    #[test]
    fn an_arrow_of_the_picture_is_fine() {
        assert!(broken("ringback-core", &["=ringback-proto"]).is_empty());
    }

    #[test]
    fn an_arrow_that_is_not_in_the_picture_is_found() {
        assert_eq!(broken("ringback-core", &["=ringback-store"]), [RULE_ARROW]);
        assert_eq!(broken("ringback-edge-http", &["=ringback-edge-hoot"]), [RULE_ARROW]);
        assert_eq!(broken("ringback-edge-hoot", &["=ringback-store"]), [RULE_ARROW]);
    }

    #[test]
    fn a_test_may_use_the_testkit_and_no_other_crate_it_could_not_name_anyway() {
        assert!(broken("ringback-client", &["dev:=ringback-testkit"]).is_empty());
        assert_eq!(broken("ringback-client", &["=ringback-testkit"]), [RULE_ARROW]);
        assert_eq!(broken("ringback-client", &["dev:=ringback-store"]), [RULE_ARROW]);
    }

    #[test]
    fn a_crate_that_is_not_in_the_table_is_found() {
        assert_eq!(broken("ringback-surprise", &[]), [RULE_ARROW]);
    }

    #[test]
    fn a_heavy_crate_outside_its_owner_is_found() {
        assert!(broken("ringback-store", &["rusqlite"]).is_empty());
        assert_eq!(broken("ringback-broker", &["rusqlite"]), [RULE_OWNER]);
        assert_eq!(broken("ringback-broker", &["omq-tokio"]), [RULE_OWNER]);
        assert_eq!(broken("ringback", &["axum"]), [RULE_OWNER]);
    }

    #[test]
    fn json_below_the_edges_is_found_except_in_tests() {
        for name in ["ringback-core", "ringback-store", "ringback-blobs"] {
            assert_eq!(broken(name, &["serde_json"]), [RULE_BAN], "{name}");
            assert!(broken(name, &["dev:serde_json"]).is_empty(), "{name}");
        }
    }
}
