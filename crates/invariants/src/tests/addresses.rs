//! Ports on addresses that their node does not have, or has lost.

use model::{AllocatedPort, NodeEligibility, NodeStatus};

use super::*;

const OLD: &str = "10.0.0.1";
const NEW: &str = "10.0.0.2";

fn node(host_ip: &str) -> Node {
    Node {
        host_ip: host_ip.to_owned(),
        ..builders::node(1)
    }
}

fn with_port(id: u128, number: u32, value: u16, address: &str) -> Allocation {
    let mut alloc = alloc(id, &builders::node(1), number);
    alloc.resources.ports = vec![AllocatedPort {
        label: "http".to_owned(),
        value,
        to: value,
        host_ip: address.to_owned(),
        ..AllocatedPort::default()
    }];
    alloc
}

#[test]
fn a_new_allocation_on_an_address_that_its_node_has_not_is_found() {
    let placed = |address| {
        broken([
            put_node(&node(NEW)),
            put_alloc(&with_port(1, 0, 80, address)),
        ])
    };
    assert_eq!(placed(NEW), []);
    assert_eq!(placed(OLD), [Fact::PlacedWhereAllowed]);
}

#[test]
fn a_new_allocation_on_a_port_that_is_held_on_a_lost_address_is_found() {
    let then = |value| {
        broken([
            put_node(&node(OLD)),
            put_alloc(&with_port(1, 0, 80, OLD)),
            put_node(&node(NEW)),
            put_alloc(&with_port(2, 1, value, NEW)),
        ])
    };
    assert_eq!(then(81), []);
    assert_eq!(then(80), [Fact::PlacedWhereAllowed]);
}

#[test]
fn at_rest_ports_of_services_and_system_jobs_are_on_addresses_of_their_node() {
    let with = |job_type, node: Node, alloc: &Allocation| {
        let mut job = web(1);
        job.job_type = job_type;
        let changes = [put_job(&job), put_version(&job), put_alloc(alloc)];
        at_rest(changes.into_iter().chain([put_node(&node)]).collect())
    };
    let old = with_port(1, 0, 80, OLD);
    let lost = [Fact::PortsAreOnTheirNodes];
    for job_type in [JobType::Service, JobType::System] {
        assert_eq!(with(job_type, node(OLD), &old), []);
        assert_eq!(with(job_type, node(NEW), &old), lost);
    }
    assert_eq!(with(JobType::Batch, node(NEW), &old), []);
    assert_eq!(with(JobType::Sysbatch, node(NEW), &old), []);
    let ineligible = Node {
        eligibility: NodeEligibility::Ineligible,
        ..node(NEW)
    };
    assert_eq!(with(JobType::Service, ineligible.clone(), &old), lost);
    assert_eq!(with(JobType::System, ineligible, &old), []);
    let down = Node {
        status: NodeStatus::Down,
        ..node(NEW)
    };
    assert_eq!(with(JobType::System, down, &old), []);
}

#[test]
fn updates_of_allocations_on_a_lost_address_keep_no_pace() {
    let mut job = web(2);
    job.task_groups[0].update = Some(builders::rolling_update(1));
    let mut newer = job.clone();
    newer.version = 1;
    let replaced = |position: u32, address: &str| {
        let id = u128::from(position) + 1;
        let mut old = with_port(id, position, 80 + u16::try_from(position).unwrap(), OLD);
        old.desired_status = DesiredStatus::Stop;
        let mut new = Allocation {
            id: AllocId::from_random(id + 10),
            job_version: 1,
            deployment_id: Some(DeploymentId::from_random(1)),
            previous_alloc: Some(old.id),
            desired_status: DesiredStatus::Run,
            ..old.clone()
        };
        new.resources.ports[0].host_ip = address.to_owned();
        [put_alloc(&old), put_alloc(&new)]
    };
    for (address, want) in [(OLD, vec![Fact::UpdatesKeepTheirPace]), (NEW, vec![])] {
        let mut history = History::default();
        let mut start = vec![put_node(&node(OLD)), put_job(&newer)];
        start.extend([put_version(&job), put_version(&newer)]);
        for (id, number, port) in [(1, 0, 80), (2, 1, 81)] {
            let old = with_port(id, number, port, OLD);
            start.extend([put_alloc(&old), put_client(old.id, ClientStatus::Running)]);
        }
        history.apply(1, start);
        history.apply(2, vec![put_node(&node(address))]);
        history.apply(3, [replaced(0, address), replaced(1, address)].concat());
        let found: Vec<_> = history.violations().iter().map(|one| one.fact).collect();
        assert_eq!(found, want, "{address}");
    }
}
