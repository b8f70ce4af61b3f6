//! Packing of stored reports into transactions.
//!
//! The store encodes transactions and knows their limits; it is asked through [`Transactions`].

use std::collections::{BTreeMap, BTreeSet};

use model::{AllocId, EvalId, JobKey, Timestamp};
use state::{Entity, Key, Write};

use crate::nodes::reports::ReportDecision;

/// Builds transactions within the store's limits.
pub trait Transactions {
    type Txn;
    type Error;

    /// Returns a transaction of `writes`, which may be none.
    ///
    /// # Errors
    /// They do not fit in one transaction.
    fn build(&self, writes: &[Write]) -> Result<Self::Txn, Self::Error>;

    /// Adds everything of `part` to `txn`.
    ///
    /// # Errors
    /// The two do not fit in one transaction; `txn` is unchanged.
    fn merge(&self, txn: &mut Self::Txn, part: &Self::Txn) -> Result<(), Self::Error>;
}

/// Transactions, and the reports that fit in none.
#[derive(Debug)]
pub struct Packed<Txn, Error> {
    pub txns: Vec<Txn>,
    pub refused: BTreeMap<AllocId, Error>,
}

/// A transaction under construction.
struct Open<Txn> {
    txn: Txn,
    /// Jobs with an evaluation in this transaction.
    evaluated: BTreeSet<JobKey>,
}

/// Packs outcomes, in their order, into as few transactions as the limits allow. A transaction has
/// one evaluation for each job that one of its reports requests. A report that does not even fit in
/// an empty transaction is left out, so that it never delays others.
pub fn pack<T: Transactions>(
    outcomes: &[ReportDecision],
    now: Timestamp,
    trace_parent: &str,
    transactions: &T,
    mut next_id: impl FnMut() -> EvalId,
) -> Packed<T::Txn, T::Error> {
    let mut packed = Packed {
        txns: Vec::new(),
        refused: BTreeMap::new(),
    };
    let mut open: Option<Open<T::Txn>> = None;
    let mut canceled = BTreeSet::new();
    for outcome in outcomes {
        let cancels = outcome
            .canceled
            .as_ref()
            .filter(|(eval_id, _)| !canceled.contains(eval_id));
        let mut writes = vec![outcome.write.clone()];
        writes.extend(outcome.services.clone());
        writes.extend(cancels.map(|(_, write)| write.clone()));
        let without_eval = writes.len();
        writes.extend(outcome.eval.map(|request| {
            let eval = request.evaluation(&outcome.job, next_id(), now, trace_parent);
            Write::Create {
                key: Key::Eval(eval.id),
                entity: Entity::Eval(Box::new(eval)),
            }
        }));
        let is_added = open.as_mut().is_some_and(|open| {
            let is_evaluated = open.evaluated.contains(&outcome.job);
            let count = if is_evaluated {
                without_eval
            } else {
                writes.len()
            };
            let part = transactions.build(&writes[..count]);
            part.and_then(|part| transactions.merge(&mut open.txn, &part))
                .is_ok()
        });
        if !is_added {
            match transactions.build(&writes) {
                Ok(txn) => {
                    let evaluated = BTreeSet::new();
                    let full = open.replace(Open { txn, evaluated });
                    packed.txns.extend(full.map(|full| full.txn));
                }
                Err(error) => {
                    packed.refused.insert(outcome.alloc_id, error);
                    continue;
                }
            }
        }
        canceled.extend(cancels.map(|(eval_id, _)| *eval_id));
        if let Some(open) = open.as_mut().filter(|_| outcome.eval.is_some()) {
            open.evaluated.insert(outcome.job.clone());
        }
    }
    packed.txns.extend(open.map(|open| open.txn));
    packed
}
