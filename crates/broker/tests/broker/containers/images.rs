//! Images of projects, and their builds.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use camino::Utf8PathBuf;
use ringback_broker::{AgentCommand, Answer, Config, Confinement, ImageName, ImageSource};
use ringback_proto::envelope::CallOptions;
use ringback_proto::principal::Level;
use ringback_proto::request::{
    ContainerExecRequest, ContainerStateResponse, ImageRebuildRequest, ImageRebuiltResponse,
    JobCancelRequest, JobCancelledResponse, ProjectCreateRequest, ProjectResponse,
};
use ringback_proto::{ResponseEnvelope, StreamChunk};
use ringback_sandbox::{BackendChoice, BuildNetwork};
use ringback_testkit::{engine, wait_for};

use super::place::{Place, executes, n_running, runs, unique_seconds};
use crate::common::{call as plain, reply};
use crate::confinement::SHELL;
use crate::sessions::{
    call, is_idle, named, refused, said, say, to_project, token, until as until_said,
};

/// An image of the configuration that is removed with its test.
struct Image {
    name: ImageName,
    dir: tempfile::TempDir,
}

impl Image {
    /// Builds an image from these steps, under its own name: all tests share an engine.
    fn new(steps: &str) -> Self {
        let name = ImageName::new(&format!("t{}", unique_seconds())).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let text = format!("FROM {}\n{steps}\n", engine::IMAGE);
        std::fs::write(dir.path().join("Dockerfile"), text).unwrap();
        Self { name, dir }
    }

    async fn place(&self) -> Option<Place> {
        engine::socket()?;
        Some(Place::with(BackendChoice::Docker, |config| self.configure(config)).await)
    }

    fn configure(&self, config: &mut Config) {
        let dir = Utf8PathBuf::from_path_buf(self.dir.path().to_owned()).unwrap();
        let source = ImageSource { dir, network: BuildNetwork::None };
        config.containers.images.insert(self.name.clone(), source);
        let command = ["/bin/sh", "-c", SHELL].map(str::to_owned).to_vec();
        let agent = AgentCommand { command, ..AgentCommand::default() };
        config.sessions.agents.insert("shell".to_owned(), agent);
        config.sessions.agent_default = "shell".to_owned();
    }

    fn rebuild(&self) -> ImageRebuildRequest {
        ImageRebuildRequest { project_id: None, image: Some(self.name.to_string()) }
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        if engine::socket().is_some() {
            remove(&self.name.tag());
        }
    }
}

