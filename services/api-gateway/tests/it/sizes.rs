//! The largest jobs that are accepted, and everything that may become of them.

use std::time::Duration;

use model::{
    AllocId, Deployment, DeploymentGroup, DeploymentId, DeploymentStatus, Job, Parameterized,
    Payload, PayloadRule, Periodic, TaskGroup, Timestamp,
};
use proto::v1;
use state::{Entity, Key};
use tonic::Code;

use crate::support::{Suite, ask, job};

/// More than any job has room for.
const TOO_MUCH: usize = 1 << 20;

/// Fillers that bring a job to a given size, a byte or an escaped one at a time.
const FILLERS: [&str; 2] = ["x", "\n"];

fn filled(job: &Job, filler: &str, length: usize) -> Job {
    let mut job = job.clone();
    job.meta.insert("filler".to_owned(), filler.repeat(length));
    job
}

async fn try_to_register(suite: &Suite, job: &Job) -> bool {
    let request = v1::RegisterJobRequest {
        job: Some(job.into()),
        ..Default::default()
    };
    match suite.jobs(0).register(ask(request)).await {
        Ok(_) => true,
        Err(status) => {
            assert_eq!(status.code(), Code::InvalidArgument, "{status}");
            assert!(status.message().contains("too large"), "{status}");
            false
        }
    }
}

/// Registers the largest job that `job` can be made to be, and returns it.
async fn register_largest(suite: &Suite, job: &Job, filler: &str) -> Job {
    let (mut fits, mut does_not) = (0, TOO_MUCH);
    while does_not - fits > 1 {
        let middle = usize::midpoint(fits, does_not);
        let probe = Job {
            id: format!("{}-{middle:07}", job.id),
            ..filled(job, filler, middle)
        };
        if try_to_register(suite, &probe).await {
            fits = middle;
        } else {
            does_not = middle;
        }
    }
    Job {
        id: format!("{}-{fits:07}", job.id),
        ..filled(job, filler, fits)
    }
}

/// Services of which one is as large as it may be for its text, and one for its groups.
fn shapes() -> Vec<Job> {
    let plain = job("plain");
    let mut groups = job("groups");
    let group = groups.task_groups[0].clone();
    groups.task_groups = (0..200)
        .map(|number| TaskGroup {
            name: format!("{}-{number:03}", "g".repeat(120)),
            ..group.clone()
        })
        .collect();
    vec![plain, groups]
}

/// A deployment of a job's second version, with canaries in every group.
fn deployment(job: &Job, registered: &[v1::RegisterJobResponse; 2]) -> Deployment {
    let group = DeploymentGroup {
        auto_revert: true,
        progress_deadline: Duration::from_secs(600),
        desired_canaries: 20,
        desired_total: 20,
        placed_canaries: (0..20).map(AllocId::from_random).collect(),
        ..DeploymentGroup::default()
    };
    let names = job.task_groups.iter().map(|group| group.name.clone());
    let now = Timestamp::from_secs(1_700_000_000);
    Deployment {
        id: DeploymentId::from_random(77),
        job: job.key(),
        job_version: 1,
        job_modify_index: registered[1].job_modify_index,
        job_create_index: registered[0].job_modify_index,
        status: DeploymentStatus::Running,
        status_description: String::new(),
        groups: names.map(|name| (name, group.clone())).collect(),
        eval_priority: 60,
        create_time: now,
        modify_time: now,
    }
}

#[tokio::test]
async fn the_largest_service_can_be_failed_reverted_scaled_and_stopped() {
    for (shape, filler) in shapes().iter().zip(FILLERS) {
        let suite = Suite::start(1).await;
        let largest = register_largest(&suite, shape, filler).await;
        // Two versions, of which the first is stable.
        let first = suite.register(&largest).await;
        let marker = Key::JobStable(largest.key(), 0);
        suite.put(&marker, &Entity::JobStable).await;
        let mut second = largest.clone();
        // A little less, for what an update compares.
        let text = second.meta.get_mut("filler").unwrap();
        text.truncate(text.len() - 100);
        let registered = [first, suite.register(&second).await];
        let deployment = deployment(&second, &registered);
        suite.put_deployment(&deployment).await;

        let request = v1::FailDeploymentRequest {
            deployment_id: deployment.id.to_string(),
            ..Default::default()
        };
        let failed = suite.deployments(0).fail(ask(request)).await.unwrap();
        let failed = failed.into_inner();
        assert_eq!(failed.reverted_job_version, Some(0), "{}", largest.id);

        let scale = v1::ScaleJobRequest {
            job_id: largest.id.clone(),
            task_group: largest.task_groups[0].name.clone(),
            count: Some(1_000),
            ..Default::default()
        };
        suite.jobs(0).scale(ask(scale)).await.unwrap();
        // To and fro, until versions are pruned and their numbers have another digit.
        for current in 3..12 {
            let revert = v1::RevertJobRequest {
                job_id: largest.id.clone(),
                target: Some(v1::revert_job_request::Target::Version(current - 1)),
                ..Default::default()
            };
            suite.jobs(0).revert(ask(revert)).await.unwrap();
        }
        let stop = v1::DeregisterJobRequest {
            job_id: largest.id.clone(),
            ..Default::default()
        };
        suite.jobs(0).deregister(ask(stop)).await.unwrap();
    }
}

#[tokio::test]
async fn the_largest_periodic_job_can_be_launched() {
    let suite = Suite::start(1).await;
    let mut parent = test_kit::builders::batch("nightly", 1);
    parent.periodic = Some(Periodic {
        enabled: true,
        crons: vec!["0 0 1 1 *".to_owned()],
        is_list: false,
        prohibit_overlap: false,
        time_zone: "UTC".to_owned(),
    });
    for filler in FILLERS {
        let largest = register_largest(&suite, &parent, filler).await;
        let request = v1::ForcePeriodicJobRequest {
            job_id: largest.id.clone(),
            ..Default::default()
        };
        suite.jobs(0).force_periodic(ask(request)).await.unwrap();
    }
}

#[tokio::test]
async fn the_largest_parameterized_job_can_be_dispatched_with_the_largest_payload() {
    let suite = Suite::start(1).await;
    let mut parent = test_kit::builders::batch("convert", 1);
    parent.parameterized = Some(Parameterized {
        payload: PayloadRule::Required,
        meta_required: Vec::new(),
        meta_optional: Vec::new(),
    });
    for filler in FILLERS {
        let largest = register_largest(&suite, &parent, filler).await;
        let request = v1::DispatchJobRequest {
            job_id: largest.id.clone(),
            payload: vec![0xff; Payload::MAX_BYTES],
            idempotency_token: "t".repeat(256),
            id_prefix_template: "i".repeat(128),
            ..Default::default()
        };
        let dispatched = suite.jobs(0).dispatch(ask(request)).await.unwrap();
        let child = v1::DeregisterJobRequest {
            job_id: dispatched.into_inner().dispatched_job_id,
            ..Default::default()
        };
        suite.jobs(0).deregister(ask(child)).await.unwrap();
    }
}
