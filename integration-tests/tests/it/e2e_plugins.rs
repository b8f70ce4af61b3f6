//! A job whose driver is a plugin in a process of its own: it waits for a node with the plugin, runs, and goes on
//! when the plugin and the agent are killed.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use integration_tests::api::{Api, eventually};
use integration_tests::binary;
use integration_tests::suite::{Options, Suite};

const TIMEOUT: Duration = Duration::from_secs(90);

const JOB: &str = r#"job "counter" {
  group "g" {
    task "task" {
      driver = "stand-in"
      config {
        command = "/bin/sh"
        args    = ["-c", "echo pid $$ $GREETING; n=0; while true; do n=$((n+1)); echo line $n; sleep 0.1; done"]
        vars {
          GREETING = "hello from ${NOMAD_TASK_NAME}"
        }
      }
    }
  }
}"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_job_of_a_plugin_waits_for_a_node_runs_and_survives_plugin_and_agent() -> Result<()> {
    if !test_kit::etcd::available() {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let plugins = folder.path().join("plugins");
    std::fs::create_dir(&plugins)?;
    let config = format!(
        "plugin_dir = {:?}\n\n[plugins.stand-in-plugin]\nargs = [\"version=4.5.6\"]\nconfig = {{ greeting = \"good day\" }}\n",
        plugins.display().to_string()
    );
    let options = Options {
        node_config: Some(config),
        ..Options::default()
    };
    let mut suite = Suite::start(options).await?;
    let result = play(&mut suite, &plugins).await;
    result.with_context(|| suite.log_tails())?;
    suite.stop().await
}

async fn play(suite: &mut Suite, plugins: &std::path::Path) -> Result<()> {
    let api = suite.api()?;
    let file = tempfile::Builder::new().suffix(".hcl").tempfile()?;
    std::fs::write(file.path(), JOB)?;
    let path = file.path().to_str().context("its name is text")?;
    let said = suite.kafila(&["job", "run", "-detach", path]).await?.ok()?;
    let warning = "have no driver \"stand-in\", so its group waits for";
    let said = format!("{} {}", said.stdout, said.stderr);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    ensure!(said.contains(warning), "{said}");
    eventually(TIMEOUT, || async {
        let evaluations = api.evaluations().await?;
        let mut blocked = evaluations.iter().filter(|eval| eval.status == "blocked");
        blocked.next().context("nothing is blocked")?;
        Ok(())
    })
    .await?;

    // The node gets the plugin, which its agent finds at its next start.
    std::os::unix::fs::symlink(binary::driver_plugin(), plugins.join("stand-in-plugin"))?;
    suite.kill("client-node-0");
    suite.start_process("client-node-0")?;
    let alloc_id = running(&api).await?;
    let (pid, line) = eventually(TIMEOUT, || read(&api, &alloc_id)).await?;
    let node = api.nodes().await?.remove(0);
    let shown = suite
        .kafila(&["node", "status", "-verbose", &node.id])
        .await?
        .ok()?;
    for part in ["driver.stand-in.greeting", "good day", "4.5.6"] {
        ensure!(shown.stdout.contains(part), "{part}: {shown:?}");
    }

    let plugin = pid_of_plugin(plugins)?;
    ensure!(
        std::process::Command::new("kill")
            .args(["-9", plugin.as_str()])
            .status()?
            .success()
    );
    let line = goes_on(&api, &alloc_id, pid, line).await?;
    suite.kill("client-node-0");
    suite.start_process("client-node-0")?;
    goes_on(&api, &alloc_id, pid, line).await?;

    suite
        .kafila(&["job", "stop", "-detach", "counter"])
        .await?
        .ok()?;
    eventually(TIMEOUT, || async {
        let is_alive = std::path::Path::new(&format!("/proc/{pid}")).exists();
        ensure!(!is_alive, "process {pid} outlived its job");
        Ok(())
    })
    .await
}

async fn running(api: &Api) -> Result<String> {
    eventually(TIMEOUT, || async {
        let allocations = api.allocations("counter").await?;
        let running = allocations
            .iter()
            .find(|alloc| alloc.client_status == "running");
        Ok(running
            .with_context(|| format!("nothing runs yet: {allocations:?}"))?
            .id
            .clone())
    })
    .await
}

/// Returns the task's process id and the last line's number. The task started once.
async fn read(api: &Api, alloc_id: &str) -> Result<(i32, u64)> {
    let log = api.logs(alloc_id, "task").await?;
    let starts: Vec<&str> = log
        .lines()
        .filter_map(|line| line.strip_prefix("pid "))
        .collect();
    let [start] = starts.as_slice() else {
        anyhow::bail!("the task started {} times", starts.len());
    };
    let (pid, greeting) = start.split_once(' ').context("the start has two parts")?;
    ensure!(greeting == "hello from task", "{greeting}");
    let mut lines = log.lines().filter_map(|line| line.strip_prefix("line "));
    let last = lines.next_back().context("no line yet")?;
    Ok((pid.parse()?, last.parse()?))
}

/// Waits until the same process has printed more.
async fn goes_on(api: &Api, alloc_id: &str, pid: i32, before: u64) -> Result<u64> {
    eventually(TIMEOUT, || async {
        let (now, line) = read(api, alloc_id).await?;
        ensure!(now == pid, "process {pid} became {now}");
        ensure!(line > before + 20, "the log is still at line {line}");
        let alloc = api.allocation(alloc_id).await?;
        ensure!(
            alloc.client_status == "running",
            "it is {}",
            alloc.client_status
        );
        Ok(line)
    })
    .await
}

/// Returns the process whose program is in the plugins' directory.
fn pid_of_plugin(plugins: &std::path::Path) -> Result<String> {
    let mark = plugins.display().to_string();
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if line.starts_with(mark.as_bytes()) {
            return Ok(entry.file_name().to_string_lossy().into_owned());
        }
    }
    anyhow::bail!("there is no process of the plugin")
}
