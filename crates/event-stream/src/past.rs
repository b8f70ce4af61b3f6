//! Past state for the events of a write, read from the store where the replica has moved on.
//!
//! A live stream reads nothing, because the replica shows the state of the write. A replay reads one
//! key for each write to one side of an allocation whose other side has changed since, a few at a
//! time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _};
use model::{AllocClient, AllocId, Allocation, Deployment, DeploymentId, Indexed, Job, JobType};
use proto::JobRead;
use state::{AllocView, Change, Entity, Key, Snapshot};
use store::{Client, RevisionChanges};

use crate::written::{PastObjects, alloc_id, alloc_view, is_created};

/// The number of keys of the past that are read at the same time for one caller: reading the keys
/// of a large plan one by one would be slow, and all at once would delay other callers of the
/// store.
const READS_IN_FLIGHT: usize = 16;

/// Reads the objects that `snapshot` does not show as of the write.
///
/// # Errors
/// The store cannot be reached, or the revision is compacted away.
pub async fn read(
    client: &Client,
    written: &RevisionChanges,
    snapshot: &Snapshot,
) -> Result<PastObjects, store::Error> {
    let revision = written.revision;
    let reads = missing_sides(written, snapshot)
        .into_iter()
        .map(|wanted| async move {
            let view = wanted.read(client, snapshot, revision).await?;
            Ok::<_, store::Error>(view.map(|view| (wanted.id, view)))
        });
    let found: Vec<Option<(AllocId, AllocView)>> = futures::stream::iter(reads)
        .buffer_unordered(READS_IN_FLIGHT)
        .try_collect()
        .await?;
    let mut past = PastObjects {
        allocs: found.into_iter().flatten().collect(),
        deployments: BTreeMap::new(),
    };
    for id in promoted_since(written, snapshot, &past) {
        let stored = client.get_at(&Key::Deployment(id), revision).await?;
        if let Some(Entity::Deployment(deployment)) = stored.map(|stored| stored.entity) {
            past.deployments.insert(id, *deployment);
        }
    }
    Ok(past)
}

/// The sides of one allocation to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingSides {
    pub id: AllocId,
    /// The server's side.
    pub alloc: bool,
    /// The node's side.
    pub client: bool,
}

/// Returns the sides to read of the allocations in a write: those that the write does not contain
/// and that `snapshot` has changed or missing.
pub fn missing_sides(written: &RevisionChanges, snapshot: &Snapshot) -> Vec<MissingSides> {
    let mut wanted = BTreeMap::<AllocId, MissingSides>::new();
    for change in &written.changes {
        let Change::Put { key, .. } = change else {
            continue;
        };
        let Some(id) = alloc_id(key) else { continue };
        let sides = wanted.entry(id).or_insert(MissingSides {
            id,
            alloc: true,
            client: true,
        });
        match key {
            Key::Alloc(_) => sides.alloc = false,
            _ => sides.client = false,
        }
    }
    let is_behind = snapshot.index() < written.revision;
    let then = |index: u64| !is_behind && index <= written.revision;
    for (id, sides) in &mut wanted {
        if is_created(written, *id) {
            sides.client = false;
        }
        if let Some(view) = snapshot.alloc(*id) {
            sides.alloc &= !then(view.alloc_modify_index);
            sides.client &= !then(view.client_modify_index);
        }
    }
    let wanted = wanted.into_values();
    wanted.filter(|sides| sides.alloc || sides.client).collect()
}

impl MissingSides {
    /// Returns the allocation as of a revision. Sides that need no read come from `snapshot`.
    async fn read(
        self,
        client: &Client,
        snapshot: &Snapshot,
        revision: u64,
    ) -> Result<Option<AllocView>, store::Error> {
        let known = snapshot.alloc(self.id);
        let alloc = async {
            match known.filter(|_| !self.alloc) {
                Some(view) => Ok(Some(Indexed {
                    create_index: view.create_index,
                    modify_index: view.alloc_modify_index,
                    value: Arc::clone(&view.alloc),
                })),
                None => alloc_at(client, self.id, revision).await,
            }
        };
        let reported = async {
            if self.client {
                return client_at(client, self.id, revision).await;
            }
            let known = known.and_then(|view| Some((view, view.client.as_ref()?)));
            Ok(known.map(|(view, reported)| Indexed {
                create_index: 0,
                modify_index: view.client_modify_index,
                value: Arc::clone(reported),
            }))
        };
        let (alloc, reported) = futures::future::try_join(alloc, reported).await?;
        Ok(alloc.map(|alloc| AllocView {
            create_index: alloc.create_index,
            alloc_modify_index: alloc.modify_index,
            alloc: alloc.value,
            client_modify_index: reported
                .as_ref()
                .map_or(0, |reported| reported.modify_index),
            client: reported.map(|reported| reported.value),
        }))
    }
}

