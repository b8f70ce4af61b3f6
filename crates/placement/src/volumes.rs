//! Host volumes: directories of a node that a group asks for by name.
//!
//! Some stand in the node's configuration (static ones), the others were registered by users. A
//! registered one belongs to a namespace, may be used in the ways that it was registered for, and
//! may be for one writer alone.
//!
//! **Who holds a volume, for everybody:** whoever has not ended on its node, whatever the servers
//! have told it: files are written until a process has gone. Only who takes the place of another
//! need not wait, because a node starts the successor after its predecessor has ended.
//!
//! Source: Nomad's public behaviour, but for that last rule.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::job::VolumeRequest;
use model::{
    AccessMode, AllocId, Allocation, Indexed, Job, JobKey, Node, NodeId, TaskGroup, Volume,
    VolumeClaim,
};
use state::{AllocView, Snapshot};

/// What a group asks of a node's volumes.
#[derive(Clone, Debug)]
pub struct VolumeAsks {
    job: JobKey,
    group: String,
    asks: Vec<VolumeRequest>,
    /// Where registered volumes are looked up; empty until [`Self::look_in`].
    snapshot: Snapshot,
}

impl VolumeAsks {
    /// What is shown for a node that lacks one.
    pub const REASON: &'static str = "missing compatible host volumes";
    /// What is shown for a node on which somebody else writes to one.
    pub const CONFLICT: &'static str = "conflicting claims for host volume with single-writer";

    pub fn of_group(job: &Job, group: &TaskGroup) -> Self {
        Self {
            job: job.key(),
            group: group.name.clone(),
            asks: group.volumes.values().cloned().collect(),
            snapshot: Snapshot::default(),
        }
    }

    /// Finds registered volumes in `snapshot` from now on: before, there are none.
    pub fn look_in(&mut self, snapshot: &Snapshot) {
        if !self.is_empty() {
            self.snapshot = snapshot.clone();
        }
    }

    pub fn is_empty(&self) -> bool {
        self.asks.is_empty()
    }

    /// Tells whether allocations of the group ask for volumes of their own, so that what holds for
    /// one need not hold for another.
    pub fn differ_by_alloc(&self) -> bool {
        self.asks.iter().any(|ask| ask.per_alloc)
    }

    /// Tells whether `node` has what any allocation of the group asks for, whoever uses it.
    pub fn pass_for_all(&self, node: &Node) -> bool {
        let mut asks = self.asks.iter().filter(|ask| !ask.per_alloc);
        asks.all(|ask| self.has(node, ask, &ask.source))
    }

    /// Tells whether `node` has what the allocation with this number in its name asks for, whoever
    /// uses it.
    pub fn pass(&self, node: &Node, name_index: u32) -> bool {
        let mut asks = self.asks.iter();
        asks.all(|ask| self.has(node, ask, &ask.source_for(name_index)))
    }

    fn has(&self, node: &Node, ask: &VolumeRequest, source: &str) -> bool {
        match node.host_volumes.get(source) {
            // It holds no claims, so nothing can be sticky to it.
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

    /// Returns the registered volumes that the allocation with this number gets on `node`, each
    /// with what asks for it. One that is not there is left out.
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

    /// Returns the registered volumes that the allocation with this number gets on `node`.
    pub fn volumes_on<'s>(
        &'s self,
        node: &'s Node,
        name_index: u32,
    ) -> impl Iterator<Item = &'s Arc<Indexed<Volume>>> {
        self.used_on(node, name_index).map(|(_, volume)| volume)
    }

    /// Tells whether somebody else's writing keeps the allocation with this number off `node`.
    ///
    /// Shape: `others` are asked for only when it matters.
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

    /// Returns the nodes to which claims tie the group's next allocation; `None`: none do.
    ///
    /// A claim does so while nobody of the group is where its volume is, which `is_served` tells.
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

    /// Returns the claims that `alloc` makes by being on `node`.
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

