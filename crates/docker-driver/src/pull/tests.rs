//! Errors and progress of pulls, and pulls from an engine that stalls.

use std::path::Path;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::Instant;

use super::*;

#[test]
fn registry_errors_are_distinguished() {
    type Kind = fn(String) -> PullError;
    let table: [(&str, Kind); 9] = [
        (
            "manifest for redis:nope not found: manifest unknown: manifest unknown",
            PullError::NotFound,
        ),
        (
            "no matching manifest for linux/arm64 in the manifest list entries",
            PullError::NotFound,
        ),
        (
            "pull access denied for x, repository does not exist or may require 'docker login'",
            PullError::Unauthorised,
        ),
        (
            "unauthorized: authentication required",
            PullError::Unauthorised,
        ),
        (
            "Get \"https://r.example/v2/\": no basic auth credentials",
            PullError::Unauthorised,
        ),
        (
            "Get \"https://r.example/v2/\": dial tcp: lookup r.example: no such host",
            PullError::Failed,
        ),
        (
            "dial tcp 10.0.0.1:5000: connect: connection refused",
            PullError::Failed,
        ),
        ("net/http: TLS handshake timeout", PullError::Failed),
        (
            "toomanyrequests: You have reached your pull rate limit",
            PullError::Failed,
        ),
    ];
    for (message, kind) in table {
        assert_eq!(classify_text(message.to_owned()), kind(message.to_owned()));
    }
}

#[test]
fn progress_counts_layers_and_bytes() {
    let mut layers = Layers::default();
    let step = |id: &str, status: &str, bytes: Option<(i64, i64)>| CreateImageInfo {
        id: Some(id.to_owned()),
        status: Some(status.to_owned()),
        progress_detail: bytes.map(|(current, total)| bollard::models::ProgressDetail {
            current: Some(current),
            total: Some(total),
        }),
        ..CreateImageInfo::default()
    };
    layers.add(&step("a", "Already exists", None));
    layers.add(&step("b", "Downloading", Some((5 << 20, 10 << 20))));
    layers.add(&step("c", "Downloading", Some((1 << 20, 2 << 20))));
    layers.add(&step("c", "Download complete", None));
    assert_eq!(
        layers.to_string(),
        "1 layers complete, 7 of 12 MiB downloaded"
    );
}

/// The interval of one layer's progress in a stand-in's pull, in seconds.
const LAYER_INTERVAL: u64 = 100;

/// Answers one request as an engine that reports progress `reports` times, then ends the answer or stalls.
async fn answer(mut stream: UnixStream, reports: usize, ends: bool) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let status =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(status.as_bytes()).await.unwrap();
    for number in 0..reports {
        if number > 0 {
            sleep(Duration::from_secs(LAYER_INTERVAL)).await;
        }
        let step = format!("{{\"id\":\"layer-{number}\",\"status\":\"Pull complete\"}}\n");
        let chunk = format!("{:x}\r\n{step}\r\n", step.len());
        stream.write_all(chunk.as_bytes()).await.unwrap();
    }
    if ends {
        stream.write_all(b"0\r\n\r\n").await.unwrap();
    }
    // The connection stays open, and nothing more comes.
    std::future::pending::<()>().await;
}

/// Pulls from a stand-in of the engine, and returns the result and the seconds until it.
async fn pull_from(socket: &Path, reports: usize, ends: bool) -> (Result<(), PullError>, u64) {
    let listener = UnixListener::bind(socket).unwrap();
    let engine = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        answer(stream, reports, ends).await;
    });
    let address = socket.to_str().unwrap();
    let client = bollard::Docker::connect_with_unix(address, 3_600, bollard::API_DEFAULT_VERSION);
    let pull = Pull {
        image: Image::parse("redis:7").unwrap(),
        credentials: None,
        limit: Duration::from_secs(600),
        activity_limit: Duration::from_secs(120),
    };
    let (messages, _received) = tokio::sync::mpsc::channel(8);
    let begun = Instant::now();
    let pulls = Pulls::default();
    let result = pulls
        .pull(client.unwrap(), pull, "redis:7", &messages)
        .await;
    engine.abort();
    (result, begun.elapsed().as_secs())
}

#[tokio::test(start_paused = true)]
async fn scenario_070_a_pull_that_stalls_ends_after_two_minutes_and_is_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    // Each report begins the time anew; without any, it counts from the start.
    for (reports, seconds) in [(0, 120), (1, 120), (3, 2 * LAYER_INTERVAL + 120)] {
        let socket = dir.path().join(format!("{reports}.sock"));
        let (result, elapsed) = pull_from(&socket, reports, false).await;
        let expected = PullError::Failed("no progress within 120s".to_owned());
        assert_eq!(result, Err(expected), "{reports} reports");
        assert_eq!(elapsed, seconds, "{reports} reports");
    }
    let (result, elapsed) = pull_from(&dir.path().join("done.sock"), 4, true).await;
    assert_eq!(
        (result, elapsed),
        (Ok(()), 3 * LAYER_INTERVAL),
        "a slow pull that goes on"
    );
}

#[tokio::test(start_paused = true)]
async fn a_pull_has_a_limit_however_much_progress_it_makes() {
    let dir = tempfile::tempdir().unwrap();
    let (result, elapsed) = pull_from(&dir.path().join("s"), 20, true).await;
    assert_eq!(elapsed, 600);
    let expected = "not finished within 600s; raise image_pull_timeout";
    assert_eq!(result, Err(PullError::Failed(expected.to_owned())));
}
