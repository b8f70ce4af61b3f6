//! Storage systems' volumes, from the plugin's job to the end of the last mount, with processes killed at
//! the worst moments. The storage system is a directory (`crates/csi-test-kit`), mounted with the
//! rights of root.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use integration_tests::api::{Api, eventually};
use integration_tests::binary;
use integration_tests::suite::{Options, Suite};

/// Longer than the time after which another gateway goes on with a detachment.
const TIMEOUT: Duration = Duration::from_secs(120);

struct Fixture {
    suite: Suite,
    api: Api,
    system: tempfile::TempDir,
}

fn can_run() -> bool {
    let is_root = nix::unistd::geteuid().is_root();
    if !is_root {
        println!("skipped: mounts need the rights of root");
    }
    is_root && test_kit::etcd::available()
}

impl Fixture {
    async fn start(nodes: usize, abilities: &str) -> Result<Self> {
        let suite = Suite::start(Options {
            nodes,
            ..Options::default()
        });
        let suite = suite.await?;
        let fixture = Self {
            api: suite.api()?,
            suite,
            system: tempfile::tempdir()?,
        };
        let driver = binary::csi_driver();
        let root = fixture.system.path().display();
        let plugin = format!(
            r#"job "plugin" {{
  type = "system"
  group "plugin" {{
    task "driver" {{
      driver = "raw_exec"
      config {{
        command = "{}"
        args    = ["{root}", "${{node.unique.name}}"{abilities}]
      }}
      csi_plugin {{
        id   = "dir"
        type = "monolith"
      }}
    }}
  }}
}}"#,
            driver.display()
        );
        fixture.suite.run_job(&plugin).await?;
        fixture.plugin_is_healthy(nodes).await?;
        Ok(fixture)
    }

    async fn plugin_is_healthy(&self, nodes: usize) -> Result<()> {
        eventually(TIMEOUT, || async {
            let shown = self
                .suite
                .kafila(&["plugin", "status", "dir"])
                .await?
                .ok()?;
            let want = format!("Nodes Healthy        = {nodes}\n");
            ensure!(shown.stdout.contains(&want), "{shown:?}");
            Ok(())
        })
        .await
    }

    fn path(&self, path: &str) -> PathBuf {
        self.system.path().join(path)
    }

    /// Makes calls of a method fail or hang, or ends that.
    fn fault(&self, method: &str, fault: Option<&str>) -> Result<()> {
        let path = self.path("faults").join(method);
        match fault {
            Some(fault) => std::fs::write(path, fault)?,
            None => std::fs::remove_file(path)?,
        }
        Ok(())
    }

    fn calls(&self, method: &str) -> usize {
        let calls = std::fs::read_to_string(self.path("calls")).unwrap_or_default();
        let methods = calls.lines().filter_map(|line| line.split(' ').nth(1));
        methods.filter(|other| *other == method).count()
    }

    async fn is_called(&self, method: &str, more_than: usize) -> Result<()> {
        eventually(TIMEOUT, || async {
            let calls = self.calls(method);
            ensure!(calls > more_than, "{method} was called {calls} times");
            Ok(())
        })
        .await
    }

    async fn create_volume(&self) -> Result<()> {
        let file = tempfile::Builder::new().suffix(".hcl").tempfile()?;
        std::fs::write(file.path(), VOLUME)?;
        let path = file.path().to_str().context("its name is text")?;
        let said = self.suite.kafila(&["volume", "create", path]).await?.ok()?;
        let want = "Created external volume vol-data with ID data";
        ensure!(said.stdout.contains(want), "{said:?}");
        // A repetition finds it.
        let again = self.suite.kafila(&["volume", "create", path]).await?.ok()?;
        ensure!(again.stdout == said.stdout, "{again:?}");
        Ok(())
    }

    /// Runs a job that appends a line to the volume's log, and then sleeps.
    async fn write(&self, job: &str, node: usize) -> Result<()> {
        let text = WRITER
            .replace("JOB", job)
            .replace("NODE", &format!("client-node-{node}"));
        self.suite.run_job(&text).await
    }

    async fn is(&self, job: &str, status: &str) -> Result<String> {
        eventually(TIMEOUT, || async {
            let allocations = self.api.allocations(job).await?;
            let found = allocations
                .iter()
                .find(|alloc| alloc.client_status == status);
            let found = found.with_context(|| format!("{job} is not {status}: {allocations:?}"));
            Ok(found?.id.clone())
        })
        .await
    }

    async fn log_has(&self, lines: &str) -> Result<()> {
        eventually(TIMEOUT, || async {
            let log = std::fs::read_to_string(self.path("volumes/vol-data/log"))?;
            ensure!(log == lines, "{log:?}");
            Ok(())
        })
        .await
    }

    /// Mount points below the nodes' directories.
    fn mounted(&self) -> Result<Vec<String>> {
        let text = std::fs::read_to_string("/proc/self/mountinfo")?;
        let points = text.lines().filter_map(|line| line.split(' ').nth(4));
        let below = self.suite.data_dir("");
        let points = points.filter(|point| Path::new(point).starts_with(&below));
        Ok(points.map(str::to_owned).collect())
    }

    async fn finish(self, result: Result<()>) -> Result<()> {
        let mounted = self.mounted()?;
        for point in mounted.iter().rev() {
            let _ = nix::mount::umount2(point.as_str(), nix::mount::MntFlags::MNT_DETACH);
        }
        let calls = std::fs::read_to_string(self.path("calls")).unwrap_or_default();
        result.with_context(|| format!("calls: {calls}\n{}", self.suite.log_tails()))?;
        ensure!(mounted.is_empty(), "left mounted: {mounted:?}");
        ensure!(!calls.contains("DOUBLE-ATTACH"), "{calls}");
        self.suite.stop().await
    }
}

