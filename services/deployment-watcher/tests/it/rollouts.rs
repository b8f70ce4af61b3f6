//! Health, success, failure and the way back.

use std::time::Duration;

use model::{AllocId, DeploymentGroup, DeploymentStatus, EvalStatus, Job, NodePool, TriggeredBy};
use state::Key;
use test_kit::writes;

use crate::suite::{Suite, alloc_id, deployment_id, group, key, made};

#[tokio::test]
async fn health_makes_the_scheduler_look_and_success_makes_the_version_stable() {
    let suite = Suite::start().await;
    let watcher = suite.watcher().await;
    suite.wait_for_leader(&watcher.address).await;
    suite.put_job(&suite.job, false).await;
    suite.deploy(group()).await;
    assert_eq!(made(&suite.now().await), []);
    let reported = suite.report(true).await;
    let eval = suite
        .wait("an evaluation", |snapshot| made(snapshot).pop())
        .await;
    assert_eq!(
        (eval.triggered_by, eval.status, eval.deployment_id),
        (
            TriggeredBy::DeploymentWatcher,
            EvalStatus::Pending,
            Some(deployment_id())
        )
    );
    let snapshot = suite.now().await;
    assert!(snapshot.eval(eval.id).unwrap().create_index > reported);
    assert!(!snapshot.is_stable(&key(), 0));

    suite.succeed().await;
    suite
        .wait("a stable version", |snapshot| {
            snapshot.is_stable(&key(), 0).then_some(())
        })
        .await;
    assert_eq!(made(&suite.now().await).len(), 1, "one look was enough");
}

#[tokio::test]
async fn a_failed_deployment_and_its_way_back_are_one_transaction() {
    let suite = Suite::start().await;
    let watcher = suite.watcher().await;
    suite.wait_for_leader(&watcher.address).await;
    suite.put_job(&suite.job, true).await;
    let mut newer = Job {
        version: 1,
        ..suite.job.clone()
    };
    newer.meta.insert("release".to_owned(), "2".to_owned());
    suite.put_job(&newer, false).await;
    suite
        .deploy(DeploymentGroup {
            auto_revert: true,
            ..group()
        })
        .await;
    suite.report(false).await;
    suite
        .wait("a failed deployment", |snapshot| {
            let status = snapshot.deployment(deployment_id())?.value.status;
            (status == DeploymentStatus::Failed).then_some(())
        })
        .await;
    let snapshot = suite.now().await;
    let deployment = snapshot.deployment(deployment_id()).unwrap();
    assert_eq!(
        deployment.value.status_description,
        "Failed due to unhealthy allocations - rolling back to job version 0"
    );
    let job = snapshot.job(&key()).unwrap();
    assert_eq!(
        (job.value.version, job.value.meta.get("release")),
        (2, None)
    );
    let version = snapshot.job_version(&key(), 2).unwrap();
    let eval = snapshot.eval(made(&snapshot)[0].id).unwrap();
    assert_eq!(
        [job.modify_index, version.modify_index, eval.create_index],
        [deployment.modify_index; 3]
    );
    assert_eq!(made(&snapshot).len(), 1);
}

#[tokio::test]
async fn a_deployment_that_stands_still_fails_at_its_deadline() {
    let suite = Suite::start().await;
    let watcher = suite.watcher().await;
    suite.wait_for_leader(&watcher.address).await;
    suite.put_job(&suite.job, false).await;
    let hasty = DeploymentGroup {
        progress_deadline: Duration::from_millis(300),
        ..group()
    };
    suite.deploy(hasty).await;
    let description = suite
        .wait("a failed deployment", |snapshot| {
            let deployment = &snapshot.deployment(deployment_id())?.value;
            let failed = deployment.status == DeploymentStatus::Failed;
            failed.then(|| deployment.status_description.clone())
        })
        .await;
    assert_eq!(description, "Failed due to progress deadline");
}

#[tokio::test]
async fn the_deployment_of_a_purged_job_is_cancelled() {
    let suite = Suite::start().await;
    let watcher = suite.watcher().await;
    suite.wait_for_leader(&watcher.address).await;
    suite.put_job(&suite.job, false).await;
    suite.deploy(group()).await;
    let index = suite.now().await.job(&key()).unwrap().modify_index;
    suite
        .commit(|txn| {
            txn.add(&writes::delete(&Key::Job(key()), index)).unwrap();
        })
        .await;
    suite
        .wait("a cancelled deployment", |snapshot| {
            let status = snapshot.deployment(deployment_id())?.value.status;
            (status == DeploymentStatus::Cancelled).then_some(())
        })
        .await;
}

