//! Garbage collection, on request and at its interval.

use std::time::Duration;

use model::{AllocClient, ClientStatus, DesiredStatus, EvalStatus, Job, NodeStatus};
use proto::internal::v1::maintenance_client::MaintenanceClient;
use proto::internal::v1::{CollectGarbageRequest, CollectGarbageResponse};
use service_kit::connect_lazy;
use state::Key;
use test_kit::builders::{allocation, batch, evaluation, service};
use test_kit::writes;
use tokio::time::timeout;
use tonic::{Code, Status};

use crate::suite::{Suite, TIMEOUT, id};

async fn collect(address: &str) -> Result<CollectGarbageResponse, Status> {
    let mut client = MaintenanceClient::new(connect_lazy(address).unwrap());
    let asked = client.collect_garbage(CollectGarbageRequest {});
    let answer = timeout(TIMEOUT, asked).await.expect("an answer");
    answer.map(tonic::Response::into_inner)
}

/// Stores a job with ended evaluations, and on `node` allocations that have ended.
async fn past(suite: &Suite, job: &Job, first: u128, count: u128) {
    suite
        .commit(|txn| {
            txn.add(&writes::create(&Key::Job(job.key()), job)).unwrap();
            txn.add(&writes::create(&Key::JobVersion(job.key(), 0), job))
                .unwrap();
            for number in first..first + count {
                let mut eval = evaluation(number, job);
                eval.status = EvalStatus::Complete;
                txn.add(&writes::create(&Key::Eval(eval.id), &eval))
                    .unwrap();
                let mut alloc = allocation(number, job, id(1));
                alloc.desired_status = DesiredStatus::Stop;
                txn.add(&writes::create(&Key::Alloc(alloc.id), &alloc))
                    .unwrap();
                let client = AllocClient {
                    status: ClientStatus::Complete,
                    ..AllocClient::default()
                };
                txn.add(&writes::create(&Key::AllocClient(alloc.id), &client))
                    .unwrap();
            }
        })
        .await;
}

#[tokio::test]
async fn a_forced_collection_removes_ended_objects_at_once() {
    let suite = Suite::start().await;
    let (controller, _gateway) = suite.led().await;
    let mut over = service("over", 1);
    over.stop = true;
    past(&suite, &over, 1, 100).await;
    let live = service("live", 1);
    past(&suite, &live, 201, 3).await;
    suite.register(7, NodeStatus::Down).await;
    let collected = collect(&controller.address).await.unwrap();
    let want = CollectGarbageResponse {
        // The newest one of the job that lives stays.
        evaluations: 102,
        allocations: 103,
        jobs: 1,
        nodes: 1,
        deployments: 0,
        conflicts: 0,
    };
    assert_eq!(collected, want);
    let left = suite.now().await;
    assert_eq!(left.jobs().count(), 1);
    assert_eq!(left.all_job_versions().count(), 1);
    assert_eq!(left.evals().count(), 1);
    assert_eq!(
        left.allocs().count() + left.clients_without_alloc().count(),
        0
    );
    assert_eq!(left.node_count(), 0);
    assert!(left.job_tally(&over.key()).is_none());
    // And nothing is left for a second time.
    let again = collect(&controller.address).await.unwrap();
    assert_eq!(again, CollectGarbageResponse::default());
}

/// A job that is evaluated anew is either there with its evaluation, or was gone before.
#[tokio::test]
async fn a_job_that_is_evaluated_meanwhile_is_not_collected() {
    let suite = Suite::start().await;
    let (controller, _gateway) = suite.led().await;
    for round in 0..150_u32 {
        let over = batch(&format!("over-{round}"), 1);
        let number = 1_000 * (u128::from(round) + 1);
        past(&suite, &over, number, 1).await;
        let before = suite.now().await;
        let job = before.job(&over.key()).unwrap().modify_index;
        let version = before.job_version(&over.key(), 0).unwrap().modify_index;
        let eval = evaluation(number + 500, &over);
        // As a gateway does that registers the job unchanged, at any time of the collection.
        let evaluated = async {
            tokio::time::sleep(Duration::from_micros(100) * (round % 50)).await;
            let build = |txn: &mut store::Txn| {
                txn.add(&writes::require_unchanged(&Key::Job(over.key()), job))
                    .unwrap();
                let name = Key::JobVersion(over.key(), 0);
                txn.add(&writes::update(&name, version, &over)).unwrap();
                txn.add(&writes::create(&Key::Eval(eval.id), &eval))
                    .unwrap();
            };
            suite.try_commit(build).await
        };
        let (evaluated, collected) = tokio::join!(evaluated, collect(&controller.address));
        collected.unwrap();
        let is_there = suite.now().await.job(&over.key()).is_some();
        assert_eq!(evaluated, is_there, "round {round}");
    }
}

#[tokio::test]
async fn old_objects_are_collected_without_a_request() {
    let suite = Suite::start().await;
    let controller = suite
        .controller_with(|config| {
            config.gc_interval = Duration::from_millis(50);
        })
        .await;
    let _gateway = suite.gateway(&controller.address).await;
    let mut over = service("over", 1);
    over.stop = true;
    // Stored without times, so that all of it is as old as can be.
    past(&suite, &over, 1, 10).await;
    suite
        .wait("the job to be gone", |snapshot| {
            (snapshot.jobs().count() == 0).then_some(())
        })
        .await;
    assert_eq!(suite.now().await.allocs().count(), 0);
}

#[tokio::test]
async fn a_standby_does_not_collect() {
    let suite = Suite::start().await;
    let (controller, _gateway) = suite.led().await;
    let standby = suite.controller().await;
    let refused = collect(&standby.address).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    collect(&controller.address).await.unwrap();
}
