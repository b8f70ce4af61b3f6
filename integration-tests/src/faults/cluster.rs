//! Processes of the cluster: three members of etcd, two of every service and some nodes, each on its
//! own host.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::fcntl::{FallocateFlags, fallocate};
use nix::sys::signal::Signal;
use tokio::time::timeout;

use super::hosts;
use super::network::Network;
use crate::binary;
use crate::process::Process;

/// Disk size of an etcd member, in MiB: its write-ahead log (two files of 64 MiB) and a long history.
const DISK_MIB: u64 = 768;
/// The file that fills a disk.
const FILLER: &str = "filler";

/// All processes. Dropping it removes everything.
#[derive(Debug)]
pub struct Cluster {
    // Killed before the network is removed.
    processes: BTreeMap<String, Process>,
    pub network: Network,
    /// Logs, and the data of nodes.
    directory: PathBuf,
    disks: PathBuf,
    etcd: PathBuf,
}

impl Cluster {
    /// Creates the disks; starts no process.
    ///
    /// # Errors
    /// A disk cannot be created.
    pub fn new(network: Network, directory: &Path) -> Result<Self> {
        fs::create_dir_all(directory)?;
        let disks = std::env::temp_dir().join("kafila-faults-disks");
        unmount_all(&disks);
        for member in hosts::members() {
            let disk = disks.join(member);
            fs::create_dir_all(&disk)?;
            let size = format!("size={DISK_MIB}m");
            run(Command::new("mount")
                .args(["-t", "tmpfs", "-o", &size, "kafila-faults"])
                .arg(&disk))?;
        }
        Ok(Self {
            processes: BTreeMap::new(),
            network,
            directory: directory.to_owned(),
            disks,
            etcd: program_on_path("etcd")?,
        })
    }

    /// Starts etcd, then the other processes.
    ///
    /// # Errors
    /// A process cannot be started.
    pub fn start_all(&mut self) -> Result<()> {
        for host in hosts::all().into_iter().filter(|host| host != hosts::USER) {
            self.start(&host)?;
        }
        Ok(())
    }

