//! Reads: through another gateway, by the start of an id, page by page, in any namespace.

use model::{AllocClient, ClientStatus, DeploymentHealth, DeploymentId, DeploymentStatus};
use proto::v1;
use state::{Entity, Key};
use tonic::Code;

use crate::support::{Suite, alloc, ask, job, node};

fn get_job(id: &str) -> v1::GetJobRequest {
    v1::GetJobRequest {
        job_id: id.to_owned(),
        ..Default::default()
    }
}

#[tokio::test]
async fn every_gateway_shows_the_writes_of_every_other() {
    let suite = Suite::start(3).await;
    for n in 0..20 {
        let id = format!("web-{n}");
        let answer = suite.register(&job(&id)).await;
        let gateway = 1 + n % 2;
        let shown = suite
            .jobs(gateway)
            .get(ask(get_job(&id)))
            .await
            .unwrap()
            .into_inner();
        assert_eq!(shown.job.unwrap().job_modify_index, Some(answer.index));
        assert!(shown.meta.unwrap().index >= answer.index);
    }
}

#[tokio::test]
async fn a_job_shows_its_status_summary_and_versions() {
    let (suite, mut job, node) = (Suite::start(1).await, job("web"), node(1));
    let first = suite.register(&job).await;
    let shown = suite
        .jobs(0)
        .get(ask(get_job("web")))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(shown.job.unwrap().status.as_deref(), Some("pending"));

    let placed = alloc(1, &job, &node, first.index);
    suite.put_alloc(&placed).await;
    let running = AllocClient {
        status: ClientStatus::Running,
        ..AllocClient::default()
    };
    let entity = Entity::AllocClient(Box::new(running));
    suite.put(&Key::AllocClient(placed.id), &entity).await;
    let shown = suite
        .jobs(0)
        .get(ask(get_job("web")))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(shown.job.unwrap().status.as_deref(), Some("running"));
    assert_eq!(shown.summary.unwrap().task_groups["web"].running, 1);

    job.task_groups[0].count = 5;
    suite.register(&job).await;
    let request = v1::ListJobVersionsRequest {
        job_id: "web".to_owned(),
        ..Default::default()
    };
    let versions = suite
        .jobs(0)
        .list_versions(ask(request))
        .await
        .unwrap()
        .into_inner()
        .jobs;
    let numbers: Vec<_> = versions.iter().map(|job| job.version.unwrap()).collect();
    assert_eq!(numbers, [1, 0], "newest first");
    let old = v1::GetJobRequest {
        version: Some(0),
        ..get_job("web")
    };
    let shown = suite
        .jobs(0)
        .get(ask(old))
        .await
        .unwrap()
        .into_inner()
        .job
        .unwrap();
    assert_eq!(shown.task_groups[0].count, Some(2));
    let missing = v1::GetJobRequest {
        version: Some(7),
        ..get_job("web")
    };
    let status = suite.jobs(0).get(ask(missing)).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    assert_eq!(
        status.message(),
        "job \"web\" has no version 7: it keeps 0, 1"
    );
}

#[tokio::test]
async fn a_missing_job_names_those_that_begin_alike() {
    let suite = Suite::start(1).await;
    suite.register(&job("web-a")).await;
    let status = suite.jobs(0).get(ask(get_job("web"))).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    assert_eq!(
        status.message(),
        "no job \"web\" in namespace \"default\"; there is web-a"
    );
}

#[tokio::test]
async fn lists_are_filtered_by_namespace_and_prefix_and_cut_into_pages() {
    let suite = Suite::start(1).await;
    let team = model::Namespace::named("team");
    let key = state::Key::Namespace("team".to_owned());
    let entity = state::Entity::Namespace(Box::new(team));
    suite.put(&key, &entity).await;
    for (namespace, id) in [
        ("default", "a"),
        ("default", "b"),
        ("default", "ba"),
        ("team", "b"),
    ] {
        let mut job = job(id);
        job.namespace = namespace.to_owned();
        suite.register(&job).await;
    }
    for (namespace, prefix, want) in [
        ("", "", vec!["a", "b", "ba"]),
        ("default", "b", vec!["b", "ba"]),
        ("team", "", vec!["b"]),
        ("*", "b", vec!["b", "ba", "b"]),
        ("nobody", "", vec![]),
    ] {
        let mut seen = Vec::new();
        let mut next_token = String::new();
        loop {
            let options = v1::QueryOptions {
                namespace: namespace.to_owned(),
                prefix: prefix.to_owned(),
                per_page: 1,
                next_token,
                ..v1::QueryOptions::default()
            };
            let request = v1::ListJobsRequest {
                options: Some(options),
            };
            let page = suite.jobs(0).list(ask(request)).await.unwrap().into_inner();
            seen.extend(page.jobs.into_iter().map(|job| job.id));
            next_token = page.meta.unwrap().next_token;
            if next_token.is_empty() {
                break;
            }
        }
        assert_eq!(seen, want, "{namespace:?}, {prefix:?}");
    }
}

