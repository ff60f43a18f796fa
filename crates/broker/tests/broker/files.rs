//! File transfer to and from workspaces, and diffs of one. The test plays the agent: it writes into
//! the workspace's directory as an agent does, links included.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use ringback_broker::Credential;
use ringback_proto::data::Data;
use ringback_proto::ids::{ProjectId, SessionId, WorkspaceId};
use ringback_proto::principal::KeyLevel;
use ringback_proto::request::{
    AckResponse, CasContentResponse, CasGetRequest, ChangeKind, FileKind, ProjectCreateRequest,
    SessionResponse, SessionSpawnRequest, WorkspaceChange, WorkspaceContentResponse,
    WorkspaceDeleteRequest, WorkspaceDiffRequest, WorkspaceDiffResponse, WorkspaceGetRequest,
    WorkspacePutRequest,
};

use crate::common::{World, start_with};
use crate::sessions::{call, end, is_idle, refused, say, to_session, until, with_echo};

/// A session in a workspace of its own.
struct Place {
    fixture: World,
    who: Credential,
    project: ProjectId,
    workspace: WorkspaceId,
    session: SessionId,
    dir: PathBuf,
}

fn spawn(project_id: ProjectId) -> SessionSpawnRequest {
    SessionSpawnRequest {
        project_id,
        workspace_id: None,
        create_workspace: true,
        agent: None,
        context: None,
        caller_id: None,
        caller_tools: None,
        network: None,
        limits: None,
        toolchains: None,
        model: None,
        permissions: None,
    }
}

impl Place {
    async fn new() -> Self {
        let fixture = start_with(with_echo).await;
        let who = Credential::local();
        let project = crate::sessions::project(&fixture, &who).await;
        let made: SessionResponse = call(&fixture, &who, spawn(project)).await;
        let dir = PathBuf::from(made.workspace_path);
        let (workspace, session) = (made.workspace_id, made.session_id);
        Self { fixture, who, project, workspace, session, dir }
    }

    fn get(&self, path: &str) -> WorkspaceGetRequest {
        WorkspaceGetRequest {
            project_id: self.project,
            workspace_id: self.workspace,
            path: (!path.is_empty()).then(|| path.to_owned()),
            recursive: false,
            archive: false,
            limit: None,
            cursor: None,
        }
    }

    fn put(&self, path: &str, text: &str) -> WorkspacePutRequest {
        WorkspacePutRequest {
            project_id: self.project,
            workspace_id: self.workspace,
            path: Some(path.to_owned()),
            data: Some(Data::from(text.as_bytes().to_vec())),
            content_hash: None,
            executable: false,
            archive: false,
        }
    }

    fn diff_request(&self) -> WorkspaceDiffRequest {
        WorkspaceDiffRequest { project_id: self.project, workspace_id: self.workspace, path: None }
    }

    async fn got(&self, request: WorkspaceGetRequest) -> WorkspaceContentResponse {
        call(&self.fixture, &self.who, request).await
    }

    async fn done(&self, request: impl Into<ringback_proto::ToolRequest>) -> AckResponse {
        call(&self.fixture, &self.who, request).await
    }

    async fn wrote(&self, path: &str, text: &str) {
        let ack = self.done(self.put(path, text)).await;
        assert!(ack.message.contains(path), "{ack:?}");
    }

    async fn diff(&self) -> WorkspaceDiffResponse {
        call(&self.fixture, &self.who, self.diff_request()).await
    }

    async fn refused(&self, request: impl Into<ringback_proto::ToolRequest>) -> (String, String) {
        refused(&self.fixture, &self.who, request).await
    }

    /// Starts the agent: the present files are the start.
    async fn begin(&self) {
        let said = say(&self.fixture, &self.who, to_session(self.session, "hello")).await;
        until(&self.fixture, &self.who, self.session, said.last_event_index, is_idle).await;
    }
}

fn bytes(got: WorkspaceContentResponse) -> Vec<u8> {
    got.data.expect("its bytes").0.to_vec()
}

