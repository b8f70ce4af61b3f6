//! Placements: tests that show only in nodes, scores and ids.

use std::collections::BTreeSet;

use model::{ClientStatus, TriggeredBy};
use test_kit::builders;

use crate::cluster::TestCluster;

fn test_cluster(seed: u64, nodes: u128) -> TestCluster {
    let mut cluster = TestCluster::new(seed);
    for number in 1..=nodes {
        cluster.put_node(builders::node(number));
    }
    cluster
}

#[test]
fn the_same_arguments_give_the_same_plan() {
    let mut cluster = test_cluster(1, 10);
    let job = builders::service("web", 20);
    cluster.register(job.clone());
    let eval = cluster.add_eval(&job, TriggeredBy::JobRegister);
    let (snapshot, eval) = (cluster.snapshot(), cluster.eval(eval));
    let first = scheduler::schedule(&snapshot, &eval, cluster.now, 7);
    assert_eq!(scheduler::schedule(&snapshot, &eval, cluster.now, 7), first);
    let other = scheduler::schedule(&snapshot, &eval, cluster.now, 8);
    let nodes = |plan: &model::Plan| plan.placements.keys().copied().collect::<Vec<_>>();
    let ids = |plan: &model::Plan| {
        plan.placements
            .values()
            .flatten()
            .map(|alloc| alloc.id)
            .collect::<BTreeSet<_>>()
    };
    assert!(ids(&first.plan).is_disjoint(&ids(&other.plan)));
    assert!(!nodes(&first.plan).is_empty());
}

#[test]
fn near_ties_are_broken_by_the_seed() {
    let mut cluster = test_cluster(2, 50);
    let job = builders::service("web", 1);
    cluster.register(job.clone());
    let eval = cluster.add_eval(&job, TriggeredBy::JobRegister);
    let (snapshot, eval) = (cluster.snapshot(), cluster.eval(eval));
    let chosen: BTreeSet<_> = (0..20)
        .flat_map(|seed| {
            scheduler::schedule(&snapshot, &eval, cluster.now, seed)
                .plan
                .placements
                .into_keys()
        })
        .collect();
    assert!(
        chosen.len() > 10,
        "twenty workers chose {} of fifty equal nodes",
        chosen.len()
    );
}

#[test]
fn the_fuller_node_is_chosen_by_whatever_seed() {
    let mut cluster = test_cluster(3, 20);
    let first = builders::service("first", 1);
    cluster.register(first.clone());
    let eval = cluster.add_eval(&first, TriggeredBy::JobRegister);
    let fuller = *cluster.run(eval).plan.placements.keys().next().unwrap();
    let second = builders::service("second", 1);
    cluster.register(second.clone());
    let eval = cluster.add_eval(&second, TriggeredBy::JobRegister);
    let (snapshot, eval) = (cluster.snapshot(), cluster.eval(eval));
    for seed in 0..20 {
        let plan = scheduler::schedule(&snapshot, &eval, cluster.now, seed).plan;
        assert_eq!(
            plan.placements.keys().collect::<Vec<_>>(),
            [&fuller],
            "seed {seed}"
        );
    }
}

#[test]
fn allocations_of_a_group_avoid_each_other() {
    let mut cluster = test_cluster(4, 10);
    let job = builders::service("web", 10);
    cluster.register(job.clone());
    let eval = cluster.add_eval(&job, TriggeredBy::JobRegister);
    let plan = cluster.run(eval).plan;
    assert_eq!(plan.placements.len(), 10, "one on each node");
    let metric = plan
        .placements
        .values()
        .flatten()
        .next()
        .unwrap()
        .metric
        .clone()
        .unwrap();
    let metric = metric.read();
    assert_eq!((metric.nodes_evaluated, metric.nodes_in_pool), (10, 10));
    assert!(metric.score_per_mille > 0);
}

