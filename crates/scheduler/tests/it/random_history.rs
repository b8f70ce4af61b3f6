//! Random histories of a cluster, for properties.

use std::collections::BTreeMap;
use std::time::Duration;

use model::job::{
    DeviceRequest, DisconnectStrategy, Network, Port, ReconcileChoice, ReschedulePolicy,
    UpdateStrategy, VolumeRequest, VolumeType,
};
use model::node::{DeviceInstance, HostNetwork, HostVolume, NodeDevice};
use model::{
    AllocId, ClientStatus, Constraint, DeploymentStatus, EvalId, EvalStatus, Job, JobType, Node,
    NodeEligibility, NodeStatus, Operator, Plan, Preemption, TaskGroup, TriggeredBy,
};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use scheduler::Decision;
use state::{Entity, Key, Snapshot};
use test_kit::builders;

use crate::cluster::TestCluster;
use crate::preferences;
use crate::volumes;

/// The number of histories per property, unless `KAFILA_HISTORIES` sets it.
const HISTORIES: u64 = 40;
const STEPS: usize = 60;
const JOBS: u32 = 4;

/// One evaluation with its decision.
pub(crate) struct Observation<'a> {
    /// The stored job; an empty one if it was deleted.
    pub(crate) job: &'a Job,
    pub(crate) before: &'a Snapshot,
    pub(crate) decision: &'a Decision,
}

pub(crate) struct RandomHistory {
    pub(crate) cluster: TestCluster,
    rng: StdRng,
    pub(crate) seed: u64,
    nodes: u128,
    types: &'static [JobType],
}

/// Service and batch jobs: the best node for each.
pub(crate) const ANYWHERE: &[JobType] = &[JobType::Service, JobType::Batch];
/// All types together, with priorities, and preemption enabled for some types.
pub(crate) const ALL: &[JobType] = &JobType::ALL;
/// System and sysbatch jobs.
pub(crate) const EVERYWHERE: &[JobType] = &[JobType::System, JobType::Sysbatch];

