//! Launches of periodic jobs: scripts, and a property over random histories.

use std::collections::BTreeSet;

use model::{EvalId, EvalStatus, Job, JobKey, Periodic, PeriodicLaunch, Timestamp};
use periodic_launch::{Timetable, advanced, launch, next_launch};
use proptest::prelude::*;
use state::{Change, Entity, Key, Snapshot, State, Write};
use test_kit::builders;

use crate::periodic::{Due, Effect, Launcher, PER_STEP, launch_due, skip_due};

/// 10:00 on 1 March 2026, UTC.
const TEN: u64 = 1_772_359_200;

fn at(minutes: u64, seconds: u64) -> Timestamp {
    Timestamp::from_secs(TEN + 60 * minutes + seconds)
}

fn periodic(crons: &[&str]) -> Job {
    let mut job = builders::batch("p", 1);
    job.submit_time = at(0, 0);
    job.periodic = Some(Periodic {
        enabled: true,
        crons: crons.iter().map(|cron| (*cron).to_owned()).collect(),
        is_list: false,
        prohibit_overlap: false,
        time_zone: "UTC".to_owned(),
    });
    job
}

/// A store and its leader.
struct Fixture {
    state: State,
    launcher: Launcher,
    evals: u128,
    launched: Vec<u64>,
}

impl Fixture {
    fn new(job: &Job) -> Self {
        let mut fixture = Self::registered(job);
        fixture.record(job.submit_time);
        fixture
    }

    /// The same without a record, as stores of before may have it.
    fn registered(job: &Job) -> Self {
        let mut fixture = Self {
            state: State::default(),
            launcher: Launcher::default(),
            evals: 0,
            launched: Vec::new(),
        };
        fixture.put(vec![(
            Key::Job(job.key()),
            Entity::Job(Box::new(job.clone())),
        )]);
        fixture
    }

    fn snapshot(&self) -> Snapshot {
        self.state.snapshot()
    }

    /// Writes at one revision, and lets the leader hear of it.
    fn put(&mut self, objects: Vec<(Key, Entity)>) {
        let snapshot = self.snapshot();
        let revision = snapshot.index() + 1;
        let created = |key: &Key| match key {
            Key::Job(key) => snapshot.job(key).map(|job| job.create_index),
            Key::PeriodicLaunch(key) => snapshot.periodic_launch(key).map(|row| row.create_index),
            Key::Eval(id) => snapshot.eval(*id).map(|row| row.create_index),
            _ => None,
        };
        let changes = objects.into_iter().map(|(key, entity)| Change::Put {
            create_index: created(&key).unwrap_or(revision),
            modify_index: revision,
            key,
            entity,
        });
        let changes: Vec<Change> = changes.collect();
        self.state.apply(revision, changes.clone());
        self.launcher.note(&changes);
    }

    fn record(&mut self, launched: Timestamp) {
        let key = Key::PeriodicLaunch(JobKey::new("default", "p"));
        self.put(vec![(
            key,
            Entity::PeriodicLaunch(PeriodicLaunch { launched }),
        )]);
    }

    /// Another leads from now on.
    fn fail_over(&mut self) {
        self.launcher = Launcher::default();
        self.launcher.resync(&self.state.snapshot());
    }

    fn decide(&mut self, now: Timestamp) -> Vec<Effect> {
        self.launcher.step(now, &self.state.snapshot())
    }

