//! Volumes of storage systems and their attachments, the plugins of nodes, and the job versions that ask
//! for a volume.

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};
use model::{
    CsiAttachment, CsiAttachmentKey, CsiVolume, CsiVolumeKey, Indexed, Job, JobKey, Node, NodeId,
};

/// The job versions, by the `source` that their groups ask for.
///
/// The key's id is the name in the job: of a group with `per_alloc` the name without the index.
type Asking = OrdMap<CsiVolumeKey, OrdSet<(JobKey, u64)>>;

/// The tables of volumes, with their indexes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Csi {
    pub(crate) volumes: OrdMap<CsiVolumeKey, Arc<Indexed<CsiVolume>>>,
    pub(crate) attachments: OrdMap<CsiAttachmentKey, Arc<Indexed<CsiAttachment>>>,
    asking: Asking,
    /// Plugin → the nodes that report it.
    plugins: OrdMap<Arc<str>, OrdSet<NodeId>>,
}

impl Csi {
    /// Counts a job version, in place of `old` under the same key.
    pub(crate) fn note_version(
        &mut self,
        version: &(JobKey, u64),
        old: Option<&Job>,
        new: Option<&Job>,
    ) {
        for key in old.into_iter().flat_map(sources) {
            unlink(&mut self.asking, &key, version);
        }
        for key in new.into_iter().flat_map(sources) {
            self.asking.entry(key).or_default().insert(version.clone());
        }
    }

    /// Returns the job versions with a group that asks for `source`.
    pub(crate) fn asking(&self, key: &CsiVolumeKey) -> impl Iterator<Item = &(JobKey, u64)> {
        self.asking.get(key).into_iter().flatten()
    }

    /// Counts the plugins of a node, in place of those of `old`.
    pub(crate) fn note_node(&mut self, old: Option<&Node>, new: Option<&Node>) {
        for (id, node) in old.into_iter().flat_map(plugins) {
            unlink(&mut self.plugins, &id, &node);
        }
        for (id, node) in new.into_iter().flat_map(plugins) {
            self.plugins.entry(id).or_default().insert(node);
        }
    }

    pub(crate) fn plugin_ids(&self) -> impl Iterator<Item = &Arc<str>> {
        self.plugins.keys()
    }

    pub(crate) fn nodes_with(&self, plugin_id: &str) -> impl Iterator<Item = NodeId> {
        let nodes = self.plugins.get(plugin_id);
        nodes.into_iter().flatten().copied()
    }
}

fn sources(job: &Job) -> impl Iterator<Item = CsiVolumeKey> {
    let asks = job.task_groups.iter().flat_map(|it| it.volumes.values());
    let asks = asks.filter(|ask| ask.is_csi());
    asks.map(|ask| CsiVolumeKey::new(job.namespace.as_str(), ask.source.as_str()))
}

fn plugins(node: &Node) -> impl Iterator<Item = (Arc<str>, NodeId)> {
    let ids = node.csi_nodes.keys().chain(node.csi_controllers.keys());
    ids.map(|id| (Arc::from(id.as_str()), node.id))
}

