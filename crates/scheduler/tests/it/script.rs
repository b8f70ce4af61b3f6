//! The commands of scripts.
//!
//! ```text
//! nodes COUNT [KEY=VALUE …]       adds ready nodes n1, n2, …: cpu memory disk dc pool class rack ports
//!                                 reserved_port cores gpus max_allocs volume network
//! node NAME STATE                 ready, initializing, down, disconnected, ineligible, eligible, gone,
//!                                 address=IP
//! job NAME [KEY=VALUE …]          registers a job, or its next version with these changes: type
//!                                 count update canary cpu memory env kill_timeout constraint pool dc
//!                                 port disk reschedule distinct_hosts distinct_property sticky
//!                                 lost_after stop_after replace reconcile auto_promote priority migrate
//!                                 affinity spread (of the job) group_affinity group_spread cores gpus
//!                                 volume_per_alloc
//!                                 volume=SOURCE[/MODE][/read_only][/sticky][/per_alloc]
//! group JOB NAME [KEY=VALUE …]    the same for another group of the job; `remove=yes` takes it out
//! stop NAME, purge NAME           stops a job, or deletes it
//! eval JOB [trigger=WORD]         makes an evaluation, plans, commits, prints the plan
//! make JOB                        makes an evaluation without running it
//! due                             runs every evaluation that is due by now, printing each
//! unblock                         makes blocked evaluations pending again and runs them
//! client NAMES STATUS             reports a client status: pending, running, complete, failed
//! collect NAMES                   deletes them, as garbage collection does
//! lose NAMES                      their nodes go down
//! lose_sight NAMES                their nodes are disconnected
//! node_of NAMES STATE             changes their nodes as `node` does
//! score NAMES PER_MILLE           sets their scores
//! health NAMES yes|no             reports their health in a deployment
//! transition NAMES WORD           migrate, reschedule, force_reschedule, stay_down
//! force JOB                       registers it unchanged, as a version that replaces ended allocations
//! deployment JOB STATUS           sets the status of the job's newest deployment
//! promote JOB                     promotes its canaries
//! stable JOB VERSION              marks a version as stable
//! revert JOB VERSION              registers a version again, as a new one
//! at NODE NAMES WORD              of these, those on that node: a client status, healthy, unhealthy or
//!                                 a transition
//! everywhere JOB WORD             the same for all live allocations of a job
//! wait SECONDS                    time passes
//! show JOB                        prints its allocations by node
//! config KEY=VALUE                algorithm=spread, or pool.NAME=spread for one node pool;
//!                                 preempts=TYPE,TYPE: jobs of these types and no others
//! scores JOB                      prints the scores of the last placement of each group
//! explain JOB [node=NAME]         explains the job's newest evaluation
//! volume NODE NAME MODE …         registers a volume: reader, writer, alone, multi
//! delete_volume NODE NAME         deletes it
//! claims                          prints which groups claim which volumes
//! drop_claims JOB NODE            deletes a job's claims there
//! NAMES: JOB.GROUP[0-3,7]: the live allocations with these numbers, else the newest; of several live
//! ones the newest. `old:` before the numbers: of several live ones the oldest; `new:`: the newest,
//! live or not; `told:` the newest that was told to stop and has not ended on its node.
//! ```

use std::fmt::Write as _;
use std::time::Duration;

use model::job::{
    DelayFunction, DeviceRequest, DisconnectStrategy, Network, Port, ReconcileChoice,
    ReschedulePolicy, VolumeRequest, VolumeType,
};
use model::node::{DeviceInstance, HostNetwork, NodeDevice};
use model::{
    AllocId, AllocMetric, ClientStatus, Constraint, DeploymentStatus, EvalId, EvalStatus, Job,
    JobKey, JobType, NodeEligibility, NodeStatus, Operator, StoredMetric, TaskGroup, TriggeredBy,
};
use state::{Entity, Key};
use test_kit::builders;

use crate::cluster::TestCluster;
use crate::explained;
use crate::preferences;
use crate::report::{describe, ranges};
use crate::volumes;

/// Plays the commands of `script` and returns it with their output.
pub(crate) fn play(script: &str) -> String {
    let mut cluster = TestCluster::new(1);
    let mut played = String::new();
    for line in script.lines() {
        if let Some(command) = line.strip_prefix("> ") {
            writeln!(played, "{line}").unwrap();
            played.push_str(&perform(&mut cluster, command));
        } else if line.starts_with('#') || line.is_empty() {
            writeln!(played, "{line}").unwrap();
        }
    }
    played
}

