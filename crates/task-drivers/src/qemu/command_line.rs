//! The command line of the emulator, from the options of a job. No I/O.

use std::path::Path;

use model::AllocatedPort;

use super::options::Options;

/// The monitor's socket, in the task's directory for temporary files.
pub(super) const MONITOR: &str = "qemu-monitor.sock";
/// The socket of the guest's agent, in the task's directory, where Nomad has it.
const GUEST_AGENT: &str = "/qa.sock";
/// Memory of a machine, in MiB. Source: Nomad's public limits.
const MEMORY_MIB: std::ops::RangeInclusive<u32> = 128..=4_000_000;
const MONITOR_OPTION: &str = "-monitor";
const KVM: &str = "kvm";

/// What a machine gets beside the options of its job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Machine<'a> {
    pub(super) name: &'a str,
    /// The disk's image, as the emulator sees it.
    pub(super) image: &'a Path,
    pub(super) memory_mib: u32,
    /// Number of dedicated cores; 0: none.
    pub(super) cores: usize,
    pub(super) ports: &'a [AllocatedPort],
    /// The allocation has a network of its own.
    pub(super) has_network: bool,
}

/// Returns whether the machine needs the device `/dev/kvm`.
pub(super) fn uses_kvm(options: &Options) -> bool {
    options.accelerator == KVM
}

/// Returns whether a command line of [`command_line`] makes the monitor's socket.
pub(super) fn has_monitor(args: &[String]) -> bool {
    args.first().is_some_and(|first| first == MONITOR_OPTION)
}

/// Returns the emulator's arguments; the job's own are the last ones.
///
/// # Errors
/// The first wrong option, and how to correct it.
pub(super) fn command_line(options: &Options, machine: Machine<'_>) -> Result<Vec<String>, String> {
    if !MEMORY_MIB.contains(&machine.memory_mib) {
        return Err(format!(
            "memory: a machine has 128 to 4000000 MB; the task has {}",
            machine.memory_mib
        ));
    }
    let mut line = Vec::new();
    let mut add = |option: &str, value: String| line.extend([option.to_owned(), value]);
    if options.graceful_shutdown {
        add(
            MONITOR_OPTION,
            format!("unix:/tmp/{MONITOR},server=on,wait=off"),
        );
    }
    let (kind, accelerator) = (&options.machine_type, &options.accelerator);
    add("-machine", format!("type={kind},accel={accelerator}"));
    add("-name", escaped(machine.name));
    add("-m", format!("{}M", machine.memory_mib));
    let image = escaped(&machine.image.to_string_lossy());
    add(
        "-drive",
        format!("file={image},if={}", options.drive_interface),
    );
    if uses_kvm(options) {
        add("-cpu", "host".to_owned());
    }
    if machine.cores > 0 {
        add("-smp", machine.cores.to_string());
    }
    if options.guest_agent {
        let socket = format!("socket,path={GUEST_AGENT},server=on,wait=off,id=qga0");
        add("-chardev", socket);
        add("-device", "virtio-serial".to_owned());
        let port = "virtserialport,chardev=qga0,name=org.qemu.guest_agent.0";
        add("-device", port.to_owned());
    }
    if !options.port_map.is_empty() {
        let forwards = forwards(options, machine)?;
        add("-netdev", format!("user,id=user.0{forwards}"));
        add("-device", "virtio-net,netdev=user.0".to_owned());
    }
    line.push("-nographic".to_owned());
    line.extend(options.args.iter().cloned());
    Ok(line)
}

/// Returns the forwarded ports, each for TCP and UDP, as in `,hostfwd=tcp::22000-:22`.
fn forwards(options: &Options, machine: Machine<'_>) -> Result<String, String> {
    let mut text = String::new();
    for (label, inside) in &options.port_map {
        let port = machine.ports.iter().find(|port| port.label == *label);
        let port = port.ok_or_else(|| {
            format!(
                "port_map: the group has no port {label:?}: add port {label:?} {{}} to its network block"
            )
        })?;
        let inside: u16 = inside.parse().map_err(|_| {
            format!("port_map: {inside:?} of {label:?} is not a valid port: want 1 to 65535")
        })?;
        let (address, outside) = if machine.has_network {
            // The node forwards its port to this one.
            ("", if port.to > 0 { port.to } else { port.value })
        } else {
            // QEMU forwards from addresses of IPv4 alone.
            let is_ipv4 = port.host_ip.parse::<std::net::Ipv4Addr>().is_ok();
            let address = if is_ipv4 { port.host_ip.as_str() } else { "" };
            (address, port.value)
        };
        for protocol in ["tcp", "udp"] {
            text += &format!(",hostfwd={protocol}:{address}:{outside}-:{inside}");
        }
    }
    Ok(text)
}

