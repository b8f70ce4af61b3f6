//! Random rollouts: in any order of health reports, the scheduler sees all of them, and soon.

use std::time::Duration;

use model::{DeploymentHealth, DeploymentStatus, EvalStatus, Evaluation};
use proptest::prelude::*;

use super::fixture::{Fixture, alloc_id, group, job};

const COUNT: u32 = 5;

#[derive(Clone, Debug)]
enum Act {
    Health {
        alloc: u32,
    },
    Pass {
        ms: u64,
    },
    /// Whatever was asked for is written, or gets lost.
    Write {
        lost: bool,
    },
    /// A scheduler finishes the job's newest evaluation, having covered `behind` revisions back.
    Schedule {
        behind: u64,
    },
    Elect,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (1..=COUNT).prop_map(|alloc| Act::Health { alloc }),
        2 => (0..400u64).prop_map(|ms| Act::Pass { ms }),
        3 => any::<bool>().prop_map(|lost| Act::Write { lost }),
        2 => (0..4u64).prop_map(|behind| Act::Schedule { behind }),
        1 => Just(Act::Elect),
    ]
}

fn perform(fixture: &mut Fixture, act: &Act) {
    match act {
        Act::Health { alloc } => fixture.report(*alloc, true),
        Act::Pass { ms } => fixture.pass(Duration::from_millis(*ms)),
        Act::Write { lost } => {
            while !fixture.actions.is_empty() {
                let action = fixture.actions.remove(0);
                if *lost {
                    fixture.rollout.examine_again(action.deployment_id);
                } else {
                    let eval = action.eval().expect("health asks for nothing else").clone();
                    fixture.put_eval(eval);
                }
            }
        }
        Act::Schedule { behind } => {
            let covered = Evaluation {
                status: EvalStatus::Complete,
                snapshot_index: fixture.revision.saturating_sub(*behind).max(1),
                ..fixture.eval()
            };
            fixture.put_eval(covered);
        }
        Act::Elect => fixture.elect(),
    }
}

fn verdicts(fixture: &Fixture) -> Vec<Option<DeploymentHealth>> {
    let snapshot = fixture.snapshot();
    (1..=COUNT)
        .map(|number| snapshot.alloc(alloc_id(number))?.health())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn in_the_end_a_scheduler_looks_at_all_health_there_is(
        acts in prop::collection::vec(act(), 1..60)
    ) {
        let mut fixture = Fixture::deploying(&job(COUNT), group(COUNT), COUNT);
        let mut news = 0;
        for act in &acts {
            let before = verdicts(&fixture);
            perform(&mut fixture, act);
            if verdicts(&fixture) != before {
                news = fixture.revision;
            }
        }
        for _ in 0..3 {
            perform(&mut fixture, &Act::Pass { ms: 250 });
            fixture.step();
            perform(&mut fixture, &Act::Write { lost: false });
        }
        prop_assert_eq!(&fixture.actions, &[]);
        prop_assert_eq!(fixture.deployment().status, DeploymentStatus::Running);
        let covered = fixture.snapshot().covered_index(&fixture.deployment().job, fixture.now);
        prop_assert!(covered >= news, "health reported at {} and covered up to {}", news, covered);
    }
}
