//! The key: where it goes, and where it never is.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::{Request, Response, StatusCode};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use ringback_broker::{ModelDoor as _, ProviderKey};
use ringback_egress::{
    BaseUrl, CommandRules, Config, KeyFile, KeyHeader, KeySource, ModelDoors, Prices, Provider,
    ProviderError, SecretName, SecretSource, Vault,
};
use ringback_proto::secret::Secret;
use ringback_testkit::Logs;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::support::{KEY, PLACEHOLDER, SessionKey, Upstream, World, full, post, write_key};

/// REQ: "Model access without the key in the box": the placeholder is swapped for the real one, and
/// no credential of the agent reaches the provider.
#[tokio::test]
async fn the_placeholder_is_swapped_for_the_key_in_the_header_that_the_provider_wants() {
    for (header, expected) in [
        (KeyHeader::Authorization, format!("Bearer {KEY}")),
        (KeyHeader::XApiKey, KEY.to_owned()),
        (KeyHeader::XGoogApiKey, KEY.to_owned()),
        (KeyHeader::ApiKey, KEY.to_owned()),
    ] {
        let upstream = Upstream::fine().await;
        let mut world =
            World::start_with(&upstream.url, Config::default(), |model| model.header = header);
        let answer = world.post(&format!("/v1/messages?a=1&key={PLACEHOLDER}"), "{}").await;
        assert_eq!((answer.status, answer.body.as_str()), (StatusCode::OK, "fine, 2 bytes"));
        let [asked] = <[_; 1]>::try_from(upstream.asked()).unwrap();
        assert_eq!((asked.method.as_str(), asked.uri.as_str()), ("POST", "/v1/messages?a=1"));
        assert_eq!(asked.headers[header.name()], expected);
        assert_eq!(asked.headers["content-length"], "2");
        assert_eq!(asked.headers["content-type"], "application/json");
        assert!(asked.headers["host"].to_str().unwrap().starts_with("localhost:"));
        assert!(!format!("{asked:?}").contains(PLACEHOLDER), "{asked:?}");
        world.stop().await;
    }
}

/// Rule: where a provider repeats the key, its header is dropped and its body masked.
#[tokio::test]
async fn a_key_that_the_provider_repeats_does_not_reach_the_agent() {
    let upstream = Upstream::start(|request: Request<_>| async move {
        let sent = request.headers()["authorization"].clone();
        let body = format!("you sent {}!", sent.to_str().unwrap());
        let mut response = Response::new(full(body));
        response.headers_mut().insert("x-request-authorization", sent);
        response.headers_mut().insert("x-request-id", "7".parse().unwrap());
        response
    })
    .await;
    let mut world = World::start(&upstream.url);
    let answer = world.post("/v1", "{}").await;
    assert_eq!(answer.body, format!("you sent Bearer {}!", "*".repeat(KEY.len())));
    assert_eq!(answer.headers["content-length"], answer.body.len().to_string());
    assert_eq!(answer.headers["x-request-id"], "7");
    assert!(!format!("{answer:?}").contains(KEY), "{answer:?}");
    world.stop().await;
}

/// Bytes in `gzip` format, stored uncompressed: only the wrapper.
fn gzip(plain: &[u8]) -> Vec<u8> {
    let length = u16::try_from(plain.len()).unwrap();
    let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    packed.extend(length.to_le_bytes());
    packed.extend((!length).to_le_bytes());
    packed.extend_from_slice(plain);
    let crc = !plain.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 * (crc & 1)))
    });
    packed.extend(crc.to_le_bytes());
    packed.extend(u32::from(length).to_le_bytes());
    packed
}

