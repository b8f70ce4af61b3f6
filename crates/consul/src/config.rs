//! Settings of Consul: the section `[consul]` of a node's configuration file.
//!
//! An agent prints the section with the doc comments of [`SOURCE`].

use std::path::PathBuf;
use std::time::Duration;

use http_client::{Scheme, Service, SettingProblem, Settings, Tls, Token};
use serde::{Deserialize, Serialize};
use service_kit::config::{duration, list};

/// The source of the section, for a configuration file that explains itself.
pub const SOURCE: &str = include_str!("config.rs");

/// Consul, as messages name it.
pub(crate) const SERVICE: Service = Service {
    name: "Consul",
    section: "consul",
};
/// Bytes of an answer: a list of keys with values of at most 512 KiB each, or all services of an agent.
const ANSWER_MAX: usize = 32 << 20;

/// The node's agent of Consul, for services with `provider = "consul"` and templates with `key` or `service`.
/// Each node has its own: an agent drops the services of another node of Kafila or Nomad.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConsulConfig {
    /// Enable Consul for the services and tasks of this node.
    pub enabled: bool,
    /// Address of the agent, as in `127.0.0.1:8500` or `https://127.0.0.1:8501`.
    pub address: String,
    /// Use TLS for an `address` without a scheme.
    pub ssl: bool,
    /// Certificates of the authorities of the agent's certificate, as PEM; unset: the machine's.
    pub ca_file: Option<PathBuf>,
    /// The node's certificate for Consul, as PEM; unset: none.
    pub cert_file: Option<PathBuf>,
    /// Private key of `cert_file`, as PEM.
    pub key_file: Option<PathBuf>,
    /// Name that the agent's certificate has to carry; empty: the host of `address`.
    pub tls_server_name: String,
    /// Accept any certificate of the agent. Each machine on the way can then read every token.
    pub tls_skip_verify: bool,
    /// File with the node's token: it registers services, and reads for templates of tasks without a token of
    /// their own. Read again when it changes; unset: the agent's default token.
    pub token_file: Option<PathBuf>,
    /// Namespace of look-ups of tasks whose job names none (Consul Enterprise); empty: the token's.
    pub namespace: String,
    /// Partition of look-ups of tasks whose job names none (Consul Enterprise); empty: the agent's.
    pub partition: String,
    /// Tags that each service of the node gets besides its own.
    #[serde(with = "list")]
    pub tags: Vec<String>,
    /// JWT auth method with which tasks log in whose job has a block `consul`, as in `nomad-workloads`; empty:
    /// tasks get no token, and their templates use the node's.
    pub task_auth_method: String,
    /// Audiences of the tokens that tasks log in with: `BoundAudiences` of the auth method.
    #[serde(with = "list")]
    pub audience: Vec<String>,
    /// Time for one request, besides the wait of a query that waits for a change.
    #[serde(with = "duration")]
    pub timeout: Duration,
    /// Requests of this node at a time, besides those that wait for a change; others wait.
    pub max_requests: usize,
}

impl Default for ConsulConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            address: "127.0.0.1:8500".to_owned(),
            ssl: false,
            ca_file: None,
            cert_file: None,
            key_file: None,
            tls_server_name: String::new(),
            tls_skip_verify: false,
            token_file: None,
            namespace: String::new(),
            partition: String::new(),
            tags: Vec::new(),
            task_auth_method: String::new(),
            audience: vec!["consul.io".to_owned()],
            timeout: Duration::from_secs(10),
            max_requests: 16,
        }
    }
}

impl ConsulConfig {
    /// Checks the settings; nothing is read or sent.
    ///
    /// # Errors
    /// The setting that is wrong, without its section, and the problem with its fix.
    pub fn check(&self) -> Result<(), SettingProblem> {
        if !self.enabled {
            return Ok(());
        }
        self.http().check()
    }

    /// Returns the settings of the HTTP client.
    pub(crate) fn http(&self) -> Settings {
        Settings {
            service: SERVICE,
            address: self.address.clone(),
            default_scheme: Some(if self.ssl {
                Scheme::Https
            } else {
                Scheme::Http
            }),
            want_address: "want HOST:PORT or https://HOST[:PORT], as in 127.0.0.1:8500",
            tls: Tls {
                ca_file: self.ca_file.clone(),
                cert_file: self.cert_file.clone(),
                key_file: self.key_file.clone(),
                tls_server_name: self.tls_server_name.clone(),
                tls_skip_verify: self.tls_skip_verify,
            },
            timeout: self.timeout,
            max_requests: self.max_requests,
            answer_max: ANSWER_MAX,
        }
    }

    /// Reads the node's token; empty: there is none. Blocks.
    ///
    /// # Errors
    /// The file cannot be read, or is empty.
    pub(crate) fn read_token(&self) -> Result<Token, SettingProblem> {
        let Some(path) = &self.token_file else {
            return Ok(Token::default());
        };
        let bad = |problem: String| ("token_file", problem);
        let text = std::fs::read_to_string(path)
            .map_err(|error| bad(format!("cannot read {}: {error}", path.display())))?;
        match text.trim() {
            "" => Err(bad(format!("{} is empty: want a token", path.display()))),
            text => Ok(Token::new(text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_setting_is_named_with_its_fix() {
        let of = |change: fn(&mut ConsulConfig)| {
            let mut config = ConsulConfig {
                enabled: true,
                ..ConsulConfig::default()
            };
            change(&mut config);
            config.check()
        };
        assert_eq!(of(|_| ()), Ok(()));
        for (change, field) in [
            (
                (|config| config.address = "unix:///x".to_owned()) as fn(&mut ConsulConfig),
                "address",
            ),
            (|config| config.cert_file = Some("c.pem".into()), "key_file"),
            (|config| config.max_requests = 0, "max_requests"),
            (|config| config.timeout = Duration::ZERO, "timeout"),
        ] {
            let (found, problem) = of(change).unwrap_err();
            assert_eq!(found, field);
            assert!(
                problem.contains("want") || problem.contains("set both"),
                "{problem}"
            );
        }
        let off = ConsulConfig {
            address: String::new(),
            ..ConsulConfig::default()
        };
        assert_eq!(off.check(), Ok(()));
        let missing = ConsulConfig {
            token_file: Some("/no/such/file".into()),
            ..ConsulConfig::default()
        };
        assert_eq!(missing.read_token().unwrap_err().0, "token_file");
    }
}
