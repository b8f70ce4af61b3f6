//! Suite of services, each a process of its own, over a real etcd.
//!
//! Each suite has its own loopback address in 127.0.0.0/8, so that services keep their ports across
//! restarts.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use test_kit::etcd::Etcd;

use crate::api::{Api, eventually};
use crate::binary::{self, CommandOutput};
use crate::history;
use crate::process::{self, Process};

/// The services of a suite, one of each, in start order.
pub const SERVICES: [&str; 6] = [
    "api-gateway",
    "eval-broker",
    "plan-applier",
    "scheduler-worker",
    "deployment-watcher",
    "cluster-controller",
];

/// Another replica of the api-gateway.
pub const SECOND_GATEWAY: &str = "api-gateway-2";

/// Timeout of the start on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// The key-encryption key of the gateways, and its file in the suite's directory.
pub const KEYRING_KEY: &str = "a3Vja3Vja3Vja3Vja3Vja3Vja3Vja3Vja3Vja3Vja3U=";
const KEYRING_FILE: &str = "keyring_key";

/// Timeout of a drain.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// Parts of a suite.
#[derive(Clone, Debug)]
pub struct Options {
    pub nodes: usize,
    /// OTLP endpoint of every process.
    pub otlp_endpoint: Option<String>,
    /// A running store; `None`: the suite starts its own etcd.
    pub store: Option<String>,
    /// Configuration file of the nodes, as TOML; `None`: none.
    pub node_config: Option<String>,
    /// Starts [`SECOND_GATEWAY`], too; nodes know both.
    pub has_second_gateway: bool,
    /// User of the store, and its password, for every service.
    pub store_user: Option<store::User>,
    /// For measurements: its own etcd writes with fsync, and its history is compacted as in production,
    /// so that [`Suite::check_history`] cannot replay it.
    pub is_measured: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            nodes: 1,
            otlp_endpoint: None,
            store: None,
            node_config: None,
            has_second_gateway: false,
            store_user: None,
            is_measured: false,
        }
    }
}

/// A running suite. Dropping it kills its processes.
pub struct Suite {
    // Dropped first, so that no agent restarts a task that the sweep kills.
    processes: BTreeMap<String, Process>,
    etcd: Option<Etcd>,
    options: Options,
    ip: Ipv4Addr,
    directory: TempDir,
}

impl Suite {
    /// Starts etcd, every service and the nodes, and waits until the nodes are ready.
    ///
    /// # Errors
    /// A process did not start; the error contains the ends of the logs.
    pub async fn start(options: Options) -> Result<Self> {
        let etcd = match options.store {
            Some(_) => None,
            None => {
                // Of two values for a flag, etcd takes the last.
                let durable: &[&str] = match options.is_measured {
                    true => &["--unsafe-no-fsync=false"],
                    false => &[],
                };
                let etcd = Etcd::start_with(durable).await;
                Some(etcd.context("cannot start etcd")?)
            }
        };
        let mut directory = tempfile::Builder::new().prefix("kafila-suite-").tempdir()?;
        if std::env::var_os("KAFILA_KEEP_LOGS").is_some() {
            directory.disable_cleanup(true);
            println!("logs and data: {}", directory.path().display());
        }
        std::fs::write(directory.path().join(KEYRING_FILE), KEYRING_KEY)?;
        let mut suite = Self {
            processes: BTreeMap::new(),
            etcd,
            options,
            ip: own_address(),
            directory,
        };
        for name in suite.names() {
            suite.start_process(&name)?;
        }
        if let Err(error) = suite.wait_until_ready().await {
            return Err(error.context(suite.log_tails()));
        }
        Ok(suite)
    }

    /// Returns the names of all its processes: the services, then `client-node-0` and so on, then the second gateway.
    pub fn names(&self) -> Vec<String> {
        let nodes = (0..self.options.nodes).map(|number| format!("client-node-{number}"));
        let second = self.options.has_second_gateway.then_some(SECOND_GATEWAY);
        SERVICES
            .iter()
            .map(|name| (*name).to_owned())
            .chain(nodes)
            .chain(second.map(str::to_owned))
            .collect()
    }

    /// Returns the gateway's address.
    pub fn address(&self) -> String {
        format!("http://{}:4646", self.ip)
    }

    /// Returns the addresses of all gateways.
    pub fn addresses(&self) -> Vec<String> {
        let second = self.options.has_second_gateway.then(|| {
            let port = self.port(SECOND_GATEWAY);
            format!("http://{}:{port}", self.ip)
        });
        std::iter::once(self.address()).chain(second).collect()
    }

    /// Returns the store's endpoint.
    pub fn store(&self) -> String {
        let own = self.etcd.as_ref().map(Etcd::endpoint);
        own.or_else(|| self.options.store.clone())
            .unwrap_or_default()
    }

    /// Returns the process id of its own etcd.
    pub fn etcd_pid(&self) -> Option<u32> {
        self.etcd.as_ref()?.pid()
    }

