//! Turns what reconciling found into a plan: looks for nodes, and writes down who goes where.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::job::TaskGroup;
use model::plan::Stop;
use model::{
    AllocId, AllocMetric, AllocatedResources, Allocation, ClientStatus, Deployment, DeploymentId,
    DesiredStatus, DesiredTransition, Evaluation, Indexed, Job, JobKey, NodeId, Plan,
    SchedulerConfiguration, Timestamp,
};
use placement::{Requirements, VolumeWrites};
use state::{AllocView, Snapshot};

use crate::beside::{Beside, Namesakes, Placed};
use crate::cluster::Cluster;
use crate::draw::Draw;
use crate::generation::{Generation, Generations};
use crate::preempt::Preempted;
use crate::rank::{Found, Given, Search, Wish};
use crate::reconcile::changes::{Cause, GroupChanges, JobChanges, Mark, Older, PlaceAsk, StopAsk};
use crate::reconcile::classify::{Home, home};
use crate::reconcile::reschedule::{events_of_replacement, failed_at};
use model::Algorithm;

/// A plan in the making.
pub(crate) struct Planner<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) eval: &'a Evaluation,
    pub(crate) requirements: &'a BTreeMap<String, Requirements>,
    /// The same of older versions, by group and version.
    pub(crate) older: &'a BTreeMap<(String, u64), Requirements>,
    pub(crate) config: &'a SchedulerConfiguration,
    pub(crate) algorithm: Algorithm,
    pub(crate) now: Timestamp,
    pub(crate) draw: Draw,
    pub(crate) plan: Plan,
    /// Task group → why some of it has no place.
    pub(crate) failed: BTreeMap<String, AllocMetric>,
    /// Task group → how many have no place.
    pub(crate) queued: BTreeMap<String, u32>,
    /// Made when the first group has something to place.
    pub(crate) cluster: Option<Cluster<'a>>,
    /// They hold nothing any more once the plan is carried out.
    pub(crate) stopped: BTreeSet<AllocId>,
    pub(crate) placed: Vec<Placed<'a>>,
    /// Placed to try a version out, with their groups.
    pub(crate) canaries: Vec<(&'a str, AllocId)>,
    /// Who of the job's allocations stays whatever becomes of what is tried out, and who does not.
    pub(crate) generations: Generations,
    /// Made when the first canary asks.
    pub(crate) namesakes: OnceCell<Namesakes<'a>>,
    /// The nodes that have no room, when each of them should have; `None`: any node will do.
    pub(crate) waiting_nodes: Option<BTreeSet<NodeId>>,
    /// Allocations of less important jobs may have to make way.
    pub(crate) preempts: bool,
    /// Those that have to.
    pub(crate) preempted: Preempted,
    /// Task group → how many have to, for people.
    pub(crate) preemptions: BTreeMap<String, u32>,
}

impl<'a> Planner<'a> {
    /// Stops, updates in place and annotates; then places, group by group.
    ///
    /// `job` is `None` when it is stopped or gone: then there is nothing to place.
    pub(crate) fn carry_out(&mut self, job: Option<&'a Indexed<Job>>, changes: JobChanges<'a>) {
        let deployment_id = changes.deployment_id;
        self.plan.deployment = changes.deployment;
        self.generations = changes.generations;
        self.plan.deployment_updates = changes.deployment_updates;
        self.plan.followup_evals = changes.delayed_evals;
        for stop in &changes.lost_while_stopping {
            self.stop(stop);
        }
        for group in &changes.groups {
            group.stops.iter().for_each(|stop| self.stop(stop));
            if let Some(job) = job {
                self.edit(job, deployment_id, group);
            }
        }
        let Some(job) = job else { return };
        for group in changes.groups {
            let Some(task_group) = group.group else {
                continue;
            };
            self.queued.insert(group.name.clone(), 0);
            let (older, current): (Vec<_>, Vec<_>) = group
                .places
                .into_iter()
                .partition(|ask| ask.older.is_some());
            if let Some(requirements) = self.requirements.get(&group.name)
                && !current.is_empty()
            {
                self.place_group(job, task_group, requirements, deployment_id, &current);
            }
            self.place_older(&group.name, &older);
        }
        self.note_canaries(changes.current_deployment);
    }

