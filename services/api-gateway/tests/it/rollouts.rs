//! Deployments and job versions, changed by users through the API.

use std::time::Duration;

use model::{
    AllocClient, AllocId, Allocation, ClientStatus, Deployment, DeploymentGroup, DeploymentHealth,
    DeploymentId, DeploymentStatus, EvalId, Job, Timestamp,
};
use proto::v1;
use state::{Entity, Key};
use tonic::Code;

use crate::support::{Suite, alloc, ask, job, node};

const NOW: Timestamp = Timestamp(1_700_000_000_000_000_000);

/// A second version of job `web`, whose first is stable, in a rollout with one canary of two.
struct Rollout {
    suite: Suite,
    job: Job,
    id: DeploymentId,
    canary: AllocId,
}

fn second(job: &Job) -> Job {
    let mut second = job.clone();
    second.meta.insert("release".to_owned(), "2".to_owned());
    second
}

impl Rollout {
    async fn start(gateways: usize) -> Self {
        let suite = Suite::start(gateways).await;
        let job = job("web");
        let created = suite.register(&job).await.index;
        suite
            .put(&Key::JobStable(job.key(), 0), &Entity::JobStable)
            .await;
        let modified = suite.register(&second(&job)).await.index;
        let id = DeploymentId::from_random(77);
        let canary = Allocation {
            job_version: 1,
            deployment_id: Some(id),
            canary: true,
            ..alloc(1, &job, &node(1), created)
        };
        suite.put_node(&node(1)).await;
        suite.put_alloc(&canary).await;
        let group = DeploymentGroup {
            auto_revert: true,
            progress_deadline: Duration::from_secs(600),
            desired_canaries: 1,
            desired_total: 2,
            placed_canaries: vec![canary.id],
            ..DeploymentGroup::default()
        };
        let name = job.task_groups[0].name.clone();
        let deployment = Deployment {
            id,
            job: job.key(),
            job_version: 1,
            job_modify_index: modified,
            job_create_index: created,
            status: DeploymentStatus::Running,
            status_description: String::new(),
            groups: [(name, group)].into(),
            eval_priority: 60,
            create_time: NOW,
            modify_time: NOW,
        };
        suite.put_deployment(&deployment).await;
        Self {
            suite,
            job,
            id,
            canary: canary.id,
        }
    }

    async fn report_canary(&self, healthy: bool) {
        let client = AllocClient {
            status: ClientStatus::Running,
            health: Some(DeploymentHealth {
                healthy,
                time: NOW,
                deployment_id: Some(self.id),
            }),
            ..AllocClient::default()
        };
        let key = Key::AllocClient(self.canary);
        self.suite
            .put(&key, &Entity::AllocClient(Box::new(client)))
            .await;
    }

    fn promotion(&self, request_id: &str) -> v1::PromoteDeploymentRequest {
        v1::PromoteDeploymentRequest {
            deployment_id: self.id.to_string(),
            all: true,
            request_id: request_id.to_owned(),
            ..Default::default()
        }
    }

    async fn shown(&self) -> v1::Deployment {
        let request = v1::GetDeploymentRequest {
            deployment_id: self.id.to_string(),
            ..Default::default()
        };
        let mut client = self.suite.deployments(0);
        let answer = client.get(ask(request)).await.unwrap().into_inner();
        answer.deployment.unwrap()
    }

    async fn canary_is_shown_as_one(&self) -> bool {
        let request = v1::GetAllocationRequest {
            alloc_id: self.canary.to_string(),
            ..Default::default()
        };
        let mut client = self.suite.allocations(0);
        let answer = client.get(ask(request)).await.unwrap().into_inner();
        answer.allocation.unwrap().canary
    }
}

