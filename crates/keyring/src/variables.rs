//! Variables: read from etcd, opened and sealed with the gateway's key-encryption keys.
//!
//! The crate `admission` decides about changes. Opened items leave this file in answers alone.

use std::collections::HashMap;
use std::time::Duration;

use admission::cluster::variables::{self as decision, PutDecision, PutRequest, StoredVariable};
use gateway_core::transactions::contended;
use gateway_core::{Core, Error};
use model::{SealedVariable, VariableKey};
use state::{Entity, Key, Snapshot, Write};
use store::{Commit, ListedVariable, SizeClass, VariableFilter, VariablePage};
use tokio::time::Instant;
use tonic::Code;
use tracing::{info, warn};
use variable_locks::Locks;
use workload_identity::{KeyEncryptionKeys, KeyError, variables};

use crate::gateway_keys::Keyring;

/// Decisions on one request, made here and not by `Core::execute`, because each reads the variable from
/// etcd: replicas do not have it. Each retry means that another write to the same variable came first.
const ATTEMPTS_MAX: usize = 8;
/// Variables that one step of a listing reads.
const PAGE: usize = 256;
/// The pause after a variable that was sealed again: a hundred a second leave room for other writes.
const RESEAL_PAUSE: Duration = Duration::from_millis(10);

/// Reads and changes of variables.
#[derive(Clone, Copy)]
pub struct Variables<'a> {
    keyring: &'a Keyring,
}

impl Keyring {
    pub fn variables(&self) -> Variables<'_> {
        Variables { keyring: self }
    }
}

