//! Step-by-step tests of the machine.

use std::sync::Arc;

use applier::{Answer, Applier, CommitId, Effect, Event, Pending, Piece, Ticket, Verification};
use model::{Plan, PlanResult};

use crate::store::{NOW, Store, stop};

/// PlanRefusal of a store that takes only small transactions.
const TOO_LARGE: &str = "too many operations";

/// The machine with a store whose replica is always up to date.
pub(crate) struct Harness {
    pub(crate) store: Store,
    applier: Applier,
    /// Sent transactions without an outcome.
    out: Vec<(CommitId, Vec<Arc<Piece>>)>,
    verifying: Vec<(Ticket, Arc<Plan>, Arc<Pending>)>,
    answers: Vec<(Ticket, Answer)>,
    deposed: bool,
}

impl Harness {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            store: Store::new(seed),
            applier: Applier::new(0),
            out: Vec::new(),
            verifying: Vec::new(),
            answers: Vec::new(),
            deposed: false,
        }
    }

    fn tell(&mut self, event: Event) {
        for effect in self.applier.step(&self.store.snapshot(), event) {
            match effect {
                Effect::Verify {
                    ticket,
                    plan,
                    pending,
                } => {
                    self.verifying.push((ticket, plan, pending));
                }
                Effect::Commit { commit, pieces } => self.out.push((commit, pieces)),
                Effect::CommitAllAtOnce { commit, pieces, .. } => self.out.push((commit, pieces)),
                Effect::Answer { ticket, answer } => self.answers.push((ticket, answer)),
                Effect::StepDown => self.deposed = true,
            }
        }
    }

    pub(crate) fn submit(&mut self, ticket: u64, plan: &Plan) {
        let plan = Box::new(plan.clone());
        self.tell(Event::Submit {
            ticket: Ticket(ticket),
            plan,
        });
    }

    /// Verifies until no verification is requested.
    fn verify_all(&mut self) {
        while let Some((ticket, plan, pending)) = self.verifying.pop() {
            let snapshot = self.store.snapshot();
            let verification = Verification::new(&snapshot, &pending, &plan);
            let verdict = verification.check_whole().unwrap_or_else(|| {
                let nodes = verification.nodes();
                let verdicts = nodes.into_iter().map(|node| verification.check_node(node));
                verification.conclude(verdicts.collect(), NOW)
            });
            self.tell(Event::Verified { ticket, verdict });
        }
    }

    /// Commits the transaction under way.
    fn settle(&mut self) {
        let (commit, pieces) = self.out.remove(0);
        let event = match self.store.commit(&pieces) {
            Ok(revision) => Event::Committed { commit, revision },
            Err(revision) => Event::Conflict { commit, revision },
        };
        self.tell(event);
    }

    /// Refuses the transaction under way.
    fn refuse(&mut self) {
        let (commit, _) = self.out.remove(0);
        let (revision, reason) = (self.store.revision(), TOO_LARGE.to_owned());
        self.tell(Event::Refused {
            commit,
            revision,
            reason,
        });
    }

    /// Verifies and commits until the machine is idle.
    pub(crate) fn finish(&mut self) {
        loop {
            self.verify_all();
            if self.out.is_empty() {
                return;
            }
            self.settle();
        }
    }

    pub(crate) fn result(&self, ticket: u64) -> &PlanResult {
        let mut answers = self
            .answers
            .iter()
            .filter(|(known, _)| *known == Ticket(ticket));
        let (Some((_, Answer::Result(result))), None) = (answers.next(), answers.next()) else {
            panic!("ticket {ticket} has not one result: {:?}", self.answers)
        };
        result
    }
}

#[test]
fn a_plan_is_answered_after_its_commit() {
    let mut harness = Harness::new(1);
    let node = harness.store.add_node(1, |_| {});
    let mut plan = harness.store.start_plan("web");
    let id = harness.store.place(&mut plan, node, 100);
    harness.submit(1, &plan);
    harness.verify_all();
    assert!(harness.answers.is_empty() && harness.out.len() == 1);
    harness.settle();
    let result = harness.result(1);
    assert_eq!(result.placed, [id]);
    assert_eq!(
        (result.commit_index, result.refresh_index),
        (harness.store.revision(), 0)
    );
}

