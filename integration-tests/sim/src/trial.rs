//! One seed, from start to rest.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use invariants::{Fact, Violation, check_at_rest, check_indexes};
use model::{ClientStatus, Deployment, DeploymentGroup, EvalStatus, NodeStatus};
use state::{AllocView, Snapshot};

use crate::faults::Faults;
use crate::suite::Suite;
use crate::sums::Sums;
use crate::users::{self, Ledger};
use crate::watcher::Watcher;
use crate::world::World;

/// How long everything may take to come up, in milliseconds.
const START_LIMIT: u64 = 20_000;
/// How long everything may take to come to rest once nothing is broken any more: the longest waits
/// of the suite, a few times over.
const REST_LIMIT: u64 = 120_000;
/// How long rest has to last to be believed.
const REST: u64 = 3_000;
/// How often it is looked for.
const LOOK: u64 = 250;
/// Enough for two to want the same at the same time.
const USERS: u64 = 2;

/// What is played.
#[derive(Clone, Debug)]
pub struct Trial {
    pub seed: u64,
    /// How long users ask and things break, in milliseconds.
    pub length: u64,
    /// Whether anything breaks.
    pub is_calm: bool,
    /// Whether every write and every fault is printed.
    pub is_verbose: bool,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Verdict {
    pub fingerprint: u64,
    pub revisions: u64,
    /// How long it was, in simulated milliseconds.
    pub took: u64,
    pub requests: usize,
    pub acknowledged: usize,
    pub violations: Vec<Violation>,
    pub sums: Sums,
}

impl Trial {
    pub fn play(&self) -> Verdict {
        let watcher = Watcher::new(self.is_verbose);
        let ledger = Ledger::default();
        let mut world = World::new(self.seed);
        let mut faults = Faults::new(self.seed ^ 3, self.is_verbose);
        if let Err(error) = self.try_play(&mut world, &mut faults, &watcher, &ledger) {
            watcher.report(Fact::ServicesGoOn, error);
        }
        ledger.check(&watcher);
        if self.is_verbose {
            let asked = ledger.asked();
            asked.iter().for_each(|asked| println!("asked {asked:?}"));
        }
        let (requests, acknowledged) = ledger.counts();
        let failovers = watcher.failovers();
        Verdict {
            fingerprint: watcher.fingerprint(),
            revisions: watcher.revisions(),
            took: world.now(),
            requests,
            acknowledged,
            violations: watcher.violations(),
            sums: Sums {
                seeds: 1,
                simulated_ms: world.now(),
                revisions: watcher.revisions(),
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
        world: &mut World,
        faults: &mut Faults,
        watcher: &Watcher,
        ledger: &Ledger,
    ) -> Result<(), String> {
        let suite = Suite::start(world, self.seed ^ 1, watcher, 4);
        while ready_nodes(watcher) < suite.nodes.len() {
            if world.now() > START_LIMIT {
                return Err("the suite did not start".to_owned());
            }
            world.run(LOOK)?;
        }
        let gateways = suite.gateway_addresses();
        for number in 0..USERS {
            // Bits that neither the seeds beside it have, nor what else is drawn from this one.
            let seed = self.seed ^ ((number + 1) << 60) ^ 2;
            let software = users::software(number, seed, gateways.clone(), ledger.clone());
            world.add(&format!("user-{number}"), software);
        }
        let mut nodes = Nodes::default();
        faults.begin(world.now() + 1_000);
        let end = world.now() + self.length;
        while world.now() < end {
            if !self.is_calm {
                faults.act(world, &suite, watcher);
            }
            let next = match self.is_calm {
                true => end,
                false => faults.next().min(end),
            };
            let most = next.saturating_sub(world.now()).clamp(1, LOOK);
            world.run(most)?;
            nodes.look(&suite, watcher);
            if watcher.has_found() {
                // What follows from it is not worth the time.
                return Ok(());
            }
        }
        ledger.end();
        faults.heal(world, &suite);
        self.come_to_rest(world, &suite, watcher, &mut nodes)
    }

    fn come_to_rest(
        &self,
        world: &mut World,
        suite: &Suite,
        watcher: &Watcher,
        nodes: &mut Nodes,
    ) -> Result<(), String> {
        let limit = world.now() + REST_LIMIT;
        let mut since = None;
        loop {
            world.run(LOOK)?;
            nodes.look(suite, watcher);
            if watcher.has_found() {
                return Ok(());
            }
            let unrest = unrest(watcher, suite.nodes.len());
            if unrest.is_empty() {
                let since = *since.get_or_insert(world.now());
                if world.now() >= since + REST {
                    break;
                }
            } else {
                since = None;
            }
            if world.now() > limit {
                for violation in unrest {
                    watcher.report(violation.fact, violation.found);
                }
                break;
            }
        }
        for violation in check_indexes(&watcher.snapshot()) {
            watcher.report(violation.fact, violation.found);
        }
        Ok(())
    }
}

fn ready_nodes(watcher: &Watcher) -> usize {
    let snapshot = watcher.snapshot();
    let ready = snapshot
        .nodes()
        .filter(|node| node.value.status == NodeStatus::Ready);
    ready.count()
}

/// What keeps a suite that nobody disturbs from being at rest.
fn unrest(watcher: &Watcher, node_count: usize) -> Vec<Violation> {
    let snapshot = watcher.snapshot();
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
                fact: Fact::NodesDoAsTold,
                found: text,
            });
        }
    }
    let ready = ready_nodes(watcher);
    if ready != node_count {
        found.push(Violation {
            revision,
            fact: Fact::NodesComeBack,
            found: format!("{ready} of {node_count} nodes are ready"),
        });
    }
    found
}