    /// Returns the volumes that `node` lacks, for people; some may be this allocation's alone.
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

/// Tells whether a registered volume may be used as it is asked for.
fn suits(volume: &Volume, ask: &VolumeRequest) -> bool {
    let capability = ask.capability();
    let is_coherent = match capability.access_mode {
        AccessMode::SingleNodeReaderOnly => ask.read_only,
        AccessMode::SingleNodeWriter => !ask.read_only,
        AccessMode::SingleNodeSingleWriter | AccessMode::SingleNodeMultiWriter => true,
    };
    !volume.deleting && volume.allows(capability) && is_coherent
}

fn is_alone(ask: &VolumeRequest) -> bool {
    ask.access_mode == Some(AccessMode::SingleNodeSingleWriter)
}

fn can_be_alone(volume: &Volume) -> bool {
    let mut modes = volume.capabilities.iter().map(|it| it.access_mode);
    modes.any(|mode| mode == AccessMode::SingleNodeSingleWriter)
}

/// What one allocation writes to on its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeWrites {
    namespace: Arc<str>,
    /// Name, and whether it wants to be the only one who writes; `None`: nobody knows any more.
    writes: Option<Vec<(String, bool)>>,
}

impl VolumeWrites {
    /// Returns what one of `group` with this number in its name writes to.
    pub fn of_group(namespace: &str, group: &TaskGroup, name_index: u32) -> Self {
        Self {
            namespace: namespace.into(),
            writes: Some(writes(group, name_index)),
        }
    }

    /// Tells whether it writes nothing.
    pub fn is_empty(&self) -> bool {
        self.writes.as_ref().is_some_and(Vec::is_empty)
    }

    /// Looks at the group that `alloc` runs, as it was when it was placed.
    pub fn of(snapshot: &Snapshot, alloc: &Allocation) -> Self {
        let version = (alloc.job_key(), alloc.job_version);
        Self::of_version(snapshot, &version, &alloc.task_group, alloc.name_index)
    }

    /// The same of an allocation that is known by its job, version, group and number.
    pub fn of_version(
        snapshot: &Snapshot,
        (job, version): &(JobKey, u64),
        task_group: &str,
        name_index: u32,
    ) -> Self {
        let row = snapshot.job_version(job, *version);
        let group = row.and_then(|row| row.value.task_group(task_group));
        Self {
            namespace: job.namespace.clone(),
            writes: group.map(|group| writes(group, name_index)),
        }
    }

    /// Returns what those write who have not ended on the node, but for `replaced`, whom the one
    /// that asks takes the place of.
    pub fn on_node(
        snapshot: &Snapshot,
        node_id: NodeId,
        replaced: Option<AllocId>,
    ) -> impl Iterator<Item = Self> {
        let there = snapshot.allocs_by_node(node_id);
        let hold =
            there.filter(move |view| !view.is_client_terminal() && Some(view.alloc.id) != replaced);
        hold.map(|view| Self::of(snapshot, &view.alloc))
            .filter(|one| !one.is_empty())
    }

    fn conflict_with(&self, namespace: &str, asked: &[(&str, bool)]) -> bool {
        let Some(writes) = &self.writes else {
            return asked.iter().any(|(_, alone)| *alone);
        };
        *self.namespace == *namespace
            && asked.iter().any(|(name, alone)| {
                let mut writes = writes.iter();
                writes.any(|(other, is_alone)| other == name && (*alone || *is_alone))
            })
    }
}

/// Returns the allocations that use a registered volume: those that ask for its name there and have
/// not ended on the node.
pub fn users<'s>(
    snapshot: &'s Snapshot,
    volume: &'s Volume,
) -> impl Iterator<Item = &'s AllocView> {
    snapshot.allocs_by_node(volume.node_id).filter(|view| {
        let alloc = &view.alloc;
        if view.is_client_terminal() || *alloc.namespace != *volume.namespace {
            return false;
        }
        let job = snapshot.job_version(&alloc.job_key(), alloc.job_version);
        let group = job.and_then(|job| job.value.task_group(&alloc.task_group));
        let mut asks = group.iter().flat_map(|group| group.volumes.values());
        asks.any(|ask| *ask.source_for(alloc.name_index) == *volume.name)
    })
}

