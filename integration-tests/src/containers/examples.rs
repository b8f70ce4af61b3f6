//! Every file of `examples` in the stack's containers: each job runs until its effect shows, which is an answer
//! on a port, a line of output or a file.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures::future::try_join_all;
use proto::v1::Allocation;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::command::{docker, repository};
use super::placement::SETTLE_TIMEOUT;
use super::stack::{NODES, Stack};
use crate::api::{Api, eventually};
use crate::binary::CommandOutput;

/// Timeout until an effect shows, once the job runs.
const EFFECT_TIMEOUT: Duration = Duration::from_secs(60);

/// A job that needs `job run` alone.
struct Example {
    job: &'static str,
    /// Task, number of allocations with it, and a line that each of them prints.
    says: &'static [(&'static str, usize, &'static str)],
}

const EXAMPLES: [Example; 8] = [
    Example {
        job: "batch",
        says: &[("count", 1, "done")],
    },
    Example {
        job: "constraint",
        says: &[("uname", 1, "Linux")],
    },
    Example {
        job: "mock",
        says: &[("pretend", 3, "pretending to work")],
    },
    Example {
        job: "restart",
        says: &[(
            "third-time-lucky",
            1,
            "run 1 fails\nrun 2 fails\nrun 3 succeeds",
        )],
    },
    Example {
        job: "system",
        says: &[("watch", NODES.len(), "load: ")],
    },
    Example {
        job: "template",
        says: &[
            ("serve", 1, "Hello from SERVE"),
            ("serve", 1, "backend b weight 2"),
        ],
    },
    Example {
        job: "two-groups",
        says: &[
            ("produce", 2, "1"),
            ("prepare", 1, "prepared"),
            ("consume", 1, "ready"),
        ],
    },
    Example {
        job: "variables",
        says: &[("greet", 2, "Hello, World!")],
    },
];

/// Runs the job of an example by the command on this machine and waits until it is healthy.
///
/// # Errors
/// The command fails or takes too long.
pub async fn run_job(stack: &Stack, name: &str) -> Result<()> {
    let file = path(&format!("{name}.hcl"))?;
    say(stack, &["job", "run", &file]).await.map(drop)
}

/// Runs every example and removes its jobs. `web` runs already.
///
/// # Errors
/// The first effect that does not show.
pub async fn run_all(stack: &Stack, api: &Api) -> Result<()> {
    let plain = try_join_all(EXAMPLES.iter().map(|example| plain(stack, api, example)));
    tokio::try_join!(
        plain,
        web(stack, api),
        canary(stack, api),
        dispatched(stack, api),
        launched(stack, api),
        volume(stack, api),
        variables(stack),
        namespace(stack),
    )?;
    Ok(())
}

async fn plain(stack: &Stack, api: &Api, example: &Example) -> Result<()> {
    run_job(stack, example.job).await?;
    for (task, count, line) in example.says {
        prints(stack, api, example.job, task, *count, line).await?;
    }
    remove(stack, example.job).await
}

/// The server answers at the address that it prints.
async fn web(stack: &Stack, api: &Api) -> Result<()> {
    let printed = prints(stack, api, "web", "http", 1, "listening on ").await?;
    let address = printed
        .lines()
        .find_map(|line| line.strip_prefix("listening on "));
    let address = address.context("no address")?;
    eventually(EFFECT_TIMEOUT, || async {
        let page = get(address).await?;
        let expected = "Hello from allocation 0 of job web";
        ensure!(page.contains(expected), "{address} answers {page:?}");
        Ok(())
    })
    .await?;
    remove(stack, "web").await
}

