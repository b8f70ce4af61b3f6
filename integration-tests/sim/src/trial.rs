//! Trial: one seed, from the start of the suite to rest.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use invariants::{Fact, Violation, check_at_rest, check_indexes};
use model::{
    ClientStatus, Deployment, DeploymentGroup, EvalStatus, JobType, NodeStatus, TaskPhase,
};
use state::{AllocView, Snapshot};

use crate::checker::Checker;
use crate::environment::Environment;
use crate::faults::Faults;
use crate::liveness::Oracle;
use crate::script::{Played, Script};
use crate::suite::Suite;
use crate::totals::Totals;
use crate::workload::{self, Ledger};

/// Time limit of the start, in milliseconds.
const START_LIMIT: u64 = 20_000;
/// Time limit to come to rest after the last repair, or after the last end of batch work: a few times
/// the longest timeouts of the suite.
const REST_LIMIT: u64 = 120_000;
/// Time limit to come to rest in all. The attempts of batch work are limited, so a backlog ends, but
/// with little room beside the services it takes minutes.
const REST_MAX: u64 = 900_000;
/// Duration of rest that ends a trial.
const REST: u64 = 3_000;
/// Interval of the checks for rest.
const CHECK_INTERVAL: u64 = 250;
/// Two, so that both change the same job at the same time.
const USERS: u64 = 2;

/// The parameters of a trial.
#[derive(Clone, Debug)]
pub struct Trial {
    pub seed: u64,
    /// Length of workload and faults, in milliseconds.
    pub length: u64,
    /// Without faults.
    pub is_calm: bool,
    /// Instead of random faults.
    pub script: Option<Script>,
    /// Prints every write and every fault.
    pub is_verbose: bool,
}

/// The result of a trial.
#[derive(Clone, Debug)]
pub struct Verdict {
    pub fingerprint: u64,
    pub revisions: u64,
    /// Its length, in simulated milliseconds.
    pub took: u64,
    pub requests: usize,
    pub acknowledged: usize,
    pub violations: Vec<Violation>,
    pub totals: Totals,
}

impl Trial {
    pub fn play(&self) -> Verdict {
        let checker = Checker::new(self.is_verbose);
        let ledger = Ledger::default();
        let mut environment = Environment::new(self.seed);
        let mut faults = Faults::new(self.seed ^ 3, self.is_verbose);
        if let Err(error) = self.try_play(&mut environment, &mut faults, &checker, &ledger) {
            checker.report(Fact::ServicesKeepRunning, error);
        }
        ledger.check(&checker);
        if self.is_verbose {
            let asked = ledger.asked();
            asked.iter().for_each(|asked| println!("asked {asked:?}"));
        }
        let (requests, acknowledged) = ledger.counts();
        let failovers = checker.failovers();
        Verdict {
            fingerprint: checker.fingerprint(),
            revisions: checker.revisions(),
            took: environment.now(),
            requests,
            acknowledged,
            violations: checker.violations(),
            totals: Totals {
                seeds: 1,
                simulated_ms: environment.now(),
                revisions: checker.revisions(),
                requests: requests as u64,
                acknowledged: acknowledged as u64,
                faults: faults.counts(),
                elected_ms: failovers.elected,
                wrote_ms: failovers.wrote,
            },
        }
    }

