//! What is asked of every node: for which allocation of a group, with what of the cluster changed.

use std::collections::{BTreeMap, BTreeSet};

use model::job::{JobType, TaskGroup};
use model::{AllocId, Allocation, Evaluation, Indexed, Job, NodeId, Plan, Timestamp};
use placement::Requirements;
use state::{AllocView, Snapshot};

use crate::draw::Draw;
use crate::generation::{Generation, Generations};
use crate::in_place::InPlace;
use crate::reconcile::Context;
use crate::reconcile::changes::{Cause, PlaceAsk};
use crate::system::SystemReconciler;

/// Which allocation every node is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// One that has no place.
    Unplaced,
    /// One that has none yet, and would get one now.
    WouldPlace,
    /// The newest of those that the evaluation placed and that live, as if it were placed again.
    Placed(AllocId),
    /// The same of those that others placed: the evaluation's own have gone.
    Running(AllocId),
    /// One more than the group wants: nothing of it lives.
    OneMore,
    /// One for each node: the job is to be everywhere.
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

    /// Returns the allocation that stands for the group, if one does.
    pub fn alloc_id(self) -> Option<AllocId> {
        match self {
            Self::Placed(id) | Self::Running(id) => Some(id),
            _ => None,
        }
    }
}

/// What is asked about one group.
pub(super) struct Inquiry<'a> {
    pub(super) job: &'a Indexed<Job>,
    pub(super) group: &'a TaskGroup,
    pub(super) question: Question,
    /// How many find no place now.
    pub(super) missing: u32,
    /// How many would get one now.
    pub(super) would_place: u32,
    /// Where the allocation is, or would go.
    pub(super) home: Option<NodeId>,
    /// It goes back to where its predecessor's data is.
    pub(super) keeps_disk: bool,
    /// What gives up its share before nodes are asked.
    pub(super) released: Vec<&'a AllocView>,
    /// The plan's allocation that is not counted when nodes are asked.
    pub(super) left_out: Option<AllocId>,
    /// The number in the name of the allocation, by which it may ask for volumes of its own.
    pub(super) name_index: u32,
    /// Where predecessors failed.
    pub(super) penalised: Vec<NodeId>,
    /// What becomes of it when somebody decides about the version that is tried out.
    pub(super) generation: Generation,
    /// The same of others.
    pub(super) generations: &'a Generations,
    /// Nodes that should have one and have no room for it; only of a job that is to be everywhere.
    pub(super) full: BTreeSet<NodeId>,
    /// Nodes where one has failed and is not placed again now, and when it is, if ever.
    pub(super) failed: BTreeMap<NodeId, Option<Timestamp>>,
}

/// One that the scheduler would place now.
struct Wanted<'a> {
    group: &'a str,
    /// The only node that will do; `None`: any.
    node_id: Option<NodeId>,
    ask: PlaceAsk<'a>,
}

/// Finds out what the scheduler would ask for, as [`crate::schedule_with`] does.
pub(super) fn wanted<'a>(
    snapshot: &'a Snapshot,
    eval: &'a Evaluation,
    job: &'a Indexed<Job>,
    requirements: &'a BTreeMap<String, Requirements>,
    now: Timestamp,
    seed: u64,
) -> Asked<'a> {
    let job_type = job.value.job_type;
    let runs_to_end = matches!(job_type, JobType::Batch | JobType::Sysbatch);
    let draw = Draw::new(seed, eval.id, snapshot.index());
    let context = Context::new(snapshot, eval, Some(job), runs_to_end, now, draw);
    let leaving = context.leaving(Some(job), requirements);
    let mut in_place = InPlace::new(snapshot, &eval.job, requirements, leaving);
    let mut wanted = Vec::new();
    let mut generations = Generations::default();
    let mut failed = BTreeMap::new();
    if matches!(job_type, JobType::System | JobType::Sysbatch) {
        let reconciler = SystemReconciler {
            context,
            job,
            requirements,
            in_place: &mut in_place,
        };
        for everywhere in reconciler.run().0.groups {
            failed.insert(everywhere.group.name.as_str(), everywhere.failed);
            let asks = everywhere.asks.into_iter().map(|place| Wanted {
                group: &everywhere.group.name,
                node_id: Some(place.node_id),
                ask: place.ask,
            });
            wanted.extend(asks);
        }
    } else {
        let changes = context.reconcile(Some(job), &mut in_place).0;
        generations = changes.generations;
        for group in changes.groups {
            let Some(task_group) = group.group else {
                continue;
            };
            let asks = group.places.into_iter().map(|ask| Wanted {
                group: &task_group.name,
                node_id: None,
                ask,
            });
            wanted.extend(asks);
        }
    }
    Asked {
        wanted,
        generations,
        failed,
    }
}

