//! The client in sdk/rust against two gateways of a real suite: one is killed, the other hangs, and calls and streams
//! go on.

use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::TryStreamExt as _;
use integration_tests::load::mock_service;
use integration_tests::suite::{Options, SECOND_GATEWAY, Suite};
use kafila_client::{Client, Config, FollowEvents, v1};
use nix::sys::signal::Signal;
use tokio::sync::mpsc;

/// Timeout of one call with its retries, and of the events that follow it.
const TIMEOUT: Duration = Duration::from_secs(40);
/// Calls before and after each fault.
const CALLS: usize = 10;

#[tokio::test(flavor = "multi_thread")]
async fn the_rust_client_goes_on_while_one_gateway_is_killed_and_the_other_hangs() -> Result<()> {
    if !test_kit::etcd::available() {
        return Ok(());
    }
    let mut suite = Suite::start(Options {
        has_second_gateway: true,
        ..Options::default()
    })
    .await?;
    let result = play(&mut suite).await;
    result.with_context(|| suite.log_tails())?;
    suite.stop().await
}

async fn play(suite: &mut Suite) -> Result<()> {
    let client = Client::new(Config {
        gateways: suite.addresses(),
        timeout: TIMEOUT,
        attempt_timeout: Duration::from_secs(2),
        ..Config::default()
    })?;
    let mut watched = watch(&client).await?;
    let mut registered = BTreeSet::new();
    let mut seen = BTreeSet::new();

    register(&client, &mut registered).await?;
    // The client prefers the first: the call that finds it dead has begun at it.
    suite.kill("api-gateway");
    register(&client, &mut registered).await?;
    all_seen(&mut watched, &registered, &mut seen).await?;

    suite.start_process("api-gateway")?;
    let first = Client::new(Config {
        gateways: vec![suite.address()],
        timeout: TIMEOUT,
        ..Config::default()
    })?;
    integration_tests::api::eventually(TIMEOUT, || async {
        ensure!(first.is_ready().await?, "not ready");
        Ok(())
    })
    .await?;
    let hung = suite.process(SECOND_GATEWAY).context("no gateway")?;
    hung.signal(Signal::SIGSTOP)?;
    let outcome = async {
        register(&client, &mut registered).await?;
        all_seen(&mut watched, &registered, &mut seen).await
    }
    .await;
    hung.signal(Signal::SIGCONT)?;
    outcome?;

    // Each call took effect once, although some were sent twice.
    let request = v1::ListJobsRequest::default();
    let jobs: Vec<v1::JobStub> = client.jobs().list(request).items().try_collect().await?;
    ensure!(jobs.len() == registered.len(), "{} jobs", jobs.len());
    for name in &registered {
        let request = v1::GetJobRequest {
            job_id: name.clone(),
            ..Default::default()
        };
        let job = client.jobs().get(request).await?.job.unwrap_or_default();
        ensure!(job.version() == 0, "{name} has version {}", job.version());
    }
    suite.check_history().await.map(drop)
}

/// Registers jobs with the client's own retries alone.
async fn register(client: &Client, registered: &mut BTreeSet<String>) -> Result<()> {
    for _ in 0..CALLS {
        let name = format!("job-{}", registered.len());
        let request = v1::RegisterJobRequest {
            job: Some(mock_service(&name, 0)),
            ..Default::default()
        };
        let call = client.jobs().register(request).await;
        call.with_context(|| format!("registering {name}"))?;
        registered.insert(name);
    }
    Ok(())
}

/// Follows the registrations of jobs from now on. Each batch is sent with its index.
async fn watch(client: &Client) -> Result<mpsc::UnboundedReceiver<Result<(u64, Vec<String>)>>> {
    let now = client.jobs().list(v1::ListJobsRequest::default()).await?;
    let index = now.meta.context("an answer without its index")?.index;
    let events = client.follow_events(FollowEvents {
        filters: vec![v1::EventFilter {
            topic: "Job".to_owned(),
            ..Default::default()
        }],
        index: index + 1,
        longest_outage: Some(TIMEOUT),
        ..Default::default()
    });
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut events = pin!(events);
        loop {
            let sent = match events.try_next().await {
                Ok(Some(batch)) => {
                    let registered = batch
                        .events
                        .iter()
                        .filter(|it| it.r#type == "JobRegistered");
                    let keys = registered.map(|it| it.key.clone()).collect();
                    sender.send(Ok((batch.index, keys)))
                }
                Ok(None) => sender.send(Err(anyhow::anyhow!("the stream ended"))),
                Err(error) => sender.send(Err(error.into())),
            };
            if sent.is_err() {
                return;
            }
        }
    });
    Ok(receiver)
}

/// Waits until the stream has told of every registration, each once and in order.
async fn all_seen(
    watched: &mut mpsc::UnboundedReceiver<Result<(u64, Vec<String>)>>,
    registered: &BTreeSet<String>,
    seen: &mut BTreeSet<String>,
) -> Result<()> {
    let mut last = 0;
    while seen.len() < registered.len() {
        let next = tokio::time::timeout(TIMEOUT, watched.recv()).await;
        let next = next.with_context(|| format!("silent after {seen:?}"))?;
        let (index, names) = next.context("the stream ended")??;
        ensure!(index > last, "batch {index} after {last}");
        last = index;
        for name in names {
            ensure!(seen.insert(name.clone()), "{name} was told twice");
        }
    }
    Ok(())
}
