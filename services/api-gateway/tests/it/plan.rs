//! Dry runs through the API: the diff, the scheduler's decisions, and no write.

use std::collections::HashMap;

use model::{Affinity, Job, JobType, Operator};
use proto::v1;
use state::Key;
use tonic::{Code, Status};

use crate::support::{Suite, alloc, ask, job, node};

async fn try_plan(
    suite: &Suite,
    gateway: usize,
    job: v1::Job,
) -> Result<v1::PlanJobResponse, Status> {
    let before = suite.store.current_revision().await.unwrap();
    let request = v1::PlanJobRequest {
        job: Some(job),
        diff: true,
    };
    let answer = suite.jobs(gateway).plan(ask(request)).await;
    let after = suite.store.current_revision().await.unwrap();
    assert_eq!(before, after, "a dry run writes nothing");
    answer.map(tonic::Response::into_inner)
}

async fn plan(suite: &Suite, job: &Job) -> v1::PlanJobResponse {
    try_plan(suite, 0, job.into()).await.unwrap()
}

/// Returns the scheduler's decisions about the only group.
fn updates(answer: &v1::PlanJobResponse) -> v1::DesiredUpdates {
    let annotations = answer.annotations.as_ref().unwrap();
    assert!(annotations.preempted_allocations.is_empty());
    let by_group: Vec<_> = annotations.desired_updates.iter().collect();
    let [(group, updates)] = by_group[..] else {
        panic!("{by_group:?}")
    };
    assert_eq!(group, "web");
    *updates
}

fn diff(answer: &v1::PlanJobResponse) -> &v1::JobDiff {
    answer.diff.as_ref().unwrap()
}

fn words(answer: &v1::PlanJobResponse) -> HashMap<&str, u64> {
    let updates = &diff(answer).task_groups[0].updates;
    updates
        .iter()
        .map(|(word, count)| (word.as_str(), *count))
        .collect()
}

/// A job of two allocations, both of them placed, all of which may be replaced at once.
async fn running() -> (Suite, Job, v1::RegisterJobResponse) {
    let (suite, mut job, node) = (Suite::start(1).await, job("web"), node(1));
    job.task_groups[0].update = Some(test_kit::builders::rolling_update(2));
    suite.put_node(&node).await;
    let registered = suite.register(&job).await;
    for number in [1, 2] {
        let mut alloc = alloc(u128::from(number), &job, &node, registered.index);
        alloc.name_index = number - 1;
        suite.put_alloc(&alloc).await;
    }
    (suite, job, registered)
}

