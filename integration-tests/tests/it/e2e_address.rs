//! A node that comes back with another address: its services are replaced, its batch work goes on.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use integration_tests::api::{Api, eventually};
use integration_tests::suite::{Options, Suite};
use proto::v1;

const TIMEOUT: Duration = Duration::from_secs(60);

// From the documentation range (RFC 5737): no task listens there.
const OLD: &str = "192.0.2.7";
const NEW: &str = "192.0.2.9";

/// A job of the type `TYPE` with one task, whose group has what stands for `GROUP`.
const JOB: &str = r#"
job "NAME" {
  type = "TYPE"
  group "app" {
    GROUP
    task "server" {
      driver = "raw_exec"
      config {
        command = "/bin/sleep"
        args    = ["600"]
      }
      resources {
        cpu    = 20
        memory = 20
      }
    }
  }
}
"#;

const STATIC_PORT_WITH_SERVICE: &str = r#"
    network {
      port "http" { static = 8099 }
    }
    service {
      name     = "web-api"
      provider = "nomad"
      port     = "http"
    }"#;

const DYNAMIC_PORT: &str = r#"
    network {
      port "any" {}
    }"#;

#[tokio::test(flavor = "multi_thread")]
async fn services_get_the_new_address_of_their_node_and_batch_work_goes_on() -> Result<()> {
    if !test_kit::etcd::available() {
        return Ok(());
    }
    let mut suite = Suite::start(Options {
        node_config: Some(format!("host_ip = \"{OLD}\"\n")),
        ..Options::default()
    })
    .await?;
    let result = play(&mut suite).await;
    result.with_context(|| suite.log_tails())?;
    suite.stop().await
}

async fn play(suite: &mut Suite) -> Result<()> {
    let api = suite.api()?;
    for (name, job_type, group) in [
        ("web", "service", STATIC_PORT_WITH_SERVICE),
        ("system", "system", DYNAMIC_PORT),
        ("batch", "batch", DYNAMIC_PORT),
    ] {
        let job = JOB.replace("NAME", name).replace("TYPE", job_type);
        suite.run_job(&job.replace("GROUP", group)).await?;
    }
    let mut before = Vec::new();
    for job in ["web", "system", "batch"] {
        before.push(eventually(TIMEOUT, || running_on(&api, job, OLD)).await?);
    }
    eventually(TIMEOUT, || registered(suite, OLD)).await?;

    suite.kill("client-node-0");
    suite.set_node_config(&format!("host_ip = \"{NEW}\"\n"));
    suite.start_process("client-node-0")?;

    for (job, old) in ["web", "system"].iter().zip(&before) {
        let new = eventually(TIMEOUT, || running_on(&api, job, NEW)).await?;
        ensure!(new.node_id == old.node_id, "{job} went to another node");
        ensure!(new.previous_alloc_id == old.id, "{job}: {new:?}");
        // The task goes on under its supervisor until it is stopped: the replacement has waited.
        let old = eventually(TIMEOUT, || async {
            let old = api.allocation(&old.id).await?;
            ensure!(old.client_status == "complete", "{}", old.client_status);
            Ok(old)
        })
        .await?;
        let reason = &old.desired_description;
        ensure!(old.desired_status == "stop", "{}", old.desired_status);
        ensure!(
            reason.contains(&format!("no longer has the address {OLD}")),
            "{reason}"
        );
    }
    eventually(TIMEOUT, || registered(suite, NEW)).await?;
    let batch = running_on(&api, "batch", OLD).await?;
    ensure!(batch.id == before[2].id, "{batch:?}");
    Ok(())
}

/// Returns the job's one allocation that is wanted and runs, with its port on `address`.
async fn running_on(api: &Api, job: &str, address: &str) -> Result<v1::Allocation> {
    let allocations = api.allocations(job).await?;
    let wanted = allocations
        .iter()
        .filter(|alloc| alloc.desired_status == "run" && alloc.client_status == "running");
    let wanted: Vec<_> = wanted.collect();
    ensure!(wanted.len() == 1, "{job}: {allocations:?}");
    let resources = wanted[0].resources.as_ref().context("no resources")?;
    ensure!(resources.ports[0].host_ip == address, "{resources:?}");
    Ok(wanted[0].clone())
}

/// Checks that the service is registered once, on `address`.
async fn registered(suite: &Suite, address: &str) -> Result<()> {
    let answer = suite
        .kafila(&["service", "info", "-json", "web-api"])
        .await?
        .json()?;
    let found = answer.as_array().cloned().unwrap_or_default();
    ensure!(
        found.len() == 1 && found[0]["Address"] == address,
        "{answer}"
    );
    Ok(())
}
