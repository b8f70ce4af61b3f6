//! The performer of conditional writes: one transaction, committed or known not to be.

use std::time::Duration;

use state::Write;

use crate::outcome::CommitOutcome;
use crate::txn::{SizeClass, Txn};
use crate::writer::Writer;

impl Writer {
    /// Performs `writes` in one transaction, as [`Self::perform_txn`] does.
    pub async fn perform(
        &self,
        class: SizeClass,
        writes: &[Write],
        timeout: Duration,
    ) -> CommitOutcome {
        match self.txn_with(class).with(writes) {
            Ok(txn) => self.perform_txn(&txn, timeout).await,
            Err(error) => CommitOutcome::of(Err(error.into())),
        }
    }

    /// Performs a transaction with retries until `timeout`; returns its outcome, by what the writer
    /// has to do next.
    pub async fn perform_txn(&self, txn: &Txn, timeout: Duration) -> CommitOutcome {
        CommitOutcome::of(self.commit_surely(txn, timeout).await)
    }
}
