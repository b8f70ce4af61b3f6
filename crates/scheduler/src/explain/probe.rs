//! Probe: the allocation of a group that every node is checked for, and the assumed cluster changes.

use std::collections::{BTreeMap, BTreeSet};

use model::job::TaskGroup;
use model::{AllocId, Allocation, Evaluation, Indexed, Job, NodeId, Plan, Timestamp};
use placement::Requirements;
use state::{AllocView, Snapshot};

use crate::generation::{Generation, Generations};
use crate::in_place::InPlace;
use crate::reconcile::changes::{Cause, PlaceAsk};
use crate::reconcile::context::Context;
use crate::reconcile::job::{leaving, reconcile};
use crate::run_rng::RunRng;
use crate::system::reconciler::SystemReconciler;

/// The kind of allocation that every node is checked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// An allocation for which there is no node.
    Unplaced,
    /// An allocation that would be placed now.
    WouldPlace,
    /// The newest live allocation that the evaluation placed, as if it were placed again.
    Placed(AllocId),
    /// The newest live allocation of another evaluation: this evaluation's are gone.
    Running(AllocId),
    /// An additional allocation: none of the group is live.
    OneMore,
    /// An allocation on each node, of a system or sysbatch job.
    Everywhere,
}

impl Question {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unplaced => "unplaced",
            Self::WouldPlace => "would-place",
            Self::Placed(_) => "placed",
            Self::Running(_) => "running",
            Self::OneMore => "one-more",
            Self::Everywhere => "everywhere",
        }
    }

    /// Returns the existing allocation that is probed, if any.
    pub fn alloc_id(self) -> Option<AllocId> {
        match self {
            Self::Placed(id) | Self::Running(id) => Some(id),
            _ => None,
        }
    }
}

/// The probe of one group.
pub(super) struct Probe<'a> {
    pub(super) job: &'a Indexed<Job>,
    pub(super) group: &'a TaskGroup,
    pub(super) question: Question,
    /// Allocations for which there is no node now.
    pub(super) missing: u32,
    /// Allocations that would be placed now.
    pub(super) would_place: u32,
    /// The node of the allocation, or the one it would get.
    pub(super) chosen_node: Option<NodeId>,
    /// The chosen node has its predecessor's disk.
    pub(super) keeps_disk: bool,
    /// Allocations that are released before nodes are checked.
    pub(super) released: Vec<&'a AllocView>,
    /// The allocation of the plan that is not counted.
    pub(super) left_out: Option<AllocId>,
    /// The name index of the allocation, which may select its volumes.
    pub(super) name_index: u32,
    /// Nodes on which predecessors failed.
    pub(super) penalised: Vec<NodeId>,
    pub(super) generation: Generation,
    /// The generations of the job's allocations.
    pub(super) generations: &'a Generations,
    /// Nodes without room for their allocation; only of system and sysbatch jobs.
    pub(super) full: BTreeSet<NodeId>,
    /// Nodes with a failed allocation, with the time of the next attempt if there is one.
    pub(super) failed: BTreeMap<NodeId, Option<Timestamp>>,
}

/// An allocation that the scheduler would place now.
struct PlannedAsk<'a> {
    group: &'a str,
    /// The only possible node; `None`: any.
    node_id: Option<NodeId>,
    ask: PlaceAsk<'a>,
}

/// Returns the placements that [`crate::schedule_with`] would look for.
pub(super) fn planned_asks<'a>(
    snapshot: &'a Snapshot,
    eval: &'a Evaluation,
    job: &'a Indexed<Job>,
    requirements: &'a BTreeMap<String, Requirements>,
    now: Timestamp,
    seed: u64,
) -> PlannedAsks<'a> {
    let job_type = job.value.job_type;
    let runs_to_end = job_type.runs_to_end();
    let rng = RunRng::new(seed, eval.id, snapshot.index());
    let context = Context::new(snapshot, eval, Some(job), runs_to_end, now, rng);
    let leaving = leaving(&context, Some(job), requirements);
    let mut in_place = InPlace::new(snapshot, &eval.job, requirements, leaving);
    let mut wanted = Vec::new();
    let mut generations = Generations::default();
    let mut failed = BTreeMap::new();
    if job_type.is_per_node() {
        let reconciler = SystemReconciler {
            context,
            job,
            requirements,
            in_place: &mut in_place,
        };
        for system_group in reconciler.run().0.groups {
            failed.insert(system_group.group.name.as_str(), system_group.failed);
            let asks = system_group.asks.into_iter().map(|place| PlannedAsk {
                group: &system_group.group.name,
                node_id: Some(place.node_id),
                ask: place.ask,
            });
            wanted.extend(asks);
        }
    } else {
        let changes = reconcile(context, Some(job), &mut in_place).0;
        generations = changes.generations;
        for group in changes.groups {
            let Some(task_group) = group.group else {
                continue;
            };
            let asks = group.places.into_iter().map(|ask| PlannedAsk {
                group: &task_group.name,
                node_id: None,
                ask,
            });
            wanted.extend(asks);
        }
    }
    PlannedAsks {
        wanted,
        generations,
        failed,
    }
}

/// The placements that the scheduler would look for.
pub(super) struct PlannedAsks<'a> {
    wanted: Vec<PlannedAsk<'a>>,
    pub(super) generations: Generations,
    /// Group → nodes with a failed allocation, with the time of the next attempt if there is one; only
    /// of system and sysbatch jobs.
    failed: BTreeMap<&'a str, BTreeMap<NodeId, Option<Timestamp>>>,
}

