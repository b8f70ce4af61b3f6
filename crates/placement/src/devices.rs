//! Devices: what a task asks for, and which instances of a node it gets.
//!
//! One function says both whether a node can serve the asks of a group at all and which instances
//! it gives: asked with nothing held, it is the first question. Two would disagree.
//!
//! In reading order: `name` and `check` are what a request says of a device, here is what it gets,
//! `search` finds a way to serve all requests, `short` says how many devices are missing where there is none.

mod check;
mod name;
mod search;
mod short;
#[cfg(test)]
mod tests;

use model::job::DeviceRequest;
use model::node::NodeDevice;
use model::{Affinity, Node};
use state::held::DeviceRef;

use crate::exclusive::{DeviceRefusal, Holds};
use check::{DeviceCheck, Facts};
use name::DeviceName;
pub(crate) use short::{fault, reason, short_of};

/// One request of a task, made ready to be asked of nodes.
#[derive(Clone, Debug)]
pub(crate) struct DeviceAsk {
    /// As the request names it.
    text: String,
    name: DeviceName,
    count: usize,
    /// What a kind of device has to satisfy.
    of_kinds: Vec<DeviceCheck>,
    /// What each instance has to satisfy.
    of_instances: Vec<DeviceCheck>,
    /// Each with its weight.
    affinities: Vec<(DeviceCheck, f64)>,
}

/// The instances that a request gets, all of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    /// The position of the kind among the node's.
    pub(crate) kind: usize,
    /// The positions of the instances.
    pub(crate) instances: Vec<usize>,
}

/// What requests get on a node, in their order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Choice {
    pub(crate) chosen: Vec<Chosen>,
    /// −1 to 1; `None`: no request has affinities.
    pub(crate) score: Option<f64>,
}

impl DeviceAsk {
    pub(crate) fn new(request: &DeviceRequest) -> Self {
        let checks: Vec<_> = request.constraints.iter().map(DeviceCheck::new).collect();
        let of_instances = checks.iter().filter(|check| check.is_about_ids());
        let of_kinds = checks.iter().filter(|check| check.is_asked_of_kinds());
        Self {
            text: request.name.clone(),
            name: DeviceName::parse(&request.name),
            count: usize::try_from(request.count).unwrap_or(usize::MAX),
            of_kinds: of_kinds.cloned().collect(),
            of_instances: of_instances.cloned().collect(),
            affinities: request.affinities.iter().map(weighed).collect(),
        }
    }

    pub(crate) fn has_affinities(&self) -> bool {
        !self.affinities.is_empty()
    }

    /// Tells whether devices of `kind` will do, however many are free.
    fn suits(&self, kind: &NodeDevice) -> bool {
        if !self.name.matches(kind) {
            return false;
        }
        let facts = Facts::of_kind(kind);
        self.of_kinds.iter().all(|check| check.passes(&facts))
    }

    /// Returns the constraints that keep every instance of `kind` from this request.
    fn refusing(&self, kind: &NodeDevice) -> Vec<&DeviceCheck> {
        let facts = Facts::of_kind(kind);
        let of_kind = self.of_kinds.iter();
        let mut refusing: Vec<_> = of_kind.filter(|check| !check.passes(&facts)).collect();
        let of_instances = self.of_instances.iter().filter(|check| {
            let mut ids = kind.instances.iter().map(|instance| &instance.id);
            !ids.any(|id| check.passes(&Facts::of_instance(kind, id)))
        });
        for check in of_instances {
            // What is said of a list of ids is asked of both.
            if !refusing.iter().any(|other| other.text() == check.text()) {
                refusing.push(check);
            }
        }
        refusing
    }

    fn is_constrained(&self) -> bool {
        !self.of_kinds.is_empty() || !self.of_instances.is_empty()
    }

    /// Returns the same request, `count` of them and without the constraints of these texts.
    fn loosened(&self, count: usize, dropped: &[DeviceRefusal]) -> Self {
        let mut loosened = Self {
            count,
            ..self.clone()
        };
        let is_kept = |check: &DeviceCheck| {
            let mut dropped = dropped.iter();
            !dropped.any(|refusal| refusal.constraint == check.text())
        };
        loosened.of_kinds.retain(is_kept);
        loosened.of_instances.retain(is_kept);
        loosened
    }

    fn suits_instance(&self, kind: &NodeDevice, id: &str) -> bool {
        let facts = Facts::of_instance(kind, id);
        self.of_instances.iter().all(|check| check.passes(&facts))
    }

    /// Returns the weights of the affinities that `kind` matches, summed up.
    fn liking(&self, kind: &NodeDevice) -> f64 {
        if self.affinities.is_empty() {
            return 0.0;
        }
        let facts = Facts::of_kind(kind);
        let matching = self.affinities.iter();
        let matching = matching.filter(|(check, _)| check.passes(&facts));
        matching.map(|(_, weight)| weight).sum()
    }

    fn weight(&self) -> f64 {
        self.affinities.iter().map(|(_, weight)| weight.abs()).sum()
    }
}

fn weighed(affinity: &Affinity) -> (DeviceCheck, f64) {
    let check = DeviceCheck::from_parts(&affinity.left, affinity.operator, &affinity.right);
    (check, f64::from(affinity.weight))
}

/// Finds instances of `node` for all of `asks` beside what `holds` says is taken.
///
/// Each request gets healthy, free instances of one kind, of the kind it likes best where the
/// others still find something; of equals, what the node lists first.
pub(crate) fn choose(asks: &[&DeviceAsk], node: &Node, holds: &impl Holds) -> Option<Choice> {
    let chosen = search::search(asks, &node.devices, |kind, id| {
        !holds.holds_device(device_ref(kind, id))
    })?;
    let weight: f64 = asks.iter().map(|ask| ask.weight()).sum();
    let liked = asks.iter().zip(&chosen);
    let liked: f64 = liked
        .map(|(ask, chosen)| ask.liking(&node.devices[chosen.kind]))
        .sum();
    Some(Choice {
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
