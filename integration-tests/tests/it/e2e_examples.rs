//! Example job files through their whole lifecycle with the `kafila` command: run, logs, change, scale,
//! stop, purge.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use integration_tests::api::{Api, eventually};
use integration_tests::suite::{Options, Suite};
use proto::v1::Allocation;

const TIMEOUT: Duration = Duration::from_secs(60);

/// One example, and its expected life.
struct Example {
    file: &'static str,
    job_id: &'static str,
    kind: Kind,
    /// Task group → how many.
    groups: &'static [(&'static str, usize)],
    task: &'static str,
    says: &'static str,
    /// A change of the file that needs new processes, and their output then.
    change: (&'static str, &'static str),
    says_then: &'static str,
    /// A change of the file that scales the first group, or flags that do, and the new count.
    scale: Scale,
}

enum Kind {
    /// Runs until it is stopped.
    Service,
    /// Ends by itself.
    Batch,
}

enum Scale {
    Edit(&'static str, &'static str, usize),
    Flags(&'static [&'static str], usize),
}

const EXAMPLES: [Example; 9] = [
    Example {
        file: "web.hcl",
        job_id: "web",
        kind: Kind::Service,
        groups: &[("server", 1)],
        task: "http",
        says: "listening on ",
        change: ("echo \"listening on", "echo \"now listening on"),
        says_then: "now listening on ",
        scale: Scale::Edit("count = 1", "count = 3", 3),
    },
    Example {
        file: "batch.hcl",
        job_id: "batch",
        kind: Kind::Batch,
        groups: &[("count", 1)],
        task: "count",
        says: "done",
        change: ("counted to", "reckoned to"),
        says_then: "reckoned to 5",
        scale: Scale::Edit("group \"count\" {", "group \"count\" {\n    count = 2", 2),
    },
    Example {
        file: "constraint.hcl",
        job_id: "constraint",
        kind: Kind::Service,
        groups: &[("here", 1)],
        task: "uname",
        says: "Linux",
        change: ("uname -s;", "uname -s; echo again;"),
        says_then: "again",
        scale: Scale::Edit("group \"here\" {", "group \"here\" {\n    count = 2", 2),
    },
    Example {
        file: "mock.hcl",
        job_id: "mock",
        kind: Kind::Batch,
        groups: &[("pretend", 3)],
        task: "pretend",
        says: "pretending to work",
        change: ("pretending to work", "pretending harder"),
        says_then: "pretending harder",
        scale: Scale::Edit("count = 3", "count = 4", 4),
    },
    Example {
        file: "restart.hcl",
        job_id: "restart",
        kind: Kind::Batch,
        groups: &[("flaky", 1)],
        task: "third-time-lucky",
        says: "run 1 fails\nrun 2 fails\nrun 3 succeeds",
        change: ("$runs succeeds", "$runs goes well"),
        says_then: "run 3 goes well",
        scale: Scale::Edit("group \"flaky\" {", "group \"flaky\" {\n    count = 2", 2),
    },
    Example {
        file: "variables.hcl",
        job_id: "variables",
        kind: Kind::Service,
        groups: &[("greeter", 2)],
        task: "greet",
        says: "Hello, World!",
        change: ("default = \"Hello\"", "default = \"Salaam\""),
        says_then: "Salaam, World!",
        scale: Scale::Flags(&["-var", "count=3"], 3),
    },
    Example {
        file: "two-groups.hcl",
        job_id: "two-groups",
        kind: Kind::Service,
        groups: &[("producer", 2), ("consumer", 1)],
        task: "produce",
        says: "1",
        change: ("date +%s", "date +now-%s"),
        says_then: "now-1",
        scale: Scale::Edit("count = 2", "count = 3", 3),
    },
    Example {
        file: "template.hcl",
        job_id: "template",
        kind: Kind::Service,
        groups: &[("server", 1)],
        task: "serve",
        says: "Hello from SERVE",
        // Only the text of a template changes.
        change: ("Hello from", "Salaam from"),
        says_then: "Salaam from SERVE",
        scale: Scale::Edit("group \"server\" {", "group \"server\" {\n    count = 2", 2),
    },
    Example {
        file: "system.hcl",
        job_id: "system",
        kind: Kind::Service,
        // One a node, and there is one.
        groups: &[("agent", 1)],
        task: "watch",
        says: "load: ",
        change: ("load: ", "the load: "),
        says_then: "the load: ",
        scale: Scale::Edit("max_parallel     = 1", "max_parallel     = 2", 1),
    },
];

/// Examples with another lifecycle: `e2e_rollout` promotes it.
const ELSEWHERE: [&str; 1] = ["canary.hcl"];

#[tokio::test(flavor = "multi_thread")]
async fn every_example_lives_its_whole_life() -> Result<()> {
    if !test_kit::etcd::available() {
        return Ok(());
    }
    let suite = Suite::start(Options::default()).await?;
    for example in &EXAMPLES {
        println!("{}", example.file);
        let lived = live(&suite, example).await;
        lived.with_context(|| format!("{}\n{}", example.file, suite.log_tails()))?;
    }
    ensure_all_files_are_covered()?;
    eventually(Duration::from_secs(20), || async {
        let left = suite.task_processes();
        ensure!(left.is_empty(), "processes left behind: {left:?}");
        Ok(())
    })
    .await?;
    suite.stop().await
}

fn examples() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples")
}

