//! One request for a volume: the checks that concern the volume alone, made once, and those of a node.

use std::sync::Arc;

use model::job::VolumeRequest;
use model::{CsiVolume, CsiVolumeKey, Indexed, JobKey, Node, NodeId};
use state::Snapshot;

use super::holders::{self, Holder};
use super::plugin::Plugin;

/// A request, checked as far as no node matters.
#[derive(Clone, Debug)]
pub(super) struct CheckedAsk {
    key: CsiVolumeKey,
    read_only: bool,
    /// `None`: there is no such volume.
    volume: Option<Arc<Indexed<CsiVolume>>>,
    /// The reason of every node; `None`: the volume can be used somewhere.
    reason: Option<String>,
    /// The volume is used on one node at a time, and on these by other jobs.
    bound_to: Vec<NodeId>,
}

impl CheckedAsk {
    /// `coming`: holders of the volume that `snapshot` does not show yet.
    pub(super) fn new(
        snapshot: &Snapshot,
        job: &JobKey,
        ask: &VolumeRequest,
        key: CsiVolumeKey,
        coming: Vec<Holder>,
    ) -> Self {
        let volume = snapshot.csi_volume(&key).cloned();
        let mut checked = Self {
            read_only: ask.read_only,
            volume,
            reason: None,
            bound_to: Vec::new(),
            key,
        };
        let Some(volume) = checked.volume.clone() else {
            return checked;
        };
        let volume = &volume.value;
        let plugin = Plugin::find(snapshot, &volume.plugin_id);
        let is_schedulable = !volume.deleting && plugin.as_ref().is_none_or(Plugin::is_schedulable);
        if !is_schedulable || !volume.allows(ask.capability()) {
            checked.reason = Some(checked.unschedulable());
            return checked;
        }
        let mode = ask.capability().access_mode;
        let mut holders = holders::list(snapshot, &checked.key);
        holders.extend(coming);
        holders.retain(|holder| holder.job != *job);
        if !ask.read_only && !mode.has_many_writers() {
            let id = &checked.key.id;
            let exhausted = format!("CSI volume {id} has exhausted its available writer claims");
            if holders.iter().any(|holder| !holder.read_only) {
                checked.reason = Some(exhausted);
                return checked;
            }
            let left = checked.key.clone();
            let gone = snapshot
                .csi_attachments_of(&left)
                .find_map(|(_, attachment)| {
                    let value = &attachment.value;
                    let is_gone = !value.read_only && snapshot.alloc(value.alloc_id).is_none();
                    is_gone.then_some(value.alloc_id)
                });
            if let Some(alloc_id) = gone {
                checked.reason = Some(format!(
                    "{exhausted} and is claimed by a garbage collected allocation {alloc_id}; \
                     waiting for claim to be released"
                ));
                return checked;
            }
        }
        if !mode.is_multi_node() {
            checked.bound_to = holders.into_iter().map(|holder| holder.node_id).collect();
        }
        checked
    }

    fn unschedulable(&self) -> String {
        let id = &self.key.id;
        if self.read_only {
            format!("CSI volume {id} is unschedulable or has exhausted its available reader claims")
        } else {
            format!("CSI volume {id} is unschedulable or is read-only")
        }
    }

    /// Returns the volume's name if there is no such volume.
    pub(super) fn missing(&self) -> Option<&str> {
        self.volume.is_none().then_some(&*self.key.id)
    }

    /// # Errors
    /// The reason of `node`.
    pub(super) fn check_node(
        &self,
        snapshot: &Snapshot,
        node: &Node,
        planned: &[CsiVolumeKey],
    ) -> Result<(), String> {
        let Some(volume) = &self.volume else {
            return Ok(());
        };
        let (volume, id) = (&volume.value, node.id);
        let plugin_id = &volume.plugin_id;
        let Some(plugin) = node.csi_nodes.get(plugin_id) else {
            return Err(format!(
                "CSI plugin {plugin_id} is missing from client {id}"
            ));
        };
        let Some(facts) = plugin.node.as_ref().filter(|_| plugin.healthy) else {
            return Err(format!(
                "CSI plugin {plugin_id} is unhealthy on client {id}"
            ));
        };
        if facts.max_volumes > 0 {
            let mut there = holders::volumes_on(snapshot, id, plugin_id);
            let is_of_plugin = |key: &&CsiVolumeKey| {
                let volume = snapshot.csi_volume(key);
                volume.is_some_and(|volume| volume.value.plugin_id == *plugin_id)
            };
            there.extend(planned.iter().filter(is_of_plugin).cloned());
            there.sort_unstable();
            there.dedup();
            let count = u64::try_from(there.len()).unwrap_or(u64::MAX);
            // One that is there already is not attached a second time.
            if count >= facts.max_volumes && !there.contains(&self.key) {
                return Err(format!(
                    "CSI plugin {plugin_id} has the maximum number of volumes on client {id}"
                ));
            }
        }
        if !volume.is_reachable_from(&facts.topology) {
            return Err("did not meet topology requirement".to_owned());
        }
        if let Some(reason) = &self.reason {
            return Err(reason.clone());
        }
        if self.bound_to.iter().any(|bound| *bound != id) {
            let volume = &self.key.id;
            return Err(if self.read_only {
                self.unschedulable()
            } else {
                format!("CSI volume {volume} has exhausted its available writer claims")
            });
        }
        Ok(())
    }
}