async fn get(address: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream
        .write_all(b"GET / HTTP/1.0\r\nHost: web\r\n\r\n")
        .await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// The second release runs as a canary, and everywhere once it is promoted.
async fn canary(stack: &Stack, api: &Api) -> Result<()> {
    run_job(stack, "canary").await?;
    prints(stack, api, "canary", "app", 3, "release 1").await?;
    let file = path("canary.hcl")?;
    let second = ["job", "run", "-detach", "-var", "release=2", &file];
    say(stack, &second).await?;
    let canaries = prints(stack, api, "canary", "app", 1, "release 2").await;
    canaries.context("no canary")?;
    prints(stack, api, "canary", "app", 3, "release 1").await?;
    eventually(EFFECT_TIMEOUT, || async {
        let promote = ["job", "promote", "-detach", "canary"];
        say(stack, &promote).await
    })
    .await?;
    prints(stack, api, "canary", "app", 3, "release 2").await?;
    remove(stack, "canary").await
}

/// The child of a dispatch reads its payload.
async fn dispatched(stack: &Stack, api: &Api) -> Result<()> {
    run_job(stack, "dispatch").await?;
    let payload = tempfile::NamedTempFile::new()?;
    std::fs::write(payload.path(), "good morning")?;
    let payload = payload.path().to_str().context("a path is no text")?;
    let meta = ["-meta", "language=en"];
    let dispatch = [
        &["job", "dispatch", "-detach"],
        &meta[..],
        &["dispatch", payload],
    ]
    .concat();
    say(stack, &dispatch).await?;
    let child = child(api, "dispatch").await?;
    prints(stack, api, &child, "read", 1, "in en: good morning").await?;
    remove(stack, "dispatch").await
}

/// A periodic job is launched by hand; its next time may be a quarter of an hour away.
async fn launched(stack: &Stack, api: &Api) -> Result<()> {
    run_job(stack, "periodic").await?;
    say(stack, &["job", "periodic", "force", "-detach", "periodic"]).await?;
    let child = child(api, "periodic").await?;
    prints(stack, api, &child, "tidy", 1, "launched by periodic at ").await?;
    remove(stack, "periodic").await
}

/// Returns the id of a job's first child.
async fn child(api: &Api, parent: &str) -> Result<String> {
    eventually(EFFECT_TIMEOUT, || async {
        let jobs = api.jobs().await?;
        let child = jobs.into_iter().find(|job| job.parent_id == parent);
        Ok(child.with_context(|| format!("{parent} has no child"))?.id)
    })
    .await
}

/// A job waits for its volume, and writes to the directory that is registered for it.
async fn volume(stack: &Stack, api: &Api) -> Result<()> {
    let nodes = api.nodes().await?;
    let node = nodes.iter().find(|node| node.name == NODES[0]);
    let id = &node.with_context(|| format!("no {}", NODES[0]))?.id;
    let containers = stack.containers(NODES[0]).await?;
    let container = containers.first().context("the node does not run")?;
    docker(&["exec", container, "mkdir", "/srv/data"]).await?;

    let job = path("volumes/db.hcl")?;
    say(stack, &["job", "run", "-detach", &job]).await?;
    let text = std::fs::read_to_string(path("volumes/volume.hcl")?)?;
    ensure!(text.contains("8a3f2c1e"), "the file names no node");
    let file = tempfile::NamedTempFile::with_suffix(".hcl")?;
    std::fs::write(file.path(), text.replace("8a3f2c1e", id))?;
    let file = file.path().to_str().context("a path is no text")?;
    say(stack, &["volume", "register", file]).await?;
    prints(stack, api, "db", "write", 1, "writing to ").await?;
    let log = docker(&["exec", container, "cat", "/srv/data/log"]).await?;
    ensure!(log == "started", "the job wrote {log:?}");
    remove(stack, "db").await?;
    eventually(EFFECT_TIMEOUT, || async {
        // The claim of the job ends with its task.
        say(stack, &["volume", "delete", "data"]).await
    })
    .await
    .map(drop)
}

/// Both notations of a variable store the same items.
async fn variables(stack: &Stack) -> Result<()> {
    for file in ["variables/spec.nv.hcl", "variables/spec.nv.json"] {
        let file = format!("@{}", path(file)?);
        say(stack, &["var", "put", "-out=none", &file]).await?;
        let item = ["var", "get", "-item=user", "nomad/jobs/web"];
        let user = say(stack, &item).await?.stdout;
        ensure!(user.trim() == "web", "{file} stores {user:?}");
        say(stack, &["var", "purge", "nomad/jobs/web"]).await?;
    }
    Ok(())
}

async fn namespace(stack: &Stack) -> Result<()> {
    let file = path("namespaces/dev.hcl")?;
    say(stack, &["namespace", "apply", &file]).await?;
    let shown = say(stack, &["namespace", "status", "dev"]).await?.stdout;
    for part in ["For trying out", "sre", "mock_driver"] {
        ensure!(shown.contains(part), "no {part} in {shown}");
    }
    say(stack, &["namespace", "delete", "dev"]).await.map(drop)
}

/// Waits until the task of `count` current allocations of the job has printed `line`, read with the command, and
/// returns the output of the last of them.
async fn prints(
    stack: &Stack,
    api: &Api,
    job: &str,
    task: &str,
    count: usize,
    line: &str,
) -> Result<String> {
    let found = eventually(EFFECT_TIMEOUT, || async {
        let allocations = api.allocations(job).await?;
        let current = allocations
            .iter()
            .filter(|alloc| alloc.desired_status == "run" && has(alloc, task));
        let mut found = Vec::new();
        let mut outputs = Vec::new();
        for alloc in current {
            // A gateway fetches the output from the node, under the name that the node advertises.
            let output = say(stack, &["alloc", "logs", &alloc.id, task]).await?;
            outputs.push(output.stdout);
        }
        found.extend(outputs.iter().filter(|output| output.contains(line)));
        ensure!(
            found.len() == count,
            "{} of {count} allocations say {line:?}: {outputs:?}",
            found.len()
        );
        Ok(found.pop().cloned().unwrap_or_default())
    });
    found.await.with_context(|| format!("{task} of {job}"))
}

fn has(alloc: &Allocation, task: &str) -> bool {
    let state = alloc.task_states.get(task);
    state.is_some_and(|state| state.started_at_ns > 0)
}

async fn remove(stack: &Stack, job: &str) -> Result<()> {
    say(stack, &["job", "stop", "-purge", job]).await.map(drop)
}

/// Runs the command on this machine. It has to succeed.
async fn say(stack: &Stack, words: &[&str]) -> Result<CommandOutput> {
    let said = tokio::time::timeout(SETTLE_TIMEOUT, stack.kafila(1, words)).await;
    let said = said.with_context(|| format!("{words:?} takes too long"))?;
    said?.ok().with_context(|| format!("{words:?}"))
}

/// Returns the path of a file of `examples`.
fn path(file: &str) -> Result<String> {
    let path = directory().join(file);
    Ok(path.to_str().context("a path is no text")?.to_owned())
}

fn directory() -> PathBuf {
    repository().join("examples")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// Files that functions of their own run.
    const OTHERS: [&str; 9] = [
        "canary.hcl",
        "dispatch.hcl",
        "namespaces/dev.hcl",
        "periodic.hcl",
        "variables/spec.nv.hcl",
        "variables/spec.nv.json",
        "volumes/db.hcl",
        "volumes/volume.hcl",
        "web.hcl",
    ];

    fn files(directory: &Path, found: &mut BTreeSet<String>) -> Result<()> {
        for entry in std::fs::read_dir(directory)? {
            let path = entry?.path();
            if path.is_dir() {
                files(&path, found)?;
            } else {
                let name = path.strip_prefix(super::directory())?;
                found.insert(name.display().to_string());
            }
        }
        Ok(())
    }

    #[test]
    fn every_example_runs_in_containers() -> Result<()> {
        let mut found = BTreeSet::new();
        files(&directory(), &mut found)?;
        let plain = EXAMPLES.map(|example| format!("{}.hcl", example.job));
        let others = OTHERS.map(str::to_owned);
        let run: BTreeSet<String> = plain.into_iter().chain(others).collect();
        assert_eq!(found, run);
        Ok(())
    }
}
