//! The store's transactions of reports, for the packing of `admission`.

use admission::nodes::packing::Transactions;
use state::Write;
use store::{Txn, TxnError, Writer};

/// Transactions of a writer.
pub(crate) struct StoreTransactions<'a>(pub(crate) &'a Writer);

impl Transactions for StoreTransactions<'_> {
    type Txn = Txn;
    type Error = TxnError;

    fn build(&self, writes: &[Write]) -> Result<Txn, TxnError> {
        self.0.txn().with(writes)
    }

    fn merge(&self, txn: &mut Txn, part: &Txn) -> Result<(), TxnError> {
        txn.merge(part).map(|_| ())
    }
}

#[cfg(test)]
mod tests;
