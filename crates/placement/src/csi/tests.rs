//! Storage systems' volumes on nodes: every reason, in the order of the checks.

use model::csi::{CsiControllerInfo, CsiNodeInfo, CsiPluginInfo};
use model::job::{VolumeRequest, VolumeType};
use model::{
    AccessMode, AllocId, Allocation, AttachmentMode, Capability, ClientStatus, CsiAttachment,
    CsiAttachmentKey, CsiVolume, CsiVolumeKey, Job, Node,
};
use state::{Entity, Key};
use test_kit::{Stored, builders};

use super::holders::{self, Holder, earlier_holder};
use super::*;

fn capability(access_mode: AccessMode) -> Capability {
    Capability {
        access_mode,
        attachment_mode: AttachmentMode::FileSystem,
    }
}

/// A node with a healthy plugin.
fn node(number: u128) -> Node {
    let mut node = builders::node(number);
    let info = CsiPluginInfo {
        healthy: true,
        node: Some(CsiNodeInfo::default()),
        ..CsiPluginInfo::default()
    };
    node.csi_nodes.insert("ebs".into(), info);
    node
}

fn volume(modes: &[AccessMode]) -> CsiVolume {
    CsiVolume {
        namespace: "default".into(),
        id: "data".into(),
        external_id: "vol-1".into(),
        plugin_id: "ebs".into(),
        capabilities: modes.iter().map(|mode| capability(*mode)).collect(),
        ..CsiVolume::default()
    }
}

fn put(stored: &mut Stored, volume: &CsiVolume) {
    let entity = Entity::CsiVolume(Box::new(volume.clone()));
    stored.put(Key::CsiVolume(volume.key()), entity);
}

fn job(id: &str, mode: AccessMode, edit: impl FnOnce(&mut VolumeRequest)) -> Job {
    let mut ask = VolumeRequest {
        volume_type: VolumeType::Csi,
        source: "data".into(),
        read_only: mode.is_reader_only(),
        sticky: false,
        per_alloc: false,
        access_mode: Some(mode),
        attachment_mode: Some(AttachmentMode::FileSystem),
        mount_options: Default::default(),
    };
    edit(&mut ask);
    let mut job = builders::service(id, 1);
    job.task_groups[0].volumes.insert("data".into(), ask);
    job
}

fn place(stored: &mut Stored, number: u128, job: &Job, node: &Node) -> Allocation {
    stored.put_job(job);
    let alloc = builders::allocation(number, job, node.id);
    stored.put_alloc(&alloc);
    alloc
}

/// The answer of `node` for the job's first allocation.
fn ask(stored: &Stored, job: &Job, node: &Node) -> Result<(), String> {
    let mut asks = CsiAsks::of_group(job, &job.task_groups[0]);
    asks.resolve(&stored.snapshot());
    let shared = asks.check_shared(node);
    let own = asks.check(node, 0, &[], |_| Vec::new());
    if !asks.differ_by_alloc() {
        assert_eq!(shared, own);
    }
    own
}

const WRITER: AccessMode = AccessMode::SingleNodeWriter;

#[test]
fn a_node_needs_a_healthy_plugin_that_reaches_the_volume() {
    let mut stored = Stored::default();
    let healthy = node(1);
    let web = job("web", WRITER, |_| {});
    stored.put_node(&healthy);
    let missing = "missing CSI volume(s) data".to_owned();
    assert_eq!(ask(&stored, &web, &healthy), Err(missing));
    let mut data = volume(&[WRITER]);
    put(&mut stored, &data);
    assert_eq!(ask(&stored, &web, &healthy), Ok(()));
    let bare = builders::node(2);
    let reason = format!("CSI plugin ebs is missing from client {}", bare.id);
    assert_eq!(ask(&stored, &web, &bare), Err(reason));
    let mut broken = node(3);
    broken.csi_nodes.get_mut("ebs").unwrap().healthy = false;
    let reason = format!("CSI plugin ebs is unhealthy on client {}", broken.id);
    assert_eq!(ask(&stored, &web, &broken), Err(reason));
    data.topologies = vec![[("zone".to_owned(), "a".to_owned())].into()];
    put(&mut stored, &data);
    let reason = "did not meet topology requirement".to_owned();
    assert_eq!(ask(&stored, &web, &healthy), Err(reason));
    let mut near = node(1);
    let facts = near
        .csi_nodes
        .get_mut("ebs")
        .unwrap()
        .node
        .as_mut()
        .unwrap();
    facts.topology = data.topologies[0].clone();
    assert_eq!(ask(&stored, &web, &near), Ok(()));
    data.deleting = true;
    put(&mut stored, &data);
    let reason = "CSI volume data is unschedulable or is read-only".to_owned();
    assert_eq!(ask(&stored, &web, &near), Err(reason));
}