/// Rule: no answer passes in which the key cannot be found, and none is requested in parts.
#[tokio::test]
async fn a_key_that_is_repeated_compressed_or_in_parts_does_not_reach_the_agent() {
    let upstream = Upstream::start(|request: Request<_>| async move {
        let sent = request.headers()["authorization"].to_str().unwrap().to_owned();
        let mut response = match request.headers().get("range") {
            // Like a provider that serves files: the key in two halves, for two requests.
            Some(_) => Response::new(full(sent[..sent.len() / 2].to_owned())),
            None => Response::new(full(gzip(sent.as_bytes()))),
        };
        let coding = request.uri().path().trim_start_matches('/').to_owned();
        response.headers_mut().insert("content-encoding", coding.parse().unwrap());
        response
    })
    .await;
    let mut world = World::start(&upstream.url);
    for coding in ["gzip", "br", "zstd", "deflate", "own"] {
        let answer = world.post(&format!("/{coding}"), "{}").await;
        assert_eq!(answer.status, StatusCode::BAD_GATEWAY, "{coding}: {answer:?}");
        assert!(answer.body.contains("compressed"), "{answer:?}");
    }
    let mut agent = world.connect().await;
    let mut asking = post("/gzip", full("{}"));
    asking.headers_mut().insert("accept-encoding", "gzip".parse().unwrap());
    asking.headers_mut().insert("range", "bytes=0-15".parse().unwrap());
    asking.headers_mut().insert("if-range", "\"tag\"".parse().unwrap());
    assert_eq!(agent.send_request(asking).await.unwrap().status(), StatusCode::BAD_GATEWAY);
    for asked in upstream.asked() {
        assert_eq!(asked.headers["accept-encoding"], "identity");
        assert!(!asked.headers.contains_key("range") && !asked.headers.contains_key("if-range"));
    }
    world.stop().await;
}

/// Rule: a key that is not a secret is not hidden: it would be found everywhere.
#[tokio::test]
async fn a_key_that_is_a_mere_word_spoils_no_answer() {
    let upstream = Upstream::start(|_| async { Response::new(full("the box is EMPTY")) }).await;
    let mut world = World::start(&upstream.url);
    write_key(&world.key_file, "EMPTY");
    assert_eq!(world.post("/v1", "{}").await.body, "the box is EMPTY");
    assert_eq!(upstream.asked()[0].headers["authorization"], "Bearer EMPTY");
    world.stop().await;
}

/// Rule: the key is read at each request, so that a new one needs no restart; each that is used is
/// hidden in the session's events.
#[tokio::test]
async fn a_new_key_is_used_from_the_next_request_on() {
    let upstream = Upstream::fine().await;
    let mut world = World::start(&upstream.url);
    world.post("/", "").await;
    write_key(&world.key_file, "sk-another");
    world.post("/", "").await;
    let keys: Vec<_> =
        upstream.asked().into_iter().map(|asked| asked.headers["authorization"].clone()).collect();
    assert_eq!(keys, [format!("Bearer {KEY}").as_str(), "Bearer sk-another"]);
    assert_eq!(*world.records.2.lock().unwrap(), [KEY, "sk-another"]);
    world.stop().await;
}

/// Rule: a key that others can read is refused by name, before anything starts and while it runs.
#[tokio::test]
async fn a_key_file_that_others_can_read_is_refused() {
    let upstream = Upstream::fine().await;
    let mut world = World::start(&upstream.url);
    std::fs::set_permissions(&world.key_file, Permissions::from_mode(0o640)).unwrap();
    let answer = world.post("/", "").await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(answer.body.contains("`m`") && answer.body.contains("ringback doctor"), "{answer:?}");
    assert!(!answer.body.contains(world.dir.path().to_str().unwrap()), "{answer:?}");
    assert_eq!(upstream.asked().len(), 0);
    let provider = provider(&upstream.url, KeyFile::new(world.key_file.clone()));
    let refused = ModelDoors::new(Config::default(), [("m".to_owned(), provider)].into());
    let (model, error) = refused.unwrap_err();
    assert!(model == "m" && error.to_string().contains("chmod 600"), "{error}");
    assert!(error.to_string().contains(world.key_file.to_str().unwrap()), "{error}");
    world.stop().await;
}

