//! Query of the keyring.

use std::sync::Arc;

use model::{Indexed, Keyring};

use crate::snapshot::Snapshot;

impl Snapshot {
    /// Returns the signing keys of identity tokens; `None`: no gateway has made one yet.
    pub fn keyring(&self) -> Option<&Arc<Indexed<Keyring>>> {
        self.tables().keyring.as_ref()
    }
}
