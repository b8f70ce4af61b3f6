//! A node that joins with a token: its certificate, a restart, renewals, a second use of the token.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use integration_tests::api::eventually;
use integration_tests::binary::{self, CommandOutput};
use integration_tests::process::Process;
use integration_tests::suite::own_address;
use store_test_kit::TestStore;

const TIMEOUT: Duration = Duration::from_secs(60);
/// A setting of gateways and of the cluster-controller: a node without heartbeats is down sooner.
const HEARTBEAT_TTL: &str = "heartbeat_ttl=3s";

/// A gateway over an embedded store, and the nodes' directories. Dropping it kills every process.
struct Cluster {
    directory: tempfile::TempDir,
    address: String,
    services: Vec<Process>,
    store: TestStore,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for service in self.services.drain(..) {
            service.kill();
        }
        integration_tests::process::kill_below(self.directory.path());
    }
}

impl Cluster {
    /// `certificate_ttl`: the validity of the nodes' certificates.
    async fn start(certificate_ttl: &str) -> Result<Self> {
        let store = TestStore::start().await;
        let directory = tempfile::Builder::new().prefix("kafila-join-").tempdir()?;
        let files = directory.path();
        let ip = own_address();
        make(files, &["tls", "ca", "create"])?;
        make(files, &["tls", "ca", "create", "-node-ca"])?;
        make(files, &["tls", "cert", "create", "-role=operator"])?;
        let of_gateway = format!("-additional-ipaddress={ip}");
        make(
            files,
            &["tls", "cert", "create", "-role=gateway", &of_gateway],
        )?;
        let address = format!("{ip}:4646");
        let settings = [
            format!("etcd.endpoints={}", store.endpoint),
            format!("listen.grpc={address}"),
            "tls.cert_file=global-gateway.pem".to_owned(),
            "tls.key_file=global-gateway-key.pem".to_owned(),
            "node_ca_cert_file=kafila-node-ca.pem".to_owned(),
            "node_ca_key_file=kafila-node-ca-key.pem".to_owned(),
            format!("node_certificate_ttl={certificate_ttl}"),
            HEARTBEAT_TTL.to_owned(),
        ];
        let gateway = spawn(files, "api-gateway", "gateway.log", &settings)?;
        Ok(Self {
            directory,
            address,
            services: vec![gateway],
            store,
        })
    }

    /// Starts the service that marks nodes as ready and down.
    fn start_controller(&mut self) -> Result<()> {
        let files = self.directory.path();
        make(files, &["tls", "cert", "create", "-role=controller"])?;
        let settings = [
            format!("etcd.endpoints={}", self.store.endpoint),
            "listen.grpc=127.0.0.1:0".to_owned(),
            "tls.cert_file=global-controller.pem".to_owned(),
            "tls.key_file=global-controller-key.pem".to_owned(),
            HEARTBEAT_TTL.to_owned(),
        ];
        let log = "controller.log";
        let controller = spawn(files, "cluster-controller", log, &settings)?;
        self.services.push(controller);
        Ok(())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Starts the node with this name and directory.
    fn node(&self, name: &str, token: Option<&str>) -> Result<Process> {
        let ip = own_address();
        let mut settings = vec![
            format!("gateways={}", self.address),
            format!("listen.grpc={ip}:0"),
            format!("data_dir={}", self.path(name).display()),
            format!("name={name}"),
        ];
        if let Some(token) = token {
            let file = self.path(&format!("{name}.token"));
            std::fs::write(&file, token)?;
            settings.push(format!("introduction.token_file={}", file.display()));
        }
        let log = format!("{name}.log");
        spawn(self.directory.path(), "client-node", &log, &settings)
    }

    async fn kafila(&self, arguments: &[&str]) -> Result<CommandOutput> {
        let path = |name: &str| self.path(name).display().to_string();
        let files = [
            ("KAFILA_CACERT", path("kafila-ca.pem")),
            ("KAFILA_CLIENT_CERT", path("global-operator.pem")),
            ("KAFILA_CLIENT_KEY", path("global-operator-key.pem")),
        ];
        let files: Vec<(&str, &str)> = files.iter().map(|(key, it)| (*key, it.as_str())).collect();
        let address = format!("https://{}", self.address);
        binary::run_with(&address, arguments, &files).await
    }

    async fn token(&self) -> Result<String> {
        self.token_of(&["node", "introduction", "create", "-quiet"])
            .await
    }

    async fn token_of(&self, line: &[&str]) -> Result<String> {
        eventually(TIMEOUT, || async {
            let created = self.kafila(line).await?.ok()?;
            Ok(created.stdout.trim().to_owned())
        })
        .await
    }

    fn id_of(&self, node: &str) -> Result<String> {
        Ok(std::fs::read_to_string(
            self.path(node).join("client/client-id"),
        )?)
    }

    fn certificate_of(&self, node: &str) -> Result<String> {
        Ok(std::fs::read_to_string(
            self.path(node).join("tls/node.pem"),
        )?)
    }

    fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }
}

