//! Dedicated resources, cores and device instances: the number of allocations that hold each.

use model::{AllocatedDevice, AllocatedResources};

/// Identity of one device instance on its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceRef<'a> {
    pub vendor: &'a str,
    pub device_type: &'a str,
    pub name: &'a str,
    pub instance_id: &'a str,
}

/// Holders per core and per device instance: of a node's allocations, or the difference that a plan
/// makes, which may be negative.
///
/// Shape: both lists are sorted and without zeros, so that equal counts are equal values. They are
/// short: a node has some dozen of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DedicatedUse {
    cores: Vec<(u16, i32)>,
    devices: Vec<(Device, i32)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Device {
    vendor: String,
    device_type: String,
    name: String,
    instance_id: String,
}

impl Device {
    fn as_ref(&self) -> DeviceRef<'_> {
        DeviceRef {
            vendor: &self.vendor,
            device_type: &self.device_type,
            name: &self.name,
            instance_id: &self.instance_id,
        }
    }
}

impl From<DeviceRef<'_>> for Device {
    fn from(device: DeviceRef<'_>) -> Self {
        Self {
            vendor: device.vendor.to_owned(),
            device_type: device.device_type.to_owned(),
            name: device.name.to_owned(),
            instance_id: device.instance_id.to_owned(),
        }
    }
}

impl DedicatedUse {
    pub fn is_empty(&self) -> bool {
        self.cores.is_empty() && self.devices.is_empty()
    }

    /// Counts one more allocation.
    pub fn add(&mut self, resources: &AllocatedResources) {
        self.count(resources, 1);
    }

    /// Counts one allocation less.
    pub fn remove(&mut self, resources: &AllocatedResources) {
        self.count(resources, -1);
    }

    fn count(&mut self, resources: &AllocatedResources, more: i32) {
        for id in resources.cores.iter().flat_map(|cores| &cores.ids) {
            let place = self.cores.binary_search_by_key(id, |(core, _)| *core);
            count_at(&mut self.cores, place, more, || *id);
        }
        for device in resources.devices.iter().flat_map(instances) {
            let place = self
                .devices
                .binary_search_by(|(known, _)| known.as_ref().cmp(&device));
            count_at(&mut self.devices, place, more, || device.into());
        }
    }

    /// Adds the counts of `change`.
    pub fn merge(&mut self, change: &Self) {
        for (id, more) in &change.cores {
            let place = self.cores.binary_search_by_key(id, |(core, _)| *core);
            count_at(&mut self.cores, place, *more, || *id);
        }
        for (device, more) in &change.devices {
            let wanted = device.as_ref();
            let place = self
                .devices
                .binary_search_by(|(known, _)| known.as_ref().cmp(&wanted));
            count_at(&mut self.devices, place, *more, || device.clone());
        }
    }

    /// Returns the number of allocations that hold the core.
    pub fn of_core(&self, id: u16) -> i32 {
        let place = self.cores.binary_search_by_key(&id, |(core, _)| *core);
        place.map_or(0, |place| self.cores[place].1)
    }

    /// Returns the number of allocations that hold the device instance.
    pub fn of_device(&self, device: DeviceRef<'_>) -> i32 {
        let place = self
            .devices
            .binary_search_by(|(known, _)| known.as_ref().cmp(&device));
        place.map_or(0, |place| self.devices[place].1)
    }
}

/// Returns the instances of one device that an allocation holds.
pub fn instances(devices: &AllocatedDevice) -> impl Iterator<Item = DeviceRef<'_>> {
    devices.instance_ids.iter().map(|instance_id| DeviceRef {
        vendor: &devices.vendor,
        device_type: &devices.device_type,
        name: &devices.name,
        instance_id,
    })
}

/// Adds `more` at the `place` that a binary search returned.
fn count_at<K>(
    counts: &mut Vec<(K, i32)>,
    place: Result<usize, usize>,
    more: i32,
    key: impl FnOnce() -> K,
) {
    match place {
        Ok(place) => {
            counts[place].1 += more;
            if counts[place].1 == 0 {
                counts.remove(place);
            }
        }
        Err(place) => counts.insert(place, (key(), more)),
    }
}

#[cfg(test)]
mod tests {
    use model::AllocatedCores;

    use super::*;

    fn resources(cores: &[u16], gpus: &[&str]) -> AllocatedResources {
        AllocatedResources {
            cores: vec![AllocatedCores {
                task: "t".into(),
                ids: cores.to_vec(),
            }],
            devices: vec![AllocatedDevice {
                task: "t".into(),
                vendor: "nvidia".into(),
                device_type: "gpu".into(),
                name: "k80".into(),
                instance_ids: gpus.iter().map(|id| (*id).to_owned()).collect(),
            }],
            ..AllocatedResources::default()
        }
    }

    fn gpu(instance_id: &str) -> DeviceRef<'_> {
        DeviceRef {
            vendor: "nvidia",
            device_type: "gpu",
            name: "k80",
            instance_id,
        }
    }

    #[test]
    fn an_allocation_counts_until_it_is_removed() {
        let mut held = DedicatedUse::default();
        held.add(&resources(&[3, 1], &["b", "a"]));
        held.add(&resources(&[1, 2], &["b"]));
        assert_eq!([0, 1, 2, 3].map(|id| held.of_core(id)), [0, 2, 1, 1]);
        assert_eq!(["a", "b", "c"].map(|id| held.of_device(gpu(id))), [1, 2, 0]);
        let other = DeviceRef {
            name: "1080ti",
            ..gpu("a")
        };
        assert_eq!(
            held.of_device(other),
            0,
            "instance ids are unique per device only"
        );
        held.remove(&resources(&[1, 3], &["a", "b"]));
        let mut same = DedicatedUse::default();
        same.add(&resources(&[2, 1], &["b"]));
        assert_eq!(held, same, "the order in which it came does not matter");
        held.remove(&resources(&[1, 2], &["b"]));
        assert!(held.is_empty());
    }

    #[test]
    fn a_change_may_be_negative() {
        let mut change = DedicatedUse::default();
        change.remove(&resources(&[1], &["a"]));
        assert_eq!((change.of_core(1), change.of_device(gpu("a"))), (-1, -1));
        change.add(&resources(&[1], &["a"]));
        assert!(change.is_empty());
    }
}
