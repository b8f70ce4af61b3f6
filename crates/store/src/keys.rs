//! Key layout in etcd: readable text below one prefix, the kind and then the name.
//!
//! `job/<ns>/<id>`, `job-version/<ns>/<id>/<version>`, `job-stable/<ns>/<id>/<version>`,
//! `job-tally/<ns>/<id>`, `job-tags/<ns>/<id>`, `eval/<id>`, `alloc/<id>`, `alloc-client/<id>`,
//! `node/<id>`, `deployment/<id>`, `election/<service>`, `node-pool/<name>`, `namespace/<name>`, the
//! only `scheduler-config`, `host-volume/<ns>/<name>/<node id>`, `volume-claim/<id>`,
//! `csi-volume/<ns>/<id>`, `csi-attachment/<ns>/<volume>/<node id>`,
//! `periodic-launch/<ns>/<id>`, `dispatch-token/<ns>/<token>/<parent>`,
//! `scaling-events/<ns>/<job>/<group>`, `plan-piece/<eval>/<n>`, `plan-commit/<eval>`,
//! `introduction-token/<id>`, `node-introduction/<node>`, `service/<alloc>`,
//! `node-revocation/<node>`, `process/<service>/<address>`, the only `keyring/workload-identity`.
//! Variables are beside the prefix, where no replica watches: `<prefix>.variables/<ns>/<path>`, as in
//! `/kafila/v1.variables/default/app/db`. So are their locks, `<prefix>.lock-holders/<ns>/<path>` and
//! `<prefix>.lock-delays/<ns>/<path>`.
//!
//! A job's id may contain slashes: it lies between the namespace, which has none, and the version,
//! which comes last.

use std::borrow::Cow;
use std::str::FromStr;
use std::sync::Arc;

use model::{
    CsiAttachmentKey, CsiVolume, CsiVolumeKey, JobKey, Namespace, NodePool, ProcessKey,
    VariableKey, Volume, VolumeKey,
};
use state::Key;

/// The default prefix of all keys.
pub const DEFAULT_PREFIX: &str = "/kafila/v1/";

/// A key without a name: the only one of its kind.
const SCHEDULER_CONFIG: &str = "scheduler-config";
const KEYRING: &str = "keyring/workload-identity";

/// A kind of key that is named by a variable.
type OfVariable = fn(VariableKey) -> Key;

const LOCK_HOLDERS: &str = "lock-holders";
const LOCK_DELAYS: &str = "lock-delays";

/// The keys below one prefix. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyspace {
    prefix: Arc<str>,
}

/// A key below the prefix that cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Its kind is unknown to this version. A later version may use it, so it is left alone.
    #[error("key {0:?} is of an unknown kind")]
    Foreign(String),
    #[error("key {0:?} has no valid name after its kind")]
    Malformed(String),
}

impl Default for Keyspace {
    fn default() -> Self {
        Self::new(DEFAULT_PREFIX)
    }
}

impl Keyspace {
    /// Creates the keyspace below `prefix`; adds a slash at its end when it has none.
    pub fn new(prefix: &str) -> Self {
        let slash = if prefix.ends_with('/') { "" } else { "/" };
        Self {
            prefix: format!("{prefix}{slash}").into(),
        }
    }

    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns the text before the namespaces of variables. It is not below the prefix.
    pub(crate) fn variables(&self) -> String {
        self.beside("variables")
    }

    fn beside(&self, name: &str) -> String {
        format!("{}.{name}/", self.prefix.trim_end_matches('/'))
    }

    fn lock(&self, name: &str, variable: &VariableKey) -> String {
        let namespace = escape(&variable.namespace);
        format!("{}{namespace}/{}", self.beside(name), variable.path)
    }

    /// Returns the text before the paths of a namespace's variables.
    pub(crate) fn variables_of(&self, namespace: &str) -> String {
        format!("{}{}/", self.variables(), escape(namespace))
    }

