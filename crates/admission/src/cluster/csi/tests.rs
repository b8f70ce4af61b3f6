//! Registration, attachments and their end, step by step.

use std::time::Duration;

use model::csi::{AttachmentState, CsiControllerInfo, CsiNodeInfo, CsiPluginInfo};
use model::job::{VolumeRequest, VolumeType};
use model::{
    AccessMode, AllocId, AttachmentMode, Capability, ClientStatus, CsiAttachment, CsiAttachmentKey,
    CsiVolume, Job, JobType, Node, Timestamp,
};
use state::{Entity, Key, Write};
use test_kit::{Stored, builders};

use super::detach::{self, CALL_TIME};
use super::register::{Context, register};
use super::{CsiRefusal, controller, deregister};
use crate::cluster::change::VolumeRegistration;
use crate::cluster::deletion::Deletion;
use crate::nodes::csi::{self, Attachment, MountsRefusal, Progress};

const NOW: Timestamp = Timestamp(1_000_000_000_000);

fn volume(mode: AccessMode) -> CsiVolume {
    CsiVolume {
        namespace: "default".into(),
        id: "data".into(),
        external_id: "vol-1".into(),
        plugin_id: "ebs".into(),
        capabilities: vec![Capability {
            access_mode: mode,
            attachment_mode: AttachmentMode::FileSystem,
        }],
        ..CsiVolume::default()
    }
}

/// A node whose plugin attaches volumes.
fn node(number: u128) -> Node {
    let mut node = builders::node(number);
    let info = CsiPluginInfo {
        healthy: true,
        needs_controller: true,
        controller: Some(CsiControllerInfo {
            attaches: true,
            creates: true,
            ..CsiControllerInfo::default()
        }),
        node: Some(CsiNodeInfo {
            node_id: format!("i-{number}"),
            ..CsiNodeInfo::default()
        }),
        ..CsiPluginInfo::default()
    };
    node.csi_nodes.insert("ebs".into(), info.clone());
    node.csi_controllers.insert("ebs".into(), info);
    node
}

fn job(id: &str, mode: AccessMode) -> Job {
    let ask = VolumeRequest {
        volume_type: VolumeType::Csi,
        source: "data".into(),
        read_only: mode.is_reader_only(),
        sticky: false,
        per_alloc: false,
        access_mode: Some(mode),
        attachment_mode: Some(AttachmentMode::FileSystem),
        mount_options: Default::default(),
    };
    let mut job = builders::service(id, 1);
    job.task_groups[0].volumes.insert("disk".into(), ask);
    job
}

struct Fixture {
    stored: Stored,
    nodes: [Node; 2],
    now: Timestamp,
}

impl Fixture {
    fn new(mode: AccessMode) -> Self {
        let mut stored = Stored::default();
        let nodes = [node(1), node(2)];
        for node in &nodes {
            stored.put_node(node);
        }
        let volume = volume(mode);
        let entity = Entity::CsiVolume(Box::new(volume.clone()));
        stored.put(Key::CsiVolume(volume.key()), entity);
        Self {
            stored,
            nodes,
            now: NOW,
        }
    }

    fn place(&mut self, number: u128, node: usize) -> AllocId {
        let modes = volume(AccessMode::SingleNodeWriter);
        let snapshot = self.stored.snapshot();
        let stored = snapshot.csi_volume(&modes.key()).unwrap();
        let mode = stored.value.capabilities[0].access_mode;
        let job = job("web", mode);
        self.stored.put_job(&job);
        let alloc = builders::allocation(number, &job, self.nodes[node].id);
        self.stored.put_alloc(&alloc);
        alloc.id
    }

    fn key(&self, node: usize) -> CsiAttachmentKey {
        CsiAttachmentKey {
            volume: volume(AccessMode::SingleNodeWriter).key(),
            node_id: self.nodes[node].id,
        }
    }

    fn progress(&self, alloc_id: AllocId, node: usize) -> Progress {
        let snapshot = self.stored.snapshot();
        let node_id = self.nodes[node].id;
        let mounts = csi::mounts(&snapshot, node_id, alloc_id, self.now).unwrap();
        let [mount] = <[_; 1]>::try_from(mounts).unwrap();
        assert_eq!(mount.name, "disk");
        mount.progress
    }

