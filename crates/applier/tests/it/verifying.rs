//! Verification of one plan: the accepted part and the refusals.

use applier::{Accepted, NodeOutcome, Pending, PlanVerification, Verification, verify};
use model::plan::DeploymentUpdate;
use model::{
    AllocClient, AllocId, ClientStatus, Deployment, DeploymentCounts, DeploymentGroup,
    DeploymentStatus, DesiredStatus, EvalStatus, Evaluation, JobType, NodeEligibility, NodeId,
    NodeStatus, Plan, TriggeredBy,
};
use state::{Entity, Key, Write};
use test_kit::builders;

use crate::store::{NOW, Store, port, stop};

pub(crate) fn accept(store: &Store, plan: &Plan) -> Accepted {
    match verify(&store.snapshot(), plan, NOW) {
        PlanVerification::Accepted(accepted) => accepted,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn refusal(store: &Store, plan: &Plan) -> String {
    match verify(&store.snapshot(), plan, NOW) {
        PlanVerification::Refused(refusal) => refusal.reason,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn placed(accepted: &Accepted) -> Vec<AllocId> {
    let ops = accepted.pieces.iter().flat_map(|piece| &piece.ops);
    ops.filter_map(Write::created_alloc).collect()
}

pub(crate) fn report(store: &mut Store, id: AllocId, status: ClientStatus) {
    let client = AllocClient {
        status,
        ..AllocClient::default()
    };
    store.put(Key::AllocClient(id), Entity::AllocClient(Box::new(client)));
}

fn ends_the_eval(accepted: &Accepted) -> bool {
    let mut ops = accepted.pieces.iter().flat_map(|piece| &piece.ops);
    ops.any(|op| matches!((op.key(), op.entity()), (Key::Eval(_), Some(_))))
}

#[test]
fn one_nodes_part_is_rejected_and_the_rest_accepted() {
    let mut store = Store::new(1);
    let (small, large) = (store.add_node(1, |_| {}), store.add_node(2, |_| {}));
    let mut plan = store.start_plan("web");
    store.place(&mut plan, small, 3_000);
    store.place(&mut plan, small, 3_000);
    let fits = store.place(&mut plan, large, 3_000);
    let accepted = accept(&store, &plan);
    assert_eq!(placed(&accepted), [fits]);
    assert_eq!(accepted.rejected_nodes, [(small, "cpu".to_owned())].into());
    assert!(!ends_the_eval(&accepted), "its worker is to look again");
}

/// A node that takes nothing anyway is not to blame.
#[test]
fn only_schedulable_nodes_that_reject_their_part_count_as_refusing() {
    let mut store = Store::new(1);
    let (full, free) = (store.add_node(1, |_| {}), store.add_node(2, |_| {}));
    let closed = store.add_node(3, |node| node.eligibility = NodeEligibility::Ineligible);
    let mut plan = store.start_plan("web");
    for (node, cpu) in [(full, 5_000), (free, 100), (closed, 100)] {
        store.place(&mut plan, node, cpu);
    }
    let (snapshot, pending) = (store.snapshot(), Pending::default());
    let verification = Verification::new(&snapshot, &pending, &plan);
    let nodes = verification.nodes();
    let verdicts: Vec<_> = nodes
        .iter()
        .map(|node| verification.check_node(*node))
        .collect();
    let is_rejected = |node| {
        let verdicts = nodes.iter().zip(&verdicts);
        let mut rejected = verdicts.filter(|(_, verdict)| **verdict != NodeOutcome::Accepted);
        rejected.any(|(id, _)| *id == node)
    };
    assert!(is_rejected(full) && is_rejected(closed) && !is_rejected(free));
    assert_eq!(verification.refusing(&verdicts), [full]);
}

#[test]
fn scenario_145_all_at_once_is_all_or_nothing() {
    let mut store = Store::new(2);
    let (full, free) = (store.add_node(1, |_| {}), store.add_node(2, |_| {}));
    let mut plan = store.start_plan("web");
    plan.all_at_once = true;
    store.place(&mut plan, full, 5_000);
    store.place(&mut plan, free, 100);
    let accepted = accept(&store, &plan);
    assert!(accepted.pieces.is_empty());
    assert_eq!(accepted.rejected_nodes.len(), 1);
}

#[test]
fn scenario_146_a_stop_is_accepted_wherever_its_node_is() {
    let edits: [fn(&mut model::Node); 3] = [
        |node| node.eligibility = NodeEligibility::Ineligible,
        |node| node.status = NodeStatus::Down,
        |node| node.status = NodeStatus::Disconnected,
    ];
    for edit in edits {
        let mut store = Store::new(3);
        let node = store.add_node(1, |_| {});
        let alloc = store.running("web", node, 100);
        store.edit_node(node, edit);
        let mut plan = store.start_plan("web");
        plan.stops.insert(node, vec![stop(alloc)]);
        store.must_commit(&plan);
        let stopped = store.alloc(alloc);
        assert_eq!(stopped.desired_status, DesiredStatus::Stop);
        assert_eq!(stopped.desired_description, "not needed");
        assert_eq!(stopped.modify_time, NOW);
    }
}

#[test]
fn a_stop_is_accepted_when_its_node_is_gone() {
    let mut store = Store::new(3);
    let node = store.add_node(1, |_| {});
    let alloc = store.running("web", node, 100);
    store.delete(Key::Node(node));
    let mut plan = store.start_plan("web");
    let mut lost = stop(alloc);
    lost.client_status = Some(ClientStatus::Lost);
    plan.stops.insert(node, vec![lost]);
    store.must_commit(&plan);
    assert!(store.snapshot().alloc(alloc).unwrap().is_client_terminal());
}

#[test]
fn placements_need_a_node_that_is_ready_and_eligible() {
    type Case = (fn(&mut model::Node), &'static str);
    let cases: [Case; 4] = [
        (
            |node| node.status = NodeStatus::Initializing,
            "node is not ready for placements",
        ),
        (
            |node| node.status = NodeStatus::Down,
            "node is down and contains invalid updates",
        ),
        (
            |node| node.status = NodeStatus::Disconnected,
            "node is disconnected and contains invalid updates",
        ),
        (
            |node| node.eligibility = NodeEligibility::Ineligible,
            "node is not eligible",
        ),
    ];
    for (edit, want) in cases {
        let mut store = Store::new(4);
        let node = store.add_node(1, edit);
        let mut plan = store.start_plan("web");
        store.place(&mut plan, node, 100);
        assert_eq!(accept(&store, &plan).rejected_nodes[&node], want);
    }
    let mut store = Store::new(4);
    let mut plan = store.start_plan("web");
    let nowhere = NodeId::from_random(99);
    store.place(&mut plan, nowhere, 100);
    assert_eq!(
        accept(&store, &plan).rejected_nodes[&nowhere],
        "node does not exist"
    );
}

/// Returns a plan that updates `alloc` in place, changed by `edit`.
fn update(store: &mut Store, alloc: AllocId, edit: impl FnOnce(&mut model::Allocation)) -> Plan {
    let mut plan = store.start_plan("web");
    let mut new = store.alloc(alloc);
    new.job_version = 1;
    edit(&mut new);
    plan.placements.insert(new.node_id, vec![new]);
    plan
}

#[test]
fn a_growing_update_in_place_has_to_fit() {
    let mut store = Store::new(6);
    let node = store.add_node(1, |_| {});
    let alloc = store.running("web", node, 3_000);
    let plan = update(&mut store, alloc, |alloc| {
        alloc.resources.total.cpu_mhz = 4_000
    });
    assert!(
        accept(&store, &plan).rejected_nodes.is_empty(),
        "its own share counts once"
    );
    let plan = update(&mut store, alloc, |alloc| {
        alloc.resources.total.cpu_mhz = 4_001
    });
    assert_eq!(accept(&store, &plan).rejected_nodes[&node], "cpu");
}

#[test]
fn an_update_does_not_undo_later_writes() {
    let mut store = Store::new(7);
    let node = store.add_node(1, |_| {});
    let alloc = store.running("web", node, 100);
    let plan = update(&mut store, alloc, |_| {});
    let mut marked = store.alloc(alloc);
    marked.transition.migrate = true;
    store.put(Key::Alloc(alloc), Entity::Alloc(Box::new(marked)));
    let reason = &accept(&store, &plan).rejected_nodes[&node];
    assert!(reason.contains("has changed"), "{reason}");
}

#[test]
fn a_record_of_an_ended_allocation_needs_no_node() {
    let mut store = Store::new(8);
    let node = store.add_node(1, |_| {});
    let alloc = store.running("web", node, 100);
    report(&mut store, alloc, ClientStatus::Failed);
    store.edit_node(node, |node| node.status = NodeStatus::Down);
    let followup = store.ids.eval();
    let plan = update(&mut store, alloc, |alloc| {
        alloc.followup_eval_id = Some(followup)
    });
    store.must_commit(&plan);
    assert_eq!(store.alloc(alloc).followup_eval_id, Some(followup));
    assert_eq!(
        store.snapshot().usage(node),
        None,
        "what has ended holds nothing"
    );
}

#[test]
fn scenario_147_plans_only_mark_allocations_of_a_disconnected_node_unknown() {
    let mut store = Store::new(9);
    let node = store.add_node(1, |_| {});
    let alloc = store.running("web", node, 100);
    store.edit_node(node, |node| node.status = NodeStatus::Disconnected);
    let mut plan = update(&mut store, alloc, |alloc| {
        alloc.client_status_override = Some(ClientStatus::Unknown);
    });
    assert!(accept(&store, &plan).rejected_nodes.is_empty());
    store.place(&mut plan, node, 100);
    let reason = &accept(&store, &plan).rejected_nodes[&node];
    assert_eq!(reason, "node is disconnected and contains invalid updates");
}

#[test]
fn ports_are_assigned_once() {
    let mut store = Store::new(10);
    let node = store.add_node(1, |_| {});
    let mut plan = store.start_plan("web");
    store.place(&mut plan, node, 100);
    plan.placements.get_mut(&node).unwrap()[0].resources.ports = vec![port(8_080)];
    store.must_commit(&plan);
    let mut other = store.start_plan("api");
    store.place(&mut other, node, 100);
    other.placements.get_mut(&node).unwrap()[0].resources.ports = vec![port(8_080)];
    assert_eq!(
        accept(&store, &other).rejected_nodes[&node],
        "network: reserved port collision http=8080"
    );
}

pub(crate) fn deployment(plan: &Plan, id: model::DeploymentId) -> Deployment {
    Deployment {
        id,
        job: plan.job.clone(),
        job_version: 0,
        job_modify_index: plan.job_modify_index,
        job_create_index: plan.job_modify_index,
        status: DeploymentStatus::Running,
        status_description: String::new(),
        groups: [("web".to_owned(), DeploymentGroup::default())].into(),
        eval_priority: 50,
        create_time: NOW,
        modify_time: NOW,
    }
}

#[test]
fn a_port_needs_an_address_that_its_node_still_has() {
    let mut store = Store::new(1);
    let node = store.add_node(1, |_| {});
    let mut plan = store.start_plan("web");
    let placed_before = store.place(&mut plan, node, 100);
    plan.placements.get_mut(&node).unwrap()[0].resources.ports = vec![port(8_080)];
    assert_eq!(placed(&accept(&store, &plan)), [placed_before]);
    // The node registers with another address, after the scheduler has read its record.
    let mut moved = store.snapshot().node(node).unwrap().value.clone();
    moved.host_ip = "10.0.0.9".into();
    store.put(Key::Node(node), Entity::Node(Box::new(moved)));
    let accepted = accept(&store, &plan);
    assert_eq!(placed(&accepted), []);
    assert_eq!(
        accepted.rejected_nodes[&node],
        "node no longer has the address 127.0.0.1 of port \"http\""
    );
}

#[test]
fn scenario_148_canaries_that_were_rejected_are_no_canaries() {
    let mut store = Store::new(11);
    let (full, free) = (store.add_node(1, |_| {}), store.add_node(2, |_| {}));
    let mut plan = store.start_plan("web");
    let rejected = store.place(&mut plan, full, 5_000);
    let real = store.place(&mut plan, free, 100);
    let mut deployment = deployment(&plan, store.ids.deployment());
    deployment.groups.get_mut("web").unwrap().placed_canaries = vec![rejected, real];
    plan.deployment = Some(deployment.clone());
    for piece in accept(&store, &plan).pieces {
        store.commit(&[piece]).unwrap();
    }
    let snapshot = store.snapshot();
    let stored = snapshot.deployment(deployment.id).unwrap();
    assert_eq!(stored.value.groups["web"].placed_canaries, [real]);
}

#[test]
fn scenario_149_an_ended_allocation_is_not_evicted() {
    let mut store = Store::new(12);
    let node = store.add_node(1, |_| {});
    let (ended, running) = (
        store.running("low", node, 1_000),
        store.running("low", node, 1_000),
    );
    report(&mut store, ended, ClientStatus::Complete);
    let mut plan = store.start_plan("high");
    let winner = store.place(&mut plan, node, 3_500);
    let evict = |id| {
        let mut evict = stop(id);
        evict.preempted_by = Some(winner);
        evict
    };
    plan.preemptions
        .insert(node, vec![evict(ended), evict(running)]);
    store.must_commit(&plan);
    assert_eq!(store.alloc(ended).desired_status, DesiredStatus::Run);
    assert_eq!(store.alloc(running).desired_status, DesiredStatus::Evict);
    assert_eq!(store.alloc(running).preempted_by, Some(winner));
    assert_eq!(followed_up(&store, "low"), 1);
    // Without evictions there are no evaluations.
    let mut plan = store.start_plan("high");
    store.place(&mut plan, node, 100);
    plan.preemptions.insert(node, vec![evict(running)]);
    store.must_commit(&plan);
    assert_eq!(followed_up(&store, "low"), 1);
}

/// Returns the number of a job's evaluations after evictions.
pub(crate) fn followed_up(store: &Store, job: &str) -> usize {
    let snapshot = store.snapshot();
    let job = model::JobKey::new("default", job);
    let evals = snapshot.evals_by_job(&job);
    evals
        .filter(|eval| eval.value.triggered_by == TriggeredBy::Preemption)
        .count()
}

#[test]
fn every_job_with_evictions_gets_an_evaluation() {
    let mut store = Store::new(30);
    let nodes = [store.add_node(1, |_| {}), store.add_node(2, |_| {})];
    let full = store.add_node(3, |_| {});
    let mut victims = Vec::new();
    for name in ["low", "lower"] {
        for node in nodes {
            victims.push((node, store.running(name, node, 1_000)));
        }
    }
    let spared = store.running("spared", full, 4_000);
    let mut low = builders::service("low", 10);
    low.job_type = JobType::Batch;
    low.priority = 20;
    store.put(Key::Job(low.key()), Entity::Job(Box::new(low)));
    let mut plan = store.start_plan("high");
    plan.trace_parent = "00-trace-span-01".to_owned();
    for (node, victim) in &victims {
        store.place(&mut plan, *node, 1_500);
        plan.preemptions
            .entry(*node)
            .or_default()
            .push(stop(*victim));
    }
    store.place(&mut plan, full, 5_000);
    plan.preemptions.insert(full, vec![stop(spared)]);
    let accepted = accept(&store, &plan);
    assert_eq!(accepted.rejected_nodes.keys().collect::<Vec<_>>(), [&full]);
    for piece in &accepted.pieces {
        store.commit(std::slice::from_ref(piece)).unwrap();
    }
    let snapshot = store.snapshot();
    let made = snapshot.evals().map(|eval| &eval.value);
    let made = made.filter(|eval| eval.triggered_by == TriggeredBy::Preemption);
    let mut counted: Vec<_> = made
        .map(|eval| {
            assert_eq!(eval.status, EvalStatus::Pending);
            assert_eq!(eval.trace_parent, plan.trace_parent);
            (&*eval.job.job_id, eval.job_type, eval.priority)
        })
        .collect();
    counted.sort_by_key(|(job, ..)| *job);
    let expected = [("low", JobType::Batch, 20), ("lower", JobType::Service, 50)];
    assert_eq!(counted, expected);
    // A rejected node keeps its allocations.
    assert_eq!(store.alloc(spared).desired_status, DesiredStatus::Run);
}

#[test]
fn an_eviction_is_never_split_from_its_evaluation() {
    let mut store = Store::new(31);
    let mut victims = Vec::new();
    for number in 1..=40 {
        let node = store.add_node(number, |_| {});
        for _ in 0..40 {
            victims.push((node, store.running("low", node, 10)));
        }
    }
    let mut plan = store.start_plan("high");
    for (node, victim) in &victims {
        plan.preemptions
            .entry(*node)
            .or_default()
            .push(stop(*victim));
        if !plan.placements.contains_key(node) {
            store.place(&mut plan, *node, 4_000);
        }
    }
    let accepted = accept(&store, &plan);
    assert!(accepted.pieces.len() > 1, "it takes several transactions");
    let mut evicted = 0;
    for piece in &accepted.pieces {
        let counted = followed_up(&store, "low");
        store.commit(std::slice::from_ref(piece)).unwrap();
        let gone = victims
            .iter()
            .filter(|(_, id)| store.alloc(*id).desired_status == DesiredStatus::Evict);
        let gone = gone.count();
        let more = followed_up(&store, "low") > counted;
        assert_eq!(more, gone > evicted, "{gone} after {evicted}");
        evicted = gone;
    }
    assert_eq!(evicted, victims.len());
}

#[test]
fn a_withheld_placement_evicts_nothing() {
    let mut store = Store::new(32);
    let (old_home, new_home) = (store.add_node(1, |_| {}), store.add_node(2, |_| {}));
    let old = store.running("web", old_home, 100);
    let victim = store.running("low", new_home, 4_000);
    let mut plan = store.start_plan("web");
    plan.stops.insert(old_home, vec![stop(old)]);
    store.place(&mut plan, old_home, 9_000);
    store.place(&mut plan, new_home, 3_000);
    plan.placements.get_mut(&new_home).unwrap()[0].previous_alloc = Some(old);
    plan.preemptions.insert(new_home, vec![stop(victim)]);
    let mut both = plan.clone();
    let accepted = accept(&store, &plan);
    assert_eq!(accepted.rejected_nodes.len(), 2);
    for piece in &accepted.pieces {
        store.commit(std::slice::from_ref(piece)).unwrap();
    }
    assert_eq!(store.alloc(victim).desired_status, DesiredStatus::Run);
    // Another placement needs the room.
    let other = store.place(&mut both, new_home, 1_000);
    let accepted = accept(&store, &both);
    assert_eq!(placed(&accepted), [other]);
    for piece in &accepted.pieces {
        store.commit(std::slice::from_ref(piece)).unwrap();
    }
    assert_eq!(store.alloc(victim).desired_status, DesiredStatus::Evict);
}

#[test]
fn a_successor_is_withheld_while_its_predecessor_stays() {
    let mut store = Store::new(13);
    let (old_home, new_home) = (store.add_node(1, |_| {}), store.add_node(2, |_| {}));
    let old = store.running("web", old_home, 100);
    let mut plan = store.start_plan("web");
    plan.stops.insert(old_home, vec![stop(old)]);
    let successor = store.place(&mut plan, new_home, 100);
    plan.placements.get_mut(&new_home).unwrap()[0].previous_alloc = Some(old);
    let other = store.place(&mut plan, new_home, 100);
    let linked = plan.clone();
    // Another placement on the old node does not fit, so the node's part is rejected with the stop.
    store.place(&mut plan, old_home, 9_000);
    let accepted = accept(&store, &plan);
    assert_eq!(placed(&accepted), [other]);
    assert_eq!(
        accepted.rejected_nodes.keys().collect::<Vec<_>>(),
        [&old_home, &new_home]
    );
    // Without it both are accepted, and the old one names its successor.
    store.must_commit(&linked);
    assert_eq!(store.alloc(old).next_alloc, Some(successor));
}

#[test]
fn an_ended_predecessor_names_its_successor_without_a_stop() {
    let mut store = Store::new(14);
    let node = store.add_node(1, |_| {});
    let old = store.running("web", node, 100);
    report(&mut store, old, ClientStatus::Complete);
    let mut plan = store.start_plan("web");
    let new = store.place(&mut plan, node, 100);
    plan.placements.get_mut(&node).unwrap()[0].previous_alloc = Some(old);
    store.must_commit(&plan);
    assert_eq!(store.alloc(old).next_alloc, Some(new));
    assert_eq!(store.alloc(old).desired_status, DesiredStatus::Run);
}

#[test]
fn an_updated_allocation_also_names_its_successor() {
    for (old_node, new_node) in [(1, 2), (2, 1)] {
        let mut store = Store::new(16);
        let nodes = [store.add_node(1, |_| {}), store.add_node(2, |_| {})];
        let alloc = store.running("web", nodes[old_node - 1], 100);
        store.edit_node(nodes[old_node - 1], |node| {
            node.status = NodeStatus::Disconnected
        });
        let mut plan = update(&mut store, alloc, |alloc| {
            alloc.client_status_override = Some(ClientStatus::Unknown);
        });
        let successor = store.place(&mut plan, nodes[new_node - 1], 100);
        let placed = plan.placements.get_mut(&nodes[new_node - 1]).unwrap();
        placed[0].previous_alloc = Some(alloc);
        store.must_commit(&plan);
        let old = store.alloc(alloc);
        assert_eq!(old.client_status_override, Some(ClientStatus::Unknown));
        assert_eq!(old.next_alloc, Some(successor));
    }
}

#[test]
fn a_plan_whose_evaluation_has_changed_is_refused() {
    let mut store = Store::new(15);
    let plan = store.start_plan("web");
    store.must_commit(&plan);
    assert!(refusal(&store, &plan).contains("has changed"));
    // Made on a snapshot with the ended evaluation.
    let late = store.plan(&builders::service("web", 10), plan.eval_id);
    assert!(refusal(&store, &late).contains("has changed"));
    store.delete(Key::Eval(plan.eval_id));
    assert!(refusal(&store, &plan).contains("no longer exists"));
    // Written by another, although still pending.
    let overtaken = store.start_plan("web");
    let eval = store
        .snapshot()
        .eval(overtaken.eval_id)
        .unwrap()
        .value
        .clone();
    store.put(Key::Eval(eval.id), Entity::Eval(Box::new(eval)));
    assert!(refusal(&store, &overtaken).contains("has changed"));
}

#[test]
fn a_plan_whose_job_has_changed_is_refused() {
    let mut store = Store::new(16);
    let plan = store.start_plan("web");
    let job = builders::service("web", 3);
    store.put(Key::Job(job.key()), Entity::Job(Box::new(job.clone())));
    assert!(refusal(&store, &plan).contains("job default/web has changed"));
    let purged = store.start_plan("web");
    store.delete(Key::Job(job.key()));
    assert!(refusal(&store, &purged).contains("job default/web has changed"));
}

#[test]
fn a_plan_whose_deployment_has_changed_is_refused() {
    let mut store = Store::new(17);
    let node = store.add_node(1, |_| {});
    let mut first = store.start_plan("web");
    let made = deployment(&first, store.ids.deployment());
    first.deployment = Some(made.clone());
    store.must_commit(&first);
    let mut placing = store.start_plan("web");
    store.place(&mut placing, node, 100);
    placing.placements.get_mut(&node).unwrap()[0].deployment_id = Some(made.id);
    let mut ending = store.start_plan("web");
    ending.deployment_updates.push(DeploymentUpdate {
        deployment_id: made.id,
        status: DeploymentStatus::Successful,
        description: "done".into(),
    });
    let accepted = accept(&store, &placing);
    assert!(accepted.rejected_nodes.is_empty());
    let is_compared = |op: &Write| *op.key() == Key::Deployment(made.id) && op.entity().is_none();
    assert!(accepted.pieces[0].ops.iter().any(is_compared));
    assert!(accept(&store, &ending).rejected_nodes.is_empty());
    let failed = Deployment {
        status: DeploymentStatus::Failed,
        ..made
    };
    store.put(
        Key::Deployment(failed.id),
        Entity::Deployment(Box::new(failed)),
    );
    for plan in [placing, ending] {
        assert!(refusal(&store, &plan).contains("has changed"));
    }
}

/// A later version takes over the allocations, and they are garbage-collected.
#[test]
fn a_deployment_ended_by_a_plan_keeps_its_final_counts() {
    let mut store = Store::new(18);
    let node = store.add_node(1, |_| {});
    let mut first = store.start_plan("web");
    let made = deployment(&first, store.ids.deployment());
    first.deployment = Some(made.clone());
    store.place(&mut first, node, 100);
    first.placements.get_mut(&node).unwrap()[0].deployment_id = Some(made.id);
    store.must_commit(&first);
    let counts = |store: &Store| {
        let snapshot = store.snapshot();
        snapshot.deployment(made.id).unwrap().value.groups["web"].final_counts
    };
    assert_eq!(counts(&store), None);
    let mut ending = store.start_plan("web");
    ending.deployment_updates.push(DeploymentUpdate {
        deployment_id: made.id,
        status: DeploymentStatus::Cancelled,
        description: "a newer version came".into(),
    });
    store.must_commit(&ending);
    let placed = DeploymentCounts {
        placed: 1,
        ..DeploymentCounts::default()
    };
    assert_eq!(counts(&store), Some(placed));
}

#[test]
fn scenario_079_a_plan_from_before_a_promotion_does_not_undo_it() {
    let mut store = Store::new(19);
    store.add_node(1, |_| {});
    let mut first = store.start_plan("web");
    let mut made = deployment(&first, store.ids.deployment());
    made.groups.get_mut("web").unwrap().desired_canaries = 1;
    first.deployment = Some(made.clone());
    store.must_commit(&first);
    let mut stale = store.start_plan("web");
    stale.deployment = Some(Deployment {
        status_description: "one more canary".to_owned(),
        ..made.clone()
    });
    assert!(accept(&store, &stale).rejected_nodes.is_empty());
    let mut promoted = made.clone();
    promoted.groups.get_mut("web").unwrap().promoted = true;
    store.put(
        Key::Deployment(made.id),
        Entity::Deployment(Box::new(promoted.clone())),
    );
    assert!(refusal(&store, &stale).contains("has changed"));
    // The scheduler plans again on the given revision.
    let mut again = store.start_plan("web");
    again.deployment = Some(Deployment {
        status_description: "nothing to add".to_owned(),
        ..promoted
    });
    store.must_commit(&again);
    let snapshot = store.snapshot();
    let stored = snapshot.deployment(made.id).unwrap();
    assert!(stored.value.groups["web"].promoted);
}

#[test]
fn an_inconsistent_plan_is_refused() {
    let mut store = Store::new(18);
    let (here, there) = (store.add_node(1, |_| {}), store.add_node(2, |_| {}));
    let mut plan = store.start_plan("web");
    store.place(&mut plan, here, 100);
    let stray = plan.placements.remove(&here).unwrap();
    plan.placements.insert(there, stray);
    assert!(refusal(&store, &plan).contains("not of this plan's job and node"));
}

/// Returns a follow-up evaluation of `plan`.
fn followup(store: &mut Store, plan: &Plan, status: EvalStatus) -> Evaluation {
    let job = builders::service("web", 1);
    let mut eval = Evaluation {
        id: store.ids.eval(),
        ..builders::evaluation(1, &job)
    };
    eval.triggered_by = TriggeredBy::QueuedAllocs;
    eval.status = status;
    eval.previous_eval = Some(plan.eval_id);
    eval
}

#[test]
fn a_partial_plan_keeps_only_evaluations_that_allocations_name() {
    let mut store = Store::new(19);
    let (full, free) = (store.add_node(1, |_| {}), store.add_node(2, |_| {}));
    let failed = store.running("web", free, 100);
    report(&mut store, failed, ClientStatus::Failed);
    let mut plan = store.start_plan("web");
    let delayed = followup(&mut store, &plan, EvalStatus::Pending);
    let unnamed = followup(&mut store, &plan, EvalStatus::Pending);
    let blocked = followup(&mut store, &plan, EvalStatus::Blocked);
    plan.followup_evals = vec![delayed.clone(), unnamed.clone(), blocked.clone()];
    let mut note = store.alloc(failed);
    note.followup_eval_id = Some(delayed.id);
    plan.placements.insert(free, vec![note]);
    store.place(&mut plan, full, 9_000);
    for piece in accept(&store, &plan).pieces {
        store.commit(&[piece]).unwrap();
    }
    let snapshot = store.snapshot();
    assert!(snapshot.eval(delayed.id).is_some());
    assert!(snapshot.eval(unnamed.id).is_none() && snapshot.eval(blocked.id).is_none());
}

#[test]
fn a_whole_plan_creates_all_its_evaluations() {
    let mut store = Store::new(20);
    let mut plan = store.start_plan("web");
    let delayed = followup(&mut store, &plan, EvalStatus::Pending);
    let blocked = followup(&mut store, &plan, EvalStatus::Blocked);
    plan.followup_evals = vec![delayed.clone(), blocked.clone()];
    store.must_commit(&plan);
    for eval in [delayed, blocked] {
        assert_eq!(store.snapshot().eval(eval.id).unwrap().value, eval);
    }
    assert_eq!(
        store.snapshot().eval(plan.eval_id).unwrap().value.status,
        EvalStatus::Complete
    );
}

#[test]
fn an_ended_deployment_is_not_updated() {
    let mut store = Store::new(20);
    let mut first = store.start_plan("web");
    let made = Deployment {
        status: DeploymentStatus::Failed,
        ..deployment(&first, store.ids.deployment())
    };
    first.deployment = Some(made.clone());
    store.must_commit(&first);
    let mut ending = store.start_plan("web");
    ending.deployment_updates.push(DeploymentUpdate {
        deployment_id: made.id,
        status: DeploymentStatus::Cancelled,
        description: "a newer version".into(),
    });
    store.must_commit(&ending);
    let snapshot = store.snapshot();
    let stored = snapshot.deployment(made.id).unwrap();
    assert_eq!(stored.value.status, DeploymentStatus::Failed);
}

#[test]
fn a_stop_frees_room_once_and_only_of_live_allocations() {
    for has_ended in [true, false] {
        let mut store = Store::new(21);
        let node = store.add_node(1, |_| {});
        let given_up = store.running("web", node, 1_000);
        store.running("other", node, if has_ended { 3_000 } else { 2_000 });
        if has_ended {
            report(&mut store, given_up, ClientStatus::Complete);
        }
        // Of 4,000, 1,000 are free, or 2,000 without the running one.
        let (fits, does_not) = if has_ended {
            (1_000, 2_000)
        } else {
            (2_000, 3_000)
        };
        for (cpu_mhz, is_accepted) in [(fits, true), (does_not, false)] {
            let mut plan = store.start_plan("web");
            plan.stops
                .insert(node, vec![stop(given_up), stop(given_up)]);
            store.place(&mut plan, node, cpu_mhz);
            let rejected = accept(&store, &plan).rejected_nodes;
            assert_eq!(rejected.is_empty(), is_accepted, "{has_ended} {cpu_mhz}");
        }
    }
}
