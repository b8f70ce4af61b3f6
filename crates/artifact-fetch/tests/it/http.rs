//! Downloads over http: resume, retries, limits, checksums, headers.

use std::time::Duration;

use artifact_fetch::Form;

use crate::place::{Place, message, wanted, wanted_with};
use crate::server::{Fault, Server};

fn content(length: usize) -> Vec<u8> {
    (0..length)
        .map(|it| u8::try_from(it % 251).unwrap())
        .collect()
}

fn sha256(text: &str) -> String {
    format!("sha256:{}", artifact_fetch::sha256_of(text))
}

#[tokio::test]
async fn a_plain_file_is_put_below_its_name_and_is_executable() {
    use std::os::unix::fs::MetadataExt as _;
    let (place, server) = (Place::new(), Server::start());
    server.put("app", "#!/bin/sh\n", None);
    let artifacts = place.open();
    artifacts
        .put(&wanted(&server.url("app")), &place.at("local", Form::Any))
        .await
        .unwrap();
    artifacts
        .put(
            &wanted(&server.url("app")),
            &place.at("local/as", Form::File),
        )
        .await
        .unwrap();
    assert_eq!(place.listed(), ["local/", "local/app", "local/as"]);
    let found = std::fs::metadata(place.task().join("local/app")).unwrap();
    assert_eq!(found.mode() & 0o7777, 0o755);
    assert_eq!(found.uid(), nix::unistd::geteuid().as_raw());
    assert_eq!(place.read("local/as"), "#!/bin/sh\n");
    // Without an ETag, nothing says that the cached file is still the server's.
    assert_eq!(artifacts.metrics().downloads.get(), 2);
    assert!(place.has_no_work().await);
}

#[tokio::test]
async fn a_download_continues_where_the_connection_was_cut() {
    let (place, server) = (Place::new(), Server::start());
    server.put("data", content(100_000), Some("v1"));
    server.fail(&[Fault::Cut(60_000), Fault::Status(503)]);
    let artifacts = place.open();
    artifacts
        .put(&wanted(&server.url("data")), &place.at("", Form::Any))
        .await
        .unwrap();
    assert_eq!(
        std::fs::read(place.task().join("data")).unwrap(),
        content(100_000)
    );
    // The 60,000 bytes were not sent twice.
    assert_eq!(server.sent(), 100_000);
    let last = server.requests().pop().unwrap();
    assert!(
        last.contains("range: bytes=60000-") && last.contains("if-range: \"v1\""),
        "{last}"
    );
}

#[tokio::test]
async fn a_part_of_other_content_is_not_continued() {
    let (place, server) = (Place::new(), Server::start());
    server.put("data", content(50_000), Some("v1"));
    server.fail(&[Fault::Cut(20_000), Fault::Cut(0), Fault::Cut(0)]);
    let artifacts = place.open();
    let error = message(
        artifacts
            .put(&wanted(&server.url("data")), &place.at("", Form::Any))
            .await,
    );
    assert!(error.contains("(3 attempts)"), "{error}");
    // Another agent continues the part, unless the content is new.
    drop(artifacts);
    server.put("data", "new", Some("v2"));
    let artifacts = place.open();
    artifacts
        .put(&wanted(&server.url("data")), &place.at("", Form::Any))
        .await
        .unwrap();
    assert_eq!(place.read("data"), "new");
    assert!(place.has_no_work().await);
}

#[tokio::test]
async fn a_part_survives_the_agent() {
    let (place, server) = (Place::new(), Server::start());
    server.put("data", content(50_000), Some("v1"));
    server.fail(&[Fault::Cut(20_000)]);
    let artifacts = place.open_with(|config| config.attempts = 1);
    artifacts
        .put(&wanted(&server.url("data")), &place.at("", Form::Any))
        .await
        .unwrap_err();
    drop(artifacts);
    place
        .open()
        .put(&wanted(&server.url("data")), &place.at("", Form::Any))
        .await
        .unwrap();
    assert_eq!(server.sent(), 50_000);
}

#[tokio::test]
async fn a_connection_without_a_byte_has_failed() {
    let (place, server) = (Place::new(), Server::start());
    server.put("data", content(5_000), Some("v1"));
    server.fail(&[Fault::Stall(1_000)]);
    let artifacts = place.open_with(|config| config.stall_timeout = Duration::from_millis(500));
    artifacts
        .put(&wanted(&server.url("data")), &place.at("", Form::Any))
        .await
        .unwrap();
    assert_eq!(server.sent(), 5_000);
}

#[tokio::test]
async fn a_download_ends_with_the_limit_of_its_time() {
    let (place, server) = (Place::new(), Server::start());
    server.put("data", content(1_000_000), None);
    server.fail(&[Fault::Slow(Duration::from_millis(100))]);
    let artifacts = place.open_with(|config| config.timeout = Duration::from_secs(1));
    let result = artifacts
        .put(&wanted(&server.url("data")), &place.at("", Form::Any))
        .await;
    let failure = result.unwrap_err();
    assert!(
        failure.recoverable && failure.message.contains("`artifact.timeout`"),
        "{failure:?}"
    );
    assert!(place.listed().is_empty());
}

#[tokio::test]
async fn failures_that_do_not_pass_are_not_retried() {
    let (place, server) = (Place::new(), Server::start());
    let artifacts = place.open();
    let url = server.url("missing?token=hidden");
    let error = message(artifacts.put(&wanted(&url), &place.at("", Form::Any)).await);
    assert!(
        error.contains("/missing: the server answered 404"),
        "{error}"
    );
    assert!(
        !error.contains("hidden") && !error.contains("attempts"),
        "{error}"
    );
    assert_eq!(server.requests().len(), 1);
    assert_eq!(artifacts.metrics().failures.get(), 1);
    let unreachable = message(
        Place::new()
            .open_with(|config| config.attempts = 2)
            .put(&wanted("http://127.0.0.1:9/x"), &place.at("", Form::Any))
            .await,
    );
    assert!(unreachable.contains("(2 attempts)"), "{unreachable}");
}