    /// Places what gets an older version of the job, version by version.
    fn place_older(&mut self, group: &str, asks: &[PlaceAsk<'a>]) {
        let versions: BTreeSet<Older> = asks.iter().filter_map(|ask| ask.older).collect();
        for older in versions {
            let job = self.snapshot.job_version(&self.eval.job, older.version);
            let task_group = job.and_then(|job| job.value.task_group(group));
            let requirements = self.older.get(&(group.to_owned(), older.version));
            let (Some(job), Some(task_group), Some(requirements)) = (job, task_group, requirements)
            else {
                continue;
            };
            let of_version = asks.iter().filter(|ask| ask.older == Some(older));
            let of_version: Vec<_> = of_version.copied().collect();
            // That version may have had another scope.
            self.cluster = None;
            self.place_group(
                job,
                task_group,
                requirements,
                older.deployment_id,
                &of_version,
            );
            self.cluster = None;
        }
    }

    /// Writes down in the deployment which of its allocations try the version out.
    fn note_canaries(&mut self, current: Option<Deployment>) {
        if self.canaries.is_empty() {
            return;
        }
        let Some(mut deployment) = self.plan.deployment.take().or(current) else {
            return;
        };
        for (group, id) in &self.canaries {
            if let Some(group) = deployment.groups.get_mut(*group) {
                group.placed_canaries.push(*id);
            }
        }
        self.plan.deployment = Some(deployment);
    }

    fn stop(&mut self, stop: &StopAsk<'a>) {
        let alloc = &stop.view.alloc;
        if !stop.view.is_terminal()
            && self.stopped.insert(alloc.id)
            && let Some(cluster) = &mut self.cluster
        {
            cluster.release(alloc.node_id, &alloc.resources);
        }
        let client_status = stop.client_status.or_else(|| self.given_up(stop.view));
        self.plan
            .stops
            .entry(alloc.node_id)
            .or_default()
            .push(Stop {
                alloc_id: alloc.id,
                description: stop.description.to_owned(),
                client_status,
                followup_eval_id: stop.followup,
                preempted_by: None,
            });
    }

    /// Returns that `view`, which is to stop, is lost if its node cannot tell of its end.
    fn given_up(&self, view: &AllocView) -> Option<ClientStatus> {
        let is_out_of_reach = matches!(home(self.snapshot, view), Home::Down | Home::Gone);
        (is_out_of_reach && !view.is_client_terminal()).then_some(ClientStatus::Lost)
    }

    /// Puts those that keep running on the current version, and notes who is out of reach and who
    /// waits for what.
    fn edit(
        &mut self,
        job: &Indexed<Job>,
        deployment_id: Option<DeploymentId>,
        group: &GroupChanges<'a>,
    ) {
        for edit in group.edits.values() {
            let mut alloc = Allocation::clone(&edit.view.alloc);
            if edit.in_place {
                alloc.eval_id = self.eval.id;
                alloc.job_version = job.value.version;
                alloc.canary &= alloc.deployment_id == deployment_id;
                alloc.deployment_id = deployment_id;
            }
            match edit.mark {
                Some(Mark::Unknown) => {
                    alloc.client_status_override = Some(ClientStatus::Unknown);
                    alloc.unknown_since = self.now;
                    // What it waited for was about a failure that is none any more.
                    alloc.followup_eval_id = None;
                }
                Some(Mark::Reconnected) => {
                    alloc.client_status_override = None;
                    alloc.unknown_since = Timestamp::NEVER;
                    alloc.followup_eval_id = None;
                }
                None => {}
            }
            alloc.followup_eval_id = edit.followup.or(alloc.followup_eval_id);
            self.update(alloc);
        }
    }

    fn update(&mut self, mut alloc: Allocation) {
        alloc.modify_time = self.now;
        self.plan
            .placements
            .entry(alloc.node_id)
            .or_default()
            .push(alloc);
    }

    fn place_group(
        &mut self,
        job: &'a Indexed<Job>,
        group: &'a TaskGroup,
        requirements: &'a Requirements,
        deployment_id: Option<DeploymentId>,
        asks: &[PlaceAsk<'a>],
    ) {
        let mut cluster = match self.cluster.take() {
            Some(cluster) => cluster,
            None => self.cluster(),
        };
        let mut template = Template::new(self, job, group, deployment_id, requirements);
        let mut generations = asks.iter().map(Generation::of_ask);
        let first = generations.next().unwrap_or(Generation::Settled);
        let of_all = generations.all(|other| other == first);
        let counted = if of_all { first } else { Generation::Settled };
        let asked = self.ask(job, group, requirements, counted, Beside::Nobody);
        let mut search = Search::new(&mut cluster, asked);
        // Nodes that do only because somebody goes sooner or later come last, for all of them.
        let mut beside = Vec::new();
        for ask in asks {
            if !Generation::of_ask(ask).may_share(requirements) {
                self.place(&mut search, &mut template, ask, Beside::WhoParts);
            } else if !self.place(&mut search, &mut template, ask, Beside::Nobody) {
                beside.push(ask);
            }
        }
        for generation in [Generation::Tried, Generation::Old] {
            let own = beside
                .iter()
                .filter(|ask| Generation::of_ask(ask) == generation);
            let own: Vec<_> = own.copied().collect();
            if own.is_empty() {
                continue;
            }
            let mut template = Template::new(self, job, group, deployment_id, requirements);
            let asked = self.ask(job, group, requirements, generation, Beside::WhoParts);
            let mut search = Search::new(&mut cluster, asked);
            for ask in own {
                self.place(&mut search, &mut template, ask, Beside::WhoParts);
            }
        }
        self.cluster = Some(cluster);
    }

    /// Returns the nodes, without what the plan stops on them.
    fn cluster(&mut self) -> Cluster<'a> {
        let mut cluster = Cluster::new(self.snapshot, self.draw.seed());
        cluster.near_tie = self.draw.choice().near_tie;
        for id in self.stopped.iter().copied().chain(self.preempted.ids()) {
            if let Some(view) = self.snapshot.alloc(id) {
                cluster.release(view.alloc.node_id, &view.alloc.resources);
            }
        }
        // What the plan has placed on another list of nodes.
        for alloc in self.plan.placements.values().flatten() {
            let position = cluster.position(alloc.node_id);
            if let Some(position) = position.filter(|_| self.snapshot.alloc(alloc.id).is_none()) {
                cluster.hold(position, &alloc.resources);
                if self.snapshot.has_volumes() {
                    cluster.add_writes(position, VolumeWrites::of(self.snapshot, alloc));
                }
            }
        }
        cluster
    }

    /// Places one; `false`, and nothing is written down, if it is to be beside nobody and there is
    /// no such node with room.
    fn place(
        &mut self,
        search: &mut Search<'a, '_>,
        template: &mut Template<'a>,
        ask: &PlaceAsk<'a>,
        beside: Beside,
    ) -> bool {
        let is_update = matches!(ask.cause, Cause::Update(_));
        // Another one of the same size will not find what this one did not; but an update brings
        // a place of its own, and one may ask for a volume of its own.
        let is_like_the_others = !is_update && !search.requirements.volumes.differ_by_alloc();
        if beside == Beside::WhoParts
            && is_like_the_others
            && template.is_full
            && let Some(metric) = self.failed.get_mut(&template.group.name)
        {
            metric.coalesced_failures += 1;
            self.queue(template);
            return true;
        }
        let replaced = ask
            .cause
            .previous()
            .filter(|_| ask.cause.stop_description().is_some());
        let held = replaced.filter(|view| !view.is_terminal());
        if let Some(view) = held {
            search.release(view);
        }
        search.replacing = held.map(|view| view.alloc.id);
        let mut wish = template.wish(ask);
        let generation = Generation::of_ask(ask);
        if beside == Beside::WhoParts && generation.may_share(search.requirements) {
            // Beside the one that makes way for it, all are distinct again once it has.
            let namesake = self.node_of_namesake(&template.group.name, ask);
            let namesake = namesake.filter(|node| !wish.penalised.contains(node));
            wish.preferred = wish.preferred.or(namesake);
        }
        let mut found = search.find(&wish, &mut self.draw);
        if beside == Beside::WhoParts && found.is_none() {
            found = search.find_crowded(&wish, &self.preempted, &mut self.draw);
        }
        match found {
            Some(mut found) => {
                let victims = std::mem::take(&mut found.victims);
                search.evict(&victims);
                let mut alloc = template.allocation(search, ask, found, self.now, &mut self.draw);
                self.evict(&victims, &mut alloc);
                self.placed.push(Placed {
                    node_id: alloc.node_id,
                    group: &template.group.name,
                    generation,
                });
                if alloc.canary {
                    self.canaries.push((&template.group.name, alloc.id));
                }
                if let (Some(view), Some(description)) = (replaced, ask.cause.stop_description()) {
                    self.stop_staged(view, description);
                }
                self.plan
                    .placements
                    .entry(alloc.node_id)
                    .or_default()
                    .push(alloc);
            }
            None => {
                if let Some(view) = held {
                    search.hold(view);
                }
                if beside == Beside::Nobody {
                    return false;
                }
                template.is_full = true;
                match self.failed.get_mut(&template.group.name) {
                    Some(metric) => metric.coalesced_failures += 1,
                    None => {
                        self.failed
                            .insert(template.group.name.clone(), search.explain());
                    }
                }
                self.queue(template);
            }
        }
        true
    }

    fn queue(&mut self, template: &Template<'a>) {
        *self.queued.entry(template.group.name.clone()).or_insert(0) += 1;
    }

    /// Writes down a stop whose share the search has counted already.
    pub(crate) fn stop_staged(&mut self, view: &AllocView, description: &str) {
        self.stopped.insert(view.alloc.id);
        self.plan
            .stops
            .entry(view.alloc.node_id)
            .or_default()
            .push(Stop {
                alloc_id: view.alloc.id,
                description: description.to_owned(),
                client_status: None,
                followup_eval_id: None,
                preempted_by: None,
            });
    }
}

/// Tells whether a task of the group wants more memory than it asks for, and may have it.
fn oversubscribes_memory(planner: &Planner<'_>, job: &Indexed<Job>, group: &TaskGroup) -> bool {
    let mut tasks = group.tasks.iter();
    tasks.any(|task| task.resources.memory_max.is_more())
        && planner.config.oversubscribes_memory(&job.value.node_pool)
}

/// What the new allocations of a group have in common.
pub(crate) struct Template<'a> {
    pub(crate) job: &'a Indexed<Job>,
    pub(crate) group: &'a TaskGroup,
    alloc: Allocation,
    /// No node has had room for the last of them.
    is_full: bool,
}

