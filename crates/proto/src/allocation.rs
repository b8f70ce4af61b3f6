//! Allocations: the desired state in both directions, and the joined view for readers.

use std::sync::Arc;

use model::allocation::RescheduleEvent;
use model::resources::ComparableResources;
use model::{
    AllocClient, AllocatedCores, AllocatedDevice, AllocatedPort, AllocatedResources, Allocation,
    ClientStatus, DesiredStatus, DesiredTransition, FieldErrors, StoredMetric,
};

use crate::fields::{
    At as _, Read, duration, duration_to_wire, each, id, id_or_empty, narrow, optional_id,
    optional_word, required, time, word,
};
use crate::{metric, v1};

const DESIRED_STATUSES: [DesiredStatus; 3] = [
    DesiredStatus::Run,
    DesiredStatus::Stop,
    DesiredStatus::Evict,
];

impl TryFrom<v1::Allocation> for Allocation {
    type Error = FieldErrors;

    /// Reads the desired state; fields of the reported state and of reads are ignored.
    fn try_from(wire: v1::Allocation) -> Result<Self, FieldErrors> {
        read(wire).at("allocation")
    }
}

pub(crate) fn read(wire: v1::Allocation) -> Read<Allocation> {
    Ok(Allocation {
        id: id(&wire.id).at("id")?,
        eval_id: id(&wire.eval_id).at("eval_id")?,
        node_id: id(&wire.node_id).at("node_id")?,
        namespace: Arc::from(wire.namespace),
        job_id: Arc::from(wire.job_id),
        job_version: wire.job_version,
        job_create_index: wire.job_create_index,
        task_group: Arc::from(wire.task_group),
        name_index: wire.name_index,
        resources: required(wire.resources)
            .and_then(read_resources)
            .at("resources")?,
        desired_status: word(
            &wire.desired_status,
            &DESIRED_STATUSES,
            DesiredStatus::as_str,
        )
        .at("desired_status")?,
        desired_description: wire.desired_description,
        transition: wire
            .desired_transition
            .map(DesiredTransition::from)
            .unwrap_or_default(),
        deployment_id: optional_id(&wire.deployment_id).at("deployment_id")?,
        canary: wire.canary,
        client_status_override: optional_word(
            &wire.client_status_override,
            &ClientStatus::ALL,
            ClientStatus::as_str,
        )
        .at("client_status_override")?,
        unknown_since: time(wire.unknown_since_ns),
        previous_alloc: optional_id(&wire.previous_alloc_id).at("previous_alloc_id")?,
        next_alloc: optional_id(&wire.next_alloc_id).at("next_alloc_id")?,
        followup_eval_id: optional_id(&wire.followup_eval_id).at("followup_eval_id")?,
        preempted_by: optional_id(&wire.preempted_by_alloc_id).at("preempted_by_alloc_id")?,
        preempted_allocs: each(wire.preempted_alloc_ids, |text| id(&text))
            .at("preempted_alloc_ids")?,
        reschedules: each(wire.reschedules, read_reschedule).at("reschedules")?,
        create_time: time(wire.create_time_ns),
        modify_time: time(wire.modify_time_ns),
        metric: wire
            .metric
            .map(metric::read)
            .transpose()
            .at("metric")?
            .map(StoredMetric::from),
    })
}

fn read_resources(wire: v1::AllocatedResources) -> Read<AllocatedResources> {
    Ok(AllocatedResources {
        total: ComparableResources {
            cpu_mhz: wire.cpu_mhz,
            memory_mib: wire.memory_mib,
            disk_mib: wire.disk_mib,
        },
        ports: each(wire.ports, read_port).at("ports")?,
        cores: each(wire.cores, read_cores).at("cores")?,
        devices: wire
            .devices
            .into_iter()
            .map(AllocatedDevice::from)
            .collect(),
        memory_oversubscribed: wire.memory_oversubscribed,
    })
}

fn read_cores(wire: v1::AllocatedCores) -> Read<AllocatedCores> {
    Ok(AllocatedCores {
        task: wire.task,
        ids: each(wire.ids, |id| narrow(id, u16::MAX)).at("ids")?,
    })
}

fn read_port(wire: v1::AllocatedPort) -> Read<AllocatedPort> {
    Ok(AllocatedPort {
        label: wire.label,
        value: narrow(wire.value, u16::MAX).at("value")?,
        to: narrow(wire.to, u16::MAX).at("to")?,
        host_ip: wire.host_ip,
        ignore_collision: wire.ignore_collision,
        task: wire.task,
    })
}

fn read_reschedule(wire: v1::RescheduleEvent) -> Read<RescheduleEvent> {
    Ok(RescheduleEvent {
        time: time(wire.time_ns),
        previous_alloc: id(&wire.previous_alloc_id).at("previous_alloc_id")?,
        previous_node: id(&wire.previous_node_id).at("previous_node_id")?,
        delay: duration(wire.delay.unwrap_or_default()).at("delay")?,
    })
}

impl From<v1::DesiredTransition> for DesiredTransition {
    fn from(wire: v1::DesiredTransition) -> Self {
        Self {
            migrate: wire.migrate,
            migrate_disable_placement: wire.migrate_disable_placement,
            reschedule: wire.reschedule,
            force_reschedule: wire.force_reschedule,
            no_shutdown_delay: wire.no_shutdown_delay,
        }
    }
}

impl From<DesiredTransition> for v1::DesiredTransition {
    fn from(transition: DesiredTransition) -> Self {
        Self {
            migrate: transition.migrate,
            migrate_disable_placement: transition.migrate_disable_placement,
            reschedule: transition.reschedule,
            force_reschedule: transition.force_reschedule,
            no_shutdown_delay: transition.no_shutdown_delay,
        }
    }
}

