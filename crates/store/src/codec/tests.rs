//! Round trips, sizes and refusals of stored values.

use model::allocation::RescheduleEvent;
use model::service::ServiceCheck;
use model::{
    AccessMode, Algorithm, AllocId, AllocMetric, AllocatedPort, AttachmentMode, Capability,
    DeploymentId, DeploymentStatus, Ended, EvalId, JobTally, PoolConfiguration, Preemption,
    ScoreParts, StoredMetric, VersionTag, VolumeId,
};
use model::{IntroductionTokenId, JobKey, TaskState, Timestamp};
use state::{Progress, Write};
use std::collections::BTreeMap;
use std::time::Duration;
use test_kit::builders::{allocation, evaluation, node, service};

use super::*;

/// Upper bound of the stored size of a plain placement.
const MAX_PLACEMENT_BYTES: usize = 400;
/// Upper bound per port of the placement.
const MAX_PORT_BYTES: usize = 80;

fn deployment() -> Deployment {
    Deployment {
        id: DeploymentId::from_random(4),
        job: JobKey::new("default", "web"),
        job_version: 3,
        job_modify_index: 17,
        job_create_index: 5,
        status: DeploymentStatus::Running,
        status_description: "deployment is running".to_owned(),
        groups: BTreeMap::from([("web".to_owned(), model::DeploymentGroup::default())]),
        eval_priority: 50,
        create_time: Timestamp(1),
        modify_time: Timestamp(2),
    }
}

fn scheduler_config() -> SchedulerConfiguration {
    SchedulerConfiguration {
        algorithm: Algorithm::Spread,
        memory_oversubscription_enabled: true,
        preemption: Preemption {
            system: false,
            sysbatch: true,
            batch: true,
            service: true,
        },
        reject_job_registration: true,
        pause_eval_broker: true,
        pools: BTreeMap::new(),
    }
}

fn namespace() -> Namespace {
    Namespace {
        description: "for trying out".to_owned(),
        meta: [("owner".to_owned(), "sre".to_owned())].into(),
        capabilities: model::namespace::Capabilities {
            enabled_task_drivers: vec!["raw_exec".to_owned()],
            disabled_task_drivers: vec!["mock_driver".to_owned()],
        },
        node_pools: model::namespace::NodePoolRules {
            default: "batch".to_owned(),
            allowed: Some(Vec::new()),
            denied: Vec::new(),
        },
        deleting: true,
        ..Namespace::named("dev")
    }
}

fn node_pool() -> NodePool {
    NodePool {
        description: "with cards".to_owned(),
        meta: BTreeMap::from([("owner".to_owned(), "ml".to_owned())]),
        scheduler_config: PoolConfiguration {
            algorithm: Some(Algorithm::Spread),
            memory_oversubscription_enabled: Some(true),
        },
        deleting: true,
        ..NodePool::named("gpu")
    }
}

fn volume() -> Volume {
    Volume {
        namespace: "team".to_owned(),
        name: "data[0]".to_owned(),
        node_id: node(1).id,
        id: VolumeId::from_random(5),
        host_path: "/srv/data".to_owned(),
        capabilities: vec![Capability {
            access_mode: AccessMode::SingleNodeSingleWriter,
            attachment_mode: AttachmentMode::FileSystem,
        }],
        deleting: true,
        create_time: Timestamp(1),
        modify_time: Timestamp(2),
    }
}

fn claim() -> VolumeClaim {
    VolumeClaim {
        namespace: "team".to_owned(),
        job_id: "team/web".to_owned(),
        task_group: "web".to_owned(),
        alloc_id: AllocId::from_random(3),
        volume_id: volume().id,
        volume_name: volume().name,
        node_id: volume().node_id,
    }
}

fn scaling_events() -> ScalingEvents {
    let mut events = ScalingEvents {
        job_create_index: 7,
        ..ScalingEvents::default()
    };
    for count in [3, 4] {
        let event = model::ScalingEvent {
            time: Timestamp(5),
            count: Some(count),
            previous_count: 2,
            message: "busy".to_owned(),
            error: true,
            meta: BTreeMap::from([("by".to_owned(), "me".to_owned())]),
            eval_id: Some(EvalId::from_random(2)),
            create_index: 0,
        };
        events.push(event, 12);
    }
    events
}

