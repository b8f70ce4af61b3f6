//! A task's environment variables.

use std::path::Path;

use model::job::{VolumeRequest, VolumeType};
use model::node::{HostVolume, NodeDevice};
use model::{AllocatedDevice, AllocatedPort, NodeId};
use task_drivers::{AllocDirs, NodeFacts, TaskEnv};

/// Everything that `variables` holds, a line each.
fn lines(variables: std::collections::BTreeMap<String, String>) -> Vec<String> {
    variables
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}

fn gpu(name: &str) -> NodeDevice {
    NodeDevice {
        vendor: "nvidia".to_owned(),
        device_type: "gpu".to_owned(),
        name: name.to_owned(),
        env: format!("{}_DEVICES", name.to_uppercase()),
        ..NodeDevice::default()
    }
}

#[test]
fn a_task_has_variables_for_its_job_its_node_and_its_resources() {
    let mut job = test_kit::builders::service("shop", 1);
    job.meta.insert("team".to_owned(), "red".to_owned());
    job.parent_id = "mall".to_owned();
    let group = &mut job.task_groups[0];
    group.meta.insert("team".to_owned(), "blue".to_owned());
    let task = &mut group.tasks[0];
    task.resources.memory_max = model::MemoryMax::Mib(512);
    task.env.insert(
        "LISTEN".to_owned(),
        "${NOMAD_ADDR_http_api} on ${attr.kernel.name}".to_owned(),
    );
    task.env
        .insert("ODD".to_owned(), "${no.such.thing}".to_owned());
    // The node overrides this one.
    task.env.insert("K80_DEVICES".to_owned(), "all".to_owned());
    let task_name = task.name.clone();
    let mut node = test_kit::builders::node(1);
    node.node_class = "large".to_owned();
    node.cores = [(0, 1_000), (1, 2_000), (2, 2_500)].into();
    node.devices = ["k80", "t4"].map(gpu).into();
    let mut alloc = test_kit::builders::allocation(7, &job, NodeId::from_random(1));
    alloc.name_index = 3;
    alloc.resources.ports = vec![AllocatedPort {
        label: "http-api".to_owned(),
        value: 20_001,
        to: 80,
        host_ip: "10.0.0.5".to_owned(),
        ignore_collision: false,
        task: String::new(),
    }];
    alloc.resources.memory_oversubscribed = true;
    alloc.resources.cores = vec![model::AllocatedCores {
        task: task_name.clone(),
        ids: vec![1, 2],
    }];
    alloc.resources.devices = [("k80", ["a", "b"]), ("t4", ["a", "x"])]
        .map(|(name, ids)| AllocatedDevice {
            task: task_name.clone(),
            vendor: "nvidia".to_owned(),
            device_type: "gpu".to_owned(),
            name: name.to_owned(),
            instance_ids: ids.map(str::to_owned).into(),
        })
        .into();
    let dirs = AllocDirs::new(Path::new("/var/allocs"), alloc.id).task("server");
    let facts = NodeFacts::new(&node, "global");
    let (group, task) = (&job.task_groups[0], &job.task_groups[0].tasks[0]);
    let env = TaskEnv::new(&job, group, task, &alloc, &facts, Some(&dirs));
    assert_eq!(
        env.interpolate("${node.class} ${node.unique.name} ${node.region}"),
        "large n1 global"
    );
    let id = alloc.id;
    let want = [
        "K80_DEVICES=a,b".to_owned(),
        "LISTEN=10.0.0.5:20001 on linux".to_owned(),
        "NOMAD_ADDR_http_api=10.0.0.5:20001".to_owned(),
        format!("NOMAD_ALLOC_DIR=/var/allocs/{id}/alloc"),
        format!("NOMAD_ALLOC_ID={id}"),
        "NOMAD_ALLOC_INDEX=3".to_owned(),
        "NOMAD_ALLOC_NAME=shop.web[3]".to_owned(),
        "NOMAD_ALLOC_PORT_http-api=80".to_owned(),
        "NOMAD_CPU_CORES=1-2".to_owned(),
        "NOMAD_CPU_LIMIT=4500".to_owned(),
        "NOMAD_DC=dc1".to_owned(),
        "NOMAD_GROUP_NAME=web".to_owned(),
        "NOMAD_HOST_ADDR_http-api=10.0.0.5:20001".to_owned(),
        "NOMAD_HOST_IP_http-api=10.0.0.5".to_owned(),
        "NOMAD_HOST_PORT_http_api=20001".to_owned(),
        "NOMAD_IP_http_api=10.0.0.5".to_owned(),
        "NOMAD_JOB_ID=shop".to_owned(),
        "NOMAD_JOB_NAME=shop".to_owned(),
        "NOMAD_JOB_PARENT_ID=mall".to_owned(),
        "NOMAD_MEMORY_LIMIT=256".to_owned(),
        "NOMAD_MEMORY_MAX_LIMIT=512".to_owned(),
        "NOMAD_META_TEAM=blue".to_owned(),
        "NOMAD_META_team=blue".to_owned(),
        "NOMAD_NAMESPACE=default".to_owned(),
        "NOMAD_PORT_http_api=80".to_owned(),
        "NOMAD_REGION=global".to_owned(),
        format!("NOMAD_SECRETS_DIR=/var/allocs/{id}/server/secrets"),
        format!("NOMAD_SHORT_ALLOC_ID={}", id.short()),
        format!("NOMAD_TASK_DIR=/var/allocs/{id}/server/local"),
        "NOMAD_TASK_NAME=server".to_owned(),
        "ODD=${no.such.thing}".to_owned(),
        "T4_DEVICES=a,x".to_owned(),
    ];
    assert_eq!(lines(env.into_variables()), want);
}

