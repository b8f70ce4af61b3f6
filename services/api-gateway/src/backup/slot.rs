//! The limit of concurrent snapshots: each reads the whole database of etcd.

use std::sync::Arc;

use gateway_core::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The slot of the only snapshot. Cheap to clone.
#[derive(Clone, Debug)]
pub struct BackupSlot(Arc<Semaphore>);

impl Default for BackupSlot {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

impl BackupSlot {
    /// Takes the slot until the permit is dropped.
    ///
    /// # Errors
    /// It is taken.
    pub(crate) fn take(&self) -> Result<OwnedSemaphorePermit, Error> {
        let slot = Arc::clone(&self.0).try_acquire_owned();
        slot.map_err(|_| {
            Error::overloaded(
                "this gateway streams a snapshot already: wait for its end, or use another gateway",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_snapshot_is_refused_until_the_first_ends() {
        let slot = BackupSlot::default();
        let first = slot.take().unwrap();
        assert!(slot.take().unwrap_err().is_overload());
        drop(first);
        assert!(slot.take().is_ok());
    }
}