fn perform(cluster: &mut TestCluster, command: &str) -> String {
    let words: Vec<&str> = command.split_whitespace().collect();
    match words.as_slice() {
        ["nodes", count, facts @ ..] => add_nodes(cluster, count.parse().unwrap(), facts),
        ["node", name, state] => set_node(cluster, name, state),
        ["job", name, edits @ ..] => register(cluster, name, edits),
        ["group", job, name, edits @ ..] => register_group(cluster, job, name, edits),
        ["stop", name] => {
            let mut job = cluster.job(&key(name));
            job.stop = true;
            cluster.register(job);
        }
        ["purge", name] => cluster.purge(&key(name)),
        ["eval", name, edits @ ..] => return evaluate(cluster, name, edits),
        ["make", name] => {
            let job = cluster.job(&key(name));
            cluster.add_eval(&job, TriggeredBy::JobRegister);
        }
        ["due"] => return run_due(cluster),
        ["unblock"] => return unblock(cluster),
        ["client", names, status] => {
            for id in named(cluster, names) {
                cluster.report(id, client_status(status));
            }
        }
        ["health", names, verdict] => {
            for id in named(cluster, names) {
                cluster.report_health(id, *verdict == "yes");
            }
        }
        ["transition", names, word] => set_transition(cluster, names, word),
        ["lose", names] => set_nodes_of(cluster, names, "down"),
        ["lose_sight", names] => set_nodes_of(cluster, names, "disconnected"),
        ["node_of", names, state] => set_nodes_of(cluster, names, state),
        ["collect", names] => {
            for id in named(cluster, names) {
                cluster.collect(id);
            }
        }
        ["score", names, score] => {
            for id in named(cluster, names) {
                cluster.edit_alloc(id, |alloc| {
                    alloc.metric = Some(StoredMetric::from(AllocMetric {
                        score_per_mille: score.parse().unwrap(),
                        ..AllocMetric::default()
                    }));
                });
            }
        }
        ["at", node, names, word] => {
            let node_id = cluster.node_named(node).id;
            let (job, rest) = names.split_once('.').unwrap();
            let (group, numbers) = rest.strip_suffix(']').unwrap().split_once('[').unwrap();
            let numbers = parse_ranges(numbers);
            let mut here = cluster.allocs(&key(job));
            here.retain(|view| {
                view.alloc.node_id == node_id
                    && *view.alloc.task_group == *group
                    && numbers.contains(&view.alloc.name_index)
            });
            let newest = here.iter().max_by_key(|view| view.create_index);
            tell(cluster, newest.expect("one is there").alloc.id, word);
        }
        ["everywhere", name, word] => {
            let live = cluster.allocs(&key(name));
            for view in live.iter().filter(|view| !view.is_terminal()) {
                tell(cluster, view.alloc.id, word);
            }
        }
        ["promote", name] => cluster.promote(&key(name)),
        ["stable", name, version] => {
            let stable = Key::JobStable(key(name), version.parse().unwrap());
            cluster.put(stable, Entity::JobStable);
        }
        ["revert", name, version] => {
            let snapshot = cluster.snapshot();
            let version = version.parse().unwrap();
            let former = snapshot.job_version(&key(name), version).unwrap();
            cluster.register(former.value.clone());
        }
        ["force", name] => {
            let snapshot = cluster.snapshot();
            let stored = &snapshot.job(&key(name)).unwrap().value;
            cluster.register(Job {
                forced_version: Some(stored.version + 1),
                ..stored.clone()
            });
        }
        ["deployment", name, status] => move_deployment(cluster, name, status),
        ["wait", seconds] => cluster.wait(Duration::from_secs_f64(seconds.parse().unwrap())),
        ["show", name] => return show(cluster, name),
        ["volume", node, name, modes @ ..] => volumes::register(cluster, node, name, modes),
        ["delete_volume", node, name] => volumes::delete(cluster, node, name),
        ["claims"] => return volumes::claims(cluster),
        ["drop_claims", job, node] => volumes::drop_claims(cluster, job, node),
        ["config", edits @ ..] => preferences::configure(cluster, &pairs(edits)),
        ["explain", name, edits @ ..] => {
            return explained::explain(cluster, &key(name), &pairs(edits));
        }
        ["scores", name] => return preferences::scores(cluster, &key(name)),
        _ => panic!("no such command: {command}"),
    }
    String::new()
}

