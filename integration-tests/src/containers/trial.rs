//! The steps of the test, in order: start, examples, monitoring, scaling, kills, a cut network, certificates, the
//! upgrade of an agent, a full etcd, a rolling upgrade.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use proto::v1;
use tokio::time::Instant;

use super::certificates::expire_and_replace;
use super::command::docker;
use super::monitoring;
use super::placement::{SETTLE_TIMEOUT, place};
use super::stack::{NODES, REPLICATED, Stack};
use super::user::{Commands, Workload};
use super::{examples, full_etcd, host_agent, machine, quick_start, restore};
use crate::api::{Api, eventually};
use crate::binary;
use crate::load::{User, check_promises, sleeper};

/// The time for which a killed container is away: longer than a leader's lease of 3 s.
const AWAY: Duration = Duration::from_secs(4);

/// Timeout of an election after the loss of a leader.
const ELECTION_TIMEOUT: Duration = Duration::from_secs(30);

/// The job whose tasks must not notice the upgrade.
const STEADY: &str = "steady";
const STEADY_COUNT: u32 = 4;

/// Revisions of the images, and their tags; the programs in them report the revision. Without [`Options::second`] the
/// program in both is the same.
const FIRST: &str = "first";
const SECOND: &str = "second";

/// A part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    QuickStart,
    Examples,
    Monitoring,
    /// Workers are scaled, services killed and leaders cut off.
    Faults,
    Certificates,
    Agent,
    FullEtcd,
    Restore,
    DownAndUp,
    Package,
    Roll,
}

/// What a run does.
#[derive(Clone, Debug)]
pub struct Options {
    /// The `kafila` program in the images.
    pub binary: PathBuf,
    /// The program that replaces it in the upgrades of the stack, of the agent and of the package; `None`:
    /// the same one.
    pub second: Option<PathBuf>,
    /// One kill of each service, no loss of state; a few minutes.
    pub is_short: bool,
    /// The parts of the run; none: all of a full or a short run.
    pub only: Vec<Part>,
    /// Decides the workload.
    pub seed: u64,
}

impl Options {
    fn has(&self, part: Part) -> bool {
        use Part::{DownAndUp, FullEtcd, Package, QuickStart, Restore};
        match self.only.is_empty() {
            false => self.only.contains(&part),
            true => {
                let is_long = matches!(part, QuickStart | FullEtcd | Restore | DownAndUp | Package);
                !self.is_short || !is_long
            }
        }
    }
}

/// Runs all steps on a new stack, and removes it. Ctrl-C and SIGTERM remove it as well.
///
/// # Errors
/// The first step that fails, with the ends of all logs; or something that is left behind.
pub async fn run(options: &Options) -> Result<()> {
    if options.has(Part::QuickStart) {
        let steps = Steps(Instant::now());
        start_quickly(Some(&options.binary)).await?;
        steps.step("the quick start of the README runs its job");
    }
    if options.only == [Part::QuickStart] {
        return Ok(());
    }
    let mut stack = Stack::new().await?;
    let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let remover = stack.clone();
    let result = tokio::select! {
        result = steps(&mut stack, options) => result,
        _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("interrupted")),
        _ = terminated.recv() => Err(anyhow::anyhow!("terminated")),
    };
    if result.is_err() {
        eprintln!("{}", remover.log_tails().await);
    }
    let removed = remover.remove().await;
    result.and(removed)
}

/// Runs the quick start of the README on a stack of its own; without a binary, the images are compiled in Docker.
///
/// # Errors
/// A command fails, or something is left behind.
pub async fn start_quickly(binary: Option<&Path>) -> Result<()> {
    let stack = Stack::without_monitoring().await?;
    quick_start::run(&stack, binary).await
}

/// Prints a step with the time since the start.
struct Steps(Instant);

impl Steps {
    fn step(&self, text: &str) {
        println!("[{:6.1} s] {text}", self.0.elapsed().as_secs_f64());
    }
}

