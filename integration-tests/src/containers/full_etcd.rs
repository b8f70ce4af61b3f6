//! etcd is filled up to its quota, and the stack recovers once there is something to give up.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use super::command::docker;
use super::placement::{SETTLE_TIMEOUT, place};
use super::stack::{QUOTA_BYTES, Stack};
use crate::api::{Api, eventually};
use crate::load::sleeper;

/// Below the largest request of etcdctl, 2 MiB.
const VALUE_BYTES: usize = 3 << 19;
const PREFIX: &str = "filler/";

/// Longer than the shortest history of etcd that is kept, a minute, and than the interval of looks at etcd.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(240);

/// Fills etcd with keys of others until the gateways refuse new work, shows that stops are accepted and
/// that tasks run on, and deletes the keys: the stack takes jobs again without an operator.
///
/// # Errors
/// A step did not happen in time.
pub async fn fill_and_recover(stack: &Stack, api: &Api) -> Result<()> {
    let (kept, stopped) = ("before-full", "stopped-when-full");
    for name in [kept, stopped] {
        api.register_surely(&sleeper(name, 1), name, SETTLE_TIMEOUT)
            .await?;
        eventually(SETTLE_TIMEOUT, || is_running(api, name)).await?;
    }
    let members = stack.containers("etcd-1").await?;
    let member = members.first().context("no container of etcd-1")?;
    fill(member).await?;
    let refusal = eventually(SETTLE_TIMEOUT, || async {
        let job = sleeper("when-full", 1);
        match api.register(job, "when-full").await {
            Ok(_) => anyhow::bail!("a job is registered in a full etcd"),
            Err(status) => {
                let text = status.message().to_owned();
                ensure!(text.contains("etcd is"), "refused otherwise: {status:?}");
                Ok(text)
            }
        }
    })
    .await?;
    ensure!(
        refusal.contains("full"),
        "the refusal is unclear: {refusal}"
    );
    // Stops are writes, too: they are accepted once the alarm is disarmed, long before new work is.
    api.stop_surely(stopped, true, SETTLE_TIMEOUT).await?;
    let still = api.register(sleeper("when-full", 1), "when-full").await;
    ensure!(still.is_err(), "a job is registered before there is space");
    is_running(api, kept).await?;

    docker(&["exec", member, "etcdctl", "del", "--prefix", PREFIX]).await?;
    eventually(RECOVERY_TIMEOUT, || async {
        let again = api.register(sleeper("when-full", 1), "when-full").await;
        again.map(drop).context("still refused")
    })
    .await?;
    eventually(SETTLE_TIMEOUT, || is_running(api, "when-full")).await?;
    is_running(api, kept).await?;
    for name in [kept, "when-full"] {
        api.stop_surely(name, true, SETTLE_TIMEOUT).await?;
    }
    place(api, "after-full").await
}

/// Puts values until etcd takes no more.
async fn fill(member: &str) -> Result<()> {
    let value = vec![b'x'; VALUE_BYTES];
    for number in 0..=QUOTA_BYTES / VALUE_BYTES {
        if let Err(error) = put(member, &format!("{PREFIX}{number}"), &value).await {
            let text = format!("{error:#}");
            ensure!(
                text.contains("space exceeded"),
                "etcd refuses otherwise: {text}"
            );
            return Ok(());
        }
    }
    anyhow::bail!("etcd took more than its quota")
}

async fn put(member: &str, key: &str, value: &[u8]) -> Result<()> {
    // Without a value as an argument, etcdctl reads it from its input.
    let mut child = Command::new("docker")
        .args(["exec", "-i", member, "etcdctl", "put", key])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("cannot start docker")?;
    let mut input = child.stdin.take().context("no input of etcdctl")?;
    input.write_all(value).await?;
    drop(input);
    let output = child.wait_with_output().await?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "put {key}: {stderr}");
    Ok(())
}

async fn is_running(api: &Api, name: &str) -> Result<()> {
    let allocations = api.allocations(name).await?;
    let runs = allocations.iter().any(|it| it.client_status == "running");
    ensure!(runs, "{name} does not run: {allocations:?}");
    Ok(())
}
