//! The stored objects and the indexes over them, changed together.
//!
//! **Invariant**: every index names exactly the objects in the tables; `usage` is the sum over
//! non-terminal allocations; the node table has the same sums. The tests recompute all of it from
//! the objects.

mod job_records;
mod staged;

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};
use model::{
    AllocClient, AllocId, AllocServices, Allocation, Deployment, DeploymentId, EvalId, Evaluation,
    Indexed, IntroductionToken, IntroductionTokenId, Job, JobKey, JobTags, JobTally, Keyring,
    LeaderInfo, Namespace, Node, NodeId, NodeIntroduction, NodePool, NodeRevocation, ProcessInfo,
    ProcessKey,
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
                self.put(key, entity, create_index, modify_index);
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

    fn put(&mut self, key: Key, entity: Entity, create_index: u64, modify_index: u64) {
        match (key, entity) {
            (Key::Job(key), Entity::Job(value)) => {
                self.job_records.note(&key, Some(&value));
                self.jobs
                    .insert(key, indexed(*value, create_index, modify_index));
            }
            (Key::JobVersion(key, version), Entity::JobVersion(value)) => {
                let job = indexed(*value, create_index, modify_index);
                self.put_job_version((key, version), job);
            }
            (Key::JobStable(key, version), Entity::JobStable) => {
                self.stable_versions.insert((key, version), modify_index);
            }
            (Key::JobTally(key), Entity::JobTally(value)) => {
                self.job_tallies
                    .insert(key, indexed(*value, create_index, modify_index));
            }
            (Key::JobTags(key), Entity::JobTags(value)) => {
                self.job_tags
                    .insert(key, indexed(*value, create_index, modify_index));
            }
            (Key::Eval(id), Entity::Eval(value)) => {
                self.put_eval(id, indexed(*value, create_index, modify_index));
            }
            (Key::Alloc(id), Entity::Alloc(value)) => {
                self.put_alloc(id, *value, create_index, modify_index);
            }
            (Key::AllocClient(id), Entity::AllocClient(value)) => {
                self.put_alloc_client(id, Arc::new(*value), modify_index);
            }
            (Key::Node(id), Entity::Node(value)) => {
                let node = indexed(*value, create_index, modify_index);
                let old = self.nodes.get(&id).map(|old| &old.value);
                self.csi.note_node(old, Some(&node.value));
                self.node_table.put(Arc::clone(&node), self.usage.get(&id));
                self.nodes.insert(id, node);
            }
            (Key::Deployment(id), Entity::Deployment(value)) => {
                self.put_deployment(id, indexed(*value, create_index, modify_index));
            }
            (Key::Election(service), Entity::Election(value)) => {
                self.leaders.insert(
                    service,
                    Indexed {
                        create_index,
                        modify_index,
                        value,
                    },
                );
            }
            (Key::SchedulerConfig, Entity::SchedulerConfig(value)) => {
                self.scheduling
                    .put(indexed(*value, create_index, modify_index));
            }
            (Key::NodePool(name), Entity::NodePool(value)) => {
                self.scheduling.put_pool(&name, value.scheduler_config);
                self.node_pools
                    .insert(name, indexed(*value, create_index, modify_index));
            }
            (Key::Namespace(name), Entity::Namespace(value)) => {
                self.namespaces
                    .insert(name, indexed(*value, create_index, modify_index));
            }
            (Key::Volume(key), Entity::Volume(value)) => {
                self.volumes
                    .put(key, indexed(*value, create_index, modify_index));
            }
            (Key::VolumeClaim(id), Entity::VolumeClaim(value)) => {
                self.volumes
                    .put_claim(id, indexed(*value, create_index, modify_index));
            }
            (Key::CsiVolume(key), Entity::CsiVolume(value)) => {
                let volume = indexed(*value, create_index, modify_index);
                self.csi.volumes.insert(key, volume);
            }
            (Key::CsiAttachment(key), Entity::CsiAttachment(value)) => {
                let attachment = indexed(*value, create_index, modify_index);
                self.csi.attachments.insert(key, attachment);
            }
            (Key::PeriodicLaunch(key), Entity::PeriodicLaunch(value)) => {
                let row = indexed(value, create_index, modify_index);
                self.job_records.launches.insert(key, row);
            }
            (Key::DispatchToken(key, token), Entity::DispatchToken(value)) => {
                let row = indexed(value, create_index, modify_index);
                self.job_records.tokens.insert((key, token), row);
            }
            (Key::ScalingEvents(key, group), Entity::ScalingEvents(value)) => {
                let row = indexed(*value, create_index, modify_index);
                self.job_records.scaling.insert((key, group), row);
            }
            (Key::PlanPiece(eval_id, position), Entity::PlanPiece(value)) => {
                let row = indexed(*value, create_index, modify_index);
                self.staged.pieces.insert((eval_id, position), row);
            }
            (Key::PlanCommit(eval_id), Entity::PlanCommit(value)) => {
                let row = indexed(value, create_index, modify_index);
                self.staged.commits.insert(eval_id, row);
            }
            (Key::IntroductionToken(id), Entity::IntroductionToken(value)) => {
                let row = indexed(*value, create_index, modify_index);
                self.introductions.tokens.insert(id, row);
            }
            (Key::NodeIntroduction(id), Entity::NodeIntroduction(value)) => {
                let row = indexed(*value, create_index, modify_index);
                self.introductions.nodes.insert(id, row);
            }
            (Key::Services(id), Entity::Services(value)) => {
                self.services
                    .insert(id, indexed(*value, create_index, modify_index));
            }
            (Key::NodeRevocation(id), Entity::NodeRevocation(value)) => {
                self.revocations
                    .insert(id, indexed(*value, create_index, modify_index));
            }
            (Key::Process(key), Entity::Process(value)) => {
                let row = Indexed {
                    create_index,
                    modify_index,
                    value,
                };
                self.processes.insert(key, row);
            }
            (Key::Keyring, Entity::Keyring(value)) => {
                self.keyring = Some(indexed(*value, create_index, modify_index));
            }
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

    /// Stops counting the allocations of a version until the version is known again.
    fn forget_priority(&mut self, version: &(JobKey, u64)) {
        let Some(job) = self.job_versions.get(version).cloned() else {
            return;
        };
        for view in self.live_of_version(version) {
            let alloc = &view.alloc;
            self.priorities
                .remove(alloc.node_id, job.value.priority, &alloc.resources);
            self.priorities.note_unknown(version.clone());
        }
    }

    fn live_of_version(&self, (job, version): &(JobKey, u64)) -> Vec<AllocView> {
        let ids = self.allocs_by_job.get(job).into_iter().flatten();
        let views = ids.filter_map(|id| self.allocs.get(id));
        views
            .filter(|view| view.alloc.job_version == *version && !view.is_terminal())
            .cloned()
            .collect()
    }

    fn count_priority(&mut self, view: &AllocView) {
        let alloc = &view.alloc;
        let version = (alloc.job_key(), alloc.job_version);
        match self.job_versions.get(&version) {
            Some(job) => {
                self.priorities
                    .add(alloc.node_id, job.value.priority, &alloc.resources);
            }
            None => self.priorities.note_unknown(version),
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

    fn put_alloc(&mut self, id: AllocId, mut alloc: Allocation, create: u64, modify: u64) {
        self.share_names(&mut alloc);
        let (client, client_modify_index) = match self.allocs.get(&id) {
            Some(old) => (old.client.clone(), old.client_modify_index),
            None => match self.clients_without_alloc.remove(&id) {
                Some((client, index)) => (Some(client), index),
                None => (None, 0),
            },
        };
        self.set_alloc(AllocView {
            alloc: Arc::new(alloc),
            create_index: create,
            alloc_modify_index: modify,
            client,
            client_modify_index,
        });
    }

    /// Lets the names of an allocation be those of its job's first one: they are the same texts, and a
    /// replica holds them a million times otherwise.
    fn share_names(&self, alloc: &mut Allocation) {
        let Some((job, ids)) = self.allocs_by_job.get_key_value(&alloc.job_key()) else {
            return;
        };
        alloc.namespace = Arc::clone(&job.namespace);
        alloc.job_id = Arc::clone(&job.job_id);
        let first = ids.into_iter().next().and_then(|id| self.allocs.get(id));
        if let Some(first) = first
            && first.alloc.task_group == alloc.task_group
        {
            alloc.task_group = Arc::clone(&first.alloc.task_group);
        }
    }

    fn put_alloc_client(&mut self, id: AllocId, client: Arc<AllocClient>, modify: u64) {
        match self.allocs.get(&id) {
            Some(old) => {
                let view = AllocView {
                    client: Some(client),
                    client_modify_index: modify,
                    ..old.clone()
                };
                self.set_alloc(view);
            }
            None => {
                self.clients_without_alloc.insert(id, (client, modify));
            }
        }
    }

    fn set_alloc(&mut self, view: AllocView) {
        let id = view.alloc.id;
        let old = self.allocs.get(&id).cloned();
        // A report that does not end the allocation changes no sum.
        let counts_alike = old.as_ref().is_some_and(|old| {
            Arc::ptr_eq(&old.alloc, &view.alloc) && old.is_terminal() == view.is_terminal()
        });
        if counts_alike {
            self.allocs.insert(id, view);
            return;
        }
        if let Some(old) = &old {
            self.release(old);
            if old.alloc.deployment_id != view.alloc.deployment_id {
                self.unlink_deployment(id, old.alloc.deployment_id);
            }
        }
        if old.is_none() {
            link(&mut self.allocs_by_node, view.alloc.node_id, id);
            link(&mut self.allocs_by_job, view.alloc.job_key(), id);
        }
        match &old {
            Some(old) if old.alloc.eval_id == view.alloc.eval_id => {}
            _ => {
                if let Some(old) = &old {
                    unlink(&mut self.allocs_by_eval, &old.alloc.eval_id, &id);
                }
                link(&mut self.allocs_by_eval, view.alloc.eval_id, id);
            }
        }
        if let Some(deployment_id) = view.alloc.deployment_id {
            link(&mut self.allocs_by_deployment, deployment_id, id);
        }
        if view.is_terminal() {
            self.copy_usage(view.alloc.node_id);
        } else {
            let usage = self.usage.entry(view.alloc.node_id).or_default();
            usage.add(&view.alloc.resources);
            self.node_table.set_usage(view.alloc.node_id, Some(usage));
            self.count_priority(&view);
        }
        self.allocs.insert(id, view);
    }

    fn release(&mut self, view: &AllocView) {
        if view.is_terminal() {
            return;
        }
        let node_id = view.alloc.node_id;
        if let Some(usage) = self.usage.get_mut(&node_id) {
            usage.remove(&view.alloc.resources);
            if usage.is_empty() {
                self.usage.remove(&node_id);
            }
        }
        let version = (view.alloc.job_key(), view.alloc.job_version);
        if let Some(job) = self.job_versions.get(&version) {
            self.priorities
                .remove(node_id, job.value.priority, &view.alloc.resources);
        }
    }

    /// Copies a node's usage into the node table.
    fn copy_usage(&mut self, node_id: NodeId) {
        self.node_table.set_usage(node_id, self.usage.get(&node_id));
    }

    fn unlink_deployment(&mut self, id: AllocId, deployment_id: Option<DeploymentId>) {
        if let Some(deployment_id) = deployment_id {
            unlink(&mut self.allocs_by_deployment, &deployment_id, &id);
        }
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

    fn delete_alloc(&mut self, id: AllocId) {
        let Some(old) = self.allocs.get(&id).cloned() else {
            return;
        };
        self.release(&old);
        self.copy_usage(old.alloc.node_id);
        self.allocs.remove(&id);
        unlink(&mut self.allocs_by_node, &old.alloc.node_id, &id);
        unlink(&mut self.allocs_by_job, &old.alloc.job_key(), &id);
        unlink(&mut self.allocs_by_eval, &old.alloc.eval_id, &id);
        self.unlink_deployment(id, old.alloc.deployment_id);
        // The client side has a key of its own and may be deleted later.
        if let Some(client) = old.client {
            self.clients_without_alloc
                .insert(id, (client, old.client_modify_index));
        }
    }
}

fn indexed<T>(value: T, create_index: u64, modify_index: u64) -> Arc<Indexed<T>> {
    Arc::new(Indexed {
        create_index,
        modify_index,
        value,
    })
}
