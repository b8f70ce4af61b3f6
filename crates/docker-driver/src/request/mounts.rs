//! Directories and volumes of a container.

use std::path::{Path, PathBuf};

use bollard::models::{
    Mount, MountBindOptions, MountBindOptionsPropagationEnum as Propagation, MountTmpfsOptions,
    MountType, MountVolumeOptions, MountVolumeOptionsDriverConfig,
};
use task_drivers::dirs::clean;
use task_drivers::{TaskConfig, TaskDirs};

use super::parts::{map, text};
use crate::options::{self, Options};
use crate::settings::{EngineKind, Settings};

/// The setting that allows paths of the host.
const SETTING: &str = "volumes";
/// Modes of a volume by which a container of podman reaches its source and nothing else. `O` is not one of
/// them: its `upperdir` and `workdir` are paths of the host. Source: the public documentation of podman-run.
const PODMAN_MODES: [&str; 21] = [
    "ro", "rw", "z", "Z", "U", "exec", "noexec", "dev", "nodev", "suid", "nosuid", "bind", "rbind",
    "private", "rprivate", "shared", "rshared", "slave", "rslave", "copy", "nocopy",
];

/// Returns `source:target[:mode]`: the allocation's directories, then the option `volumes`.
pub(super) fn binds(
    task: &TaskConfig,
    options: &Options,
    settings: &Settings,
) -> Result<Vec<String>, String> {
    let dirs = dirs(task)?;
    let bind = |source: &Path, target: &str| format!("{}:{target}", source.display());
    let mut binds = vec![
        bind(&dirs.shared, "/alloc"),
        bind(&dirs.local, "/local"),
        bind(&dirs.secrets, "/secrets"),
        bind(&dirs.logs, "/alloc/logs:ro"),
    ];
    for volume in &options.volumes {
        let Some((source, target)) = volume.split_once(':') else {
            return Err(format!(
                "option volumes: {volume:?} has no target: write source:target, as in \
                 local/data:/data"
            ));
        };
        if !options.volume_driver.is_empty() {
            allow_volumes(settings, "option volume_driver")?;
            binds.push(volume.clone());
            continue;
        }
        let source = host_path(dirs, source, settings, "option volumes")?;
        check_modes(target, settings)?;
        binds.push(bind(&source, target));
    }
    Ok(binds)
}

/// Refuses modes in `target[:modes]` by which podman reaches paths of the host. Docker has none.
fn check_modes(target: &str, settings: &Settings) -> Result<(), String> {
    if settings.config.volumes || settings.engine_kind == EngineKind::Docker {
        return Ok(());
    }
    let modes = target.split_once(':').map_or("", |(_, modes)| modes);
    let mut modes = modes.split(',').filter(|mode| !mode.is_empty());
    match modes.find(|mode| !PODMAN_MODES.contains(mode)) {
        Some(mode) => allow_volumes(settings, &format!("option volumes: {mode:?}")),
        None => Ok(()),
    }
}

/// Returns the volumes of the group, then the options `mounts` and `mount`.
pub(super) fn mounts(
    task: &TaskConfig,
    options: &Options,
    settings: &Settings,
) -> Result<Vec<Mount>, String> {
    let volumes = task.mounts.iter().map(|mount| Mount {
        typ: Some(MountType::BIND),
        source: Some(mount.source.clone()),
        target: Some(mount.destination.clone()),
        read_only: mount.read_only.then_some(true),
        bind_options: mount.is_shared.then(|| MountBindOptions {
            propagation: Some(Propagation::RSHARED),
            ..MountBindOptions::default()
        }),
        ..Mount::default()
    });
    let mut mounts: Vec<Mount> = volumes.collect();
    for wanted in options.mounts.iter().chain(&options.mount) {
        mounts.push(mount(task, wanted, settings)?);
    }
    Ok(mounts)
}