#[test]
fn a_plugin_that_needs_a_controller_is_of_no_use_without_one() {
    let mut stored = Stored::default();
    let mut one = node(1);
    one.csi_nodes.get_mut("ebs").unwrap().needs_controller = true;
    stored.put_node(&one);
    put(
        &mut stored,
        &volume(&[WRITER, AccessMode::MultiNodeReaderOnly]),
    );
    let web = job("web", WRITER, |_| {});
    let reason = "CSI volume data is unschedulable or is read-only".to_owned();
    assert_eq!(ask(&stored, &web, &one), Err(reason));
    let reader = job("web", AccessMode::MultiNodeReaderOnly, |_| {});
    let reason =
        "CSI volume data is unschedulable or has exhausted its available reader claims".to_owned();
    assert_eq!(ask(&stored, &reader, &one), Err(reason));
    let controller = CsiPluginInfo {
        healthy: true,
        controller: Some(CsiControllerInfo {
            attaches: true,
            ..CsiControllerInfo::default()
        }),
        ..CsiPluginInfo::default()
    };
    let mut two = builders::node(2);
    two.csi_controllers.insert("ebs".into(), controller);
    stored.put_node(&two);
    assert_eq!(ask(&stored, &web, &one), Ok(()));
    assert_eq!(plugin::attaches(&stored.snapshot(), "ebs"), Some(true));
}

#[test]
fn only_capabilities_of_the_volume_are_given() {
    let mut stored = Stored::default();
    let one = node(1);
    stored.put_node(&one);
    put(&mut stored, &volume(&[AccessMode::MultiNodeReaderOnly]));
    let writer = job("web", WRITER, |_| {});
    let reason = "CSI volume data is unschedulable or is read-only".to_owned();
    assert_eq!(ask(&stored, &writer, &one), Err(reason));
    let reader = job("web", AccessMode::MultiNodeReaderOnly, |_| {});
    assert_eq!(ask(&stored, &reader, &one), Ok(()));
}

#[test]
fn scenario_112_a_single_writer_admits_its_own_job_and_no_other_until_it_is_released() {
    let mut stored = Stored::default();
    let one = node(1);
    stored.put_node(&one);
    put(&mut stored, &volume(&[WRITER]));
    let web = job("web", WRITER, |_| {});
    let holder = place(&mut stored, 1, &web, &one);
    assert_eq!(ask(&stored, &web, &one), Ok(()), "the same job");
    let other = job("other", WRITER, |_| {});
    let reason = "CSI volume data has exhausted its available writer claims".to_owned();
    assert_eq!(ask(&stored, &other, &one), Err(reason));
    // It has ended, and its attachment is not undone yet.
    stored.put_status(holder.id, ClientStatus::Complete);
    assert_eq!(ask(&stored, &other, &one), Ok(()));
    let key = CsiAttachmentKey {
        volume: CsiVolumeKey::new("default", "data"),
        node_id: one.id,
    };
    let attachment = CsiAttachment {
        alloc_id: holder.id,
        ..CsiAttachment::default()
    };
    let entity = Entity::CsiAttachment(Box::new(attachment));
    stored.put(Key::CsiAttachment(key.clone()), entity);
    assert_eq!(ask(&stored, &other, &one), Ok(()));
    // It was garbage collected.
    stored.delete(Key::Alloc(holder.id));
    stored.delete(Key::AllocClient(holder.id));
    let reason = format!(
        "CSI volume data has exhausted its available writer claims and is claimed by a garbage \
         collected allocation {}; waiting for claim to be released",
        holder.id
    );
    assert_eq!(ask(&stored, &other, &one), Err(reason));
    stored.delete(Key::CsiAttachment(key));
    assert_eq!(ask(&stored, &other, &one), Ok(()));
}

#[test]
fn a_volume_of_one_node_at_a_time_stays_with_its_holder() {
    let mut stored = Stored::default();
    let (one, two) = (node(1), node(2));
    stored.put_node(&one);
    stored.put_node(&two);
    let reading = AccessMode::SingleNodeReaderOnly;
    put(
        &mut stored,
        &volume(&[reading, AccessMode::MultiNodeMultiWriter]),
    );
    let web = job("web", reading, |_| {});
    place(&mut stored, 1, &web, &one);
    let other = job("other", reading, |_| {});
    assert_eq!(ask(&stored, &other, &one), Ok(()));
    let reason =
        "CSI volume data is unschedulable or has exhausted its available reader claims".to_owned();
    assert_eq!(ask(&stored, &other, &two), Err(reason));
    let many = job("many", AccessMode::MultiNodeMultiWriter, |_| {});
    assert_eq!(ask(&stored, &many, &two), Ok(()));
}