#[test]
fn plans_gather_while_the_machine_is_held_and_large_ones_are_sent() {
    let mut harness = Harness::new(8);
    let node = harness.store.add_node(1, |_| {});
    harness.applier.hold();
    for (ticket, job) in [(1, "web"), (2, "api")] {
        let mut plan = harness.store.start_plan(job);
        harness.store.place(&mut plan, node, 1);
        harness.submit(ticket, &plan);
        harness.verify_all();
        assert!(harness.out.is_empty());
        assert_eq!(harness.applier.gains_from_hold(), ticket == 2);
    }
    harness.applier.release();
    harness.tell(Event::Replica);
    assert_eq!(harness.out.len(), 1);
    assert_eq!(harness.out[0].1.len(), 2, "both in one transaction");
    harness.settle();
    assert_eq!(
        harness.result(1).commit_index,
        harness.result(2).commit_index
    );

    harness.applier.hold();
    let mut plan = harness.store.start_plan("many");
    for _ in 0..300 {
        harness.store.place(&mut plan, node, 1);
    }
    harness.submit(3, &plan);
    harness.verify_all();
    assert_eq!(harness.out.len(), 1, "it fills a transaction by itself");
}

#[test]
fn scenario_144_of_two_plans_for_one_slot_the_second_looks_again() {
    let mut harness = Harness::new(2);
    let node = harness.store.add_node(1, |_| {});
    let (mut first, mut second) = (harness.store.start_plan("a"), harness.store.start_plan("b"));
    harness.store.place(&mut first, node, 3_000);
    harness.store.place(&mut second, node, 3_000);
    harness.submit(1, &first);
    harness.submit(2, &second);
    // The second is verified while the first is under way.
    harness.verify_all();
    assert_eq!(harness.out.len(), 1);
    harness.finish();
    assert_eq!(harness.result(1).rejected_nodes, [].into());
    let second = harness.result(2);
    assert_eq!(second.rejected_nodes, [(node, "cpu".to_owned())].into());
    assert_eq!(second.commit_index, 0);
    assert!(second.refresh_index >= harness.result(1).commit_index);
}

#[test]
fn plans_that_queue_share_a_transaction() {
    let mut harness = Harness::new(3);
    let node = harness.store.add_node(1, |_| {});
    let plans: Vec<_> = (0..5)
        .map(|number| {
            let mut plan = harness.store.start_plan(&format!("job{number}"));
            harness.store.place(&mut plan, node, 100);
            plan
        })
        .collect();
    for (ticket, plan) in (0..).zip(&plans) {
        harness.submit(ticket, plan);
    }
    harness.verify_all();
    assert_eq!(harness.out[0].1.len(), 1, "the first goes at once");
    harness.settle();
    assert_eq!(harness.out[0].1.len(), 4, "the others have gathered");
    harness.finish();
    let commits: Vec<_> = (0..5)
        .map(|ticket| harness.result(ticket).commit_index)
        .collect();
    assert!(commits[0] < commits[1] && commits[1..].iter().all(|index| *index == commits[1]));
}

#[test]
fn higher_priority_goes_first() {
    let mut harness = Harness::new(4);
    let node = harness.store.add_node(1, |_| {});
    for (ticket, priority) in [(1, 10), (2, 20), (3, 90), (4, 50)] {
        let mut plan = harness.store.start_plan(&format!("job{ticket}"));
        harness.store.place(&mut plan, node, 1_500);
        plan.priority = priority;
        harness.submit(ticket, &plan);
    }
    harness.finish();
    // The first was under verification already; the last of the others find the node full.
    let placed: Vec<_> = (1..=4)
        .filter(|ticket| harness.result(*ticket).rejected_nodes.is_empty())
        .collect();
    assert_eq!(placed, [1, 3]);
}

#[test]
fn a_duplicate_delivery_never_places_twice() {
    let mut harness = Harness::new(5);
    let node = harness.store.add_node(1, |_| {});
    let mut plan = harness.store.start_plan("web");
    let mut twin = plan.clone();
    harness.store.place(&mut plan, node, 100);
    harness.store.place(&mut twin, node, 100);
    harness.submit(1, &plan);
    harness.submit(2, &twin);
    harness.finish();
    assert_eq!(harness.result(1).placed.len(), 1);
    let twin = harness.result(2);
    assert!(twin.refused.is_some() && twin.placed.is_empty());
    assert_eq!(twin.refresh_index, harness.result(1).commit_index);
    assert_eq!(harness.store.snapshot().allocs().count(), 1);
}

