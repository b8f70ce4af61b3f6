//! Check of the replica's indexes against a scan of every object.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use model::{AllocId, ComparableResources, DeploymentId, EvalId, JobKey, NodeId};
use state::Snapshot;

use crate::violation::{Fact, Violation};

/// Compares every index with a scan, for every known name. Costs a scan of everything.
pub fn check_indexes(snapshot: &Snapshot) -> Vec<Violation> {
    let (recorded, counted) = (
        Indexes::recorded_in(snapshot),
        Indexes::counted_in(snapshot),
    );
    recorded
        .differences(&counted)
        .into_iter()
        .map(|found| Violation {
            revision: snapshot.index(),
            fact: Fact::IndexesAreRight,
            found,
        })
        .collect()
}

/// Address and port → number of holders.
type Ports = BTreeMap<(String, u16), u32>;

/// All indexes, name → found objects; no entry is empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Indexes {
    pub(crate) allocs_by_node: BTreeMap<NodeId, BTreeSet<AllocId>>,
    pub(crate) allocs_by_job: BTreeMap<JobKey, BTreeSet<AllocId>>,
    pub(crate) allocs_by_eval: BTreeMap<EvalId, BTreeSet<AllocId>>,
    pub(crate) allocs_by_deployment: BTreeMap<DeploymentId, BTreeSet<AllocId>>,
    pub(crate) evals_by_job: BTreeMap<JobKey, BTreeSet<EvalId>>,
    pub(crate) open_evals: BTreeSet<EvalId>,
    pub(crate) deployments_by_job: BTreeMap<JobKey, BTreeSet<DeploymentId>>,
    pub(crate) active_deployments: BTreeSet<DeploymentId>,
    /// Live allocations only: number, total, and holders of each port.
    pub(crate) usage: BTreeMap<NodeId, (u32, ComparableResources, Ports)>,
}

impl Indexes {
    /// Reads the replica's indexes.
    pub(crate) fn recorded_in(snapshot: &Snapshot) -> Self {
        let mut recorded = Self::default();
        // The scan knows every name with objects; nodes and jobs
        // without any add names that must have no entry.
        let counted = Self::counted_in(snapshot);
        let nodes = snapshot.nodes().map(|node| node.value.id);
        for id in nodes.chain(counted.allocs_by_node.keys().copied()) {
            let ids = snapshot
                .allocs_by_node(id)
                .map(|view| view.alloc.id)
                .collect();
            insert(&mut recorded.allocs_by_node, id, ids);
            if let Some(usage) = snapshot.usage(id) {
                let ports = usage
                    .ports
                    .iter()
                    .map(|(address, port, count)| ((address.to_owned(), port), count))
                    .collect();
                recorded
                    .usage
                    .insert(id, (usage.alloc_count, usage.total, ports));
            }
        }
        let jobs = snapshot.jobs().map(|job| job.value.key());
        let named = counted
            .allocs_by_job
            .keys()
            .chain(counted.evals_by_job.keys());
        for job in jobs.chain(named.chain(counted.deployments_by_job.keys()).cloned()) {
            let allocs = snapshot
                .allocs_by_job(&job)
                .map(|view| view.alloc.id)
                .collect();
            let evals = snapshot
                .evals_by_job(&job)
                .map(|eval| eval.value.id)
                .collect();
            let deployments = snapshot
                .deployments_by_job(&job)
                .map(|one| one.value.id)
                .collect();
            insert(&mut recorded.allocs_by_job, job.clone(), allocs);
            insert(&mut recorded.evals_by_job, job.clone(), evals);
            insert(&mut recorded.deployments_by_job, job, deployments);
        }
        let evals = snapshot.evals().map(|eval| eval.value.id);
        for id in evals.chain(counted.allocs_by_eval.keys().copied()) {
            let ids = snapshot
                .allocs_by_eval(id)
                .map(|view| view.alloc.id)
                .collect();
            insert(&mut recorded.allocs_by_eval, id, ids);
        }
        let deployments = snapshot.deployments().map(|one| one.value.id);
        for id in deployments.chain(counted.allocs_by_deployment.keys().copied()) {
            let ids = snapshot
                .allocs_by_deployment(id)
                .map(|view| view.alloc.id)
                .collect();
            insert(&mut recorded.allocs_by_deployment, id, ids);
        }
        recorded.open_evals = snapshot.open_evals().map(|eval| eval.value.id).collect();
        recorded.active_deployments = snapshot
            .active_deployments()
            .map(|one| one.value.id)
            .collect();
        recorded
    }

