//! Locks in etcd: the two keys read, created under their leases, renewed and deleted.

use std::collections::HashMap;
use std::sync::Arc;

use admission::cluster::locks::{AcquireRequest, LockRefusal, Locked, Stored, check_id};
use admission::cluster::{namespaces, variables};
use gateway_core::transactions::contended;
use gateway_core::{Core, Error, read_failure};
use model::{VariableKey, VariableLock};
use state::{Entity, Key, Snapshot, Write};
use store::{Commit, SizeClass, Txn};
use tracing::{debug, info};

/// Decisions on one request. Each retry means that another request for the same lock came first.
const ATTEMPTS_MAX: usize = 8;

/// Locks of variables, by one gateway.
#[derive(Clone, Copy, Debug)]
pub struct Locks<'a> {
    pub(crate) core: &'a Arc<Core>,
}

/// The leases of one acquisition.
struct Leases {
    holder: i64,
    delay: i64,
}

impl<'a> Locks<'a> {
    pub fn new(core: &'a Arc<Core>) -> Self {
        Self { core }
    }

    /// Reads the lock of a variable. The two reads are not of one revision: a decision by them carries its
    /// compares.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn read(&self, variable: &VariableKey) -> Result<Locked, Error> {
        Ok(Locked {
            holder: self.read_key(Key::LockHolder(variable.clone())).await?,
            delay: self.read_key(Key::LockDelay(variable.clone())).await?,
        })
    }

    async fn read_key(&self, key: Key) -> Result<Option<Stored>, Error> {
        let found = self.core.client.get(&key).await.map_err(read_failure)?;
        Ok(found.and_then(|found| match found.entity {
            Entity::VariableLock(lock) => Some(Stored {
                lock: *lock,
                mod_revision: found.mod_revision,
            }),
            _ => None,
        }))
    }

    /// Returns the locks among variables in the order of their keys.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn among(
        &self,
        first: &VariableKey,
        last: &VariableKey,
    ) -> Result<HashMap<VariableKey, VariableLock>, Error> {
        let locks = self.core.client.locks(first, last).await;
        locks.map_err(read_failure)
    }

    /// Acquires a lock; returns it. A request that holds it already renews it.
    ///
    /// # Errors
    /// The request is invalid, the lock is taken or in its delay, or the store does not accept it.
    pub async fn acquire(&self, request: &AcquireRequest) -> Result<VariableLock, Error> {
        let variable = &request.variable;
        variables::check_key(variable)?;
        check_id(&request.lock_id)?;
        let mut snapshot = self.core.snapshot(true).await?;
        for _ in 0..ATTEMPTS_MAX {
            let locked = self.read(variable).await?;
            let repeated = locked
                .acquire(variable, &request.lock_id)
                .map_err(Error::refused)?;
            if repeated.is_some() {
                return self.renew(variable, &request.lock_id).await;
            }
            // Before the leases: those of a refused request would stay for their whole time.
            let joined: Vec<Write> = namespace(&snapshot, variable)?.into_iter().collect();
            let leases = self.grant(request).await?;
            let lock = VariableLock {
                id: request.lock_id.clone(),
                ttl: request.times.ttl,
                delay: request.times.delay,
                acquired_at: self.core.now(),
                holder_lease: leases.holder,
                delay_lease: leases.delay,
            };
            match self.create(&joined, variable, &lock).await {
                Ok(Commit::Done { .. }) => {
                    info!(
                        namespace = variable.namespace,
                        path = variable.path,
                        lock_id = lock.id,
                        "variable locked"
                    );
                    return Ok(lock);
                }
                Ok(Commit::Conflict(conflict)) => {
                    self.revoke(&leases).await;
                    let deadline = self.core.deadline();
                    snapshot = self.core.wait_for(conflict.revision, deadline).await?;
                }
                // An unknown outcome: the leases end by themselves, and a repeated request finds the lock.
                Err(error) => return Err(error),
            }
        }
        Err(contended(format!("the lock of variable {variable}")))
    }

    /// Grants both leases, the delay's second, so that it ends last even without a delay.
    async fn grant(&self, request: &AcquireRequest) -> Result<Leases, Error> {
        let times = request.times;
        let holder = self.core.client.grant_lease(times.ttl).await?;
        let delay = self
            .core
            .client
            .grant_lease(times.ttl + times.delay)
            .await?;
        Ok(Leases { holder, delay })
    }

    async fn create(
        &self,
        joined: &[Write],
        variable: &VariableKey,
        lock: &VariableLock,
    ) -> Result<Commit, Error> {
        let mut txn = self.core.transaction(SizeClass::New, joined)?;
        let keys = [
            (Key::LockHolder(variable.clone()), lock.holder_lease),
            (Key::LockDelay(variable.clone()), lock.delay_lease),
        ];
        for (key, lease) in keys {
            put_absent(&mut txn, &key, lock, lease)?;
        }
        self.core.commit_txn(&txn, self.core.deadline()).await
    }

    /// Renews a lock for its TTL; returns it.
    ///
    /// The leases belong to one acquisition, so a late renewal cannot prolong the lock of another holder.
    ///
    /// # Errors
    /// The caller does not hold the lock, or the store does not answer.
    pub async fn renew(
        &self,
        variable: &VariableKey,
        lock_id: &str,
    ) -> Result<VariableLock, Error> {
        variables::check_key(variable)?;
        check_id(lock_id)?;
        let locked = self.read(variable).await?;
        let held = locked.held(variable, lock_id).map_err(Error::refused)?;
        // The delay's first: it must not end before the holder's.
        for lease in [held.lock.delay_lease, held.lock.holder_lease] {
            let renewed = self.core.client.renew_lease(lease, self.core.deadline());
            if !renewed.await.map_err(read_failure)? {
                return Err(Error::refused(LockRefusal::NotHeld {
                    variable: variable.clone(),
                    lock_id: lock_id.to_owned(),
                }));
            }
        }
        Ok(held.lock.clone())
    }

    /// Releases a lock, which others may acquire at once.
    ///
    /// # Errors
    /// The caller does not hold the lock, or the store does not accept the write.
    pub async fn release(&self, variable: &VariableKey, lock_id: &str) -> Result<(), Error> {
        variables::check_key(variable)?;
        check_id(lock_id)?;
        for _ in 0..ATTEMPTS_MAX {
            let locked = self.read(variable).await?;
            let writes = locked.release(variable, lock_id).map_err(Error::refused)?;
            let held = locked.held(variable, lock_id).map_err(Error::refused)?;
            let commit = self.core.commit(&writes, self.core.deadline()).await?;
            if commit.revision().is_some() {
                let leases = Leases {
                    holder: held.lock.holder_lease,
                    delay: held.lock.delay_lease,
                };
                self.revoke(&leases).await;
                info!(
                    namespace = variable.namespace,
                    path = variable.path,
                    lock_id,
                    "variable unlocked"
                );
                return Ok(());
            }
        }
        Err(contended(format!("the lock of variable {variable}")))
    }

    /// Returns the compares of a write to a variable. `lock_id` is empty for a caller without a lock.
    ///
    /// # Errors
    /// The variable is locked by another, the caller's lock is lost, or the store does not answer.
    pub async fn write(&self, variable: &VariableKey, lock_id: &str) -> Result<Vec<Write>, Error> {
        let locked = self.read(variable).await?;
        locked.write(variable, lock_id).map_err(Error::refused)
    }

    /// Revokes leases without keys; those that stay end by themselves.
    async fn revoke(&self, leases: &Leases) {
        for lease in [leases.holder, leases.delay] {
            if let Err(error) = self.core.client.revoke_lease(lease).await {
                debug!(%error, lease, "a lease without keys is left to its end");
            }
        }
    }
}

/// Returns the compare of a lock's namespace, if it needs one.
fn namespace(snapshot: &Snapshot, variable: &VariableKey) -> Result<Option<Write>, Error> {
    let required = namespaces::require(
        snapshot,
        &variable.namespace,
        "namespace",
        format_args!("the lock of variable {:?}", variable.path),
    );
    Ok(required?)
}

fn put_absent(txn: &mut Txn, key: &Key, lock: &VariableLock, lease: i64) -> Result<(), Error> {
    let put = txn.put_leased(key, lock, lease, 0);
    put.map_err(store::Error::from)?;
    Ok(())
}