/// One object of each kind, with every field set.
fn objects() -> Vec<(Key, Entity)> {
    let job = service("team/web", 3);
    let mut alloc = allocation(3, &job, node(1).id);
    alloc.eval_id = EvalId::from_random(30);
    alloc.deployment_id = Some(DeploymentId::from_random(4));
    alloc.reschedules.push(RescheduleEvent {
        time: Timestamp(9),
        previous_alloc: AllocId::from_random(2),
        previous_node: node(2).id,
        delay: Duration::from_secs(30),
    });
    alloc.client_status_override = Some(model::ClientStatus::Unknown);
    let mut eval = evaluation(2, &job);
    eval.class_eligibility.insert("v1:abc".to_owned(), false);
    eval.failed_task_groups
        .insert("web".to_owned(), AllocMetric::default());
    let client = AllocClient {
        task_states: [("server".to_owned(), TaskState::default())].into(),
        ..AllocClient::default()
    };
    let leader = LeaderInfo {
        address: "http://127.0.0.1:7101".to_owned(),
        replica: "a".to_owned(),
    };
    vec![
        (Key::Job(job.key()), Entity::Job(Box::new(job.clone()))),
        (
            Key::JobVersion(job.key(), 0),
            Entity::JobVersion(Box::new(job.clone())),
        ),
        (Key::JobStable(job.key(), 0), Entity::JobStable),
        (
            Key::PlanPiece(EvalId::from_random(30), 2),
            Entity::PlanPiece(Box::new(PlanPiece {
                ops: vec![
                    Write::RequireUnchanged {
                        key: Key::Node(node(1).id),
                        modify_index: 12,
                    },
                    Write::RequireAbsent {
                        key: Key::Job(job.key()),
                    },
                    Write::Create {
                        key: Key::Alloc(alloc.id),
                        entity: Entity::Alloc(Box::new(alloc.clone())),
                    },
                    Write::Update {
                        key: Key::Alloc(alloc.id),
                        modify_index: 11,
                        entity: Entity::Alloc(Box::new(alloc.clone())),
                    },
                ],
            })),
        ),
        (
            Key::PlanCommit(EvalId::from_random(30)),
            Entity::PlanCommit(PlanCommit {
                pieces: 3,
                begun: Some(Progress { piece: 1, ops: 40 }),
            }),
        ),
        (
            Key::JobTally(job.key()),
            Entity::JobTally(Box::new(JobTally {
                job_create_index: 7,
                groups: BTreeMap::from([(
                    "web".to_owned(),
                    Ended {
                        complete: 3,
                        ..Ended::default()
                    },
                )]),
                children: 2,
            })),
        ),
        (
            Key::JobTags(job.key()),
            Entity::JobTags(Box::new(JobTags {
                versions: BTreeMap::from([(
                    3,
                    VersionTag {
                        name: "gold".to_owned(),
                        ..VersionTag::default()
                    },
                )]),
            })),
        ),
        (Key::Eval(eval.id), Entity::Eval(Box::new(eval))),
        (Key::Alloc(alloc.id), Entity::Alloc(Box::new(alloc.clone()))),
        (
            Key::AllocClient(alloc.id),
            Entity::AllocClient(Box::new(client)),
        ),
        (Key::Node(node(1).id), Entity::Node(Box::new(node(1)))),
        (
            Key::Deployment(deployment().id),
            Entity::Deployment(Box::new(deployment())),
        ),
        (
            Key::Election("eval-broker".to_owned()),
            Entity::Election(leader),
        ),
        (
            Key::SchedulerConfig,
            Entity::SchedulerConfig(Box::new(scheduler_config())),
        ),
        (
            Key::NodePool("gpu".to_owned()),
            Entity::NodePool(Box::new(node_pool())),
        ),
        (
            Key::Namespace("dev".to_owned()),
            Entity::Namespace(Box::new(namespace())),
        ),
        (
            Key::Volume(volume().key()),
            Entity::Volume(Box::new(volume())),
        ),
        (
            Key::VolumeClaim(claim().id()),
            Entity::VolumeClaim(Box::new(claim())),
        ),
        (
            Key::PeriodicLaunch(job.key()),
            Entity::PeriodicLaunch(PeriodicLaunch {
                launched: Timestamp::from_secs(1_700_000_000),
            }),
        ),
        (
            Key::DispatchToken(job.key(), "run/7".to_owned()),
            Entity::DispatchToken(DispatchToken {
                child_id: "team/web/dispatch-1-a".to_owned(),
            }),
        ),
        (
            Key::ScalingEvents(job.key(), "web".to_owned()),
            Entity::ScalingEvents(Box::new(scaling_events())),
        ),
        (
            Key::IntroductionToken(introduction_token().id),
            Entity::IntroductionToken(Box::new(introduction_token())),
        ),
        (
            Key::NodeIntroduction(node(1).id),
            Entity::NodeIntroduction(Box::new(NodeIntroduction {
                token_id: introduction_token().id,
                public_key_sha256: "cd".repeat(32),
                node_name: "n1".to_owned(),
                node_pool: "gpu".to_owned(),
                introduced_at: Timestamp::from_secs(1_700_000_001),
                certified_until: Timestamp::from_secs(1_700_000_002),
            })),
        ),
        (
            Key::Services(model::AllocId::from_random(5)),
            Entity::Services(Box::new(model::AllocServices {
                registrations: vec![model::ServiceRegistration {
                    id: "_nomad-task-x-group-web-api-http".to_owned(),
                    name: "api".to_owned(),
                    tags: vec!["v1".to_owned()],
                    canary_tags: vec!["canary".to_owned()],
                    address: "10.0.0.7".to_owned(),
                    port: 8080,
                    task: "server".to_owned(),
                    health: model::ServiceHealth::Failing,
                }],
                deleted: vec!["y".to_owned()],
            })),
        ),
        (
            Key::NodeRevocation(node(1).id),
            Entity::NodeRevocation(Box::new(model::NodeRevocation {
                revoked_at: Timestamp::from_secs(1_700_000_003),
                node_name: "n1".to_owned(),
                reason: "stolen".to_owned(),
            })),
        ),
        (
            Key::Process(model::ProcessKey {
                service: "eval-broker".to_owned(),
                address: "https://10.0.0.7:4648".to_owned(),
            }),
            Entity::Process(model::ProcessInfo {
                version: "0.1.0".to_owned(),
            }),
        ),
        (
            Key::Variable(model::VariableKey::new("default", "app/db")),
            Entity::Variable(Box::new(model::SealedVariable {
                created_at: Timestamp::from_secs(1_700_000_004),
                modified_at: Timestamp::from_secs(1_700_000_005),
                items: model::SealedText {
                    sealed_with: "0a1b".to_owned(),
                    ciphertext: "c2VhbGVk".to_owned(),
                },
            })),
        ),
        (
            Key::LockHolder(model::VariableKey::new("default", "app/db")),
            Entity::VariableLock(Box::new(model::VariableLock {
                id: "8a3f2c1e-0b4d-4a7e-9c5f-6d7e8f901234".to_owned(),
                ttl: std::time::Duration::from_secs(15),
                delay: std::time::Duration::from_secs(15),
                acquired_at: Timestamp::from_secs(1_700_000_004),
                holder_lease: 7,
                delay_lease: 8,
            })),
        ),
        (
            Key::Keyring,
            Entity::Keyring(Box::new(model::Keyring {
                keys: vec![model::SigningKey {
                    id: model::SigningKeyId::from_random(1),
                    public_key: "BAAA".to_owned(),
                    private_key: model::SealedText {
                        sealed_with: "0a1b".to_owned(),
                        ciphertext: "c2VhbGVk".to_owned(),
                    },
                    created_at: Timestamp::from_secs(1_700_000_004),
                    active_from: Timestamp::from_secs(1_700_000_005),
                }],
            })),
        ),
    ]
}