#[test]
fn a_plan_older_than_the_jobs_last_commit_is_refused_even_for_another_evaluation() {
    let mut harness = Harness::new(6);
    let node = harness.store.add_node(1, |_| {});
    let (mut first, mut second) = (
        harness.store.start_plan("web"),
        harness.store.start_plan("web"),
    );
    harness.store.place(&mut first, node, 100);
    harness.store.place(&mut second, node, 100);
    harness.submit(1, &first);
    harness.finish();
    harness.submit(2, &second);
    harness.finish();
    assert!(harness.result(2).refused.is_some());
    // A new plan on the current state is accepted.
    let mut anew = harness.store.start_plan("web");
    harness.store.place(&mut anew, node, 100);
    harness.submit(3, &anew);
    harness.finish();
    assert_eq!(harness.result(3).placed.len(), 1);
}

#[test]
fn plans_from_before_the_election_are_refused() {
    let mut harness = Harness::new(7);
    let node = harness.store.add_node(1, |_| {});
    let mut plan = harness.store.start_plan("web");
    harness.store.place(&mut plan, node, 100);
    let elected = harness.store.put(
        state::Key::Election("plan-applier".into()),
        state::Entity::Election(model::LeaderInfo {
            address: "http://127.0.0.1:1".into(),
            replica: "a".into(),
        }),
    );
    harness.applier = Applier::new(elected);
    harness.submit(1, &plan);
    harness.finish();
    let result = harness.result(1);
    assert!(result.refused.is_some());
    assert_eq!(result.refresh_index, elected);
}

#[test]
fn a_conflict_requeues_everything_based_on_it() {
    let mut harness = Harness::new(8);
    let (first_home, other_home) = (
        harness.store.add_node(1, |_| {}),
        harness.store.add_node(2, |_| {}),
    );
    let (mut first, mut second) = (harness.store.start_plan("a"), harness.store.start_plan("b"));
    harness.store.place(&mut first, first_home, 3_000);
    harness.store.place(&mut second, first_home, 3_000);
    harness.store.place(&mut second, other_home, 100);
    harness.submit(1, &first);
    harness.submit(2, &second);
    harness.verify_all();
    // The first plan's node is deleted; the second plan lost a part without need.
    harness
        .store
        .edit_node(first_home, |node| node.resources.cpu_mhz = 3_500);
    harness.finish();
    assert_eq!(harness.result(1).placed.len(), 1, "it still fits");
    assert_eq!(harness.result(2).placed.len(), 1);
    assert_eq!(
        harness
            .store
            .snapshot()
            .usage(first_home)
            .unwrap()
            .total
            .cpu_mhz,
        3_000
    );
}

#[test]
fn a_conflict_admits_a_plan_that_the_failed_one_displaced() {
    let mut harness = Harness::new(9);
    let (first_home, other_home) = (
        harness.store.add_node(1, |_| {}),
        harness.store.add_node(2, |_| {}),
    );
    let (mut first, mut second) = (harness.store.start_plan("a"), harness.store.start_plan("b"));
    harness.store.place(&mut first, first_home, 3_000);
    harness.store.place(&mut first, other_home, 100);
    harness.store.place(&mut second, first_home, 3_000);
    harness.submit(1, &first);
    harness.submit(2, &second);
    harness.verify_all();
    // The first plan's evaluation is deleted before its commit.
    harness.store.delete(state::Key::Eval(first.eval_id));
    harness.finish();
    assert!(harness.result(1).refused.is_some());
    assert_eq!(
        harness.result(2).placed.len(),
        1,
        "nothing is in its way any more"
    );
}