    /// Returns the metrics of its own etcd.
    ///
    /// # Errors
    /// The store is not its own, or does not answer.
    pub async fn etcd_metrics(&self) -> Result<String> {
        let etcd = self.etcd.as_ref().context("the store is not the suite's")?;
        Ok(etcd.metrics().await?)
    }

    /// Returns the address of a process's `/metrics`.
    pub fn metrics_address(&self, name: &str) -> String {
        format!("{}:{}", self.ip, self.port(name) + 1_000)
    }

    /// # Errors
    /// Never in practice: the address is one.
    pub fn api(&self) -> Result<Api> {
        Api::new(&self.address())
    }

    /// Runs a `kafila` command against this suite.
    ///
    /// # Errors
    /// The binary cannot be started.
    pub async fn kafila(&self, arguments: &[&str]) -> Result<CommandOutput> {
        binary::run(&self.address(), arguments).await
    }

    /// Registers the job of a job file, and does not wait for its tasks.
    ///
    /// # Errors
    /// The command failed.
    pub async fn run_job(&self, text: &str) -> Result<()> {
        let file = tempfile::Builder::new().suffix(".hcl").tempfile()?;
        std::fs::write(file.path(), text)?;
        let path = file.path().to_str().context("its name is text")?;
        self.kafila(&["job", "run", "-detach", path]).await?.ok()?;
        Ok(())
    }

    /// Checks that no secret is in the bytes of the store, in the logs of the processes or in an archive of
    /// `operator debug` with these logs.
    ///
    /// # Errors
    /// The place that has one.
    pub async fn search_secrets(&self, secrets: &[&str]) -> Result<()> {
        let folder = tempfile::tempdir()?;
        let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        let (snapshot, archive) = (path("etcd.db"), path("debug.tar.gz"));
        let save = ["operator", "snapshot", "save", &snapshot];
        self.kafila(&save).await?.ok()?;
        let mut places = vec![("the store".to_owned(), std::fs::read(&snapshot)?)];
        let mut debug = vec!["operator".to_owned(), "debug".to_owned()];
        debug.extend(["-output".to_owned(), archive.clone()]);
        for name in self.names() {
            let log = self.data_dir(&format!("{name}.log"));
            places.push((log.display().to_string(), std::fs::read(&log)?));
            debug.extend(["-log-file".to_owned(), log.to_string_lossy().into_owned()]);
        }
        let debug: Vec<&str> = debug.iter().map(String::as_str).collect();
        self.kafila(&debug).await?.ok()?;
        let unpacked = Command::new("tar").args(["-xzOf", &archive]).output()?;
        ensure!(
            unpacked.status.success() && !unpacked.stdout.is_empty(),
            "no archive"
        );
        places.push(("the debug archive".to_owned(), unpacked.stdout));
        for (place, bytes) in &places {
            for secret in secrets {
                let found = bytes
                    .windows(secret.len())
                    .any(|part| part == secret.as_bytes());
                ensure!(!found, "a secret is in {place}");
            }
        }
        Ok(())
    }

