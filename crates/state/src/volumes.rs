//! Registered volumes by name and node, and volume claims by job.

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};
use model::{Indexed, JobKey, NodeId, Volume, VolumeClaim, VolumeClaimId, VolumeKey};

/// The volumes of one name in one namespace, by node.
pub type NamedVolumes = OrdMap<NodeId, Arc<Indexed<Volume>>>;

/// The tables of volumes and of claims.
#[derive(Clone, Debug, Default)]
pub(crate) struct Volumes {
    /// Namespace → name → node. No level is ever empty.
    by_name: OrdMap<Arc<str>, OrdMap<Arc<str>, NamedVolumes>>,
    claims: OrdMap<VolumeClaimId, Arc<Indexed<VolumeClaim>>>,
    claims_by_job: OrdMap<JobKey, OrdSet<VolumeClaimId>>,
}

impl Volumes {
    pub(crate) fn put(&mut self, key: VolumeKey, volume: Arc<Indexed<Volume>>) {
        self.by_name
            .entry(key.namespace)
            .or_default()
            .entry(key.name)
            .or_default()
            .insert(key.node_id, volume);
    }

    pub(crate) fn remove(&mut self, key: &VolumeKey) {
        let Some(names) = self.by_name.get_mut(&key.namespace) else {
            return;
        };
        if let Some(nodes) = names.get_mut(&key.name) {
            nodes.remove(&key.node_id);
            if nodes.is_empty() {
                names.remove(&key.name);
            }
        }
        if names.is_empty() {
            self.by_name.remove(&key.namespace);
        }
    }

    pub(crate) fn named(&self, namespace: &str, name: &str) -> Option<&NamedVolumes> {
        self.by_name.get(namespace)?.get(name)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Indexed<Volume>>> {
        let names = self.by_name.values().flat_map(OrdMap::values);
        names.flat_map(OrdMap::values)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    pub(crate) fn put_claim(&mut self, id: VolumeClaimId, claim: Arc<Indexed<VolumeClaim>>) {
        self.remove_claim(id);
        self.claims_by_job
            .entry(claim.value.job_key())
            .or_default()
            .insert(id);
        self.claims.insert(id, claim);
    }

    pub(crate) fn remove_claim(&mut self, id: VolumeClaimId) {
        let Some(old) = self.claims.remove(&id) else {
            return;
        };
        let key = old.value.job_key();
        if let Some(ids) = self.claims_by_job.get_mut(&key) {
            ids.remove(&id);
            if ids.is_empty() {
                self.claims_by_job.remove(&key);
            }
        }
    }

    pub(crate) fn claim(&self, id: VolumeClaimId) -> Option<&Arc<Indexed<VolumeClaim>>> {
        self.claims.get(&id)
    }

    pub(crate) fn claims(&self) -> impl Iterator<Item = &Arc<Indexed<VolumeClaim>>> {
        self.claims.values()
    }

    pub(crate) fn claims_of(
        &self,
        key: &JobKey,
    ) -> impl Iterator<Item = &Arc<Indexed<VolumeClaim>>> {
        let ids = self.claims_by_job.get(key).into_iter().flatten();
        ids.filter_map(|id| self.claims.get(id))
    }
}

#[cfg(test)]
mod tests {
    use model::{AllocId, Timestamp, VolumeId};

    use super::*;
    use crate::{Change, Entity, Key, State, Table};

    fn volume(name: &str, node: u128) -> Volume {
        Volume {
            namespace: "default".into(),
            name: name.into(),
            node_id: NodeId::from_random(node),
            id: VolumeId::from_random(node),
            host_path: format!("/srv/{name}"),
            capabilities: Vec::new(),
            deleting: false,
            create_time: Timestamp(1),
            modify_time: Timestamp(1),
        }
    }

    fn put(key: Key, entity: Entity, revision: u64) -> Change {
        Change::Put {
            key,
            entity,
            create_index: revision,
            modify_index: revision,
        }
    }

    #[test]
    fn volumes_are_found_by_name_and_node_until_deleted() {
        let mut state = State::default();
        let volumes = [volume("data", 1), volume("data", 2), volume("logs", 1)];
        for (revision, one) in (1..).zip(&volumes) {
            let entity = Entity::Volume(Box::new(one.clone()));
            state.apply(revision, [put(Key::Volume(one.key()), entity, revision)]);
        }
        let snapshot = state.snapshot();
        let named = snapshot.volumes_named("default", "data").unwrap();
        assert_eq!(named.len(), 2);
        assert_eq!(named[&volumes[1].node_id].value, volumes[1]);
        assert_eq!(snapshot.volume(&volumes[2].key()).unwrap().create_index, 3);
        assert!(snapshot.volumes_named("other", "data").is_none());
        assert_eq!(snapshot.table_index(Table::Volumes), 3);
        let keys = volumes.iter().map(Volume::key);
        let deletes = keys.map(|key| Change::Delete {
            key: Key::Volume(key),
        });
        state.apply(4, deletes);
        assert!(state.snapshot().volumes_named("default", "data").is_none());
        assert_eq!(state.snapshot().volumes().count(), 0);
        assert!(!state.snapshot().has_volumes());
        // The older snapshot has not changed.
        assert_eq!(snapshot.volumes().count(), 3);
    }

    #[test]
    fn claims_are_found_by_job() {
        let claim = |job: &str, volume: u128| VolumeClaim {
            namespace: "default".into(),
            job_id: job.into(),
            task_group: "web".into(),
            alloc_id: AllocId::from_random(1),
            volume_id: VolumeId::from_random(volume),
            volume_name: "data".into(),
            node_id: NodeId::from_random(volume),
        };
        let mut state = State::default();
        let claims = [claim("a", 1), claim("a", 2), claim("b", 1)];
        for (revision, one) in (1..).zip(&claims) {
            let entity = Entity::VolumeClaim(Box::new(one.clone()));
            let key = Key::VolumeClaim(one.id());
            state.apply(revision, [put(key, entity, revision)]);
        }
        let of = |snapshot: &crate::Snapshot, job: &str| {
            let key = JobKey::new("default", job);
            snapshot.volume_claims_of(&key).count()
        };
        assert_eq!(
            (of(&state.snapshot(), "a"), of(&state.snapshot(), "b")),
            (2, 1)
        );
        let key = Key::VolumeClaim(claims[0].id());
        state.apply(4, [Change::Delete { key }]);
        let snapshot = state.snapshot();
        assert_eq!((of(&snapshot, "a"), of(&snapshot, "b")), (1, 1));
        assert!(snapshot.volume_claim(claims[0].id()).is_none());
        assert_eq!(snapshot.volume_claims().count(), 2);
        assert_eq!(snapshot.table_index(Table::Volumes), 4);
    }
}
