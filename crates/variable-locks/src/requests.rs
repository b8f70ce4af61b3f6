//! Requests on locks, read from the wire and answered.

use admission::cluster::locks::{AcquireRequest, Times};
use gateway_core::Error;
use model::{EvalId, Namespace, VariableKey, VariableLock};
use proto::v1;
use service_kit::IdSource;

use crate::locks::Locks;

impl Locks<'_> {
    /// # Errors
    /// See [`Locks::acquire`].
    pub async fn answer_acquire(
        &self,
        request: v1::AcquireLockRequest,
    ) -> Result<v1::AcquireLockResponse, Error> {
        let request = read_acquisition(request, &self.core.ids)?;
        let lock = self.acquire(&request).await?;
        Ok(v1::AcquireLockResponse {
            lock: Some(show(&lock)),
        })
    }

    /// # Errors
    /// See [`Locks::renew`].
    pub async fn answer_renew(
        &self,
        request: v1::RenewLockRequest,
    ) -> Result<v1::RenewLockResponse, Error> {
        let variable = key(&request.namespace, request.path);
        let lock = self.renew(&variable, &request.lock_id).await?;
        Ok(v1::RenewLockResponse {
            lock: Some(show(&lock)),
        })
    }

    /// # Errors
    /// See [`Locks::release`].
    pub async fn answer_release(
        &self,
        request: v1::ReleaseLockRequest,
    ) -> Result<v1::ReleaseLockResponse, Error> {
        let variable = key(&request.namespace, request.path);
        self.release(&variable, &request.lock_id).await?;
        Ok(v1::ReleaseLockResponse {})
    }
}

fn key(namespace: &str, path: String) -> VariableKey {
    VariableKey::new(Namespace::or_default(namespace), path)
}

/// Reads a request; a lock without an id gets one.
///
/// # Errors
/// A time is malformed, or outside of its limits.
fn read_acquisition(
    request: v1::AcquireLockRequest,
    ids: &IdSource,
) -> Result<AcquireRequest, Error> {
    let read = |field, wire: Option<_>| {
        let given = wire.map(|wire| proto::required_duration(field, Some(wire)));
        given.transpose()
    };
    let times = Times::new(read("ttl", request.ttl)?, read("delay", request.delay)?)?;
    let lock_id = match request.lock_id {
        id if id.is_empty() => EvalId::from_random(ids.next_u128()).to_string(),
        id => id,
    };
    Ok(AcquireRequest {
        variable: key(&request.namespace, request.path),
        lock_id,
        times,
    })
}

/// Returns a lock for the API.
pub fn show(lock: &VariableLock) -> v1::VariableLock {
    v1::VariableLock {
        lock_id: lock.id.clone(),
        ttl: Some(proto::duration_to_wire(lock.ttl)),
        delay: Some(proto::duration_to_wire(lock.delay)),
        acquire_time_ns: lock.acquired_at.0,
    }
}
