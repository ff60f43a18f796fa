//! What must never be written down: a process of its own, because it captures all logs.

#![expect(clippy::unwrap_used, reason = "a test fails on everything it does not expect")]

use ringback_client::{Notice, Subscriber};
use ringback_proto::principal::Level;
use ringback_proto::request::*;
use ringback_proto::secret::Secret;
use ringback_proto::tool::tools::*;
use ringback_testkit::{Hello, Logs, RawPeer, World, within};

/// Rule: no secret appears in a log, an event, or a list, however it was used or refused.
#[tokio::test(flavor = "multi_thread")]
async fn no_token_is_ever_logged_told_or_listed() {
    let logs = Logs::capture();
    let daemon = World::with_hoot().await;
    let admin = daemon.admin().await;
    let mut subscriber = daemon.subscriber(daemon.admin_token(), &[""]).await;
    let TokenCreatedResponse { token, token_id, .. } = daemon.new_token(Level::Write, None).await;
    let wrong = Secret::new(format!("oub_{}", "5".repeat(64)));
    within("the refusal", daemon.try_client(&wrong)).await.unwrap_err();
    RawPeer::connect(daemon.calls(), Hello::dealer(&wrong)).await.unwrap_err();
    let client = daemon.client(&token).await;
    let job =
        client.call_with::<JobSleep>(JobSleepRequest { milliseconds: 120 }, Default::default());
    within("a job", job).await.unwrap();
    admin.call::<TokenRevoke>(TokenRevokeRequest { token_id }).await.unwrap();
    within("the refusal", client.call::<Ping>(PingRequest {})).await.unwrap_err();
    let listed = admin.call::<TokenList>(TokenListRequest {}).await.unwrap();
    let mut seen = format!("{listed:?}{client:?}{:?}", daemon.client_config(&token));
    seen.push_str(&events(&mut subscriber).await);
    let admin_token = daemon.admin_token().clone();
    daemon.stop().await;
    seen.push_str(&logs.text());
    assert!(logs.text().contains("TRACE"), "the logs were listened to");
    for secret in [&token, &wrong, &admin_token] {
        let digits = secret.expose().trim_start_matches("oub_");
        assert!(!seen.contains(digits), "a token was written down");
        // Bytes are logged as lists of numbers, if at all.
        let numbers = format!("{:?}", &digits.as_bytes()[..16]);
        assert!(!seen.contains(numbers.trim_matches(['[', ']'])), "its bytes were written down");
    }
}

/// Returns the events of a subscriber until the job ended.
async fn events(subscriber: &mut Subscriber) -> String {
    let mut told = String::new();
    loop {
        let notice = within("an event", subscriber.next()).await.unwrap();
        told.push_str(&format!("{notice:?}"));
        if let Notice::Event(event) = notice
            && format!("{event:?}").contains("Complete")
        {
            return told;
        }
    }
}
