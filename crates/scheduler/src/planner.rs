//! Planner of service and batch jobs: finds nodes for the placements that reconciling asks for.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use model::job::TaskGroup;
use model::{DeploymentId, Indexed, Job};
use placement::Requirements;

use crate::cluster::Cluster;
use crate::draft::Draft;
use crate::generation::Generation;
use crate::inputs::Inputs;
use crate::rank::search::Search;
use crate::reconcile::changes::{Cause, JobChanges, OlderVersion, PlaceAsk};
use crate::run_rng::RunRng;
use crate::separation::{OutgoingByName, Separation, ask};
use crate::template::Template;

pub(crate) struct Planner<'a, 'd> {
    inputs: Inputs<'a>,
    draft: &'d mut Draft<'a>,
    rng: &'d mut RunRng,
    /// Built for the first group that places something.
    cluster: Option<Cluster<'a>>,
    /// Built for the first canary that looks for its namesake.
    outgoing: OnceCell<OutgoingByName<'a>>,
}

impl<'a, 'd> Planner<'a, 'd> {
    pub(crate) fn new(inputs: Inputs<'a>, draft: &'d mut Draft<'a>, rng: &'d mut RunRng) -> Self {
        Self {
            inputs,
            draft,
            rng,
            cluster: None,
            outgoing: OnceCell::new(),
        }
    }

    /// Stops and updates allocations, then places, group by group.
    ///
    /// `job` is `None` when it is stopped or gone: then there is nothing to place.
    pub(crate) fn execute(&mut self, job: Option<&'a Indexed<Job>>, mut changes: JobChanges<'a>) {
        self.draft.add_changes(&self.inputs, job, &mut changes);
        let Some(job) = job else { return };
        let deployment_id = changes.deployment_id;
        for group in changes.groups {
            let Some(task_group) = group.group else {
                continue;
            };
            self.draft.begin_group(&group.name);
            let (older, current): (Vec<_>, Vec<_>) = group
                .places
                .into_iter()
                .partition(|ask| ask.older.is_some());
            if let Some(requirements) = self.inputs.requirements.get(&group.name)
                && !current.is_empty()
            {
                self.place_group(job, task_group, requirements, deployment_id, &current);
            }
            self.place_older(&group.name, &older);
        }
        self.draft.note_canaries(changes.current_deployment);
    }

    /// Places allocations of older versions of the job, version by version.
    fn place_older(&mut self, group: &str, asks: &[PlaceAsk<'a>]) {
        let versions: BTreeSet<OlderVersion> = asks.iter().filter_map(|ask| ask.older).collect();
        for older in versions {
            let inputs = self.inputs;
            let job = inputs.snapshot.job_version(&inputs.eval.job, older.version);
            let task_group = job.and_then(|job| job.value.task_group(group));
            let requirements = inputs.older.get(&(group.to_owned(), older.version));
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

    fn place_group(
        &mut self,
        job: &'a Indexed<Job>,
        group: &'a TaskGroup,
        requirements: &'a Requirements,
        deployment_id: Option<DeploymentId>,
        asks: &[PlaceAsk<'a>],
    ) {
        let inputs = self.inputs;
        let mut cluster = match self.cluster.take() {
            Some(cluster) => cluster,
            None => self.cluster(),
        };
        let mut template = Template::new(&inputs, job, group, deployment_id, requirements);
        let mut generations = asks.iter().map(PlaceAsk::generation);
        let first = generations.next().unwrap_or(Generation::Stable);
        let of_all = generations.all(|other| other == first);
        let counted = if of_all { first } else { Generation::Stable };
        let asked = ask(
            &inputs,
            self.draft,
            job,
            group,
            requirements,
            counted,
            Separation::Full,
        );
        let mut search = Search::new(&mut cluster, asked);
        // Nodes that are suitable only during the rollout come last, for all of them.
        let mut deferred = Vec::new();
        for ask in asks {
            if !ask.generation().may_share(requirements) {
                self.place(&mut search, &mut template, ask, Separation::AllowOutgoing);
            } else if !self.place(&mut search, &mut template, ask, Separation::Full) {
                deferred.push(ask);
            }
        }
        for generation in [Generation::Canary, Generation::Outgoing] {
            let own = deferred.iter().filter(|ask| ask.generation() == generation);
            let own: Vec<_> = own.copied().collect();
            if own.is_empty() {
                continue;
            }
            let mut template = Template::new(&inputs, job, group, deployment_id, requirements);
            let asked = ask(
                &inputs,
                self.draft,
                job,
                group,
                requirements,
                generation,
                Separation::AllowOutgoing,
            );
            let mut search = Search::new(&mut cluster, asked);
            for ask in own {
                self.place(&mut search, &mut template, ask, Separation::AllowOutgoing);
            }
        }
        self.cluster = Some(cluster);
    }

    /// Returns the nodes as the draft leaves them.
    fn cluster(&mut self) -> Cluster<'a> {
        let snapshot = self.inputs.snapshot;
        let new = self.draft.new_allocs(snapshot);
        let released = self.draft.released();
        let mut cluster = Cluster::with_changes(snapshot, self.rng.seed(), released, new);
        cluster.near_tie = self.rng.selection().near_tie;
        cluster
    }

    /// Places one allocation, or adds a failed placement. With full separation, returns `false` and
    /// adds nothing when no node has room.
    fn place(
        &mut self,
        search: &mut Search<'a, '_>,
        template: &mut Template<'a>,
        ask: &PlaceAsk<'a>,
        separation: Separation,
    ) -> bool {
        let group = template.group.name.as_str();
        let is_update = matches!(ask.cause, Cause::Update(_));
        // An equal ask fails like the one before it; but an update frees resources of its own, and an
        // allocation may ask for its own volume.
        let is_equal = !is_update && !search.requirements.differ_by_alloc();
        if separation == Separation::AllowOutgoing
            && is_equal
            && template.is_full
            && self.draft.fail_again(group)
        {
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
        let mut alloc_ask = template.alloc_ask(ask);
        let may_share = ask.generation().may_share(search.requirements);
        if separation == Separation::AllowOutgoing && may_share && ask.is_canary {
            // Beside the allocation that it replaces, all are distinct again after the promotion.
            let outgoing = self
                .outgoing
                .get_or_init(|| OutgoingByName::new(&self.inputs, self.draft));
            let namesake = outgoing.node_of_namesake(self.draft, group, ask);
            let namesake = namesake.filter(|node| !alloc_ask.penalised.contains(node));
            alloc_ask.preferred = alloc_ask.preferred.or(namesake);
        }
        let mut found = search.find(&alloc_ask, self.rng);
        if separation == Separation::AllowOutgoing && found.is_none() {
            found = search.find_with_preemption(&alloc_ask, self.draft.preempted(), self.rng);
        }
        let Some(mut found) = found else {
            if let Some(view) = held {
                search.hold(view);
            }
            if separation == Separation::Full {
                return false;
            }
            template.is_full = true;
            self.draft.fail(group, || search.failure_metric());
            return true;
        };
        let victims = std::mem::take(&mut found.victims);
        search.evict(&victims);
        let mut alloc = template.allocation(search, ask, found, self.inputs.now, self.rng);
        self.draft.evict(&victims, &mut alloc);
        if let (Some(view), Some(description)) = (replaced, ask.cause.stop_description()) {
            self.draft.stop_replaced(view, description);
        }
        self.draft
            .place(alloc, &template.group.name, ask.generation());
        true
    }
}
