//! Files, signals, measurements, actions and metadata against `kafila dev`: from the command to the task.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use integration_tests::api::eventually;
use integration_tests::binary;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use crate::e2e_plan::Dev;

const TIMEOUT: Duration = Duration::from_secs(60);

const JOB: &str = r#"job "web" {
  group "app" {
    restart {
      attempts = 0
    }
    task "server" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args = ["-c", "trap 'echo reloaded' HUP; echo one > local/app.log; echo up; while :; do sleep 0.05; done"]
      }
      action "greet" {
        command = "/bin/sh"
        args    = ["-c", "cat; echo $NOMAD_TASK_NAME $0 $1", "with", "arguments"]
      }
      resources {
        cpu    = 50
        memory = 32
      }
    }
  }
}"#;

async fn kafila(dev: &Dev, line: &str) -> Result<String> {
    let words: Vec<&str> = line.split(' ').collect();
    Ok(binary::run(&dev.address, &words).await?.ok()?.stdout)
}

#[tokio::test(flavor = "multi_thread")]
async fn files_signals_measurements_and_actions_reach_the_tasks_of_an_allocation() -> Result<()> {
    let dev = Dev::start().await?;
    let api = dev.api()?;
    let file = dev.write("web.hcl", JOB)?;
    kafila(&dev, &format!("job run -detach {}", file.display())).await?;
    let alloc = eventually(TIMEOUT, || async {
        let allocations = api.allocations("web").await?;
        let mut running = allocations.into_iter();
        let found = running.find(|it| it.client_status == "running");
        found.context("not running")
    })
    .await?;
    let id = alloc.id[..8].to_owned();
    let id = id.as_str();

    let list = kafila(&dev, &format!("alloc fs {id} server")).await?;
    ensure!(
        list.contains("local/") && list.contains("secrets/"),
        "{list}"
    );
    eventually(TIMEOUT, || async {
        let text = kafila(&dev, "alloc fs -job web server/local/app.log").await?;
        ensure!(text == "one\n", "{text}");
        Ok(())
    })
    .await?;
    let said = binary::run(&dev.address, &["alloc", "fs", id, "server/secrets"]).await?;
    ensure!(
        said.code == 1 && said.stderr.contains("secrets"),
        "{said:?}"
    );

    // A file that grows while it is followed, by a command beside the task.
    let mut follower = Command::new(binary::kafila())
        .args(["alloc", "fs", "-f", "-n", "1", id, "server/local/app.log"])
        .env("KAFILA_ADDR", &dev.address)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let stdout = follower.stdout.take().context("no pipe")?;
    let mut lines = BufReader::new(stdout).lines();
    ensure!(lines.next_line().await? == Some("one".to_owned()));
    let append = [
        "alloc",
        "exec",
        "-i=false",
        id,
        "sh",
        "-c",
        "echo two >> local/app.log",
    ];
    binary::run(&dev.address, &append).await?.ok()?;
    let next = tokio::time::timeout(TIMEOUT, lines.next_line()).await??;
    ensure!(next == Some("two".to_owned()), "{next:?}");

    let sent = kafila(&dev, &format!("alloc signal -s HUP {id}")).await?;
    ensure!(sent.contains("Sent SIGHUP to task \"server\""), "{sent}");
    eventually(TIMEOUT, || async {
        let text = kafila(&dev, &format!("alloc logs {id}")).await?;
        ensure!(text.contains("reloaded"), "{text}");
        let text = kafila(&dev, &format!("alloc status {id}")).await?;
        ensure!(text.contains("Signaling"), "{text}");
        Ok(())
    })
    .await?;

    let stats = kafila(&dev, &format!("alloc stats {id}")).await?;
    ensure!(
        stats.contains("server") && stats.contains(" MHz"),
        "{stats}"
    );
    let status = kafila(&dev, &format!("alloc status -stats {id}")).await?;
    ensure!(status.contains("Resource Utilization"), "{status}");

    let acted = kafila(&dev, "action -i=false -job web greet").await?;
    ensure!(acted == "server with arguments\n", "{acted:?}");
    let said = binary::run(&dev.address, &["action", "-alloc", id, "gret"]).await?;
    ensure!(
        said.code == 1 && said.stderr.contains("has no action \"gret\""),
        "{said:?}"
    );

    // A job waits for a node that meets its constraint, and is placed once the node has the metadata.
    let node = alloc.node_id.as_str();
    let constrained = JOB
        .replace("job \"web\"", "job \"racked\"")
        .replace(
            "group \"app\" {",
            "group \"app\" {\n    constraint {\n      attribute = \"${meta.rack}\"\n      value = \"r7\"\n    }",
        );
    let file = dev.write("racked.hcl", &constrained)?;
    kafila(&dev, &format!("job run -detach {}", file.display())).await?;
    eventually(TIMEOUT, || async {
        let evaluations = api.evaluations().await?;
        let mut of_job = evaluations.iter().filter(|eval| eval.job_id == "racked");
        ensure!(of_job.any(|eval| eval.status == "blocked"), "not blocked");
        Ok(())
    })
    .await?;
    kafila(&dev, &format!("node meta apply -node-id {node} rack=r7")).await?;
    eventually(TIMEOUT, || async {
        let allocations = api.allocations("racked").await?;
        ensure!(allocations.iter().any(|it| it.client_status == "running"));
        Ok(())
    })
    .await?;
    let read = kafila(&dev, &format!("node meta read -node-id {node}")).await?;
    ensure!(read.contains("Dynamic Meta\nrack = r7"), "{read}");
    let stats = kafila(&dev, &format!("node stats {node}")).await?;
    ensure!(
        stats.contains("Uptime") && stats.contains("Disks"),
        "{stats}"
    );
    let refreshed = kafila(&dev, &format!("node refresh {node}")).await?;
    ensure!(refreshed.contains("has n"), "{refreshed}");

    kafila(&dev, "job stop -detach web").await?;
    // The follower ends with its allocation.
    let ended = tokio::time::timeout(TIMEOUT, follower.wait()).await??;
    ensure!(ended.success(), "{ended:?}");
    Ok(())
}