    /// Returns the key's text; different keys have different texts.
    pub fn encode(&self, key: &Key) -> String {
        let prefix = &self.prefix;
        match key {
            Key::Job(job) => format!("{prefix}job/{}", job_path(job)),
            Key::JobVersion(job, version) => {
                format!("{prefix}job-version/{}/{version}", job_path(job))
            }
            Key::JobStable(job, version) => {
                format!("{prefix}job-stable/{}/{version}", job_path(job))
            }
            Key::JobTally(job) => format!("{prefix}job-tally/{}", job_path(job)),
            Key::JobTags(job) => format!("{prefix}job-tags/{}", job_path(job)),
            Key::Eval(id) => format!("{prefix}eval/{id}"),
            Key::Alloc(id) => format!("{prefix}alloc/{id}"),
            Key::AllocClient(id) => format!("{prefix}alloc-client/{id}"),
            Key::Node(id) => format!("{prefix}node/{id}"),
            Key::Deployment(id) => format!("{prefix}deployment/{id}"),
            Key::Election(service) => format!("{prefix}election/{service}"),
            Key::SchedulerConfig => format!("{prefix}{SCHEDULER_CONFIG}"),
            Key::NodePool(name) => format!("{prefix}node-pool/{name}"),
            Key::Namespace(name) => format!("{prefix}namespace/{name}"),
            Key::Volume(volume) => {
                let namespace = escape(&volume.namespace);
                let (name, node_id) = (&volume.name, volume.node_id);
                format!("{prefix}host-volume/{namespace}/{name}/{node_id}")
            }
            Key::VolumeClaim(id) => format!("{prefix}volume-claim/{id}"),
            Key::CsiVolume(volume) => format!("{prefix}csi-volume/{}", csi_path(volume)),
            Key::CsiAttachment(attachment) => {
                let (volume, node_id) = (csi_path(&attachment.volume), attachment.node_id);
                format!("{prefix}csi-attachment/{volume}/{node_id}")
            }
            Key::PeriodicLaunch(job) => format!("{prefix}periodic-launch/{}", job_path(job)),
            Key::DispatchToken(parent, token) => {
                let (namespace, token) = (escape(&parent.namespace), escape(token));
                let parent = &parent.job_id;
                format!("{prefix}dispatch-token/{namespace}/{token}/{parent}")
            }
            Key::PlanPiece(eval_id, position) => format!("{prefix}plan-piece/{eval_id}/{position}"),
            Key::PlanCommit(eval_id) => format!("{prefix}plan-commit/{eval_id}"),
            Key::IntroductionToken(id) => format!("{prefix}introduction-token/{id}"),
            Key::NodeIntroduction(id) => format!("{prefix}node-introduction/{id}"),
            Key::Services(id) => format!("{prefix}service/{id}"),
            Key::Keyring => format!("{prefix}{KEYRING}"),
            Key::NodeRevocation(id) => format!("{prefix}node-revocation/{id}"),
            Key::Variable(variable) => {
                format!(
                    "{}{}",
                    self.variables_of(&variable.namespace),
                    variable.path
                )
            }
            Key::LockHolder(variable) => self.lock(LOCK_HOLDERS, variable),
            Key::LockDelay(variable) => self.lock(LOCK_DELAYS, variable),
            Key::Process(process) => {
                let (service, address) = (escape(&process.service), &process.address);
                format!("{prefix}process/{service}/{address}")
            }
            Key::ScalingEvents(job, group) => {
                format!("{prefix}scaling-events/{}/{}", job_path(job), escape(group))
            }
        }
    }

