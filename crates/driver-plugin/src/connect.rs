//! The first calls of a process: its identity, its settings and its abilities.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint, Uri};
use tower::service_fn;

use crate::calls::{bounded, within};
use crate::handshake::PORTS;
use crate::wire::base::base_plugin_client::BasePluginClient;
use crate::wire::base::{
    ConfigSchemaRequest, NomadConfig, NomadDriverConfig, PluginInfoRequest, PluginType,
    SetConfigRequest,
};
use crate::wire::drivers::driver_capabilities::{FsIsolation, MountConfigs};
use crate::wire::drivers::driver_client::DriverClient;
use crate::wire::drivers::network_isolation_spec::NetworkIsolationMode;
use crate::wire::drivers::{CapabilitiesRequest, DriverCapabilities, TaskConfigSchemaRequest};
use crate::wire::hclspec::Spec;
use crate::{msgpack, schema};

/// Version of the calls of drivers. Source: Nomad 1.6.1.
const API_VERSION: &str = "0.1.0";
/// The largest answer. Source: the default of gRPC in Go, whose plugins send no larger ones.
pub(crate) const ANSWER_BYTES_MAX: usize = 4 << 20;
/// Longest name of a driver, as of every name in a job.
const NAME_MAX: usize = 128;

/// Identity and abilities of a plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Facts {
    /// The driver's name in jobs.
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) takes_signals: bool,
    pub(crate) runs_commands: bool,
    /// Tasks see the files of an image, not those of the node.
    pub(crate) has_image: bool,
    pub(crate) joins_networks: bool,
    pub(crate) mounts: bool,
    pub(crate) has_output: bool,
}

/// Connects with the first call, and again after a lost connection.
pub(crate) fn channel(socket: &Path, limit: Duration) -> Channel {
    let socket: PathBuf = socket.to_owned();
    let connector = service_fn(move |_: Uri| {
        let socket = socket.clone();
        async move { UnixStream::connect(socket).await.map(TokioIo::new) }
    });
    // No name is looked up: the connector ignores the address.
    let endpoint = Endpoint::from_static("http://localhost")
        .connect_timeout(limit)
        .initial_stream_window_size(connections::STREAM_WINDOW)
        .initial_connection_window_size(connections::CONNECTION_WINDOW);
    endpoint.connect_with_connector_lazy(connector)
}

/// Asks a process for its facts, and the schema of tasks.
///
/// # Errors
/// It is no driver, or asks for what this agent does not have.
pub(crate) async fn facts(
    channel: &Channel,
    limit: Duration,
) -> Result<(Facts, Option<Spec>), String> {
    let mut base = BasePluginClient::new(channel.clone());
    let info = within("PluginInfo", limit, base.plugin_info(PluginInfoRequest {})).await;
    let info = info.map_err(|error| error.to_string())?;
    match info.r#type() {
        PluginType::Driver => {}
        PluginType::Device => {
            return Err("it is a plugin for devices: only drivers are supported".to_owned());
        }
        PluginType::Unknown => return Err("it does not say that it is a driver".to_owned()),
    }
    let versions = info.plugin_api_versions.iter();
    let mut versions = versions.map(|version| version.trim_start_matches('v'));
    if !versions.any(|version| version == API_VERSION) {
        let offered = bounded(&info.plugin_api_versions.join(", "));
        return Err(format!(
            "its calls have the versions {offered:?}: only {API_VERSION} is supported"
        ));
    }
    check_name(&info.name)?;
    let mut driver = DriverClient::new(channel.clone());
    let able = within(
        "Capabilities",
        limit,
        driver.capabilities(CapabilitiesRequest {}),
    )
    .await;
    let able = able.map_err(|error| error.to_string())?;
    let able = able.capabilities.unwrap_or_default();
    let schema = driver.task_config_schema(TaskConfigSchemaRequest {});
    let schema = within("TaskConfigSchema", limit, schema).await;
    let schema = schema.map_err(|error| error.to_string())?.spec;
    let version = bounded(&info.plugin_version);
    Ok((able_facts(info.name, version, &able)?, schema))
}

fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(is_plain) {
        let name = bounded(name);
        return Err(format!(
            "its driver is called {name:?}: want letters, digits, -, _ and ., at most {NAME_MAX}"
        ));
    }
    Ok(())
}

fn able_facts(name: String, version: String, able: &DriverCapabilities) -> Result<Facts, String> {
    if able.must_create_network {
        return Err(
            "it makes the networks of allocations itself (must_create_network), which is not supported"
                .to_owned(),
        );
    }
    if able.remote_tasks {
        return Err(
            "its tasks run on other machines (remote_tasks), which is not supported".to_owned(),
        );
    }
    let has_image = match FsIsolation::try_from(able.fs_isolation) {
        Ok(FsIsolation::None) => false,
        Ok(FsIsolation::Image) => true,
        other => {
            let shown = match other {
                Ok(FsIsolation::Chroot) => "chroot".to_owned(),
                _ => able.fs_isolation.to_string(),
            };
            return Err(format!(
                "its tasks have the file system isolation {shown}: supported are none and image"
            ));
        }
    };
    let mut modes = able.network_isolation_modes();
    Ok(Facts {
        name,
        version,
        takes_signals: able.send_signals,
        runs_commands: able.exec,
        has_image,
        joins_networks: modes.any(|mode| mode == NetworkIsolationMode::Group),
        mounts: able.mount_configs() == MountConfigs::AnyMounts,
        has_output: !able.disable_log_collection,
    })
}

/// Passes the operator's settings to a new process.
///
/// # Errors
/// The setting that the plugin does not have, or its own refusal.
pub(crate) async fn set_config(
    channel: &Channel,
    config: &serde_json::Map<String, serde_json::Value>,
    limit: Duration,
) -> Result<(), String> {
    let mut base = BasePluginClient::new(channel.clone());
    let asked = base.config_schema(ConfigSchemaRequest {});
    let asked = within("ConfigSchema", limit, asked).await;
    let asked = asked.map_err(|error| error.to_string())?;
    let msgpack_config = match asked.spec {
        Some(spec) => {
            let value = schema::decode(&spec, config);
            msgpack::encode(&value.map_err(|problem| format!("config.{problem}"))?)
        }
        None if config.is_empty() => Vec::new(),
        None => return Err("config: the plugin has no settings: remove it".to_owned()),
    };
    let request = SetConfigRequest {
        msgpack_config,
        nomad_config: Some(NomadConfig {
            driver: Some(NomadDriverConfig {
                client_min_port: PORTS.0,
                client_max_port: PORTS.1,
            }),
        }),
        plugin_api_version: format!("v{API_VERSION}"),
    };
    let set = within("SetConfig", limit, base.set_config(request)).await;
    set.map_err(|error| format!("it refuses its config: {error}"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abilities_that_the_agent_does_not_have_are_named() {
        let facts = |able: DriverCapabilities| able_facts("x".into(), String::new(), &able);
        let isolation = |fs: FsIsolation| DriverCapabilities {
            fs_isolation: fs.into(),
            ..DriverCapabilities::default()
        };
        assert!(!facts(isolation(FsIsolation::None)).unwrap().has_image);
        assert!(facts(isolation(FsIsolation::Image)).unwrap().has_image);
        let network = DriverCapabilities {
            must_create_network: true,
            ..DriverCapabilities::default()
        };
        let remote = DriverCapabilities {
            remote_tasks: true,
            ..DriverCapabilities::default()
        };
        let later = DriverCapabilities {
            fs_isolation: 3,
            ..DriverCapabilities::default()
        };
        for (able, want) in [
            (
                isolation(FsIsolation::Chroot),
                "isolation chroot: supported are none and image",
            ),
            (later, "isolation 3: supported are none and image"),
            (network, "must_create_network"),
            (remote, "remote_tasks"),
        ] {
            let problem = facts(able).unwrap_err();
            assert!(problem.contains(want), "{problem}");
        }
    }

    #[test]
    fn a_driver_has_a_plain_name() {
        assert_eq!(check_name("containerd-driver"), Ok(()));
        for name in ["", "a b", "a/b", &"x".repeat(129)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
