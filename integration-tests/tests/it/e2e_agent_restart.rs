//! Restart of a killed agent: its tasks go on undisturbed.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use integration_tests::api::{Api, eventually};
use integration_tests::load::shell_job;
use integration_tests::suite::{Options, Suite};

const TIMEOUT: Duration = Duration::from_secs(60);

/// Prints its process id once, then a growing number ten times a second.
const COUNTER: &str = "echo pid $$; n=0; while true; do n=$((n+1)); echo line $n; sleep 0.1; done";

#[tokio::test(flavor = "multi_thread")]
async fn tasks_keep_their_process_and_their_log_across_an_agents_death() -> Result<()> {
    if !test_kit::etcd::available() {
        return Ok(());
    }
    let mut suite = Suite::start(Options::default()).await?;
    let result = play(&mut suite).await;
    result.with_context(|| suite.log_tails())?;
    suite.stop().await
}

async fn play(suite: &mut Suite) -> Result<()> {
    let api = suite.api()?;
    api.register_surely(&shell_job("counter", COUNTER), "counter-1", TIMEOUT)
        .await?;
    let alloc_id = running(&api, "counter").await?;
    let (pid, before) = eventually(TIMEOUT, || read(&api, &alloc_id)).await?;

    suite.kill("client-node-0");
    ensure!(is_alive(pid), "the task died with the agent");
    suite.start_process("client-node-0")?;

    eventually(TIMEOUT, || async {
        let (now_pid, lines) = read(&api, &alloc_id).await?;
        ensure!(now_pid == pid, "process {pid} became {now_pid}");
        ensure!(lines > before + 5, "the log is still at line {lines}");
        Ok(())
    })
    .await?;
    ensure!(is_alive(pid), "the task's process is gone");
    let allocation = api.allocation(&alloc_id).await?;
    ensure!(
        allocation.client_status == "running",
        "it is {}",
        allocation.client_status
    );
    let state = allocation
        .task_states
        .get("task")
        .context("no state of the task")?;
    ensure!(state.restarts == 0, "the task was restarted");

    api.stop_surely("counter", false, TIMEOUT).await?;
    eventually(TIMEOUT, || async {
        ensure!(!is_alive(pid), "process {pid} outlived its job");
        Ok(())
    })
    .await
}

/// Returns the id of the job's one allocation once it runs.
async fn running(api: &Api, job_id: &str) -> Result<String> {
    eventually(TIMEOUT, || async {
        let allocations = api.allocations(job_id).await?;
        let running = allocations
            .iter()
            .find(|alloc| alloc.client_status == "running");
        Ok(running.context("nothing runs yet")?.id.clone())
    })
    .await
}

/// Returns the process id that the log begins with, and the last line's number.
async fn read(api: &Api, alloc_id: &str) -> Result<(i32, u64)> {
    let log = api.logs(alloc_id, "task").await?;
    let pids: Vec<&str> = log
        .lines()
        .filter_map(|line| line.strip_prefix("pid "))
        .collect();
    ensure!(pids.len() == 1, "the task started {} times", pids.len());
    let numbers: Vec<u64> = log
        .lines()
        .filter_map(|line| line.strip_prefix("line "))
        .filter_map(|number| number.parse().ok())
        .collect();
    let gap = numbers.windows(2).find(|pair| pair[0] + 1 != pair[1]);
    ensure!(gap.is_none(), "the log has a gap: {gap:?}");
    Ok((pids[0].parse()?, *numbers.last().context("no line yet")?))
}

fn is_alive(pid: i32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}
