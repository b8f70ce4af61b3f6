//! The state after writes that are not committed, for decisions about what they would cause.

use model::Indexed;

use crate::change::Change;
use crate::entity::Write;
use crate::key::Key;
use crate::snapshot::Snapshot;

/// The create and modify index of a stored object.
type Indexes = (u64, u64);

impl Snapshot {
    /// Returns the state after `writes`, as if they were committed at the next revision. Their compares
    /// are not checked.
    #[must_use]
    pub fn after(&self, writes: impl IntoIterator<Item = Write>) -> Self {
        let revision = self.index().saturating_add(1);
        let changes = writes.into_iter().filter_map(|write| match write {
            Write::Create { key, entity } => Some(Change::Put {
                key,
                entity,
                create_index: revision,
                modify_index: revision,
            }),
            Write::Update { key, entity, .. } => {
                let create_index = self.indexes(&key).map_or(revision, |(created, _)| created);
                Some(Change::Put {
                    key,
                    entity,
                    create_index,
                    modify_index: revision,
                })
            }
            Write::Delete { key, .. } => Some(Change::Delete { key }),
            Write::RequireUnchanged { .. } | Write::RequireAbsent { .. } => None,
        });
        let changes: Vec<Change> = changes.collect();
        let mut state = self.to_state();
        state.apply(revision, changes);
        state.snapshot()
    }

    /// Returns the create and modify index of an object; `None`: the replica has no such object.
    ///
    /// The replica keeps one index of the stability of a version and of what a node reports of an
    /// allocation: the modify index, which counts as both.
    pub fn indexes(&self, key: &Key) -> Option<Indexes> {
        match key {
            Key::Job(job) => self.job(job).map(|row| of(row)),
            Key::JobVersion(job, version) => self.job_version(job, *version).map(|row| of(row)),
            Key::JobStable(job, version) => self.stable_index(job, *version).map(once),
            Key::JobTally(job) => self.job_tally(job).map(|row| of(row)),
            Key::JobTags(job) => self.job_tags(job).map(|row| of(row)),
            Key::Eval(id) => self.eval(*id).map(|row| of(row)),
            Key::Alloc(id) => self
                .alloc(*id)
                .map(|view| (view.create_index, view.alloc_modify_index)),
            Key::AllocClient(id) => match self.alloc(*id) {
                Some(view) => {
                    let client = view.client.as_ref();
                    client.map(|_| once(view.client_modify_index))
                }
                None => {
                    let mut strays = self.clients_without_alloc();
                    strays
                        .find(|stray| stray.0 == *id)
                        .map(|stray| once(stray.2))
                }
            },
            Key::Node(id) => self.node(*id).map(|row| of(row)),
            Key::Deployment(id) => self.deployment(*id).map(|row| of(row)),
            Key::Election(service) => self.leader(service).map(of),
            Key::SchedulerConfig => self.stored_scheduler_config().map(|row| of(row)),
            Key::NodePool(name) => self.node_pool(name).map(|row| of(row)),
            Key::Namespace(name) => self.namespace(name).map(|row| of(row)),
            Key::Volume(key) => self.volume(key).map(|row| of(row)),
            Key::CsiVolume(key) => self.csi_volume(key).map(|row| of(row)),
            Key::CsiAttachment(key) => self.csi_attachment(key).map(|row| of(row)),
            Key::VolumeClaim(id) => self.volume_claim(*id).map(|row| of(row)),
            Key::PeriodicLaunch(job) => self.periodic_launch(job).map(|row| of(row)),
            Key::DispatchToken(job, token) => self.dispatch_token(job, token).map(|row| of(row)),
            Key::ScalingEvents(job, group) => self.scaling_events(job, group).map(|row| of(row)),
            Key::PlanPiece(id, position) => self.plan_piece(*id, *position).map(|row| of(row)),
            Key::PlanCommit(id) => self.plan_commit(*id).map(|row| of(row)),
            Key::IntroductionToken(id) => self.introduction_token(*id).map(|row| of(row)),
            Key::NodeIntroduction(id) => self.node_introduction(*id).map(|row| of(row)),
            Key::Services(id) => self.alloc_services(*id).map(|row| of(row)),
            Key::NodeRevocation(id) => self.node_revocation(*id).map(|row| of(row)),
            Key::Process(key) => {
                let mut processes = self.processes();
                processes.find(|(it, _)| *it == key).map(|(_, row)| of(row))
            }
            Key::Keyring => self.keyring().map(|row| of(row)),
            // Variables are outside of the replica.
            Key::Variable(_) | Key::LockHolder(_) | Key::LockDelay(_) => None,
        }
    }
}

fn of<T>(row: &Indexed<T>) -> Indexes {
    (row.create_index, row.modify_index)
}

fn once(index: u64) -> Indexes {
    (index, index)
}

#[cfg(test)]
mod tests {
    use model::Namespace;

    use super::*;
    use crate::{Entity, State};

    fn namespace(description: &str) -> Entity {
        Entity::Namespace(Box::new(Namespace {
            description: description.to_owned(),
            ..Namespace::named("team")
        }))
    }

    #[test]
    fn an_update_keeps_the_create_index_and_the_snapshot_is_unchanged() {
        let key = Key::Namespace("team".to_owned());
        let created = Write::Create {
            key: key.clone(),
            entity: namespace("a"),
        };
        let empty = State::default().snapshot();
        let first = empty.after([created]);
        let updated = Write::Update {
            key: key.clone(),
            modify_index: 1,
            entity: namespace("b"),
        };
        let second = first.after([updated]);
        let deleted = Write::Delete {
            key: key.clone(),
            modify_index: 2,
        };
        let third = second.after([deleted]);
        let snapshots = [&empty, &first, &second, &third];
        let found = snapshots.map(|snapshot| snapshot.indexes(&key));
        assert_eq!(found, [None, Some((1, 1)), Some((1, 2)), None]);
        assert_eq!(snapshots.map(Snapshot::index), [0, 1, 2, 3]);
        assert_eq!(second.namespace("team").unwrap().value.description, "b");
    }
}