#[test]
fn each_port_has_its_own_address_and_each_volume_its_path() {
    let mut job = test_kit::builders::service("shop", 1);
    for (name, per_alloc) in [("own", true), ("shared-data", false), ("absent", false)] {
        let source = if name == "absent" { "other" } else { "data" };
        let request = VolumeRequest {
            volume_type: VolumeType::Host,
            source: source.to_owned(),
            read_only: false,
            sticky: false,
            per_alloc,
            access_mode: None,
            attachment_mode: None,
            mount_options: Default::default(),
        };
        job.task_groups[0].volumes.insert(name.to_owned(), request);
    }
    let mut node = test_kit::builders::node(1);
    for name in ["data", "data[3]"] {
        let volume = HostVolume {
            path: format!("/srv/{name}"),
            read_only: false,
        };
        node.host_volumes.insert(name.to_owned(), volume);
    }
    let mut alloc = test_kit::builders::allocation(7, &job, node.id);
    alloc.name_index = 3;
    let port = |label: &str, host_ip: &str, value| AllocatedPort {
        label: label.to_owned(),
        value,
        to: value,
        host_ip: host_ip.to_owned(),
        ..AllocatedPort::default()
    };
    alloc.resources.ports = vec![port("a", "203.0.113.1", 80), port("b", "2001:db8::7", 81)];
    let facts = NodeFacts::new(&node, "global");
    let group = &job.task_groups[0];
    let env = TaskEnv::new(&job, group, &group.tasks[0], &alloc, &facts, None);
    let variables = env.into_variables();
    let shown = |family: &str| {
        let of_family = variables
            .iter()
            .filter(|(name, _)| name.starts_with(family));
        let lines = of_family.map(|(name, value)| format!("{name}={value}"));
        lines.collect::<Vec<_>>()
    };
    assert_eq!(
        shown("NOMAD_HOST_ADDR_"),
        [
            "NOMAD_HOST_ADDR_a=203.0.113.1:80",
            "NOMAD_HOST_ADDR_b=[2001:db8::7]:81"
        ]
    );
    assert_eq!(
        shown("NOMAD_IP_"),
        ["NOMAD_IP_a=203.0.113.1", "NOMAD_IP_b=2001:db8::7"]
    );
    assert_eq!(
        shown("KAFILA_VOLUME_"),
        [
            "KAFILA_VOLUME_own=/srv/data[3]",
            "KAFILA_VOLUME_shared_data=/srv/data"
        ]
    );
}

