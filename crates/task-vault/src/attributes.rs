//! The node's attributes of Vault, from its health.

use std::collections::BTreeMap;

use vault::{Client, Health};

/// Asks Vault for its health, once.
///
/// # Errors
/// The reason why there are no attributes.
pub async fn read(client: &Client) -> Result<BTreeMap<String, String>, String> {
    let health = client.health().await;
    attributes(&health.map_err(|failure| failure.to_string())?)
}

/// Source: Nomad's attributes. A sealed Vault is one that no task can use yet.
fn attributes(health: &Health) -> Result<BTreeMap<String, String>, String> {
    if !health.initialized {
        return Err("Vault is not initialized".to_owned());
    }
    if health.sealed {
        return Err("Vault is sealed".to_owned());
    }
    let pairs = [
        ("vault.accessible", "true"),
        ("vault.version", &health.version),
        ("vault.cluster_id", &health.cluster_id),
        ("vault.cluster_name", &health.cluster_name),
    ];
    let known = pairs.into_iter().filter(|(_, value)| !value.is_empty());
    Ok(known
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect())
}