/// The numbers of a group's 20 allocations on six equal nodes, the highest first.
fn shares(edit: impl Fn(&mut model::Job)) -> Vec<usize> {
    let mut cluster = test_cluster(5, 6);
    let mut job = builders::service("web", 20);
    let resources = &mut job.task_groups[0].tasks[0].resources;
    (resources.cpu_mhz, resources.memory_mib) = (20, 20);
    edit(&mut job);
    cluster.register(job.clone());
    let eval = cluster.add_eval(&job, TriggeredBy::JobRegister);
    let (snapshot, eval) = (cluster.snapshot(), cluster.eval(eval));
    let plan = scheduler::schedule(&snapshot, &eval, cluster.now, 7).plan;
    let mut shares: Vec<usize> = plan.placements.values().map(Vec::len).collect();
    shares.sort_unstable_by(|one, other| other.cmp(one));
    shares
}

#[test]
fn a_boost_below_zero_on_all_nodes_still_balances() {
    use model::{Affinity, Operator, Spread};
    let even = [4, 4, 3, 3, 3, 3];
    assert_eq!(shares(|_| {}), even);
    let nowhere = shares(|job| {
        job.spreads.push(Spread {
            attribute: "${meta.rack}".into(),
            weight: 50,
            targets: Vec::new(),
        });
    });
    assert_eq!(nowhere, even, "no node has the value");
    let disliked = shares(|job| {
        job.affinities.push(Affinity {
            left: "${node.datacenter}".into(),
            operator: Operator::Equal,
            right: "dc1".into(),
            weight: -50,
        });
    });
    assert_eq!(disliked, even, "every node is where nothing should be");
}

#[test]
fn a_failed_allocation_is_not_placed_where_it_failed() {
    let mut cluster = test_cluster(5, 2);
    let mut job = builders::service("web", 1);
    job.task_groups[0].reschedule.as_mut().unwrap().delay = std::time::Duration::ZERO;
    cluster.register(job.clone());
    let eval = cluster.add_eval(&job, TriggeredBy::JobRegister);
    cluster.run(eval);
    let mut visited = Vec::new();
    for _ in 0..4 {
        let views = cluster.allocs(&job.key());
        let live = views.iter().find(|view| !view.is_terminal()).unwrap();
        visited.push(live.alloc.node_id);
        cluster.report(live.alloc.id, ClientStatus::Failed);
        let eval = cluster.add_eval(&job, TriggeredBy::AllocFailure);
        cluster.run(eval);
        cluster.wait(std::time::Duration::from_secs(60));
    }
    assert_ne!(visited[0], visited[1]);
    let last = cluster
        .allocs(&job.key())
        .into_iter()
        .max_by_key(|view| view.create_index)
        .unwrap();
    assert!(
        last.alloc.reschedules.len() >= 3,
        "{:?}",
        last.alloc.reschedules
    );
    assert!(last.alloc.previous_alloc.is_some());
}

#[test]
fn sticky_data_brings_its_allocation_back_to_its_node() {
    for seed in 0..10 {
        let mut cluster = test_cluster(seed, 10);
        let mut job = builders::service("web", 1);
        job.task_groups[0].ephemeral_disk.sticky = true;
        cluster.register(job.clone());
        let eval = cluster.add_eval(&job, TriggeredBy::JobRegister);
        let before = cluster.run(eval).plan;
        job.task_groups[0].tasks[0]
            .env
            .insert("A".into(), "new".into());
        cluster.register(job.clone());
        let eval = cluster.add_eval(&job, TriggeredBy::JobRegister);
        let after = cluster.run(eval).plan;
        assert!(
            before.placements.keys().eq(after.placements.keys()),
            "seed {seed}"
        );
    }
}