async fn steps(stack: &mut Stack, options: &Options) -> Result<()> {
    let steps = Steps(Instant::now());
    steps.step("building images");
    println!("{}", stack.build_images(&options.binary, FIRST).await?);
    stack.build_stand_ins().await?;
    stack.use_tag(SECOND);
    let second = options.second.as_ref().unwrap_or(&options.binary);
    stack.build_images(second, SECOND).await?;
    stack.use_tag(FIRST);

    stack.make_secrets().await?;
    steps.step("starting the stack");
    let started = Instant::now();
    stack.up().await?;
    let api = stack.api()?;
    examples::run_job(stack, "web").await?;
    steps.step(&format!(
        "the first job runs {:.1} s after `up`",
        started.elapsed().as_secs_f64()
    ));
    if options.has(Part::Examples) {
        Box::pin(examples::run_all(stack, &api)).await?;
        steps.step("every example shows its effect");
    }
    if options.has(Part::Monitoring) {
        let expressions = monitoring::check(stack).await?;
        steps.step(&format!(
            "all {expressions} expressions of dashboards and alerts return series; traces and logs arrive"
        ));
    }
    if options.has(Part::Faults) {
        fail_services(stack, &api, options, &steps).await?;
    }
    if options.has(Part::Certificates) {
        expire_and_replace(stack, &api).await?;
        steps.step("the gateways' certificate expired and was replaced, without a restart");
    }
    no_call_is_refused(stack).await?;
    nodes_have_programs(stack).await?;
    if options.has(Part::Agent) {
        let second = options.second.as_deref();
        let upgrade = host_agent::upgrade(stack, &api, &options.binary, second);
        let [old, new] = Box::pin(upgrade).await?;
        steps.step(&format!(
            "a node agent on this machine was replaced, and its tasks did not notice: {old} by {new}"
        ));
    }
    lose_state(stack, &api, options, &steps).await?;
    if options.has(Part::Roll) {
        roll(stack, &api, options, &steps).await?;
    }
    Ok(())
}

/// Scales, kills and cuts off services under load.
async fn fail_services(stack: &Stack, api: &Api, options: &Options, steps: &Steps) -> Result<()> {
    let workload = Workload::start(stack.api()?, "load", options.seed);
    scale_workers(stack, api, steps).await?;
    kill_each_service(stack, api, options.is_short, steps).await?;
    cut_off_leaders(stack, api, steps).await?;
    let user = workload.finish().await?;
    await_promises(api, &user).await?;
    steps.step(&format!("{} changes kept", user.actions));
    Ok(())
}

/// Fills etcd, restores a snapshot, takes the stack down and up, and runs the package beside it.
async fn lose_state(stack: &Stack, api: &Api, options: &Options, steps: &Steps) -> Result<()> {
    if options.has(Part::FullEtcd) {
        full_etcd::fill_and_recover(stack, api).await?;
        steps.step("etcd was full, and recovered by itself once there was something to give up");
    }
    if options.has(Part::Restore) {
        let seconds = Box::pin(restore::restore_snapshot(stack, api)).await?;
        steps.step(&format!(
            "etcd's volumes were destroyed and restored from a snapshot in {seconds:.1} s; tasks went on"
        ));
    }
    if options.has(Part::DownAndUp) {
        let seconds = Box::pin(restore::down_and_up(stack, api)).await?;
        steps.step(&format!(
            "the stack was taken down; {seconds:.1} s after `up` its jobs run again"
        ));
    }
    if options.has(Part::Package) {
        let package = machine::run_package(stack, &options.binary, options.second.as_deref());
        let [old, new] = Box::pin(package).await?;
        steps.step(&format!(
            "the Debian package was installed, upgraded ({old} to {new}) and removed under systemd; tasks went on"
        ));
    }
    Ok(())
}

/// The services have the rights for all their calls, those of their containers' health checks included.
async fn no_call_is_refused(stack: &Stack) -> Result<()> {
    for (service, _) in REPLICATED {
        let refused = stack.log_lines(service, "call refused").await?;
        ensure!(refused.is_empty(), "{service} refused calls: {refused:#?}");
    }
    Ok(())
}

/// Agents find the programs for artifacts and networks on their path.
async fn nodes_have_programs(stack: &Stack) -> Result<()> {
    let look = "for program in git ssh curl ip iptables nft; do command -v $program; done";
    for node in NODES {
        for container in stack.containers(node).await? {
            docker(&["exec", &container, "sh", "-ec", look]).await?;
        }
    }
    Ok(())
}

/// From the default to one worker, to six, to two; jobs are placed with each number.
async fn scale_workers(stack: &Stack, api: &Api, steps: &Steps) -> Result<()> {
    for count in [1, 6, 2] {
        stack.scale("scheduler-worker", count).await?;
        place(api, &format!("workers-{count}")).await?;
        steps.step(&format!("{count} scheduler-workers place jobs"));
    }
    Ok(())
}