/// REQ: "Files in and out: listing, single files".
#[tokio::test]
async fn files_go_in_and_out_of_a_workspace() {
    let place = Place::new().await;
    place.wrote("src/main.rs", "fn main() {}").await;
    let run = WorkspacePutRequest { executable: true, ..place.put("run.sh", "#!/bin/sh") };
    place.done(run).await;
    symlink("/etc/passwd", place.dir.join("link")).unwrap();

    let file = place.got(place.get("src/main.rs")).await;
    assert_eq!((file.kind, file.size, file.executable), (FileKind::File, 12, false));
    assert_eq!(bytes(file), b"fn main() {}");
    let listed = place.got(place.get("")).await;
    let shown: Vec<_> = listed
        .entries
        .iter()
        .map(|entry| (entry.path.as_str(), entry.kind, entry.size, entry.executable))
        .collect();
    let expected = [
        ("link", FileKind::Symlink, 0, false),
        ("run.sh", FileKind::File, 9, true),
        ("src", FileKind::Directory, 0, false),
    ];
    assert_eq!(shown, expected);
    assert_eq!(listed.entries[0].target.as_deref(), Some("/etc/passwd"));
    let link = place.got(place.get("link")).await;
    assert_eq!((link.kind, link.data), (FileKind::Symlink, None));

    let page = WorkspaceGetRequest { recursive: true, limit: Some(3), ..place.get("") };
    let first = place.got(page.clone()).await;
    assert_eq!(first.entries.last().unwrap().path, "src");
    let rest = place.got(WorkspaceGetRequest { cursor: first.next_cursor, ..page }).await;
    assert_eq!(rest.entries.len(), 1);
    assert_eq!((rest.entries[0].path.as_str(), rest.next_cursor), ("src/main.rs", None));
    assert_eq!(place.refused(place.get("nothing")).await.0, "not_found");
}

/// REQ: "an archive as an artifact"; a file too large for one message is stored content.
#[tokio::test]
async fn large_files_and_archives_are_stored_content() {
    let place = Place::new().await;
    let size = (1 << 20) - 5000;
    fs::write(place.dir.join("small"), vec![7; size]).unwrap();
    let archive = WorkspaceGetRequest { archive: true, ..place.get("") };
    let made = place.got(archive.clone()).await;
    assert!(made.artifact_id.is_some() && made.size > size as u64, "{made:?}");
    let hash = made.content_hash.unwrap();
    let get = CasGetRequest { hash, offset: None, length: None };
    let content: CasContentResponse = call(&place.fixture, &place.who, get).await;
    assert_eq!(content.mime_type, "application/x-tar");

    // The fixture's limit of one blob is 1 MiB, and content in a message does not exceed it either.
    fs::write(place.dir.join("large"), vec![7; (1 << 20) + 1]).unwrap();
    let (code, message) = place.refused(place.get("large")).await;
    assert!(code == "too_large" && message.contains("limits.upload_max"), "{code} {message}");
    let without = place.got(archive).await;
    let skipped: Vec<_> = without.skipped.iter().map(|skipped| skipped.path.as_str()).collect();
    assert_eq!(skipped, ["large"], "the rest of a directory is there without it");

    fs::remove_file(place.dir.join("large")).unwrap();
    let other: SessionResponse = call(&place.fixture, &place.who, spawn(place.project)).await;
    let unpack = WorkspacePutRequest {
        workspace_id: other.workspace_id,
        path: Some("copy".to_owned()),
        data: None,
        content_hash: Some(hash),
        archive: true,
        ..place.put("", "")
    };
    place.done(unpack).await;
    let copied = PathBuf::from(other.workspace_path).join("copy/small");
    assert_eq!(fs::read(copied).unwrap().len(), size);
    let both = WorkspacePutRequest { content_hash: Some(hash), ..place.put("x", "x") };
    assert_eq!(place.refused(both).await.0, "invalid_params");
    let no_archive = WorkspacePutRequest { archive: true, ..place.put("x", &"x".repeat(2000)) };
    assert_eq!(place.refused(no_archive).await.0, "invalid_params");
}

