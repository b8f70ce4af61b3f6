//! A suite with mutual TLS, with certificates made by the command: a job runs, and every caller has
//! the rights of its role only.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use integration_tests::api::eventually;
use integration_tests::binary::{self, CommandOutput};
use integration_tests::process::Process;
use integration_tests::suite::{SERVICES, own_address};
use test_kit::etcd::Etcd;

const TIMEOUT: Duration = Duration::from_secs(60);
/// The id of the node in its certificate, which its agent takes at the first start.
const NODE: &str = "5f1c8a52-7b0e-4c6d-9a0f-3d2b1e4c5a69";
const ROLES: [&str; 6] = [
    "gateway",
    "broker",
    "applier",
    "worker",
    "watcher",
    "controller",
];

/// The suite's processes. Dropping it kills them.
struct Secured {
    directory: tempfile::TempDir,
    address: String,
    ip: Ipv4Addr,
    /// The address of the scheduler-worker, whose certificate names its host as the gateway's does.
    worker: String,
    processes: BTreeMap<&'static str, Process>,
    _etcd: Etcd,
}

impl Drop for Secured {
    fn drop(&mut self) {
        for (_, process) in std::mem::take(&mut self.processes) {
            process.kill();
        }
        integration_tests::process::kill_below(self.directory.path());
    }
}

impl Secured {
    async fn start() -> Result<Self> {
        let etcd = Etcd::start().await.context("cannot start etcd")?;
        let directory = tempfile::Builder::new().prefix("kafila-tls-").tempdir()?;
        let files = directory.path();
        make(files, &["tls", "ca", "create"])?;
        let ip = own_address();
        for role in ROLES.into_iter().chain(["operator"]) {
            make(files, &["tls", "cert", "create", "-role", role])?;
        }
        let gateway = ["-role", "gateway", "-additional-ipaddress", &ip.to_string()];
        let worker = ["-role", "worker", "-additional-ipaddress", &ip.to_string()];
        for names in [gateway, worker] {
            let again = [&["tls", "cert", "create", "-force"][..], &names].concat();
            make(files, &again)?;
        }
        make(
            files,
            &["tls", "cert", "create", "-role", "node", "-node", NODE],
        )?;

        let mut suite = Self {
            address: format!("{ip}:4646"),
            ip,
            worker: String::new(),
            processes: BTreeMap::new(),
            _etcd: etcd,
            directory,
        };
        for (number, (service, role)) in SERVICES.into_iter().zip(roles()).enumerate() {
            let port = if number == 0 { 4646 } else { 4700 + number };
            if service == "scheduler-worker" {
                suite.worker = format!("{ip}:{port}");
            }
            let settings = suite.service_settings(port);
            let files = format!("global-{role}");
            suite.spawn(service, service, &files, &settings)?;
        }
        suite.start_node(&[])?;
        Ok(suite)
    }

    fn service_settings(&self, port: usize) -> [String; 2] {
        let endpoint = format!("etcd.endpoints={}", self._etcd.endpoint());
        [endpoint, format!("listen.grpc={}:{port}", self.ip)]
    }

    /// Starts one more gateway, with the certificate of the first, and returns its address.
    fn start_second_gateway(&mut self) -> Result<String> {
        let settings = self.service_settings(4647);
        self.spawn("api-gateway-2", "api-gateway", "global-gateway", &settings)?;
        Ok(format!("{}:4647", self.ip))
    }

    /// Starts the node, again if it runs, with further settings.
    fn start_node(&mut self, more: &[String]) -> Result<()> {
        if let Some(running) = self.processes.remove("client-node") {
            running.kill();
        }
        let mut settings = vec![
            format!("gateways={}", self.address),
            format!("listen.grpc={}:4800", self.ip),
            format!("data_dir={}", self.directory.path().join("data").display()),
        ];
        settings.extend_from_slice(more);
        let files = format!("global-node-{NODE}");
        self.spawn("client-node", "client-node", &files, &settings)
    }

    fn spawn(
        &mut self,
        name: &'static str,
        service: &str,
        files: &str,
        settings: &[String],
    ) -> Result<()> {
        let path = self.directory.path();
        let mut command = Command::new(binary::kafila());
        command.arg(service).current_dir(path);
        let tls = [
            "listen.metrics=127.0.0.1:0".to_owned(),
            "tls.ca_file=kafila-ca.pem".to_owned(),
            format!("tls.cert_file={files}.pem"),
            format!("tls.key_file={files}-key.pem"),
        ];
        for setting in settings.iter().chain(&tls) {
            command.args(["-set", setting]);
        }
        let log = path.join(format!("{name}.log"));
        let process = Process::start(name, command, &log)?;
        self.processes.insert(name, process);
        Ok(())
    }

    /// Runs a command with the certificate `files`; `None`: without one.
    async fn kafila(&self, files: Option<&str>, arguments: &[&str]) -> Result<CommandOutput> {
        self.kafila_at(&self.address, files, arguments).await
    }

    async fn kafila_at(
        &self,
        address: &str,
        files: Option<&str>,
        arguments: &[&str],
    ) -> Result<CommandOutput> {
        let path = |name: &str| self.directory.path().join(name).display().to_string();
        let mut environment = vec![("KAFILA_CACERT", path("kafila-ca.pem"))];
        if let Some(files) = files {
            environment.push(("KAFILA_CLIENT_CERT", path(&format!("{files}.pem"))));
            environment.push(("KAFILA_CLIENT_KEY", path(&format!("{files}-key.pem"))));
        }
        let environment: Vec<(&str, &str)> = environment
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let address = format!("https://{address}");
        binary::run_with(&address, arguments, &environment).await
    }

