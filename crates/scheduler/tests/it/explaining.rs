//! Properties of explanations: every node is counted once, and the nearest miss is one.

use std::collections::BTreeSet;

use model::node::{HostNetwork, HostVolume};
use model::{
    EvalId, Job, Node, NodeEligibility, NodeStatus, Operator, Preemption, SchedulerConfiguration,
};
use placement::{Check, Scope, VolumeAsks};
use scheduler::explain::{
    CLASSES_MAX, Counts, ExplainRequest, Explanation, GroupExplanation, NodeExplanation,
    PlacementBlocker, PreemptionOutcome, Question, REASONS_MAX, Verdict, explain, explain_with,
};
use state::{Change, Entity, Key, Snapshot};
use test_kit::builders;

use crate::cluster::TestCluster;
use crate::random_history::{ALL, ANYWHERE, EVERYWHERE, Observation, RandomHistory, play};

fn ask(
    history: &RandomHistory,
    snapshot: &Snapshot,
    id: EvalId,
    node: Option<model::NodeId>,
) -> Explanation {
    let request = ExplainRequest {
        eval: snapshot.eval(id).unwrap(),
        node,
        now: history.cluster.now,
        seed: 7,
    };
    explain(snapshot, &request)
}

fn check(history: &mut RandomHistory, observed: Observation<'_>) {
    let id = observed.decision.plan.eval_id;
    // After the commit, and now and then before: it costs as much as the history.
    let is_shown_before = observed.before.index().is_multiple_of(4);
    let before = is_shown_before.then(|| observed.before.clone());
    for snapshot in before.into_iter().chain([history.cluster.snapshot()]) {
        let explanation = ask(history, &snapshot, id, None);
        for group in &explanation.groups {
            check_counts(&snapshot, observed.job, group);
            check_preemption(history, &snapshot, id, group);
            // No change of a node can provide a claim.
            let asked = observed.job.task_group(&group.name);
            let mut volumes = asked.iter().flat_map(|group| group.volumes.values());
            let is_told = !volumes.any(|volume| volume.sticky);
            if let Some(nearest) = group.nearest.as_ref().filter(|_| is_told) {
                check_nearest(history, &snapshot, id, group, nearest);
            }
        }
        if snapshot.index().is_multiple_of(3) {
            check_missing(history, &snapshot, id);
        }
    }
}

/// Every node is counted once, and the ready ones in scope are fully checked.
fn check_counts(snapshot: &Snapshot, job: &Job, group: &GroupExplanation) {
    assert_eq!(group.counts.total() as usize, snapshot.node_count());
    let scope = Scope::new(job);
    let nodes = snapshot.nodes().map(|node| &node.value);
    let candidates = nodes.filter(|node| node.is_schedulable() && scope.contains(node));
    let counts = &group.counts;
    let asked = counts.filtered + counts.exhausted + counts.outscored + counts.chosen;
    if job.version == group.job_version && group.question != Question::Everywhere {
        // The chosen node may be disconnected by now.
        let is_out = group.chosen.as_ref().is_some_and(|chosen| {
            let node = &snapshot.node(chosen.node_id).unwrap().value;
            !node.is_schedulable() || !scope.contains(node)
        });
        assert_eq!(asked as usize, candidates.count() + usize::from(is_out));
    }
    let mut sum = 0;
    for verdict in Verdict::ALL {
        let by_class = group.classes.iter().map(|class| class.counts.of(verdict));
        let by_class: u32 = by_class.sum();
        assert_eq!(by_class, Counts::of(counts, verdict), "{verdict:?}");
        sum += by_class;
    }
    assert_eq!(sum, counts.total());
    if group.missing == 0 && group.question != Question::Everywhere && counts.outscored > 0 {
        assert!(
            group.chosen.is_some(),
            "an outscored node without a chosen one: {group:?}"
        );
    }
}

