//! One run of docker-compose.yml, under a project name of its own; removed with its networks,
//! volumes and images in the end.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::command::{compose, docker, repository, run, run_within};
use super::secrets::Secrets;
use crate::api::{Api, eventually};
use crate::binary::{self, CommandOutput};

/// Services with replicas, and how many docker-compose.yml starts.
pub const REPLICATED: [(&str, usize); 6] = [
    ("api-gateway", 2),
    ("eval-broker", 2),
    ("plan-applier", 2),
    ("deployment-watcher", 2),
    ("cluster-controller", 2),
    ("scheduler-worker", 4),
];

/// The nodes of docker-compose.yml.
pub const NODES: [&str; 2] = ["client-node-1", "client-node-2"];

/// An image that Debian has no package for.
struct StandIn {
    /// The variable of docker-compose.yml that names the image.
    variable: &'static str,
    /// The stage of stand-ins.Dockerfile.
    target: &'static str,
}

const STAND_INS: [StandIn; 2] = [
    StandIn {
        variable: "OTEL_COLLECTOR_IMAGE",
        target: "collector",
    },
    StandIn {
        variable: "GRAFANA_IMAGE",
        target: "grafana",
    },
];

/// The quota of the stack's members: some hundred times of what a run stores.
pub const QUOTA_BYTES: usize = 96 << 20;

/// Timeout until a container is ready on a busy machine.
const READY_TIMEOUT: Duration = Duration::from_secs(90);

/// A project of Compose.
#[derive(Clone, Debug)]
pub struct Stack {
    project: String,
    compose: &'static [&'static str],
    environment: Vec<(String, String)>,
    ports: [u16; 2],
    secrets: Arc<Secrets>,
}

impl Stack {
    /// Prepares a project with a unique name. Nothing is started.
    ///
    /// # Errors
    /// There is no Compose, or no pair of free ports.
    pub async fn new() -> Result<Self> {
        let mut stack = Self::without_monitoring().await?;
        stack.monitor();
        Ok(stack)
    }

