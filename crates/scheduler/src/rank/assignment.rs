//! Assignment of ports, cores and devices to an allocation on its node.

use model::{AllocatedPort, ComparableResources, Node};
use placement::dedicated::Dedicated;
use placement::{Exhausted, Requirements, assign_ports, fits};
use state::NodeUsage;

/// Ports, cores and devices.
#[derive(Clone, Debug, Default)]
pub(crate) struct Assignment {
    pub(crate) ports: Vec<AllocatedPort>,
    pub(crate) dedicated: Dedicated,
}

impl Assignment {
    /// Assigns the ports, cores and devices of `requirements` on `node` with this `usage`.
    ///
    /// `draw(n)` returns a random number below `n`.
    ///
    /// # Errors
    /// The first dimension that is short: ports, devices, cores, allocations, amounts.
    pub(crate) fn on(
        node: &Node,
        usage: &NodeUsage,
        requirements: &Requirements,
        draw: impl FnMut(u32) -> u32,
    ) -> Result<Self, Exhausted> {
        let ports = assign_ports(node, &usage.ports, &requirements.ports, draw)?;
        let dedicated = requirements.dedicated.assign(node, usage)?;
        if node.max_allocs > 0 && usage.alloc_count >= node.max_allocs {
            return Err(Exhausted::Amount(Exhausted::MAX_ALLOCS));
        }
        let assignment = Self { ports, dedicated };
        fits(
            node.available(),
            usage.total,
            assignment.total(requirements),
        )?;
        Ok(assignment)
    }

    /// Returns the amounts of the allocation: the requirements, and the sum of its cores.
    pub(crate) fn total(&self, requirements: &Requirements) -> ComparableResources {
        let mut total = requirements.resources;
        total.cpu_mhz = total.cpu_mhz.saturating_add(self.dedicated.cpu_mhz);
        total
    }
}
