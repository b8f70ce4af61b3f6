//! Facts of random clusters, jobs and histories.
//!
//! What holds at every revision (no node overcommitted, no port or name used twice) is checked by
//! the site itself, whatever a test is about. A failure names its seed.

use std::collections::BTreeMap;
use std::time::Duration;

use model::job::{Network, Port};
use model::{
    AllocId, ClientStatus, Constraint, EvalId, Job, JobType, NodeEligibility, NodeStatus, Operator,
    TriggeredBy,
};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use test_kit::builders;

use crate::preferences;
use crate::report::describe;
use crate::site::Site;

/// Histories per property; `KAFILA_HISTORIES` asks for more.
const HISTORIES: u64 = 30;
const STEPS: usize = 60;
const JOBS: u32 = 4;

struct World {
    site: Site,
    rng: StdRng,
    seed: u64,
    nodes: u128,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut world = Self {
            site: Site::new(seed),
            rng: StdRng::seed_from_u64(seed),
            seed,
            nodes: 0,
        };
        for _ in 0..world.rng.random_range(1..8) {
            world.add_node();
        }
        world
    }

    fn below(&mut self, bound: u32) -> u32 {
        self.rng.random_range(0..bound)
    }

    fn add_node(&mut self) {
        self.nodes += 1;
        let mut node = builders::node(self.nodes);
        node.resources.cpu_mhz = self.rng.random_range(500..4_000);
        node.resources.memory_mib = self.rng.random_range(500..4_000);
        node.max_dynamic_port = node.min_dynamic_port + self.rng.random_range(0..4);
        let rack = self.below(3);
        node.meta.insert("rack".into(), format!("r{rack}"));
        node.computed_class = placement::computed_class(&node);
        self.site.put_node(node);
    }

    fn job(&mut self) -> Job {
        let name = format!("job{}", self.below(JOBS));
        let known = self
            .site
            .snapshot()
            .job(&builders::service(&name, 0).key())
            .cloned();
        let mut job = match known {
            Some(job) => job.value.clone(),
            None if self.rng.random() => builders::service(&name, 0),
            None => builders::batch(&name, 0),
        };
        job.stop = false;
        self.change(&mut job);
        job
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
        let (what, amount) = (self.below(10), self.rng.random_range(1..600));
        let count = self.below(12);
        let group = &mut job.task_groups[position];
        match what {
            0 => group.tasks[0].resources.cpu_mhz = amount,
            1 => drop(group.tasks[0].env.insert("A".into(), amount.to_string())),
            2 if job_type == JobType::Service => {
                group.update = Some(builders::rolling_update(amount % 5));
            }
            3 => {
                let static_port = (amount % 2 == 0).then_some(8_080);
                let port = Port {
                    label: "http".into(),
                    static_port,
                    to: None,
                    host_network: "default".into(),
                };
                group.networks = vec![Network {
                    mode: "host".into(),
                    ports: vec![port],
                }];
            }
            4 => {
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
            5 => group.ephemeral_disk.sticky = !group.ephemeral_disk.sticky,
            6 => {
                let text = ["${meta.rack}/50", "${meta.rack}/50/r1:60,*:10"];
                let spread = preferences::spread(text[amount as usize % 2]);
                group.spreads = vec![spread];
            }
            7 => {
                let text = ["${meta.rack}/=/r1/50", "${node.unique.name}/!=/n1/-50"];
                let affinity = preferences::affinity(text[amount as usize % 2]);
                group.affinities = vec![affinity];
            }
            _ => group.count = count,
        }
    }

    fn any_job(&mut self) -> Option<Job> {
        let snapshot = self.site.snapshot();
        let count = u32::try_from(snapshot.jobs().count()).unwrap();
        let position = (count > 0).then(|| self.below(count))?;
        snapshot
            .jobs()
            .nth(position as usize)
            .map(|job| job.value.clone())
    }

    fn any_live(&mut self) -> Option<AllocId> {
        let snapshot = self.site.snapshot();
        let mut live: Vec<_> = snapshot
            .allocs()
            .filter(|view| !view.is_client_terminal())
            .collect();
        live.sort_by_key(|view| view.alloc.id);
        let count = u32::try_from(live.len()).unwrap();
        let position = (count > 0).then(|| self.below(count))?;
        Some(live[position as usize].alloc.id)
    }

    /// Something happens; returns the evaluation that it makes.
    fn happen(&mut self) -> Option<EvalId> {
        match self.below(12) {
            0..=3 => {
                let job = self.job();
                self.site.register(job.clone());
                return Some(self.site.add_eval(&job, TriggeredBy::JobRegister));
            }
            4 => {
                let mut job = self.any_job()?;
                job.stop = true;
                self.site.register(job.clone());
                return Some(self.site.add_eval(&job, TriggeredBy::JobDeregister));
            }
            5 => {
                let job = self.any_job()?;
                self.site.purge(&job.key());
                return Some(self.site.add_eval(&job, TriggeredBy::JobDeregister));
            }
            6 => self.change_node(),
            7 => self.add_node(),
            8 | 9 => {
                let id = self.any_live()?;
                let statuses = [
                    ClientStatus::Running,
                    ClientStatus::Complete,
                    ClientStatus::Failed,
                ];
                let status = statuses[self.below(3) as usize];
                self.site.report(id, status);
                if self.site.alloc(id).deployment_id.is_some() {
                    let healthy = status == ClientStatus::Running && self.below(4) > 0;
                    self.site.report_health(id, healthy);
                }
            }
            10 => {
                let id = self.any_live()?;
                let word = self.below(3);
                self.site.edit_alloc(id, |alloc| match word {
                    0 => alloc.transition.migrate = true,
                    1 => alloc.transition.reschedule = true,
                    _ => alloc.transition.force_reschedule = true,
                });
            }
            _ => {
                let seconds = self.below(100);
                self.site.wait(Duration::from_secs(seconds.into()));
            }
        }
        let job = self.any_job()?;
        Some(self.site.add_eval(&job, TriggeredBy::NodeUpdate))
    }

    fn change_node(&mut self) {
        let number = self.rng.random_range(1..=self.nodes);
        let mut node = self.site.node_named(&format!("n{number}"));
        match self.below(5) {
            0 => node.status = NodeStatus::Down,
            1 => node.status = NodeStatus::Disconnected,
            2 => node.eligibility = NodeEligibility::Ineligible,
            _ => {
                node.status = NodeStatus::Ready;
                node.eligibility = NodeEligibility::Eligible;
            }
        }
        self.site.put_node(node);
    }
}