async fn alloc_at(
    client: &Client,
    id: AllocId,
    revision: u64,
) -> Result<Option<Indexed<Arc<Allocation>>>, store::Error> {
    let stored = client.get_at(&Key::Alloc(id), revision).await?;
    Ok(stored.and_then(|stored| match stored.entity {
        Entity::Alloc(alloc) => Some(Indexed {
            create_index: stored.create_revision,
            modify_index: stored.mod_revision,
            value: Arc::from(alloc),
        }),
        _ => None,
    }))
}

async fn client_at(
    client: &Client,
    id: AllocId,
    revision: u64,
) -> Result<Option<Indexed<Arc<AllocClient>>>, store::Error> {
    let stored = client.get_at(&Key::AllocClient(id), revision).await?;
    Ok(stored.and_then(|stored| match stored.entity {
        Entity::AllocClient(reported) => Some(Indexed {
            create_index: stored.create_revision,
            modify_index: stored.mod_revision,
            value: Arc::from(reported),
        }),
        _ => None,
    }))
}

/// Returns the deployments of a write's canaries that may have been promoted or collected after it.
/// A promotion is never undone, so one that is not promoted now was not promoted then.
fn promoted_since(
    written: &RevisionChanges,
    snapshot: &Snapshot,
    past: &PastObjects,
) -> BTreeSet<DeploymentId> {
    let ids: BTreeSet<AllocId> = written
        .changes
        .iter()
        .filter_map(|change| match change {
            Change::Put { key, .. } => alloc_id(key),
            Change::Delete { .. } => None,
        })
        .collect();
    let mut deployments = BTreeSet::new();
    for id in ids {
        let Some(view) = alloc_view(id, written, snapshot, past) else {
            continue;
        };
        let Some(deployment_id) = view.alloc.deployment_id.filter(|_| view.alloc.canary) else {
            continue;
        };
        let is_known = snapshot.deployment(deployment_id).is_some_and(|found| {
            let group = found.value.groups.get(&*view.alloc.task_group);
            found.modify_index <= written.revision || group.is_some_and(|group| !group.promoted)
        });
        if !is_known {
            deployments.insert(deployment_id);
        }
    }
    deployments
}

/// Returns the derived values of a written job, by the rules of [`Snapshot::job_status`], from the
/// known data of the write's index.
pub(crate) fn job_read<'a>(
    written: &RevisionChanges,
    snapshot: &'a Snapshot,
    job: &Indexed<Job>,
) -> JobRead<'a> {
    let (key, version, index) = (job.value.key(), job.value.version, written.revision);
    let stable = snapshot.stable_index(&key, version);
    let tags = snapshot.job_tags(&key);
    let tags = tags.filter(|tags| tags.modify_index <= index);
    JobRead {
        status: job_status(written, snapshot, job),
        stable: stable.is_some_and(|marked| marked <= index),
        tag: tags.and(snapshot.version_tag(&key, version)),
    }
}

fn job_status(written: &RevisionChanges, snapshot: &Snapshot, job: &Indexed<Job>) -> &'static str {
    let (value, index) = (&job.value, written.revision);
    if value.job_type == JobType::System || value.is_parent() {
        return if value.stop { "dead" } else { "running" };
    }
    let key = value.key();
    let lived = |view: &AllocView| view.create_index <= index && !was_over(view, index);
    let was_active = |deployment: &Indexed<Deployment>| {
        let is_over = !deployment.value.status.is_active() && deployment.modify_index <= index;
        deployment.value.job_create_index == job.create_index
            && deployment.create_index <= index
            && !is_over
    };
    if snapshot.allocs_by_job(&key).any(lived)
        || snapshot
            .deployments_by_job(&key)
            .any(|found| was_active(found))
    {
        return "running";
    }
    // A write of a job creates an evaluation, unless the job only has children.
    let is_evaluated = written.changes.iter().any(|change| {
        matches!(change, Change::Put { entity: Entity::Eval(eval), .. }
            if eval.job == key && !eval.status.is_terminal())
    });
    if value.stop && !is_evaluated {
        "dead"
    } else {
        "pending"
    }
}

/// Tells whether an allocation had ended at `index`; an end is final.
fn was_over(view: &AllocView, index: u64) -> bool {
    let reported = view.client.as_ref().map(|client| client.status);
    let reported_over = reported.is_some_and(model::ClientStatus::is_terminal);
    view.is_terminal()
        && ((view.alloc_modify_index <= index
            && (view.alloc.is_server_terminal() || !reported_over))
            || (view.client_modify_index <= index && reported_over))
}
