//! Dedicated cores and devices: one task alone holds each.

use std::borrow::Cow;

use model::node::DeviceInstance;
use model::{AllocatedCores, AllocatedDevice, AllocatedResources, Node, TaskGroup};
use state::DedicatedUse;
use state::dedicated::{DeviceRef, instances};

use crate::devices::ask::{Chosen, DeviceAsk};
use crate::devices::choose::{DeviceAssignment, choose, device_ref};
use crate::devices::short::{fault, short_of};
use crate::devices::shortage::DeviceShortage;
use crate::exhausted::Exhausted;
use crate::holds::{EmptyNode, Holds};

/// The dedicated cores and devices that a group's tasks ask for.
#[derive(Clone, Debug, Default)]
pub struct DedicatedAsk {
    /// Only tasks that ask for some.
    tasks: Vec<TaskAsk>,
}

#[derive(Clone, Debug)]
struct TaskAsk {
    task: String,
    cores: u32,
    devices: Vec<DeviceAsk>,
}

/// The dedicated cores and devices of one allocation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dedicated {
    pub cores: Vec<AllocatedCores>,
    pub devices: Vec<AllocatedDevice>,
    /// The sum of the cores, in MHz.
    pub cpu_mhz: u64,
    /// The affinity score of the devices, −1 to 1; `None`: the requests have no affinities.
    pub device_score: Option<f64>,
}

/// The dedicated cores and devices that a node lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shortage {
    /// The number of missing cores.
    pub cores: u64,
    /// In the order of the requests.
    pub devices: Vec<DeviceShortage>,
}

impl Dedicated {
    /// Adds them to the resources of an allocation.
    pub fn add_to(self, resources: &mut AllocatedResources) {
        if self.cores.is_empty() && self.devices.is_empty() {
            return;
        }
        resources.total.cpu_mhz = resources.total.cpu_mhz.saturating_add(self.cpu_mhz);
        resources.cores = self.cores;
        resources.devices = self.devices;
    }
}

