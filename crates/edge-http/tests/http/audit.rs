//! `/v1/audit`.

use serde_json::{Value, json};

use crate::support::{World, code};

/// REQ: wire, section 3: `/v1` has the audit; for admins, newest first, paged.
#[tokio::test]
async fn the_audit_is_paged_for_admins_alone_and_tells_no_arguments() {
    let world = World::start().await;
    let writer = world.agent("write").await;
    for n in 0..5 {
        let path = format!("GET /v1/jobs/job_{}", "0".repeat(31) + &n.to_string());
        drop(writer.ask(&path, &[], "").await);
    }
    let (status, _) = writer
        .json("POST /v1/tools/client_none_x/call", json!({"secret": "not to be shown"}))
        .await;
    assert_eq!(status, 404);
    for path in ["/v1/audit", "/v1/audit?limit=1", "/v1/audit?limit=-1", "/v1/audit?cursor=x"] {
        let (status, denied) = writer.get(path).await;
        assert_eq!((status, code(&denied)), (403, "FORBIDDEN"));
    }
    let (status, all) = world.admin.get("/v1/audit").await;
    assert_eq!(status, 200, "{all}");
    let entries = all["entries"].as_array().unwrap();
    let newest = &entries[0];
    assert_eq!(
        (&newest["tool"], &newest["outcome"]),
        (&json!("client_none_x"), &json!("not_found"))
    );
    assert_eq!((&newest["edge"], &newest["certainty"]), (&json!("http"), &json!("not_started")));
    assert_eq!(newest["principal"], json!(writer.token_id));
    assert!(!all.to_string().contains("not to be shown"), "{all}");

    let (mut paged, mut path) = (Vec::new(), "/v1/audit?limit=2".to_owned());
    loop {
        let (status, page) = world.admin.get(&path).await;
        assert_eq!(status, 200, "{page}");
        paged.extend(page["entries"].as_array().unwrap().clone());
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/v1/audit?limit=2&cursor={cursor}");
    }
    assert_eq!(Value::Array(paged), all["entries"]);
    for path in ["/v1/audit?cursor=x", "/v1/audit?limit=-1", "/v1/audit?order=up"] {
        let (status, refused) = world.admin.get(path).await;
        assert_eq!((status, code(&refused)), (400, "INVALID_REQUEST"), "{path}");
    }
}
