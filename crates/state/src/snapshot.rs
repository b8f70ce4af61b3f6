//! The replica's state ([`State`], mutable) and its immutable [`Snapshot`]s.

use std::sync::Arc;

use model::{
    AllocClient, AllocId, ClientStatus, CsiAttachment, CsiAttachmentKey, CsiVolume, CsiVolumeKey,
    Deployment, DeploymentId, EvalId, Evaluation, Indexed, Job, JobKey, JobTags, JobTally,
    LeaderInfo, Namespace, Node, NodeId, NodePool, NodeStatus, SchedulerConfiguration, VersionTag,
    Volume, VolumeClaim, VolumeClaimId, VolumeKey,
};

use crate::change::Change;
use crate::key::Table;
use crate::node_table::NodeTable;
use crate::priorities::Share;
use crate::tables::Tables;
use crate::usage::NodeUsage;
use crate::view::AllocView;
use crate::volumes::NamedVolumes;

/// The replica's newest state. One owner applies changes; readers take snapshots.
#[derive(Debug, Default)]
pub struct State {
    tables: Arc<Tables>,
}

impl State {
    /// Returns a state that holds exactly the objects of a list at `revision`.
    pub fn from_list(revision: u64, objects: impl IntoIterator<Item = Change>) -> Self {
        let mut state = Self::default();
        let tables = Arc::make_mut(&mut state.tables);
        for change in objects {
            // In a list the two sides of an allocation come in any order, so each keeps its own revision.
            let revision = match &change {
                Change::Put { modify_index, .. } => *modify_index,
                Change::Delete { .. } => revision,
            };
            tables.apply(revision, change);
        }
        tables.revision = revision;
        state
    }

    /// Applies all changes of one revision.
    ///
    /// # Panics
    /// Panics when `revision` is not after the state's own: a watch never goes back.
    pub fn apply(&mut self, revision: u64, changes: impl IntoIterator<Item = Change>) {
        assert!(
            revision > self.tables.revision,
            "revision {revision} applied after {}",
            self.tables.revision
        );
        let tables = Arc::make_mut(&mut self.tables);
        for change in changes {
            tables.apply(revision, change);
        }
        tables.revision = revision;
    }

    /// Advances the revision without changes; an earlier `revision` is ignored.
    pub fn advance(&mut self, revision: u64) {
        if revision > self.tables.revision {
            Arc::make_mut(&mut self.tables).revision = revision;
        }
    }

    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            tables: Arc::clone(&self.tables),
        }
    }
}

/// Everything as of one revision. Immutable; O(1) to take and to clone.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    tables: Arc<Tables>,
}

impl Snapshot {
    pub(crate) fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Returns the revision up to which the snapshot is complete.
    pub fn index(&self) -> u64 {
        self.tables.revision
    }

    /// Returns the revision of the last change of any object of `table`; 0: never.
    pub fn table_index(&self, table: Table) -> u64 {
        self.tables.table_index[table as usize]
    }

    /// Returns a state that starts as this snapshot: an optimistic overlay.
    pub fn to_state(&self) -> State {
        State {
            tables: Arc::clone(&self.tables),
        }
    }

    pub fn job(&self, key: &JobKey) -> Option<&Arc<Indexed<Job>>> {
        self.tables.jobs.get(key)
    }

    /// Returns every job, ordered by namespace and id.
    pub fn jobs(&self) -> impl Iterator<Item = &Arc<Indexed<Job>>> {
        self.tables.jobs.values()
    }

    pub fn job_version(&self, key: &JobKey, version: u64) -> Option<&Arc<Indexed<Job>>> {
        self.tables.job_versions.get(&(key.clone(), version))
    }

    /// Returns the kept versions of a job, oldest first.
    pub fn job_versions(
        &self,
        key: &JobKey,
    ) -> impl DoubleEndedIterator<Item = &Arc<Indexed<Job>>> {
        self.tables
            .job_versions
            .range((key.clone(), 0)..=(key.clone(), u64::MAX))
            .map(|(_, job)| job)
    }

    /// Returns whether a deployment marked this version stable.
    pub fn is_stable(&self, key: &JobKey, version: u64) -> bool {
        self.stable_index(key, version).is_some()
    }

    /// Returns the revision of the version's stable marker; `None` when it has none.
    pub fn stable_index(&self, key: &JobKey, version: u64) -> Option<u64> {
        self.tables
            .stable_versions
            .get(&(key.clone(), version))
            .copied()
    }

    /// Returns every kept version of every job ordered by job and version, purged jobs included.
    pub fn all_job_versions(&self) -> impl Iterator<Item = (&JobKey, &Arc<Indexed<Job>>)> {
        let versions = self.tables.job_versions.iter();
        versions.map(|((key, _), job)| (key, job))
    }

