//! The allocations that hold a volume.

use model::job::VolumeRequest;
use model::{AllocId, CsiVolumeKey, JobKey, NodeId};
use state::{AllocView, Snapshot};

/// A holder of a volume: an allocation that has not ended on its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub alloc_id: AllocId,
    pub job: JobKey,
    pub node_id: NodeId,
    pub read_only: bool,
    /// The index at which it was placed; `u64::MAX`: it is not committed yet.
    pub create_index: u64,
}

/// Returns the holders of a volume with their requests, in no particular order.
pub fn of<'s>(
    snapshot: &'s Snapshot,
    key: &'s CsiVolumeKey,
) -> impl Iterator<Item = (&'s AllocView, &'s VolumeRequest)> {
    let names = [Some(key.clone()), without_index(key)];
    let names = names.into_iter().flatten();
    let versions = names.flat_map(move |name| {
        let asking = snapshot.csi_asking(&name);
        asking.cloned().collect::<Vec<_>>()
    });
    versions.flat_map(move |(job, version)| {
        let views = snapshot.allocs_by_job(&job).collect::<Vec<_>>();
        let row = snapshot.job_version(&job, version);
        views.into_iter().flat_map(move |view| {
            let alloc = &view.alloc;
            let is_live = alloc.job_version == version && !view.is_client_terminal();
            let group = row.filter(|_| is_live);
            let group = group.and_then(|row| row.value.task_group(&alloc.task_group));
            let asks = group.into_iter().flat_map(|group| group.volumes.values());
            asks.filter(|ask| ask.is_csi() && *ask.source_for(alloc.name_index) == *key.id)
                .map(move |ask| (view, ask))
        })
    })
}

/// Returns the holders of a volume, without their requests.
pub fn list(snapshot: &Snapshot, key: &CsiVolumeKey) -> Vec<Holder> {
    let holders = of(snapshot, key).map(|(view, ask)| Holder {
        alloc_id: view.alloc.id,
        job: view.alloc.job_key(),
        node_id: view.alloc.node_id,
        read_only: ask.read_only,
        create_index: view.create_index,
    });
    holders.collect()
}

/// Returns the holder that an allocation of this job version would be, if its group asks for the volume.
pub fn future(
    snapshot: &Snapshot,
    key: &CsiVolumeKey,
    alloc_id: AllocId,
    node_id: NodeId,
    (job, version): &(JobKey, u64),
    (task_group, name_index): (&str, u32),
) -> Option<Holder> {
    if *job.namespace != *key.namespace {
        return None;
    }
    let row = snapshot.job_version(job, *version)?;
    let group = row.value.task_group(task_group)?;
    let mut asks = group.volumes.values();
    let ask = asks.find(|ask| ask.is_csi() && *ask.source_for(name_index) == *key.id)?;
    Some(Holder {
        alloc_id,
        job: job.clone(),
        node_id,
        read_only: ask.read_only,
        create_index: u64::MAX,
    })
}

/// Returns the distinct volumes of a plugin that allocations on a node hold.
pub fn volumes_on(snapshot: &Snapshot, node_id: NodeId, plugin_id: &str) -> Vec<CsiVolumeKey> {
    let mut keys = Vec::new();
    for view in snapshot.allocs_by_node(node_id) {
        let alloc = &view.alloc;
        if view.is_client_terminal() {
            continue;
        }
        let job = snapshot.job_version(&alloc.job_key(), alloc.job_version);
        let group = job.and_then(|job| job.value.task_group(&alloc.task_group));
        let asks = group.into_iter().flat_map(|group| group.volumes.values());
        for ask in asks.filter(|ask| ask.is_csi()) {
            let source = ask.source_for(alloc.name_index);
            let key = CsiVolumeKey::new(alloc.namespace.clone(), &*source);
            let volume = snapshot.csi_volume(&key);
            let is_of_plugin = volume.is_some_and(|it| it.value.plugin_id == plugin_id);
            if is_of_plugin && !keys.contains(&key) {
                keys.push(key);
            }
        }
    }
    keys
}

/// Returns an earlier holder that keeps an allocation from using a volume on its node yet, because the
/// volume is used on one node, or by one writer, at a time.
pub fn earlier_holder<'h>(
    capability: model::Capability,
    own: &Holder,
    holders: &'h [Holder],
) -> Option<&'h Holder> {
    let mode = capability.access_mode;
    let mut earlier = holders
        .iter()
        .filter(|other| (other.create_index, other.alloc_id) < (own.create_index, own.alloc_id));
    earlier.find(|other| {
        let is_elsewhere = other.node_id != own.node_id;
        let both_write = !own.read_only && !other.read_only;
        (!mode.is_multi_node() && is_elsewhere)
            || (!mode.has_many_writers() && both_write && is_elsewhere)
    })
}

/// Returns the name in jobs of a volume of one allocation, as in `data` of `data[2]`.
fn without_index(key: &CsiVolumeKey) -> Option<CsiVolumeKey> {
    let (name, index) = key.id.strip_suffix(']')?.rsplit_once('[')?;
    let is_index = index.parse::<u32>().is_ok();
    is_index.then(|| CsiVolumeKey::new(key.namespace.clone(), name))
}