    /// Commits a decision if its compares hold; `seen` is the snapshot it was made on.
    fn perform(&mut self, effect: &Effect, seen: &Snapshot, now: Timestamp) -> bool {
        self.evals += 1;
        let eval_id = EvalId::from_random(self.evals);
        let (due, writes) = match effect {
            Effect::Launch(due) => (due, launch_due(seen, due, eval_id, now)),
            Effect::Skip(due) => (due, skip_due(seen, due)),
        };
        let Some(writes) = writes else { return false };
        let stored = self.snapshot();
        let stored_index = |key: &Key| match key {
            Key::Job(key) => stored.job(key).map(|job| job.modify_index),
            Key::PeriodicLaunch(key) => stored.periodic_launch(key).map(|row| row.modify_index),
            Key::JobVersion(key, version) => {
                let row = stored.job_version(key, *version);
                row.map(|row| row.modify_index)
            }
            Key::Eval(id) => stored.eval(*id).map(|row| row.modify_index),
            other => panic!("a launch writes {other:?}"),
        };
        let compared: Vec<&Key> = writes.iter().map(Write::key).collect();
        assert!(compared.contains(&&Key::Job(due.job.clone())));
        assert!(compared.contains(&&Key::PeriodicLaunch(due.job.clone())));
        let holds = |write: &&Write| {
            write.expected_index() == stored_index(write.key()).unwrap_or_default()
        };
        let is_child = |write: &&Write| {
            let is_record = matches!(write.key(), Key::PeriodicLaunch(_));
            matches!(write, Write::Create { .. }) && !is_record
        };
        if !writes
            .iter()
            .filter(|it| !is_child(it))
            .all(|it| holds(&it))
        {
            return false;
        }
        for write in writes.iter().filter(is_child) {
            assert!(holds(&write), "{:?} is created twice", write.key());
        }
        if writes
            .iter()
            .any(|write| matches!(write.key(), Key::Eval(_)))
        {
            self.launched.push(due.at.as_secs());
        }
        let objects = writes.iter();
        let objects = objects.filter_map(|it| Some((it.key().clone(), it.entity()?.clone())));
        self.put(objects.collect());
        true
    }

    /// Decides and executes.
    fn step(&mut self, now: Timestamp) -> Vec<Effect> {
        let effects = self.decide(now);
        for effect in &effects {
            let seen = self.snapshot();
            self.perform(effect, &seen, now);
        }
        effects
    }

    /// The minutes after ten that were launched.
    fn minutes(&self) -> Vec<u64> {
        self.launched.iter().map(|time| (time - TEN) / 60).collect()
    }

    fn end_children(&mut self, status: EvalStatus) {
        let evals: Vec<_> = self
            .snapshot()
            .evals()
            .map(|eval| eval.value.clone())
            .collect();
        for mut eval in evals {
            eval.status = status;
            self.put(vec![(Key::Eval(eval.id), Entity::Eval(Box::new(eval)))]);
        }
    }
}

#[test]
fn a_job_is_launched_when_it_is_due_and_not_before() {
    let mut fixture = Fixture::new(&periodic(&["*/5 * * * *"]));
    assert_eq!(fixture.step(at(4, 59)), []);
    assert_eq!(fixture.launcher.next_deadline(), Some(at(5, 0)));
    let due = Due {
        job: JobKey::new("default", "p"),
        at: at(5, 0),
        job_index: 1,
    };
    assert_eq!(fixture.step(at(5, 0)), [Effect::Launch(due)]);
    assert_eq!(fixture.step(at(5, 1)), []);
    fixture.step(at(10, 3));
    assert_eq!(fixture.minutes(), [5, 10]);
    let child = JobKey::new("default", format!("p/periodic-{}", TEN + 300).as_str());
    let child = fixture.snapshot().job(&child).unwrap().value.clone();
    assert_eq!((child.parent_id.as_str(), child.periodic), ("p", None));
    assert_eq!(child.name, child.id);
}

#[test]
fn scenario_022_a_new_leader_launches_once_for_all_that_was_missed() {
    let mut fixture = Fixture::new(&periodic(&["*/5 * * * *"]));
    // The last launch was at 10:00; there is no leader from 10:04 to 10:17.
    fixture.fail_over();
    assert_eq!(fixture.step(at(17, 0)).len(), 1);
    assert_eq!(fixture.step(at(17, 1)), []);
    assert_eq!(fixture.minutes(), [15]);
    assert_eq!(fixture.launcher.next_deadline(), Some(at(20, 0)));
    fixture.step(at(20, 0));
    assert_eq!(fixture.minutes(), [15, 20]);
}