    /// Returns every stable marker (job, version, revision), ordered by job and version.
    pub fn all_stable_versions(&self) -> impl Iterator<Item = (&JobKey, u64, u64)> {
        let markers = self.tables.stable_versions.iter();
        markers.map(|((key, version), modify_index)| (key, *version, *modify_index))
    }

    /// Returns the final counts of the job's garbage-collected allocations; `None` when there are none.
    pub fn job_tally(&self, key: &JobKey) -> Option<&Arc<Indexed<JobTally>>> {
        self.tables.job_tallies.get(key)
    }

    /// Returns every job's tally ordered by job, purged jobs included.
    pub fn job_tallies(&self) -> impl Iterator<Item = (&JobKey, &Arc<Indexed<JobTally>>)> {
        self.tables.job_tallies.iter()
    }

    /// Returns the version tags of a job; `None` when no version is tagged.
    pub fn job_tags(&self, key: &JobKey) -> Option<&Arc<Indexed<JobTags>>> {
        self.tables.job_tags.get(key)
    }

    /// Returns the version tags of every job ordered by job, purged jobs included.
    pub fn all_job_tags(&self) -> impl Iterator<Item = (&JobKey, &Arc<Indexed<JobTags>>)> {
        self.tables.job_tags.iter()
    }

    /// Returns the tag of one version.
    pub fn version_tag(&self, key: &JobKey, version: u64) -> Option<&VersionTag> {
        self.job_tags(key)?.value.versions.get(&version)
    }

    /// Returns the client sides without an allocation and their revisions, in no particular order.
    pub fn clients_without_alloc(&self) -> impl Iterator<Item = (AllocId, &AllocClient, u64)> {
        let strays = self.tables.clients_without_alloc.iter();
        strays.map(|(id, (client, modify_index))| (*id, &**client, *modify_index))
    }

    pub fn eval(&self, id: EvalId) -> Option<&Arc<Indexed<Evaluation>>> {
        self.tables.evals.get(&id)
    }

    /// Returns every evaluation, in no particular order.
    pub fn evals(&self) -> impl Iterator<Item = &Arc<Indexed<Evaluation>>> {
        self.tables.evals.values()
    }

    /// Returns the evaluations that are pending or blocked, ordered by id.
    pub fn open_evals(&self) -> impl Iterator<Item = &Arc<Indexed<Evaluation>>> {
        self.tables
            .open_evals
            .iter()
            .filter_map(|id| self.tables.evals.get(id))
    }

    /// Returns how many evaluations are pending or blocked. O(1).
    pub fn open_eval_count(&self) -> usize {
        self.tables.open_evals.len()
    }

    /// Returns a job's evaluations, ordered by id.
    pub fn evals_by_job(&self, key: &JobKey) -> impl Iterator<Item = &Arc<Indexed<Evaluation>>> {
        let ids = self.tables.evals_by_job.get(key).into_iter().flatten();
        ids.filter_map(|id| self.tables.evals.get(id))
    }

    pub fn alloc(&self, id: AllocId) -> Option<&AllocView> {
        self.tables.allocs.get(&id)
    }

    /// Returns every allocation, in no particular order.
    pub fn allocs(&self) -> impl Iterator<Item = &AllocView> {
        self.tables.allocs.values()
    }

    /// Returns a job's allocations of every incarnation and version, ordered by id.
    pub fn allocs_by_job(&self, key: &JobKey) -> impl Iterator<Item = &AllocView> {
        let ids = self.tables.allocs_by_job.get(key).into_iter().flatten();
        ids.filter_map(|id| self.tables.allocs.get(id))
    }

    /// Returns a node's allocations ordered by id, terminal ones included.
    pub fn allocs_by_node(&self, id: NodeId) -> impl Iterator<Item = &AllocView> {
        let ids = self.tables.allocs_by_node.get(&id).into_iter().flatten();
        ids.filter_map(|id| self.tables.allocs.get(id))
    }

    /// Returns the allocations that an evaluation was the last to place or change, ordered by id.
    pub fn allocs_by_eval(&self, id: EvalId) -> impl Iterator<Item = &AllocView> {
        let ids = self.tables.allocs_by_eval.get(&id).into_iter().flatten();
        ids.filter_map(|id| self.tables.allocs.get(id))
    }

    /// Returns a deployment's allocations, ordered by id.
    pub fn allocs_by_deployment(&self, id: DeploymentId) -> impl Iterator<Item = &AllocView> {
        let ids = self
            .tables
            .allocs_by_deployment
            .get(&id)
            .into_iter()
            .flatten();
        ids.filter_map(|id| self.tables.allocs.get(id))
    }

    pub fn node(&self, id: NodeId) -> Option<&Arc<Indexed<Node>>> {
        self.tables.nodes.get(&id)
    }