/// Plays random histories; `look` is shown every evaluation right after its plan was committed.
fn play(look: impl Fn(&mut World, &Job, &scheduler::Decision)) {
    let asked = std::env::var("KAFILA_HISTORIES").ok();
    let histories = asked.map_or(HISTORIES, |text| {
        text.parse().expect("a number of histories")
    });
    for seed in 0..histories {
        let mut world = World::new(seed);
        for _ in 0..STEPS {
            let made = world.happen();
            let mut due = world.site.due();
            due.retain(|id| Some(*id) != made);
            for id in made.into_iter().chain(due) {
                let eval = world.site.eval(id).value;
                let decision = world.site.run(id);
                let mut about = builders::service(&eval.job.job_id, 0);
                if let Some(job) = world.site.snapshot().job(&eval.job) {
                    about = job.value.clone();
                }
                look(&mut world, &about, &decision);
            }
        }
    }
}

fn live_by_group(site: &Site, job: &Job) -> BTreeMap<String, u32> {
    let mut live = BTreeMap::new();
    for view in site
        .allocs(&job.key())
        .iter()
        .filter(|view| !view.is_terminal())
    {
        *live.entry(view.alloc.task_group.to_string()).or_insert(0) += 1;
    }
    live
}

#[test]
fn a_group_never_has_more_than_its_count() {
    play(|world, job, _| {
        for (name, live) in live_by_group(&world.site, job) {
            let count = job.task_group(&name).map_or(0, |group| group.count);
            let wanted = if job.stop { 0 } else { count };
            assert!(
                live <= wanted,
                "seed {}: {live} of {wanted} in {name}",
                world.seed
            );
        }
    });
}

