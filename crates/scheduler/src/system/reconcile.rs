//! Reconciliation of a system or sysbatch job: the nodes of each group, and the pace of updates.

use std::collections::{BTreeMap, BTreeSet};

use model::job::{TaskGroup, UpdateStrategy};
use model::{AllocMetric, ClientStatus, Deployment, DeploymentGroup, DesiredStatus, Node, NodeId};
use placement::{Feasibility, Requirements, Scope};
use state::AllocView;

use crate::reconcile::changes::{
    Cause, GroupChanges, MIGRATING, MIGRATING_SYSTEM, Mark, NOT_NEEDED, PlaceAsk, StopAsk,
};
use crate::reconcile::group::stop_all;
use crate::reconcile::reschedule::SlotDecision;
use crate::reconcile::rollout;
use crate::reconcile::spec_change::{Comparison, SpecChange};
use crate::run_rng::RunRng;
use crate::system::changes::{NodeAsk, SystemChanges, SystemGroup};
use crate::system::diff::{self, Step};
use crate::system::failures::Failures;
use crate::system::property;
use crate::system::reconciler::{Sorted, SystemReconciler, count};

/// `canary` of a system job is a percentage of nodes.
const PER_CENT: u64 = 100;

impl<'a> SystemReconciler<'a, '_> {
    pub(crate) fn run(mut self) -> (SystemChanges<'a>, RunRng) {
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
        let mut earlier = property::EarlierGroups::default();
        let job = self.job;
        let wanted = |name: &str| {
            let group = job.value.task_group(name);
            group.filter(|group| group.count > 0)
        };
        // Removed groups free their values for all others, also for those before them by name: no
        // later evaluation would do so.
        let going = allocs.iter().filter(|(name, _)| wanted(name).is_none());
        let going = going.flat_map(|(_, allocs)| allocs);
        earlier.stopped.extend(going.map(|view| view.alloc.id));
        for (name, allocs) in allocs {
            let (Some(group), Some(requirements)) = (wanted(&name), self.requirements.get(&name))
            else {
                let stopped = stop_all(&self.context, name, allocs);
                changes.job.groups.push(stopped);
                continue;
            };
            let (group_changes, system_group, enters) =
                self.group(group, requirements, &scope, (&nodes, &earlier), allocs);
            if let Some(enters) = enters {
                entering.insert(name, enters);
            }
            let stopped = group_changes.stops.iter().map(|stop| stop.view.alloc.id);
            earlier.stopped.extend(stopped);
            let placed = system_group.asks.iter();
            let placed = placed.filter(|place| !matches!(place.ask.cause, Cause::Update(_)));
            earlier.placed.extend(placed.map(|place| place.node_id));
            changes.job.groups.push(group_changes);
            changes.groups.push(system_group);
        }
        changes.deployment = self.deployment(entering);
        changes.job.deployment_id = changes.deployment.as_ref().map(|deployment| deployment.id);
        let current = self.context.rollouts.current.as_ref();
        changes.job.current_deployment = current.map(|current| current.value.clone());
        changes.job.deployment_updates = self.context.rollouts.updates;
        changes.job.delayed_evals = self.context.delayed_evals;
        (changes, self.context.rng)
    }

    fn group(
        &mut self,
        group: &'a TaskGroup,
        requirements: &'a Requirements,
        scope: &Scope,
        (nodes, earlier): (&[&'a Node], &property::EarlierGroups),
        allocs: Vec<&'a AllocView>,
    ) -> (GroupChanges<'a>, SystemGroup<'a>, Option<DeploymentGroup>) {
        let mut changes = GroupChanges {
            name: group.name.clone(),
            group: Some(group),
            ..GroupChanges::default()
        };
        let rollouts = &self.context.rollouts;
        let is_first_of_version = rollouts.is_first(self.job, allocs.iter().copied());
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
        let mut system_group = SystemGroup {
            group,
            asks: Vec::new(),
            candidates: sorted.staying
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
            &mut system_group,
            &mut changes,
        );
        changes.desired.stop = count(&changes.stops) - changes.desired.migrate;
        (changes, system_group, enters)
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
            // Running work of a sysbatch job would be lost.
            let can_return = !self.context.batch && can_run.contains(&node_id);
            let change = || comparison.of(view);
            let mut step = diff::step(snapshot, scope, is_wanted, can_return, view, change);
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
                Step::LeaveAddress => {
                    changes.stops.push(StopAsk::leaving(snapshot, view));
                    sorted.moving.push(view);
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
            let goes = matches!(
                step,
                Step::Lost | Step::Stop(_) | Step::Migrate | Step::LeaveAddress
            );
            if !goes {
                sorted.taken.insert((node_id, number));
            }
            if matches!(step, Step::Ignore | Step::UpdateInPlace) && can_run.contains(&node_id) {
                sorted.staying += 1;
                let rollouts = &self.context.rollouts;
                let is_current = rollouts.active_id().is_some()
                    && view.alloc.deployment_id == rollouts.active_id();
                let verdict = view.health().map(|health| health.healthy);
                // An allocation updated in place was part of the superseded deployment.
                let is_rolled_out = is_current
                    || (step == Step::UpdateInPlace && view.alloc.deployment_id.is_some());
                sorted.unproven += u32::from(is_rolled_out && verdict.is_none());
                sorted.healthy += u32::from(is_current && verdict == Some(true));
                sorted.canaries += u32::from(rollouts.is_canary(view));
            }
        }
        // Unhealthy ones first, as with services.
        sorted.updates.sort_by_key(|view| rollout::is_proven(view));
        sorted
    }

    /// Returns the placements on nodes that can run the group and have none of its allocations.
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
                    (None, Some(view)) if self.has_failed_without_address(view) => {
                        Cause::Lost(view)
                    }
                    (None, Some(view)) if self.follows_policy(group, view) => {
                        match rules.decide(view) {
                            SlotDecision::Now => Cause::Reschedule(view),
                            SlotDecision::Gone => Cause::Lost(view),
                            decision => {
                                self.wait(&rules, view, decision, failures);
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
                        is_canary: tried.is_some_and(|view| self.context.rollouts.is_canary(view)),
                        ..PlaceAsk::new(number, cause)
                    },
                });
            }
        }
        missing
    }

    /// Tells whether `view`, which has ended, has completed the job's work.
    ///
    /// A lost one has not (Nomad counts it as complete), nor has a victim of preemption.
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

    /// Decides on the replacements now; returns the group's part of a deployment that it joins.
    fn roll_out(
        &self,
        sorted: Sorted<'a>,
        missing: Vec<NodeAsk<'a>>,
        is_first_of_version: bool,
        system_group: &mut SystemGroup<'a>,
        changes: &mut GroupChanges<'a>,
    ) -> Option<DeploymentGroup> {
        let rollouts = &self.context.rollouts;
        let group = system_group.group;
        let update = self.update(group);
        let is_over = rollouts.current.is_some() && rollouts.active_id().is_none();
        let known = rollouts.group(&group.name);
        let has_updates = !sorted.updates.is_empty() || changes.desired.in_place_update > 0;
        let enters = update.filter(|_| {
            !is_over
                && known.is_none()
                && system_group.candidates > 0
                && (has_updates || is_first_of_version)
        });
        let enters = enters.map(|update| rollout::new_group(update, system_group.candidates));
        let part = known.or(enters.as_ref());
        let is_promoted = part.is_some_and(|part| part.promoted);
        let again = missing.iter().filter(|place| place.ask.is_canary).count();
        let again = u32::try_from(again).unwrap_or(u32::MAX);
        // Existing and replaced canaries count with the outdated allocations.
        let old = count(&sorted.updates) + sorted.canaries + again;
        let is_canarying = update.is_some_and(|update| rollouts.canaries_of(update) > 0)
            && part.is_some()
            && !is_promoted
            && old > 0;
        if let Some(update) = update.filter(|_| is_canarying) {
            system_group.desired_canaries = canaries(update, old);
        } else if let Some(part) = part.filter(|part| part.promoted) {
            system_group.desired_canaries = part.desired_canaries;
        }
        let is_halted = rollouts.is_paused() || is_over;
        let allowed = match update {
            None => u32::MAX,
            Some(_) if is_halted => 0,
            Some(update) => {
                let limit = update.max_parallel.saturating_sub(sorted.unproven);
                let canaries = system_group.desired_canaries;
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
        system_group.is_held = !later.is_empty();
        changes.desired.ignore += count(later);
        // Each change is counted once: a canary is no update, and a replaced canary is a placement,
        // as with services.
        if is_canarying {
            changes.desired.canary = count(now);
        } else {
            changes.desired.destructive_update = count(now);
        }
        system_group.asks = now
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
        system_group
            .asks
            .extend(missing.into_iter().map(|mut place| {
                place.ask.is_canary &= is_canarying;
                place
            }));
        enters
    }

    /// Returns the deployment of the placements: the current or a new one.
    fn deployment(&mut self, entering: BTreeMap<String, DeploymentGroup>) -> Option<Deployment> {
        let current = self.context.rollouts.current.as_ref();
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

/// Returns the number of canaries among `old` allocations: a share of them, rounded up, within the
/// update limit.
fn canaries(update: &UpdateStrategy, old: u32) -> u32 {
    let share = (u64::from(update.canary) * u64::from(old)).div_ceil(PER_CENT);
    let share = u32::try_from(share).unwrap_or(u32::MAX);
    share.min(update.max_parallel).min(old)
}
