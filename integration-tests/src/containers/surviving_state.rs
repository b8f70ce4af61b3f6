//! State that has to survive what happens to the stack: a job with its tasks, a variable, and the index.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};

use super::placement::SETTLE_TIMEOUT;
use super::stack::{NODES, Stack};
use crate::api::{Api, eventually};
use crate::load::sleeper;

/// A job that runs, and a variable.
#[derive(Debug)]
pub struct Kept {
    job: String,
    count: usize,
    index: u64,
}

/// The tasks of a job: allocation → start time in nanoseconds of Unix time, and restarts.
pub type Tasks = BTreeMap<String, Vec<(u64, u32)>>;

impl Kept {
    /// Registers the job, waits until it runs, and writes the variable.
    ///
    /// # Errors
    /// The job does not run in time.
    pub async fn create(stack: &Stack, api: &Api, job: &str, count: usize) -> Result<Self> {
        let file = sleeper(job, u32::try_from(count)?);
        api.register_surely(&file, job, SETTLE_TIMEOUT).await?;
        eventually(SETTLE_TIMEOUT, || running(api, job, count)).await?;
        let put = ["var", "put", "-force", job, "answer=42"];
        stack.kafila(0, &put).await?.ok()?;
        let index = index(api, job).await?;
        Ok(Self {
            job: job.to_owned(),
            count,
            index,
        })
    }

    /// Returns the tasks of the job.
    ///
    /// # Errors
    /// Not all of them run.
    pub async fn tasks(&self, api: &Api) -> Result<Tasks> {
        running(api, &self.job, self.count).await
    }

    /// Remembers the present index of the store, which later ones have to exceed.
    ///
    /// # Errors
    /// No gateway answers.
    pub async fn note_index(&mut self, api: &Api) -> Result<()> {
        self.index = index(api, &self.job).await?;
        Ok(())
    }

    /// Waits until the job runs, and checks the variable, the index and the nodes. Returns the tasks.
    ///
    /// # Errors
    /// Something is missing, or the index has gone back.
    pub async fn check(&self, stack: &Stack, api: &Api) -> Result<Tasks> {
        let tasks = eventually(SETTLE_TIMEOUT, || self.tasks(api)).await?;
        let get = ["var", "get", "-item", "answer", &self.job];
        let said = eventually(SETTLE_TIMEOUT, || async {
            stack.kafila(0, &get).await?.ok()
        })
        .await?;
        ensure!(
            said.stdout.trim() == "42",
            "the variable is {:?}",
            said.stdout
        );
        eventually(SETTLE_TIMEOUT, || async {
            let nodes = api.nodes().await?;
            let ready = nodes.iter().filter(|node| node.status == "ready").count();
            ensure!(ready == NODES.len(), "{ready} nodes are ready");
            Ok(())
        })
        .await?;
        let now = index(api, &self.job).await?;
        ensure!(
            now >= self.index,
            "the index went back from {} to {now}",
            self.index
        );
        Ok(tasks)
    }

    /// Stops the job.
    ///
    /// # Errors
    /// No gateway answers.
    pub async fn stop(&self, api: &Api) -> Result<()> {
        api.stop_surely(&self.job, true, SETTLE_TIMEOUT).await
    }
}

/// Returns the index of the newest state that a gateway has.
async fn index(api: &Api, job: &str) -> Result<u64> {
    let answer = api.job(job).await?;
    Ok(answer.meta.context("an answer without its index")?.index)
}

/// Returns the running tasks of a job, if there are `count` allocations.
///
/// # Errors
/// There are more or fewer.
pub async fn running(api: &Api, job: &str, count: usize) -> Result<Tasks> {
    let allocations = api.allocations(job).await?;
    let running = allocations
        .into_iter()
        .filter(|alloc| alloc.desired_status == "run" && alloc.client_status == "running");
    let tasks: Tasks = running
        .map(|alloc| {
            let tasks = alloc.task_states.values();
            let facts = tasks.map(|task| (task.started_at_ns, task.restarts));
            (alloc.id, facts.collect())
        })
        .collect();
    ensure!(
        tasks.len() == count,
        "{} of {count} allocations of {job} run",
        tasks.len()
    );
    Ok(tasks)
}