#[test]
fn scenario_023_a_launch_that_would_overlap_is_left_out_and_not_queued() {
    let mut job = periodic(&["*/5 * * * *"]);
    job.periodic.as_mut().unwrap().prohibit_overlap = true;
    let mut fixture = Fixture::new(&job);
    fixture.step(at(5, 0));
    fixture.end_children(EvalStatus::Blocked);
    let skipped = fixture.step(at(10, 0));
    assert!(
        matches!(&skipped[..], [Effect::Skip(due)] if due.at == at(10, 0)),
        "{skipped:?}"
    );
    // The next leader does not make up for it.
    fixture.end_children(EvalStatus::Complete);
    fixture.fail_over();
    assert_eq!(fixture.step(at(12, 0)), []);
    fixture.step(at(15, 0));
    assert_eq!(fixture.minutes(), [5, 15]);
}

#[test]
fn a_child_that_came_after_the_decision_keeps_the_next_one_away() {
    let mut job = periodic(&["*/5 * * * *"]);
    job.periodic.as_mut().unwrap().prohibit_overlap = true;
    let mut fixture = Fixture::new(&job);
    // Decided on before the child of five past shows.
    let next = Due {
        job: job.key(),
        at: at(10, 0),
        job_index: fixture.snapshot().job(&job.key()).unwrap().modify_index,
    };
    fixture.step(at(5, 0));
    let write = |fixture: &Fixture| {
        launch_due(
            &fixture.snapshot(),
            &next,
            EvalId::from_random(9),
            at(10, 0),
        )
    };
    assert_eq!(write(&fixture), None);
    fixture.end_children(EvalStatus::Complete);
    assert!(write(&fixture).is_some());
}

#[test]
fn scenario_026_an_expression_without_further_times_does_not_hide_the_others() {
    let crons = ["0 0 1 1 * 2020", "*/10 * * * *"];
    let timetable = Timetable::new(periodic(&crons).periodic.as_ref().unwrap());
    assert_eq!(timetable.next(at(1, 0)), Some(at(10, 0)));
    let mut fixture = Fixture::new(&periodic(&crons));
    fixture.step(at(10, 0));
    assert_eq!(fixture.minutes(), [10]);
    let over = Timetable::new(periodic(&crons[..1]).periodic.as_ref().unwrap());
    assert_eq!(over.next(at(1, 0)), None);
}

#[test]
fn a_failed_launch_is_requested_again() {
    let mut fixture = Fixture::new(&periodic(&["*/5 * * * *"]));
    let first = fixture.decide(at(5, 0));
    assert_eq!(first.len(), 1);
    assert_eq!(fixture.decide(at(5, 1)), []);
    assert_eq!(fixture.step(at(5, 5)), first);
    assert_eq!(fixture.minutes(), [5]);
}

#[test]
fn a_stopped_disabled_or_changed_job_is_not_launched_by_an_older_decision() {
    let job = periodic(&["*/5 * * * *"]);
    let mut fixture = Fixture::new(&job);
    let decided = fixture.decide(at(5, 0));
    let seen = fixture.snapshot();
    let stopped = Job {
        stop: true,
        ..job.clone()
    };
    fixture.put(vec![(Key::Job(job.key()), Entity::Job(Box::new(stopped)))]);
    assert!(
        !fixture.perform(&decided[0], &seen, at(5, 0)),
        "the job is compared"
    );
    let fresh = fixture.snapshot();
    assert!(!fixture.perform(&decided[0], &fresh, at(5, 0)));
    assert_eq!(fixture.step(at(30, 0)), []);
    assert_eq!(fixture.launcher.tracked(), 0);
}

