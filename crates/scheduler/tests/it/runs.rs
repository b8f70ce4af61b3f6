//! The retry loop: an evaluation through several plans.

use std::collections::{BTreeMap, BTreeSet};

use model::{Affinity, EvalStatus, JobType, NodeId, Operator, Plan, PlanResult, TriggeredBy};
use scheduler::{Attempt, Decision, PlanOutcome, Run};
use test_kit::builders;

use crate::cluster::TestCluster;

/// Runs an evaluation of `job_type` for `count` allocations until it ends; `answer` makes the
/// result of each plan. Returns the plans and the end.
fn carry(
    cluster: &mut TestCluster,
    job_type: JobType,
    count: u32,
    mut answer: impl FnMut(&mut TestCluster, usize, &Plan) -> PlanResult,
) -> (Vec<Decision>, PlanOutcome) {
    let mut job = builders::service("web", count);
    job.job_type = job_type;
    cluster.register(job.clone());
    let eval = cluster.add_eval(&job, TriggeredBy::JobRegister);
    let mut run = Run::new(eval, "token".to_owned());
    let mut decisions = Vec::new();
    for seed in 0..100 {
        let Attempt::Submit(decision) = run.attempt(&cluster.snapshot(), cluster.now, seed) else {
            panic!("another delivery ended it")
        };
        assert_eq!(decision.plan.eval_token, "token");
        let result = answer(cluster, decisions.len(), &decision.plan);
        let outcome = run.evaluate_result(&decision.plan, &result);
        decisions.push(*decision);
        if !matches!(outcome, PlanOutcome::Retry { .. }) {
            return (decisions, outcome);
        }
    }
    panic!("it never ends");
}

fn rejection(cluster: &TestCluster) -> PlanResult {
    PlanResult {
        refused: Some("no luck".to_owned()),
        refresh_index: cluster.snapshot().index(),
        ..PlanResult::default()
    }
}

fn is_give_up(decision: &Decision) -> bool {
    let outcome = decision.plan.eval_outcome.as_ref().unwrap();
    outcome.status == EvalStatus::Failed
}

#[test]
fn scenario_001_an_unknown_trigger_fails_the_evaluation() {
    let mut cluster = TestCluster::new(1);
    let job = builders::service("web", 1);
    cluster.register(job.clone());
    let eval = cluster.add_eval(&job, TriggeredBy::Scheduled);
    let decision = cluster.run(eval);
    assert!(decision.plan.is_no_op());
    let outcome = cluster.eval(eval).value;
    assert_eq!(outcome.status, EvalStatus::Failed);
    assert_eq!(
        outcome.status_description,
        "scheduler cannot handle 'scheduled' evaluation reason"
    );
}

#[test]
fn scenario_002_a_service_gives_up_after_five_plans() {
    let mut cluster = TestCluster::new(2);
    for number in 1..=3 {
        cluster.put_node(builders::node(number));
    }
    let (decisions, outcome) = carry(&mut cluster, JobType::Service, 10, |cluster, _, plan| {
        if plan.placement_count() > 0 {
            rejection(cluster)
        } else {
            cluster.commit(plan)
        }
    });
    assert_eq!(outcome, PlanOutcome::Done);
    assert_eq!(decisions.len(), 6, "five plans, and the one that says so");
    let last = &decisions[5].plan;
    let outcome = last.eval_outcome.as_ref().unwrap();
    assert_eq!(outcome.status, EvalStatus::Failed);
    assert_eq!(
        outcome.status_description,
        "maximum attempts reached (5): no luck"
    );
    let [blocked] = last.followup_evals.as_slice() else {
        panic!("one blocked evaluation")
    };
    assert_eq!(blocked.status, EvalStatus::Blocked);
    assert_eq!(blocked.triggered_by, TriggeredBy::MaxPlanAttempts);
    assert_eq!(
        blocked.status_description,
        "created due to placement conflicts"
    );
    assert_eq!(outcome.blocked_eval, Some(blocked.id));
    assert_eq!(cluster.eval(blocked.id).value, *blocked);
}

#[test]
fn scenario_003_the_other_types_give_up_after_as_many_plans_as_theirs_allow() {
    for (job_type, plans_max) in [
        (JobType::Batch, 2),
        (JobType::System, 5),
        (JobType::Sysbatch, 2),
    ] {
        let mut cluster = TestCluster::new(3);
        cluster.put_node(builders::node(1));
        let (decisions, _) = carry(&mut cluster, job_type, 1, |cluster, _, plan| {
            if plan.placement_count() > 0 {
                rejection(cluster)
            } else {
                cluster.commit(plan)
            }
        });
        assert_eq!(decisions.len(), plans_max + 1, "{}", job_type.as_str());
        let last = &decisions[plans_max].plan;
        let outcome = last.eval_outcome.as_ref().unwrap();
        assert_eq!(
            outcome.status_description,
            format!("maximum attempts reached ({plans_max}): no luck")
        );
        // The work is not lost. (Nomad leaves nothing behind for system and sysbatch jobs.)
        let [blocked] = last.followup_evals.as_slice() else {
            panic!("one blocked evaluation")
        };
        assert_eq!(blocked.triggered_by, TriggeredBy::MaxPlanAttempts);
        assert_eq!(blocked.status, EvalStatus::Blocked);
    }
}

