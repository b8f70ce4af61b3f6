//! Certificates that expire and are replaced while their service runs.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::stack::{NODES, Stack};
use crate::api::{Api, eventually};

/// Validity of the expiring certificate: some looks at the files, which are 5 s apart.
const VALIDITY: Duration = Duration::from_secs(15);

/// Timeout until running gateways use another certificate, or theirs expires.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Lets the gateways' certificate expire: they refuse new connections, and nodes keep theirs. Then
/// replaces it: the gateways accept connections again, without a restart.
///
/// # Errors
/// A gateway goes on with an expired certificate, or does not use the new one.
pub async fn expire_and_replace(stack: &Stack, api: &Api) -> Result<()> {
    let before = stack.starts("api-gateway").await?;
    stack.secrets().let_gateways_expire(VALIDITY)?;
    for gateway in 0..2 {
        eventually(TIMEOUT, || async {
            let health = stack.kafila(gateway, &["operator", "health"]).await?;
            ensure!(health.stderr.contains("expired"), "{health:?}");
            Ok(())
        })
        .await?;
    }
    let nodes = api.nodes().await?;
    let ready = nodes.iter().filter(|node| node.status == "ready").count();
    ensure!(ready == NODES.len(), "{ready} nodes are ready");

    stack.renew_secrets().await?;
    for gateway in 0..2 {
        eventually(TIMEOUT, || async {
            let health = stack.kafila(gateway, &["operator", "health"]).await?;
            health.ok().map(drop)
        })
        .await?;
    }
    let after = stack.starts("api-gateway").await?;
    ensure!(before == after, "a gateway was restarted");
    Ok(())
}