impl<'a> Template<'a> {
    pub(crate) fn new(
        planner: &Planner<'a>,
        job: &'a Indexed<Job>,
        group: &'a TaskGroup,
        deployment_id: Option<DeploymentId>,
        requirements: &Requirements,
    ) -> Self {
        let JobKey { namespace, job_id } = planner.eval.job.clone();
        let alloc = Allocation {
            id: AllocId::default(),
            eval_id: planner.eval.id,
            node_id: NodeId::default(),
            namespace,
            job_id,
            job_version: job.value.version,
            job_create_index: job.create_index,
            task_group: Arc::from(group.name.as_str()),
            name_index: 0,
            resources: AllocatedResources {
                total: requirements.resources,
                memory_oversubscribed: oversubscribes_memory(planner, job, group),
                ..AllocatedResources::default()
            },
            desired_status: DesiredStatus::Run,
            desired_description: String::new(),
            transition: DesiredTransition::default(),
            deployment_id,
            canary: false,
            client_status_override: None,
            unknown_since: Timestamp::NEVER,
            previous_alloc: None,
            next_alloc: None,
            followup_eval_id: None,
            preempted_by: None,
            preempted_allocs: Vec::new(),
            reschedules: Vec::new(),
            create_time: planner.now,
            modify_time: Timestamp::NEVER,
            metric: None,
        };
        Self {
            job,
            group,
            alloc,
            is_full: false,
        }
    }

