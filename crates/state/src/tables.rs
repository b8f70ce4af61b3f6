//! The stored objects and the indexes over them, changed together.
//!
//! **Invariant**: every index names exactly the objects in the tables; `usage` is the sum over
//! non-terminal allocations; the node table has the same sums. The tests recompute all of it from
//! the objects.

mod allocs;
mod indexes;
mod job_records;
mod staged;

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};
use model::{
    AllocClient, AllocId, AllocServices, Deployment, DeploymentId, EvalId, Evaluation, Indexed,
    IntroductionToken, IntroductionTokenId, Job, JobKey, JobTags, JobTally, Keyring, LeaderInfo,
    Namespace, Node, NodeId, NodeIntroduction, NodePool, NodeRevocation, ProcessInfo, ProcessKey,
};

use crate::change::Change;
use crate::csi::Csi;
use crate::entity::Entity;
use crate::id_set::{IdSet, link, unlink};
use crate::key::{Key, Table};
use crate::map::Map;
use crate::node_table::NodeTable;
use crate::priorities::Priorities;
use crate::scheduling::Scheduling;
use crate::tables::indexes::Indexes;
use crate::tables::job_records::JobRecords;
use crate::tables::staged::Staged;
use crate::usage::NodeUsage;
use crate::view::AllocView;
use crate::volumes::Volumes;

#[derive(Clone, Debug, Default)]
pub(crate) struct Tables {
    pub(crate) revision: u64,
    pub(crate) table_index: [u64; Table::COUNT],
    pub(crate) jobs: OrdMap<JobKey, Arc<Indexed<Job>>>,
    pub(crate) job_versions: OrdMap<(JobKey, u64), Arc<Indexed<Job>>>,
    /// With the revision of each marker.
    pub(crate) stable_versions: OrdMap<(JobKey, u64), u64>,
    pub(crate) job_tallies: OrdMap<JobKey, Arc<Indexed<JobTally>>>,
    pub(crate) job_tags: OrdMap<JobKey, Arc<Indexed<JobTags>>>,
    pub(crate) evals: Map<EvalId, Arc<Indexed<Evaluation>>>,
    pub(crate) evals_by_job: Map<JobKey, IdSet<EvalId>>,
    /// Non-terminal evaluations: few, however long the history.
    pub(crate) open_evals: OrdSet<EvalId>,
    pub(crate) allocs: Map<AllocId, AllocView>,
    pub(crate) allocs_by_node: Map<NodeId, IdSet<AllocId>>,
    pub(crate) allocs_by_job: Map<JobKey, IdSet<AllocId>>,
    pub(crate) allocs_by_eval: Map<EvalId, IdSet<AllocId>>,
    pub(crate) allocs_by_deployment: Map<DeploymentId, IdSet<AllocId>>,
    /// Client sides that arrived before, or outlived, their allocation.
    pub(crate) clients_without_alloc: Map<AllocId, (Arc<AllocClient>, u64)>,
    pub(crate) nodes: OrdMap<NodeId, Arc<Indexed<Node>>>,
    pub(crate) usage: Map<NodeId, NodeUsage>,
    pub(crate) node_table: NodeTable,
    pub(crate) priorities: Priorities,
    pub(crate) deployments: Map<DeploymentId, Arc<Indexed<Deployment>>>,
    pub(crate) deployments_by_job: Map<JobKey, IdSet<DeploymentId>>,
    pub(crate) active_deployments: OrdSet<DeploymentId>,
    pub(crate) leaders: OrdMap<String, Indexed<LeaderInfo>>,
    /// Stored node pools; the built-in ones are not stored.
    pub(crate) node_pools: OrdMap<String, Arc<Indexed<NodePool>>>,
    /// Stored namespaces; the default one need not be stored.
    pub(crate) namespaces: OrdMap<String, Arc<Indexed<Namespace>>>,
    pub(crate) scheduling: Scheduling,
    pub(crate) volumes: Volumes,
    pub(crate) csi: Csi,
    pub(crate) job_records: JobRecords,
    pub(crate) staged: Staged,
    pub(crate) introductions: Introductions,
    pub(crate) services: OrdMap<AllocId, Arc<Indexed<AllocServices>>>,
    pub(crate) revocations: OrdMap<NodeId, Arc<Indexed<NodeRevocation>>>,
    pub(crate) processes: OrdMap<ProcessKey, Indexed<ProcessInfo>>,
    pub(crate) keyring: Option<Arc<Indexed<Keyring>>>,
}

/// Introduction tokens, and the nodes that have used one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Introductions {
    pub(crate) tokens: OrdMap<IntroductionTokenId, Arc<Indexed<IntroductionToken>>>,
    pub(crate) nodes: OrdMap<NodeId, Arc<Indexed<NodeIntroduction>>>,
}

impl Tables {
    pub(crate) fn apply(&mut self, revision: u64, change: Change) {
        match change {
            Change::Put {
                key,
                entity,
                create_index,
                modify_index,
            } => {
                self.touch(key.table(), revision);
                let at = Indexes {
                    create: create_index,
                    modify: modify_index,
                };
                self.put(key, entity, at);
            }
            Change::Delete { key } => {
                self.touch(key.table(), revision);
                self.delete(&key);
            }
        }
    }

