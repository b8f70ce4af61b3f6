//! `kafila dev`: the whole suite in one process, with nothing else installed.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use integration_tests::api::{Api, eventually};
use integration_tests::load::shell_job;
use integration_tests::process::{self, Process};
use integration_tests::{binary, suite};
use nix::sys::signal::Signal;
use tempfile::TempDir;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Says its process id, then grows its log.
const COUNTER: &str = "echo pid $$; while true; do echo on; sleep 0.1; done";

/// A dev suite's state and address; its leftover tasks are swept when this is dropped.
struct Dev {
    directory: TempDir,
    listen: String,
}

impl Dev {
    fn new() -> Result<Self> {
        Ok(Self {
            directory: tempfile::Builder::new().prefix("kafila-dev-").tempdir()?,
            listen: format!("{}:4646", suite::own_address()),
        })
    }

    fn start(&self, arguments: &[&str]) -> Result<Process> {
        let mut command = Command::new(binary::kafila());
        command
            .args(["dev", "-listen", &self.listen])
            .args(arguments)
            // Parent of the temporary directory of runs without `--data-dir`.
            .env("TMPDIR", self.directory.path());
        Process::start("dev", command, &self.log())
    }

    fn data_dir(&self) -> String {
        let path = self.directory.path().join("data");
        path.to_string_lossy().into_owned()
    }

    fn log(&self) -> std::path::PathBuf {
        self.directory.path().join("dev.log")
    }

    fn said(&self) -> String {
        std::fs::read_to_string(self.log()).unwrap_or_default()
    }

    async fn says(&self, text: &str) -> Result<()> {
        eventually(TIMEOUT, || async {
            let said = self.said();
            ensure!(said.contains(text), "not said: {text:?} in\n{said}");
            Ok(())
        })
        .await
    }

    fn api(&self) -> Result<Api> {
        Api::new(&format!("http://{}", self.listen))
    }

