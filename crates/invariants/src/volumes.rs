//! Check of volumes with a single writer.

use std::collections::BTreeMap;

use model::{AccessMode, AllocId, Node};
use state::{AllocView, Snapshot};

/// Finds registered volumes of a node with several live writers, one of which requested to be the
/// single one.
pub(crate) fn concurrent_writers(
    snapshot: &Snapshot,
    node: &Node,
    live: &[&AllocView],
) -> Vec<String> {
    if !snapshot.has_volumes() {
        return Vec::new();
    }
    let mut writers = BTreeMap::<(String, String), Vec<(AllocId, bool)>>::new();
    for view in live {
        let alloc = &view.alloc;
        let job = snapshot.job_version(&alloc.job_key(), alloc.job_version);
        let group = job.and_then(|job| job.value.task_group(&alloc.task_group));
        for ask in group.iter().flat_map(|group| group.volumes.values()) {
            let name = ask.source_for(alloc.name_index).into_owned();
            let named = snapshot.volumes_named(&alloc.namespace, &name);
            let is_registered = named.is_some_and(|named| named.contains_key(&node.id));
            if ask.is_csi()
                || ask.read_only
                || !is_registered
                || node.host_volumes.contains_key(&name)
            {
                continue;
            }
            let is_alone = ask.access_mode == Some(AccessMode::SingleNodeSingleWriter);
            let volume = (alloc.namespace.to_string(), name);
            writers
                .entry(volume)
                .or_default()
                .push((alloc.id, is_alone));
        }
    }
    let shared = writers
        .into_iter()
        .filter(|(_, writers)| writers.len() > 1 && writers.iter().any(|(_, is_alone)| *is_alone));
    shared
        .map(|((namespace, name), writers)| {
            let ids: Vec<_> = writers.into_iter().map(|(id, _)| id).collect();
            format!("volume {name} of namespace {namespace} is written by {ids:?}")
        })
        .collect()
}
