//! Conditional writes of borrowed objects, for tests that store them.

use model::{
    AllocClient, Allocation, Deployment, Evaluation, Job, LeaderInfo, Namespace, Node, NodePool,
    PeriodicLaunch, SchedulerConfiguration,
};
use state::{Entity, Key, Write};

/// An object that can be stored under a key.
pub trait Storable {
    fn entity(&self, key: &Key) -> Entity;
}

impl Storable for Entity {
    fn entity(&self, _: &Key) -> Entity {
        self.clone()
    }
}

impl Storable for Job {
    fn entity(&self, key: &Key) -> Entity {
        let job = Box::new(self.clone());
        match key {
            Key::JobVersion(..) => Entity::JobVersion(job),
            _ => Entity::Job(job),
        }
    }
}

impl Storable for LeaderInfo {
    fn entity(&self, _: &Key) -> Entity {
        Entity::Election(self.clone())
    }
}

impl Storable for PeriodicLaunch {
    fn entity(&self, _: &Key) -> Entity {
        Entity::PeriodicLaunch(self.clone())
    }
}

macro_rules! storable {
    ($($variant:ident($noun:ty)),*) => {
        $(impl Storable for $noun {
            fn entity(&self, _: &Key) -> Entity {
                Entity::$variant(Box::new(self.clone()))
            }
        })*
    };
}

storable!(
    Eval(Evaluation),
    Alloc(Allocation),
    AllocClient(AllocClient),
    Node(Node),
    Deployment(Deployment),
    SchedulerConfig(SchedulerConfiguration),
    NodePool(NodePool),
    Namespace(Namespace)
);

/// Stores a new object.
pub fn create(key: &Key, object: &impl Storable) -> Write {
    Write::Create {
        key: key.clone(),
        entity: object.entity(key),
    }
}

/// Replaces an object last changed at `modify_index`.
pub fn update(key: &Key, modify_index: u64, object: &impl Storable) -> Write {
    Write::Update {
        key: key.clone(),
        modify_index,
        entity: object.entity(key),
    }
}

/// Deletes an object last changed at `modify_index`.
pub fn delete(key: &Key, modify_index: u64) -> Write {
    Write::Delete {
        key: key.clone(),
        modify_index,
    }
}

/// Requires that a key is unchanged since `modify_index`.
pub fn require_unchanged(key: &Key, modify_index: u64) -> Write {
    Write::RequireUnchanged {
        key: key.clone(),
        modify_index,
    }
}

/// Requires that a key does not exist.
pub fn require_absent(key: &Key) -> Write {
    Write::RequireAbsent { key: key.clone() }
}
