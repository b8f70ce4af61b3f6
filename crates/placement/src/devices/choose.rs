//! Assignment of device instances for the requests of a group.

use model::Node;
use model::node::NodeDevice;
use state::dedicated::DeviceRef;

use crate::devices::ask::{Chosen, DeviceAsk};
use crate::devices::search::search;
use crate::holds::Holds;

/// The instances of all requests, in their order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DeviceAssignment {
    pub(crate) chosen: Vec<Chosen>,
    /// −1 to 1; `None`: no request has affinities.
    pub(crate) score: Option<f64>,
}

/// Finds instances of `node` for all of `asks` beside those that `holds` reports as held.
///
/// Each request gets healthy, free instances of one kind: the kind with the best affinity that leaves
/// enough for the others; of equals, the first on the node.
pub(crate) fn choose(
    asks: &[&DeviceAsk],
    node: &Node,
    holds: &impl Holds,
) -> Option<DeviceAssignment> {
    let chosen = search(asks, &node.devices, |kind, id| {
        !holds.holds_device(device_ref(kind, id))
    })?;
    let weight: f64 = asks.iter().map(|ask| ask.weight()).sum();
    let liked = asks.iter().zip(&chosen);
    let liked: f64 = liked
        .map(|(ask, chosen)| ask.preference(&node.devices[chosen.kind]))
        .sum();
    Some(DeviceAssignment {
        chosen,
        score: (weight > 0.0).then(|| liked / weight),
    })
}

pub(crate) fn device_ref<'a>(kind: &'a NodeDevice, instance_id: &'a str) -> DeviceRef<'a> {
    DeviceRef {
        vendor: &kind.vendor,
        device_type: &kind.device_type,
        name: &kind.name,
        instance_id,
    }
}
