//! Tasks, compared.

use model::Task;
use model::job::{DeviceRequest, Lifecycle, LifecycleHook, LogConfig, TaskResources, VolumeMount};

use crate::compare::{Differences, diff_type};
use crate::launches::dispatch_payload;
use crate::policies::{affinity, constraint, restart};
use crate::shape::{Shape, config};
use crate::tree::TaskDiff;

pub(crate) fn diff(old: Option<&Task>, new: Option<&Task>, contextual: bool) -> TaskDiff {
    let (old_shape, new_shape) = (old.map(shape), new.map(shape));
    let own = Differences::of(old_shape.as_ref(), new_shape.as_ref(), contextual);
    TaskDiff {
        name: new.or(old).map_or(String::new(), |task| task.name.clone()),
        diff_type: diff_type(old, new, own.is_empty()),
        fields: own.fields,
        objects: own.objects,
        annotations: Vec::new(),
    }
}

fn shape(task: &Task) -> Shape {
    let Task {
        name,
        driver,
        user,
        config: driver_config,
        env,
        meta,
        constraints,
        affinities,
        resources: asked,
        restart: restart_policy,
        kill_timeout,
        kill_signal,
        leader,
        shutdown_delay,
        lifecycle: stage,
        logs,
        volume_mounts,
        dispatch_payload: payload,
    } = task;
    Shape::new("Task")
        .field("Name", name)
        .field("Driver", driver)
        .field("User", user)
        .span("KillTimeout", *kill_timeout)
        .field("KillSignal", kill_signal)
        .field("Leader", leader)
        .span("ShutdownDelay", *shutdown_delay)
        .map("Env", env)
        .map("Meta", meta)
        .object(config("Config", driver_config))
        .object(payload.as_ref().map(dispatch_payload))
        .object(Some(resources(asked)))
        .object(Some(restart(restart_policy)))
        .object(stage.map(lifecycle))
        .object(Some(log_config(*logs)))
        .set(constraints.iter().map(constraint))
        .set(affinities.iter().map(affinity))
        .set(volume_mounts.iter().map(volume_mount))
}

fn volume_mount(mount: &VolumeMount) -> Shape {
    let VolumeMount {
        volume,
        destination,
        read_only,
    } = mount;
    Shape::new("VolumeMount")
        .field("Volume", volume)
        .field("Destination", destination)
        .field("ReadOnly", read_only)
}

fn resources(resources: &TaskResources) -> Shape {
    let TaskResources {
        cpu_mhz,
        cores,
        memory_mib,
        memory_max,
        devices,
    } = resources;
    Shape::new("Resources")
        .field("CPU", cpu_mhz)
        .field("Cores", cores)
        .field("MemoryMB", memory_mib)
        .field("MemoryMaxMB", i64::from(*memory_max))
        .objects(devices.iter().map(device))
}

/// A device is the same one as long as it is asked for by the same name.
fn device(device: &DeviceRequest) -> Shape {
    let DeviceRequest {
        name,
        count,
        constraints,
        affinities,
    } = device;
    Shape::new("Device")
        .member(name)
        .field("Name", name)
        .field("Count", count)
        .set(constraints.iter().map(constraint))
        .set(affinities.iter().map(affinity))
}

fn lifecycle(lifecycle: Lifecycle) -> Shape {
    let Lifecycle { hook, sidecar } = lifecycle;
    let hook = match hook {
        LifecycleHook::Prestart => "prestart",
        LifecycleHook::Poststart => "poststart",
        LifecycleHook::Poststop => "poststop",
    };
    Shape::new("Lifecycle")
        .field("Hook", hook)
        .field("Sidecar", sidecar)
}

fn log_config(logs: LogConfig) -> Shape {
    let LogConfig {
        max_files,
        max_file_size_mib,
        disabled,
    } = logs;
    Shape::new("LogConfig")
        .field("MaxFiles", max_files)
        .field("MaxFileSizeMB", max_file_size_mib)
        .field("Disabled", disabled)
}
