//! The node's cache: checksum, ETag, single flight, restarts, bounds.

use std::sync::Arc;
use std::time::Duration;

use artifact_fetch::Form;

use crate::place::{Place, wanted, wanted_with};
use crate::server::{Fault, Server};

#[tokio::test]
async fn a_file_with_a_checksum_is_downloaded_once_for_all_urls_and_restarts() {
    let (place, server) = (Place::new(), Server::start());
    server.put("a/app", "x", None);
    let checksum = format!("sha256:{}", artifact_fetch::sha256_of("x"));
    let of = |path: &str| wanted_with(&server.url(path), &[("checksum", &checksum)]);
    place
        .open()
        .put(&of("a/app"), &place.at("one", Form::Any))
        .await
        .unwrap();
    let artifacts = place.open();
    // There is no such file on the server.
    artifacts
        .put(&of("b/app"), &place.at("two", Form::Any))
        .await
        .unwrap();
    assert_eq!(place.read("two/app"), "x");
    assert_eq!(server.requests().len(), 1);
    assert_eq!(artifacts.metrics().cache_hits.get(), 1);
    // A request with credentials has an entry of its own.
    let mut private = of("a/app");
    private
        .headers
        .insert("Authorization".to_owned(), "t".to_owned());
    artifacts
        .put(&private, &place.at("three", Form::Any))
        .await
        .unwrap();
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_file_with_an_etag_is_downloaded_again_when_it_changes() {
    let (place, server) = (Place::new(), Server::start());
    let artifacts = place.open();
    let url = wanted(&server.url("app"));
    for (content, etag, downloads, hits) in [
        ("one", "v1", 1, 0),
        ("one", "v1", 1, 1),
        ("two", "v2", 2, 1),
    ] {
        server.put("app", content, Some(etag));
        artifacts.put(&url, &place.at("", Form::Any)).await.unwrap();
        assert_eq!(place.read("app"), content);
        let metrics = artifacts.metrics();
        assert_eq!(
            (metrics.downloads.get(), metrics.cache_hits.get()),
            (downloads, hits),
            "{etag}"
        );
    }
    assert_eq!(artifacts.metrics().cache_bytes.get(), 3);
}

#[tokio::test]
async fn many_allocations_share_one_download_and_its_failure() {
    let (place, server) = (Place::new(), Server::start());
    server.put("app", "x".repeat(10_000), None);
    server.fail(&[Fault::Slow(Duration::from_millis(50))]);
    let artifacts = Arc::new(place.open_with(|config| config.attempts = 1));
    let all = |path: &'static str| {
        let starts = (0..8).map(|number| {
            let artifacts = Arc::clone(&artifacts);
            let destination = place.at(&format!("{path}-{number}"), Form::File);
            let wanted = wanted(&server.url(path));
            tokio::spawn(async move { artifacts.put(&wanted, &destination).await })
        });
        starts.collect::<Vec<_>>()
    };
    for start in all("app") {
        start.await.unwrap().unwrap();
    }
    assert_eq!(server.requests().len(), 1);
    assert_eq!(place.listed().len(), 8);
    server.fail(&[Fault::Slow(Duration::from_millis(50))]);
    for start in all("missing") {
        start.await.unwrap().unwrap_err();
    }
    assert!(
        server.requests().len() < 1 + 8,
        "{}",
        server.requests().len()
    );
}

#[tokio::test]
async fn a_download_goes_on_for_the_others_when_one_is_cancelled() {
    let (place, server) = (Place::new(), Server::start());
    server.put("app", "x".repeat(20_000), Some("v1"));
    server.fail(&[Fault::Slow(Duration::from_millis(100))]);
    let artifacts = Arc::new(place.open());
    let start = |name: &str| {
        let artifacts = Arc::clone(&artifacts);
        let (wanted, destination) = (wanted(&server.url("app")), place.at(name, Form::File));
        tokio::spawn(async move { artifacts.put(&wanted, &destination).await })
    };
    let first = start("first");
    tokio::time::sleep(Duration::from_millis(800)).await;
    let second = start("second");
    tokio::time::sleep(Duration::from_millis(100)).await;
    first.abort();
    second.await.unwrap().unwrap();
    assert_eq!(place.listed(), ["second"]);
    assert!(place.has_no_work().await);
}

#[tokio::test]
async fn the_cache_is_bounded() {
    let (place, server) = (Place::new(), Server::start());
    let artifacts = place.open_with(|config| config.cache_bytes_max = 25);
    for name in ["a", "b", "c"] {
        server.put(name, "0123456789", Some(name));
        artifacts
            .put(&wanted(&server.url(name)), &place.at("", Form::Any))
            .await
            .unwrap();
    }
    assert_eq!(artifacts.metrics().cache_bytes.get(), 20);
    artifacts
        .put(&wanted(&server.url("b")), &place.at("", Form::Any))
        .await
        .unwrap();
    artifacts
        .put(&wanted(&server.url("a")), &place.at("", Form::Any))
        .await
        .unwrap();
    let metrics = artifacts.metrics();
    assert_eq!((metrics.downloads.get(), metrics.cache_hits.get()), (4, 1));
}
