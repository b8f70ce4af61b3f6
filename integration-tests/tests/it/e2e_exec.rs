//! `kafila alloc exec` against `kafila dev`: from the command to a process beside the task.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use integration_tests::api::eventually;
use integration_tests::binary;
use integration_tests::load::shell_job;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::e2e_plan::Dev;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Starts `kafila alloc exec`.
fn exec(dev: &Dev, words: &[&str]) -> Result<Child> {
    let mut command = Command::new(binary::kafila());
    command
        .args(["alloc", "exec"])
        .args(words)
        .env("KAFILA_ADDR", &dev.address)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    Ok(command.spawn()?)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_runs_beside_a_task_and_is_gone_with_its_caller() -> Result<()> {
    let dev = Dev::start().await?;
    let api = dev.api()?;
    let job = shell_job("web", "echo up; exec sleep 600");
    api.register_surely(&job, "once", TIMEOUT).await?;
    let alloc = eventually(TIMEOUT, || async {
        let allocations = api.allocations("web").await?;
        let running = allocations
            .into_iter()
            .find(|it| it.client_status == "running");
        running.context("not running")
    })
    .await?;
    let id = &alloc.id[..8];

    let mut child = exec(
        &dev,
        &[id, "sh", "-c", "cat; echo \"$NOMAD_TASK_NAME\" >&2; exit 7"],
    )?;
    let mut stdin = child.stdin.take().context("no pipe")?;
    stdin.write_all(b"typed").await?;
    drop(stdin);
    let output = tokio::time::timeout(TIMEOUT, child.wait_with_output()).await??;
    ensure!(output.status.code() == Some(7), "{output:?}");
    ensure!(output.stdout == b"typed", "{output:?}");
    ensure!(output.stderr == b"task\n", "{output:?}");

    let bytes = 4 << 20;
    let script = format!("head -c {bytes} /dev/zero");
    let child = exec(&dev, &["-i=false", "-job", "web", "sh", "-c", &script])?;
    let output = tokio::time::timeout(TIMEOUT, child.wait_with_output()).await??;
    ensure!(output.status.success(), "{output:?}");
    ensure!(
        output.stdout.len() == bytes,
        "{} bytes",
        output.stdout.len()
    );

    // A command without an end, whose caller is killed.
    let mut child = exec(&dev, &[id, "sh", "-c", "echo $$; sleep 600"])?;
    let stdout = child.stdout.take().context("no pipe")?;
    let line = BufReader::new(stdout).lines().next_line().await?;
    let process = format!("/proc/{}", line.context("no pid")?);
    ensure!(Path::new(&process).exists(), "{process} does not run");
    child.kill().await?;
    eventually(TIMEOUT, || async {
        ensure!(!Path::new(&process).exists(), "{process} still runs");
        Ok(())
    })
    .await?;

    let said = binary::run(&dev.address, &["alloc", "exec", "-task", "db", id, "sh"]).await?;
    ensure!(
        said.code == 1 && said.stderr.contains("Its tasks are: task."),
        "{said:?}"
    );
    let said = binary::run(&dev.address, &["job", "stop", "web"]).await?;
    ensure!(said.code == 0, "{said:?}");
    eventually(TIMEOUT, || async {
        let said = binary::run(&dev.address, &["alloc", "exec", id, "true"]).await?;
        let is_refused = said.stderr.contains("has ended") || said.stderr.contains("not running");
        ensure!(said.code == 1 && is_refused, "{said:?}");
        Ok(())
    })
    .await
}