/// Kills one container of each service, of etcd and of the nodes; every one in a long run.
async fn kill_each_service(stack: &Stack, api: &Api, is_short: bool, steps: &Steps) -> Result<()> {
    let services = REPLICATED.iter().map(|(service, _)| *service);
    for service in services.chain(["etcd-1", NODES[0]]) {
        let mut containers = stack.containers(service).await?;
        if is_short {
            containers.truncate(1);
        }
        ensure!(!containers.is_empty(), "no container of {service}");
        for container in &containers {
            stack.kill(container, AWAY).await?;
        }
        place(api, &format!("after-{service}")).await?;
        steps.step(&format!(
            "{service} was killed ({} containers)",
            containers.len()
        ));
    }
    Ok(())
}

/// Cuts the leader of two services off from the network: another replica takes over, and the cut-off
/// one works again once it is back.
async fn cut_off_leaders(stack: &Stack, api: &Api, steps: &Steps) -> Result<()> {
    for service in ["plan-applier", "eval-broker"] {
        let leader = leader(api, service).await?;
        let container = host_name(&leader.address)?;
        stack.disconnect(container).await?;
        let cut = Instant::now();
        eventually(ELECTION_TIMEOUT, || async {
            let now = self::leader(api, service).await?;
            ensure!(now.address != leader.address, "{} still leads", now.address);
            Ok(())
        })
        .await
        .with_context(|| format!("no new leader of {service}"))?;
        let failover = cut.elapsed().as_secs_f64();
        place(api, &format!("without-{service}")).await?;
        stack.connect(container).await?;
        steps.step(&format!(
            "the leader of {service} was cut off; another leads after {failover:.1} s"
        ));
    }
    Ok(())
}

async fn leader(api: &Api, service: &str) -> Result<v1::Leader> {
    let mut leaders = api.leaders().await?;
    let leader = leaders.remove(service);
    leader
        .filter(|leader| !leader.address.is_empty())
        .with_context(|| format!("{service} has no leader"))
}

/// Returns the host of `scheme://host:port`: the container that advertises it.
fn host_name(address: &str) -> Result<&str> {
    let host = address
        .split_once("://")
        .and_then(|(_, rest)| rest.rsplit_once(':'));
    host.map(|(host, _)| host)
        .with_context(|| format!("no host in {address}"))
}

/// Replaces every service by an image that was built anew, under load, then the nodes with a drain.
async fn roll(stack: &mut Stack, api: &Api, options: &Options, steps: &Steps) -> Result<()> {
    api.register_surely(&sleeper(STEADY, STEADY_COUNT), STEADY, SETTLE_TIMEOUT)
        .await?;
    let before = eventually(SETTLE_TIMEOUT, || running_tasks(api)).await?;
    for (service, _) in REPLICATED {
        check_revision(api, service, FIRST).await?;
    }
    stack.use_tag(SECOND);
    let workload = Workload::start(stack.api()?, "roll", options.seed + 1);
    // The product's clients, with nothing but their own retries.
    let sdk = Workload::start(stack.client()?, "sdk", options.seed + 2);
    let commands = Commands::start(stack);
    for (service, count) in REPLICATED {
        let old = stack.containers(service).await?;
        let version = one_version(stack, &old).await?;
        let count = if service == "scheduler-worker" {
            old.len()
        } else {
            count
        };
        stack.roll(&[service]).await?;
        let new = stack.containers(service).await?;
        ensure!(new.len() == count, "{} containers of {service}", new.len());
        ensure!(
            new.iter().all(|id| !old.contains(id)),
            "{service} was not replaced"
        );
        check_revision(api, service, SECOND).await?;
        let now = one_version(stack, &new).await?;
        ensure!(
            options.second.is_none() || now != version,
            "{service} is still {now}"
        );
        steps.step(&format!("{service} was replaced: {version} by {now}"));
    }
    let commands = commands.finish().await?;
    await_promises(api, &sdk.finish().await?).await?;
    let user = workload.finish().await?;
    await_promises(api, &user).await?;
    let after = running_tasks(api).await?;
    ensure!(
        before == after,
        "tasks changed during the upgrade: {before:?}, then {after:?}"
    );
    steps.step(&format!(
        "{} requests and {commands} commands succeeded meanwhile, and no task restarted",
        user.actions
    ));

    for node in NODES {
        replace_node(stack, api, node).await?;
        steps.step(&format!("{node} was drained and replaced"));
    }
    eventually(SETTLE_TIMEOUT, || running_tasks(api)).await?;
    await_promises(api, &user).await
}

