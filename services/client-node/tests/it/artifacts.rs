//! Artifacts of real tasks: downloaded once, cached for others, failures by the restart policy.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use model::artifact::{Artifact, ArtifactMode};
use model::job::RestartMode;
use model::{AllocClient, ClientStatus};
use test_kit::builders::template;

use crate::node::{Place, batch, service, start};

/// A server of one file with an ETag, which counts its requests.
struct Server {
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
}

impl Server {
    /// The first `failures` requests fail for good.
    fn start(content: &'static str, failures: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&requests);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let request: Vec<String> = lines
                    .map_while(Result::ok)
                    .take_while(|it| !it.is_empty())
                    .collect();
                let number = counted.fetch_add(1, Ordering::Relaxed);
                let is_known = request
                    .iter()
                    .any(|it| it.eq_ignore_ascii_case("if-none-match: \"v1\""));
                let answer = if number < failures {
                    "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                        .to_owned()
                } else if is_known {
                    "HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n".to_owned()
                } else {
                    let length = content.len();
                    format!(
                        "HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{content}"
                    )
                };
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        Self { address, requests }
    }

    fn artifact(&self, destination: &str) -> Artifact {
        Artifact {
            source: format!("http://{}/app.sh", self.address),
            options: BTreeMap::new(),
            headers: BTreeMap::new(),
            mode: ArtifactMode::Any,
            insecure: false,
            destination: destination.to_owned(),
            chown: false,
        }
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }
}

fn events(client: &AllocClient) -> Vec<(String, String)> {
    let events = client.task_states["server"].events.iter();
    events
        .map(|event| (event.event_type.clone(), event.message.clone()))
        .collect()
}

#[tokio::test]
async fn a_task_runs_a_downloaded_program_and_its_templates_read_artifacts() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let server = Server::start("#!/bin/sh\necho from the artifact\n", 0);
    let mut job = batch("local/app.sh; cat local/copy; ls $NOMAD_ALLOC_DIR/data");
    let task = &mut job.task_groups[0].tasks[0];
    let mut shared = server.artifact("${NOMAD_ALLOC_DIR}/data/${NOMAD_TASK_NAME}");
    shared.mode = ArtifactMode::File;
    task.artifacts = vec![server.artifact("local/"), shared];
    let mut copy = template("local/copy", "");
    copy.source = "local/app.sh".to_owned();
    task.templates = vec![copy];
    let first = cluster.assign(1, &job);
    let client = cluster.until(first, ClientStatus::Complete).await;
    let want = "from the artifact\n#!/bin/sh\necho from the artifact\nserver\n";
    assert_eq!(place.output(first), want);
    let types: Vec<String> = events(&client).into_iter().map(|it| it.0).collect();
    let position = |event: &str| types.iter().position(|it| it == event);
    assert!(
        position("Downloading Artifacts") < position("Started"),
        "{types:?}"
    );
    assert!(position("Downloading Artifacts").is_some());
    place.is_empty().await;
    node.stop().await;
}

#[tokio::test]
async fn a_restart_downloads_nothing_again() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let server = Server::start("#!/bin/sh\n", 0);
    let mut job = service("echo run; rm local/app.sh 2>/dev/null && exit 1; exit 3");
    let task = &mut job.task_groups[0].tasks[0];
    (task.restart.attempts, task.restart.delay, task.restart.mode) =
        (2, Duration::ZERO, RestartMode::Fail);
    task.artifacts = vec![server.artifact("local/")];
    let id = cluster.assign(1, &job);
    let client = cluster.until(id, ClientStatus::Failed).await;
    assert_eq!(place.output(id), "run\nrun\nrun\n");
    assert_eq!(server.requests(), 1);
    let begun = events(&client).into_iter();
    assert_eq!(
        begun.filter(|it| it.0 == "Downloading Artifacts").count(),
        1
    );
    place.is_empty().await;
    node.stop().await;
}

#[tokio::test]
async fn scenario_063_a_failed_download_counts_by_the_restart_policy() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    let server = Server::start("evil", 1);
    let mut job = service("echo started");
    let task = &mut job.task_groups[0].tasks[0];
    (task.restart.attempts, task.restart.delay, task.restart.mode) =
        (1, Duration::ZERO, RestartMode::Fail);
    let mut artifact = server.artifact("local/");
    let checksum = format!("sha256:{}", "0".repeat(64));
    artifact.options.insert("checksum".to_owned(), checksum);
    task.artifacts = vec![artifact];
    let id = cluster.assign(1, &job);
    let client = cluster.until(id, ClientStatus::Failed).await;
    let events = events(&client);
    let failures: Vec<&str> = events
        .iter()
        .filter(|it| it.0 == "Failed Artifact Download")
        .map(|it| it.1.as_str())
        .collect();
    assert_eq!(failures.len(), 2, "{events:?}");
    assert!(
        failures[0].contains("/app.sh: the server answered 404"),
        "{failures:?}"
    );
    assert!(
        failures[1].contains("checksum mismatch: want sha256:000"),
        "{failures:?}"
    );
    let restarting = events.iter().find(|it| it.0 == "Restarting");
    assert!(
        restarting.is_some_and(|it| it.1.contains("restarts in")),
        "{events:?}"
    );
    assert_eq!(place.output(id), "");
    place.is_empty().await;
    node.stop().await;
}

#[tokio::test]
async fn a_stop_ends_a_download() {
    let place = Place::new();
    let (cluster, _gateway, node) = start(&place).await;
    // Accepts connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut job = service("echo started");
    let server = Server {
        address: silent.local_addr().unwrap(),
        requests: Arc::default(),
    };
    job.task_groups[0].tasks[0].artifacts = vec![server.artifact("local/")];
    let id = cluster.assign(1, &job);
    let _connection = tokio::task::spawn_blocking(move || silent.accept().unwrap())
        .await
        .unwrap();
    cluster.stop(id);
    cluster.until(id, ClientStatus::Complete).await;
    assert_eq!(place.output(id), "");
    place.is_empty().await;
    node.stop().await;
}
