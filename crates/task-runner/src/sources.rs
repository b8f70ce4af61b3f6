//! Sources of templates' look-ups on this node.

use std::sync::Arc;

use task_drivers::driver::BoxFuture;
use task_vault::Secrets;
use template::Lookup;
use template_watch::{Fetch, FetchError, Fetched};

use crate::data_source::{self, DataSource, Requester};

/// The sources of one task.
#[derive(Debug)]
pub(crate) struct Sources {
    /// `None`: the task has no token of Vault.
    pub(crate) secrets: Option<Secrets>,
    pub(crate) data: Arc<dyn DataSource>,
    pub(crate) requester: Requester,
}

impl Fetch for Sources {
    fn fetch(&self, lookup: Lookup) -> BoxFuture<'static, Result<Fetched, FetchError>> {
        if data_source::has(&lookup) {
            return data_source::fetch(&*self.data, &self.requester, lookup);
        }
        match (&lookup, &self.secrets) {
            (
                Lookup::Secret { .. } | Lookup::Secrets { .. } | Lookup::SecretWrite { .. },
                Some(secrets),
            ) => secrets.fetch(lookup),
            // The event of the waiting task says what to do.
            _ => Box::pin(async { Err(FetchError::new("no source")) }),
        }
    }
}

/// Returns whether a task, with a token of Vault or without, has a source for the look-up.
pub(crate) fn has_source(lookup: &Lookup, has_vault: bool) -> bool {
    data_source::has(lookup) || has_vault && lookup.system() == VAULT
}

/// The name of Vault among the systems of look-ups ([`Lookup::system`]).
pub(crate) const VAULT: &str = "Vault";