impl From<&AllocatedResources> for v1::AllocatedResources {
    fn from(resources: &AllocatedResources) -> Self {
        let port = |port: &AllocatedPort| v1::AllocatedPort {
            label: port.label.clone(),
            value: u32::from(port.value),
            to: u32::from(port.to),
            host_ip: port.host_ip.clone(),
            ignore_collision: port.ignore_collision,
            task: port.task.clone(),
        };
        Self {
            cpu_mhz: resources.total.cpu_mhz,
            memory_mib: resources.total.memory_mib,
            disk_mib: resources.total.disk_mib,
            ports: resources.ports.iter().map(port).collect(),
            cores: resources.cores.iter().map(Into::into).collect(),
            devices: resources.devices.iter().map(Into::into).collect(),
            memory_oversubscribed: resources.memory_oversubscribed,
        }
    }
}

impl From<&AllocatedCores> for v1::AllocatedCores {
    fn from(cores: &AllocatedCores) -> Self {
        Self {
            task: cores.task.clone(),
            ids: cores.ids.iter().copied().map(u32::from).collect(),
        }
    }
}

impl From<v1::AllocatedDevice> for AllocatedDevice {
    fn from(wire: v1::AllocatedDevice) -> Self {
        Self {
            task: wire.task,
            vendor: wire.vendor,
            device_type: wire.r#type,
            name: wire.name,
            instance_ids: wire.instance_ids,
        }
    }
}

impl From<&AllocatedDevice> for v1::AllocatedDevice {
    fn from(device: &AllocatedDevice) -> Self {
        Self {
            task: device.task.clone(),
            vendor: device.vendor.clone(),
            r#type: device.device_type.clone(),
            name: device.name.clone(),
            instance_ids: device.instance_ids.clone(),
        }
    }
}

impl From<&Allocation> for v1::Allocation {
    /// Writes the desired state; the fields of the reported state stay empty.
    fn from(alloc: &Allocation) -> Self {
        let reschedule = |event: &RescheduleEvent| v1::RescheduleEvent {
            time_ns: event.time.0,
            previous_alloc_id: event.previous_alloc.to_string(),
            previous_node_id: event.previous_node.to_string(),
            delay: Some(duration_to_wire(event.delay)),
        };
        let transition = (alloc.transition != DesiredTransition::default())
            .then(|| v1::DesiredTransition::from(alloc.transition));
        Self {
            id: alloc.id.to_string(),
            eval_id: alloc.eval_id.to_string(),
            name: alloc.name(),
            node_id: alloc.node_id.to_string(),
            namespace: alloc.namespace.to_string(),
            job_id: alloc.job_id.to_string(),
            job_version: alloc.job_version,
            job_create_index: alloc.job_create_index,
            task_group: alloc.task_group.to_string(),
            name_index: alloc.name_index,
            resources: Some((&alloc.resources).into()),
            desired_status: alloc.desired_status.as_str().to_owned(),
            desired_description: alloc.desired_description.clone(),
            desired_transition: transition,
            deployment_id: id_or_empty(alloc.deployment_id),
            canary: alloc.canary,
            previous_alloc_id: id_or_empty(alloc.previous_alloc),
            next_alloc_id: id_or_empty(alloc.next_alloc),
            followup_eval_id: id_or_empty(alloc.followup_eval_id),
            preempted_by_alloc_id: id_or_empty(alloc.preempted_by),
            preempted_alloc_ids: alloc
                .preempted_allocs
                .iter()
                .map(ToString::to_string)
                .collect(),
            reschedules: alloc.reschedules.iter().map(reschedule).collect(),
            metric: alloc.metric.as_ref().map(|metric| (&*metric.read()).into()),
            create_time_ns: alloc.create_time.0,
            modify_time_ns: alloc.modify_time.0,
            unknown_since_ns: alloc.unknown_since.0,
            client_status_override: alloc
                .client_status_override
                .map_or_else(String::new, |status| status.as_str().to_owned()),
            ..Self::default()
        }
    }
}

/// Fields of an allocation that are set on read.
#[derive(Clone, Copy, Debug)]
pub struct AllocationRead<'a> {
    /// The effective status: the servers' override, if any, else the node's report.
    pub client_status: ClientStatus,
    /// Empty when the node is gone.
    pub node_name: &'a str,
    /// Empty when the job version is gone.
    pub job_type: &'a str,
    pub create_index: u64,
    /// Last change of the desired or the reported state.
    pub modify_index: u64,
    /// Last change of the desired state.
    pub alloc_modify_index: u64,
}

impl v1::Allocation {
    /// Writes the desired and the reported state of an allocation as readers get them.
    pub fn joined(
        desired: &Allocation,
        client: Option<&AllocClient>,
        read: AllocationRead<'_>,
    ) -> Self {
        let client = client.map(v1::AllocClient::from).unwrap_or_default();
        let desired = Self::from(desired);
        Self {
            client_status: read.client_status.as_str().to_owned(),
            client_description: client.description,
            task_states: client.task_states,
            deployment_health: client.deployment_health,
            network_status: client.network_status,
            modify_time_ns: desired.modify_time_ns.max(client.modify_time_ns),
            node_name: read.node_name.to_owned(),
            job_type: read.job_type.to_owned(),
            create_index: read.create_index,
            modify_index: read.modify_index,
            alloc_modify_index: read.alloc_modify_index,
            ..desired
        }
    }
}
