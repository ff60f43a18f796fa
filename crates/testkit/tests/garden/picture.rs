//! The timeline as a picture: who gets it, and what is in it.

use ringback_proto::principal::Level;
use ringback_proto::request::*;
use ringback_proto::secret::Secret;
use ringback_proto::tool::tools::*;

use crate::monitor::{Listener, world};
use crate::support::*;

const PICTURE: &str = "/v1/garden/timeline.svg";

/// Rule: a picture shows others where a region lies, and not its name.
#[tokio::test(flavor = "multi_thread")]
async fn a_picture_has_the_names_of_those_regions_that_its_viewer_may_see() {
    let (daemon, _garden) = world().await;
    let own = token(&daemon, Level::Write).await;
    let stranger = token(&daemon, Level::Read).await;
    let owner = daemon.client(&own).await;
    let content = store(&owner, b"sound").await;
    let request =
        GardenCreateRegionRequest { name: Some("drums".to_owned()), ..region(&content, 4.0) };
    owner.call::<GardenCreateRegion>(request).await.unwrap();
    for (token, sees_name) in [(&own, true), (&stranger, false)] {
        let drawn = Listener::request(&daemon, "GET", PICTURE, Some(token)).await;
        assert_eq!(drawn.status, 200);
        let header = |name: &str| drawn.headers[name].to_str().unwrap().to_owned();
        assert_eq!(header("content-type"), "image/svg+xml");
        assert_eq!((header("cache-control"), header("x-content-type-options")).0, "no-store");
        assert!(header("content-security-policy").starts_with("sandbox; default-src 'none'"));
        let svg = String::from_utf8(drawn.rest().await.to_vec()).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("class=\"ready\""), "{svg}");
        assert_eq!(svg.contains("drums"), sees_name, "{svg}");
    }
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_needs_a_token_or_a_ticket_and_a_part_that_exists() {
    let (daemon, _garden) = world().await;
    let unknown = Secret::new("rbk_unknown".to_owned());
    for token in [None, Some(&unknown)] {
        let refused = Listener::request(&daemon, "GET", PICTURE, token).await.refusal().await;
        assert_eq!((refused.0, &refused.1["error"]["code"]), (401, &"UNAUTHENTICATED".into()));
    }
    let reader = token(&daemon, Level::Read).await;
    let issued = Listener::request(&daemon, "POST", "/v1/tickets", Some(&reader)).await;
    let (_, issued) = issued.refusal().await;
    let path = format!("{PICTURE}?ticket={}", issued["ticket"].as_str().unwrap());
    for status in [200, 401] {
        let drawn = Listener::request(&daemon, "GET", &path, None).await;
        assert_eq!(drawn.status, status, "a ticket is good once");
    }
    for (query, field) in [
        ("width=100", "width"),
        ("width=9000", "width"),
        ("start=8&end=4", "end"),
        ("start=-1", "start"),
    ] {
        let path = format!("{PICTURE}?{query}");
        let refused = Listener::request(&daemon, "GET", &path, Some(&reader)).await.refusal().await;
        let named = &refused.1["error"]["details"]["field"];
        assert_eq!((refused.0, named), (400, &field.into()), "{refused:?}");
    }
    daemon.stop().await;
}