impl RandomHistory {
    fn new(seed: u64, types: &'static [JobType]) -> Self {
        let mut history = Self {
            cluster: TestCluster::new(seed),
            rng: StdRng::seed_from_u64(seed),
            seed,
            nodes: 0,
            types,
        };
        for _ in 0..history.rng.random_range(1..8) {
            history.add_node();
        }
        if types == ALL {
            let mut may = || history.rng.random();
            history.cluster.config.preemption = Preemption {
                system: may(),
                sysbatch: may(),
                batch: may(),
                service: may(),
            };
            history.cluster.store_config();
        }
        history
    }

    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        self.rng.random_range(0..bound)
    }

    fn add_node(&mut self) {
        self.nodes += 1;
        let mut node = builders::node(self.nodes);
        // With all types together, nodes are small enough for preemption.
        let largest = if self.types == ALL { 1_500 } else { 4_000 };
        node.resources.cpu_mhz = self.rng.random_range(500..largest);
        node.resources.memory_mib = self.rng.random_range(500..largest);
        node.max_dynamic_port = node.min_dynamic_port + self.rng.random_range(0..4);
        if self.below(3) == 0 {
            node.max_allocs = self.below(8) + 1;
        }
        for id in 0..self.rng.random_range(0..5) {
            node.cores.insert(id, self.rng.random_range(50..400));
        }
        for name in ["k80", "t4"] {
            let ids = 0..self.below(4);
            let instances = ids.map(|id| DeviceInstance {
                id: id.to_string(),
                healthy: true,
            });
            node.devices.push(NodeDevice {
                vendor: "nvidia".into(),
                device_type: "gpu".into(),
                name: name.into(),
                instances: instances.collect(),
                ..NodeDevice::default()
            });
        }
        let rack = self.below(3);
        node.meta.insert("rack".into(), format!("r{rack}"));
        self.furnish(&mut node);
        node.computed_class = placement::computed_class(&node);
        let name = node.name.clone();
        self.cluster.put_node(node);
        if self.below(4) > 0 {
            volumes::register(
                &mut self.cluster,
                &name,
                "own",
                &["alone", "multi", "reader"],
            );
        }
    }

    /// Adds addresses to most nodes, one of them under two aliases, and volumes to many.
    fn furnish(&mut self, node: &mut Node) {
        let network = |addresses: &[&str], reserved_ports: &[u16]| HostNetwork {
            addresses: addresses.iter().map(|text| (*text).to_owned()).collect(),
            reserved_ports: reserved_ports.to_vec(),
        };
        if self.below(4) > 0 {
            let reserved = if self.below(4) == 0 {
                &[8_080][..]
            } else {
                &[]
            };
            let public = network(&["203.0.113.1", "203.0.113.2"], &[]);
            node.host_networks.insert("public".into(), public);
            let private = network(&["10.0.0.1", "203.0.113.2"], reserved);
            node.host_networks.insert("private".into(), private);
        }
        if self.below(3) > 0 {
            node.meta.insert("network".into(), "private".into());
        }
        for name in ["data", "data[0]", "data[1]", "data[3]"] {
            if self.below(3) > 0 {
                let volume = HostVolume {
                    path: format!("/srv/{name}"),
                    read_only: self.below(4) == 0,
                };
                node.host_volumes.insert(name.into(), volume);
            }
        }
    }

    fn job(&mut self) -> Job {
        let name = format!("job{}", self.below(JOBS));
        let known = self
            .cluster
            .snapshot()
            .job(&builders::service(&name, 0).key())
            .cloned();
        let mut job = match known {
            Some(job) => job.value.clone(),
            None => {
                let kinds = u32::try_from(self.types.len()).unwrap();
                let job_type = self.types[self.below(kinds) as usize];
                let mut job = builders::service(&name, 0);
                job.job_type = job_type;
                if self.types == ALL {
                    job.priority = 10 + u8::try_from(self.below(40)).unwrap();
                }
                let is_everywhere = job_type.is_per_node();
                let count = if is_everywhere { 1 } else { self.below(8) + 1 };
                let mut group = builders::group("web", job_type, count);
                group.tasks[0].resources.cpu_mhz = self.rng.random_range(1..300);
                group.update = self.update(job_type);
                job.task_groups = vec![group];
                job
            }
        };
        job.stop = false;
        if self.types == ALL && self.below(8) == 0 {
            // Allocations of the version before keep that version's priority.
            job.priority = 10 + u8::try_from(self.below(40)).unwrap();
        }
        self.change(&mut job);
        job
    }

    /// Most services and system jobs have rolling updates, many with canaries.
    fn update(&mut self, job_type: JobType) -> Option<UpdateStrategy> {
        let is_rolled_out = !job_type.runs_to_end();
        if !is_rolled_out || self.below(4) == 0 {
            return None;
        }
        let mut update = builders::rolling_update(self.below(5));
        update.canary = match job_type {
            _ if self.below(2) == 0 => 0,
            JobType::System => self.below(100),
            _ => self.below(4),
        };
        Some(update)
    }

    fn change(&mut self, job: &mut Job) {
        let job_type = job.job_type;
        if self.below(8) == 0 {
            match job.task_groups.len() {
                1 => job.task_groups.push(builders::group("api", job_type, 1)),
                _ => drop(job.task_groups.pop()),
            }
        }
        let position = self.rng.random_range(0..job.task_groups.len());
        let (what, amount) = (self.below(24), self.rng.random_range(1..600));
        let update = self.update(job_type);
        let is_everywhere = job_type.is_per_node();
        let count = if is_everywhere {
            self.below(2)
        } else {
            self.below(12)
        };
        let group = &mut job.task_groups[position];
        match what {
            0 => group.tasks[0].resources.cpu_mhz = amount,
            1 | 2 | 10..=12 => drop(group.tasks[0].env.insert("A".into(), amount.to_string())),
            3 => group.update = update,
            4 => {
                let static_port = (amount % 2 == 0).then_some(8_080);
                let host_network = ["default", "public", "${meta.network}"];
                let port = Port {
                    label: "http".into(),
                    static_port,
                    to: None,
                    host_network: host_network[amount as usize / 2 % 3].into(),
                    ignore_collision: false,
                };
                group.networks = vec![Network {
                    mode: "host".into(),
                    ports: vec![port],
                    ..Network::default()
                }];
            }
            21 => {
                let volume = VolumeRequest {
                    volume_type: VolumeType::Host,
                    source: "data".into(),
                    read_only: amount % 2 == 0,
                    sticky: false,
                    per_alloc: !is_everywhere && amount % 3 == 0,
                    access_mode: None,
                    attachment_mode: None,
                    mount_options: Default::default(),
                };
                group.volumes = BTreeMap::from([("data".to_owned(), volume)]);
            }
            // Of registered volumes, most are for a single writer.
            23 if !is_everywhere => {
                let text = [
                    "own/alone",
                    "own/alone/sticky",
                    "own/multi",
                    "own/read_only",
                ];
                let volume = volumes::request(text[amount as usize % 4]);
                group.volumes = BTreeMap::from([("own".to_owned(), volume)]);
            }
            22 => group.volumes.clear(),
            16 if !is_everywhere => {
                let text = ["${meta.rack}/50", "${meta.rack}/50/r1:60,*:10"];
                let spread = preferences::spread(text[amount as usize % 2]);
                group.spreads = vec![spread];
            }
            17 if !is_everywhere => {
                let text = ["${meta.rack}/=/r1/50", "${node.unique.name}/!=/n1/-50"];
                let affinity = preferences::affinity(text[amount as usize % 2]);
                group.affinities = vec![affinity];
            }
            5 if !is_everywhere => {
                let (left, operator, right) = match amount % 3 {
                    0 => ("", Operator::DistinctHosts, ""),
                    1 => ("${meta.rack}", Operator::DistinctProperty, "2"),
                    _ => ("${meta.rack}", Operator::NotEqual, "r1"),
                };
                group.constraints = vec![Constraint {
                    left: left.into(),
                    operator,
                    right: right.into(),
                }];
            }
            5 if amount % 2 == 0 => {
                group.constraints = vec![Constraint {
                    left: "${meta.rack}".into(),
                    operator: Operator::DistinctProperty,
                    right: "2".into(),
                }];
            }
            5 => {
                group.constraints = vec![Constraint {
                    left: "${meta.rack}".into(),
                    operator: Operator::NotEqual,
                    right: format!("r{}", amount % 4),
                }];
            }
            18 => {
                group.tasks[0].resources.cores = amount % 3;
                if amount % 3 > 0 {
                    group.tasks[0].resources.cpu_mhz = 0;
                }
            }
            19 | 20 => {
                let request = (amount % 4 > 0).then(|| DeviceRequest {
                    name: ["gpu", "nvidia/gpu/t4"][amount as usize % 2].into(),
                    count: u64::from(amount % 3) + 1,
                    constraints: Vec::new(),
                    affinities: Vec::new(),
                });
                group.tasks[0].resources.devices = Vec::from_iter(request);
            }
            6 => group.ephemeral_disk.sticky = !group.ephemeral_disk.sticky,
            7 => group.tasks[0].kill_timeout = Duration::from_secs(u64::from(amount)),
            8 if !is_everywhere => change_disconnect(group, amount),
            9 => {
                group.reschedule = Some(ReschedulePolicy {
                    attempts: amount % 3,
                    interval: Duration::from_secs(3_600),
                    delay: Duration::from_secs(u64::from(amount % 30) + 1),
                    delay_function: model::job::DelayFunction::Exponential,
                    max_delay: Duration::from_secs(100),
                    unlimited: amount % 2 == 0,
                });
            }
            _ => group.count = count,
        }
    }

    fn any_job(&mut self) -> Option<Job> {
        let snapshot = self.cluster.snapshot();
        let count = u32::try_from(snapshot.jobs().count()).unwrap();
        let position = (count > 0).then(|| self.below(count))?;
        snapshot
            .jobs()
            .nth(position as usize)
            .map(|job| job.value.clone())
    }

    fn any_live(&mut self) -> Option<AllocId> {
        let snapshot = self.cluster.snapshot();
        let mut live: Vec<_> = snapshot
            .allocs()
            .filter(|view| !view.is_client_terminal())
            .collect();
        live.sort_by_key(|view| view.alloc.id);
        let count = u32::try_from(live.len()).unwrap();
        let position = (count > 0).then(|| self.below(count))?;
        Some(live[position as usize].alloc.id)
    }

    /// Makes a random event; returns its evaluation.
    fn happen(&mut self) -> Option<EvalId> {
        match self.below(20) {
            0..=4 => {
                let job = self.job();
                self.cluster.register(job.clone());
                return Some(self.cluster.add_eval(&job, TriggeredBy::JobRegister));
            }
            5 if self.below(2) == 0 => {
                let mut job = self.any_job()?;
                job.stop = true;
                self.cluster.register(job.clone());
                return Some(self.cluster.add_eval(&job, TriggeredBy::JobDeregister));
            }
            5 if self.below(2) == 0 => {
                let job = self.any_job()?;
                self.cluster.purge(&job.key());
                return Some(self.cluster.add_eval(&job, TriggeredBy::JobDeregister));
            }
            5..=7 => self.change_node(),
            8 => self.add_node(),
            9..=11 => {
                let id = self.any_live()?;
                self.report(id);
            }
            12..=14 => {
                let job = self.any_job()?;
                self.mostly_good_news(&job);
                return Some(self.cluster.add_eval(&job, TriggeredBy::DeploymentWatcher));
            }
            15 => {
                let id = self.any_live()?;
                let word = self.below(3);
                self.cluster.edit_alloc(id, |alloc| match word {
                    0 => alloc.transition.migrate = true,
                    1 => alloc.transition.reschedule = true,
                    _ => alloc.transition.force_reschedule = true,
                });
            }
            16 | 17 => {
                let job = self.any_job()?;
                self.move_deployment(&job);
                return Some(self.cluster.add_eval(&job, TriggeredBy::DeploymentWatcher));
            }
            _ => {
                let seconds = self.below(100);
                self.cluster.wait(Duration::from_secs(seconds.into()));
            }
        }
        let job = self.any_job()?;
        Some(self.cluster.add_eval(&job, TriggeredBy::NodeUpdate))
    }

    /// Most of a job's allocations become running and healthy.
    fn mostly_good_news(&mut self, job: &Job) {
        for view in self.cluster.allocs(&job.key()) {
            if view.is_terminal() || self.below(4) == 0 || !self.is_reached(view.alloc.id) {
                continue;
            }
            self.cluster.report(view.alloc.id, ClientStatus::Running);
            if view.alloc.deployment_id.is_some() && self.below(8) > 0 {
                self.cluster.report_health(view.alloc.id, true);
            }
        }
    }

    fn is_reached(&self, id: AllocId) -> bool {
        let snapshot = self.cluster.snapshot();
        let node = snapshot.node(self.cluster.alloc(id).node_id);
        node.is_some_and(|node| {
            matches!(
                node.value.status,
                NodeStatus::Ready | NodeStatus::Initializing
            )
        })
    }

    /// A connected node reports an allocation.
    fn report(&mut self, id: AllocId) {
        if !self.is_reached(id) {
            return;
        }
        let status = match self.below(5) {
            0 => ClientStatus::Complete,
            1 => ClientStatus::Failed,
            _ => ClientStatus::Running,
        };
        self.cluster.report(id, status);
        if self.cluster.alloc(id).deployment_id.is_some() {
            let healthy = status == ClientStatus::Running && self.below(4) > 0;
            self.cluster.report_health(id, healthy);
        }
    }

    /// A user promotes, fails, pauses or resumes a job's deployment.
    fn move_deployment(&mut self, job: &Job) {
        let snapshot = self.cluster.snapshot();
        let Some(newest) = snapshot.latest_deployment(&job.key()) else {
            return;
        };
        let mut deployment = newest.value.clone();
        if !deployment.status.is_active() {
            return;
        }
        deployment.status = match self.below(8) {
            0 => DeploymentStatus::Failed,
            1 => DeploymentStatus::Paused,
            2 | 3 => DeploymentStatus::Running,
            _ => return self.cluster.promote(&job.key()),
        };
        self.cluster.put(
            Key::Deployment(deployment.id),
            Entity::Deployment(Box::new(deployment)),
        );
    }

    fn change_node(&mut self) {
        let number = self.rng.random_range(1..=self.nodes);
        let name = format!("n{number}");
        let snapshot = self.cluster.snapshot();
        let Some(node) = snapshot.nodes().find(|node| node.value.name == name) else {
            return;
        };
        let mut node = node.value.clone();
        match self.below(8) {
            0 => node.status = NodeStatus::Down,
            1 | 2 => node.status = NodeStatus::Disconnected,
            3 => node.status = NodeStatus::Initializing,
            4 => node.eligibility = NodeEligibility::Ineligible,
            6 if !node.devices.is_empty() => {
                for device in &mut node.devices {
                    for instance in &mut device.instances {
                        instance.healthy = self.rng.random();
                    }
                }
            }
            5 if self.below(4) == 0 => {
                self.cluster.apply(vec![(Key::Node(node.id), None)]);
                return;
            }
            _ => {
                node.status = NodeStatus::Ready;
                node.eligibility = NodeEligibility::Eligible;
            }
        }
        self.cluster.put_node(node);
    }

    /// Runs the due evaluations after `made`; passes each to `observed`.
    fn run_due(&mut self, made: Option<EvalId>, observed: &impl Fn(&mut Self, Observation<'_>)) {
        let mut due = self.cluster.due();
        due.retain(|id| Some(*id) != made);
        for id in made.into_iter().chain(due) {
            let eval = self.cluster.eval(id).value;
            let before = self.cluster.snapshot();
            let decision = self.cluster.run(id);
            let mut job = builders::service(&eval.job.job_id, 0);
            job.job_type = eval.job_type;
            if let Some(known) = before.job(&eval.job) {
                job = known.value.clone();
            }
            let shown = Observation {
                job: &job,
                before: &before,
                decision: &decision,
            };
            observed(self, shown);
        }
    }

    /// Lets everything succeed: nodes return, tasks run and are healthy, canaries are promoted.
    /// Returns the number of rounds until nothing changes.
    pub(crate) fn turn_out_well(&mut self, rounds_max: usize) -> Option<usize> {
        for number in 1..=self.nodes {
            let name = format!("n{number}");
            let snapshot = self.cluster.snapshot();
            if let Some(node) = snapshot.nodes().find(|node| node.value.name == name) {
                let mut node = node.value.clone();
                node.status = NodeStatus::Ready;
                node.eligibility = NodeEligibility::Eligible;
                self.cluster.put_node(node);
            }
        }
        for round in 0..rounds_max {
            let before = self.cluster.snapshot().index();
            let snapshot = self.cluster.snapshot();
            for view in snapshot.allocs().filter(|view| !view.is_terminal()) {
                let id = view.alloc.id;
                let is_news = view.client_status() != ClientStatus::Running;
                if is_news {
                    self.cluster.report(id, ClientStatus::Running);
                }
                let unproven = view.alloc.deployment_id.is_some()
                    && !view.health().is_some_and(|health| health.healthy);
                if unproven {
                    self.cluster.report_health(id, true);
                }
            }
            let mut changed = self.cluster.snapshot().index() != before;
            let jobs: Vec<Job> = snapshot.jobs().map(|job| job.value.clone()).collect();
            for job in jobs {
                if let Some(newest) = snapshot.latest_deployment(&job.key())
                    && newest.value.status.is_active()
                {
                    let mut resumed = newest.value.clone();
                    let is_paused = resumed.status != DeploymentStatus::Running;
                    if is_paused {
                        resumed.status = DeploymentStatus::Running;
                        self.cluster.put(
                            Key::Deployment(resumed.id),
                            Entity::Deployment(Box::new(resumed.clone())),
                        );
                    }
                    let waits = resumed
                        .groups
                        .values()
                        .any(|group| group.desired_canaries > 0 && !group.promoted);
                    if waits {
                        self.cluster.promote(&job.key());
                    }
                    changed |= is_paused || waits;
                }
                let id = self.cluster.add_eval(&job, TriggeredBy::NodeUpdate);
                changed |= changes_something(&self.cluster.run(id).plan);
            }
            for id in self.cluster.due() {
                changed |= changes_something(&self.cluster.run(id).plan);
            }
            let snapshot = self.cluster.snapshot();
            let mut open = snapshot.open_evals();
            changed |= open.any(|eval| eval.value.status == EvalStatus::Pending);
            self.cluster.wait(Duration::from_secs(200));
            if !changed {
                return Some(round);
            }
        }
        None
    }
}

