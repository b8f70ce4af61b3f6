//! Plans on states that have changed since they were made.

use model::job::{DisconnectStrategy, ReconcileChoice};
use model::{ClientStatus, DesiredStatus, NodeEligibility, NodeId, NodeStatus, Plan};
use state::{Entity, Key, Write};
use test_kit::builders;

use crate::machine::Harness;
use crate::store::{Store, stop};
use crate::verifying::{accept, deployment, followed_up, placed, refusal, report};

#[test]
fn scenario_050_of_two_plans_that_fit_alone_one_gets_a_refresh_index() {
    let mut harness = Harness::new(50);
    let node = harness
        .store
        .add_node(1, |node| node.resources.cpu_mhz = 1_000);
    harness.store.running("there", node, 600);
    let mut plans = ["first", "second"].map(|name| harness.store.start_plan(name));
    for plan in &mut plans {
        harness.store.place(plan, node, 300);
    }
    for (ticket, plan) in (1..).zip(&plans) {
        harness.submit(ticket, plan);
    }
    harness.finish();
    let (won, lost) = (harness.result(1), harness.result(2));
    assert!(won.rejected_nodes.is_empty());
    assert_eq!(lost.rejected_nodes.keys().collect::<Vec<_>>(), [&node]);
    assert!(lost.refresh_index >= won.commit_index);
}

/// A plan over three nodes: the canaries `a` on the first and `b` on the second, which is full, and
/// one stop on each.
struct Three {
    store: Store,
    plan: Plan,
    nodes: [NodeId; 3],
    stopped: [model::AllocId; 3],
    canaries: [model::AllocId; 2],
}

fn three() -> Three {
    let mut store = Store::new(51);
    let nodes = [1, 2, 3].map(|number| store.add_node(number, |_| {}));
    let stopped = nodes.map(|node| store.running("web", node, 100));
    let mut plan = store.start_plan("web");
    let canaries = [(nodes[0], 100), (nodes[1], 5_000)];
    let canaries = canaries.map(|(node, cpu)| store.place(&mut plan, node, cpu));
    for (node, alloc) in nodes.into_iter().zip(stopped) {
        plan.stops.insert(node, vec![stop(alloc)]);
    }
    let mut made = deployment(&plan, store.ids.deployment());
    made.groups.get_mut("web").unwrap().placed_canaries = canaries.to_vec();
    plan.deployment = Some(made);
    Three {
        store,
        plan,
        nodes,
        stopped,
        canaries,
    }
}

#[test]
fn scenario_051_a_rejected_node_leaves_the_rest_of_the_plan() {
    let mut three = three();
    let accepted = accept(&three.store, &three.plan);
    let rejected = accepted.rejected_nodes.keys().copied();
    assert_eq!(rejected.collect::<Vec<_>>(), [three.nodes[1]]);
    for piece in accepted.pieces {
        three.store.commit(&[piece]).unwrap();
    }
    let desired = three.stopped.map(|id| three.store.alloc(id).desired_status);
    use DesiredStatus::{Run, Stop};
    assert_eq!(desired, [Stop, Run, Stop]);
    let snapshot = three.store.snapshot();
    let made = snapshot.deployment(three.plan.deployment.unwrap().id);
    let canaries = &made.unwrap().value.groups["web"].placed_canaries;
    assert_eq!(canaries, &three.canaries[..1]);
}

#[test]
fn scenario_052_all_at_once_the_same_writes_nothing() {
    let mut three = three();
    three.plan.all_at_once = true;
    let accepted = accept(&three.store, &three.plan);
    assert!(accepted.pieces.is_empty(), "not even the deployment");
    assert_eq!(accepted.rejected_nodes.len(), 1);
}

