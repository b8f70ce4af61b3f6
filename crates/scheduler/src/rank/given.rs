//! What an allocation gets of its node beside amounts.

use model::{AllocatedPort, ComparableResources, Node};
use placement::exclusive::Exclusive;
use placement::{Exhausted, Requirements, assign_ports, fits};
use state::NodeUsage;

/// Ports, cores and devices.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    pub(crate) ports: Vec<AllocatedPort>,
    pub(crate) exclusive: Exclusive,
}

impl Given {
    /// Finds room on `node`, which holds `usage`, for one that asks for `requirements`.
    ///
    /// `draw(n)` returns a random number below `n`.
    ///
    /// # Errors
    /// The first thing that the node is short of: ports, devices, cores, allocations, amounts.
    pub(crate) fn on(
        node: &Node,
        usage: &NodeUsage,
        requirements: &Requirements,
        draw: impl FnMut(u32) -> u32,
    ) -> Result<Self, Exhausted> {
        let ports = assign_ports(node, &usage.ports, &requirements.ports, draw)?;
        let exclusive = requirements.exclusive.assign(node, usage)?;
        if node.max_allocs > 0 && usage.alloc_count >= node.max_allocs {
            return Err(Exhausted::Amount(Exhausted::MAX_ALLOCS));
        }
        let given = Self { ports, exclusive };
        fits(node.available(), usage.total, given.total(requirements))?;
        Ok(given)
    }

    /// Returns the amounts that go with it: what is asked for, and what the cores come to.
    pub(crate) fn total(&self, requirements: &Requirements) -> ComparableResources {
        let mut total = requirements.resources;
        total.cpu_mhz = total.cpu_mhz.saturating_add(self.exclusive.cpu_mhz);
        total
    }
}
