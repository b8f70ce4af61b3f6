//! Splits the writes of a plan into pieces that fit into one transaction each.
//!
//! A piece is valid by itself: it repeats the plan's compares, and stops come before the placements
//! that take their place. If the writer dies between two pieces, the evaluation stays open, because
//! its outcome is in the last piece, and is planned again.

use state::{Key, Write};

use crate::piece::{Piece, size};
use crate::plan_writes::PlanWrites;

/// Splits `writes`; the last piece has the outcome. Empty writes make no piece.
pub fn split(writes: PlanWrites) -> Vec<Piece> {
    if writes.is_empty() {
        return Vec::new();
    }
    let PlanWrites {
        guards,
        head,
        units,
        tail,
    } = writes;
    let mut splitter = Splitter {
        guards,
        pieces: Vec::new(),
        piece: Piece::default(),
        node: None,
    };
    splitter.start();
    for op in head {
        splitter.put(vec![op]);
    }
    for unit in units {
        splitter.put_unit(unit.ops, unit.node_check);
    }
    splitter.put_tail(tail);
    splitter.pieces
}

struct Splitter {
    guards: Vec<Write>,
    pieces: Vec<Piece>,
    piece: Piece,
    /// The node that the piece compares for its last unit, if it needs one.
    node: Option<Key>,
}

impl Splitter {
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

    fn put(&mut self, ops: Vec<Write>) {
        self.put_unit(ops, None);
    }

    fn put_unit(&mut self, ops: Vec<Write>, node_check: Option<Write>) {
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

    /// Adds the outcome to the last piece. It replaces the guard on the same key, because a write
    /// carries its own compare.
    fn put_tail(&mut self, tail: Vec<Write>) {
        let bytes = tail.iter().map(size).sum();
        if !self.piece.has_room(tail.len(), bytes) && self.piece.ops.len() > self.guards.len() {
            self.close();
        }
        for op in tail {
            let key = op.key().clone();
            self.piece
                .ops
                .retain(|other| !(other.is_compare() && *other.key() == key));
            self.piece.push(op);
        }
        self.pieces.push(std::mem::take(&mut self.piece));
    }
}
