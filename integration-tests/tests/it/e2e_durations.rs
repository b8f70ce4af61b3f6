//! A duration in a driver's config reaches the node unchanged, however long.

use std::time::Duration;

use anyhow::{Context as _, Result};
use integration_tests::api::eventually;
use integration_tests::binary;

use crate::e2e_plan::Dev;

const TIMEOUT: Duration = Duration::from_secs(60);

/// More nanoseconds than a double counts.
const JOB: &str = r#"
job "long" {
  group "app" {
    task "mock" {
      driver = "mock_driver"
      config {
        run_for = "10000h"
      }
    }
  }
}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_more_than_a_year_starts() -> Result<()> {
    let dev = Dev::start().await?;
    let api = dev.api()?;
    dev.say(&["job", "run", "-detach"], JOB).await?.ok()?;
    let running = async || {
        let allocations = api.allocations("long").await?;
        let mut running = allocations
            .iter()
            .filter(|it| it.client_status == "running");
        let found = running.next().with_context(|| format!("{allocations:?}"))?;
        Ok(found.id.clone())
    };
    let first = eventually(TIMEOUT, running).await?;
    // The output of inspect can be run again, and is the same job.
    let shown = binary::run(&dev.address, &["job", "inspect", "long"])
        .await?
        .ok()?;
    let again = dev.write("again.json", &shown.stdout)?;
    let again = again.to_string_lossy();
    let plan = binary::run(&dev.address, &["job", "plan", "-json", &again]).await?;
    anyhow::ensure!(plan.code == 0, "{plan:?}");
    binary::run(&dev.address, &["job", "run", "-json", "-detach", &again])
        .await?
        .ok()?;
    let second = eventually(TIMEOUT, running).await?;
    anyhow::ensure!(first == second, "nothing has changed: {first} {second}");
    Ok(())
}