fn introduction_token() -> IntroductionToken {
    IntroductionToken {
        id: IntroductionTokenId::from_random(7),
        secret_sha256: "ab".repeat(32),
        created_at: Timestamp::from_secs(1_700_000_000),
        expires_at: Timestamp::from_secs(1_700_000_300),
        uses_max: 3,
        uses: 1,
        node_id: Some(node(1).id),
        node_name: "n1".to_owned(),
        node_pool: "gpu".to_owned(),
    }
}

#[test]
fn every_object_survives_its_value() {
    for (key, entity) in objects() {
        let value = Value::from(&entity);
        assert!(value.belongs_to(&key), "{key:?}");
        let text = value.encode().unwrap();
        assert_eq!(decode(&key, &text).unwrap(), entity, "{key:?}");
    }
}

#[test]
fn an_object_belongs_to_its_own_key_alone() {
    let objects = objects();
    for (key, _) in &objects {
        let fitting = objects
            .iter()
            .filter(|(_, entity)| Value::from(entity).belongs_to(key));
        // A job is stored under two keys, with the same value.
        let expected = if matches!(key, Key::Job(_) | Key::JobVersion(..)) {
            2
        } else {
            1
        };
        assert_eq!(fitting.count(), expected, "{key:?}");
    }
}

#[test]
fn an_id_that_stands_in_the_key_does_not_stand_in_the_value() {
    for (key, entity) in objects() {
        let text = String::from_utf8(Value::from(&entity).encode().unwrap()).unwrap();
        let id = match key {
            Key::Eval(id) => id.to_string(),
            Key::Alloc(id) | Key::AllocClient(id) => id.to_string(),
            Key::Node(id) => id.to_string(),
            Key::Deployment(id) => id.to_string(),
            Key::NodePool(name) | Key::Namespace(name) => name,
            Key::Volume(volume) => volume.node_id.to_string(),
            _ => continue,
        };
        assert!(!text.contains(&id), "{text}");
    }
}

