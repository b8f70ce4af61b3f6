//! The JSON of each object, kept in `tests/golden`: a change there breaks programs that read it.

use crate::fixtures;
use crate::json;
use crate::output::json::pretty;
use crate::render::tests::golden;

#[test]
fn a_job_and_its_stub() {
    let job = fixtures::job();
    golden("job.json", &pretty(&json::job::Wrapped { job }));
    golden(
        "job_stub.json",
        &pretty(&json::job::JobStub::from(&fixtures::stub())),
    );
}

#[test]
fn the_output_of_inspect_reads_back_as_the_same_job() {
    let job = fixtures::job();
    let text = pretty(&json::job::Wrapped { job });
    let parsed = jobspec::parse_api_json("web.json", &text).unwrap();
    let sent = fixtures::job();
    assert_eq!(parsed.job.id, sent.id);
    assert_eq!(parsed.job.task_groups, sent.task_groups);
}

#[test]
fn an_allocation() {
    let mut alloc = fixtures::alloc();
    alloc.reschedules = vec![proto::v1::RescheduleEvent {
        time_ns: fixtures::NOW,
        previous_alloc_id: fixtures::OLD_ALLOC.to_owned(),
        previous_node_id: fixtures::NODE.to_owned(),
        delay: Some(fixtures::duration(30)),
    }];
    golden(
        "alloc.json",
        &pretty(&json::alloc::Allocation::from(&alloc)),
    );
    let old = fixtures::old_alloc();
    let old = json::alloc::Allocation::from(&old);
    let value = serde_json::to_value(&old).unwrap();
    assert!(value["DeploymentStatus"].is_null());
    assert!(value["RescheduleTracker"].is_null());
}

#[test]
fn the_share_of_each_task_is_in_an_allocation_with_its_job() {
    let mut job = fixtures::job();
    let server = &mut job.task_groups[0].tasks[0];
    let resources = server.resources.as_mut().unwrap();
    resources.memory_max_mib = Some(512);
    resources.networks = vec![proto::v1::Network {
        reserved_ports: vec![proto::v1::Port {
            label: Some("admin".to_owned()),
            ..proto::v1::Port::default()
        }],
        ..proto::v1::Network::default()
    }];
    let mut proxy = server.clone();
    proxy.name = Some("proxy".to_owned());
    proxy.lifecycle = Some(proto::v1::Lifecycle {
        hook: Some("prestart".to_owned()),
        sidecar: Some(true),
        wait_for: None,
    });
    job.task_groups[0].tasks.push(proxy);
    let mut alloc = fixtures::alloc();
    let held = alloc.resources.as_mut().unwrap();
    let port = |label: &str, value| proto::v1::AllocatedPort {
        label: label.to_owned(),
        value,
        task: "server".to_owned(),
        ..proto::v1::AllocatedPort::default()
    };
    held.ports = vec![port("admin", 8_080), port("http", 23_456)];
    held.cores = vec![proto::v1::AllocatedCores {
        task: "server".to_owned(),
        ids: vec![0, 3],
    }];
    held.devices = vec![proto::v1::AllocatedDevice {
        task: "proxy".to_owned(),
        vendor: "nvidia".to_owned(),
        instance_ids: vec!["GPU-1".to_owned()],
        ..proto::v1::AllocatedDevice::default()
    }];
    let shown = |alloc: &proto::v1::Allocation| {
        serde_json::to_value(json::alloc::Allocation::new(alloc, Some(&job))).unwrap()
    };
    let value = shown(&alloc);
    assert_eq!(value["TaskResources"]["server"]["MemoryMaxMB"], 512);
    let resources = &value["AllocatedResources"];
    let lifecycles = &resources["TaskLifecycles"];
    assert_eq!(lifecycles["proxy"]["Hook"], "prestart");
    assert_eq!(lifecycles["proxy"]["Sidecar"], true);
    assert!(lifecycles["server"].is_null());
    let server = &resources["Tasks"]["server"];
    assert_eq!(server["Cpu"]["ReservedCores"], serde_json::json!([0, 3]));
    assert_eq!(server["Networks"][0]["ReservedPorts"][0]["Value"], 8_080);
    assert_eq!(server["Networks"][0]["DynamicPorts"][0]["Value"], 23_456);
    let proxy = &resources["Tasks"]["proxy"];
    assert_eq!(proxy["Devices"][0]["DeviceIDs"][0], "GPU-1");
    // The maximum is reported only where it is in effect.
    assert_eq!(proxy["Memory"]["MemoryMaxMB"], 0);
    alloc.resources.as_mut().unwrap().memory_oversubscribed = true;
    let proxy = &shown(&alloc)["AllocatedResources"]["Tasks"]["proxy"];
    assert_eq!(proxy["Memory"]["MemoryMaxMB"], 512);
}

