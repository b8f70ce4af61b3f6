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
    /// `None`: the node has no Consul.
    pub(crate) consul: Option<task_consul::Data>,
    pub(crate) data: Arc<dyn DataSource>,
    pub(crate) requester: Requester,
}

impl Fetch for Sources {
    fn fetch(&self, lookup: Lookup) -> BoxFuture<'static, Result<Fetched, FetchError>> {
        if data_source::has(&lookup) {
            return data_source::fetch(&*self.data, &self.requester, lookup);
        }
        let source: Option<&dyn Fetch> = match &lookup {
            Lookup::Consul { .. } => self.consul.as_ref().map(|it| it as &dyn Fetch),
            _ => self.secrets.as_ref().map(|it| it as &dyn Fetch),
        };
        match source {
            Some(source) => source.fetch(lookup),
            // The event of the waiting task says what to do.
            None => Box::pin(async { Err(FetchError::new("no source")) }),
        }
    }
}

/// The systems that a task can look data up in, besides Kafila.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Systems {
    /// The task has a token of Vault.
    pub(crate) vault: bool,
    /// The node has Consul.
    pub(crate) consul: bool,
}

/// Returns whether a task has a source for the look-up.
pub(crate) fn has_source(lookup: &Lookup, systems: Systems) -> bool {
    data_source::has(lookup)
        || systems.vault && lookup.system() == VAULT
        || systems.consul && lookup.system() == CONSUL
}

/// The names of Vault and Consul among the systems of look-ups ([`Lookup::system`]).
pub(crate) const VAULT: &str = "Vault";
pub(crate) const CONSUL: &str = "Consul";