fn ensure_all_files_are_covered() -> Result<()> {
    for entry in std::fs::read_dir(examples())? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let covered = ELSEWHERE.contains(&&*name)
            || EXAMPLES.iter().any(|example| example.file == name)
            || crate::e2e_job_operations::EXAMPLES.contains(&name.as_str());
        ensure!(
            covered || !name.ends_with(".hcl"),
            "no test runs examples/{name}"
        );
    }
    Ok(())
}

async fn live(suite: &Suite, example: &Example) -> Result<()> {
    let api = suite.api()?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join(example.file);
    let text = std::fs::read_to_string(examples().join(example.file))?;
    let path = file.to_string_lossy().into_owned();

    // Run.
    std::fs::write(&file, &text)?;
    suite
        .kafila(&["job", "run", &path])
        .await?
        .ok()
        .context("job run")?;
    for (group, count) in example.groups {
        await_allocations(&api, example, group, *count, 0).await?;
    }
    says(suite, &api, example, 0, example.says).await?;

    // Changed: new processes.
    let (from, to) = example.change;
    ensure!(text.contains(from), "the file has no {from:?} to change");
    let text = text.replacen(from, to, 1);
    std::fs::write(&file, &text)?;
    suite
        .kafila(&["job", "run", &path])
        .await?
        .ok()
        .context("job run, changed")?;
    for (group, count) in example.groups {
        await_allocations(&api, example, group, *count, 1).await?;
    }
    says(suite, &api, example, 1, example.says_then).await?;

    // Scaled by registering again.
    let (group, _) = example.groups[0];
    let count = match example.scale {
        Scale::Edit(from, to, count) => {
            ensure!(text.contains(from), "the file has no {from:?} to scale");
            std::fs::write(&file, text.replacen(from, to, 1))?;
            suite
                .kafila(&["job", "run", &path])
                .await?
                .ok()
                .context("job run, scaled")?;
            count
        }
        Scale::Flags(flags, count) => {
            let mut words = vec!["job", "run"];
            words.extend(flags);
            words.push(&path);
            suite
                .kafila(&words)
                .await?
                .ok()
                .context("job run, scaled")?;
            count
        }
    };
    // Another count is no reason to do finished work again: it stays, of the version it was done for.
    let version = match example.kind {
        Kind::Service => 2,
        Kind::Batch => 1,
    };
    await_allocations(&api, example, group, count, version).await?;

    // Stopped.
    suite
        .kafila(&["job", "stop", example.job_id])
        .await?
        .ok()
        .context("job stop")?;
    eventually(TIMEOUT, || async {
        let live = api.allocations(example.job_id).await?;
        let running = live
            .iter()
            .filter(|alloc| alloc.client_status == "running")
            .count();
        ensure!(running == 0, "{running} still run");
        Ok(())
    })
    .await?;
    let status = suite
        .kafila(&["job", "status", example.job_id])
        .await?
        .ok()?;
    ensure!(
        status.stdout.contains("dead"),
        "a stopped job is dead:\n{}",
        status.stdout
    );

    // Gone.
    suite
        .kafila(&["job", "stop", "-purge", example.job_id])
        .await?
        .ok()
        .context("purge")?;
    let status = suite.kafila(&["job", "status", example.job_id]).await?;
    ensure!(status.code == 1, "a purged job is found: {}", status.stdout);
    ensure!(status.stderr.contains(example.job_id), "{}", status.stderr);
    Ok(())
}

/// Waits until a group has its count, all of the job's version or later: running, or ended well.
async fn await_allocations(
    api: &Api,
    example: &Example,
    group: &str,
    count: usize,
    version: u64,
) -> Result<()> {
    eventually(TIMEOUT, || async {
        let allocations = api.allocations(example.job_id).await?;
        let counts = |alloc: &&Allocation| match example.kind {
            Kind::Service => alloc.desired_status == "run",
            // Finished work of an older version stays as it is.
            Kind::Batch => alloc.desired_status == "run" && alloc.job_version >= version,
        };
        let of_group = allocations.iter().filter(|alloc| alloc.task_group == group);
        let current: Vec<_> = of_group.filter(counts).collect();
        let wanted = match example.kind {
            Kind::Service => "running",
            Kind::Batch => "complete",
        };
        let good = current
            .iter()
            .filter(|alloc| alloc.client_status == wanted)
            .count();
        let fresh = current
            .iter()
            .filter(|alloc| alloc.job_version >= version)
            .count();
        ensure!(
            good == count && current.len() == count && fresh == count,
            "{group}: want {count} {wanted} of version {version}: {:?}",
            allocations.iter().map(short).collect::<Vec<_>>(),
        );
        Ok(())
    })
    .await
}

fn short(alloc: &Allocation) -> String {
    let Allocation {
        name,
        job_version,
        desired_status,
        client_status,
        ..
    } = alloc;
    format!("{name} v{job_version} {desired_status}/{client_status}")
}

/// Waits until a task of the version has said `text`, read back with `alloc logs`.
async fn says(suite: &Suite, api: &Api, example: &Example, version: u64, text: &str) -> Result<()> {
    eventually(TIMEOUT, || async {
        let allocations = api.allocations(example.job_id).await?;
        let alloc = allocations
            .iter()
            .find(|alloc| {
                alloc.job_version == version
                    && alloc.desired_status == "run"
                    && alloc.task_states.contains_key(example.task)
            })
            .context("no allocation of the version has the task yet")?;
        let said = suite
            .kafila(&["alloc", "logs", &alloc.id, example.task])
            .await?
            .ok()?;
        ensure!(
            said.stdout.contains(text),
            "want {text:?} in {:?}",
            said.stdout
        );
        Ok(())
    })
    .await
}