/// No allocation is unplaced where preemption is possible, and the needed priority suffices.
fn check_preemption(
    history: &RandomHistory,
    snapshot: &Snapshot,
    id: EvalId,
    group: &GroupExplanation,
) {
    let preemption = &group.preemption;
    let node_explanation =
        preemption.possible + preemption.disabled + preemption.outranked + preemption.insufficient;
    assert!(node_explanation <= group.counts.exhausted, "{group:?}");
    if group.question == Question::Unplaced {
        assert_eq!(preemption.possible, 0, "preemption is possible: {group:#?}");
    }
    let nodes = group.nearest.iter().chain(&group.node);
    for node in nodes {
        let Some(preemption) = node.preemption.as_ref() else {
            continue;
        };
        if let PreemptionOutcome::Disabled { job_type, .. } = preemption {
            assert!(!snapshot.scheduler_config().preemption.is_enabled(*job_type));
        }
        if let PreemptionOutcome::Outranked {
            priority,
            needed,
            disabled_for,
        } = preemption
        {
            assert!(priority < needed, "{group:#?}");
            let job = &snapshot.job(&snapshot.eval(id).unwrap().value.job).unwrap();
            let config = snapshot.scheduler_config();
            let may_ask = config.preemption.is_enabled(job.value.job_type);
            assert_eq!(disabled_for.is_none(), may_ask, "{group:#?}");
            let is_one = job.value.task_groups.len() == 1 && job.value.version == group.job_version;
            if is_one && *needed <= 100 {
                let after = with_priority(history, snapshot, id, *needed, node.node_id);
                // An allocation of the group was placed, and the next one is explained.
                let takes_one = after.holds > node.holds;
                let is_open = !matches!(
                    after.preemption,
                    Some(PreemptionOutcome::Outranked { .. } | PreemptionOutcome::Disabled { .. })
                );
                assert!(takes_one || is_open, "{after:#?} after {node:#?}");
            }
        }
    }
}

/// Returns the explanation of a node once the job has a priority and preemption is enabled.
fn with_priority(
    history: &RandomHistory,
    snapshot: &Snapshot,
    id: EvalId,
    priority: u8,
    node: model::NodeId,
) -> NodeExplanation {
    let stored = snapshot.job(&snapshot.eval(id).unwrap().value.job).unwrap();
    let mut job = stored.value.clone();
    job.priority = priority;
    let (key, index) = (job.key(), snapshot.index() + 1);
    let entities = [
        (Key::Job(key.clone()), Entity::Job(job.clone().into())),
        (
            Key::JobVersion(key, job.version),
            Entity::JobVersion(job.into()),
        ),
    ];
    let changes = entities.map(|(key, entity)| Change::Put {
        key,
        entity,
        create_index: stored.create_index,
        modify_index: index,
    });
    let mut state = snapshot.to_state();
    state.apply(index, changes);
    let config = SchedulerConfiguration {
        preemption: Preemption {
            system: true,
            sysbatch: true,
            batch: true,
            service: true,
        },
        ..snapshot.scheduler_config().clone()
    };
    let changed = state.snapshot();
    let request = ExplainRequest {
        eval: changed.eval(id).unwrap(),
        node: Some(node),
        now: history.cluster.now,
        seed: 7,
    };
    let explanation = explain_with(&config, &changed, &request);
    explanation.groups[0].node.clone().unwrap()
}

/// Returns the number of victims on a node for an evaluation's job.
fn evictions(
    history: &RandomHistory,
    snapshot: &Snapshot,
    id: EvalId,
    node: model::NodeId,
) -> usize {
    let mut eval = model::Indexed::clone(snapshot.eval(id).unwrap());
    eval.value.triggered_by = model::TriggeredBy::JobRegister;
    let decision = scheduler::schedule(snapshot, &eval, history.cluster.now, 7);
    let preemptions = &decision.plan.preemptions;
    preemptions.get(&node).map_or(0, Vec::len)
}

/// Without its blockers, the nearest miss takes an allocation.
fn check_nearest(
    history: &RandomHistory,
    snapshot: &Snapshot,
    id: EvalId,
    group: &GroupExplanation,
    nearest: &NodeExplanation,
) {
    assert!(!nearest.blockers.is_empty(), "{nearest:?}");
    let changed = without(snapshot, id, &group.name, nearest);
    let explanation = ask(history, &changed, id, Some(nearest.node_id));
    let groups = explanation.groups.iter();
    let (own, others): (Vec<_>, Vec<_>) = groups.partition(|after| after.name == group.name);
    let (after, node) = (own[0], own[0].node.as_ref().unwrap());
    let is_feasible = node.verdict >= Verdict::Outscored;
    let is_placed = after.missing < group.missing || node.holds > nearest.holds;
    // A node that returns is for all groups, and an earlier group may have used it up.
    let mut blockers = nearest.blockers.iter();
    let was_away = blockers.any(|blocker| matches!(blocker, PlacementBlocker::Status(_)));
    // Allocations that were to be lost with it stay.
    let mut here = snapshot.allocs_by_node(nearest.node_id);
    let keeps_others = was_away && here.any(|view| !view.is_terminal());
    // Victims there stay.
    let evictions = |snapshot| evictions(history, snapshot, id, nearest.node_id);
    let spares = evictions(snapshot) > evictions(&changed);
    let is_shared = keeps_others || spares || others.iter().any(|other| other.would_place > 0);
    assert!(
        is_feasible || is_placed || is_shared,
        "nearest was {nearest:#?}\nand is {node:#?}\nbefore {group:#?}\nafter {after:#?}"
    );
    if group.question == Question::Unplaced && !is_shared {
        let takes_one = node.verdict == Verdict::Chosen;
        assert!(is_placed || takes_one, "{group:#?}\n{after:#?}");
    }
}

