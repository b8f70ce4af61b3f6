//! Stored jobs as users write them, with every default written out.

mod policy;
mod service;
mod template;

use std::collections::BTreeMap;
use std::time::Duration;

use model::{artifact, constraint, consul, job, launch, scaling, vault, workload_identity};

use crate::object::stored_object;
use crate::{
    Action, Affinity, Artifact, Cni, Constraint, Consul, CsiMountOptions, CsiPluginConfig,
    DeviceRequest, DispatchPayload, Dns, EphemeralDisk, Identity, Job, Lifecycle, LogConfig,
    Network, Parameterized, Periodic, Port, Resources, Scaling, Spread, SpreadTarget, Task,
    TaskGroup, TaskScaling, Ui, UiLink, Vault, VersionTag, VolumeMount, VolumeRequest, duration,
};

impl From<&job::Job> for Job {
    fn from(job: &job::Job) -> Self {
        Self {
            namespace: Some(job.namespace.clone()),
            id: Some(job.id.clone()),
            name: Some(job.name.clone()),
            region: Some(job.region.clone()),
            r#type: Some(job.job_type.as_str().to_owned()),
            priority: Some(i64::from(job.priority)),
            all_at_once: Some(job.all_at_once),
            datacenters: job.datacenters.clone(),
            node_pool: Some(job.node_pool.clone()),
            constraints: list(&job.constraints),
            affinities: list(&job.affinities),
            spreads: list(&job.spreads),
            task_groups: list(&job.task_groups),
            update: job.update.as_ref().map(Into::into),
            // Groups carry their own by now.
            reschedule: None,
            migrate: None,
            meta: job.meta.clone(),
            ui: job.ui.as_ref().map(Into::into),
            periodic: job.periodic.as_ref().map(Into::into),
            parameterized: job.parameterized.as_ref().map(Into::into),
            parent_id: some(&job.parent_id),
            dispatched: Some(job.dispatched),
            payload: (!job.payload.is_empty()).then(|| job.payload.0.clone()),
            dispatch_idempotency_token: some(&job.dispatch_token),
            stop: Some(job.stop),
            version: Some(job.version),
            submit_time_ns: Some(job.submit_time.0),
            ..Self::default()
        }
    }
}

impl From<&job::Ui> for Ui {
    fn from(ui: &job::Ui) -> Self {
        Self {
            description: Some(ui.description.clone()),
            links: list(&ui.links),
        }
    }
}

impl From<&job::UiLink> for UiLink {
    fn from(link: &job::UiLink) -> Self {
        Self {
            label: Some(link.label.clone()),
            url: Some(link.url.clone()),
        }
    }
}

/// An empty text is absent.
fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn list<'a, T: 'a, U: From<&'a T>>(items: &'a [T]) -> Vec<U> {
    items.iter().map(U::from).collect()
}

/// A duration too long to be counted in nanoseconds is written as the longest.
fn to_message(value: Duration) -> Option<prost_types::Duration> {
    Some(duration(
        i64::try_from(value.as_nanos()).unwrap_or(i64::MAX),
    ))
}

fn volumes(volumes: &BTreeMap<String, job::VolumeRequest>) -> BTreeMap<String, VolumeRequest> {
    let volumes = volumes.iter();
    let named = volumes.map(|(name, volume)| {
        let volume = VolumeRequest {
            name: Some(name.clone()),
            r#type: Some(volume.volume_type.as_str().to_owned()),
            source: Some(volume.source.clone()),
            read_only: Some(volume.read_only),
            sticky: Some(volume.sticky),
            per_alloc: Some(volume.per_alloc),
            access_mode: volume.access_mode.map(|mode| mode.as_str().to_owned()),
            attachment_mode: volume.attachment_mode.map(|mode| mode.as_str().to_owned()),
            mount_options: mount_options(&volume.mount_options),
        };
        (name.clone(), volume)
    });
    named.collect()
}

fn mount_options(options: &model::MountOptions) -> Option<CsiMountOptions> {
    (!options.is_empty()).then(|| CsiMountOptions {
        fs_type: Some(options.fs_type.clone()),
        mount_flags: options.mount_flags.clone(),
    })
}

