//! Devices, dedicated cores and extra memory reach the task's process, and no other task gets them.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use integration_tests::api::{Api, eventually};
use integration_tests::suite::{Options, Suite};
use proto::v1;

const TIMEOUT: Duration = Duration::from_secs(60);

/// The third is broken.
const NODE: &str = r#"
[[devices]]
vendor = "nvidia"
type = "gpu"
name = "1080ti"
instances = ["GPU-8a3f", "GPU-91c2", "GPU-dead"]
unhealthy = ["GPU-dead"]
env = "NVIDIA_VISIBLE_DEVICES"
attributes = { memory = "11264 MiB" }
"#;

/// Prints the environment and the kernel's limits of the process.
const LOOK: &str = r#"env
while IFS=: read -r name value; do
  case $name in Cpus_allowed_list) echo ALLOWED=$value;; esac
done < /proc/self/status
group=$(cut -d: -f3- /proc/self/cgroup | tail -n 1)
echo GROUP=$group
root=$(grep ' cgroup2 ' /proc/mounts | head -n 1 | cut -d ' ' -f 2)
echo MEMORY_MAX=$(cat $root$group/memory.max)
echo READY=yes
exec sleep 1000"#;

/// Returns a job of one task with these `resources`.
fn job(name: &str, resources: &str) -> String {
    format!(
        r#"
job "{name}" {{
  group "app" {{
    task "look" {{
      driver = "raw_exec"
      config {{
        command = "/bin/sh"
        args    = ["-c", <<-SH
{LOOK}
SH
        ]
      }}
      resources {{
        {resources}
      }}
    }}
  }}
}}
"#
    )
}

fn gpus(count: u32) -> String {
    format!(
        "cpu = 20\n memory = 32\n device \"nvidia/gpu\" {{\n count = {count}\n constraint {{\n \
         attribute = \"${{device.attr.memory}}\"\n operator = \">=\"\n value = \"10 GiB\"\n }}\n }}"
    )
}

async fn running(api: &Api, job_id: &str) -> Result<v1::Allocation> {
    eventually(TIMEOUT, || async {
        let allocations = api.allocations(job_id).await?;
        let mut running = allocations.into_iter();
        let found = running.find(|alloc| alloc.client_status == "running");
        found.with_context(|| format!("{job_id} does not run"))
    })
    .await
}

/// Returns the printed variables of the job's task, by name.
async fn printed(api: &Api, alloc: &v1::Allocation) -> Result<BTreeMap<String, String>> {
    eventually(TIMEOUT, || async {
        let text = api.logs(&alloc.id, "look").await?;
        let lines = text.lines().filter_map(|line| line.split_once('='));
        let values: BTreeMap<_, _> = lines
            .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
            .collect();
        ensure!(values.contains_key("READY"), "{text}");
        Ok(values)
    })
    .await
}

