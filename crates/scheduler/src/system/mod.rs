//! System and sysbatch jobs: each group once on every node that can run it.
//!
//! No node is chosen; the question is asked of each. `diff` says what becomes of one allocation;
//! this file goes through a group's nodes, and says how fast an update may go on; `property` is about
//! `distinct_property`, `failures` about policies for those that fail; `place` writes the plan.
//!
//! A system job's updates are deployments like a service's, with two differences: `canary` is a
//! percentage of the nodes, and what is rolled out counts the nodes that there are. A sysbatch job
//! has none: what has ended on a node stays ended, until the job changes.
//!
//! One that has failed is placed again by whatever looks at the job next. A job with a `reschedule`
//! policy has it placed again on its node when that says so, and not before.

mod diff;
mod failures;
mod place;
mod property;

use std::collections::{BTreeMap, BTreeSet};

use model::job::{TaskGroup, UpdateStrategy};
use model::{
    AllocMetric, ClientStatus, Deployment, DeploymentGroup, DesiredStatus, Indexed, Job, Node,
    NodeId, Timestamp,
};
use placement::{Feasibility, Requirements, Scope};
use state::AllocView;

use crate::in_place::InPlace;
use crate::reconcile::Context;
use crate::reconcile::changes::{
    Cause, GroupChanges, JobChanges, MIGRATING, MIGRATING_SYSTEM, Mark, NOT_NEEDED, PlaceAsk,
    StopAsk,
};
use crate::reconcile::reschedule::Fate;
use crate::reconcile::rollout;
use crate::reconcile::spec_change::{Comparison, SpecChange};
use diff::Step;
use failures::Failures;

/// The share of nodes that canaries are given as.
const PER_CENT: u64 = 100;

/// What has to change for a job that wants to be everywhere.
#[derive(Debug, Default)]
pub(crate) struct SystemChanges<'a> {
    /// Whom to stop and to note; places nothing.
    pub(crate) job: JobChanges<'a>,
    pub(crate) groups: Vec<Everywhere<'a>>,
    /// The deployment that placements belong to, as it stands or as it begins.
    pub(crate) deployment: Option<Deployment>,
}

/// One group's part: where it is placed, and how its rollout stands.
#[derive(Debug)]
pub(crate) struct Everywhere<'a> {
    pub(crate) group: &'a TaskGroup,
    pub(crate) asks: Vec<NodeAsk<'a>>,
    /// How many allocations there are to be, on nodes that can run the group.
    candidates: u32,
    healthy: u32,
    desired_canaries: u32,
    /// Old ones wait: for the limit, for canaries, for somebody to resume.
    is_held: bool,
    /// Something runs, or is done, though nothing is placed.
    has_some: bool,
    /// Why nodes cannot run it.
    filtered: AllocMetric,
    /// Where one has failed and is not placed again now: when it is, if ever.
    pub(crate) failed: BTreeMap<NodeId, Option<Timestamp>>,
}

/// An allocation to place on one node and no other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeAsk<'a> {
    pub(crate) node_id: NodeId,
    pub(crate) ask: PlaceAsk<'a>,
}

/// Compares what a system or sysbatch job has with what it wants.
pub(crate) struct SystemReconciler<'a, 'b> {
    pub(crate) context: Context<'a>,
    pub(crate) job: &'a Indexed<Job>,
    pub(crate) requirements: &'a BTreeMap<String, Requirements>,
    pub(crate) in_place: &'b mut InPlace<'a>,
}

/// A group's allocations, sorted by what becomes of them.
#[derive(Debug, Default)]
struct Sorted<'a> {
    /// To be replaced on their nodes, in this order.
    updates: Vec<&'a AllocView>,
    /// Their names are taken on their nodes.
    taken: BTreeSet<(NodeId, u32)>,
    /// They go on where the group can run.
    settled: u32,
    /// Of those, the ones of the current deployment, or of one that was overtaken, that nobody has
    /// judged.
    unproven: u32,
    /// Of those, the ones of the current deployment that their nodes have found healthy.
    healthy: u32,
    /// Of those, the ones that try the version out.
    canaries: u32,
    /// Told to leave a node that takes new work.
    moving: Vec<&'a AllocView>,
}

