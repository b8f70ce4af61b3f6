//! The plugins that tasks of this node provide, with their health.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use csi::Plugin;
use model::csi::{CsiControllerInfo, CsiNodeInfo, CsiPluginInfo};
use model::{AllocId, CsiPluginTask};
use tokio::sync::watch;

use crate::layout::PluginPaths;

/// The task that provides a plugin.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskKey {
    pub alloc_id: AllocId,
    pub task: String,
}

/// The plugins of one node.
#[derive(Debug)]
pub struct Registry {
    entries: Mutex<BTreeMap<TaskKey, Entry>>,
    /// Counts changes of what the node reports.
    changed: watch::Sender<u64>,
}

impl Default for Registry {
    fn default() -> Self {
        Self {
            entries: Mutex::default(),
            changed: watch::Sender::new(0),
        }
    }
}

#[derive(Clone, Debug)]
struct Entry {
    task: CsiPluginTask,
    plugin: Plugin,
    paths: PluginPaths,
    /// Counts entries: of two that provide one plugin, the later is preferred.
    number: u64,
    info: CsiPluginInfo,
}

/// A healthy node service.
#[derive(Clone, Debug)]
pub(crate) struct NodeService {
    pub(crate) plugin: Plugin,
    pub(crate) paths: PluginPaths,
    pub(crate) stages: bool,
}

/// An entry of the registry, which is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Registration {
    registry: Arc<Registry>,
    key: TaskKey,
}

impl Registry {
    /// Adds a plugin that is not healthy yet.
    pub(crate) fn add(
        self: &Arc<Self>,
        key: TaskKey,
        task: CsiPluginTask,
        plugin: Plugin,
        paths: PluginPaths,
    ) -> Registration {
        let mut entries = self.lock();
        let newest = entries.values().map(|entry| entry.number).max();
        let info = CsiPluginInfo {
            alloc_id: key.alloc_id,
            description: "the plugin does not answer yet".to_owned(),
            ..CsiPluginInfo::default()
        };
        let entry = Entry {
            task,
            plugin,
            paths,
            number: newest.unwrap_or(0) + 1,
            info,
        };
        entries.insert(key.clone(), entry);
        drop(entries);
        self.note_change();
        Registration {
            registry: Arc::clone(self),
            key,
        }
    }

    /// Returns what the node reports: its node services, and its controller services, by plugin.
    pub fn reports(
        &self,
    ) -> (
        BTreeMap<String, CsiPluginInfo>,
        BTreeMap<String, CsiPluginInfo>,
    ) {
        let entries = self.lock();
        let of = |has: fn(&Entry) -> bool, part: fn(&CsiPluginInfo) -> CsiPluginInfo| {
            let mut reports = BTreeMap::new();
            for entry in entries.values().filter(|entry| has(entry)) {
                let best = best(&entries, &entry.task.id, has);
                let info = best.map(|best| part(&best.info)).unwrap_or_default();
                reports.insert(entry.task.id.clone(), info);
            }
            reports
        };
        (
            of(
                |entry| entry.task.plugin_type.has_node(),
                |info| CsiPluginInfo {
                    controller: None,
                    ..info.clone()
                },
            ),
            of(
                |entry| entry.task.plugin_type.has_controller(),
                |info| CsiPluginInfo {
                    node: None,
                    ..info.clone()
                },
            ),
        )
    }

    /// Returns a receiver of the number of changes of the reports.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Returns the healthy node service of a plugin.
    pub(crate) fn node_service(&self, plugin_id: &str) -> Option<NodeService> {
        let entries = self.lock();
        let entry = best(&entries, plugin_id, |entry| {
            entry.task.plugin_type.has_node()
        })?;
        let facts = entry.info.node.as_ref().filter(|_| entry.info.healthy)?;
        Some(NodeService {
            plugin: entry.plugin.clone(),
            paths: entry.paths.clone(),
            stages: facts.stages,
        })
    }

    /// Returns the healthy controller service of a plugin.
    pub fn controller(&self, plugin_id: &str) -> Option<Plugin> {
        let entries = self.lock();
        let has = |entry: &Entry| entry.task.plugin_type.has_controller();
        let entry = best(&entries, plugin_id, has)?;
        entry.info.healthy.then(|| entry.plugin.clone())
    }