    /// Returns every node, ordered by id.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<Indexed<Node>>> {
        self.tables.nodes.values()
    }

    pub fn node_count(&self) -> usize {
        self.tables.nodes.len()
    }

    /// Returns the usage of a node; `None` when it has no live allocation.
    pub fn usage(&self, id: NodeId) -> Option<&NodeUsage> {
        self.tables.usage.get(&id)
    }

    /// Returns the usage of a node by the priority of the jobs, lowest first.
    ///
    /// Allocations of unknown job versions are left out.
    pub fn shares(&self, id: NodeId) -> &[Share] {
        self.tables.priorities.shares(id)
    }

    /// Returns the nodes as rows and kinds, for scans over all nodes.
    pub fn node_table(&self) -> &NodeTable {
        &self.tables.node_table
    }

    pub fn deployment(&self, id: DeploymentId) -> Option<&Arc<Indexed<Deployment>>> {
        self.tables.deployments.get(&id)
    }

    /// Returns every deployment, in no particular order.
    pub fn deployments(&self) -> impl Iterator<Item = &Arc<Indexed<Deployment>>> {
        self.tables.deployments.values()
    }

    /// Returns the active deployments, ordered by id.
    pub fn active_deployments(&self) -> impl Iterator<Item = &Arc<Indexed<Deployment>>> {
        self.tables
            .active_deployments
            .iter()
            .filter_map(|id| self.tables.deployments.get(id))
    }

    /// Returns a job's deployments of every incarnation, ordered by id.
    pub fn deployments_by_job(
        &self,
        key: &JobKey,
    ) -> impl Iterator<Item = &Arc<Indexed<Deployment>>> {
        let ids = self
            .tables
            .deployments_by_job
            .get(key)
            .into_iter()
            .flatten();
        ids.filter_map(|id| self.tables.deployments.get(id))
    }

    /// Returns whether an allocation may still run on its node. A stopped one may run until its node
    /// reports its end, unless the node is down or deleted and never reported it as running.
    ///
    /// For decisions that must not be too early, such as garbage collection. A drain, which must
    /// end, asks [`Self::has_left`]. On a node that is not down, the two are opposites. On a down node,
    /// both are true of an allocation that is unknown, or was stopped after it was reported as running:
    /// perhaps it runs there for ever.
    pub fn may_run(&self, view: &AllocView) -> bool {
        if view.is_client_terminal() {
            return false;
        }
        let node = self.node(view.alloc.node_id);
        let is_reachable = node.is_some_and(|node| node.value.status != NodeStatus::Down);
        !view.is_terminal() || is_reachable || view.client_status() == ClientStatus::Running
    }

    /// Returns whether a drain need not wait for an allocation: it has ended, or it was stopped or
    /// given up on a node that is down. [`Self::may_run`] says how the two differ.
    pub fn has_left(&self, view: &AllocView) -> bool {
        let node = self.node(view.alloc.node_id);
        let is_down = node.is_none_or(|node| node.value.status == NodeStatus::Down);
        let is_given_up =
            view.alloc.is_server_terminal() || view.client_status() == ClientStatus::Unknown;
        view.is_client_terminal() || (is_down && is_given_up)
    }

    /// Returns whether an allocation is a canary that is not promoted yet; its own record does not
    /// change with the promotion.
    pub fn is_canary(&self, view: &AllocView) -> bool {
        let alloc = &view.alloc;
        let deployment = alloc.deployment_id.and_then(|id| self.deployment(id));
        let group = deployment.and_then(|it| it.value.groups.get(&*alloc.task_group));
        alloc.canary && group.is_some_and(|group| !group.promoted)
    }

    /// Returns the newest deployment of the job's current incarnation.
    pub fn latest_deployment(&self, key: &JobKey) -> Option<&Arc<Indexed<Deployment>>> {
        let job_create_index = self.job(key)?.create_index;
        self.deployments_by_job(key)
            .filter(|deployment| deployment.value.job_create_index == job_create_index)
            .max_by_key(|deployment| deployment.create_index)
    }

    /// Returns the effective scheduler configuration: the stored one or the defaults, with the
    /// overrides of the node pools.
    pub fn scheduler_config(&self) -> &SchedulerConfiguration {
        self.tables.scheduling.effective()
    }

    /// Returns the stored scheduler configuration; `None`: the defaults apply.
    pub fn stored_scheduler_config(&self) -> Option<&Arc<Indexed<SchedulerConfiguration>>> {
        self.tables.scheduling.stored()
    }

    /// Returns a stored node pool; the built-in ones are not stored.
    pub fn node_pool(&self, name: &str) -> Option<&Arc<Indexed<NodePool>>> {
        self.tables.node_pools.get(name)
    }

    /// Returns every stored node pool, ordered by name.
    pub fn node_pools(&self) -> impl Iterator<Item = &Arc<Indexed<NodePool>>> {
        self.tables.node_pools.values()
    }

    /// Returns a stored namespace; the default one need not be stored.
    pub fn namespace(&self, name: &str) -> Option<&Arc<Indexed<Namespace>>> {
        self.tables.namespaces.get(name)
    }

    /// Returns every stored namespace, ordered by name.
    pub fn namespaces(&self) -> impl Iterator<Item = &Arc<Indexed<Namespace>>> {
        self.tables.namespaces.values()
    }

    /// Returns a registered volume.
    pub fn volume(&self, key: &VolumeKey) -> Option<&Arc<Indexed<Volume>>> {
        self.volumes_named(&key.namespace, &key.name)?
            .get(&key.node_id)
    }

    /// Returns the registered volumes of one name, by node; `None` when there is none.
    pub fn volumes_named(&self, namespace: &str, name: &str) -> Option<&NamedVolumes> {
        self.tables.volumes.named(namespace, name)
    }

    /// Returns every registered volume, ordered by namespace, name and node.
    pub fn volumes(&self) -> impl Iterator<Item = &Arc<Indexed<Volume>>> {
        self.tables.volumes.all()
    }

    /// Returns whether any volume is registered. O(1).
    pub fn has_volumes(&self) -> bool {
        !self.tables.volumes.is_empty()
    }

    pub fn volume_claim(&self, id: VolumeClaimId) -> Option<&Arc<Indexed<VolumeClaim>>> {
        self.tables.volumes.claim(id)
    }

    /// Returns every volume claim, ordered by id.
    pub fn volume_claims(&self) -> impl Iterator<Item = &Arc<Indexed<VolumeClaim>>> {
        self.tables.volumes.claims()
    }

    /// Returns the volume claims of a job, ordered by id.
    pub fn volume_claims_of(
        &self,
        key: &JobKey,
    ) -> impl Iterator<Item = &Arc<Indexed<VolumeClaim>>> {
        self.tables.volumes.claims_of(key)
    }

    /// Returns a volume of a storage system.
    pub fn csi_volume(&self, key: &CsiVolumeKey) -> Option<&Arc<Indexed<CsiVolume>>> {
        self.tables.csi.volumes.get(key)
    }

    /// Returns every volume of a storage system, ordered by namespace and id.
    pub fn csi_volumes(&self) -> impl Iterator<Item = &Arc<Indexed<CsiVolume>>> {
        self.tables.csi.volumes.values()
    }

    /// Returns the job versions with a group whose `source` is that of the key, in the key's namespace.
    pub fn csi_asking(&self, key: &CsiVolumeKey) -> impl Iterator<Item = &(JobKey, u64)> {
        self.tables.csi.asking(key)
    }

    /// Returns the attachment of a volume to a node.
    pub fn csi_attachment(&self, key: &CsiAttachmentKey) -> Option<&Arc<Indexed<CsiAttachment>>> {
        self.tables.csi.attachments.get(key)
    }

    /// Returns every attachment, ordered by volume and node.
    pub fn csi_attachments(
        &self,
    ) -> impl Iterator<Item = (&CsiAttachmentKey, &Arc<Indexed<CsiAttachment>>)> {
        self.tables.csi.attachments.iter()
    }

    /// Returns the attachments of a volume, ordered by node.
    pub fn csi_attachments_of(
        &self,
        volume: &CsiVolumeKey,
    ) -> impl Iterator<Item = (&CsiAttachmentKey, &Arc<Indexed<CsiAttachment>>)> {
        let first = CsiAttachmentKey {
            volume: volume.clone(),
            node_id: NodeId::default(),
        };
        let from = self.tables.csi.attachments.range(first..);
        let volume = volume.clone();
        from.take_while(move |(key, _)| key.volume == volume)
    }

    /// Returns the ids of the plugins that nodes report, in order.
    pub fn csi_plugin_ids(&self) -> impl Iterator<Item = &Arc<str>> {
        self.tables.csi.plugin_ids()
    }

    /// Returns the nodes that report a plugin, ordered by id.
    pub fn csi_nodes_with(&self, plugin_id: &str) -> impl Iterator<Item = &Arc<Indexed<Node>>> {
        let ids = self.tables.csi.nodes_with(plugin_id);
        ids.filter_map(|id| self.tables.nodes.get(&id))
    }

    /// Returns the leader of `service`; its create index is the revision of its election.
    pub fn leader(&self, service: &str) -> Option<&Indexed<LeaderInfo>> {
        self.tables.leaders.get(service)
    }

    /// Returns every leader, ordered by service name.
    pub fn leaders(&self) -> impl Iterator<Item = (&String, &Indexed<LeaderInfo>)> {
        self.tables.leaders.iter()
    }
}
