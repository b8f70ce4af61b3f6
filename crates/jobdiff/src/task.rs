//! Tasks, compared.

use model::Task;
use model::job::{Lifecycle, LifecycleHook, LogConfig, TaskResources};

use crate::compare::{Differences, diff_type};
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
        .object(config(driver_config))
        .object(Some(resources(*asked)))
        .object(Some(restart(restart_policy)))
        .object(stage.map(lifecycle))
        .object(Some(log_config(*logs)))
        .set(constraints.iter().map(constraint))
        .set(affinities.iter().map(affinity))
}

fn resources(resources: TaskResources) -> Shape {
    let TaskResources {
        cpu_mhz,
        memory_mib,
        memory_max_mib,
    } = resources;
    Shape::new("Resources")
        .field("CPU", cpu_mhz)
        .field("MemoryMB", memory_mib)
        .field("MemoryMaxMB", memory_max_mib)
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