#[test]
fn verification_waits_until_the_replica_shows_the_conflict() {
    let mut harness = Harness::new(10);
    let node = harness.store.add_node(1, |_| {});
    let mut plan = harness.store.start_plan("web");
    harness.store.place(&mut plan, node, 100);
    harness.submit(1, &plan);
    harness.verify_all();
    let (commit, _) = harness.out.remove(0);
    let ahead = harness.store.revision() + 5;
    harness.tell(Event::Conflict {
        commit,
        revision: ahead,
    });
    assert!(harness.verifying.is_empty());
    assert_eq!(
        harness.applier.wanted_revision(harness.store.revision()),
        Some(ahead)
    );
    while harness.store.revision() < ahead {
        harness
            .store
            .edit_node(node, |node| node.status_description.push('.'));
    }
    assert_eq!(
        harness.applier.wanted_revision(harness.store.revision()),
        None
    );
    harness.tell(Event::Replica);
    harness.finish();
    assert_eq!(harness.result(1).placed.len(), 1);
}

#[test]
fn a_plan_with_repeated_conflicts_is_refused() {
    let mut harness = Harness::new(11);
    let node = harness.store.add_node(1, |_| {});
    let mut plan = harness.store.start_plan("web");
    harness.store.place(&mut plan, node, 100);
    harness.submit(1, &plan);
    let mut commits = 0;
    loop {
        harness.verify_all();
        if harness.out.is_empty() {
            break;
        }
        harness
            .store
            .edit_node(node, |node| node.status_description.push('.'));
        harness.settle();
        commits += 1;
    }
    assert_eq!(commits, 4);
    let result = harness.result(1);
    assert!(result.refused.is_some() && result.refresh_index == harness.store.revision());
}

#[test]
fn a_plan_refused_by_the_store_is_answered_at_once_with_the_reason() {
    let mut harness = Harness::new(12);
    let node = harness.store.add_node(1, |_| {});
    let mut plan = harness.store.start_plan("web");
    harness.store.place(&mut plan, node, 100);
    harness.submit(1, &plan);
    harness.verify_all();
    harness.refuse();
    assert!(harness.out.is_empty() && harness.verifying.is_empty());
    let result = harness.result(1);
    assert_eq!(result.refused.as_deref(), Some(TOO_LARGE));
    assert_eq!(result.refresh_index, harness.store.revision());
}

#[test]
fn plans_refused_together_are_retried_alone() {
    let mut harness = Harness::new(13);
    let node = harness.store.add_node(1, |_| {});
    for (ticket, name) in [(1, "first"), (2, "a"), (3, "b")] {
        let mut plan = harness.store.start_plan(name);
        harness.store.place(&mut plan, node, 100);
        harness.submit(ticket, &plan);
    }
    // The others are verified while the first is under way, and share the next transaction.
    harness.verify_all();
    harness.settle();
    assert_eq!(harness.out[0].1.len(), 2);
    harness.refuse();
    harness.verify_all();
    assert_eq!((harness.out.len(), harness.out[0].1.len()), (1, 1));
    harness.refuse();
    harness.finish();
    let mut refused =
        [harness.result(2), harness.result(3)].map(|result| result.refused.as_deref());
    refused.sort_unstable();
    assert_eq!(refused, [None, Some(TOO_LARGE)]);
}

/// Returns a plan that needs several transactions.
fn large(harness: &mut Harness) -> Plan {
    let nodes: Vec<_> = (1..=50)
        .map(|number| {
            harness
                .store
                .add_node(number, |node| node.resources.cpu_mhz = 1_000_000)
        })
        .collect();
    let mut plan = harness.store.start_plan("large");
    for node in nodes.iter().cycle().take(2_500) {
        harness.store.place(&mut plan, *node, 1);
    }
    plan
}

#[test]
fn a_large_plan_is_answered_after_its_last_piece() {
    let mut harness = Harness::new(12);
    let plan = large(&mut harness);
    harness.submit(1, &plan);
    harness.verify_all();
    let mut commits = 0;
    while !harness.out.is_empty() {
        assert!(harness.answers.is_empty());
        harness.settle();
        commits += 1;
    }
    assert!(commits >= 3);
    assert_eq!(harness.result(1).placed.len(), 2_500);
    assert_eq!(harness.result(1).refresh_index, 0);
}

#[test]
fn a_large_plan_that_fails_halfway_keeps_its_first_pieces() {
    let mut harness = Harness::new(13);
    let plan = large(&mut harness);
    harness.submit(1, &plan);
    harness.verify_all();
    harness.settle();
    let committed = harness.store.revision();
    let last_node = *plan.placements.keys().last().unwrap();
    let second_piece_node = *plan.placements.keys().nth(25).unwrap();
    for node in [second_piece_node, last_node] {
        harness
            .store
            .edit_node(node, |node| node.status_description.push('.'));
    }
    harness.finish();
    let result = harness.result(1);
    assert!(result.refused.is_some());
    assert_eq!(result.commit_index, committed);
    assert!(result.refresh_index > committed);
    assert_eq!(
        result.placed.len(),
        harness.store.snapshot().allocs().count()
    );
}

