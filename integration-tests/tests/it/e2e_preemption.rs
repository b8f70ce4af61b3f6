//! Preemption: a system job evicts a service with lower priority from a full node; the service restarts
//! on the other node, and both allocations show the reason.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use integration_tests::api::{Api, eventually};
use integration_tests::suite::{Options, Suite};
use proto::v1;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Returns a job of one sleeping task that asks for `memory` MiB.
fn job(name: &str, head: &str, memory: u64) -> String {
    format!(
        r#"
job "{name}" {{
  {head}
  group "app" {{
    task "sleep" {{
      driver = "raw_exec"
      config {{
        command = "/bin/sleep"
        args    = ["1000"]
      }}
      resources {{
        cpu    = 20
        memory = {memory}
      }}
    }}
  }}
}}
"#
    )
}

async fn running(api: &Api, job_id: &str) -> Result<Vec<v1::Allocation>> {
    let mut allocations = api.allocations(job_id).await?;
    allocations.retain(|alloc| alloc.desired_status == "run" && alloc.client_status == "running");
    Ok(allocations)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_makes_way_for_a_system_job_and_runs_elsewhere() -> Result<()> {
    if !test_kit::etcd::available() {
        return Ok(());
    }
    let options = Options {
        nodes: 2,
        ..Options::default()
    };
    let suite = Suite::start(options).await?;
    let api = suite.api()?;
    let directory = tempfile::tempdir()?;
    let file = |name: &str, text: String| -> Result<String> {
        let path: PathBuf = directory.path().join(name);
        std::fs::write(&path, text)?;
        Ok(path.to_string_lossy().into_owned())
    };

    // Both nodes see all of the machine's memory; three quarters leave no room for a half.
    let nodes = api.nodes().await?;
    let memory = |node: &v1::Node| {
        let has = |part: &Option<v1::NodeResources>| part.map_or(0, |part| part.memory_mib);
        has(&node.resources) - has(&node.reserved)
    };
    let least = nodes.iter().map(memory).min().context("no nodes")?;
    let low = file("low.hcl", job("low", "priority = 20", least * 3 / 4))?;
    suite.kafila(&["job", "run", &low]).await?.ok()?;
    let victim = running(&api, "low").await?.pop().context("low runs")?;
    let node = nodes.iter().find(|node| node.id == victim.node_id);
    let name = &node.context("its node is known")?.name;
    let head = format!(
        "type = \"system\"\n  priority = 80\n  constraint {{\n    \
         attribute = \"${{node.unique.name}}\"\n    value = \"{name}\"\n  }}"
    );
    let high = file("high.hcl", job("high", &head, least / 2))?;

    // It can be seen beforehand.
    let plan = suite.kafila(&["job", "plan", &high]).await?;
    ensure!(plan.code == 1, "{plan:?}");
    let id = &victim.id[..8];
    for part in ["Preemptions:\n", &format!("{id}  low     app")] {
        ensure!(plan.stdout.contains(part), "{part:?} in\n{}", plan.stdout);
    }

    suite.kafila(&["job", "run", &high]).await?.ok()?;
    let winner = eventually(TIMEOUT, || async {
        running(&api, "high").await?.pop().context("high runs")
    })
    .await?;
    ensure!(winner.node_id == victim.node_id, "{winner:?}");
    ensure!(
        winner.preempted_alloc_ids == [victim.id.clone()],
        "{winner:?}"
    );
    let successor = eventually(TIMEOUT, || async {
        running(&api, "low").await?.pop().context("low runs again")
    })
    .await?;
    ensure!(successor.node_id != victim.node_id, "{successor:?}");

    // The task has really ended, and both sides tell.
    let gone = eventually(TIMEOUT, || async {
        let gone = api.allocation(&victim.id).await?;
        ensure!(gone.client_status == "complete", "{gone:?}");
        Ok(gone)
    })
    .await?;
    ensure!(gone.desired_status == "evict", "{gone:?}");
    let explained = suite.kafila(&["alloc", "status", &victim.id]).await?.ok()?;
    let winners = &winner.id[..8];
    for part in [
        "Desired Status        = evict\n",
        &format!(
            "Desired Description   = Preempted by alloc ID {}\n",
            winner.id
        ),
        &format!("Preempted By Alloc ID = {winners}\n"),
    ] {
        ensure!(
            explained.stdout.contains(part),
            "{part:?} in\n{}",
            explained.stdout
        );
    }
    let explained = suite.kafila(&["alloc", "status", &winner.id]).await?.ok()?;
    let part = format!("Preempted Alloc IDs = {id}\n");
    ensure!(
        explained.stdout.contains(&part),
        "{part:?} in\n{}",
        explained.stdout
    );
    let evals = api.evaluations().await?;
    let looked: Vec<_> = evals
        .iter()
        .filter(|eval| eval.triggered_by == "preemption")
        .collect();
    ensure!(
        looked.len() == 1 && looked[0].job_id == "low" && looked[0].status == "complete",
        "{looked:?}"
    );
    println!("{}", suite.check_history().await?);
    suite.stop().await
}
