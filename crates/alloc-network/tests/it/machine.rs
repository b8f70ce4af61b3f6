//! A machine for one test: the test's thread in a network namespace of its own.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use alloc_network::{Mode, Network, NetworkConfig, Networks, Plan, PortMapping, Settings};
use model::AllocId;
use model::job::Dns;
use nix::sched::{CloneFlags, setns, unshare};

pub(crate) struct Machine {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) config: NetworkConfig,
}

impl Machine {
    /// Moves the test's thread into a new machine with the address 10.7.0.1; `None`: this one lacks
    /// what the tests need.
    pub(crate) fn new() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let config = NetworkConfig {
            run_dir: directory.path().join("run"),
            cni_config_dir: directory.path().join("cni"),
            ..NetworkConfig::default()
        };
        let machine = Self { directory, config };
        let offer = machine.networks().offer();
        if let Some(problem) = &offer.modes["bridge"] {
            assert!(
                std::env::var_os("KAFILA_REQUIRE_NETWORKS").is_none(),
                "{problem}"
            );
            eprintln!("skipped: {problem}");
            return None;
        }
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        for args in [
            "link set lo up",
            "link add host0 type bridge",
            "addr add 10.7.0.1/24 dev host0",
            "addr add fd07::1/64 dev host0 nodad",
            "link set host0 up",
        ] {
            run("ip", args);
        }
        Some(machine)
    }

    pub(crate) fn networks(&self) -> Networks {
        Networks::new(Settings {
            config: self.config.clone(),
            state_dir: self.directory.path().join("networks"),
            boot_id: "boot-1".to_owned(),
        })
    }

    /// Lists the interfaces besides the machine's own and the bridge.
    pub(crate) fn interfaces(&self) -> Vec<String> {
        let listed = run("ip", "-o link show");
        let names = listed.lines().filter_map(|line| line.split(": ").nth(1));
        let own = ["lo", "host0", "kafila"];
        names
            .filter(|name| !own.contains(name))
            .map(str::to_owned)
            .collect()
    }

    pub(crate) fn pins(&self) -> usize {
        count(&self.config.run_dir.join("netns"))
    }

    pub(crate) fn leases(&self) -> usize {
        let directory = self.config.run_dir.join("leases/kafila");
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        entries
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("172."))
            .count()
    }
}

fn count(directory: &Path) -> usize {
    std::fs::read_dir(directory).into_iter().flatten().count()
}

/// Returns the table's elements that name an allocation.
pub(crate) fn elements() -> usize {
    run("nft", "list table inet kafila")
        .matches("comment")
        .count()
}

pub(crate) fn run(program: &str, args: &str) -> String {
    let output = Command::new(program)
        .args(args.split(' '))
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// A plan with ports, as (address, port of the host, port inside).
pub(crate) fn plan(number: u128, mode: Mode, ports: &[(Option<&str>, u16, u16)]) -> Plan {
    let mapping = |(host_ip, host_port, to): &(Option<&str>, u16, u16)| PortMapping {
        host_ip: host_ip.map(|ip| ip.parse().unwrap()),
        host_port: *host_port,
        to: *to,
    };
    Plan {
        alloc_id: AllocId::from_random(number),
        mode,
        ports: ports.iter().map(mapping).collect(),
        hostname: "web".to_owned(),
        dns: Dns::default(),
        cni_args: "IgnoreUnknown=true".to_owned(),
    }
}

/// Serves its name at a port in the namespace, until the test ends.
pub(crate) fn serve(network: &Network, port: u16, name: &'static str) {
    let file = File::open(&network.namespace).unwrap();
    let (ready, is_ready) = mpsc::channel();
    thread::spawn(move || {
        setns(file, CloneFlags::CLONE_NEWNET).unwrap();
        let listener = TcpListener::bind(("::", port)).unwrap();
        ready.send(()).unwrap();
        for connection in listener.incoming() {
            let _ = connection.unwrap().write_all(name.as_bytes());
        }
    });
    is_ready.recv().unwrap();
}

/// Connects from the machine and returns what it reads.
pub(crate) fn call(address: &str, port: u16) -> Result<String, String> {
    let address = SocketAddr::new(address.parse::<IpAddr>().unwrap(), port);
    let limit = Duration::from_secs(3);
    let mut connection =
        TcpStream::connect_timeout(&address, limit).map_err(|error| error.to_string())?;
    connection.set_read_timeout(Some(limit)).unwrap();
    let mut text = String::new();
    connection
        .read_to_string(&mut text)
        .map_err(|error| error.to_string())?;
    Ok(text)
}

/// Connects from the namespace.
pub(crate) fn call_from(network: &Network, address: &str, port: u16) -> Result<String, String> {
    let file = File::open(&network.namespace).unwrap();
    let address = address.to_owned();
    let calling = thread::spawn(move || {
        setns(file, CloneFlags::CLONE_NEWNET).unwrap();
        call(&address, port)
    });
    calling.join().unwrap()
}

/// Writes an executable script, and returns its directory for `cni_path`.
pub(crate) fn script(machine: &Machine, name: &str, text: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let directory = machine.directory.path().join("plugins");
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{text}")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    directory
}

/// Removes a network as the end of its allocation does.
pub(crate) fn remove(networks: &Networks, alloc_id: AllocId) {
    networks.clear(alloc_id).unwrap();
    networks.forget(alloc_id).unwrap();
}