#[test]
fn one_time_is_launched_once_whatever_became_of_its_child() {
    let mut fixture = Fixture::new(&periodic(&["*/5 * * * *"]));
    let decided = fixture.decide(at(5, 0));
    let seen = fixture.snapshot();
    assert!(fixture.perform(&decided[0], &seen, at(5, 0)));
    // A second leader that decided on the same state.
    assert!(!fixture.perform(&decided[0], &seen, at(5, 0)));
    // And one that sees the record, after the child was purged.
    let child = JobKey::new("default", format!("p/periodic-{}", TEN + 300).as_str());
    let revision = fixture.snapshot().index() + 1;
    fixture.state.apply(
        revision,
        [Change::Delete {
            key: Key::Job(child),
        }],
    );
    let fresh = fixture.snapshot();
    assert!(!fixture.perform(&decided[0], &fresh, at(5, 0)));
    assert_eq!(fixture.minutes(), [5]);
}

/// A change of a job to other launch times that the launcher has not seen yet.
fn changed_unheard(fixture: &mut Fixture) {
    let job = periodic(&["*/7 * * * *"]);
    let revision = fixture.snapshot().index() + 1;
    let change = Change::Put {
        key: Key::Job(job.key()),
        entity: Entity::Job(Box::new(job)),
        create_index: 1,
        modify_index: revision,
    };
    fixture.state.apply(revision, [change]);
}

#[test]
fn a_changed_job_is_launched_by_its_current_schedule() {
    let mut fixture = Fixture::new(&periodic(&["*/5 * * * *"]));
    assert_eq!(fixture.step(at(1, 0)), []);
    changed_unheard(&mut fixture);
    assert_eq!(fixture.step(at(5, 0)), []);
    assert_eq!(fixture.launcher.next_deadline(), Some(at(7, 0)));
    fixture.step(at(7, 0));
    assert_eq!(fixture.minutes(), [7]);

    let mut fixture = Fixture::new(&periodic(&["*/5 * * * *"]));
    let decided = fixture.decide(at(5, 0));
    changed_unheard(&mut fixture);
    let [Effect::Launch(due)] = &decided[..] else {
        panic!("{decided:?}");
    };
    let launched = launch_due(&fixture.snapshot(), due, EvalId::from_random(9), at(5, 0));
    assert_eq!(launched, None, "it was decided on what the job said before");
}

#[test]
fn a_job_that_was_never_launched_is_due_from_its_registration_on() {
    let mut fixture = Fixture::registered(&periodic(&["*/5 * * * *"]));
    assert_eq!(fixture.step(at(4, 59)), []);
    fixture.step(at(5, 0));
    assert_eq!(fixture.minutes(), [5]);
}

#[test]
fn the_next_launch_is_in_the_future() {
    let fixture = Fixture::new(&periodic(&["*/5 * * * *"]));
    let snapshot = fixture.snapshot();
    let job = snapshot.job(&JobKey::new("default", "p")).unwrap();
    let next = |now| next_launch(&snapshot, job, now);
    assert_eq!(next(at(1, 0)), Some(at(5, 0)));
    // Missed launches are made up once, and not shown as the next launch.
    assert_eq!(next(at(17, 0)), Some(at(20, 0)));
}

#[test]
fn a_record_never_goes_back() {
    let mut fixture = Fixture::new(&periodic(&["*/5 * * * *"]));
    fixture.record(at(10, 0));
    let key = JobKey::new("default", "p");
    let record = |at| advanced(&fixture.snapshot(), &key, at).0.launched;
    assert_eq!(record(at(5, 0)), at(10, 0));
    assert_eq!(record(at(15, 0)), at(15, 0));
}

#[test]
fn a_child_that_is_there_is_not_made_again_and_one_that_was_gets_a_version_of_its_own() {
    let job = periodic(&["*/5 * * * *"]);
    let mut fixture = Fixture::new(&job);
    let write = |fixture: &Fixture| {
        let eval_id = EvalId::from_random(9);
        launch(&fixture.snapshot(), &job, at(5, 0), eval_id, at(5, 0)).child
    };
    let (child, _) = write(&fixture).expect("it is not there");
    assert_eq!(child.version, 0);
    let version = (
        Key::JobVersion(child.key(), 0),
        Entity::JobVersion(Box::new(child.clone())),
    );
    // Purged, but what it left still runs.
    fixture.put(vec![version]);
    let (again, _) = write(&fixture).expect("it is not there");
    assert_eq!(again.version, 1);
    fixture.put(vec![(
        Key::Job(child.key()),
        Entity::Job(Box::new(child.clone())),
    )]);
    assert_eq!(write(&fixture), None);
}