    /// Returns what an allocation placed for `ask` asks for beyond its group.
    fn wish(&self, ask: &PlaceAsk<'a>) -> Wish {
        let name_index = ask.name_index;
        let Some(previous) = ask.cause.previous() else {
            return Wish {
                name_index,
                ..Wish::default()
            };
        };
        let disk = self.group.ephemeral_disk;
        let failed = previous.client_status() == model::ClientStatus::Failed;
        let mut penalised: Vec<_> = previous
            .alloc
            .reschedules
            .iter()
            .map(|event| event.previous_node)
            .collect();
        if failed {
            penalised.push(previous.alloc.node_id);
        }
        Wish {
            preferred: (disk.sticky || disk.migrate).then_some(previous.alloc.node_id),
            penalised,
            name_index,
        }
    }

    /// Makes the allocation for `ask` on the node that was found, which counts it from now on.
    fn allocation(
        &self,
        search: &mut Search<'a, '_>,
        ask: &PlaceAsk<'a>,
        found: Found<'a>,
        now: Timestamp,
        draw: &mut Draw,
    ) -> Allocation {
        let mut alloc = self.fill(ask, found.node_id, found.given, now, draw);
        alloc.metric = Some(found.metric);
        search.take(found.position, &alloc.resources);
        let writes = VolumeWrites::of_group(&alloc.namespace, self.group, alloc.name_index);
        search.cluster.add_writes(found.position, writes);
        alloc
    }