/// Recorded from Nomad's public behaviour: addresses are the host's, `NOMAD_PORT_` is the port inside,
/// and the dash stays in the variables of the allocation's own address.
#[test]
fn a_task_in_a_network_of_its_own_sees_both_addresses_of_its_ports() {
    let job = test_kit::builders::batch("sum", 1);
    let mut alloc = test_kit::builders::allocation(1, &job, NodeId::from_random(1));
    alloc.resources.ports = vec![AllocatedPort {
        label: "db-x".to_owned(),
        value: 21_429,
        to: 5_432,
        host_ip: "10.0.0.7".to_owned(),
        ..AllocatedPort::default()
    }];
    let group = &job.task_groups[0];
    let of = |address: &str, address_ipv6: &str| {
        let facts = NodeFacts::default().with_network(Some(model::NetworkStatus {
            interface: "eth0".to_owned(),
            address: address.to_owned(),
            address_ipv6: address_ipv6.to_owned(),
        }));
        let env = TaskEnv::new(&job, group, &group.tasks[0], &alloc, &facts, None);
        let mut lines = lines(env.into_variables());
        lines.retain(|line| line.contains("db_x") || line.contains("db-x"));
        lines
    };
    assert_eq!(
        of("172.26.64.2", ""),
        [
            "NOMAD_ADDR_db_x=10.0.0.7:21429",
            "NOMAD_ALLOC_ADDR_db-x=172.26.64.2:5432",
            "NOMAD_ALLOC_INTERFACE_db-x=eth0",
            "NOMAD_ALLOC_IP_db-x=172.26.64.2",
            "NOMAD_ALLOC_PORT_db-x=5432",
            "NOMAD_HOST_ADDR_db-x=10.0.0.7:21429",
            "NOMAD_HOST_IP_db-x=10.0.0.7",
            "NOMAD_HOST_PORT_db_x=21429",
            "NOMAD_IP_db_x=10.0.0.7",
            "NOMAD_PORT_db_x=5432",
        ]
    );
    let ipv6 = of("", "fd00::2");
    assert!(
        ipv6.contains(&"NOMAD_ALLOC_ADDR_db-x=[fd00::2]:5432".to_owned()),
        "{ipv6:?}"
    );
    // In mode none there is no address.
    assert!(
        !of("", "")
            .iter()
            .any(|line| line.contains("NOMAD_ALLOC_IP"))
    );
}

#[test]
fn a_simulated_node_has_no_directories() {
    let job = test_kit::builders::batch("sum", 1);
    let alloc = test_kit::builders::allocation(1, &job, NodeId::from_random(1));
    let facts = NodeFacts::default();
    let group = &job.task_groups[0];
    let env = TaskEnv::new(&job, group, &group.tasks[0], &alloc, &facts, None);
    assert!(
        !lines(env.into_variables())
            .iter()
            .any(|line| line.contains("_DIR="))
    );
}

#[test]
fn a_task_sees_its_own_ports_by_label_and_those_of_other_tasks_by_task_and_label() {
    let mut job = test_kit::builders::service("shop", 1);
    let mut other = job.task_groups[0].tasks[0].clone();
    other.name = "cache-1".to_owned();
    job.task_groups[0].tasks.push(other);
    let node = test_kit::builders::node(1);
    let mut alloc = test_kit::builders::allocation(7, &job, node.id);
    let group = &job.task_groups[0];
    let port = |task: &str, label: &str, value| AllocatedPort {
        label: label.to_owned(),
        value,
        to: value,
        host_ip: "10.0.0.5".to_owned(),
        task: task.to_owned(),
        ..AllocatedPort::default()
    };
    let first = group.tasks[0].name.clone();
    alloc.resources.ports = vec![
        port("", "admin", 1),
        port("", "db", 2),
        port(&first, "db", 3),
        port("cache-1", "db", 4),
    ];
    let facts = NodeFacts::new(&node, "global");
    let ports_of = |env: TaskEnv<'_>| -> Vec<String> {
        let variables = lines(env.into_variables());
        let is_port = |line: &String| line.starts_with("NOMAD_PORT_");
        variables.into_iter().filter(is_port).collect()
    };
    let own = TaskEnv::new(&job, group, &group.tasks[0], &alloc, &facts, None);
    assert_eq!(
        own.interpolate("${NOMAD_ADDR_cache_1_db} ${NOMAD_IP_cache_1_db}"),
        "10.0.0.5:4 10.0.0.5"
    );
    assert_eq!(
        ports_of(own),
        [
            "NOMAD_PORT_admin=1",
            "NOMAD_PORT_cache_1_db=4",
            "NOMAD_PORT_db=3"
        ]
    );
    let of_group = TaskEnv::of_group(&job, group, &alloc, &facts);
    assert_eq!(
        ports_of(of_group),
        ["NOMAD_PORT_admin=1", "NOMAD_PORT_db=2"]
    );
    let used: Vec<_> = alloc.resources.ports_of(&first).collect();
    assert_eq!(
        used.iter().map(|it| it.value).collect::<Vec<_>>(),
        [3, 1, 2]
    );
}
