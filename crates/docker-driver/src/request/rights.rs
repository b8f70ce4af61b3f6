//! Rights of a container on its host: capabilities, devices, namespaces, runtime.

use std::collections::BTreeSet;

use bollard::models::{DeviceMapping, HostConfig, HostConfigCgroupnsModeEnum as CgroupNamespace};

use super::mounts;
use super::parts::{some, text};
use crate::options::{Device, Options};
use crate::settings::{EngineKind, Settings};

/// Capabilities that the engine gives by default. Source: Docker's public documentation.
const ENGINE_CAPS: [&str; 14] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "NET_RAW",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];
/// Those that podman gives. Source: the public documentation of its containers.conf.
const PODMAN_CAPS: [&str; 11] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];
const ALL: &str = "ALL";

pub(super) fn set(
    host: &mut HostConfig,
    options: &Options,
    settings: &Settings,
) -> Result<(), String> {
    if options.privileged && !settings.config.allow_privileged {
        return Err(format!(
            "option privileged: this node does not allow it: set {} = true on the node, or leave it out",
            settings.setting("allow_privileged")
        ));
    }
    host.privileged = options.privileged.then_some(true);
    set_capabilities(host, options, settings)?;
    host.security_opt = some(options.security_opt.clone());
    let devices: Result<Vec<_>, _> = options.devices.iter().map(device).collect();
    host.devices = some(devices?);
    host.group_add = some(options.group_add.clone());
    for (option, mode) in [
        ("ipc", &options.ipc_mode),
        ("pid", &options.pid_mode),
        ("userns", &options.userns_mode),
        ("uts", &options.uts_mode),
    ] {
        let is_allowed = settings
            .config
            .allow_host_modes
            .iter()
            .any(|name| name == option);
        if mode == "host" && !is_allowed {
            return Err(format!(
                "option {option}_mode: this node does not share its {option} namespace: add \
                 {option:?} to {} on the node, or leave it out",
                settings.setting("allow_host_modes")
            ));
        }
    }
    // Podman joins the namespace of any process, by its file.
    if options.userns_mode.starts_with("ns:") {
        mounts::allow_volumes(settings, "option userns: \"ns:\"")?;
    }
    host.ipc_mode = text(&options.ipc_mode);
    host.pid_mode = text(&options.pid_mode);
    host.userns_mode = text(&options.userns_mode);
    host.uts_mode = text(&options.uts_mode);
    host.cgroupns_mode = match options.cgroupns.as_str() {
        "" => None,
        "host" => Some(CgroupNamespace::HOST),
        "private" => Some(CgroupNamespace::PRIVATE),
        other => {
            return Err(format!(
                "option cgroupns: unknown mode {other:?}: use host or private"
            ));
        }
    };
    let runtime = &options.runtime;
    if !runtime.is_empty() && !settings.config.allow_runtimes.contains(runtime) {
        return Err(format!(
            "option runtime: {runtime:?} is not among this node's {}: {}",
            settings.setting("allow_runtimes"),
            settings.config.allow_runtimes.join(", ")
        ));
    }
    host.runtime = text(runtime);
    Ok(())
}

/// Adds and drops the task's capabilities, and drops the engine's defaults that the node does not
/// allow.
fn set_capabilities(
    host: &mut HostConfig,
    options: &Options,
    settings: &Settings,
) -> Result<(), String> {
    let allowed: BTreeSet<String> = settings
        .config
        .allow_caps
        .iter()
        .map(|cap| plain(cap))
        .collect();
    let allows = |cap: &str| allowed.contains(ALL) || allowed.contains(cap);
    let added: BTreeSet<String> = options.cap_add.iter().map(|cap| plain(cap)).collect();
    let refused: Vec<String> = added.iter().filter(|cap| !allows(cap)).cloned().collect();
    if !refused.is_empty() {
        return Err(format!(
            "option cap_add: this node does not allow {}: add it to {} on the node, or leave it out",
            refused.join(", "),
            settings.setting("allow_caps")
        ));
    }
    let mut dropped: BTreeSet<String> = options.cap_drop.iter().map(|cap| plain(cap)).collect();
    if !options.privileged && !dropped.contains(ALL) {
        let given: &[&str] = match settings.engine_kind {
            EngineKind::Docker => &ENGINE_CAPS,
            EngineKind::Podman => &PODMAN_CAPS,
        };
        let denied = given.iter().filter(|cap| !allows(cap));
        dropped.extend(denied.map(|cap| (*cap).to_owned()));
    }
    host.cap_add = some(added.into_iter().map(full).collect());
    host.cap_drop = some(dropped.into_iter().map(full).collect());
    Ok(())
}

/// Returns the name in capitals and without `CAP_`.
fn plain(cap: &str) -> String {
    let name = cap.trim().to_ascii_uppercase();
    name.strip_prefix("CAP_").map(str::to_owned).unwrap_or(name)
}

fn full(cap: String) -> String {
    if cap == ALL {
        cap
    } else {
        format!("CAP_{cap}")
    }
}

fn device(device: &Device) -> Result<DeviceMapping, String> {
    if device.host_path.is_empty() {
        let message = "option devices: host_path is missing: write host_path = \"/dev/fuse\"";
        return Err(message.to_owned());
    }
    let inside = text(&device.container_path).unwrap_or_else(|| device.host_path.clone());
    let permissions = text(&device.cgroup_permissions).unwrap_or_else(|| "rwm".to_owned());
    if permissions.contains(|c| !"rwm".contains(c)) {
        return Err(format!(
            "option devices: cgroup_permissions {permissions:?} has others than r, w and m"
        ));
    }
    Ok(DeviceMapping {
        path_on_host: Some(device.host_path.clone()),
        path_in_container: Some(inside),
        cgroup_permissions: Some(permissions),
    })
}
