//! Registrations of an allocation's services: names, addresses and ports of those whose owner runs. Those that
//! go to Consul are built beside, in `consul_services`, from the same targets.

use lifecycle::Assignment;
use model::service::{AddressMode, Provider, ServiceCheck};
use model::{
    NetworkStatus, Service, ServiceHealth, ServiceOwner, ServiceRegistration, TaskGroup,
    registration_id,
};
use task_drivers::{DriverAddress, NodeFacts, TaskEnv};

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
/// `own` gives the address of a task in a network of its driver, `health` the result of the checks of a service
/// by its owner and position. A service whose port is not on this node, or
/// that has no address of its mode, is left out: it cannot be reached.
pub(crate) fn registrations(
    assignment: &Assignment,
    owners: &[ServiceOwner],
    facts: &NodeFacts,
    own: impl Fn(&str) -> Option<DriverAddress>,
    health: impl Fn(&ServiceOwner, usize) -> ServiceHealth,
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
        let own = of_task(owner, &own);
        let addresses = (facts, own.as_ref());
        let own_services = services.iter().enumerate();
        for (position, service) in own_services.filter(|(_, it)| it.provider == Provider::Kafila) {
            let wanted = (service.address_mode, "");
            let Some(target) = target(assignment, (owner, service), wanted, &env, addresses) else {
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
                health: health(owner, position),
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

/// Returns the address that the driver of a service's task gave it; services of groups have none.
pub(crate) fn of_task(
    owner: &ServiceOwner,
    own: impl Fn(&str) -> Option<DriverAddress>,
) -> Option<DriverAddress> {
    match owner {
        ServiceOwner::Group => None,
        ServiceOwner::Task(task) => own(task),
    }
}

/// Returns the address mode of a check. No check follows an advertised address by itself: the node need not
/// reach it.
pub(crate) fn mode_of_check(service: &Service, check: &ServiceCheck) -> AddressMode {
    check.address_mode.unwrap_or(match service.address_mode {
        AddressMode::Auto => AddressMode::Host,
        mode => mode,
    })
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

/// Returns the address of a service, or with a `port` of its own that of one of its checks, by the mode.
/// `addresses`: those of the node and its allocation, and the one that the driver gave the task.
///
/// `None`: the allocation has no such port, or no address of this mode.
pub(crate) fn target(
    assignment: &Assignment,
    (owner, service): (&ServiceOwner, &Service),
    (mode, port): (AddressMode, &str),
    env: &TaskEnv<'_>,
    (facts, driver): (&NodeFacts, Option<&DriverAddress>),
) -> Option<Target> {
    let wanted = if port.is_empty() { &service.port } else { port };
    let wanted = env.interpolate(wanted);
    let task = match owner {
        ServiceOwner::Group => "",
        ServiceOwner::Task(task) => task,
    };
    let mut ports = assignment.alloc.resources.ports_of(task);
    let found = ports.find(|port| port.label == wanted);
    let literal = env.interpolate(&service.address);
    let advertised = driver.filter(|driver| driver.is_advertised && literal.is_empty());
    let place = match mode {
        AddressMode::Auto => advertised.map_or(AddressSource::Node, AddressSource::Driver),
        AddressMode::Host => AddressSource::Node,
        AddressMode::Driver => AddressSource::Driver(driver?),
        AddressMode::Alloc => AddressSource::Alloc(own_address(facts, NetworkStatus::any_address)?),
        AddressMode::AllocIpv6 => {
            AddressSource::Alloc(own_address(facts, |network| &network.address_ipv6)?)
        }
    };
    let (host, port) = match (place, found) {
        (AddressSource::Driver(driver), Some(port)) => (driver.host.as_str(), driver.port(port)),
        (AddressSource::Alloc(own), Some(port)) if port.task.is_empty() => (own, port.to),
        (_, Some(port)) => (port.host_ip.as_str(), port.value),
        (place, None) => {
            let host = match place {
                AddressSource::Node => facts.address(),
                AddressSource::Alloc(own) => own,
                AddressSource::Driver(driver) => &driver.host,
            };
            let port = if wanted.is_empty() {
                0
            } else {
                wanted.parse().ok()?
            };
            (host, port)
        }
    };
    let host = if literal.is_empty() {
        host.to_owned()
    } else {
        literal
    };
    Some(Target { host, port })
}

/// The source of the address that a service is reached at.
enum AddressSource<'a> {
    Node,
    /// At the allocation's own address.
    Alloc(&'a str),
    Driver(&'a DriverAddress),
}

/// Returns the allocation's own address; `None`: it has no such address.
fn own_address(facts: &NodeFacts, of: fn(&NetworkStatus) -> &str) -> Option<&str> {
    let address = facts.network().map(of)?;
    (!address.is_empty()).then_some(address)
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

    fn passing(_: &ServiceOwner, _: usize) -> ServiceHealth {
        ServiceHealth::Passing
    }

    fn facts() -> NodeFacts {
        let mut node = builders::node(1);
        let name = "unique.network.ip-address".to_owned();
        node.attributes.insert(name, "10.0.0.1".to_owned());
        NodeFacts::new(&node, "global")
    }

    fn found(group: &[Service], task: &[Service]) -> Vec<ServiceRegistration> {
        let owners = [ServiceOwner::Group, ServiceOwner::Task("server".to_owned())];
        registrations(
            &assignment(group, task),
            &owners,
            &facts(),
            |_| None,
            passing,
        )
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
            let found = registrations(
                &assignment(&[service], &[]),
                &owners,
                facts,
                |_| None,
                passing,
            );
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
    fn the_drivers_address_has_the_port_inside_and_is_used_alone_when_it_is_advertised() {
        let bridge = DriverAddress {
            host: "172.17.0.2".to_owned(),
            is_advertised: false,
            ports: [(25_000, 8_080)].into(),
        };
        let overlay = DriverAddress {
            host: "10.32.0.9".to_owned(),
            is_advertised: true,
            ports: BTreeMap::new(),
        };
        let of = |address_mode, port: &str, own: Option<&DriverAddress>| {
            let service = Service {
                address_mode,
                ..builders::registered("web", port)
            };
            let owners = [ServiceOwner::Task("server".to_owned())];
            let own = |task: &str| own.filter(|_| task == "server").cloned();
            let assignment = assignment(&[], &[service]);
            let found = registrations(&assignment, &owners, &facts(), own, passing);
            found.first().map(|it| (it.address.clone(), it.port))
        };
        let at = |address: &str, port| Some((address.to_owned(), port));
        let (bridge, overlay) = (Some(&bridge), Some(&overlay));
        for (mode, port, own, want) in [
            (AddressMode::Driver, "http", bridge, at("172.17.0.2", 8_080)),
            // Not published: the port that the group says.
            (AddressMode::Driver, "http", overlay, at("10.32.0.9", 80)),
            (AddressMode::Driver, "9090", bridge, at("172.17.0.2", 9_090)),
            (AddressMode::Driver, "", bridge, at("172.17.0.2", 0)),
            (AddressMode::Driver, "http", None, None),
            (AddressMode::Auto, "http", bridge, at("10.0.0.7", 25_000)),
            (AddressMode::Auto, "http", overlay, at("10.32.0.9", 80)),
            (AddressMode::Host, "http", overlay, at("10.0.0.7", 25_000)),
        ] {
            assert_eq!(of(mode, port, own), want, "{mode:?} {port}");
        }
    }

    #[test]
    fn a_check_asks_at_its_own_address_else_at_the_services_and_never_by_itself_at_an_advertised_one()
     {
        use AddressMode::{Alloc, Auto, Driver, Host};
        for (service_mode, own, want) in [
            (Auto, None, Host),
            (Driver, None, Driver),
            (Alloc, None, Alloc),
            (Driver, Some(Host), Host),
            (Auto, Some(Driver), Driver),
        ] {
            let service = Service {
                address_mode: service_mode,
                ..builders::registered("web", "http")
            };
            let check = ServiceCheck {
                address_mode: own,
                ..ServiceCheck::default()
            };
            assert_eq!(mode_of_check(&service, &check), want, "{service_mode:?}");
        }
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
        let found = registrations(&assignment, &owners, &facts(), |_| None, passing);
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
        assert_eq!(
            registrations(&assignment, &[], &facts(), |_| None, passing),
            []
        );
        let group = registrations(
            &assignment,
            &[ServiceOwner::Group],
            &facts(),
            |_| None,
            passing,
        );
        assert_eq!(group.len(), 1);
    }
}
