//! Single calls: failover, repetition, blocking reads, pages, waiting.

use std::time::Duration;

use futures::TryStreamExt as _;
use kafila_client::{Client, Code, Config, Kind, RetryPolicy, Tls, WaitError, v1};
use proto::status::exhausted;
use tonic::Status;

use crate::gateway::{Gateway, Reply, answer, client, client_of, dead_address};

fn job(job_id: &str) -> v1::GetJobRequest {
    v1::GetJobRequest {
        job_id: job_id.to_owned(),
        ..Default::default()
    }
}

fn found(index: u64) -> v1::GetJobResponse {
    v1::GetJobResponse {
        meta: meta(index, ""),
        ..Default::default()
    }
}

fn meta(index: u64, next_token: &str) -> Option<v1::QueryMeta> {
    Some(v1::QueryMeta {
        index,
        next_token: next_token.to_owned(),
        ..Default::default()
    })
}

fn away() -> Reply {
    Reply::Refuse(Status::unavailable("etcd has no leader"))
}

#[tokio::test]
async fn a_call_fails_over_and_stays_with_the_gateway_that_answers() {
    let gateway = Gateway::start(vec![answer(&found(1)), answer(&found(2))]).await;
    let client = client_of(vec![dead_address().await, gateway.address.to_string()]);
    assert_eq!(client.jobs().get(job("web")).await.unwrap(), found(1));
    assert_eq!(client.jobs().get(job("web")).await.unwrap(), found(2));
    let paths: Vec<_> = gateway.seen().into_iter().map(|seen| seen.path).collect();
    assert_eq!(paths, ["/kafila.v1.Jobs/Get", "/kafila.v1.Jobs/Get"]);
}

#[tokio::test]
async fn a_write_is_repeated_with_the_id_of_its_first_attempt() {
    let registered = v1::RegisterJobResponse {
        eval_id: "e".to_owned(),
        ..Default::default()
    };
    let first = Gateway::start(vec![away()]).await;
    let second = Gateway::start(vec![answer(&registered)]).await;
    let client = client(&[&first, &second]);
    let request = v1::RegisterJobRequest::default();
    assert_eq!(client.jobs().register(request).await.unwrap(), registered);
    let id = |gateway: &Gateway| {
        let request: v1::RegisterJobRequest = gateway.seen()[0].read();
        request.request_id
    };
    assert_eq!(id(&first), id(&second));
    assert_eq!(id(&first).len(), 36);
}

#[tokio::test]
async fn a_request_without_an_id_is_sent_once_and_its_outcome_is_unknown() {
    let gateway = Gateway::start(vec![away()]).await;
    let request = v1::EvaluateJobRequest::default();
    let error = client(&[&gateway])
        .jobs()
        .evaluate(request)
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::Unavailable);
    assert!(error.may_have_happened(), "{error}");
    assert_eq!(gateway.seen().len(), 1);
}

#[tokio::test]
async fn a_conditional_upsert_is_sent_once_and_another_one_again() {
    for (check_index, attempts) in [(Some(7), 1), (None, 2)] {
        let stored = answer(&v1::UpsertNamespaceResponse::default());
        let gateway = Gateway::start(vec![away(), stored]).await;
        let request = v1::UpsertNamespaceRequest {
            check_index,
            ..Default::default()
        };
        let _ = client(&[&gateway]).namespaces().upsert(request).await;
        assert_eq!(gateway.seen().len(), attempts, "{check_index:?}");
    }
}

#[tokio::test]
async fn a_refusal_for_overload_is_repeated_whatever_the_request() {
    let busy = Reply::Refuse(exhausted("too many evaluations", Duration::from_millis(10)));
    let done = answer(&v1::EvaluateJobResponse::default());
    let gateway = Gateway::start(vec![busy, done]).await;
    let request = v1::EvaluateJobRequest::default();
    client(&[&gateway]).jobs().evaluate(request).await.unwrap();
    assert_eq!(gateway.seen().len(), 2);
}

#[tokio::test]
async fn an_error_names_the_invalid_fields_the_call_and_the_gateway() {
    let status = proto::status::invalid_field("priority", "want 1 to 100");
    let gateway = Gateway::start(vec![Reply::Refuse(status)]).await;
    let request = v1::RegisterJobRequest::default();
    let error = client(&[&gateway])
        .jobs()
        .register(request)
        .await
        .unwrap_err();
    assert_eq!(error.violations()[0].field, "priority");
    let text = error.to_string();
    assert!(text.contains("/kafila.v1.Jobs/Register"), "{text}");
    assert!(text.contains(&gateway.address.to_string()), "{text}");
    assert!(!error.may_have_happened());
    assert_eq!(gateway.seen().len(), 1);
}