/// With one unit less than the missing amount, a node that lacks nothing else is still full, unless
/// allocations are evicted.
fn check_missing(history: &RandomHistory, snapshot: &Snapshot, id: EvalId) {
    let config = SchedulerConfiguration {
        preemption: Preemption {
            system: false,
            sysbatch: false,
            batch: false,
            service: false,
        },
        ..snapshot.scheduler_config().clone()
    };
    let ask = |snapshot: &Snapshot, node| {
        let request = ExplainRequest {
            eval: snapshot.eval(id).unwrap(),
            node,
            now: history.cluster.now,
            seed: 7,
        };
        explain_with(&config, snapshot, &request).groups
    };
    let groups = ask(snapshot, None);
    if groups.len() > 1 {
        // A little more room may be enough for one group, which changes the room of the others.
        return;
    }
    for group in groups {
        let Some(mut short) = group.nearest.clone() else {
            continue;
        };
        match &mut short.blockers[..] {
            [PlacementBlocker::Amount { missing, .. }] => *missing -= 1,
            [PlacementBlocker::Allocations { missing, .. }] => *missing -= 1,
            [PlacementBlocker::Devices { short, .. }] if short.len() == 1 => short[0].missing -= 1,
            _ => continue,
        }
        let was_full = short.verdict == Verdict::Exhausted;
        if group.question == Question::WouldPlace {
            // With more room, an allocation may be placed elsewhere.
            continue;
        }
        let changed = without(snapshot, id, &group.name, &short);
        let after = ask(&changed, Some(short.node_id));
        let after = after.into_iter().find(|after| after.name == group.name);
        let after = after.unwrap();
        let verdict = after.node.as_ref().unwrap().verdict;
        assert!(verdict < Verdict::Outscored, "{group:#?}\n{after:#?}");
        let job = snapshot.job(&snapshot.eval(id).unwrap().value.job).unwrap();
        let task_group = job.value.task_group(&group.name).unwrap();
        let mut tasks = task_group.tasks.iter();
        // The predecessor of another allocation may have faster cores there, and so free more.
        let asks_cores = tasks.any(|task| task.resources.cores > 0);
        // So may a larger one.
        let own = snapshot
            .allocs_by_node(short.node_id)
            .filter(|view| *view.alloc.task_group == *group.name && !view.is_client_terminal());
        let sizes: BTreeSet<_> = own.map(|view| view.alloc.resources.total.cpu_mhz).collect();
        // A system allocation is missing only where its node is full.
        if was_full && !asks_cores && sizes.len() < 2 {
            assert_eq!(after.missing, group.missing, "{group:#?}\n{after:#?}");
        }
    }
}

