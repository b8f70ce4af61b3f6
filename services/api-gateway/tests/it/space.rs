//! A nearly full and a full etcd: refusals of new work, and maintenance through the gateway.

use std::time::Duration;

use proto::v1;
use test_kit::etcd::{self, Etcd};
use test_kit::proxy::Mode;
use test_kit::wait_for;
use tonic::{Code, Status};

use crate::support::{Suite, ask, job};

const QUOTA: u64 = 16 << 20;
const VALUE: usize = 500_000;
/// Longer than the gateway's interval of looks at etcd, on a busy machine too.
const NOTICE_TIMEOUT: Duration = Duration::from_secs(60);
/// Longer than etcd takes between two commits of its database, 100 ms.
const SYNC_INTERVAL: Duration = Duration::from_millis(150);

async fn suite() -> (Suite, etcd_client::Client) {
    let quota = QUOTA.to_string();
    let etcd = Etcd::start_with(&["--quota-backend-bytes", &quota])
        .await
        .unwrap();
    let raw = etcd_client::Client::connect(etcd.endpoints(), None)
        .await
        .unwrap();
    let suite = Suite::over_etcd(etcd, |_| {}).await;
    (suite, raw)
}

async fn register(suite: &Suite, id: &str) -> Result<(), Status> {
    let request = v1::RegisterJobRequest {
        job: Some((&job(id)).into()),
        ..Default::default()
    };
    suite.jobs(0).register(ask(request)).await.map(drop)
}

async fn scale(suite: &Suite, count: u32) -> Result<(), Status> {
    let request = v1::ScaleJobRequest {
        job_id: "web".to_owned(),
        task_group: "web".to_owned(),
        count: Some(count),
        ..Default::default()
    };
    suite.jobs(0).scale(ask(request)).await.map(drop)
}

async fn stop(suite: &Suite) -> Result<(), Status> {
    let request = v1::DeregisterJobRequest {
        job_id: "web".to_owned(),
        ..Default::default()
    };
    suite.jobs(0).deregister(ask(request)).await.map(drop)
}

fn assert_refused(result: Result<(), Status>) -> String {
    let status = result.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
    let detail = v1::ErrorDetail::from_status(&status).unwrap();
    assert!(
        detail.retry_after().is_some(),
        "the caller learns when to retry"
    );
    status.message().to_owned()
}

async fn status(suite: &Suite) -> v1::GetEtcdStatusResponse {
    let request = v1::GetEtcdStatusRequest {};
    let answer = suite.operator(0).get_etcd_status(ask(request)).await;
    answer.unwrap().into_inner()
}

async fn wait_until_refused(suite: &Suite, is_refused: bool) {
    wait_for("the gateway to notice", NOTICE_TIMEOUT, async || {
        (status(suite).await.refusal.is_empty() != is_refused).then_some(())
    })
    .await;
}

/// etcd frees the pages of a compaction in the background, and counts them at its next change: a put, or
/// the end of the alarm. Returns the endpoint of the member.
async fn wait_for_free_pages(suite: &Suite, raw: &mut etcd_client::Client) -> String {
    wait_for("the compaction to free pages", NOTICE_TIMEOUT, async || {
        let disarm = v1::DisarmEtcdRequest {};
        suite.operator(0).disarm_etcd(ask(disarm)).await.unwrap();
        let _ = raw.put("tick", "", None).await;
        let member = status(suite).await.members.remove(0);
        (member.in_use_bytes < QUOTA / 2).then_some(member.endpoint)
    })
    .await
}

