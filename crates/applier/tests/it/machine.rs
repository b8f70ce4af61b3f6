//! The machine, step by step.

use std::sync::Arc;

use applier::{Answer, Applier, CommitId, Effect, Event, Pending, Piece, Ticket, Verification};
use model::{Plan, PlanResult};

use crate::store::{NOW, Store, stop};

/// What a store says that takes only small transactions.
const TOO_LARGE: &str = "too many operations";

/// The machine beside a store whose replica shows everything at once.
pub(crate) struct Desk {
    pub(crate) store: Store,
    applier: Applier,
    /// Sent and not yet told what came of it.
    out: Vec<(CommitId, Vec<Arc<Piece>>)>,
    judging: Vec<(Ticket, Arc<Plan>, Arc<Pending>)>,
    answers: Vec<(Ticket, Answer)>,
    deposed: bool,
}

impl Desk {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            store: Store::new(seed),
            applier: Applier::new(0),
            out: Vec::new(),
            judging: Vec::new(),
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
                    self.judging.push((ticket, plan, pending));
                }
                Effect::Commit { commit, parts } => self.out.push((commit, parts)),
                Effect::CommitWhole { commit, pieces, .. } => self.out.push((commit, pieces)),
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

    /// Judges whatever is to be judged, until nothing is.
    fn judge(&mut self) {
        while let Some((ticket, plan, pending)) = self.judging.pop() {
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

    /// Lets the store answer for the transaction that is out.
    fn settle(&mut self) {
        let (commit, parts) = self.out.remove(0);
        let event = match self.store.commit(&parts) {
            Ok(revision) => Event::Committed { commit, revision },
            Err(revision) => Event::Conflict { commit, revision },
        };
        self.tell(event);
    }

    /// Has the store refuse the transaction that is out.
    fn refuse(&mut self) {
        let (commit, _) = self.out.remove(0);
        let (revision, reason) = (self.store.revision(), TOO_LARGE.to_owned());
        self.tell(Event::Refused {
            commit,
            revision,
            reason,
        });
    }

    /// Goes on until nothing is left to do.
    pub(crate) fn finish(&mut self) {
        loop {
            self.judge();
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
    let mut desk = Desk::new(1);
    let node = desk.store.add_node(1, |_| {});
    let mut plan = desk.store.start_plan("web");
    let id = desk.store.place(&mut plan, node, 100);
    desk.submit(1, &plan);
    desk.judge();
    assert!(desk.answers.is_empty() && desk.out.len() == 1);
    desk.settle();
    let result = desk.result(1);
    assert_eq!(result.placed, [id]);
    assert_eq!(
        (result.commit_index, result.refresh_index),
        (desk.store.revision(), 0)
    );
}

#[test]
fn scenario_144_of_two_plans_for_one_slot_the_second_looks_again() {
    let mut desk = Desk::new(2);
    let node = desk.store.add_node(1, |_| {});
    let (mut first, mut second) = (desk.store.start_plan("a"), desk.store.start_plan("b"));
    desk.store.place(&mut first, node, 3_000);
    desk.store.place(&mut second, node, 3_000);
    desk.submit(1, &first);
    desk.submit(2, &second);
    // The second is judged while the first is out.
    desk.judge();
    assert_eq!(desk.out.len(), 1);
    desk.finish();
    assert_eq!(desk.result(1).rejected_nodes, [].into());
    let second = desk.result(2);
    assert_eq!(second.rejected_nodes, [(node, "cpu".to_owned())].into());
    assert_eq!(second.commit_index, 0);
    assert!(second.refresh_index >= desk.result(1).commit_index);
}

#[test]
fn plans_that_queue_share_a_transaction() {
    let mut desk = Desk::new(3);
    let node = desk.store.add_node(1, |_| {});
    let plans: Vec<_> = (0..5)
        .map(|number| {
            let mut plan = desk.store.start_plan(&format!("job{number}"));
            desk.store.place(&mut plan, node, 100);
            plan
        })
        .collect();
    for (ticket, plan) in (0..).zip(&plans) {
        desk.submit(ticket, plan);
    }
    desk.judge();
    assert_eq!(desk.out[0].1.len(), 1, "the first goes at once");
    desk.settle();
    assert_eq!(desk.out[0].1.len(), 4, "the others have gathered");
    desk.finish();
    let commits: Vec<_> = (0..5)
        .map(|ticket| desk.result(ticket).commit_index)
        .collect();
    assert!(commits[0] < commits[1] && commits[1..].iter().all(|index| *index == commits[1]));
}

#[test]
fn higher_priority_goes_first() {
    let mut desk = Desk::new(4);
    let node = desk.store.add_node(1, |_| {});
    for (ticket, priority) in [(1, 10), (2, 20), (3, 90), (4, 50)] {
        let mut plan = desk.store.start_plan(&format!("job{ticket}"));
        desk.store.place(&mut plan, node, 1_500);
        plan.priority = priority;
        desk.submit(ticket, &plan);
    }
    desk.finish();
    // The first was being judged already; of the others the last in line find the node full.
    let placed: Vec<_> = (1..=4)
        .filter(|ticket| desk.result(*ticket).rejected_nodes.is_empty())
        .collect();
    assert_eq!(placed, [1, 3]);
}

#[test]
fn a_duplicate_delivery_never_places_twice() {
    let mut desk = Desk::new(5);
    let node = desk.store.add_node(1, |_| {});
    let mut plan = desk.store.start_plan("web");
    let mut twin = plan.clone();
    desk.store.place(&mut plan, node, 100);
    desk.store.place(&mut twin, node, 100);
    desk.submit(1, &plan);
    desk.submit(2, &twin);
    desk.finish();
    assert_eq!(desk.result(1).placed.len(), 1);
    let twin = desk.result(2);
    assert!(twin.refused.is_some() && twin.placed.is_empty());
    assert_eq!(twin.refresh_index, desk.result(1).commit_index);
    assert_eq!(desk.store.snapshot().allocs().count(), 1);
}

#[test]
fn a_plan_older_than_the_jobs_last_commit_is_refused_even_for_another_evaluation() {
    let mut desk = Desk::new(6);
    let node = desk.store.add_node(1, |_| {});
    let (mut first, mut second) = (desk.store.start_plan("web"), desk.store.start_plan("web"));
    desk.store.place(&mut first, node, 100);
    desk.store.place(&mut second, node, 100);
    desk.submit(1, &first);
    desk.finish();
    desk.submit(2, &second);
    desk.finish();
    assert!(desk.result(2).refused.is_some());
    // Made anew on what is there now, it goes through.
    let mut anew = desk.store.start_plan("web");
    desk.store.place(&mut anew, node, 100);
    desk.submit(3, &anew);
    desk.finish();
    assert_eq!(desk.result(3).placed.len(), 1);
}

#[test]
fn plans_from_before_the_election_look_again() {
    let mut desk = Desk::new(7);
    let node = desk.store.add_node(1, |_| {});
    let mut plan = desk.store.start_plan("web");
    desk.store.place(&mut plan, node, 100);
    let elected = desk.store.put(
        state::Key::Election("plan-applier".into()),
        state::Entity::Election(model::LeaderInfo {
            address: "http://127.0.0.1:1".into(),
            replica: "a".into(),
        }),
    );
    desk.applier = Applier::new(elected);
    desk.submit(1, &plan);
    desk.finish();
    let result = desk.result(1);
    assert!(result.refused.is_some());
    assert_eq!(result.refresh_index, elected);
}

#[test]
fn a_conflict_sends_everything_built_on_it_back_to_be_judged() {
    let mut desk = Desk::new(8);
    let (first_home, other_home) = (
        desk.store.add_node(1, |_| {}),
        desk.store.add_node(2, |_| {}),
    );
    let (mut first, mut second) = (desk.store.start_plan("a"), desk.store.start_plan("b"));
    desk.store.place(&mut first, first_home, 3_000);
    desk.store.place(&mut second, first_home, 3_000);
    desk.store.place(&mut second, other_home, 100);
    desk.submit(1, &first);
    desk.submit(2, &second);
    desk.judge();
    // The node goes away under the first plan; the second was cut down for nothing.
    desk.store
        .edit_node(first_home, |node| node.resources.cpu_mhz = 3_500);
    desk.finish();
    assert_eq!(desk.result(1).placed.len(), 1, "it still fits");
    assert_eq!(desk.result(2).placed.len(), 1);
    assert_eq!(
        desk.store
            .snapshot()
            .usage(first_home)
            .unwrap()
            .total
            .cpu_mhz,
        3_000
    );
}

#[test]
fn a_conflict_lets_a_plan_through_that_the_failed_one_kept_out() {
    let mut desk = Desk::new(9);
    let (first_home, other_home) = (
        desk.store.add_node(1, |_| {}),
        desk.store.add_node(2, |_| {}),
    );
    let (mut first, mut second) = (desk.store.start_plan("a"), desk.store.start_plan("b"));
    desk.store.place(&mut first, first_home, 3_000);
    desk.store.place(&mut first, other_home, 100);
    desk.store.place(&mut second, first_home, 3_000);
    desk.submit(1, &first);
    desk.submit(2, &second);
    desk.judge();
    // The first plan's evaluation is taken away before its commit.
    desk.store.delete(state::Key::Eval(first.eval_id));
    desk.finish();
    assert!(desk.result(1).refused.is_some());
    assert_eq!(
        desk.result(2).placed.len(),
        1,
        "nothing is in its way any more"
    );
}

#[test]
fn nothing_is_judged_before_the_replica_shows_the_conflict() {
    let mut desk = Desk::new(10);
    let node = desk.store.add_node(1, |_| {});
    let mut plan = desk.store.start_plan("web");
    desk.store.place(&mut plan, node, 100);
    desk.submit(1, &plan);
    desk.judge();
    let (commit, _) = desk.out.remove(0);
    let ahead = desk.store.revision() + 5;
    desk.tell(Event::Conflict {
        commit,
        revision: ahead,
    });
    assert!(desk.judging.is_empty());
    assert_eq!(
        desk.applier.wanted_revision(desk.store.revision()),
        Some(ahead)
    );
    while desk.store.revision() < ahead {
        desk.store
            .edit_node(node, |node| node.status_description.push('.'));
    }
    assert_eq!(desk.applier.wanted_revision(desk.store.revision()), None);
    desk.tell(Event::Replica);
    desk.finish();
    assert_eq!(desk.result(1).placed.len(), 1);
}

#[test]
fn a_plan_whose_commits_keep_failing_is_sent_back() {
    let mut desk = Desk::new(11);
    let node = desk.store.add_node(1, |_| {});
    let mut plan = desk.store.start_plan("web");
    desk.store.place(&mut plan, node, 100);
    desk.submit(1, &plan);
    let mut commits = 0;
    loop {
        desk.judge();
        if desk.out.is_empty() {
            break;
        }
        desk.store
            .edit_node(node, |node| node.status_description.push('.'));
        desk.settle();
        commits += 1;
    }
    assert_eq!(commits, 4);
    let result = desk.result(1);
    assert!(result.refused.is_some() && result.refresh_index == desk.store.revision());
}

#[test]
fn a_plan_that_the_store_refuses_is_sent_back_at_once_with_the_stores_reason() {
    let mut desk = Desk::new(12);
    let node = desk.store.add_node(1, |_| {});
    let mut plan = desk.store.start_plan("web");
    desk.store.place(&mut plan, node, 100);
    desk.submit(1, &plan);
    desk.judge();
    desk.refuse();
    assert!(desk.out.is_empty() && desk.judging.is_empty());
    let result = desk.result(1);
    assert_eq!(result.refused.as_deref(), Some(TOO_LARGE));
    assert_eq!(result.refresh_index, desk.store.revision());
}

#[test]
fn of_plans_that_were_refused_together_only_those_that_are_refused_alone_are_sent_back() {
    let mut desk = Desk::new(13);
    let node = desk.store.add_node(1, |_| {});
    for (ticket, name) in [(1, "first"), (2, "a"), (3, "b")] {
        let mut plan = desk.store.start_plan(name);
        desk.store.place(&mut plan, node, 100);
        desk.submit(ticket, &plan);
    }
    // The others are judged while the first is out, and share the next transaction.
    desk.judge();
    desk.settle();
    assert_eq!(desk.out[0].1.len(), 2);
    desk.refuse();
    desk.judge();
    assert_eq!((desk.out.len(), desk.out[0].1.len()), (1, 1));
    desk.refuse();
    desk.finish();
    let mut refused = [desk.result(2), desk.result(3)].map(|result| result.refused.as_deref());
    refused.sort_unstable();
    assert_eq!(refused, [None, Some(TOO_LARGE)]);
}

/// Returns a plan of so many placements that it takes several transactions.
fn large(desk: &mut Desk) -> Plan {
    let nodes: Vec<_> = (1..=50)
        .map(|number| {
            desk.store
                .add_node(number, |node| node.resources.cpu_mhz = 1_000_000)
        })
        .collect();
    let mut plan = desk.store.start_plan("large");
    for node in nodes.iter().cycle().take(2_500) {
        desk.store.place(&mut plan, *node, 1);
    }
    plan
}

#[test]
fn a_large_plan_is_answered_after_its_last_piece() {
    let mut desk = Desk::new(12);
    let plan = large(&mut desk);
    desk.submit(1, &plan);
    desk.judge();
    let mut commits = 0;
    while !desk.out.is_empty() {
        assert!(desk.answers.is_empty());
        desk.settle();
        commits += 1;
    }
    assert!(commits >= 3);
    assert_eq!(desk.result(1).placed.len(), 2_500);
    assert_eq!(desk.result(1).refresh_index, 0);
}

#[test]
fn a_large_plan_that_fails_halfway_keeps_its_first_pieces() {
    let mut desk = Desk::new(13);
    let plan = large(&mut desk);
    desk.submit(1, &plan);
    desk.judge();
    desk.settle();
    let committed = desk.store.revision();
    let last_node = *plan.placements.keys().last().unwrap();
    let second_piece_node = *plan.placements.keys().nth(25).unwrap();
    for node in [second_piece_node, last_node] {
        desk.store
            .edit_node(node, |node| node.status_description.push('.'));
    }
    desk.finish();
    let result = desk.result(1);
    assert!(result.refused.is_some());
    assert_eq!(result.commit_index, committed);
    assert!(result.refresh_index > committed);
    assert_eq!(result.placed.len(), desk.store.snapshot().allocs().count());
}

#[test]
fn a_large_plan_that_is_all_at_once_is_sent_as_a_whole() {
    let mut desk = Desk::new(15);
    let mut plan = large(&mut desk);
    plan.all_at_once = true;
    let mut small = desk.store.start_plan("small");
    let node = *plan.placements.keys().next().unwrap();
    desk.store.place(&mut small, node, 1);
    desk.submit(1, &plan);
    desk.submit(2, &small);
    desk.judge();
    assert_eq!(desk.out.len(), 1);
    assert!(desk.out[0].1.len() >= 3, "all of its pieces");
    // Something changes before it is written: nothing of it is, and it is verified again.
    let last_node = *plan.placements.keys().last().unwrap();
    desk.store
        .edit_node(last_node, |node| node.status_description.push('.'));
    desk.settle();
    assert_eq!(desk.store.snapshot().allocs().count(), 0);
    desk.finish();
    assert_eq!(desk.result(1).placed.len(), 2_500);
    assert_eq!(desk.result(1).refresh_index, 0);
    assert_eq!(desk.result(2).placed.len(), 1);
    assert_eq!(desk.store.snapshot().allocs().count(), 2_501);
}

#[test]
fn small_plans_are_verified_on_top_of_a_large_one() {
    let mut desk = Desk::new(14);
    let large = large(&mut desk);
    let node = *large.placements.keys().last().unwrap();
    let mut small = desk.store.start_plan("small");
    desk.store.place(&mut small, node, 999_999);
    desk.submit(1, &large);
    desk.submit(2, &small);
    desk.finish();
    assert_eq!(
        desk.result(2).rejected_nodes,
        [(node, "cpu".to_owned())].into()
    );
}

#[test]
fn a_plan_that_touches_what_is_on_its_way_waits_for_it() {
    let mut desk = Desk::new(15);
    let node = desk.store.add_node(1, |_| {});
    let victim = desk.store.running("low", node, 1_000);
    let mut stopping = desk.store.start_plan("low");
    stopping.stops.insert(node, vec![stop(victim)]);
    let mut evicting = desk.store.start_plan("high");
    evicting.preemptions.insert(node, vec![stop(victim)]);
    desk.store.place(&mut evicting, node, 4_000);
    desk.submit(1, &stopping);
    desk.submit(2, &evicting);
    desk.judge();
    assert_eq!(desk.out.len(), 1);
    desk.settle();
    desk.judge();
    desk.settle();
    assert!(desk.out.is_empty(), "nothing had to be tried twice");
    assert_eq!(desk.result(2).placed.len(), 1);
    assert_eq!(
        desk.store.alloc(victim).desired_status,
        model::DesiredStatus::Stop
    );
}

#[test]
fn one_that_is_deposed_answers_everybody_and_falls_silent() {
    let mut desk = Desk::new(16);
    let node = desk.store.add_node(1, |_| {});
    let plans: Vec<_> = (0..4)
        .map(|number| {
            let mut plan = desk.store.start_plan(&format!("job{number}"));
            desk.store.place(&mut plan, node, 100);
            plan
        })
        .collect();
    for (ticket, plan) in (0..).zip(&plans[..3]) {
        desk.submit(ticket, plan);
    }
    desk.judge();
    desk.tell(Event::Deposed);
    assert!(desk.deposed);
    desk.submit(3, &plans[3]);
    let tickets: Vec<_> = desk.answers.iter().map(|(ticket, _)| ticket.0).collect();
    assert_eq!(tickets, [0, 1, 2, 3]);
    assert!(
        desk.answers
            .iter()
            .all(|(_, answer)| *answer == Answer::Unavailable)
    );
    let (commit, _) = desk.out.remove(0);
    desk.tell(Event::Committed {
        commit,
        revision: 99,
    });
    assert_eq!(desk.answers.len(), 4);
}

#[test]
fn while_a_plan_waits_no_other_of_its_job_goes_ahead() {
    let mut desk = Desk::new(17);
    let (node, other) = (
        desk.store.add_node(1, |_| {}),
        desk.store.add_node(2, |_| {}),
    );
    let victim = desk.store.running("low", node, 1_000);
    let mut stopping = desk.store.start_plan("low");
    stopping.stops.insert(node, vec![stop(victim)]);
    let mut evicting = desk.store.start_plan("high");
    evicting.preemptions.insert(node, vec![stop(victim)]);
    desk.store.place(&mut evicting, node, 4_000);
    let mut second = desk.store.start_plan("high");
    desk.store.place(&mut second, other, 100);
    for (ticket, plan) in [(1, &stopping), (2, &evicting), (3, &second)] {
        desk.submit(ticket, plan);
    }
    desk.finish();
    assert_eq!(desk.result(2).placed.len(), 1);
    assert!(desk.result(3).refused.is_some(), "it has to look again");
}

#[test]
fn what_was_judged_on_top_of_a_commit_that_failed_meanwhile_is_judged_again() {
    let mut desk = Desk::new(18);
    let node = desk.store.add_node(1, |_| {});
    let (mut first, mut second) = (desk.store.start_plan("a"), desk.store.start_plan("b"));
    desk.store.place(&mut first, node, 3_000);
    desk.store.place(&mut second, node, 3_000);
    desk.submit(1, &first);
    desk.judge();
    desk.submit(2, &second);
    assert_eq!((desk.out.len(), desk.judging.len()), (1, 1));
    desk.store.delete(state::Key::Eval(first.eval_id));
    desk.settle();
    desk.finish();
    assert!(desk.result(1).refused.is_some());
    assert_eq!(desk.result(2).placed.len(), 1);
}

#[test]
fn a_plan_is_not_sent_back_for_what_is_wrong_with_those_beside_it() {
    let mut desk = Desk::new(19);
    let (calm, busy) = (
        desk.store.add_node(1, |_| {}),
        desk.store.add_node(2, |_| {}),
    );
    for (ticket, name, node) in [(1, "first", calm), (2, "a", busy), (3, "b", calm)] {
        let mut plan = desk.store.start_plan(name);
        desk.store.place(&mut plan, node, 100);
        desk.submit(ticket, &plan);
    }
    desk.judge();
    desk.settle();
    assert_eq!(desk.out[0].1.len(), 2);
    // What is more important comes in all the time, and while it is out the two are judged together.
    for ticket in 10..14 {
        let mut urgent = desk.store.start_plan(&format!("urgent{ticket}"));
        urgent.priority = 90;
        desk.store.place(&mut urgent, calm, 1);
        desk.submit(ticket, &urgent);
        desk.store
            .edit_node(busy, |node| node.status_description.push('.'));
        desk.settle();
        desk.judge();
        desk.settle();
        desk.judge();
    }
    desk.finish();
    assert_eq!(desk.result(3).placed.len(), 1);
}

#[test]
fn what_a_stop_on_its_way_gives_up_is_there_for_the_next_plan() {
    let mut desk = Desk::new(20);
    let node = desk.store.add_node(1, |_| {});
    let leaving = desk.store.running("low", node, 3_000);
    let mut stopping = desk.store.start_plan("low");
    stopping.stops.insert(node, vec![stop(leaving)]);
    let mut coming = desk.store.start_plan("high");
    desk.store.place(&mut coming, node, 3_000);
    desk.submit(1, &stopping);
    desk.submit(2, &coming);
    desk.finish();
    assert_eq!(desk.result(2).placed.len(), 1);
}

#[test]
fn no_more_is_judged_ahead_than_the_next_transactions_can_hold() {
    let mut desk = Desk::new(21);
    let node = desk
        .store
        .add_node(1, |node| node.resources.cpu_mhz = 1_000_000);
    for ticket in 0..30 {
        let mut plan = desk.store.start_plan(&format!("job{ticket}"));
        for _ in 0..100 {
            desk.store.place(&mut plan, node, 1);
        }
        desk.submit(ticket, &plan);
    }
    desk.judge();
    let (_, queued) = desk.applier.depth();
    assert!(queued > 0, "plans that come now may be more important");
    desk.finish();
    assert!((0..30).all(|ticket| desk.result(ticket).placed.len() == 100));
}