impl<'a> Probe<'a> {
    /// Selects the allocation of `group` to probe; `plan` has the scheduler's decisions as of now.
    pub(super) fn new(
        snapshot: &'a Snapshot,
        eval: &'a Evaluation,
        job: &'a Indexed<Job>,
        group: &'a TaskGroup,
        asked: &'a PlannedAsks<'a>,
        plan: &Plan,
    ) -> Self {
        let mut placed: Vec<&Allocation> = new_allocs(snapshot, plan)
            .filter(|alloc| *alloc.task_group == *group.name)
            .collect();
        let would_place = count(placed.len());
        let is_system = job.value.job_type.is_per_node();
        let mut probe = Self {
            job,
            group,
            question: Question::OneMore,
            missing: 0,
            would_place,
            chosen_node: None,
            keeps_disk: false,
            released: Vec::new(),
            left_out: None,
            // The next index; allocations of system jobs have index 0.
            name_index: if is_system { 0 } else { group.count },
            penalised: Vec::new(),
            generation: Generation::Stable,
            generations: &asked.generations,
            full: BTreeSet::new(),
            failed: asked.failed.get(&*group.name).cloned().unwrap_or_default(),
        };
        let first_placed = placed.iter().min_by_key(|alloc| alloc.name_index).copied();
        for wanted in asked
            .wanted
            .iter()
            .filter(|wanted| wanted.group == group.name)
        {
            let is_its = |alloc: &&Allocation| {
                alloc.name_index == wanted.ask.name_index
                    && wanted.node_id.is_none_or(|node| node == alloc.node_id)
            };
            match placed.iter().position(is_its) {
                Some(position) => drop(placed.swap_remove(position)),
                None => probe.take_unplaced(snapshot, wanted, is_system),
            }
        }
        if is_system {
            probe.question = Question::Everywhere;
        } else if probe.missing == 0 {
            probe.ask_for_a_placed_one(snapshot, eval, first_placed);
        }
        probe
    }

    /// Counts an allocation without a node; the first one is probed.
    fn take_unplaced(&mut self, snapshot: &'a Snapshot, wanted: &PlannedAsk<'a>, is_system: bool) {
        self.missing += 1;
        let is_first = match wanted.node_id {
            Some(node_id) => self.full.insert(node_id),
            None => self.missing == 1,
        };
        if !is_first {
            return;
        }
        self.question = Question::Unplaced;
        let cause = wanted.ask.cause;
        self.released.extend(stopped_for(cause));
        if is_system {
            return;
        }
        self.name_index = wanted.ask.name_index;
        self.generation = wanted.ask.generation();
        if let Some(previous) = cause.previous() {
            self.penalised = failed_on(&previous.alloc);
            if previous.client_status() == model::ClientStatus::Failed {
                self.penalised.push(previous.alloc.node_id);
            }
        }
        let older = wanted.ask.older;
        let older =
            older.and_then(|older| snapshot.job_version(&self.job.value.key(), older.version));
        let group = older.and_then(|job| Some((job, job.value.task_group(&self.group.name)?)));
        if let Some((job, group)) = group {
            (self.job, self.group) = (job, group);
        }
    }

    /// Probes an allocation that has a node or would get one, as none is missing.
    fn ask_for_a_placed_one(
        &mut self,
        snapshot: &'a Snapshot,
        eval: &Evaluation,
        would_be: Option<&Allocation>,
    ) {
        if let Some(alloc) = would_be {
            self.question = Question::WouldPlace;
            self.left_out = Some(alloc.id);
            self.generation = self.generations.of_new(alloc);
            self.set_chosen_node(snapshot, alloc);
            return;
        }
        let live = snapshot.allocs_by_job(&eval.job);
        let live =
            live.filter(|view| !view.is_terminal() && *view.alloc.task_group == *self.group.name);
        let newest = live.max_by_key(|view| {
            let alloc = &view.alloc;
            let is_own = alloc.eval_id == eval.id;
            (is_own, view.create_index, alloc.name_index, alloc.id)
        });
        let Some(view) = newest else { return };
        self.question = if view.alloc.eval_id == eval.id {
            Question::Placed(view.alloc.id)
        } else {
            Question::Running(view.alloc.id)
        };
        self.released.push(view);
        self.generation = self.generations.of(view.alloc.id);
        self.set_chosen_node(snapshot, &view.alloc);
        let version = snapshot.job_version(&eval.job, view.alloc.job_version);
        let group = version.and_then(|job| Some((job, job.value.task_group(&self.group.name)?)));
        if let Some((job, group)) = group {
            (self.job, self.group) = (job, group);
        }
    }

    fn set_chosen_node(&mut self, snapshot: &Snapshot, alloc: &Allocation) {
        self.chosen_node = Some(alloc.node_id);
        self.name_index = alloc.name_index;
        self.penalised = failed_on(alloc);
        let disk = self.group.ephemeral_disk;
        let previous = alloc.previous_alloc.and_then(|id| snapshot.alloc(id));
        self.keeps_disk = (disk.sticky || disk.migrate)
            && previous.is_some_and(|view| view.alloc.node_id == alloc.node_id);
    }
}

/// Returns the new allocations of a plan.
pub(super) fn new_allocs<'p>(
    snapshot: &Snapshot,
    plan: &'p Plan,
) -> impl Iterator<Item = &'p Allocation> {
    let placed = plan.placements.values().flatten();
    placed.filter(|alloc| snapshot.alloc(alloc.id).is_none())
}

/// Returns the allocation that is stopped once its replacement is placed, if it still holds resources.
fn stopped_for(cause: Cause<'_>) -> Option<&AllocView> {
    cause.stop_description()?;
    cause.previous().filter(|view| !view.is_terminal())
}

fn failed_on(alloc: &Allocation) -> Vec<NodeId> {
    let events = alloc.reschedules.iter();
    events.map(|event| event.previous_node).collect()
}

fn count(items: usize) -> u32 {
    u32::try_from(items).unwrap_or(u32::MAX)
}