#[tokio::test]
async fn an_object_is_found_by_the_start_of_its_id_unless_several_begin_so() {
    let (suite, job, node) = (Suite::start(1).await, job("web"), node(1));
    let registered = suite.register(&job).await;
    let mut ids = Vec::new();
    for number in 1..=40 {
        let alloc = alloc(number << 100 | number, &job, &node, registered.index);
        suite.put_alloc(&alloc).await;
        ids.push(alloc.id.to_string());
    }
    let get = |id: &str| v1::GetAllocationRequest {
        alloc_id: id.to_owned(),
        ..Default::default()
    };
    let found = suite
        .allocations(0)
        .get(ask(get(&ids[17][..8])))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(found.allocation.unwrap().id, ids[17]);
    let status = suite.allocations(0).get(ask(get("00"))).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(
        status.message().contains("is the start of"),
        "{}",
        status.message()
    );

    let eval = v1::GetEvaluationRequest {
        eval_id: registered.eval_id[..8].to_owned(),
        ..Default::default()
    };
    let found = suite
        .evaluations(0)
        .get(ask(eval))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(found.evaluation.unwrap().id, registered.eval_id);
}

#[tokio::test]
async fn allocations_are_listed_for_a_job_a_node_an_evaluation_and_all() {
    let (suite, job, here, there) = (Suite::start(1).await, job("web"), node(1), node(2));
    suite.put_node(&here).await;
    suite.put_node(&there).await;
    let registered = suite.register(&job).await;
    let mut former = alloc(1, &job, &here, 1);
    former.eval_id = registered.eval_id.parse().unwrap();
    let mut current = alloc(2, &job, &there, registered.index);
    current.eval_id = former.eval_id;
    for alloc in [&former, &current] {
        suite.put_alloc(alloc).await;
    }
    let ids = |response: v1::ListAllocationsResponse| -> Vec<String> {
        response
            .allocations
            .into_iter()
            .map(|alloc| alloc.id)
            .collect()
    };
    let both = vec![former.id.to_string(), current.id.to_string()];
    for (all, want) in [(false, vec![current.id.to_string()]), (true, both.clone())] {
        let request = v1::ListJobAllocationsRequest {
            job_id: "web".to_owned(),
            all,
            ..Default::default()
        };
        let list = suite
            .jobs(0)
            .list_allocations(ask(request))
            .await
            .unwrap()
            .into_inner();
        assert_eq!(ids(list), want, "all: {all}");
    }
    let request = v1::ListNodeAllocationsRequest {
        node_id: there.id.to_string(),
        ..Default::default()
    };
    let list = suite
        .nodes(0)
        .list_allocations(ask(request))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(list.allocations[0].node_name, "n2");
    assert_eq!(list.allocations[0].job_type, "service");
    assert_eq!(ids(list), [current.id.to_string()]);
    let request = v1::ListEvaluationAllocationsRequest {
        eval_id: registered.eval_id.clone(),
        ..Default::default()
    };
    let list = suite
        .evaluations(0)
        .list_allocations(ask(request))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(ids(list), both);
    let list = suite
        .allocations(0)
        .list(ask(v1::ListAllocationsRequest::default()))
        .await;
    assert_eq!(ids(list.unwrap().into_inner()), both);
}

#[tokio::test]
async fn evaluations_are_filtered_by_status_and_job() {
    let suite = Suite::start(1).await;
    suite.register(&job("web")).await;
    suite.register(&job("db")).await;
    for (status, job_id, want) in [
        ("", "", 2),
        ("pending", "", 2),
        ("complete", "", 0),
        ("", "db", 1),
    ] {
        let request = v1::ListEvaluationsRequest {
            status: status.to_owned(),
            job_id: job_id.to_owned(),
            ..Default::default()
        };
        let list = suite
            .evaluations(0)
            .list(ask(request))
            .await
            .unwrap()
            .into_inner();
        assert_eq!(list.evaluations.len(), want, "{status:?}, {job_id:?}");
    }
}

