//! Volumes against `kafila dev`: registered with the command, used by a job, exclusive while in use,
//! and deleted when unused.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use integration_tests::api::{Api, eventually};
use integration_tests::binary::{self, CommandOutput};
use proto::v1;

use crate::e2e_plan::Dev;

const TIMEOUT: Duration = Duration::from_secs(60);

fn example(file: &str) -> Result<String> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/volumes");
    Ok(std::fs::read_to_string(examples.join(file))?)
}

async fn kafila(dev: &Dev, words: &[&str]) -> Result<CommandOutput> {
    binary::run(&dev.address, words).await
}

/// Waits until the job's allocations have these statuses, in any order.
async fn statuses(api: &Api, job: &str, wanted: &[&str]) -> Result<Vec<v1::Allocation>> {
    eventually(TIMEOUT, || async {
        let allocations = api.allocations(job).await?;
        let found = allocations.iter().map(|alloc| alloc.client_status.as_str());
        let mut found: Vec<&str> = found.collect();
        found.sort_unstable();
        ensure!(found == wanted, "{job}: {allocations:?}");
        Ok(allocations)
    })
    .await
}

/// Waits until the job has something that is blocked, and returns why.
async fn why_blocked(dev: &Dev, api: &Api, job: &str) -> Result<String> {
    let id = eventually(TIMEOUT, || async {
        let evaluations = api.evaluations().await?;
        let mut of_job = evaluations.iter().filter(|eval| eval.job_id == job);
        let blocked = of_job.find(|eval| eval.status == "blocked");
        Ok(blocked.context("nothing is blocked")?.id.clone())
    })
    .await?;
    let said = kafila(dev, &["eval", "explain", &id]).await?.ok()?;
    Ok(said.stdout)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_is_written_by_one_job_at_a_time_until_its_claim_ends() -> Result<()> {
    let dev = Dev::start().await?;
    let api = dev.api()?;
    let node = api.nodes().await?.remove(0);
    let folder = tempfile::tempdir()?;
    let path = folder.path().to_str().context("its name is text")?;

    // The job is there before its volume.
    let db = example("db.hcl")?;
    dev.say(&["job", "run", "-detach"], &db).await?.ok()?;
    let why = why_blocked(&dev, &api, "db").await?;
    ensure!(why.contains("missing compatible host volumes"), "{why}");

    // Its registration is what the job has waited for; asked twice, it is one volume.
    let volume = example("volume.hcl")?
        .replace("8a3f2c1e", &node.id[..8])
        .replace("/srv/data", path);
    let first = dev.say(&["volume", "register"], &volume).await?.ok()?;
    let again = dev.say(&["volume", "register"], &volume).await?.ok()?;
    ensure!(first.stdout == again.stdout, "{first:?} {again:?}");
    let id = first.stdout.trim().rsplit(' ').next().unwrap_or_default();
    let allocations = statuses(&api, "db", &["running"]).await?;
    eventually(TIMEOUT, || async {
        let log = std::fs::read_to_string(folder.path().join("log"))?;
        ensure!(log == "started\n", "{log}");
        Ok(())
    })
    .await?;

    let shown = kafila(&dev, &["volume", "status", &id[..8]]).await?.ok()?;
    for part in [
        path,
        "ready",
        "single-node-single-writer",
        &allocations[0].id[..8],
    ] {
        ensure!(shown.stdout.contains(part), "{part}: {shown:?}");
    }
    let claims = kafila(&dev, &["volume", "claim", "list"]).await?.ok()?;
    ensure!(claims.stdout.contains("server"), "{claims:?}");

    // The command for storage systems' volumes names the one for directories.
    for words in [
        &["volume", "deregister", "data"][..],
        &["volume", "delete", "-type=csi", "data"],
    ] {
        let refused = kafila(&dev, words).await?;
        let want = format!("kafila volume delete -type=host {id}");
        ensure!(refused.code == 1, "{refused:?}");
        for part in ["a dynamic host volume", &want] {
            ensure!(refused.stderr.contains(part), "{part}: {refused:?}");
        }
    }

    // Another job waits until the first has ended, and the volume cannot be deleted meanwhile.
    let other = db.replace("job \"db\"", "job \"other\"");
    dev.say(&["job", "run", "-detach"], &other).await?.ok()?;
    let why = why_blocked(&dev, &api, "other").await?;
    let want = "conflicting claims for host volume with single-writer";
    ensure!(why.contains(want), "{why}");
    let refused = kafila(&dev, &["volume", "delete", "data"]).await?;
    ensure!(refused.code == 1, "{refused:?}");
    ensure!(
        refused.stderr.contains("volume in use: data"),
        "{refused:?}"
    );
    kafila(&dev, &["job", "stop", "-detach", "-purge", "db"])
        .await?
        .ok()?;
    statuses(&api, "other", &["running"]).await?;
    let log = std::fs::read_to_string(folder.path().join("log"))?;
    ensure!(log.starts_with("started\n"), "{log}");

    // A purged job claims nothing.
    let claims = kafila(&dev, &["volume", "claim", "list", "-json"]).await?;
    let claims = claims.ok()?.stdout;
    ensure!(
        claims.contains("\"other\"") && !claims.contains("\"db\""),
        "{claims}"
    );

    kafila(&dev, &["job", "stop", "-detach", "other"])
        .await?
        .ok()?;
    statuses(&api, "other", &["complete"]).await?;
    let said = kafila(&dev, &["volume", "delete", "data"]).await?.ok()?;
    ensure!(said.stdout.contains(id), "{said:?}");
    for (words, want) in [
        (&["volume", "status"][..], "No volumes"),
        (&["volume", "claim", "list"], "No claims"),
    ] {
        let said = kafila(&dev, words).await?.ok()?;
        ensure!(said.stdout.trim() == want, "{said:?}");
    }
    ensure!(folder.path().join("log").exists(), "the directory stays");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_whose_volume_is_no_directory_says_so() -> Result<()> {
    let dev = Dev::start().await?;
    let api = dev.api()?;
    let node = api.nodes().await?.remove(0);
    let volume = example("volume.hcl")?
        .replace("8a3f2c1e", &node.id)
        .replace("/srv/data", "/nowhere/at/all");
    dev.say(&["volume", "register"], &volume).await?.ok()?;
    let batch = example("db.hcl")?.replace("job \"db\" {", "job \"db\" {\n  type = \"batch\"");
    dev.say(&["job", "run", "-detach"], &batch).await?.ok()?;
    let alloc = eventually(TIMEOUT, || async {
        let allocations = api.allocations("db").await?;
        let mut failed = allocations.into_iter();
        let failed = failed.find(|alloc| alloc.client_status == "failed");
        failed.context("nothing has failed yet")
    })
    .await?;
    let said = kafila(&dev, &["alloc", "status", &alloc.id]).await?.ok()?;
    let want = "/nowhere/at/all is not a directory of this node";
    ensure!(said.stdout.contains(want), "{said:?}");
    Ok(())
}
