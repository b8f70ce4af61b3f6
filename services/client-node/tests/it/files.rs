//! Files of allocations, over the node's own RPC.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use model::{AllocId, ClientStatus};
use proto::internal::v1::node_operations_client::NodeOperationsClient;
use proto::internal::v1::{NodeGetFileRequest, NodeListFilesRequest, NodeReadFileRequest};
use proto::v1;
use test_kit::wait_for;
use tonic::{Code, Status, Streaming};

use crate::gateway::LIMIT;
use crate::node::{Place, Running, service, start};

/// Requests for files at a time, as the node bounds them.
const SLOTS: usize = 16;

/// A caller of a node: the gateway.
struct Caller<'a> {
    node: &'a Running,
    alloc_id: AllocId,
    secret: String,
}

impl Caller<'_> {
    fn client(&self) -> NodeOperationsClient<service_kit::TracedChannel> {
        NodeOperationsClient::new(service_kit::connect_lazy(&self.node.address).unwrap())
    }

    async fn list(&self, path: &str) -> Result<Vec<String>, Status> {
        let request = v1::ListFilesRequest {
            alloc_id: self.alloc_id.to_string(),
            path: path.to_owned(),
        };
        let request = NodeListFilesRequest {
            request: Some(request),
            secret: self.secret.clone(),
        };
        let list = self.client().list_files(request).await?.into_inner();
        Ok(list.files.into_iter().map(|file| file.name).collect())
    }

    async fn info(&self, path: &str) -> Result<v1::FileInfo, Status> {
        let request = v1::GetFileRequest {
            alloc_id: self.alloc_id.to_string(),
            path: path.to_owned(),
        };
        let request = NodeGetFileRequest {
            request: Some(request),
            secret: self.secret.clone(),
        };
        let file = self.client().get_file(request).await?.into_inner();
        Ok(file.file.unwrap())
    }

    async fn open(
        &self,
        path: &str,
        edit: impl FnOnce(&mut v1::ReadFileRequest),
    ) -> Result<Streaming<v1::FileChunk>, Status> {
        let mut request = v1::ReadFileRequest {
            alloc_id: self.alloc_id.to_string(),
            path: path.to_owned(),
            ..v1::ReadFileRequest::default()
        };
        edit(&mut request);
        let request = NodeReadFileRequest {
            request: Some(request),
            secret: self.secret.clone(),
        };
        Ok(self.client().read_file(request).await?.into_inner())
    }

    async fn read(
        &self,
        path: &str,
        edit: impl FnOnce(&mut v1::ReadFileRequest),
    ) -> Result<String, Status> {
        let mut stream = self.open(path, edit).await?;
        let mut all = Vec::new();
        while let Some(chunk) = stream.message().await? {
            all.extend(chunk.data);
        }
        Ok(String::from_utf8(all).unwrap())
    }
}

async fn next(stream: &mut Streaming<v1::FileChunk>) -> Option<v1::FileChunk> {
    tokio::time::timeout(LIMIT, stream.message())
        .await
        .unwrap()
        .unwrap()
}