/// Rule: a symlink in a workspace never leads a read or a write of the daemon outside, and neither
/// does a path; a pipe does not block.
#[tokio::test]
async fn no_link_or_path_leads_out_of_a_workspace() {
    let place = Place::new().await;
    let outside = place.fixture.dir().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "secret").unwrap();
    symlink(&outside, place.dir.join("door")).unwrap();
    symlink(outside.join("file"), place.dir.join("hole")).unwrap();
    symlink("..", place.dir.join("up")).unwrap();
    let absolute = outside.join("file").to_str().unwrap().to_owned();
    for path in ["door/file", "up/x", "../x", "door/../../x", absolute.as_str()] {
        let (code, message) = place.refused(place.get(path)).await;
        assert_eq!(code, "invalid_params", "{path}: {message}");
        let (code, message) = place.refused(place.put(path, "mine")).await;
        assert_eq!(code, "invalid_params", "{path}: {message}");
    }
    assert_eq!(place.got(place.get("hole")).await.data, None, "it is shown, not followed");
    place.wrote("hole", "mine").await;
    assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "secret");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);

    let made = Command::new("mkfifo").arg(place.dir.join("pipe")).status().unwrap();
    assert!(made.success());
    assert_eq!(place.got(place.get("pipe")).await.kind, FileKind::Other);
    let archive = WorkspaceGetRequest { archive: true, ..place.get("") };
    assert!(place.got(archive).await.artifact_id.is_some());
    place.begin().await;
    assert_eq!(place.diff().await.changes, []);
}

fn change<'a>(diff: &'a WorkspaceDiffResponse, path: &str) -> &'a WorkspaceChange {
    let found = diff.changes.iter().find(|change| change.path == path);
    found.unwrap_or_else(|| panic!("{path} in {diff:?}"))
}

