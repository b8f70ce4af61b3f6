//! Settings of the nodes of `kafila dev`: those of the file of `-node-config`, and those that the suite sets.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use service_kit::TlsConfig;
use service_kit::config;
use service_kit::run::BoxError;

use super::terminal::NODE_PREFIX;
use crate::args::dev::Dev;

/// Grace period for requests in progress during shutdown.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// Keys of client-node that the suite sets itself, each with the reason.
const OWN: [(&str, &str); 10] = [
    ("data_dir", "-data-dir chooses the directory"),
    ("dial_out", "nodes and gateway are one process"),
    ("gateways", "nodes call the gateway of this process"),
    ("introduction", "nodes need no token here"),
    ("listen", "each node chooses a free port"),
    ("name", "nodes are called dev-0, dev-1, …"),
    ("shutdown_grace_period", "all services have the same"),
    (
        "stop_tasks_on_exit",
        "-data-dir decides whether tasks go on",
    ),
    ("telemetry", "-log sets the log filter"),
    ("tls", "processes talk plaintext on loopback addresses"),
];

/// Returns the settings that all nodes share; the defaults without a file.
///
/// # Errors
/// The file cannot be read, has an unknown key or a wrong value, or sets a key of the suite.
pub(super) fn shared_config(file: Option<&Path>) -> Result<client_node::Config, BoxError> {
    let Some(file) = file else {
        return Ok(client_node::Config::default());
    };
    let config: client_node::Config =
        config::load_file(client_node::SERVICE, file).map_err(|error| {
            let chain = service_kit::run::chain(&error);
            format!("-node-config: {chain}")
        })?;
    let text = std::fs::read_to_string(file)?;
    let keys: toml::Table = toml::from_str(&text)?;
    let refused: Vec<String> = OWN
        .into_iter()
        .filter(|(key, _)| keys.contains_key(*key))
        .map(|(key, reason)| format!("{key} ({reason})"))
        .collect();
    if refused.is_empty() {
        return Ok(config);
    }
    let message = format!(
        "-node-config: {}: kafila dev sets these keys itself, so remove them: {}",
        file.display(),
        refused.join(", ")
    );
    Err(message.into())
}

/// Returns the settings of one node.
pub(super) fn node_config(
    args: &Dev,
    shared: &client_node::Config,
    directory: &Path,
    gateway: &str,
    number: u16,
) -> client_node::Config {
    let data_dir: PathBuf = directory.join(format!("{NODE_PREFIX}{number}"));
    // As reachable as the gateway: tasks' ports need not be open to the network.
    let host_ip = Some(args.listen.ip()).filter(IpAddr::is_loopback);
    client_node::Config {
        gateways: vec![gateway.to_owned()],
        data_dir: Some(data_dir),
        tls: TlsConfig::insecure(),
        name: Some(format!("dev-{number}")),
        host_ip: shared.host_ip.or(host_ip),
        stop_tasks_on_exit: args.data_dir.is_none(),
        shutdown_grace_period: GRACE,
        ..shared.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(listen: &str) -> Dev {
        Dev {
            data_dir: None,
            job: Vec::new(),
            listen: listen.parse().unwrap(),
            dangerously_expose_plaintext: false,
            nodes: 1,
            node_config: None,
            log: String::new(),
        }
    }

    fn written(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    #[test]
    fn ports_of_tasks_are_as_reachable_as_the_gateway() {
        let default = client_node::Config::default();
        let host_ip = |listen: &str| {
            node_config(&args(listen), &default, Path::new("/"), "http://gateway", 0).host_ip
        };
        assert_eq!(host_ip("127.0.0.1:4646"), "127.0.0.1".parse().ok());
        assert_eq!(host_ip("0.0.0.0:4646"), None);
        assert_eq!(host_ip("10.0.0.1:4646"), None);
    }

    #[test]
    fn the_file_sets_everything_but_the_keys_of_the_suite() {
        let file = written(
            "node_class = \"large\"\nhost_ip = \"10.0.0.1\"\n\
             [drivers.docker]\nallow_privileged = true\n\
             [host_volumes.data]\npath = \"/srv/data\"\n",
        );
        let shared = shared_config(Some(file.path())).unwrap();
        let args = args("127.0.0.1:4646");
        let node = node_config(&args, &shared, Path::new("/"), "http://gateway", 1);
        assert!(node.drivers.docker.allow_privileged);
        assert_eq!(node.host_volumes["data"].path, Path::new("/srv/data"));
        assert_eq!(node.node_class, "large");
        assert_eq!(node.host_ip, "10.0.0.1".parse().ok());
        assert_eq!(node.name.as_deref(), Some("dev-1"));
        assert!(node.stop_tasks_on_exit);
    }

    #[test]
    fn keys_of_the_suite_are_refused_with_a_reason() {
        let refused = |text: &str| {
            let file = written(text);
            shared_config(Some(file.path())).unwrap_err().to_string()
        };
        // A value that is the default is refused as well: the suite may choose another.
        let said =
            refused("data_dir = \"/srv\"\nstop_tasks_on_exit = false\n[tls]\ninsecure = true\n");
        for part in [
            "data_dir (-data-dir chooses the directory)",
            "stop_tasks_on_exit (-data-dir decides",
            "tls (",
        ] {
            assert!(said.contains(part), "{said}");
        }
        let said = refused("host_volume = 1\n");
        assert!(
            said.contains("-node-config: ") && said.contains("host_volume"),
            "{said}"
        );
        let missing = shared_config(Some(Path::new("/nonexistent.toml"))).unwrap_err();
        assert!(
            missing.to_string().contains("/nonexistent.toml"),
            "{missing}"
        );
    }

    #[test]
    fn every_key_of_the_suite_is_a_setting() {
        let defaults = serde_json::to_value(client_node::Config::default()).unwrap();
        for (key, _) in OWN {
            assert!(defaults.get(key).is_some(), "{key}");
        }
    }
}
