//! Dedicated cores and devices, memory oversubscription, and the maximum number of allocations.

use model::job::DeviceRequest;
use model::{
    Affinity, AllocMetric, Allocation, Constraint, Job, JobType, MemoryMax, Node, Operator,
    PoolConfiguration, TriggeredBy,
};
use scheduler::Decision;
use scheduler::explain::{ExplainRequest, explain};
use test_kit::builders::{self, gpus};

use crate::cluster::TestCluster;

fn run(cluster: &mut TestCluster, job: &Job) -> Decision {
    cluster.register(job.clone());
    let eval = cluster.add_eval(job, TriggeredBy::JobRegister);
    cluster.run(eval)
}

fn placed(decision: &Decision) -> Vec<&Allocation> {
    decision.plan.placements.values().flatten().collect()
}

fn failure<'a>(decision: &'a Decision, group: &str) -> &'a AllocMetric {
    let outcome = decision.plan.eval_outcome.as_ref().unwrap();
    &outcome.failed_task_groups[group]
}

fn gpu_request(count: u64) -> DeviceRequest {
    DeviceRequest {
        name: "gpu".into(),
        count,
        constraints: Vec::new(),
        affinities: Vec::new(),
    }
}

fn node_with(number: u128, edit: impl FnOnce(&mut Node)) -> Node {
    let mut node = builders::node(number);
    edit(&mut node);
    node.computed_class = placement::computed_class(&node);
    node
}

/// A service of one group, called `web`.
fn job(name: &str, count: u32, edit: impl FnOnce(&mut model::Task)) -> Job {
    let mut job = builders::service(name, count);
    edit(&mut job.task_groups[0].tasks[0]);
    job
}

fn system(name: &str) -> Job {
    let mut job = builders::service(name, 1);
    job.job_type = JobType::System;
    job.task_groups = vec![builders::group("web", JobType::System, 1)];
    job
}

fn core_job(name: &str, count: u32, cores: u32) -> Job {
    job(name, count, |task| {
        task.resources.cpu_mhz = 0;
        task.resources.cores = cores;
    })
}

#[test]
fn scenario_119_cores_are_given_lowest_first_and_counted_by_their_speed() {
    let mut cluster = TestCluster::new(1);
    cluster.put_node(node_with(1, |node| {
        node.cores = [(0, 900), (1, 1_000), (2, 1_100), (3, 500)].into();
    }));
    let first = run(&mut cluster, &core_job("first", 1, 1));
    assert_eq!(placed(&first)[0].resources.cores[0].ids, [0]);
    let second = run(&mut cluster, &core_job("second", 1, 2));
    let alloc = placed(&second)[0];
    assert_eq!(alloc.resources.cores[0].ids, [1, 2]);
    assert_eq!(alloc.resources.total.cpu_mhz, 2_100);
    let third = run(&mut cluster, &core_job("third", 1, 2));
    let dimensions = &failure(&third, "web").dimension_exhausted;
    assert_eq!(dimensions["cores"], 1, "{dimensions:?}");
}

#[test]
fn scenario_120_a_node_that_has_as_many_as_it_takes_is_full() {
    let mut cluster = TestCluster::new(2);
    cluster.put_node(node_with(1, |node| node.max_allocs = 1));
    run(&mut cluster, &builders::service("first", 1));
    for job in [builders::service("second", 1), system("everywhere")] {
        let decision = run(&mut cluster, &job);
        let group = &job.task_groups[0].name;
        let dimensions = &failure(&decision, group).dimension_exhausted;
        assert_eq!(dimensions["max allocation exceeded"], 1, "{dimensions:?}");
    }
}

#[test]
fn scenario_121_a_request_is_served_by_one_model_and_no_node_speaks_for_its_class() {
    let mut cluster = TestCluster::new(3);
    cluster.put_node(node_with(1, |node| {
        node.devices = vec![gpus("k80", &["a"]), gpus("t4", &["b"])];
    }));
    let two = |name| {
        job(name, 1, |task| {
            task.resources.devices = vec![gpu_request(2)]
        })
    };
    let first = run(&mut cluster, &two("first"));
    let filtered = &failure(&first, "web").constraint_filtered;
    assert_eq!(filtered["missing devices"], 1, "{filtered:?}");
    let roomy = node_with(2, |node| {
        node.devices = vec![gpus("k80", &["a"]), gpus("t4", &["b", "c"])];
    });
    assert_eq!(
        roomy.computed_class,
        cluster.node_named("n1").computed_class
    );
    let roomy = cluster.put_node(roomy);
    let second = run(&mut cluster, &two("second"));
    let alloc = placed(&second)[0];
    assert_eq!(alloc.node_id, roomy);
    assert_eq!(alloc.resources.devices[0].instance_ids, ["b", "c"]);
    let third = run(&mut cluster, &two("third"));
    let dimensions = &failure(&third, "web").dimension_exhausted;
    assert_eq!(dimensions["devices: no devices match request"], 1);
}