fn writes(group: &TaskGroup, name_index: u32) -> Vec<(String, bool)> {
    let asks = group.volumes.values().filter(|ask| !ask.read_only);
    asks.map(|ask| (ask.source_for(name_index).into_owned(), is_alone(ask)))
        .collect()
}

#[cfg(test)]
mod tests {
    use model::job::VolumeType;
    use model::node::HostVolume;
    use model::{AttachmentMode, Capability, Timestamp, VolumeId};
    use state::{Change, Entity, Key, State};
    use test_kit::builders;

    use super::*;

    fn node(volumes: &[(&str, bool)]) -> Node {
        let mut node = builders::node(1);
        for (name, read_only) in volumes {
            let volume = HostVolume {
                path: format!("/srv/{name}"),
                read_only: *read_only,
            };
            node.host_volumes.insert((*name).to_owned(), volume);
        }
        node
    }

    fn asks(edit: impl FnOnce(&mut VolumeRequest)) -> VolumeAsks {
        let mut ask = VolumeRequest {
            volume_type: VolumeType::Host,
            source: "data".into(),
            read_only: false,
            sticky: false,
            per_alloc: false,
            access_mode: None,
            attachment_mode: None,
        };
        edit(&mut ask);
        let mut job = builders::service("web", 1);
        job.task_groups[0].volumes.insert("data".into(), ask);
        VolumeAsks::of_group(&job, &job.task_groups[0])
    }

    #[test]
    fn scenario_114_a_volume_is_writable_only_if_the_node_says_so_and_never_sticky() {
        let (writable, read_only) = (node(&[("data", false)]), node(&[("data", true)]));
        for (asks, on_writable, on_read_only) in [
            (asks(|_| {}), true, false),
            (asks(|ask| ask.read_only = true), true, true),
            (asks(|ask| ask.sticky = true), false, false),
            (asks(|ask| ask.source = "logs".into()), false, false),
        ] {
            let answers = (asks.pass_for_all(&writable), asks.pass_for_all(&read_only));
            assert_eq!(answers, (on_writable, on_read_only), "{asks:?}");
            assert_eq!(asks.pass(&writable, 3), on_writable, "{asks:?}");
        }
    }

    #[test]
    fn a_volume_per_allocation_goes_by_the_number_in_the_name() {
        let asks = asks(|ask| ask.per_alloc = true);
        let node = node(&[("data[1]", false)]);
        assert!(asks.differ_by_alloc() && asks.pass_for_all(&node));
        assert!(asks.pass(&node, 1) && !asks.pass(&node, 0) && !asks.pass(&node, 11));
    }

    fn volume(node: u128, modes: &[AccessMode]) -> Volume {
        Volume {
            namespace: "default".into(),
            name: "data".into(),
            node_id: builders::node(node).id,
            id: VolumeId::from_random(node),
            host_path: "/srv/data".into(),
            capabilities: modes.iter().map(|mode| capability(*mode)).collect(),
            deleting: false,
            create_time: Timestamp(1),
            modify_time: Timestamp(1),
        }
    }

    fn capability(access_mode: AccessMode) -> Capability {
        Capability {
            access_mode,
            attachment_mode: AttachmentMode::FileSystem,
        }
    }

    fn snapshot(entities: impl IntoIterator<Item = (Key, Entity)>) -> Snapshot {
        let changes = entities.into_iter().map(|(key, entity)| Change::Put {
            key,
            entity,
            create_index: 1,
            modify_index: 1,
        });
        State::from_list(1, changes).snapshot()
    }

    fn stored(volume: Volume) -> (Key, Entity) {
        (Key::Volume(volume.key()), Entity::Volume(Box::new(volume)))
    }

    fn with(volume: Volume, mut asks: VolumeAsks) -> VolumeAsks {
        asks.look_in(&snapshot([stored(volume)]));
        asks
    }