/// Returns the state without the blockers of a node, changed as the explanation says.
fn without(snapshot: &Snapshot, id: EvalId, group: &str, miss: &NodeExplanation) -> Snapshot {
    let key = &snapshot.eval(id).unwrap().value.job;
    let mut node = snapshot.node(miss.node_id).unwrap().value.clone();
    let mut dropped = BTreeSet::new();
    let mut stopped = BTreeSet::new();
    let (mut is_dynamic, mut is_tied) = (false, false);
    for blocker in &miss.blockers {
        match blocker {
            PlacementBlocker::Status(_) => node.status = NodeStatus::Ready,
            PlacementBlocker::Ineligible => node.eligibility = NodeEligibility::Eligible,
            PlacementBlocker::Constraint { reason, .. } => {
                dropped.insert(reason.clone());
            }
            PlacementBlocker::DistinctHosts { .. } => {
                dropped.insert("distinct_hosts".into());
            }
            PlacementBlocker::DistinctProperty { .. } => {
                dropped.insert("distinct_property".into());
            }
            PlacementBlocker::Amount {
                dimension, missing, ..
            } => match *dimension {
                "cpu" => node.resources.cpu_mhz += missing,
                "memory" => node.resources.memory_mib += missing,
                "disk" => node.resources.disk_mib += missing,
                "cores" => {
                    let cores = 100..100 + u16::try_from(*missing).unwrap();
                    node.cores.extend(cores.map(|id| (id, 1)));
                    // The sum of the cores is known only once there are enough.
                    node.resources.cpu_mhz += 10_000;
                }
                other => panic!("no such dimension of a node: {other}"),
            },
            PlacementBlocker::StaticPort { holder, .. } => {
                match holder.as_ref().filter(|holder| !holder.is_own) {
                    Some(holder) => drop(stopped.insert(holder.alloc_id)),
                    None => {
                        is_dynamic = true;
                        node.max_dynamic_port += 1_000;
                    }
                }
            }
            PlacementBlocker::Devices { short, .. } => {
                let missing = short.iter().map(|short| short.missing).sum();
                add_devices(&mut node, missing);
            }
            PlacementBlocker::Allocations { missing, .. } => node.max_allocs += missing,
            PlacementBlocker::Volumes { volumes } => {
                let volume = HostVolume {
                    path: "/srv/new".to_owned(),
                    read_only: false,
                };
                let named = volumes.iter().map(|name| (name.clone(), volume.clone()));
                node.host_volumes.extend(named);
            }
            PlacementBlocker::Unfit { reason } if reason.starts_with("the group has claimed") => {
                is_tied = true;
            }
            PlacementBlocker::Unfit { reason } => equip(&mut node, reason),
            PlacementBlocker::SamePort { .. } => {
                is_dynamic = true;
                node.max_dynamic_port += 1_000;
            }
            PlacementBlocker::Failed { .. } => {
                dropped.insert("reschedule".into());
            }
            PlacementBlocker::DynamicPorts { missing } => {
                node.max_dynamic_port += u16::try_from(*missing).unwrap();
            }
            other => panic!("worlds have no such thing: {other:?}"),
        }
    }
    let mut entities = vec![(Key::Node(node.id), Entity::Node(Box::new(node)))];
    for id in stopped {
        let mut alloc = model::Allocation::clone(&snapshot.alloc(id).unwrap().alloc);
        alloc.desired_status = model::DesiredStatus::Stop;
        entities.push((Key::Alloc(id), Entity::Alloc(Box::new(alloc))));
    }
    let edited = |job: &Job| {
        let mut job = job.clone();
        loosen(&mut job, group, &dropped, is_dynamic);
        Box::new(job)
    };
    let job = edited(&snapshot.job(key).unwrap().value);
    entities.push((Key::Job(key.clone()), Entity::Job(job)));
    for version in snapshot.job_versions(key) {
        let number = version.value.version;
        let job = Entity::JobVersion(edited(&version.value));
        entities.push((Key::JobVersion(key.clone(), number), job));
    }
    let mut state = snapshot.to_state();
    let revision = snapshot.index() + 1;
    let changes = entities.into_iter().map(|(key, entity)| Change::Put {
        create_index: create_index(snapshot, &key),
        modify_index: revision,
        key,
        entity,
    });
    let claims = snapshot.volume_claims_of(key).filter(|_| is_tied);
    let dropped = claims.map(|claim| Change::Delete {
        key: Key::VolumeClaim(claim.value.id()),
    });
    state.apply(revision, changes.chain(dropped).collect::<Vec<_>>());
    state.snapshot()
}

/// Adds as many devices of each kind: the explanation names no kind.
fn add_devices(node: &mut Node, missing: u64) {
    for kind in &mut node.devices {
        let more = (100..100 + missing).map(|id| model::node::DeviceInstance {
            id: id.to_string(),
            healthy: true,
        });
        kind.instances.extend(more);
    }
}

fn create_index(snapshot: &Snapshot, key: &Key) -> u64 {
    let known = match key {
        Key::Job(key) => snapshot.job(key).map(|job| job.create_index),
        Key::JobVersion(key, version) => {
            let job = snapshot.job_version(key, *version);
            job.map(|job| job.create_index)
        }
        Key::Alloc(id) => snapshot.alloc(*id).map(|view| view.create_index),
        Key::Node(id) => snapshot.node(*id).map(|node| node.create_index),
        _ => None,
    };
    known.unwrap()
}