fn spawn(directory: &Path, service: &str, log: &str, settings: &[String]) -> Result<Process> {
    let mut command = Command::new(binary::kafila());
    command.arg(service).current_dir(directory);
    let common = [
        "listen.metrics=127.0.0.1:0".to_owned(),
        "tls.ca_file=kafila-ca.pem".to_owned(),
    ];
    for setting in settings.iter().chain(&common) {
        command.args(["-set", setting]);
    }
    Process::start(service, command, &directory.join(log))
}

fn make(directory: &Path, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new(binary::kafila());
    let output = command.args(arguments).current_dir(directory).output()?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{arguments:?}: {stderr}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_joins_with_a_token_keeps_its_identity_and_renews_its_certificate() -> Result<()> {
    // Renewed after two thirds of it.
    let cluster = Cluster::start("12s").await?;
    let played = play(&cluster).await;
    let logs = || format!("{}\n{}", cluster.log("gateway.log"), cluster.log("one.log"));
    played.with_context(logs)
}

async fn play(cluster: &Cluster) -> Result<()> {
    let token = cluster.token().await?;
    let node = cluster.node("one", Some(&token))?;
    let is_listed = async || {
        let nodes = cluster.kafila(&["node", "status"]).await?.ok()?;
        ensure!(nodes.stdout.contains(" one "), "{nodes:?}");
        Ok(())
    };
    eventually(TIMEOUT, is_listed).await?;
    let id = cluster.id_of("one")?;

    // A second machine with the token is refused, and says why.
    let second = cluster.node("two", Some(&token))?;
    eventually(TIMEOUT, async || {
        let log = cluster.log("two.log");
        ensure!(log.contains("used up"), "{log}");
        Ok(())
    })
    .await?;
    ensure!(second.terminate(TIMEOUT).await? == 1, "it ends by itself");
    let log = cluster.log("two.log");
    ensure!(!log.contains(&token), "the log shows the token: {log}");

    // The certificate is renewed under the same id, while the node runs.
    let first = cluster.certificate_of("one")?;
    eventually(TIMEOUT, async || {
        ensure!(cluster.certificate_of("one")? != first, "not renewed yet");
        Ok(())
    })
    .await?;
    let renewed = pki::Description::read(&cluster.certificate_of("one")?)?;
    ensure!(renewed.identity?.name() == id, "another id");

    // A restart needs no token.
    node.kill();
    let registrations = || cluster.log("one.log").matches("node registered").count();
    let before = registrations();
    let again = cluster.node("one", None)?;
    eventually(TIMEOUT, async || {
        ensure!(registrations() > before, "not registered again");
        Ok(())
    })
    .await?;
    ensure!(cluster.id_of("one")? == id, "another id after the restart");
    again.kill();
    let gateway = cluster.log("gateway.log");
    ensure!(
        !gateway.contains(&token),
        "the gateway's log shows the token"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_cannot_work_costs_no_use_of_the_token() -> Result<()> {
    let cluster = Cluster::start("1h").await?;
    let played = play_wrong_starts(&cluster).await;
    played.with_context(|| cluster.log("gateway.log"))
}

async fn play_wrong_starts(cluster: &Cluster) -> Result<()> {
    let line = ["node", "introduction", "create", "-quiet", "-node-pool=gpu"];
    let token = cluster.token_of(&line).await?;
    let token_file = cluster.path("token");
    std::fs::write(&token_file, token)?;
    std::fs::write(cluster.path("file"), "")?;
    let start = |name: &str, settings: &[&str]| {
        let common = [
            format!("gateways={}", cluster.address),
            format!("introduction.token_file={}", token_file.display()),
        ];
        let settings = settings.iter().map(|setting| (*setting).to_owned());
        let settings: Vec<String> = common.into_iter().chain(settings).collect();
        let log = format!("{name}.log");
        spawn(cluster.directory.path(), "client-node", &log, &settings)
    };
    let listen = format!("listen.grpc={}:0", own_address());
    let [cert, key] = ["tls.cert_file=own/node.pem", "tls.key_file=own/key.pem"];
    let wrong = [
        (
            "forgotten",
            vec![&listen, "node_pool=gpu", cert, key],
            "`data_dir`: is not set",
        ),
        (
            "unwritable",
            vec![&listen, "node_pool=gpu", cert, key, "data_dir=file/data"],
            "file/data",
        ),
        (
            "unreachable",
            vec!["listen.grpc=0.0.0.0:0", "node_pool=gpu", "data_dir=three"],
            "set `listen.advertise`",
        ),
        (
            "pool",
            vec![&listen, "data_dir=four"],
            "set node_pool = \"gpu\"",
        ),
    ];
    for (name, settings, problem) in wrong {
        let node = start(name, &settings)?;
        eventually(TIMEOUT, || async {
            let log = cluster.log(&format!("{name}.log"));
            // A quoted text in a log has escaped quotes.
            ensure!(log.replace('\\', "").contains(problem), "{name}: {log}");
            Ok(())
        })
        .await?;
        ensure!(node.terminate(TIMEOUT).await? == 1, "{name} ends by itself");
        let listed = cluster.kafila(&["node", "introduction", "list"]);
        let listed = listed.await?.ok()?.stdout;
        ensure!(listed.contains("0 of 1"), "{name}: {listed}");
    }
    let _node = start(
        "right",
        &[&listen, "node_pool=gpu", "data_dir=four", "name=n"],
    )?;
    eventually(TIMEOUT, || async {
        let nodes = cluster.kafila(&["node", "status"]).await?.ok()?;
        ensure!(nodes.stdout.contains(" n "), "{nodes:?}");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_node_is_revoked_and_reinstated() -> Result<()> {
    let mut cluster = Cluster::start("1h").await?;
    cluster.start_controller()?;
    let played = play_revocation(&cluster).await;
    let logs = || format!("{}\n{}", cluster.log("gateway.log"), cluster.log("one.log"));
    played.with_context(logs)
}

async fn play_revocation(cluster: &Cluster) -> Result<()> {
    let token = cluster.token().await?;
    let _node = cluster.node("one", Some(&token))?;
    let has_status = async |status: &str| {
        eventually(TIMEOUT, async || {
            let nodes = cluster.kafila(&["node", "status"]).await?.ok()?;
            let mut rows = nodes.stdout.lines();
            let row = rows.find(|row| row.contains(" one ")).unwrap_or_default();
            ensure!(row.ends_with(status), "{nodes:?}");
            Ok(())
        })
        .await
    };
    has_status("ready").await?;
    let id = cluster.id_of("one")?;
    let revoke = ["node", "introduction", "revoke", "-reason=sold", &id[..8]];
    let revoked = cluster.kafila(&revoke).await?.ok()?;
    ensure!(revoked.stdout.contains(&id), "{revoked:?}");

    // The agent says why it is refused, and the node is down by its missing heartbeats.
    eventually(TIMEOUT, async || {
        let log = cluster.log("one.log");
        let remedy = format!("kafila node introduction reinstate {id}");
        ensure!(log.contains(&remedy), "{log}");
        Ok(())
    })
    .await?;
    has_status("down").await?;
    let listed = cluster
        .kafila(&["node", "introduction", "revoked", "-verbose"])
        .await?
        .ok()?;
    ensure!(
        listed.stdout.contains(&id) && listed.stdout.contains("sold"),
        "{listed:?}"
    );

    // The agent runs on with its certificate, so a reinstated node comes back by itself.
    let reinstate = ["node", "introduction", "reinstate", &id];
    cluster.kafila(&reinstate).await?.ok()?;
    has_status("ready").await
}
