//! Device requests, compiled for checks of many nodes.

use model::Affinity;
use model::job::DeviceRequest;
use model::node::NodeDevice;

use crate::devices::check::{DeviceCheck, Facts};
use crate::devices::name::DeviceName;
use crate::devices::shortage::DeviceRefusal;

/// A compiled device request of a task.
#[derive(Clone, Debug)]
pub(crate) struct DeviceAsk {
    /// The name in the request.
    pub(super) text: String,
    pub(super) name: DeviceName,
    pub(super) count: usize,
    /// Constraints on a kind of device.
    of_kinds: Vec<DeviceCheck>,
    /// Constraints on each instance.
    of_instances: Vec<DeviceCheck>,
    /// With their weights.
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

impl DeviceAsk {
    pub(crate) fn new(request: &DeviceRequest) -> Self {
        let checks: Vec<_> = request.constraints.iter().map(DeviceCheck::new).collect();
        let of_instances = checks.iter().filter(|check| check.is_about_ids());
        let of_kinds = checks.iter().filter(|check| check.applies_to_kinds());
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

    /// Tells whether devices of `kind` are suitable, free or not.
    pub(super) fn suits(&self, kind: &NodeDevice) -> bool {
        if !self.name.matches(kind) {
            return false;
        }
        let facts = Facts::of_kind(kind);
        self.of_kinds.iter().all(|check| check.passes(&facts))
    }

    /// Returns the constraints that rule out every instance of `kind`.
    pub(super) fn refusing(&self, kind: &NodeDevice) -> Vec<&DeviceCheck> {
        let facts = Facts::of_kind(kind);
        let of_kind = self.of_kinds.iter();
        let mut refusing: Vec<_> = of_kind.filter(|check| !check.passes(&facts)).collect();
        let of_instances = self.of_instances.iter().filter(|check| {
            let mut ids = kind.instances.iter().map(|instance| &instance.id);
            !ids.any(|id| check.passes(&Facts::of_instance(kind, id)))
        });
        for check in of_instances {
            // Constraints on a list of ids apply to kinds and instances.
            if !refusing.iter().any(|other| other.text() == check.text()) {
                refusing.push(check);
            }
        }
        refusing
    }

    pub(super) fn is_constrained(&self) -> bool {
        !self.of_kinds.is_empty() || !self.of_instances.is_empty()
    }

    /// Returns the same request for `count` instances, without the `dropped` constraints.
    pub(super) fn relaxed(&self, count: usize, dropped: &[DeviceRefusal]) -> Self {
        let mut relaxed = Self {
            count,
            ..self.clone()
        };
        let is_kept = |check: &DeviceCheck| {
            let mut dropped = dropped.iter();
            !dropped.any(|refusal| refusal.constraint == check.text())
        };
        relaxed.of_kinds.retain(is_kept);
        relaxed.of_instances.retain(is_kept);
        relaxed
    }

    pub(super) fn suits_instance(&self, kind: &NodeDevice, id: &str) -> bool {
        let facts = Facts::of_instance(kind, id);
        self.of_instances.iter().all(|check| check.passes(&facts))
    }

    /// Returns the sum of the weights of the affinities that `kind` matches.
    pub(super) fn preference(&self, kind: &NodeDevice) -> f64 {
        if self.affinities.is_empty() {
            return 0.0;
        }
        let facts = Facts::of_kind(kind);
        let matching = self.affinities.iter();
        let matching = matching.filter(|(check, _)| check.passes(&facts));
        matching.map(|(_, weight)| weight).sum()
    }

    pub(super) fn weight(&self) -> f64 {
        self.affinities.iter().map(|(_, weight)| weight.abs()).sum()
    }
}

fn weighed(affinity: &Affinity) -> (DeviceCheck, f64) {
    let check = DeviceCheck::from_parts(&affinity.left, affinity.operator, &affinity.right);
    (check, f64::from(affinity.weight))
}
