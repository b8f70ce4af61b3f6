//! Operator settings of the running suite: algorithm, pause, refusal, pools.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use integration_tests::api::{Api, eventually};
use integration_tests::load::shell_job;
use integration_tests::suite::{Options, Suite};

const TIMEOUT: Duration = Duration::from_secs(60);

/// The silence after which the test concludes that nothing more happens: real reactions take less
/// than a tenth of this.
const QUIET: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread")]
async fn operators_are_obeyed_by_every_service() -> Result<()> {
    if !test_kit::etcd::available() {
        return Ok(());
    }
    let options = Options {
        nodes: 3,
        ..Options::default()
    };
    let mut suite = Suite::start(options).await?;
    let result = play(&mut suite).await;
    result.with_context(|| suite.log_tails())?;
    suite.check_history().await?;
    suite.stop().await
}

async fn play(suite: &mut Suite) -> Result<()> {
    let api = suite.api()?;
    choose_algorithms(suite, &api).await?;
    refuse_registrations(suite, &api).await?;
    pause(suite, &api).await?;
    for job in ["a", "b", "c", "d", "e", "f"] {
        api.stop_surely(job, true, TIMEOUT).await?;
    }
    eventually(TIMEOUT, || async {
        let evals = api.evaluations().await?;
        let open = evals.iter().filter(|eval| eval.status == "pending");
        ensure!(open.count() == 0, "{evals:?}");
        Ok(())
    })
    .await
}

async fn set(suite: &Suite, flag: &str) -> Result<()> {
    let said = suite
        .kafila(&["operator", "scheduler", "set-config", flag])
        .await?
        .ok()?;
    ensure!(
        said.stdout == "Scheduler configuration updated!\n",
        "{said:?}"
    );
    Ok(())
}

async fn register(api: &Api, name: &str) -> Result<()> {
    let job = shell_job(name, "sleep 1000");
    api.register_surely(&job, name, TIMEOUT).await?;
    Ok(())
}

/// Registers a job of one allocation and returns the node that it is placed on.
async fn place(api: &Api, name: &str) -> Result<String> {
    register(api, name).await?;
    eventually(TIMEOUT, || node_of(api, name)).await
}

async fn node_of(api: &Api, name: &str) -> Result<String> {
    let allocations = api.allocations(name).await?;
    let placed = allocations.first().context("not placed")?;
    Ok(placed.node_id.clone())
}

async fn choose_algorithms(suite: &Suite, api: &Api) -> Result<()> {
    let first = place(api, "a").await?;
    ensure!(place(api, "b").await? == first, "nodes fill up by default");
    set(suite, "-scheduler-algorithm=spread").await?;
    ensure!(place(api, "c").await? != first, "load is spread");
    set(suite, "-scheduler-algorithm=binpack").await?;
    ensure!(place(api, "d").await? == first, "nodes fill up again");
    Ok(())
}

async fn refuse_registrations(suite: &Suite, api: &Api) -> Result<()> {
    set(suite, "-reject-job-registration=true").await?;
    let refused = refusal(register(api, "e").await)?;
    ensure!(refused.contains("are disabled by"), "{refused}");
    set(suite, "-reject-job-registration=false").await?;
    let mut job = shell_job("e", "sleep 1000");
    job.node_pool = Some("gpu".to_owned());
    let refused = refusal(api.register_surely(&job, "e-pool", TIMEOUT).await)?;
    ensure!(refused.contains("nonexistent node pool"), "{refused}");
    place(api, "e").await?;
    Ok(())
}

/// Returns why something was refused.
fn refusal<T>(result: Result<T>) -> Result<String> {
    match result {
        Ok(_) => bail!("not refused"),
        Err(error) => Ok(error.to_string()),
    }
}

async fn pause(suite: &mut Suite, api: &Api) -> Result<()> {
    set(suite, "-pause-eval-broker=true").await?;
    register(api, "f").await?;
    // The next leader knows it as well.
    suite.kill("eval-broker");
    suite.start_process("eval-broker")?;
    eventually(TIMEOUT, || async {
        let shown = suite.metrics("eval-broker").await?;
        let value = |name: &str| {
            let name = format!("kafila_eval_broker_{name} ");
            let line = shown.lines().find_map(|line| line.strip_prefix(&name));
            line.unwrap_or_default().to_owned()
        };
        // This one's, and perhaps those of deployments that have got on meanwhile.
        let (paused, ready) = (value("paused"), value("total_ready"));
        let has_ready = ready.parse::<u32>().is_ok_and(|count| count > 0);
        ensure!(paused == "1" && has_ready, "paused {paused}, ready {ready}");
        Ok(())
    })
    .await?;
    tokio::time::sleep(QUIET).await;
    ensure!(node_of(api, "f").await.is_err(), "placed while paused");
    set(suite, "-pause-eval-broker=false").await?;
    eventually(TIMEOUT, || node_of(api, "f")).await?;
    Ok(())
}