    fn logs(&self) -> String {
        let tails = self.processes.values().map(Process::log_tail);
        tails.collect::<Vec<_>>().join("\n")
    }
}

/// The roles of [`SERVICES`], in their order.
fn roles() -> [&'static str; 6] {
    let role = |service| match service {
        "api-gateway" => "gateway",
        "eval-broker" => "broker",
        "plan-applier" => "applier",
        "scheduler-worker" => "worker",
        "deployment-watcher" => "watcher",
        _ => "controller",
    };
    SERVICES.map(role)
}

fn make(directory: &Path, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new(binary::kafila());
    let output = command.args(arguments).current_dir(directory).output()?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{arguments:?}: {stderr}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suite_with_certificates_runs_a_job_and_refuses_other_roles() -> Result<()> {
    if !test_kit::etcd::available() {
        return Ok(());
    }
    let mut suite = Secured::start().await?;
    let played = play(&mut suite).await;
    played.with_context(|| suite.logs())
}

async fn play(suite: &mut Secured) -> Result<()> {
    let operator = Some("global-operator");
    eventually(TIMEOUT, || async {
        let nodes = suite.kafila(operator, &["node", "status"]).await?;
        let is_ready = nodes.stdout.contains(&NODE[..8]) && nodes.stdout.contains("ready");
        ensure!(is_ready, "{nodes:?}");
        Ok(())
    })
    .await?;
    let job = suite.directory.path().join("hello.hcl");
    std::fs::write(&job, JOB)?;
    let job = job.display().to_string();
    suite.kafila(operator, &["job", "run", &job]).await?.ok()?;
    // The gateway fetches the log from the node, over TLS, too.
    eventually(TIMEOUT, || async {
        let logs = suite.kafila(operator, &["alloc", "logs", "-job", "hello"]);
        let logs = logs.await?;
        ensure!(logs.stdout.contains("hello over TLS"), "{logs:?}");
        Ok(())
    })
    .await?;

    // The same over a connection that the node opens, on which it knows the gateway's role.
    let nowhere = "listen.advertise=192.0.2.7:4800".to_owned();
    suite.start_node(&[nowhere, "dial_out=true".to_owned()])?;
    eventually(TIMEOUT, || async {
        let shown = suite.kafila(operator, &["node", "status", "-json", NODE]);
        let shown = shown.await?;
        ensure!(shown.stdout.contains("https://192.0.2.7:4800"), "{shown:?}");
        let logs = suite.kafila(operator, &["alloc", "logs", "-job", "hello"]);
        let logs = logs.await?;
        ensure!(logs.stdout.contains("hello over TLS"), "{logs:?}");
        Ok(())
    })
    .await?;
    // The node knows the first gateway only, which passes the connection on to the second one.
    let second = suite.start_second_gateway()?;
    eventually(TIMEOUT, || async {
        let logs = suite.kafila_at(&second, operator, &["alloc", "logs", "-job", "hello"]);
        let logs = logs.await?;
        ensure!(logs.stdout.contains("hello over TLS"), "{logs:?}");
        Ok(())
    })
    .await?;

    let worker = Some("global-worker");
    let worker = suite.kafila(worker, &["job", "run", &job]).await?;
    ensure!(
        worker.code != 0 && worker.stderr.contains("it needs role operator"),
        "{worker:?}"
    );
    let uncertified = suite.kafila(None, &["job", "status"]).await?;
    let says_why = uncertified.stderr.contains("requires a client certificate");
    ensure!(uncertified.code != 0 && says_why, "{uncertified:?}");
    check_servers(suite, operator).await?;
    let plaintext = format!("http://{}", suite.address);
    let plaintext = binary::run(&plaintext, &["job", "status"]).await?;
    ensure!(plaintext.stderr.contains("requires TLS"), "{plaintext:?}");
    Ok(())
}

/// Commands talk to gateways only, by the names of their certificates.
async fn check_servers(suite: &Secured, operator: Option<&str>) -> Result<()> {
    // The name fits, and the role does not.
    let status = ["job", "status"];
    let worker = suite.kafila_at(&suite.worker, operator, &status).await?;
    let says_why = worker
        .stderr
        .contains("that of worker of region global, not of a gateway");
    ensure!(worker.code != 0 && says_why, "{worker:?}");
    // With the flag the process answers that it serves no jobs.
    let any = ["job", "status", "-tls-skip-role-check"];
    let any = suite.kafila_at(&suite.worker, operator, &any).await?;
    ensure!(any.stderr.contains("does not know this call"), "{any:?}");
    // A name of this role suffices, as in the health checks of images.
    let named = [
        "operator",
        "health",
        "-only-process",
        "-tls-server-name",
        "worker.global.kafila",
    ];
    suite
        .kafila_at(&suite.worker, operator, &named)
        .await?
        .ok()?;
    let named = ["job", "status", "-tls-server-name", "elsewhere.example"];
    let named = suite.kafila(operator, &named).await?;
    for part in [
        "does not name elsewhere.example (its names: gateway.global.kafila",
        "-tls-server-name=gateway.global.kafila",
        "-additional-dnsname=elsewhere.example",
    ] {
        ensure!(named.stderr.contains(part), "{part}: {named:?}");
    }
    Ok(())
}

const JOB: &str = r#"
job "hello" {
  type = "batch"
  group "hello" {
    task "hello" {
      driver = "raw_exec"
      config {
        command = "/bin/echo"
        args    = ["hello over TLS"]
      }
    }
  }
}
"#;