    fn try_play(
        &self,
        environment: &mut Environment,
        faults: &mut Faults,
        checker: &Checker,
        ledger: &Ledger,
    ) -> Result<(), String> {
        let suite = Suite::start(environment, self.seed ^ 1, checker, 4);
        while ready_nodes(checker) < suite.nodes.len() {
            if environment.now() > START_LIMIT {
                return Err("the suite did not start".to_owned());
            }
            environment.run(CHECK_INTERVAL)?;
        }
        let gateways = suite.gateway_addresses();
        for number in 0..USERS {
            // Distinct from neighbouring seeds and from other uses of this seed.
            let seed = self.seed ^ ((number + 1) << 60) ^ 2;
            let software = workload::software(number, seed, gateways.clone(), ledger.clone());
            environment.add(&format!("user-{number}"), software);
        }
        let mut nodes = Nodes::default();
        let mut oracle = Oracle::new(self.script.is_some() || self.is_calm);
        let mut played = self.script.map(|it| Played::new(it, environment.now()));
        faults.begin(environment.now() + 1_000);
        let end = environment.now() + self.length;
        while environment.now() < end {
            let next = match &mut played {
                Some(played) => {
                    played.act(environment, &suite, checker);
                    end
                }
                None if self.is_calm => end,
                None => {
                    faults.act(environment, &suite, checker);
                    faults.next().min(end)
                }
            };
            let most = next
                .saturating_sub(environment.now())
                .clamp(1, CHECK_INTERVAL);
            environment.run(most)?;
            nodes.check(&suite, checker);
            oracle.check(environment, &suite, checker);
            if checker.has_found() {
                // Later violations follow from the first.
                return Ok(());
            }
        }
        ledger.end();
        faults.heal(environment, &suite);
        if let Some(mut played) = played {
            played.heal();
        }
        self.come_to_rest(environment, &suite, checker, (&mut nodes, &mut oracle))
    }

    fn come_to_rest(
        &self,
        environment: &mut Environment,
        suite: &Suite,
        checker: &Checker,
        (nodes, oracle): (&mut Nodes, &mut Oracle),
    ) -> Result<(), String> {
        let last = environment.now() + REST_MAX;
        let mut limit = environment.now() + REST_LIMIT;
        let mut ended = 0;
        let mut since = None;
        loop {
            environment.run(CHECK_INTERVAL)?;
            let ended_before = std::mem::replace(&mut ended, ended_work(&checker.snapshot()));
            if ended != ended_before {
                limit = last.min(environment.now() + REST_LIMIT);
            }
            nodes.check(suite, checker);
            oracle.check(environment, suite, checker);
            if checker.has_found() {
                return Ok(());
            }
            let unrest = unrest(checker, suite.nodes.len());
            if unrest.is_empty() {
                let since = *since.get_or_insert(environment.now());
                if environment.now() >= since + REST {
                    break;
                }
            } else {
                since = None;
            }
            if environment.now() > limit {
                for violation in unrest {
                    checker.report(violation.fact, violation.found);
                }
                break;
            }
        }
        for violation in check_indexes(&checker.snapshot()) {
            checker.report(violation.fact, violation.found);
        }
        Ok(())
    }
}

fn ready_nodes(checker: &Checker) -> usize {
    let snapshot = checker.snapshot();
    let ready = snapshot
        .nodes()
        .filter(|node| node.value.status == NodeStatus::Ready);
    ready.count()
}

/// Returns the number of allocations of batch work that have ended.
fn ended_work(snapshot: &Snapshot) -> usize {
    let is_work = |view: &&AllocView| {
        let job = snapshot.job_version(&view.alloc.job_key(), view.alloc.job_version);
        let job_type = job.map(|job| job.value.job_type);
        matches!(job_type, Some(JobType::Batch | JobType::Sysbatch))
    };
    let ended = snapshot.allocs().filter(|view| view.is_client_terminal());
    ended.filter(is_work).count()
}

/// Returns the violations that keep an undisturbed suite from being at rest.
fn unrest(checker: &Checker, node_count: usize) -> Vec<Violation> {
    let snapshot = checker.snapshot();
    let revision = snapshot.index();
    let mut found = check_at_rest(&snapshot);
    let active = snapshot.active_deployments();
    for deployment in active.filter(|one| !waits_for_room(&snapshot, &one.value)) {
        let value = &deployment.value;
        let text = format!("deployment {} is {}", value.id, value.status.as_str());
        found.push(Violation {
            revision,
            fact: Fact::DeploymentsEnd,
            found: text,
        });
    }
    for view in snapshot.allocs() {
        if let Some(text) = undone(view) {
            found.push(Violation {
                revision,
                fact: Fact::DesiredStateIsReached,
                found: text,
            });
        }
    }
    let ready = ready_nodes(checker);
    if ready != node_count {
        found.push(Violation {
            revision,
            fact: Fact::NodesComeBack,
            found: format!("{ready} of {node_count} nodes are ready"),
        });
    }
    found
}

