//! Compares what this build puts on the wire with the committed vectors in `schemas/` and the page
//! `docs/tools.md`. `cargo xtask golden` rewrites them.

mod committed;
mod docs;
mod frames;
mod page;
mod precedent;
mod replies;

use ringback_proto::tool::ToolRow;
use ringback_proto::{RequestEnvelope, ToolRequest};
use serde_json::json;

use self::committed::Committed;
use self::page::Page;
use crate::samples::{LABELS, positional, rows};

#[test]
fn the_requests_of_all_tools_are_as_committed() {
    let mut page = Page::new("The request of every tool, as a map, as an array and as JSON.");
    for row in rows() {
        for (request, label) in row.requests.iter().zip(LABELS) {
            let map = RequestEnvelope::plain(request.clone()).encode();
            let array = positional(row.row.name, row.request_fields, &map);
            page.section(&format!("{} {label}", row.row.name))
                .hex("map", &map)
                .hex("array", &array)
                .json(request);
        }
    }
    Committed::new().compare("schemas/golden/requests.txt", &page.text()).finish();
}

#[test]
fn the_responses_of_all_tools_are_as_committed() {
    let mut page = Page::new("The response of every tool, as a map, as an array and as JSON.");
    for row in rows() {
        for (response, label) in row.responses.iter().zip(LABELS) {
            let map = rmp_serde::to_vec_named(response).unwrap();
            let array = positional(response.type_name(), row.response_fields, &map);
            page.section(&format!("{} {label}", row.row.name))
                .hex("map", &map)
                .hex("array", &array)
                .json(response);
        }
    }
    Committed::new().compare("schemas/golden/responses.txt", &page.text()).finish();
}

#[test]
fn envelopes_errors_chunks_and_events_are_as_committed() {
    Committed::new()
        .compare("schemas/golden/request_envelopes.txt", &replies::request_envelopes())
        .compare("schemas/golden/replies.txt", &replies::replies())
        .compare("schemas/golden/errors.txt", &replies::errors())
        .compare("schemas/golden/chunks.txt", &replies::chunks())
        .compare("schemas/golden/events.txt", &replies::events())
        .finish();
}

#[test]
fn frames_of_every_kind_are_as_committed() {
    Committed::new().compare("schemas/golden/frames.txt", &frames::frames()).finish();
}

#[test]
fn the_schemas_of_all_tools_are_as_committed() {
    let mut committed = Committed::new();
    for row in rows() {
        let path = format!("schemas/tools/{}.json", row.row.name);
        committed.compare(&path, &schema_page(row.row, &row.requests[0]));
    }
    committed.nothing_else_in("schemas/tools").finish();
}

#[test]
fn the_page_of_tools_is_as_committed() {
    Committed::new().compare("docs/tools.md", &docs::tools_page(&rows())).finish();
}

fn schema_page(row: &ToolRow, request: &ToolRequest) -> String {
    assert_eq!(request.row().name, row.name);
    let schema = json!({
        "name": row.name,
        "description": row.description,
        "timing": row.timing,
        "makes_job": row.makes_job,
        "scope": row.level,
        "request": (row.request_schema)(),
        "response": (row.response_schema)(),
    });
    let mut text = serde_json::to_string_pretty(&page::sorted(schema)).expect("plain JSON");
    text.push('\n');
    text
}