    /// As [`Self::new`], without the profile `monitoring`.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub async fn without_monitoring() -> Result<Self> {
        let project = format!(
            "kafila-test-{}-{}",
            std::process::id(),
            rand::random::<u16>()
        );
        let ports = free_ports()?;
        let mut stack = Self {
            compose: compose().await.context("Compose is missing")?,
            environment: Vec::new(),
            ports,
            secrets: Arc::new(Secrets::new()?),
            project: project.clone(),
        };
        stack.set("COMPOSE_PROJECT_NAME", &project);
        stack.set("KAFILA_IMAGE", &format!("{project}-server"));
        stack.set(
            "KAFILA_CLIENT_NODE_IMAGE",
            &format!("{project}-client-node"),
        );
        stack.set("ETCD_IMAGE", &format!("{project}-etcd:test"));
        let quota = QUOTA_BYTES.to_string();
        stack.set("ETCD_QUOTA_BACKEND_BYTES", &quota);
        stack.set("KAFILA_PORTS", &format!("{}-{}", ports[0], ports[1]));
        let secrets = stack.secrets.path().display().to_string();
        stack.set("KAFILA_SECRETS", &secrets);
        stack.use_tag("first");
        Ok(stack)
    }

    /// Starts the profile `monitoring` with the rest.
    fn monitor(&mut self) {
        let project = self.project.clone();
        self.set("COMPOSE_PROFILES", "monitoring");
        self.set("PROMETHEUS_IMAGE", &format!("{project}-prometheus:test"));
        for stand_in in STAND_INS {
            let image = format!("{project}-{}:test", stand_in.target);
            self.set(stand_in.variable, &image);
        }
        // Docker chooses the ports.
        self.set("PROMETHEUS_PORT", "");
        self.set("GRAFANA_PORT", "");
        self.set("KAFILA_OTLP_ENDPOINT", "http://otel-collector:4317");
        self.set("KAFILA_OTLP_LOGS", "true");
    }

    fn set(&mut self, name: &str, value: &str) {
        self.environment.retain(|(known, _)| known != name);
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    /// Makes `tag` the images of containers that are created from now on.
    pub fn use_tag(&mut self, tag: &str) {
        self.set("KAFILA_TAG", tag);
    }

    /// Builds the images of the current tag from a binary; the revision makes them differ from others.
    ///
    /// # Errors
    /// Those of the script.
    pub async fn build_images(&self, binary: &Path, revision: &str) -> Result<String> {
        let binary = binary.to_str().context("the binary's path is no text")?;
        let mut environment = self.environment.clone();
        environment.push(("REVISION".to_owned(), revision.to_owned()));
        let arguments = ["--local-base", "--etcd", "--prometheus", "--binary", binary];
        run("scripts/build-images", &arguments, &environment).await
    }

    /// Builds the stand-ins from this program.
    ///
    /// # Errors
    /// Those of the commands.
    pub async fn build_stand_ins(&self) -> Result<()> {
        let context = tempfile::tempdir()?;
        let folder = context.path().to_str().context("a path is no text")?;
        let program = std::env::current_exe()?;
        let program = program.to_str().context("the program's path is no text")?;
        let stripped = format!("{folder}/container-tests");
        run("objcopy", &["--strip-all", program, &stripped], &[]).await?;
        let file = format!("{folder}/Dockerfile");
        std::fs::copy(
            repository().join("integration-tests/stand-ins.Dockerfile"),
            &file,
        )?;
        for stand_in in STAND_INS {
            let image = self.variable(stand_in.variable);
            let arguments = [
                "build",
                "-q",
                "--build-arg=RUN_IMAGE=kafila-base:bookworm",
                "--target",
                stand_in.target,
                "-t",
                &image,
                folder,
            ];
            docker(&arguments).await?;
        }
        Ok(())
    }

    /// Returns the name of the container with systemd, a machine of its own beside the stack.
    pub fn machine(&self) -> String {
        format!("{}-machine", self.project)
    }

    /// Returns the image of [`Self::machine`].
    pub fn machine_image(&self) -> String {
        format!("{}-machine:test", self.project)
    }

    /// Builds the image of [`Self::machine`], with the package of Kafila in `context` and etcd of this machine.
    ///
    /// # Errors
    /// Those of the commands.
    pub async fn build_machine(&self, context: &Path) -> Result<()> {
        let context = context.to_str().context("a path is no text")?;
        let copy = r#"cp "$(command -v etcd)" "$(command -v etcdctl)" integration-tests/machine.Dockerfile "$0""#;
        run("bash", &["-ec", copy, context], &[]).await?;
        let file = format!("{context}/machine.Dockerfile");
        let image = self.machine_image();
        docker(&[
            "build",
            "-q",
            "--build-arg=RUN_IMAGE=kafila-base:bookworm",
            "-f",
            &file,
            "-t",
            &image,
            context,
        ])
        .await
        .map(drop)
    }

    /// Removes [`Self::machine`], if it is there.
    ///
    /// # Errors
    /// Those of the command.
    pub async fn remove_machine(&self) -> Result<()> {
        docker(&["rm", "-f", "-v", &self.machine()]).await.map(drop)
    }

    /// Returns the image with Prometheus and its tools.
    pub fn prometheus_image(&self) -> String {
        self.variable("PROMETHEUS_IMAGE")
    }

    fn variable(&self, name: &str) -> String {
        let found = self.environment.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    }

    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Makes the secrets with the image of the current tag.
    ///
    /// # Errors
    /// Those of the script.
    pub async fn make_secrets(&self) -> Result<()> {
        run("scripts/compose-secrets", &[], &self.environment)
            .await
            .map(drop)
    }

    /// Replaces every certificate by a new one of the same authority.
    ///
    /// # Errors
    /// Those of the script.
    pub async fn renew_secrets(&self) -> Result<()> {
        run("scripts/compose-secrets", &["--renew"], &self.environment)
            .await
            .map(drop)
    }

    /// Returns the product's own client of both gateways, with its own retries and the operator's certificate.
    ///
    /// # Errors
    /// The certificate is missing.
    pub fn client(&self) -> Result<kafila_client::Client> {
        Ok(kafila_client::Client::new(kafila_client::Config {
            gateways: self.addresses().into(),
            tls: self.secrets.client_tls(),
            ..kafila_client::Config::default()
        })?)
    }

    /// Returns the addresses of both gateways on this machine.
    pub fn addresses(&self) -> [String; 2] {
        self.ports.map(|port| format!("https://127.0.0.1:{port}"))
    }

    /// Returns a client of both gateways with the operator's certificate.
    ///
    /// # Errors
    /// The certificate is missing.
    pub fn api(&self) -> Result<Api> {
        Api::secured(&self.addresses(), &self.secrets.connector()?)
    }

    /// Runs `kafila` on this machine with both gateways, of which the command takes the one that answers, and with
    /// the operator's certificate.
    ///
    /// # Errors
    /// The binary cannot be started.
    pub async fn kafila_with_failover(&self, arguments: &[&str]) -> Result<CommandOutput> {
        self.kafila_at(&self.addresses().join(","), arguments).await
    }

    /// Runs `kafila` on this machine against one of both gateways, with the operator's certificate.
    ///
    /// # Errors
    /// The binary cannot be started.
    pub async fn kafila(&self, gateway: usize, arguments: &[&str]) -> Result<CommandOutput> {
        self.kafila_at(&self.addresses()[gateway], arguments).await
    }

    async fn kafila_at(&self, address: &str, arguments: &[&str]) -> Result<CommandOutput> {
        let environment = self.secrets.environment();
        let environment: Vec<(&str, &str)> = environment
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        binary::run_with(address, arguments, &environment).await
    }

    /// Runs Compose.
    ///
    /// # Errors
    /// Those of the command.
    pub async fn compose(&self, arguments: &[&str]) -> Result<String> {
        let words: Vec<&str> = self.compose.iter().chain(arguments).copied().collect();
        run(words[0], &words[1..], &self.environment).await
    }

    /// Runs a script of bash in the repository, with the variables of the project, and returns what it prints.
    ///
    /// # Errors
    /// Those of the script.
    pub async fn bash(&self, timeout: Duration, script: &str) -> Result<String> {
        run_within(timeout, "bash", &["-ec", script], &self.environment).await
    }

    /// Returns what `kafila version` prints in a container.
    ///
    /// # Errors
    /// Those of the command.
    pub async fn version(&self, container: &str) -> Result<String> {
        docker(&["exec", container, "kafila", "version"]).await
    }

    /// Starts everything; Compose waits for the health of services that others depend on.
    ///
    /// # Errors
    /// A container does not become healthy.
    pub async fn up(&self) -> Result<()> {
        self.compose(&["up", "-d"]).await.map(drop)
    }

    /// Sets the number of replicas of a service and leaves the others alone.
    ///
    /// # Errors
    /// Those of the command.
    pub async fn scale(&self, service: &str, count: usize) -> Result<()> {
        let scale = format!("{service}={count}");
        let arguments = [
            "up",
            "-d",
            "--no-deps",
            "--no-recreate",
            "--scale",
            &scale,
            service,
        ];
        self.compose(&arguments).await?;
        let running = self.containers(service).await?.len();
        ensure!(
            running == count,
            "{running} containers of {service}, not {count}"
        );
        Ok(())
    }

    /// Replaces the containers of services by those of the current tag.
    ///
    /// # Errors
    /// Those of the script.
    pub async fn roll(&self, services: &[&str]) -> Result<()> {
        run("scripts/compose-roll", services, &self.environment)
            .await
            .map(drop)
    }

    /// Restores a snapshot into the members of etcd.
    ///
    /// # Errors
    /// Those of the script.
    pub async fn restore(&self, snapshot: &Path) -> Result<()> {
        let snapshot = snapshot
            .to_str()
            .context("the snapshot's path is no text")?;
        run("scripts/compose-restore", &[snapshot], &self.environment)
            .await
            .map(drop)
    }

    /// Kills the members of etcd and removes their volumes: all state is lost.
    ///
    /// # Errors
    /// Those of the commands.
    pub async fn destroy_etcd(&self) -> Result<()> {
        for member in ["etcd-1", "etcd-2", "etcd-3"] {
            for container in self.containers(member).await? {
                docker(&["rm", "-f", &container]).await?;
            }
            let volume = format!("{}_{member}", self.project);
            docker(&["volume", "rm", &volume]).await?;
        }
        Ok(())
    }

    /// Returns the ids of the running containers of a service.
    ///
    /// # Errors
    /// Those of the command.
    pub async fn containers(&self, service: &str) -> Result<Vec<String>> {
        let project = format!("label=com.docker.compose.project={}", self.project);
        let service = format!("label=com.docker.compose.service={service}");
        let found = docker(&["ps", "-q", "-f", &project, "-f", &service]).await?;
        Ok(found.lines().map(str::to_owned).collect())
    }

    /// Returns the ids of the running containers of a service with the times of their starts.
    ///
    /// # Errors
    /// Those of the command.
    pub async fn starts(&self, service: &str) -> Result<Vec<String>> {
        let mut starts = Vec::new();
        for container in self.containers(service).await? {
            let format = "{{.Id}} {{.State.StartedAt}}";
            starts.push(docker(&["inspect", "-f", format, &container]).await?);
        }
        Ok(starts)
    }

    /// Returns the revision in the label of a container's image.
    ///
    /// # Errors
    /// Those of the command.
    pub async fn revision(&self, container: &str) -> Result<String> {
        let format = "{{index .Config.Labels \"org.opencontainers.image.revision\"}}";
        docker(&["inspect", "-f", format, container]).await
    }

    /// Kills a container with SIGKILL, keeps it away for a while, starts it again and waits until it
    /// is ready.
    ///
    /// # Errors
    /// It does not become ready.
    pub async fn kill(&self, container: &str, away: Duration) -> Result<()> {
        docker(&["kill", container]).await?;
        tokio::time::sleep(away).await;
        docker(&["start", container]).await?;
        self.wait_until_ready(container).await
    }

    /// Cuts a container off from the network.
    ///
    /// # Errors
    /// Those of the command.
    pub async fn disconnect(&self, container: &str) -> Result<()> {
        docker(&["network", "disconnect", &self.network(), container])
            .await
            .map(drop)
    }

    /// Undoes [`Self::disconnect`]: the container gets another address under its old name.
    ///
    /// # Errors
    /// Those of the command.
    pub async fn connect(&self, container: &str) -> Result<()> {
        docker(&["network", "connect", &self.network(), container]).await?;
        self.wait_until_ready(container).await
    }

    fn network(&self) -> String {
        format!("{}_default", self.project)
    }

    async fn wait_until_ready(&self, container: &str) -> Result<()> {
        // The image's own health check runs rarely; this asks the same at once.
        eventually(READY_TIMEOUT, || async {
            let format = "{{index .Config.Labels \"com.docker.compose.service\"}}";
            let service = docker(&["inspect", "-f", format, container]).await?;
            let etcd = ["exec", container, "etcdctl", "endpoint", "health"];
            let kafila = ["exec", container, "kafila-entrypoint", "health"];
            let is_etcd = service.starts_with("etcd");
            let check: &[&str] = if is_etcd { &etcd } else { &kafila };
            docker(check).await.map(drop)
        })
        .await
    }

    /// Returns the address of a container's `/metrics`, which only this machine reaches.
    ///
    /// # Errors
    /// Those of the command.
    pub async fn metrics_address(&self, container: &str, port: u16) -> Result<String> {
        let format = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}";
        let ip = docker(&["inspect", "-f", format, container]).await?;
        Ok(format!("{ip}:{port}"))
    }

    /// Returns the lines of a service's logs that contain `text`.
    ///
    /// # Errors
    /// Those of the command.
    pub async fn log_lines(&self, service: &str, text: &str) -> Result<Vec<String>> {
        let logs = self.compose(&["logs", "--no-color", service]).await?;
        let found = logs.lines().filter(|line| line.contains(text));
        Ok(found.map(str::to_owned).collect())
    }

    /// Returns the ends of all logs, for messages.
    pub async fn log_tails(&self) -> String {
        let logs = self.compose(&["logs", "--no-color", "--tail=15"]).await;
        logs.unwrap_or_else(|error| format!("no logs: {error:#}"))
    }

    /// Removes containers, networks, volumes and images.
    ///
    /// # Errors
    /// Something of the project is left.
    pub async fn remove(&self) -> Result<()> {
        let arguments = ["down", "--volumes", "--remove-orphans", "--timeout", "3"];
        let down = self.compose(&arguments).await;
        // Without it, the command says so and fails.
        let _ = self.remove_machine().await;
        let pattern = format!("{}-*", self.project);
        // By name: the id may have other names, of images that were built from the same files.
        let format = "--format={{.Repository}}:{{.Tag}}";
        let images = docker(&["images", format, &pattern]).await?;
        let images: Vec<&str> = images.lines().collect();
        let removed = if images.is_empty() {
            Ok(String::new())
        } else {
            docker(&[&["rmi"], images.as_slice()].concat()).await
        };
        down?;
        removed?;
        let label = format!("label=com.docker.compose.project={}", self.project);
        for kind in [
            &["ps", "-aq", "-f"] as &[&str],
            &["network", "ls", "-q", "-f"],
            &["volume", "ls", "-q", "-f"],
        ] {
            let left = docker(&[kind, &[label.as_str()]].concat()).await?;
            ensure!(left.is_empty(), "left behind: {} {left}", kind[0]);
        }
        Ok(())
    }
}

/// Returns two ports in a row that are free on this machine.
fn free_ports() -> Result<[u16; 2]> {
    for _ in 0..100 {
        // Below the range of ports that the system gives to outgoing connections.
        let first = 20_000 + rand::random::<u16>() % 10_000;
        let ports = [first, first + 1];
        let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
        if ports.iter().all(is_free) {
            return Ok(ports);
        }
    }
    anyhow::bail!("no two free ports in a row")
}