/// Removes an image from the engine.
fn remove(tag: &str) {
    let mut stream = UnixStream::connect(engine::socket().unwrap()).unwrap();
    write!(stream, "DELETE /images/{tag} HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
}

fn with_image(image: &str) -> ProjectCreateRequest {
    ProjectCreateRequest { image: Some(image.to_string()), ..named(image) }
}

/// Follows a call to its end: returns the lines of its log, and its answer.
async fn followed(
    place: &Place,
    request: ImageRebuildRequest,
) -> (Vec<String>, ImageRebuiltResponse) {
    let mut call = plain(&place.who, request);
    call.envelope.options = CallOptions { stream: true, ..CallOptions::default() };
    let Answer::Later(mut replies, _) = place.fixture.broker.call(call) else {
        panic!("answered immediately")
    };
    let mut lines = Vec::new();
    loop {
        match replies.next().await.expect("an end") {
            ResponseEnvelope::StreamChunk {
                chunk: StreamChunk::LogLine { message, .. }, ..
            } => {
                lines.push(message);
            }
            ResponseEnvelope::StreamStart { .. } => {}
            ResponseEnvelope::StreamEnd { final_response: Some(response), .. } => {
                return (lines, ImageRebuiltResponse::try_from(response).unwrap());
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Rule: bubblewrap has no images; the error names it and says what to do instead.
#[tokio::test]
async fn bubblewrap_refuses_an_image_by_name() {
    let image = Image { name: ImageName::new("tools").unwrap(), dir: tempfile::tempdir().unwrap() };
    let place = Place::with(BackendChoice::Bubblewrap, |config| image.configure(config)).await;
    let refusals = [
        refused(&place.fixture, &place.who, with_image("tools")).await,
        refused(&place.fixture, &place.who, with_image("debian:12")).await,
        refused(&place.fixture, &place.who, image.rebuild()).await,
    ];
    for (code, message) in refusals {
        assert_eq!(code, "conflict");
        for part in ["bubblewrap has no images", "sandbox.backend = \"docker\""] {
            assert!(message.contains(part), "{part}: {message}");
        }
    }
}

/// Rule: an image is named by its project or by its own name, and by exactly one of the two.
#[tokio::test]
async fn a_build_names_one_image() {
    let place = Place::bubblewrap().await;
    let project = Some(place.project().await);
    let both = ImageRebuildRequest { project_id: project, image: Some("tools".to_owned()) };
    for request in [ImageRebuildRequest::default(), both] {
        assert_eq!(refused(&place.fixture, &place.who, request).await.0, "invalid_params");
    }
    let without = ImageRebuildRequest { project_id: project, image: None };
    let (code, message) = refused(&place.fixture, &place.who, without).await;
    assert_eq!(code, "conflict");
    assert!(message.contains("has no image of its own"), "{message}");
}

/// REQ: "image per project, `image_rebuild` as a job with streamed build log": a writer's project
/// runs its sessions, its container and its commands in an image of the configuration.
#[tokio::test]
async fn an_image_is_built_and_its_project_runs_in_it() {
    let image = Image::new("RUN echo a step of the build; echo tools > /which");
    let Some(place) = image.place().await else { return };
    let writer = token(&place.fixture, Level::Write).await;
    let made: ProjectResponse =
        call(&place.fixture, &writer, with_image(image.name.as_str())).await;
    let project = made.project_id;
    assert_eq!(made.image, Some(image.name.to_string()));
    for (code, message) in [
        refused(&place.fixture, &writer, runs(project, "true")).await,
        refused(&place.fixture, &writer, to_project(project, "true")).await,
    ] {
        assert_eq!(code, "conflict");
        assert!(message.contains("image_rebuild"), "{message}");
    }
    let request = ImageRebuildRequest { project_id: Some(project), image: None };
    let (lines, built) = followed(&place, request).await;
    assert!(lines.iter().any(|line| line.contains("a step of the build")), "{lines:?}");
    assert_eq!(built.image, image.name.to_string());
    assert!(built.digest.starts_with("sha256:"), "{built:?}");

    let script = runs(project, "cat /which; while :; do sleep 0.05; done");
    let started: ContainerStateResponse = call(&place.fixture, &writer, script).await;
    assert_eq!(started.image, Some(image.name.tag()));
    place.until_it_wrote(project, "tools\n").await;
    assert_eq!(place.says(project, "cat /which").await, "tools\n");
    let workspace_id = Some(place.workspace(project).await);
    let apart = ContainerExecRequest { workspace_id, ..executes(project, "cat /which") };
    assert_eq!(place.exec(apart).await.unwrap().stdout, "tools\n");
    let session = say(&place.fixture, &writer, to_project(project, "cat /which")).await;
    let since = session.last_event_index;
    let events = until_said(&place.fixture, &writer, session.session_id, since, is_idle).await;
    assert_eq!(said(&events)[0].trim(), "tools", "{events:?}");
}

/// Rule: one build of an image at a time; a second is busy, and cancelling ends the first.
#[tokio::test]
async fn a_second_build_is_busy_and_a_cancelled_one_ends() {
    let seconds = unique_seconds();
    let image = Image::new(&format!("RUN sleep {seconds}"));
    let Some(place) = image.place().await else { return };
    let first = reply(&place.fixture.broker, plain(&place.who, image.rebuild())).await;
    let ResponseEnvelope::JobStarted { job_id, .. } = first else { panic!("{first:?}") };
    wait_for("it runs", async || n_running(&["sleep", &seconds]) == 1).await;
    assert_eq!(refused(&place.fixture, &place.who, image.rebuild()).await.0, "busy");
    let _: JobCancelledResponse =
        call(&place.fixture, &place.who, JobCancelRequest { job_id }).await;
    wait_for("it is gone", async || n_running(&["sleep", &seconds]) == 0).await;
    let made: ProjectResponse =
        call(&place.fixture, &place.who, with_image(image.name.as_str())).await;
    let start = runs(made.project_id, "true");
    assert_eq!(
        refused(&place.fixture, &place.who, start).await.0,
        "conflict",
        "no image was built"
    );
}

/// Rule: a build that fails says why, also to a caller that did not follow it.
#[tokio::test]
async fn a_build_that_fails_says_why() {
    let image = Image::new("RUN echo what is wrong; exit 3");
    let Some(place) = image.place().await else { return };
    let (code, message) = refused(&place.fixture, &place.who, image.rebuild()).await;
    assert_eq!(code, "tool_failed");
    assert!(message.contains("what is wrong"), "{message}");
    let none = ImageRebuildRequest { project_id: None, image: Some("another".to_owned()) };
    let (code, message) = refused(&place.fixture, &place.who, none).await;
    assert_eq!(code, "not_found");
    assert!(message.contains(image.name.as_str()), "{message}");
}

/// Rule: a token with scope `write` chooses among the images of the configuration; any other image
/// needs `admin`.
#[tokio::test]
async fn an_image_outside_of_the_configuration_needs_admin() {
    let image = Image::new("");
    let Some(place) = image.place().await else { return };
    let writer = token(&place.fixture, Level::Write).await;
    let (code, message) = refused(&place.fixture, &writer, with_image(engine::IMAGE)).await;
    assert_eq!(code, "permission_denied");
    assert!(message.contains(image.name.as_str()), "{message}");
    let made: ProjectResponse = call(&place.fixture, &place.who, with_image(engine::IMAGE)).await;
    place.start(made.project_id, "echo up; sleep 1000").await;
    place.until_it_wrote(made.project_id, "up").await;
    let by_project = ImageRebuildRequest { project_id: Some(made.project_id), image: None };
    assert_eq!(refused(&place.fixture, &place.who, by_project).await.0, "conflict");
    let missing: ProjectResponse =
        call(&place.fixture, &place.who, with_image("no-such-image:1")).await;
    let (code, message) =
        refused(&place.fixture, &place.who, runs(missing.project_id, "true")).await;
    assert_eq!(code, "conflict");
    assert!(message.contains("docker pull no-such-image:1"), "{message}");
    let spaced = refused(&place.fixture, &place.who, with_image("two words")).await;
    assert_eq!(spaced.0, "invalid_params");
}

/// Rule: an image that is no longer available is refused by name, and never looked up elsewhere.
#[tokio::test]
async fn an_image_that_is_gone_from_the_configuration_is_refused() {
    let image = Image::new("");
    let Some(place) = image.place().await else { return };
    followed(&place, image.rebuild()).await;
    let made: ProjectResponse =
        call(&place.fixture, &place.who, with_image(image.name.as_str())).await;
    let without = place.restarted().await;
    let start = runs(made.project_id, "true");
    let (code, message) = refused(&without.fixture, &without.who, start.clone()).await;
    assert_eq!(code, "not_found");
    assert!(message.contains("sandbox.images"), "{message}");
    let other = Place { backend: BackendChoice::Bubblewrap, ..without }.restarted().await;
    for request in [
        refused(&other.fixture, &other.who, start).await,
        refused(&other.fixture, &other.who, to_project(made.project_id, "true")).await,
    ] {
        assert_eq!(request.0, "conflict");
        assert!(request.1.contains("bubblewrap has no images"), "{request:?}");
    }
}

/// Rule: a project with its own image needs no other; for one without, the error names the missing
/// key.
#[tokio::test]
async fn a_project_with_an_image_needs_no_default_one() {
    if engine::socket().is_none() {
        return;
    }
    let without = |config: &mut Config| {
        if let Confinement::Sandbox(rules) = &mut config.sessions.confinement {
            rules.docker.image = None;
        }
    };
    let place = Place::with(BackendChoice::Docker, without).await;
    let made: ProjectResponse = call(&place.fixture, &place.who, with_image(engine::IMAGE)).await;
    place.start(made.project_id, "echo up; sleep 1000").await;
    place.until_it_wrote(made.project_id, "up").await;
    let bare = place.project().await;
    let (code, message) = refused(&place.fixture, &place.who, runs(bare, "true")).await;
    assert_eq!(code, "tool_failed");
    assert!(message.contains("`sandbox.image`"), "{message}");
}