/// Returns whether a rollout waits only for capacity while no deadline runs. The progress deadline
/// starts with the first allocation and ends when the desired number is healthy, not counting
/// allocations that were migrating then. It does not run either once all canaries were healthy and a
/// user is to promote them; the ones that were preempted since need capacity first.
fn waits_for_room(snapshot: &Snapshot, rollout: &Deployment) -> bool {
    let mut evals = snapshot.evals_by_job(&rollout.job);
    let is_blocked = evals.any(|eval| eval.value.status == EvalStatus::Blocked);
    let placed: Vec<_> = snapshot.allocs_by_deployment(rollout.id).collect();
    let is_healthy = |view: &&AllocView| view.health().is_some_and(|health| health.healthy);
    let live: Vec<_> = placed.iter().filter(|view| !view.is_terminal()).collect();
    let healthy = live.iter().filter(|view| is_healthy(view)).count();
    let groups = rollout.groups.values();
    let wanted: u32 = groups.map(|group| group.desired_total).sum();
    let mut groups = rollout.groups.values();
    let awaits_user = groups.any(DeploymentGroup::awaits_promotion) && !rollout.promotes_itself();
    let canaries: u32 = rollout
        .groups
        .values()
        .map(|group| group.desired_canaries)
        .sum();
    let were_healthy = placed.iter().filter(|view| is_healthy(view)).count();
    let lacks_canaries =
        awaits_user && were_healthy as u64 >= u64::from(canaries) && healthy == live.len();
    is_blocked && (placed.is_empty() || lacks_canaries || healthy as u64 >= u64::from(wanted))
}

/// Returns a node's pending work for an allocation: run it, or end it.
fn undone(view: &AllocView) -> Option<String> {
    let (alloc, status) = (&view.alloc, view.client_status());
    let is_done = match alloc.is_server_terminal() {
        true => status.is_terminal(),
        false => status.is_terminal() || status == ClientStatus::Running || is_restarting(view),
    };
    let wanted = alloc.desired_status.as_str();
    let id = alloc.id;
    (!is_done).then(|| format!("allocation {id} is to {wanted} and is {}", status.as_str()))
}

/// Returns whether a task ran and waits for its restart: a job whose tasks fail for ever is never at
/// rest.
fn is_restarting(view: &AllocView) -> bool {
    let states = view
        .client
        .iter()
        .flat_map(|client| client.task_states.values());
    let mut waiting = states.filter(|state| state.phase == TaskPhase::Pending);
    waiting.any(|state| state.restarts > 0)
}

/// Revisions that the nodes have acted on.
#[derive(Default)]
struct Nodes {
    acted_on: BTreeMap<usize, (String, u64)>,
}

impl Nodes {
    fn check(&mut self, suite: &Suite, checker: &Checker) {
        for (host, memory) in &suite.nodes {
            let Some((store, revision)) = memory.acted_on() else {
                continue;
            };
            let newest = checker.snapshot().index();
            if revision > newest {
                let text = format!("machine {host} acted on {revision}, the newest is {newest}");
                checker.report(Fact::NodesGoForward, text);
            }
            let before = self.acted_on.insert(*host, (store.clone(), revision));
            if let Some((_, was)) = before.filter(|(name, was)| *name == store && *was > revision) {
                let text = format!("machine {host} acted on {revision} after {was}");
                checker.report(Fact::NodesGoForward, text);
            }
        }
    }
}
