//! Node pools through the API: stored, listed, joined, and deleted when they are empty.

use model::Job;
use proto::v1;
use proto::v1::ErrorDetail;
use state::Key;
use tonic::{Code, Status};

use crate::sessions::register as register_node;
use crate::support::{Suite, ask, job, node};

fn pool(name: &str) -> v1::NodePool {
    v1::NodePool {
        name: name.to_owned(),
        description: "with cards".to_owned(),
        meta: [("owner".to_owned(), "ml".to_owned())].into(),
        scheduler_configuration: Some(v1::NodePoolSchedulerConfiguration {
            scheduler_algorithm: "spread".to_owned(),
            memory_oversubscription_enabled: Some(false),
        }),
        ..v1::NodePool::default()
    }
}

async fn apply(suite: &Suite, pool: v1::NodePool) -> Result<u64, Status> {
    let request = v1::UpsertNodePoolRequest {
        node_pool: Some(pool),
    };
    let answer = suite.node_pools(0).upsert(ask(request)).await?;
    Ok(answer.into_inner().modify_index)
}

async fn get(suite: &Suite, gateway: usize, name: &str) -> Result<v1::NodePool, Status> {
    let request = v1::GetNodePoolRequest {
        name: name.to_owned(),
        ..Default::default()
    };
    let answer = suite.node_pools(gateway).get(ask(request)).await?;
    Ok(answer.into_inner().node_pool.unwrap())
}

async fn delete(suite: &Suite, gateway: usize, name: &str) -> Result<u64, Status> {
    let name = name.to_owned();
    let request = v1::DeleteNodePoolRequest { name };
    let answer = suite.node_pools(gateway).delete(ask(request)).await?;
    Ok(answer.into_inner().index)
}

async fn register(suite: &Suite, gateway: usize, job: &Job) -> Result<(), Status> {
    let request = v1::RegisterJobRequest {
        job: Some(job.into()),
        ..Default::default()
    };
    suite.jobs(gateway).register(ask(request)).await.map(drop)
}

fn job_in(id: &str, node_pool: &str) -> Job {
    Job {
        node_pool: node_pool.to_owned(),
        ..job(id)
    }
}

fn fields(status: &Status) -> Vec<String> {
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    let detail = ErrorDetail::from_status(status).unwrap();
    let violations = detail.violations.into_iter();
    violations.map(|it| it.field).collect()
}

#[tokio::test]
async fn a_pool_is_kept_as_it_was_applied() {
    let suite = Suite::start(2).await;
    let first = apply(&suite, pool("gpu")).await.unwrap();
    let expected = v1::NodePool {
        create_index: first,
        modify_index: first,
        ..pool("gpu")
    };
    assert_eq!(get(&suite, 1, "gpu").await.unwrap(), expected);
    // As it was read: what servers set is not compared.
    assert_eq!(apply(&suite, expected).await.unwrap(), first);
    let plain = v1::NodePool {
        name: "gpu".to_owned(),
        ..v1::NodePool::default()
    };
    let second = apply(&suite, plain.clone()).await.unwrap();
    let expected = v1::NodePool {
        create_index: first,
        modify_index: second,
        ..plain
    };
    assert_eq!(get(&suite, 0, "gpu").await.unwrap(), expected);
}

#[tokio::test]
async fn pools_are_listed_by_name_with_those_built_in_page_by_page() {
    let suite = Suite::start(1).await;
    for name in ["gpu", "batch"] {
        apply(&suite, pool(name)).await.unwrap();
    }
    let list = async |options: v1::QueryOptions| {
        let request = v1::ListNodePoolsRequest {
            options: Some(options),
        };
        let answer = suite.node_pools(0).list(ask(request)).await.unwrap();
        let answer = answer.into_inner();
        let names = answer.node_pools.iter().map(|pool| pool.name.clone());
        (names.collect::<Vec<_>>(), answer.meta.unwrap().next_token)
    };
    let (all, token) = list(v1::QueryOptions::default()).await;
    assert_eq!(all, ["all", "batch", "default", "gpu"]);
    assert_eq!(token, "");
    let page = |next_token: String| v1::QueryOptions {
        per_page: 3,
        next_token,
        ..v1::QueryOptions::default()
    };
    let (first, token) = list(page(String::new())).await;
    assert_eq!(first, ["all", "batch", "default"]);
    assert_eq!(list(page(token)).await.0, ["gpu"]);
    let prefix = v1::QueryOptions {
        prefix: "g".to_owned(),
        ..v1::QueryOptions::default()
    };
    assert_eq!(list(prefix).await.0, ["gpu"]);
    let built_in = get(&suite, 0, "default").await.unwrap();
    assert_eq!(built_in.modify_index, 0);
    assert!(!built_in.description.is_empty());
}