/// Whether nothing but room is missing to end a rollout, and no deadline runs: the deadline begins
/// with the first allocation, and ends when as many are healthy as the rollout was made for. What
/// was on the move then is not among them. None runs either while a promotion is waited for, and
/// canaries that made way for more important work have to have room first.
fn waits_for_room(snapshot: &Snapshot, rollout: &Deployment) -> bool {
    let mut evals = snapshot.evals_by_job(&rollout.job);
    let is_blocked = evals.any(|eval| eval.value.status == EvalStatus::Blocked);
    let placed: Vec<_> = snapshot.allocs_by_deployment(rollout.id).collect();
    let is_healthy = |view: &&&AllocView| {
        !view.is_terminal() && view.health().is_some_and(|health| health.healthy)
    };
    let healthy = placed.iter().filter(is_healthy).count();
    let groups = rollout.groups.values();
    let wanted: u32 = groups.map(|group| group.desired_total).sum();
    let mut groups = rollout.groups.values();
    let awaits_promotion = groups.any(DeploymentGroup::awaits_promotion);
    let is_alone = placed.iter().all(|view| view.is_terminal());
    let has_gone = awaits_promotion && is_alone;
    is_blocked && (placed.is_empty() || has_gone || healthy as u64 >= u64::from(wanted))
}

/// What a node has still to do about an allocation: work ends, and all else runs.
fn undone(view: &AllocView) -> Option<String> {
    let (alloc, status) = (&view.alloc, view.client_status());
    let is_done = match alloc.is_server_terminal() {
        true => status.is_terminal(),
        false => status.is_terminal() || status == ClientStatus::Running,
    };
    let wanted = alloc.desired_status.as_str();
    let id = alloc.id;
    (!is_done).then(|| format!("allocation {id} is to {wanted} and is {}", status.as_str()))
}

/// How far each node has acted.
#[derive(Default)]
struct Nodes {
    acted_on: BTreeMap<usize, (String, u64)>,
}

impl Nodes {
    fn look(&mut self, suite: &Suite, watcher: &Watcher) {
        for (host, memory) in &suite.nodes {
            let Some((store, revision)) = memory.acted_on() else {
                continue;
            };
            let newest = watcher.snapshot().index();
            if revision > newest {
                let text = format!("machine {host} acted on {revision}, the newest is {newest}");
                watcher.report(Fact::NodesGoForward, text);
            }
            let before = self.acted_on.insert(*host, (store.clone(), revision));
            if let Some((_, was)) = before.filter(|(name, was)| *name == store && *was > revision) {
                let text = format!("machine {host} acted on {revision} after {was}");
                watcher.report(Fact::NodesGoForward, text);
            }
        }
    }
}
