//! Shortages of devices, with their reasons in metrics.

/// The reason of a node that lacks devices for no failed constraint. Source: Nomad.
pub(super) const MISSING: &str = "missing devices";

/// A device request that a node cannot serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceShortage {
    /// As the request has it: `gpu`, `nvidia/gpu` or `nvidia/gpu/k80`.
    pub name: String,
    /// The number of instances it asks for.
    pub asked: u64,
    /// The number of missing instances of one kind, once no constraint fails.
    pub missing: u64,
    /// The request has constraints.
    pub is_constrained: bool,
    /// The failed constraints of the devices with that name; empty: some are suitable, or there are none.
    pub refused: Vec<DeviceRefusal>,
}

/// A request's constraint that a kind of device fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceRefusal {
    /// As in `${device.attr.memory} >= 24 GiB`.
    pub constraint: String,
    /// As in `nvidia/gpu/k80`.
    pub kind: String,
    /// The values of the facts that the constraint reads; `None`: the kind has no such fact.
    pub facts: Vec<Option<String>>,
}

impl DeviceShortage {
    /// Returns the reason in metrics: `missing devices`, with the first failed constraint if there is
    /// one.
    pub fn reason(short: &[Self]) -> String {
        let mut refused = short.iter();
        let refused = refused.find_map(|short| Some((&short.name, short.refused.first()?)));
        refused.map_or(MISSING.to_owned(), |(name, refusal)| {
            for_constraint(name, refusal)
        })
    }
}

pub(super) fn for_constraint(name: &str, refusal: &DeviceRefusal) -> String {
    format!("{MISSING}: {name} with {}", refusal.constraint)
}
