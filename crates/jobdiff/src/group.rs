//! Task groups, compared.

use std::collections::BTreeMap;

use model::job::{EphemeralDisk, Network, Port, VolumeRequest};
use model::{Task, TaskGroup};

use crate::compare::{Differences, diff_type, paired};
use crate::launches::scaling;
use crate::policies::{
    affinity, constraint, disconnect, migrate, reschedule, restart, spread, update,
};
use crate::shape::Shape;
use crate::task;
use crate::tree::{DiffType, TaskDiff, TaskGroupDiff};

pub(crate) fn diff(
    old: Option<&TaskGroup>,
    new: Option<&TaskGroup>,
    contextual: bool,
) -> TaskGroupDiff {
    let (old_shape, new_shape) = (old.map(shape), new.map(shape));
    let own = Differences::of(old_shape.as_ref(), new_shape.as_ref(), contextual);
    let pairs = paired(tasks_of(old), tasks_of(new), |task| task.name.as_str());
    let mut tasks: Vec<TaskDiff> = pairs
        .into_values()
        .map(|(old, new)| task::diff(old, new, contextual))
        .collect();
    let is_same = |task: &TaskDiff| task.diff_type == DiffType::None;
    let all_same = own.is_empty() && tasks.iter().all(is_same);
    if !contextual {
        tasks.retain(|task| !is_same(task));
    }
    TaskGroupDiff {
        name: new
            .or(old)
            .map_or(String::new(), |group| group.name.clone()),
        diff_type: diff_type(old, new, all_same),
        fields: own.fields,
        objects: own.objects,
        tasks,
        updates: BTreeMap::new(),
    }
}

fn tasks_of(group: Option<&TaskGroup>) -> &[Task] {
    group.map_or(&[], |group| &group.tasks)
}

fn shape(group: &TaskGroup) -> Shape {
    let TaskGroup {
        name,
        count,
        // They have a place of their own in the tree.
        tasks: _,
        constraints,
        affinities,
        spreads,
        networks,
        restart: restart_policy,
        reschedule: reschedule_policy,
        update: update_strategy,
        migrate: migrate_strategy,
        disconnect: disconnect_strategy,
        ephemeral_disk: disk,
        volumes,
        meta,
        shutdown_delay,
        max_run_duration,
        scaling: limits,
    } = group;
    let max_run_duration = max_run_duration.map(|span| span.as_nanos());
    let numbered = networks.iter().enumerate();
    Shape::new("TaskGroup")
        .field("Name", name)
        .field("Count", count)
        .span("ShutdownDelay", *shutdown_delay)
        .optional("MaxRunDuration", max_run_duration)
        .map("Meta", meta)
        .object(Some(restart(restart_policy)))
        .object(reschedule_policy.as_ref().map(reschedule))
        .object(update_strategy.as_ref().map(update))
        .object(migrate_strategy.as_ref().map(migrate))
        .object(disconnect_strategy.as_ref().map(disconnect))
        .object(Some(ephemeral_disk(disk)))
        .object(limits.as_ref().map(scaling))
        .objects(volumes.iter().map(|(name, one)| volume(name, one)))
        .objects(numbered.map(|(position, one)| network(one).member(position)))
        .set(constraints.iter().map(constraint))
        .set(affinities.iter().map(affinity))
        .set(spreads.iter().map(spread))
}

fn volume(name: &str, volume: &VolumeRequest) -> Shape {
    let VolumeRequest {
        volume_type,
        source,
        read_only,
        sticky,
        per_alloc,
        access_mode,
        attachment_mode,
    } = volume;
    Shape::new("Volume")
        .member(name)
        .field("Name", name)
        .field("Type", volume_type.as_str())
        .field("Source", source)
        .field("ReadOnly", read_only)
        .field("Sticky", sticky)
        .field("PerAlloc", per_alloc)
        .optional("AccessMode", access_mode.map(|mode| mode.as_str()))
        .optional("AttachmentMode", attachment_mode.map(|mode| mode.as_str()))
}

fn network(network: &Network) -> Shape {
    let Network { mode, ports } = network;
    Shape::new("Network")
        .field("Mode", mode)
        .objects(ports.iter().map(port))
}

/// A port is the same port as long as it has its label and is chosen by the same party.
fn port(port: &Port) -> Shape {
    let Port {
        label,
        static_port,
        to,
        host_network,
        ignore_collision,
    } = port;
    let name = match static_port {
        Some(_) => "Static Port",
        None => "Dynamic Port",
    };
    Shape::new(name)
        .member(label)
        .field("Label", label)
        .optional("Value", *static_port)
        .field("To", to.unwrap_or(0))
        .field("HostNetwork", host_network)
        .field("IgnoreCollision", ignore_collision)
}

fn ephemeral_disk(disk: &EphemeralDisk) -> Shape {
    let EphemeralDisk {
        size_mib,
        sticky,
        migrate,
    } = disk;
    Shape::new("EphemeralDisk")
        .field("SizeMB", size_mib)
        .field("Sticky", sticky)
        .field("Migrate", migrate)
}