/// Adds the host network or volume that `reason` names to a node.
fn equip(node: &mut Node, reason: &str) {
    let network = || HostNetwork {
        addresses: vec!["198.51.100.1".to_owned()],
        reserved_ports: Vec::new(),
    };
    if [VolumeAsks::REASON, VolumeAsks::CONFLICT].contains(&reason) {
        // A static volume is not exclusive.
        for name in ["data", "own"] {
            let volume = HostVolume {
                path: "/srv/new".to_owned(),
                read_only: false,
            };
            node.host_volumes.insert(name.to_owned(), volume);
        }
    } else if reason.starts_with("invalid host network") {
        node.meta.insert("network".to_owned(), "new".to_owned());
        node.host_networks.insert("new".to_owned(), network());
    } else {
        let alias = reason.split('"').nth(1).expect("the alias is quoted");
        assert!(reason.starts_with("missing host network"), "{reason}");
        node.host_networks.insert(alias.to_owned(), network());
    }
}

/// Removes constraints from a job, and makes a group's ports dynamic.
fn loosen(job: &mut Job, group: &str, dropped: &BTreeSet<String>, is_dynamic: bool) {
    let mut lists = vec![&mut job.constraints];
    let mut groups = job.task_groups.iter_mut();
    if let Some(group) = groups.find(|known| known.name == group) {
        lists.push(&mut group.constraints);
        if dropped.contains("reschedule") {
            group.reschedule = None;
        }
        for port in group
            .networks
            .iter_mut()
            .flat_map(|network| &mut network.ports)
        {
            port.static_port = port.static_port.filter(|_| !is_dynamic);
        }
    }
    for list in lists {
        list.retain(|constraint| match constraint.operator {
            Operator::DistinctHosts => !dropped.contains("distinct_hosts"),
            Operator::DistinctProperty => !dropped.contains("distinct_property"),
            _ => !dropped.contains(Check::new(constraint).reason()),
        });
    }
}

#[test]
fn every_node_is_counted_once_and_the_nearest_miss_is_one() {
    play(ANYWHERE, check);
}

#[test]
fn the_same_holds_where_every_node_should_have_one() {
    play(EVERYWHERE, check);
}

#[test]
fn many_classes_and_many_reasons_are_cut_off_with_their_count() {
    let mut cluster = TestCluster::new(1);
    for number in 1..=40 {
        let mut node = builders::node(number);
        node.node_class = format!("c{number:02}");
        cluster.put_node(node);
    }
    // Every rack has one allocation, and there is one more.
    for number in 41..=60 {
        let mut node = builders::node(number);
        node.node_class = "racked".into();
        node.meta.insert("rack".into(), format!("r{number}"));
        node.computed_class = placement::computed_class(&node);
        cluster.put_node(node);
    }
    let mut job = builders::service("web", 21);
    job.constraints.push(model::Constraint {
        left: "${meta.rack}".into(),
        operator: Operator::DistinctProperty,
        right: String::new(),
    });
    cluster.register(job.clone());
    let id = cluster.add_eval(&job, model::TriggeredBy::JobRegister);
    cluster.run(id);
    let snapshot = cluster.snapshot();
    let request = ExplainRequest {
        eval: snapshot.eval(id).unwrap(),
        node: None,
        now: cluster.now,
        seed: 7,
    };
    let explanation = explain(&snapshot, &request);
    let group = &explanation.groups[0];
    assert_eq!((group.placed, group.live, group.missing), (20, 20, 1));
    assert_eq!(group.counts.filtered, 60);
    assert_eq!(group.classes.len(), CLASSES_MAX);
    assert_eq!(group.classes_left_out as usize, 41 - CLASSES_MAX);
    assert_eq!(group.nodes_left_out, group.classes_left_out);
    let largest = &group.classes[0];
    assert_eq!((&*largest.class, largest.counts.filtered), ("racked", 20));
    assert_eq!(largest.reasons.len(), REASONS_MAX);
    assert_eq!(largest.reasons_left_out as usize, 20 - REASONS_MAX);
    assert_eq!(group.classes[1].class, "c01");
}

#[test]
fn the_same_holds_where_some_make_way_for_others() {
    play(ALL, check);
}
