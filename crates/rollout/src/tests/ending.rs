//! Random rollouts under faults: each ends once it is resumed and the faults are over, and none
//! is promoted too early. A stand-in for the scheduler places, replaces and completes.

use std::time::Duration;

use model::{
    AllocId, ClientStatus, DeploymentGroup, DeploymentStatus, DesiredStatus, EvalStatus, Evaluation,
};
use proptest::prelude::*;
use state::Key;

use super::fixture::{
    Fixture, MINUTE, alloc_id, deployment_id, expected_index, group, job, unchanged,
};
use crate::Reason;
use crate::requests::{self, PromotedGroups};

const COUNT: u32 = 4;
const MAX_PARALLEL: usize = 2;

#[derive(Clone, Debug)]
enum Act {
    /// The health of a running allocation, if reported.
    Health {
        which: usize,
        healthy: bool,
    },
    /// One of those that run fails.
    Crash {
        which: usize,
    },
    Pass {
        seconds: u64,
    },
    /// Whatever was asked for is written, or gets lost.
    Write {
        lost: bool,
    },
    /// The scheduler looks, if there is an evaluation.
    Schedule,
    Pause,
    Resume,
    Promote,
    Elect,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        5 => (0..8usize, prop::bool::weighted(0.8))
            .prop_map(|(which, healthy)| Act::Health { which, healthy }),
        1 => (0..8usize).prop_map(|which| Act::Crash { which }),
        2 => (0..200u64).prop_map(|seconds| Act::Pass { seconds }),
        4 => prop::bool::weighted(0.2).prop_map(|lost| Act::Write { lost }),
        4 => Just(Act::Schedule),
        1 => Just(Act::Pause),
        1 => Just(Act::Resume),
        1 => Just(Act::Promote),
        1 => Just(Act::Elect),
    ]
}

/// A random history of one deployment, with its scheduler and its nodes.
struct History {
    fixture: Fixture,
    /// The number of the last allocation.
    placed: u32,
}

impl History {
    fn new(canaries: u32, auto_promote: bool) -> Self {
        let group = DeploymentGroup {
            desired_canaries: canaries,
            auto_promote,
            ..group(COUNT)
        };
        let mut history = Self {
            fixture: Fixture::deploying(&job(COUNT), group, 0),
            placed: 0,
        };
        history.look();
        history
    }

    fn perform(&mut self, act: &Act) {
        match act {
            Act::Health { which, healthy } => {
                if let Some(number) = self.running(*which) {
                    self.fixture.report(number, *healthy);
                }
            }
            Act::Crash { which } => {
                if let Some(number) = self.running(*which) {
                    let view = self.fixture.snapshot();
                    let said = view.alloc(alloc_id(number)).and_then(|it| it.health());
                    self.fixture.put_client(number, ClientStatus::Failed, said);
                    // Its node's report asks for a look.
                    let eval = self.fixture.eval();
                    self.fixture.put_eval(eval);
                }
            }
            Act::Pass { seconds } => self.fixture.pass(Duration::from_secs(*seconds)),
            Act::Write { lost } => self.write(*lost),
            Act::Schedule => self.schedule(),
            Act::Pause => {
                let paused = requests::pause(&self.fixture.stored_deployment(), self.fixture.now);
                self.by_user(paused.ok().flatten());
            }
            Act::Resume => {
                let eval_id = self.fixture.next_eval_id();
                let deployment = self.fixture.stored_deployment();
                let snapshot = self.fixture.snapshot();
                let resumed = requests::resume(&snapshot, &deployment, eval_id, self.fixture.now);
                self.by_user(resumed.ok().flatten());
            }
            Act::Promote => {
                let eval_id = self.fixture.next_eval_id();
                let deployment = self.fixture.stored_deployment();
                let snapshot = self.fixture.snapshot();
                let promoted = requests::promote(
                    &snapshot,
                    &deployment,
                    PromotedGroups::All,
                    eval_id,
                    self.fixture.now,
                );
                if promoted.is_ok() {
                    self.assert_promotable();
                }
                self.by_user(promoted.ok());
            }
            Act::Elect => {
                self.fixture.actions.clear();
                self.fixture.elect();
            }
        }
    }

    fn by_user(&mut self, action: Option<crate::Action>) {
        // Earlier actions of the watcher compare the deployment, so they can no longer be written.
        self.fixture.actions.clear();
        if let Some(action) = action {
            self.fixture.write_action(&action);
        } else {
            self.fixture.rollout.examine_again(deployment_id());
        }
    }

    fn write(&mut self, lost: bool) {
        for action in std::mem::take(&mut self.fixture.actions) {
            let read = expected_index(&action, &Key::Deployment(deployment_id()));
            let is_stale =
                read.is_some_and(|index| index != self.fixture.stored_deployment().modify_index);
            if action.reason == Reason::AutoPromoted && !is_stale && !lost && self.is_asked(&action)
            {
                self.assert_promotable();
                self.fixture.write_action(&action);
            } else if action.reason == Reason::AutoPromoted || is_stale || lost {
                self.fixture.rollout.examine_again(action.deployment_id);
            } else {
                self.fixture.write_action(&action);
            }
        }
    }

    /// Tells whether the compares of an action still hold.
    fn is_asked(&self, action: &crate::Action) -> bool {
        let snapshot = self.fixture.snapshot();
        unchanged(action).iter().all(|(key, index)| match key {
            Key::Alloc(id) => snapshot.alloc(*id).unwrap().alloc_modify_index == *index,
            Key::AllocClient(id) => snapshot.alloc(*id).unwrap().client_modify_index == *index,
            _ => true,
        })
    }

