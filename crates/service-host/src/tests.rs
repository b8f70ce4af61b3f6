use embedded_etcd::EmbeddedEtcd;
use service_kit::{connect_lazy, request};
use test_kit::proxy::{Mode, Proxy};
use test_kit::wait_for;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::*;

const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_service_is_healthy_while_it_hears_of_the_store() {
    let etcd = EmbeddedEtcd::start(embedded_etcd::Config::in_memory())
        .await
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let store = listener.local_addr().unwrap();
    tokio::spawn(etcd.serve(listener, CancellationToken::new()));
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
