//! Shared by the handlers: the parts of the node, checks of its secret and of allocations.

use std::sync::Arc;

use model::ids::InvalidId;
use model::{AllocId, Node};
use service_kit::CancellationToken;
use subtle::ConstantTimeEq as _;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tonic::Status;

use crate::allocations::agent::Agent;
use crate::context::Context;
use crate::node_meta::NodeMeta;

/// Requests for files at a time: each has a part of 64 KiB and two descriptors.
pub(super) const FILE_SLOTS: usize = 16;
/// Measurements at a time: each reads the counters of every task or disk twice, and may ask the container engine.
pub(super) const MEASUREMENT_SLOTS: usize = 8;

#[derive(Clone)]
pub(crate) struct Operations {
    pub(crate) context: Arc<Context>,
    pub(crate) agent: Arc<Agent>,
    pub(crate) drain: CancellationToken,
    /// The node's record as the machine is now.
    pub(crate) node: watch::Receiver<Node>,
    pub(crate) meta: Arc<NodeMeta>,
    /// Asks for a new look at the machine.
    pub(crate) refreshes: mpsc::Sender<Refresh>,
    /// Limits the requests for files at a time.
    pub(super) file_slots: Arc<Semaphore>,
    /// Limits the measurements at a time.
    pub(super) measurement_slots: Arc<Semaphore>,
}

/// A request for a new look at the machine: answered with the parts of the node's record that have changed.
pub(crate) type Refresh = oneshot::Sender<Vec<&'static str>>;

impl Operations {
    pub(crate) fn new(
        context: Arc<Context>,
        agent: Arc<Agent>,
        drain: CancellationToken,
        node: watch::Receiver<Node>,
        meta: Arc<NodeMeta>,
        refreshes: mpsc::Sender<Refresh>,
    ) -> Self {
        Self {
            context,
            agent,
            drain,
            node,
            meta,
            refreshes,
            file_slots: Arc::new(Semaphore::new(FILE_SLOTS)),
            measurement_slots: Arc::new(Semaphore::new(MEASUREMENT_SLOTS)),
        }
    }

    /// # Errors
    /// The secret is not the node's.
    pub(super) fn check_secret(&self, secret: &str) -> Result<(), Status> {
        let known = self.context.identity.secret.as_bytes();
        // Response times reveal no prefix of the secret.
        if bool::from(secret.as_bytes().ct_eq(known)) {
            return Ok(());
        }
        Err(Status::permission_denied("the secret is not this node's"))
    }
}

/// # Errors
/// The text is not an id of an allocation.
pub(super) fn read_alloc_id(text: &str) -> Result<AllocId, Status> {
    let invalid = |error: InvalidId| proto::status::invalid_field("alloc_id", error.to_string());
    text.parse().map_err(invalid)
}

/// Returns the error of an allocation that this node does not have. The gateway asks for allocations that
/// were here.
pub(super) fn not_here(alloc_id: AllocId) -> Status {
    let message = format!(
        "its node no longer has allocation {alloc_id}: it has ended, and the node has removed its directory \
         with the logs (section `gc` of the node's settings)"
    );
    Status::not_found(message)
}