/// What the scheduler would place.
pub(super) struct Asked<'a> {
    wanted: Vec<Wanted<'a>>,
    /// Who stays whatever becomes of what is tried out, and who does not.
    pub(super) generations: Generations,
    /// Group → nodes where one has failed and is not placed again now, and when it is, if ever; only
    /// of a job that is to be everywhere.
    failed: BTreeMap<&'a str, BTreeMap<NodeId, Option<Timestamp>>>,
}

impl<'a> Inquiry<'a> {
    /// Finds what to ask about `group`; `plan` is what the scheduler would do now.
    pub(super) fn new(
        snapshot: &'a Snapshot,
        eval: &'a Evaluation,
        job: &'a Indexed<Job>,
        group: &'a TaskGroup,
        asked: &'a Asked<'a>,
        plan: &Plan,
    ) -> Self {
        let mut placed: Vec<&Allocation> = new_allocs(snapshot, plan)
            .filter(|alloc| *alloc.task_group == *group.name)
            .collect();
        let would_place = count(placed.len());
        let is_everywhere = matches!(job.value.job_type, JobType::System | JobType::Sysbatch);
        let mut inquiry = Self {
            job,
            group,
            question: Question::OneMore,
            missing: 0,
            would_place,
            home: None,
            keeps_disk: false,
            released: Vec::new(),
            left_out: None,
            // One more than there are; of a job that is to be everywhere all have the number 0.
            name_index: if is_everywhere { 0 } else { group.count },
            penalised: Vec::new(),
            generation: Generation::Settled,
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
                None => inquiry.take_unplaced(snapshot, wanted, is_everywhere),
            }
        }
        if is_everywhere {
            inquiry.question = Question::Everywhere;
        } else if inquiry.missing == 0 {
            inquiry.ask_for_a_placed_one(snapshot, eval, first_placed);
        }
        inquiry
    }

    /// Counts one that has no place; the first of them is what nodes are asked about.
    fn take_unplaced(&mut self, snapshot: &'a Snapshot, wanted: &Wanted<'a>, is_everywhere: bool) {
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
        if is_everywhere {
            return;
        }
        self.name_index = wanted.ask.name_index;
        self.generation = Generation::of_ask(&wanted.ask);
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

    /// Nothing is without a place, so nodes are asked about one that has one, or would get one.
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
            self.take_home(snapshot, alloc);
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
        self.take_home(snapshot, &view.alloc);
        let version = snapshot.job_version(&eval.job, view.alloc.job_version);
        let group = version.and_then(|job| Some((job, job.value.task_group(&self.group.name)?)));
        if let Some((job, group)) = group {
            (self.job, self.group) = (job, group);
        }
    }

    fn take_home(&mut self, snapshot: &Snapshot, alloc: &Allocation) {
        self.home = Some(alloc.node_id);
        self.name_index = alloc.name_index;
        self.penalised = failed_on(alloc);
        let disk = self.group.ephemeral_disk;
        let previous = alloc.previous_alloc.and_then(|id| snapshot.alloc(id));
        self.keeps_disk = (disk.sticky || disk.migrate)
            && previous.is_some_and(|view| view.alloc.node_id == alloc.node_id);
    }
}

/// Returns the allocations that a plan makes.
pub(super) fn new_allocs<'p>(
    snapshot: &Snapshot,
    plan: &'p Plan,
) -> impl Iterator<Item = &'p Allocation> {
    let placed = plan.placements.values().flatten();
    placed.filter(|alloc| snapshot.alloc(alloc.id).is_none())
}

/// Returns the one that is stopped when the new one has a place, and holds a share until then.
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