#[test]
fn an_update_may_take_the_room_that_its_predecessor_gives_up() {
    let mut cluster = TestCluster::new(6);
    let mut node = builders::node(1);
    node.resources.cpu_mhz = 1_000;
    cluster.put_node(node);
    let mut job = builders::service("web", 2);
    cluster.register(job.clone());
    let eval = cluster.add_eval(&job, TriggeredBy::JobRegister);
    cluster.run(eval);
    job.task_groups[0].tasks[0]
        .env
        .insert("A".into(), "new".into());
    cluster.register(job.clone());
    let eval = cluster.add_eval(&job, TriggeredBy::JobRegister);
    let plan = cluster.run(eval).plan;
    assert_eq!(plan.placement_count(), 2);
    assert_eq!(plan.stops.values().map(Vec::len).sum::<usize>(), 2);
}

#[test]
fn a_blocked_evaluation_names_the_classes_that_cannot_help() {
    let mut cluster = TestCluster::new(7);
    let classes = [("dc1", "v1:full"), ("dc2", "v1:elsewhere")];
    for (number, (datacenter, class)) in (1..).zip(classes) {
        let mut node = builders::node(number);
        node.datacenter = datacenter.into();
        node.computed_class = class.into();
        node.resources.cpu_mhz = 100;
        cluster.put_node(node);
    }
    let mut job = builders::service("web", 1);
    job.datacenters = vec!["dc1".into()];
    cluster.register(job.clone());
    let eval = cluster.add_eval(&job, TriggeredBy::JobRegister);
    let plan = cluster.run(eval).plan;
    let blocked = &plan.followup_evals[0];
    let expected = [
        ("v1:elsewhere".to_owned(), false),
        ("v1:full".to_owned(), true),
    ];
    assert_eq!(
        blocked
            .class_eligibility
            .clone()
            .into_iter()
            .collect::<Vec<_>>(),
        expected
    );
    assert!(!blocked.escaped_computed_class);
}

#[test]
fn a_class_that_helps_one_of_several_groups_is_waited_for() {
    let mut cluster = TestCluster::new(8);
    for (number, class) in [(1, "small"), (2, "large")] {
        let mut node = builders::node(number);
        node.node_class = class.into();
        node.computed_class = format!("v1:{class}");
        node.resources.cpu_mhz = 100;
        cluster.put_node(node);
    }
    let mut job = builders::service("web", 1);
    job.task_groups.clear();
    for class in ["large", "small"] {
        let mut group = builders::group(class, model::JobType::Service, 1);
        group.constraints.push(model::Constraint {
            left: "${node.class}".into(),
            operator: model::Operator::Equal,
            right: class.into(),
        });
        job.task_groups.push(group);
    }
    cluster.register(job.clone());
    let eval = cluster.add_eval(&job, TriggeredBy::JobRegister);
    let plan = cluster.run(eval).plan;
    let classes = &plan.followup_evals[0].class_eligibility;
    let expected = [("v1:large".to_owned(), true), ("v1:small".to_owned(), true)];
    assert_eq!(*classes, expected.into());
}

#[test]
fn scenario_111_a_unique_constraint_waits_for_any_node() {
    let mut cluster = test_cluster(8, 1);
    let mut job = builders::service("web", 1);
    job.constraints.push(model::Constraint {
        left: "${attr.unique.hostname}".into(),
        operator: model::Operator::Equal,
        right: "nobody".into(),
    });
    cluster.register(job.clone());
    let eval = cluster.add_eval(&job, TriggeredBy::JobRegister);
    let plan = cluster.run(eval).plan;
    let blocked = &plan.followup_evals[0];
    assert!(blocked.escaped_computed_class && blocked.class_eligibility.is_empty());
}

