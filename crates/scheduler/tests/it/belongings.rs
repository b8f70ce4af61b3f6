//! Facts of one node that no class covers: addresses and volumes. And system jobs with
//! `distinct_property`.

use model::job::{Network, Port, VolumeRequest, VolumeType};
use model::node::{HostNetwork, HostVolume};
use model::{Constraint, EvalStatus, Job, Node, Operator, TriggeredBy};
use scheduler::Decision;
use test_kit::builders;

use crate::cluster::TestCluster;

const ADDRESSES: [&str; 2] = ["203.0.113.1", "203.0.113.2"];

/// Returns a node with two addresses under the alias `public`.
fn multihomed(number: u128) -> Node {
    let mut node = builders::node(number);
    let public = HostNetwork {
        addresses: ADDRESSES.map(str::to_owned).to_vec(),
        reserved_ports: Vec::new(),
    };
    node.host_networks.insert("public".into(), public);
    node
}

fn with_port(mut job: Job, static_port: Option<u16>, host_network: &str) -> Job {
    let port = Port {
        label: "http".into(),
        static_port,
        host_network: host_network.into(),
        ..Port::default()
    };
    job.task_groups[0].networks = vec![Network {
        mode: "host".into(),
        ports: vec![port],
        ..Network::default()
    }];
    job
}

fn with_volume(mut job: Job, edit: impl FnOnce(&mut VolumeRequest)) -> Job {
    let mut volume = VolumeRequest {
        volume_type: VolumeType::Host,
        source: "data".into(),
        read_only: false,
        sticky: false,
        per_alloc: false,
        access_mode: None,
        attachment_mode: None,
        mount_options: Default::default(),
    };
    edit(&mut volume);
    job.task_groups[0].volumes.insert("data".into(), volume);
    job
}

fn offering(mut node: Node, name: &str, read_only: bool) -> Node {
    let path = format!("/srv/{name}");
    let volume = HostVolume { path, read_only };
    node.host_volumes.insert(name.into(), volume);
    node
}

fn place(cluster: &mut TestCluster, job: &Job) -> Decision {
    cluster.register(job.clone());
    let eval = cluster.add_eval(job, TriggeredBy::JobRegister);
    cluster.run(eval)
}

/// Returns the reasons for which nodes were filtered or exhausted for the group `web`.
fn reasons(decision: &Decision) -> Vec<String> {
    let outcome = decision.plan.eval_outcome.as_ref().unwrap();
    let failed = outcome.failed_task_groups.get("web");
    let failed = failed.expect("some of it has no place");
    let filtered = failed.constraint_filtered.keys();
    filtered
        .chain(failed.dimension_exhausted.keys())
        .cloned()
        .collect()
}

fn addresses(decision: &Decision) -> Vec<String> {
    let placed = decision.plan.placements.values().flatten();
    let ports = placed.flat_map(|alloc| &alloc.resources.ports);
    let mut addresses: Vec<_> = ports.map(|port| port.host_ip.clone()).collect();
    addresses.sort_unstable();
    addresses
}

#[test]
fn scenario_116_a_port_taken_on_one_address_is_free_on_the_other() {
    let mut cluster = TestCluster::new(1);
    cluster.put_node(multihomed(1));
    let job = with_port(builders::service("web", 3), Some(8_080), "public");
    let decision = place(&mut cluster, &job);
    assert_eq!(addresses(&decision), ADDRESSES);
    assert_eq!(
        reasons(&decision),
        ["network: reserved port collision http=8080"]
    );
    // The node's own address is another.
    let own = with_port(builders::service("own", 1), Some(8_080), "default");
    assert_eq!(addresses(&place(&mut cluster, &own)), ["127.0.0.1"]);
}

#[test]
fn a_host_network_is_the_nodes_own_matter_and_not_its_classs() {
    let mut cluster = TestCluster::new(2);
    // One class, and the first node checked fails.
    for node in [builders::node(1), multihomed(2), builders::node(3)] {
        cluster.put_node(node);
    }
    let job = with_port(builders::service("web", 2), None, "public");
    let decision = place(&mut cluster, &job);
    let nodes: Vec<_> = decision.plan.placements.keys().copied().collect();
    assert_eq!(nodes, [multihomed(2).id]);
    let without_address = with_port(builders::service("web2", 1), None, "private");
    let decision = place(&mut cluster, &without_address);
    let want = "missing host network \"private\" for port \"http\"";
    assert_eq!(reasons(&decision), [want]);
    // A node of the class may still get the network.
    let outcome = decision.plan.eval_outcome.as_ref().unwrap();
    let blocked = cluster.eval(outcome.blocked_eval.unwrap()).value;
    assert_eq!(blocked.status, EvalStatus::Blocked);
    assert_eq!(blocked.class_eligibility.get("v1:plain"), Some(&true));
}

