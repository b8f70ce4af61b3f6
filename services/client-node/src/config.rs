//! Configuration of the agent, read once at start.

use std::path::PathBuf;
use std::time::Duration;

pub use alloc_network::NetworkConfig;
pub use artifact_fetch::ArtifactConfig;
pub use consul::ConsulConfig;
pub use docker_driver::EngineConfig;
pub use driver_plugin::PluginConfig;
pub use fingerprint::{DeviceConfig, HostNetworkConfig, HostVolumeConfig, ReservedConfig};
use lifecycle::Limits;
use lifecycle::gc::Thresholds;
pub use node_introduction::{IntroductionConfig, Secret};
use serde::{Deserialize, Serialize};
pub use service_dns::DnsConfig;
use service_kit::config::{duration, list};
use service_kit::settings::DEFAULT_SHUTDOWN_GRACE_PERIOD;
use service_kit::{ListenConfig, TelemetryConfig, TlsConfig};
pub use task_drivers::{ExecConfig, JavaConfig, QemuConfig};
pub use vault::VaultConfig;

use crate::error::Error;

fingerprint::config! {
    pub struct Config {
        /// The first gateways to call, as in `http://10.0.0.1:4646`; they name the others.
        #[serde(with = "service_kit::address::list")]
        pub gateways: Vec<String> = vec!["http://127.0.0.1:4646".to_owned()],
        /// Directory of the node's identity, state and allocations. Without one nothing survives a
        /// restart and only `mock_driver` is available, for simulations.
        pub data_dir: Option<PathBuf> = None,
        /// Address of the node's own server (logs, files, commands). Gateways dial it unless `dial_out` is set.
        pub listen: ListenConfig = ListenConfig::default(),
        pub tls: TlsConfig = TlsConfig::default(),
        pub introduction: IntroductionConfig = IntroductionConfig::default(),
        pub telemetry: TelemetryConfig = TelemetryConfig::default(),
        /// Serves metrics of each running task whose driver knows its use: containers, and processes with cgroup
        /// v2. Each task has ten series, with the id of its allocation.
        pub publish_allocation_metrics: bool = false,
        /// Value of `${node.region}` in tasks; the region of the cluster, which is the gateways' `tls.region`.
        pub region: String = "global".to_owned(),
        pub drivers: DriversConfig = DriversConfig::default(),
        /// Directory of plugins, absolute: every executable file in it provides a task driver. Unset: none.
        pub plugin_dir: Option<PathBuf> = None,
        /// Settings of plugins by file name, as in `[plugins.nomad-driver-x]`: `args`, arguments of the program,
        /// and `config`, a table of the plugin's own settings.
        pub plugins: std::collections::BTreeMap<String, PluginConfig> = Default::default(),
        pub network: NetworkConfig = NetworkConfig::default(),
        pub vault: VaultConfig = VaultConfig::default(),
        pub consul: ConsulConfig = ConsulConfig::default(),
        pub dns: DnsConfig = DnsConfig::default(),
        /// Upper bound of a job's kill timeout, the time between the kill signal and SIGKILL. Source:
        /// Nomad's default.
        #[serde(with = "duration")]
        pub max_kill_timeout: Duration = Limits::default().max_kill_timeout,
        pub gc: GcConfig = GcConfig::default(),
        pub artifact: ArtifactConfig = ArtifactConfig::default(),
        /// Interval of fingerprinting the machine.
        #[serde(with = "duration")]
        pub fingerprint_interval: Duration = Duration::from_secs(60),
        /// Kill every task when the agent ends, as a power cut would; for development. By default tasks
        /// go on without the agent.
        pub stop_tasks_on_exit: bool = false,
        /// Refuse commands beside the node's tasks (`kafila alloc exec`).
        pub disable_remote_exec: bool = false,
        /// Time that open RPCs may take after the signal that ends the agent.
        #[serde(with = "duration")]
        pub shutdown_grace_period: Duration = DEFAULT_SHUTDOWN_GRACE_PERIOD,
    }
}