fn key(job: &str) -> JobKey {
    JobKey::new("default", job)
}

fn pairs<'a>(words: &[&'a str]) -> Vec<(&'a str, &'a str)> {
    words
        .iter()
        .map(|word| word.split_once('=').expect("KEY=VALUE"))
        .collect()
}

fn add_nodes(cluster: &mut TestCluster, count: usize, facts: &[&str]) {
    let first = cluster.snapshot().node_count() + 1;
    for number in first..first + count {
        let mut node = builders::node(number as u128);
        for (key, value) in pairs(facts) {
            match key {
                "cpu" => node.resources.cpu_mhz = value.parse().unwrap(),
                "memory" => node.resources.memory_mib = value.parse().unwrap(),
                "disk" => node.resources.disk_mib = value.parse().unwrap(),
                "dc" => node.datacenter = value.into(),
                "pool" => node.node_pool = value.into(),
                "class" => node.node_class = value.into(),
                "rack" => drop(node.meta.insert("rack".into(), value.into())),
                "driver" => {
                    let driver = node.drivers.get_mut("mock_driver").unwrap();
                    (driver.detected, driver.healthy) = (value != "undetected", false);
                    if value == "absent" {
                        node.drivers.clear();
                    }
                }
                "cores" => {
                    let cores = 0..value.parse().unwrap();
                    node.cores.extend(cores.map(|core| (core, 500)));
                }
                "gpus" => node.devices.push(gpus(value.parse().unwrap())),
                "max_allocs" => node.max_allocs = value.parse().unwrap(),
                "network" => {
                    let (name, address) = value.split_once('/').unwrap();
                    let network = HostNetwork {
                        addresses: address.split('+').map(Into::into).collect(),
                        reserved_ports: Vec::new(),
                    };
                    node.host_networks.insert(name.into(), network);
                }
                "volume" => {
                    let volume = model::node::HostVolume {
                        path: "/srv".into(),
                        read_only: false,
                    };
                    node.host_volumes.insert(value.into(), volume);
                }
                "reserved_port" => node.reserved_ports.push(value.parse().unwrap()),
                "ports" => {
                    let (min, max) = value.split_once('-').unwrap();
                    node.min_dynamic_port = min.parse().unwrap();
                    node.max_dynamic_port = max.parse().unwrap();
                }
                _ => panic!("no such fact of a node: {key}"),
            }
        }
        let plain = [&*node.datacenter, &node.node_pool, &node.node_class].join("/");
        let rack = node
            .meta
            .get("rack")
            .map(String::as_str)
            .unwrap_or_default();
        node.computed_class = format!("{plain}{rack}");
        cluster.put_node(node);
    }
}

fn gpus(count: usize) -> NodeDevice {
    let instance = |number: usize| DeviceInstance {
        id: format!("gpu-{number}"),
        healthy: true,
    };
    NodeDevice {
        vendor: "nvidia".into(),
        device_type: "gpu".into(),
        name: "k80".into(),
        instances: (0..count).map(instance).collect(),
        ..NodeDevice::default()
    }
}

fn set_nodes_of(cluster: &mut TestCluster, names: &str, state: &str) {
    for id in named(cluster, names) {
        let node_id = cluster.alloc(id).node_id;
        let snapshot = cluster.snapshot();
        let node = snapshot.node(node_id).expect("the node is there");
        set_node(cluster, &node.value.name, state);
    }
}

fn set_node(cluster: &mut TestCluster, name: &str, state: &str) {
    let mut node = cluster.node_named(name);
    match state {
        "ready" => node.status = NodeStatus::Ready,
        "initializing" => node.status = NodeStatus::Initializing,
        "down" => node.status = NodeStatus::Down,
        "disconnected" => node.status = NodeStatus::Disconnected,
        "ineligible" => node.eligibility = NodeEligibility::Ineligible,
        "eligible" => node.eligibility = NodeEligibility::Eligible,
        "gone" => {
            cluster.apply(vec![(Key::Node(node.id), None)]);
            return;
        }
        _ => match state.strip_prefix("address=") {
            Some(address) => node.host_ip = address.to_owned(),
            None => panic!("no such state of a node: {state}"),
        },
    }
    cluster.put_node(node);
}