impl Variables<'_> {
    fn core(&self) -> &Core {
        &self.keyring.core
    }

    /// Returns the locks of variables.
    pub fn locks(&self) -> Locks<'_> {
        Locks::new(&self.keyring.core)
    }

    /// Returns a variable with its items; `None`: there is none.
    ///
    /// # Errors
    /// This gateway has no key for it, or the store does not answer.
    pub async fn get(&self, variable: &VariableKey) -> Result<Option<StoredVariable>, Error> {
        decision::check_key(variable)?;
        let keys = self.keyring.signer.keys().await?;
        self.read(variable, &keys).await
    }

    async fn read(
        &self,
        variable: &VariableKey,
        keys: &KeyEncryptionKeys,
    ) -> Result<Option<StoredVariable>, Error> {
        let key = Key::Variable(variable.clone());
        let stored = self.core().client.get(&key);
        let stored = stored
            .await
            .map_err(gateway_core::transactions::read_failure)?;
        let Some(stored) = stored else {
            return Ok(None);
        };
        let Entity::Variable(sealed) = stored.entity else {
            return Ok(None);
        };
        let items = match variables::open(variable, &sealed.items, keys) {
            // Another gateway has read a newer file.
            Err(KeyError::UnknownOfVariable { .. }) => {
                let keys = self.keyring.signer.read_file().await?;
                variables::open(variable, &sealed.items, &keys)
            }
            opened => opened,
        };
        let items = items.map_err(cannot_open)?;
        Ok(Some(StoredVariable {
            items,
            created_at: sealed.created_at,
            modified_at: sealed.modified_at,
            create_index: stored.create_revision,
            modify_index: stored.mod_revision,
        }))
    }

    /// Returns up to `limit` variables, sealed.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn list(
        &self,
        filter: VariableFilter<'_>,
        limit: usize,
    ) -> Result<VariablePage, Error> {
        let page = self.core().client.variables(filter, limit).await;
        page.map_err(gateway_core::transactions::read_failure)
    }

    /// Stores a variable; returns it.
    ///
    /// # Errors
    /// The request is refused, this gateway has no key, or the store does not accept the write.
    pub async fn put(&self, request: &PutRequest, lock_id: &str) -> Result<StoredVariable, Error> {
        let variable = &request.variable;
        decision::check(variable, &request.items)?;
        let keys = self.keyring.sealing_keys().await?;
        let random = self.keyring.signer.random();
        let sealed = variables::seal(variable, &request.items, &keys, random);
        let sealed = sealed.map_err(|error| Error::new(Code::Internal, error))?;
        let now = self.core().now();
        let mut attempt = Attempt::first(self.core()).await?;
        for _ in 0..ATTEMPTS_MAX {
            let unlocked = self.locks().write(variable, lock_id).await?;
            let stored = self.read(variable, &keys).await?;
            let sealed = sealed.clone();
            let decided = decision::put(&attempt.snapshot, stored.as_ref(), request, sealed, now);
            let writes = match decided {
                Ok(PutDecision::Unchanged(stored)) => return Ok(stored),
                Ok(PutDecision::Write(writes)) => [writes, unlocked].concat(),
                Err(refusal) if attempt.is_fresh => return Err(refusal.into()),
                Err(_) => {
                    attempt.refresh().await?;
                    continue;
                }
            };
            if let Some(revision) = attempt.commit(&writes).await? {
                info!(
                    namespace = variable.namespace,
                    path = variable.path,
                    index = revision,
                    "variable stored"
                );
                return Ok(StoredVariable {
                    items: request.items.clone(),
                    created_at: stored.as_ref().map_or(now, |stored| stored.created_at),
                    modified_at: now,
                    create_index: stored.map_or(revision, |stored| stored.create_index),
                    modify_index: revision,
                });
            }
        }
        Err(contended(format!("variable {variable}")))
    }

    /// Deletes a variable; returns the revision.
    ///
    /// # Errors
    /// There is none, it has another index, or the store does not accept the write.
    pub async fn delete(
        &self,
        variable: &VariableKey,
        check_index: Option<u64>,
        lock_id: &str,
    ) -> Result<u64, Error> {
        decision::check_key(variable)?;
        let mut attempt = Attempt::first(self.core()).await?;
        for _ in 0..ATTEMPTS_MAX {
            let unlocked = self.locks().write(variable, lock_id).await?;
            let stored = self
                .core()
                .client
                .get(&Key::Variable(variable.clone()))
                .await;
            let stored = stored.map_err(gateway_core::transactions::read_failure)?;
            let found = stored.map(|stored| stored.mod_revision);
            let write = decision::delete(found, variable, check_index)?;
            if let Some(revision) = attempt.commit(&[vec![write], unlocked].concat()).await? {
                info!(
                    namespace = variable.namespace,
                    path = variable.path,
                    index = revision,
                    "variable deleted"
                );
                return Ok(revision);
            }
        }
        Err(contended(format!("variable {variable}")))
    }

    /// Returns the number of variables by the name of the key that seals them.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn count_by_key(&self) -> Result<HashMap<String, u64>, Error> {
        let mut counts = HashMap::new();
        let mut cursor = Cursor::default();
        while let Some(page) = self.next(&mut cursor).await? {
            for found in page {
                *counts.entry(found.value.items.sealed_with).or_default() += 1;
            }
        }
        Ok(counts)
    }

    /// Seals every variable of an outdated key anew; returns how many. One that changes meanwhile is
    /// left to the next run.
    ///
    /// # Errors
    /// The store does not answer.
    pub(crate) async fn reseal(&self, keys: &KeyEncryptionKeys) -> Result<u64, Error> {
        let mut resealed = 0;
        let mut cursor = Cursor::default();
        while let Some(page) = self.next(&mut cursor).await? {
            for found in page {
                if found.value.items.sealed_with == keys.current() {
                    continue;
                }
                resealed += u64::from(self.reseal_one(found, keys).await?);
                tokio::time::sleep(RESEAL_PAUSE).await;
            }
        }
        Ok(resealed)
    }

    /// Seals one variable anew; returns whether it is.
    async fn reseal_one(
        &self,
        found: ListedVariable,
        keys: &KeyEncryptionKeys,
    ) -> Result<bool, Error> {
        let items = match variables::open(&found.key, &found.value.items, keys) {
            Ok(items) => items,
            Err(error) => {
                warn!(%error, "a variable cannot be sealed with the newest key");
                return Ok(false);
            }
        };
        let sealed = variables::seal(&found.key, &items, keys, self.keyring.signer.random());
        let write = Write::put(
            Key::Variable(found.key),
            found.mod_revision,
            Entity::Variable(Box::new(SealedVariable {
                items: sealed.map_err(|error| Error::new(Code::Internal, error))?,
                ..found.value
            })),
        );
        let core = self.core();
        let txn = core.transaction(SizeClass::New, &[write])?;
        let commit = core.commit_txn(&txn, core.deadline()).await?;
        Ok(commit.revision().is_some())
    }

    /// Returns the variables behind the last page; `None`: there are no more.
    async fn next(&self, cursor: &mut Cursor) -> Result<Option<Vec<ListedVariable>>, Error> {
        if cursor.is_at_end {
            return Ok(None);
        }
        let filter = VariableFilter {
            namespace: None,
            prefix: "",
            after: cursor.after.as_ref(),
        };
        let page = self.list(filter, PAGE).await?;
        cursor.is_at_end = !page.has_more;
        let last = page.variables.last().map(|found| found.key.clone());
        cursor.after = last.or(cursor.after.take());
        Ok(Some(page.variables))
    }
}

/// A place in the list of all variables.
#[derive(Default)]
struct Cursor {
    after: Option<VariableKey>,
    is_at_end: bool,
}

fn cannot_open(error: KeyError) -> Error {
    Error::new(Code::Unavailable, error)
}

/// The state of one request between its attempts.
struct Attempt<'a> {
    core: &'a Core,
    snapshot: Snapshot,
    is_fresh: bool,
    deadline: Instant,
}

impl<'a> Attempt<'a> {
    async fn first(core: &'a Core) -> Result<Self, Error> {
        Ok(Self {
            core,
            snapshot: core.snapshot(true).await?,
            is_fresh: false,
            deadline: core.deadline(),
        })
    }

    async fn refresh(&mut self) -> Result<(), Error> {
        self.snapshot = self.core.fresh().await?;
        self.is_fresh = true;
        Ok(())
    }

    /// Commits; returns the revision, or `None` after a conflict, with a state that includes it.
    async fn commit(&mut self, writes: &[Write]) -> Result<Option<u64>, Error> {
        let txn = self.core.transaction(SizeClass::New, writes)?;
        match self.core.commit_txn(&txn, self.deadline).await? {
            Commit::Done { revision } => Ok(Some(revision)),
            Commit::Conflict(conflict) => {
                self.snapshot = self.core.wait_for(conflict.revision, self.deadline).await?;
                self.is_fresh = true;
                Ok(None)
            }
        }
    }
}