/// REQ: "a diff against the start of the session": text as a unified diff that `git apply` accepts,
/// binary files by name, links by target, with the mode before and after.
#[tokio::test]
async fn a_diff_shows_what_changed_since_the_start() {
    let place = Place::new().await;
    assert_eq!(place.refused(place.diff_request()).await.0, "not_found", "no start recorded yet");
    for (path, text) in [
        ("keep", "same\n"),
        ("edit me.txt", "one\ntwo\nthree"),
        ("gone", "bye\n"),
        ("image", "\u{0}\u{1}"),
        ("script", "#!/bin/sh\n"),
        (".gitignore", "target/\n*.log\n"),
    ] {
        place.wrote(path, text).await;
    }
    symlink("keep", place.dir.join("link")).unwrap();
    let copy = place.fixture.dir().join("copy");
    let copied = Command::new("cp").arg("-a").args([&place.dir, &copy]).status().unwrap();
    assert!(copied.success());
    place.begin().await;
    assert_eq!(place.diff().await.changes, []);

    let dir = &place.dir;
    fs::write(dir.join("edit me.txt"), "one\n2\nthree").unwrap();
    fs::remove_file(dir.join("gone")).unwrap();
    fs::write(dir.join("image"), [0, 2]).unwrap();
    fs::set_permissions(dir.join("script"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(dir.join("link")).unwrap();
    symlink("/etc/passwd", dir.join("link")).unwrap();
    fs::create_dir_all(dir.join("target/debug")).unwrap();
    fs::write(dir.join("target/debug/built"), "ignored").unwrap();
    fs::create_dir(dir.join(".git")).unwrap();
    fs::write(dir.join(".git/config"), "ignored").unwrap();
    fs::write(dir.join("new\n+++ keep"), "hm\n").unwrap();
    fs::write(dir.join(std::ffi::OsStr::from_bytes(b"odd\xff")), "odd\n").unwrap();
    // Its current ignore rules do not hide anything.
    fs::write(dir.join(".gitignore"), "*\n").unwrap();

    let diff = place.diff().await;
    let mut changed: Vec<_> =
        diff.changes.iter().map(|change| (change.path.as_str(), change.change)).collect();
    changed.sort_unstable_by_key(|(path, _)| *path);
    use ChangeKind::{Added, Modified, Removed};
    let expected = [
        (".gitignore", Modified),
        ("edit me.txt", Modified),
        ("gone", Removed),
        ("image", Modified),
        ("link", Modified),
        ("new\n+++ keep", Added),
        ("odd\u{fffd}", Added),
        ("script", Modified),
    ];
    assert_eq!(changed, expected);
    assert!(change(&diff, "odd\u{fffd}").lossy);
    assert_eq!(change(&diff, "link").after.as_ref().unwrap().kind, FileKind::Symlink);
    let script = change(&diff, "script");
    assert!(script.after.as_ref().unwrap().executable, "{script:?}");
    assert_eq!(script.before.as_ref().unwrap().hash, script.after.as_ref().unwrap().hash);
    for part in [
        "--- a/edit me.txt\t\n+++ b/edit me.txt\t\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n\\ No newline",
        "Binary files a/image and b/image differ\n",
        "old mode 100644\nnew mode 100755\n",
        "-keep\n\\ No newline at end of file\n+/etc/passwd\n",
        "+++ \"b/new\\012+++ keep\"",
        "deleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n",
    ] {
        assert!(diff.diff.contains(part), "{part:?} in {}", diff.diff);
    }
    assert!(!diff.truncated);
    fs::write(copy.join("image"), [0, 2]).unwrap();
    applies(&copy, &diff.diff);
}

/// Returns whether `git apply` turns the copy into the agent's workspace, binary files aside.
fn applies(copy: &std::path::Path, diff: &str) {
    let sections = diff.split("diff --git ").filter(|part| !part.contains("Binary files"));
    let text: Vec<_> =
        sections.filter(|part| !part.is_empty()).map(|part| format!("diff --git {part}")).collect();
    let Ok(mut git) = Command::new("git")
        .args(["apply", "-"])
        .current_dir(copy)
        .env("GIT_CEILING_DIRECTORIES", copy.parent().unwrap())
        .stdin(Stdio::piped())
        .spawn()
    else {
        return ringback_testkit::skipped("it needs git");
    };
    std::io::Write::write_all(&mut git.stdin.take().unwrap(), text.concat().as_bytes()).unwrap();
    assert!(git.wait().unwrap().success(), "{diff}");
    assert_eq!(fs::read_to_string(copy.join("edit me.txt")).unwrap(), "one\n2\nthree");
    assert_eq!(fs::read_link(copy.join("link")).unwrap(), PathBuf::from("/etc/passwd"));
    assert!(!copy.join("gone").exists());
}

/// Rule: a file too long to show is named, and the answer says that it is incomplete.
#[tokio::test]
async fn a_diff_is_bounded_and_says_so() {
    let place = Place::new().await;
    place.begin().await;
    fs::write(place.dir.join("long"), "line\n".repeat(300_000)).unwrap();
    let diff = place.diff().await;
    assert!(diff.truncated && diff.diff.contains("Binary files /dev/null and b/long differ"));
    let many = place.dir.join("many");
    fs::create_dir(&many).unwrap();
    for number in 0..10_001 {
        fs::write(many.join(number.to_string()), "").unwrap();
    }
    let (code, message) = place.refused(place.diff_request()).await;
    assert!(code == "too_large" && message.contains("10000 files"), "{message}");
    let one = WorkspaceDiffRequest { path: Some("long".to_owned()), ..place.diff_request() };
    let diff: WorkspaceDiffResponse = call(&place.fixture, &place.who, one).await;
    assert_eq!(diff.changes.len(), 1);
}

/// Rule: a workspace that is too large at its start still gets an agent, and its diff names the
/// limit; a workspace's start is deleted with it.
#[tokio::test]
async fn a_start_too_large_to_remember_is_told_by_the_limit() {
    let place = Place::new().await;
    let large = fs::File::create(place.dir.join("large")).unwrap();
    large.set_len((8 << 30) + 1).unwrap();
    place.begin().await;
    let (code, message) = place.refused(place.diff_request()).await;
    assert!(code == "too_large" && message.contains("more than 8 GiB"), "{code} {message}");
    end(&place.fixture, &place.who, place.session).await;
    let delete =
        WorkspaceDeleteRequest { project_id: place.project, workspace_id: place.workspace };
    place.done(delete).await;
    let starts = place.fixture.dir().join("data/starts");
    assert_eq!(fs::read_dir(starts).unwrap().count(), 0);
}

/// Rule: the key of a session opens its own workspace alone; agents of one project do not see each
/// other's files, and other projects do not exist for them.
#[tokio::test]
async fn the_key_of_a_session_opens_its_own_workspace_alone() {
    let place = Place::new().await;
    let keyed = ProjectCreateRequest {
        name: "keyed".to_owned(),
        description: None,
        limits: None,
        agent: None,
        key_level: Some(KeyLevel::Write),
        network: None,
        image: None,
        permissions: None,
    };
    let made: ringback_proto::request::ProjectResponse =
        call(&place.fixture, &place.who, keyed).await;
    let project = made.project_id;
    let [one, two]: [SessionResponse; 2] = [
        call(&place.fixture, &place.who, spawn(project)).await,
        call(&place.fixture, &place.who, spawn(project)).await,
    ];
    let said = say(&place.fixture, &place.who, to_session(one.session_id, "env")).await;
    let events =
        until(&place.fixture, &place.who, one.session_id, said.last_event_index, is_idle).await;
    let env = crate::sessions::said(&events)[0].to_owned();
    let key = env.split("OUBLIETTE_API_KEY=").nth(1).unwrap().split(' ').next().unwrap();
    let agent = place.fixture.broker.authenticate_in(one.session_id, key).unwrap();
    let get =
        |workspace_id| WorkspaceGetRequest { project_id: project, workspace_id, ..place.get("") };
    let own: WorkspaceContentResponse = call(&place.fixture, &agent, get(one.workspace_id)).await;
    assert_eq!(own.kind, FileKind::Directory);
    assert_eq!(refused(&place.fixture, &agent, get(two.workspace_id)).await.0, "not_found");
    assert_eq!(refused(&place.fixture, &agent, place.get("")).await.0, "not_found");
}

/// Rule: a path that is too long, or a file larger than the limit of everything compared, does not
/// refuse the rest: it is skipped, and named.
#[tokio::test]
async fn what_cannot_be_looked_at_is_skipped_and_named() {
    let place = Place::new().await;
    place.wrote("kept/before", "1").await;
    place.begin().await;
    let long = "d".repeat(250);
    let mut dir = place.dir.clone();
    for _ in 0..20 {
        // Step by step: no path is long enough for all of them.
        let open = fs::File::open(&dir).unwrap();
        let at = PathBuf::from(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&open)));
        fs::create_dir(at.join(&long)).unwrap();
        let next = fs::File::open(at.join(&long)).unwrap();
        dir = format!("/proc/self/fd/{}", std::os::fd::IntoRawFd::into_raw_fd(next)).into();
    }
    fs::File::create(place.dir.join("sparse")).unwrap().set_len(11 << 30).unwrap();
    fs::write(place.dir.join("new"), "2\n").unwrap();
    let diff = place.diff().await;
    let changed: Vec<_> = diff.changes.iter().map(|change| change.path.as_str()).collect();
    assert_eq!(changed, ["new"]);
    let skipped: Vec<_> = diff.skipped.iter().map(|skipped| skipped.path.len()).collect();
    assert!(skipped.len() == 2 && skipped.contains(&"sparse".len()), "{skipped:?}");
    let listed = place.got(WorkspaceGetRequest { recursive: true, ..place.get("") }).await;
    assert_eq!(listed.skipped.len(), 1, "a listing has the large file");
    let archive = place.got(WorkspaceGetRequest { archive: true, ..place.get("") }).await;
    assert!(archive.artifact_id.is_some() && archive.skipped.len() == 2);
    let one = WorkspaceDiffRequest { path: Some("new".to_owned()), ..place.diff_request() };
    let diff: WorkspaceDiffResponse = call(&place.fixture, &place.who, one).await;
    assert_eq!((diff.changes.len(), diff.skipped.len()), (1, 0));
}
