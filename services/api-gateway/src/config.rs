//! The settings of a gateway.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use service_kit::ListenConfig;

/// The port at which nodes and the command line look for a gateway by default. Source: Nomad's default.
const DEFAULT_PORT: u16 = 4646;

service_host::config! {
    listen = default_listen();
    pub struct Config {
        /// The gateway's name in logs and messages; empty: its address.
        pub name: String = String::new(),
        /// The addresses of all gateways, for nodes to fail over to; empty: only this one's.
        #[serde(with = "service_kit::address::list")]
        pub gateways: Vec<String> = Vec::new(),
        /// The number of open evaluations (pending or blocked) from which on new jobs are refused.
        /// A busy cluster has 1,000,000; each takes about 1 KiB in every service's replica.
        pub max_open_evals: usize = 1_000_000,
        /// The number of requests that register, dispatch, scale or evaluate jobs which may be in progress;
        /// further ones are refused, to be tried again. 1 to 1,000,000; 1,024 are a second's worth on two cores.
        pub max_job_requests: usize = 1_024,
        /// The maximum time between two heartbeats of a node; nodes send two in it. 10 s whatever the
        /// size of the cluster: with the cluster-controller's grace of 5 s a dead node is detected
        /// within 15 s. Set the same value at the cluster-controllers, which decide when a node is
        /// down: a value of more than twice their TTL and grace takes live nodes down.
        #[serde(with = "service_kit::config::duration")]
        pub heartbeat_ttl: Duration = model::node::DEFAULT_HEARTBEAT_TTL,
        /// The time limit of a request's wait for etcd, or for the replica to catch up. 10 s
        /// outlast an election of etcd's own (about 3 s) and of ours (3 s).
        #[serde(with = "service_kit::config::duration")]
        pub request_timeout: Duration = Duration::from_secs(10),
        /// The time for which a caller of the event stream may take no event before its stream
        /// ends. 30 s outlast a restart of the reader; meanwhile its watch is a burden to etcd.
        #[serde(with = "service_kit::config::duration")]
        pub event_stream_timeout: Duration = Duration::from_secs(30),
        /// Data in use, as a percentage of etcd's quota, at which registrations, dispatches, launches and
        /// larger counts are refused. The rest is for what ends work: stops, reports, garbage collection.
        /// 100: never, and etcd becomes read-only when it is full.
        pub refuse_at_etcd_percent: u8 = 85,
        /// Certificate of the CA of nodes, as PEM, which `kafila tls ca create -node-ca` creates: nodes
        /// join with an introduction token. The first certificate issues; further ones are accepted
        /// only, while a CA is replaced. The same at all gateways; unset: nodes need certificates.
        pub node_ca_cert_file: Option<PathBuf> = None,
        /// Private key of `node_ca_cert_file`, as PEM.
        pub node_ca_key_file: Option<PathBuf> = None,
        /// Validity of certificates of nodes that have joined with a token, 10s to 8760h. A node renews
        /// its own after two thirds of it; one that is away for longer needs another token.
        #[serde(with = "service_kit::config::duration")]
        pub node_certificate_ttl: Duration = Duration::from_secs(30 * 24 * 3_600),
        /// File with the key that encrypts the private keys of workload identities in etcd: 32 random bytes
        /// as base64, as from `openssl rand -base64 32`. The same at all gateways. To replace it, write the
        /// new key above the old one. Unset: tasks with identities do not start.
        pub keyring_key_file: Option<PathBuf> = None,
        /// URL at which Vault, Consul and others find `/.well-known/openid-configuration` of this cluster,
        /// as they reach it; tokens of tasks name it as `iss`. Unset: neither.
        pub oidc_issuer: Option<String> = None,
    }
}

fn default_listen() -> ListenConfig {
    ListenConfig {
        grpc: SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT)),
        ..ListenConfig::default()
    }
}
