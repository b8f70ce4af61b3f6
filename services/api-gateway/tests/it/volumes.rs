//! Volumes through the API: registered, found, sent to their node, and deleted when nothing uses
//! them.

use model::job::{VolumeRequest, VolumeType};
use model::{ClientStatus, Job, JobType, NodeStatus, Volume};
use proto::v1;
use proto::v1::ErrorDetail;
use state::{Entity, Key};
use tonic::{Code, Status};

use crate::sessions::{next, watch};
use crate::support::{Suite, alloc, ask, job, node};

fn wanted(name: &str, number: u128) -> v1::Volume {
    v1::Volume {
        namespace: "default".to_owned(),
        name: name.to_owned(),
        r#type: "host".to_owned(),
        node_id: node(number).id.to_string(),
        host_path: format!("/srv/{name}"),
        capabilities: vec![v1::VolumeCapability {
            access_mode: "single-node-writer".to_owned(),
            attachment_mode: "file-system".to_owned(),
        }],
        ..v1::Volume::default()
    }
}

async fn register(suite: &Suite, volume: v1::Volume) -> Result<v1::Volume, Status> {
    let volume = Some(volume);
    let request = v1::RegisterVolumeRequest { volume };
    let answer = suite.volumes(0).register(ask(request)).await?;
    Ok(answer.into_inner().volume.unwrap())
}

async fn get(suite: &Suite, gateway: usize, id: &str) -> Result<v1::GetVolumeResponse, Status> {
    let request = v1::GetVolumeRequest {
        volume_id: id.to_owned(),
        ..Default::default()
    };
    let answer = suite.volumes(gateway).get(ask(request)).await?;
    Ok(answer.into_inner())
}

async fn delete(suite: &Suite, gateway: usize, id: &str) -> Result<String, Status> {
    let request = v1::DeleteVolumeRequest {
        volume_id: id.to_owned(),
        ..Default::default()
    };
    let answer = suite.volumes(gateway).delete(ask(request)).await?;
    Ok(answer.into_inner().volume_id)
}

async fn put_node(suite: &Suite, number: u128) {
    let mut node = node(number);
    node.status = NodeStatus::Ready;
    suite.put_node(&node).await;
}

fn using(name: &str, id: &str, sticky: bool) -> Job {
    let mut job = job(id);
    let ask = VolumeRequest {
        volume_type: VolumeType::Host,
        source: name.to_owned(),
        read_only: false,
        sticky,
        per_alloc: false,
        access_mode: None,
        attachment_mode: None,
        mount_options: Default::default(),
    };
    job.task_groups[0].volumes.insert("files".to_owned(), ask);
    job
}

/// Stores a job; returns the revision that made it.
async fn put_job(suite: &Suite, job: &Job) -> u64 {
    let entity = Entity::JobVersion(Box::new(job.clone()));
    suite.put(&Key::JobVersion(job.key(), 0), &entity).await;
    let entity = Entity::Job(Box::new(job.clone()));
    suite.put(&Key::Job(job.key()), &entity).await
}

#[tokio::test]
async fn a_volume_is_found_by_id_and_by_name_through_any_gateway() {
    let suite = Suite::start(2).await;
    put_node(&suite, 1).await;
    put_node(&suite, 2).await;
    let first = register(&suite, wanted("data", 1)).await.unwrap();
    assert_eq!((&*first.state, &*first.node_pool), ("ready", "default"));
    assert_eq!(first.create_index, first.modify_index);
    assert_eq!(register(&suite, first.clone()).await.unwrap(), first);
    for id in ["data", &first.id, &first.id[..8]] {
        let found = get(&suite, 1, id).await.unwrap();
        assert_eq!(found.volume.unwrap(), first, "{id}");
        assert_eq!(found.alloc_ids, [""; 0]);
    }
    let second = register(&suite, wanted("data", 2)).await.unwrap();
    assert_ne!(second.id, first.id);
    let both = get(&suite, 1, "data").await.unwrap_err();
    assert!(both.message().contains("2 volumes"), "{both}");
    assert_eq!(
        get(&suite, 1, "logs").await.unwrap_err().code(),
        Code::NotFound
    );
    let list = |request: v1::ListVolumesRequest| {
        let suite = &suite;
        async move {
            let answer = suite.volumes(1).list(ask(request)).await.unwrap();
            let answer = answer.into_inner();
            let ids: Vec<String> = answer.volumes.into_iter().map(|it| it.id).collect();
            (ids, answer.meta.unwrap().next_token)
        }
    };
    let all = list(v1::ListVolumesRequest::default()).await.0;
    assert_eq!(all.len(), 2);
    let here = v1::ListVolumesRequest {
        node_id: second.node_id.clone(),
        ..Default::default()
    };
    assert_eq!(list(here).await.0, [second.id]);
    for (pool, found) in [("default", 2), ("all", 2), ("gpu", 0)] {
        let request = v1::ListVolumesRequest {
            node_pool: pool.to_owned(),
            ..Default::default()
        };
        assert_eq!(list(request).await.0.len(), found, "{pool}");
    }
    let paged = |next_token: String| v1::ListVolumesRequest {
        options: Some(v1::QueryOptions {
            per_page: 1,
            next_token,
            ..Default::default()
        }),
        ..Default::default()
    };
    let (one, token) = list(paged(String::new())).await;
    let (other, end) = list(paged(token)).await;
    assert_eq!([one, other].concat(), all);
    assert_eq!(end, "");
}

