//! The server, asked by a real resolver over UDP and TCP.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use service_dns::{DnsConfig, DnsMetrics, LocalNode, Server, Zone};
use service_kit::{CancellationToken, IdSource};
use service_watch::{Answer, Instance, ServiceName, Services};
use tokio::task::JoinHandle;

struct Node {
    services: Arc<Services>,
    resolver: TokioResolver,
    ended: CancellationToken,
    running: JoinHandle<()>,
}

impl Node {
    async fn start() -> Self {
        let services = Arc::new(Services::default());
        let server = Server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = server.local_addr().unwrap();
        let config = DnsConfig::default();
        let node = LocalNode {
            node_id: "n1".to_owned(),
            datacenter: "dc1".to_owned(),
        };
        let metrics = DnsMetrics::default();
        let shared = Arc::clone(&services);
        let zone = Zone::new(&config, shared, node, IdSource::seeded(1), metrics);
        let ended = CancellationToken::new();
        let running = tokio::spawn(server.run(zone, ended.clone()));
        let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()];
        let connections = connections.map(|mut connection| {
            connection.port = address.port();
            connection
        });
        let server = NameServerConfig::new(address.ip(), true, connections.to_vec());
        let config = ResolverConfig::from_parts(None, vec![], vec![server]);
        let provider = TokioRuntimeProvider::default();
        let resolver = TokioResolver::builder_with_config(config, provider);
        Self {
            services,
            resolver: resolver.build().unwrap(),
            ended,
            running,
        }
    }

    /// Plays the gateway: answers for `web` once it is asked for.
    fn answer(&self, instances: Vec<Instance>) -> JoinHandle<()> {
        let services = Arc::clone(&self.services);
        tokio::spawn(async move {
            let web = ServiceName {
                namespace: "default".to_owned(),
                name: "web".to_owned(),
            };
            let mut names = services.watch_names();
            while !services.names().contains(&web) {
                names.changed().await.unwrap();
            }
            services.apply([(web, Answer::Instances(instances.into()))]);
        })
    }

    async fn stop(self) {
        self.ended.cancel();
        let limit = Duration::from_secs(10);
        tokio::time::timeout(limit, self.running)
            .await
            .unwrap()
            .unwrap();
    }
}

fn instances(count: u32) -> Vec<Instance> {
    let of = |number: u32| Instance {
        id: number.to_string(),
        address: std::net::Ipv4Addr::from(0x0a00_0000 + number).to_string(),
        port: 8_080,
        node_id: format!("n{number}"),
        node_name: format!("node{number}"),
        datacenter: "dc1".to_owned(),
        ..Instance::default()
    };
    (1..=count).map(of).collect()
}

#[tokio::test]
async fn a_resolver_finds_addresses_and_ports() {
    let node = Node::start().await;
    let gateway = node.answer(instances(3));
    let found = node
        .resolver
        .lookup_ip("web.service.kafila.")
        .await
        .unwrap();
    let found: Vec<IpAddr> = found.iter().collect();
    assert_eq!(found.len(), 3);
    assert_eq!(
        found[0],
        "10.0.0.1".parse::<IpAddr>().unwrap(),
        "the node's own"
    );
    gateway.await.unwrap();
    let found = node
        .resolver
        .srv_lookup("_web._tcp.service.kafila.")
        .await
        .unwrap();
    assert_eq!(found.answers().len(), 3);
    node.stop().await;
}

#[tokio::test]
async fn a_resolver_asks_again_over_tcp_for_an_answer_that_is_too_long() {
    let node = Node::start().await;
    let gateway = node.answer(instances(200));
    let found = node
        .resolver
        .lookup_ip("web.service.kafila.")
        .await
        .unwrap();
    assert_eq!(found.iter().count(), 200);
    gateway.await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn a_resolver_learns_that_a_name_does_not_exist() {
    let node = Node::start().await;
    let gateway = node.answer(Vec::new());
    let error = node
        .resolver
        .lookup_ip("web.service.kafila.")
        .await
        .unwrap_err();
    assert!(error.is_nx_domain(), "{error}");
    gateway.await.unwrap();
    node.stop().await;
}
