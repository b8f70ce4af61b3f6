//! The volumes that a group asks for: which nodes have them, and the claims on them.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::job::VolumeRequest;
use model::{
    AccessMode, Allocation, Indexed, Job, JobKey, Node, NodeId, TaskGroup, Volume, VolumeClaim,
};
use state::Snapshot;

use super::writes::{VolumeWrites, is_alone};

/// The volumes that a group asks for.
#[derive(Clone, Debug)]
pub struct VolumeAsks {
    job: JobKey,
    group: String,
    pub(super) asks: Vec<VolumeRequest>,
    /// The registered volumes; empty until [`Self::resolve`].
    snapshot: Snapshot,
}

impl VolumeAsks {
    /// The reason of a node that lacks a volume.
    pub const REASON: &'static str = crate::reasons::MISSING_VOLUME;
    /// The reason of a node on which another allocation writes to a volume.
    pub const CONFLICT: &'static str = "conflicting claims for host volume with single-writer";

    pub fn of_group(job: &Job, group: &TaskGroup) -> Self {
        Self {
            job: job.key(),
            group: group.name.clone(),
            asks: of_nodes(group).cloned().collect(),
            snapshot: Snapshot::default(),
        }
    }

    /// Uses the registered volumes of `snapshot`; before, there are none.
    pub fn resolve(&mut self, snapshot: &Snapshot) {
        if !self.is_empty() {
            self.snapshot = snapshot.clone();
        }
    }

    pub fn is_empty(&self) -> bool {
        self.asks.is_empty()
    }

    /// Tells whether allocations of the group ask for volumes of their own, so that checks differ
    /// between allocations.
    pub fn differ_by_alloc(&self) -> bool {
        self.asks.iter().any(|ask| ask.per_alloc)
    }

    /// Tells whether `node` has the volumes that every allocation of the group asks for, in use or
    /// not.
    pub fn pass_for_all(&self, node: &Node) -> bool {
        let mut asks = self.asks.iter().filter(|ask| !ask.per_alloc);
        asks.all(|ask| self.has(node, ask, &ask.source))
    }

    /// Tells whether `node` has the volumes of the allocation with this name index, in use or not.
    pub fn pass(&self, node: &Node, name_index: u32) -> bool {
        let mut asks = self.asks.iter();
        asks.all(|ask| self.has(node, ask, &ask.source_for(name_index)))
    }

    fn has(&self, node: &Node, ask: &VolumeRequest, source: &str) -> bool {
        match node.host_volumes.get(source) {
            // The node has no claims, so no volume is sticky to it.
            Some(volume) => !ask.sticky && (ask.read_only || !volume.read_only),
            None => self
                .registered(node.id, source)
                .is_some_and(|volume| suits(&volume.value, ask)),
        }
    }

    fn registered(&self, node_id: NodeId, source: &str) -> Option<&Arc<Indexed<Volume>>> {
        let named = self.snapshot.volumes_named(&self.job.namespace, source)?;
        named.get(&node_id)
    }