    /// Starts or restarts the process of a host.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(&mut self, host: &str) -> Result<()> {
        let kind = hosts::kind(host);
        let command = if kind == "etcd" {
            self.etcd_command(host)
        } else {
            self.service_command(host, kind)
        };
        let log = self.directory.join(format!("{host}.log"));
        self.processes
            .insert(host.to_owned(), Process::start(host, command, &log)?);
        Ok(())
    }

    fn etcd_command(&self, host: &str) -> Command {
        let at = |host: &str, port: u16| format!("http://{}:{port}", self.network.address(host));
        let (client, peer) = (at(host, hosts::ETCD_PORT), at(host, hosts::ETCD_PEER_PORT));
        let members = hosts::members();
        let members: Vec<String> = members
            .iter()
            .map(|member| format!("{member}={}", at(member, hosts::ETCD_PEER_PORT)))
            .collect();
        let mut command = self.network.command(host, &self.etcd);
        command
            .args(["--name", host, "--data-dir"])
            .arg(self.disks.join(host).join("data"))
            .args([
                "--listen-client-urls",
                &client,
                "--advertise-client-urls",
                &client,
            ])
            .args([
                "--listen-peer-urls",
                &peer,
                "--initial-advertise-peer-urls",
                &peer,
            ])
            .args(["--initial-cluster", &members.join(",")])
            .args(["--initial-cluster-token", "kafila-faults"])
            // The recommended settings of a production etcd.
            .args(["--max-txn-ops", "2048", "--max-request-bytes", "4194304"])
            .args(["--log-level", "warn"]);
        command
    }

    fn service_command(&self, host: &str, service: &str) -> Command {
        let ip = self.network.address(host);
        let mut settings = vec![
            ("LISTEN__GRPC", format!("{ip}:{}", hosts::PORT)),
            ("LISTEN__METRICS", format!("{ip}:{}", hosts::PORT + 1)),
            ("TELEMETRY__LOG", "info".to_owned()),
        ];
        if service == "client-node" {
            let data = self.directory.join("data").join(host);
            settings.push(("GATEWAYS", self.gateways().join(",")));
            settings.push(("DATA_DIR", data.to_string_lossy().into_owned()));
            settings.push(("NAME", host.to_owned()));
            // Simulated tasks, so there is room for any number.
            settings.push(("CPU_TOTAL_COMPUTE", "1000000".to_owned()));
            settings.push(("MEMORY_TOTAL_MB", "1000000".to_owned()));
            settings.push(("DISK_TOTAL_MB", "10000000".to_owned()));
        } else {
            settings.push(("ETCD__ENDPOINTS", self.stores().join(",")));
        }
        if service == "cluster-controller" {
            // The whole history is replayed at the end.
            settings.push(("COMPACTION_HISTORY", "0s".to_owned()));
        }
        if service == "api-gateway" {
            settings.push(("GATEWAYS", self.gateways().join(",")));
        }
        settings.push(("TLS__INSECURE", "true".to_owned()));
        // A network of this machine alone.
        settings.push(("TLS__DANGEROUSLY_EXPOSE_PLAINTEXT", "true".to_owned()));
        let mut command = self.network.command(host, &binary::kafila());
        command.arg(service);
        for (key, value) in settings {
            let variable = format!("KAFILA_{}__{key}", service.to_uppercase().replace('-', "_"));
            command.env(variable, value);
        }
        command
    }

    /// Returns the addresses of etcd's members.
    pub fn stores(&self) -> Vec<String> {
        self.addresses(&hosts::members(), hosts::ETCD_PORT)
    }

    pub fn gateways(&self) -> Vec<String> {
        self.addresses(&hosts::twins("api-gateway"), hosts::PORT)
    }

    fn addresses(&self, of: &[String], port: u16) -> Vec<String> {
        let hosts = of.iter().map(|host| self.network.address(host));
        hosts
            .map(|address| format!("http://{address}:{port}"))
            .collect()
    }

    /// Kills the process of a host with SIGKILL.
    pub fn kill(&mut self, host: &str) {
        if let Some(process) = self.processes.remove(host) {
            process.kill();
        }
    }

    /// Pauses it with SIGSTOP.
    ///
    /// # Errors
    /// It does not run.
    pub fn pause(&self, host: &str) -> Result<()> {
        self.process(host)?.signal(Signal::SIGSTOP)
    }

    /// Resumes it.
    ///
    /// # Errors
    /// It does not run.
    pub fn resume(&self, host: &str) -> Result<()> {
        self.process(host)?.signal(Signal::SIGCONT)
    }

    fn process(&self, host: &str) -> Result<&Process> {
        self.processes
            .get(host)
            .with_context(|| format!("{host} does not run"))
    }

    /// Fills the rest of a member's disk.
    ///
    /// # Errors
    /// The size of the free space cannot be read.
    pub fn fill_disk(&self, member: &str) -> Result<()> {
        let disk = self.disks.join(member);
        let filler = File::create(disk.join(FILLER))?;
        let mut length = 0;
        // Concurrent changes of the free space make an attempt miss.
        for _ in 0..8 {
            let free = nix::sys::statvfs::statvfs(&disk)?;
            let bytes = i64::try_from(free.blocks_available() * free.fragment_size())?;
            if bytes == 0 {
                return Ok(());
            }
            if fallocate(&filler, FallocateFlags::empty(), length, bytes).is_ok() {
                length += bytes;
            }
        }
        Ok(())
    }

    /// Frees a member's disk again.
    ///
    /// # Errors
    /// It was not filled.
    pub fn free_disk(&self, member: &str) -> Result<()> {
        fs::remove_file(self.disks.join(member).join(FILLER))?;
        Ok(())
    }

    /// Returns whether the process of a host runs.
    pub fn is_running(&mut self, host: &str) -> bool {
        self.processes
            .get_mut(host)
            .is_some_and(Process::is_running)
    }

    /// Returns the hosts whose process has ended unexpectedly.
    pub fn ended(&mut self) -> Vec<String> {
        let processes = self.processes.iter_mut();
        let ended = processes.filter_map(|(host, process)| (!process.is_running()).then_some(host));
        ended.cloned().collect()
    }

    /// Returns etcd's leader; `None`: no member claims to be it.
    pub async fn etcd_leader(&self) -> Option<String> {
        for member in hosts::members() {
            let address = format!("{}:{}", self.network.address(&member), hosts::ETCD_PORT);
            let asked = timeout(Duration::from_millis(500), test_kit::scrape(&address)).await;
            if matches!(asked, Ok(Ok(text)) if text.contains("\netcd_server_is_leader 1")) {
                return Some(member);
            }
        }
        None
    }

    /// Returns the end of a host's log.
    pub fn log_tail(&self, host: &str) -> String {
        self.processes
            .get(host)
            .map(Process::log_tail)
            .unwrap_or_default()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.processes.clear();
        unmount_all(&self.disks);
    }
}

/// Removes the disks, also those of a killed run.
fn unmount_all(disks: &Path) {
    for entry in fs::read_dir(disks).into_iter().flatten().flatten() {
        // Lazily, because a killed process may still be ending. An unmounted directory is no error.
        drop(
            Command::new("umount")
                .arg("--lazy")
                .arg(entry.path())
                .output(),
        );
    }
    drop(fs::remove_dir_all(disks));
}

fn program_on_path(name: &str) -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("KAFILA_ETCD") {
        return Ok(PathBuf::from(path));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name));
    found
        .into_iter()
        .find(|program| program.is_file())
        .with_context(|| format!("no {name} on the PATH"))
}

fn run(command: &mut Command) -> Result<()> {
    let output = command
        .output()
        .with_context(|| format!("cannot start {command:?}"))?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{command:?}: {}", errors.trim());
    Ok(())
}
