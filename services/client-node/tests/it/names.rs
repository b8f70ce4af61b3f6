//! Names of services by DNS, from the answers of a gateway.

use std::net::SocketAddr;

use client_node::App;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use proto::internal::v1::ServiceInstance;
use service_kit::CancellationToken;
use test_kit::{scrape, wait_for};

use crate::gateway::{Cluster, Gateway, LIMIT};
use crate::metrics::value;
use crate::node::Place;

fn resolver(address: SocketAddr) -> TokioResolver {
    let mut connection = ConnectionConfig::udp();
    connection.port = address.port();
    let server = NameServerConfig::new(address.ip(), true, vec![connection]);
    let config = ResolverConfig::from_parts(None, vec![], vec![server]);
    let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    builder.options_mut().cache_size = 0;
    builder.build().unwrap()
}

fn instance(number: u8, health: &str) -> ServiceInstance {
    ServiceInstance {
        id: format!("i{number}"),
        address: format!("10.0.0.{number}"),
        port: 8_080,
        health: health.to_owned(),
        ..ServiceInstance::default()
    }
}

async fn found(resolver: &TokioResolver) -> Vec<String> {
    match resolver.lookup_ip("web.service.kafila.").await {
        Ok(found) => found.iter().map(|it| it.to_string()).collect(),
        Err(error) => vec![error.to_string()],
    }
}

#[tokio::test]
async fn names_follow_the_gateway_and_outlive_it() {
    let place = Place::new();
    let cluster = Cluster::new();
    let gateway = Gateway::start(&cluster).await;
    let set = |instances: Vec<ServiceInstance>| {
        let mut facts = cluster.facts();
        facts.services.insert("web".to_owned(), instances);
    };
    set(vec![instance(1, "passing"), instance(2, "failing")]);
    let mut config = place.config(&[&gateway.address]);
    config.dns.enabled = true;
    config.dns.listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let app = App::build(config).await.unwrap();
    let resolver = resolver(app.dns_address().unwrap());
    let metrics = app.metrics_address().unwrap();
    let drain = CancellationToken::new();
    let ended = tokio::spawn(app.run(drain.clone()));
    let until = async |what: &str, want: &str| {
        wait_for(what, LIMIT, async || {
            (found(&resolver).await == [want]).then_some(())
        })
        .await;
    };
    until("the instance that passes", "10.0.0.1").await;
    set(vec![instance(2, "passing"), instance(1, "failing")]);
    cluster.send_again();
    until("the other instance", "10.0.0.2").await;
    drop(gateway);
    // Without a gateway the last answer stays, and its age shows.
    wait_for("the age of the answers", LIMIT, async || {
        let text = scrape(metrics).await.unwrap();
        let age = value(&text, "kafila_client_node_services_age_seconds ");
        age.filter(|age| *age >= 2.0)
    })
    .await;
    assert_eq!(found(&resolver).await, ["10.0.0.2"]);
    let text = scrape(metrics).await.unwrap();
    assert!(value(&text, "kafila_client_node_dns_queries_total ").is_some_and(|it| it >= 3.0));
    drain.cancel();
    ended.await.unwrap().unwrap();
}