impl From<&model::CsiPluginTask> for CsiPluginConfig {
    fn from(plugin: &model::CsiPluginTask) -> Self {
        Self {
            id: Some(plugin.id.clone()),
            r#type: Some(plugin.plugin_type.as_str().to_owned()),
            mount_dir: Some(plugin.mount_dir.clone()),
            stage_publish_base_dir: Some(plugin.stage_publish_base_dir.clone()),
            health_timeout: to_message(plugin.health_timeout),
        }
    }
}

impl From<&job::TaskAction> for Action {
    fn from(action: &job::TaskAction) -> Self {
        Self {
            name: Some(action.name.clone()),
            command: Some(action.command.clone()),
            args: action.args.clone(),
        }
    }
}

impl From<&job::VolumeMount> for VolumeMount {
    fn from(mount: &job::VolumeMount) -> Self {
        Self {
            volume: Some(mount.volume.clone()),
            destination: Some(mount.destination.clone()),
            read_only: Some(mount.read_only),
            propagation_mode: Some("private".to_owned()),
        }
    }
}

impl From<&job::TaskGroup> for TaskGroup {
    fn from(group: &job::TaskGroup) -> Self {
        Self {
            name: Some(group.name.clone()),
            count: Some(i64::from(group.count)),
            tasks: list(&group.tasks),
            constraints: list(&group.constraints),
            affinities: list(&group.affinities),
            spreads: list(&group.spreads),
            networks: list(&group.networks),
            restart: Some((&group.restart).into()),
            reschedule: group.reschedule.as_ref().map(Into::into),
            update: group.update.as_ref().map(Into::into),
            migrate: group.migrate.as_ref().map(Into::into),
            disconnect: group.disconnect.as_ref().map(Into::into),
            ephemeral_disk: Some((&group.ephemeral_disk).into()),
            volumes: volumes(&group.volumes),
            meta: group.meta.clone(),
            shutdown_delay: to_message(group.shutdown_delay),
            max_run_duration: group.max_run_duration.and_then(to_message),
            scaling: group.scaling.as_ref().map(Into::into),
            services: list(&group.services),
            consul: group.consul.as_ref().map(Into::into),
        }
    }
}

impl From<&job::Task> for Task {
    fn from(task: &job::Task) -> Self {
        Self {
            name: Some(task.name.clone()),
            driver: Some(task.driver.clone()),
            user: Some(task.user.clone()),
            config: Some(stored_object(&task.config)),
            env: task.env.clone(),
            meta: task.meta.clone(),
            constraints: list(&task.constraints),
            affinities: list(&task.affinities),
            resources: Some((&task.resources).into()),
            restart: Some((&task.restart).into()),
            kill_timeout: to_message(task.kill_timeout),
            kill_signal: Some(task.kill_signal.clone()),
            leader: Some(task.leader),
            shutdown_delay: to_message(task.shutdown_delay),
            lifecycle: task.lifecycle.as_ref().map(Into::into),
            logs: Some((&task.logs).into()),
            volume_mounts: list(&task.volume_mounts),
            dispatch_payload: task.dispatch_payload.as_ref().map(Into::into),
            identity: Some(task.default_identity().as_ref().into()),
            templates: list(&task.templates),
            services: list(&task.services),
            artifacts: list(&task.artifacts),
            identities: identities(task),
            vault: task.vault.as_ref().map(Into::into),
            consul: task.consul.as_ref().map(Into::into),
            scaling_policies: list(&task.scaling_policies),
            csi_plugin: task.csi_plugin.as_ref().map(Into::into),
            actions: list(&task.actions),
        }
    }
}

impl From<&job::TaskResources> for Resources {
    fn from(resources: &job::TaskResources) -> Self {
        Self {
            cpu_mhz: Some(i64::from(resources.cpu_mhz)),
            memory_mib: Some(i64::from(resources.memory_mib)),
            memory_max_mib: Some(resources.memory_max.into()),
            cores: Some(i64::from(resources.cores)),
            devices: list(&resources.devices),
            networks: list(&resources.networks),
            disk_mib: Some(0),
        }
    }
}

impl From<&job::DeviceRequest> for DeviceRequest {
    fn from(request: &job::DeviceRequest) -> Self {
        Self {
            name: Some(request.name.clone()),
            count: Some(i64::try_from(request.count).unwrap_or(i64::MAX)),
            constraints: list(&request.constraints),
            affinities: list(&request.affinities),
        }
    }
}

