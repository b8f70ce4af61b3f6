//! The sections of configuration that services share.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::ConfigError;

/// How long a draining process may finish what is in hand: a little longer than the longest RPC
/// that is not a stream takes, well below the 30 s after which orchestrators kill.
pub const DEFAULT_SHUTDOWN_GRACE_PERIOD: Duration = Duration::from_secs(10);

/// Where the store is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EtcdConfig {
    /// Any of the members, as in `http://10.0.0.1:2379`; all are tried.
    #[serde(with = "crate::address::list")]
    pub endpoints: Vec<String>,
    /// What every key begins with; ends with a slash. Two clusters may share an etcd.
    pub prefix: String,
}

impl Default for EtcdConfig {
    fn default() -> Self {
        Self {
            endpoints: vec!["http://127.0.0.1:2379".to_owned()],
            prefix: "/kafila/v1/".to_owned(),
        }
    }
}

/// Where a service answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ListenConfig {
    /// gRPC; port 0 lets the system choose.
    pub grpc: SocketAddr,
    /// HTTP: `/metrics`, `/healthz`, `/readyz`.
    pub metrics: SocketAddr,
    /// The address that others reach `grpc` at, as in `http://10.0.0.7:7101`, when it is not the
    /// one bound to.
    #[serde(with = "crate::address::optional")]
    pub advertise: Option<String>,
}

impl Default for ListenConfig {
    fn default() -> Self {
        let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self {
            grpc: any_port,
            metrics: any_port,
            advertise: None,
        }
    }
}

impl ListenConfig {
    /// Returns the address to tell others, given the one that was bound.
    ///
    /// # Errors
    /// Every interface was bound and `advertise` does not say which one others can reach.
    pub fn advertised(&self, bound: SocketAddr) -> Result<String, ConfigError> {
        match &self.advertise {
            Some(address) => Ok(address.clone()),
            None if bound.ip().is_unspecified() => Err(ConfigError::Invalid {
                service: "listen".to_owned(),
                problem: format!(
                    "`listen.grpc` is {}, which others cannot dial: set `listen.advertise`",
                    self.grpc
                ),
            }),
            None => Ok(format!("http://{bound}")),
        }
    }
}

/// Logs and traces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetryConfig {
    /// What is logged, as in `info` or `info,store=debug`.
    pub log: String,
    /// `text`, a line for people, or `json`, an object a line for programs.
    pub log_format: LogFormat,
    /// Where traces go over OTLP's gRPC, as in `http://127.0.0.1:4317`; none: nowhere.
    pub otlp_endpoint: Option<String>,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self {
            log: "info".to_owned(),
            log_format: LogFormat::Text,
            otlp_endpoint: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// A line for people.
    Text,
    /// A JSON object a line, for programs.
    Json,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advertised_address_is_one_that_others_can_dial() {
        let bound = SocketAddr::from(([10, 0, 0, 7], 7101));
        let mut listen = ListenConfig::default();
        assert_eq!(listen.advertised(bound).unwrap(), "http://10.0.0.7:7101");
        let everywhere = SocketAddr::from(([0, 0, 0, 0], 7101));
        assert!(
            listen
                .advertised(everywhere)
                .unwrap_err()
                .to_string()
                .contains("advertise")
        );
        listen.advertise = Some("http://broker:7101".to_owned());
        assert_eq!(listen.advertised(everywhere).unwrap(), "http://broker:7101");
    }
}