#[test]
fn scenario_114_a_static_volume_is_written_only_where_it_may_be_and_never_sticky() {
    let mut cluster = TestCluster::new(3);
    cluster.put_node(offering(builders::node(1), "data", true));
    cluster.put_node(builders::node(2));
    let reason = "missing compatible host volumes";
    let writes = with_volume(builders::service("writes", 1), |_| {});
    assert_eq!(reasons(&place(&mut cluster, &writes)), [reason]);
    let sticky = with_volume(builders::service("sticky", 1), |volume| {
        volume.read_only = true;
        volume.sticky = true;
    });
    assert_eq!(reasons(&place(&mut cluster, &sticky)), [reason]);
    let reads = with_volume(builders::service("reads", 3), |volume| {
        volume.read_only = true
    });
    let decision = place(&mut cluster, &reads);
    let nodes: Vec<_> = decision.plan.placements.keys().copied().collect();
    assert_eq!(nodes, [builders::node(1).id]);
    assert_eq!(decision.plan.placement_count(), 3);
}

#[test]
fn each_allocation_finds_the_node_with_its_own_volume() {
    let mut cluster = TestCluster::new(4);
    for number in 0..4_u32 {
        // No node has the second volume.
        let name = format!("data[{}]", if number == 1 { 9 } else { number });
        let node = offering(builders::node(u128::from(number) + 1), &name, false);
        cluster.put_node(node);
    }
    let job = with_volume(builders::service("web", 4), |volume| {
        volume.per_alloc = true
    });
    let decision = place(&mut cluster, &job);
    let placed = decision.plan.placements.values().flatten();
    let mut placed: Vec<_> = placed
        .map(|alloc| (alloc.name_index, alloc.node_id))
        .collect();
    placed.sort_unstable();
    let want = [0, 2, 3].map(|number| (number, builders::node(u128::from(number) + 1).id));
    assert_eq!(placed, want);
    assert_eq!(reasons(&decision), ["missing compatible host volumes"]);
    // Once a node has it, the missing allocation is placed there.
    let late = offering(builders::node(5), "data[1]", false);
    let late = cluster.put_node(late);
    let eval = cluster.add_eval(&job, TriggeredBy::NodeUpdate);
    let plan = cluster.run(eval).plan;
    assert_eq!(plan.placements.keys().copied().collect::<Vec<_>>(), [late]);
}

#[test]
fn an_allocation_whose_node_lost_its_volume_is_not_updated_in_place() {
    let mut cluster = TestCluster::new(5);
    let first = cluster.put_node(offering(builders::node(1), "data", false));
    let mut job = with_volume(builders::service("web", 1), |_| {});
    place(&mut cluster, &job);
    cluster.put_node(builders::node(1));
    let second = cluster.put_node(offering(builders::node(2), "data", false));
    // A change that can be applied in place.
    job.priority += 1;
    let plan = place(&mut cluster, &job).plan;
    assert_eq!(
        plan.placements.keys().copied().collect::<Vec<_>>(),
        [second]
    );
    assert_eq!(plan.stops.keys().copied().collect::<Vec<_>>(), [first]);
}

fn one_per_rack(name: &str, allowed: &str) -> Job {
    let mut job = builders::service(name, 1);
    job.job_type = model::JobType::System;
    job.task_groups = vec![builders::group("web", model::JobType::System, 1)];
    job.constraints.push(Constraint {
        left: "${meta.rack}".into(),
        operator: Operator::DistinctProperty,
        right: allowed.into(),
    });
    job
}

fn on_racks(cluster: &mut TestCluster, racks: &[&str]) {
    for (number, rack) in (1..).zip(racks) {
        let mut node = builders::node(number);
        if !rack.is_empty() {
            node.meta.insert("rack".into(), (*rack).into());
        }
        cluster.put_node(node);
    }
}

#[test]
fn scenario_109_a_system_job_goes_as_far_as_its_distinct_property() {
    let mut cluster = TestCluster::new(6);
    on_racks(&mut cluster, &["r1", "r1", "r1", "r2", ""]);
    let job = one_per_rack("web", "2");
    let decision = place(&mut cluster, &job);
    assert_eq!(decision.plan.placement_count(), 3, "two on r1, one on r2");
    // Nothing is left to do, and nothing moves.
    let eval = cluster.add_eval(&job, TriggeredBy::NodeUpdate);
    assert!(cluster.run(eval).plan.is_no_op());
    // A stopped allocation makes room for the third.
    let gone = *decision.plan.placements.keys().next().unwrap();
    let mut node = cluster.snapshot().node(gone).unwrap().value.clone();
    node.status = model::NodeStatus::Down;
    cluster.put_node(node);
    let eval = cluster.add_eval(&job, TriggeredBy::NodeUpdate);
    let plan = cluster.run(eval).plan;
    assert_eq!((plan.placement_count(), plan.stops.len()), (1, 1));
}

#[test]
fn a_property_of_a_system_job_counts_all_its_groups() {
    let mut cluster = TestCluster::new(7);
    on_racks(&mut cluster, &["r1", "r1", "r2"]);
    let mut job = one_per_rack("web", "1");
    let second = builders::group("zeta", model::JobType::System, 1);
    job.task_groups.push(second);
    let plan = place(&mut cluster, &job).plan;
    let placed = plan.placements.values().flatten();
    let mut groups: Vec<_> = placed.map(|alloc| alloc.task_group.to_string()).collect();
    groups.sort_unstable();
    assert_eq!(
        groups,
        ["web", "web"],
        "one on each rack, all groups together"
    );
    // An update of the running allocations keeps their nodes.
    job.task_groups[0].tasks[0]
        .env
        .insert("A".into(), "1".into());
    let plan = place(&mut cluster, &job).plan;
    assert_eq!((plan.placement_count(), plan.stops.len()), (2, 2));
}