/// Rule: a key does not go over a network unencrypted.
#[test]
fn a_key_for_plain_http_beyond_this_machine_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    write_key(&path, KEY);
    let mut provider = provider("http://models.example", KeyFile::new(path));
    assert!(matches!(provider.check(), Err(ProviderError::Clear)));
    provider.key = None;
    provider.check().unwrap();
}

/// REQ: "Model access without the key in the box": the daemon talks TLS to the provider.
#[tokio::test]
async fn a_provider_with_tls_is_asked_if_its_root_is_trusted_and_not_otherwise() {
    let (root, acceptor) = tls();
    let answer = |_| async { Response::new(full("over TLS")) };
    let upstream = Upstream::start_with(Some(acceptor), answer).await;
    let dir = tempfile::tempdir().unwrap();
    let (trusted, other) = (dir.path().join("root.pem"), dir.path().join("other.pem"));
    std::fs::write(&trusted, root).unwrap();
    std::fs::write(&other, tls().0).unwrap();

    let mut world =
        World::start_with(&upstream.url, Config::default(), |model| model.ca_file = Some(trusted));
    let answer = world.post("/v1/messages", "{}").await;
    assert_eq!((answer.status, answer.body.as_str()), (StatusCode::OK, "over TLS"));
    assert_eq!(upstream.asked()[0].headers["authorization"], format!("Bearer {KEY}"));
    world.stop().await;

    let mut world =
        World::start_with(&upstream.url, Config::default(), |model| model.ca_file = Some(other));
    let answer = world.post("/v1/messages", "{}").await;
    assert_eq!(answer.status, StatusCode::BAD_GATEWAY);
    assert!(answer.body.contains("is not trusted"), "{answer:?}");
    assert_eq!(upstream.asked().len(), 1, "the key stayed here");
    world.stop().await;
}

/// Rule: a file without root certificates is refused before anything starts.
#[test]
fn a_file_of_roots_without_a_root_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (path, roots) = (dir.path().join("key"), dir.path().join("roots.pem"));
    write_key(&path, KEY);
    std::fs::write(&roots, "nothing").unwrap();
    let mut provider = provider("https://models.example", KeyFile::new(path));
    provider.ca_file = Some(roots);
    let error = provider.check().unwrap_err().to_string();
    assert!(error.contains("roots.pem") && error.contains("PEM"), "{error}");
}

/// Rule: neither the key nor a payload is in a log, at any level, in a record or in a `Debug`,
/// whatever becomes of the request.
#[tokio::test]
async fn neither_the_key_nor_a_payload_is_ever_logged_or_recorded() {
    let (logs, _capturing) = Logs::capture_here();
    let upstream = Upstream::start(|request: Request<_>| async move {
        let is_broken = request.uri().path() == "/broken";
        let body: hyper::body::Incoming = request.into_body();
        drop(body.collect().await);
        let mut response = Response::new(full("payload-2"));
        if is_broken {
            response.headers_mut().insert("content-length", "1000".parse().unwrap());
        }
        response
    })
    .await;
    let mut world = World::start(&upstream.url);
    world.post("/v1?secret=payload-3", "payload-1").await;
    let mut agent = world.connect().await;
    // The provider cannot send that much, and breaks off.
    drop(agent.send_request(post("/broken", full("payload-1"))).await);
    std::fs::write(&world.key_file, format!("{KEY}\n{KEY}")).unwrap();
    world.post("/v1", "payload-1").await;
    let records = world.records(3).await;
    let shown = format!("{records:?} {:?}", world.doors);
    world.stop().await;

    ask_one_that_is_down(&shown).await;
    let text = logs.text();
    assert!(text.contains("cannot use the key"), "something was logged: {text}");
    for secret in [KEY, "payload-", PLACEHOLDER] {
        assert!(!text.contains(secret) && !shown.contains(secret), "{text} {shown}");
    }
}

