//! Allocations with their reports, and the indexes and sums over them.

use std::sync::Arc;

use model::{AllocClient, AllocId, Allocation, DeploymentId, JobKey, NodeId};

use super::Tables;
use super::indexes::Indexes;
use crate::id_set::{link, unlink};
use crate::view::AllocView;

impl Tables {
    /// Stops counting the allocations of a version until the version is known again.
    pub(super) fn forget_priority(&mut self, version: &(JobKey, u64)) {
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

    pub(super) fn live_of_version(&self, (job, version): &(JobKey, u64)) -> Vec<AllocView> {
        let ids = self.allocs_by_job.get(job).into_iter().flatten();
        let views = ids.filter_map(|id| self.allocs.get(id));
        views
            .filter(|view| view.alloc.job_version == *version && !view.is_terminal())
            .cloned()
            .collect()
    }

    pub(super) fn count_priority(&mut self, view: &AllocView) {
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

    pub(super) fn put_alloc(&mut self, id: AllocId, mut alloc: Allocation, at: Indexes) {
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
            create_index: at.create,
            alloc_modify_index: at.modify,
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

    pub(super) fn put_alloc_client(&mut self, id: AllocId, client: Arc<AllocClient>, modify: u64) {
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

    pub(super) fn set_alloc(&mut self, view: AllocView) {
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

    pub(super) fn delete_alloc(&mut self, id: AllocId) {
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
