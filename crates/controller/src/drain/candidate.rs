//! An allocation that may be marked for migration.

use state::AllocView;

#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate<'a> {
    pub(super) view: &'a AllocView,
    pub(super) node_modify_index: u64,
    /// Leaves at once, whatever `max_parallel` says: the drain's deadline has passed, or it is not
    /// part of a service.
    pub(super) is_due: bool,
}