#[test]
fn a_plain_placement_costs_at_most_400_bytes() {
    let mut job = service("payments-reconciliation", 300);
    job.namespace = "production".to_owned();
    let mut alloc = allocation(7, &job, node(1).id);
    alloc.eval_id = EvalId::from_random(u128::MAX);
    alloc.job_version = 42;
    alloc.job_create_index = 123_456_789;
    alloc.name_index = 299;
    alloc.task_group = "frontend".into();
    alloc.deployment_id = Some(DeploymentId::from_random(u128::MAX / 3));
    alloc.resources.total.memory_mib = 16_384;
    alloc.create_time = Timestamp::from_millis(1_767_225_600_123);
    alloc.metric = Some(StoredMetric::from(AllocMetric {
        nodes_evaluated: 4_321,
        nodes_filtered: 123,
        nodes_in_pool: 5_000,
        score_per_mille: 873,
        score_parts: Some(ScoreParts {
            fit: 873,
            anti_affinity: Some(-20),
            affinity: Some(1_000),
            spread: Some(-1_000),
            ..ScoreParts::default()
        }),
        ..AllocMetric::default()
    }));
    let bytes = Value::from(&alloc).encode().unwrap().len();
    assert!(bytes <= MAX_PLACEMENT_BYTES, "{bytes} bytes");

    alloc.resources.ports.push(AllocatedPort {
        label: "http".to_owned(),
        value: 21_345,
        to: 8_080,
        host_ip: "10.20.30.40".to_owned(),
        ignore_collision: false,
        task: String::new(),
    });
    let bytes_a_port = Value::from(&alloc).encode().unwrap().len() - bytes;
    assert!(bytes_a_port <= MAX_PORT_BYTES, "{bytes_a_port} bytes");
}

#[test]
fn a_value_of_another_kind_or_half_of_one_is_an_error() {
    let objects = objects();
    for (key, entity) in &objects {
        if matches!(key, Key::JobStable(..)) {
            continue;
        }
        let text = Value::from(entity).encode().unwrap();
        assert!(decode(key, &text[..text.len() / 2]).is_err(), "{key:?}");
        // A piece is a list.
        let other: &[u8] = if matches!(key, Key::PlanPiece(..)) {
            b"{}"
        } else {
            b"[]"
        };
        assert!(decode(key, other).is_err(), "{key:?}");
        assert!(decode(key, b"").is_err(), "{key:?}");
    }
}

#[test]
fn a_job_with_a_value_of_a_later_version_is_an_error_and_one_with_a_later_field_is_not() {
    let mut job = service("web", 1);
    job.task_groups[0].services = vec![model::Service {
        checks: vec![ServiceCheck::default()],
        ..model::Service::default()
    }];
    let key = Key::Job(job.key());
    let text = String::from_utf8(Value::from(&job).encode().unwrap()).unwrap();
    let known = r#""type":"http""#;
    assert_eq!(text.matches(known).count(), 1, "{text}");

    let later = text.replace(known, r#""type":"http","later":true"#);
    assert_eq!(
        decode(&key, later.as_bytes()).unwrap(),
        Entity::Job(job.into())
    );
    let later = text.replace(known, r#""type":"later""#);
    let error = decode(&key, later.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("unknown variant `later`"), "{error}");
}