    /// Returns the key with this text.
    ///
    /// # Errors
    /// It is not below the prefix, or of an unknown kind, or has no valid name.
    pub fn decode(&self, text: &[u8]) -> Result<Key, KeyError> {
        let lossy = || String::from_utf8_lossy(text).into_owned();
        let foreign = || KeyError::Foreign(lossy());
        let full = std::str::from_utf8(text).map_err(|_| KeyError::Malformed(lossy()))?;
        let beside: [(String, OfVariable); 3] = [
            (self.variables(), Key::Variable),
            (self.beside(LOCK_HOLDERS), Key::LockHolder),
            (self.beside(LOCK_DELAYS), Key::LockDelay),
        ];
        for (prefix, kind) in beside {
            if let Some(name) = full.strip_prefix(&prefix) {
                let variable = parse_variable(name).map(kind);
                return variable.ok_or_else(|| KeyError::Malformed(lossy()));
            }
        }
        let path = full.strip_prefix(&*self.prefix).ok_or_else(foreign)?;
        if path == SCHEDULER_CONFIG {
            return Ok(Key::SchedulerConfig);
        }
        if path == KEYRING {
            return Ok(Key::Keyring);
        }
        let (kind, name) = path.split_once('/').ok_or_else(foreign)?;
        let key = match kind {
            "job" => parse_job(name).map(Key::Job),
            "job-version" => {
                parse_version(name).map(|(job, version)| Key::JobVersion(job, version))
            }
            "job-stable" => parse_version(name).map(|(job, version)| Key::JobStable(job, version)),
            "job-tally" => parse_job(name).map(Key::JobTally),
            "job-tags" => parse_job(name).map(Key::JobTags),
            "eval" => parse_id(name).map(Key::Eval),
            "alloc" => parse_id(name).map(Key::Alloc),
            "alloc-client" => parse_id(name).map(Key::AllocClient),
            "node" => parse_id(name).map(Key::Node),
            "deployment" => parse_id(name).map(Key::Deployment),
            "election" => Some(Key::Election(name.to_owned())),
            "node-pool" => NodePool::name_problem(name)
                .is_none()
                .then(|| Key::NodePool(name.to_owned())),
            "namespace" => Namespace::name_problem(name)
                .is_none()
                .then(|| Key::Namespace(name.to_owned())),
            "host-volume" => parse_volume(name).map(Key::Volume),
            "volume-claim" => parse_id(name).map(Key::VolumeClaim),
            "csi-volume" => parse_csi(name).map(Key::CsiVolume),
            "csi-attachment" => parse_attachment(name).map(Key::CsiAttachment),
            "periodic-launch" => parse_job(name).map(Key::PeriodicLaunch),
            "dispatch-token" => parse_token(name),
            "scaling-events" => parse_group(name),
            "plan-piece" => parse_piece(name),
            "plan-commit" => parse_id(name).map(Key::PlanCommit),
            "introduction-token" => parse_id(name).map(Key::IntroductionToken),
            "node-introduction" => parse_id(name).map(Key::NodeIntroduction),
            "service" => parse_id(name).map(Key::Services),
            "node-revocation" => parse_id(name).map(Key::NodeRevocation),
            "process" => parse_process(name),
            _ => return Err(foreign()),
        };
        key.ok_or_else(|| KeyError::Malformed(lossy()))
    }
}

/// Returns `<ns>/<id>`. Validation keeps slashes out of namespaces; one that gets here anyway is
/// escaped, so that two jobs never share a key.
fn job_path(job: &JobKey) -> String {
    format!("{}/{}", escape(&job.namespace), job.job_id)
}

fn escape(namespace: &str) -> Cow<'_, str> {
    if namespace.contains(['/', '%']) {
        Cow::Owned(namespace.replace('%', "%25").replace('/', "%2F"))
    } else {
        Cow::Borrowed(namespace)
    }
}

fn unescape(namespace: &str) -> Cow<'_, str> {
    if namespace.contains('%') {
        Cow::Owned(namespace.replace("%2F", "/").replace("%25", "%"))
    } else {
        Cow::Borrowed(namespace)
    }
}

fn parse_job(name: &str) -> Option<JobKey> {
    let (namespace, job_id) = name.split_once('/')?;
    Some(JobKey::new(&*unescape(namespace), job_id))
}

fn parse_token(name: &str) -> Option<Key> {
    let (namespace, rest) = name.split_once('/')?;
    let (token, parent) = rest.split_once('/')?;
    let parent = JobKey::new(&*unescape(namespace), parent);
    Some(Key::DispatchToken(parent, parse_part(token)?))
}

/// A path has slashes and comes last.
fn parse_variable(name: &str) -> Option<VariableKey> {
    let (namespace, path) = name.split_once('/')?;
    let namespace = parse_part(namespace)?;
    (!path.is_empty()).then(|| VariableKey::new(namespace, path))
}

/// An address has slashes and comes last.
fn parse_process(name: &str) -> Option<Key> {
    let (service, address) = name.split_once('/')?;
    Some(Key::Process(ProcessKey {
        service: parse_part(service)?,
        address: address.to_owned(),
    }))
}

fn parse_piece(name: &str) -> Option<Key> {
    let (eval_id, position) = name.split_once('/')?;
    let number = position.parse::<u32>().ok();
    let number = number.filter(|number| number.to_string() == position)?;
    Some(Key::PlanPiece(parse_id(eval_id)?, number))
}

/// A group's name has no slashes and comes last.
fn parse_group(name: &str) -> Option<Key> {
    let (job, group) = name.rsplit_once('/')?;
    Some(Key::ScalingEvents(parse_job(job)?, parse_part(group)?))
}

/// Unescapes a part; accepts only the form that [`escape`] writes.
fn parse_part(part: &str) -> Option<String> {
    let text = unescape(part).into_owned();
    (escape(&text) == part).then_some(text)
}