#[tokio::test]
async fn a_list_is_read_page_by_page() {
    let page = |ids: &[&str], next: &str| {
        let jobs = ids.iter().map(|id| v1::JobStub {
            id: (*id).to_owned(),
            ..Default::default()
        });
        answer(&v1::ListJobsResponse {
            meta: meta(1, next),
            jobs: jobs.collect(),
        })
    };
    let gateway = Gateway::start(vec![page(&["a", "b"], "c"), page(&["c"], "")]).await;
    let client = client(&[&gateway]);
    let items = client.jobs().list(v1::ListJobsRequest::default()).items();
    let jobs: Vec<_> = items.map_ok(|job| job.id).try_collect().await.unwrap();
    assert_eq!(jobs, ["a", "b", "c"]);
    let second: v1::ListJobsRequest = gateway.seen()[1].read();
    let options = second.options.unwrap();
    assert_eq!((options.next_token.as_str(), options.per_page), ("c", 500));
}

#[tokio::test]
async fn a_watch_yields_changes_only() {
    let replies = [3, 3, 8].map(|index| answer(&found(index)));
    let gateway = Gateway::start(replies.into()).await;
    let client = client(&[&gateway]);
    let mut answers = Box::pin(client.jobs().get(job("web")).watch());
    for expected in [3, 8] {
        let answer = answers.try_next().await.unwrap().unwrap();
        assert_eq!(answer.meta.unwrap().index, expected);
    }
    let seen = gateway.seen();
    let indexes = seen.iter().map(|seen| {
        let request: v1::GetJobRequest = seen.read();
        request.options.unwrap().min_index
    });
    assert_eq!(indexes.collect::<Vec<_>>(), [0, 3, 3]);
}

fn evaluation(status: &str, index: u64) -> Reply {
    answer(&v1::GetEvaluationResponse {
        meta: meta(index, ""),
        evaluation: Some(v1::Evaluation {
            id: "e".to_owned(),
            status: status.to_owned(),
            ..Default::default()
        }),
    })
}

fn deployment(status: &str) -> v1::Deployment {
    v1::Deployment {
        id: "d".to_owned(),
        status: status.to_owned(),
        job_modify_index: 4,
        ..Default::default()
    }
}

fn run(last: &str) -> Vec<Reply> {
    let registered = v1::RegisterJobResponse {
        eval_id: "e".to_owned(),
        job_modify_index: 4,
        ..Default::default()
    };
    let deployments = v1::ListDeploymentsResponse {
        deployments: vec![deployment("running")],
        ..Default::default()
    };
    let ended = v1::GetDeploymentResponse {
        deployment: Some(deployment(last)),
        ..Default::default()
    };
    vec![
        answer(&registered),
        evaluation("pending", 5),
        evaluation("complete", 6),
        answer(&deployments),
        answer(&ended),
    ]
}

#[tokio::test]
async fn a_run_ends_with_its_deployment() {
    let limit = Duration::from_secs(60);
    let gateway = Gateway::start(run("successful")).await;
    let job = v1::Job {
        id: Some("web".to_owned()),
        ..Default::default()
    };
    let outcome = client(&[&gateway])
        .run_job(job.clone(), limit)
        .await
        .unwrap();
    assert_eq!(outcome.evaluation.unwrap().status, "complete");
    assert_eq!(outcome.deployment.unwrap().status, "successful");
    let waited: v1::GetEvaluationRequest = gateway.seen()[2].read();
    assert_eq!(waited.options.unwrap().min_index, 5);
    let registered: v1::RegisterJobRequest = gateway.seen()[0].read();
    assert_eq!(
        registered.job.unwrap().namespace.as_deref(),
        Some("default")
    );

    let gateway = Gateway::start(run("failed")).await;
    let error = client(&[&gateway]).run_job(job, limit).await.unwrap_err();
    assert!(matches!(error, WaitError::DeploymentFailed(_)), "{error}");
}

#[tokio::test]
async fn a_wait_ends_in_time() {
    let gateway = Gateway::start(vec![evaluation("pending", 5)]).await;
    let client = client(&[&gateway]);
    let error = client.wait_for_evaluation("e", Duration::ZERO).await;
    let error = error.unwrap_err();
    assert!(matches!(error, WaitError::Timeout(_)), "{error}");
}

#[tokio::test]
async fn a_gateway_without_a_connection_is_unreachable_within_the_timeout() {
    // The system accepts connections, and nothing answers the TLS handshake.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let client = Client::new(Config {
        gateways: vec![format!("https://{}", listener.local_addr().unwrap())],
        tls: Tls {
            skip_verify: true,
            ..Tls::default()
        },
        timeout: Duration::from_millis(200),
        attempt_timeout: Duration::from_millis(200),
        retry: RetryPolicy {
            wait_for_gateway: false,
            ..RetryPolicy::default()
        },
        ..Config::default()
    })
    .unwrap();
    let began = tokio::time::Instant::now();
    let error = client.jobs().get(job("web")).await.unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(2), "{error}");
    assert!(matches!(error.kind(), Kind::Unreachable { .. }), "{error}");
    let message = error.message();
    assert!(message.starts_with("no connection within "), "{message}");
    assert!(!client.has_connected());
}
