//! Health of a service over its store, and its end: loops, drains, panics.

use service_kit::{connect_lazy, request};
use store_test_kit::TestStore;
use test_kit::proxy::{Mode, Proxy};
use test_kit::wait_for;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use std::time::Duration;

use service_kit::{EtcdConfig, ListenConfig};
use store::{ElectionOptions, Interest};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::config::check_election_ttl;
use crate::error::Error;
use crate::host::{Base, Host, Rpcs};

const TIMEOUT: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_service_is_healthy_while_it_hears_of_the_store() {
    let store = TestStore::start().await;
    let proxy = Proxy::start(store.address).await.unwrap();
    proxy.set(Mode::Cut);
    let config = EtcdConfig {
        endpoints: vec![proxy.endpoint()],
        ..EtcdConfig::default()
    };
    let base = Base::build("example", &config, &ListenConfig::default())
        .await
        .unwrap();
    let mut client = HealthClient::new(connect_lazy(base.address()).unwrap());
    let drain = CancellationToken::new();
    let work = Box::pin(drain.clone().cancelled_owned());
    let host = base.start(Interest::ALL);
    let running = tokio::spawn(host.run(Rpcs::default(), work, TIMEOUT, drain.clone()));
    for (mode, expected) in [
        (Mode::Cut, ServingStatus::NotServing),
        (Mode::Open, ServingStatus::Serving),
        (Mode::Cut, ServingStatus::NotServing),
        (Mode::Open, ServingStatus::Serving),
    ] {
        proxy.set(mode);
        wait_for("the health to change", TIMEOUT, async || {
            let question = request(HealthCheckRequest::default(), TIMEOUT);
            let answer = client.check(question).await.ok()?.into_inner();
            (answer.status() == expected).then_some(())
        })
        .await;
    }
    drain.cancel();
    drop(client);
    running.await.unwrap().unwrap();
}

/// An etcd with its own defaults would refuse the transactions of a large job, hours after the
/// start.
#[tokio::test]
async fn a_service_is_not_healthy_while_the_store_takes_too_small_transactions() {
    let mut settings = embedded_etcd::Config::in_memory();
    settings.max_txn_ops = 128;
    let store = TestStore::start_with(settings).await;
    let config = EtcdConfig {
        endpoints: vec![store.endpoint.clone()],
        ..EtcdConfig::default()
    };
    let base = Base::build("example", &config, &ListenConfig::default())
        .await
        .unwrap();
    let mut health = HealthClient::new(connect_lazy(base.address()).unwrap());
    let host = base.start(Interest::ALL);
    let replica = host.replica.clone();
    let drain = CancellationToken::new();
    let work = Box::pin(drain.clone().cancelled_owned());
    let running = tokio::spawn(host.run(Rpcs::default(), work, TIMEOUT, drain.clone()));
    wait_for("the replica", TIMEOUT, async || {
        (replica.applied() > 0).then_some(())
    })
    .await;
    // Several looks, and as many probes.
    for _ in 0..30 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let question = request(HealthCheckRequest::default(), TIMEOUT);
        let answer = health.check(question).await.unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::NotServing);
    }
    drain.cancel();
    drop(health);
    running.await.unwrap().unwrap();
}

async fn host(store: &TestStore) -> Host {
    let config = EtcdConfig {
        endpoints: vec![store.endpoint.clone()],
        ..EtcdConfig::default()
    };
    let base = Base::build("example", &config, &ListenConfig::default())
        .await
        .unwrap();
    base.start(Interest::ALL)
}

#[tokio::test]
async fn loops_run_until_open_rpcs_are_finished_after_a_drain() {
    let store = TestStore::start().await;
    let host = host(&store).await;
    let mut health = HealthClient::new(connect_lazy(host.address()).unwrap());
    let (drain, ended) = (CancellationToken::new(), host.ended().clone());
    let mut loops = JoinSet::new();
    loops.spawn(ended.clone().cancelled_owned());
    let running = tokio::spawn(host.run_with_loops(Rpcs::default(), loops, TIMEOUT, drain.clone()));
    let question = request(HealthCheckRequest::default(), TIMEOUT);
    let mut open = health.watch(question).await.unwrap().into_inner();
    open.message().await.unwrap().unwrap();
    drain.cancel();
    // The RPC hears of the drain and stays open.
    open.message().await.unwrap().unwrap();
    assert!(!ended.is_cancelled() && !running.is_finished());
    drop((open, health));
    running.await.unwrap().unwrap();
    assert!(ended.is_cancelled());
}

#[tokio::test]
async fn a_loop_that_ends_or_panics_by_itself_ends_the_service() {
    for panics in [false, true] {
        let store = TestStore::start().await;
        let host = host(&store).await;
        let ended = host.ended().clone();
        let mut loops = JoinSet::new();
        loops.spawn(ended.clone().cancelled_owned());
        loops.spawn(async move { assert!(!panics, "as the test wants") });
        let drain = CancellationToken::new();
        let running = host.run_with_loops(Rpcs::default(), loops, TIMEOUT, drain);
        let failure = tokio::time::timeout(TIMEOUT, running).await.unwrap();
        assert!(matches!(
            failure,
            Err(Error::LoopEnded { service: "example" })
        ));
        assert!(ended.is_cancelled());
    }
}

#[test]
fn an_election_ttl_without_a_possible_leader_is_refused_by_name() {
    let check = |ttl| check_election_ttl("example", ttl);
    for fine in [
        Duration::from_secs(1),
        ElectionOptions::DEFAULT_TTL,
        Duration::from_secs(300),
    ] {
        check(fine).unwrap();
    }
    for bad in [
        Duration::ZERO,
        Duration::from_millis(999),
        Duration::from_secs(301),
        Duration::MAX,
    ] {
        let message = check(bad).unwrap_err().to_string();
        assert!(
            message.contains("example") && message.contains("`election_ttl`"),
            "{message}"
        );
    }
}
