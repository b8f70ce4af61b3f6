//! Encoding of values in etcd: JSON, so that an operator can read them with etcdctl.
//!
//! An id in the key is not repeated in the value; it is filled in on read. Indexes are never stored:
//! they are the revisions of the key.

use model::{
    AllocClient, AllocServices, Allocation, CsiAttachment, CsiVolume, Deployment, Evaluation, Job,
    JobTags, JobTally, LeaderInfo, Namespace, Node, NodePool, SchedulerConfiguration, Volume,
    VolumeClaim,
};
use model::{
    DispatchToken, IntroductionToken, Keyring, NodeIntroduction, NodeRevocation, PeriodicLaunch,
    ProcessInfo, ScalingEvents, SealedVariable, VariableLock,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use state::{Entity, Key, PlanCommit, PlanPiece};

use crate::staged;

/// The value of a marker key; only its presence counts.
const MARKER: &[u8] = b"{}";

/// A borrowed object to be stored.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// A job or a job version, depending on the key.
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
    CsiVolume(&'a CsiVolume),
    CsiAttachment(&'a CsiAttachment),
    PeriodicLaunch(&'a PeriodicLaunch),
    DispatchToken(&'a DispatchToken),
    ScalingEvents(&'a ScalingEvents),
    PlanPiece(&'a PlanPiece),
    PlanCommit(&'a PlanCommit),
    IntroductionToken(&'a IntroductionToken),
    NodeIntroduction(&'a NodeIntroduction),
    Services(&'a AllocServices),
    NodeRevocation(&'a NodeRevocation),
    Process(&'a ProcessInfo),
    Keyring(&'a Keyring),
    Variable(&'a SealedVariable),
    VariableLock(&'a VariableLock),
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
    CsiVolume(CsiVolume),
    CsiAttachment(CsiAttachment),
    PeriodicLaunch(PeriodicLaunch),
    DispatchToken(DispatchToken),
    ScalingEvents(ScalingEvents),
    PlanPiece(PlanPiece),
    PlanCommit(PlanCommit),
    IntroductionToken(IntroductionToken),
    NodeIntroduction(NodeIntroduction),
    Services(AllocServices),
    NodeRevocation(NodeRevocation),
    Keyring(Keyring),
    Variable(SealedVariable),
    VariableLock(VariableLock),
    Process(ProcessInfo)
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
            Entity::CsiVolume(volume) => Self::CsiVolume(volume),
            Entity::CsiAttachment(attachment) => Self::CsiAttachment(attachment),
            Entity::PeriodicLaunch(launch) => Self::PeriodicLaunch(launch),
            Entity::DispatchToken(token) => Self::DispatchToken(token),
            Entity::ScalingEvents(events) => Self::ScalingEvents(events),
            Entity::PlanPiece(piece) => Self::PlanPiece(piece),
            Entity::PlanCommit(commit) => Self::PlanCommit(commit),
            Entity::IntroductionToken(token) => Self::IntroductionToken(token),
            Entity::NodeIntroduction(introduction) => Self::NodeIntroduction(introduction),
            Entity::Services(services) => Self::Services(services),
            Entity::NodeRevocation(revocation) => Self::NodeRevocation(revocation),
            Entity::Keyring(keyring) => Self::Keyring(keyring),
            Entity::Variable(variable) => Self::Variable(variable),
            Entity::VariableLock(lock) => Self::VariableLock(lock),
            Entity::Process(process) => Self::Process(process),
        }
    }
}

impl Value<'_> {
    /// Returns whether `key` may hold it: the kind matches and, for an object that knows its name, the
    /// name does.
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
            (Key::CsiVolume(key), Self::CsiVolume(volume)) => volume.key() == *key,
            (Key::IntroductionToken(id), Self::IntroductionToken(token)) => token.id == *id,
            // Overrides of pools are stored under the pools' keys.
            (Key::SchedulerConfig, Self::SchedulerConfig(config)) => config.pools.is_empty(),
            (Key::JobStable(..), Self::JobStable)
            | (Key::JobTally(_), Self::JobTally(_))
            | (Key::JobTags(_), Self::JobTags(_))
            | (Key::AllocClient(_), Self::AllocClient(_))
            | (Key::CsiAttachment(_), Self::CsiAttachment(_))
            | (Key::Election(_), Self::Election(_))
            | (Key::PeriodicLaunch(_), Self::PeriodicLaunch(_))
            | (Key::DispatchToken(..), Self::DispatchToken(_))
            | (Key::ScalingEvents(..), Self::ScalingEvents(_))
            | (Key::PlanPiece(..), Self::PlanPiece(_))
            | (Key::PlanCommit(_), Self::PlanCommit(_))
            | (Key::NodeIntroduction(_), Self::NodeIntroduction(_))
            | (Key::Services(_), Self::Services(_))
            | (Key::NodeRevocation(_), Self::NodeRevocation(_))
            | (Key::Keyring, Self::Keyring(_))
            | (Key::Variable(_), Self::Variable(_))
            | (Key::LockHolder(_) | Key::LockDelay(_), Self::VariableLock(_))
            | (Key::Process(_), Self::Process(_)) => true,
            _ => false,
        }
    }

    /// Returns the stored text.
    ///
    /// # Errors
    /// A map has keys that JSON does not support; none of our types has such a map.
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
            Self::CsiVolume(volume) => to_json(volume),
            Self::CsiAttachment(attachment) => to_json(attachment),
            Self::PeriodicLaunch(launch) => to_json(launch),
            Self::DispatchToken(token) => to_json(token),
            Self::ScalingEvents(events) => to_json(events),
            Self::PlanPiece(piece) => staged::encode(piece, |entity| Value::from(entity).encode()),
            Self::PlanCommit(commit) => to_json(commit),
            Self::IntroductionToken(token) => to_json(token),
            Self::NodeIntroduction(introduction) => to_json(introduction),
            Self::Services(services) => to_json(services),
            Self::NodeRevocation(revocation) => to_json(revocation),
            Self::Keyring(keyring) => to_json(keyring),
            Self::Variable(variable) => to_json(variable),
            Self::VariableLock(lock) => to_json(lock),
            Self::Process(process) => to_json(process),
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
/// `text` is not JSON of the key's kind.
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
        Key::CsiVolume(key) => {
            let mut volume = from_json::<Box<CsiVolume>>(text)?;
            volume.namespace = key.namespace.to_string();
            volume.id = key.id.to_string();
            Entity::CsiVolume(volume)
        }
        Key::CsiAttachment(_) => Entity::CsiAttachment(from_json(text)?),
        Key::PeriodicLaunch(_) => Entity::PeriodicLaunch(from_json(text)?),
        Key::DispatchToken(..) => Entity::DispatchToken(from_json(text)?),
        Key::ScalingEvents(..) => Entity::ScalingEvents(from_json(text)?),
        Key::PlanPiece(..) => Entity::PlanPiece(Box::new(staged::decode(text, decode)?)),
        Key::PlanCommit(_) => Entity::PlanCommit(from_json(text)?),
        Key::IntroductionToken(id) => {
            let mut token = from_json::<Box<IntroductionToken>>(text)?;
            token.id = *id;
            Entity::IntroductionToken(token)
        }
        Key::NodeIntroduction(_) => Entity::NodeIntroduction(from_json(text)?),
        Key::Services(_) => Entity::Services(from_json(text)?),
        Key::NodeRevocation(_) => Entity::NodeRevocation(from_json(text)?),
        Key::Keyring => Entity::Keyring(from_json(text)?),
        Key::Variable(_) => Entity::Variable(from_json(text)?),
        Key::LockHolder(_) | Key::LockDelay(_) => Entity::VariableLock(from_json(text)?),
        Key::Process(_) => Entity::Process(from_json(text)?),
    })
}

/// As [`from_json`], for types whose fields may all be missing: serde accepts `[]` for those.
fn from_object<T: DeserializeOwned>(text: &[u8]) -> serde_json::Result<T> {
    let fields: serde_json::Map<String, serde_json::Value> = from_json(text)?;
    serde_json::from_value(fields.into())
}

fn from_json<T: DeserializeOwned>(text: &[u8]) -> serde_json::Result<T> {
    serde_json::from_slice(text)
}

#[cfg(test)]
mod tests;