/// Removes `member` from the set under `key`, and the set when it was the last.
fn unlink<K: Clone + Ord, V: Clone + Ord>(index: &mut OrdMap<K, OrdSet<V>>, key: &K, member: &V) {
    if let Some(set) = index.get_mut(key) {
        set.remove(member);
        if set.is_empty() {
            index.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use model::job::{JobType, Task, TaskGroup, VolumeRequest, VolumeType};
    use model::{CsiPluginInfo, MountOptions};

    use super::*;
    use crate::{Change, Entity, Key, State, Table};

    fn put(key: Key, entity: Entity, revision: u64) -> Change {
        Change::Put {
            key,
            entity,
            create_index: revision,
            modify_index: revision,
        }
    }

    fn group(source: &str) -> TaskGroup {
        let ask = VolumeRequest {
            volume_type: VolumeType::Csi,
            source: source.into(),
            read_only: false,
            sticky: false,
            per_alloc: false,
            access_mode: None,
            attachment_mode: None,
            mount_options: MountOptions::default(),
        };
        TaskGroup {
            name: "g".into(),
            tasks: vec![Task::default()],
            volumes: [("data".to_owned(), ask)].into(),
            ..TaskGroup::default()
        }
    }

    fn job(source: &str) -> Job {
        let text = serde_json::json!({
            "namespace": "default", "id": "web", "name": "web", "region": "global",
            "type": JobType::Service, "priority": 50, "all_at_once": false, "datacenters": ["*"],
            "node_pool": "default", "constraints": [], "affinities": [], "spreads": [],
            "task_groups": [], "meta": {}, "stop": false, "version": 0, "submit_time": 0,
        });
        let mut job: Job = serde_json::from_value(text).unwrap();
        job.task_groups = vec![group(source)];
        job
    }

    #[test]
    fn a_volume_has_the_job_versions_that_ask_for_it() {
        let mut state = State::default();
        let version = |source: &str| Entity::JobVersion(Box::new(job(source)));
        let key = || Key::JobVersion(JobKey::new("default", "web"), 0);
        let asking = |state: &State, source: &str| {
            let key = CsiVolumeKey::new("default", source);
            state.snapshot().csi_asking(&key).count()
        };
        state.apply(1, [put(key(), version("a"), 1)]);
        assert_eq!((asking(&state, "a"), asking(&state, "b")), (1, 0));
        state.apply(2, [put(key(), version("b"), 2)]);
        assert_eq!((asking(&state, "a"), asking(&state, "b")), (0, 1));
        state.apply(3, [Change::Delete { key: key() }]);
        assert_eq!((asking(&state, "a"), asking(&state, "b")), (0, 0));
    }

    #[test]
    fn volumes_and_attachments_are_found_by_their_keys_until_deleted() {
        let mut state = State::default();
        let volume = CsiVolume {
            namespace: "default".into(),
            id: "data".into(),
            ..CsiVolume::default()
        };
        let key = volume.key();
        let attachment = CsiAttachmentKey {
            volume: key.clone(),
            node_id: NodeId::from_random(1),
        };
        let stored = Entity::CsiVolume(Box::new(volume.clone()));
        state.apply(1, [put(Key::CsiVolume(key.clone()), stored, 1)]);
        let stored = Entity::CsiAttachment(Box::default());
        state.apply(2, [put(Key::CsiAttachment(attachment.clone()), stored, 2)]);
        let snapshot = state.snapshot();
        assert_eq!(snapshot.csi_volume(&key).unwrap().value, volume);
        assert_eq!(snapshot.csi_attachments_of(&key).count(), 1);
        assert_eq!(snapshot.table_index(Table::Volumes), 2);
        let keys = [Key::CsiAttachment(attachment), Key::CsiVolume(key.clone())];
        state.apply(3, keys.map(|key| Change::Delete { key }));
        let snapshot = state.snapshot();
        assert!(snapshot.csi_volume(&key).is_none());
        assert_eq!(snapshot.csi_attachments().count(), 0);
    }

    #[test]
    fn a_plugin_is_known_while_a_node_reports_it() {
        let mut csi = Csi::default();
        let node = |id: u128, plugins: &[&str]| {
            let text = serde_json::json!({
                "secret": "", "name": "", "datacenter": "", "node_pool": "", "node_class": "",
                "address": "", "attributes": {}, "meta": {}, "drivers": {},
                "resources": {"cpu": 0, "mem": 0, "disk": 0},
                "reserved": {"cpu": 0, "mem": 0, "disk": 0},
                "reserved_ports": [], "min_dynamic_port": 1, "max_dynamic_port": 2,
                "host_ip": "", "computed_class": "", "status": "ready", "status_description": "",
                "eligibility": "eligible", "status_updated_at": 0,
            });
            let mut node: Node = serde_json::from_value(text).unwrap();
            node.id = NodeId::from_random(id);
            for plugin in plugins {
                let info = CsiPluginInfo::default();
                node.csi_nodes.insert((*plugin).to_owned(), info);
            }
            node
        };
        let (one, two) = (node(1, &["ebs", "nfs"]), node(2, &["ebs"]));
        csi.note_node(None, Some(&one));
        csi.note_node(None, Some(&two));
        assert_eq!(csi.plugin_ids().count(), 2);
        assert_eq!(csi.nodes_with("ebs").count(), 2);
        csi.note_node(Some(&one), Some(&node(1, &[])));
        assert_eq!(csi.nodes_with("ebs").collect::<Vec<_>>(), [two.id]);
        csi.note_node(Some(&two), None);
        assert_eq!(csi.plugin_ids().count(), 0);
    }
}
