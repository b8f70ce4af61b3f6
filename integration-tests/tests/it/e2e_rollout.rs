//! Canaries over real processes, with the command: promoted, failed and auto-reverted, paused and
//! resumed, reverted by hand.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use integration_tests::api::{Api, eventually};
use integration_tests::suite::{Options, Suite};
use proto::v1;

const TIMEOUT: Duration = Duration::from_secs(60);

const JOB: &str = "canary";

#[tokio::test(flavor = "multi_thread")]
async fn a_canary_is_promoted_or_fails_and_a_rollout_is_paused_and_taken_back() -> Result<()> {
    if !test_kit::etcd::available() {
        return Ok(());
    }
    let suite = Suite::start(Options {
        nodes: 2,
        ..Options::default()
    })
    .await?;
    let result = play(&suite).await;
    result.with_context(|| suite.log_tails())?;
    suite.stop().await
}

/// A job file, as it is or changed.
struct File {
    folder: tempfile::TempDir,
    text: String,
}

impl File {
    fn read() -> Result<Self> {
        let example = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let example = example.join("../examples/canary.hcl");
        Ok(Self {
            folder: tempfile::tempdir()?,
            text: std::fs::read_to_string(example)?,
        })
    }

    fn with(&self, from: &str, to: &str) -> Result<String> {
        ensure!(self.text.contains(from), "the file has no {from:?}");
        let path = self.folder.path().join("canary.hcl");
        std::fs::write(&path, self.text.replace(from, to))?;
        Ok(path.to_string_lossy().into_owned())
    }
}

async fn play(suite: &Suite) -> Result<()> {
    let api = suite.api()?;
    let file = File::read()?;
    let say = async |words: &[&str]| -> Result<String> {
        let said = suite.kafila(words).await?.ok();
        Ok(said.with_context(|| words.join(" "))?.stdout)
    };

    // The first version has nothing to be careful with.
    let same = file.with("", "")?;
    say(&["job", "run", &same]).await?;
    runs(&api, &[(0, 3)]).await?;

    // The second tries itself out beside it, and goes no further by itself.
    say(&["job", "run", "-detach", "-var", "release=2", &same]).await?;
    let canary = waiting(&api, 1).await?;
    runs(&api, &[(0, 3), (1, 1)]).await?;
    ensure!(
        canary.status_description == "Deployment is running but requires manual promotion",
        "{canary:?}"
    );

    // Paused, it is promoted and yet does not go on.
    let id = canary.id.as_str();
    let paused = say(&["deployment", "pause", id]).await?;
    ensure!(paused.ends_with("paused\n"), "{paused}");
    say(&["deployment", "promote", "-detach", id]).await?;
    // Long enough for the scheduler, which takes milliseconds, to do what it must not.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let all = api.allocations(JOB).await?;
    let of_second = all.iter().filter(|alloc| alloc.job_version == 1);
    ensure!(of_second.count() == 1, "{all:?}");
    ensure!(latest(&api).await?.status == "paused");
    let resumed = say(&["deployment", "resume", id]).await?;
    ensure!(resumed.contains("resumed\n"), "{resumed}");
    runs(&api, &[(1, 3)]).await?;
    ensure!(latest(&api).await?.status == "successful");
    eventually(TIMEOUT, || async {
        let job = api.job(JOB).await?.job.unwrap_or_default();
        ensure!(job.stable(), "{job:?}");
        Ok(())
    })
    .await?;

    // The third fails at its canary: nothing else of it ever runs, and the second is back.
    let bad = file.with("exec sleep infinity", "exit 1")?;
    let said = suite.kafila(&["job", "run", &bad]).await?;
    // Pipelines look at the code alone.
    ensure!(
        said.code == 1 && said.stdout.contains("rolling back to job version 1"),
        "{said:?}"
    );
    eventually(TIMEOUT, || async {
        let job = api.job(JOB).await?.job.unwrap_or_default();
        ensure!(job.version() == 3, "{:?}", job.version());
        let deployment = latest(&api).await?;
        ensure!(
            (deployment.job_version, &*deployment.status) == (3, "successful"),
            "{deployment:?}"
        );
        Ok(())
    })
    .await?;
    runs(&api, &[(3, 3)]).await?;
    let all = api.allocations(JOB).await?;
    let of_third = all.iter().filter(|alloc| alloc.job_version == 2);
    ensure!(of_third.count() == 1, "{all:?}");

    // Back to the first by hand, with a canary of its own.
    say(&["job", "tag", "apply", "-name=first", "-version=0", JOB]).await?;
    say(&["job", "revert", "-detach", JOB, "first"]).await?;
    waiting(&api, 4).await?;
    runs(&api, &[(3, 3), (4, 1)]).await?;
    let promoted = say(&["job", "promote", JOB]).await?;
    ensure!(promoted.contains("successful"), "{promoted}");
    runs(&api, &[(4, 3)]).await?;
    let history = say(&["job", "history", "-p", JOB]).await?;
    for part in ["Version     = 4\n", "RELEASE", "Tag Name    = first\n"] {
        ensure!(history.contains(part), "{part:?} is missing:\n{history}");
    }
    let job = api.job(JOB).await?.job.unwrap_or_default();
    let release = &job.task_groups[0].tasks[0].env["RELEASE"];
    ensure!(release == "1", "{job:?}");

    revert_after_the_promotion(suite, &api, &file).await?;

    say(&["job", "stop", "-purge", JOB]).await?;
    eventually(TIMEOUT, || async {
        let left = suite.task_processes();
        ensure!(left.is_empty(), "processes left behind: {left:?}");
        Ok(())
    })
    .await?;
    suite.check_history().await.map(drop)
}

