//! Indexes and usage after any history of changes, against a recomputation from scratch.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    AllocId, Allocation, ClientStatus, ComparableResources, DesiredStatus, EvalId, NodeId,
};
use proptest::prelude::*;

use super::{
    alloc_id, allocation, eval_id, job, job_key, machine, node_id, put_alloc, put_client, put_node,
};
use crate::{Change, Entity, Key, NodeUsage, Share, Snapshot, State};

#[derive(Clone, Debug)]
enum Step {
    Place {
        id: u128,
        node: u128,
    },
    Stop {
        id: u128,
        eval: u128,
    },
    Report {
        id: u128,
        status: ClientStatus,
    },
    Forget {
        id: u128,
    },
    ForgetClient {
        id: u128,
    },
    Lose {
        id: u128,
    },
    PutNode {
        node: u128,
        rack: u8,
        eligible: bool,
    },
    ForgetNode {
        node: u128,
    },
    PutVersion {
        version: u64,
        priority: u8,
    },
    ForgetVersion {
        version: u64,
    },
    Update {
        id: u128,
        version: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let id = 1..12_u128;
    let status = prop_oneof![
        Just(ClientStatus::Pending),
        Just(ClientStatus::Running),
        Just(ClientStatus::Complete),
        Just(ClientStatus::Failed),
    ];
    prop_oneof![
        (id.clone(), 1..4_u128).prop_map(|(id, node)| Step::Place { id, node }),
        (id.clone(), 1..4_u128).prop_map(|(id, eval)| Step::Stop { id, eval }),
        (id.clone(), status).prop_map(|(id, status)| Step::Report { id, status }),
        id.clone().prop_map(|id| Step::Forget { id }),
        id.clone().prop_map(|id| Step::ForgetClient { id }),
        id.prop_map(|id| Step::Lose { id }),
        (1..4_u128, 0..3_u8, any::<bool>()).prop_map(|(node, rack, eligible)| Step::PutNode {
            node,
            rack,
            eligible
        }),
        (1..4_u128).prop_map(|node| Step::ForgetNode { node }),
        (0..3_u64, 1..4_u8).prop_map(|(version, priority)| Step::PutVersion { version, priority }),
        (0..3_u64).prop_map(|version| Step::ForgetVersion { version }),
        (1..12_u128, 0..3_u64).prop_map(|(id, version)| Step::Update { id, version }),
    ]
}

/// Returns the change that a store would report for a step; none where the step is impossible.
fn change(snapshot: &Snapshot, step: &Step, revision: u64) -> Option<Change> {
    let rewrite = |id: u128, edit: &dyn Fn(&mut Allocation)| {
        let view = snapshot.alloc(alloc_id(id))?;
        let mut alloc = (*view.alloc).clone();
        edit(&mut alloc);
        Some(put_alloc(alloc, view.create_index, revision))
    };
    match *step {
        Step::Place { id, node } => match snapshot.alloc(alloc_id(id)) {
            Some(_) => None,
            None => Some(put_alloc(allocation(id, node), revision, revision)),
        },
        Step::Stop { id, eval } => rewrite(id, &|alloc| {
            alloc.desired_status = DesiredStatus::Stop;
            alloc.eval_id = eval_id(eval);
        }),
        Step::Lose { id } => rewrite(id, &|alloc| {
            alloc.client_status_override = Some(ClientStatus::Lost);
        }),
        Step::Report { id, status } => Some(put_client(alloc_id(id), status, revision)),
        Step::Forget { id } => Some(Change::Delete {
            key: Key::Alloc(alloc_id(id)),
        }),
        Step::ForgetClient { id } => Some(Change::Delete {
            key: Key::AllocClient(alloc_id(id)),
        }),
        Step::PutNode {
            node,
            rack,
            eligible,
        } => {
            let known = snapshot.node(node_id(node)).map(|node| node.create_index);
            Some(put_node(
                machine(node, rack, eligible),
                known.unwrap_or(revision),
                revision,
            ))
        }
        Step::ForgetNode { node } => Some(Change::Delete {
            key: Key::Node(node_id(node)),
        }),
        Step::PutVersion { version, priority } => {
            let mut job = job(false);
            job.version = version;
            job.priority = priority;
            Some(Change::Put {
                key: Key::JobVersion(job_key(), version),
                entity: Entity::JobVersion(Box::new(job)),
                create_index: revision,
                modify_index: revision,
            })
        }
        Step::ForgetVersion { version } => Some(Change::Delete {
            key: Key::JobVersion(job_key(), version),
        }),
        Step::Update { id, version } => rewrite(id, &|alloc| alloc.job_version = version),
    }
}

fn assert_consistent(snapshot: &Snapshot) {
    let mut usage = BTreeMap::<NodeId, NodeUsage>::new();
    let mut by_node = BTreeMap::<NodeId, Vec<AllocId>>::new();
    let mut by_eval = BTreeMap::<EvalId, Vec<AllocId>>::new();
    for view in snapshot.allocs() {
        by_node
            .entry(view.alloc.node_id)
            .or_default()
            .push(view.alloc.id);
        by_eval
            .entry(view.alloc.eval_id)
            .or_default()
            .push(view.alloc.id);
        if !view.is_terminal() {
            usage
                .entry(view.alloc.node_id)
                .or_default()
                .add(&view.alloc.resources);
        }
    }
    for node in (1..4).map(node_id) {
        assert_eq!(snapshot.usage(node), usage.get(&node), "usage of {node}");
        let mut expected = by_node.remove(&node).unwrap_or_default();
        expected.sort();
        let found: Vec<_> = snapshot
            .allocs_by_node(node)
            .map(|view| view.alloc.id)
            .collect();
        assert_eq!(found, expected, "allocations of {node}");
    }
    for eval in (1..4).map(eval_id) {
        let mut expected = by_eval.remove(&eval).unwrap_or_default();
        expected.sort();
        let found: Vec<_> = snapshot
            .allocs_by_eval(eval)
            .map(|view| view.alloc.id)
            .collect();
        assert_eq!(found, expected, "allocations of {eval}");
    }
    assert_table_is_consistent(snapshot);
    assert_shares_are_consistent(snapshot);
}

fn assert_shares_are_consistent(snapshot: &Snapshot) {
    let mut shares = BTreeMap::<(NodeId, u8), (u32, ComparableResources)>::new();
    for view in snapshot.allocs().filter(|view| !view.is_terminal()) {
        let alloc = &view.alloc;
        let version = snapshot.job_version(&alloc.job_key(), alloc.job_version);
        if let Some(job) = version {
            let key = (alloc.node_id, job.value.priority);
            let (count, total) = shares.entry(key).or_default();
            *count += 1;
            *total = total.plus(alloc.resources.total);
        }
    }
    for node in (1..4).map(node_id) {
        let of_node = shares.iter().filter(|((id, _), _)| *id == node);
        let expected: Vec<_> = of_node
            .map(|((_, priority), (alloc_count, total))| Share {
                priority: *priority,
                alloc_count: *alloc_count,
                total: *total,
            })
            .collect();
        assert_eq!(snapshot.shares(node), expected, "shares of {node}");
    }
}

/// Compares the node table with every node, and its kinds with the nodes.
fn assert_table_is_consistent(snapshot: &Snapshot) {
    let table = snapshot.node_table();
    let mut kinds = BTreeMap::<u32, (BTreeSet<String>, u32, u32)>::new();
    for node in snapshot.nodes().map(|node| &node.value) {
        let position = table.position(node.id).expect("every node has a row");
        let row = table.row(position);
        let usage = snapshot.usage(node.id).cloned().unwrap_or_default();
        assert_eq!(row.id, node.id);
        assert_eq!(row.used, usage.total, "usage of {}", node.name);
        assert_eq!(row.port_count, usage.ports.len());
        assert_eq!(usage.ports.len() as usize, usage.ports.iter().count());
        assert_eq!(row.available, node.available());
        assert_eq!(row.is_schedulable, node.is_schedulable());
        assert_eq!(
            table.node(position).map(|node| node.value.id),
            Some(node.id)
        );
        let (racks, nodes, schedulable) = kinds.entry(row.kind).or_default();
        racks.insert(node.meta["rack"].clone());
        *nodes += 1;
        *schedulable += u32::from(node.is_schedulable());
    }
    let taken = table.chunks().flatten().enumerate();
    let taken = taken.filter(|(position, _)| table.node(*position).is_some());
    assert_eq!(taken.count(), snapshot.node_count());
    let free = table.chunks().flatten().enumerate();
    for (position, row) in free.filter(|(position, _)| table.node(*position).is_none()) {
        assert!(!row.is_schedulable, "row {position} has no node");
    }
    let mut seen = BTreeSet::new();
    for (position, kind) in (0..).zip(table.kinds()) {
        let Some(kind) = kind else {
            assert!(!kinds.contains_key(&position), "kind {position} is gone");
            continue;
        };
        let (racks, nodes, schedulable) = &kinds[&position];
        let rack = &kind.example.value.meta["rack"];
        assert_eq!(racks.iter().collect::<Vec<_>>(), [rack]);
        assert_eq!(
            (kind.node_count, kind.schedulable_count),
            (*nodes, *schedulable)
        );
        assert!(seen.insert(rack.clone()), "two kinds for {rack}");
    }
    assert_eq!(seen.len(), kinds.len());
}

proptest! {
    #[test]
    fn indexes_and_usage_match_a_recomputation(steps in prop::collection::vec(step(), 1..60)) {
        let mut state = State::default();
        let mut revision = 0;
        for step in &steps {
            let snapshot = state.snapshot();
            if let Some(change) = change(&snapshot, step, revision + 1) {
                revision += 1;
                state.apply(revision, [change]);
                assert_consistent(&state.snapshot());
            }
        }
    }

    #[test]
    fn a_list_gives_the_same_state_as_the_history(steps in prop::collection::vec(step(), 1..60)) {
        let mut state = State::default();
        let mut revision = 0;
        let mut latest = BTreeMap::<Key, Change>::new();
        for step in &steps {
            let Some(change) = change(&state.snapshot(), step, revision + 1) else { continue };
            revision += 1;
            match &change {
                Change::Put { key, .. } => drop(latest.insert(key.clone(), change.clone())),
                Change::Delete { key } => drop(latest.remove(key)),
            }
            state.apply(revision, [change]);
        }
        let listed = State::from_list(revision, latest.into_values()).snapshot();
        let watched = state.snapshot();
        let mut one: Vec<_> = listed.allocs().cloned().collect();
        let mut other: Vec<_> = watched.allocs().cloned().collect();
        one.sort_by_key(|view| view.alloc.id);
        other.sort_by_key(|view| view.alloc.id);
        prop_assert_eq!(one, other);
        assert_consistent(&listed);
    }
}

#[test]
fn a_snapshot_never_changes() {
    let mut state = State::default();
    state.apply(1, [put_alloc(allocation(1, 1), 1, 1)]);
    let before = state.snapshot();
    state.apply(2, [put_alloc(allocation(2, 1), 2, 2)]);
    assert_eq!(before.index(), 1);
    assert_eq!(before.allocs().count(), 1);
    assert_eq!(state.snapshot().allocs().count(), 2);
}

#[test]
#[should_panic(expected = "revision 3 applied after 3")]
fn a_revision_is_applied_once() {
    let mut state = State::default();
    state.apply(3, [put_alloc(allocation(1, 1), 3, 3)]);
    state.apply(3, [put_alloc(allocation(1, 1), 3, 3)]);
}