#[test]
fn a_plugin_takes_as_many_volumes_as_it_says_and_a_shared_one_once() {
    let mut stored = Stored::default();
    let mut one = node(1);
    let facts = one.csi_nodes.get_mut("ebs").unwrap().node.as_mut().unwrap();
    facts.max_volumes = 1;
    stored.put_node(&one);
    let shared = AccessMode::MultiNodeMultiWriter;
    for id in ["data", "logs"] {
        let volume = CsiVolume {
            id: id.into(),
            ..volume(&[shared])
        };
        put(&mut stored, &volume);
    }
    place(&mut stored, 1, &job("web", shared, |_| {}), &one);
    assert_eq!(ask(&stored, &job("other", shared, |_| {}), &one), Ok(()));
    let logs = job("logs", shared, |ask| ask.source = "logs".into());
    let reason = format!(
        "CSI plugin ebs has the maximum number of volumes on client {}",
        one.id
    );
    assert_eq!(ask(&stored, &logs, &one), Err(reason.clone()));
    // The volumes of the same plan count, too.
    let mut stored = Stored::default();
    stored.put_node(&one);
    for id in ["data", "logs"] {
        let volume = CsiVolume {
            id: id.into(),
            ..volume(&[shared])
        };
        put(&mut stored, &volume);
    }
    let mut asks = CsiAsks::of_group(&logs, &logs.task_groups[0]);
    asks.resolve(&stored.snapshot());
    let planned = [CsiVolumeKey::new("default", "data")];
    let checked = asks.check(&one, 0, &planned, |_| Vec::new());
    assert_eq!(checked, Err(reason));
}

#[test]
fn each_allocation_may_have_a_volume_of_its_own() {
    let mut stored = Stored::default();
    let one = node(1);
    stored.put_node(&one);
    let first = CsiVolume {
        id: "data[0]".into(),
        ..volume(&[WRITER])
    };
    put(&mut stored, &first);
    let web = job("web", WRITER, |ask| ask.per_alloc = true);
    let mut asks = CsiAsks::of_group(&web, &web.task_groups[0]);
    asks.resolve(&stored.snapshot());
    assert_eq!(asks.check_shared(&one), Ok(()));
    assert_eq!(asks.check(&one, 0, &[], |_| Vec::new()), Ok(()));
    let missing = "missing CSI volume(s) data[1]".to_owned();
    assert_eq!(asks.check(&one, 1, &[], |_| Vec::new()), Err(missing));
    place(&mut stored, 1, &web, &one);
    let snapshot = stored.snapshot();
    assert_eq!(holders::list(&snapshot, &first.key()).len(), 1);
    let other = CsiVolumeKey::new("default", "data[1]");
    assert!(holders::list(&snapshot, &other).is_empty());
}

#[test]
fn a_group_with_a_plugin_needs_a_node_that_supervises_plugins() {
    let mut provider = builders::service("plugin", 1);
    let plugin = model::CsiPluginTask::default();
    provider.task_groups[0].tasks[0].csi_plugin = Some(plugin);
    let asks = CsiAsks::of_group(&provider, &provider.task_groups[0]);
    assert!(asks.asks_nodes());
    let mut one = builders::node(1);
    assert_eq!(
        asks.check_shared(&one),
        Err("missing CSI support".to_owned())
    );
    let attribute = model::csi::CSI_ATTRIBUTE.to_owned();
    one.attributes.insert(attribute, "true".into());
    assert_eq!(asks.check_shared(&one), Ok(()));
}

#[test]
fn the_earliest_holder_goes_first() {
    let holder = |alloc: u128, node: u128, create_index, read_only| Holder {
        alloc_id: AllocId::from_random(alloc),
        job: builders::service("web", 1).key(),
        node_id: builders::node(node).id,
        read_only,
        create_index,
    };
    let (old, new) = (holder(1, 1, 5, false), holder(2, 2, 9, false));
    let all = [old.clone(), new.clone()];
    let waits =
        |mode, own: &Holder, all: &[Holder]| earlier_holder(capability(mode), own, all).is_some();
    for mode in [WRITER, AccessMode::MultiNodeSingleWriter] {
        assert!(
            waits(mode, &new, &all) && !waits(mode, &old, &all),
            "{mode:?}"
        );
    }
    assert!(!waits(AccessMode::MultiNodeMultiWriter, &new, &all));
    // On the same node they share the mount.
    let beside = holder(3, 1, 9, false);
    assert!(!waits(WRITER, &beside, &[old.clone(), beside.clone()]));
    let reader = holder(3, 2, 9, true);
    let both = [old, reader.clone()];
    assert!(!waits(AccessMode::MultiNodeSingleWriter, &reader, &both));
    assert!(waits(AccessMode::SingleNodeReaderOnly, &reader, &both));
}
