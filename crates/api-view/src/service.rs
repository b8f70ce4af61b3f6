//! Registrations of services.

use proto::v1;
use state::ShownService;

/// Returns a registration as readers get it.
pub fn registration(service: ShownService<'_>) -> v1::ServiceRegistration {
    let (registration, alloc) = (service.registration, &service.alloc.alloc);
    v1::ServiceRegistration {
        id: registration.id.clone(),
        name: registration.name.clone(),
        namespace: alloc.namespace.to_string(),
        node_id: alloc.node_id.to_string(),
        datacenter: service.datacenter.to_owned(),
        job_id: alloc.job_id.to_string(),
        alloc_id: alloc.id.to_string(),
        tags: service.tags.to_vec(),
        address: registration.address.clone(),
        port: u32::from(registration.port),
        create_index: service.create_index,
        modify_index: service.modify_index,
    }
}
