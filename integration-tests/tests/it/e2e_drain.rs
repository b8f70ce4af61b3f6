//! Drain of a node under a service of four: one allocation moves at a time, at least three are
//! healthy, and the node ends up empty.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use integration_tests::api::{Api, eventually};
use integration_tests::suite::{Options, Suite};
use proto::v1;

const TIMEOUT: Duration = Duration::from_secs(90);
const COUNT: usize = 4;

const WEB: &str = r#"
job "web" {
  group "app" {
    count = 4
    update {
      max_parallel     = 4
      min_healthy_time = "500ms"
      healthy_deadline = "30s"
    }
    migrate {
      max_parallel     = 1
      min_healthy_time = "500ms"
      healthy_deadline = "30s"
    }
    spread {
      attribute = "${node.unique.id}"
    }
    task "sleep" {
      driver = "raw_exec"
      config {
        command = "/bin/sleep"
        args    = ["1000"]
      }
      resources {
        cpu    = 20
        memory = 16
      }
    }
  }
}
"#;

async fn wanted(api: &Api) -> Result<Vec<v1::Allocation>> {
    let mut allocations = api.allocations("web").await?;
    allocations.retain(|alloc| alloc.desired_status == "run");
    Ok(allocations)
}

fn is_healthy(alloc: &v1::Allocation) -> bool {
    let health = alloc.deployment_health.as_ref();
    alloc.client_status == "running" && health.is_some_and(|health| health.healthy)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_leaves_a_draining_node_and_stays_healthy() -> Result<()> {
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
    let path: PathBuf = directory.path().join("web.hcl");
    std::fs::write(&path, WEB)?;
    let file = path.to_string_lossy().into_owned();
    suite.kafila(&["job", "run", &file]).await?.ok()?;
    let before = wanted(&api).await?;
    ensure!(before.iter().filter(|alloc| is_healthy(alloc)).count() == COUNT);
    let node = before.first().context("it runs")?.node_id.clone();
    let there = before.iter().filter(|alloc| alloc.node_id == node).count();
    ensure!(there == 2, "the spread puts two on each: {before:?}");

    // An abbreviated id asks for confirmation, which a script cannot give.
    let short = &node[..8];
    let asked = suite.kafila(&["node", "drain", "-enable", short]).await?;
    ensure!(
        asked.code == 1 && asked.stderr.contains("add -yes"),
        "{asked:?}"
    );

    let enable = ["node", "drain", "-enable", "-yes", "-m", "new disks", short];
    let draining = suite.kafila(&enable);
    let watching = async {
        let mut least = COUNT;
        loop {
            let healthy = wanted(&api).await?;
            least = least.min(healthy.iter().filter(|alloc| is_healthy(alloc)).count());
            let nodes = api.nodes().await?;
            let done = nodes.iter().find(|one| one.id == node).is_some_and(|one| {
                let last = one.last_drain.as_ref();
                last.is_some_and(|last| last.status == "complete")
            });
            if done {
                return anyhow::Ok(least);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let both = async { tokio::join!(draining, watching) };
    let (said, least) = tokio::time::timeout(TIMEOUT, both)
        .await
        .with_context(|| suite.log_tails())?;
    let said = said?.ok()?;
    ensure!(least? >= COUNT - 1, "fewer than three were healthy");
    for part in [
        format!("Node {node:?} drain strategy set\n"),
        " marked for migration\n".to_owned(),
        " status running -> complete\n".to_owned(),
        format!(": Drain complete for node {short}\n"),
        format!(": All allocations on node {short:?} have stopped\n"),
    ] {
        ensure!(said.stdout.contains(&part), "{part:?} in\n{}", said.stdout);
    }
    let moved = said.stdout.matches(" marked for migration\n").count();
    ensure!(moved == there, "{}", said.stdout);

    let after = eventually(TIMEOUT, || async {
        let after = wanted(&api).await?;
        let healthy = after.iter().filter(|alloc| is_healthy(alloc)).count();
        ensure!(healthy == COUNT, "{healthy} healthy");
        Ok(after)
    })
    .await?;
    ensure!(after.iter().all(|alloc| alloc.node_id != node), "{after:?}");
    let status = suite.kafila(&["node", "status", short]).await?.ok()?;
    // How wide columns are is not what this is about.
    let words: Vec<_> = status.stdout.split_whitespace().collect();
    let shown = words.join(" ");
    for part in [
        "Drain = false",
        "Last Drain = complete, ",
        ": new disks",
        "Eligibility = ineligible",
        "Node drain complete",
    ] {
        ensure!(shown.contains(part), "{part:?} in\n{}", status.stdout);
    }

    // An idle node is done at once; a drain that is ended makes the node eligible again.
    let again = ["node", "drain", "-enable", "-force", node.as_str()];
    let said = suite.kafila(&again).await?.ok()?;
    ensure!(said.stdout.contains("Drain complete"), "{}", said.stdout);
    let disable = ["node", "drain", "-disable", node.as_str()];
    suite.kafila(&disable).await?.ok()?;
    let nodes = api.nodes().await?;
    let there = nodes.iter().find(|one| one.id == node);
    ensure!(
        there.is_some_and(|one| one.eligibility == "eligible"),
        "{there:?}"
    );
    suite.check_history().await?;
    Ok(())
}