#[tokio::test]
async fn an_error_of_a_volume_names_its_field() {
    let suite = Suite::start(1).await;
    put_node(&suite, 1).await;
    let mut nowhere = wanted("data", 9);
    nowhere.host_path = "srv".to_owned();
    for (volume, field) in [
        (wanted("data", 9), "volume.node_id"),
        (nowhere, "volume.host_path"),
        (
            v1::Volume {
                r#type: "csi".to_owned(),
                ..wanted("data", 1)
            },
            "volume.type",
        ),
    ] {
        let status = register(&suite, volume).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        let detail = ErrorDetail::from_status(&status).unwrap();
        assert_eq!(detail.violations[0].field, field);
    }
}

#[tokio::test]
async fn a_used_volume_stays_and_its_node_gets_its_path() {
    let suite = Suite::start(2).await;
    put_node(&suite, 1).await;
    let volume = register(&suite, wanted("data", 1)).await.unwrap();
    let job = using("data", "db", false);
    let create_index = put_job(&suite, &job).await;
    let alloc = alloc(1, &job, &node(1), create_index);
    suite.put_alloc(&alloc).await;
    let mut updates = watch(&suite, 1, &node(1), 0).await.unwrap();
    let assignment = loop {
        // The first may be from before the allocation.
        if let Some(assignment) = next(&mut updates).await.assignments.pop() {
            break assignment;
        }
    };
    let paths: Vec<_> = assignment.volume_paths.iter().collect();
    assert_eq!(paths, [(&"data".to_owned(), &"/srv/data".to_owned())]);
    let users = get(&suite, 0, &volume.id).await.unwrap().alloc_ids;
    assert_eq!(users, [alloc.id.to_string()]);
    let refused = delete(&suite, 0, "data").await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(
        refused.message().starts_with("volume in use: data"),
        "{refused}"
    );
    let client = model::AllocClient {
        status: ClientStatus::Complete,
        ..model::AllocClient::default()
    };
    let entity = Entity::AllocClient(Box::new(client));
    suite.put(&Key::AllocClient(alloc.id), &entity).await;
    assert_eq!(delete(&suite, 1, "data").await.unwrap(), volume.id);
    let gone = get(&suite, 0, &volume.id).await.unwrap_err();
    assert_eq!(gone.code(), Code::NotFound);
}

#[tokio::test]
async fn claims_are_listed_deleted_and_go_with_a_purged_job() {
    let suite = Suite::start(1).await;
    put_node(&suite, 1).await;
    let volume = register(&suite, wanted("data", 1)).await.unwrap();
    let volume: Volume = volume.try_into().unwrap();
    let mut ids = Vec::new();
    for name in ["db", "web"] {
        let job = using("data", name, true);
        let create_index = put_job(&suite, &job).await;
        let claim = model::VolumeClaim {
            namespace: "default".to_owned(),
            job_id: name.to_owned(),
            task_group: job.task_groups[0].name.clone(),
            alloc_id: alloc(1, &job, &node(1), create_index).id,
            volume_id: volume.id,
            volume_name: "data".to_owned(),
            node_id: volume.node_id,
        };
        ids.push(claim.id().to_string());
        let entity = Entity::VolumeClaim(Box::new(claim.clone()));
        suite.put(&Key::VolumeClaim(claim.id()), &entity).await;
    }
    let list = |job_id: &str| {
        let request = v1::ListVolumeClaimsRequest {
            job_id: job_id.to_owned(),
            ..Default::default()
        };
        let suite = &suite;
        async move {
            let answer = suite.volumes(0).list_claims(ask(request)).await.unwrap();
            let claims = answer.into_inner().claims.into_iter();
            claims.map(|claim| claim.id).collect::<Vec<_>>()
        }
    };
    assert_eq!(list("").await, ids);
    assert_eq!(list("web").await, ids[1..]);
    let request = v1::DeleteVolumeClaimRequest {
        claim_id: ids[1][..8].to_owned(),
    };
    suite.volumes(0).delete_claim(ask(request)).await.unwrap();
    assert_eq!(list("").await, ids[..1]);
    // Its job may have waited for that.
    let request = v1::ListEvaluationsRequest::default();
    let answer = suite.evaluations(0).list(ask(request)).await.unwrap();
    let evals = answer.into_inner().evaluations;
    let looked: Vec<_> = evals.iter().map(|eval| &*eval.job_id).collect();
    assert_eq!(looked, ["web"]);
    let request = v1::DeregisterJobRequest {
        job_id: "db".to_owned(),
        purge: true,
        ..Default::default()
    };
    suite.jobs(0).deregister(ask(request)).await.unwrap();
    assert_eq!(list("").await, [""; 0]);
}

#[tokio::test]
async fn system_jobs_are_looked_at_when_their_volume_comes() {
    let suite = Suite::start(1).await;
    put_node(&suite, 1).await;
    let mut job = using("data", "log", false);
    job.job_type = JobType::System;
    put_job(&suite, &job).await;
    // From here on the gateway knows the job.
    let request = v1::GetJobRequest {
        job_id: "log".to_owned(),
        ..Default::default()
    };
    suite.jobs(0).get(ask(request)).await.unwrap();
    register(&suite, wanted("data", 1)).await.unwrap();
    let request = v1::ListEvaluationsRequest::default();
    let answer = suite.evaluations(0).list(ask(request)).await.unwrap();
    let evals = answer.into_inner().evaluations;
    assert_eq!(evals.len(), 1);
    assert_eq!(
        (&*evals[0].job_id, &*evals[0].triggered_by),
        ("log", "node-update")
    );
}