fn mount(task: &TaskConfig, wanted: &options::Mount, settings: &Settings) -> Result<Mount, String> {
    if wanted.target.is_empty() {
        return Err("option mount: target is missing: write target = \"/data\"".to_owned());
    }
    let mut mount = Mount {
        source: text(&wanted.source),
        target: Some(wanted.target.clone()),
        read_only: wanted.readonly.then_some(true),
        ..Mount::default()
    };
    match wanted.kind.as_str() {
        "bind" => {
            let source = host_path(dirs(task)?, &wanted.source, settings, "option mount")?;
            mount.typ = Some(MountType::BIND);
            mount.source = Some(source.display().to_string());
            mount.bind_options = bind_options(wanted.bind_options.as_ref())?;
        }
        "volume" | "" => {
            let volume = wanted.volume_options.as_ref();
            if volume.is_some_and(|volume| volume.driver_config.is_some()) {
                allow_volumes(settings, "option mount: driver_config")?;
            }
            mount.typ = Some(MountType::VOLUME);
            mount.volume_options = volume.map(volume_options);
        }
        "tmpfs" => {
            mount.typ = Some(MountType::TMPFS);
            mount.tmpfs_options = wanted
                .tmpfs_options
                .as_ref()
                .map(|tmpfs| MountTmpfsOptions {
                    size_bytes: (tmpfs.size != 0).then_some(tmpfs.size),
                    mode: (tmpfs.mode != 0).then_some(tmpfs.mode),
                    ..MountTmpfsOptions::default()
                });
        }
        other => {
            return Err(format!(
                "option mount: unknown type {other:?}: use bind, volume or tmpfs"
            ));
        }
    }
    Ok(mount)
}

fn bind_options(
    options: Option<&options::BindOptions>,
) -> Result<Option<MountBindOptions>, String> {
    let propagation = options.map_or("", |options| options.propagation.as_str());
    let propagation = match propagation {
        "" => return Ok(None),
        "private" => Propagation::PRIVATE,
        "rprivate" => Propagation::RPRIVATE,
        "shared" => Propagation::SHARED,
        "rshared" => Propagation::RSHARED,
        "slave" => Propagation::SLAVE,
        "rslave" => Propagation::RSLAVE,
        other => {
            return Err(format!(
                "option mount: unknown propagation {other:?}: use private, rprivate, shared, \
                 rshared, slave or rslave"
            ));
        }
    };
    Ok(Some(MountBindOptions {
        propagation: Some(propagation),
        ..MountBindOptions::default()
    }))
}

fn volume_options(options: &options::VolumeOptions) -> MountVolumeOptions {
    let driver = options.driver_config.as_ref();
    MountVolumeOptions {
        no_copy: options.no_copy.then_some(true),
        labels: map(&options.labels),
        driver_config: driver.map(|driver| MountVolumeOptionsDriverConfig {
            name: text(&driver.name),
            options: map(&driver.options),
        }),
        ..MountVolumeOptions::default()
    }
}

/// Returns the sources on the host that must lie beneath the allocation's directory: all relative
/// ones. A task can replace a directory by a link, so the caller resolves them.
pub(crate) fn host_paths(task: &TaskConfig, options: &Options) -> Vec<PathBuf> {
    let Some(dirs) = &task.dirs else {
        return Vec::new();
    };
    let volumes = options.volumes.iter();
    let volumes = volumes
        .filter(|_| options.volume_driver.is_empty())
        .filter_map(|volume| volume.split_once(':').map(|(source, _)| source));
    let mounts = options.mounts.iter().chain(&options.mount);
    let mounts = mounts.filter(|mount| mount.kind == "bind");
    volumes
        .chain(mounts.map(|mount| mount.source.as_str()))
        .filter(|source| !source.starts_with('/'))
        .map(|source| clean(&dirs.root.join(source)))
        .collect()
}

/// Returns the path on the host. A relative one lies in the task's directory.
fn host_path(
    dirs: &TaskDirs,
    source: &str,
    settings: &Settings,
    option: &str,
) -> Result<PathBuf, String> {
    if source.is_empty() {
        return Err(format!("{option}: the source is empty: name a directory"));
    }
    let path = clean(&dirs.root.join(source));
    let alloc_dir = dirs.root.parent().unwrap_or(&dirs.root);
    if !settings.config.volumes && !path.starts_with(alloc_dir) {
        return Err(format!(
            "{option}: {source:?} is outside of the allocation's directory: use a path such as \
             local/data, or set {} = true on the node",
            settings.setting(SETTING)
        ));
    }
    Ok(path)
}

pub(super) fn allow_volumes(settings: &Settings, option: &str) -> Result<(), String> {
    if settings.config.volumes {
        return Ok(());
    }
    Err(format!(
        "{option} can reach any path of the host: set {} = true on the node, or leave it out",
        settings.setting(SETTING)
    ))
}

fn dirs(task: &TaskConfig) -> Result<&TaskDirs, String> {
    let dirs = task.dirs.as_ref();
    dirs.ok_or_else(|| "containers need a node with a disk".to_owned())
}
