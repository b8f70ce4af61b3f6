//! The index of services by name, for the streams of nodes: the instances of each name, and the number of
//! their last change.
//!
//! One index for all streams: a change costs one look-up for each changed allocation, and each stream compares
//! the numbers of its own few names.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use model::{AllocId, DeploymentId, NodeId};
use proto::internal::v1::ServiceInstance;
use state::{Change, Key, ShownService, Snapshot};

/// Namespace and name, in lower case: names in DNS have no case.
pub type Name = (String, String);

/// All registrations that readers get.
#[derive(Debug, Default)]
pub struct ServiceIndex {
    by_name: BTreeMap<Name, Entry>,
    known: HashMap<AllocId, Known>,
    by_node: HashMap<NodeId, BTreeSet<AllocId>>,
    /// The number of the last change.
    changes: u64,
}

#[derive(Debug, Default)]
struct Entry {
    instances: BTreeMap<AllocId, Vec<ServiceInstance>>,
    /// The number of its last change.
    changed: u64,
}

/// An allocation with registrations.
#[derive(Debug)]
struct Known {
    names: BTreeSet<Name>,
    node_id: NodeId,
    /// The deployment whose promotion changes its tags.
    canary_of: Option<DeploymentId>,
}

impl ServiceIndex {
    pub fn new(snapshot: &Snapshot) -> Self {
        let mut index = Self::default();
        let all = snapshot.all_alloc_services();
        index.update(snapshot, all.map(|(id, _)| id).collect());
        index
    }

    /// Returns the number of a name's last change; 0: it has no instance.
    pub fn changed_at(&self, name: &Name) -> u64 {
        self.by_name.get(name).map_or(0, |entry| entry.changed)
    }

    /// Returns the instances of a name, ordered by allocation.
    pub fn instances(&self, name: &Name) -> Vec<ServiceInstance> {
        let entry = self.by_name.get(name);
        let instances = entry.into_iter().flat_map(|entry| entry.instances.values());
        instances.flatten().cloned().collect()
    }

    /// Returns the allocations whose registrations changes may have changed.
    pub fn affected(&self, changes: &[Change]) -> BTreeSet<AllocId> {
        let mut affected = BTreeSet::new();
        for change in changes {
            let (Change::Put { key, .. } | Change::Delete { key }) = change;
            match key {
                Key::Services(id) => {
                    affected.insert(*id);
                }
                Key::Alloc(id) | Key::AllocClient(id) if self.known.contains_key(id) => {
                    affected.insert(*id);
                }
                Key::Node(id) => affected.extend(self.by_node.get(id).into_iter().flatten()),
                Key::Deployment(id) => {
                    let canaries = self.known.iter();
                    let own = canaries.filter(|(_, known)| known.canary_of == Some(*id));
                    affected.extend(own.map(|(id, _)| *id));
                }
                _ => {}
            }
        }
        affected
    }

    /// Reads the registrations of these allocations again. Returns whether one has changed.
    pub fn update(&mut self, snapshot: &Snapshot, allocs: BTreeSet<AllocId>) -> bool {
        let before = self.changes;
        for id in allocs {
            self.update_one(snapshot, id);
        }
        self.changes != before
    }

    /// As [`Self::update`], for all allocations: the replica was read anew.
    pub fn update_all(&mut self, snapshot: &Snapshot) -> bool {
        let stored = snapshot.all_alloc_services().map(|(id, _)| id);
        let all = stored.chain(self.known.keys().copied()).collect();
        self.update(snapshot, all)
    }

    fn update_one(&mut self, snapshot: &Snapshot, id: AllocId) {
        let mut shown = BTreeMap::<Name, Vec<ServiceInstance>>::new();
        for service in snapshot.shown_services(id) {
            let name = name(&service.alloc.alloc.namespace, &service.registration.name);
            let instance = instance(snapshot, &service);
            shown.entry(name).or_default().push(instance);
        }
        let earlier = self.forget(id);
        let gone = earlier.iter().filter(|name| !shown.contains_key(*name));
        for name in gone {
            self.put(name, id, Vec::new());
        }
        self.remember(snapshot, id, shown.keys().cloned().collect());
        for (name, instances) in shown {
            self.put(&name, id, instances);
        }
    }

