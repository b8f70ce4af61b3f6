//! Dispatches, periodic launches and scaling with the command against `kafila dev`.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use integration_tests::api::eventually;
use integration_tests::binary;

use crate::e2e_plan::{Dev, SLEEPER};

const TIMEOUT: Duration = Duration::from_secs(60);

/// The examples that are tried out here.
pub(crate) const EXAMPLES: [&str; 2] = ["dispatch.hcl", "periodic.hcl"];

fn example(name: &str) -> Result<String> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    Ok(std::fs::read_to_string(path.join(name))?)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dispatched_task_reads_its_payload_and_meta() -> Result<()> {
    let dev = Dev::start().await?;
    let api = dev.api()?;
    let said = dev
        .say(&["job", "run"], &example(EXAMPLES[0])?)
        .await?
        .ok()?;
    ensure!(said.stdout == "Job registration successful\n", "{said:?}");

    let payload = dev.write("payload", "good morning")?;
    let payload = payload.to_str().context("a path")?;
    let line = [
        "job",
        "dispatch",
        "-detach",
        "-meta",
        "language=en",
        "-idempotency-token",
        "t1",
        "dispatch",
        payload,
    ];
    let first = binary::run(&dev.address, &line).await?.ok()?;
    let child = field(&first.stdout, "Dispatched Job ID")?;
    ensure!(child.starts_with("dispatch/dispatch-"), "{child}");
    let alloc_id = eventually(TIMEOUT, || async {
        let allocations = api.allocations(&child).await?;
        let done = allocations
            .iter()
            .find(|alloc| alloc.client_status == "complete");
        Ok(done.with_context(|| format!("{allocations:?}"))?.id.clone())
    })
    .await?;
    let status = binary::run(&dev.address, &["job", "status", &child])
        .await?
        .ok()?;
    ensure!(field(&status.stdout, "Name")? == child, "{status:?}");
    let logs = api.logs(&alloc_id, "read").await?;
    ensure!(logs == "in en: good morning\n", "{logs:?}");

    // The token stands for its child, whatever else the second dispatch says.
    let again = binary::run(&dev.address, &line).await?.ok()?;
    ensure!(
        field(&again.stdout, "Dispatched Job ID")? == child,
        "{again:?}"
    );
    let refused = binary::run(&dev.address, &["job", "dispatch", "dispatch"]).await?;
    ensure!(refused.code == 1, "{refused:?}");
    ensure!(
        refused.stderr.contains("not provided but required"),
        "{refused:?}"
    );

    let status = binary::run(&dev.address, &["job", "status", "dispatch"])
        .await?
        .ok()?;
    for expected in ["Parameterized = true", "Dispatched Jobs", child.as_str()] {
        ensure!(
            status.stdout.contains(expected),
            "no {expected} in {}",
            status.stdout
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_periodic_job_is_launched_by_the_clock_and_by_hand() -> Result<()> {
    let dev = Dev::start().await?;
    let api = dev.api()?;
    let every_second = example(EXAMPLES[1])?.replace("*/15 * * * *", "* * * * * * *");
    ensure!(every_second.contains("* * * * * * *"), "{every_second}");
    let planned = dev.say(&["job", "plan"], &every_second).await?;
    ensure!(
        planned.stdout.contains("next periodic launch would be at"),
        "{planned:?}"
    );
    let said = dev.say(&["job", "run"], &every_second).await?.ok()?;
    ensure!(
        said.stdout.contains("Approximate next launch time: "),
        "{said:?}"
    );
    let children = || async {
        let jobs = api.jobs().await?;
        let mut children: Vec<_> = jobs
            .into_iter()
            .filter(|job| !job.parent_id.is_empty())
            .collect();
        children.sort_by_key(|job| job.create_index);
        anyhow::Ok(children)
    };
    eventually(TIMEOUT, || async {
        let children = children().await?;
        let dead = children.iter().filter(|job| job.status == "dead").count();
        ensure!(dead >= 3, "{children:?}");
        Ok(())
    })
    .await?;
    // Never two of one time, and one after the other: overlaps are prohibited.
    let launched = children().await?;
    let times: Vec<&str> = launched
        .iter()
        .filter_map(|job| job.id.strip_prefix("periodic/periodic-"))
        .collect();
    ensure!(
        times.len() == launched.len() && times.is_sorted_by(|one, next| one < next),
        "{times:?}"
    );

    binary::run(&dev.address, &["job", "stop", "periodic"])
        .await?
        .ok()?;
    let stopped = children().await?.len();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let later = children().await?.len();
    // One may have been under way.
    ensure!(later <= stopped + 1, "{later} children after {stopped}");
    let refused = binary::run(&dev.address, &["job", "periodic", "force", "periodic"]).await?;
    ensure!(refused.stderr.contains("is stopped"), "{refused:?}");

    dev.say(&["job", "run"], &example(EXAMPLES[1])?)
        .await?
        .ok()?;
    let before = children().await?.len();
    let forced = ["job", "periodic", "force", "-detach", "periodic"];
    let forced = binary::run(&dev.address, &forced).await?.ok()?;
    ensure!(
        forced.stdout.starts_with("Force periodic successful\n"),
        "{forced:?}"
    );
    ensure!(children().await?.len() > before);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_scaled_up_and_down() -> Result<()> {
    let dev = Dev::start().await?;
    let api = dev.api()?;
    let limited = SLEEPER.replace(
        "count = 2",
        "count = 2\n    scaling {\n      min = 1\n      max = 3\n    }",
    );
    dev.say(&["job", "run"], &limited).await?.ok()?;
    for (group, count) in [(vec![], "3"), (vec!["app"], "1")] {
        let mut line = vec!["job", "scale", "sleeper"];
        line.extend(group);
        line.push(count);
        binary::run(&dev.address, &line).await?.ok()?;
        eventually(TIMEOUT, || async {
            let allocations = api.allocations("sleeper").await?;
            let running = allocations
                .iter()
                .filter(|alloc| alloc.client_status == "running");
            let running = running.count().to_string();
            ensure!(running == count, "{running} run, not {count}");
            Ok(())
        })
        .await?;
    }
    let refused = binary::run(&dev.address, &["job", "scale", "sleeper", "4"]).await?;
    ensure!(
        refused
            .stderr
            .contains("greater than scaling policy maximum: 4 > 3"),
        "{refused:?}"
    );
    let events = binary::run(&dev.address, &["job", "scaling-events", "sleeper"])
        .await?
        .ok()?;
    let rows: Vec<Vec<&str>> = events
        .stdout
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().take(3).collect())
        .collect();
    ensure!(rows == [["app", "1", "3"], ["app", "3", "2"]], "{events:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_allocation_without_attempts_left_is_placed_again_on_request() -> Result<()> {
    let dev = Dev::start().await?;
    let api = dev.api()?;
    let gives_up = r#"
job "failing" {
  type = "batch"
  group "app" {
    reschedule {
      attempts  = 0
      unlimited = false
    }
    restart {
      attempts = 0
      mode     = "fail"
    }
    task "fail" {
      driver = "raw_exec"
      config {
        command = "/bin/false"
      }
    }
  }
}
"#;
    dev.say(&["job", "run", "-detach"], gives_up).await?.ok()?;
    let failed = |count: usize| {
        let api = &api;
        eventually(TIMEOUT, move || async move {
            let allocations = api.allocations("failing").await?;
            let failed = allocations
                .iter()
                .filter(|alloc| alloc.client_status == "failed");
            ensure!(failed.count() == count, "{allocations:?}");
            Ok(())
        })
    };
    failed(1).await?;
    let line = ["job", "eval", "-detach", "-force-reschedule", "failing"];
    binary::run(&dev.address, &line).await?.ok()?;
    failed(2).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_that_failed_for_a_reason_outside_is_tried_again_with_force() -> Result<()> {
    let dev = Dev::start().await?;
    let api = dev.api()?;
    let folder = tempfile::tempdir()?;
    let missing = folder.path().join("missing");
    let needs_a_file = format!(
        r#"
job "late" {{
  group "app" {{
    restart {{
      attempts = 0
      mode     = "fail"
    }}
    reschedule {{
      attempts  = 0
      unlimited = false
    }}
    update {{
      min_healthy_time = "100ms"
    }}
    task "serve" {{
      driver = "raw_exec"
      config {{
        command = "/bin/sh"
        args    = ["-c", "test -e {} && exec sleep 1000"]
      }}
    }}
  }}
}}
"#,
        missing.display()
    );
    let first = dev.say(&["job", "run"], &needs_a_file).await?;
    ensure!(first.code == 1, "{first:?}");

    // The reason is gone, and the file of the job has not changed.
    std::fs::write(&missing, "")?;
    let same = dev.say(&["job", "run"], &needs_a_file).await?;
    let said = format!("{}{}", same.stdout, same.stderr);
    ensure!(same.code == 1 && said.contains("job run -force"), "{said}");
    let running = async || {
        let allocations = api.allocations("late").await?;
        let running = allocations.iter();
        anyhow::Ok(running.filter(|it| it.client_status == "running").count())
    };
    ensure!(running().await? == 0, "runs without -force");
    dev.say(&["job", "run", "-force"], &needs_a_file)
        .await?
        .ok()?;
    ensure!(running().await? == 1, "does not run with -force");
    Ok(())
}

/// Returns the value of a `Key = value` line.
fn field(text: &str, key: &str) -> Result<String> {
    let line = text.lines().find(|line| line.starts_with(key));
    let value = line.and_then(|line| line.split_once("= "));
    let (_, value) = value.with_context(|| format!("no {key} in {text}"))?;
    Ok(value.trim().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_without_shutdown_delay_ends_tasks_that_would_wait_for_minutes() -> Result<()> {
    let dev = Dev::start().await?;
    let api = dev.api()?;
    let patient = SLEEPER.replace("count = 2", "count = 2\n    shutdown_delay = \"10m\"");
    ensure!(patient.contains("shutdown_delay"), "{patient}");
    dev.say(&["job", "run"], &patient).await?.ok()?;
    let running = api.allocations("sleeper").await?;
    ensure!(running.len() == 2, "{running:?}");
    let status = async |id: &str| {
        let found = api.allocations("sleeper").await?;
        let found = found.into_iter().find(|alloc| alloc.id == id);
        anyhow::Ok(found.context("the allocation")?)
    };
    let has_ended = async |id: &str| {
        eventually(TIMEOUT, || async {
            let alloc = status(id).await?;
            ensure!(alloc.client_status == "complete", "{alloc:?}");
            Ok(())
        })
        .await
    };
    // At once.
    let (first, second) = (&running[0].id, &running[1].id);
    let line = ["alloc", "stop", "-detach", "-no-shutdown-delay", first];
    binary::run(&dev.address, &line).await?.ok()?;
    has_ended(first).await?;
    // During the delay of a usual stop.
    let line = ["job", "stop", "-detach", "sleeper"];
    binary::run(&dev.address, &line).await?.ok()?;
    eventually(TIMEOUT, || async {
        let alloc = status(second).await?;
        ensure!(alloc.desired_status == "stop", "{alloc:?}");
        Ok(())
    })
    .await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let waiting = status(second).await?;
    ensure!(waiting.client_status == "running", "{waiting:?}");
    let line = ["job", "stop", "-detach", "-no-shutdown-delay", "sleeper"];
    binary::run(&dev.address, &line).await?.ok()?;
    has_ended(second).await
}
