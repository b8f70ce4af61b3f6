//! Facts of every single state.

use std::collections::BTreeMap;

use model::{ClientStatus, ComparableResources, JobKey, NodeId};
use state::{AllocView, Snapshot};

use crate::violation::{Fact, Violation};
use crate::{dedicated, volumes};

/// Checks every node and every job; for one revision of a long history see [`crate::History`].
pub fn check_snapshot(snapshot: &Snapshot) -> Vec<Violation> {
    let mut nodes: Vec<NodeId> = snapshot.nodes().map(|node| node.value.id).collect();
    nodes.extend(snapshot.allocs().map(|view| view.alloc.node_id));
    nodes.sort();
    nodes.dedup();
    let mut jobs: Vec<JobKey> = snapshot.allocs().map(|view| view.alloc.job_key()).collect();
    jobs.sort();
    jobs.dedup();
    let mut found = Vec::new();
    for node in nodes {
        check_node(snapshot, node, &mut found);
    }
    for job in jobs {
        check_names(snapshot, &job, &mut found);
        check_versions(snapshot, &job, &mut found);
    }
    found
}

/// Checks the live allocations of one node.
pub(crate) fn check_node(snapshot: &Snapshot, id: NodeId, found: &mut Vec<Violation>) {
    let mut violate = |fact, text| {
        found.push(Violation {
            revision: snapshot.index(),
            fact,
            found: text,
        });
    };
    let live: Vec<&AllocView> = snapshot
        .allocs_by_node(id)
        .filter(|view| !view.is_terminal())
        .collect();
    let mut sum = ComparableResources::default();
    let mut holders = BTreeMap::<(&str, u16), Vec<&AllocView>>::new();
    for view in &live {
        sum = sum.plus(view.alloc.resources.total);
        for port in view
            .alloc
            .resources
            .ports
            .iter()
            .filter(|port| !port.ignore_collision)
        {
            let held = (port.host_ip.as_str(), port.value);
            holders.entry(held).or_default().push(view);
        }
    }
    let counted = snapshot
        .usage(id)
        .map(|usage| usage.total)
        .unwrap_or_default();
    if counted != sum {
        violate(
            Fact::UsageIsTheSum,
            format!("node {id}: {counted:?} counted, {sum:?} summed up"),
        );
    }
    let held = snapshot.usage(id).and_then(|usage| usage.dedicated());
    let held = held.cloned().unwrap_or_default();
    if held != dedicated::sum(&live) {
        let text = format!("node {id}: {held:?} counted, of cores and devices");
        violate(Fact::UsageIsTheSum, text);
    }
    for (fact, text) in dedicated::held_twice(&live) {
        violate(fact, format!("node {id}: {text}"));
    }
    for ((address, port), views) in holders.into_iter().filter(|(_, views)| views.len() > 1) {
        let ids: Vec<_> = views.iter().map(|view| view.alloc.id).collect();
        violate(
            Fact::PortHeldOnce,
            format!("node {id}: port {port} of {address} is held by {ids:?}"),
        );
    }
    // A deleted node has no resources, but its allocations are being stopped.
    let Some(node) = snapshot.node(id) else {
        return;
    };
    for text in volumes::concurrent_writers(snapshot, &node.value, &live) {
        violate(Fact::VolumeHasOneWriter, format!("node {id}: {text}"));
    }
    for view in &live {
        for port in &view.alloc.resources.ports {
            let address = port.host_ip.as_str();
            if !port.ignore_collision && node.value.is_port_reserved(address, port.value) {
                let text = format!(
                    "node {id}: port {} of {address} is held by {}",
                    port.value, view.alloc.id
                );
                violate(Fact::ReservedPortsAreFree, text);
            }
        }
    }
    if let Some(text) = dedicated::too_many(&node.value, &live) {
        violate(Fact::NodeNotOvercommitted, format!("node {id}: {text}"));
    }
    if let Some(dimension) = sum.exceeds(node.value.available()) {
        let offers = node.value.available();
        let text = format!(
            "node {id}: {dimension}: {sum:?} of {offers:?}, {} live",
            live.len()
        );
        violate(Fact::NodeNotOvercommitted, text);
    }
}