    pub fn data_dir(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn port(&self, name: &str) -> u16 {
        let position = self
            .names()
            .iter()
            .position(|known| known == name)
            .unwrap_or(90);
        4646 + u16::try_from(position).unwrap_or(99)
    }

    /// Sets the configuration file of the nodes that start from now on.
    pub fn set_node_config(&mut self, config: &str) {
        self.options.node_config = Some(config.to_owned());
    }

    /// Starts (again) the process `name`.
    ///
    /// # Errors
    /// It cannot be started, or runs already.
    pub fn start_process(&mut self, name: &str) -> Result<()> {
        ensure!(!self.processes.contains_key(name), "{name} runs already");
        let service = match name {
            SECOND_GATEWAY => "api-gateway",
            name if name.starts_with("client-node") => "client-node",
            name => name,
        };
        let mut command = Command::new(binary::kafila());
        command.arg(service);
        if let Some(config) = self
            .options
            .node_config
            .as_ref()
            .filter(|_| service == "client-node")
        {
            let path = self.directory.path().join("client-node.toml");
            std::fs::write(&path, config)?;
            command.arg("-config").arg(path);
        }
        for (key, value) in self.settings(name, service) {
            let variable = format!("KAFILA_{}__{key}", service.to_uppercase().replace('-', "_"));
            command.env(variable, value);
        }
        let log = self.directory.path().join(format!("{name}.log"));
        self.processes
            .insert(name.to_owned(), Process::start(name, command, &log)?);
        Ok(())
    }

    fn settings(&self, name: &str, service: &str) -> Vec<(&'static str, String)> {
        let port = self.port(name);
        let mut settings = vec![
            ("LISTEN__GRPC", format!("{}:{port}", self.ip)),
            ("LISTEN__METRICS", self.metrics_address(name)),
            ("TELEMETRY__LOG", "info".to_owned()),
            ("TLS__INSECURE", "true".to_owned()),
        ];
        if let Some(endpoint) = &self.options.otlp_endpoint {
            settings.push(("TELEMETRY__OTLP_ENDPOINT", endpoint.clone()));
        }
        if service == "client-node" {
            settings.push(("GATEWAYS", self.addresses().join(",")));
            settings.push((
                "DATA_DIR",
                self.data_dir(name).to_string_lossy().into_owned(),
            ));
            settings.push(("NAME", name.to_owned()));
            // Used where the nodes' configuration turns it on.
            settings.push(("DNS__LISTEN", self.dns_address(name).to_string()));
        } else {
            settings.push(("ETCD__ENDPOINTS", self.store()));
            if let Some(user) = &self.options.store_user {
                let path = user.password_file.to_string_lossy().into_owned();
                settings.push(("ETCD__USER", user.name.clone()));
                settings.push(("ETCD__PASSWORD_FILE", path));
            }
        }
        if service == "api-gateway" {
            let path = self.data_dir(KEYRING_FILE);
            settings.push(("KEYRING_KEY_FILE", path.to_string_lossy().into_owned()));
            settings.push(("GATEWAYS", self.addresses().join(",")));
        }
        if service == "cluster-controller" && !self.options.is_measured {
            // The whole history is replayed at the end.
            settings.push(("COMPACTION_HISTORY", "0s".to_owned()));
        }
        settings
    }

    /// Returns the address at which a node serves names of services, if its configuration says so.
    pub fn dns_address(&self, name: &str) -> SocketAddr {
        (self.ip, self.port(name) + 2_000).into()
    }

    /// Kills the process `name` with SIGKILL.
    pub fn kill(&mut self, name: &str) {
        if let Some(process) = self.processes.remove(name) {
            process.kill();
        }
    }

    pub fn process(&self, name: &str) -> Option<&Process> {
        self.processes.get(name)
    }

    async fn wait_until_ready(&mut self) -> Result<()> {
        let api = self.api()?;
        let wanted = self.options.nodes;
        eventually(START_TIMEOUT, || async {
            let nodes = api.nodes().await?;
            let ready = nodes.iter().filter(|node| node.status == "ready").count();
            ensure!(ready == wanted, "{ready} of {wanted} nodes ready");
            let leaders = api.leaders().await?;
            for service in [
                "eval-broker",
                "plan-applier",
                "deployment-watcher",
                "cluster-controller",
            ] {
                ensure!(leaders.contains_key(service), "{service} has no leader");
            }
            Ok(())
        })
        .await
        .context("the suite did not become ready")
    }

    /// Terminates every process, services last, and checks the exit codes.
    ///
    /// # Errors
    /// A process did not end in time, or failed.
    pub async fn stop(mut self) -> Result<()> {
        for name in self.names().into_iter().rev() {
            let Some(process) = self.processes.remove(&name) else {
                continue;
            };
            let log = process.log.clone();
            let code = process.terminate(STOP_TIMEOUT).await?;
            let text = std::fs::read_to_string(log).unwrap_or_default();
            ensure!(code == 0, "{name} ended with {code}:\n{text}");
        }
        Ok(())
    }

    /// Returns the processes of tasks and supervisors.
    pub fn task_processes(&self) -> Vec<(i32, String)> {
        let agents: Vec<i32> = self
            .processes
            .values()
            .map(|process| process.pid().cast_signed())
            .collect();
        process::below(self.directory.path())
            .into_iter()
            .filter(|(pid, _)| !agents.contains(pid))
            .collect()
    }

    /// Replays the whole history and checks every revision.
    ///
    /// # Errors
    /// The violations.
    pub async fn check_history(&self) -> Result<history::Report> {
        history::check(&self.store()).await
    }

    /// Returns the metrics of a process.
    ///
    /// # Errors
    /// No answer, or a status other than 200.
    pub async fn metrics(&self, name: &str) -> Result<String> {
        Ok(test_kit::scrape(self.metrics_address(name)).await?)
    }

    /// Returns the ends of all logs, for messages.
    pub fn log_tails(&self) -> String {
        let mut words = String::new();
        for process in self.processes.values() {
            words.push_str(&format!("--- {}\n{}\n", process.name, process.log_tail()));
        }
        words
    }
}

impl Drop for Suite {
    fn drop(&mut self) {
        self.processes.clear();
        process::kill_below(self.directory.path());
    }
}

/// Returns a loopback address that no other suite on this machine is likely to use.
pub fn own_address() -> Ipv4Addr {
    static STARTED: AtomicU32 = AtomicU32::new(0);
    let number = STARTED.fetch_add(1, Ordering::Relaxed);
    let [.., high, low] = std::process::id().to_be_bytes();
    let third = u8::try_from(number % 250).unwrap_or_default();
    Ipv4Addr::new(127, 64 | (high & 0x3f), low, third + 2)
}
