//! Settings of Vault: the section `[vault]` of a node's configuration file.
//!
//! An agent prints the section with the doc comments of [`SOURCE`].

use std::path::PathBuf;
use std::time::Duration;

use http_client::{Service, SettingProblem, Settings, Tls, check_duration};
use serde::{Deserialize, Serialize};
use service_kit::config::{duration, list};

use crate::schedule;

/// The source of the section, for a configuration file that explains itself.
pub const SOURCE: &str = include_str!("config.rs");

/// Vault, as messages name it.
pub(crate) const SERVICE: Service = Service {
    name: "Vault",
    section: "vault",
};
/// Bytes of an answer: more than Vault stores in one entry (1 MiB by default), and lists of many keys.
const ANSWER_MAX: usize = 8 << 20;

/// The node's way to Vault, for tasks with `vault {}` and templates with `secret`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VaultConfig {
    /// Enable Vault for the tasks of this node.
    pub enabled: bool,
    /// URL of Vault, as in `https://vault.example.com:8200`.
    pub address: String,
    /// Certificates of the authorities of Vault's certificate, as PEM; unset: the machine's.
    pub ca_file: Option<PathBuf>,
    /// The node's certificate for Vault, as PEM; unset: none.
    pub cert_file: Option<PathBuf>,
    /// Private key of `cert_file`, as PEM.
    pub key_file: Option<PathBuf>,
    /// Name that Vault's certificate has to carry; empty: the host of `address`.
    pub tls_server_name: String,
    /// Accept any certificate of Vault. Each machine on the way can then read every secret.
    pub tls_skip_verify: bool,
    /// Namespace of tasks whose job names none (Vault Enterprise); empty: the root namespace.
    pub namespace: String,
    /// Path of the JWT auth method that tasks log in with. Source: Nomad's default.
    pub jwt_auth_path: String,
    /// Role of tasks whose job names none; empty: the default role of the auth method.
    pub default_role: String,
    /// Audiences of the tokens that tasks log in with: `bound_audiences` of the role.
    #[serde(with = "list")]
    pub audience: Vec<String>,
    /// Time for one request.
    #[serde(with = "duration")]
    pub timeout: Duration,
    /// Requests of this node to Vault at a time; others wait.
    pub max_requests: usize,
    /// Templates read secrets without a lease, such as those of KV, again after this time.
    #[serde(with = "duration")]
    pub poll_interval: Duration,
}

impl Default for VaultConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            address: "https://127.0.0.1:8200".to_owned(),
            ca_file: None,
            cert_file: None,
            key_file: None,
            tls_server_name: String::new(),
            tls_skip_verify: false,
            namespace: String::new(),
            jwt_auth_path: "jwt-nomad".to_owned(),
            default_role: String::new(),
            audience: vec!["vault.io".to_owned()],
            timeout: Duration::from_secs(10),
            max_requests: 16,
            poll_interval: schedule::POLL_INTERVAL,
        }
    }
}

impl VaultConfig {
    /// Checks the settings; nothing is read or sent.
    ///
    /// # Errors
    /// The setting that is wrong, without its section, and the problem with its fix.
    pub fn check(&self) -> Result<(), SettingProblem> {
        if !self.enabled {
            return Ok(());
        }
        self.http().check()?;
        if self.jwt_auth_path.trim_matches('/').is_empty() {
            let problem = "is empty: want the path of a JWT auth method, as in jwt-nomad";
            return Err(("jwt_auth_path", problem.to_owned()));
        }
        check_duration("poll_interval", self.poll_interval)
    }

    /// Returns the settings of the HTTP client.
    pub(crate) fn http(&self) -> Settings {
        Settings {
            service: SERVICE,
            address: self.address.clone(),
            default_scheme: None,
            want_address: "want https://HOST[:PORT], as in https://vault.example.com:8200",
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_setting_is_named_with_its_fix() {
        let of = |change: fn(&mut VaultConfig)| {
            let mut config = VaultConfig {
                enabled: true,
                ..VaultConfig::default()
            };
            change(&mut config);
            config.check()
        };
        assert_eq!(of(|_| ()), Ok(()));
        for (change, field) in [
            (
                (|config| config.address = "vault:8200".to_owned()) as fn(&mut VaultConfig),
                "address",
            ),
            (|config| config.cert_file = Some("c.pem".into()), "key_file"),
            (
                |config| config.jwt_auth_path = "/".to_owned(),
                "jwt_auth_path",
            ),
            (|config| config.max_requests = 0, "max_requests"),
            (|config| config.timeout = Duration::ZERO, "timeout"),
            (
                |config| config.poll_interval = Duration::ZERO,
                "poll_interval",
            ),
        ] {
            let (found, problem) = of(change).unwrap_err();
            assert_eq!(found, field);
            assert!(
                problem.contains("want") || problem.contains("set both"),
                "{problem}"
            );
        }
        let off = VaultConfig {
            address: String::new(),
            ..VaultConfig::default()
        };
        assert_eq!(off.check(), Ok(()));
    }
}
