//! What values look like in etcd: JSON, so that an operator can read them with etcdctl.
//!
//! An id that stands in the key does not stand in the value; it is filled in on read. Indexes are
//! never stored: they are the revisions of the key.

use model::{
    AllocClient, Allocation, Deployment, Evaluation, Job, JobTags, JobTally, LeaderInfo, Namespace,
    Node, NodePool, SchedulerConfiguration, Volume, VolumeClaim,
};
use model::{DispatchToken, PeriodicLaunch, ScalingEvents};
use serde::Serialize;
use serde::de::DeserializeOwned;
use state::{Entity, Key, PlanCommit, PlanPiece};

use crate::staged;

/// The value of a marker key, whose presence is all there is to know.
const MARKER: &[u8] = b"{}";

/// An object about to be stored, borrowed from whoever has it.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// Of a job, or of a job version: the key says which.
    Job(&'a Job),
    JobStable,
    JobTally(&'a JobTally),
    JobTags(&'a JobTags),
    Eval(&'a Evaluation),
    Alloc(&'a Allocation),
    AllocClient(&'a AllocClient),
    Node(&'a Node),
    Deployment(&'a Deployment),
    Election(&'a LeaderInfo),
    SchedulerConfig(&'a SchedulerConfiguration),
    NodePool(&'a NodePool),
    Namespace(&'a Namespace),
    Volume(&'a Volume),
    VolumeClaim(&'a VolumeClaim),
    PeriodicLaunch(&'a PeriodicLaunch),
    DispatchToken(&'a DispatchToken),
    ScalingEvents(&'a ScalingEvents),
    PlanPiece(&'a PlanPiece),
    PlanCommit(&'a PlanCommit),
}

macro_rules! from_reference {
    ($($variant:ident($noun:ty)),*) => {
        $(impl<'a> From<&'a $noun> for Value<'a> {
            fn from(noun: &'a $noun) -> Self {
                Self::$variant(noun)
            }
        })*
    };
}

from_reference!(
    Job(Job),
    JobTally(JobTally),
    JobTags(JobTags),
    Eval(Evaluation),
    Alloc(Allocation),
    AllocClient(AllocClient),
    Node(Node),
    Deployment(Deployment),
    Election(LeaderInfo),
    SchedulerConfig(SchedulerConfiguration),
    NodePool(NodePool),
    Namespace(Namespace),
    Volume(Volume),
    VolumeClaim(VolumeClaim),
    PeriodicLaunch(PeriodicLaunch),
    DispatchToken(DispatchToken),
    ScalingEvents(ScalingEvents),
    PlanPiece(PlanPiece),
    PlanCommit(PlanCommit)
);

impl<'a> From<&'a Entity> for Value<'a> {
    fn from(entity: &'a Entity) -> Self {
        match entity {
            Entity::Job(job) | Entity::JobVersion(job) => Self::Job(job),
            Entity::JobStable => Self::JobStable,
            Entity::JobTally(tally) => Self::JobTally(tally),
            Entity::JobTags(tags) => Self::JobTags(tags),
            Entity::Eval(eval) => Self::Eval(eval),
            Entity::Alloc(alloc) => Self::Alloc(alloc),
            Entity::AllocClient(client) => Self::AllocClient(client),
            Entity::Node(node) => Self::Node(node),
            Entity::Deployment(deployment) => Self::Deployment(deployment),
            Entity::Election(leader) => Self::Election(leader),
            Entity::SchedulerConfig(config) => Self::SchedulerConfig(config),
            Entity::NodePool(pool) => Self::NodePool(pool),
            Entity::Namespace(namespace) => Self::Namespace(namespace),
            Entity::Volume(volume) => Self::Volume(volume),
            Entity::VolumeClaim(claim) => Self::VolumeClaim(claim),
            Entity::PeriodicLaunch(launch) => Self::PeriodicLaunch(launch),
            Entity::DispatchToken(token) => Self::DispatchToken(token),
            Entity::ScalingEvents(events) => Self::ScalingEvents(events),
            Entity::PlanPiece(piece) => Self::PlanPiece(piece),
            Entity::PlanCommit(commit) => Self::PlanCommit(commit),
        }
    }
}

impl Value<'_> {
    /// Tells whether `key` may hold it: of the right kind and, where the object knows its name, the
    /// right name.
    pub fn belongs_to(&self, key: &Key) -> bool {
        match (key, self) {
            (Key::Job(name), Self::Job(job)) => is_named(job, name),
            (Key::JobVersion(name, version), Self::Job(job)) => {
                is_named(job, name) && job.version == *version
            }
            (Key::Eval(id), Self::Eval(eval)) => eval.id == *id,
            (Key::Alloc(id), Self::Alloc(alloc)) => alloc.id == *id,
            (Key::Node(id), Self::Node(node)) => node.id == *id,
            (Key::Deployment(id), Self::Deployment(deployment)) => deployment.id == *id,
            (Key::NodePool(name), Self::NodePool(pool)) => pool.name == *name,
            (Key::Namespace(name), Self::Namespace(namespace)) => namespace.name == *name,
            (Key::Volume(key), Self::Volume(volume)) => {
                *volume.namespace == *key.namespace
                    && *volume.name == *key.name
                    && volume.node_id == key.node_id
            }
            (Key::VolumeClaim(id), Self::VolumeClaim(claim)) => claim.id() == *id,
            // Pools keep what is theirs under their own keys.
            (Key::SchedulerConfig, Self::SchedulerConfig(config)) => config.pools.is_empty(),
            (Key::JobStable(..), Self::JobStable)
            | (Key::JobTally(_), Self::JobTally(_))
            | (Key::JobTags(_), Self::JobTags(_))
            | (Key::AllocClient(_), Self::AllocClient(_))
            | (Key::Election(_), Self::Election(_))
            | (Key::PeriodicLaunch(_), Self::PeriodicLaunch(_))
            | (Key::DispatchToken(..), Self::DispatchToken(_))
            | (Key::ScalingEvents(..), Self::ScalingEvents(_))
            | (Key::PlanPiece(..), Self::PlanPiece(_))
            | (Key::PlanCommit(_), Self::PlanCommit(_)) => true,
            _ => false,
        }
    }

    /// Returns what is stored.
    ///
    /// # Errors
    /// A map inside has keys that JSON cannot have; none of our types does.
    pub fn encode(&self) -> serde_json::Result<Vec<u8>> {
        match self {
            Self::Job(job) => to_json(job),
            Self::JobStable => Ok(MARKER.to_vec()),
            Self::JobTally(tally) => to_json(tally),
            Self::JobTags(tags) => to_json(tags),
            Self::Eval(eval) => to_json(eval),
            Self::Alloc(alloc) => to_json(alloc),
            Self::AllocClient(client) => to_json(client),
            Self::Node(node) => to_json(node),
            Self::Deployment(deployment) => to_json(deployment),
            Self::Election(leader) => to_json(leader),
            Self::SchedulerConfig(config) => to_json(config),
            Self::NodePool(pool) => to_json(pool),
            Self::Namespace(namespace) => to_json(namespace),
            Self::Volume(volume) => to_json(volume),
            Self::VolumeClaim(claim) => to_json(claim),
            Self::PeriodicLaunch(launch) => to_json(launch),
            Self::DispatchToken(token) => to_json(token),
            Self::ScalingEvents(events) => to_json(events),
            Self::PlanPiece(piece) => staged::encode(piece),
            Self::PlanCommit(commit) => to_json(commit),
        }
    }
}

fn is_named(job: &Job, name: &model::JobKey) -> bool {
    *job.namespace == *name.namespace && *job.id == *name.job_id
}

fn to_json(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    // Most values are placements of 300 to 400 bytes.
    let mut text = Vec::with_capacity(512);
    serde_json::to_writer(&mut text, value)?;
    Ok(text)
}

/// Returns the object stored under `key`.
///
/// # Errors
/// `text` is not the JSON of what the key's kind holds.
pub fn decode(key: &Key, text: &[u8]) -> serde_json::Result<Entity> {
    Ok(match key {
        Key::Job(_) => Entity::Job(from_json(text)?),
        Key::JobVersion(..) => Entity::JobVersion(from_json(text)?),
        Key::JobStable(..) => Entity::JobStable,
        Key::JobTally(_) => Entity::JobTally(from_json(text)?),
        Key::JobTags(_) => Entity::JobTags(from_json(text)?),
        Key::Eval(id) => {
            let mut eval = from_json::<Box<Evaluation>>(text)?;
            eval.id = *id;
            Entity::Eval(eval)
        }
        Key::Alloc(id) => {
            let mut alloc = from_json::<Box<Allocation>>(text)?;
            alloc.id = *id;
            Entity::Alloc(alloc)
        }
        Key::AllocClient(_) => Entity::AllocClient(from_json(text)?),
        Key::Node(id) => {
            let mut node = from_json::<Box<Node>>(text)?;
            node.id = *id;
            Entity::Node(node)
        }
        Key::Deployment(id) => {
            let mut deployment = from_json::<Box<Deployment>>(text)?;
            deployment.id = *id;
            Entity::Deployment(deployment)
        }
        Key::Election(_) => Entity::Election(from_json(text)?),
        Key::SchedulerConfig => {
            let mut config = from_object::<Box<SchedulerConfiguration>>(text)?;
            config.pools.clear();
            Entity::SchedulerConfig(config)
        }
        Key::NodePool(name) => {
            let mut pool = from_object::<Box<NodePool>>(text)?;
            pool.name.clone_from(name);
            Entity::NodePool(pool)
        }
        Key::Namespace(name) => {
            let mut namespace = from_object::<Box<Namespace>>(text)?;
            namespace.name.clone_from(name);
            Entity::Namespace(namespace)
        }
        Key::Volume(key) => {
            let mut volume = from_json::<Box<Volume>>(text)?;
            volume.namespace = key.namespace.to_string();
            volume.name = key.name.to_string();
            volume.node_id = key.node_id;
            Entity::Volume(volume)
        }
        Key::VolumeClaim(_) => Entity::VolumeClaim(from_json(text)?),
        Key::PeriodicLaunch(_) => Entity::PeriodicLaunch(from_json(text)?),
        Key::DispatchToken(..) => Entity::DispatchToken(from_json(text)?),
        Key::ScalingEvents(..) => Entity::ScalingEvents(from_json(text)?),
        Key::PlanPiece(..) => Entity::PlanPiece(Box::new(staged::decode(text)?)),
        Key::PlanCommit(_) => Entity::PlanCommit(from_json(text)?),
    })
}

/// As [`from_json`], for types whose fields may all be missing: `[]` is one of those to serde.
fn from_object<T: DeserializeOwned>(text: &[u8]) -> serde_json::Result<T> {
    let fields: serde_json::Map<String, serde_json::Value> = from_json(text)?;
    serde_json::from_value(fields.into())
}

fn from_json<T: DeserializeOwned>(text: &[u8]) -> serde_json::Result<T> {
    serde_json::from_slice(text)
}

#[cfg(test)]
mod tests {
    use model::allocation::RescheduleEvent;
    use model::{
        AccessMode, Algorithm, AllocId, AllocMetric, AllocatedPort, AttachmentMode, Capability,
        DeploymentId, DeploymentStatus, Ended, EvalId, JobTally, PoolConfiguration, Preemption,
        ScoreParts, VersionTag, VolumeId,
    };
    use model::{JobKey, TaskState, Timestamp};
    use state::{Progress, StagedOp};
    use std::collections::BTreeMap;
    use std::time::Duration;
    use test_kit::builders::{allocation, evaluation, node, service};

    use super::*;

    /// The most that the store spends on the value of a plain placement.
    const MAX_PLACEMENT_BYTES: usize = 400;
    /// And on each port that goes with it.
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

    /// One of each kind, with whatever can be set set.
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
            task_states: BTreeMap::from([("server".to_owned(), TaskState::default())]),
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
                        StagedOp {
                            key: Key::Node(node(1).id),
                            modify_index: 12,
                            entity: None,
                        },
                        StagedOp {
                            key: Key::Alloc(alloc.id),
                            modify_index: 0,
                            entity: Some(Entity::Alloc(Box::new(alloc.clone()))),
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
        ]
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
        alloc.metric = Some(Box::new(AllocMetric {
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
}
