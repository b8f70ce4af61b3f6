//! Hosts that are network namespaces, connected by a [`Switch`].
//!
//! Needs root, `ip` and `/dev/net/tun`. All names have a common prefix, so that the next run finds and
//! removes the leftovers of a killed run; a lock excludes concurrent runs.

use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, ensure};
use nix::fcntl::{Flock, FlockArg};
use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use tokio_tun::Tun;

use super::hosts;
use super::switch::{MTU, Rules, Switch};

/// Prefix of the namespaces.
const PREFIX: &str = "kafila-faults-";
const NAMESPACES: &str = "/run/netns";
/// Locked during a run; released with the process.
const LOCK: &str = "/run/kafila-faults.lock";

/// Returns the missing requirement of a network; `None`: none.
pub fn missing_requirement() -> Option<String> {
    if !geteuid().is_root() {
        return Some("network namespaces need root".to_owned());
    }
    if !Path::new("/dev/net/tun").exists() {
        return Some("there is no /dev/net/tun".to_owned());
    }
    for (program, package) in [("ip", "iproute2"), ("mount", "mount"), ("umount", "mount")] {
        let found = Command::new(program)
            .arg("-V")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if found.is_err() {
            return Some(format!(
                "there is no `{program}`: install the Debian package {package}"
            ));
        }
    }
    None
}

/// The network of one run. Dropping it removes it with all its processes.
#[derive(Debug)]
pub struct Network {
    hosts: Vec<String>,
    // Dropped before the namespaces.
    switch: Option<Switch>,
    _lock: Flock<File>,
}

impl Network {
    /// Creates a host for each name.
    ///
    /// # Errors
    /// A requirement is missing, or another run is active.
    pub fn create(hosts: Vec<String>) -> Result<Self> {
        if let Some(missing) = missing_requirement() {
            return Err(anyhow!(missing));
        }
        let file = File::create(LOCK).with_context(|| format!("cannot create {LOCK}"))?;
        let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock)
            .map_err(|_| anyhow!("another run is active: it holds {LOCK}"))?;
        remove_all();
        let mut network = Self {
            hosts,
            switch: None,
            _lock: lock,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let mut devices = Vec::new();
        for (number, name) in (0_u8..).zip(&network.hosts) {
            let namespace = format!("{PREFIX}{name}");
            ip(&["netns", "add", &namespace])?;
            ip(&["-n", &namespace, "link", "set", "lo", "up"])?;
            let made = std::thread::scope(|scope| {
                let making = scope.spawn(|| {
                    // The reactor that the device belongs to.
                    let _runtime = runtime.enter();
                    join_namespace(&namespace)?;
                    make_device(hosts::address(number))
                });
                making
                    .join()
                    .map_err(|_| anyhow!("making a device panicked"))?
            });
            devices.push(made.with_context(|| format!("cannot make the device of {name}"))?);
        }
        network.switch = Some(Switch::start(runtime, devices)?);
        Ok(network)
    }

    /// Moves this thread and its future threads to a host.
    ///
    /// # Errors
    /// There is no such host.
    pub fn enter(&self, host: &str) -> Result<()> {
        join_namespace(&format!("{PREFIX}{host}"))
    }

    /// Returns the number of a host.
    ///
    /// # Panics
    /// There is no such host.
    pub fn number(&self, host: &str) -> u8 {
        let place = self.hosts.iter().position(|name| name == host);
        let number = place.and_then(|place| u8::try_from(place).ok());
        number.unwrap_or_else(|| panic!("no host is called {host}"))
    }

    pub fn address(&self, host: &str) -> Ipv4Addr {
        hosts::address(self.number(host))
    }

    /// Returns the name of the host at an address such as `http://10.77.0.5:4646`.
    pub fn host_at(&self, address: &str) -> Option<&str> {
        let rest = address.strip_prefix("http://")?;
        let (ip, _) = rest.rsplit_once(':')?;
        let number = hosts::number(ip.parse().ok()?)?;
        self.hosts.get(usize::from(number)).map(String::as_str)
    }

    /// Returns the numbers of hosts.
    pub fn numbers(&self, hosts: &[String]) -> Vec<u8> {
        hosts.iter().map(|host| self.number(host)).collect()
    }

    /// Replaces the rules.
    pub fn set(&self, rules: Rules) {
        if let Some(switch) = &self.switch {
            switch.set(rules);
        }
    }

    /// Returns the command that runs `program` on a host; the process is the program itself.
    pub fn command(&self, host: &str, program: &Path) -> Command {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &format!("{PREFIX}{host}")])
            .arg(program);
        command
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.switch = None;
        remove_all();
    }
}

fn join_namespace(name: &str) -> Result<()> {
    let path = PathBuf::from(NAMESPACES).join(name);
    let file = File::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
    setns(file, CloneFlags::CLONE_NEWNET).with_context(|| format!("cannot enter {name}"))
}

fn make_device(address: Ipv4Addr) -> Result<Tun> {
    let made = Tun::builder()
        .name("kafila0")
        .address(address)
        .netmask(Ipv4Addr::new(255, 255, 255, 0))
        .mtu(MTU)
        .up()
        .build()?;
    made.into_iter().next().context("no device was made")
}

/// Removes every namespace with the prefix, and kills its processes.
fn remove_all() {
    let names = fs::read_dir(NAMESPACES).into_iter().flatten().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let ours: Vec<String> = names.filter(|name| name.starts_with(PREFIX)).collect();
    for name in ours {
        for pid in pids(&name).unwrap_or_default() {
            // This process may be in one of them.
            if pid != std::process::id().cast_signed() {
                // An error means that it has ended meanwhile.
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
        }
        if let Err(error) = ip(&["netns", "delete", &name]) {
            eprintln!("cannot remove {name}: {error:#}");
        }
    }
}

fn pids(namespace: &str) -> Result<Vec<i32>> {
    let output = Command::new("ip")
        .args(["netns", "pids", namespace])
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect())
}

fn ip(arguments: &[&str]) -> Result<()> {
    let output = Command::new("ip")
        .args(arguments)
        .output()
        .context("cannot start `ip`: install the Debian package iproute2")?;
    ensure!(
        output.status.success(),
        "ip {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}