    fn waits(&self, alloc_id: AllocId, node: usize) -> String {
        match self.progress(alloc_id, node) {
            Progress::Waiting(reason) => reason,
            other => panic!("{other:?}"),
        }
    }

    fn begin(&mut self, alloc_id: AllocId, node: usize) -> Attachment {
        let Progress::Attach(attachment) = self.progress(alloc_id, node) else {
            panic!("it is to be attached");
        };
        self.stored.commit(&attachment.writes);
        *attachment
    }

    fn attach(&mut self, alloc_id: AllocId, node: usize) {
        let attachment = self.begin(alloc_id, node);
        let context = [("device".to_owned(), "sdb".to_owned())].into();
        let snapshot = self.stored.snapshot();
        let write = csi::concluded(&snapshot, &attachment, Ok(context), self.now).unwrap();
        self.stored.commit(&[write]);
    }

    fn end(&mut self, alloc_id: AllocId) {
        self.stored.put_status(alloc_id, ClientStatus::Complete);
    }

    fn due(&self) -> Vec<detach::Detachment> {
        detach::due(&self.stored.snapshot(), self.now, 9)
    }

    fn state(&self, node: usize) -> Option<AttachmentState> {
        let snapshot = self.stored.snapshot();
        let stored = snapshot.csi_attachment(&self.key(node))?;
        Some(stored.value.state)
    }
}

#[test]
fn a_volume_is_attached_before_it_is_mounted_and_detached_after_its_last_user() {
    let mut fixture = Fixture::new(AccessMode::SingleNodeWriter);
    let one = fixture.place(1, 0);
    let attachment = fixture.begin(one, 0);
    assert_eq!(attachment.attachment.external_node_id, "i-1");
    assert_eq!(attachment.attachment.external_id, "vol-1");
    // Another gateway leaves it to the first, until that must have ended.
    assert!(fixture.waits(one, 0).contains("it is being attached"));
    let stolen = fixture.now;
    fixture.now = fixture.now.plus(CALL_TIME);
    let again = fixture.begin(one, 0);
    // The first one comes late.
    let snapshot = fixture.stored.snapshot();
    let late = csi::concluded(&snapshot, &attachment, Ok(Default::default()), stolen);
    assert_eq!(late, None);
    let context = [("device".to_owned(), "sdb".to_owned())].into();
    let write = csi::concluded(&snapshot, &again, Ok(context), fixture.now).unwrap();
    fixture.stored.commit(&[write]);
    let Progress::Ready(context) = fixture.progress(one, 0) else {
        panic!("it is attached");
    };
    assert_eq!(context["device"], "sdb");
    assert!(fixture.due().is_empty(), "it is used");

    fixture.end(one);
    let [detachment] = <[_; 1]>::try_from(fixture.due()).unwrap();
    fixture
        .stored
        .commit(std::slice::from_ref(&detachment.write));
    assert_eq!(fixture.state(0), Some(AttachmentState::Detaching));
    assert!(fixture.due().is_empty(), "a call is in progress");
    let snapshot = fixture.stored.snapshot();
    let write = detach::concluded(&snapshot, &detachment, Ok(()), fixture.now).unwrap();
    fixture.stored.commit(&[write]);
    assert_eq!(fixture.state(0), None);
}

