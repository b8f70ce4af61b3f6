//! Namespaces through the API: kept, listed, joined, and deleted when nothing is in them.

use model::Job;
use proto::v1;
use proto::v1::ErrorDetail;
use state::Key;
use tonic::{Code, Status};

use crate::sessions::register as register_node;
use crate::support::{Suite, ask, job, node};

fn named(name: &str) -> v1::Namespace {
    v1::Namespace {
        name: name.to_owned(),
        ..v1::Namespace::default()
    }
}

async fn apply(suite: &Suite, namespace: v1::Namespace) -> Result<u64, Status> {
    apply_if(suite, namespace, None).await
}

async fn apply_if(
    suite: &Suite,
    namespace: v1::Namespace,
    check_index: Option<u64>,
) -> Result<u64, Status> {
    let request = v1::UpsertNamespaceRequest {
        namespace: Some(namespace),
        check_index,
    };
    let answer = suite.namespaces(0).upsert(ask(request)).await?;
    Ok(answer.into_inner().modify_index)
}

async fn get(suite: &Suite, gateway: usize, name: &str) -> Result<v1::Namespace, Status> {
    let request = v1::GetNamespaceRequest {
        name: name.to_owned(),
        ..Default::default()
    };
    let answer = suite.namespaces(gateway).get(ask(request)).await?;
    Ok(answer.into_inner().namespace.unwrap())
}

async fn delete(suite: &Suite, gateway: usize, name: &str) -> Result<u64, Status> {
    let name = name.to_owned();
    let request = v1::DeleteNamespaceRequest { name };
    let answer = suite.namespaces(gateway).delete(ask(request)).await?;
    Ok(answer.into_inner().index)
}

async fn register(suite: &Suite, gateway: usize, job: &Job) -> Result<(), Status> {
    let request = v1::RegisterJobRequest {
        job: Some(job.into()),
        ..Default::default()
    };
    suite.jobs(gateway).register(ask(request)).await.map(drop)
}

fn job_in(namespace: &str, id: &str) -> Job {
    Job {
        namespace: namespace.to_owned(),
        ..job(id)
    }
}

fn fields(status: &Status) -> Vec<String> {
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    let detail = ErrorDetail::from_status(status).unwrap();
    let violations = detail.violations.into_iter();
    violations.map(|it| it.field).collect()
}