    /// Scans every object.
    pub(crate) fn counted_in(snapshot: &Snapshot) -> Self {
        let mut counted = Self::default();
        for view in snapshot.allocs() {
            let alloc = &view.alloc;
            counted
                .allocs_by_node
                .entry(alloc.node_id)
                .or_default()
                .insert(alloc.id);
            counted
                .allocs_by_job
                .entry(alloc.job_key())
                .or_default()
                .insert(alloc.id);
            counted
                .allocs_by_eval
                .entry(alloc.eval_id)
                .or_default()
                .insert(alloc.id);
            if let Some(id) = alloc.deployment_id {
                counted
                    .allocs_by_deployment
                    .entry(id)
                    .or_default()
                    .insert(alloc.id);
            }
            if !view.is_terminal() {
                let (count, total, ports) = counted.usage.entry(alloc.node_id).or_default();
                *count += 1;
                *total = total.plus(alloc.resources.total);
                for port in &alloc.resources.ports {
                    *ports.entry((port.host_ip.clone(), port.value)).or_default() += 1;
                }
            }
        }
        for eval in snapshot.evals() {
            let eval = &eval.value;
            counted
                .evals_by_job
                .entry(eval.job.clone())
                .or_default()
                .insert(eval.id);
            if !eval.status.is_terminal() {
                counted.open_evals.insert(eval.id);
            }
        }
        for one in snapshot.deployments() {
            let deployment = &one.value;
            let of_job = counted
                .deployments_by_job
                .entry(deployment.job.clone())
                .or_default();
            of_job.insert(deployment.id);
            if deployment.status.is_active() {
                counted.active_deployments.insert(deployment.id);
            }
        }
        counted
    }

    /// Returns the differences between `self`, read from the indexes, and the scan.
    pub(crate) fn differences(&self, counted: &Self) -> Vec<String> {
        let mut found = Vec::new();
        compare(
            "allocations by node",
            &self.allocs_by_node,
            &counted.allocs_by_node,
            &mut found,
        );
        compare(
            "allocations by job",
            &self.allocs_by_job,
            &counted.allocs_by_job,
            &mut found,
        );
        compare(
            "allocations by eval",
            &self.allocs_by_eval,
            &counted.allocs_by_eval,
            &mut found,
        );
        compare(
            "allocations by deployment",
            &self.allocs_by_deployment,
            &counted.allocs_by_deployment,
            &mut found,
        );
        compare(
            "evaluations by job",
            &self.evals_by_job,
            &counted.evals_by_job,
            &mut found,
        );
        compare(
            "deployments by job",
            &self.deployments_by_job,
            &counted.deployments_by_job,
            &mut found,
        );
        compare("usage", &self.usage, &counted.usage, &mut found);
        let whole = |ids: &BTreeSet<_>| BTreeMap::from([("all", ids.clone())]);
        compare(
            "open evaluations",
            &whole(&self.open_evals),
            &whole(&counted.open_evals),
            &mut found,
        );
        let whole = |ids: &BTreeSet<_>| BTreeMap::from([("all", ids.clone())]);
        compare(
            "active deployments",
            &whole(&self.active_deployments),
            &whole(&counted.active_deployments),
            &mut found,
        );
        found
    }
}

fn insert<Name: Ord, Id: Ord>(
    index: &mut BTreeMap<Name, BTreeSet<Id>>,
    name: Name,
    ids: BTreeSet<Id>,
) {
    if !ids.is_empty() {
        index.insert(name, ids);
    }
}

fn compare<Name: Ord + Debug, Found: PartialEq + Debug>(
    index: &str,
    recorded: &BTreeMap<Name, Found>,
    counted: &BTreeMap<Name, Found>,
    found: &mut Vec<String>,
) {
    let names = recorded
        .keys()
        .chain(counted.keys())
        .collect::<BTreeSet<_>>();
    for name in names {
        let (recorded, counted) = (recorded.get(name), counted.get(name));
        if recorded != counted {
            found.push(format!(
                "{index}: {name:?}: {recorded:?} recorded, {counted:?} counted"
            ));
        }
    }
}
