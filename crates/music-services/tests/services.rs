//! Requests to real HTTP services that these tests start.
#![expect(clippy::unwrap_used, reason = "a test names what it expects and fails on the rest")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use bytes::Bytes;
use ringback_music_services::predict::*;
use ringback_music_services::*;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Longer than anything here takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);

/// A service with configurable answers.
struct RunningService {
    endpoint: Endpoint,
    _serving: JoinSet<()>,
}

async fn serve(router: Router) -> RunningService {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let mut serving = JoinSet::new();
    serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
    RunningService { endpoint, _serving: serving }
}

async fn answering(
    status: u16,
    headers: &'static [(&'static str, &'static str)],
    body: &str,
) -> RunningService {
    let body = body.to_owned();
    let answer = move || {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        let answer = (StatusCode::from_u16(status).unwrap(), map, body.clone());
        std::future::ready(answer)
    };
    serve(Router::new().route("/predict", post(answer))).await
}

fn services(service: Service, endpoint: &Endpoint) -> Services {
    Services::new(Settings {
        endpoints: BTreeMap::from([(service, endpoint.clone())]),
        ..Settings::default()
    })
}

fn ask(service: Service) -> ServiceRequest<'static> {
    let (body, parts) = (Bytes::from_static(b"{}"), mpsc::channel(1).0);
    ServiceRequest { service, body, traceparent: None, tell: &|_| {}, parts }
}

fn notes() -> OrpheusPredict {
    OrpheusPredict {
        model: "base".to_owned(),
        task: "continue",
        sampling: Sampling { temperature: 1.0, top_p: 0.5, max_tokens: 64 },
        num_variations: 2,
        midi_input: Some(Base64(Bytes::from_static(b"MThd\x00\xff"))),
    }
}

/// REQ: services are asked at `/predict` in the shapes they know, with the trace and the job.
#[tokio::test]
async fn a_service_is_asked_in_its_own_words_and_its_answer_is_read() {
    type SeenRequests = Arc<Mutex<Vec<(HeaderMap, serde_json::Value)>>>;
    let seen = SeenRequests::default();
    let inside = Arc::clone(&seen);
    let answer = move |headers: HeaderMap, body: Bytes| {
        inside.lock().unwrap().push((headers, serde_json::from_slice(&body).unwrap()));
        std::future::ready(r#"{"variations":[{"midi_base64":"TVRoZA==","num_tokens":3}],"more":1}"#)
    };
    let running = serve(Router::new().route("/orpheus/predict", post(answer))).await;
    let endpoint: Endpoint = format!("{}/orpheus", running.endpoint).parse().unwrap();
    let services = services(Service::Orpheus, &endpoint);
    let body = encode(&notes(), Some("job_1"));
    let traceparent = Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned());
    let asked =
        services.ask(ServiceRequest { body, traceparent, ..ask(Service::Orpheus) }).await.unwrap();
    let answer = decode::<OrpheusPredict>(Service::Orpheus, &asked).unwrap();
    assert_eq!(answer.variations[0].midi_base64.0, "MThd");
    let (headers, body) = seen.lock().unwrap().remove(0);
    assert_eq!(headers["traceparent"].to_str().unwrap().len(), 55);
    assert_eq!(
        body,
        serde_json::json!({
            "model": "base", "task": "continue", "temperature": 1.0, "top_p": 0.5, "max_tokens": 64,
            "num_variations": 2, "midi_input": "TVRoZAD/", "client_job_id": "job_1",
        })
    );
    assert_eq!(services.health(), [(Service::Orpheus, Health::Answering)]);
}

/// REQ: 429 and 503 with Retry-After are honoured while there is time.
#[tokio::test]
async fn a_busy_service_is_asked_again_when_it_says() {
    let n_asked = Arc::new(AtomicUsize::new(0));
    let inside = Arc::clone(&n_asked);
    let answer = move || {
        let status = match inside.fetch_add(1, Ordering::SeqCst) {
            0 => StatusCode::TOO_MANY_REQUESTS,
            1 => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::OK,
        };
        std::future::ready((status, [("retry-after", "0")], "{}"))
    };
    let running = serve(Router::new().route("/predict", post(answer))).await;
    let services = services(Service::Clap, &running.endpoint);
    let told = Mutex::new(Vec::new());
    let tell = |what| told.lock().unwrap().push(what);
    let asked = services.ask(ServiceRequest { tell: &tell, ..ask(Service::Clap) }).await.unwrap();
    assert_eq!((asked, n_asked.load(Ordering::SeqCst)), (Bytes::from_static(b"{}"), 3));
    let waits =
        told.lock().unwrap().iter().filter(|it| matches!(it, RequestProgress::Waiting(_))).count();
    assert_eq!(waits, 2);
}