    #[test]
    fn a_registered_volume_is_used_only_as_it_was_registered() {
        use AccessMode::{
            SingleNodeMultiWriter as Multi, SingleNodeReaderOnly as Reader,
            SingleNodeSingleWriter as Single, SingleNodeWriter as Writer,
        };
        let node = builders::node(1);
        for (modes, mode, read_only, passes) in [
            // What is not said follows from `read_only`.
            (&[Writer][..], None, false, true),
            (&[Writer], None, true, false),
            (&[Reader], None, true, true),
            (&[Reader], None, false, false),
            (&[Single], None, false, false),
            (&[Single], Some(Single), false, true),
            (&[Single, Multi], Some(Multi), false, true),
            (&[Multi], Some(Single), false, false),
            (&[Reader], Some(Reader), false, false),
            (&[Writer], Some(Writer), true, false),
            (&[Single], Some(Single), true, true),
        ] {
            let asks = with(
                volume(1, modes),
                asks(|ask| (ask.access_mode, ask.read_only) = (mode, read_only)),
            );
            let told = (modes, mode, read_only);
            assert_eq!(asks.pass_for_all(&node), passes, "{told:?}");
            assert!(!asks.pass_for_all(&builders::node(2)), "{told:?}");
        }
        let block = asks(|ask| ask.attachment_mode = Some(AttachmentMode::BlockDevice));
        assert!(!with(volume(1, &[Writer]), block).pass_for_all(&node));
        let elsewhere = Volume {
            namespace: "other".into(),
            ..volume(1, &[Writer])
        };
        assert!(!with(elsewhere, asks(|_| {})).pass_for_all(&node));
        let deleting = Volume {
            deleting: true,
            ..volume(1, &[Writer])
        };
        assert!(!with(deleting, asks(|_| {})).pass_for_all(&node));
        // What stands in the node's configuration is what a task would get.
        let sticky = with(volume(1, &[Writer]), asks(|ask| ask.sticky = true));
        assert!(sticky.pass_for_all(&node));
        assert!(!sticky.pass_for_all(&self::node(&[("data", false)])));
    }

    #[test]
    fn who_wants_to_write_alone_shares_with_readers_only() {
        let single = AccessMode::SingleNodeSingleWriter;
        let multi = AccessMode::SingleNodeMultiWriter;
        let asking = |mode: AccessMode, read_only: bool| {
            move |ask: &mut VolumeRequest| {
                (ask.access_mode, ask.read_only) = (Some(mode), read_only);
            }
        };
        for (theirs, their_reading, ours, our_reading, taken) in [
            (single, false, single, false, true),
            (multi, false, single, false, true),
            (single, false, multi, false, true),
            (multi, false, multi, false, false),
            (single, true, single, false, false),
            (single, false, single, true, false),
        ] {
            let other = asks(asking(theirs, their_reading));
            let mut job = builders::service("other", 1);
            job.task_groups[0]
                .volumes
                .insert("data".into(), other.asks[0].clone());
            let alloc = builders::allocation(1, &job, builders::node(1).id);
            let version = Key::JobVersion(job.key(), 0);
            let snapshot = snapshot([
                stored(volume(1, &[single, multi])),
                (version, Entity::JobVersion(Box::new(job))),
                (Key::Alloc(alloc.id), Entity::Alloc(Box::new(alloc.clone()))),
            ]);
            let mut asks = asks(asking(ours, our_reading));
            asks.look_in(&snapshot);
            let is_taken = |replaced| {
                let node = builders::node(1);
                let others = || VolumeWrites::on_node(&snapshot, node.id, replaced);
                asks.is_taken(&node, 0, others)
            };
            let told = (theirs, their_reading, ours, our_reading);
            assert_eq!(is_taken(None), taken, "{told:?}");
            assert!(!is_taken(Some(alloc.id)), "{told:?}");
        }
    }