#[test]
fn scenario_009_a_partial_commit_that_says_nothing_of_its_revision_is_an_error() {
    let mut cluster = TestCluster::new(9);
    let nodes: Vec<_> = (1..=2).map(builders::node).collect();
    for node in &nodes {
        cluster.put_node(node.clone());
    }
    let (decisions, outcome) = carry(&mut cluster, JobType::Service, 2, |cluster, _, plan| {
        let mut rest = plan.clone();
        rest.placements.remove(&nodes[1].id);
        let rejected = [(nodes[1].id, "no room".to_owned())];
        PlanResult {
            rejected_nodes: rejected.into(),
            refresh_index: 0,
            ..cluster.commit(&rest)
        }
    });
    assert_eq!(outcome, PlanOutcome::Unrefreshed);
    assert_eq!(decisions.len(), 1);
}

#[test]
fn scenario_010_nothing_to_do_still_makes_a_plan_with_its_counts() {
    let mut cluster = TestCluster::new(10);
    cluster.put_node(builders::node(1));
    let job = builders::service("web", 3);
    cluster.register(job.clone());
    let first = cluster.add_eval(&job, TriggeredBy::JobRegister);
    cluster.run(first);
    let dry = cluster.add_eval(&job, TriggeredBy::JobRegister);
    let snapshot = cluster.snapshot();
    let eval = snapshot.eval(dry).unwrap();
    let decision = scheduler::schedule(&snapshot, eval, cluster.now, 7);
    assert!(decision.plan.is_no_op(), "{:?}", decision.plan);
    let outcome = decision.plan.eval_outcome.as_ref().unwrap();
    assert_eq!(outcome.status, EvalStatus::Complete);
    let counts = decision.desired_updates["web"];
    assert_eq!(counts.ignore, 3, "{counts:?}");
}

#[test]
fn scenario_004_progress_starts_the_count_anew() {
    let mut cluster = TestCluster::new(4);
    for number in 1..=200 {
        cluster.put_node(builders::node(number));
    }
    let (decisions, outcome) = carry(&mut cluster, JobType::Service, 200, |cluster, _, plan| {
        // Half of the nodes are accepted, the others are rejected.
        let mut half = plan.clone();
        let nodes: Vec<_> = half.placements.keys().copied().collect();
        for node in nodes.iter().skip(nodes.len().div_ceil(2)) {
            half.placements.remove(node);
        }
        let is_cut = half.placements.len() < plan.placements.len();
        if is_cut {
            half.eval_outcome = None;
            half.followup_evals.clear();
        }
        let mut result = cluster.commit(&half);
        if is_cut {
            result.refresh_index = result.commit_index;
        }
        result
    });
    assert_eq!(outcome, PlanOutcome::Done);
    assert!(decisions.len() > 5, "{} plans", decisions.len());
    assert!(!decisions.iter().any(is_give_up));
    let placed = cluster.allocs(&builders::service("web", 1).key()).len();
    assert_eq!(placed, 200);
}

#[test]
fn scenario_073_a_rejected_plan_leaves_no_deployment_behind() {
    let mut cluster = TestCluster::new(8);
    for number in 1..=3 {
        cluster.put_node(builders::node(number));
    }
    let mut job = builders::service("web", 3);
    job.task_groups[0].update = Some(builders::rolling_update(1));
    cluster.register(job.clone());
    let eval = cluster.add_eval(&job, TriggeredBy::JobRegister);
    let mut run = Run::new(eval, String::new());
    let mut made = Vec::new();
    for seed in 0..3 {
        let Attempt::Submit(decision) = run.attempt(&cluster.snapshot(), cluster.now, seed) else {
            panic!("another delivery ended it")
        };
        made.extend(decision.plan.deployment.as_ref().map(|made| made.id));
        let result = if seed < 2 {
            rejection(&cluster)
        } else {
            cluster.commit(&decision.plan)
        };
        let outcome = run.evaluate_result(&decision.plan, &result);
        assert_eq!(outcome == PlanOutcome::Done, seed == 2);
    }
    let snapshot = cluster.snapshot();
    let stored: Vec<_> = snapshot.deployments().map(|one| one.value.id).collect();
    assert_eq!((made.len(), stored), (3, vec![made[2]]));
}

