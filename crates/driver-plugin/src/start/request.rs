//! A task in the messages of the protocol.

use std::collections::BTreeMap;

use model::MemoryMax;
use task_drivers::{DriverAddress, MachineSize, ResourceLimits, TaskConfig, TaskDirs, output_copy};

use crate::connect::Facts;
use crate::settings::Settings;
use crate::task::plugin_id;
use crate::wire::drivers as wire;
use crate::wire::drivers::network_isolation_spec::NetworkIsolationMode;

/// Returns the message of a task; `block` is its config block in the plugin's form.
pub(super) fn task(
    settings: &Settings,
    facts: &Facts,
    config: TaskConfig,
    dirs: &TaskDirs,
    block: Vec<u8>,
    pipes: Option<output_copy::Pipes>,
) -> wire::TaskConfig {
    let alloc_dir = dirs.root.parent().unwrap_or(&dirs.root);
    let path = |path: &std::path::Path| path.display().to_string();
    let pipes = pipes.map(|pipes| (path(&pipes.stdout), path(&pipes.stderr)));
    // Drivers open what they are given.
    let null = || ("/dev/null".to_owned(), "/dev/null".to_owned());
    let (stdout_path, stderr_path) = pipes.unwrap_or_else(null);
    let mut mounts: Vec<wire::Mount> = config.mounts.iter().map(mount).collect();
    if let Some(network) = config.network.as_ref().filter(|_| facts.has_image) {
        for (inside, outside) in [
            ("/etc/hosts", &network.hosts),
            ("/etc/resolv.conf", &network.resolv_conf),
        ] {
            mounts.push(wire::Mount {
                task_path: inside.to_owned(),
                host_path: path(outside),
                readonly: true,
                propagation_mode: "private".to_owned(),
            });
        }
    }
    let isolation = config
        .network
        .as_ref()
        .map(|network| wire::NetworkIsolationSpec {
            mode: NetworkIsolationMode::Group.into(),
            path: path(&network.namespace),
            ..wire::NetworkIsolationSpec::default()
        });
    let ports = config.ports.iter().map(|port| wire::PortMapping {
        label: port.label.clone(),
        value: port.value.into(),
        to: port.to.into(),
        host_ip: port.host_ip.clone(),
    });
    let resources = wire::Resources {
        ports: ports.collect(),
        ..resources(&config.resources, config.machine)
    };
    wire::TaskConfig {
        id: plugin_id(&config.id),
        name: config.id.task.clone(),
        msgpack_driver_config: block,
        env: config.env,
        resources: Some(resources),
        mounts,
        user: config.user,
        alloc_dir: path(alloc_dir),
        stdout_path,
        stderr_path,
        task_group_name: config.names.group,
        job_name: config.names.job_name,
        alloc_id: config.id.alloc_id.to_string(),
        network_isolation_spec: isolation,
        job_id: config.names.job_id,
        namespace: config.names.namespace,
        node_name: settings.node_name.clone(),
        node_id: settings.node_id.clone(),
        ..wire::TaskConfig::default()
    }
}

fn mount(mount: &task_drivers::TaskMount) -> wire::Mount {
    let propagation = if mount.is_shared {
        "bidirectional"
    } else {
        "private"
    };
    wire::Mount {
        task_path: mount.destination.clone(),
        host_path: mount.source.clone(),
        readonly: mount.read_only,
        propagation_mode: propagation.to_owned(),
    }
}

/// Source: Nomad's public behaviour: the kernel's limit is the higher of the two, and shares are MHz.
fn resources(limits: &ResourceLimits, machine: MachineSize) -> wire::Resources {
    let cpu_shares = i64::try_from(limits.cpu_mhz).unwrap_or(i64::MAX);
    let memory_mb = i64::from(limits.memory_mib);
    let memory_max_mb = match limits.memory_max {
        MemoryMax::AsAsked => 0,
        MemoryMax::Mib(mib) => i64::from(mib),
        MemoryMax::Unlimited => -1,
    };
    let limit_mb = if memory_max_mb < 0 {
        0
    } else {
        memory_max_mb.max(memory_mb)
    };
    let cores: Vec<String> = limits.cores.iter().map(u16::to_string).collect();
    #[expect(clippy::cast_precision_loss, reason = "MHz are far below 2^52")]
    let percent_ticks = limits.cpu_mhz as f64 / machine.cpu_mhz.max(1) as f64;
    wire::Resources {
        allocated_resources: Some(wire::AllocatedTaskResources {
            cpu: Some(wire::AllocatedCpuResources { cpu_shares }),
            memory: Some(wire::AllocatedMemoryResources {
                memory_mb,
                memory_max_mb,
            }),
            networks: Vec::new(),
        }),
        linux_resources: Some(wire::LinuxResources {
            cpu_shares,
            memory_limit_bytes: limit_mb * 1024 * 1024,
            cpuset_cpus: cores.join(","),
            percent_ticks,
            ..wire::LinuxResources::default()
        }),
        ports: Vec::new(),
    }
}

/// Returns a task's address in a network of the driver.
pub(super) fn address(network: wire::NetworkOverride, task: &wire::TaskConfig) -> DriverAddress {
    let assigned = task.resources.iter().flat_map(|resources| &resources.ports);
    let mut ports = BTreeMap::new();
    for port in assigned {
        let inside = network.port_map.get(&port.label);
        let inside = inside.and_then(|inside| u16::try_from(*inside).ok());
        if let (Ok(value), Some(inside)) = (u16::try_from(port.value), inside) {
            ports.insert(value, inside);
        }
    }
    DriverAddress {
        host: network.addr,
        is_advertised: network.auto_advertise,
        ports,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_the_kernel() {
        let limits = ResourceLimits {
            cpu_mhz: 500,
            cores: vec![0, 3],
            memory_mib: 64,
            memory_max: MemoryMax::Mib(128),
        };
        let machine = MachineSize {
            cpu_mhz: 2_000,
            cores: 4,
        };
        let found = resources(&limits, machine);
        let linux = found.linux_resources.unwrap();
        assert_eq!(linux.memory_limit_bytes, 128 << 20);
        assert_eq!((linux.cpu_shares, linux.cpuset_cpus.as_str()), (500, "0,3"));
        assert!((linux.percent_ticks - 0.25).abs() < 1e-9);
        let memory = found.allocated_resources.unwrap().memory.unwrap();
        assert_eq!((memory.memory_mb, memory.memory_max_mb), (64, 128));
        let unlimited = ResourceLimits {
            memory_max: MemoryMax::Unlimited,
            ..limits
        };
        let linux = resources(&unlimited, machine).linux_resources.unwrap();
        assert_eq!(linux.memory_limit_bytes, 0);
    }

    #[test]
    fn ports_of_a_driver_s_network_are_found_by_label() {
        let network = wire::NetworkOverride {
            port_map: [("http".to_owned(), 80), ("bad".to_owned(), 70_000)].into(),
            addr: "10.0.0.2".to_owned(),
            auto_advertise: true,
        };
        let port = |label: &str, value| wire::PortMapping {
            label: label.to_owned(),
            value,
            ..wire::PortMapping::default()
        };
        let task = wire::TaskConfig {
            resources: Some(wire::Resources {
                ports: vec![port("http", 20_000), port("bad", 20_001)],
                ..wire::Resources::default()
            }),
            ..wire::TaskConfig::default()
        };
        let want = DriverAddress {
            host: "10.0.0.2".to_owned(),
            is_advertised: true,
            ports: [(20_000, 80)].into(),
        };
        assert_eq!(address(network, &task), want);
    }
}