#[tokio::test]
async fn a_promotion_is_one_transaction_and_a_retry_is_answered_alike() {
    let rollout = Rollout::start(2).await;
    let refused = rollout
        .suite
        .deployments(0)
        .promote(ask(rollout.promotion("")))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(
        refused.message().ends_with("has 0/1 healthy allocations"),
        "{refused:?}"
    );
    rollout.report_canary(true).await;
    assert!(rollout.canary_is_shown_as_one().await);
    let mut client = rollout.suite.deployments(0);
    let request = ask(rollout.promotion("r1"));
    let first = client.promote(request).await.unwrap().into_inner();
    assert_eq!(first.index, first.eval_create_index);
    let deployment = rollout
        .suite
        .get(&Key::Deployment(rollout.id))
        .await
        .unwrap();
    assert_eq!(deployment.mod_revision, first.deployment_modify_index);
    let eval_id: EvalId = first.eval_id.parse().unwrap();
    let eval = rollout.suite.get(&Key::Eval(eval_id)).await.unwrap();
    assert_eq!(eval.create_revision, first.index);
    for gateway in [0, 1] {
        let mut client = rollout.suite.deployments(gateway);
        let request = ask(rollout.promotion("r1"));
        let again = client.promote(request).await.unwrap().into_inner();
        assert_eq!(again, first);
    }
    let refused = client
        .promote(ask(rollout.promotion("r2")))
        .await
        .unwrap_err();
    assert!(refused.message().starts_with("no canaries to promote"));
    assert!(!rollout.canary_is_shown_as_one().await);
    let shown = rollout.shown().await;
    assert!(shown.task_groups.values().all(|group| group.promoted));
    assert!(
        shown
            .task_groups
            .values()
            .all(|group| { group.require_progress_by_ns > shown.modify_time_ns })
    );
}

#[tokio::test]
async fn a_deployment_is_paused_and_resumed() {
    let rollout = Rollout::start(1).await;
    let mut client = rollout.suite.deployments(0);
    let request = |pause| {
        ask(v1::PauseDeploymentRequest {
            deployment_id: rollout.id.to_string(),
            pause,
            ..Default::default()
        })
    };
    let paused = client.pause(request(true)).await.unwrap().into_inner();
    assert_eq!((&*paused.eval_id, paused.eval_create_index), ("", 0));
    assert_eq!(rollout.shown().await.status, "paused");
    let again = client.pause(request(true)).await.unwrap().into_inner();
    assert_eq!(again.index, paused.index, "nothing is written twice");
    let resumed = client.pause(request(false)).await.unwrap().into_inner();
    assert!(!resumed.eval_id.is_empty());
    let shown = rollout.shown().await;
    assert_eq!(
        (&*shown.status, &*shown.status_description),
        (
            "running",
            "Deployment is running but requires manual promotion"
        )
    );
}

