//! Check of one node's part of a plan against the node's state and room.

use model::{
    AllocId, AllocatedResources, Allocation, ClientStatus, Node, NodeEligibility, NodeId,
    NodeStatus, Plan,
};
use placement::{addresses, check_change};
use state::{AllocView, Snapshot};

use crate::pending::Pending;
use crate::verify::{csi, volumes};

/// The effect of a placement entry on its node.
#[derive(Clone, Copy, Debug)]
enum Entry<'a> {
    /// A new allocation.
    New(&'a Allocation),
    /// A live allocation that continues under a new version.
    Update {
        new: &'a Allocation,
        old: &'a AllocView,
    },
    /// An ended allocation; only its record changes.
    Note,
}

/// # Errors
/// The reason of the rejection.
pub(crate) fn check(
    snapshot: &Snapshot,
    pending: &Pending,
    plan: &Plan,
    node_id: NodeId,
) -> Result<(), String> {
    for stop in of(&plan.stops, node_id)
        .iter()
        .chain(of(&plan.preemptions, node_id))
    {
        let view = snapshot.alloc(stop.alloc_id);
        if view.is_some_and(|view| view.alloc.node_id != node_id) {
            return Err(format!("allocation {} is on another node", stop.alloc_id));
        }
    }
    let entries = entries(snapshot, plan, node_id)?;
    // Stops are always possible, and so are changes of ended allocations' records.
    if entries.iter().all(|entry| matches!(entry, Entry::Note)) {
        return Ok(());
    }
    let Some(node) = snapshot.node(node_id) else {
        return Err("node does not exist".to_owned());
    };
    let node = &node.value;
    check_status(snapshot, plan, node, &entries)?;
    if node.status != NodeStatus::Ready || !entries.iter().any(changes_usage) {
        return Ok(());
    }
    if node.eligibility != NodeEligibility::Eligible {
        return Err("node is not eligible".to_owned());
    }
    check_fit(snapshot, pending, plan, node, &entries)?;
    let new = entries.iter().filter_map(|entry| match entry {
        Entry::New(new) => Some(*new),
        Entry::Update { .. } | Entry::Note => None,
    });
    for alloc in new.clone() {
        addresses::check_given(node, &alloc.resources.ports)?;
    }
    csi::check(snapshot, pending, node, new.clone())?;
    volumes::check(snapshot, pending, plan, node, new)
}

fn of<T>(by_node: &std::collections::BTreeMap<NodeId, Vec<T>>, node_id: NodeId) -> &[T] {
    by_node.get(&node_id).map_or(&[], Vec::as_slice)
}

fn entries<'a>(
    snapshot: &'a Snapshot,
    plan: &'a Plan,
    node_id: NodeId,
) -> Result<Vec<Entry<'a>>, String> {
    let mut entries = Vec::new();
    for new in of(&plan.placements, node_id) {
        let Some(old) = snapshot.alloc(new.id) else {
            entries.push(Entry::New(new));
            continue;
        };
        if old.alloc.node_id != node_id || old.alloc.job_key() != plan.job {
            return Err(format!("allocation {} exists elsewhere", new.id));
        }
        // The plan's copy would undo later writes.
        if old.alloc_modify_index > plan.snapshot_index || old.alloc.is_server_terminal() {
            return Err(format!(
                "allocation {} has changed since the plan was made",
                new.id
            ));
        }
        let ended = old.is_client_terminal();
        entries.push(if ended {
            Entry::Note
        } else {
            Entry::Update { new, old }
        });
    }
    Ok(entries)
}

/// Returns whether an entry needs additional or other resources of the node.
fn changes_usage(entry: &Entry<'_>) -> bool {
    match entry {
        Entry::New(_) => true,
        Entry::Update { new, old } => new.resources != old.alloc.resources,
        Entry::Note => false,
    }
}

/// Checks the node's status: on an unreachable node allocations can only become lost or unknown.
fn check_status(
    snapshot: &Snapshot,
    plan: &Plan,
    node: &Node,
    entries: &[Entry<'_>],
) -> Result<(), String> {
    let says = |entry: &Entry<'_>| match entry {
        Entry::New(_) | Entry::Note => None,
        Entry::Update { new, .. } => new.client_status_override,
    };
    let mut live = entries.iter().filter(|entry| !matches!(entry, Entry::Note));
    let (accepted, word) = match node.status {
        NodeStatus::Ready => return Ok(()),
        NodeStatus::Initializing => return Err("node is not ready for placements".to_owned()),
        NodeStatus::Disconnected => (
            live.all(|entry| says(entry) == Some(ClientStatus::Unknown)),
            "disconnected",
        ),
        NodeStatus::Down => {
            let stays = |entry: &Entry<'_>| match says(entry) {
                Some(ClientStatus::Lost) => true,
                Some(ClientStatus::Unknown) => !replaces(snapshot, plan, entry),
                _ => false,
            };
            (live.all(stays), "down")
        }
    };
    if accepted {
        Ok(())
    } else {
        Err(format!("node is {word} and contains invalid updates"))
    }
}

/// Returns whether the entry's group is replaced while its node is unreachable.
fn replaces(snapshot: &Snapshot, plan: &Plan, entry: &Entry<'_>) -> bool {
    let (Entry::New(alloc) | Entry::Update { new: alloc, .. }) = entry else {
        return true;
    };
    let group = snapshot
        .job(&plan.job)
        .and_then(|job| job.value.task_group(&alloc.task_group));
    let disconnect = group.and_then(|group| group.disconnect.as_ref());
    disconnect.is_none_or(|block| block.replace)
}

/// Checks that the node has room for the entries.
///
/// The resources of an allocation that both this plan and a pending write end are subtracted twice. That
/// commits nothing wrong: the plan writes a key with a pending write, so it waits and is verified again
/// (`DependsOnPending` in the plan writer).
fn check_fit(
    snapshot: &Snapshot,
    pending: &Pending,
    plan: &Plan,
    node: &Node,
    entries: &[Entry<'_>],
) -> Result<(), String> {
    let stops = of(&plan.stops, node.id)
        .iter()
        .chain(of(&plan.preemptions, node.id));
    let mut released: Vec<AllocId> = stops.map(|stop| stop.alloc_id).collect();
    released.sort_unstable();
    released.dedup();
    let mut removed: Vec<&AllocatedResources> = released
        .into_iter()
        .filter_map(|id| snapshot.alloc(id))
        .filter(|view| !view.is_terminal())
        .map(|view| &view.alloc.resources)
        .collect();
    let mut added = Vec::with_capacity(entries.len());
    for entry in entries {
        match entry {
            Entry::New(new) => added.push(&new.resources),
            Entry::Update { new, old } => {
                removed.push(&old.alloc.resources);
                added.push(&new.resources);
            }
            Entry::Note => {}
        }
    }
    let usage = pending.usage(snapshot, node.id);
    check_change(node, &usage, removed, added).map_err(|exhausted| exhausted.to_string())
}