/// A request to a provider that is down, while everything is logged.
async fn ask_one_that_is_down(shown: &str) {
    let mut world = World::start("http://127.0.0.1:1");
    let answer = world.post("/v1", "payload-1").await;
    assert_eq!(answer.status, StatusCode::BAD_GATEWAY, "{shown}");
    world.stop().await;
}

fn provider(url: &str, key: KeyFile) -> Provider {
    let url: BaseUrl = url.parse().unwrap();
    let (header, prices) = (KeyHeader::default(), Prices::default());
    Provider {
        url,
        key: Some(KeySource::File(key)),
        header,
        ca_file: None,
        requests_max: None,
        prices,
        api: None,
        variable: None,
    }
}

/// A root certificate, and a provider named `localhost` that it certifies.
fn tls() -> (String, TlsAcceptor) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root_key = KeyPair::generate().unwrap();
    let root = params.self_signed(&root_key).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec!["localhost".to_owned()])
        .unwrap()
        .signed_by(&key, &Issuer::from_params(&params, &root_key))
        .unwrap();
    let chain = vec![CertificateDer::from(leaf.der().to_vec())];
    let secret = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, secret)
        .unwrap();
    (root.pem(), TlsAcceptor::from(Arc::new(config)))
}

/// Rule: a session's own key is used only where the provider's secret does not exist, and for no
/// other session.
#[tokio::test]
async fn a_sessions_own_key_is_used_where_no_secret_is_stored() {
    let upstream = Upstream::fine().await;
    let vault_dir = tempfile::tempdir().unwrap();
    let rules = CommandRules { timeout: Duration::from_secs(1), kept: Duration::ZERO };
    let vault = Arc::new(Vault::new(vault_dir.path().join("secrets"), rules));
    let name: SecretName = "m".parse().unwrap();
    let source = KeySource::Secret { name: name.clone(), vault: Arc::clone(&vault) };
    let mut world = World::start(&upstream.url);
    let provider = Provider {
        key: Some(source),
        ..provider(&upstream.url, KeyFile::new(world.key_file.clone()))
    };
    let known = [("k".to_owned(), Ok(provider)), ("away".to_owned(), Err("set `url`".to_owned()))];
    world.doors = Arc::new(
        ModelDoors::new(Config::default(), BTreeMap::new()).unwrap().with_known(known.into()),
    );
    let doors = Arc::clone(&world.doors);
    let missing = doors.check("k", None).unwrap();
    assert!(matches!(&missing, ProviderKey::Missing(advice) if advice.contains("secret set m")));
    assert_eq!(doors.check("away", None).unwrap_err(), "set `url`");
    assert!(doors.check("other", None).unwrap_err().contains("there are away, k"));
    let own = SessionKey::default();
    world.guard = None;
    world.guard = Some(world.open_with(world.session, "k", own.clone()));
    assert_eq!(world.post("/", "").await.status, StatusCode::SERVICE_UNAVAILABLE);
    own.set(Secret::new("sk-own-0123456789".to_owned()));
    assert_eq!(world.post("/", "").await.status, StatusCode::OK);
    let now = SecretSource::value("sk-stored-0123456789").unwrap();
    vault.set(&name, now, 0).unwrap();
    assert_eq!(world.post("/", "").await.status, StatusCode::OK);
    let sent = upstream.asked().into_iter().map(|asked| asked.headers["authorization"].clone());
    assert_eq!(
        sent.collect::<Vec<_>>(),
        ["Bearer sk-own-0123456789", "Bearer sk-stored-0123456789"]
    );
    let records = world.records(3).await;
    let origins = records.iter().map(|(_, record)| record.key.as_deref().unwrap());
    assert_eq!(origins.collect::<Vec<_>>(), ["secret m", "session", "secret m"]);
    assert!(records[0].1.refusal.is_some() && records[1].1.refusal.is_none());
    assert_eq!(doors.check("k", Some("openai")).unwrap(), ProviderKey::Ready);
    world.stop().await;
}
