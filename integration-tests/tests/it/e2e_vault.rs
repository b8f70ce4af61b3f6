//! Vault over a real etcd, with a stand-in for Vault: a task reads a secret and follows its change, an outage
//! ends nothing, and no secret is anywhere but in the task.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use integration_tests::api::eventually;
use integration_tests::suite::{Options, Suite};
use serde_json::json;
use vault_test_kit::Vault;

const TIMEOUT: Duration = Duration::from_secs(90);

/// Prints its secret at each start.
const JOB: &str = r#"
job "web" {
  group "app" {
    task "server" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "stat -c 'mode %a' secrets/vault_token; echo \"read $(cat secrets/app.conf)\"; exec sleep 600"]
      }
      vault {
        role = "web"
      }
      template {
        data        = "{{ with secret \"secret/data/app\" }}{{ .Data.data.password }}{{ end }}"
        destination = "secrets/app.conf"
        splay       = "0s"
      }
      resources {
        cpu    = 20
        memory = 20
      }
    }
  }
}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_task_follows_its_secret_and_nothing_else_has_it() -> Result<()> {
    if !test_kit::etcd::available() {
        return Ok(());
    }
    let mut vault = Vault::start().await;
    vault.put("secret/app", json!({"password": "planted-one"}));
    let config = format!(
        "[vault]\nenabled = true\naddress = {:?}\npoll_interval = \"1s\"\n",
        vault.url()
    );
    let suite = Suite::start(Options {
        node_config: Some(config),
        ..Options::default()
    })
    .await?;
    let result = play(&suite, &mut vault).await;
    result.with_context(|| suite.log_tails())?;
    suite.stop().await
}

async fn play(suite: &Suite, vault: &mut Vault) -> Result<()> {
    suite.run_job(JOB).await?;
    let log = eventually(TIMEOUT, || printed(suite, "read planted-one")).await?;
    ensure!(log.contains("mode 600"), "{log}");
    let tokens = vault.tokens();
    ensure!(tokens.len() == 1, "{} tokens", tokens.len());

    // Longer than several polls.
    vault.stop();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let api = suite.api()?;
    let allocations = api.allocations("web").await?;
    let state = &allocations[0].task_states["server"];
    ensure!(state.restarts == 0 && state.state == "running", "{state:?}");

    vault.put("secret/app", json!({"password": "planted-two"}));
    vault.serve().await;
    eventually(TIMEOUT, || printed(suite, "read planted-two")).await?;
    ensure!(
        api.allocations("web").await?.len() == 1,
        "the allocation was replaced"
    );
    ensure!(vault.tokens() == tokens, "the restart took another token");

    suite.kafila(&["job", "stop", "-yes", "web"]).await?.ok()?;
    eventually(TIMEOUT, || async {
        ensure!(vault.tokens().is_empty(), "the token is not revoked");
        Ok(())
    })
    .await?;
    suite
        .search_secrets(&["planted-one", "planted-two", &tokens[0]])
        .await
}

async fn printed(suite: &Suite, line: &str) -> Result<String> {
    let api = suite.api()?;
    let allocations = api.allocations("web").await?;
    let alloc = allocations.first().context("no allocation")?;
    let log = api.logs(&alloc.id, "server").await?;
    ensure!(log.lines().any(|read| read == line), "{log}");
    Ok(log)
}
