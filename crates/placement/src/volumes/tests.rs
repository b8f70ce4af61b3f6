//! Volumes on nodes, writers beside each other, claims.

use model::job::{VolumeRequest, VolumeType};
use model::node::HostVolume;
use model::{AccessMode, AttachmentMode, Capability, Node, Timestamp, VolumeClaim, VolumeId};
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
        mount_options: Default::default(),
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
    asks.resolve(&snapshot([stored(volume)]));
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
        // The default follows from `read_only`.
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
        let case = (modes, mode, read_only);
        assert_eq!(asks.pass_for_all(&node), passes, "{case:?}");
        assert!(!asks.pass_for_all(&builders::node(2)), "{case:?}");
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
    // A static volume wins.
    let sticky = with(volume(1, &[Writer]), asks(|ask| ask.sticky = true));
    assert!(sticky.pass_for_all(&node));
    assert!(!sticky.pass_for_all(&self::node(&[("data", false)])));
}

#[test]
fn an_exclusive_writer_shares_with_readers_only() {
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
        asks.resolve(&snapshot);
        let is_taken = |replaced| {
            let node = builders::node(1);
            let others = || VolumeWrites::on_node(&snapshot, node.id, replaced);
            asks.is_taken(&node, 0, others)
        };
        let case = (theirs, their_reading, ours, our_reading);
        assert_eq!(is_taken(None), taken, "{case:?}");
        assert!(!is_taken(Some(alloc.id)), "{case:?}");
    }
}

#[test]
fn a_writer_in_another_namespace_does_not_conflict() {
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
        asks.resolve(&snapshot);
        let node = builders::node(1);
        let others = || VolumeWrites::on_node(&snapshot, node.id, None);
        assert_eq!(asks.is_taken(&node, 0, others), taken, "{namespace}");
    }
}

#[test]
fn no_exclusive_writer_beside_an_allocation_with_unknown_writes() {
    let single = AccessMode::SingleNodeSingleWriter;
    let gone = builders::allocation(1, &builders::service("gone", 1), builders::node(1).id);
    let snapshot = snapshot([
        stored(volume(1, &[single])),
        (Key::Alloc(gone.id), Entity::Alloc(Box::new(gone))),
    ]);
    let mut asks = asks(|ask| ask.access_mode = Some(single));
    asks.resolve(&snapshot);
    let node = builders::node(1);
    assert!(asks.is_taken(&node, 0, || VolumeWrites::on_node(&snapshot, node.id, None)));
}

#[test]
fn claims_tie_a_group_to_their_nodes_while_no_allocation_is_there() {
    let writer = [AccessMode::SingleNodeWriter];
    let (here, there) = (volume(1, &writer), volume(2, &writer));
    let mut asks = asks(|ask| ask.sticky = true);
    let job = builders::service("web", 1);
    let alloc = builders::allocation(1, &job, here.node_id);
    let volumes = [stored(here.clone()), stored(there.clone())];
    asks.resolve(&snapshot(volumes.clone()));
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
        asks.resolve(&snapshot(stored));
    };
    look(&mut asks, &claims);
    assert_eq!(asks.tied_to(|_| false), Some([here.node_id].into()));
    assert_eq!(asks.tied_to(|node| node == here.node_id), None);
    // Claims of another group, of another name, and of a volume that was replaced.
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
    // Volumes that are not sticky are not claimed.
    let plain = with(here, self::asks(|_| {}));
    assert_eq!(plain.claims(&builders::node(1), &alloc), []);
}
