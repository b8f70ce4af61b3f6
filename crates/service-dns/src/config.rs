//! Settings of the DNS server: the section `[dns]` of a node's configuration file.
//!
//! An agent prints the section with the doc comments of [`SOURCE`].

use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use service_kit::config::duration;

/// The source of the section, for a configuration file that explains itself.
pub const SOURCE: &str = include_str!("config.rs");

/// The longest TTL: resolvers would give clients instances that are long gone.
const TTL_MAX: Duration = Duration::from_secs(3_600);

/// DNS for services: names such as `web.service.kafila`, over UDP and TCP. The server answers for its domain
/// alone and forwards nothing: configure the machine's resolver to send the domain here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DnsConfig {
    /// Serve names of services.
    pub enabled: bool,
    /// Address of the server. Clients need no certificate, and each one learns the addresses of services:
    /// keep it on addresses that only tasks and this machine reach.
    pub listen: SocketAddr,
    /// The last part of all names, without a dot at its start.
    pub domain: String,
    /// Time for which resolvers may keep an answer, also that there is none.
    #[serde(with = "duration")]
    pub ttl: Duration,
}

impl Default for DnsConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            listen: SocketAddr::from(([127, 0, 0, 1], 4653)),
            domain: "kafila".to_owned(),
            ttl: Duration::from_secs(2),
        }
    }
}

impl DnsConfig {
    /// Checks the settings.
    ///
    /// # Errors
    /// The setting that is wrong, without its section, and the problem with its fix.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let is_label = |label: &str| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
            !label.is_empty() && label.len() <= 63 && label.chars().all(is_plain)
        };
        if self.domain.len() > 100 || !self.domain.split('.').all(is_label) {
            let problem = format!(
                "{:?} is no domain: want labels of letters, digits and hyphens, as in kafila",
                self.domain
            );
            return Err(("domain", problem));
        }
        if self.ttl > TTL_MAX {
            let problem = "is above 1h: want a few seconds, because instances come and go";
            return Err(("ttl", problem.to_owned()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_make_no_zone_are_refused() {
        assert!(DnsConfig::default().check().is_ok());
        let with = |edit: fn(&mut DnsConfig)| {
            let mut config = DnsConfig::default();
            edit(&mut config);
            config.check().map_err(|(field, _)| field)
        };
        assert_eq!(with(|it| it.domain = "svc.example".to_owned()), Ok(()));
        for edit in [
            (|it| it.domain.clear()) as fn(&mut DnsConfig),
            |it| it.domain = ".kafila".to_owned(),
            |it| it.domain = "a_b".to_owned(),
        ] {
            assert_eq!(with(edit), Err("domain"));
        }
        assert_eq!(with(|it| it.ttl = Duration::from_secs(3_601)), Err("ttl"));
    }
}
