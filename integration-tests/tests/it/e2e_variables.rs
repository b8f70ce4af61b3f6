//! Variables and services over a real etcd: templates read them and follow their changes, exactly the
//! tasks that use a changed variable restart, and its values are nowhere but in them.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use integration_tests::api::eventually;
use integration_tests::suite::{Options, Suite};

const TIMEOUT: Duration = Duration::from_secs(90);

/// `server` prints its password at each start, `proxy` the addresses of `server`, and `bystander`
/// reads neither.
const JOB: &str = r#"
job "web" {
  group "app" {
    network {
      port "http" {}
    }
    service {
      name     = "api"
      port     = "http"
      provider = "nomad"
    }
    task "server" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "echo \"read $(cat secrets/app.conf)\"; exec sleep 600"]
      }
      template {
        data        = "{{ with nomadVar \"nomad/jobs/web\" }}{{ .password }}{{ end }}"
        destination = "secrets/app.conf"
        splay       = "0s"
        wait {
          min = "100ms"
          max = "1s"
        }
      }
      resources {
        cpu    = 20
        memory = 20
      }
    }
    task "proxy" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "echo \"sees $(cat local/hosts)\"; exec sleep 600"]
      }
      template {
        data        = "{{ range nomadService \"api\" }}{{ .Name }} {{ .Port }} {{ end }}{{ range nomadVarList \"nomad/jobs\" }}{{ .Path }}{{ end }}"
        destination = "local/hosts"
        splay       = "0s"
        wait {
          min = "100ms"
          max = "1s"
        }
      }
      resources {
        cpu    = 20
        memory = 20
      }
    }
    task "bystander" {
      driver = "raw_exec"
      config {
        command = "/bin/sleep"
        args    = ["600"]
      }
      resources {
        cpu    = 20
        memory = 20
      }
    }
  }
}
"#;

/// Reads a variable of another job.
const THIEF: &str = r#"
job "thief" {
  type = "batch"
  group "app" {
    task "thief" {
      driver = "raw_exec"
      config {
        command = "/bin/true"
      }
      template {
        data        = "{{ with nomadVar \"nomad/jobs/web\" }}{{ .password }}{{ end }}"
        destination = "secrets/app.conf"
      }
      resources {
        cpu    = 20
        memory = 20
      }
    }
  }
}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn tasks_follow_the_variables_of_their_job_and_nothing_else_has_them() -> Result<()> {
    if !test_kit::etcd::available() {
        return Ok(());
    }
    let suite = Suite::start(Options::default()).await?;
    let result = play(&suite).await;
    result.with_context(|| suite.log_tails())?;
    suite.stop().await
}

async fn play(suite: &Suite) -> Result<()> {
    put(suite, "password=planted-one").await?;
    put_at(suite, "nomad/jobs/other", "x=planted-other").await?;
    suite.run_job(JOB).await?;
    eventually(TIMEOUT, || printed(suite, "server", "read planted-one")).await?;
    // Only the variables that the task reads are in its list.
    let log = eventually(TIMEOUT, || async {
        let log = log_of(suite, "proxy").await?;
        ensure!(
            log.lines().any(|line| line.starts_with("sees api ")),
            "{log}"
        );
        Ok(log)
    })
    .await?;
    ensure!(
        log.contains("nomad/jobs/web") && !log.contains("nomad/jobs/other"),
        "{log}"
    );
    ensure!(restarts(suite, "server").await? == 0);

    put(suite, "password=planted-two").await?;
    eventually(TIMEOUT, || printed(suite, "server", "read planted-two")).await?;
    let alone = restarts(suite, "bystander").await?;
    ensure!(alone == 0, "a task without the variable restarted");
    let allocations = suite.api()?.allocations("web").await?;
    ensure!(allocations.len() == 1, "the allocation was replaced");

    suite.run_job(THIEF).await?;
    eventually(TIMEOUT, || async {
        let allocations = suite.api()?.allocations("thief").await?;
        let alloc = allocations.first().context("no allocation")?;
        let state = format!("{:?}", alloc.task_states.get("thief"));
        ensure!(state.contains("does not read variable"), "{state}");
        Ok(())
    })
    .await?;

    // Longer than the interval of looks: what was rendered stays.
    suite
        .kafila(&["var", "purge", "nomad/jobs/web"])
        .await?
        .ok()?;
    tokio::time::sleep(Duration::from_secs(7)).await;
    let state = suite.api()?.allocations("web").await?;
    let state = &state[0].task_states["server"];
    ensure!(state.state == "running", "{state:?}");

    suite
        .search_secrets(&["planted-one", "planted-two", "planted-other"])
        .await
}

async fn put(suite: &Suite, item: &str) -> Result<()> {
    put_at(suite, "nomad/jobs/web", item).await
}

async fn put_at(suite: &Suite, path: &str, item: &str) -> Result<()> {
    let words = ["var", "put", "-force", "-out=none", path, item];
    suite.kafila(&words).await?.ok().map(drop)
}

async fn log_of(suite: &Suite, task: &str) -> Result<String> {
    let api = suite.api()?;
    let allocations = api.allocations("web").await?;
    let alloc = allocations.first().context("no allocation")?;
    api.logs(&alloc.id, task).await
}

async fn printed(suite: &Suite, task: &str, line: &str) -> Result<()> {
    let log = log_of(suite, task).await.unwrap_or_default();
    let states = suite.api()?.allocations("web").await?;
    let states = states.first().map(|alloc| &alloc.task_states);
    ensure!(log.lines().any(|read| read == line), "{log}{states:?}");
    Ok(())
}

async fn restarts(suite: &Suite, task: &str) -> Result<u64> {
    let allocations = suite.api()?.allocations("web").await?;
    let alloc = allocations.first().context("no allocation")?;
    Ok(u64::from(alloc.task_states[task].restarts))
}