#[test]
fn a_give_up_that_is_refused_over_and_over_is_given_back() {
    let mut cluster = TestCluster::new(5);
    cluster.put_node(builders::node(1));
    let (decisions, outcome) = carry(&mut cluster, JobType::Batch, 1, |cluster, _, _| {
        rejection(cluster)
    });
    assert_eq!(outcome, PlanOutcome::RefusedTooOften);
    assert_eq!(
        decisions
            .iter()
            .filter(|decision| is_give_up(decision))
            .count(),
        3
    );
}

#[test]
fn an_evaluation_that_has_ended_is_left_alone() {
    let mut cluster = TestCluster::new(6);
    let job = builders::service("web", 1);
    cluster.register(job.clone());
    let eval = cluster.add_eval(&job, TriggeredBy::JobRegister);
    cluster.run(eval);
    let mut run = Run::new(eval, String::new());
    assert_eq!(
        run.attempt(&cluster.snapshot(), cluster.now, 1),
        Attempt::Overtaken
    );
}

#[test]
fn an_evaluation_names_the_deployment_that_is_under_way() {
    let mut cluster = TestCluster::new(1);
    cluster.put_node(builders::node(1));
    let mut job = builders::service("web", 3);
    job.task_groups[0].update = Some(builders::rolling_update(1));
    cluster.register(job.clone());
    let first = cluster.add_eval(&job, TriggeredBy::JobRegister);
    cluster.run(first);
    let deployment = cluster.eval(first).value.deployment_id;
    assert!(deployment.is_some());
    // As after a run of the same file.
    let again = cluster.add_eval(&job, TriggeredBy::JobRegister);
    let decision = cluster.run(again);
    assert!(decision.plan.deployment.is_none());
    assert_eq!(cluster.eval(again).value.deployment_id, deployment);
    job.stop = true;
    cluster.register(job.clone());
    let stopping = cluster.add_eval(&job, TriggeredBy::JobDeregister);
    cluster.run(stopping);
    assert_eq!(cluster.eval(stopping).value.deployment_id, None);
}

/// Runs 150 evaluations for one allocation through `refusals`, on 100 nodes of which each scores a
/// little less than the one before; returns the numbers of the chosen nodes.
fn chosen_after(refusals: &[PlanResult], affinities: Vec<Affinity>) -> BTreeSet<u64> {
    let mut cluster = TestCluster::new(9);
    let mut numbers = BTreeMap::new();
    for number in 0..100 {
        let mut node = builders::node(u128::from(number) + 1);
        // A larger node is less full, by more than a near-tie.
        node.resources.cpu_mhz += 50 * number;
        node.meta.insert("tens".into(), (number / 10).to_string());
        node.computed_class = placement::computed_class(&node);
        numbers.insert(node.id, number);
        cluster.put_node(node);
    }
    let mut job = builders::service("web", 1);
    job.affinities = affinities;
    cluster.register(job.clone());
    let eval = cluster.add_eval(&job, TriggeredBy::JobRegister);
    let chosen = (0..150).map(|seed| {
        let mut run = Run::new(eval, String::new());
        let mut attempt = |refused: Option<(&Plan, &PlanResult)>| {
            if let Some((plan, result)) = refused {
                run.evaluate_result(plan, result);
            }
            match run.attempt(&cluster.snapshot(), cluster.now, seed) {
                Attempt::Submit(decision) => decision.plan,
                Attempt::Overtaken => panic!("another delivery ended it"),
            }
        };
        let first = attempt(None);
        let plan = refusals
            .iter()
            .fold(first, |plan, refusal| attempt(Some((&plan, refusal))));
        let node = plan.placements.keys().next().expect("there is room");
        numbers[node]
    });
    chosen.collect()
}

fn collision() -> PlanResult {
    PlanResult {
        rejected_nodes: BTreeMap::from([(NodeId::default(), "cpu".to_owned())]),
        refresh_index: 1,
        ..PlanResult::default()
    }
}

#[test]
fn a_retry_after_a_collision_draws_among_the_best_nodes() {
    let alone = chosen_after(&[], Vec::new());
    assert_eq!(alone, BTreeSet::from([0]), "the best there is");
    let once = chosen_after(&[collision()], Vec::new());
    assert_eq!(once, (0..16).collect(), "one of the best 16");
    let twice = chosen_after(&[collision(), collision()], Vec::new());
    assert_eq!(twice, once);
}

#[test]
fn a_retry_after_a_collision_keeps_to_the_affinities() {
    let likes = Affinity {
        left: "${meta.tens}".into(),
        operator: Operator::Equal,
        right: "5".into(),
        weight: 50,
    };
    let chosen = chosen_after(&[collision()], vec![likes]);
    assert_eq!(chosen, (50..60).collect());
}

#[test]
fn a_plan_that_no_node_was_the_reason_to_refuse_is_made_again_as_it_was() {
    let refused = PlanResult {
        refused: Some("the job has changed".to_owned()),
        refresh_index: 1,
        ..PlanResult::default()
    };
    assert_eq!(chosen_after(&[refused], Vec::new()), BTreeSet::from([0]));
}