fn append(path: &PathBuf, text: &str) {
    let mut file = fs::File::options()
        .create(true)
        .append(true)
        .open(path)
        .unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_listed_and_read_and_no_path_leads_elsewhere() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let id = cluster.assign(1, &service("echo up; exec sleep 600"));
    cluster.until(id, ClientStatus::Running).await;
    place.said(id, "up").await;
    let caller = Caller {
        node: &node,
        alloc_id: id,
        secret: cluster.facts().registrations[0].secret.clone(),
    };
    let task = place.path().join(format!("alloc/{id}/server"));
    fs::write(task.join("local/notes"), "abcdef").unwrap();
    fs::write(task.join("secrets/token"), "secret").unwrap();
    symlink("/etc/passwd", task.join("local/link")).unwrap();

    assert_eq!(caller.list("").await.unwrap(), ["alloc", "server"]);
    assert_eq!(
        caller.list("/server/local/").await.unwrap(),
        ["link", "notes"]
    );
    let notes = caller.info("server/local/notes").await.unwrap();
    assert_eq!((notes.name.as_str(), notes.size), ("notes", 6));
    assert!(!notes.is_dir && notes.mode.starts_with("-rw"), "{notes:?}");
    let read = caller.read("alloc/logs/server.stdout.0", |_| ()).await;
    assert_eq!(read.unwrap(), "up\n");
    let part = |request: &mut v1::ReadFileRequest| {
        (request.offset, request.from_end, request.limit) = (4, true, 2);
    };
    let read = caller.read("server/local/notes", part).await;
    assert_eq!(read.unwrap(), "cd");

    for (path, code, why) in [
        ("server/secrets/token", Code::PermissionDenied, "secrets"),
        ("../other", Code::InvalidArgument, "escapes"),
        ("server/local/link", Code::InvalidArgument, "symbolic link"),
        ("server/local", Code::InvalidArgument, "is a directory"),
        ("server/nope", Code::NotFound, "there is no"),
    ] {
        let refused = caller.read(path, |_| ()).await.unwrap_err();
        assert_eq!(refused.code(), code, "{path}: {refused}");
        assert!(refused.message().contains(why), "{path}: {refused}");
    }
    let refused = caller.list("server/secrets").await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    let other = Caller {
        secret: "other".to_owned(),
        ..caller
    };
    for denied in [
        other.list("").await.unwrap_err(),
        other.info("").await.unwrap_err(),
        other.read("alloc", |_| ()).await.unwrap_err(),
    ] {
        assert_eq!(denied.code(), Code::PermissionDenied);
    }
    let caller = Caller {
        alloc_id: AllocId::from_random(9),
        secret: cluster.facts().registrations[0].secret.clone(),
        ..other
    };
    let unknown = caller.list("").await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);

    // Files outlive the tasks.
    cluster.stop(id);
    cluster.until(id, ClientStatus::Complete).await;
    let caller = Caller {
        alloc_id: id,
        ..caller
    };
    let read = caller.read("server/local/notes", |_| ()).await;
    assert_eq!(read.unwrap(), "abcdef");
    cluster.collect(id);
    wait_for("the allocation to be removed", LIMIT, async || {
        caller
            .list("")
            .await
            .err()
            .filter(|it| it.code() == Code::NotFound)
    })
    .await;
    place.is_empty().await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_followed_file_survives_rotation_and_ends_with_its_caller_or_allocation() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let id = cluster.assign(1, &service("echo up; exec sleep 600"));
    cluster.until(id, ClientStatus::Running).await;
    let caller = Caller {
        node: &node,
        alloc_id: id,
        secret: cluster.facts().registrations[0].secret.clone(),
    };
    let log = place.path().join(format!("alloc/{id}/alloc/data/app.log"));
    append(&log, "one");
    let follow = |request: &mut v1::ReadFileRequest| request.follow = true;
    let mut stream = caller.open("alloc/data/app.log", follow).await.unwrap();
    let first = next(&mut stream).await.unwrap();
    assert_eq!((first.data.as_slice(), first.offset), (&b"one"[..], 3));
    append(&log, "two");
    assert_eq!(next(&mut stream).await.unwrap().data, b"two");
    fs::rename(&log, log.with_extension("1")).unwrap();
    append(&log, "new");
    let replaced = next(&mut stream).await.unwrap();
    assert_eq!(replaced.event(), v1::FileEvent::Replaced);
    assert_eq!(next(&mut stream).await.unwrap().data, b"new");
    fs::File::options()
        .write(true)
        .open(&log)
        .unwrap()
        .set_len(0)
        .unwrap();
    let truncated = next(&mut stream).await.unwrap();
    assert_eq!(truncated.event(), v1::FileEvent::Truncated);
    fs::remove_file(&log).unwrap();
    let deleted = next(&mut stream).await.unwrap();
    assert_eq!(deleted.event(), v1::FileEvent::Deleted);
    assert_eq!(next(&mut stream).await, None);

    // Each caller has a slot until it goes.
    append(&log, "x");
    let mut many = Vec::new();
    for _ in 0..SLOTS {
        many.push(caller.open("alloc/data/app.log", follow).await.unwrap());
    }
    let busy = caller.open("alloc/data/app.log", follow).await.unwrap_err();
    assert_eq!(busy.code(), Code::ResourceExhausted, "{busy}");
    drop(many.pop());
    wait_for("a free slot", LIMIT, async || caller.list("").await.ok()).await;

    cluster.stop(id);
    let mut last = many.pop().unwrap();
    assert_eq!(next(&mut last).await.unwrap().data, b"x");
    assert_eq!(next(&mut last).await, None, "the end of the allocation");
    drop(many);
    cluster.until(id, ClientStatus::Complete).await;
    place.is_empty().await;
    node.stop().await;
}