    /// Returns the registered volumes of the allocation with this name index on `node`, each with
    /// its request; missing ones are left out.
    fn used_on<'s>(
        &'s self,
        node: &'s Node,
        name_index: u32,
    ) -> impl Iterator<Item = (&'s VolumeRequest, &'s Arc<Indexed<Volume>>)> {
        self.asks.iter().filter_map(move |ask| {
            let source = ask.source_for(name_index);
            let is_static = node.host_volumes.contains_key(&*source);
            let volume = self.registered(node.id, &source).filter(|_| !is_static)?;
            Some((ask, volume))
        })
    }

    /// Returns the registered volumes of the allocation with this name index on `node`.
    pub fn volumes_on<'s>(
        &'s self,
        node: &'s Node,
        name_index: u32,
    ) -> impl Iterator<Item = &'s Arc<Indexed<Volume>>> {
        self.used_on(node, name_index).map(|(_, volume)| volume)
    }

    /// Tells whether another writer rules `node` out for the allocation with this name index.
    ///
    /// Shape: `others` is called only if it matters.
    pub fn is_taken<I: IntoIterator<Item = VolumeWrites>>(
        &self,
        node: &Node,
        name_index: u32,
        others: impl FnOnce() -> I,
    ) -> bool {
        let used = self.used_on(node, name_index);
        let writes = used.filter(|(ask, volume)| !ask.read_only && can_be_alone(&volume.value));
        let writes: Vec<_> = writes
            .map(|(ask, volume)| (volume.value.name.as_str(), is_alone(ask)))
            .collect();
        if writes.is_empty() {
            return false;
        }
        let mut others = others().into_iter();
        others.any(|other| other.conflict_with(&self.job.namespace, &writes))
    }

    /// Returns the nodes to which claims tie the group's next allocation; `None`: no claims.
    ///
    /// A claim ties while no allocation of the group is on its volume's node, which `is_served`
    /// tells.
    pub fn tied_to(&self, is_served: impl Fn(NodeId) -> bool) -> Option<BTreeSet<NodeId>> {
        let mut tied: Option<BTreeSet<NodeId>> = None;
        for ask in self.asks.iter().filter(|ask| ask.sticky) {
            let claims = self.snapshot.volume_claims_of(&self.job);
            let unmet = claims.map(|claim| &claim.value).filter(|claim| {
                let volume = self.registered(claim.node_id, &claim.volume_name);
                claim.task_group == self.group
                    && claim.volume_name == ask.source
                    && volume.is_some_and(|volume| volume.value.id == claim.volume_id)
                    && !is_served(claim.node_id)
            });
            let unmet: BTreeSet<NodeId> = unmet.map(|claim| claim.node_id).collect();
            if unmet.is_empty() {
                continue;
            }
            tied = Some(match tied {
                Some(before) => before.intersection(&unmet).copied().collect(),
                None => unmet,
            });
        }
        tied
    }

    /// Returns the claims that `alloc` makes on `node`.
    pub fn claims(&self, node: &Node, alloc: &Allocation) -> Vec<VolumeClaim> {
        let used = self.used_on(node, alloc.name_index);
        let claims = used.filter(|(ask, _)| ask.sticky).map(|(_, volume)| {
            let volume = &volume.value;
            VolumeClaim {
                namespace: volume.namespace.clone(),
                job_id: self.job.job_id.to_string(),
                task_group: self.group.clone(),
                alloc_id: alloc.id,
                volume_id: volume.id,
                volume_name: volume.name.clone(),
                node_id: volume.node_id,
            }
        });
        claims.collect()
    }

    /// Returns the volumes that `node` lacks, for explanations; some may be the allocation's own.
    pub fn missing<'a>(
        &'a self,
        node: &'a Node,
        name_index: u32,
    ) -> impl Iterator<Item = String> + 'a {
        self.asks.iter().filter_map(move |ask| {
            let source = ask.source_for(name_index);
            (!self.has(node, ask, &source)).then(|| source.into_owned())
        })
    }
}

/// Returns a group's requests for directories of nodes.
pub(super) fn of_nodes(group: &TaskGroup) -> impl Iterator<Item = &VolumeRequest> {
    group.volumes.values().filter(|ask| !ask.is_csi())
}

/// Tells whether a registered volume allows the requested use.
fn suits(volume: &Volume, ask: &VolumeRequest) -> bool {
    let capability = ask.capability();
    let is_coherent = match capability.access_mode {
        AccessMode::SingleNodeReaderOnly => ask.read_only,
        AccessMode::SingleNodeWriter => !ask.read_only,
        AccessMode::SingleNodeSingleWriter | AccessMode::SingleNodeMultiWriter => true,
        // No directory of a node has these.
        AccessMode::MultiNodeReaderOnly
        | AccessMode::MultiNodeSingleWriter
        | AccessMode::MultiNodeMultiWriter => false,
    };
    !volume.deleting && volume.allows(capability) && is_coherent
}

fn can_be_alone(volume: &Volume) -> bool {
    let mut modes = volume.capabilities.iter().map(|it| it.access_mode);
    modes.any(|mode| mode == AccessMode::SingleNodeSingleWriter)
}
