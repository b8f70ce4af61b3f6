//! Cores, devices and how many allocations a node takes.

use std::collections::BTreeMap;

use model::{AllocId, Node};
use state::dedicated::{DeviceRef, instances};
use state::{AllocView, DedicatedUse};

use crate::violation::Fact;

/// Finds cores and devices that a node's live allocations hold more than once.
pub(crate) fn held_twice(live: &[&AllocView]) -> Vec<(Fact, String)> {
    let mut cores = BTreeMap::<u16, Vec<AllocId>>::new();
    let mut devices = BTreeMap::<DeviceRef<'_>, Vec<AllocId>>::new();
    for view in live {
        let resources = &view.alloc.resources;
        for id in resources.cores.iter().flat_map(|cores| &cores.ids) {
            cores.entry(*id).or_default().push(view.alloc.id);
        }
        for device in resources.devices.iter().flat_map(instances) {
            devices.entry(device).or_default().push(view.alloc.id);
        }
    }
    let mut found = Vec::new();
    for (id, holders) in cores.into_iter().filter(|(_, ids)| ids.len() > 1) {
        let text = format!("core {id} is held by {holders:?}");
        found.push((Fact::CoreHeldOnce, text));
    }
    for (device, holders) in devices.into_iter().filter(|(_, ids)| ids.len() > 1) {
        let text = format!("{device:?} is held by {holders:?}");
        found.push((Fact::DeviceHeldOnce, text));
    }
    found
}

/// Checks the node's limit of allocations.
pub(crate) fn too_many(node: &Node, live: &[&AllocView]) -> Option<String> {
    let most = node.max_allocs as usize;
    (most > 0 && live.len() > most).then(|| format!("{} allocations of {most}", live.len()))
}

/// Returns the sum over a node's live allocations.
pub(crate) fn sum(live: &[&AllocView]) -> DedicatedUse {
    let mut held = DedicatedUse::default();
    for view in live {
        held.add(&view.alloc.resources);
    }
    held
}