#[test]
fn scenario_053_an_update_in_place_is_not_asked_for_room_where_nothing_new_may_go() {
    let mut store = Store::new(53);
    let node = store.add_node(1, |_| {});
    let alloc = store.running("web", node, 100);
    store.edit_node(node, |node| {
        node.eligibility = NodeEligibility::Ineligible;
        node.resources.cpu_mhz = 50;
    });
    let mut plan = store.start_plan("web");
    let mut new = store.alloc(alloc);
    new.job_version = 1;
    plan.placements.insert(node, vec![new]);
    store.must_commit(&plan);
    assert_eq!(store.alloc(alloc).job_version, 1);
}

/// Returns a plan that marks `allocs` unknown.
fn unknown(store: &mut Store, allocs: &[model::AllocId]) -> Plan {
    let mut plan = store.start_plan("web");
    for id in allocs {
        let mut new = store.alloc(*id);
        new.client_status_override = Some(ClientStatus::Unknown);
        plan.placements.entry(new.node_id).or_default().push(new);
    }
    plan
}

#[test]
fn scenario_054_only_unknown_allocations_are_written_for_an_unreachable_node() {
    let mut store = Store::new(54);
    let node = store.add_node(1, |_| {});
    let allocs = [100, 100].map(|cpu| store.running("web", node, cpu));
    store.edit_node(node, |node| node.status = NodeStatus::Disconnected);
    let mut plan = unknown(&mut store, &allocs);
    assert!(accept(&store, &plan).rejected_nodes.is_empty());
    let new = store.place(&mut plan, node, 100);
    let accepted = accept(&store, &plan);
    assert_eq!(accepted.rejected_nodes.len(), 1);
    assert!(!placed(&accepted).contains(&new) && !updates(&accepted));
}

fn updates(accepted: &applier::Accepted) -> bool {
    let mut ops = accepted.pieces.iter().flat_map(|piece| &piece.ops);
    ops.any(|op| matches!(Write::key(op), Key::Alloc(_)))
}

#[test]
fn scenario_055_on_a_node_that_is_down_an_allocation_without_replacement_is_unknown() {
    for replace in [false, true] {
        let mut store = Store::new(55);
        let node = store.add_node(1, |_| {});
        let mut job = builders::service("web", 10);
        job.task_groups[0].disconnect = Some(DisconnectStrategy {
            lost_after: None,
            stop_on_client_after: None,
            replace,
            reconcile: ReconcileChoice::BestScore,
        });
        store.put(Key::Job(job.key()), Entity::Job(Box::new(job)));
        let alloc = store.running("web", node, 100);
        store.edit_node(node, |node| node.status = NodeStatus::Down);
        let plan = unknown(&mut store, &[alloc]);
        let rejected = accept(&store, &plan).rejected_nodes;
        assert_eq!(rejected.len(), usize::from(replace), "{rejected:?}");
    }
}

#[test]
fn scenario_056_an_allocation_that_has_ended_meanwhile_is_not_evicted() {
    let mut store = Store::new(56);
    let node = store.add_node(1, |_| {});
    let victim = store.running("low", node, 3_000);
    let mut plan = store.start_plan("high");
    store.place(&mut plan, node, 3_500);
    plan.preemptions.insert(node, vec![stop(victim)]);
    report(&mut store, victim, ClientStatus::Complete);
    store.must_commit(&plan);
    assert_eq!(store.alloc(victim).desired_status, DesiredStatus::Run);
    assert_eq!(followed_up(&store, "low"), 0);
}

#[test]
fn scenario_057_a_plan_from_before_its_job_was_stopped_places_nothing() {
    let mut store = Store::new(57);
    let node = store.add_node(1, |_| {});
    let running = store.running("web", node, 100);
    let mut plan = store.start_plan("web");
    store.place(&mut plan, node, 100);
    plan.stops.insert(node, vec![stop(running)]);
    let mut job = builders::service("web", 10);
    job.stop = true;
    store.put(Key::Job(job.key()), Entity::Job(Box::new(job)));
    // Accepted as a whole: the job's own evaluation makes the stops.
    let reason = refusal(&store, &plan);
    assert!(reason.contains("job default/web has changed"), "{reason}");
}
