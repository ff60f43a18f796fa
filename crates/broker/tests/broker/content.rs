//! Content, artifacts, and their visibility.
use crate::common::{World, result, start, start_with};
use ringback_broker::Credential;
use ringback_proto::data::Data;
use ringback_proto::ids::{ArtifactId, BlobHash, VariationSetId};
use ringback_proto::principal::Level;
use ringback_proto::request::*;
use ringback_proto::{ToolRequest, ToolResponse};

async fn store(fixture: &World, who: &Credential, bytes: &[u8]) -> BlobHash {
    let data = Data::from(bytes.to_vec());
    let mime_type = "text/plain".to_owned();
    let request = CasStoreRequest { data, mime_type, upload_id: None, offset: None, last: None };
    match result(&fixture.broker, who, request).await.unwrap() {
        ToolResponse::CasStored(stored) => stored.hash.unwrap(),
        other => panic!("{other:?}"),
    }
}

fn artifact(content_hash: BlobHash) -> ArtifactCreateRequest {
    ArtifactCreateRequest {
        content_hash,
        metadata: None,
        tags: vec!["type:text".to_owned()],
        creator: None,
        parent_id: None,
        variation_set_id: None,
    }
}

async fn create(
    fixture: &World,
    who: &Credential,
    request: ArtifactCreateRequest,
) -> ArtifactCreatedResponse {
    match result(&fixture.broker, who, request).await.unwrap() {
        ToolResponse::ArtifactCreated(created) => created,
        other => panic!("{other:?}"),
    }
}

async fn writer(fixture: &World) -> Credential {
    let request = TokenCreateRequest {
        name: "writer".to_owned(),
        scope: Level::Write,
        projects: None,
        expires_in: None,
    };
    let created = result(&fixture.broker, &Credential::local(), request).await.unwrap();
    let ToolResponse::TokenCreated(created) = created else { panic!("{created:?}") };
    fixture.broker.authenticate(created.token.expose()).unwrap()
}

async fn code(fixture: &World, who: &Credential, request: impl Into<ToolRequest>) -> String {
    result(&fixture.broker, who, request.into()).await.unwrap_err().code
}

/// Rule: the same content twice is two artifacts with one blob, and neither overwrites the other.
#[tokio::test]
async fn the_same_content_twice_is_two_artifacts_with_one_blob() {
    let fixture = start().await;
    let local = Credential::local();
    let hash = store(&fixture, &local, b"hello").await;
    assert_eq!(store(&fixture, &local, b"hello").await, hash);
    let first = create(&fixture, &local, artifact(hash)).await;
    let mut again = artifact(hash);
    again.parent_id = Some(first.artifact_id);
    again.creator = Some("somebody".to_owned());
    let second = create(&fixture, &local, again).await;
    assert_ne!(first.artifact_id, second.artifact_id);
    let get = ArtifactGetRequest { id: first.artifact_id };
    let info = result(&fixture.broker, &local, get).await.unwrap();
    let ToolResponse::ArtifactInfo(info) = info else { panic!("{info:?}") };
    assert_eq!((info.creator.as_str(), info.parent_id), ("unknown", None));
    let stats = result(&fixture.broker, &local, CasStatsRequest {}).await.unwrap();
    assert_eq!(stats, ToolResponse::CasStats(CasStatsResponse { blobs: 1, bytes: 5 }));
}

#[tokio::test]
async fn variations_are_numbered_and_a_parent_must_exist() {
    let fixture = start().await;
    let local = Credential::local();
    let hash = store(&fixture, &local, b"theme").await;
    for index in 0..3 {
        let mut request = artifact(hash);
        request.variation_set_id = Some(VariationSetId::from_random([5; 16]));
        assert_eq!(create(&fixture, &local, request).await.variation_index, Some(index));
    }
    let mut orphan = artifact(hash);
    orphan.parent_id = Some(ArtifactId::from_random([1; 16]));
    assert_eq!(code(&fixture, &local, orphan).await, "not_found");
    let nothing = artifact(BlobHash::from_bytes([3; 32]));
    assert_eq!(code(&fixture, &local, nothing).await, "not_found");
}

