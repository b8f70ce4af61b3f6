//! Packing of reports into transactions.

use std::collections::{BTreeMap, BTreeSet};

use admission::nodes::reports::Outcome;
use model::{AllocId, EvalId, JobKey, Timestamp};
use state::{Entity, Key, Write};
use store::{Txn, TxnError};

/// Transactions, and the reports that fit in none.
#[derive(Debug, Default)]
pub struct Packed {
    pub txns: Vec<Txn>,
    pub refused: BTreeMap<AllocId, TxnError>,
}

/// Packs outcomes into as few transactions as the limits allow; `new_txn` returns an empty one. A
/// transaction has one evaluation for each job that one of its reports requests. A report that does
/// not even fit in an empty transaction is left out, so that it never delays others.
pub fn pack(
    outcomes: &[Outcome],
    now: Timestamp,
    trace_parent: &str,
    new_txn: impl Fn() -> Txn,
    mut next_id: impl FnMut() -> EvalId,
) -> Packed {
    let mut packed = Packed::default();
    let mut current = new_txn();
    let mut asked = BTreeSet::new();
    let mut canceled = BTreeSet::new();
    for outcome in outcomes {
        let mut writes = vec![outcome.write.clone()];
        writes.extend(outcome.services.clone());
        let cancels = outcome
            .canceled
            .as_ref()
            .filter(|(eval_id, _)| !canceled.contains(eval_id));
        writes.extend(cancels.map(|(_, write)| write.clone()));
        let eval = outcome.eval.map(|request| {
            let eval = request.evaluation(&outcome.job, next_id(), now, trace_parent);
            Write::Create {
                key: Key::Eval(eval.id),
                entity: Entity::Eval(Box::new(eval)),
            }
        });
        let with_eval = |asked: &BTreeSet<JobKey>| {
            let eval = eval.iter().filter(|_| !asked.contains(&outcome.job));
            new_txn().with(writes.iter().chain(eval))
        };
        let joined = with_eval(&asked).and_then(|part| current.merge(&part).map(|_| ()));
        if joined.is_err() {
            match with_eval(&BTreeSet::new()) {
                Ok(part) => {
                    packed.txns.push(std::mem::replace(&mut current, part));
                    asked.clear();
                }
                Err(error) => {
                    packed.refused.insert(outcome.alloc_id, error);
                    continue;
                }
            }
        }
        canceled.extend(cancels.map(|(eval_id, _)| *eval_id));
        if eval.is_some() {
            asked.insert(outcome.job.clone());
        }
    }
    packed.txns.push(current);
    packed.txns.retain(|txn| !txn.is_empty());
    packed
}

#[cfg(test)]
mod tests;
