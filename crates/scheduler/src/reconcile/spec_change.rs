//! Changes of a job's specification: whether a running allocation can be updated in place.

use model::job::TaskGroup;
use model::{Job, JobKey, needs_new_tasks};
use rustc_hash::FxHashMap;
use state::{AllocView, Snapshot};

/// The update that an allocation of another version needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpecChange {
    /// It has the job's current version.
    None,
    /// Its tasks keep running.
    InPlace,
    /// Its tasks have to be restarted.
    Destructive,
}

/// Compares the versions of allocations with the current job, with a cache.
#[derive(Debug)]
pub(crate) struct Comparison<'a> {
    snapshot: &'a Snapshot,
    key: &'a JobKey,
    job: &'a model::Indexed<Job>,
    group: &'a TaskGroup,
    /// Job version → its tasks have to be restarted.
    by_version: FxHashMap<u64, bool>,
}

impl<'a> Comparison<'a> {
    pub(crate) fn new(
        snapshot: &'a Snapshot,
        key: &'a JobKey,
        job: &'a model::Indexed<Job>,
        group: &'a TaskGroup,
    ) -> Self {
        Self {
            snapshot,
            key,
            job,
            group,
            by_version: FxHashMap::default(),
        }
    }

    pub(crate) fn of(&mut self, view: &AllocView) -> SpecChange {
        if view.alloc.job_create_index != self.job.create_index {
            // Its job was purged, so there is nothing to compare with.
            return SpecChange::Destructive;
        }
        let version = view.alloc.job_version;
        if version == self.job.value.version {
            return SpecChange::None;
        }
        let forced = self.job.value.forced_version;
        if view.is_client_terminal() && forced.is_some_and(|forced| version < forced) {
            return SpecChange::Destructive;
        }
        let (snapshot, key) = (self.snapshot, self.key);
        let (job, group) = (&self.job.value, self.group);
        let destructive = *self.by_version.entry(version).or_insert_with(|| {
            let old = snapshot.job_version(key, version);
            // A version that is gone cannot be compared.
            old.is_none_or(|old| needs_new_tasks(&old.value, job, group))
        });
        if destructive {
            SpecChange::Destructive
        } else {
            SpecChange::InPlace
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::consul::Consul;
    use model::job::{
        Lifecycle, LifecycleHook, Network, Port, VolumeMount, VolumeRequest, VolumeType,
    };
    use model::{Affinity, Constraint, Operator, Spread};
    use test_kit::builders;

    use super::*;

    /// The name of a change, and the change.
    type Edit = (&'static str, fn(&mut Job));

    fn differs(edit: impl FnOnce(&mut Job)) -> bool {
        let old = builders::service("web", 1);
        let mut new = old.clone();
        edit(&mut new);
        needs_new_tasks(&old, &new, &new.task_groups[0])
    }

    fn in_consul(namespace: &str) -> Consul {
        Consul {
            cluster: Consul::DEFAULT_CLUSTER.into(),
            namespace: namespace.into(),
            partition: String::new(),
        }
    }

    #[test]
    fn changed_start_parameters_of_tasks_need_new_allocations() {
        let edits: [Edit; 20] = [
            ("driver", |job| {
                job.task_groups[0].tasks[0].driver = "raw_exec".into()
            }),
            ("user", |job| {
                job.task_groups[0].tasks[0].user = "nobody".into()
            }),
            ("config", |job| {
                job.task_groups[0].tasks[0]
                    .config
                    .insert("command".into(), "sleep".into());
            }),
            ("env", |job| {
                drop(
                    job.task_groups[0].tasks[0]
                        .env
                        .insert("A".into(), "1".into()),
                )
            }),
            ("job meta", |job| {
                drop(job.meta.insert("a".into(), "1".into()))
            }),
            ("group meta", |job| {
                drop(job.task_groups[0].meta.insert("a".into(), "1".into()))
            }),
            ("task meta", |job| {
                job.task_groups[0].tasks[0]
                    .meta
                    .insert("a".into(), "1".into());
            }),
            ("cpu", |job| {
                job.task_groups[0].tasks[0].resources.cpu_mhz += 1
            }),
            ("memory", |job| {
                job.task_groups[0].tasks[0].resources.memory_mib += 1
            }),
            ("memory_max", |job| {
                job.task_groups[0].tasks[0].resources.memory_max = model::MemoryMax::Mib(900)
            }),
            ("logs.disabled", |job| {
                job.task_groups[0].tasks[0].logs.disabled = true
            }),
            ("lifecycle", |job| {
                job.task_groups[0].tasks[0].lifecycle = Some(Lifecycle {
                    hook: LifecycleHook::Poststart,
                    sidecar: true,
                    wait_for: None,
                });
            }),
            ("ephemeral disk", |job| {
                job.task_groups[0].ephemeral_disk.size_mib += 1
            }),
            ("network", |job| {
                job.task_groups[0].networks.push(Network {
                    mode: "host".into(),
                    ports: vec![Port {
                        label: "http".into(),
                        static_port: None,
                        to: None,
                        host_network: "default".into(),
                        ignore_collision: false,
                    }],
                    ..Network::default()
                });
            }),
            ("volumes", |job| {
                let volume = VolumeRequest {
                    volume_type: VolumeType::Host,
                    source: "data".into(),
                    read_only: true,
                    sticky: false,
                    per_alloc: false,
                    access_mode: None,
                    attachment_mode: None,
                    mount_options: Default::default(),
                };
                job.task_groups[0].volumes.insert("data".into(), volume);
            }),
            ("volume mounts", |job| {
                let mount = VolumeMount {
                    volume: "data".into(),
                    destination: "/data".into(),
                    read_only: true,
                };
                job.task_groups[0].tasks[0].volume_mounts.push(mount);
            }),
            ("consul of the group", |job| {
                job.task_groups[0].consul = Some(in_consul("a"))
            }),
            ("consul of the task", |job| {
                job.task_groups[0].tasks[0].consul = Some(in_consul("a"))
            }),
            ("a task more", |job| {
                job.task_groups[0].tasks.push(builders::task("sidecar"))
            }),
            ("a task renamed", |job| {
                job.task_groups[0].tasks[0].name = "other".into()
            }),
        ];
        for (what, edit) in edits {
            assert!(differs(edit), "{what}");
        }
    }

    #[test]
    fn changes_of_placement_and_count_need_no_new_allocations() {
        let edits: [Edit; 13] = [
            ("count", |job| job.task_groups[0].count = 7),
            ("priority", |job| job.priority = 80),
            ("constraint", |job| {
                job.constraints.push(Constraint::default())
            }),
            ("affinity", |job| {
                job.affinities.push(Affinity {
                    left: "${node.class}".into(),
                    operator: Operator::Equal,
                    right: "big".into(),
                    weight: 50,
                });
            }),
            ("spread", |job| {
                job.spreads.push(Spread {
                    attribute: "${node.datacenter}".into(),
                    weight: 50,
                    targets: Vec::new(),
                });
            }),
            ("update", |job| {
                job.task_groups[0].update = Some(builders::rolling_update(3))
            }),
            ("reschedule", |job| job.task_groups[0].reschedule = None),
            ("restart", |job| job.task_groups[0].restart.attempts = 9),
            ("consul without a namespace, of the group", |job| {
                job.task_groups[0].consul = Some(in_consul(""))
            }),
            ("consul without a namespace, of the task", |job| {
                job.task_groups[0].tasks[0].consul = Some(in_consul(""))
            }),
            ("kill_timeout", |job| {
                job.task_groups[0].tasks[0].kill_timeout = Duration::from_secs(60);
            }),
            ("kill_signal", |job| {
                job.task_groups[0].tasks[0].kill_signal = "SIGINT".into()
            }),
            ("log size", |job| {
                job.task_groups[0].tasks[0].logs.max_files = 1
            }),
        ];
        for (what, edit) in edits {
            assert!(!differs(edit), "{what}");
        }
    }

    #[test]
    fn meta_counts_as_the_task_sees_it() {
        let mut old = builders::service("web", 1);
        old.task_groups[0].tasks[0]
            .meta
            .insert("a".into(), "task".into());
        let mut new = old.clone();
        new.meta.insert("a".into(), "job".into());
        assert!(
            !needs_new_tasks(&old, &new, &new.task_groups[0]),
            "the task's word wins"
        );
    }
}