#[test]
fn a_preferred_model_decides_between_nodes_and_is_in_the_scores() {
    let mut cluster = TestCluster::new(4);
    for (number, name) in [(1, "k80"), (2, "a100")] {
        cluster.put_node(node_with(number, |node| {
            node.devices = vec![gpus(name, &["a", "b"])];
        }));
    }
    let liking = |weight| Affinity {
        left: "${device.model}".into(),
        operator: Operator::Equal,
        right: "a100".into(),
        weight,
    };
    for (weight, node) in [(50, "n2"), (-50, "n1")] {
        let job = job(&format!("w{weight}"), 1, |task| {
            let mut request = gpu_request(1);
            request.affinities = vec![liking(weight)];
            task.resources.devices = vec![request];
        });
        let decision = run(&mut cluster, &job);
        let alloc = placed(&decision)[0];
        assert_eq!(alloc.node_id, cluster.node_named(node).id, "{weight}");
        let parts = alloc.metric.as_ref().unwrap().read().score_parts.unwrap();
        let want = if weight > 0 { 1_000 } else { 0 };
        assert_eq!(parts.devices, Some(want), "{weight}");
    }
}

/// Nomad's system scheduler gives the cores up.
#[test]
fn an_update_in_place_keeps_cores_and_devices() {
    for is_everywhere in [false, true] {
        let mut cluster = TestCluster::new(5);
        cluster.put_node(node_with(1, |node| {
            node.cores = [(0, 1_000), (1, 1_000)].into();
            node.devices = vec![gpus("k80", &["a", "b"])];
        }));
        let mut job = if is_everywhere {
            system("web")
        } else {
            builders::service("web", 1)
        };
        let task = &mut job.task_groups[0].tasks[0];
        task.resources.cpu_mhz = 0;
        task.resources.cores = 2;
        task.resources.devices = vec![gpu_request(1)];
        let first = run(&mut cluster, &job);
        let before = placed(&first)[0].clone();
        assert_eq!(before.resources.cores[0].ids, [0, 1]);
        job.task_groups[0].tasks[0].kill_timeout *= 2;
        let second = run(&mut cluster, &job);
        let after = placed(&second)[0];
        assert_eq!(after.id, before.id, "in place");
        assert_eq!(after.job_version, before.job_version + 1);
        assert_eq!(after.resources, before.resources);
    }
}

#[test]
fn an_update_may_take_the_cores_that_its_predecessor_gives_up() {
    let mut cluster = TestCluster::new(6);
    cluster.put_node(node_with(1, |node| node.cores = [(0, 1_000)].into()));
    let mut job = core_job("web", 1, 1);
    job.task_groups[0].update = None;
    run(&mut cluster, &job);
    job.task_groups[0].tasks[0]
        .env
        .insert("A".to_owned(), "B".to_owned());
    let decision = run(&mut cluster, &job);
    assert_eq!(placed(&decision)[0].resources.cores[0].ids, [0]);
    assert_eq!(decision.plan.stops.len(), 1);
}

#[test]
fn memory_is_oversubscribed_where_the_operator_says_so() {
    for (allowed, of_pool, memory_max, want) in [
        (true, None, MemoryMax::Mib(900), true),
        (true, None, MemoryMax::Unlimited, true),
        (true, None, MemoryMax::AsAsked, false),
        (false, None, MemoryMax::Mib(900), false),
        // Its pool has the last word.
        (false, Some(true), MemoryMax::Mib(900), true),
        (true, Some(false), MemoryMax::Mib(900), false),
    ] {
        let mut cluster = TestCluster::new(7);
        cluster.config.memory_oversubscription_enabled = allowed;
        let pool = PoolConfiguration {
            memory_oversubscription_enabled: of_pool,
            ..PoolConfiguration::default()
        };
        cluster.config.pools.insert("default".into(), pool);
        cluster.store_config();
        cluster.put_node(builders::node(1));
        let job = job("web", 1, |task| task.resources.memory_max = memory_max);
        let decision = run(&mut cluster, &job);
        let resources = &placed(&decision)[0].resources;
        assert_eq!(
            resources.memory_oversubscribed, want,
            "{memory_max:?} {of_pool:?}"
        );
        let asked = u64::from(job.task_groups[0].tasks[0].resources.memory_mib);
        assert_eq!(resources.total.memory_mib, asked, "no more is set aside");
    }
}

