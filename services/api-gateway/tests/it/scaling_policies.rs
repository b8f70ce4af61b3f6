//! Scaling policies, read off the jobs.

use model::Job;
use model::scaling::Scaling;
use proto::v1;
use tonic::Code;

use crate::support::{Suite, ask, job};

fn scaled(id: &str, max: u32) -> Job {
    let mut job = job(id);
    let group = &mut job.task_groups[0];
    let policy = serde_json::json!({ "cooldown": "1m" });
    group.scaling = Some(Scaling {
        enabled: true,
        min: 1,
        max,
        policy: policy.as_object().unwrap().clone(),
    });
    job
}

async fn list(suite: &Suite, job_id: &str, of_type: &str) -> Vec<v1::ScalingPolicy> {
    let request = v1::ListScalingPoliciesRequest {
        job_id: job_id.to_owned(),
        r#type: of_type.to_owned(),
        ..Default::default()
    };
    let answer = suite.scaling_policies(0).list(ask(request)).await.unwrap();
    answer.into_inner().policies
}

#[tokio::test]
async fn a_policy_is_read_off_its_job_and_keeps_its_id() {
    let suite = Suite::start(1).await;
    assert_eq!(list(&suite, "", "").await, []);
    suite.register(&job("plain")).await;
    let first = suite.register(&scaled("web", 5)).await.index;
    let listed = list(&suite, "", "").await;
    let [policy] = &listed[..] else {
        panic!("{listed:?}");
    };
    let expected = v1::ScalingPolicy {
        id: policy.id.clone(),
        r#type: "horizontal".to_owned(),
        namespace: "default".to_owned(),
        job_id: "web".to_owned(),
        task_group: job("web").task_groups[0].name.clone(),
        enabled: true,
        min: 1,
        max: 5,
        policy: "{\"cooldown\":\"1m\"}".to_owned(),
        create_index: first,
        modify_index: first,
    };
    assert_eq!(*policy, expected);

    let second = suite.register(&scaled("web", 9)).await.index;
    let get = async |id: &str| {
        let request = v1::GetScalingPolicyRequest {
            policy_id: id.to_owned(),
            ..Default::default()
        };
        let answer = suite.scaling_policies(0).get(ask(request)).await?;
        Ok::<_, tonic::Status>(answer.into_inner().policy.unwrap())
    };
    let expected = v1::ScalingPolicy {
        max: 9,
        modify_index: second,
        ..expected
    };
    assert_eq!(get(&expected.id).await.unwrap(), expected);
    assert_eq!(get(&expected.id[..8]).await.unwrap(), expected);
    let unknown = get("8a3f2c1e-0b4d-4a7e-9c5f-6d7e8f901234").await;
    assert_eq!(unknown.unwrap_err().code(), Code::NotFound);

    // Those of a stopped job are there, and not to be gone by.
    let request = v1::DeregisterJobRequest {
        job_id: "web".to_owned(),
        ..Default::default()
    };
    suite.jobs(0).deregister(ask(request)).await.unwrap();
    assert!(!get(&expected.id).await.unwrap().enabled);
}

#[tokio::test]
async fn policies_are_listed_by_job_and_type() {
    let suite = Suite::start(1).await;
    for id in ["web", "api"] {
        suite.register(&scaled(id, 5)).await;
    }
    let all = list(&suite, "", "horizontal").await;
    assert_eq!(all.len(), 2);
    assert!(all.is_sorted_by_key(|policy| policy.id.clone()));
    let of_api = list(&suite, "api", "").await;
    assert_eq!(of_api.len(), 1);
    assert_eq!(of_api[0].job_id, "api");
    assert_eq!(list(&suite, "", "vertical_cpu").await, []);
}
