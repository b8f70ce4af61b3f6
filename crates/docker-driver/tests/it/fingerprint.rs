//! Fingerprint of the driver, with and without an engine.

use docker_driver::{Docker, Settings};
use task_drivers::Driver;

use crate::bench::Bench;

#[tokio::test]
async fn without_a_socket_the_driver_is_not_detected_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = Settings::new(folder.path().join("state"), "node".to_owned());
    settings.config.socket = folder.path().join("docker.sock");
    let driver = Docker::new(settings.clone());
    driver.refresh().await;
    let found = driver.fingerprint();
    assert!(!found.detected && !found.healthy);
    assert!(
        found.description.contains("no Docker socket at "),
        "{found:?}"
    );
    // A socket without an engine behind it.
    drop(std::os::unix::net::UnixListener::bind(&settings.config.socket).unwrap());
    driver.refresh().await;
    let found = driver.fingerprint();
    assert!(!found.detected, "{found:?}");
    assert!(
        found.description.contains("cannot reach the engine"),
        "{found:?}"
    );
}

#[tokio::test]
async fn a_disabled_driver_is_not_detected() {
    let mut settings = Settings::new("/nonexistent".into(), "node".to_owned());
    settings.config.enabled = false;
    let driver = Docker::new(settings);
    driver.refresh().await;
    assert_eq!(driver.fingerprint().description, "disabled");
    assert!(!driver.fingerprint().detected);
}

#[tokio::test]
async fn an_engine_is_detected_with_its_version() {
    let Some(bench) = Bench::new().await else {
        return;
    };
    bench.driver.refresh().await;
    let found = bench.driver.fingerprint();
    assert!(found.detected && found.healthy, "{found:?}");
    assert_eq!(found.attributes["driver.docker"], "1");
    let version = bench.client.version().await.unwrap().version.unwrap();
    assert_eq!(found.attributes["driver.docker.version"], version);
    let bridge = &found.attributes["driver.docker.bridge_ip"];
    assert!(bridge.parse::<std::net::IpAddr>().is_ok(), "{bridge}");
    assert!(
        !found
            .attributes
            .contains_key("driver.docker.privileged.enabled")
    );
}