#[tokio::test]
async fn an_invalid_node_pool_is_refused() {
    let suite = Suite::start(1).await;
    let wrong = v1::NodePool {
        name: "a/b".to_owned(),
        description: "x".repeat(257),
        ..v1::NodePool::default()
    };
    let status = apply(&suite, wrong).await.unwrap_err();
    assert_eq!(fields(&status), ["node_pool.name", "node_pool.description"]);
    let mut wrong = pool("gpu");
    let of_pool = wrong.scheduler_configuration.as_mut().unwrap();
    of_pool.scheduler_algorithm = "random".to_owned();
    let status = apply(&suite, wrong).await.unwrap_err();
    let field = "node_pool.scheduler_configuration.scheduler_algorithm";
    assert_eq!(fields(&status), [field]);
    let nothing = v1::UpsertNodePoolRequest::default();
    let status = suite.node_pools(0).upsert(ask(nothing)).await.unwrap_err();
    assert_eq!(fields(&status), ["node_pool"]);
    let status = apply(&suite, pool("all")).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    let text = "modifying node pool \"all\" is not allowed";
    assert!(status.message().starts_with(text), "{}", status.message());
    let status = delete(&suite, 0, "default").await.unwrap_err();
    let text = "deleting node pool \"default\" is not allowed";
    assert!(status.message().starts_with(text), "{}", status.message());
    for status in [
        delete(&suite, 0, "gpu").await.unwrap_err(),
        get(&suite, 0, "gpu").await.unwrap_err(),
    ] {
        assert_eq!(status.code(), Code::NotFound);
        assert_eq!(status.message(), "node pool \"gpu\" not found");
    }
}

#[tokio::test]
async fn a_job_is_registered_in_a_pool_that_exists() {
    let suite = Suite::start(2).await;
    let web = job_in("web", "gpu");
    let status = register(&suite, 0, &web).await.unwrap_err();
    assert_eq!(fields(&status), ["node_pool"]);
    let text = "job \"web\" is in nonexistent node pool \"gpu\"";
    assert!(status.message().contains(text), "{}", status.message());
    // A dry run says so as well.
    let request = v1::PlanJobRequest {
        job: Some((&web).into()),
        diff: false,
    };
    let status = suite.jobs(0).plan(ask(request)).await.unwrap_err();
    assert_eq!(fields(&status), ["node_pool"]);
    apply(&suite, pool("gpu")).await.unwrap();
    register(&suite, 1, &web).await.unwrap();
    register(&suite, 1, &job_in("everywhere", "all"))
        .await
        .unwrap();

    let list = v1::ListNodePoolJobsRequest {
        name: "gpu".to_owned(),
        ..Default::default()
    };
    let listed = suite.node_pools(0).list_jobs(ask(list.clone())).await;
    let jobs = listed.unwrap().into_inner().jobs;
    let ids: Vec<&str> = jobs.iter().map(|job| job.id.as_str()).collect();
    assert_eq!(ids, ["web"]);
    let elsewhere = v1::ListNodePoolJobsRequest {
        options: Some(v1::QueryOptions {
            namespace: "prod".to_owned(),
            ..v1::QueryOptions::default()
        }),
        ..list
    };
    let listed = suite.node_pools(0).list_jobs(ask(elsewhere)).await;
    assert_eq!(listed.unwrap().into_inner().jobs, []);
}

