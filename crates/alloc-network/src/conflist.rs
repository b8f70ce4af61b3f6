//! Lists of CNI plugins: the generated one of the bridge, and those of an operator's files. No I/O.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::config::NetworkConfig;

/// Name of the bridge's network: the key of its leases.
pub(crate) const BRIDGE_NETWORK: &str = "kafila";
/// Version of the generated list: the first with CHECK, which the plugins of all supported
/// distributions speak.
const CNI_VERSION: &str = "0.4.0";

/// Plugins of a network, in the order of ADD.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ConfList {
    pub(crate) name: String,
    #[serde(rename = "cniVersion", default)]
    pub(crate) version: String,
    #[serde(default)]
    pub(crate) plugins: Vec<Value>,
}

impl ConfList {
    /// Returns the list of `mode = "bridge"`. Masquerading and port mapping are left to our own rules.
    pub(crate) fn bridge(config: &NetworkConfig) -> Self {
        let mut ranges = vec![json!([{"subnet": config.bridge_subnet}])];
        let mut routes = vec![json!({"dst": "0.0.0.0/0"})];
        if !config.bridge_subnet_ipv6.is_empty() {
            ranges.push(json!([{"subnet": config.bridge_subnet_ipv6}]));
            routes.push(json!({"dst": "::/0"}));
        }
        let bridge = json!({
            "type": "bridge",
            "bridge": config.bridge_name,
            "isGateway": true,
            "forceAddress": true,
            "hairpinMode": config.bridge_hairpin_mode,
            "ipam": {
                "type": "host-local",
                "dataDir": config.run_dir.join("leases"),
                "ranges": ranges,
                "routes": routes,
            },
        });
        Self {
            name: BRIDGE_NETWORK.to_owned(),
            version: CNI_VERSION.to_owned(),
            plugins: vec![bridge],
        }
    }

    /// Reads an operator's file: a list of plugins, or the configuration of one.
    ///
    /// # Errors
    /// The problem, without the file's name.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let list = if value.get("plugins").is_some() {
            serde_json::from_value(value).map_err(|error| error.to_string())?
        } else {
            let field = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
            Self {
                name: field("name").to_owned(),
                version: field("cniVersion").to_owned(),
                plugins: vec![value.clone()],
            }
        };
        if list.name.is_empty() {
            return Err("has no name: write \"name\": \"…\"".to_owned());
        }
        if list.plugins.is_empty() {
            return Err("has no plugins: write \"plugins\": [ … ]".to_owned());
        }
        if let Some(name) = list.types().find(|name| !is_program(name)) {
            return Err(format!(
                "has a plugin of type {name:?}: want the name of a program"
            ));
        }
        Ok(list)
    }

    /// Returns the programs of the plugins and of their address managers.
    pub(crate) fn types(&self) -> impl Iterator<Item = &str> {
        self.plugins.iter().flat_map(|plugin| {
            let ipam = plugin
                .get("ipam")
                .map(plugin_type)
                .filter(|name| !name.is_empty());
            std::iter::once(plugin_type(plugin)).chain(ipam)
        })
    }

    /// Tells whether one of the plugins maps ports.
    pub(crate) fn maps_ports(&self) -> bool {
        self.plugins
            .iter()
            .any(|plugin| has_capability(plugin, "portMappings"))
    }
}

pub(crate) fn plugin_type(plugin: &Value) -> &str {
    plugin
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

pub(crate) fn has_capability(plugin: &Value, name: &str) -> bool {
    let capabilities = plugin.get("capabilities");
    capabilities
        .and_then(|all| all.get(name))
        .and_then(Value::as_bool)
        == Some(true)
}

/// Tells whether `name` is a file's name, not a path out of the plugins' directories.
fn is_program(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bridge_has_the_settings_of_the_node() {
        let mut config = NetworkConfig::default();
        let list = ConfList::bridge(&config);
        assert_eq!(list.plugins[0]["bridge"], "kafila");
        assert_eq!(
            list.plugins[0]["ipam"]["ranges"],
            json!([[{"subnet": "172.26.64.0/20"}]])
        );
        assert_eq!(list.types().collect::<Vec<_>>(), ["bridge", "host-local"]);
        assert!(!list.maps_ports());
        config.bridge_name = "other".to_owned();
        config.bridge_hairpin_mode = false;
        config.bridge_subnet_ipv6 = "fd00::/64".to_owned();
        let bridge = &ConfList::bridge(&config).plugins[0];
        assert_eq!(bridge["bridge"], "other");
        assert_eq!(bridge["hairpinMode"], false);
        assert_eq!(
            bridge["ipam"]["ranges"][1],
            json!([{"subnet": "fd00::/64"}])
        );
        assert_eq!(bridge["ipam"]["routes"][1], json!({"dst": "::/0"}));
    }

    #[test]
    fn files_hold_lists_or_single_plugins() {
        let list = ConfList::parse(
            r#"{"name": "lan", "cniVersion": "1.0.0", "plugins": [
                {"type": "macvlan", "ipam": {"type": "dhcp"}},
                {"type": "portmap", "capabilities": {"portMappings": true}}]}"#,
        )
        .unwrap();
        assert_eq!(
            list.types().collect::<Vec<_>>(),
            ["macvlan", "dhcp", "portmap"]
        );
        assert!(list.maps_ports());
        let single = ConfList::parse(r#"{"name": "p", "cniVersion": "0.4.0", "type": "ptp"}"#);
        assert_eq!(single.unwrap().types().collect::<Vec<_>>(), ["ptp"]);
        for (text, problem) in [
            ("{", "EOF"),
            (r#"{"type": "ptp"}"#, "no name"),
            (r#"{"name": "x", "plugins": []}"#, "no plugins"),
            (r#"{"name": "x", "plugins": [{"type": "../sh"}]}"#, "../sh"),
            (r#"{"name": "x"}"#, "\"\""),
        ] {
            let error = ConfList::parse(text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