    fn assert_promotable(&self) {
        let group = &self.fixture.deployment().groups["web"];
        let snapshot = self.fixture.snapshot();
        let is_well = |id: &&AllocId| {
            let view = snapshot.alloc(**id).unwrap();
            !view.is_terminal() && view.health().is_some_and(|health| health.healthy)
        };
        let healthy = group.placed_canaries.iter().filter(is_well).count();
        assert!(healthy >= group.desired_canaries as usize, "{healthy}");
    }

    /// The number of one of those that run, whichever `which` picks.
    fn running(&self, which: usize) -> Option<u32> {
        let snapshot = self.fixture.snapshot();
        let running: Vec<u32> = (1..=self.placed)
            .filter(|number| !snapshot.alloc(alloc_id(*number)).unwrap().is_terminal())
            .collect();
        running.get(which % running.len().max(1)).copied()
    }

    fn schedule(&mut self) {
        let snapshot = self.fixture.snapshot();
        let open: Vec<Evaluation> = snapshot
            .open_evals()
            .map(|eval| eval.value.clone())
            .collect();
        if open.is_empty() {
            return;
        }
        let seen = self.fixture.revision;
        self.look();
        for eval in open {
            self.fixture.put_eval(Evaluation {
                status: EvalStatus::Complete,
                snapshot_index: seen,
                ..eval
            });
        }
    }

    /// Makes the scheduler's changes to the deployment.
    fn look(&mut self) {
        let deployment = self.fixture.deployment();
        if deployment.status != DeploymentStatus::Running {
            return;
        }
        let group = &deployment.groups["web"];
        let snapshot = self.fixture.snapshot();
        // Unhealthy allocations are stopped and replaced.
        for number in 1..=self.placed {
            let view = snapshot.alloc(alloc_id(number)).unwrap();
            let is_unwell = view.health().is_some_and(|health| !health.healthy);
            if !view.alloc.is_server_terminal() && (is_unwell || view.is_client_terminal()) {
                let next = alloc_id(self.placed + 1);
                self.fixture.change_alloc(number, |alloc| {
                    alloc.desired_status = DesiredStatus::Stop;
                    alloc.next_alloc = Some(next);
                });
            }
        }
        let snapshot = self.fixture.snapshot();
        let live = || {
            let all = snapshot.allocs_by_deployment(deployment_id());
            all.filter(|view| !view.is_terminal())
        };
        let healthy = |view: &&state::AllocView| view.health().is_some_and(|it| it.healthy);
        if group.awaits_promotion() {
            let missing = group.desired_canaries as usize - live().count().min(2);
            for _ in 0..missing {
                self.place(true);
            }
        } else if live().filter(healthy).count() >= COUNT as usize {
            self.fixture
                .change_deployment(|it| it.status = DeploymentStatus::Successful);
        } else {
            let unproven = live().filter(|view| !healthy(view)).count();
            let missing = COUNT as usize - live().count();
            for _ in 0..missing.min(MAX_PARALLEL.saturating_sub(unproven)) {
                self.place(false);
            }
        }
    }

    fn place(&mut self, canary: bool) {
        self.placed += 1;
        let number = self.placed;
        self.fixture.place(number);
        if canary {
            // Placements leave the deployment's own time as it is.
            let time = self.fixture.deployment().modify_time;
            let now = std::mem::replace(&mut self.fixture.now, time);
            self.fixture.change_deployment(|it| {
                let group = it.groups.get_mut("web").unwrap();
                group.placed_canaries.push(alloc_id(number));
            });
            self.fixture.now = now;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_deployment_ends_once_it_is_resumed_and_the_faults_are_over(
        acts in prop::collection::vec(act(), 0..60),
        canaries in 0..=2u32,
        auto_promote: bool,
        becomes_healthy: bool,
    ) {
        let mut history = History::new(canaries, auto_promote && canaries > 0);
        for act in &acts {
            history.perform(act);
        }
        history.perform(&Act::Resume);
        // Each round is a minute: longer than all deadlines together, for one step of the rollout
        // after the other.
        let mut rounds = 0;
        while history.fixture.deployment().status.is_active() {
            rounds += 1;
            prop_assert!(rounds < 80, "{:?}", history.fixture.deployment());
            if becomes_healthy {
                for number in 1..=history.placed {
                    let view = history.fixture.snapshot();
                    let view = view.alloc(alloc_id(number)).unwrap();
                    if !view.is_terminal() && view.health().is_none() {
                        history.fixture.report(number, true);
                    }
                }
                if !auto_promote {
                    history.perform(&Act::Promote);
                }
            } else if history.fixture.deployment().groups["web"].awaits_promotion() && !auto_promote {
                // It waits for a user, so a user fails it.
                let eval_id = history.fixture.next_eval_id();
                let deployment = history.fixture.stored_deployment();
                let failed =
                    requests::fail(&history.fixture.snapshot(), &deployment, eval_id, history.fixture.now);
                history.by_user(failed.ok());
            }
            history.fixture.pass(MINUTE);
            history.fixture.step();
            history.perform(&Act::Write { lost: false });
            history.perform(&Act::Schedule);
        }
        let end = history.fixture.deployment().status;
        if becomes_healthy && acts.is_empty() {
            prop_assert_eq!(end, DeploymentStatus::Successful);
        }
    }
}