    fn forget(&mut self, id: AllocId) -> BTreeSet<Name> {
        let Some(known) = self.known.remove(&id) else {
            return BTreeSet::new();
        };
        if let Some(others) = self.by_node.get_mut(&known.node_id) {
            others.remove(&id);
            if others.is_empty() {
                self.by_node.remove(&known.node_id);
            }
        }
        known.names
    }

    /// Remembers what changes an allocation's registrations. Those that are hidden now, because their node is
    /// down, come back with it.
    fn remember(&mut self, snapshot: &Snapshot, id: AllocId, names: BTreeSet<Name>) {
        let Some(view) = snapshot.alloc(id) else {
            return;
        };
        if snapshot.alloc_services(id).is_none() {
            return;
        }
        let alloc = &view.alloc;
        self.by_node.entry(alloc.node_id).or_default().insert(id);
        let known = Known {
            names,
            node_id: alloc.node_id,
            canary_of: alloc.deployment_id.filter(|_| alloc.canary),
        };
        self.known.insert(id, known);
    }

    fn put(&mut self, name: &Name, id: AllocId, instances: Vec<ServiceInstance>) {
        let entry = self.by_name.entry(name.clone()).or_default();
        if entry.instances.get(&id).map_or(&[][..], Vec::as_slice) == instances {
            return;
        }
        self.changes += 1;
        entry.changed = self.changes;
        if instances.is_empty() {
            entry.instances.remove(&id);
        } else {
            entry.instances.insert(id, instances);
        }
        if entry.instances.is_empty() {
            self.by_name.remove(name);
        }
    }
}

/// Returns the key of a name.
pub fn name(namespace: &str, name: &str) -> Name {
    (namespace.to_lowercase(), name.to_lowercase())
}