fn parse_version(name: &str) -> Option<(JobKey, u64)> {
    let (job, version) = name.rsplit_once('/')?;
    // Only the written form is accepted: one object, one key.
    let number = version
        .parse::<u64>()
        .ok()
        .filter(|number| number.to_string() == version)?;
    Some((parse_job(job)?, number))
}

fn csi_path(volume: &CsiVolumeKey) -> String {
    format!("{}/{}", escape(&volume.namespace), volume.id)
}

fn parse_csi(text: &str) -> Option<CsiVolumeKey> {
    let (namespace, id) = text.split_once('/')?;
    CsiVolume::id_problem(id).is_none().then_some(())?;
    Some(CsiVolumeKey::new(parse_part(namespace)?, id))
}

fn parse_attachment(text: &str) -> Option<CsiAttachmentKey> {
    let (volume, node_id) = text.rsplit_once('/')?;
    Some(CsiAttachmentKey {
        volume: parse_csi(volume)?,
        node_id: parse_id(node_id)?,
    })
}

fn parse_volume(text: &str) -> Option<VolumeKey> {
    let (rest, node_id) = text.rsplit_once('/')?;
    let (namespace, name) = rest.split_once('/')?;
    Volume::name_problem(name).is_none().then_some(())?;
    Some(VolumeKey {
        namespace: (&*unescape(namespace)).into(),
        name: name.into(),
        node_id: parse_id(node_id)?,
    })
}

fn parse_id<Id: FromStr + ToString>(name: &str) -> Option<Id> {
    name.parse::<Id>().ok().filter(|id| id.to_string() == name)
}

#[cfg(test)]
mod tests {
    use model::{AllocId, DeploymentId, EvalId, IntroductionTokenId, NodeId, VolumeClaimId};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn variables_are_outside_of_the_prefix_that_replicas_watch() {
        let keyspace = Keyspace::default();
        let key = Key::Variable(VariableKey::new("default", "app/db"));
        assert_eq!(keyspace.encode(&key), "/kafila/v1.variables/default/app/db");
        for prefix in ["/kafila/v1/", "a", "/"] {
            let keyspace = Keyspace::new(prefix);
            assert!(
                !keyspace.encode(&key).starts_with(keyspace.prefix()),
                "{prefix}"
            );
        }
    }

    fn keys() -> impl Strategy<Value = Key> {
        let job = || {
            ("\\PC{0,12}", "\\PC{0,20}").prop_map(|(ns, id)| JobKey::new(ns.as_str(), id.as_str()))
        };
        prop_oneof![
            job().prop_map(Key::Job),
            (job(), any::<u64>()).prop_map(|(job, version)| Key::JobVersion(job, version)),
            (job(), any::<u64>()).prop_map(|(job, version)| Key::JobStable(job, version)),
            job().prop_map(Key::JobTally),
            job().prop_map(Key::JobTags),
            any::<u128>().prop_map(|bits| Key::Eval(EvalId::from_random(bits))),
            any::<u128>().prop_map(|bits| Key::Alloc(AllocId::from_random(bits))),
            any::<u128>().prop_map(|bits| Key::AllocClient(AllocId::from_random(bits))),
            any::<u128>().prop_map(|bits| Key::Node(NodeId::from_random(bits))),
            any::<u128>().prop_map(|bits| Key::Deployment(DeploymentId::from_random(bits))),
            "\\PC{0,12}".prop_map(Key::Election),
            Just(Key::SchedulerConfig),
            Just(Key::Keyring),
            ("\\PC{0,12}", "[a-z~/-]{1,20}")
                .prop_map(|(namespace, path)| Key::Variable(VariableKey::new(namespace, path))),
            ("\\PC{0,12}", "[a-z~/-]{1,20}", any::<bool>()).prop_map(|(namespace, path, held)| {
                let kind = if held {
                    Key::LockHolder
                } else {
                    Key::LockDelay
                };
                kind(VariableKey::new(namespace, path))
            }),
            "[a-zA-Z0-9_-]{1,12}".prop_map(Key::NodePool),
            "[a-zA-Z0-9-]{1,12}".prop_map(Key::Namespace),
            ("\\PC{0,12}", "[a-zA-Z0-9_.\\[\\]-]{1,12}", any::<u128>()).prop_map(
                |(namespace, name, bits)| Key::Volume(VolumeKey {
                    namespace: namespace.into(),
                    name: name.into(),
                    node_id: NodeId::from_random(bits),
                })
            ),
            any::<u128>().prop_map(|bits| Key::VolumeClaim(VolumeClaimId::from_random(bits))),
            job().prop_map(Key::PeriodicLaunch),
            (job(), "\\PC{0,12}").prop_map(|(job, token)| Key::DispatchToken(job, token)),
            (job(), "\\PC{0,12}").prop_map(|(job, group)| Key::ScalingEvents(job, group)),
            (any::<u128>(), any::<u32>())
                .prop_map(|(bits, n)| Key::PlanPiece(EvalId::from_random(bits), n)),
            any::<u128>().prop_map(|bits| Key::PlanCommit(EvalId::from_random(bits))),
            any::<u128>()
                .prop_map(|bits| Key::IntroductionToken(IntroductionTokenId::from_random(bits))),
            any::<u128>().prop_map(|bits| Key::NodeIntroduction(NodeId::from_random(bits))),
            any::<u128>().prop_map(|bits| Key::Services(AllocId::from_random(bits))),
            any::<u128>().prop_map(|bits| Key::NodeRevocation(NodeId::from_random(bits))),
            ("\\PC{0,12}", "\\PC{0,20}")
                .prop_map(|(service, address)| Key::Process(ProcessKey { service, address })),
        ]
    }