#[test]
fn a_volume_for_one_node_is_attached_to_the_next_node_once_the_first_has_let_go() {
    let mut fixture = Fixture::new(AccessMode::SingleNodeWriter);
    let one = fixture.place(1, 0);
    fixture.attach(one, 0);
    let two = fixture.place(2, 1);
    let reason = fixture.waits(two, 1);
    assert!(reason.contains(&format!("allocation {one}")), "{reason}");
    fixture.end(one);
    let reason = fixture.waits(two, 1);
    assert!(reason.contains("it is still attached to node"), "{reason}");
    let [detachment] = <[_; 1]>::try_from(fixture.due()).unwrap();
    fixture
        .stored
        .commit(std::slice::from_ref(&detachment.write));
    // The call fails, and is made again after a pause that grows.
    let mut pauses = Vec::new();
    let mut current = detachment;
    for _ in 0..3 {
        let snapshot = fixture.stored.snapshot();
        let failed = Err("busy".to_owned());
        let write = detach::concluded(&snapshot, &current, failed, fixture.now).unwrap();
        fixture.stored.commit(&[write]);
        let reason = fixture.waits(two, 1);
        assert!(reason.contains("detaching"), "{reason}");
        let began = fixture.now;
        while fixture.due().is_empty() {
            fixture.now = fixture.now.plus(Duration::from_secs(1));
        }
        pauses.push(fixture.now.since(began).as_secs());
        [current] = <[_; 1]>::try_from(fixture.due()).unwrap();
        fixture.stored.commit(std::slice::from_ref(&current.write));
    }
    assert_eq!(pauses, [1, 2, 4]);
    let snapshot = fixture.stored.snapshot();
    let write = detach::concluded(&snapshot, &current, Ok(()), fixture.now).unwrap();
    fixture.stored.commit(&[write]);
    fixture.attach(two, 1);
    assert!(matches!(fixture.progress(two, 1), Progress::Ready(_)));
}

#[test]
fn an_allocation_takes_an_attachment_before_a_detachment_that_was_decided_on() {
    let mut fixture = Fixture::new(AccessMode::SingleNodeWriter);
    let one = fixture.place(1, 0);
    fixture.attach(one, 0);
    fixture.end(one);
    let [detachment] = <[_; 1]>::try_from(fixture.due()).unwrap();
    let two = fixture.place(2, 0);
    let Progress::Take(write) = fixture.progress(two, 0) else {
        panic!("it is attached to the node");
    };
    // Both compare the same revision, so one of them conflicts.
    assert_eq!(write.key(), detachment.write.key());
    assert_eq!(write.expected_index(), detachment.write.expected_index());
    fixture.stored.commit(&[*write]);
    assert!(matches!(fixture.progress(two, 0), Progress::Ready(_)));
    assert!(fixture.due().is_empty());
}

#[test]
fn attachments_of_a_volume_to_two_nodes_compare_the_same_revision() {
    let mut fixture = Fixture::new(AccessMode::MultiNodeSingleWriter);
    let one = fixture.place(1, 0);
    let Progress::Attach(first) = fixture.progress(one, 0) else {
        panic!("it is to be attached");
    };
    fixture.end(one);
    let two = fixture.place(2, 1);
    let Progress::Attach(second) = fixture.progress(two, 1) else {
        panic!("it is to be attached");
    };
    let of_volume = |attachment: &Attachment| {
        let writes = attachment.writes.iter();
        let index = writes.filter(|write| matches!(write.key(), Key::CsiVolume(_)));
        index.map(Write::expected_index).collect::<Vec<_>>()
    };
    assert_eq!(of_volume(&first), of_volume(&second));
    assert_eq!(of_volume(&first).len(), 1);
}

#[test]
fn a_node_learns_of_its_own_live_allocations_alone() {
    let mut fixture = Fixture::new(AccessMode::SingleNodeWriter);
    let one = fixture.place(1, 0);
    let (mine, other) = (fixture.nodes[0].id, fixture.nodes[1].id);
    let ask = |fixture: &Fixture, node_id| {
        csi::mounts(&fixture.stored.snapshot(), node_id, one, NOW).map(drop)
    };
    let refusal = MountsRefusal::NotOwn {
        alloc_id: one,
        node_id: other,
    };
    assert_eq!(ask(&fixture, other), Err(refusal));
    assert_eq!(ask(&fixture, mine), Ok(()));
    fixture.end(one);
    assert_eq!(ask(&fixture, mine), Err(MountsRefusal::Ended(one)));
}

#[test]
fn an_operator_detaches_what_no_allocation_on_the_node_uses() {
    let mut fixture = Fixture::new(AccessMode::SingleNodeWriter);
    let key = fixture.key(0);
    assert_eq!(detach::request(&fixture.stored.snapshot(), &key), Ok(None));
    let one = fixture.place(1, 0);
    fixture.attach(one, 0);
    let refusal = detach::request(&fixture.stored.snapshot(), &key).unwrap_err();
    assert!(matches!(refusal, CsiRefusal::InUse { .. }), "{refusal}");
    fixture.end(one);
    let write = detach::request(&fixture.stored.snapshot(), &key).unwrap();
    fixture.stored.commit(&[write.unwrap()]);
    assert_eq!(fixture.state(0), Some(AttachmentState::Detaching));
    assert_eq!(fixture.due().len(), 1);
}