fn register(cluster: &mut TestCluster, name: &str, edits: &[&str]) {
    let job_type = match pairs(edits).iter().find(|(key, _)| *key == "type") {
        Some((_, word)) => JobType::parse(word).unwrap(),
        None => JobType::Service,
    };
    let known = cluster
        .snapshot()
        .job(&key(name))
        .map(|job| job.value.clone());
    let mut job = known.unwrap_or_else(|| {
        let mut job = builders::service(name, 1);
        job.job_type = job_type;
        job.task_groups = vec![builders::group("web", job_type, 1)];
        job
    });
    job.stop = false;
    for (key, value) in pairs(edits) {
        edit_job(&mut job, 0, key, value);
    }
    cluster.register(job);
}

fn register_group(cluster: &mut TestCluster, job: &str, name: &str, edits: &[&str]) {
    let mut job = cluster.job(&key(job));
    if edits == ["remove=yes"] {
        job.task_groups.retain(|group| group.name != name);
    } else {
        let position = job.task_groups.iter().position(|group| group.name == name);
        let position = position.unwrap_or_else(|| {
            job.task_groups.push(builders::group(name, job.job_type, 1));
            job.task_groups.len() - 1
        });
        for (key, value) in pairs(edits) {
            edit_job(&mut job, position, key, value);
        }
    }
    cluster.register(job);
}

fn edit_job(job: &mut Job, position: usize, key: &str, value: &str) {
    match key {
        "type" => {}
        "pool" => job.node_pool = value.into(),
        "dc" => job.datacenters = vec![value.into()],
        "priority" => job.priority = value.parse().unwrap(),
        "constraint" => job.constraints.push(parse_constraint(value)),
        "all_at_once" => job.all_at_once = value == "yes",
        "affinity" => job.affinities.push(preferences::affinity(value)),
        "spread" => job.spreads.push(preferences::spread(value)),
        _ => edit_group(&mut job.task_groups[position], key, value),
    }
}

fn edit_group(group: &mut TaskGroup, key: &str, value: &str) {
    let update = &mut group.update;
    let resources = &mut group.tasks[0].resources;
    match key {
        "count" => group.count = value.parse().unwrap(),
        "update" => *update = Some(builders::rolling_update(value.parse().unwrap())),
        "migrate" => {
            let migrate = group.migrate.as_mut().expect("only services move");
            migrate.max_parallel = value.parse().unwrap();
        }
        "canary" => {
            update
                .get_or_insert_with(|| builders::rolling_update(1))
                .canary = value.parse().unwrap();
        }
        "cpu" => resources.cpu_mhz = value.parse().unwrap(),
        "memory" => resources.memory_mib = value.parse().unwrap(),
        "disk" => group.ephemeral_disk.size_mib = value.parse().unwrap(),
        "sticky" => group.ephemeral_disk.sticky = value == "yes",
        "cores" => {
            resources.cores = value.parse().unwrap();
            resources.cpu_mhz = 0;
        }
        "gpus" => {
            resources.devices = vec![DeviceRequest {
                name: "nvidia/gpu".into(),
                count: value.parse().unwrap(),
                constraints: Vec::new(),
                affinities: Vec::new(),
            }];
        }
        "volume_per_alloc" => {
            let ask = VolumeRequest {
                volume_type: VolumeType::Host,
                source: value.into(),
                read_only: false,
                sticky: false,
                per_alloc: true,
                access_mode: None,
                attachment_mode: None,
                mount_options: Default::default(),
            };
            group.volumes.insert(value.into(), ask);
        }
        "env" => drop(group.tasks[0].env.insert("WORD".into(), value.into())),
        "kill_timeout" => {
            group.tasks[0].kill_timeout = Duration::from_secs(value.parse().unwrap());
        }
        "port" => {
            let ports = value.split(',').zip(["http", "rpc", "admin"]);
            let ports = ports.map(|(value, label)| {
                let (value, network) = value.split_once('@').unwrap_or((value, "default"));
                Port {
                    label: label.into(),
                    static_port: (value != "dynamic").then(|| value.parse().unwrap()),
                    to: None,
                    host_network: network.into(),
                    ignore_collision: false,
                }
            });
            group.networks = vec![Network {
                mode: "host".into(),
                ports: ports.collect(),
                ..Network::default()
            }];
        }
        "auto_promote" => {
            update
                .get_or_insert_with(|| builders::rolling_update(1))
                .auto_promote = value == "yes";
        }
        "lost_after" | "stop_after" | "replace" | "reconcile" => {
            let block = group.disconnect.get_or_insert(DisconnectStrategy {
                lost_after: None,
                stop_on_client_after: None,
                replace: true,
                reconcile: ReconcileChoice::BestScore,
            });
            match key {
                "lost_after" => block.lost_after = Some(seconds(value)),
                "stop_after" => block.stop_on_client_after = Some(seconds(value)),
                "replace" => block.replace = value == "yes",
                _ => block.reconcile = parse_choice(value),
            }
        }
        "reschedule" => group.reschedule = Some(parse_reschedule(value)),
        "volume" => drop(group.volumes.insert("data".into(), volumes::request(value))),
        "group_affinity" => group.affinities.push(preferences::affinity(value)),
        "group_spread" => group.spreads.push(preferences::spread(value)),
        "distinct_hosts" | "distinct_property" => {
            let (left, right) = value.split_once('/').unwrap_or((value, ""));
            group.constraints.push(Constraint {
                left: left.into(),
                operator: Operator::parse(key).unwrap(),
                right: right.into(),
            });
        }
        _ => panic!("no such edit of a job: {key}"),
    }
}

