//! Queries of service registrations.

use std::sync::Arc;

use model::{AllocId, AllocServices, Indexed, NodeStatus, ServiceRegistration};

use crate::snapshot::Snapshot;
use crate::view::AllocView;

/// A registration that readers get.
#[derive(Clone, Copy, Debug)]
pub struct ShownService<'s> {
    pub registration: &'s ServiceRegistration,
    pub alloc: &'s AllocView,
    /// The datacenter of its node.
    pub datacenter: &'s str,
    /// The tags that apply now: those of a canary until its promotion.
    pub tags: &'s [String],
    /// Indexes of the allocation's registrations.
    pub create_index: u64,
    pub modify_index: u64,
}

impl Snapshot {
    /// Returns the stored registrations of an allocation, whether or not readers get them.
    pub fn alloc_services(&self, id: AllocId) -> Option<&Arc<Indexed<AllocServices>>> {
        self.tables().services.get(&id)
    }

    /// Returns all stored registrations, ordered by allocation.
    pub fn all_alloc_services(
        &self,
    ) -> impl Iterator<Item = (AllocId, &Arc<Indexed<AllocServices>>)> {
        let all = self.tables().services.iter();
        all.map(|(id, services)| (*id, services))
    }

    /// Returns the registrations of an allocation that readers get: none once the allocation has ended
    /// or is lost, and none while its node is down.
    pub fn shown_services(&self, id: AllocId) -> impl Iterator<Item = ShownService<'_>> {
        let found = self.alloc_services(id).and_then(|services| {
            let alloc = self.alloc(id).filter(|alloc| !alloc.is_client_terminal())?;
            let node = self.node(alloc.alloc.node_id)?;
            let is_up = node.value.status != NodeStatus::Down;
            is_up.then_some((services, alloc, node))
        });
        found.into_iter().flat_map(move |(services, alloc, node)| {
            let is_canary = self.is_canary(alloc);
            services.value.shown().map(move |registration| {
                let of_canary = is_canary && !registration.canary_tags.is_empty();
                ShownService {
                    registration,
                    alloc,
                    datacenter: &node.value.datacenter,
                    tags: if of_canary {
                        &registration.canary_tags
                    } else {
                        &registration.tags
                    },
                    create_index: services.create_index,
                    modify_index: services.modify_index,
                }
            })
        })
    }

    /// Returns every registration that readers get, ordered by allocation.
    pub fn services(&self) -> impl Iterator<Item = ShownService<'_>> {
        let ids = self.tables().services.keys();
        ids.flat_map(|id| self.shown_services(*id))
    }
}