#[test]
fn scenario_107_distinct_hosts_of_a_job_count_its_groups_and_no_other_namespace() {
    let mut cluster = test_cluster(9, 2);
    let distinct = model::Constraint {
        left: String::new(),
        operator: model::Operator::DistinctHosts,
        right: String::new(),
    };
    let mut job = builders::service("web", 1);
    job.constraints.push(distinct);
    let mut elsewhere = job.clone();
    elsewhere.namespace = "elsewhere".into();
    elsewhere.task_groups[0].count = 2;
    cluster.register(elsewhere.clone());
    let eval = cluster.add_eval(&elsewhere, TriggeredBy::JobRegister);
    assert_eq!(
        cluster.run(eval).plan.placements.len(),
        2,
        "one on each node"
    );
    let api = builders::group("api", job.job_type, 2);
    job.task_groups.push(api);
    cluster.register(job.clone());
    let eval = cluster.add_eval(&job, TriggeredBy::JobRegister);
    let plan = cluster.run(eval).plan;
    assert_eq!(plan.placements.len(), 2, "both nodes take one of the job");
    let failed = plan.eval_outcome.unwrap().failed_task_groups;
    let reasons: Vec<_> = failed
        .values()
        .map(|metric| &metric.constraint_filtered)
        .collect();
    let both = [("distinct_hosts".to_owned(), 2)].into();
    assert_eq!(reasons, [&both], "one of three has no place");
}

#[test]
fn an_update_goes_on_where_hosts_and_properties_are_distinct() {
    let mut cluster = TestCluster::new(10);
    for number in 1..=6 {
        let mut node = builders::node(number);
        node.meta.insert("rack".into(), format!("r{}", number % 3));
        cluster.put_node(node);
    }
    let mut job = builders::service("web", 6);
    for (left, operator, right) in [
        ("", model::Operator::DistinctHosts, ""),
        ("${meta.rack}", model::Operator::DistinctProperty, "2"),
    ] {
        job.task_groups[0].constraints.push(model::Constraint {
            left: left.into(),
            operator,
            right: right.into(),
        });
    }
    for word in ["a", "b", "c"] {
        let task = &mut job.task_groups[0].tasks[0];
        task.env.insert("WORD".into(), word.into());
        cluster.register(job.clone());
        let eval = cluster.add_eval(&job, TriggeredBy::JobRegister);
        let plan = cluster.run(eval).plan;
        assert_eq!(plan.placement_count(), 6, "version {word}");
        assert_eq!(plan.placements.len(), 6, "version {word}");
    }
}

#[test]
fn one_too_many_on_a_node_that_is_down_is_lost_when_it_is_stopped() {
    let mut cluster = test_cluster(11, 2);
    let mut job = builders::service("web", 2);
    let group = &mut job.task_groups[0];
    group.constraints.push(model::Constraint {
        left: String::new(),
        operator: model::Operator::DistinctHosts,
        right: String::new(),
    });
    group.disconnect = Some(model::job::DisconnectStrategy {
        lost_after: None,
        stop_on_client_after: None,
        replace: false,
        reconcile: model::job::ReconcileChoice::BestScore,
    });
    cluster.register(job.clone());
    let eval = cluster.add_eval(&job, TriggeredBy::JobRegister);
    cluster.run(eval);
    for view in cluster.allocs(&job.key()) {
        cluster.report(view.alloc.id, ClientStatus::Running);
    }
    // Disconnected, then expired: it stays unknown, because nothing may replace it.
    let mut node = cluster.node_named("n1");
    for status in [model::NodeStatus::Disconnected, model::NodeStatus::Down] {
        node.status = status;
        cluster.put_node(node.clone());
        let eval = cluster.add_eval(&job, TriggeredBy::NodeUpdate);
        assert!(cluster.run(eval).plan.stops.is_empty(), "{status:?}");
    }
    job.task_groups[0].count = 1;
    cluster.register(job.clone());
    let eval = cluster.add_eval(&job, TriggeredBy::JobRegister);
    let plan = cluster.run(eval).plan;
    let stops: Vec<_> = plan.stops[&node.id].iter().collect();
    assert_eq!(stops[0].client_status, Some(ClientStatus::Lost));
    let eval = cluster.add_eval(&job, TriggeredBy::NodeUpdate);
    assert!(cluster.run(eval).plan.is_no_op());
}