#[test]
fn a_large_all_at_once_plan_is_sent_as_a_whole() {
    let mut harness = Harness::new(15);
    let mut plan = large(&mut harness);
    plan.all_at_once = true;
    let mut small = harness.store.start_plan("small");
    let node = *plan.placements.keys().next().unwrap();
    harness.store.place(&mut small, node, 1);
    harness.submit(1, &plan);
    harness.submit(2, &small);
    harness.verify_all();
    assert_eq!(harness.out.len(), 1);
    assert!(harness.out[0].1.len() >= 3, "all of its pieces");
    // A conflict before the commit: nothing is written, and the plan is verified again.
    let last_node = *plan.placements.keys().last().unwrap();
    harness
        .store
        .edit_node(last_node, |node| node.status_description.push('.'));
    harness.settle();
    assert_eq!(harness.store.snapshot().allocs().count(), 0);
    harness.finish();
    assert_eq!(harness.result(1).placed.len(), 2_500);
    assert_eq!(harness.result(1).refresh_index, 0);
    assert_eq!(harness.result(2).placed.len(), 1);
    assert_eq!(harness.store.snapshot().allocs().count(), 2_501);
}

#[test]
fn small_plans_are_verified_on_top_of_a_large_one() {
    let mut harness = Harness::new(14);
    let large = large(&mut harness);
    let node = *large.placements.keys().last().unwrap();
    let mut small = harness.store.start_plan("small");
    harness.store.place(&mut small, node, 999_999);
    harness.submit(1, &large);
    harness.submit(2, &small);
    harness.finish();
    assert_eq!(
        harness.result(2).rejected_nodes,
        [(node, "cpu".to_owned())].into()
    );
}

#[test]
fn a_plan_waits_for_a_pending_write_that_it_depends_on() {
    let mut harness = Harness::new(15);
    let node = harness.store.add_node(1, |_| {});
    let victim = harness.store.running("low", node, 1_000);
    let mut stopping = harness.store.start_plan("low");
    stopping.stops.insert(node, vec![stop(victim)]);
    let mut evicting = harness.store.start_plan("high");
    evicting.preemptions.insert(node, vec![stop(victim)]);
    harness.store.place(&mut evicting, node, 4_000);
    harness.submit(1, &stopping);
    harness.submit(2, &evicting);
    harness.verify_all();
    assert_eq!(harness.out.len(), 1);
    harness.settle();
    harness.verify_all();
    harness.settle();
    assert!(harness.out.is_empty(), "nothing had to be tried twice");
    assert_eq!(harness.result(2).placed.len(), 1);
    assert_eq!(
        harness.store.alloc(victim).desired_status,
        model::DesiredStatus::Stop
    );
}

#[test]
fn a_deposed_machine_answers_all_plans_and_stops() {
    let mut harness = Harness::new(16);
    let node = harness.store.add_node(1, |_| {});
    let plans: Vec<_> = (0..4)
        .map(|number| {
            let mut plan = harness.store.start_plan(&format!("job{number}"));
            harness.store.place(&mut plan, node, 100);
            plan
        })
        .collect();
    for (ticket, plan) in (0..).zip(&plans[..3]) {
        harness.submit(ticket, plan);
    }
    harness.verify_all();
    harness.tell(Event::Deposed);
    assert!(harness.deposed);
    harness.submit(3, &plans[3]);
    let tickets: Vec<_> = harness.answers.iter().map(|(ticket, _)| ticket.0).collect();
    assert_eq!(tickets, [0, 1, 2, 3]);
    assert!(
        harness
            .answers
            .iter()
            .all(|(_, answer)| *answer == Answer::Unavailable)
    );
    let (commit, _) = harness.out.remove(0);
    harness.tell(Event::Committed {
        commit,
        revision: 99,
    });
    assert_eq!(harness.answers.len(), 4);
}

