//! Attributes of a node with podman. Source: the public ones of Nomad's driver.

use std::collections::BTreeMap;

use bollard::models::SystemInfo;

use crate::config::EngineConfig;
use crate::settings::EngineKind;

/// Returns the attributes, as in `driver.podman.version`.
pub(crate) fn attributes(
    version: String,
    about: &SystemInfo,
    config: &EngineConfig,
) -> BTreeMap<String, String> {
    let security = about.security_options.iter().flatten();
    let security: Vec<&str> = security
        .filter_map(|option| option.split(',').next()?.strip_prefix("name="))
        .collect();
    let has = |name: &str| security.contains(&name).to_string();
    let only = |flag: bool| if flag { "true" } else { "" }.to_owned();
    let groups = about.cgroup_version.map(|it| it.to_string());
    let attributes = [
        ("", "1".to_owned()),
        (".version", version),
        (".rootless", has("rootless")),
        (".seccompEnabled", has("seccomp")),
        (".selinuxEnabled", has("selinux")),
        (".appArmor", has("apparmor")),
        (
            ".cgroupVersion",
            groups.map_or_else(String::new, |it| format!("v{it}")),
        ),
        (
            ".ociRuntime",
            about.default_runtime.clone().unwrap_or_default(),
        ),
        (".privileged.enabled", only(config.allow_privileged)),
        (".volumes.enabled", only(config.volumes)),
    ];
    attributes
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (format!("driver.{}{name}", EngineKind::Podman.name()), value))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn attributes_are_those_of_podmans_answer() {
        let about: SystemInfo = serde_json::from_value(json!({
            "CgroupVersion": "2", "DefaultRuntime": "crun",
            "SecurityOptions": ["name=seccomp,profile=default", "name=rootless"],
        }))
        .unwrap();
        let config = EngineConfig {
            volumes: true,
            ..EngineConfig::podman()
        };
        let found = attributes("4.3.1".to_owned(), &about, &config);
        let want = [
            ("", "1"),
            (".appArmor", "false"),
            (".cgroupVersion", "v2"),
            (".ociRuntime", "crun"),
            (".rootless", "true"),
            (".seccompEnabled", "true"),
            (".selinuxEnabled", "false"),
            (".version", "4.3.1"),
            (".volumes.enabled", "true"),
        ];
        let want = want.map(|(name, value)| (format!("driver.podman{name}"), value.to_owned()));
        assert_eq!(found, want.into());
    }
}
