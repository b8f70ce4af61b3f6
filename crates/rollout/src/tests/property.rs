//! Random rollouts: whatever order health comes in, the scheduler looks at all of it, and soon.

use std::time::Duration;

use model::{DeploymentHealth, DeploymentStatus, EvalStatus, Evaluation};
use proptest::prelude::*;

use super::site::{Site, alloc_id, group, job};

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
    /// A scheduler finishes the job's newest evaluation, having looked `behind` revisions back.
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

fn perform(site: &mut Site, act: &Act) {
    match act {
        Act::Health { alloc } => site.report(*alloc, true),
        Act::Pass { ms } => site.pass(Duration::from_millis(*ms)),
        Act::Write { lost } => {
            while !site.actions.is_empty() {
                let action = site.actions.remove(0);
                if *lost {
                    site.rollout.look_again(action.deployment_id);
                } else {
                    let eval = action.eval.expect("health asks for nothing else");
                    site.put_eval(eval);
                }
            }
        }
        Act::Schedule { behind } => {
            let looked = Evaluation {
                status: EvalStatus::Complete,
                snapshot_index: site.revision.saturating_sub(*behind).max(1),
                ..site.eval()
            };
            site.put_eval(looked);
        }
        Act::Elect => site.elect(),
    }
}

fn verdicts(site: &Site) -> Vec<Option<DeploymentHealth>> {
    let snapshot = site.snapshot();
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
        let mut site = Site::deploying(&job(COUNT), group(COUNT), COUNT);
        let mut news = 0;
        for act in &acts {
            let before = verdicts(&site);
            perform(&mut site, act);
            if verdicts(&site) != before {
                news = site.revision;
            }
        }
        for _ in 0..3 {
            perform(&mut site, &Act::Pass { ms: 250 });
            site.step();
            perform(&mut site, &Act::Write { lost: false });
        }
        prop_assert_eq!(&site.actions, &[]);
        prop_assert_eq!(site.deployment().status, DeploymentStatus::Running);
        let looked = site.snapshot().looked_at(&site.deployment().job, site.now);
        prop_assert!(looked >= news, "a verdict of {} and a look at {}", news, looked);
    }
}
