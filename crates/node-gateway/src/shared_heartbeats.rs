//! The heartbeats that handlers and the liveness loop share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use node_session::HeartbeatBuffer;
use tokio::time::Instant;

/// A shared [`HeartbeatBuffer`]. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SharedHeartbeats(Arc<Mutex<HeartbeatBuffer>>);

impl SharedHeartbeats {
    pub fn new(max_age: Duration) -> Self {
        let buffer = HeartbeatBuffer::new(max_age, Instant::now().into_std());
        Self(Arc::new(Mutex::new(buffer)))
    }

    pub fn lock(&self) -> MutexGuard<'_, HeartbeatBuffer> {
        // A panic leaves nothing half done: each use is one step of a collection.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
