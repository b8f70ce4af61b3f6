//! Locks of variables: decisions by the two keys of a lock, as they were read: acquire, hold, release, write.
//!
//! Each decision comes with the compares that make it fail if the keys have changed since.

mod limits;
#[cfg(test)]
mod tests;

use model::refusal::{Kind, Refusal};
use model::{FieldErrors, VariableKey, VariableLock};
use state::{Key, Write};

pub use limits::{AcquireRequest, Times, check_id};

/// One of the two keys, with the revision of its last change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub lock: VariableLock,
    pub mod_revision: u64,
}

/// The two keys of a lock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Locked {
    /// The holder may write.
    pub holder: Option<Stored>,
    /// Others cannot acquire.
    pub delay: Option<Stored>,
}

/// The reason why a lock is not acquired, or a write is not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LockRefusal {
    #[error(transparent)]
    Invalid(#[from] FieldErrors),
    /// Source: Nomad's text.
    #[error(
        "attempting to modify locked variable: variable {variable} is locked by {lock_id}; send that lock_id \
         if it is yours, or wait for its release"
    )]
    Locked {
        variable: VariableKey,
        lock_id: String,
    },
    #[error("variable {variable} is locked already, by {lock_id}: wait for its release")]
    Taken {
        variable: VariableKey,
        lock_id: String,
    },
    #[error(
        "the lock {lock_id} of variable {variable} was lost: it was not renewed in time, and can be acquired \
         again after its delay"
    )]
    InDelay {
        variable: VariableKey,
        lock_id: String,
    },
    /// Source: Nomad's text.
    #[error(
        "variable doesn't hold a lock: the lock {lock_id} of variable {variable} was released, or lost because \
         it was not renewed in time; acquire it again"
    )]
    NotHeld {
        variable: VariableKey,
        lock_id: String,
    },
}

impl Refusal for LockRefusal {
    fn kind(&self) -> Kind {
        match self {
            Self::Invalid(_) => Kind::Invalid,
            Self::Locked { .. }
            | Self::Taken { .. }
            | Self::InDelay { .. }
            | Self::NotHeld { .. } => Kind::Outdated,
        }
    }

    fn field_errors(&self) -> Option<&FieldErrors> {
        match self {
            Self::Invalid(errors) => Some(errors),
            _ => None,
        }
    }
}

impl Locked {
    /// Returns the lock that is held, or in its delay.
    pub fn by(&self) -> Option<&VariableLock> {
        let any = self.holder.as_ref().or(self.delay.as_ref());
        any.map(|stored| &stored.lock)
    }

    /// Decides on an acquisition. `Some`: the request is a repeated one, which holds the lock already; it has
    /// to be renewed. `None`: the lock is free, and both keys are to be created.
    ///
    /// # Errors
    /// Another holds the lock, or it is in its delay.
    pub fn acquire(
        &self,
        variable: &VariableKey,
        lock_id: &str,
    ) -> Result<Option<&VariableLock>, LockRefusal> {
        let Some(lock) = self.by() else {
            return Ok(None);
        };
        let variable = variable.clone();
        let refused = lock.id.clone();
        match &self.holder {
            Some(held) if held.lock.id == lock_id => Ok(Some(&held.lock)),
            Some(_) => Err(LockRefusal::Taken {
                variable,
                lock_id: refused,
            }),
            None => Err(LockRefusal::InDelay {
                variable,
                lock_id: refused,
            }),
        }
    }

    /// Returns the lock with this id, if it is held.
    ///
    /// # Errors
    /// It is not.
    pub fn held(&self, variable: &VariableKey, lock_id: &str) -> Result<&Stored, LockRefusal> {
        let held = self.holder.as_ref().filter(|held| held.lock.id == lock_id);
        held.ok_or_else(|| LockRefusal::NotHeld {
            variable: variable.clone(),
            lock_id: lock_id.to_owned(),
        })
    }

    /// Decides on a release: both keys are deleted as they were read.
    ///
    /// # Errors
    /// The caller does not hold the lock.
    pub fn release(
        &self,
        variable: &VariableKey,
        lock_id: &str,
    ) -> Result<Vec<Write>, LockRefusal> {
        let held = self.held(variable, lock_id)?;
        let delete = |key: Key, stored: &Stored| Write::Delete {
            key,
            modify_index: stored.mod_revision,
        };
        let holder = delete(Key::LockHolder(variable.clone()), held);
        let delay = match &self.delay {
            Some(stored) => delete(Key::LockDelay(variable.clone()), stored),
            None => Write::RequireAbsent {
                key: Key::LockDelay(variable.clone()),
            },
        };
        Ok(vec![holder, delay])
    }

    /// Decides on a write of the variable; returns the compares to add to it. `lock_id` is empty for a caller
    /// without a lock.
    ///
    /// # Errors
    /// The variable is locked by another, or the caller's lock is lost.
    pub fn write(&self, variable: &VariableKey, lock_id: &str) -> Result<Vec<Write>, LockRefusal> {
        if !lock_id.is_empty() {
            let held = self.held(variable, lock_id)?;
            return Ok(vec![Write::RequireUnchanged {
                key: Key::LockHolder(variable.clone()),
                modify_index: held.mod_revision,
            }]);
        }
        if let Some(lock) = self.by() {
            return Err(LockRefusal::Locked {
                variable: variable.clone(),
                lock_id: lock.id.clone(),
            });
        }
        Ok(absent(variable))
    }
}

/// The compares of a variable without a lock.
fn absent(variable: &VariableKey) -> Vec<Write> {
    let keys = [
        Key::LockHolder(variable.clone()),
        Key::LockDelay(variable.clone()),
    ];
    keys.into_iter()
        .map(|key| Write::RequireAbsent { key })
        .collect()
}