/// Tells whether anything changed; an evaluation that blocks again is no change.
fn changes_something(plan: &Plan) -> bool {
    let followups = plan.followup_evals.iter();
    !plan.stops.is_empty()
        || !plan.placements.is_empty()
        || plan.deployment.is_some()
        || !plan.deployment_updates.is_empty()
        || followups
            .into_iter()
            .any(|eval| eval.status != EvalStatus::Blocked)
}

fn change_disconnect(group: &mut TaskGroup, amount: u32) {
    let lost_after = Duration::from_secs(u64::from(amount % 60) + 1);
    let is_stopped = amount.is_multiple_of(5);
    group.disconnect = (!amount.is_multiple_of(7)).then_some(DisconnectStrategy {
        lost_after: (!is_stopped && !amount.is_multiple_of(3)).then_some(lost_after),
        stop_on_client_after: is_stopped.then_some(lost_after),
        replace: !amount.is_multiple_of(4),
        reconcile: match amount % 4 {
            0 => ReconcileChoice::BestScore,
            1 => ReconcileChoice::KeepOriginal,
            2 => ReconcileChoice::KeepReplacement,
            _ => ReconcileChoice::LongestRunning,
        },
    });
}

/// The number of histories.
pub(crate) fn histories() -> u64 {
    let asked = std::env::var("KAFILA_HISTORIES").ok();
    asked.map_or(HISTORIES, |text| {
        text.parse().expect("a number of histories")
    })
}

/// Plays random histories; `observed` gets every evaluation right after its plan was committed.
pub(crate) fn play(
    types: &'static [JobType],
    observed: impl Fn(&mut RandomHistory, Observation<'_>),
) {
    play_and(types, observed, |_| {});
}

/// As [`play`]; `end` gets every cluster at its end.
pub(crate) fn play_and(
    types: &'static [JobType],
    observed: impl Fn(&mut RandomHistory, Observation<'_>),
    end: impl Fn(&mut RandomHistory),
) {
    let first = std::env::var("KAFILA_SEED").map_or(0, |text| text.parse().expect("a seed"));
    for seed in first..first + histories() {
        // The last line of a failing property.
        println!("seed {seed}");
        let mut history = RandomHistory::new(seed, types);
        for _ in 0..STEPS {
            let made = history.happen();
            history.run_due(made, &observed);
        }
        end(&mut history);
    }
}
