//! Settings of allocations' networks: the section `[network]` of a node's configuration file.
//!
//! An agent prints the section with the doc comments of [`SOURCE`].

use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use service_kit::config::list;

/// The source of the section, for a configuration file that explains itself.
pub const SOURCE: &str = include_str!("config.rs");

/// Longest name of a network interface. Source: the kernel's `IFNAMSIZ` without the final zero.
const MAX_INTERFACE: usize = 15;

/// Networks of groups with the modes `bridge`, `cni/<name>` and `none`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkConfig {
    /// Directories of the CNI plugins, in the order of the search.
    #[serde(with = "list")]
    pub cni_path: Vec<String>,
    /// Directory of the networks for `mode = "cni/<name>"`: files `*.conflist`, `*.conf` and `*.json`.
    pub cni_config_dir: PathBuf,
    /// The bridge of `mode = "bridge"`; the plugin makes it.
    pub bridge_name: String,
    /// IPv4 addresses of the allocations on the bridge. Source: Nomad's default.
    pub bridge_subnet: String,
    /// IPv6 addresses of the allocations on the bridge, as in `fd00:a110:c8::/120`; empty: no IPv6.
    pub bridge_subnet_ipv6: String,
    /// Let a frame leave the bridge by the port that it came from. Allocations need it to reach their own
    /// mapped ports on machines with the kernel module br_netfilter, which Docker loads.
    pub bridge_hairpin_mode: bool,
    /// Map ports without a `host_network` of their own on every address of the machine; otherwise on the
    /// node's address alone. Source: Nomad's default.
    pub bind_wildcard_default_host_network: bool,
    /// Directory of namespaces and leases of addresses. It has to be lost at a reboot, as `/run` is.
    pub run_dir: PathBuf,
}

impl Default for NetworkConfig {
    fn default() -> Self {
        Self {
            // Distributions and the plugins' own archive differ.
            cni_path: vec!["/opt/cni/bin".to_owned(), "/usr/lib/cni".to_owned()],
            cni_config_dir: PathBuf::from("/opt/cni/config"),
            bridge_name: "kafila".to_owned(),
            bridge_subnet: "172.26.64.0/20".to_owned(),
            bridge_subnet_ipv6: String::new(),
            bridge_hairpin_mode: true,
            bind_wildcard_default_host_network: true,
            run_dir: PathBuf::from("/run/kafila"),
        }
    }
}

impl NetworkConfig {
    /// Refuses invalid settings.
    ///
    /// # Errors
    /// The first setting that is wrong, below `network`, and its problem.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let name = &self.bridge_name;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.len() > MAX_INTERFACE || !name.chars().all(is_plain) {
            let problem = format!(
                "{name:?} is not a valid interface name: want 1 to {MAX_INTERFACE} letters, digits, '-', '_' or '.'"
            );
            return Err(("bridge_name", problem));
        }
        if !is_subnet(&self.bridge_subnet, IpAddr::is_ipv4) {
            let problem = format!(
                "{:?} is not a valid IPv4 subnet: want one as in 172.26.64.0/20",
                self.bridge_subnet
            );
            return Err(("bridge_subnet", problem));
        }
        let subnet = &self.bridge_subnet_ipv6;
        if !subnet.is_empty() && !is_subnet(subnet, IpAddr::is_ipv6) {
            let problem =
                format!("{subnet:?} is not a valid IPv6 subnet: want one as in fd00:a110:c8::/120");
            return Err(("bridge_subnet_ipv6", problem));
        }
        if !self.run_dir.is_absolute() {
            let problem = format!(
                "{} is relative: want an absolute path",
                self.run_dir.display()
            );
            return Err(("run_dir", problem));
        }
        Ok(())
    }
}

/// Tells whether `text` is an address of the family and the length of a prefix with room for two
/// allocations and the gateway.
fn is_subnet(text: &str, is_family: fn(&IpAddr) -> bool) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let address = address.parse::<IpAddr>().ok().filter(is_family);
    let (Some(address), Ok(length)) = (address, length.parse::<u8>()) else {
        return false;
    };
    let bits = if address.is_ipv4() { 32 } else { 128 };
    (8..=bits - 3).contains(&length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_settings_are_named() {
        assert_eq!(NetworkConfig::default().check(), Ok(()));
        type Change = fn(&mut NetworkConfig);
        let table: [(&str, Change); 8] = [
            ("bridge_name", |it| it.bridge_name.clear()),
            ("bridge_name", |it| it.bridge_name = "b".repeat(16)),
            ("bridge_name", |it| it.bridge_name = "a b".into()),
            ("bridge_subnet", |it| it.bridge_subnet = "10.0.0.0".into()),
            ("bridge_subnet", |it| {
                it.bridge_subnet = "10.0.0.0/31".into()
            }),
            ("bridge_subnet", |it| it.bridge_subnet = "fd00::/64".into()),
            ("bridge_subnet_ipv6", |it| {
                it.bridge_subnet_ipv6 = "10.0.0.0/8".into()
            }),
            ("run_dir", |it| it.run_dir = "run".into()),
        ];
        for (field, change) in table {
            let mut config = NetworkConfig::default();
            change(&mut config);
            assert_eq!(config.check().unwrap_err().0, field);
        }
    }
}
