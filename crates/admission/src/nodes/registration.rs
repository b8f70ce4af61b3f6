//! Registration of a node: its record is created, updated or unchanged.
//!
//! The node describes its machine. Status, eligibility and drain belong to the servers, and a
//! registration keeps them.
//! Source: Nomad's public behaviour.

use model::node::MAX_NAME_BYTES;
use model::refusal::{Kind, Refusal};
use model::{FieldErrors, Indexed, Node, NodePool, NodeStatus, Timestamp};
use state::{Entity, Key, Snapshot, Write};

use super::introduction;
use super::node_evals::{EvalInputs, NodeWrites};
use super::revocation::{self, Revoked};
use super::session::{SessionRefusal, same_secret};
use crate::cluster::node_pools;

/// The size limit of a secret, in bytes: a UUID has 36.
const MAX_SECRET_BYTES: usize = 128;

/// The decision on a registration.
#[derive(Clone, Debug, PartialEq)]
pub struct Registration {
    /// The node's status, which the registration keeps.
    pub status: NodeStatus,
    /// The modify index of a record that stays as it is; `None`: the record is written.
    pub kept_index: Option<u64>,
    /// To be committed; without any write, nothing is to be done.
    pub changes: NodeWrites,
}

/// The reason why a node is not registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistrationRefusal {
    #[error(transparent)]
    Revoked(#[from] Revoked),
    /// The record differs from what the node's token holds it to.
    #[error(transparent)]
    Record(#[from] FieldErrors),
    /// The node was registered with another secret.
    #[error(transparent)]
    Session(#[from] SessionRefusal),
}

impl Refusal for RegistrationRefusal {
    fn kind(&self) -> Kind {
        match self {
            Self::Revoked(revoked) => revoked.kind(),
            Self::Record(errors) => errors.kind(),
            Self::Session(refusal) => refusal.kind(),
        }
    }

    fn field_errors(&self) -> Option<&FieldErrors> {
        match self {
            Self::Record(errors) => Some(errors),
            Self::Revoked(_) | Self::Session(_) => None,
        }
    }
}

/// Decides on a record that [`check`] has passed: the record is written if it has changed, the
/// node's pool is created if it is missing, and the node's jobs are evaluated if other groups are
/// feasible on it now. The writes compare that the node is not revoked meanwhile.
///
/// # Errors
/// See [`RegistrationRefusal`].
pub fn decide(
    snapshot: &Snapshot,
    sent: &Node,
    inputs: &EvalInputs<'_>,
) -> Result<Registration, RegistrationRefusal> {
    let unrevoked = revocation::guard(snapshot, sent.id)?;
    introduction::check_record(snapshot, sent)?;
    let stored = snapshot.node(sent.id).map(|stored| &**stored);
    let status = stored.map_or(NodeStatus::Initializing, |stored| stored.value.status);
    let pool = node_pools::require_for_node(snapshot, &sent.node_pool);
    let (kept_index, mut changes) = match record(stored, sent.clone(), inputs.now)? {
        Record::Unchanged { modify_index } => {
            let is_missing = node_pools::is_missing(snapshot, &sent.node_pool);
            let writes = pool.into_iter().filter(|_| is_missing).collect();
            (Some(modify_index), NodeWrites::without_evals(writes))
        }
        Record::Write {
            write,
            feasibility_changed,
        } => {
            let writes = [*write].into_iter().chain(pool).collect();
            let changes = if feasibility_changed {
                NodeWrites::with_evals(writes, snapshot, sent, inputs)
            } else {
                NodeWrites::without_evals(writes)
            };
            (None, changes)
        }
    };
    if !changes.writes.is_empty() {
        changes.writes.push(unrevoked);
    }
    Ok(Registration {
        status,
        kept_index,
        changes,
    })
}

/// The decision on a node's record.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Record {
    /// It equals the stored one.
    Unchanged { modify_index: u64 },
    /// To be written; with `feasibility_changed` the node's jobs have to be evaluated.
    Write {
        write: Box<Write>,
        feasibility_changed: bool,
    },
}

/// Decides on the record alone.
pub(super) fn record(
    stored: Option<&Indexed<Node>>,
    mut sent: Node,
    now: Timestamp,
) -> Result<Record, SessionRefusal> {
    sent.computed_class = placement::class::computed_class(&sent);
    let key = Key::Node(sent.id);
    let Some(stored) = stored else {
        sent.status = NodeStatus::Initializing;
        sent.status_description.clear();
        (sent.drain, sent.last_drain) = (None, None);
        sent.events.clear();
        sent.lacks_evals = false;
        sent.status_updated_at = now;
        let write = Write::Create {
            key,
            entity: Entity::Node(Box::new(sent)),
        };
        return Ok(Record::Write {
            write: Box::new(write),
            feasibility_changed: false,
        });
    };
    let known = &stored.value;
    if !same_secret(&known.secret, &sent.secret) {
        return Err(SessionRefusal::WrongSecret(sent.id));
    }
    sent.status = known.status;
    sent.status_description
        .clone_from(&known.status_description);
    sent.eligibility = known.eligibility;
    sent.status_updated_at = known.status_updated_at;
    sent.drain = known.drain;
    sent.last_drain.clone_from(&known.last_drain);
    sent.events.clone_from(&known.events);
    sent.lacks_evals = known.lacks_evals;
    let modify_index = stored.modify_index;
    if sent == *known {
        return Ok(Record::Unchanged { modify_index });
    }
    let feasibility_changed = feasibility_differs(known, &sent);
    let write = Write::Update {
        key,
        modify_index,
        entity: Entity::Node(Box::new(sent)),
    };
    Ok(Record::Write {
        write: Box::new(write),
        feasibility_changed,
    })
}

/// Tells whether the change affects which groups are feasible on the node, or which of its allocations have
/// lost the address of a port, so that jobs need evaluations of the trigger node-update. Amounts do not
/// count: they concern blocked evaluations, which the eval-broker unblocks after every write of a node's
/// record (`Reader::node_fact` in its `facts.rs`).
fn feasibility_differs(old: &Node, new: &Node) -> bool {
    old.datacenter != new.datacenter
        || old.name != new.name
        || old.node_class != new.node_class
        || old.node_pool != new.node_pool
        || old.attributes != new.attributes
        || old.meta != new.meta
        || old.drivers != new.drivers
        || old.host_ip != new.host_ip
        || old.host_networks != new.host_networks
        || old.host_volumes != new.host_volumes
        || old.csi_nodes != new.csi_nodes
        || old.devices != new.devices
}

/// Checks the record that a node sent.
///
/// # Errors
/// All invalid fields.
pub fn check(node: &Node) -> Result<(), FieldErrors> {
    let mut errors = FieldErrors::default();
    let secret = node.secret.len();
    if secret == 0 || secret > MAX_SECRET_BYTES {
        errors.push(
            "secret",
            format!(
                "has {secret} bytes: want 1 to {MAX_SECRET_BYTES} random bytes, generated once and kept"
            ),
        );
    }
    for (field, text, example) in [
        ("node.name", &node.name, "the host's name"),
        ("node.datacenter", &node.datacenter, "\"dc1\""),
        ("node.node_pool", &node.node_pool, "\"default\""),
    ] {
        if text.is_empty() {
            errors.push(field, format!("missing: want a name, as in {example}"));
        } else if text.len() > MAX_NAME_BYTES {
            errors.push(
                field,
                format!("has {} bytes: want at most {MAX_NAME_BYTES}", text.len()),
            );
        }
    }
    if node.node_pool == NodePool::ALL {
        errors.push(
            "node.node_pool",
            "\"all\" means every pool: want the name of one, as in \"default\"",
        );
    } else if let Some(problem) = NodePool::name_problem(&node.node_pool)
        && !node.node_pool.is_empty()
        && node.node_pool.len() <= MAX_NAME_BYTES
    {
        errors.push("node.node_pool", problem);
    }
    if !node.address.starts_with("http://") && !node.address.starts_with("https://") {
        errors.push(
            "node.address",
            format!(
                "{:?} cannot be dialled: want where the node answers, as in http://10.0.0.9:7201",
                node.address
            ),
        );
    }
    for (field, amount) in [
        ("node.resources.cpu_mhz", node.resources.cpu_mhz),
        ("node.resources.memory_mib", node.resources.memory_mib),
    ] {
        if amount == 0 {
            errors.push(
                field,
                "is 0: want what the machine has, or nothing can run on it",
            );
        }
    }
    if let Some(dimension) = node.reserved.exceeds(node.resources) {
        errors.push(
            "node.reserved",
            format!("reserves more {dimension} than the node has: want at most node.resources"),
        );
    }
    for device in &node.devices {
        let mut ids: Vec<_> = device.instances.iter().map(|it| &it.id).collect();
        ids.sort_unstable();
        if let Some(pair) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
            let message = format!(
                "{}/{}/{} has instance {:?} twice: want each id once",
                device.vendor, device.device_type, device.name, pair[0]
            );
            errors.push("node.devices", message);
        }
    }
    if node.min_dynamic_port > node.max_dynamic_port {
        errors.push(
            "node.min_dynamic_port",
            format!(
                "{} is above max_dynamic_port, {}: want a range such as 20000 to 32000",
                node.min_dynamic_port, node.max_dynamic_port
            ),
        );
    }
    errors.into_result(())
}
