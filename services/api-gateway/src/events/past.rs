//! What was so when something was written, as far as the replica does not show it any more.
//!
//! Mostly it does: then nothing is read. A stream that replays what is long over reads one key for
//! each write to one side of an allocation whose other side has changed since, a few at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _};
use model::{AllocClient, AllocId, Allocation, Deployment, DeploymentId, Indexed, Job, JobType};
use proto::JobRead;
use state::{AllocView, Change, Entity, Key, Snapshot};
use store::{Client, Written};

use super::describe::{alloc_id, alloc_view};

/// Keys that are read from the past at the same time, for one caller: a round trip for each hundred
/// of a large plan would be slow, and all at once would keep others of the store waiting.
const READS_IN_FLIGHT: usize = 16;

/// Objects as they were when something was written.
#[derive(Clone, Debug, Default)]
pub struct Past {
    pub allocs: BTreeMap<AllocId, AllocView>,
    pub deployments: BTreeMap<DeploymentId, Deployment>,
}

impl Past {
    /// Tells whether an allocation was a canary: one of a group that nobody had promoted.
    pub(super) fn is_canary(&self, snapshot: &Snapshot, view: &AllocView) -> bool {
        let Some(id) = view.alloc.deployment_id.filter(|_| view.alloc.canary) else {
            return false;
        };
        let then = self.deployments.get(&id);
        let deployment = then.or_else(|| snapshot.deployment(id).map(|found| &found.value));
        let group = deployment.and_then(|found| found.groups.get(&*view.alloc.task_group));
        group.is_some_and(|group| !group.promoted)
    }
}

/// Reads what `snapshot` does not show as it was when `written` was.
///
/// # Errors
/// The store cannot be reached, or the past is compacted away.
pub async fn read(
    client: &Client,
    written: &Written,
    snapshot: &Snapshot,
) -> Result<Past, store::Error> {
    let revision = written.revision;
    let reads = other_sides(written, snapshot)
        .into_iter()
        .map(|wanted| async move {
            let view = wanted.read(client, snapshot, revision).await?;
            Ok::<_, store::Error>(view.map(|view| (wanted.id, view)))
        });
    let found: Vec<Option<(AllocId, AllocView)>> = futures::stream::iter(reads)
        .buffer_unordered(READS_IN_FLIGHT)
        .try_collect()
        .await?;
    let mut past = Past {
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

/// What to read of one allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherSides {
    pub id: AllocId,
    /// The server's side.
    pub alloc: bool,
    /// The node's side.
    pub client: bool,
}

/// Returns what has to be read from the past of the allocations that a write is about: the sides
/// that it does not say and that `snapshot` has otherwise, or not at all.
pub fn other_sides(written: &Written, snapshot: &Snapshot) -> Vec<OtherSides> {
    let mut wanted = BTreeMap::<AllocId, OtherSides>::new();
    for change in &written.changes {
        let Change::Put { key, .. } = change else {
            continue;
        };
        let Some(id) = alloc_id(key) else { continue };
        let sides = wanted.entry(id).or_insert(OtherSides {
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

/// Tells whether an allocation is new with a write.
pub(super) fn is_created(written: &Written, id: AllocId) -> bool {
    written.changes.iter().any(|change| {
        matches!(change, Change::Put { key: Key::Alloc(put), create_index, modify_index, .. }
            if *put == id && create_index == modify_index)
    })
}

impl OtherSides {
    /// Returns the allocation as of a revision; a side that need not be read is as in `snapshot`,
    /// where the write says it or it has not changed since.
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
        let told = async {
            if self.client {
                return client_at(client, self.id, revision).await;
            }
            let known = known.and_then(|view| Some((view, view.client.as_ref()?)));
            Ok(known.map(|(view, told)| Indexed {
                create_index: 0,
                modify_index: view.client_modify_index,
                value: Arc::clone(told),
            }))
        };
        let (alloc, told) = futures::future::try_join(alloc, told).await?;
        Ok(alloc.map(|alloc| AllocView {
            create_index: alloc.create_index,
            alloc_modify_index: alloc.modify_index,
            alloc: alloc.value,
            client_modify_index: told.as_ref().map_or(0, |told| told.modify_index),
            client: told.map(|told| told.value),
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
        Entity::AllocClient(told) => Some(Indexed {
            create_index: stored.create_revision,
            modify_index: stored.mod_revision,
            value: Arc::from(told),
        }),
        _ => None,
    }))
}

/// Returns the deployments of canaries in a write that were promoted, or collected, perhaps after
/// it. A promotion is never taken back, so one that is not promoted now was not then.
fn promoted_since(written: &Written, snapshot: &Snapshot, past: &Past) -> BTreeSet<DeploymentId> {
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

/// Returns what is derived of a job that was written, by the rules of
/// [`Snapshot::job_status`], from what is known to have been so at the write.
pub(super) fn job_read<'a>(
    written: &Written,
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

fn job_status(written: &Written, snapshot: &Snapshot, job: &Indexed<Job>) -> &'static str {
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
    // Whoever writes a job asks for a look at it, unless it only has children.
    let is_asked_for = written.changes.iter().any(|change| {
        matches!(change, Change::Put { entity: Entity::Eval(eval), .. }
            if eval.job == key && !eval.status.is_terminal())
    });
    if value.stop && !is_asked_for {
        "dead"
    } else {
        "pending"
    }
}

/// Tells whether an allocation was over at `index`: what is over stays so.
fn was_over(view: &AllocView, index: u64) -> bool {
    let told = view.client.as_ref().map(|client| client.status);
    let told_over = told.is_some_and(model::ClientStatus::is_terminal);
    view.is_terminal()
        && ((view.alloc_modify_index <= index && (view.alloc.is_server_terminal() || !told_over))
            || (view.client_modify_index <= index && told_over))
}
