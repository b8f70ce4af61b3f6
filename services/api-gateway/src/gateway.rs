//! State that the handlers of the API share.

use std::sync::Arc;

use csi_volumes::CsiVolumes;
use gateway_core::{Core, Error, Step, WorkSlots};
use keyring::Keyring;
use node_calls::NodeCalls;
use node_gateway::NodeGateway;
use service_kit::CancellationToken;
use state::Snapshot;
use store::SizeClass;
use tokio::sync::SemaphorePermit;

use crate::backup::slot::BackupSlot;
use crate::concurrency_limit::ConcurrencyLimit;
use crate::config::Config;
use crate::events::slots::StreamSlots;
use crate::metrics::Metrics;
use crate::reads::table_changes::TableChanges;
use crate::space::Space;

/// Shared by all handlers of one gateway.
#[derive(Debug)]
pub struct Gateway {
    pub config: Config,
    /// The address that other processes reach it at.
    pub address: String,
    /// The log of this process.
    pub agent: process_log::ProcessLog,
    pub core: Arc<Core>,
    /// The sessions of nodes.
    pub node: Arc<NodeGateway>,
    pub node_calls: NodeCalls,
    pub keyring: Arc<Keyring>,
    pub csi: CsiVolumes,
    pub tables: Arc<TableChanges>,
    pub metrics: Metrics,
    /// Cancelled when streams and blocked reads have to end.
    pub drain: CancellationToken,
    pub dry_runs: ConcurrencyLimit,
    /// Requests about jobs in progress.
    pub work_slots: WorkSlots,
    pub streams: StreamSlots,
    /// Refuses new work while etcd is nearly full.
    pub space: Arc<Space>,
    pub backups: BackupSlot,
}

/// The decision on a request about a job.
pub(crate) struct Work<T> {
    /// It adds work to what etcd and the schedulers hold.
    pub(crate) is_new: bool,
    pub(crate) step: Step<T>,
}

impl Gateway {
    /// Takes a slot for a request about a job. Requests that end work need none.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED`: all slots are taken; counted.
    pub(crate) fn begin_work(&self) -> Result<SemaphorePermit<'_>, Error> {
        self.counted(self.work_slots.take())
    }

    /// Decides on a request about a job and commits the decision ([`Core::execute_in`]). A decision
    /// that adds work is refused while etcd is nearly full; refusals for overload are counted.
    ///
    /// # Errors
    /// Those of `decide` and [`Core::execute_in`]; `RESOURCE_EXHAUSTED`: etcd is full, or nearly.
    pub(crate) async fn execute_work<T>(
        &self,
        class: SizeClass,
        what: impl Fn() -> String + Send,
        decide: impl Fn(&Snapshot) -> Result<Work<T>, Error> + Send + Sync,
    ) -> Result<T, Error> {
        let decide = |snapshot: &Snapshot| self.gated(decide(snapshot)?);
        self.counted(self.core.execute_in(class, what, decide).await)
    }

    /// Like [`Self::execute_work`]; requests that come in together share transactions
    /// ([`Core::execute_together`]).
    ///
    /// # Errors
    /// See [`Self::execute_work`].
    pub(crate) async fn execute_work_together<T>(
        &self,
        what: impl Fn() -> String + Send,
        decide: impl Fn(&Snapshot) -> Result<Work<T>, Error> + Send + Sync,
    ) -> Result<T, Error> {
        let decide = |snapshot: &Snapshot| self.gated(decide(snapshot)?);
        self.counted(self.core.execute_together(what, decide).await)
    }

    fn gated<T>(&self, work: Work<T>) -> Result<Step<T>, Error> {
        if work.is_new {
            self.space.check().map_err(Error::refused)?;
        }
        Ok(work.step)
    }

    fn counted<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        if result.as_ref().is_err_and(Error::is_overload) {
            self.metrics.jobs_refused_overload.inc();
        }
        result
    }
}

/// The handlers' reference. Cheap to clone.
pub type Shared = Arc<Gateway>;