/// Doubles commas, which end a value otherwise.
fn escaped(value: &str) -> String {
    value.replace(',', ",,")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn port(label: &str, value: u16, to: u16, host_ip: &str) -> AllocatedPort {
        AllocatedPort {
            label: label.to_owned(),
            value,
            to,
            host_ip: host_ip.to_owned(),
            ..AllocatedPort::default()
        }
    }

    fn line(config: &Value, edit: impl FnOnce(&mut Machine<'_>)) -> Result<String, String> {
        let mut config = config.clone();
        config["image_path"] = json!("local/a.img");
        let options: Options = serde_json::from_value(config).unwrap();
        let ports = [
            port("ssh", 22_000, 0, "10.0.0.1"),
            port("web", 22_001, 80, "fd00::1"),
        ];
        let mut machine = Machine {
            name: "vm-1",
            image: Path::new("/local/a.img"),
            memory_mib: 512,
            cores: 0,
            ports: &ports,
            has_network: false,
        };
        edit(&mut machine);
        command_line(&options, machine).map(|line| line.join(" "))
    }

    #[test]
    fn every_option_has_its_part_of_the_command_line() {
        let plain = "-machine type=pc,accel=tcg -name vm-1 -m 512M -drive file=/local/a.img,if=ide";
        let table: [(Value, String); 8] = [
            (json!({}), format!("{plain} -nographic")),
            (
                json!({"drive_interface": "virtio"}),
                format!("{} -nographic", plain.replace("if=ide", "if=virtio")),
            ),
            (
                json!({"machine_type": "q35"}),
                format!("{} -nographic", plain.replace("type=pc", "type=q35")),
            ),
            (
                json!({"accelerator": "kvm"}),
                format!("{} -cpu host -nographic", plain.replace("tcg", "kvm")),
            ),
            (
                json!({"graceful_shutdown": true}),
                format!(
                    "-monitor unix:/tmp/qemu-monitor.sock,server=on,wait=off {plain} -nographic"
                ),
            ),
            (
                json!({"guest_agent": true}),
                format!(
                    "{plain} -chardev socket,path=/qa.sock,server=on,wait=off,id=qga0 -device virtio-serial \
                     -device virtserialport,chardev=qga0,name=org.qemu.guest_agent.0 -nographic"
                ),
            ),
            (
                json!({"port_map": [{"ssh": 22}, {"web": "8080"}]}),
                format!(
                    "{plain} -netdev user,id=user.0,hostfwd=tcp:10.0.0.1:22000-:22,\
                     hostfwd=udp:10.0.0.1:22000-:22,hostfwd=tcp::22001-:8080,hostfwd=udp::22001-:8080 \
                     -device virtio-net,netdev=user.0 -nographic"
                ),
            ),
            (
                json!({"args": ["-smp", "2", "-snapshot"]}),
                format!("{plain} -nographic -smp 2 -snapshot"),
            ),
        ];
        for (config, want) in table {
            assert_eq!(line(&config, |_| {}).unwrap(), want, "{config}");
        }
    }

    #[test]
    fn ports_of_an_allocations_own_network_are_those_inside_it() {
        let config = json!({"port_map": {"ssh": 22, "web": 8080}});
        let said = line(&config, |machine| machine.has_network = true).unwrap();
        for part in [":22000-:22", "hostfwd=tcp::80-:8080"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(!said.contains("10.0.0.1"), "{said}");
    }

    #[test]
    fn dedicated_cores_are_the_machines_and_commas_of_names_end_no_value() {
        let said = line(&json!({}), |machine| {
            machine.cores = 3;
            machine.name = "a,b";
            machine.image = Path::new("/local/x,if=none");
        });
        let said = said.unwrap();
        for part in ["-smp 3", "-name a,,b", "file=/local/x,,if=none,if=ide"] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }

    #[test]
    fn wrong_values_are_refused_with_what_to_do() {
        for (config, memory_mib, problem) in [
            (json!({}), 127, "128 to 4000000 MB; the task has 127"),
            (json!({}), 4_000_001, "the task has 4000001"),
            (json!({"port_map": {"db": 1}}), 128, "no port \"db\""),
            (
                json!({"port_map": {"ssh": "x"}}),
                128,
                "\"x\" of \"ssh\" is not a valid port",
            ),
        ] {
            let error = line(&config, |machine| machine.memory_mib = memory_mib).unwrap_err();
            assert!(error.contains(problem), "{config}: {error}");
        }
    }

    #[test]
    fn the_monitor_is_found_in_its_own_command_line_alone() {
        let with = |config: Value| {
            let said = line(&config, |_| {}).unwrap();
            has_monitor(&said.split(' ').map(str::to_owned).collect::<Vec<_>>())
        };
        assert!(with(json!({"graceful_shutdown": true})));
        assert!(!with(json!({"args": ["-monitor", "stdio"]})));
    }
}