const VOLUME: &str = r#"
id        = "data"
type      = "csi"
plugin_id = "dir"
capacity_min = "10MiB"
capability {
  access_mode     = "single-node-writer"
  attachment_mode = "file-system"
}
"#;

const WRITER: &str = r#"job "JOB" {
  constraint {
    attribute = "${node.unique.name}"
    value     = "NODE"
  }
  group "g" {
    volume "disk" {
      type            = "csi"
      source          = "data"
      access_mode     = "single-node-writer"
      attachment_mode = "file-system"
    }
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "echo JOB >> $KAFILA_VOLUME_disk/log; exec sleep 3600"]
      }
    }
  }
}"#;

#[tokio::test(flavor = "multi_thread")]
async fn data_of_a_volume_outlives_its_writer_its_plugin_and_an_agent_killed_while_it_mounts()
-> Result<()> {
    if !can_run() {
        return Ok(());
    }
    let mut fixture = Fixture::start(1, ", \"stage\"").await?;
    let result = one_node(&mut fixture).await;
    fixture.finish(result).await
}

async fn one_node(fixture: &mut Fixture) -> Result<()> {
    // The job is there before its volume.
    fixture.write("first", 0).await?;
    eventually(TIMEOUT, || async {
        let evaluations = fixture.api.evaluations().await?;
        let mut of_job = evaluations.iter().filter(|eval| eval.job_id == "first");
        let is_blocked = of_job.any(|eval| eval.status == "blocked");
        ensure!(is_blocked, "nothing is blocked");
        Ok(())
    })
    .await?;
    fixture.create_volume().await?;
    fixture.is("first", "running").await?;
    fixture.log_has("first\n").await?;
    ensure!(fixture.mounted()?.len() == 2, "{:?}", fixture.mounted());

    // Another job waits, and the volume stays.
    fixture.write("second", 0).await?;
    let refused = fixture
        .suite
        .kafila(&["volume", "delete", "-type=csi", "data"]);
    let refused = refused.await?;
    ensure!(
        refused.stderr.contains("volume in use: data"),
        "{refused:?}"
    );
    let shown = fixture
        .suite
        .kafila(&["volume", "status", "-type=csi"])
        .await?
        .ok()?;
    ensure!(
        shown.stdout.contains("true         single-node-writer"),
        "{shown:?}"
    );

    // The plugin restarts under a running writer.
    let plugin = fixture.is("plugin", "running").await?;
    fixture
        .suite
        .kafila(&["alloc", "restart", &plugin])
        .await?
        .ok()?;
    fixture.plugin_is_healthy(1).await?;
    fixture.is("first", "running").await?;

    // The end of the writer is reported after the volume is unmounted, and the next writer finds its data.
    fixture.fault("NodeUnpublishVolume", Some("fail"))?;
    let unpublished = fixture.calls("NodeUnpublishVolume");
    fixture
        .suite
        .kafila(&["job", "stop", "-detach", "first"])
        .await?
        .ok()?;
    fixture
        .is_called("NodeUnpublishVolume", unpublished + 1)
        .await?;
    fixture.is("first", "running").await?;

    // The agent is killed while it unmounts, and again while the storage system hangs in a mount.
    fixture.suite.kill("client-node-0");
    fixture.fault("NodeUnpublishVolume", None)?;
    fixture.fault("NodeStageVolume", Some("hang"))?;
    let staged = fixture.calls("NodeStageVolume");
    fixture.suite.start_process("client-node-0")?;
    fixture.is("first", "complete").await?;
    fixture.is_called("NodeStageVolume", staged).await?;
    fixture.suite.kill("client-node-0");
    fixture.fault("NodeStageVolume", None)?;
    fixture.suite.start_process("client-node-0")?;
    fixture.is("second", "running").await?;
    fixture.log_has("first\nsecond\n").await?;

    fixture
        .suite
        .kafila(&["job", "stop", "-detach", "second"])
        .await?
        .ok()?;
    fixture.is("second", "complete").await?;
    ensure!(fixture.mounted()?.is_empty(), "{:?}", fixture.mounted());

    // A snapshot, and the end of the volume with its data.
    let words = ["volume", "snapshot", "create", "data", "before"];
    // The plugin is healthy again once the restarted agent has probed it.
    let suite = &fixture.suite;
    let said = eventually(TIMEOUT, || async { suite.kafila(&words).await?.ok() }).await?;
    ensure!(said.stdout.contains("snap-before"), "{said:?}");
    ensure!(
        fixture.path("snapshots/snap-before/log").exists(),
        "no copy"
    );
    let words = ["volume", "snapshot", "list", "-plugin=dir"];
    let said = fixture.suite.kafila(&words).await?.ok()?;
    ensure!(said.stdout.contains("vol-data"), "{said:?}");
    let words = ["volume", "snapshot", "delete", "dir", "snap-before"];
    fixture.suite.kafila(&words).await?.ok()?;
    let words = ["volume", "status", "-plugin-id=dir", "-external"];
    let said = fixture.suite.kafila(&words).await?.ok()?;
    ensure!(said.stdout.contains("vol-data"), "{said:?}");
    let words = ["volume", "delete", "-type=csi", "data"];
    fixture.suite.kafila(&words).await?.ok()?;
    ensure!(
        !fixture.path("volumes/vol-data").exists(),
        "the data is left"
    );
    let said = fixture
        .suite
        .kafila(&["volume", "status", "-type=csi"])
        .await?
        .ok()?;
    ensure!(said.stdout.trim() == "No CSI volumes", "{said:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_is_attached_to_one_node_at_a_time_although_its_gateway_dies_while_it_detaches()
-> Result<()> {
    if !can_run() {
        return Ok(());
    }
    let mut fixture = Fixture::start(2, ", \"stage\", \"attach\"").await?;
    let result = two_nodes(&mut fixture).await;
    fixture.finish(result).await
}

async fn two_nodes(fixture: &mut Fixture) -> Result<()> {
    fixture.create_volume().await?;
    fixture.write("first", 0).await?;
    fixture.is("first", "running").await?;
    let shown = fixture
        .suite
        .kafila(&["volume", "status", "-type=csi", "data"]);
    let shown = shown.await?.ok()?;
    ensure!(shown.stdout.contains("attached"), "{shown:?}");
    fixture.write("second", 1).await?;

    // The storage system hangs while the volume is detached, and the gateway dies.
    fixture.fault("ControllerUnpublishVolume", Some("hang"))?;
    fixture
        .suite
        .kafila(&["job", "stop", "-detach", "first"])
        .await?
        .ok()?;
    fixture.is("first", "complete").await?;
    fixture.is_called("ControllerUnpublishVolume", 0).await?;
    fixture.suite.kill("api-gateway");
    fixture.fault("ControllerUnpublishVolume", None)?;
    fixture.suite.start_process("api-gateway")?;
    fixture.is("second", "running").await?;
    fixture.log_has("first\nsecond\n").await?;
    let attached = std::fs::read_dir(fixture.path("attached/vol-data"))?;
    let attached: Vec<_> = attached.collect::<std::io::Result<_>>()?;
    ensure!(attached.len() == 1, "{attached:?}");

    // A storage system that fails is asked again.
    fixture.fault("ControllerUnpublishVolume", Some("fail"))?;
    let failed = fixture.calls("ControllerUnpublishVolume");
    fixture
        .suite
        .kafila(&["job", "stop", "-detach", "second"])
        .await?
        .ok()?;
    fixture.is("second", "complete").await?;
    fixture
        .is_called("ControllerUnpublishVolume", failed + 1)
        .await?;
    let shown = fixture
        .suite
        .kafila(&["volume", "status", "-type=csi", "data"]);
    let shown = shown.await?.ok()?;
    ensure!(shown.stdout.contains("out of order"), "{shown:?}");
    let refused = fixture
        .suite
        .kafila(&["volume", "deregister", "data"])
        .await?;
    ensure!(
        refused.stderr.contains("is attached to node"),
        "{refused:?}"
    );
    fixture.fault("ControllerUnpublishVolume", None)?;
    eventually(TIMEOUT, || async {
        let left = std::fs::read_dir(fixture.path("attached/vol-data"))?.count();
        ensure!(left == 0, "still attached");
        let said = fixture
            .suite
            .kafila(&["volume", "deregister", "data"])
            .await?;
        said.ok()?;
        Ok(())
    })
    .await?;
    ensure!(
        fixture.path("volumes/vol-data/log").exists(),
        "the data is gone"
    );
    Ok(())
}