fn instance(snapshot: &Snapshot, service: &ShownService<'_>) -> ServiceInstance {
    let (registration, alloc) = (service.registration, &service.alloc.alloc);
    let node = snapshot.node(alloc.node_id);
    ServiceInstance {
        id: registration.id.clone(),
        address: registration.address.clone(),
        port: u32::from(registration.port),
        tags: service.tags.to_vec(),
        node_id: alloc.node_id.to_string(),
        node_name: node.map_or_else(String::new, |node| node.value.name.clone()),
        datacenter: service.datacenter.to_owned(),
        health: registration.health.as_str().to_owned(),
        namespace: alloc.namespace.to_string(),
        name: registration.name.clone(),
        job_id: alloc.job_id.to_string(),
        alloc_id: alloc.id.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use model::{AllocServices, ClientStatus, NodeStatus, ServiceHealth, ServiceRegistration};
    use state::Entity;
    use test_kit::{Stored, builders};

    use super::*;

    struct Fixture {
        stored: Stored,
        index: ServiceIndex,
        alloc_id: AllocId,
        node: model::Node,
    }

    fn registration(name: &str, health: ServiceHealth) -> ServiceRegistration {
        ServiceRegistration {
            id: format!("id-{name}"),
            name: name.to_owned(),
            address: "10.0.0.7".to_owned(),
            port: 8_080,
            tags: vec!["v1".to_owned()],
            canary_tags: vec!["canary".to_owned()],
            health,
            ..ServiceRegistration::default()
        }
    }

    impl Fixture {
        fn new() -> Self {
            let mut stored = Stored::default();
            let job = builders::service("web", 1);
            stored.put_job(&job);
            let node = builders::node(1);
            stored.put_node(&node);
            let alloc = builders::allocation(1, &job, node.id);
            stored.put_alloc(&alloc);
            stored.put_status(alloc.id, ClientStatus::Running);
            let index = ServiceIndex::new(&stored.snapshot());
            Self {
                stored,
                index,
                alloc_id: alloc.id,
                node,
            }
        }

        fn register(&mut self, registrations: Vec<ServiceRegistration>) -> Key {
            let services = AllocServices {
                registrations,
                deleted: Vec::new(),
            };
            let key = Key::Services(self.alloc_id);
            let entity = Entity::Services(Box::new(services));
            self.stored.put(key.clone(), entity);
            key
        }

        /// Updates the index after a change of `key`. Returns the instances of `web`.
        fn change(&mut self, key: Key) -> (bool, Vec<ServiceInstance>) {
            let affected = self.index.affected(&[Change::Delete { key }]);
            let is_changed = self.index.update(&self.stored.snapshot(), affected);
            let found = self.index.instances(&name("default", "web"));
            (is_changed, found)
        }
    }

    #[test]
    fn a_registration_is_found_by_its_name_in_any_case_with_its_node_and_health() {
        let mut fixture = Fixture::new();
        let key = fixture.register(vec![registration("Web", ServiceHealth::Failing)]);
        let (is_changed, found) = fixture.change(key.clone());
        assert!(is_changed);
        let want = ServiceInstance {
            id: "id-Web".to_owned(),
            address: "10.0.0.7".to_owned(),
            port: 8_080,
            tags: vec!["v1".to_owned()],
            node_id: fixture.node.id.to_string(),
            node_name: fixture.node.name.clone(),
            datacenter: fixture.node.datacenter.clone(),
            health: "failing".to_owned(),
            namespace: "default".to_owned(),
            name: "Web".to_owned(),
            job_id: "web".to_owned(),
            alloc_id: fixture.alloc_id.to_string(),
        };
        assert_eq!(found, [want]);
        let number = fixture.index.changed_at(&name("default", "web"));
        assert!(number > 0);
        // The same again is no change.
        assert!(!fixture.change(key).0);
        let key = fixture.register(vec![registration("Web", ServiceHealth::Passing)]);
        let (is_changed, found) = fixture.change(key);
        assert!(is_changed && found[0].health == "passing");
        assert!(fixture.index.changed_at(&name("default", "web")) > number);
        assert_eq!(fixture.index.changed_at(&name("default", "other")), 0);
    }

    #[test]
    fn a_registration_leaves_with_its_service_its_allocation_or_its_node() {
        let mut fixture = Fixture::new();
        let web = || vec![registration("web", ServiceHealth::Passing)];
        let key = fixture.register(web());
        assert_eq!(fixture.change(key).1.len(), 1);
        let key = fixture.register(vec![registration("db", ServiceHealth::Passing)]);
        assert_eq!(fixture.change(key), (true, vec![]));
        assert_eq!(fixture.index.changed_at(&name("default", "web")), 0);
        let key = fixture.register(web());
        assert_eq!(fixture.change(key).1.len(), 1);
        let mut node = fixture.node.clone();
        node.status = NodeStatus::Down;
        fixture.stored.put_node(&node);
        assert_eq!(fixture.change(Key::Node(node.id)), (true, vec![]));
        node.status = NodeStatus::Ready;
        fixture.stored.put_node(&node);
        assert_eq!(fixture.change(Key::Node(node.id)).1.len(), 1, "it is back");
        let alloc_id = fixture.alloc_id;
        fixture.stored.put_status(alloc_id, ClientStatus::Complete);
        assert_eq!(fixture.change(Key::AllocClient(alloc_id)), (true, vec![]));
    }

    #[test]
    fn changes_of_others_cost_nothing() {
        let mut fixture = Fixture::new();
        let key = fixture.register(vec![registration("web", ServiceHealth::Passing)]);
        fixture.change(key);
        let changes = [
            Key::AllocClient(AllocId::from_random(9)),
            Key::Alloc(AllocId::from_random(9)),
            Key::Node(builders::node(9).id),
        ]
        .map(|key| Change::Delete { key });
        assert!(fixture.index.affected(&changes).is_empty());
        let all = fixture.index.update_all(&fixture.stored.snapshot());
        assert!(!all, "nothing has changed");
    }
}