#[tokio::test]
async fn a_download_above_the_limit_is_refused() {
    let (place, server) = (Place::new(), Server::start());
    server.put("data", content(5_000), Some("v1"));
    let artifacts = place.open_with(|config| config.download_bytes_max = 4_999);
    let error = message(
        artifacts
            .put(&wanted(&server.url("data")), &place.at("", Form::Any))
            .await,
    );
    assert!(error.contains("more than 4999 bytes"), "{error}");
    assert!(place.listed().is_empty());
}

#[tokio::test]
async fn scenario_063_a_wrong_checksum_fails_and_leaves_no_file() {
    let (place, server) = (Place::new(), Server::start());
    server.put("app", "evil", Some("v1"));
    let artifacts = place.open();
    for right in [sha256("good"), format!("md5:{}", "0".repeat(32))] {
        let wanted = wanted_with(&server.url("app"), &[("checksum", &right)]);
        let result = artifacts.put(&wanted, &place.at("", Form::Any)).await;
        let failure = result.unwrap_err();
        let want = format!("checksum mismatch: want {right}, got ");
        assert!(
            failure.recoverable && failure.message.contains(&want),
            "{failure:?}"
        );
    }
    assert!(place.listed().is_empty() && place.has_no_work().await);
    assert_eq!(artifacts.metrics().cache_bytes.get(), 0);
    let right = wanted_with(&server.url("app"), &[("checksum", &sha256("evil"))]);
    artifacts
        .put(&right, &place.at("", Form::Any))
        .await
        .unwrap();
    assert_eq!(place.read("app"), "evil");
}

#[tokio::test]
async fn a_list_of_checksums_is_looked_up_each_time() {
    let (place, server) = (Place::new(), Server::start());
    server.put("app", "one", Some("v1"));
    let list = |text: &str| format!("{}  app\n", artifact_fetch::sha256_of(text));
    server.put("SUMS", list("one"), None);
    let checksum = format!("file:{}", server.url("SUMS"));
    let wanted = wanted_with(&server.url("app"), &[("checksum", &checksum)]);
    let artifacts = place.open();
    artifacts
        .put(&wanted, &place.at("", Form::Any))
        .await
        .unwrap();
    artifacts
        .put(&wanted, &place.at("", Form::Any))
        .await
        .unwrap();
    assert_eq!(
        (
            artifacts.metrics().downloads.get(),
            artifacts.metrics().cache_hits.get()
        ),
        (1, 1)
    );
    server.put("SUMS", list("two"), None);
    let error = message(artifacts.put(&wanted, &place.at("", Form::Any)).await);
    assert!(error.contains("checksum mismatch"), "{error}");
    server.put("SUMS", "nothing\n", None);
    let error = message(artifacts.put(&wanted, &place.at("", Form::Any)).await);
    assert!(error.contains("does not name \"app\""), "{error}");
}

#[tokio::test]
async fn headers_go_to_the_first_host_alone() {
    let (place, server, other) = (Place::new(), Server::start(), Server::start());
    other.put("app", "x", None);
    server.redirect("first", "/second");
    server.redirect("second", &other.url("app"));
    let mut wanted = wanted(&server.url("first").replace("http://", "http://user:pass@"));
    wanted
        .headers
        .insert("X-Token".to_owned(), "hidden".to_owned());
    place
        .open()
        .put(&wanted, &place.at("app", Form::File))
        .await
        .unwrap();
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    assert!(
        requests
            .iter()
            .all(|it| it.contains("x-token: hidden") && it.contains("authorization: basic"))
    );
    let foreign = &other.requests()[0];
    assert!(
        !foreign.contains("hidden") && !foreign.contains("authorization"),
        "{foreign}"
    );
    server.redirect("loop", "/loop");
    let url = server.url("loop");
    let error = message(
        place
            .open()
            .put(&crate::place::wanted(&url), &place.at("x", Form::File))
            .await,
    );
    assert!(error.contains("redirects more than 10 times"), "{error}");
    server.redirect("file", "file:///etc/passwd");
    let url = server.url("file");
    let error = message(
        place
            .open()
            .put(&crate::place::wanted(&url), &place.at("x", Form::File))
            .await,
    );
    assert!(error.contains("\"file\", which is not followed"), "{error}");
}

#[tokio::test]
async fn schemes_that_the_node_does_not_allow_are_refused() {
    let place = Place::new();
    std::fs::write(place.task().join("secret"), "s").unwrap();
    let artifacts = place.open();
    let source = format!("file://{}", place.task().join("secret").display());
    let failure = artifacts
        .put(&wanted(&source), &place.at("x", Form::File))
        .await
        .unwrap_err();
    assert!(
        !failure.recoverable && failure.message.contains("`artifact.schemes`"),
        "{failure:?}"
    );
}

#[tokio::test]
async fn a_source_without_a_name_needs_a_destination_for_a_file() {
    let (place, server) = (Place::new(), Server::start());
    server.put("", "index", None);
    let artifacts = place.open();
    let url = wanted(&server.url(""));
    let error = message(artifacts.put(&url, &place.at("local", Form::Any)).await);
    assert!(error.contains("names no file"), "{error}");
    artifacts
        .put(&url, &place.at("local/index", Form::File))
        .await
        .unwrap();
    let error = message(artifacts.put(&url, &place.at("local", Form::Dir)).await);
    assert!(error.contains("want an archive"), "{error}");
}