/// Returns the reported reason why the job waits.
async fn why_waits(suite: &Suite, api: &Api, job_id: &str) -> Result<String> {
    let id = eventually(TIMEOUT, || async {
        let evaluations = api.evaluations().await?;
        let mut of_job = evaluations.into_iter().filter(|eval| eval.job_id == job_id);
        let blocked = of_job.find(|eval| eval.status == "blocked");
        Ok(blocked.context("nothing waits")?.id)
    })
    .await?;
    let said = suite.kafila(&["eval", "explain", &id]).await?.ok()?;
    Ok(said.stdout)
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_have_their_cores_and_devices_and_no_others() -> Result<()> {
    if !test_kit::etcd::available() {
        return Ok(());
    }
    let options = Options {
        node_config: Some(NODE.to_owned()),
        ..Options::default()
    };
    let suite = Suite::start(options).await?;
    let result = play(&suite).await;
    result.with_context(|| suite.log_tails())?;
    println!("{}", suite.check_history().await?);
    suite.stop().await
}

async fn play(suite: &Suite) -> Result<()> {
    let api = suite.api()?;
    let directory = tempfile::tempdir()?;
    let run = async |name: &str, resources: &str| -> Result<()> {
        let path = directory.path().join(name);
        std::fs::write(&path, job(name, resources))?;
        let path = path.to_string_lossy();
        suite
            .kafila(&["job", "run", "-detach", &path])
            .await?
            .ok()?;
        Ok(())
    };
    let set = ["operator", "scheduler", "set-config"];
    let more_memory = "-memory-oversubscription=true";
    suite
        .kafila(&[&set[..], &[more_memory]].concat())
        .await?
        .ok()?;

    // One device.
    run("one", &gpus(1)).await?;
    let one = running(&api, "one").await?;
    let given = &one.resources.as_ref().context("it has resources")?.devices;
    ensure!(
        given.len() == 1 && given[0].instance_ids.len() == 1,
        "{given:?}"
    );
    let first = &given[0].instance_ids[0];
    ensure!(first == "GPU-8a3f" || first == "GPU-91c2", "{given:?}");
    let seen = printed(&api, &one).await?;
    ensure!(
        seen.get("NVIDIA_VISIBLE_DEVICES") == Some(first),
        "{seen:?}"
    );
    ensure!(!seen.contains_key("NOMAD_MEMORY_MAX_LIMIT"), "{seen:?}");

    // A core, and memory beyond what is asked for.
    run("core", "cores = 1\n memory = 32\n memory_max = 64").await?;
    let core = running(&api, "core").await?;
    let given = core.resources.as_ref().context("it has resources")?;
    ensure!(
        given.memory_mib == 32,
        "what it may grow to is not set aside: {given:?}"
    );
    ensure!(
        given.cores.len() == 1 && given.cores[0].ids.len() == 1,
        "{given:?}"
    );
    let own = given.cores[0].ids[0].to_string();
    let seen = printed(&api, &core).await?;
    for (name, want) in [
        ("NOMAD_CPU_CORES", own.as_str()),
        ("ALLOWED", &own),
        ("NOMAD_MEMORY_LIMIT", "32"),
        ("NOMAD_MEMORY_MAX_LIMIT", "64"),
    ] {
        ensure!(
            seen.get(name).map(String::as_str) == Some(want),
            "{name}: {seen:?}"
        );
    }
    ensure!(!seen.contains_key("NVIDIA_VISIBLE_DEVICES"), "{seen:?}");
    // Where the node has the memory controller of cgroup v2, the kernel knows of it, too.
    let limit = seen.get("MEMORY_MAX").map_or("", String::as_str);
    if seen
        .get("GROUP")
        .is_some_and(|group| group.contains("kafila.slice"))
        && !limit.is_empty()
    {
        ensure!(limit == "67108864", "{seen:?}");
    }

    // One device too many for now, and one too many for ever.
    run("two", &gpus(2)).await?;
    let why = why_waits(suite, &api, "two").await?;
    let free_one = "device \"nvidia/gpu\": ask 1 less or free 1 of one model";
    ensure!(why.contains(free_one), "{why}");
    run("three", &gpus(3)).await?;
    let why = why_waits(suite, &api, "three").await?;
    // One is free now: it takes two more, whatever others give back.
    let add_two = "device \"nvidia/gpu\": ask 2 less or add 2 of one model";
    ensure!(why.contains(add_two), "{why}");

    // A waiting task gets released instances, and never unhealthy ones.
    api.stop_surely("one", false, TIMEOUT).await?;
    let two = running(&api, "two").await?;
    let seen = printed(&api, &two).await?;
    let ids = seen.get("NVIDIA_VISIBLE_DEVICES").context("it has some")?;
    let mut ids: Vec<&str> = ids.split(',').collect();
    ids.sort_unstable();
    ensure!(ids == ["GPU-8a3f", "GPU-91c2"], "{seen:?}");
    let shown = suite.kafila(&["alloc", "status", &two.id]).await?.ok()?;
    ensure!(shown.stdout.contains("nvidia/gpu/1080ti GPU-"), "{shown:?}");
    ensure!(api.allocations("three").await?.is_empty(), "it waits");
    Ok(())
}