#[test]
fn a_group_is_short_only_of_what_is_queued_or_waits() {
    play(|world, job, decision| {
        let outcome = decision.plan.eval_outcome.as_ref().unwrap();
        let deployment = world.site.snapshot().latest_deployment(&job.key()).cloned();
        let is_held = deployment.is_some_and(|deployment| !deployment.value.status.is_active());
        if job.stop || is_held {
            return;
        }
        let live = live_by_group(&world.site, job);
        let views = world.site.allocs(&job.key());
        for group in &job.task_groups {
            // Ended ones that keep their slots: batch work that is done, failures that wait.
            let ended = views.iter().filter(|view| {
                *view.alloc.task_group == *group.name
                    && !view.alloc.is_server_terminal()
                    && view.is_client_terminal()
            });
            let ended = u32::try_from(ended.count()).unwrap();
            let queued = outcome.queued_allocs.get(&group.name).copied().unwrap_or(0);
            let live = live.get(&group.name).copied().unwrap_or(0);
            assert!(
                live + queued + ended >= group.count,
                "seed {}: {live} live, {queued} queued, {ended} ended of {}",
                world.seed,
                group.count
            );
        }
    });
}

#[test]
fn planning_twice_changes_nothing() {
    play(|world, job, decision| {
        let outcome = decision.plan.eval_outcome.as_ref().unwrap();
        // Who moves may leave room for another to stay under a distinct constraint.
        let is_distinct = |constraint: &Constraint| {
            matches!(
                constraint.operator,
                Operator::DistinctHosts | Operator::DistinctProperty
            )
        };
        let groups = job.task_groups.iter();
        if groups.flat_map(|group| &group.constraints).any(is_distinct) {
            return;
        }
        // What had no place may find one that the same plan has freed.
        if !outcome.failed_task_groups.is_empty() || world.site.snapshot().job(&job.key()).is_none()
        {
            return;
        }
        let again = world.site.add_eval(job, TriggeredBy::NodeUpdate);
        let (before, now) = (world.site.snapshot(), world.site.now);
        let again = world.site.run(again);
        let told = describe(&again, &before, now);
        let first = describe(decision, &before, now);
        assert!(
            again.plan.is_no_op(),
            "seed {}: after\n{first}came\n{told}",
            world.seed
        );
    });
}

#[test]
fn a_stopped_job_is_stopped_everywhere() {
    play(|world, job, _| {
        let is_gone = world.site.snapshot().job(&job.key()).is_none();
        if is_gone || job.stop {
            assert_eq!(
                live_by_group(&world.site, job),
                BTreeMap::new(),
                "seed {}",
                world.seed
            );
        }
    });
}

#[test]
fn distinct_constraints_hold_for_what_was_placed() {
    play(|world, job, decision| {
        let snapshot = world.site.snapshot();
        for group in &job.task_groups {
            for constraint in &group.constraints {
                let property = match constraint.operator {
                    Operator::DistinctHosts => None,
                    Operator::DistinctProperty => Some("rack"),
                    _ => continue,
                };
                let mut used = BTreeMap::<String, usize>::new();
                for view in world.site.allocs(&job.key()) {
                    if view.is_terminal() || *view.alloc.task_group != *group.name {
                        continue;
                    }
                    let Some(node) = snapshot.node(view.alloc.node_id) else {
                        continue;
                    };
                    let value = property.map_or(&node.value.name, |key| &node.value.meta[key]);
                    *used.entry(value.clone()).or_default() += 1;
                }
                let placed = decision.plan.placements.values().flatten();
                for alloc in placed.filter(|alloc| *alloc.task_group == *group.name) {
                    let is_new = snapshot.alloc(alloc.id).unwrap().create_index == snapshot.index();
                    let node = snapshot.node(alloc.node_id).unwrap();
                    let value = property.map_or(&node.value.name, |key| &node.value.meta[key]);
                    let allowed = property.map_or(1, |_| 2);
                    assert!(
                        !is_new || used[value] <= allowed,
                        "seed {}: {used:?}",
                        world.seed
                    );
                }
            }
        }
    });
}
