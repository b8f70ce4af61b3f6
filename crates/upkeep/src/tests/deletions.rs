//! Marks that nobody comes back to.

use std::time::Duration;

use model::{Namespace, NodePool, Timestamp, Volume, VolumeId};
use state::{Change, Entity, Key, State};
use test_kit::builders;

use crate::deletions::{Deletions, TakeBack};

const MINUTE: Duration = Duration::from_secs(60);

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_secs(1_000_000 + seconds)
}

/// A store, and whoever leads.
struct Site {
    state: State,
    revision: u64,
    deletions: Deletions,
}

impl Site {
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

    fn look(&mut self, seconds: u64) -> Vec<TakeBack> {
        self.deletions.look(at(seconds), &self.state.snapshot())
    }
}

#[test]
fn a_mark_is_taken_back_once_its_time_is_over() {
    let mut site = Site::new();
    site.put_pool(true);
    assert!(site.look(0).is_empty());
    assert!(site.look(59).is_empty());
    let over = site.look(60);
    let pool = NodePool::named("gpu");
    let expected = TakeBack {
        key: Key::NodePool("gpu".to_owned()),
        modify_index: 1,
        entity: Entity::NodePool(Box::new(pool)),
    };
    assert_eq!(over, std::slice::from_ref(&expected));
    assert_eq!(site.look(61), [expected], "until it is written");
    site.put_pool(false);
    assert!(site.look(200).is_empty());
}

#[test]
fn whoever_deletes_it_again_has_all_the_time_again() {
    let mut site = Site::new();
    site.put_pool(true);
    site.look(0);
    site.put_pool(false);
    site.put_pool(true);
    assert!(site.look(60).is_empty(), "another mark");
    assert_eq!(site.look(120).len(), 1);
    // Another leader has not seen when it was made.
    site.deletions = Deletions::new(MINUTE);
    assert!(site.look(130).is_empty());
    assert_eq!(site.look(190).len(), 1);
}

#[test]
fn everything_that_is_marked_before_it_is_deleted_is_looked_at() {
    let mut site = Site::new();
    site.put_pool(true);
    let namespace = Namespace {
        name: "team".to_owned(),
        deleting: true,
        ..Namespace::default()
    };
    let key = Key::Namespace("team".to_owned());
    site.put(key, Entity::Namespace(Box::new(namespace)));
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
    site.put(key.clone(), Entity::Volume(Box::new(volume.clone())));
    site.look(0);
    let over = site.look(60);
    assert_eq!(over.len(), 3);
    volume.deleting = false;
    let back = over.iter().find(|back| back.key == key).unwrap();
    assert_eq!(back.entity, Entity::Volume(Box::new(volume)));
}
