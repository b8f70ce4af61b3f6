//! Canaries: names that they share, and counts of groups that await their promotion.

use model::{
    Allocation, ClientStatus, DeploymentGroup, DeploymentStatus, DesiredStatus, EvalStatus,
};
use state::{Change, Entity, Key};
use test_kit::builders;

use super::{alloc, at_rest, put, put_alloc, put_at, put_job, put_rollout, web};
use crate::{Fact, History};

/// Plays allocations, each placed at a revision of its own, and returns the violated facts.
fn placed<const N: usize>(allocs: [&Allocation; N]) -> Vec<Fact> {
    let mut history = History::default();
    for (revision, alloc) in (1..).zip(allocs) {
        let entity = Entity::Alloc(Box::new(alloc.clone()));
        history.apply(
            revision,
            vec![put_at(revision, Key::Alloc(alloc.id), entity)],
        );
    }
    history.violations().iter().map(|it| it.fact).collect()
}

#[test]
fn the_replacement_of_a_canary_may_share_the_name_of_the_allocation_beside_it() {
    let node = builders::node(1);
    let old = alloc(1, &node, 0);
    let mut canary = alloc(2, &node, 0);
    canary.canary = true;
    // Stopped by the plan that replaces it.
    canary.desired_status = DesiredStatus::Stop;
    let replacement_of = |id, previous: &Allocation| Allocation {
        previous_alloc: Some(previous.id),
        ..alloc(id, &node, 0)
    };
    let replacement = replacement_of(3, &canary);
    let mut ended_replacement = replacement.clone();
    ended_replacement.desired_status = DesiredStatus::Stop;
    let second = replacement_of(4, &replacement);
    let mut plain = canary.clone();
    plain.canary = false;
    let mut of_another_name = canary.clone();
    of_another_name.name_index = 1;

    assert_eq!(placed([&old, &canary, &replacement]), []);
    assert_eq!(placed([&old, &canary, &ended_replacement, &second]), []);
    let twice = [Fact::NameUsedOnce];
    assert_eq!(placed([&old, &plain, &replacement]), twice, "no canary");
    assert_eq!(
        placed([&old, &of_another_name, &replacement]),
        twice,
        "its own name"
    );
    assert_eq!(
        placed([&old, &canary, &alloc(3, &node, 0)]),
        twice,
        "no replacement"
    );
    assert_eq!(
        placed([&canary, &old, &replacement]),
        twice,
        "placed after the canary"
    );
    assert_eq!(
        placed([&old, &canary, &replacement, &second]),
        twice,
        "two replacements"
    );
}

/// A group with a count of four and its rollout.
struct Group {
    desired_canaries: u32,
    promoted: bool,
    /// Allocations without a place.
    queued: u32,
    /// Running allocations of the version before, and of the current one.
    runs: (u32, u32),
}

impl Group {
    fn check(&self) -> Vec<Fact> {
        let mut job = web(4);
        job.version = 1;
        let mut eval = builders::evaluation(1, &job);
        eval.status = EvalStatus::Blocked;
        eval.queued_allocs = [("app".to_owned(), self.queued)].into();
        let eval = put(Key::Eval(eval.id), Entity::Eval(Box::new(eval)));
        let mut changes = vec![put_job(&job), self.rollout(), eval];
        let (former, current) = self.runs;
        let node = builders::node(1);
        for number in 0..former + current {
            let mut alloc = alloc(u128::from(number), &node, number);
            alloc.job_version = u64::from(number >= former);
            changes.push(put_alloc(&alloc));
            changes.push(super::put_client(alloc.id, ClientStatus::Running));
        }
        at_rest(changes)
    }

    fn rollout(&self) -> Change {
        let Change::Put {
            key, mut entity, ..
        } = put_rollout(1, DeploymentStatus::Running)
        else {
            unreachable!("it is a put")
        };
        let Entity::Deployment(rollout) = &mut entity else {
            unreachable!("of a deployment")
        };
        let group = DeploymentGroup {
            promoted: self.promoted,
            desired_canaries: self.desired_canaries,
            desired_total: 4,
            ..DeploymentGroup::default()
        };
        rollout.groups.insert("app".to_owned(), group);
        put(key, entity)
    }
}

#[test]
fn at_rest_a_group_that_awaits_its_canaries_runs_them_beside_its_count_or_less_than_it() {
    // (canaries wanted, promoted, queued, former, current) -> met
    for (desired_canaries, promoted, queued, runs, is_met) in [
        // No room for canaries, nor for allocations that had to leave their nodes.
        (2, false, 2, (1, 0), true),
        (0, false, 2, (1, 0), false),
        (2, true, 2, (1, 0), false),
        (2, false, 0, (1, 0), false),
        // Canaries run beside the count.
        (2, false, 0, (4, 2), true),
        (2, false, 1, (4, 1), true),
        (2, true, 0, (4, 2), false),
        (0, false, 0, (4, 2), false),
        (1, false, 0, (4, 2), false),
        (2, false, 0, (5, 2), false),
        // Canaries and replacements of former ones wait.
        (2, false, 6, (0, 0), true),
        (2, false, 7, (0, 0), false),
        (2, false, 5, (0, 2), false),
    ] {
        let group = Group {
            desired_canaries,
            promoted,
            queued,
            runs,
        };
        let expected: &[Fact] = if is_met { &[] } else { &[Fact::CountIsMet] };
        let case = format!("{desired_canaries} {promoted} {queued} {runs:?}");
        assert_eq!(group.check(), expected, "{case}");
    }
}