#[test]
fn a_job_that_went_unheard_is_forgotten_when_everything_is_looked_at_anew() {
    let job = periodic(&["*/5 * * * *"]);
    let mut fixture = Fixture::new(&job);
    fixture.step(at(1, 0));
    assert_eq!(fixture.launcher.tracked(), 1);
    let revision = fixture.snapshot().index() + 1;
    let key = Key::Job(job.key());
    fixture.state.apply(revision, [Change::Delete { key }]);
    let snapshot = fixture.snapshot();
    fixture.launcher.resync(&snapshot);
    fixture.step(at(2, 0));
    assert_eq!(fixture.launcher.tracked(), 0);
}

#[test]
fn of_many_that_are_due_at_once_the_rest_follows_with_the_next_step() {
    let mut fixture = Fixture::new(&periodic(&["0 0 1 1 * 2020"]));
    for number in 0..=PER_STEP {
        let mut job = periodic(&["*/5 * * * *"]);
        job.id = format!("p{number}");
        fixture.put(vec![(Key::Job(job.key()), Entity::Job(Box::new(job)))]);
    }
    assert_eq!(fixture.decide(at(5, 0)).len(), PER_STEP);
    assert_eq!(fixture.launcher.next_deadline(), Some(at(5, 0)), "at once");
    assert_eq!(fixture.decide(at(5, 0)).len(), 1);
}

#[derive(Clone, Debug)]
enum Act {
    /// Seconds go by.
    Pass(u64),
    /// Decides, and executes so many of the decisions later.
    Step,
    FailOver,
    /// Performs an old decision, perhaps of a deposed leader.
    Late,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        4 => (1u64..90).prop_map(Act::Pass),
        1 => (300u64..4_000).prop_map(Act::Pass),
        4 => Just(Act::Step),
        1 => Just(Act::FailOver),
        2 => Just(Act::Late),
    ];
    proptest::collection::vec(act, 1..60)
}

proptest! {
    /// No time is launched twice, launches go forward, only times that are due are launched, and
    /// after a step nothing is due any more.
    #[test]
    fn every_time_is_launched_at_most_once_and_none_is_due_after_a_step(acts in acts()) {
        let job = periodic(&["*/5 * * * *", "0 30 * * * * *"]);
        let timetable = Timetable::new(job.periodic.as_ref().unwrap());
        let mut fixture = Fixture::new(&job);
        let mut now = at(0, 0);
        let mut old: Vec<(Effect, Snapshot)> = Vec::new();
        for act in acts {
            match act {
                Act::Pass(seconds) => now = now.plus(std::time::Duration::from_secs(seconds)),
                Act::FailOver => fixture.fail_over(),
                Act::Late => {
                    for (effect, seen) in &old {
                        fixture.perform(effect, seen, now);
                    }
                }
                Act::Step => {
                    let seen = fixture.snapshot();
                    let effects = fixture.decide(now);
                    for effect in effects {
                        fixture.perform(&effect, &seen, now);
                        old.push((effect, seen.clone()));
                    }
                    let launched = fixture.snapshot().periodic_launch(&job.key()).unwrap().value.launched;
                    let asked = old.iter().any(|(effect, _)| match effect {
                        Effect::Launch(due) | Effect::Skip(due) => due.at > launched,
                    });
                    prop_assert!(timetable.due(launched, now).is_none() || asked);
                }
            }
        }
        let times = &fixture.launched;
        let distinct: BTreeSet<_> = times.iter().collect();
        prop_assert_eq!(distinct.len(), times.len());
        prop_assert!(times.is_sorted());
        for time in times {
            let before = Timestamp::from_secs(time - 1);
            prop_assert_eq!(timetable.next(before), Some(Timestamp::from_secs(*time)));
            prop_assert!(Timestamp::from_secs(*time) <= now);
        }
    }
}