#[test]
fn a_waiting_plan_is_not_overtaken_by_another_of_its_job() {
    let mut harness = Harness::new(17);
    let (node, other) = (
        harness.store.add_node(1, |_| {}),
        harness.store.add_node(2, |_| {}),
    );
    let victim = harness.store.running("low", node, 1_000);
    let mut stopping = harness.store.start_plan("low");
    stopping.stops.insert(node, vec![stop(victim)]);
    let mut evicting = harness.store.start_plan("high");
    evicting.preemptions.insert(node, vec![stop(victim)]);
    harness.store.place(&mut evicting, node, 4_000);
    let mut second = harness.store.start_plan("high");
    harness.store.place(&mut second, other, 100);
    for (ticket, plan) in [(1, &stopping), (2, &evicting), (3, &second)] {
        harness.submit(ticket, plan);
    }
    harness.finish();
    assert_eq!(harness.result(2).placed.len(), 1);
    assert!(harness.result(3).refused.is_some(), "it has to look again");
}

#[test]
fn a_verification_on_top_of_a_failed_commit_is_repeated() {
    let mut harness = Harness::new(18);
    let node = harness.store.add_node(1, |_| {});
    let (mut first, mut second) = (harness.store.start_plan("a"), harness.store.start_plan("b"));
    harness.store.place(&mut first, node, 3_000);
    harness.store.place(&mut second, node, 3_000);
    harness.submit(1, &first);
    harness.verify_all();
    harness.submit(2, &second);
    assert_eq!((harness.out.len(), harness.verifying.len()), (1, 1));
    harness.store.delete(state::Key::Eval(first.eval_id));
    harness.settle();
    harness.finish();
    assert!(harness.result(1).refused.is_some());
    assert_eq!(harness.result(2).placed.len(), 1);
}

#[test]
fn a_plan_is_not_refused_for_conflicts_of_plans_beside_it() {
    let mut harness = Harness::new(19);
    let (calm, busy) = (
        harness.store.add_node(1, |_| {}),
        harness.store.add_node(2, |_| {}),
    );
    for (ticket, name, node) in [(1, "first", calm), (2, "a", busy), (3, "b", calm)] {
        let mut plan = harness.store.start_plan(name);
        harness.store.place(&mut plan, node, 100);
        harness.submit(ticket, &plan);
    }
    harness.verify_all();
    harness.settle();
    assert_eq!(harness.out[0].1.len(), 2);
    // Plans of higher priority keep arriving; meanwhile the two are verified together.
    for ticket in 10..14 {
        let mut urgent = harness.store.start_plan(&format!("urgent{ticket}"));
        urgent.priority = 90;
        harness.store.place(&mut urgent, calm, 1);
        harness.submit(ticket, &urgent);
        harness
            .store
            .edit_node(busy, |node| node.status_description.push('.'));
        harness.settle();
        harness.verify_all();
        harness.settle();
        harness.verify_all();
    }
    harness.finish();
    assert_eq!(harness.result(3).placed.len(), 1);
}

#[test]
fn resources_of_a_pending_stop_are_free_for_the_next_plan() {
    let mut harness = Harness::new(20);
    let node = harness.store.add_node(1, |_| {});
    let leaving = harness.store.running("low", node, 3_000);
    let mut stopping = harness.store.start_plan("low");
    stopping.stops.insert(node, vec![stop(leaving)]);
    let mut coming = harness.store.start_plan("high");
    harness.store.place(&mut coming, node, 3_000);
    harness.submit(1, &stopping);
    harness.submit(2, &coming);
    harness.finish();
    assert_eq!(harness.result(2).placed.len(), 1);
}

#[test]
fn verification_ahead_is_bounded_by_two_transactions() {
    let mut harness = Harness::new(21);
    let node = harness
        .store
        .add_node(1, |node| node.resources.cpu_mhz = 1_000_000);
    for ticket in 0..30 {
        let mut plan = harness.store.start_plan(&format!("job{ticket}"));
        for _ in 0..100 {
            harness.store.place(&mut plan, node, 1);
        }
        harness.submit(ticket, &plan);
    }
    harness.verify_all();
    let (_, queued) = harness.applier.depth();
    assert!(queued > 0, "plans that come now may be more important");
    harness.finish();
    assert!((0..30).all(|ticket| harness.result(ticket).placed.len() == 100));
}