#[tokio::test]
async fn scenario_027_a_new_job_is_added_and_all_of_it_placed() {
    let (suite, job) = (Suite::start(1).await, job("web"));
    let revision = suite.put_node(&node(1)).await;
    let answer = plan(&suite, &job).await;
    assert_eq!(answer.job_modify_index, 0);
    assert_eq!(answer.index, revision);
    let expected = v1::DesiredUpdates {
        place: 2,
        ..Default::default()
    };
    assert_eq!(updates(&answer), expected);
    assert!(answer.failed_task_groups.is_empty());
    assert!(answer.created_evaluations.is_empty());
    assert_eq!(diff(&answer).r#type(), v1::DiffType::Added);
    assert_eq!(diff(&answer).id, "web");
    assert_eq!(words(&answer), HashMap::from([("create", 2)]));
    let task = &diff(&answer).task_groups[0].tasks[0];
    assert_eq!(task.annotations, ["forces create"]);
    assert_eq!(suite.get(&Key::Job(job.key())).await, None);
    assert!(
        suite
            .metrics(0)
            .await
            .contains("kafila_api_gateway_dry_runs_total 1")
    );
}

#[tokio::test]
async fn scenario_028_an_unchanged_job_is_left_alone() {
    let (suite, job, registered) = running().await;
    let answer = plan(&suite, &job).await;
    assert_eq!(answer.job_modify_index, registered.job_modify_index);
    assert_eq!(diff(&answer).r#type(), v1::DiffType::None);
    assert!(diff(&answer).fields.is_empty() && diff(&answer).objects.is_empty());
    let expected = v1::DesiredUpdates {
        ignore: 2,
        ..Default::default()
    };
    assert_eq!(updates(&answer), expected);
    assert_eq!(words(&answer), HashMap::from([("ignore", 2)]));
}

#[tokio::test]
async fn more_of_a_group_are_created_and_fewer_destroyed() {
    let (suite, mut job, registered) = running().await;
    job.task_groups[0].count = 3;
    let answer = plan(&suite, &job).await;
    assert_eq!(answer.job_modify_index, registered.job_modify_index);
    let expected = v1::DesiredUpdates {
        place: 1,
        in_place_update: 2,
        ..Default::default()
    };
    assert_eq!(updates(&answer), expected);
    let count = &diff(&answer).task_groups[0].fields[0];
    assert_eq!(
        (count.name.as_str(), count.old.as_str(), count.new.as_str()),
        ("Count", "2", "3")
    );
    assert_eq!(count.annotations, ["forces create"]);

    job.task_groups[0].count = 1;
    let answer = plan(&suite, &job).await;
    let expected = v1::DesiredUpdates {
        stop: 1,
        in_place_update: 1,
        ..Default::default()
    };
    assert_eq!(updates(&answer), expected);
    let count = &diff(&answer).task_groups[0].fields[0];
    assert_eq!(count.annotations, ["forces destroy"]);
    assert_eq!(
        words(&answer),
        HashMap::from([("destroy", 1), ("in-place update", 1)])
    );
}

#[tokio::test]
async fn scenario_008_another_environment_replaces_what_runs() {
    let (suite, mut job, _) = running().await;
    let task = &mut job.task_groups[0].tasks[0];
    task.env.insert("LEVEL".to_owned(), "debug".to_owned());
    let answer = plan(&suite, &job).await;
    let expected = v1::DesiredUpdates {
        destructive_update: 2,
        ..Default::default()
    };
    assert_eq!(updates(&answer), expected);
    assert_eq!(
        words(&answer),
        HashMap::from([("create/destroy update", 2)])
    );
    let task = &diff(&answer).task_groups[0].tasks[0];
    assert_eq!(task.annotations, ["forces create/destroy update"]);
    assert_eq!((task.fields.len(), task.objects.len()), (1, 0));
    assert_eq!(task.fields[0].name, "Env[LEVEL]");
    assert_eq!(task.fields[0].r#type(), v1::DiffType::Added);
}

#[tokio::test]
async fn a_change_that_needs_no_replacement_replaces_nothing() {
    let (suite, mut job, _) = running().await;
    job.task_groups[0].tasks[0].affinities = vec![Affinity {
        left: "${node.datacenter}".to_owned(),
        operator: Operator::Equal,
        right: "dc1".to_owned(),
        weight: 50,
    }];
    let answer = plan(&suite, &job).await;
    let expected = v1::DesiredUpdates {
        in_place_update: 2,
        ..Default::default()
    };
    assert_eq!(updates(&answer), expected);
    let task = &diff(&answer).task_groups[0].tasks[0];
    assert_eq!(task.annotations, ["forces in-place update"]);
    assert_eq!(task.objects[0].name, "Affinity");
}

#[tokio::test]
async fn a_group_without_a_node_is_reported_with_the_reasons() {
    let (suite, mut job) = (Suite::start(1).await, job("web"));
    suite.put_node(&node(1)).await;
    job.task_groups[0].tasks[0].resources.memory_mib = 999_999;
    let answer = plan(&suite, &job).await;
    let metric = &answer.failed_task_groups["web"];
    assert_eq!((metric.nodes_evaluated, metric.nodes_exhausted), (1, 1));
    assert_eq!(metric.coalesced_failures, 1);
    assert_eq!(metric.dimension_exhausted["memory"], 1);
    let [blocked] = &answer.created_evaluations[..] else {
        panic!("{:?}", answer.created_evaluations)
    };
    assert_eq!(
        (blocked.status.as_str(), blocked.job_id.as_str()),
        ("blocked", "web")
    );
}

#[tokio::test]
async fn a_stopped_job_would_start_again() {
    let (suite, job) = (Suite::start(1).await, job("web"));
    suite.put_node(&node(1)).await;
    suite.register(&job).await;
    let stop = v1::DeregisterJobRequest {
        job_id: "web".to_owned(),
        ..Default::default()
    };
    suite.jobs(0).deregister(ask(stop)).await.unwrap();
    let answer = plan(&suite, &job).await;
    assert_eq!(updates(&answer).place, 2);
    let [stop] = &diff(&answer).fields[..] else {
        panic!("{:?}", diff(&answer).fields)
    };
    assert_eq!(
        (stop.name.as_str(), stop.old.as_str(), stop.new.as_str()),
        ("Stop", "true", "false")
    );
}

#[tokio::test]
async fn all_errors_of_a_job_are_listed_at_once() {
    let suite = Suite::start(1).await;
    let mut wrong = v1::Job::from(&job("web"));
    wrong.priority = Some(1_000);
    wrong.task_groups[0].count = Some(-1);
    wrong.task_groups[0].tasks[0].driver = None;
    let status = try_plan(&suite, 0, wrong.clone()).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    let request = v1::RegisterJobRequest {
        job: Some(wrong),
        ..Default::default()
    };
    let registered = suite.jobs(0).register(ask(request)).await.unwrap_err();
    assert_eq!(status.message(), registered.message());
    let violations = v1::ErrorDetail::from_status(&status).unwrap().violations;
    assert!(violations.len() >= 2, "{violations:?}");
    let registered = v1::ErrorDetail::from_status(&registered)
        .unwrap()
        .violations;
    assert_eq!(violations, registered);
}

#[tokio::test]
async fn a_plan_refuses_every_job_that_a_registration_refuses() {
    let (suite, job, _) = running().await;
    let mut other_type = v1::Job::from(&test_kit::builders::batch("web", 2));
    other_type.update = None;
    let status = try_plan(&suite, 0, other_type).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(
        status
            .message()
            .contains("cannot change from service to batch"),
        "{status}"
    );

    let mut large = job;
    large.meta.insert("blob".to_owned(), "x".repeat(700_000));
    let status = try_plan(&suite, 0, (&large).into()).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("too large"), "{status}");

    let nothing = suite.jobs(0).plan(ask(v1::PlanJobRequest::default())).await;
    assert_eq!(nothing.unwrap_err().code(), Code::InvalidArgument);
}

#[tokio::test]
async fn every_gateway_plans_on_what_was_acknowledged_by_any() {
    let (suite, mut job) = (Suite::start(2).await, job("web"));
    for count in 1..10 {
        job.task_groups[0].count = count;
        let registered = suite.register(&job).await;
        let answer = try_plan(&suite, 1, (&job).into()).await.unwrap();
        assert_eq!(answer.job_modify_index, registered.job_modify_index);
        assert_eq!(diff(&answer).r#type(), v1::DiffType::None);
    }
}

#[tokio::test]
async fn many_at_once_are_all_answered_and_a_diff_only_where_it_is_asked_for() {
    let (suite, job) = (Suite::start(1).await, job("web"));
    suite.put_node(&node(1)).await;
    let before = suite.store.current_revision().await.unwrap();
    let asked = (0..40).map(|_| {
        let mut jobs = suite.jobs(0);
        let request = v1::PlanJobRequest {
            job: Some((&job).into()),
            diff: false,
        };
        async move { jobs.plan(ask(request)).await.unwrap().into_inner() }
    });
    for answer in futures::future::join_all(asked).await {
        assert_eq!(updates(&answer).place, 2);
        assert_eq!(answer.diff, None);
    }
    assert_eq!(suite.store.current_revision().await.unwrap(), before);
}

#[tokio::test]
async fn a_dry_run_names_the_victims() {
    let (suite, mut low, node) = (Suite::start(1).await, job("low"), node(1));
    low.priority = 20;
    low.task_groups[0].count = 1;
    suite.put_node(&node).await;
    let registered = suite.register(&low).await;
    let mut held = alloc(1, &low, &node, registered.index);
    held.resources.total.cpu_mhz = node.resources.cpu_mhz;
    suite.put_alloc(&held).await;
    let mut log = job("log");
    log.job_type = JobType::System;
    log.priority = 90;
    log.task_groups = vec![test_kit::builders::group("web", JobType::System, 1)];
    let answer = plan(&suite, &log).await;
    let annotations = answer.annotations.unwrap();
    let updates = &annotations.desired_updates["web"];
    assert_eq!((updates.place, updates.preemptions), (1, 1));
    let [gone] = &annotations.preempted_allocations[..] else {
        panic!("{annotations:?}")
    };
    assert_eq!(gone.id, held.id.to_string());
    assert_eq!((&*gone.job_id, &*gone.job_type), ("low", "service"));
    // A service may not ask for it, unless the operator says so.
    let mut web = job("web");
    web.priority = 90;
    let answer = plan(&suite, &web).await;
    let annotations = answer.annotations.unwrap();
    assert_eq!(annotations.preempted_allocations, []);
    assert_eq!(
        answer.failed_task_groups["web"].dimension_exhausted["cpu"],
        1
    );
}