#[tokio::test]
async fn a_deployment_shows_counts_of_its_allocations() {
    let (suite, job, node) = (Suite::start(1).await, job("web"), node(1));
    let registered = suite.register(&job).await;
    let deployment = model::Deployment {
        id: DeploymentId::from_random(7),
        job: job.key(),
        job_version: 0,
        job_modify_index: registered.index,
        job_create_index: registered.index,
        status: DeploymentStatus::Running,
        status_description: "deployment is running".to_owned(),
        groups: [("web".to_owned(), model::DeploymentGroup::default())].into(),
        eval_priority: 50,
        create_time: model::Timestamp(1),
        modify_time: model::Timestamp(1),
    };
    suite.put_deployment(&deployment).await;
    let mut placed = alloc(1, &job, &node, registered.index);
    placed.deployment_id = Some(deployment.id);
    suite.put_alloc(&placed).await;
    let health = DeploymentHealth {
        healthy: true,
        time: model::Timestamp(5),
        deployment_id: Some(deployment.id),
    };
    let client = AllocClient {
        health: Some(health),
        ..AllocClient::default()
    };
    let key = Key::AllocClient(placed.id);
    let healthy_at = suite
        .put(&key, &Entity::AllocClient(Box::new(client)))
        .await;

    let get = v1::GetDeploymentRequest {
        deployment_id: deployment.id.short(),
        ..Default::default()
    };
    let shown = suite
        .deployments(0)
        .get(ask(get))
        .await
        .unwrap()
        .into_inner();
    let group = &shown.deployment.unwrap().task_groups["web"];
    assert_eq!(
        (
            group.placed_allocs,
            group.healthy_allocs,
            group.unhealthy_allocs
        ),
        (1, 1, 0)
    );
    assert_eq!(
        shown.meta.unwrap().index,
        healthy_at,
        "a changed count moves the index"
    );
    // Of a job of the same id that was purged.
    let former = model::Deployment {
        id: DeploymentId::from_random(8),
        job_create_index: registered.index - 1,
        ..deployment
    };
    suite.put_deployment(&former).await;
    for (all, expected) in [(false, 1), (true, 2)] {
        let list = v1::ListJobDeploymentsRequest {
            job_id: "web".to_owned(),
            all,
            ..Default::default()
        };
        let list = suite.jobs(0).list_deployments(ask(list)).await;
        let listed = list.unwrap().into_inner().deployments.len();
        assert_eq!(listed, expected, "all: {all}");
    }
}

#[tokio::test]
async fn nodes_never_show_their_secret() {
    let (suite, node) = (Suite::start(1).await, node(1));
    suite.put_node(&node).await;
    let list = suite
        .nodes(0)
        .list(ask(v1::ListNodesRequest::default()))
        .await
        .unwrap();
    let shown = format!("{list:?}");
    assert!(
        shown.contains("n1") && !shown.contains(&node.secret),
        "{shown}"
    );
    let get = v1::GetNodeRequest {
        node_id: node.id.short(),
        ..Default::default()
    };
    let shown = suite
        .nodes(0)
        .get(ask(get))
        .await
        .unwrap()
        .into_inner()
        .node
        .unwrap();
    assert_eq!(shown.id, node.id.to_string());
}

#[tokio::test]
async fn leaders_and_the_version_are_shown() {
    let suite = Suite::start(1).await;
    let term = suite.elect("plan-applier", "http://127.0.0.1:7103").await;
    let list = suite
        .operator(0)
        .list_leaders(ask(v1::ListLeadersRequest::default()))
        .await;
    let want = v1::Leader {
        service: "plan-applier".to_owned(),
        address: "http://127.0.0.1:7103".to_owned(),
        replica: "r1".to_owned(),
        term,
    };
    assert_eq!(list.unwrap().into_inner().leaders, [want]);
    let version = suite
        .operator(0)
        .get_version(ask(v1::GetVersionRequest {}))
        .await
        .unwrap();
    assert_eq!(version.into_inner().version, env!("CARGO_PKG_VERSION"));
}

#[tokio::test]
async fn an_index_is_never_zero() {
    let suite = Suite::start(1).await;
    let jobs = suite
        .jobs(0)
        .list(ask(v1::ListJobsRequest::default()))
        .await
        .unwrap();
    assert!(jobs.into_inner().meta.unwrap().index >= 1);
    let nodes = suite
        .nodes(0)
        .list(ask(v1::ListNodesRequest::default()))
        .await
        .unwrap();
    assert!(nodes.into_inner().meta.unwrap().index >= 1);
}
