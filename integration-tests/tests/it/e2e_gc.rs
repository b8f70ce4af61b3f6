//! `kafila system gc` against `kafila dev`: ended objects are collected, live ones stay.

use std::time::Duration;

use anyhow::{Result, ensure};
use integration_tests::api::eventually;
use integration_tests::binary;

use crate::e2e_plan::{Dev, SLEEPER};

const TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_job_is_forgotten_and_a_running_one_is_not() -> Result<()> {
    let dev = Dev::start().await?;
    let api = dev.api()?;
    let other = SLEEPER.replace("job \"sleeper\"", "job \"other\"");
    dev.say(&["job", "run"], SLEEPER).await?.ok()?;
    dev.say(&["job", "run"], &other).await?.ok()?;
    let running = api.allocations("other").await?;
    let stop = ["job", "stop", "-detach", "sleeper"];
    binary::run(&dev.address, &stop).await?.ok()?;
    eventually(TIMEOUT, || async {
        let allocations = api.allocations("sleeper").await?;
        let mut statuses = allocations.iter().map(|alloc| alloc.client_status.as_str());
        ensure!(
            statuses.all(|status| status == "complete"),
            "{allocations:?}"
        );
        Ok(())
    })
    .await?;

    // A late report of the node may make the first collection miss the job.
    eventually(TIMEOUT, || async {
        let said = binary::run(&dev.address, &["system", "gc"]).await?.ok()?;
        ensure!(said.stdout.is_empty(), "{said:?}");
        ensure!(api.job("sleeper").await.is_err(), "it is still there");
        Ok(())
    })
    .await?;
    let jobs = api.jobs().await?;
    let ids: Vec<_> = jobs.iter().map(|job| job.id.as_str()).collect();
    ensure!(ids == ["other"], "{ids:?}");
    let evaluations = api.evaluations().await?;
    ensure!(
        evaluations.iter().all(|eval| eval.job_id == "other") && !evaluations.is_empty(),
        "{evaluations:?}"
    );
    let left = api.allocations("other").await?;
    let names = |all: &[proto::v1::Allocation]| -> Vec<(String, String)> {
        let facts = |alloc: &proto::v1::Allocation| (alloc.id.clone(), alloc.client_status.clone());
        all.iter().map(facts).collect()
    };
    ensure!(names(&left) == names(&running), "{left:?}\nwas {running:?}");

    // Its number is free again, and nothing of the past is in the way.
    dev.say(&["job", "run"], SLEEPER).await?.ok()?;
    let again = api.allocations("sleeper").await?;
    ensure!(again.len() == 2, "{again:?}");
    Ok(())
}
