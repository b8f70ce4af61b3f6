//! Offers: host networks, reserved ports and host volumes, as the operator configured them.
//!
//! Resolved once, when the agent starts. An address or directory that is missing then is refused as
//! a configuration error; the node would otherwise register and fit no job.

mod addresses;
mod ports;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use model::node::{HostNetwork, HostVolume};

use crate::config::{Config, HostVolumeConfig};
use crate::error::Error;
use crate::{cores, devices};

/// The operator's settings, checked and resolved against the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offers {
    /// Ports that allocations do not get on any address.
    pub(crate) reserved_ports: Vec<u16>,
    pub(crate) host_networks: BTreeMap<String, HostNetwork>,
    pub(crate) host_volumes: BTreeMap<String, HostVolume>,
}

impl Offers {
    /// # Errors
    /// The first setting that is invalid or names something that the machine does not have.
    pub fn resolve(config: &Config) -> Result<Self, Error> {
        let reserved = &config.reserved.reserved_ports;
        let mut offers = Self {
            reserved_ports: ports::parse("reserved.reserved_ports", reserved)?,
            ..Self::default()
        };
        if !config.host_networks.is_empty() {
            let machine = addresses::of_machine()?;
            for (alias, network) in &config.host_networks {
                let found = addresses::resolve(alias, network, &machine)?;
                offers.host_networks.insert(alias.clone(), found);
            }
        }
        for (name, volume) in &config.host_volumes {
            let found = self::volume(name, volume)?;
            offers.host_volumes.insert(name.clone(), found);
        }
        devices::check(&config.devices)?;
        cores::check(config)?;
        Ok(offers)
    }
}

/// Tells whether an interface of the machine has `address`.
pub(crate) fn has_address(address: IpAddr) -> bool {
    let machine = addresses::of_machine();
    machine.is_ok_and(|machine| machine.iter().any(|one| one.ip == address))
}

fn volume(name: &str, config: &HostVolumeConfig) -> Result<HostVolume, Error> {
    let field = || format!("host_volumes.{name}.path");
    if config.path.as_os_str().is_empty() {
        return Err(Error::setting(
            field(),
            "is empty: name a directory of this machine",
        ));
    }
    let shown = config.path.display();
    if !config.path.is_absolute() {
        let problem = format!("{shown} is not absolute: write it from / on");
        return Err(Error::setting(field(), problem));
    }
    if !config.path.is_dir() {
        let problem = format!(
            "{shown} is not a directory that the agent can see: create it, or name another"
        );
        return Err(Error::setting(field(), problem));
    }
    let path = text_of(&config.path)
        .ok_or_else(|| Error::setting(field(), format!("{shown} is not UTF-8: name another")))?;
    Ok(HostVolume {
        path,
        read_only: config.read_only,
    })
}

fn text_of(path: &Path) -> Option<String> {
    PathBuf::from(path).into_os_string().into_string().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::HostNetworkConfig;

    fn fails(edit: impl FnOnce(&mut Config)) -> String {
        let mut config = Config::default();
        edit(&mut config);
        Offers::resolve(&config).unwrap_err().to_string()
    }

    fn volume(path: impl Into<PathBuf>) -> HostVolumeConfig {
        HostVolumeConfig {
            path: path.into(),
            read_only: true,
        }
    }

    #[test]
    fn a_volume_is_an_existing_directory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        let mut config = Config::default();
        config.host_volumes.insert("data".into(), volume(&path));
        let offers = Offers::resolve(&config).unwrap();
        let want = HostVolume {
            path: path.display().to_string(),
            read_only: true,
        };
        assert_eq!(offers.host_volumes["data"], want);
        let file = path.join("file");
        std::fs::write(&file, "").unwrap();
        for (path, want) in [
            (
                PathBuf::new(),
                "is empty: name a directory of this machine".to_owned(),
            ),
            (
                "srv".into(),
                "srv is not absolute: write it from / on".to_owned(),
            ),
            (
                file.clone(),
                format!(
                    "{} is not a directory that the agent can see: create it, or name another",
                    file.display()
                ),
            ),
        ] {
            let message = fails(|config| {
                config.host_volumes.insert("data".into(), volume(path));
            });
            assert_eq!(message, format!("`host_volumes.data.path`: {want}"));
        }
    }

    #[test]
    fn loopback_is_on_every_machine() {
        let mut config = Config::default();
        for (alias, network) in [
            (
                "by-range",
                HostNetworkConfig {
                    cidr: Some("127.0.0.0/8".into()),
                    ..HostNetworkConfig::default()
                },
            ),
            (
                "by-interface",
                HostNetworkConfig {
                    interface: Some("lo".into()),
                    reserved_ports: "22,8000-8002".into(),
                    ..HostNetworkConfig::default()
                },
            ),
        ] {
            config.host_networks.insert(alias.into(), network);
        }
        config.reserved.reserved_ports = "22".into();
        let offers = Offers::resolve(&config).unwrap();
        assert_eq!(offers.reserved_ports, [22]);
        let by_interface = &offers.host_networks["by-interface"];
        assert!(by_interface.addresses.contains(&"127.0.0.1".to_owned()));
        assert_eq!(by_interface.reserved_ports, [22, 8_000, 8_001, 8_002]);
        assert!(
            offers.host_networks["by-range"]
                .addresses
                .contains(&"127.0.0.1".to_owned())
        );
    }
}