/// Reads `LEFT/OPERATOR/RIGHT`.
fn parse_constraint(text: &str) -> Constraint {
    let parts: Vec<_> = text.splitn(3, '/').collect();
    Constraint {
        left: parts[0].into(),
        operator: Operator::parse(parts[1]).unwrap(),
        right: parts[2].into(),
    }
}

fn seconds(text: &str) -> Duration {
    Duration::from_secs(text.parse().unwrap())
}

fn parse_choice(text: &str) -> ReconcileChoice {
    match text {
        "best_score" => ReconcileChoice::BestScore,
        "keep_original" => ReconcileChoice::KeepOriginal,
        "keep_replacement" => ReconcileChoice::KeepReplacement,
        "longest_running" => ReconcileChoice::LongestRunning,
        _ => panic!("no such choice: {text}"),
    }
}

/// Reads `ATTEMPTS/INTERVAL/DELAY` in seconds, or `unlimited/0/DELAY`; behind it may stand
/// `/exponential/MAX` or `/fibonacci/MAX`.
fn parse_reschedule(text: &str) -> ReschedulePolicy {
    let parts: Vec<_> = text.split('/').collect();
    let part = |position: usize| parts.get(position).copied().unwrap_or("0");
    let delay_function = match part(3) {
        "exponential" => DelayFunction::Exponential,
        "fibonacci" => DelayFunction::Fibonacci,
        _ => DelayFunction::Constant,
    };
    ReschedulePolicy {
        attempts: parts[0].parse().unwrap_or(0),
        interval: seconds(part(1)),
        delay: seconds(part(2)),
        delay_function,
        max_delay: seconds(part(4)),
        unlimited: parts[0] == "unlimited",
    }
}

fn evaluate(cluster: &mut TestCluster, name: &str, edits: &[&str]) -> String {
    let mut triggered_by = TriggeredBy::JobRegister;
    for (key, value) in pairs(edits) {
        assert_eq!(key, "trigger");
        triggered_by = TriggeredBy::ALL
            .into_iter()
            .find(|trigger| trigger.as_str() == value)
            .unwrap();
    }
    let known = cluster
        .snapshot()
        .job(&key(name))
        .map(|job| job.value.clone());
    // A purged job's evaluation still names the job.
    let job = known.unwrap_or_else(|| builders::service(name, 0));
    let id = cluster.add_eval(&job, triggered_by);
    run(cluster, id)
}

fn run(cluster: &mut TestCluster, id: EvalId) -> String {
    let (before, now) = (cluster.snapshot(), cluster.now);
    let decision = cluster.run(id);
    describe(&decision, &before, now)
}

fn run_due(cluster: &mut TestCluster) -> String {
    cluster
        .due()
        .into_iter()
        .map(|id| run(cluster, id))
        .collect()
}

fn unblock(cluster: &mut TestCluster) -> String {
    let snapshot = cluster.snapshot();
    let blocked = snapshot
        .open_evals()
        .filter(|eval| eval.value.status == EvalStatus::Blocked);
    let ids: Vec<_> = blocked.map(|eval| eval.value.id).collect();
    ids.into_iter().map(|id| run(cluster, id)).collect()
}