    fn touch(&mut self, table: Table, revision: u64) {
        let index = &mut self.table_index[table as usize];
        *index = revision.max(*index);
    }

    fn put(&mut self, key: Key, entity: Entity, at: Indexes) {
        match (key, entity) {
            (Key::Job(key), Entity::Job(value)) => {
                self.job_records.note(&key, Some(&value));
                self.jobs.insert(key, at.row(*value));
            }
            (Key::JobVersion(key, version), Entity::JobVersion(value)) => {
                self.put_job_version((key, version), at.row(*value));
            }
            (Key::JobStable(key, version), Entity::JobStable) => {
                self.stable_versions.insert((key, version), at.modify);
            }
            (Key::Eval(id), Entity::Eval(value)) => self.put_eval(id, at.row(*value)),
            (Key::Alloc(id), Entity::Alloc(value)) => self.put_alloc(id, *value, at),
            (Key::AllocClient(id), Entity::AllocClient(value)) => {
                self.put_alloc_client(id, Arc::new(*value), at.modify);
            }
            (Key::Node(id), Entity::Node(value)) => {
                let node = at.row(*value);
                let old = self.nodes.get(&id).map(|old| &old.value);
                self.csi.note_node(old, Some(&node.value));
                self.node_table.put(Arc::clone(&node), self.usage.get(&id));
                self.nodes.insert(id, node);
            }
            (Key::Deployment(id), Entity::Deployment(value)) => {
                self.put_deployment(id, at.row(*value));
            }
            (Key::SchedulerConfig, Entity::SchedulerConfig(value)) => {
                self.scheduling.put(at.row(*value));
            }
            (Key::NodePool(name), Entity::NodePool(value)) => {
                self.scheduling.put_pool(&name, value.scheduler_config);
                self.node_pools.insert(name, at.row(*value));
            }
            (Key::Volume(key), Entity::Volume(value)) => self.volumes.put(key, at.row(*value)),
            (Key::VolumeClaim(id), Entity::VolumeClaim(value)) => {
                self.volumes.put_claim(id, at.row(*value));
            }
            (key, entity) => self.put_row(key, entity, at),
        }
    }

    /// Puts a row that no index or sum depends on.
    fn put_row(&mut self, key: Key, entity: Entity, at: Indexes) {
        match (key, entity) {
            (Key::JobTally(key), Entity::JobTally(value)) => {
                self.job_tallies.insert(key, at.row(*value));
            }
            (Key::JobTags(key), Entity::JobTags(value)) => {
                self.job_tags.insert(key, at.row(*value));
            }
            (Key::Election(service), Entity::Election(value)) => {
                self.leaders.insert(service, at.indexed(value));
            }
            (Key::Namespace(name), Entity::Namespace(value)) => {
                self.namespaces.insert(name, at.row(*value));
            }
            (Key::CsiVolume(key), Entity::CsiVolume(value)) => {
                self.csi.volumes.insert(key, at.row(*value));
            }
            (Key::CsiAttachment(key), Entity::CsiAttachment(value)) => {
                self.csi.attachments.insert(key, at.row(*value));
            }
            (Key::PeriodicLaunch(key), Entity::PeriodicLaunch(value)) => {
                self.job_records.launches.insert(key, at.row(value));
            }
            (Key::DispatchToken(key, token), Entity::DispatchToken(value)) => {
                self.job_records.tokens.insert((key, token), at.row(value));
            }
            (Key::ScalingEvents(key, group), Entity::ScalingEvents(value)) => {
                let row = at.row(*value);
                self.job_records.scaling.insert((key, group), row);
            }
            (Key::PlanPiece(eval_id, position), Entity::PlanPiece(value)) => {
                let row = at.row(*value);
                self.staged.pieces.insert((eval_id, position), row);
            }
            (Key::PlanCommit(eval_id), Entity::PlanCommit(value)) => {
                self.staged.commits.insert(eval_id, at.row(value));
            }
            (Key::IntroductionToken(id), Entity::IntroductionToken(value)) => {
                self.introductions.tokens.insert(id, at.row(*value));
            }
            (Key::NodeIntroduction(id), Entity::NodeIntroduction(value)) => {
                self.introductions.nodes.insert(id, at.row(*value));
            }
            (Key::Services(id), Entity::Services(value)) => {
                self.services.insert(id, at.row(*value));
            }
            (Key::NodeRevocation(id), Entity::NodeRevocation(value)) => {
                self.revocations.insert(id, at.row(*value));
            }
            (Key::Process(key), Entity::Process(value)) => {
                self.processes.insert(key, at.indexed(value));
            }
            (Key::Keyring, Entity::Keyring(value)) => self.keyring = Some(at.row(*value)),
            // Outside of the prefix that replicas watch.
            (Key::Variable(_), Entity::Variable(_))
            | (Key::LockHolder(_) | Key::LockDelay(_), Entity::VariableLock(_)) => {}
            (key, entity) => panic!("{key:?} cannot hold {entity:?}: decoders pair them by key"),
        }
    }