impl From<&job::Lifecycle> for Lifecycle {
    fn from(lifecycle: &job::Lifecycle) -> Self {
        let hook = match lifecycle.hook {
            job::LifecycleHook::Prestart => "prestart",
            job::LifecycleHook::Poststart => "poststart",
            job::LifecycleHook::Poststop => "poststop",
        };
        Self {
            hook: Some(hook.to_owned()),
            sidecar: Some(lifecycle.sidecar),
            wait_for: lifecycle.wait_for.map(|wait_for| match wait_for {
                job::WaitFor::Healthy => "healthy".to_owned(),
            }),
        }
    }
}

impl From<&job::LogConfig> for LogConfig {
    fn from(logs: &job::LogConfig) -> Self {
        Self {
            max_files: Some(i64::from(logs.max_files)),
            max_file_size_mib: Some(i64::from(logs.max_file_size_mib)),
            disabled: Some(logs.disabled),
        }
    }
}

impl From<&job::Network> for Network {
    fn from(network: &job::Network) -> Self {
        let (fixed, dynamic): (Vec<_>, Vec<_>) = network
            .ports
            .iter()
            .partition(|port| port.static_port.is_some());
        Self {
            mode: Some(network.mode.clone()),
            reserved_ports: fixed.into_iter().map(Port::from).collect(),
            dynamic_ports: dynamic.into_iter().map(Port::from).collect(),
            mbits: network.mbits.map(i64::from),
            hostname: some(&network.hostname),
            dns: network.dns.as_ref().map(Into::into),
            cni: (!network.cni_args.is_empty()).then(|| Cni {
                args: network.cni_args.clone(),
            }),
        }
    }
}

impl From<&job::Port> for Port {
    fn from(port: &job::Port) -> Self {
        Self {
            label: Some(port.label.clone()),
            value: port.static_port.map(i64::from),
            to: port.to.map(i64::from),
            host_network: Some(port.host_network.clone()),
            ignore_collision: Some(port.ignore_collision),
        }
    }
}

impl From<&job::EphemeralDisk> for EphemeralDisk {
    fn from(disk: &job::EphemeralDisk) -> Self {
        Self {
            size_mib: Some(i64::try_from(disk.size_mib).unwrap_or(i64::MAX)),
            sticky: Some(disk.sticky),
            migrate: Some(disk.migrate),
        }
    }
}

impl From<&constraint::Constraint> for Constraint {
    fn from(constraint: &constraint::Constraint) -> Self {
        Self {
            left: Some(constraint.left.clone()),
            operator: Some(constraint.operator.as_str().to_owned()),
            right: Some(constraint.right.clone()),
        }
    }
}

impl From<&constraint::Affinity> for Affinity {
    fn from(affinity: &constraint::Affinity) -> Self {
        Self {
            left: Some(affinity.left.clone()),
            operator: Some(affinity.operator.as_str().to_owned()),
            right: Some(affinity.right.clone()),
            weight: Some(i64::from(affinity.weight)),
        }
    }
}

impl From<&constraint::Spread> for Spread {
    fn from(spread: &constraint::Spread) -> Self {
        Self {
            attribute: Some(spread.attribute.clone()),
            weight: Some(i64::from(spread.weight)),
            targets: list(&spread.targets),
        }
    }
}

impl From<&constraint::SpreadTarget> for SpreadTarget {
    fn from(target: &constraint::SpreadTarget) -> Self {
        Self {
            value: Some(target.value.clone()),
            percent: Some(i64::from(target.percent)),
        }
    }
}

impl From<&launch::Periodic> for Periodic {
    fn from(periodic: &launch::Periodic) -> Self {
        let (cron, crons) = match periodic.crons.as_slice() {
            [one] if !periodic.is_list => (Some(one.clone()), Vec::new()),
            several => (None, several.to_vec()),
        };
        Self {
            enabled: Some(periodic.enabled),
            cron,
            crons,
            spec_type: Some("cron".to_owned()),
            prohibit_overlap: Some(periodic.prohibit_overlap),
            time_zone: Some(periodic.time_zone.clone()),
        }
    }
}

impl From<&launch::Parameterized> for Parameterized {
    fn from(parameterized: &launch::Parameterized) -> Self {
        Self {
            payload: Some(parameterized.payload.as_str().to_owned()),
            meta_required: parameterized.meta_required.clone(),
            meta_optional: parameterized.meta_optional.clone(),
        }
    }
}