impl<'a> SystemReconciler<'a, '_> {
    pub(crate) fn run(mut self) -> (SystemChanges<'a>, crate::draw::Draw) {
        let mut changes = SystemChanges::default();
        let mut allocs = BTreeMap::<String, Vec<&'a AllocView>>::new();
        for group in &self.job.value.task_groups {
            allocs.insert(group.name.clone(), Vec::new());
        }
        for view in self.context.snapshot.allocs_by_job(self.context.key) {
            if self.context.is_lost_while_stopping(view) {
                changes.job.lost_while_stopping.push(StopAsk::lost(view));
            }
            let group = allocs.entry(view.alloc.task_group.to_string());
            group.or_default().push(view);
        }
        let scope = Scope::new(&self.job.value);
        let nodes = self.context.snapshot.nodes().map(|node| &node.value);
        let nodes: Vec<&Node> = nodes
            .filter(|node| node.is_schedulable() && scope.contains(node))
            .collect();
        let mut entering = BTreeMap::new();
        let mut earlier = property::Earlier::default();
        let job = self.job;
        let wanted = |name: &str| {
            let group = job.value.task_group(name);
            group.filter(|group| group.count > 0)
        };
        // Groups that go leave their values to all others, to those before them by name as well:
        // nothing would look again once they are gone.
        let going = allocs.iter().filter(|(name, _)| wanted(name).is_none());
        let going = going.flat_map(|(_, allocs)| allocs);
        earlier.stopped.extend(going.map(|view| view.alloc.id));
        for (name, allocs) in allocs {
            let (Some(group), Some(requirements)) = (wanted(&name), self.requirements.get(&name))
            else {
                let stopped = crate::reconcile::stop_all(&self.context, name, allocs);
                changes.job.groups.push(stopped);
                continue;
            };
            let (group_changes, everywhere, enters) =
                self.group(group, requirements, &scope, (&nodes, &earlier), allocs);
            if let Some(enters) = enters {
                entering.insert(name, enters);
            }
            let stopped = group_changes.stops.iter().map(|stop| stop.view.alloc.id);
            earlier.stopped.extend(stopped);
            let placed = everywhere.asks.iter();
            let placed = placed.filter(|place| !matches!(place.ask.cause, Cause::Update(_)));
            earlier.placed.extend(placed.map(|place| place.node_id));
            changes.job.groups.push(group_changes);
            changes.groups.push(everywhere);
        }
        changes.deployment = self.deployment(entering);
        changes.job.deployment_id = changes.deployment.as_ref().map(|deployment| deployment.id);
        let current = self.context.triage.current.as_ref();
        changes.job.current_deployment = current.map(|current| current.value.clone());
        changes.job.deployment_updates = self.context.triage.updates;
        changes.job.delayed_evals = self.context.delayed_evals;
        (changes, self.context.draw)
    }

    fn group(
        &mut self,
        group: &'a TaskGroup,
        requirements: &'a Requirements,
        scope: &Scope,
        (nodes, earlier): (&[&'a Node], &property::Earlier),
        allocs: Vec<&'a AllocView>,
    ) -> (GroupChanges<'a>, Everywhere<'a>, Option<DeploymentGroup>) {
        let mut changes = GroupChanges {
            name: group.name.clone(),
            group: Some(group),
            ..GroupChanges::default()
        };
        let triage = &self.context.triage;
        let is_first_of_version = triage.is_first(self.job, allocs.iter().copied());
        let mut filtered = AllocMetric {
            nodes_evaluated: count(nodes),
            nodes_in_pool: count(nodes),
            node_pool: scope.node_pool().into(),
            ..AllocMetric::default()
        };
        let mut feasibility = Feasibility::new(requirements);
        let mut can_run = BTreeSet::new();
        for node in nodes.iter().copied() {
            let datacenter = filtered.nodes_available.entry(node.datacenter.clone());
            *datacenter.or_insert(0) += 1;
            match feasibility.check(node) {
                Ok(()) => drop(can_run.insert(node.id)),
                Err(infeasible) => {
                    filtered.nodes_filtered += 1;
                    let reason = infeasible.reason().to_owned();
                    *filtered.constraint_filtered.entry(reason).or_insert(0) += 1;
                    if !node.node_class.is_empty() {
                        let class = filtered.class_filtered.entry(node.node_class.clone());
                        *class.or_insert(0) += 1;
                    }
                }
            }
        }
        let (live, ended): (Vec<_>, Vec<_>) =
            allocs.into_iter().partition(|view| !view.is_terminal());
        let sorted = self.sort(group, scope, &can_run, live, &mut changes);
        let mut failures = Failures::default();
        let missing = self.missing(group, &can_run, ended, &sorted, &mut failures, &mut changes);
        self.follow_up(failures.due, &mut changes);
        let stopped = changes.stops.iter().map(|stop| stop.view.alloc.id);
        let missing = property::limit(
            &self.context,
            &group.name,
            requirements,
            earlier,
            &stopped.collect(),
            missing,
            &mut filtered,
        );
        let mut everywhere = Everywhere {
            group,
            asks: Vec::new(),
            candidates: sorted.settled
                + count(&sorted.updates)
                + count(&missing)
                + failures.rolled_out,
            healthy: sorted.healthy,
            desired_canaries: 0,
            is_held: false,
            has_some: changes.desired.ignore > 0 || changes.desired.in_place_update > 0,
            filtered,
            failed: failures.failed,
        };
        let enters = self.roll_out(
            sorted,
            missing,
            is_first_of_version,
            &mut everywhere,
            &mut changes,
        );
        changes.desired.stop = count(&changes.stops) - changes.desired.migrate;
        (changes, everywhere, enters)
    }

    /// Decides about every live allocation.
    fn sort(
        &mut self,
        group: &'a TaskGroup,
        scope: &Scope,
        can_run: &BTreeSet<NodeId>,
        mut live: Vec<&'a AllocView>,
        changes: &mut GroupChanges<'a>,
    ) -> Sorted<'a> {
        let snapshot = self.context.snapshot;
        let mut comparison = Comparison::new(snapshot, self.context.key, self.job, group);
        let mut sorted = Sorted::default();
        live.sort_by_key(|view| (view.alloc.node_id, view.alloc.name_index, view.create_index));
        for view in live {
            let (node_id, number) = (view.alloc.node_id, view.alloc.name_index);
            let is_wanted = number < group.count && !sorted.taken.contains(&(node_id, number));
            let mut step = diff::step(snapshot, scope, is_wanted, view, || comparison.of(view));
            if let Step::Update { is_destructive } = step {
                step = if is_destructive && can_run.contains(&node_id) {
                    step
                } else if !is_destructive && self.in_place.can_stay(group, view) {
                    Step::UpdateInPlace
                } else {
                    Step::Stop(NOT_NEEDED)
                };
            }
            if diff::is_reconnecting(snapshot, view)
                && matches!(step, Step::Ignore | Step::UpdateInPlace)
            {
                changes.edit(view).mark = Some(Mark::Reconnected);
                changes.desired.reconnect += 1;
            }
            match step {
                Step::Lost => changes.stops.push(StopAsk::lost(view)),
                Step::Stop(description) => changes.stops.push(StopAsk::new(view, description)),
                Step::Migrate => {
                    let stays = can_run.contains(&node_id);
                    let why = if stays { MIGRATING } else { MIGRATING_SYSTEM };
                    changes.stops.push(StopAsk::new(view, why));
                    if stays {
                        sorted.moving.push(view);
                    }
                }
                Step::Disconnect => {
                    changes.edit(view).mark = Some(Mark::Unknown);
                    changes.desired.disconnect += 1;
                }
                Step::Ignore => changes.desired.ignore += 1,
                Step::UpdateInPlace => {
                    changes.edit(view).in_place = true;
                    changes.desired.in_place_update += 1;
                }
                Step::Update { .. } => sorted.updates.push(view),
            }
            if !matches!(step, Step::Lost | Step::Stop(_) | Step::Migrate) {
                sorted.taken.insert((node_id, number));
            }
            if matches!(step, Step::Ignore | Step::UpdateInPlace) && can_run.contains(&node_id) {
                sorted.settled += 1;
                let triage = &self.context.triage;
                let is_current =
                    triage.active_id().is_some() && view.alloc.deployment_id == triage.active_id();
                let verdict = view.health().map(|health| health.healthy);
                // One that takes the version as it runs was part of what it has overtaken.
                let is_rolled_out = is_current
                    || (step == Step::UpdateInPlace && view.alloc.deployment_id.is_some());
                sorted.unproven += u32::from(is_rolled_out && verdict.is_none());
                sorted.healthy += u32::from(is_current && verdict == Some(true));
                sorted.canaries += u32::from(triage.is_canary(view));
            }
        }
        // Those that serve nobody first, as with services.
        sorted.updates.sort_by_key(|view| rollout::is_proven(view));
        sorted
    }

    /// Returns whom to place on nodes that can run the group and have nothing of it.
    fn missing(
        &self,
        group: &'a TaskGroup,
        can_run: &BTreeSet<NodeId>,
        ended: Vec<&'a AllocView>,
        sorted: &Sorted<'a>,
        failures: &mut Failures<'a>,
        changes: &mut GroupChanges<'a>,
    ) -> Vec<NodeAsk<'a>> {
        let rules = self.rules(group);
        let mut newest = BTreeMap::<(NodeId, u32), &'a AllocView>::new();
        for view in ended {
            let name = (view.alloc.node_id, view.alloc.name_index);
            let known = newest.entry(name).or_insert(view);
            if view.create_index > known.create_index {
                *known = view;
            }
        }
        let moving = sorted.moving.iter().map(|view| {
            let name = (view.alloc.node_id, view.alloc.name_index);
            (name, *view)
        });
        let moving: BTreeMap<_, _> = moving.collect();
        self.note_elsewhere(group, can_run, &newest, sorted, failures);
        let mut missing = Vec::new();
        for node_id in can_run.iter().copied() {
            for number in 0..group.count {
                let name = (node_id, number);
                if sorted.taken.contains(&name) {
                    continue;
                }
                let cause = match (moving.get(&name), newest.get(&name)) {
                    (Some(view), _) => Cause::Migrate(view),
                    (None, Some(view)) if self.goes_by_policy(group, view) => {
                        match rules.fate(view) {
                            Fate::Now => Cause::Reschedule(view),
                            Fate::Gone => Cause::Lost(view),
                            fate => {
                                self.wait(&rules, view, fate, failures);
                                changes.desired.ignore += 1;
                                continue;
                            }
                        }
                    }
                    (None, Some(view)) if self.is_done(group, view) => {
                        changes.desired.ignore += 1;
                        continue;
                    }
                    (None, Some(view)) => Cause::Lost(view),
                    (None, None) => Cause::Missing,
                };
                let tried = cause.previous();
                missing.push(NodeAsk {
                    node_id,
                    ask: PlaceAsk {
                        is_canary: tried.is_some_and(|view| self.context.triage.is_canary(view)),
                        ..PlaceAsk::new(number, cause)
                    },
                });
            }
        }
        missing
    }

    /// Tells whether `view`, which has ended, has done what the job asks for.
    ///
    /// What was lost with its node has not (Nomad takes it for done), nor what had to make way.
    fn is_done(&self, group: &'a TaskGroup, view: &AllocView) -> bool {
        let was_cut_short = view.client_status() == ClientStatus::Lost
            || view.alloc.desired_status == DesiredStatus::Evict;
        if !self.context.batch || was_cut_short {
            return false;
        }
        let context = &self.context;
        let mut comparison = Comparison::new(context.snapshot, context.key, self.job, group);
        comparison.of(view) != SpecChange::Destructive
    }

    fn update(&self, group: &'a TaskGroup) -> Option<&'a UpdateStrategy> {
        let update = group.update.as_ref().filter(|_| !self.context.batch);
        update.filter(|update| update.max_parallel > 0)
    }

    /// Decides who is replaced now; returns the group's part of a deployment that it enters.
    fn roll_out(
        &self,
        sorted: Sorted<'a>,
        missing: Vec<NodeAsk<'a>>,
        is_first_of_version: bool,
        everywhere: &mut Everywhere<'a>,
        changes: &mut GroupChanges<'a>,
    ) -> Option<DeploymentGroup> {
        let triage = &self.context.triage;
        let group = everywhere.group;
        let update = self.update(group);
        let is_over = triage.current.is_some() && triage.active_id().is_none();
        let known = triage.group(&group.name);
        let has_updates = !sorted.updates.is_empty() || changes.desired.in_place_update > 0;
        let enters = update.filter(|_| {
            !is_over
                && known.is_none()
                && everywhere.candidates > 0
                && (has_updates || is_first_of_version)
        });
        let enters = enters.map(|update| rollout::new_group(update, everywhere.candidates));
        let part = known.or(enters.as_ref());
        let is_promoted = part.is_some_and(|part| part.promoted);
        let again = missing.iter().filter(|place| place.ask.is_canary).count();
        let again = u32::try_from(again).unwrap_or(u32::MAX);
        // Canaries that run, or are placed anew, count with those that they go before.
        let old = count(&sorted.updates) + sorted.canaries + again;
        let is_canarying = update.is_some_and(|update| update.canary > 0)
            && part.is_some()
            && !is_promoted
            && old > 0;
        if let Some(update) = update.filter(|_| is_canarying) {
            everywhere.desired_canaries = canaries(update, old);
        } else if let Some(part) = part.filter(|part| part.promoted) {
            everywhere.desired_canaries = part.desired_canaries;
        }
        let is_halted = triage.is_paused() || is_over;
        let allowed = match update {
            None => u32::MAX,
            Some(_) if is_halted => 0,
            Some(update) => {
                let limit = update.max_parallel.saturating_sub(sorted.unproven);
                let canaries = everywhere.desired_canaries;
                let canaries = canaries.saturating_sub(sorted.canaries + again);
                if is_canarying {
                    canaries.min(limit)
                } else {
                    limit
                }
            }
        };
        let allowed = usize::try_from(allowed)
            .unwrap_or(usize::MAX)
            .min(sorted.updates.len());
        let (now, later) = sorted.updates.split_at(allowed);
        everywhere.is_held = !later.is_empty();
        changes.desired.ignore += count(later);
        // Each is one thing: who tries the version out is no update beside that, and who does so
        // again is a placement, as with services.
        if is_canarying {
            changes.desired.canary = count(now);
        } else {
            changes.desired.destructive_update = count(now);
        }
        everywhere.asks = now
            .iter()
            .map(|view| NodeAsk {
                node_id: view.alloc.node_id,
                ask: PlaceAsk {
                    is_canary: is_canarying,
                    ..PlaceAsk::new(view.alloc.name_index, Cause::Update(view))
                },
            })
            .collect();
        let moving = missing
            .iter()
            .filter(|place| matches!(place.ask.cause, Cause::Migrate(_)))
            .count();
        changes.desired.migrate = u32::try_from(moving).unwrap_or(u32::MAX);
        let again = missing
            .iter()
            .filter(|place| matches!(place.ask.cause, Cause::Reschedule(_)))
            .count();
        changes.desired.reschedule_now = u32::try_from(again).unwrap_or(u32::MAX);
        changes.desired.place = count(&missing) - changes.desired.migrate;
        everywhere.asks.extend(missing.into_iter().map(|mut place| {
            place.ask.is_canary &= is_canarying;
            place
        }));
        enters
    }

    /// Returns the deployment that placements belong to: the current one, or a new one.
    fn deployment(&mut self, entering: BTreeMap<String, DeploymentGroup>) -> Option<Deployment> {
        let current = self.context.triage.current.as_ref();
        let active = current.filter(|current| current.value.status.is_active());
        let mut deployment = match active {
            Some(current) => current.value.clone(),
            None if entering.is_empty() => return None,
            None => self.context.new_deployment(self.job),
        };
        deployment.groups.extend(entering);
        Some(deployment)
    }
}

/// Returns how many of `old` allocations are to be canaries: a share of them, rounded up, and not
/// more than may be updated at once.
fn canaries(update: &UpdateStrategy, old: u32) -> u32 {
    let share = (u64::from(update.canary) * u64::from(old)).div_ceil(PER_CENT);
    let share = u32::try_from(share).unwrap_or(u32::MAX);
    share.min(update.max_parallel).min(old)
}

fn count<T>(items: &[T]) -> u32 {
    u32::try_from(items.len()).unwrap_or(u32::MAX)
}