#[tokio::test]
async fn a_failed_deployment_takes_its_job_back_in_the_same_transaction() {
    let rollout = Rollout::start(2).await;
    let request = |request_id: &str| {
        ask(v1::FailDeploymentRequest {
            deployment_id: rollout.id.to_string(),
            request_id: request_id.to_owned(),
        })
    };
    let mut client = rollout.suite.deployments(0);
    let failed = client.fail(request("r1")).await.unwrap().into_inner();
    assert_eq!(failed.reverted_job_version, Some(0));
    let key = Key::JobVersion(rollout.job.key(), 2);
    let reverted = rollout.suite.get(&key).await.unwrap();
    assert_eq!(reverted.create_revision, failed.index);
    let again = rollout.suite.deployments(1).fail(request("r1")).await;
    assert_eq!(again.unwrap().into_inner(), failed);
    let refused = client.fail(request("r2")).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    let words = refused.message();
    assert!(
        words.starts_with("can't fail terminal deployment: ") && words.contains("kafila job run"),
        "{words}"
    );
    let request = ask(v1::UnblockDeploymentRequest {
        deployment_id: rollout.id.to_string(),
    });
    let refused = client.unblock(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(refused.message().contains("several regions"), "{refused:?}");
}

#[tokio::test]
async fn a_users_word_on_health_is_stored_with_its_evaluation() {
    let rollout = Rollout::start(1).await;
    let mut client = rollout.suite.deployments(0);
    let request = |healthy: &[AllocId], unhealthy: &[AllocId]| {
        let texts = |ids: &[AllocId]| ids.iter().map(ToString::to_string).collect();
        ask(v1::SetAllocHealthRequest {
            deployment_id: rollout.id.to_string(),
            healthy_alloc_ids: texts(healthy),
            unhealthy_alloc_ids: texts(unhealthy),
            request_id: String::new(),
        })
    };
    let stranger = AllocId::from_random(99);
    let refused = client.set_alloc_health(request(&[stranger], &[])).await;
    assert_eq!(refused.unwrap_err().code(), Code::InvalidArgument);
    let canary = [rollout.canary];
    let answer = client.set_alloc_health(request(&canary, &[])).await;
    let answer = answer.unwrap().into_inner();
    let key = Key::AllocClient(rollout.canary);
    let stored = rollout.suite.get(&key).await.unwrap();
    assert_eq!(stored.mod_revision, answer.index);
    assert!(!answer.eval_id.is_empty());
    let shown = rollout.shown().await;
    assert!(shown.task_groups.values().all(|it| it.healthy_allocs == 1));
    let answer = client.set_alloc_health(request(&[], &canary)).await;
    let answer = answer.unwrap().into_inner();
    assert_eq!(answer.reverted_job_version, Some(0));
    assert_eq!(rollout.shown().await.status, "failed");
}

#[tokio::test]
async fn a_job_is_reverted_by_number_and_by_name() {
    let suite = Suite::start(2).await;
    let job = job("web");
    suite.register(&job).await;
    let tag = v1::TagJobVersionRequest {
        job_id: "web".to_owned(),
        name: "gold".to_owned(),
        description: "the one that works".to_owned(),
        ..Default::default()
    };
    let tagged = suite.jobs(0).tag_version(ask(tag)).await.unwrap();
    let tagged = tagged.into_inner();
    assert_eq!(
        (tagged.version, tagged.tag.unwrap().name),
        (0, "gold".into())
    );
    suite.register(&second(&job)).await;
    let revert = |to, request_id: &str| {
        ask(v1::RevertJobRequest {
            job_id: "web".to_owned(),
            target: Some(to),
            request_id: request_id.to_owned(),
            ..Default::default()
        })
    };
    use v1::revert_job_request::Target;
    let named = Target::Tag("gold".to_owned());
    let first = suite.jobs(0).revert(revert(named.clone(), "r1")).await;
    let first = first.unwrap().into_inner();
    assert!(first.changed);
    let again = suite.jobs(1).revert(revert(named, "r1")).await;
    assert_eq!(again.unwrap().into_inner(), first);
    let refused = suite.jobs(0).revert(revert(Target::Version(2), "")).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(
        refused
            .message()
            .starts_with("can't revert to current version")
    );
    let refused = suite.jobs(0).revert(revert(Target::Version(9), "")).await;
    assert_eq!(refused.unwrap_err().code(), Code::NotFound);
    suite
        .jobs(0)
        .revert(revert(Target::Version(1), ""))
        .await
        .unwrap();
    let list = |diffs, diff_version, diff_tag: &str| {
        ask(v1::ListJobVersionsRequest {
            job_id: "web".to_owned(),
            diffs,
            diff_version,
            diff_tag: diff_tag.to_owned(),
            ..Default::default()
        })
    };
    let listed = suite.jobs(0).list_versions(list(true, None, "")).await;
    let listed = listed.unwrap().into_inner();
    let versions: Vec<u64> = listed.jobs.iter().map(v1::Job::version).collect();
    assert_eq!(versions, [3, 2, 1, 0]);
    let names: Vec<bool> = listed
        .jobs
        .iter()
        .map(|it| it.version_tag.is_some())
        .collect();
    assert_eq!(names, [false, false, false, true]);
    let kinds = |diffs: &[v1::JobDiff]| -> Vec<bool> {
        let same = |diff: &v1::JobDiff| diff.r#type() == v1::DiffType::None;
        diffs.iter().map(same).collect()
    };
    assert_eq!(kinds(&listed.diffs), [false, false, false]);
    for request in [list(false, Some(0), ""), list(false, None, "gold")] {
        let listed = suite.jobs(0).list_versions(request).await.unwrap();
        let diffs = listed.into_inner().diffs;
        assert_eq!(kinds(&diffs), [false, true, false, true]);
    }
    let untag = v1::UntagJobVersionRequest {
        job_id: "web".to_owned(),
        name: "gold".to_owned(),
        ..Default::default()
    };
    suite
        .jobs(0)
        .untag_version(ask(untag.clone()))
        .await
        .unwrap();
    let refused = suite.jobs(0).untag_version(ask(untag)).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
}

#[tokio::test]
async fn a_version_is_called_stable_by_a_user() {
    let suite = Suite::start(1).await;
    let job = job("web");
    suite.register(&job).await;
    for stable in [true, true, false] {
        let request = v1::SetJobStableRequest {
            job_id: "web".to_owned(),
            stable,
            ..Default::default()
        };
        suite.jobs(0).set_stable(ask(request)).await.unwrap();
        let get = v1::GetJobRequest {
            job_id: "web".to_owned(),
            ..Default::default()
        };
        let shown = suite.jobs(0).get(ask(get)).await.unwrap().into_inner();
        assert_eq!(shown.job.unwrap().stable, Some(stable));
    }
}