    fn note_change(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TaskKey, Entry>> {
        // Each critical section leaves consistent entries.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the entry to use: a healthy one, and of these the latest.
fn best<'e>(
    entries: &'e BTreeMap<TaskKey, Entry>,
    plugin_id: &str,
    has: impl Fn(&Entry) -> bool,
) -> Option<&'e Entry> {
    let all = entries.values();
    let of_plugin = all.filter(|entry| entry.task.id == plugin_id && has(entry));
    of_plugin.max_by_key(|entry| (entry.info.healthy, entry.number))
}

impl Registration {
    /// Records the plugin's facts: it is healthy. Returns whether it was not before.
    pub(crate) fn set_healthy(
        &self,
        facts: &csi::PluginFacts,
        node: Option<csi::NodeFacts>,
        controller: Option<csi::ControllerFacts>,
    ) -> bool {
        self.change(|info| CsiPluginInfo {
            provider: facts.name.clone(),
            provider_version: facts.version.clone(),
            alloc_id: info.alloc_id,
            healthy: true,
            description: String::new(),
            needs_controller: facts.has_controller,
            controller: controller.map(|facts| CsiControllerInfo {
                creates: facts.creates,
                attaches: facts.attaches,
                attaches_read_only: facts.attaches_read_only,
                lists: facts.lists,
                snapshots: facts.snapshots,
                lists_snapshots: facts.lists_snapshots,
                clones: facts.clones,
            }),
            node: node.map(|facts| CsiNodeInfo {
                node_id: facts.node_id,
                max_volumes: facts.max_volumes,
                topology: facts.topology,
                stages: facts.stages,
            }),
        })
    }

    /// Records that the plugin is not healthy. Returns whether it was before.
    pub(crate) fn set_unhealthy(&self, reason: &str) -> bool {
        self.change(|info| CsiPluginInfo {
            healthy: false,
            description: reason.to_owned(),
            ..info.clone()
        })
    }

    /// Returns whether the health has changed.
    fn change(&self, change: impl FnOnce(&CsiPluginInfo) -> CsiPluginInfo) -> bool {
        let mut entries = self.registry.lock();
        let Some(entry) = entries.get_mut(&self.key) else {
            return false;
        };
        let info = change(&entry.info);
        let turned = info.healthy != entry.info.healthy;
        let is_changed = info != entry.info;
        entry.info = info;
        drop(entries);
        if is_changed {
            self.registry.note_change();
        }
        turned
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.registry.lock().remove(&self.key);
        self.registry.note_change();
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use model::CsiPluginType;

    use super::*;

    fn add(registry: &Arc<Registry>, alloc: u128, plugin_type: CsiPluginType) -> Registration {
        let key = TaskKey {
            alloc_id: AllocId::from_random(alloc),
            task: "plugin".to_owned(),
        };
        let task = CsiPluginTask {
            id: "ebs".to_owned(),
            plugin_type,
            ..CsiPluginTask::default()
        };
        let paths = PluginPaths {
            on_node: "/a".into(),
            in_task: "/b".into(),
        };
        registry.add(key, task, Plugin::at(Path::new("/none")), paths)
    }

    fn healthy(registration: &Registration) -> bool {
        let facts = csi::PluginFacts::default();
        registration.set_healthy(&facts, Some(csi::NodeFacts::default()), None)
    }

    #[tokio::test]
    async fn a_plugin_is_there_as_long_as_its_task_and_serves_once_it_is_healthy() {
        let registry = Arc::new(Registry::default());
        let mut changes = registry.changes();
        let registration = add(&registry, 1, CsiPluginType::Node);
        assert!(changes.has_changed().unwrap());
        let (nodes, controllers) = registry.reports();
        assert_eq!((nodes.len(), controllers.len()), (1, 0));
        assert!(!nodes["ebs"].healthy);
        assert!(registry.node_service("ebs").is_none());
        assert!(healthy(&registration));
        assert!(!healthy(&registration), "it was before");
        assert!(registry.node_service("ebs").is_some());
        assert!(registry.controller("ebs").is_none());
        changes.mark_unchanged();
        assert!(registration.set_unhealthy("gone"));
        assert!(changes.has_changed().unwrap());
        assert_eq!(registry.reports().0["ebs"].description, "gone");
        drop(registration);
        assert!(registry.reports().0.is_empty());
    }

    #[tokio::test]
    async fn of_two_tasks_with_one_plugin_a_healthy_one_serves() {
        let registry = Arc::new(Registry::default());
        let old = add(&registry, 2, CsiPluginType::Monolith);
        let new = add(&registry, 1, CsiPluginType::Monolith);
        healthy(&old);
        let serving = || registry.reports().0["ebs"].alloc_id;
        assert_eq!(serving(), AllocId::from_random(2));
        healthy(&new);
        assert_eq!(serving(), AllocId::from_random(1), "the later one");
        drop(new);
        assert_eq!(serving(), AllocId::from_random(2));
    }
}