/// Task drivers of the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DriversConfig {
    /// Plain processes with the agent's own rights. On by default, unlike in Nomad, because it is the
    /// only driver for real work; turn it off where untrusted people submit jobs.
    pub raw_exec: bool,
    /// Simulated tasks, only for jobs that name this driver.
    pub mock_driver: bool,
    /// Program that supervises a task, and its arguments before the directory; empty: the agent's own
    /// program with its hidden subcommand.
    #[serde(with = "list")]
    pub supervisor: Vec<String>,
    /// Slice for tasks' control groups; empty: no control groups.
    pub cgroup_parent: String,
    /// The driver `docker`. It is available where the engine's socket answers.
    pub docker: EngineConfig,
    /// The driver `podman`. It is available where podman's socket answers.
    pub podman: EngineConfig,
    pub exec: ExecConfig,
    pub java: JavaConfig,
    pub qemu: QemuConfig,
}

/// Thresholds above which directories of ended allocations are removed before the servers forget
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GcConfig {
    /// Interval of the checks.
    #[serde(with = "duration")]
    pub interval: Duration,
    /// Percent of the file system in use. Source: Nomad's default, as are the others.
    pub disk_usage_threshold: u8,
    /// Percent of its inodes in use.
    pub inode_usage_threshold: u8,
    /// Allocations on the node, running ones included.
    pub max_allocs: usize,
}

impl Default for DriversConfig {
    fn default() -> Self {
        Self {
            raw_exec: true,
            mock_driver: true,
            supervisor: Vec::new(),
            cgroup_parent: "kafila.slice".to_owned(),
            docker: EngineConfig::default(),
            podman: EngineConfig::podman(),
            exec: ExecConfig::default(),
            java: JavaConfig::default(),
            qemu: QemuConfig::default(),
        }
    }
}

impl Default for GcConfig {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(60),
            disk_usage_threshold: 80,
            inode_usage_threshold: 70,
            max_allocs: 50,
        }
    }
}

impl GcConfig {
    fn check(&self) -> Result<(), (&'static str, String)> {
        for (field, percent) in [
            ("disk_usage_threshold", self.disk_usage_threshold),
            ("inode_usage_threshold", self.inode_usage_threshold),
        ] {
            if percent > 100 {
                let problem =
                    format!("{percent} is not a percentage: want 0 to 100, 100 for never");
                return Err((field, problem));
            }
        }
        check_interval("interval", self.interval)
    }

    pub(crate) fn thresholds(self) -> Thresholds {
        Thresholds {
            disk_percent: self.disk_usage_threshold,
            inode_percent: self.inode_usage_threshold,
            max_allocs: self.max_allocs,
        }
    }
}

impl Config {
    /// Refuses invalid settings, and settings that every gateway would refuse, before anything
    /// starts: a retry would not help.
    ///
    /// # Errors
    /// The first setting that is wrong.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let sections = [
            ("", self.fingerprint().check()),
            ("", local_state::check_data_dir(self.data_dir.as_deref())),
            ("", self.tls.check_gateways(&self.gateways)),
            ("drivers.exec.", self.drivers.exec.check()),
            ("drivers.docker.", self.drivers.docker.check()),
            ("drivers.podman.", self.drivers.podman.check()),
            ("drivers.qemu.", self.drivers.qemu.check()),
            (
                "",
                driver_plugin::config::check(self.plugin_dir.as_deref(), &self.plugins),
            ),
            ("network.", self.network.check()),
            ("vault.", self.vault.check()),
            ("consul.", self.consul.check()),
            ("dns.", self.dns.check()),
            ("artifact.", self.artifact.check()),
            ("gc.", self.gc.check()),
            (
                "",
                check_interval("fingerprint_interval", self.fingerprint_interval),
            ),
        ];
        for (section, checked) in sections {
            checked.map_err(|(field, problem)| Error::Setting {
                field: format!("{section}{field}"),
                problem,
            })?;
        }
        Ok(())
    }
}

fn check_interval(field: &'static str, interval: Duration) -> Result<(), (&'static str, String)> {
    if interval.is_zero() {
        let problem = "is 0s: its loop would keep a core busy; want a duration, as in 1m";
        return Err((field, problem.to_owned()));
    }
    Ok(())
}

