//! The document of all routes: committed, served, and accurate.

use std::path::Path;

use serde_json::Value;

use crate::support::World;

const COMMITTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/openapi.json");

#[test]
fn the_document_is_as_committed() {
    let document = ringback_edge_http::openapi();
    if std::env::var_os("RINGBACK_UPDATE_GOLDEN").is_some() {
        let text = serde_json::to_string_pretty(&document).unwrap();
        std::fs::write(COMMITTED, text + "\n").unwrap();
    }
    let committed = std::fs::read_to_string(Path::new(COMMITTED)).unwrap_or_default();
    let committed: Value = serde_json::from_str(&committed).unwrap_or_default();
    assert!(document == committed, "run `cargo xtask golden` and look at the diff");
}

#[tokio::test]
async fn it_is_served_with_a_page_that_asks_no_other_server() {
    let world = World::start().await;
    let nobody = world.admin.nobody();
    let (status, document) = nobody.get("/v1/openapi.json").await;
    assert_eq!((status, document), (200, ringback_edge_http::openapi()));
    let page = nobody.send("GET /docs", &[], "").await;
    assert_eq!(page.status, 200);
    assert!(page.header("content-security-policy").contains("default-src 'none'"));
    let (page, script) = (page.text().await, nobody.send("GET /docs/page.js", &[], "").await);
    assert!(script.header("content-type").starts_with("text/javascript"));
    for text in [page, script.text().await] {
        assert!(!text.contains("http://") && !text.contains("https://"), "{text}");
    }
}

/// Rule: no route answers with a status that the document does not name.
#[tokio::test]
async fn what_a_route_answers_is_in_the_document() {
    let world = World::start().await;
    let document = ringback_edge_http::openapi();
    let mut n_checked = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, described) in methods.as_object().unwrap() {
            let id = "0".repeat(64);
            let path = path.split('/').map(|part| if part.starts_with('{') { &id } else { part });
            let line = format!("{} {}", method.to_uppercase(), path.collect::<Vec<_>>().join("/"));
            for (agent, body) in [
                (&world.admin.nobody(), ""),
                (&world.admin, ""),
                (&world.admin, "{}"),
                (&world.admin, "["),
                (&world.admin, r#"{"clientID":"a","tools":[],"requestID":"x","status":"success"}"#),
            ] {
                let reply = agent.send(&line, &["content-type: application/json"], body).await;
                let status = reply.status.to_string();
                let names = described["responses"].as_object().unwrap();
                assert!(
                    names.contains_key(&status),
                    "{line} answers {status}, which is undocumented"
                );
                n_checked += 1;
            }
        }
    }
    assert!(n_checked > 100, "{n_checked}");
}

#[test]
fn every_reference_leads_somewhere_and_every_operation_has_its_own_id() {
    let document = ringback_edge_http::openapi();
    let mut ids = Vec::new();
    for described in document["paths"].as_object().unwrap().values() {
        ids.extend(described.as_object().unwrap().values().map(|it| it["operationId"].clone()));
    }
    let n_operations = ids.len();
    ids.sort_by_key(ToString::to_string);
    ids.dedup();
    assert_eq!(ids.len(), n_operations);
    check_references(&document, &document);
}

fn check_references(document: &Value, value: &Value) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(target)) = fields.get("$ref") {
                let pointer = target.strip_prefix('#').expect("within the document");
                assert!(document.pointer(pointer).is_some(), "{target} leads nowhere");
            }
            fields.values().for_each(|field| check_references(document, field));
        }
        Value::Array(items) => items.iter().for_each(|item| check_references(document, item)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
