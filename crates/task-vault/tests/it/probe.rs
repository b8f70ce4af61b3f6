//! The node's attributes.

use std::time::Duration;

use vault_test_kit::{Fault, Vault};

use crate::support::node;

#[tokio::test]
async fn a_node_has_attributes_once_it_has_reached_vault() {
    let mut vault = Vault::stopped().await;
    let probe = node(&vault).probe();
    let minute = Duration::from_secs(60);
    probe.refresh().await;
    assert!(probe.attributes().is_empty());
    assert_eq!(probe.interval(minute, 0.0), Duration::from_secs(15));
    vault.serve().await;
    vault.fail(Some(Fault::Sealed));
    probe.refresh().await;
    assert!(probe.attributes().is_empty(), "no task can log in yet");
    vault.fail(Some(Fault::Standby));
    probe.refresh().await;
    let found = probe.attributes();
    assert_eq!(
        (
            found["vault.accessible"].as_str(),
            found["vault.version"].as_str()
        ),
        ("true", "1.15.2")
    );
    assert!(found.contains_key("vault.cluster_id") && found.contains_key("vault.cluster_name"));
    assert_eq!(probe.interval(minute, 1.0), Duration::from_secs(54));
    vault.stop();
    probe.refresh().await;
    assert_eq!(probe.attributes(), found, "an outage does not move tasks");
}
