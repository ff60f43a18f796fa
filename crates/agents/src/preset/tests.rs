//! How each agent is started.

use super::*;

const DOOR: &str = "http://127.0.0.1:8080";

fn prepared(name: &str, permissions: Permissions, has_model: bool) -> PreparedAgent {
    let inside_args = ["--socket".to_owned(), "/mcp/relay.sock".to_owned()];
    let door =
        ModelDoor { url: DOOR.to_owned(), key: "place\"holder".to_owned(), model: "m".to_owned() };
    preset(name).unwrap().prepare(&Setting {
        inside: "/mcp/bin/inside",
        inside_args: &inside_args,
        home: "/home/agent",
        model: has_model.then_some(&door),
        permissions,
    })
}

/// REQ: "Presets for goose, opencode, Claude Code, Codex and Gemini CLI in one data file".
#[test]
fn every_preset_can_be_read_and_filled_in() {
    let names: Vec<_> = presets().iter().map(|preset| preset.name.as_str()).collect();
    assert_eq!(names, ["goose", "opencode", "claude", "codex", "gemini"]);
    for name in names {
        for permissions in [Permissions::Ask, Permissions::Allow, Permissions::Deny] {
            for has_model in [false, true] {
                let prepared = prepared(name, permissions, has_model);
                let texts = prepared.args.iter().chain(&prepared.again);
                let texts = texts.chain(prepared.env.values());
                let files = prepared.files.iter().map(|file| &file.text);
                for text in texts.chain(files) {
                    for place in ["{inside", "{model", "{message", "{home"] {
                        assert!(!text.contains(place), "{name}: {text}");
                    }
                }
                assert!(!prepared.args.is_empty());
            }
        }
    }
}

/// Rule: the files are valid JSON or TOML whatever is filled in, and contain the MCP server.
#[test]
fn files_name_the_server_and_stay_well_formed() {
    for has_model in [false, true] {
        let claude = &prepared("claude", Permissions::Ask, has_model).files[0];
        let read: serde_json::Value = serde_json::from_str(&claude.text).unwrap();
        assert_eq!(read["mcpServers"]["ringback"]["command"], "/mcp/bin/inside");
        assert_eq!(read["mcpServers"]["ringback"]["args"][1], "/mcp/relay.sock");
        let codex = &prepared("codex", Permissions::Ask, has_model).files[0];
        let read: toml::Table = toml::from_str(&codex.text).unwrap();
        assert_eq!(read["mcp_servers"]["ringback"]["command"].as_str(), Some("/mcp/bin/inside"));
        assert_eq!(read.contains_key("model_provider"), has_model);
        let gemini = &prepared("gemini", Permissions::Ask, has_model).files[0];
        serde_json::from_str::<serde_json::Value>(&gemini.text).unwrap();
    }
    let opencode = prepared("opencode", Permissions::Ask, true).env;
    let read: serde_json::Value =
        serde_json::from_str(&opencode["OPENCODE_CONFIG_CONTENT"]).unwrap();
    assert_eq!(read["provider"]["ringback"]["options"]["baseURL"], format!("{DOOR}/v1"));
    assert_eq!(read["provider"]["ringback"]["options"]["apiKey"], "place\"holder");
}

/// Rule: an agent that cannot ask does nothing that needs permission, unless everything is allowed.
#[test]
fn what_needs_no_asking_is_said_only_where_everything_is_allowed() {
    let bypass = "--dangerously-bypass-approvals-and-sandbox".to_owned();
    for permissions in [Permissions::Ask, Permissions::Deny] {
        assert!(!prepared("codex", permissions, true).args.contains(&bypass));
        assert_eq!(prepared("goose", permissions, true).env["GOOSE_MODE"], "approve");
    }
    let codex = prepared("codex", Permissions::Allow, true);
    for args in [codex.args, codex.again] {
        assert!(args.contains(&bypass) && args.last().unwrap() == "-", "{args:?}");
    }
    assert_eq!(prepared("goose", Permissions::Allow, true).env["GOOSE_MODE"], "auto");
}

/// Rule: without a configured model an agent gets no model settings.
#[test]
fn without_a_model_nothing_is_said_of_one() {
    for preset in presets() {
        let env = prepared(&preset.name, Permissions::Allow, false).env;
        assert!(preset.model.env.keys().all(|name| !env.contains_key(name)), "{}", preset.name);
    }
}
