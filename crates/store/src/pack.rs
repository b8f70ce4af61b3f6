//! Independent writes in as few transactions as hold them in their order.

use state::Write;

use crate::txn::{Txn, TxnError};
use crate::writer::Writer;

/// Writes in transactions, none of them empty.
#[derive(Debug, Default)]
pub struct Packed {
    pub txns: Vec<Txn>,
    /// Writes that no transaction takes, with the reason.
    pub refused: Vec<(Write, TxnError)>,
}

impl Writer {
    /// Puts writes that do not depend on each other into transactions, which this writer has yet to commit.
    pub fn pack(&self, writes: impl IntoIterator<Item = Write>) -> Packed {
        pack(|| self.txn(), writes)
    }
}

fn pack(empty: impl Fn() -> Txn, writes: impl IntoIterator<Item = Write>) -> Packed {
    let mut packed = Packed::default();
    let mut txn = empty();
    for write in writes {
        let mut added = txn.add(&write).map(|_| ());
        let is_full = added.as_ref().is_err_and(TxnError::is_of_size);
        if is_full && !txn.is_empty() {
            packed.txns.push(std::mem::replace(&mut txn, empty()));
            added = txn.add(&write).map(|_| ());
        }
        if let Err(error) = added {
            packed.refused.push((write, error));
        }
    }
    if !txn.is_empty() {
        packed.txns.push(txn);
    }
    packed
}

#[cfg(test)]
mod tests {
    use model::{EvalId, Evaluation};
    use state::Key;
    use test_kit::{builders, writes};

    use super::*;
    use crate::keys::Keyspace;
    use crate::txn::Limits;

    fn creation(number: u128) -> Write {
        let eval: Evaluation = builders::evaluation(number, &builders::service("web", 1));
        writes::create(&Key::Eval(eval.id), &eval)
    }

    #[test]
    fn writes_fill_transactions_in_their_order() {
        let empty = |max_ops| {
            move || {
                Txn::new(
                    Keyspace::default(),
                    Limits {
                        max_ops,
                        max_bytes: 1 << 20,
                    },
                )
            }
        };
        let packed = pack(empty(2), (0..5).map(creation));
        let counts: Vec<usize> = packed.txns.iter().map(Txn::write_count).collect();
        assert_eq!(counts, [2, 2, 1]);
        let keys = packed.txns.iter().flat_map(Txn::compared_keys);
        let expected = (0..5).map(|number| Key::Eval(EvalId::from_random(number)));
        assert!(keys.cloned().eq(expected));
        assert!(packed.refused.is_empty());
        assert!(pack(empty(2), []).txns.is_empty());
    }

    #[test]
    fn a_write_that_no_transaction_takes_is_left_out_of_all() {
        let empty = || {
            Txn::new(
                Keyspace::default(),
                Limits {
                    max_ops: 9,
                    max_bytes: 9,
                },
            )
        };
        let packed = pack(empty, [creation(1)]);
        assert!(packed.txns.is_empty());
        assert!(packed.refused[0].1.is_of_size());
        let empty = || Txn::new(Keyspace::default(), Limits::DEFAULT);
        let packed = pack(empty, [creation(1), creation(1), creation(2)]);
        assert_eq!((packed.txns.len(), packed.refused.len()), (1, 1));
        assert_eq!(packed.txns[0].write_count(), 2);
    }
}
