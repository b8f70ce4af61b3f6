//! The limit of callers of the event stream.

use std::sync::Arc;

use gateway_core::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The largest number of event streams of a gateway: each has a watch at the store.
const STREAMS_MAX: usize = 256;

/// Free slots for callers. Cheap to clone.
#[derive(Clone, Debug)]
pub struct StreamSlots {
    free: Arc<Semaphore>,
}

impl Default for StreamSlots {
    fn default() -> Self {
        Self {
            free: Arc::new(Semaphore::new(STREAMS_MAX)),
        }
    }
}

impl StreamSlots {
    /// Takes a slot until the permit is dropped.
    ///
    /// # Errors
    /// All are taken.
    pub fn take(&self) -> Result<OwnedSemaphorePermit, Error> {
        let slot = Arc::clone(&self.free).try_acquire_owned();
        slot.map_err(|_| {
            Error::overloaded(format!(
                "this gateway has {STREAMS_MAX} event streams, its maximum: use another gateway"
            ))
        })
    }
}