    #[test]
    fn a_writer_in_another_namespace_is_in_nobodys_way() {
        let single = AccessMode::SingleNodeSingleWriter;
        let alone = |ask: &mut VolumeRequest| ask.access_mode = Some(single);
        for (namespace, taken) in [("default", true), ("other", false)] {
            let mut job = builders::service("other", 1);
            job.namespace = namespace.into();
            let other = asks(alone);
            let volumes = &mut job.task_groups[0].volumes;
            volumes.insert("data".into(), other.asks[0].clone());
            let alloc = builders::allocation(1, &job, builders::node(1).id);
            let theirs = Volume {
                namespace: namespace.into(),
                ..volume(1, &[single])
            };
            let snapshot = snapshot([
                stored(volume(1, &[single])),
                stored(theirs),
                (
                    Key::JobVersion(job.key(), 0),
                    Entity::JobVersion(Box::new(job)),
                ),
                (Key::Alloc(alloc.id), Entity::Alloc(Box::new(alloc))),
            ]);
            let mut asks = asks(alone);
            asks.look_in(&snapshot);
            let node = builders::node(1);
            let others = || VolumeWrites::on_node(&snapshot, node.id, None);
            assert_eq!(asks.is_taken(&node, 0, others), taken, "{namespace}");
        }
    }

    #[test]
    fn nobody_writes_alone_beside_an_allocation_of_which_nothing_is_known() {
        let single = AccessMode::SingleNodeSingleWriter;
        let gone = builders::allocation(1, &builders::service("gone", 1), builders::node(1).id);
        let snapshot = snapshot([
            stored(volume(1, &[single])),
            (Key::Alloc(gone.id), Entity::Alloc(Box::new(gone))),
        ]);
        let mut asks = asks(|ask| ask.access_mode = Some(single));
        asks.look_in(&snapshot);
        let node = builders::node(1);
        assert!(asks.is_taken(&node, 0, || VolumeWrites::on_node(&snapshot, node.id, None)));
    }

    #[test]
    fn claims_tie_a_group_to_their_nodes_while_nobody_is_there() {
        let writer = [AccessMode::SingleNodeWriter];
        let (here, there) = (volume(1, &writer), volume(2, &writer));
        let mut asks = asks(|ask| ask.sticky = true);
        let job = builders::service("web", 1);
        let alloc = builders::allocation(1, &job, here.node_id);
        let volumes = [stored(here.clone()), stored(there.clone())];
        asks.look_in(&snapshot(volumes.clone()));
        assert_eq!(asks.tied_to(|_| false), None);
        let claims = asks.claims(&builders::node(1), &alloc);
        assert_eq!(claims.len(), 1);
        assert_eq!(
            (claims[0].volume_id, claims[0].alloc_id),
            (here.id, alloc.id)
        );
        let claim = |claim: &VolumeClaim| {
            let entity = Entity::VolumeClaim(Box::new(claim.clone()));
            (Key::VolumeClaim(claim.id()), entity)
        };
        let look = |asks: &mut VolumeAsks, claims: &[VolumeClaim]| {
            let stored = volumes.clone().into_iter().chain(claims.iter().map(claim));
            asks.look_in(&snapshot(stored));
        };
        look(&mut asks, &claims);
        assert_eq!(asks.tied_to(|_| false), Some([here.node_id].into()));
        assert_eq!(asks.tied_to(|node| node == here.node_id), None);
        // Another group's, another name's, and one of a volume that is another by now.
        let of_others = [
            VolumeClaim {
                task_group: "db".into(),
                ..claims[0].clone()
            },
            VolumeClaim {
                volume_name: "logs".into(),
                ..claims[0].clone()
            },
            VolumeClaim {
                volume_id: there.id,
                ..claims[0].clone()
            },
            VolumeClaim {
                job_id: "db".into(),
                ..claims[0].clone()
            },
        ];
        look(&mut asks, &of_others);
        assert_eq!(asks.tied_to(|_| false), None);
        // Who does not ask for sticky volumes claims none.
        let plain = with(here, self::asks(|_| {}));
        assert_eq!(plain.claims(&builders::node(1), &alloc), []);
    }
}