#[test]
fn an_explanation_does_not_ask_to_free_devices_that_a_node_never_had() {
    let mut cluster = TestCluster::new(8);
    cluster.put_node(builders::node(1));
    let job = job("web", 1, |task| {
        task.resources.devices = vec![gpu_request(1)]
    });
    cluster.register(job.clone());
    let eval = cluster.add_eval(&job, TriggeredBy::JobRegister);
    cluster.run(eval);
    let snapshot = cluster.snapshot();
    let request = ExplainRequest {
        eval: snapshot.eval(eval).unwrap(),
        node: None,
        now: cluster.now,
        seed: 7,
    };
    let explanation = explain(&snapshot, &request);
    let nearest = explanation.groups[0].nearest.as_ref().unwrap();
    let reasons: Vec<_> = nearest.blockers.iter().map(|one| one.reason()).collect();
    assert_eq!(reasons, ["missing devices"]);
}

/// A node whose devices only fail a constraint is nearer than a node without devices.
#[test]
fn an_explanation_names_the_constraint_that_devices_fail() {
    let mut cluster = TestCluster::new(9);
    cluster.put_node(node_with(1, |node| node.name = "a1".into()));
    cluster.put_node(node_with(2, |node| {
        node.name = "g1".into();
        node.devices = vec![gpus("k80", &["a", "b", "c", "d"])];
        let kind = &mut node.devices[0];
        kind.attributes.insert("memory".into(), "12 GiB".into());
    }));
    let job = job("web", 1, |task| {
        let mut request = gpu_request(1);
        request.constraints = vec![Constraint {
            left: "${device.attr.memory}".into(),
            operator: Operator::GreaterOrEqual,
            right: "24 GiB".into(),
        }];
        task.resources.devices = vec![request];
    });
    cluster.register(job.clone());
    let eval = cluster.add_eval(&job, TriggeredBy::JobRegister);
    let decision = cluster.run(eval);
    let filtered = &failure(&decision, "web").constraint_filtered;
    let reason = "missing devices: gpu with ${device.attr.memory} >= 24 GiB";
    assert_eq!(filtered[reason], 1, "{filtered:?}");
    assert_eq!(filtered["missing devices"], 1, "{filtered:?}");
    let snapshot = cluster.snapshot();
    let explained = |node: &str| {
        let request = ExplainRequest {
            eval: snapshot.eval(eval).unwrap(),
            node: Some(cluster.node_named(node).id),
            now: cluster.now,
            seed: 7,
        };
        explain(&snapshot, &request).groups.remove(0)
    };
    let group = explained("a1");
    let nearest = group.nearest.unwrap();
    assert_eq!(nearest.node_name, "g1");
    let blocker = &nearest.blockers[0];
    assert_eq!(blocker.reason(), reason);
    assert_eq!(blocker.missing(), None);
    assert_eq!(
        blocker.change("g1"),
        "device \"gpu\": constraint ${device.attr.memory} >= 24 GiB: nvidia/gpu/k80 on node g1 has \
         \"12 GiB\""
    );
    // All of them are missing, and they have constraints.
    let absent = &group.node.unwrap().blockers[0];
    assert_eq!(
        absent.change("a1"),
        "device \"gpu\": add 1 of one model that meets its constraints on node a1"
    );
}

#[test]
fn one_core_is_not_one_cores() {
    let mut cluster = TestCluster::new(10);
    cluster.put_node(node_with(1, |node| {
        node.cores = [(0, 1_000)].into();
    }));
    let job = core_job("web", 1, 2);
    cluster.register(job.clone());
    let eval = cluster.add_eval(&job, TriggeredBy::JobRegister);
    cluster.run(eval);
    let snapshot = cluster.snapshot();
    let request = ExplainRequest {
        eval: snapshot.eval(eval).unwrap(),
        node: None,
        now: cluster.now,
        seed: 7,
    };
    let nearest = explain(&snapshot, &request)
        .groups
        .remove(0)
        .nearest
        .unwrap();
    assert_eq!(
        nearest.blockers[0].change("n1"),
        "cores: ask 1 core less, node n1 has 1 core in all"
    );
}

/// Metrics name the node pool of the job.
#[test]
fn a_failure_names_the_pool_of_the_job() {
    for is_everywhere in [false, true] {
        let mut cluster = TestCluster::new(11);
        cluster.put_node(node_with(1, |node| node.resources.cpu_mhz = 100));
        let job = match is_everywhere {
            true => system("web"),
            false => job("web", 1, |_| {}),
        };
        let decision = run(&mut cluster, &job);
        assert_eq!(&*failure(&decision, "web").node_pool, "default");
    }
}