impl From<&launch::DispatchPayload> for DispatchPayload {
    fn from(payload: &launch::DispatchPayload) -> Self {
        Self {
            file: Some(payload.file.clone()),
        }
    }
}

impl From<&scaling::Scaling> for Scaling {
    fn from(scaling: &scaling::Scaling) -> Self {
        Self {
            enabled: Some(scaling.enabled),
            min: Some(i64::from(scaling.min)),
            max: Some(i64::from(scaling.max)),
            r#type: Some(scaling::Scaling::HORIZONTAL.to_owned()),
            policy: Some(stored_object(&scaling.policy)),
            ..Self::default()
        }
    }
}

/// Returns the identities other than the default one, which has a field of its own.
fn identities(task: &job::Task) -> Vec<Identity> {
    let named = task.identities.iter();
    let named = named.filter(|identity| identity.name != Identity::DEFAULT_NAME);
    named.map(Identity::from).collect()
}

impl From<&workload_identity::WorkloadIdentity> for Identity {
    fn from(identity: &workload_identity::WorkloadIdentity) -> Self {
        let mode = identity
            .change_mode
            .map(model::template::ChangeMode::as_str);
        Self {
            name: Some(identity.name.clone()),
            audience: identity.audience.clone(),
            env: Some(identity.env),
            file: Some(identity.file),
            ttl: to_message(identity.ttl),
            change_mode: Some(mode.unwrap_or_default().to_owned()),
            change_signal: Some(identity.change_signal.clone()),
            filepath: Some(identity.filepath.clone()),
            service_name: Some(identity.service_name.clone()),
        }
    }
}

impl Identity {
    pub const DEFAULT_NAME: &str = workload_identity::WorkloadIdentity::DEFAULT_NAME;
    pub const DEFAULT_AUDIENCE: &str = workload_identity::WorkloadIdentity::DEFAULT_AUDIENCE;
}

impl From<&job::Dns> for Dns {
    fn from(dns: &job::Dns) -> Self {
        Self {
            servers: dns.servers.clone(),
            searches: dns.searches.clone(),
            options: dns.options.clone(),
        }
    }
}

impl From<&artifact::Artifact> for Artifact {
    fn from(artifact: &artifact::Artifact) -> Self {
        Self {
            source: Some(artifact.source.clone()),
            options: artifact.options.clone(),
            headers: artifact.headers.clone(),
            mode: Some(artifact.mode.as_str().to_owned()),
            insecure: Some(artifact.insecure),
            destination: Some(artifact.destination.clone()),
            chown: Some(artifact.chown),
        }
    }
}

impl From<&vault::Vault> for Vault {
    fn from(vault: &vault::Vault) -> Self {
        Self {
            policies: vault.policies.clone(),
            role: Some(vault.role.clone()),
            namespace: Some(vault.namespace.clone()),
            cluster: Some(vault.cluster.clone()),
            env: Some(vault.env),
            disable_file: Some(vault.disable_file),
            change_mode: Some(vault.change_mode.as_str().to_owned()),
            change_signal: Some(vault.change_signal.clone()),
            allow_token_expiration: Some(vault.allow_token_expiration),
        }
    }
}

impl From<&consul::Consul> for Consul {
    fn from(consul: &consul::Consul) -> Self {
        Self {
            cluster: Some(consul.cluster.clone()),
            namespace: Some(consul.namespace.clone()),
            partition: Some(consul.partition.clone()),
        }
    }
}

impl From<&scaling::TaskScaling> for TaskScaling {
    fn from(scaling: &scaling::TaskScaling) -> Self {
        Self {
            enabled: Some(scaling.enabled),
            min: scaling.min.map(i64::from),
            max: Some(i64::from(scaling.max)),
            r#type: Some(scaling.resource.as_str().to_owned()),
            policy: Some(stored_object(&scaling.policy)),
            ..Self::default()
        }
    }
}

impl From<&model::VersionTag> for VersionTag {
    fn from(tag: &model::VersionTag) -> Self {
        Self {
            name: tag.name.clone(),
            description: tag.description.clone(),
            tagged_time_ns: tag.tagged_time.0,
        }
    }
}
