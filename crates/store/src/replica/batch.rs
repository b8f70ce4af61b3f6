//! Applied revisions on their way from the feed to subscriptions.

use std::sync::Arc;

use state::Change;

/// Revisions that were applied together.
#[derive(Clone, Debug)]
pub(super) enum Batch {
    /// Ascending; not empty.
    Revisions(Arc<[Revision]>),
    /// The state at this revision was not reached through published changes: it was listed, or
    /// changed while there was no subscriber.
    Gap(u64),
}

#[derive(Clone, Debug)]
pub(super) struct Revision {
    pub(super) revision: u64,
    pub(super) changes: Arc<[Change]>,
}
