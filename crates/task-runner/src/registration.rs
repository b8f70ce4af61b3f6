//! Registration of an allocation's services in Consul, after each step of its machine.

use std::sync::Arc;

use crate::consul_services::{Basis, InConsul, build};
use crate::runner::Runner;

impl Runner {
    /// Registers the services of the owners that run, and deregisters the others.
    pub(crate) fn sync_consul(&mut self) {
        let Some(consul) = &self.context.consul_services else {
            return;
        };
        let basis = Basis {
            owners: self.machine.registered(),
            alloc: Arc::clone(&self.assignment.alloc),
            job: Arc::clone(&self.assignment.job),
            network: self.network.status(),
        };
        if self.in_consul.basis.as_ref() == Some(&basis) {
            return;
        }
        let own = |task: &str| self.driver_address(task);
        let built = build(
            &self.assignment,
            &basis.owners,
            &self.facts(),
            own,
            &consul.tags,
        );
        let owner = self.alloc_id.to_string();
        consul.services.put(&owner, built.registrations);
        self.in_consul = InConsul {
            basis: Some(basis),
            check_ids: built.check_ids,
        };
    }
}
