//! What a gateway can be told when it starts.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use service_kit::settings::DEFAULT_SHUTDOWN_GRACE_PERIOD;
use service_kit::{EtcdConfig, ListenConfig, TelemetryConfig};

/// Where nodes and the command look for a gateway unless they are told. Source: Nomad's default.
const DEFAULT_PORT: u16 = 4646;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub etcd: EtcdConfig,
    pub listen: ListenConfig,
    pub telemetry: TelemetryConfig,
    /// The gateway's name among the gateways, for people; empty: its address.
    pub name: String,
    /// The addresses of all gateways, for nodes to fail over to; empty: only this one's.
    #[serde(with = "service_kit::address::list")]
    pub gateways: Vec<String>,
    /// How many evaluations may be open (pending or blocked) before new jobs are refused.
    /// 1,000,000 are normal weather; each takes about 1 KiB in every service's replica.
    pub max_open_evals: usize,
    /// What nodes are told to stay below between two heartbeats. 10 s whatever the size of the
    /// cluster: with the cluster-controller's grace of 5 s a dead node is known in 15 s.
    #[serde(with = "service_kit::config::duration")]
    pub heartbeat_ttl: Duration,
    /// How long a request may wait for etcd, or for the replica to catch up, before it fails.
    /// 10 s outlast an election of etcd's own (about 3 s) and of ours (3 s).
    #[serde(with = "service_kit::config::duration")]
    pub request_timeout: Duration,
    /// How long a caller of the event stream may take nothing before it is cut off. 30 s outlast
    /// a restart of whatever reads it; meanwhile its watch is a burden to etcd.
    #[serde(with = "service_kit::config::duration")]
    pub event_stream_patience: Duration,
    /// How long RPCs may go on after the drain began.
    #[serde(with = "service_kit::config::duration")]
    pub shutdown_grace_period: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            etcd: EtcdConfig::default(),
            listen: ListenConfig {
                grpc: SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT)),
                ..ListenConfig::default()
            },
            telemetry: TelemetryConfig::default(),
            name: String::new(),
            gateways: Vec::new(),
            max_open_evals: 1_000_000,
            heartbeat_ttl: Duration::from_secs(10),
            request_timeout: Duration::from_secs(10),
            event_stream_patience: Duration::from_secs(30),
            shutdown_grace_period: DEFAULT_SHUTDOWN_GRACE_PERIOD,
        }
    }
}

impl service_kit::print::Documented for Config {
    const SOURCE: &'static str = include_str!("config.rs");
}