#[test]
fn an_explanation() {
    let (eval, explanation) = (fixtures::failed_eval(), fixtures::explanation());
    let shown = json::explain::Explanation::new(&eval, &explanation);
    golden("eval_explain.json", &pretty(&shown));
}

#[test]
fn an_evaluation() {
    golden(
        "eval.json",
        &pretty(&json::eval::Evaluation::from(&fixtures::eval())),
    );
    let blocked = fixtures::blocked_eval();
    golden(
        "eval_blocked.json",
        &pretty(&json::eval::Evaluation::from(&blocked)),
    );
}

#[test]
fn a_deployment() {
    let deployment = fixtures::deployment();
    golden(
        "deployment.json",
        &pretty(&json::deployment::Deployment::from(&deployment)),
    );
}

#[test]
fn a_node() {
    let mut node = fixtures::node();
    node.reserved_ports = vec![22, 80];
    golden("node.json", &pretty(&json::node::Node::from(&node)));
    let node = fixtures::draining_node();
    golden(
        "node_draining.json",
        &pretty(&json::node::Node::from(&node)),
    );
}

#[test]
fn a_leader() {
    golden(
        "leader.json",
        &pretty(&json::operator::Leader::from(&fixtures::leader())),
    );
}

#[test]
fn a_plan() {
    let text = |count: u32, level: &str| {
        format!(
            r#"
job "web" {{
  group "app" {{
    count = {count}
    task "server" {{
      driver = "raw_exec"
      config {{ command = "/bin/true" }}
      env {{ LEVEL = "{level}" }}
    }}
  }}
}}
"#
        )
    };
    let updates = jobdiff::GroupUpdates {
        place: 1,
        destructive_update: 2,
        ..jobdiff::GroupUpdates::default()
    };
    let mut answer = fixtures::planned(Some(&text(2, "info")), &text(3, "debug"), updates);
    answer.failed_task_groups = [("app".to_owned(), fixtures::metric())].into();
    answer.created_evaluations = vec![fixtures::blocked_eval()];
    let warnings = ["one".to_owned(), "two".to_owned()];
    let object = json::plan::Plan::new(&answer, &warnings, true);
    golden("plan.json", &pretty(&object));
    let annotations = answer.annotations.as_mut().unwrap();
    annotations.preempted_allocations = vec![fixtures::alloc()];
    let without = serde_json::to_value(json::plan::Plan::new(&answer, &[], false)).unwrap();
    assert!(without["Diff"].is_null());
    let preempted = &without["Annotations"]["PreemptedAllocs"][0];
    assert_eq!(preempted["ID"], fixtures::ALLOC);
}

#[test]
fn a_scheduler_configuration() {
    let config = fixtures::scheduler_config();
    golden(
        "scheduler_config.json",
        &pretty(&json::operator::SchedulerConfig::from(&config)),
    );
}

#[test]
fn a_node_pool() {
    let (pool, plain) = (fixtures::node_pool(), fixtures::default_pool());
    let pools = [
        json::node_pool::NodePool::from(&pool),
        json::node_pool::NodePool::from(&plain),
    ];
    golden("node_pools.json", &pretty(&pools));
}

#[test]
fn a_scaling_policy_of_an_autoscaler_is_an_object() {
    let policy = fixtures::scaling_policy();
    let shown = serde_json::to_value(json::scaling::ScalingPolicy::from(&policy)).unwrap();
    assert_eq!(shown["Policy"]["cooldown"], "1m");
    assert_eq!(shown["Target"]["Job"], "web");
    let none = proto::v1::ScalingPolicy::default();
    let shown = serde_json::to_value(json::scaling::ScalingPolicy::from(&none)).unwrap();
    assert!(shown["Policy"].is_null());
}

#[test]
fn a_registration_and_a_check_have_nomads_keys() {
    let registration = fixtures::registration();
    let shown = serde_json::to_value(json::service::ServiceRegistration::from(&registration));
    let shown = shown.unwrap();
    let mut keys: Vec<&str> = shown
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    assert_eq!(
        keys.join(" "),
        "Address AllocID CreateIndex Datacenter ID JobID ModifyIndex Namespace NodeID Port ServiceName Tags"
    );
    let checks = [fixtures::check()];
    let shown = serde_json::to_value(json::service::checks(&checks)).unwrap();
    let check = &shown[&checks[0].id];
    assert_eq!(check["Status"], "failure");
    assert_eq!(check.get("Task"), None, "the check is the group's");
}
