//! Registrations of an allocation's services: names, addresses and ports of those whose owner runs.

use lifecycle::Assignment;
use model::service::AddressMode;
use model::{
    NetworkStatus, Service, ServiceOwner, ServiceRegistration, TaskGroup, registration_id,
};
use task_drivers::{NodeFacts, TaskEnv};

/// The address of a service or a check on this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// IP address or host name.
    pub(crate) host: String,
    /// 0: none.
    pub(crate) port: u16,
}

impl Target {
    /// Returns host and port, an IPv6 address in brackets.
    pub(crate) fn authority(&self) -> String {
        let (host, port) = (&self.host, self.port);
        if host.contains(':') {
            format!("[{host}]:{port}")
        } else {
            format!("{host}:{port}")
        }
    }
}

/// Returns the registrations of the services of `owners`, ordered by owner and position.
///
/// A service whose port is not on this node is left out: it cannot be reached.
pub(crate) fn registrations(
    assignment: &Assignment,
    owners: &[ServiceOwner],
    facts: &NodeFacts,
) -> Vec<ServiceRegistration> {
    let (job, alloc) = (&assignment.job, &assignment.alloc);
    let Some(group) = job.task_group(&alloc.task_group) else {
        return Vec::new();
    };
    let mut found = Vec::<ServiceRegistration>::new();
    for owner in owners {
        let services = of_owner(group, owner);
        if services.is_empty() {
            continue;
        }
        let env = env(assignment, group, owner, facts);
        for service in services {
            let Some(target) = target(assignment, (owner, service), "", &env, facts) else {
                continue;
            };
            let name = env.interpolate(&service.name);
            let tags = |tags: &[String]| tags.iter().map(|tag| env.interpolate(tag)).collect();
            let task = match owner {
                ServiceOwner::Group => service.task.clone(),
                ServiceOwner::Task(task) => task.clone(),
            };
            let registration = ServiceRegistration {
                id: registration_id(alloc.id, owner, &group.name, &name, &service.port),
                tags: tags(&service.tags),
                canary_tags: tags(&service.canary_tags),
                address: target.host,
                port: target.port,
                task,
                name,
            };
            // Names that differ in the job may be the same on the node.
            if found.iter().all(|known| known.id != registration.id) {
                found.push(registration);
            }
        }
    }
    found
}

pub(crate) fn of_owner<'a>(group: &'a TaskGroup, owner: &ServiceOwner) -> &'a [Service] {
    match owner {
        ServiceOwner::Group => &group.services,
        ServiceOwner::Task(task) => group.task(task).map_or(&[], |task| &task.services),
    }
}

pub(crate) fn env<'a>(
    assignment: &Assignment,
    group: &TaskGroup,
    owner: &ServiceOwner,
    facts: &'a NodeFacts,
) -> TaskEnv<'a> {
    let (job, alloc) = (&assignment.job, &assignment.alloc);
    let task = match owner {
        ServiceOwner::Group => None,
        ServiceOwner::Task(task) => group.task(task),
    };
    match task {
        Some(task) => TaskEnv::new(job, group, task, alloc, facts, None),
        None => TaskEnv::of_group(job, group, alloc, facts),
    }
}

/// Returns the address of a service, or with a `port` of its own that of one of its checks.
///
/// `None`: the allocation has no such port, or no address of its own.
pub(crate) fn target(
    assignment: &Assignment,
    (owner, service): (&ServiceOwner, &Service),
    port: &str,
    env: &TaskEnv<'_>,
    facts: &NodeFacts,
) -> Option<Target> {
    let wanted = if port.is_empty() { &service.port } else { port };
    let wanted = env.interpolate(wanted);
    let task = match owner {
        ServiceOwner::Group => "",
        ServiceOwner::Task(task) => task,
    };
    let mut ports = assignment.alloc.resources.ports_of(task);
    let found = ports.find(|port| port.label == wanted);
    let (host, port) = match (own_address(service.address_mode, facts)?, found) {
        (Some(own), Some(port)) if port.task.is_empty() => (own, port.to),
        (_, Some(port)) => (port.host_ip.as_str(), port.value),
        (own, None) => {
            let host = own.unwrap_or_else(|| facts.address());
            let port = if wanted.is_empty() {
                0
            } else {
                wanted.parse().ok()?
            };
            (host, port)
        }
    };
    let own = env.interpolate(&service.address);
    let host = if own.is_empty() { host.to_owned() } else { own };
    Some(Target { host, port })
}