/// Returns what all containers of a service print as their version.
async fn one_version(stack: &Stack, containers: &[String]) -> Result<String> {
    let mut versions = std::collections::BTreeSet::new();
    for container in containers {
        versions.insert(stack.version(container).await?);
    }
    ensure!(versions.len() == 1, "versions: {versions:?}");
    versions.pop_first().context("no container")
}

/// Waits until every running process of a service reports this revision of its image. The registration of
/// a stopped process ends with its lease.
async fn check_revision(api: &Api, service: &str, revision: &str) -> Result<()> {
    let end = format!("+{revision}");
    eventually(SETTLE_TIMEOUT, || async {
        let versions = api.versions(service).await?;
        let are_all = !versions.is_empty() && versions.iter().all(|it| it.ends_with(&end));
        ensure!(
            are_all,
            "versions of {service} are {versions:?}, not all of {revision}"
        );
        Ok(())
    })
    .await
}

/// A node's container has the image of this revision. Nodes are no processes of a service, and report no revision.
async fn check_image(stack: &Stack, name: &str, revision: &str) -> Result<()> {
    let [container] = &stack.containers(name).await?[..] else {
        anyhow::bail!("{name} has not one container");
    };
    let found = stack.revision(container).await?;
    ensure!(
        found == revision,
        "{name} has the image of {found}, not {revision}"
    );
    Ok(())
}

async fn replace_node(stack: &Stack, api: &Api, name: &str) -> Result<()> {
    let nodes = api.nodes().await?;
    let node = nodes
        .iter()
        .find(|node| node.name == name && node.status == "ready");
    let id = &node.with_context(|| format!("{name} is not ready"))?.id;
    let drain = ["node", "drain", "-enable", "-yes", "-deadline", "60s", id];
    stack.kafila(0, &drain).await?.ok()?;
    check_image(stack, name, FIRST).await?;
    stack.roll(&[name]).await?;
    check_image(stack, name, SECOND).await?;
    let eligible = ["node", "eligibility", "-enable", id];
    stack.kafila(0, &eligible).await?.ok()?;
    eventually(SETTLE_TIMEOUT, || async {
        let nodes = api.nodes().await?;
        let node = nodes.iter().find(|node| &node.id == id);
        let status = node.map(|node| node.status.as_str());
        ensure!(status == Some("ready"), "{name} is {status:?}");
        Ok(())
    })
    .await
}

/// Returns the running allocations of the steady job with the start times of their tasks.
async fn running_tasks(api: &Api) -> Result<BTreeMap<String, Vec<String>>> {
    let allocations = api.allocations(STEADY).await?;
    let running = allocations
        .into_iter()
        .filter(|alloc| alloc.desired_status == "run" && alloc.client_status == "running");
    let running: BTreeMap<_, _> = running
        .map(|alloc| {
            let tasks = alloc.task_states.values();
            let facts = tasks.map(|task| format!("{} {}", task.started_at_ns, task.restarts));
            (alloc.id, facts.collect())
        })
        .collect();
    ensure!(
        running.len() == STEADY_COUNT as usize,
        "{} of {STEADY_COUNT} allocations run",
        running.len()
    );
    Ok(running)
}

/// Waits until everything that the user was promised holds, then stops the user's jobs.
async fn await_promises<C>(api: &Api, user: &User<C>) -> Result<()> {
    ensure!(user.actions > 5, "so few actions that little was tested");
    eventually(SETTLE_TIMEOUT, || check_promises(api, &user.promises)).await
}

/// Returns the `kafila` program beside this one.
pub fn default_binary() -> PathBuf {
    binary::kafila()
}

/// Tells whether a missing Docker Engine is an error.
pub fn is_required() -> bool {
    let required = std::env::var("KAFILA_REQUIRE_CONTAINERS");
    required.is_ok_and(|value| !value.is_empty() && value != "0")
}

/// # Errors
/// The file does not exist.
pub fn check_binary(path: &Path) -> Result<()> {
    ensure!(
        path.is_file(),
        "{} does not exist: build it with cargo build -p kafila",
        path.display()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_an_address_is_its_container() {
        assert_eq!(
            host_name("https://80b717574e8f:4646").unwrap(),
            "80b717574e8f"
        );
        assert!(host_name("80b717574e8f").is_err());
    }
}
