//! The node's attributes.

use task_vault::attributes;
use vault_test_kit::{Fault, Vault};

use crate::support::node;

#[tokio::test]
async fn a_node_has_attributes_of_a_vault_that_tasks_can_use() {
    let mut vault = Vault::stopped().await;
    let node = node(&vault);
    let read = async || attributes::read(node.client()).await;
    let problem = read().await.unwrap_err();
    assert!(problem.contains("cannot be reached"), "{problem}");
    vault.serve().await;
    vault.fail(Some(Fault::Sealed));
    let problem = read().await.unwrap_err();
    assert!(problem.contains("sealed"), "no task can log in: {problem}");
    vault.fail(Some(Fault::Standby));
    let found = read().await.unwrap();
    assert_eq!(
        (
            found["vault.accessible"].as_str(),
            found["vault.version"].as_str()
        ),
        ("true", "1.15.2")
    );
    assert!(found.contains_key("vault.cluster_id") && found.contains_key("vault.cluster_name"));
}
