//! Services and their registrations.

use std::collections::BTreeMap;

use proto::v1;
use serde::Serialize;

/// The services of one namespace.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct NamespaceServices<'a> {
    namespace: &'a str,
    services: Vec<ServiceName<'a>>,
}

/// A service by name, with the tags of all its registrations.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ServiceName<'a> {
    service_name: &'a str,
    tags: &'a [String],
}

impl<'a> From<&'a v1::ServiceSummary> for ServiceName<'a> {
    fn from(service: &'a v1::ServiceSummary) -> Self {
        Self {
            service_name: &service.name,
            tags: &service.tags,
        }
    }
}

/// Groups services, which are ordered by namespace.
pub fn namespaces(services: &[v1::ServiceSummary]) -> Vec<NamespaceServices<'_>> {
    let mut grouped = Vec::<NamespaceServices<'_>>::new();
    for service in services {
        match grouped.last_mut() {
            Some(last) if last.namespace == service.namespace => last.services.push(service.into()),
            _ => grouped.push(NamespaceServices {
                namespace: &service.namespace,
                services: vec![service.into()],
            }),
        }
    }
    grouped
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ServiceRegistration<'a> {
    #[serde(rename = "ID")]
    id: &'a str,
    service_name: &'a str,
    namespace: &'a str,
    #[serde(rename = "NodeID")]
    node_id: &'a str,
    datacenter: &'a str,
    #[serde(rename = "JobID")]
    job_id: &'a str,
    #[serde(rename = "AllocID")]
    alloc_id: &'a str,
    /// Null: none.
    tags: Option<&'a [String]>,
    address: &'a str,
    port: u32,
    create_index: u64,
    modify_index: u64,
}

impl<'a> From<&'a v1::ServiceRegistration> for ServiceRegistration<'a> {
    fn from(registration: &'a v1::ServiceRegistration) -> Self {
        Self {
            id: &registration.id,
            service_name: &registration.name,
            namespace: &registration.namespace,
            node_id: &registration.node_id,
            datacenter: &registration.datacenter,
            job_id: &registration.job_id,
            alloc_id: &registration.alloc_id,
            tags: (!registration.tags.is_empty()).then_some(registration.tags.as_slice()),
            address: &registration.address,
            port: registration.port,
            create_index: registration.create_index,
            modify_index: registration.modify_index,
        }
    }
}

/// State of a service check.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Check<'a> {
    #[serde(rename = "ID")]
    id: &'a str,
    mode: &'a str,
    status: &'a str,
    /// Left out without an HTTP response.
    #[serde(skip_serializing_if = "is_zero")]
    status_code: u32,
    output: &'a str,
    /// Seconds since the epoch; 0: no result yet.
    timestamp: u64,
    group: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    task: &'a str,
    service: &'a str,
    check: &'a str,
}

fn is_zero(code: &u32) -> bool {
    *code == 0
}

/// Returns the states of checks by their ids.
pub fn checks(checks: &[v1::AllocationCheck]) -> BTreeMap<&str, Check<'_>> {
    let by_id = checks.iter().map(|check| {
        let view = Check {
            id: &check.id,
            mode: &check.mode,
            status: &check.status,
            status_code: check.status_code,
            output: &check.output,
            timestamp: check.time_ns / 1_000_000_000,
            group: &check.task_group,
            task: &check.task,
            service: &check.service,
            check: &check.check,
        };
        (check.id.as_str(), view)
    });
    by_id.collect()
}
