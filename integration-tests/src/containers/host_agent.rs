//! A node agent on this machine, outside of the containers, that is replaced by another build while its
//! tasks run; without one, by a copy of the same build.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::command::run;
use super::placement::SETTLE_TIMEOUT;
use super::stack::Stack;
use crate::api::{Api, eventually};
use crate::load::sleeper;
use crate::process::{self, Process};

/// The pool of the agent alone: its job has no other node, and it gets no other job.
const POOL: &str = "on-this-machine";
const NAME: &str = "host-agent";
const COUNT: u32 = 2;

/// Timeout of an agent that ends and leaves its tasks running.
const END_TIMEOUT: Duration = Duration::from_secs(30);

/// Starts an agent from a copy of `first`, gives it tasks, and replaces it by a copy of `second`, or else of `first`.
/// The old copy is deleted, as a package manager does it. Removes all of it, also after an error. Returns the versions
/// of both agents.
///
/// # Errors
/// A task restarted, ended, or outlived its job; the agent did not come back; or `second` has the version of `first`.
pub async fn upgrade(
    stack: &Stack,
    api: &Api,
    first: &Path,
    second: Option<&Path>,
) -> Result<[String; 2]> {
    let directory = tempfile::Builder::new().prefix("kafila-agent-").tempdir()?;
    let result = replace_below_tasks(stack, api, first, second, directory.path()).await;
    process::kill_below(directory.path());
    result
}

async fn replace_below_tasks(
    stack: &Stack,
    api: &Api,
    first: &Path,
    second: Option<&Path>,
    directory: &Path,
) -> Result<[String; 2]> {
    let id = stack.secrets().issue_for_a_node(directory)?;
    let old = copy(first, &directory.join("old"))?;
    let agent = start(stack, &old, directory)?;
    wait_until_ready(api, &id)
        .await
        .with_context(|| agent.log_tail())?;

    let mut job = sleeper(NAME, COUNT);
    job.node_pool = Some(POOL.to_owned());
    api.register_surely(&job, NAME, SETTLE_TIMEOUT).await?;
    let before = eventually(SETTLE_TIMEOUT, || starts(api)).await;
    let before = before.with_context(|| agent.log_tail())?;
    let tasks = task_processes(directory);
    ensure!(tasks.len() == COUNT as usize, "processes: {tasks:?}");

    let version = running_version(&agent).await?;
    let code = agent.terminate(END_TIMEOUT).await?;
    ensure!(code == 0, "the old agent ended with {code}");
    let new = copy(second.unwrap_or(first), &directory.join("new"))?;
    fs::remove_file(&old)?;
    let agent = start(stack, &new, directory)?;
    let log = directory.join("agent.log");
    eventually(SETTLE_TIMEOUT, || async {
        let text = fs::read_to_string(&log)?;
        let registrations = text.matches("node registered").count();
        ensure!(registrations == 2, "{registrations} registrations");
        Ok(())
    })
    .await
    .with_context(|| agent.log_tail())?;
    let new_version = running_version(&agent).await?;
    ensure!(
        second.is_none() || new_version != version,
        "the agent is still {new_version}"
    );
    let after = starts(api).await?;
    ensure!(before == after, "tasks: {before:?}, then {after:?}");
    ensure!(
        tasks == task_processes(directory),
        "the processes {tasks:?} became {:?}",
        task_processes(directory)
    );

    // The new agent holds the tasks of the old one: it ends them.
    api.stop_surely(NAME, true, SETTLE_TIMEOUT).await?;
    eventually(SETTLE_TIMEOUT, || async {
        let left = task_processes(directory);
        ensure!(left.is_empty(), "still running: {left:?}");
        Ok(())
    })
    .await?;
    agent.terminate(END_TIMEOUT).await?;
    Ok([version, new_version])
}

/// Returns what the program of a running agent prints as its version, whatever the file is by now.
async fn running_version(agent: &Process) -> Result<String> {
    let program = format!("/proc/{}/exe", agent.pid());
    run(&program, &["version"], &[]).await
}

fn copy(binary: &Path, to: &Path) -> Result<PathBuf> {
    fs::create_dir(to)?;
    let to = to.join("kafila");
    fs::copy(binary, &to).with_context(|| format!("cannot copy {}", binary.display()))?;
    Ok(to)
}

fn start(stack: &Stack, binary: &Path, directory: &Path) -> Result<Process> {
    let path = |name: &str| directory.join(name).display().to_string();
    let settings = [
        format!("gateways={}", stack.addresses().join(",")),
        "listen.grpc=127.0.0.1:0".to_owned(),
        "listen.metrics=127.0.0.1:0".to_owned(),
        format!("data_dir={}", path("data")),
        format!("node_pool={POOL}"),
        format!("name={NAME}"),
        "drivers.docker.enabled=false".to_owned(),
        format!("tls.ca_file={}", stack.secrets().authority().display()),
        format!("tls.cert_file={}", path("cert.pem")),
        format!("tls.key_file={}", path("key.pem")),
    ];
    let mut command = Command::new(binary);
    command.arg("client-node").current_dir(directory);
    for setting in &settings {
        command.args(["-set", setting]);
    }
    Process::start(NAME, command, &directory.join("agent.log"))
}

async fn wait_until_ready(api: &Api, id: &str) -> Result<()> {
    eventually(SETTLE_TIMEOUT, || async {
        let nodes = api.nodes().await?;
        let node = nodes.iter().find(|node| node.id == id);
        let status = node.map(|node| node.status.as_str());
        ensure!(status == Some("ready"), "{NAME} is {status:?}");
        Ok(())
    })
    .await
}

/// Returns the start times, in nanoseconds of Unix time, and numbers of restarts of the running tasks.
async fn starts(api: &Api) -> Result<Vec<(u64, u32)>> {
    let allocations = api.allocations(NAME).await?;
    let running = allocations
        .iter()
        .filter(|it| it.client_status == "running");
    let tasks = running.flat_map(|it| it.task_states.values());
    let mut starts: Vec<_> = tasks
        .map(|task| (task.started_at_ns, task.restarts))
        .collect();
    starts.sort_unstable();
    ensure!(starts.len() == COUNT as usize, "{} tasks run", starts.len());
    Ok(starts)
}

/// Returns the ids of the tasks' processes.
fn task_processes(directory: &Path) -> Vec<i32> {
    let below = process::below(directory);
    let tasks = below
        .into_iter()
        .filter(|(_, command)| command.starts_with("/bin/sleep"));
    let mut ids: Vec<_> = tasks.map(|(id, _)| id).collect();
    ids.sort_unstable();
    ids
}