    proptest! {
        #[test]
        fn every_key_is_decoded_from_its_text(key in keys()) {
            let keyspace = Keyspace::default();
            let text = keyspace.encode(&key);
            let is_variable = matches!(
                key,
                Key::Variable(_) | Key::LockHolder(_) | Key::LockDelay(_)
            );
            prop_assert_eq!(text.starts_with(DEFAULT_PREFIX), !is_variable);
            prop_assert_eq!(keyspace.decode(text.as_bytes()), Ok(key));
        }

        #[test]
        fn no_text_makes_decoding_panic(text in any::<Vec<u8>>(), tail in "\\PC{0,40}") {
            let keyspace = Keyspace::new("/k");
            let _ = keyspace.decode(&text);
            if let Ok(key) = keyspace.decode(format!("/k/{tail}").as_bytes()) {
                prop_assert_eq!(keyspace.encode(&key), format!("/k/{tail}"));
            }
        }
    }

    #[test]
    fn keys_have_the_documented_layout() {
        let keyspace = Keyspace::default();
        let job = JobKey::new("default", "team/web");
        assert_eq!(
            keyspace.encode(&Key::Job(job.clone())),
            "/kafila/v1/job/default/team/web"
        );
        assert_eq!(
            keyspace.encode(&Key::JobVersion(job, 12)),
            "/kafila/v1/job-version/default/team/web/12"
        );
        let election = Key::Election("eval-broker".to_owned());
        assert_eq!(
            keyspace.encode(&election),
            "/kafila/v1/election/eval-broker"
        );
        assert_eq!(
            keyspace.encode(&Key::SchedulerConfig),
            "/kafila/v1/scheduler-config"
        );
        assert_eq!(
            keyspace.encode(&Key::NodePool("gpu".to_owned())),
            "/kafila/v1/node-pool/gpu"
        );
        assert_eq!(
            keyspace.encode(&Key::Namespace("dev".to_owned())),
            "/kafila/v1/namespace/dev"
        );
    }

    #[test]
    fn unknown_kinds_differ_from_malformed_names() {
        let keyspace = Keyspace::default();
        let error = |text: &str| keyspace.decode(text.as_bytes()).unwrap_err();
        for foreign in [
            "/kafila/v1/variable/default/x",
            "/kafila/v2/job/default/x",
            "/kafila/v1/x",
            "/kafila/v1/scheduler-config/x",
        ] {
            assert_eq!(error(foreign), KeyError::Foreign(foreign.to_owned()));
        }
        for broken in [
            "/kafila/v1/alloc/not-a-uuid",
            "/kafila/v1/eval/8A3F2C1E-0B4D-4A7E-9C5F-6D7E8F901234",
            "/kafila/v1/job/default",
            "/kafila/v1/job-version/default/web/new",
            "/kafila/v1/job-version/default/web/01",
            "/kafila/v1/node-pool/a/b",
            "/kafila/v1/node-pool/",
            "/kafila/v1/namespace/a_b",
            "/kafila/v1/host-volume/default/data",
            "/kafila/v1/host-volume/default/a/b/00000000-0000-4000-8000-000000000001",
            "/kafila/v1/volume-claim/x",
            "/kafila/v1/plan-piece/8a3f2c1e-0b4d-4a7e-9c5f-6d7e8f901234/01",
        ] {
            assert_eq!(error(broken), KeyError::Malformed(broken.to_owned()));
        }
    }
}
