//! Deletions that time out.

use std::time::Duration;

use model::{Namespace, NodePool, Timestamp, Volume, VolumeId};
use state::{Change, Entity, Key, State, Write};
use test_kit::builders;

use crate::deletions::Deletions;

const MINUTE: Duration = Duration::from_secs(60);

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_secs(1_000_000 + seconds)
}

/// A store and its leader.
struct Fixture {
    state: State,
    revision: u64,
    deletions: Deletions,
}

impl Fixture {
    fn new() -> Self {
        Self {
            state: State::default(),
            revision: 0,
            deletions: Deletions::new(MINUTE),
        }
    }

    fn put(&mut self, key: Key, entity: Entity) {
        self.revision += 1;
        let change = Change::Put {
            key,
            entity,
            create_index: self.revision,
            modify_index: self.revision,
        };
        self.state.apply(self.revision, [change]);
    }

    fn put_pool(&mut self, deleting: bool) {
        let pool = NodePool {
            deleting,
            ..NodePool::named("gpu")
        };
        self.put(
            Key::NodePool("gpu".to_owned()),
            Entity::NodePool(Box::new(pool)),
        );
    }

    fn expired(&mut self, seconds: u64) -> Vec<Write> {
        self.deletions.expired(at(seconds), &self.state.snapshot())
    }
}

#[test]
fn a_mark_is_removed_after_the_timeout() {
    let mut fixture = Fixture::new();
    fixture.put_pool(true);
    assert!(fixture.expired(0).is_empty());
    assert!(fixture.expired(59).is_empty());
    let over = fixture.expired(60);
    let pool = NodePool::named("gpu");
    let expected = Write::Update {
        key: Key::NodePool("gpu".to_owned()),
        modify_index: 1,
        entity: Entity::NodePool(Box::new(pool)),
    };
    assert_eq!(over, std::slice::from_ref(&expected));
    assert_eq!(fixture.expired(61), [expected], "until it is written");
    fixture.put_pool(false);
    assert!(fixture.expired(200).is_empty());
}

#[test]
fn a_second_deletion_has_its_own_timeout() {
    let mut fixture = Fixture::new();
    fixture.put_pool(true);
    fixture.expired(0);
    fixture.put_pool(false);
    fixture.put_pool(true);
    assert!(fixture.expired(60).is_empty(), "another mark");
    assert_eq!(fixture.expired(120).len(), 1);
    // Another leader has not seen when it was made.
    fixture.deletions = Deletions::new(MINUTE);
    assert!(fixture.expired(130).is_empty());
    assert_eq!(fixture.expired(190).len(), 1);
}

#[test]
fn marks_of_every_kind_of_object_time_out() {
    let mut fixture = Fixture::new();
    fixture.put_pool(true);
    let namespace = Namespace {
        name: "team".to_owned(),
        deleting: true,
        ..Namespace::default()
    };
    let key = Key::Namespace("team".to_owned());
    fixture.put(key, Entity::Namespace(Box::new(namespace)));
    let mut volume = Volume {
        namespace: "default".to_owned(),
        name: "data".to_owned(),
        node_id: builders::node(1).id,
        id: VolumeId::from_random(2),
        host_path: "/srv/data".to_owned(),
        capabilities: Vec::new(),
        deleting: true,
        create_time: at(0),
        modify_time: at(0),
    };
    let key = Key::Volume(volume.key());
    fixture.put(key.clone(), Entity::Volume(Box::new(volume.clone())));
    fixture.expired(0);
    let over = fixture.expired(60);
    assert_eq!(over.len(), 3);
    volume.deleting = false;
    let back = over.iter().find(|back| *back.key() == key).unwrap();
    assert_eq!(back.entity(), Some(&Entity::Volume(Box::new(volume))));
}