/// Rule: a retry that would exceed the time limit is not waited for.
#[tokio::test]
async fn a_service_that_stays_busy_is_told_at_once() {
    for (status, headers, seconds) in [
        (429, &[("retry-after", "3600")][..], 3600),
        (503, &[("retry-after", "86400")][..], 86_400),
    ] {
        let running = answering(status, headers, "").await;
        let services = services(Service::Yue, &running.endpoint);
        let error = tokio::time::timeout(LIMIT, services.ask(ask(Service::Yue))).await.unwrap();
        match error {
            Err(RequestError::Busy { retry_after, .. }) => {
                assert_eq!(retry_after.as_secs(), seconds)
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(services.health(), [(Service::Yue, Health::Busy)]);
    }
}

/// REQ: typed errors when a service is not configured, unreachable, silent, or fails.
#[tokio::test]
async fn what_goes_wrong_is_told_apart() {
    let service = Service::Musicgen;
    let none = Services::new(Settings::default());
    let error = none.ask(ask(service)).await.unwrap_err();
    assert!(matches!(error, RequestError::NotConfigured { .. }));
    assert!(error.to_string().contains("`studio.services.musicgen`"), "{error}");

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint: Endpoint = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    drop(listener);
    let gone = services(service, &endpoint);
    let error = gone.ask(ask(service)).await.unwrap_err();
    assert!(matches!(error, RequestError::Unreachable { .. }), "{error:?}");
    assert_eq!(gone.health(), [(service, Health::Silent)]);

    for (status, body, expected) in [
        (422, r#"{"detail":"no such model"}"#, "refused the request (422): no such model"),
        (422, r#"{"detail":[{"loc":["body"]}]}"#, r#"(422): [{"loc":["body"]}]"#),
        (500, "out of memory", "failed (500): out of memory"),
        (302, "", "failed (302): no message"),
    ] {
        let running = answering(status, &[("location", "http://127.0.0.1:1/")], body).await;
        let error = services(service, &running.endpoint).ask(ask(service)).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}

/// REQ: a service has a limited time.
#[tokio::test]
async fn a_silent_service_runs_out_of_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint: Endpoint = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let services = Services::new(Settings {
        endpoints: BTreeMap::from([(Service::Beatthis, endpoint)]),
        patience: Some(Duration::from_millis(50)),
        ..Settings::default()
    });
    let error = services.ask(ask(Service::Beatthis)).await.unwrap_err();
    assert!(matches!(error, RequestError::Timeout { .. }), "{error:?}");
    drop(listener);
}

/// REQ: no answer is read beyond its limit, announced or not.
#[tokio::test]
async fn an_answer_over_the_limit_is_refused() {
    let running = answering(200, &[], &"x".repeat(5000)).await;
    let services = Services::new(Settings {
        endpoints: BTreeMap::from([(Service::Yue, running.endpoint.clone())]),
        answer_bytes_max: 4999,
        ..Settings::default()
    });
    let error = services.ask(ask(Service::Yue)).await.unwrap_err();
    assert!(matches!(error, RequestError::TooLarge { bytes_max: 4999, .. }), "{error:?}");
}

/// Rule: dropping a request closes the connection to the service.
#[tokio::test]
async fn a_call_that_is_dropped_closes_its_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint: Endpoint = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let services = services(Service::Musicgen, &endpoint);
    let mut call = Box::pin(services.ask(ask(Service::Musicgen)));
    let mut accepted = tokio::select! {
        accepted = listener.accept() => accepted.unwrap().0,
        asked = &mut call => panic!("{asked:?}"),
    };
    let mut head = [0; 16];
    tokio::select! {
        read = accepted.read_exact(&mut head) => assert_eq!(read.unwrap(), 16),
        asked = &mut call => panic!("{asked:?}"),
    }
    assert_eq!(&head, b"POST /predict HT");
    drop(call);
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(LIMIT, accepted.read_to_end(&mut rest)).await;
    // A reset is fine as well.
    drop(ended.expect("the connection ends"));
}

/// Rule: an answer in another format is reported as an error, and `{"error"}` with its message.
#[test]
fn an_answer_of_another_shape_is_an_error() {
    let read = |answer: &str| decode::<YuePredict>(Service::Yue, answer.as_bytes()).unwrap_err();
    assert!(matches!(read("nothing"), RequestError::Malformed { .. }));
    assert!(matches!(read(r#"{"audio_base64":"***"}"#), RequestError::Malformed { .. }));
    assert!(read(r#"{"error":"no GPU"}"#).to_string().contains("no GPU"));
}

/// Rule: labels are read in every format that services use.
#[test]
fn labels_are_read_in_every_way() {
    for text in [
        r#"[{"label":"b","score":0.25},{"label":"a","score":0.75}]"#,
        r#"{"a":0.75,"b":0.25}"#,
        r#"{"top_label":"a","top_score":0.75,"predictions":{"a":0.75,"b":0.25}}"#,
        r#"{"top_label":"a","confidence":0.75,"scores":[{"label":"a","score":0.75},{"label":"b","score":0.25}]}"#,
    ] {
        let labels: Labels = serde_json::from_str(text).unwrap();
        let ranked: Vec<_> = labels.ranked().into_iter().map(|it| (it.label, it.score)).collect();
        assert_eq!(ranked, [("a".to_owned(), 0.75), ("b".to_owned(), 0.25)], "{text}");
    }
    let told: SoundAnalysis = serde_json::from_str(r#"{"similarity":{"score":0.5}}"#).unwrap();
    assert_eq!(told.similarity.unwrap().score(), 0.5);
}

const STREAMED: &[(&str, &str)] = &[("content-type", "application/x-ndjson; charset=utf-8")];

/// Asks a service that streams this answer, and returns its parts too.
async fn streamed(body: &str, bytes_max: usize) -> (Result<Bytes, RequestError>, Vec<ServicePart>) {
    let running = answering(200, STREAMED, body).await;
    let endpoints = BTreeMap::from([(Service::Musicgen, running.endpoint.clone())]);
    let settings = Settings { endpoints, answer_bytes_max: bytes_max, ..Settings::default() };
    let services = Services::new(settings);
    let (parts, mut found) = mpsc::channel(100);
    let asked = services.ask(ServiceRequest { parts, ..ask(Service::Musicgen) }).await;
    let mut all = Vec::new();
    while let Ok(part) = found.try_recv() {
        all.push(part);
    }
    (asked, all)
}

/// REQ: a service may stream its answer: progress, sound and MIDI come as it makes them.
#[tokio::test]
async fn a_streamed_answer_comes_in_parts_and_then_whole() {
    let lines = "{\"progress\":12.5,\"message\":\"warm\"}\n\n\
        {\"audio_base64\":\"AAAAPwAAAL8=\",\"sample_rate\":32000,\"channels\":2}\r\n\
        {\"midi\":[[24,\"kDxk\"]]}\n{\"result\":{\"audio_base64\":\"UklGRg==\"}}";
    for body in [lines.to_owned(), format!("{lines}\n{{\"progress\":1}}\n")] {
        let (answer, parts) = streamed(&body, 1000).await;
        assert_eq!(answer.unwrap(), r#"{"audio_base64":"UklGRg=="}"#);
        let samples = [0.5_f32, -0.5].map(f32::to_le_bytes).concat().into();
        let midi = vec![(24, Bytes::from_static(&[0x90, 60, 100]))];
        let expected = [
            ServicePart::Progress { percent: 12.5, message: "warm".to_owned() },
            ServicePart::Audio { samples, sample_rate: 32_000, channels: 2 },
            ServicePart::Midi(midi),
        ];
        assert_eq!(parts, expected);
    }
}

/// Rule: a streamed answer that is unusable or too large is an error of the service.
#[tokio::test]
async fn a_streamed_answer_is_checked_line_by_line() {
    for body in [
        "",
        "{\"progress\":1}\n",
        "{\"progress\":101}\n",
        "{}\n",
        "nonsense\n",
        "{\"audio_base64\":\"AAA=\",\"sample_rate\":1,\"channels\":1}\n{\"result\":1}",
        "{\"audio_base64\":\"\",\"sample_rate\":8000}\n{\"result\":1}",
    ] {
        let (answer, _) = streamed(body, 1000).await;
        assert!(matches!(answer, Err(RequestError::Malformed { .. })), "{body}: {answer:?}");
    }
    let long = format!("{{\"progress\":1,\"message\":\"{}\"}}", "x".repeat(2000));
    let (answer, _) = streamed(&long, 1000).await;
    assert!(matches!(answer, Err(RequestError::TooLarge { bytes_max: 1000, .. })), "{answer:?}");
    let (answer, _) = streamed("{\"error\":\"out of memory\"}\n", 1000).await;
    let failed = decode::<MusicgenPredict>(Service::Musicgen, &answer.unwrap()).unwrap_err();
    assert!(failed.to_string().contains("out of memory"), "{failed}");
}