impl service_kit::print::Documented for Config {
    const SOURCE: &'static str = include_str!("config.rs");
    const SHARED: &'static str = fingerprint::config::SOURCE;
    const SECTION_SOURCES: &'static [&'static str] = &[
        artifact_fetch::config::SOURCE,
        docker_driver::config::SOURCE,
        task_drivers::EXEC_CONFIG_SOURCE,
        task_drivers::JAVA_CONFIG_SOURCE,
        task_drivers::QEMU_CONFIG_SOURCE,
        fingerprint::config::SOURCE,
        alloc_network::config::SOURCE,
        vault::CONFIG_SOURCE,
        consul::CONFIG_SOURCE,
        service_dns::SOURCE,
        node_introduction::config::SOURCE,
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_printed_with_a_comment_in_its_section() {
        let config = Config::default();
        assert!(service_kit::print::undocumented(&config).is_empty());
        let text = service_kit::print::toml(&config);
        for section in [
            "listen",
            "telemetry",
            "reserved",
            "drivers",
            "drivers.docker",
            "drivers.podman",
            "drivers.exec",
            "drivers.java",
            "drivers.qemu",
            "network",
            "vault",
            "consul",
            "dns",
            "gc",
            "artifact",
        ] {
            assert!(text.contains(&format!("\n[{section}]\n")), "{section}");
        }
        assert!(text.contains("\nreserved_ports = \"\"\n"), "{text}");
    }

    #[test]
    fn a_setting_of_podman_leaves_the_defaults_of_podman() {
        let set = [("drivers.podman.volumes".to_owned(), "true".to_owned())];
        let config: Config = service_kit::config::load("client-node", None, &set).unwrap();
        let want = EngineConfig {
            volumes: true,
            ..EngineConfig::podman()
        };
        assert_eq!(config.drivers.podman, want);
        assert_eq!(config.drivers.docker, EngineConfig::default());
    }

    #[test]
    fn settings_of_a_plugin_are_free_and_its_directory_is_needed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = "plugin_dir = \"/opt/plugins\"\n[plugins.nomad-driver-x]\nargs = [\"-v\"]\n\
                    [plugins.nomad-driver-x.config]\nEnabled = true\nlimits = { most = 5 }\n";
        std::fs::write(file.path(), text).unwrap();
        let config: Config =
            service_kit::config::load("client-node", Some(file.path()), &[]).unwrap();
        let plugin = &config.plugins["nomad-driver-x"];
        assert_eq!(plugin.args, ["-v"]);
        let want = serde_json::json!({"Enabled": true, "limits": {"most": 5}});
        assert_eq!(serde_json::Value::Object(plugin.config.clone()), want);
        assert!(config.check().is_ok());
        let config = Config {
            plugin_dir: None,
            ..config
        };
        let message = config.check().unwrap_err().to_string();
        assert!(
            message.starts_with("`plugins`: \"nomad-driver-x\" has settings"),
            "{message}"
        );
    }

    #[test]
    fn a_token_is_printed_nowhere() {
        let config = Config {
            introduction: IntroductionConfig {
                token: Secret::new("t1-secret"),
                token_file: None,
            },
            ..Config::default()
        };
        let shown = format!("{config:?} {}", service_kit::print::toml(&config));
        assert!(!shown.contains("t1-secret"), "{shown}");
    }

    #[test]
    fn settings_that_gateways_refuse_are_refused_at_start() {
        assert!(Config::default().check().is_ok());
        type Change = fn(&mut Config);
        let table: [(&str, Change); 12] = [
            ("data_dir", |it| it.data_dir = Some(PathBuf::new())),
            ("gateways", |it| {
                it.tls.insecure = true;
                it.gateways = vec!["10.0.0.1:4646".to_owned()];
            }),
            ("node_pool", |it| it.node_pool = "a b".to_owned()),
            ("node_pool", |it| it.node_pool = "all".to_owned()),
            ("datacenter", |it| it.datacenter.clear()),
            ("datacenter", |it| it.datacenter = "d".repeat(129)),
            ("name", |it| it.name = Some(String::new())),
            ("min_dynamic_port", |it| it.min_dynamic_port = 40_000),
            ("gc.disk_usage_threshold", |it| {
                it.gc.disk_usage_threshold = 150;
            }),
            ("gc.inode_usage_threshold", |it| {
                it.gc.inode_usage_threshold = 101;
            }),
            ("gc.interval", |it| it.gc.interval = Duration::ZERO),
            ("fingerprint_interval", |it| {
                it.fingerprint_interval = Duration::ZERO;
            }),
        ];
        for (field, change) in table {
            let mut config = Config::default();
            change(&mut config);
            let message = config.check().unwrap_err().to_string();
            assert!(message.starts_with(&format!("`{field}`: ")), "{message}");
        }
    }
}