#[tokio::test]
async fn canaries_are_promoted_by_themselves_together_with_an_evaluation() {
    let suite = Suite::start().await;
    let watcher = suite.watcher().await;
    suite.wait_for_leader(&watcher.address).await;
    suite.put_job(&suite.job, false).await;
    let canary = DeploymentGroup {
        desired_canaries: 1,
        auto_promote: true,
        placed_canaries: vec![alloc_id()],
        ..group()
    };
    suite.deploy(canary).await;
    let reported = suite.report(true).await;
    let promoted = suite
        .wait("a promotion", |snapshot| {
            let deployment = snapshot.deployment(deployment_id())?;
            let promoted = deployment.value.groups["web"].promoted;
            promoted.then_some(deployment.modify_index)
        })
        .await;
    assert!(promoted > reported);
    let snapshot = suite.now().await;
    let eval = snapshot.eval(made(&snapshot)[0].id).unwrap();
    assert_eq!(eval.create_index, promoted);
    assert_eq!(made(&snapshot).len(), 1);
}

#[tokio::test]
async fn a_job_goes_back_to_a_node_pool_that_is_there() {
    let suite = Suite::start().await;
    let watcher = suite.watcher().await;
    suite.wait_for_leader(&watcher.address).await;
    let pool = NodePool::named("gpu");
    suite
        .commit(|txn| {
            txn.add(&writes::create(&Key::NodePool("gpu".to_owned()), &pool))
                .unwrap();
        })
        .await;
    let old = Job {
        node_pool: "gpu".to_owned(),
        ..suite.job.clone()
    };
    suite.put_job(&old, true).await;
    let newer = Job {
        version: 1,
        ..suite.job.clone()
    };
    suite.put_job(&newer, false).await;
    suite
        .deploy(DeploymentGroup {
            auto_revert: true,
            ..group()
        })
        .await;
    suite.report(false).await;
    suite
        .wait("a job that is back", |snapshot| {
            let job = &snapshot.job(&key())?.value;
            (job.version == 2 && job.node_pool == "gpu").then_some(())
        })
        .await;
}

#[tokio::test]
async fn a_revert_too_large_for_a_transaction_is_left_out_and_the_rollout_ends() {
    let suite = Suite::start().await;
    let watcher = suite.watcher().await;
    suite.wait_for_leader(&watcher.address).await;
    // Twice is more than the largest transaction. No gateway of today accepts such a job.
    let mut large = suite.job.clone();
    large.meta.insert("blob".to_owned(), "x".repeat(1_700_000));
    suite.put_large_version(&large).await;
    let newer = Job {
        version: 1,
        ..suite.job.clone()
    };
    suite.put_job(&newer, false).await;
    suite
        .deploy(DeploymentGroup {
            auto_revert: true,
            ..group()
        })
        .await;
    suite.report(false).await;
    let description = suite
        .wait("a failed deployment", |snapshot| {
            let deployment = &snapshot.deployment(deployment_id())?.value;
            let failed = deployment.status == DeploymentStatus::Failed;
            failed.then(|| deployment.status_description.clone())
        })
        .await;
    assert_eq!(
        description,
        "Failed due to unhealthy allocations - not rolling back to job version 0 as the job is too \
         large to be stored together with that"
    );
    let snapshot = suite.now().await;
    assert_eq!(snapshot.job(&key()).unwrap().value.version, 1);
    assert_eq!(
        made(&snapshot).len(),
        1,
        "the scheduler stops what is under way"
    );
}

#[tokio::test]
async fn the_largest_job_that_is_accepted_is_reverted_with_a_large_deployment() {
    let suite = Suite::start().await;
    let watcher = suite.watcher().await;
    suite.wait_for_leader(&watcher.address).await;
    let mut large = suite.job.clone();
    large.meta.insert("blob".to_owned(), "x".repeat(520_000));
    suite.put_job(&large, true).await;
    let newer = Job {
        version: 1,
        ..suite.job.clone()
    };
    suite.put_job(&newer, false).await;
    // As one with ten thousand canaries.
    let canaries = (0..10_000).map(AllocId::from_random);
    suite
        .deploy(DeploymentGroup {
            auto_revert: true,
            placed_canaries: canaries.collect(),
            ..group()
        })
        .await;
    suite.report(false).await;
    suite
        .wait("the way back", |snapshot| {
            let job = &snapshot.job(&key())?.value;
            (job.version == 2 && job.meta.contains_key("blob")).then_some(())
        })
        .await;
}