fn list(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[tokio::test]
async fn a_namespace_is_kept_as_it_was_applied() {
    let suite = Suite::start(2).await;
    let dev = v1::Namespace {
        description: "for trying out".to_owned(),
        meta: [("owner".to_owned(), "sre".to_owned())].into(),
        capabilities: Some(v1::NamespaceCapabilities {
            enabled_task_drivers: list(&["raw_exec"]),
            disabled_task_drivers: list(&["mock_driver"]),
        }),
        node_pool_configuration: Some(v1::NamespaceNodePoolConfiguration {
            default: "batch".to_owned(),
            allowed: Some(v1::NodePoolPatterns::default()),
            denied: Vec::new(),
        }),
        ..named("dev")
    };
    let first = apply(&suite, dev.clone()).await.unwrap();
    let expected = v1::Namespace {
        create_index: first,
        modify_index: first,
        ..dev
    };
    assert_eq!(get(&suite, 1, "dev").await.unwrap(), expected);
    // As it was read: what servers set is not compared.
    assert_eq!(apply(&suite, expected).await.unwrap(), first);
    let other = apply_if(&suite, named("dev"), Some(first + 1)).await;
    assert_eq!(other.unwrap_err().code(), Code::Aborted);
    let second = apply_if(&suite, named("dev"), Some(first)).await.unwrap();
    let expected = v1::Namespace {
        create_index: first,
        modify_index: second,
        ..named("dev")
    };
    assert_eq!(get(&suite, 0, "dev").await.unwrap(), expected);
}

#[tokio::test]
async fn namespaces_are_listed_by_name_with_the_default_one_page_by_page() {
    let suite = Suite::start(1).await;
    for name in ["prod", "apps"] {
        apply(&suite, named(name)).await.unwrap();
    }
    let names = async |options: v1::QueryOptions| {
        let request = v1::ListNamespacesRequest {
            options: Some(options),
        };
        let answer = suite.namespaces(0).list(ask(request)).await.unwrap();
        let answer = answer.into_inner();
        let names = answer.namespaces.iter().map(|it| it.name.clone());
        (names.collect::<Vec<_>>(), answer.meta.unwrap().next_token)
    };
    let (all, _) = names(v1::QueryOptions::default()).await;
    assert_eq!(all, ["apps", "default", "prod"]);
    let page = |next_token: String| v1::QueryOptions {
        per_page: 2,
        next_token,
        ..v1::QueryOptions::default()
    };
    let (first, token) = names(page(String::new())).await;
    assert_eq!(first, ["apps", "default"]);
    assert_eq!(names(page(token)).await.0, ["prod"]);
    let prefix = v1::QueryOptions {
        prefix: "p".to_owned(),
        ..v1::QueryOptions::default()
    };
    assert_eq!(names(prefix).await.0, ["prod"]);
    // Stored, it is still there once.
    assert_eq!(get(&suite, 0, "default").await.unwrap().modify_index, 0);
    let index = apply(&suite, named("default")).await.unwrap();
    let stored = get(&suite, 0, "default").await.unwrap();
    assert_eq!((stored.modify_index, &*stored.description), (index, ""));
    let (all, _) = names(v1::QueryOptions::default()).await;
    assert_eq!(all, ["apps", "default", "prod"]);
}

#[tokio::test]
async fn an_invalid_namespace_is_refused() {
    let suite = Suite::start(1).await;
    let wrong = v1::Namespace {
        description: "x".repeat(257),
        ..named("a_b")
    };
    let status = apply(&suite, wrong).await.unwrap_err();
    assert_eq!(fields(&status), ["namespace.name", "namespace.description"]);
    let nothing = v1::UpsertNamespaceRequest::default();
    let status = suite.namespaces(0).upsert(ask(nothing)).await.unwrap_err();
    assert_eq!(fields(&status), ["namespace"]);
    let status = delete(&suite, 0, "default").await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(
        status
            .message()
            .starts_with("can not delete default namespace")
    );
    for status in [
        delete(&suite, 0, "dev").await.unwrap_err(),
        get(&suite, 0, "dev").await.unwrap_err(),
    ] {
        assert_eq!(status.code(), Code::NotFound);
        assert_eq!(status.message(), "namespace \"dev\" not found");
    }
}

#[tokio::test]
async fn a_job_in_an_unknown_namespace_is_refused() {
    let suite = Suite::start(2).await;
    let web = job_in("dev", "web");
    let status = register(&suite, 0, &web).await.unwrap_err();
    assert_eq!(fields(&status), ["namespace"]);
    let text = "job \"web\" is in nonexistent namespace \"dev\"";
    assert!(status.message().contains(text), "{}", status.message());
    let request = v1::PlanJobRequest {
        job: Some((&web).into()),
        diff: false,
    };
    let status = suite.jobs(0).plan(ask(request)).await.unwrap_err();
    assert_eq!(fields(&status), ["namespace"]);

    register_node(&suite, 0, &node(1)).await.unwrap();
    let volume = v1::Volume {
        namespace: "dev".to_owned(),
        name: "data".to_owned(),
        r#type: "host".to_owned(),
        node_id: node(1).id.to_string(),
        host_path: "/srv/data".to_owned(),
        capabilities: vec![v1::VolumeCapability {
            access_mode: "single-node-writer".to_owned(),
            attachment_mode: "file-system".to_owned(),
        }],
        ..v1::Volume::default()
    };
    let put = async || {
        let request = v1::RegisterVolumeRequest {
            volume: Some(volume.clone()),
        };
        suite.volumes(0).register(ask(request)).await
    };
    let status = put().await.unwrap_err();
    assert_eq!(fields(&status), ["volume.namespace"]);

    apply(&suite, named("dev")).await.unwrap();
    register(&suite, 1, &web).await.unwrap();
    let volume_id = put().await.unwrap().into_inner().volume.unwrap().id;

    // And they keep it.
    let status = delete(&suite, 1, "dev").await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
    let text = "namespace \"dev\" has non-terminal jobs in regions: [global], such as web";
    assert_eq!(status.message(), text);
    let request = v1::DeregisterJobRequest {
        namespace: "dev".to_owned(),
        job_id: "web".to_owned(),
        purge: true,
        ..Default::default()
    };
    suite.jobs(0).deregister(ask(request)).await.unwrap();
    let status = delete(&suite, 1, "dev").await.unwrap_err();
    let text = "namespace \"dev\" has volumes in regions: [global], such as data";
    assert_eq!(status.message(), text);
    let request = v1::DeleteVolumeRequest {
        namespace: "dev".to_owned(),
        volume_id,
    };
    suite.volumes(0).delete(ask(request)).await.unwrap();
    delete(&suite, 1, "dev").await.unwrap();
    let key = Key::Namespace("dev".to_owned());
    assert_eq!(suite.get(&key).await, None);
    let status = register(&suite, 0, &web).await.unwrap_err();
    assert_eq!(fields(&status), ["namespace"]);
}

#[tokio::test]
async fn a_namespace_says_what_its_jobs_may_ask_for() {
    let suite = Suite::start(1).await;
    for name in ["batch", "gpu"] {
        let node_pool = Some(v1::NodePool {
            name: name.to_owned(),
            ..v1::NodePool::default()
        });
        let request = v1::UpsertNodePoolRequest { node_pool };
        suite.node_pools(0).upsert(ask(request)).await.unwrap();
    }
    let mut web = job_in("dev", "web");
    let driver = web.task_groups[0].tasks[0].driver.clone();
    let rules = |disabled: &[&str]| v1::Namespace {
        capabilities: Some(v1::NamespaceCapabilities {
            enabled_task_drivers: Vec::new(),
            disabled_task_drivers: list(disabled),
        }),
        node_pool_configuration: Some(v1::NamespaceNodePoolConfiguration {
            default: "batch".to_owned(),
            allowed: Some(v1::NodePoolPatterns::default()),
            denied: Vec::new(),
        }),
        ..named("dev")
    };
    apply(&suite, rules(&[&driver])).await.unwrap();
    web.node_pool = "gpu".to_owned();
    let status = register(&suite, 0, &web).await.unwrap_err();
    let group = &web.task_groups[0];
    let task = format!("group[{:?}].task[{:?}]", group.name, group.tasks[0].name);
    assert_eq!(
        fields(&status),
        [format!("{task}.driver"), "node_pool".to_owned()]
    );

    apply(&suite, rules(&[])).await.unwrap();
    let mut unnamed: v1::Job = (&web).into();
    unnamed.node_pool = None;
    let request = v1::RegisterJobRequest {
        job: Some(unnamed.clone()),
        ..Default::default()
    };
    let first = suite.jobs(0).register(ask(request.clone())).await.unwrap();
    assert!(first.into_inner().changed);
    let request_get = v1::GetJobRequest {
        options: Some(v1::QueryOptions {
            namespace: "dev".to_owned(),
            ..v1::QueryOptions::default()
        }),
        job_id: "web".to_owned(),
        ..Default::default()
    };
    let stored = suite.jobs(0).get(ask(request_get)).await.unwrap();
    let stored = stored.into_inner().job.unwrap();
    assert_eq!(stored.node_pool.as_deref(), Some("batch"));
    let again = suite.jobs(0).register(ask(request)).await.unwrap();
    assert!(!again.into_inner().changed);
    // A dry run is of the same job.
    let request = v1::PlanJobRequest {
        job: Some(unnamed),
        diff: true,
    };
    let planned = suite.jobs(0).plan(ask(request)).await.unwrap();
    let diff = planned.into_inner().diff.unwrap();
    assert_eq!(diff.r#type(), v1::DiffType::None, "{diff:?}");
}

#[tokio::test]
async fn a_deleted_namespace_has_no_job_whichever_write_comes_first() {
    let suite = Suite::start(2).await;
    let (mut deleted, mut kept) = (0, 0);
    for round in 0..30 {
        let name = format!("ns-{round}");
        apply(&suite, named(&name)).await.unwrap();
        let web = job_in(&name, "web");
        let (removed, registered) =
            tokio::join!(delete(&suite, 0, &name), register(&suite, 1, &web));
        let there = suite.get(&Key::Namespace(name)).await.is_some();
        let job = suite.get(&Key::Job(web.key())).await.is_some();
        assert_eq!(there, removed.is_err(), "round {round}: {removed:?}");
        assert_eq!(job, registered.is_ok(), "round {round}: {registered:?}");
        assert!(there || !job, "round {round}: {removed:?}, {registered:?}");
        deleted += usize::from(removed.is_ok());
        kept += usize::from(registered.is_ok());
    }
    assert!(deleted + kept >= 15, "{deleted} deleted, {kept} kept");
}

#[tokio::test]
async fn evaluations_are_deleted_while_the_broker_is_paused() {
    let suite = Suite::start(1).await;
    let eval_id = suite.register(&job("web")).await.eval_id;
    let delete = async |ids: &[&str]| {
        let eval_ids = list(ids);
        let request = v1::DeleteEvaluationsRequest { eval_ids };
        suite.evaluations(0).delete(ask(request)).await
    };
    let status = delete(&[&eval_id]).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert!(status.message().contains("pause it first"), "{status}");
    let request = v1::SetSchedulerConfigurationRequest {
        scheduler_config: Some(v1::SchedulerConfiguration {
            scheduler_algorithm: "binpack".to_owned(),
            pause_eval_broker: true,
            preemption_config: Some(v1::PreemptionConfig::default()),
            ..Default::default()
        }),
        check_index: None,
    };
    let mut operator = suite.operator(0);
    let set = operator.set_scheduler_configuration(ask(request)).await;
    set.unwrap();
    let status = delete(&[&eval_id, "1a2b"]).await.unwrap_err();
    assert_eq!(fields(&status), ["eval_ids[1]"]);
    let answer = delete(&[&eval_id, &eval_id]).await.unwrap().into_inner();
    assert_eq!(answer.count, 1);
    let status = delete(&[&eval_id]).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
}