#[tokio::test]
async fn a_node_makes_the_pool_that_it_is_in() {
    let suite = Suite::start(1).await;
    let mut in_pool = node(1);
    in_pool.node_pool = "a b".to_owned();
    let status = register_node(&suite, 0, &in_pool).await.unwrap_err();
    assert_eq!(fields(&status), ["node.node_pool"]);
    in_pool.node_pool = "gpu".to_owned();
    register_node(&suite, 0, &in_pool).await.unwrap();
    let made = get(&suite, 0, "gpu").await.unwrap();
    assert_eq!(made.description, "");
    // One that is there stays as it is.
    let applied = apply(&suite, pool("gpu")).await.unwrap();
    in_pool.meta.insert("rack".to_owned(), "r2".to_owned());
    register_node(&suite, 0, &in_pool).await.unwrap();
    register_node(&suite, 0, &node(2)).await.unwrap();
    assert_eq!(get(&suite, 0, "gpu").await.unwrap().modify_index, applied);

    let nodes = async |name: &str| {
        let request = v1::ListNodePoolNodesRequest {
            name: name.to_owned(),
            ..Default::default()
        };
        let answer = suite.node_pools(0).list_nodes(ask(request)).await.unwrap();
        let nodes = answer.into_inner().nodes;
        nodes.into_iter().map(|node| node.name).collect::<Vec<_>>()
    };
    assert_eq!(nodes("gpu").await, ["n1"]);
    assert_eq!(nodes("default").await, ["n2"]);
    assert_eq!(nodes("all").await.len(), 2);
    let request = v1::ListNodePoolNodesRequest {
        name: "cpu".to_owned(),
        ..Default::default()
    };
    let missing = suite.node_pools(0).list_nodes(ask(request)).await;
    assert_eq!(missing.unwrap_err().code(), Code::NotFound);
}

#[tokio::test]
async fn a_node_from_before_pools_were_kept_makes_its_pool_when_it_registers_again() {
    let suite = Suite::start(1).await;
    let mut old = node(1);
    old.node_pool = "gpu".to_owned();
    register_node(&suite, 0, &old).await.unwrap();
    suite.delete(&Key::NodePool("gpu".to_owned())).await;
    // The test deletes it in the store; the gateway's replica follows.
    while get(&suite, 0, "gpu").await.is_ok() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let before = suite.get(&Key::Node(old.id)).await.unwrap();
    register_node(&suite, 0, &old).await.unwrap();
    assert!(get(&suite, 0, "gpu").await.is_ok());
    // Its own record was as it is, and is not written.
    assert_eq!(suite.get(&Key::Node(old.id)).await.unwrap(), before);
}

#[tokio::test]
async fn a_pool_is_deleted_when_nodes_and_jobs_have_left_it() {
    let suite = Suite::start(2).await;
    let mut in_pool = node(1);
    in_pool.node_pool = "gpu".to_owned();
    register_node(&suite, 0, &in_pool).await.unwrap();
    register(&suite, 0, &job_in("web", "gpu")).await.unwrap();
    let status = delete(&suite, 1, "gpu").await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
    let text = "node pool \"gpu\" has nodes in regions: [global], such as n1";
    assert_eq!(status.message(), text);
    in_pool.node_pool = "default".to_owned();
    register_node(&suite, 0, &in_pool).await.unwrap();
    let status = delete(&suite, 1, "gpu").await.unwrap_err();
    let text = "node pool \"gpu\" has non-terminal jobs in regions: [global], such as web";
    assert_eq!(status.message(), text);
    let request = v1::DeregisterJobRequest {
        job_id: "web".to_owned(),
        purge: true,
        ..Default::default()
    };
    suite.jobs(0).deregister(ask(request)).await.unwrap();
    delete(&suite, 1, "gpu").await.unwrap();
    assert_eq!(suite.get(&Key::NodePool("gpu".to_owned())).await, None);
    let status = register(&suite, 0, &job_in("web", "gpu"))
        .await
        .unwrap_err();
    assert_eq!(fields(&status), ["node_pool"]);
}

#[tokio::test]
async fn a_deleted_node_pool_has_no_job_whichever_write_comes_first() {
    let suite = Suite::start(2).await;
    let (mut deleted, mut kept) = (0, 0);
    for round in 0..30 {
        let name = format!("pool-{round}");
        apply(&suite, pool(&name)).await.unwrap();
        let web = job_in(&format!("web-{round}"), &name);
        let (removed, registered) =
            tokio::join!(delete(&suite, 0, &name), register(&suite, 1, &web));
        let there = suite.get(&Key::NodePool(name)).await.is_some();
        let job = suite.get(&Key::Job(web.key())).await.is_some();
        assert_eq!(there, removed.is_err(), "round {round}: {removed:?}");
        assert_eq!(job, registered.is_ok(), "round {round}: {registered:?}");
        assert!(there || !job, "round {round}: {removed:?}, {registered:?}");
        deleted += usize::from(removed.is_ok());
        kept += usize::from(registered.is_ok());
    }
    assert!(deleted + kept >= 15, "{deleted} deleted, {kept} kept");
}
