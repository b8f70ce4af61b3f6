//! Registrations of services.

use std::collections::{BTreeMap, BTreeSet};

use proto::v1;
use state::ShownService;

/// Returns the services that have registrations, by namespace and name, each with the tags of all its
/// registrations.
pub fn summaries<'s>(services: impl Iterator<Item = ShownService<'s>>) -> Vec<v1::ServiceSummary> {
    let mut found = BTreeMap::<(&str, &str), BTreeSet<&str>>::new();
    for service in services {
        let namespace = &*service.alloc.alloc.namespace;
        let name = service.registration.name.as_str();
        let tags = found.entry((namespace, name)).or_default();
        tags.extend(service.tags.iter().map(String::as_str));
    }
    let summary = |((namespace, name), tags): ((&str, &str), BTreeSet<&str>)| v1::ServiceSummary {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        tags: tags.into_iter().map(str::to_owned).collect(),
    };
    found.into_iter().map(summary).collect()
}

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
