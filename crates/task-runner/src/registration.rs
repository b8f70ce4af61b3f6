//! Registration of an allocation's services in Consul, after each step of its machine.

use std::sync::Arc;

use crate::consul_services::{ConsulRegistrations, RegistrationInputs, build};
use crate::runner::Runner;

impl Runner {
    /// Registers the services of the owners that run, and deregisters the others.
    pub(crate) fn sync_consul(&mut self) {
        let Some(consul) = &self.inputs.context.consul_services else {
            return;
        };
        let inputs = RegistrationInputs {
            owners: self.state.machine().registered(),
            alloc: Arc::clone(&self.state.assignment().alloc),
            job: Arc::clone(&self.state.assignment().job),
            network: self.inputs.network.status(),
        };
        if self.effects.in_consul.inputs.as_ref() == Some(&inputs) {
            return;
        }
        let own = |task: &str| self.driver_address(task);
        let built = build(
            self.state.assignment(),
            &inputs.owners,
            &self.facts(),
            own,
            &consul.tags,
        );
        let owner = self.inputs.alloc_id.to_string();
        consul.services.put(&owner, built.registrations);
        self.effects.in_consul = ConsulRegistrations {
            inputs: Some(inputs),
            check_ids: built.check_ids,
        };
    }
}