/// Returns the allocation's own address, if the mode asks for it; the outer `None`: it has no such
/// address.
fn own_address(mode: AddressMode, facts: &NodeFacts) -> Option<Option<&str>> {
    let own = |address: fn(&NetworkStatus) -> &str| {
        let address = facts.network().map(address)?;
        (!address.is_empty()).then_some(Some(address))
    };
    match mode {
        AddressMode::Auto | AddressMode::Host => Some(None),
        AddressMode::Alloc => own(NetworkStatus::any_address),
        AddressMode::AllocIpv6 => own(|network| &network.address_ipv6),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use model::{AllocatedPort, NodeId};
    use test_kit::builders;

    use super::*;

    fn assignment(group: &[Service], task: &[Service]) -> Assignment {
        let mut job = builders::service("web", 1);
        job.task_groups[0].services = group.to_vec();
        job.task_groups[0].tasks[0].services = task.to_vec();
        let mut alloc = builders::allocation(1, &job, NodeId::from_random(1));
        alloc.resources.ports = vec![AllocatedPort {
            label: "http".to_owned(),
            value: 25_000,
            to: 80,
            host_ip: "10.0.0.7".to_owned(),
            ignore_collision: false,
            task: String::new(),
        }];
        Assignment {
            alloc: Arc::new(alloc),
            job: Arc::new(job),
            modify_index: 5,
            trace_parent: String::new(),
            volume_paths: BTreeMap::new(),
        }
    }

    fn facts() -> NodeFacts {
        let mut node = builders::node(1);
        let name = "unique.network.ip-address".to_owned();
        node.attributes.insert(name, "10.0.0.1".to_owned());
        NodeFacts::new(&node, "global")
    }

    fn found(group: &[Service], task: &[Service]) -> Vec<ServiceRegistration> {
        let owners = [ServiceOwner::Group, ServiceOwner::Task("server".to_owned())];
        registrations(&assignment(group, task), &owners, &facts())
    }

    #[test]
    fn addresses_are_those_of_the_port_or_of_the_node() {
        let service = builders::registered;
        let named = Service {
            address: "${meta.none}-${NOMAD_ALLOC_INDEX}.example.com".to_owned(),
            ..service("named", "http")
        };
        for (service, want) in [
            (service("label", "http"), Some(("10.0.0.7", 25_000))),
            (service("number", "9090"), Some(("10.0.0.1", 9090))),
            (
                service("reference", "${NOMAD_HOST_PORT_http}"),
                Some(("10.0.0.1", 25_000)),
            ),
            (service("none", ""), Some(("10.0.0.1", 0))),
            (service("gone", "other"), None),
            (named, Some(("${meta.none}-0.example.com", 25_000))),
        ] {
            let found = found(&[service], &[]);
            let found = found.first().map(|it| (it.address.as_str(), it.port));
            assert_eq!(found, want);
        }
    }

    #[test]
    fn the_allocations_own_address_has_the_port_inside() {
        let facts = facts().with_network(Some(NetworkStatus {
            interface: "eth0".to_owned(),
            address: "172.26.64.2".to_owned(),
            address_ipv6: "fd00::2".to_owned(),
        }));
        let of = |address_mode, port: &str, facts: &NodeFacts| {
            let service = Service {
                address_mode,
                ..builders::registered("web", port)
            };
            let owners = [ServiceOwner::Group];
            let found = registrations(&assignment(&[service], &[]), &owners, facts);
            found.first().map(|it| (it.address.clone(), it.port))
        };
        let at = |address: &str, port| Some((address.to_owned(), port));
        for (mode, port, want) in [
            (AddressMode::Auto, "http", at("10.0.0.7", 25_000)),
            (AddressMode::Alloc, "http", at("172.26.64.2", 80)),
            (AddressMode::Alloc, "9090", at("172.26.64.2", 9_090)),
            (AddressMode::AllocIpv6, "http", at("fd00::2", 80)),
        ] {
            assert_eq!(of(mode, port, &facts), want, "{mode:?} {port}");
        }
        // In the node's network there is none.
        assert_eq!(of(AddressMode::Alloc, "http", &NodeFacts::default()), None);
    }

    #[test]
    fn a_service_of_a_task_names_the_tasks_own_ports_first() {
        let service = builders::registered;
        let services = [service("of-group", "http")];
        let mut assignment = assignment(&services, &services);
        let mut alloc = (*assignment.alloc).clone();
        alloc.resources.ports.push(AllocatedPort {
            value: 26_000,
            task: "server".to_owned(),
            ..alloc.resources.ports[0].clone()
        });
        assignment.alloc = Arc::new(alloc);
        let owners = [ServiceOwner::Group, ServiceOwner::Task("server".to_owned())];
        let found = registrations(&assignment, &owners, &facts());
        let ports: Vec<_> = found.iter().map(|it| it.port).collect();
        assert_eq!(ports, [25_000, 26_000]);
    }

    #[test]
    fn a_registration_names_its_owner_and_has_the_values_of_its_node() {
        let tagged = |name: &str| Service {
            tags: vec![
                "${NOMAD_TASK_NAME}".to_owned(),
                "${NOMAD_JOB_ID}".to_owned(),
            ],
            ..builders::registered(name, "http")
        };
        let found = found(&[tagged("of-group")], &[tagged("of-${NOMAD_TASK_NAME}")]);
        let alloc_id = assignment(&[], &[]).alloc.id;
        assert_eq!(
            found[0].id,
            format!("_nomad-task-{alloc_id}-group-web-of-group-http")
        );
        assert_eq!(found[0].tags, ["${NOMAD_TASK_NAME}", "web"]);
        assert_eq!(
            found[1].id,
            format!("_nomad-task-{alloc_id}-server-of-server-http")
        );
        assert_eq!(found[1].tags, ["server", "web"]);
        assert_eq!(
            (found[0].task.as_str(), found[1].task.as_str()),
            ("", "server")
        );
    }

    #[test]
    fn services_of_owners_that_do_not_run_are_not_registered() {
        let service = builders::registered("a", "http");
        let services = [service];
        let assignment = assignment(&services, &services);
        assert_eq!(registrations(&assignment, &[], &facts()), []);
        let group = registrations(&assignment, &[ServiceOwner::Group], &facts());
        assert_eq!(group.len(), 1);
    }
}