    fn left(&self) -> Vec<(i32, String)> {
        process::below(self.directory.path())
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        process::kill_below(self.directory.path());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_readmes_first_command_shows_a_job_become_healthy_and_ctrl_c_leaves_nothing()
-> Result<()> {
    let dev = Dev::new()?;
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/web.hcl");
    let process = dev.start(&["-job", &example.to_string_lossy()])?;
    dev.says("Deployment completed successfully").await?;
    ensure!(dev.left().len() > 1, "no task runs");
    let code = process.end_with(Signal::SIGINT, TIMEOUT).await?;
    ensure!(code == 0, "ended with {code}:\n{}", dev.said());
    ensure!(dev.said().contains("tasks are stopped"), "{}", dev.said());
    ensure!(dev.left().is_empty(), "left behind: {:?}", dev.left());
    Ok(())
}

/// Does not end when it is asked to.
const STUBBORN: &str = "trap '' INT TERM; while true; do sleep 0.1; done";

/// Starts a suite with a task that is waited for at the end, and asks it to end.
async fn ending(dev: &Dev, arguments: &[&str]) -> Result<Process> {
    let process = dev.start(arguments)?;
    dev.says("==> Ready").await?;
    let api = dev.api()?;
    let mut job = shell_job("stubborn", STUBBORN);
    for task in job
        .task_groups
        .iter_mut()
        .flat_map(|group| &mut group.tasks)
    {
        task.kill_timeout = Some(proto::duration_to_wire(TIMEOUT));
    }
    api.register_surely(&job, "once", TIMEOUT).await?;
    eventually(TIMEOUT, || async {
        let allocations = api.allocations("stubborn").await?;
        let runs = allocations.iter().any(|it| it.client_status == "running");
        ensure!(runs, "{allocations:?}");
        Ok(())
    })
    .await?;
    process.signal(Signal::SIGINT)?;
    Ok(process)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_ctrl_c_names_leftovers_and_their_removal() -> Result<()> {
    let dev = Dev::new()?;
    let process = ending(&dev, &[]).await?;
    dev.says("Waiting for tasks of stubborn.").await?;
    let code = process.end_with(Signal::SIGINT, TIMEOUT).await?;
    ensure!(code == 130, "ended with {code}:\n{}", dev.said());
    ensure!(!dev.left().is_empty(), "nothing was left");

    let said = dev.said();
    let (_, removal) = said
        .split_once("To stop and remove them: ")
        .with_context(|| format!("not said:\n{said}"))?;
    let typed = removal.lines().next().unwrap_or_default();
    let status = Command::new("sh").args(["-c", typed]).status()?;
    ensure!(status.success(), "{typed}: {status}");
    eventually(TIMEOUT, || async {
        ensure!(dev.left().is_empty(), "left: {:?}", dev.left());
        Ok(())
    })
    .await?;
    let entries = std::fs::read_dir(dev.directory.path())?;
    let mut names = entries.flatten().map(|entry| entry.file_name());
    ensure!(!names.any(|name| name != "dev.log"), "files are left");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn remaining_tasks_are_reported_with_the_command_that_stops_them() -> Result<()> {
    let dev = Dev::new()?;
    let data_dir = dev.data_dir();
    let process = ending(&dev, &["-data-dir", &data_dir]).await?;
    let code = process.end_with(Signal::SIGINT, TIMEOUT).await?;
    ensure!(
        code == 0 || code == 130,
        "ended with {code}:\n{}",
        dev.said()
    );
    dev.says(&format!(
        "To stop them: kafila dev -data-dir '{data_dir}', then kafila job stop"
    ))
    .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_is_not_there_is_named_by_the_command_that_ran_the_job() -> Result<()> {
    let dev = Dev::new()?;
    let file = dev.directory.path().join("missing.hcl");
    std::fs::write(&file, MISSING)?;
    let process = dev.start(&["-job", &file.to_string_lossy()])?;
    dev.says("is unhealthy: task \"task\": Driver Failure: ")
        .await?;
    dev.says("/no/such/command").await?;
    let code = process.end_with(Signal::SIGINT, TIMEOUT).await?;
    ensure!(code == 0, "ended with {code}:\n{}", dev.said());
    Ok(())
}

const MISSING: &str = r#"
job "missing" {
  group "group" {
    restart {
      attempts = 0
      mode     = "fail"
    }
    reschedule {
      attempts  = 0
      unlimited = false
    }
    update {
      min_healthy_time  = "0s"
      healthy_deadline  = "10s"
      progress_deadline = "20s"
    }
    task "task" {
      driver = "raw_exec"
      config {
        command = "/no/such/command"
      }
    }
  }
}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_data_directory_keeps_jobs_and_their_processes_over_every_kind_of_end() -> Result<()> {
    let dev = Dev::new()?;
    let data_dir = dev.data_dir();
    let arguments = ["-data-dir", data_dir.as_str()];
    let process = dev.start(&arguments)?;
    dev.says("==> Ready").await?;
    let api = dev.api()?;
    api.register_surely(&shell_job("counter", COUNTER), "once", TIMEOUT)
        .await?;
    let (alloc_id, pid) = eventually(TIMEOUT, || running(&api)).await?;
    let node_id = api.nodes().await?.first().context("no node")?.id.clone();

    // An orderly end, then a power cut.
    let code = process.end_with(Signal::SIGINT, TIMEOUT).await?;
    ensure!(code == 0, "ended with {code}:\n{}", dev.said());
    ensure!(!dev.said().contains("ERROR"), "{}", dev.said());
    for round in 0..2 {
        ensure!(
            Path::new(&format!("/proc/{pid}")).exists(),
            "round {round}: the task ended with the suite"
        );
        let process = dev.start(&arguments)?;
        let api = dev.api()?;
        eventually(TIMEOUT, || async {
            let (now, same_pid) = running(&api).await?;
            ensure!((now, same_pid) == (alloc_id.clone(), pid), "another one");
            let nodes = api.nodes().await?;
            ensure!(nodes.len() == 1 && nodes[0].id == node_id, "{nodes:?}");
            ensure!(nodes[0].status == "ready", "{}", nodes[0].status);
            Ok(())
        })
        .await?;
        // A job that is registered now must exist after the kill.
        let name = format!("made-{round}");
        api.register_surely(&shell_job(&name, "sleep 1000"), &name, TIMEOUT)
            .await?;
        process.kill();
    }
    let process = dev.start(&arguments)?;
    let api = dev.api()?;
    for name in ["counter", "made-0", "made-1"] {
        eventually(TIMEOUT, || api.job(name)).await?;
        api.stop_surely(name, true, TIMEOUT).await?;
    }
    eventually(TIMEOUT, || async {
        let own = process.pid().cast_signed();
        let left: Vec<_> = dev
            .left()
            .into_iter()
            .filter(|(pid, _)| *pid != own)
            .collect();
        ensure!(left.is_empty(), "still there: {left:?}");
        Ok(())
    })
    .await?;
    let code = process.end_with(Signal::SIGTERM, TIMEOUT).await?;
    ensure!(code == 0, "ended with {code}:\n{}", dev.said());
    Ok(())
}

/// Returns the running allocation of the counter and its process.
async fn running(api: &Api) -> Result<(String, i32)> {
    let allocations = api.allocations("counter").await?;
    ensure!(allocations.len() == 1, "{} allocations", allocations.len());
    let alloc = &allocations[0];
    ensure!(
        alloc.client_status == "running",
        "it is {}",
        alloc.client_status
    );
    let log = api.logs(&alloc.id, "task").await?;
    let mut pids = log.lines().filter_map(|line| line.strip_prefix("pid "));
    let pid = pids.next().context("no line yet")?.parse()?;
    ensure!(pids.next().is_none(), "started twice");
    Ok((alloc.id.clone(), pid))
}

/// Fails the first time, wherever that is; then runs.
const SECOND_TRY: &str = r#"
job "second-try" {
  group "g" {
    reschedule {
      delay          = "5s"
      delay_function = "constant"
      unlimited      = true
    }
    update {
      min_healthy_time = "1s"
    }
    task "t" {
      driver = "raw_exec"
      restart {
        attempts = 0
        mode     = "fail"
      }
      config {
        command = "/bin/sh"
        args    = ["-c", "if [ -e MARK ]; then exec sleep 1000; fi; touch MARK; exit 1"]
      }
    }
  }
}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_during_a_rollout_is_rescheduled_and_a_second_run_waits_for_it() -> Result<()> {
    let dev = Dev::new()?;
    let process = dev.start(&[])?;
    dev.says("==> Ready").await?;
    let mark = dev.directory.path().join("mark");
    let file = dev.directory.path().join("second-try.hcl");
    let text = SECOND_TRY.replace("MARK", &mark.to_string_lossy());
    std::fs::write(&file, text)?;
    let address = format!("http://{}", dev.listen);
    let path = file.to_string_lossy().into_owned();
    binary::run(&address, &["job", "run", "-detach", &path])
        .await?
        .ok()?;
    // As after a Ctrl-C: the same command waits for the deployment that is under way.
    let said = binary::run(&address, &["job", "run", &path]).await?.ok()?;
    ensure!(
        said.stdout.contains("Deployment completed successfully"),
        "{}\n{}",
        said.stdout,
        said.stderr
    );
    ensure!(mark.exists(), "it has not failed, so nothing was tried");
    let code = process.end_with(Signal::SIGINT, TIMEOUT).await?;
    ensure!(code == 0, "ended with {code}:\n{}", dev.said());
    ensure!(!dev.said().contains("ERROR"), "{}", dev.said());
    ensure!(dev.left().is_empty(), "left behind: {:?}", dev.left());
    Ok(())
}