/// Returns the allocations that `names` stands for.
fn named(cluster: &TestCluster, names: &str) -> Vec<AllocId> {
    let (job, rest) = names.split_once('.').unwrap();
    let (group, numbers) = rest.strip_suffix(']').unwrap().split_once('[').unwrap();
    let views = cluster.allocs(&key(job));
    let mut found = Vec::new();
    let (which, numbers) = numbers.split_once(':').unwrap_or(("", numbers));
    for number in parse_ranges(numbers) {
        let of_name = views
            .iter()
            .filter(|view| *view.alloc.task_group == *group && view.alloc.name_index == number);
        let best = of_name.max_by_key(|view| {
            let is_live = !view.is_terminal();
            match which {
                "" => (is_live, view.create_index),
                "old" => (is_live, u64::MAX - view.create_index),
                "new" => (true, view.create_index),
                "told" => {
                    let is_ending = view.is_terminal() && !view.is_client_terminal();
                    (is_ending, view.create_index)
                }
                _ => panic!("no such choice: {which}"),
            }
        });
        found.push(best.unwrap_or_else(|| panic!("no {names}")).alloc.id);
    }
    found
}

fn parse_ranges(text: &str) -> Vec<u32> {
    let mut numbers = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        numbers.extend(first.parse::<u32>().unwrap()..=last.parse::<u32>().unwrap());
    }
    numbers
}

fn client_status(word: &str) -> ClientStatus {
    match word {
        "pending" => ClientStatus::Pending,
        "running" => ClientStatus::Running,
        "complete" => ClientStatus::Complete,
        "failed" => ClientStatus::Failed,
        _ => panic!("no such status: {word}"),
    }
}

/// Says or asks `word` of one allocation.
fn tell(cluster: &mut TestCluster, id: AllocId, word: &str) {
    match word {
        "healthy" => cluster.report_health(id, true),
        "unhealthy" => cluster.report_health(id, false),
        "migrate" => cluster.edit_alloc(id, |alloc| alloc.transition.migrate = true),
        "force_reschedule" => {
            cluster.edit_alloc(id, |alloc| alloc.transition.force_reschedule = true);
        }
        status => cluster.report(id, client_status(status)),
    }
}

fn set_transition(cluster: &mut TestCluster, names: &str, word: &str) {
    for id in named(cluster, names) {
        cluster.edit_alloc(id, |alloc| match word {
            "migrate" => alloc.transition.migrate = true,
            "reschedule" => alloc.transition.reschedule = true,
            "force_reschedule" => alloc.transition.force_reschedule = true,
            "stay_down" => {
                alloc.transition.migrate = true;
                alloc.transition.migrate_disable_placement = true;
            }
            _ => panic!("no such transition: {word}"),
        });
    }
}

fn move_deployment(cluster: &mut TestCluster, name: &str, status: &str) {
    let snapshot = cluster.snapshot();
    let mut deployment = snapshot
        .latest_deployment(&key(name))
        .unwrap()
        .value
        .clone();
    let all = DeploymentStatus::ALL;
    deployment.status = all
        .into_iter()
        .find(|known| known.as_str() == status)
        .unwrap();
    cluster.put(
        Key::Deployment(deployment.id),
        Entity::Deployment(Box::new(deployment)),
    );
}

/// Lists live allocations by node, with the version they run.
fn show(cluster: &TestCluster, name: &str) -> String {
    let snapshot = cluster.snapshot();
    let mut lines = String::new();
    let views = cluster.allocs(&key(name));
    for node in snapshot.nodes() {
        let here = views
            .iter()
            .filter(|view| view.alloc.node_id == node.value.id);
        let live: Vec<_> = here.filter(|view| !view.is_terminal()).collect();
        let mut versions: Vec<_> = live
            .iter()
            .map(|view| (&view.alloc.task_group, view.alloc.job_version))
            .collect();
        versions.sort();
        versions.dedup();
        for (group, version) in versions {
            let of_version = live.iter().filter(|view| {
                view.alloc.task_group == *group && view.alloc.job_version == version
            });
            let numbers = of_version.map(|view| view.alloc.name_index).collect();
            let node = &node.value.name;
            writeln!(lines, "{node}: {group}[{}] v{version}", ranges(numbers)).unwrap();
        }
    }
    lines
}