/// The canary is healthy and promoted, and the rest fails: the job goes back to the version before, without canaries
/// and without another promotion.
async fn revert_after_the_promotion(suite: &Suite, api: &Api, file: &File) -> Result<()> {
    let script = "[ $NOMAD_ALLOC_INDEX = 0 ] || exit 1; exec sleep infinity";
    let late = file.with("exec sleep infinity", script)?;
    let run = suite.kafila(&["job", "run", "-detach", &late]).await?;
    run.ok()?;
    waiting(api, 5).await?;
    let said = suite.kafila(&["job", "promote", JOB]).await?;
    ensure!(said.code == 1, "{said:?}");
    runs(api, &[(6, 3)]).await?;
    eventually(TIMEOUT, || async {
        let deployment = latest(api).await?;
        let group = deployment.task_groups.get("app").context("no group")?;
        ensure!(
            (deployment.job_version, &*deployment.status) == (6, "successful")
                && group.desired_canaries == 0,
            "{deployment:?}"
        );
        Ok(())
    })
    .await
}

async fn latest(api: &Api) -> Result<v1::Deployment> {
    let deployments = api.deployments().await?;
    let latest = deployments.into_iter().max_by_key(|it| it.create_index);
    latest.context("no deployment")
}

/// Waits for the deployment of `version` to have all its canaries healthy.
async fn waiting(api: &Api, version: u64) -> Result<v1::Deployment> {
    eventually(TIMEOUT, || async {
        let deployment = latest(api).await?;
        let group = deployment.task_groups.get("app").context("no group")?;
        ensure!(
            deployment.job_version == version
                && group.desired_canaries == 1
                && group.healthy_allocs == 1,
            "{deployment:?}"
        );
        Ok(deployment)
    })
    .await
}

/// Waits until of each version so many run, and of the others none.
async fn runs(api: &Api, expected: &[(u64, usize)]) -> Result<()> {
    eventually(TIMEOUT, || async {
        let all = api.allocations(JOB).await?;
        let mut found = std::collections::BTreeMap::<u64, usize>::new();
        for alloc in all.iter().filter(|alloc| alloc.desired_status == "run") {
            ensure!(alloc.client_status == "running", "{alloc:?}");
            *found.entry(alloc.job_version).or_default() += 1;
        }
        let found: Vec<(u64, usize)> = found.into_iter().collect();
        ensure!(found == expected, "{found:?} and not {expected:?}");
        Ok(())
    })
    .await
}