#[test]
fn a_volume_is_deregistered_once_nothing_uses_it_and_it_is_detached() {
    let mut fixture = Fixture::new(AccessMode::SingleNodeWriter);
    let key = fixture.key(0).volume;
    let one = fixture.place(1, 0);
    fixture.attach(one, 0);
    let ask =
        |fixture: &Fixture, force| deregister::deregister(&fixture.stored.snapshot(), &key, force);
    let refusal = ask(&fixture, true).unwrap_err().to_string();
    assert!(
        refusal.contains(&format!("volume in use: data, by allocations {one}")),
        "{refusal}"
    );
    fixture.end(one);
    let refusal = ask(&fixture, false).unwrap_err();
    assert!(matches!(refusal, CsiRefusal::Attached { .. }), "{refusal}");
    let Some(Deletion::Mark(write)) = ask(&fixture, true).unwrap() else {
        panic!("it is to be marked");
    };
    fixture.stored.commit(&[write]);
    let Some(Deletion::Delete(writes)) = ask(&fixture, true).unwrap() else {
        panic!("nothing uses it");
    };
    assert_eq!(writes.len(), 2, "the attachment goes as well");
    fixture.stored.commit(&writes);
    assert_eq!(ask(&fixture, true), Ok(None));
}

#[test]
fn a_volume_is_deleted_between_its_mark_and_its_deregistration() {
    let mut fixture = Fixture::new(AccessMode::SingleNodeWriter);
    let key = fixture.key(0).volume;
    let ask = |fixture: &Fixture, released: Option<Result<(), CsiRefusal>>| {
        deregister::delete(&fixture.stored.snapshot(), &key, released)
    };
    let refused = || CsiRefusal::NoVolume("vol-1".into());
    let Ok(Some(Deletion::Mark(write))) = ask(&fixture, None) else {
        panic!("the storage system keeps it until it is marked");
    };
    fixture.stored.commit(&[write]);
    // As after the end of a gateway between mark and call.
    let again = ask(&fixture, None);
    assert!(matches!(again, Ok(Some(Deletion::Mark(_)))), "{again:?}");
    let Ok(Some(Deletion::TakeBack { refusal, .. })) = ask(&fixture, Some(Err(refused()))) else {
        panic!("the storage system refuses");
    };
    assert_eq!(refusal, refused());
    let used = fixture.place(1, 0);
    let Ok(Some(Deletion::TakeBack { write, refusal })) = ask(&fixture, Some(Ok(()))) else {
        panic!("an allocation uses it");
    };
    assert!(matches!(refusal, CsiRefusal::InUse { .. }), "{refusal}");
    fixture.stored.commit(&[write]);
    assert!(matches!(ask(&fixture, None), Err(CsiRefusal::InUse { .. })));
    fixture.end(used);
    let Ok(Some(Deletion::Mark(write))) = ask(&fixture, None) else {
        panic!("it is to be marked anew");
    };
    fixture.stored.commit(&[write]);
    let Ok(Some(Deletion::Delete(writes))) = ask(&fixture, Some(Ok(()))) else {
        panic!("nothing uses it");
    };
    fixture.stored.commit(&writes);
    assert_eq!(ask(&fixture, None), Ok(None));
}

#[test]
fn a_storage_system_deletes_a_volume_only_while_it_is_marked_and_unused() {
    let mut fixture = Fixture::new(AccessMode::SingleNodeWriter);
    let key = fixture.key(0).volume;
    let is_releasable =
        |fixture: &Fixture| deregister::releasable(&fixture.stored.snapshot(), &key).is_some();
    assert!(!is_releasable(&fixture), "it is not marked");
    let mark = |fixture: &mut Fixture| match deregister::delete::<CsiRefusal>(
        &fixture.stored.snapshot(),
        &key,
        None,
    ) {
        Ok(Some(Deletion::Mark(write))) => fixture.stored.commit(&[write]),
        other => panic!("{other:?}"),
    };
    mark(&mut fixture);
    assert!(is_releasable(&fixture));
    let marked = fixture.stored.snapshot();
    let context = Context {
        now: NOW,
        trace_parent: String::new(),
    };
    let VolumeRegistration::Write { writes, .. } = register(
        &marked,
        &volume(AccessMode::SingleNodeWriter),
        &context,
        || model::EvalId::from_random(1),
    )
    .unwrap() else {
        panic!("the mark is to be removed");
    };
    fixture.stored.commit(&writes);
    assert!(!is_releasable(&fixture), "it was registered again");
    mark(&mut fixture);
    fixture.place(1, 0);
    assert!(!is_releasable(&fixture), "an allocation uses it");
}