impl DedicatedAsk {
    pub fn of_group(group: &TaskGroup) -> Self {
        let tasks = group.tasks.iter().map(|task| TaskAsk {
            task: task.name.clone(),
            cores: task.resources.cores,
            devices: task.resources.devices.iter().map(DeviceAsk::new).collect(),
        });
        Self {
            tasks: tasks
                .filter(|task| task.cores > 0 || !task.devices.is_empty())
                .collect(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    pub fn asks_devices(&self) -> bool {
        self.tasks.iter().any(|task| !task.devices.is_empty())
    }

    /// Tells whether assignments have a [`Dedicated::device_score`].
    pub fn has_device_affinities(&self) -> bool {
        self.device_asks().any(DeviceAsk::has_affinities)
    }

    fn device_asks(&self) -> impl Iterator<Item = &DeviceAsk> {
        self.tasks.iter().flat_map(|task| &task.devices)
    }

    /// Returns why `node` does not have the devices even when empty; `None`: it has.
    pub(crate) fn lacks_devices(&self, node: &Node) -> Option<Cow<'static, str>> {
        if self.has_devices(node) {
            return None;
        }
        let asks: Vec<_> = self.device_asks().collect();
        Some(fault(&asks, node))
    }

    /// Tells whether `node` has the devices when empty.
    pub fn has_devices(&self, node: &Node) -> bool {
        !self.asks_devices() || self.choose_devices(node, &EmptyNode).is_some()
    }

    fn choose_devices(&self, node: &Node, holds: &impl Holds) -> Option<DeviceAssignment> {
        let asks: Vec<_> = self.device_asks().collect();
        choose(&asks, node, holds)
    }

    /// Assigns every task its devices and the lowest free cores.
    ///
    /// # Errors
    /// `devices: no devices match request`, or `cores`.
    pub fn assign(&self, node: &Node, holds: &impl Holds) -> Result<Dedicated, Exhausted> {
        let mut assigned = Dedicated::default();
        self.assign_devices(node, holds, &mut assigned)?;
        self.assign_cores(node, holds, &mut assigned)?;
        Ok(assigned)
    }

    /// Returns the assignment as far as possible, with everything that is short, for explanations.
    pub fn assign_available(&self, node: &Node, holds: &impl Holds) -> (Dedicated, Shortage) {
        let mut assigned = Dedicated::default();
        let mut short = Shortage::default();
        if self.assign_devices(node, holds, &mut assigned).is_err() {
            let asks: Vec<_> = self.device_asks().collect();
            short.devices = short_of(&asks, node, holds);
        }
        if self.assign_cores(node, holds, &mut assigned).is_err() {
            let free = node.cores.keys().filter(|id| !holds.holds_core(**id));
            let free = u64::try_from(free.count()).unwrap_or(u64::MAX);
            short.cores = self.cores().saturating_sub(free);
        }
        (assigned, short)
    }

    /// Returns the number of cores that all tasks ask for.
    pub fn cores(&self) -> u64 {
        self.tasks.iter().map(|task| u64::from(task.cores)).sum()
    }

    fn assign_devices(
        &self,
        node: &Node,
        holds: &impl Holds,
        assigned: &mut Dedicated,
    ) -> Result<(), Exhausted> {
        if !self.asks_devices() {
            return Ok(());
        }
        let choice = self.choose_devices(node, holds);
        let choice = choice.ok_or(Exhausted::Amount(Exhausted::NO_DEVICES))?;
        assigned.device_score = choice.score;
        let mut chosen = choice.chosen.into_iter();
        for task in &self.tasks {
            let of_task = chosen.by_ref().take(task.devices.len());
            let named = of_task.map(|chosen| name(&task.task, node, &chosen));
            assigned.devices.extend(named);
        }
        Ok(())
    }

    fn assign_cores(
        &self,
        node: &Node,
        holds: &impl Holds,
        assigned: &mut Dedicated,
    ) -> Result<(), Exhausted> {
        let mut free = node.cores.iter().filter(|(id, _)| !holds.holds_core(**id));
        for task in self.tasks.iter().filter(|task| task.cores > 0) {
            let mut ids = Vec::new();
            for _ in 0..task.cores {
                let (id, mhz) = free.next().ok_or(Exhausted::Amount(Exhausted::CORES))?;
                ids.push(*id);
                assigned.cpu_mhz += u64::from(*mhz);
            }
            assigned.cores.push(AllocatedCores {
                task: task.task.clone(),
                ids,
            });
        }
        Ok(())
    }
}

fn name(task: &str, node: &Node, chosen: &Chosen) -> AllocatedDevice {
    let kind = &node.devices[chosen.kind];
    let instances = chosen.instances.iter();
    AllocatedDevice {
        task: task.to_owned(),
        vendor: kind.vendor.clone(),
        device_type: kind.device_type.clone(),
        name: kind.name.clone(),
        instance_ids: instances
            .map(|instance| kind.instances[*instance].id.clone())
            .collect(),
    }
}

/// Checks whether the cores and devices of `added` exist on `node` and are not held in `after`.
///
/// Those that the node held `before` pass even if the node has lost them.
///
/// # Errors
/// `cores` or `device oversubscribed`.
pub(crate) fn check(
    node: &Node,
    before: &impl Holds,
    after: &impl Holds,
    added: &AllocatedResources,
) -> Result<(), Exhausted> {
    if added.cores.is_empty() && added.devices.is_empty() {
        return Ok(());
    }
    // It may name one twice itself.
    let mut own = DedicatedUse::default();
    own.add(added);
    for id in added.cores.iter().flat_map(|cores| &cores.ids) {
        let is_known = node.cores.contains_key(id) || before.holds_core(*id);
        if !is_known || own.of_core(*id) > 1 || after.holds_core(*id) {
            return Err(Exhausted::Amount(Exhausted::CORES));
        }
    }
    for device in added.devices.iter().flat_map(instances) {
        let is_known = is_healthy(node, device) || before.holds_device(device);
        if !is_known || own.of_device(device) > 1 || after.holds_device(device) {
            return Err(Exhausted::Amount(Exhausted::DEVICE_OVERSUBSCRIBED));
        }
    }
    Ok(())
}

fn is_healthy(node: &Node, device: DeviceRef<'_>) -> bool {
    let is_it = |instance: &&DeviceInstance| instance.id == device.instance_id;
    let mut kinds = node.devices.iter();
    kinds.any(|kind| {
        device_ref(kind, device.instance_id) == device
            && kind
                .instances
                .iter()
                .find(is_it)
                .is_some_and(|it| it.healthy)
    })
}

#[cfg(test)]
mod tests {
    use model::job::DeviceRequest;
    use state::NodeUsage;
    use test_kit::builders::{self, gpus};

    use super::*;
    use crate::{Feasibility, Infeasible, Requirements, check_change};

    fn node_with_cores(count: u16) -> Node {
        let mut node = builders::node(1);
        node.cores = (0..count).map(|id| (id, 1_000 + u32::from(id))).collect();
        node
    }

    fn request(name: &str, count: u64) -> DeviceRequest {
        DeviceRequest {
            name: name.into(),
            count,
            constraints: Vec::new(),
            affinities: Vec::new(),
        }
    }

    fn group(edit: impl FnOnce(&mut TaskGroup)) -> TaskGroup {
        let mut group = builders::group("web", model::JobType::Service, 1);
        edit(&mut group);
        group
    }

    fn holding(cores: &[u16], gpus: &[(&str, &str)]) -> AllocatedResources {
        AllocatedResources {
            cores: vec![AllocatedCores {
                task: "other".into(),
                ids: cores.to_vec(),
            }],
            devices: gpus
                .iter()
                .map(|(name, id)| AllocatedDevice {
                    task: "other".into(),
                    vendor: "nvidia".into(),
                    device_type: "gpu".into(),
                    name: (*name).to_owned(),
                    instance_ids: vec![(*id).to_owned()],
                })
                .collect(),
            ..AllocatedResources::default()
        }
    }

    fn usage(allocs: &[AllocatedResources]) -> NodeUsage {
        let mut usage = NodeUsage::default();
        for resources in allocs {
            usage.add(resources);
        }
        usage
    }

    #[test]
    fn scenario_119_the_lowest_free_core_is_given_with_its_speed() {
        let node = node_with_cores(4);
        let ask = DedicatedAsk::of_group(&group(|group| group.tasks[0].resources.cores = 1));
        let assigned = ask.assign(&node, &usage(&[holding(&[0], &[])])).unwrap();
        assert_eq!(assigned.cores[0].ids, [1]);
        assert_eq!(assigned.cpu_mhz, 1_001);
        let full = usage(&[holding(&[0, 1], &[]), holding(&[2, 3], &[])]);
        let error = ask.assign(&node, &full).unwrap_err();
        assert_eq!(error.to_string(), "cores");
    }

    #[test]
    fn every_task_gets_cores_of_its_own_beside_the_largest_stage() {
        let group = group(|group| {
            let mut other = builders::task("other");
            other.resources.cores = 2;
            other.resources.cpu_mhz = 700;
            group.tasks[0].resources.cpu_mhz = 300;
            group.tasks.push(other);
            let mut third = builders::task("third");
            third.resources.cores = 1;
            group.tasks.push(third);
        });
        assert_eq!(group.ask().cpu_mhz, 300, "what cores come to is not in it");
        let ask = DedicatedAsk::of_group(&group);
        let assigned = ask.assign(&node_with_cores(4), &EmptyNode).unwrap();
        let mut resources = AllocatedResources {
            total: group.ask(),
            ..AllocatedResources::default()
        };
        assigned.add_to(&mut resources);
        let ids: Vec<_> = resources.cores.iter().map(|cores| &cores.ids[..]).collect();
        assert_eq!(ids, [&[0, 1][..], &[2]]);
        assert_eq!(resources.total.cpu_mhz, 300 + 1_000 + 1_001 + 1_002);
    }

    /// Nomad's checker adds the two models up and passes the node, its allocator then finds nothing;
    /// here both are one, and say no at once.
    #[test]
    fn scenario_121_a_request_is_served_by_one_model() {
        let mut node = builders::node(1);
        node.devices = vec![gpus("k80", &["a"]), gpus("t4", &["b"])];
        let mut job = builders::service("web", 1);
        job.task_groups[0].tasks[0].resources.devices = vec![request("gpu", 2)];
        let requirements = Requirements::new(&job, &job.task_groups[0]);
        let mut feasibility = Feasibility::new(&requirements);
        let answer = feasibility.check(&node);
        assert_eq!(answer, Err(Infeasible::Devices("missing devices".into())));
        assert_eq!(answer.unwrap_err().reason(), "missing devices");
        // One of its class that has more of them is asked itself.
        let mut other = node.clone();
        other.devices[1] = gpus("t4", &["b", "c"]);
        assert_eq!(
            crate::computed_class(&other),
            crate::computed_class(&node),
            "of one class"
        );
        assert_eq!(feasibility.check(&other), Ok(()));
        let held = usage(&[holding(&[], &[("t4", "c")])]);
        let error = requirements.dedicated.assign(&other, &held).unwrap_err();
        assert_eq!(error.to_string(), "devices: no devices match request");
    }

    #[test]
    fn an_unhealthy_device_is_not_given_out() {
        let mut node = builders::node(1);
        node.devices = vec![gpus("k80", &["a", "b"])];
        node.devices[0].instances[0].healthy = false;
        let ask = |count| {
            DedicatedAsk::of_group(&group(|group| {
                group.tasks[0].resources.devices = vec![request("nvidia/gpu/k80", count)];
            }))
        };
        let assigned = ask(1).assign(&node, &EmptyNode).unwrap();
        assert_eq!(assigned.devices[0].instance_ids, ["b"]);
        assert!(!ask(2).has_devices(&node));
    }

    #[test]
    fn assigned_cores_and_devices_pass_the_check_and_none_is_held_twice() {
        let mut node = node_with_cores(2);
        node.devices = vec![gpus("k80", &["a", "b"])];
        let check = |held: &[AllocatedResources], added: &[AllocatedResources]| {
            let answer = check_change(&node, &usage(held), [], added);
            answer.map_err(|exhausted| exhausted.to_string())
        };
        let (cores, gpu) = (Err("cores".to_owned()), "device oversubscribed".to_owned());
        let a = || holding(&[0], &[("k80", "a")]);
        assert_eq!(check(&[a()], &[holding(&[1], &[("k80", "b")])]), Ok(()));
        assert_eq!(check(&[a()], &[holding(&[0], &[])]), cores);
        assert_eq!(check(&[], &[holding(&[1], &[]), holding(&[1], &[])]), cores);
        assert_eq!(check(&[], &[holding(&[1, 1], &[])]), cores, "twice in one");
        assert_eq!(check(&[], &[holding(&[2], &[])]), cores, "not of this node");
        assert_eq!(
            check(&[a()], &[holding(&[], &[("k80", "a")])]),
            Err(gpu.clone())
        );
        assert_eq!(check(&[], &[holding(&[], &[("t4", "a")])]), Err(gpu));
    }

    /// An update in place may not fail because the node lost a core or device that the allocation
    /// holds.
    #[test]
    fn earlier_holdings_of_the_node_are_not_checked_again() {
        let node = builders::node(1);
        let held = holding(&[7], &[("k80", "gone")]);
        let answer = check_change(&node, &usage(std::slice::from_ref(&held)), [&held], [&held]);
        assert_eq!(answer, Ok(()));
    }

    #[test]
    fn scenario_120_a_node_takes_as_many_allocations_as_it_says() {
        let mut node = builders::node(1);
        node.max_allocs = 1;
        let nothing = AllocatedResources::default();
        assert_eq!(check_change(&node, &usage(&[]), [], [&nothing]), Ok(()));
        let full = usage(std::slice::from_ref(&nothing));
        let error = check_change(&node, &full, [], [&nothing]).unwrap_err();
        assert_eq!(error.to_string(), "max allocation exceeded");
        assert_eq!(check_change(&node, &full, [&nothing], [&nothing]), Ok(()));
    }
}
