//! `kafila job plan` against `kafila dev`: it predicts the following run, and changes nothing.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use integration_tests::api::{Api, eventually};
use integration_tests::binary::{self, CommandOutput};
use integration_tests::process::{self, Process};
use integration_tests::suite;
use proto::v1;
use tempfile::TempDir;

const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) const SLEEPER: &str = r#"
job "sleeper" {
  group "app" {
    count = 2
    update {
      max_parallel     = 2
      health_check     = "task_states"
      min_healthy_time = "1s"
    }
    task "sleep" {
      driver = "raw_exec"
      config {
        command = "/bin/sleep"
        args    = ["1000"]
      }
      resources {
        cpu    = 20
        memory = 20
      }
    }
  }
}
"#;

/// A dev suite and a directory of job files, both gone when dropped.
pub(crate) struct Dev {
    directory: TempDir,
    pub(crate) address: String,
    process: Option<Process>,
}

impl Dev {
    pub(crate) async fn start() -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("kafila-plan-").tempdir()?;
        let listen = format!("{}:4646", suite::own_address());
        let mut command = Command::new(binary::kafila());
        command
            .args(["dev", "-listen", &listen])
            .env("TMPDIR", directory.path());
        let process = Process::start("dev", command, &directory.path().join("dev.log"))?;
        let dev = Self {
            directory,
            address: format!("http://{listen}"),
            process: Some(process),
        };
        let api = dev.api()?;
        eventually(TIMEOUT, || async {
            let nodes = api.nodes().await?;
            ensure!(nodes.iter().any(|node| node.status == "ready"), "{nodes:?}");
            Ok(())
        })
        .await?;
        Ok(dev)
    }

    pub(crate) fn api(&self) -> Result<Api> {
        Api::new(&self.address)
    }

    fn file(&self, text: &str) -> Result<PathBuf> {
        self.write("sleeper.hcl", text)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.directory.path().join(name);
        std::fs::write(&path, text)?;
        Ok(path)
    }

    pub(crate) async fn say(&self, words: &[&str], text: &str) -> Result<CommandOutput> {
        let path = self.file(text)?;
        let path = path.to_string_lossy();
        binary::run(&self.address, &[words, &[&path]].concat()).await
    }

    /// Returns the output of a dry run that ends with `code`.
    async fn plan(&self, text: &str, code: i32) -> Result<CommandOutput> {
        let said = self.say(&["job", "plan"], text).await?;
        ensure!(said.code == code, "wanted {code}: {said:?}");
        Ok(said)
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        // First the one that would start tasks again.
        drop(self.process.take());
        process::kill_below(self.directory.path());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn scenario_025_plans_end_with_their_result_and_runs_apply_it() -> Result<()> {
    let dev = Dev::start().await?;
    let api = dev.api()?;

    let new = dev.plan(SLEEPER, 1).await?.stdout;
    for part in [
        "+ Job: \"sleeper\"\n",
        "+ Task Group: \"app\" (2 create)\n",
        "  + Task: \"sleep\" (forces create)\n",
        "- All tasks successfully allocated.\n",
        "Job Modify Index: 0\n",
    ] {
        ensure!(new.contains(part), "{part:?} in\n{new}");
    }
    ensure!(api.job("sleeper").await.is_err(), "a plan made a job");

    // The hint's command works, and only once.
    ensure!(new.contains("\nkafila job run -check-index 0 /"), "{new}");
    let run = ["job", "run", "-check-index", "0"];
    dev.say(&run, SLEEPER).await?.ok()?;
    let again = dev.say(&run, SLEEPER).await?;
    ensure!(again.code == 1, "{again:?}");
    let allocations = api.allocations("sleeper").await?;
    ensure!(allocations.len() == 2, "{allocations:?}");

    let same = dev.plan(SLEEPER, 0).await?.stdout;
    ensure!(same.contains("Task Group: \"app\" (2 ignore)\n"), "{same}");

    let env = SLEEPER.replace("config {", "env { LEVEL = \"debug\" }\n      config {");
    let changed = dev.plan(&env, 1).await?.stdout;
    for part in [
        "+/- Job: \"sleeper\"\n",
        "+/- Task Group: \"app\" (2 create/destroy update)\n",
        "  +/- Task: \"sleep\" (forces create/destroy update)\n",
        "    + Env[LEVEL]: \"debug\"\n",
    ] {
        ensure!(changed.contains(part), "{part:?} in\n{changed}");
    }
    let index = changed
        .lines()
        .find_map(|line| line.strip_prefix("Job Modify Index: "));
    let index = index.context("no index")?;
    ensure!(index != "0", "{changed}");

    let in_place = SLEEPER.replace("\"1s\"", "\"2s\"");
    let in_place = dev.plan(&in_place, 0).await?.stdout;
    ensure!(in_place.contains("(2 in-place update)"), "{in_place}");
    ensure!(in_place.contains("+/- MinHealthyTime:"), "{in_place}");

    let restart = SLEEPER.replace("count = 2", "count = 2\n    restart { attempts = 7 }");
    let restart = dev.plan(&restart, 0).await?.stdout;
    ensure!(restart.contains("(2 in-place update)"), "{restart}");
    ensure!(
        restart.contains("Task: \"sleep\" (forces in-place update)"),
        "{restart}"
    );

    let huge = SLEEPER.replace("memory = 20", "memory = 99999999");
    let huge = dev.plan(&huge, 1).await?.stdout;
    ensure!(
        huge.contains("- WARNING: Failed to place all allocations.\n"),
        "{huge}"
    );
    ensure!(
        huge.contains("* Dimension \"memory\" exhausted on 1 node"),
        "{huge}"
    );

    let broken = dev
        .plan(&SLEEPER.replace("count = 2", "count ="), 255)
        .await?;
    ensure!(broken.stdout.is_empty(), "{broken:?}");
    let invalid = dev
        .plan(&SLEEPER.replace("count = 2", "count = -2"), 255)
        .await?;
    ensure!(
        invalid.stderr.contains("Error planning job: "),
        "{invalid:?}"
    );

    // All those plans later everything is as it was, and what was planned is what happens.
    let now = api.allocations("sleeper").await?;
    let desired = |all: &[v1::Allocation]| -> Vec<(String, u64, String)> {
        let facts = |alloc: &v1::Allocation| {
            (
                alloc.id.clone(),
                alloc.job_version,
                alloc.desired_status.clone(),
            )
        };
        all.iter().map(facts).collect()
    };
    ensure!(
        desired(&now) == desired(&allocations),
        "{now:?}\nwas {allocations:?}"
    );
    dev.say(&["job", "run", "-check-index", index], &env)
        .await?
        .ok()?;
    let replaced = api.allocations("sleeper").await?;
    let old = replaced.iter().filter(|alloc| alloc.job_version == 0);
    ensure!(replaced.len() == 4, "{replaced:?}");
    let mut old = old.map(|alloc| alloc.desired_status.as_str());
    ensure!(old.all(|desired| desired == "stop"), "{replaced:?}");
    a_job_without_a_place_is_explained(&dev).await
}

async fn a_job_without_a_place_is_explained(dev: &Dev) -> Result<()> {
    let giant = SLEEPER.replace("\"sleeper\"", "\"giant\"");
    let giant = giant.replace("memory = 20", "memory = 99999999");
    dev.say(&["job", "run", "-detach"], &giant).await?.ok()?;
    let api = dev.api()?;
    let id = eventually(TIMEOUT, || async {
        let evals = api.evaluations().await?;
        let mut failed = evals.iter().filter(|eval| eval.job_id == "giant");
        let failed = failed.find(|eval| eval.status == "complete");
        Ok(failed.context("it has no evaluation")?.id.clone())
    })
    .await?;
    let run = async |words: &[&str]| binary::run(&dev.address, words).await?.ok();
    let explained = run(&["eval", "explain", &id]).await?.stdout;
    for part in [
        "Task Group \"app\"\n2 wanted, 0 live, 0 placed or last updated by this evaluation, 2 cannot be placed\n",
        "  * exhausted: memory (1 node, ",
        "Nearest miss: node ",
        "  -> memory: ask ",
    ] {
        ensure!(explained.contains(part), "{part:?} in\n{explained}");
    }
    for words in [&["eval", "status", &id][..], &["job", "status", "giant"]] {
        let status = run(words).await?.stdout;
        ensure!(status.contains("Run 'kafila eval explain "), "{status}");
    }
    Ok(())
}
