//! Cuts what a plan writes into pieces that one transaction can hold.
//!
//! A piece is legal by itself: it repeats the plan's compares, and stops come before what takes
//! their place. If the writer dies between two, the evaluation, whose outcome is in the last, is
//! simply looked at again.

use std::io;

use model::JobKey;
use state::{Entity, Key};

use crate::op::Op;
use crate::verify::Writes;

/// Operations in one transaction. Servers are run with room for more (`--max-txn-ops`); with this
/// many a transaction takes milliseconds, so that others get their turn.
pub const OPERATIONS_MAX: usize = 1_000;

/// Bytes in one transaction, below etcd's own default limit of 1.5 MiB.
pub const BYTES_MAX: usize = 1 << 20;

/// What a key costs each time it stands in a request: the store's prefix and the kind of object,
/// which are short, and framing.
const KEY_OVERHEAD: usize = 96;

/// A key stands in a request up to three times: it is compared, written, and read when a compare
/// fails.
const KEY_MENTIONS: usize = 3;

/// What is in a transaction beside the piece: the writer's own compare, its election; and when the
/// piece was put aside ([`crate::staged`]), its deletion, that of the record, and an evaluation.
const FENCE_OPERATIONS: usize = 4;
const FENCE_BYTES: usize = 4_096;

/// Operations that one transaction can hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Piece {
    pub ops: Vec<Op>,
    /// An upper bound of their size as stored.
    pub bytes: usize,
}

impl Piece {
    fn push(&mut self, op: Op) {
        self.bytes += size(&op);
        self.ops.push(op);
    }

    /// Takes one more in, if there is room.
    pub(crate) fn take(&mut self, op: Op) -> bool {
        let fits = self.has_room(1, size(&op));
        if fits {
            self.push(op);
        }
        fits
    }

    /// Tells whether a transaction that holds `self` can hold `ops` and `bytes` more.
    pub(crate) fn has_room(&self, ops: usize, bytes: usize) -> bool {
        self.ops.len() + ops + FENCE_OPERATIONS <= OPERATIONS_MAX
            && self.bytes + bytes + FENCE_BYTES <= BYTES_MAX
    }
}

/// Cuts `writes`; the last piece has the outcome. Empty writes make no piece.
pub fn cut(writes: Writes) -> Vec<Piece> {
    if writes.is_empty() {
        return Vec::new();
    }
    let Writes {
        guards,
        head,
        units,
        tail,
    } = writes;
    let mut cutter = Cutter {
        guards,
        pieces: Vec::new(),
        piece: Piece::default(),
        node: None,
    };
    cutter.start();
    for op in head {
        cutter.put(vec![op]);
    }
    for unit in units {
        cutter.put_unit(unit.ops, unit.node_check);
    }
    cutter.put_tail(tail);
    cutter.pieces
}

struct Cutter {
    guards: Vec<Op>,
    pieces: Vec<Piece>,
    piece: Piece,
    /// The node whose check the piece has, if its last unit needed one.
    node: Option<Key>,
}

impl Cutter {
    fn start(&mut self) {
        self.node = None;
        for guard in self.guards.clone() {
            self.piece.push(guard);
        }
    }

    fn close(&mut self) {
        self.pieces.push(std::mem::take(&mut self.piece));
        self.start();
    }

    fn put(&mut self, ops: Vec<Op>) {
        self.put_unit(ops, None);
    }

    fn put_unit(&mut self, ops: Vec<Op>, node_check: Option<Op>) {
        let check = node_check.iter().map(size).sum::<usize>();
        let bytes = ops.iter().map(size).sum::<usize>() + check;
        if !self.piece.has_room(ops.len() + 1, bytes) && self.piece.ops.len() > self.guards.len() {
            self.close();
        }
        if let Some(check) = node_check.filter(|check| self.node.as_ref() != Some(check.key())) {
            self.node = Some(check.key().clone());
            self.piece.push(check);
        }
        for op in ops {
            self.piece.push(op);
        }
    }

    /// Puts the outcome into the last piece, where it takes the place of the compare with what it
    /// overwrites.
    fn put_tail(&mut self, tail: Vec<Op>) {
        let bytes = tail.iter().map(size).sum();
        if !self.piece.has_room(tail.len(), bytes) && self.piece.ops.len() > self.guards.len() {
            self.close();
        }
        for op in tail {
            let key = op.key().clone();
            self.piece
                .ops
                .retain(|other| !(matches!(other, Op::Check { .. }) && *other.key() == key));
            self.piece.push(op);
        }
        self.pieces.push(std::mem::take(&mut self.piece));
    }
}

/// Returns an upper bound of what `op` adds to a transaction.
fn size(op: &Op) -> usize {
    KEY_MENTIONS * (KEY_OVERHEAD + name_size(op.key())) + op.entity().map_or(0, entity_size)
}

/// Returns how long the object's own part of its key is.
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
        | Key::PlanCommit(_) => UUID_SIZE,
        Key::PlanPiece(..) => UUID_SIZE + VERSION_SIZE,
        Key::Volume(volume) => 3 * volume.namespace.len() + volume.name.len() + UUID_SIZE,
        Key::Election(name) | Key::NodePool(name) | Key::Namespace(name) => name.len(),
        Key::SchedulerConfig => 0,
    }
}

/// Characters that a key cannot hold are written as three.
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
        // Nothing else is written by plans.
        _ => Ok(()),
    };
    // What has no JSON form cannot be stored either; the store will say so.
    written.map_or(0, |()| counter.0)
}

/// Counts what is written to it.
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
