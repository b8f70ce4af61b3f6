//! Preemption for devices and cores.

use model::job::DeviceRequest;
use model::node::{DeviceInstance, NodeDevice};
use model::{AllocId, Job, TriggeredBy};
use test_kit::builders;

use crate::cluster::TestCluster;

fn kind(name: &str, count: usize) -> NodeDevice {
    let instance = |number: usize| DeviceInstance {
        id: format!("{name}-{number}"),
        healthy: true,
    };
    NodeDevice {
        vendor: "nvidia".into(),
        device_type: "gpu".into(),
        name: name.into(),
        instances: (0..count).map(instance).collect(),
        ..NodeDevice::default()
    }
}

/// A service that asks for `count` devices; `cores` when `device` is empty.
fn job(name: &str, priority: u8, device: &str, count: u64) -> Job {
    let mut job = builders::service(name, 1);
    job.priority = priority;
    let resources = &mut job.task_groups[0].tasks[0].resources;
    resources.cpu_mhz = 10;
    resources.memory_mib = 10;
    if device.is_empty() {
        resources.cpu_mhz = 0;
        resources.cores = u32::try_from(count).unwrap();
    } else {
        resources.devices = vec![DeviceRequest {
            name: device.into(),
            count,
            constraints: Vec::new(),
            affinities: Vec::new(),
        }];
    }
    job
}

/// Runs each of `users` (name, priority, device, count) on one node, and returns the victims of a
/// job with a high priority that asks for `count` of `device`; `None`: it is not placed.
fn victims_of(
    kinds: &[NodeDevice],
    users: &[(&str, u8, &str, u64)],
    device: &str,
    count: u64,
) -> Option<Vec<String>> {
    let mut cluster = TestCluster::new(7);
    cluster.config.preemption.service = true;
    cluster.store_config();
    let mut node = builders::node(1);
    node.devices = kinds.to_vec();
    node.cores = (0..4).map(|core| (core, 500)).collect();
    node.computed_class = placement::computed_class(&node);
    cluster.put_node(node);
    let mut run = |job: Job| {
        cluster.register(job.clone());
        let eval = cluster.add_eval(&job, TriggeredBy::JobRegister);
        let plan = cluster.run(eval).plan;
        let name = |id: AllocId| cluster.alloc(id).job_id.to_string();
        let gone = plan.preemptions.values().flatten();
        let mut gone: Vec<_> = gone.map(|stop| name(stop.alloc_id)).collect();
        gone.sort();
        (plan.placement_count() == 1).then_some(gone)
    };
    for (name, priority, device, count) in users {
        let gone = run(job(name, *priority, device, *count));
        assert_eq!(gone, Some(Vec::new()), "{name} has room");
    }
    run(job("new", 100, device, count))
}

const A: &str = "nvidia/gpu/1080ti";
const B: &str = "nvidia/gpu/2080ti";

fn names(names: &[&str]) -> Option<Vec<String>> {
    Some(names.iter().map(|name| (*name).to_owned()).collect())
}

#[test]
fn scenario_139_both_users_of_a_kind_go_when_all_of_it_is_asked_for() {
    let users = [("a", 30, A, 1), ("b", 40, A, 1)];
    assert_eq!(
        victims_of(&[kind("1080ti", 4)], &users, A, 4),
        names(&["a", "b"])
    );
}

#[test]
fn scenario_140_the_kind_whose_users_may_go_is_freed() {
    let kinds = [kind("1080ti", 4), kind("2080ti", 5)];
    let users = [
        ("a", 30, A, 2),
        ("high", 100, A, 1),
        ("b", 30, B, 2),
        ("c", 30, B, 2),
    ];
    assert_eq!(victims_of(&kinds, &users, "gpu", 4), names(&["b", "c"]));
}

#[test]
fn scenario_141_the_kind_with_the_less_important_users_is_freed() {
    let kinds = [kind("1080ti", 4), kind("2080ti", 5)];
    let users = [
        ("a", 30, A, 2),
        ("b", 40, A, 2),
        ("c", 30, B, 2),
        ("d", 30, B, 2),
        ("e", 30, B, 1),
    ];
    assert_eq!(victims_of(&kinds, &users, "gpu", 4), names(&["c", "d"]));
}

#[test]
fn scenario_142_nothing_is_preempted_when_no_kind_has_enough_devices() {
    let kinds = [kind("1080ti", 4), kind("2080ti", 5)];
    let users = [("a", 30, A, 2), ("b", 30, B, 5)];
    assert_eq!(victims_of(&kinds, &users, "gpu", 6), None);
}

#[test]
fn cores_are_freed_as_well() {
    let users = [("a", 40, "", 1), ("b", 30, "", 1), ("c", 30, A, 1)];
    let kinds = [kind("1080ti", 1)];
    assert_eq!(victims_of(&kinds, &users, "", 3), names(&["b"]));
    assert_eq!(victims_of(&kinds, &users, "", 4), names(&["a", "b"]));
}