/// Checks that the versions of one job's live allocations are kept.
pub(crate) fn check_versions(snapshot: &Snapshot, key: &JobKey, found: &mut Vec<Violation>) {
    // The versions of a purged job are deleted; its allocations are being stopped.
    let Some(job) = snapshot.job(key) else {
        return;
    };
    for view in snapshot.allocs_by_job(key) {
        let alloc = &view.alloc;
        let counts = !view.is_terminal() && alloc.job_create_index == job.create_index;
        if counts && snapshot.job_version(key, alloc.job_version).is_none() {
            found.push(Violation {
                revision: snapshot.index(),
                fact: Fact::VersionIsKept,
                found: format!(
                    "version {} of {key}, run by {}",
                    alloc.job_version, alloc.id
                ),
            });
        }
    }
}

/// Checks the names of one job's live allocations.
pub(crate) fn check_names(snapshot: &Snapshot, job: &JobKey, found: &mut Vec<Violation>) {
    let mut holders = BTreeMap::<(u64, &str, u32, Option<NodeId>), Vec<&AllocView>>::new();
    for view in snapshot
        .allocs_by_job(job)
        .filter(|view| counts_for_its_name(snapshot, view))
    {
        let alloc = &view.alloc;
        // A system job has each of its names once per node.
        let node = is_everywhere(snapshot, view).then_some(alloc.node_id);
        let name = (
            alloc.job_create_index,
            &*alloc.task_group,
            alloc.name_index,
            node,
        );
        holders.entry(name).or_default().push(view);
    }
    for (_, views) in holders.into_iter().filter(|(_, views)| views.len() > 1) {
        let oldest = views.iter().map(|view| view.create_index).min();
        let is_replacement =
            |view: &&&AllocView| inherits_from_canary(snapshot, view, oldest.unwrap_or_default());
        let replacements = views.iter().filter(is_replacement).count();
        // A replacement and the allocation beside its canary.
        if views.len() == 2 && replacements == 1 {
            continue;
        }
        let ids: Vec<_> = views.iter().map(|view| view.alloc.id).collect();
        found.push(Violation {
            revision: snapshot.index(),
            fact: Fact::NameUsedOnce,
            found: format!("{} of {job}: {ids:?}", views[0].alloc.name()),
        });
    }
}

fn is_everywhere(snapshot: &Snapshot, view: &AllocView) -> bool {
    let key = view.alloc.job_key();
    let version = snapshot.job_version(&key, view.alloc.job_version);
    let job = version.or_else(|| snapshot.job(&key));
    // A purged job may have been a system job; its allocations are being stopped.
    job.is_none_or(|job| job.value.job_type.is_per_node())
}

/// A canary runs beside the allocation that it may replace, a promoted one until that is stopped; and
/// an unknown allocation may have been replaced.
fn counts_for_its_name(snapshot: &Snapshot, view: &AllocView) -> bool {
    !view.is_terminal()
        && !view.alloc.canary
        && !was_canary(snapshot, view)
        && view.alloc.client_status_override != Some(ClientStatus::Unknown)
}

/// Returns true if an allocation has its name from a canary that was placed after revision `oldest`.
///
/// A plan that replaces a canary and the allocation beside it may be committed for the canary's node
/// alone; the next plan of the job replaces the other.
fn inherits_from_canary(snapshot: &Snapshot, view: &AllocView, oldest: u64) -> bool {
    let mut replacement = view;
    // An allocation is younger than its predecessor, so this ends.
    while let Some(previous) = predecessor(snapshot, replacement) {
        if previous.create_index <= oldest {
            return false;
        }
        if previous.alloc.canary || was_canary(snapshot, previous) {
            return true;
        }
        replacement = previous;
    }
    false
}

/// Returns the allocation that has left its name to `view`.
fn predecessor<'a>(snapshot: &'a Snapshot, view: &AllocView) -> Option<&'a AllocView> {
    let previous = snapshot.alloc(view.alloc.previous_alloc?)?;
    let has_name = previous.alloc.name_index == view.alloc.name_index
        && previous.create_index < view.create_index;
    has_name.then_some(previous)
}

fn was_canary(snapshot: &Snapshot, view: &AllocView) -> bool {
    let deployment = view
        .alloc
        .deployment_id
        .and_then(|id| snapshot.deployment(id));
    let group = deployment.and_then(|one| one.value.groups.get(&*view.alloc.task_group));
    group.is_some_and(|group| group.placed_canaries.contains(&view.alloc.id))
}