#[tokio::test]
async fn new_work_is_refused_before_etcd_is_full_and_accepted_once_there_is_space() {
    if !etcd::available() {
        return;
    }
    let (suite, mut raw) = suite().await;
    register(&suite, "web").await.unwrap();
    scale(&suite, 3).await.unwrap();
    for number in 0..16 {
        let (key, value) = (format!("fill/{number}"), vec![b'x'; VALUE]);
        raw.put(key, value, None).await.unwrap();
    }
    // Then in small steps: etcd tells its size when it has synced, ten times a second.
    for number in 16.. {
        let (key, value) = (format!("fill/{number}"), vec![b'x'; VALUE / 5]);
        raw.put(key, value, None).await.unwrap();
        tokio::time::sleep(SYNC_INTERVAL).await;
        let member = status(&suite).await.members.remove(0);
        if member.in_use_bytes >= QUOTA * 85 / 100 || member.db_bytes >= QUOTA * 95 / 100 {
            break;
        }
    }
    wait_until_refused(&suite, true).await;
    let text = assert_refused(register(&suite, "late").await);
    assert!(
        text.contains("kafila system gc") && text.contains("quota is 16.0 MiB"),
        "{text}"
    );
    assert_refused(scale(&suite, 4).await);
    // Smaller counts and stops are accepted.
    scale(&suite, 1).await.unwrap();
    stop(&suite).await.unwrap();
    let metrics = suite.metrics(0).await;
    assert!(metrics.contains("refusing_for_space 1"), "{metrics}");

    let all = etcd_client::DeleteOptions::new().with_prefix();
    raw.delete("fill/", Some(all)).await.unwrap();
    let compact = v1::CompactEtcdRequest { revision: 0 };
    suite.operator(0).compact_etcd(ask(compact)).await.unwrap();
    let endpoint = wait_for_free_pages(&suite, &mut raw).await;
    let defragment = v1::DefragmentEtcdRequest { endpoint };
    suite
        .operator(0)
        .defragment_etcd(ask(defragment))
        .await
        .unwrap();
    wait_until_refused(&suite, false).await;
    register(&suite, "late").await.unwrap();
}

#[tokio::test]
async fn a_full_etcd_is_explained_and_emptied_through_a_gateway() {
    if !etcd::available() {
        return;
    }
    let (suite, mut raw) = suite().await;
    register(&suite, "web").await.unwrap();
    while raw.put("fill", vec![b'x'; VALUE], None).await.is_ok() {}
    // Even a stop is a write; etcd says no, and the gateway says why.
    let text = assert_refused(stop(&suite).await);
    assert!(text.contains("NOSPACE"), "{text}");
    wait_until_refused(&suite, true).await;
    let before = status(&suite).await;
    assert!(
        before.members[0].no_space && before.members[0].is_leader,
        "{before:?}"
    );
    assert_eq!(before.members[0].quota_bytes, QUOTA);

    let mut operator = suite.operator(0);
    let future = v1::CompactEtcdRequest {
        revision: before.revision + 1_000,
    };
    let error = operator.compact_etcd(ask(future)).await.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    let newest = v1::CompactEtcdRequest { revision: 0 };
    let compacted = operator
        .compact_etcd(ask(newest))
        .await
        .unwrap()
        .into_inner();
    assert!(!compacted.already_compacted);
    let again = v1::CompactEtcdRequest {
        revision: compacted.revision,
    };
    let again = operator
        .compact_etcd(ask(again))
        .await
        .unwrap()
        .into_inner();
    assert!(again.already_compacted);
    let nowhere = v1::DefragmentEtcdRequest {
        endpoint: "http://nowhere".to_owned(),
    };
    let error = operator.defragment_etcd(ask(nowhere)).await.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    let endpoint = wait_for_free_pages(&suite, &mut raw).await;
    let member = v1::DefragmentEtcdRequest { endpoint };
    let done = operator
        .defragment_etcd(ask(member))
        .await
        .unwrap()
        .into_inner();
    assert!(done.db_bytes_after < done.db_bytes_before / 2, "{done:?}");
    let disarm = v1::DisarmEtcdRequest {};
    let disarmed = operator
        .disarm_etcd(ask(disarm))
        .await
        .unwrap()
        .into_inner();
    // A write of the suite may have raised it again.
    assert!(disarmed.members <= 1);
    wait_until_refused(&suite, false).await;
    stop(&suite).await.unwrap();
}

#[tokio::test]
async fn members_are_listed_while_etcd_answers_no_reads() {
    let suite = Suite::start(1).await;
    suite.proxy.set(Mode::Cut);
    let status = status(&suite).await;
    assert_eq!(status.revision, 0);
    assert_eq!(status.members.len(), 1);
    assert!(!status.members[0].error.is_empty(), "{status:?}");
}

#[tokio::test]
async fn an_embedded_store_is_reached_and_says_that_it_needs_no_defragmentation() {
    let suite = Suite::start(1).await;
    let mut operator = suite.operator(0);
    let status = operator.get_etcd_status(ask(v1::GetEtcdStatusRequest {}));
    let members = status.await.unwrap().into_inner().members;
    let request = v1::DefragmentEtcdRequest {
        endpoint: members[0].endpoint.clone(),
    };
    let error = operator.defragment_etcd(ask(request)).await.unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
    let text = error.message();
    assert!(text.contains("needs no defragmentation"), "{text}");
    assert!(!text.contains("cannot reach"), "{text}");
}