    fn put_job_version(&mut self, version: (JobKey, u64), job: Arc<Indexed<Job>>) {
        let known = self.job_versions.get(&version);
        let changes = known.is_some_and(|known| known.value.priority != job.value.priority);
        if changes {
            self.forget_priority(&version);
        }
        let old = self.job_versions.get(&version).map(|old| &old.value);
        self.csi.note_version(&version, old, Some(&job.value));
        self.job_versions.insert(version.clone(), job);
        if self.priorities.take_unknown(&version) {
            for view in self.live_of_version(&version) {
                self.count_priority(&view);
            }
        }
    }

    fn put_eval(&mut self, id: EvalId, eval: Arc<Indexed<Evaluation>>) {
        if eval.value.status.is_terminal() {
            self.open_evals.remove(&id);
        } else {
            self.open_evals.insert(id);
        }
        link(&mut self.evals_by_job, eval.value.job.clone(), id);
        self.evals.insert(id, eval);
    }

    fn put_deployment(&mut self, id: DeploymentId, deployment: Arc<Indexed<Deployment>>) {
        if deployment.value.status.is_active() {
            self.active_deployments.insert(id);
        } else {
            self.active_deployments.remove(&id);
        }
        let job = deployment.value.job.clone();
        link(&mut self.deployments_by_job, job, id);
        self.deployments.insert(id, deployment);
    }

    fn delete(&mut self, key: &Key) {
        match key {
            Key::Job(key) => {
                self.job_records.note(key, None);
                self.jobs.remove(key);
            }
            Key::PeriodicLaunch(key) => drop(self.job_records.launches.remove(key)),
            Key::DispatchToken(key, token) => {
                let name = (key.clone(), token.clone());
                self.job_records.tokens.remove(&name);
            }
            Key::ScalingEvents(key, group) => {
                let name = (key.clone(), group.clone());
                self.job_records.scaling.remove(&name);
            }
            Key::JobVersion(key, version) => {
                let version = (key.clone(), *version);
                self.forget_priority(&version);
                if let Some(old) = self.job_versions.remove(&version) {
                    self.csi.note_version(&version, Some(&old.value), None);
                }
            }
            Key::JobStable(key, version) => {
                self.stable_versions.remove(&(key.clone(), *version));
            }
            Key::JobTally(key) => drop(self.job_tallies.remove(key)),
            Key::JobTags(key) => drop(self.job_tags.remove(key)),
            Key::Eval(id) => {
                self.open_evals.remove(id);
                if let Some(old) = self.evals.remove(id) {
                    unlink(&mut self.evals_by_job, &old.value.job, id);
                }
            }
            Key::Alloc(id) => self.delete_alloc(*id),
            Key::AllocClient(id) => {
                self.clients_without_alloc.remove(id);
                if let Some(old) = self.allocs.get(id).cloned() {
                    self.set_alloc(AllocView {
                        client: None,
                        client_modify_index: 0,
                        ..old
                    });
                }
            }
            Key::Node(id) => {
                if let Some(old) = self.nodes.remove(id) {
                    self.csi.note_node(Some(&old.value), None);
                }
                self.node_table.remove(*id);
            }
            Key::Deployment(id) => {
                self.active_deployments.remove(id);
                if let Some(old) = self.deployments.remove(id) {
                    unlink(&mut self.deployments_by_job, &old.value.job, id);
                }
            }
            Key::Election(service) => drop(self.leaders.remove(service)),
            Key::SchedulerConfig => self.scheduling.delete(),
            Key::NodePool(name) => {
                self.scheduling
                    .put_pool(name, model::PoolConfiguration::default());
                self.node_pools.remove(name);
            }
            Key::Namespace(name) => drop(self.namespaces.remove(name)),
            Key::Volume(key) => self.volumes.remove(key),
            Key::VolumeClaim(id) => self.volumes.remove_claim(*id),
            Key::CsiVolume(key) => drop(self.csi.volumes.remove(key)),
            Key::CsiAttachment(key) => drop(self.csi.attachments.remove(key)),
            Key::PlanPiece(eval_id, position) => {
                self.staged.pieces.remove(&(*eval_id, *position));
            }
            Key::PlanCommit(eval_id) => drop(self.staged.commits.remove(eval_id)),
            Key::IntroductionToken(id) => drop(self.introductions.tokens.remove(id)),
            Key::NodeIntroduction(id) => drop(self.introductions.nodes.remove(id)),
            Key::Services(id) => drop(self.services.remove(id)),
            Key::NodeRevocation(id) => drop(self.revocations.remove(id)),
            Key::Process(key) => drop(self.processes.remove(key)),
            Key::Keyring => self.keyring = None,
            Key::Variable(_) | Key::LockHolder(_) | Key::LockDelay(_) => {}
        }
    }
}
