use embedded_etcd::EmbeddedEtcd;
use service_kit::{connect_lazy, request};
use test_kit::proxy::{Mode, Proxy};
use test_kit::wait_for;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::*;

const PATIENCE: Duration = Duration::from_secs(30);

async fn serve_store(settings: embedded_etcd::Config) -> (EmbeddedEtcd, SocketAddr) {
    let etcd = EmbeddedEtcd::start(settings).await.unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(etcd.serve(listener, CancellationToken::new()));
    (etcd, address)
}

#[tokio::test]
async fn a_service_is_healthy_while_it_hears_of_the_store() {
    let (_etcd, store) = serve_store(embedded_etcd::Config::in_memory()).await;
    let proxy = Proxy::start(store).await.unwrap();
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
    let work = drain.clone().cancelled_owned();
    let host = base.start();
    let running = tokio::spawn(host.run(Rpcs::default(), work, PATIENCE, drain.clone()));
    for (mode, expected) in [
        (Mode::Cut, ServingStatus::NotServing),
        (Mode::Open, ServingStatus::Serving),
        (Mode::Cut, ServingStatus::NotServing),
        (Mode::Open, ServingStatus::Serving),
    ] {
        proxy.set(mode);
        wait_for("the health to change", PATIENCE, async || {
            let question = request(HealthCheckRequest::default(), PATIENCE);
            let answer = client.check(question).await.ok()?.into_inner();
            (answer.status() == expected).then_some(())
        })
        .await;
    }
    drain.cancel();
    drop(client);
    running.await.unwrap().unwrap();
}

/// An etcd with its own defaults would refuse what a large job needs, hours after the start.
#[tokio::test]
async fn a_service_is_not_healthy_while_the_store_takes_too_small_transactions() {
    let mut settings = embedded_etcd::Config::in_memory();
    settings.max_txn_ops = 128;
    let (_etcd, store) = serve_store(settings).await;
    let config = EtcdConfig {
        endpoints: vec![format!("http://{store}")],
        ..EtcdConfig::default()
    };
    let base = Base::build("example", &config, &ListenConfig::default())
        .await
        .unwrap();
    let mut health = HealthClient::new(connect_lazy(base.address()).unwrap());
    let host = base.start();
    let replica = host.replica.clone();
    let drain = CancellationToken::new();
    let work = drain.clone().cancelled_owned();
    let running = tokio::spawn(host.run(Rpcs::default(), work, PATIENCE, drain.clone()));
    wait_for("the replica", PATIENCE, async || {
        (replica.applied() > 0).then_some(())
    })
    .await;
    // Several looks, and as many probes.
    for _ in 0..30 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let question = request(HealthCheckRequest::default(), PATIENCE);
        let answer = health.check(question).await.unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::NotServing);
    }
    drain.cancel();
    drop(health);
    running.await.unwrap().unwrap();
}

#[test]
fn an_election_ttl_with_which_nobody_would_lead_is_refused_by_name() {
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
