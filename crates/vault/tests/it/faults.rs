//! Failures of the server, told apart.

use std::time::Duration;

use serde_json::json;
use vault::{Client, Failure};
use vault_test_kit::{Fault, Vault};

use crate::support::{client, config, log_in};

#[tokio::test]
async fn transient_failures_differ_from_permanent_ones() {
    let vault = Vault::start().await;
    let client = client(&vault);
    let token = log_in(&client).await.token;
    for (fault, is_transient, text) in [
        (Fault::Sealed, true, "sealed"),
        (Fault::Standby, true, "standby"),
        (Fault::Throttled(3), true, "rate"),
        (Fault::Error, true, "500: internal error"),
        (Fault::Html, true, "not Vault's"),
        (Fault::Denied, false, "permission denied"),
    ] {
        vault.fail(Some(fault));
        let failure = client.read("kv/x", None, &token).await.unwrap_err();
        assert_eq!(failure.is_transient(), is_transient, "{failure:?}");
        assert!(failure.to_string().contains(text), "{failure}");
        let asked = matches!(fault, Fault::Throttled(_)).then_some(Duration::from_secs(3));
        assert_eq!(failure.retry_after(), asked, "{failure:?}");
    }
}

#[tokio::test]
async fn an_answer_that_quotes_the_request_shows_none_of_its_secrets() {
    let vault = Vault::start().await;
    let client = client(&vault);
    let token = log_in(&client).await.token;
    vault.fail(Some(Fault::Quoting));
    let body = json!({ "a": { "b": ["PLANTED value"] } });
    let failure = client.write("kv/x", &body, &token).await.unwrap_err();
    assert!(failure.to_string().contains("(hidden)"), "{failure}");
    assert!(
        !format!("{failure} {failure:?}").contains("PLANTED"),
        "{failure}"
    );
}

#[tokio::test]
async fn a_server_that_is_down_or_slow_is_named() {
    let mut vault = Vault::start().await;
    let client = client(&vault);
    let token = log_in(&client).await.token;
    vault.stop();
    let failure = client.read("kv/x", None, &token).await.unwrap_err();
    assert!(
        matches!(
            failure,
            Failure::Call(http_client::Failure::Unreachable { .. })
        ),
        "{failure:?}"
    );
    assert!(
        failure.to_string().contains(&vault.port().to_string()),
        "{failure}"
    );
    vault.serve().await;
    vault.fail(Some(Fault::Slow(Duration::from_secs(30))));
    let mut config = config(vault.url());
    config.timeout = Duration::from_millis(200);
    let hasty = Client::open(&config).unwrap();
    let failure = hasty.read("kv/x", None, &token).await.unwrap_err();
    assert!(
        matches!(failure, Failure::Call(http_client::Failure::Timeout { .. }))
            && failure.is_transient(),
        "{failure:?}"
    );
}

#[tokio::test]
async fn the_health_of_a_sealed_server_or_a_standby_is_an_answer() {
    let vault = Vault::start().await;
    let client = client(&vault);
    let health = client.health().await.unwrap();
    assert_eq!((health.version.as_str(), health.sealed), ("1.15.2", false));
    assert!(!health.cluster_id.is_empty());
    vault.fail(Some(Fault::Sealed));
    assert!(client.health().await.unwrap().sealed);
    vault.fail(Some(Fault::Standby));
    assert!(client.health().await.unwrap().standby);
    vault.fail(Some(Fault::Html));
    assert!(matches!(
        client.health().await,
        Err(Failure::Call(http_client::Failure::Foreign { .. }))
    ));
}

#[tokio::test]
async fn requests_beyond_the_limit_wait() {
    let vault = Vault::start().await;
    vault.fail(Some(Fault::Slow(Duration::from_millis(300))));
    let mut config = config(vault.url());
    config.max_requests = 1;
    let client = Client::open(&config).unwrap();
    let (one, two) = tokio::join!(client.health(), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        (vault.requests().len(), client.health().await)
    });
    assert!(one.is_ok() && two.1.is_ok());
    assert_eq!(two.0, 1, "the second request is sent after the first");
    assert_eq!(vault.requests().len(), 2);
}