#[test]
fn a_registered_volume_keeps_its_plugin_and_the_capabilities_in_use() {
    let mut fixture = Fixture::new(AccessMode::SingleNodeWriter);
    let context = Context {
        now: NOW,
        trace_parent: String::new(),
    };
    let ask = |fixture: &Fixture, wanted: &CsiVolume| {
        let mut number = 0;
        register(&fixture.stored.snapshot(), wanted, &context, || {
            number += 1;
            model::EvalId::from_random(number)
        })
    };
    let wanted = volume(AccessMode::SingleNodeWriter);
    let other = CsiVolume {
        plugin_id: "nfs".into(),
        ..wanted.clone()
    };
    let refusal = ask(&fixture, &other).unwrap_err().to_string();
    assert!(refusal.contains("deregister it first"), "{refusal}");
    let VolumeRegistration::Write { volume: kept, .. } = ask(
        &fixture,
        &CsiVolume {
            name: "Data".into(),
            ..wanted.clone()
        },
    )
    .unwrap() else {
        panic!("its name is new");
    };
    assert_eq!(kept.name, "Data");
    let narrower = volume(AccessMode::MultiNodeReaderOnly);
    ask(&fixture, &narrower).unwrap();
    fixture.place(1, 0);
    let refusal = ask(&fixture, &narrower).unwrap_err().to_string();
    assert!(refusal.contains("allocations use it"), "{refusal}");
    // A system job that waits for it is evaluated.
    let mut every = job("every", AccessMode::SingleNodeWriter);
    every.job_type = JobType::System;
    fixture.stored.put_job(&every);
    let new = CsiVolume {
        name: "x".into(),
        ..wanted
    };
    let VolumeRegistration::Write { writes, .. } = ask(&fixture, &new).unwrap() else {
        panic!("its name is new");
    };
    assert!(
        writes
            .iter()
            .any(|write| matches!(write.key(), Key::Eval(_)))
    );
}

#[test]
fn a_failed_attachment_is_made_by_the_next_controller() {
    let mut fixture = Fixture::new(AccessMode::SingleNodeWriter);
    let one = fixture.place(1, 0);
    let first = fixture.begin(one, 0);
    let snapshot = fixture.stored.snapshot();
    let write = csi::concluded(&snapshot, &first, Err("busy".to_owned()), fixture.now);
    fixture.stored.commit(&[write.unwrap()]);
    let second = fixture.begin(one, 0);
    assert_ne!(second.node.id, first.node.id);
    assert_eq!(second.attachment.error, "busy");
    // Its allocation ends meanwhile: what the call may have attached is detached after its time.
    fixture.end(one);
    assert!(fixture.due().is_empty());
    fixture.now = fixture.now.plus(CALL_TIME);
    let due: Vec<CsiAttachment> = fixture.due().into_iter().map(|it| it.attachment).collect();
    assert_eq!(due.len(), 1);
    assert_eq!(due[0].state, AttachmentState::Detaching);
}

#[test]
fn a_creation_is_repeated_while_the_user_wants_the_same() {
    let wanted = volume(AccessMode::SingleNodeWriter);
    let stored = CsiVolume {
        external_id: "vol-2".into(),
        capacity_bytes: 1 << 30,
        attach_count: 3,
        create_time: NOW,
        modify_time: NOW,
        ..wanted.clone()
    };
    assert!(controller::is_repeated(&wanted, &stored));
    let other = CsiVolume {
        capacity_min_bytes: 1 << 31,
        ..wanted
    };
    assert!(!controller::is_repeated(&other, &stored));
}
