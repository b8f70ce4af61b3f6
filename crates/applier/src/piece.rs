//! Pieces: writes that fit into one transaction, with an upper bound of their size.

use std::io;

use model::JobKey;
use state::{Entity, Key, Write};

/// Operations and bytes in one transaction.
pub use state::entity::{TRANSACTION_BYTES as BYTES_MAX, TRANSACTION_OPERATIONS as OPERATIONS_MAX};

/// Bytes of each mention of a key besides its name: the store's prefix, the kind and framing.
const KEY_OVERHEAD: usize = 96;

/// Mentions of a key in a request: it is compared, written, and read when a compare fails.
const KEY_MENTIONS: usize = 3;

/// Operations of a transaction besides the piece: the writer's fence; for a staged piece
/// ([`crate::staged`]) also its deletion, that of the commit record, and an evaluation.
const FENCE_OPERATIONS: usize = 4;
const FENCE_BYTES: usize = 4_096;

/// Writes that fit into one transaction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Piece {
    pub ops: Vec<Write>,
    /// An upper bound of their stored size.
    pub bytes: usize,
}

impl Piece {
    pub(crate) fn push(&mut self, op: Write) {
        self.bytes += size(&op);
        self.ops.push(op);
    }

    /// Adds a write if there is room; returns whether it was added.
    pub(crate) fn try_push(&mut self, op: Write) -> bool {
        let fits = self.has_room(1, size(&op));
        if fits {
            self.push(op);
        }
        fits
    }

    /// Returns whether a transaction with `self` has room for `ops` and `bytes` more.
    pub(crate) fn has_room(&self, ops: usize, bytes: usize) -> bool {
        self.ops.len() + ops + FENCE_OPERATIONS <= OPERATIONS_MAX
            && self.bytes + bytes + FENCE_BYTES <= BYTES_MAX
    }
}

/// Returns an upper bound of the bytes that `op` adds to a transaction.
pub(crate) fn size(op: &Write) -> usize {
    KEY_MENTIONS * (KEY_OVERHEAD + name_size(op.key())) + op.entity().map_or(0, entity_size)
}

/// Returns the length of the object's name in its key.
fn name_size(key: &Key) -> usize {
    match key {
        Key::Job(job)
        | Key::JobVersion(job, _)
        | Key::JobStable(job, _)
        | Key::JobTally(job)
        | Key::JobTags(job)
        | Key::PeriodicLaunch(job) => job_size(job) + VERSION_SIZE,
        Key::DispatchToken(job, part) | Key::ScalingEvents(job, part) => {
            job_size(job) + 3 * part.len()
        }
        Key::Eval(_)
        | Key::Alloc(_)
        | Key::AllocClient(_)
        | Key::Node(_)
        | Key::Deployment(_)
        | Key::VolumeClaim(_)
        | Key::PlanCommit(_)
        | Key::IntroductionToken(_)
        | Key::NodeIntroduction(_)
        | Key::Services(_)
        | Key::NodeRevocation(_) => UUID_SIZE,
        Key::PlanPiece(..) => UUID_SIZE + VERSION_SIZE,
        Key::CsiVolume(volume) => 3 * volume.namespace.len() + volume.id.len(),
        Key::CsiAttachment(attachment) => {
            let volume = &attachment.volume;
            3 * volume.namespace.len() + volume.id.len() + UUID_SIZE
        }
        Key::Volume(volume) => 3 * volume.namespace.len() + volume.name.len() + UUID_SIZE,
        Key::Variable(variable) | Key::LockHolder(variable) | Key::LockDelay(variable) => {
            3 * variable.namespace.len() + variable.path.len()
        }
        Key::Process(process) => 3 * process.service.len() + process.address.len(),
        Key::Election(name) | Key::NodePool(name) | Key::Namespace(name) => name.len(),
        Key::SchedulerConfig | Key::Keyring => 0,
    }
}

/// An escaped character takes three.
fn job_size(job: &JobKey) -> usize {
    3 * (job.namespace.len() + job.job_id.len())
}

/// A UUID as text.
const UUID_SIZE: usize = 36;
/// The longest version number as text.
const VERSION_SIZE: usize = 20;

fn entity_size(entity: &Entity) -> usize {
    let mut counter = Counter(0);
    let written = match entity {
        Entity::Alloc(alloc) => serde_json::to_writer(&mut counter, alloc),
        Entity::Eval(eval) => serde_json::to_writer(&mut counter, eval),
        Entity::Deployment(deployment) => serde_json::to_writer(&mut counter, deployment),
        Entity::VolumeClaim(claim) => serde_json::to_writer(&mut counter, claim),
        // Plans write no other objects.
        _ => Ok(()),
    };
    // An object without a JSON form is refused by the store later.
    written.map_or(0, |()| counter.0)
}

/// A writer that counts bytes.
struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
