//! Loss of state: a snapshot restored into three new members of etcd by scripts/compose-restore, and the whole
//! stack taken down and brought up again with its volumes.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::command::docker;
use super::placement::{SETTLE_TIMEOUT, place};
use super::stack::{NODES, Stack};
use super::surviving_state::{Kept, Tasks, running};
use crate::api::{Api, eventually};
use crate::load::{SLEEPER, sleeper};

/// The jobs: one that runs all the time, one that is stopped after the snapshot, one that is registered after it.
const KEPT: (&str, usize) = ("kept", 3);
const STOPPED: (&str, usize) = ("stopped-after-the-snapshot", 2);
const LATER: (&str, usize) = ("later-than-the-snapshot", 2);

/// Saves a snapshot, changes jobs, destroys the volumes of etcd, and restores the snapshot. The state is that of the
/// snapshot, at higher indexes; tasks of the snapshot go on, and later ones end. Returns the seconds of the restore.
///
/// # Errors
/// Something of the snapshot is missing, a task was restarted, or something newer is left.
pub async fn restore_snapshot(stack: &Stack, api: &Api) -> Result<f64> {
    // Tasks of other jobs, which go on, too.
    let others = sleepers(stack).await?.len();
    let mut kept = Kept::create(stack, api, KEPT.0, KEPT.1).await?;
    start(api, STOPPED).await?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("kafila.db");
    let path = file.to_str().context("its name is text")?;
    let save = ["operator", "snapshot", "save", path];
    stack.kafila(0, &save).await?.ok()?;

    start(api, LATER).await?;
    api.stop_surely(STOPPED.0, false, SETTLE_TIMEOUT).await?;
    eventually(SETTLE_TIMEOUT, || running(api, STOPPED.0, 0)).await?;
    let processes = wait_for_sleepers(stack, others + KEPT.1 + LATER.1).await?;
    kept.note_index(api).await?;
    let tasks = kept.tasks(api).await?;

    stack.destroy_etcd().await?;
    let begun = tokio::time::Instant::now();
    stack.restore(Path::new(path)).await?;
    let seconds = begun.elapsed().as_secs_f64();

    let after = kept.check(stack, api).await?;
    ensure!(tasks == after, "tasks: {tasks:?}, then {after:?}");
    // What was stopped after the snapshot runs again; what was registered later is gone, and its tasks end.
    eventually(SETTLE_TIMEOUT, || running(api, STOPPED.0, STOPPED.1)).await?;
    let jobs = api.jobs().await?;
    ensure!(jobs.iter().all(|job| job.id != LATER.0), "{jobs:?}");
    let now = wait_for_sleepers(stack, others + KEPT.1 + STOPPED.1).await?;
    let (same, wanted) = (processes.intersection(&now).count(), others + KEPT.1);
    ensure!(same == wanted, "{same} processes of {wanted} go on");
    members_agree(stack).await?;
    place(api, "after-the-restore").await?;
    api.stop_surely(STOPPED.0, true, SETTLE_TIMEOUT).await?;
    kept.stop(api).await?;
    Ok(seconds)
}

/// Takes the whole stack down and brings it up again: everything that the volumes hold comes back. Tasks of the nodes
/// end with their containers and are started again. Returns the seconds from `up` to the running job.
///
/// # Errors
/// Something is missing.
pub async fn down_and_up(stack: &Stack, api: &Api) -> Result<f64> {
    let mut kept = Kept::create(stack, api, "before-down", 3).await?;
    kept.note_index(api).await?;
    let nodes = node_ids(api).await?;
    let before = kept.tasks(api).await?;
    let count = sleepers(stack).await?.len();
    stack.compose(&["down"]).await?;
    for service in ["etcd-1", NODES[0]] {
        let left = stack.containers(service).await?;
        ensure!(left.is_empty(), "{service} was not taken down: {left:?}");
    }
    let begun = tokio::time::Instant::now();
    stack.up().await?;
    // The state of before is seen until the nodes report that the tasks have ended.
    let after = eventually(SETTLE_TIMEOUT, || async {
        let now = kept.tasks(api).await?;
        let starts = |tasks: &Tasks| -> BTreeSet<_> { tasks.values().flatten().copied().collect() };
        ensure!(
            starts(&now).is_disjoint(&starts(&before)),
            "tasks of before: {now:?}"
        );
        Ok(now)
    })
    .await?;
    let seconds = begun.elapsed().as_secs_f64();
    ensure!(after == kept.check(stack, api).await?, "tasks change");
    ensure!(
        nodes == node_ids(api).await?,
        "the nodes are others than before"
    );
    wait_for_sleepers(stack, count).await?;
    members_agree(stack).await?;
    place(api, "after-up").await?;
    kept.stop(api).await?;
    Ok(seconds)
}

async fn start(api: &Api, (name, count): (&str, usize)) -> Result<()> {
    let job = sleeper(name, u32::try_from(count)?);
    api.register_surely(&job, name, SETTLE_TIMEOUT).await?;
    eventually(SETTLE_TIMEOUT, || running(api, name, count))
        .await
        .map(drop)
}

async fn node_ids(api: &Api) -> Result<BTreeSet<String>> {
    Ok(api.nodes().await?.into_iter().map(|node| node.id).collect())
}

/// Returns the processes of tasks in the nodes' containers, as numbers of this machine.
async fn sleepers(stack: &Stack) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for node in NODES {
        for container in stack.containers(node).await? {
            let list = docker(&["top", &container, "-eo", "pid,args"]).await?;
            let tasks = list.lines().filter(|line| line.ends_with(SLEEPER));
            let pids = tasks.filter_map(|line| line.split_whitespace().next());
            found.extend(pids.map(str::to_owned));
        }
    }
    Ok(found)
}

async fn wait_for_sleepers(stack: &Stack, count: usize) -> Result<BTreeSet<String>> {
    eventually(SETTLE_TIMEOUT, || async {
        let found = sleepers(stack).await?;
        ensure!(
            found.len() == count,
            "{} tasks run, not {count}",
            found.len()
        );
        Ok(found)
    })
    .await
}

/// Every member of etcd answers, and all of them are in one cluster of three.
async fn members_agree(stack: &Stack) -> Result<()> {
    for member in ["etcd-1", "etcd-2", "etcd-3"] {
        let containers = stack.containers(member).await?;
        let container = containers.first().with_context(|| format!("no {member}"))?;
        let list = docker(&["exec", container, "etcdctl", "member", "list"]).await?;
        let started = list.matches("started").count();
        ensure!(started == 3, "{member} knows {started} members: {list}");
        eventually(Duration::from_secs(30), || async {
            docker(&["exec", container, "etcdctl", "endpoint", "health"])
                .await
                .map(drop)
        })
        .await?;
    }
    Ok(())
}