    /// Makes the allocation for `ask` on a node.
    pub(crate) fn fill(
        &self,
        ask: &PlaceAsk<'a>,
        node_id: NodeId,
        given: Given,
        now: Timestamp,
        draw: &mut Draw,
    ) -> Allocation {
        let mut alloc = self.alloc.clone();
        alloc.id = draw.alloc_id();
        alloc.node_id = node_id;
        alloc.name_index = ask.name_index;
        alloc.resources.ports = given.ports;
        given.exclusive.give_to(&mut alloc.resources);
        alloc.canary = ask.is_canary && alloc.deployment_id.is_some();
        if let Some(previous) = ask.cause.previous() {
            alloc.previous_alloc = Some(previous.alloc.id);
            alloc.reschedules = self.reschedules(ask.cause, previous, now);
        }
        alloc
    }

    /// Returns the history that a replacement carries on: a failure adds to it, a lost or moved
    /// allocation of the same version hands it over.
    fn reschedules(
        &self,
        cause: Cause<'a>,
        previous: &AllocView,
        now: Timestamp,
    ) -> Vec<model::allocation::RescheduleEvent> {
        match cause {
            Cause::Reschedule(_) => {
                let policy = self.group.reschedule.as_ref();
                events_of_replacement(previous, policy, failed_at(previous), now)
            }
            Cause::Unknown(_, since) => {
                events_of_replacement(previous, self.group.reschedule.as_ref(), since, now)
            }
            Cause::Lost(_) | Cause::Migrate(_)
                if previous.alloc.job_version == self.job.value.version =>
            {
                previous.alloc.reschedules.clone()
            }
            Cause::Lost(_) | Cause::Migrate(_) | Cause::Update(_) | Cause::Missing => Vec::new(),
        }
    }
}
