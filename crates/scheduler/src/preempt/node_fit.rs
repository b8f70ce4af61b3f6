//! A node as the draft leaves it, with the requirements that have to fit on it.

use model::Node;
use placement::{Exhausted, Requirements};
use state::NodeUsage;

use crate::rank::assignment::Assignment;

#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeFit<'a> {
    pub(crate) node: &'a Node,
    /// The node's usage, without allocations that the plan stops or evicts.
    pub(crate) usage: &'a NodeUsage,
    pub(crate) requirements: &'a Requirements,
}

impl<'a> NodeFit<'a> {
    /// Returns the same node with another usage.
    pub(crate) fn with(&self, usage: &'a NodeUsage) -> Self {
        Self { usage, ..*self }
    }

    /// Assigns ports, cores and devices. Dynamic ports are drawn anew once the victims are known.
    ///
    /// # Errors
    /// The first dimension that is short.
    pub(crate) fn find(&self) -> Result<Assignment, Exhausted> {
        Assignment::on(self.node, self.usage, self.requirements, |_| 0)
    }
}