/// Rule: content is readable by its uploaders and by those who see an artifact of it.
#[tokio::test]
async fn a_stranger_cannot_read_content_or_annotate_an_artifact() {
    let fixture = start().await;
    let local = Credential::local();
    let (owner, stranger) = (writer(&fixture).await, writer(&fixture).await);
    let hash = store(&fixture, &owner, b"mine").await;
    let created = create(&fixture, &owner, artifact(hash)).await;
    let get = || CasGetRequest { hash, offset: None, length: None };
    let annotate = || AddAnnotationRequest {
        artifact_id: created.artifact_id,
        message: "nice".to_owned(),
        source: None,
        vibe: None,
    };
    assert_eq!(code(&fixture, &stranger, get()).await, "not_found");
    assert_eq!(code(&fixture, &stranger, artifact(hash)).await, "not_found");
    assert_eq!(code(&fixture, &stranger, annotate()).await, "not_found");
    let inspected = result(&fixture.broker, &stranger, CasInspectRequest { hash }).await.unwrap();
    assert!(matches!(inspected, ToolResponse::CasInspected(inspected) if !inspected.exists));
    for reader in [&owner, &local] {
        let content = result(&fixture.broker, reader, get()).await.unwrap();
        assert!(matches!(content, ToolResponse::CasContent(content) if content.data.0 == "mine"));
        assert!(result(&fixture.broker, reader, annotate()).await.is_ok());
    }
    assert_eq!(store(&fixture, &stranger, b"mine").await, hash);
    assert!(result(&fixture.broker, &stranger, get()).await.is_ok(), "who uploads it has it");
}

/// Rule: a file is read only inside the allowed directories, whatever its name says.
#[tokio::test]
async fn a_file_outside_its_roots_is_never_read() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "secret").unwrap();
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("tune.abc"), "X:1").unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret"), root.path().join("link")).unwrap();
    std::os::unix::fs::symlink(outside.path(), root.path().join("dir")).unwrap();
    let root_path = camino::Utf8PathBuf::from_path_buf(root.path().to_owned()).unwrap();
    let fixture = start_with(|config| config.file_roots = vec![root_path.clone()]).await;
    let local = Credential::local();
    let upload =
        |path: String| CasUploadFileRequest { file_path: path, mime_type: "text/plain".to_owned() };
    let name = outside.path().file_name().unwrap().to_str().unwrap();
    for path in [
        format!("{root_path}/../{name}/secret"),
        format!("{root_path}/link"),
        format!("{root_path}/dir/secret"),
        outside.path().join("secret").to_str().unwrap().to_owned(),
    ] {
        assert_eq!(code(&fixture, &local, upload(path.clone())).await, "invalid_params", "{path}");
    }
    let stored = result(&fixture.broker, &local, upload(format!("{root_path}/tune.abc"))).await;
    assert!(matches!(stored, Ok(ToolResponse::CasStored(stored)) if stored.size == 3));
}

/// REQ: `artifact_upload` makes an artifact of a file inside the allowed directories.
#[tokio::test]
async fn a_file_becomes_an_artifact_with_its_tags_and_job() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("tune.abc"), "X:1").unwrap();
    let root = camino::Utf8PathBuf::from_path_buf(root.path().to_owned()).unwrap();
    let fixture = start_with(|config| config.file_roots = vec![root.clone()]).await;
    let who = writer(&fixture).await;
    let upload = |file_path: String| ArtifactUploadRequest {
        file_path,
        mime_type: "text/vnd.abc".to_owned(),
        tags: vec!["type:abc".to_owned()],
        creator: Some("ada".to_owned()),
        parent_id: None,
        variation_set_id: None,
    };
    let made = match result(&fixture.broker, &who, upload(format!("{root}/tune.abc"))).await {
        Ok(ToolResponse::ArtifactCreated(made)) => made,
        other => panic!("{other:?}"),
    };
    let get = ArtifactGetRequest { id: made.artifact_id };
    let info = match result(&fixture.broker, &who, get).await {
        Ok(ToolResponse::ArtifactInfo(info)) => info,
        other => panic!("{other:?}"),
    };
    assert_eq!((info.size, info.mime_type.as_str()), (3, "text/vnd.abc"));
    assert_eq!((info.creator.as_str(), info.tags), ("ada", vec!["type:abc".to_owned()]));
    assert_eq!(info.tool.as_deref(), Some("artifact_upload"));
    assert!(info.job_id.is_some());
    let hash = store(&fixture, &Credential::local(), b"X:1").await;
    assert_eq!(info.content_hash, hash);
    let read = CasGetRequest { hash, offset: None, length: None };
    assert!(result(&fixture.broker, &who, read).await.is_ok(), "its maker may read it");
    assert_eq!(code(&fixture, &who, upload("/etc/passwd".to_owned())).await, "invalid_params");
}