/// Takes a node down, and evaluates the job.
fn lose(cluster: &mut TestCluster, job: &Job, node: model::NodeId) -> Decision {
    let mut node = cluster.snapshot().node(node).unwrap().value.clone();
    node.status = model::NodeStatus::Down;
    cluster.put_node(node);
    let eval = cluster.add_eval(job, TriggeredBy::NodeUpdate);
    cluster.run(eval)
}

#[test]
fn an_ended_allocation_leaves_its_value_to_others() {
    let mut cluster = TestCluster::new(8);
    on_racks(&mut cluster, &["r1", "r1"]);
    let job = one_per_rack("web", "1");
    let first = *place(&mut cluster, &job)
        .plan
        .placements
        .keys()
        .next()
        .unwrap();
    let plan = lose(&mut cluster, &job, first).plan;
    let second = *plan.placements.keys().next().unwrap();
    assert_ne!(first, second);
    // The allocation on the first node is still stored, and holds nothing.
    let mut node = cluster.snapshot().node(first).unwrap().value.clone();
    node.status = model::NodeStatus::Ready;
    cluster.put_node(node);
    let plan = lose(&mut cluster, &job, second).plan;
    assert_eq!(plan.placements.keys().collect::<Vec<_>>(), [&first]);
}

#[test]
fn a_property_of_a_group_counts_that_group_alone() {
    let mut cluster = TestCluster::new(9);
    on_racks(&mut cluster, &["r1", "r2"]);
    let mut job = one_per_rack("web", "1");
    let rule = std::mem::take(&mut job.constraints);
    for name in ["alpha", "zeta"] {
        let mut group = builders::group(name, model::JobType::System, 1);
        group.constraints.clone_from(&rule);
        job.task_groups.push(group);
    }
    job.task_groups.remove(0);
    assert_eq!(place(&mut cluster, &job).plan.placement_count(), 4);
    job.priority += 1;
    for group in &mut job.task_groups {
        let env = &mut group.tasks[0].env;
        env.insert("A".into(), "1".into());
    }
    assert_eq!(place(&mut cluster, &job).plan.placement_count(), 4);
    let mut node = builders::node(3);
    node.meta.insert("rack".into(), "r3".into());
    cluster.put_node(node);
    let eval = cluster.add_eval(&job, TriggeredBy::NodeUpdate);
    assert_eq!(cluster.run(eval).plan.placement_count(), 2);
}

#[test]
fn property_values_of_a_removed_group_are_free_for_a_new_group() {
    // Whatever the group's name, and whether it is removed or has count 0.
    for (number, (goes, comes, is_removed)) in (10..).zip([
        ("alpha", "zeta", true),
        ("zeta", "alpha", true),
        ("alpha", "zeta", false),
        ("zeta", "alpha", false),
    ]) {
        let mut cluster = TestCluster::new(number);
        on_racks(&mut cluster, &["r1", "r2"]);
        let mut job = one_per_rack("web", "1");
        job.task_groups[0].name = goes.into();
        assert_eq!(place(&mut cluster, &job).plan.placement_count(), 2);
        if is_removed {
            job.task_groups.clear();
        } else {
            job.task_groups[0].count = 0;
        }
        let group = builders::group(comes, model::JobType::System, 1);
        job.task_groups.push(group);
        let plan = place(&mut cluster, &job).plan;
        let counts = (plan.placement_count(), plan.stops.len());
        assert_eq!(counts, (2, 2), "{goes} goes, {comes} comes");
    }
}

/// Nodes that lack the network's mode are in the same class as the others but for the attribute.
#[test]
fn a_group_with_a_network_of_its_own_goes_to_nodes_that_can_set_it_up() {
    for mode in ["bridge", "none", "cni/lan"] {
        let with_mode = |job: Job| {
            let mut job = with_port(job, None, "default");
            job.task_groups[0].networks[0].mode = mode.to_owned();
            job
        };
        let mut cluster = TestCluster::new(1);
        let mut lacking = builders::node(1);
        let attribute = model::network_attribute(mode);
        lacking
            .attributes
            .insert(attribute.clone(), "false".to_owned());
        cluster.put_node(lacking);
        let job = with_mode(builders::service("web", 1));
        let decision = place(&mut cluster, &job);
        assert_eq!(reasons(&decision), ["missing network"], "{mode}");
        let mut able = builders::node(2);
        able.attributes.insert(attribute, "true".to_owned());
        let able_id = able.id;
        cluster.put_node(able);
        let decision = place(&mut cluster, &job);
        let nodes: Vec<_> = decision.plan.placements.keys().copied().collect();
        assert_eq!(nodes, [able_id], "{mode}");
    }
}
