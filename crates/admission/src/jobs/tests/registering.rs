//! Registrations: writes, refusals and retries.

use std::time::Duration;

use jobspec::canonicalise;
use model::{ClientStatus, EvalStatus, JobType, TriggeredBy};
use state::{Entity, Key, Write};
use test_kit::builders;

use super::fixture::{Fixture, NOW, changed, proposal, request};
use crate::jobs::{Answer, Decision, FoundIndex, JobRefusal, Preserve, RegisterRequest, register};

#[test]
fn a_new_job_is_stored_with_its_first_version_and_an_evaluation_in_one_transaction() {
    let (mut fixture, job) = (Fixture::default(), builders::service("web", 3));
    fixture.stored.advance(99);
    let context = fixture.context();
    let proposal = proposal(register(&fixture.snapshot(), &job, &request(), &context).unwrap());
    assert!(proposal.changed);
    assert!(
        proposal
            .writes
            .iter()
            .all(|write| matches!(write, Write::Create { .. } | Write::RequireAbsent { .. }))
    );
    assert_eq!(fixture.commit(&proposal), 100);

    let snapshot = fixture.snapshot();
    let stored = snapshot.job(&job.key()).unwrap();
    assert_eq!((stored.value.version, stored.modify_index), (0, 100));
    assert_eq!(
        snapshot.job_version(&job.key(), 0).unwrap().value,
        stored.value
    );
    let eval = &snapshot.eval(context.eval_id).unwrap().value;
    assert_eq!(eval.status, EvalStatus::Pending);
    assert_eq!(eval.triggered_by, TriggeredBy::JobRegister);
    assert_eq!(
        (eval.priority, eval.job_type),
        (job.priority, JobType::Service)
    );
    assert_eq!(
        (eval.create_time, eval.trace_parent.as_str()),
        (NOW, "00-trace-parent-01")
    );
}

#[test]
fn scenario_001_an_unchanged_job_is_not_written_but_evaluated_again() {
    let (mut fixture, job) = (Fixture::default(), builders::service("web", 3));
    fixture.stored.advance(99);
    fixture.register(&job);
    let proposal = proposal(fixture.decide(&job, &request()).unwrap());
    assert!(!proposal.changed);
    assert_eq!(proposal.job_modify_index, 100);
    assert!(
        matches!(
            proposal.writes.as_slice(),
            [
                Write::Create {
                    key: Key::Eval(_),
                    ..
                },
                Write::RequireUnchanged {
                    key: Key::Job(_),
                    modify_index: 100,
                },
                Write::RequireAbsent {
                    key: Key::Namespace(_)
                },
                Write::RequireAbsent {
                    key: Key::SchedulerConfig
                },
            ]
        ),
        "{:?}",
        proposal.writes
    );
    fixture.commit(&proposal);
    assert_eq!(
        fixture.snapshot().job(&job.key()).unwrap().modify_index,
        100
    );
    assert_eq!(fixture.kept(&job.key()), [0]);
    assert_eq!(fixture.snapshot().evals_by_job(&job.key()).count(), 2);
}

#[test]
fn scenario_002_nothing_and_an_empty_map_are_the_same() {
    let spec = |meta: &str| -> job_fields::Job {
        let text = format!(
            r#"{{"ID": "web", "Meta": {meta}, "TaskGroups": [{{"Name": "web",
                "Tasks": [{{"Name": "server", "Driver": "mock_driver"}}]}}]}}"#
        );
        serde_json::from_str(&text).unwrap()
    };
    let mut fixture = Fixture::default();
    let job = canonicalise(&spec("null"), NOW).unwrap().job;
    fixture.register(&job);
    let later = NOW.plus(Duration::from_secs(60));
    let again = canonicalise(&spec("{}"), later).unwrap().job;
    assert!(!proposal(fixture.decide(&again, &request()).unwrap()).changed);
}

#[test]
fn a_changed_job_gets_the_next_version_and_compares_the_one_it_replaces() {
    let (mut fixture, job) = (Fixture::default(), builders::service("web", 3));
    let first = fixture.register(&job);
    let proposal = proposal(fixture.decide(&changed(&job, 1), &request()).unwrap());
    assert!(proposal.writes.iter().any(|write| matches!(
        write,
        Write::Update { key: Key::Job(_), modify_index, .. } if *modify_index == first
    )));
    let second = fixture.commit(&proposal);
    let snapshot = fixture.snapshot();
    let stored = snapshot.job(&job.key()).unwrap();
    assert_eq!((stored.value.version, stored.create_index), (1, first));
    assert_eq!(stored.modify_index, second);
    assert_eq!(fixture.kept(&job.key()), [0, 1]);
}

/// Jobs used to be stored without the update strategy that their groups inherit.
#[test]
fn only_a_job_that_was_stored_with_its_update_strategy_changes_with_it() {
    let mut job = builders::service("web", 3);
    let update = builders::rolling_update(1);
    let mut raised = update;
    raised.max_parallel = 2;
    for (stored, registered, changes) in [
        (None, Some(update), false),
        (Some(update), Some(update), false),
        (Some(update), Some(raised), true),
    ] {
        let mut fixture = Fixture::default();
        job.update = stored;
        fixture.register(&job);
        job.update = registered;
        let proposal = proposal(fixture.decide(&job, &request()).unwrap());
        assert_eq!(proposal.changed, changes, "{stored:?} {registered:?}");
    }
}

#[test]
fn a_forced_registration_of_an_unchanged_job_is_a_new_version() {
    let (mut fixture, job) = (Fixture::default(), builders::service("web", 3));
    fixture.register(&job);
    let forced = RegisterRequest {
        force: true,
        ..request()
    };
    let forced = proposal(fixture.decide(&job, &forced).unwrap());
    assert!(forced.changed);
    fixture.commit(&forced);
    assert_eq!(fixture.kept(&job.key()), [0, 1]);
    let forced_version = |fixture: &Fixture| {
        let snapshot = fixture.snapshot();
        snapshot.job(&job.key()).unwrap().value.forced_version
    };
    assert_eq!(forced_version(&fixture), Some(1));
    // Later versions keep it; it is no change by itself.
    let same = proposal(fixture.decide(&job, &request()).unwrap());
    assert!(!same.changed);
    fixture.register(&builders::service("web", 4));
    assert_eq!(forced_version(&fixture), Some(1));
}

#[test]
fn a_stopped_job_that_is_registered_again_starts_again() {
    let (mut fixture, job) = (Fixture::default(), builders::service("web", 3));
    fixture.register(&job);
    fixture.deregister(&job, false);
    fixture.register(&job);
    let snapshot = fixture.snapshot();
    let stored = &snapshot.job(&job.key()).unwrap().value;
    assert_eq!((stored.stop, stored.version), (false, 2));
}

#[test]
fn the_evaluations_priority_is_the_jobs_unless_another_is_asked_for() {
    for (asked, want) in [
        (0, Ok(50)),
        (80, Ok(80)),
        (100, Ok(100)),
        (101, Err("eval_priority")),
    ] {
        let (mut fixture, job) = (Fixture::default(), builders::service("web", 3));
        let request = RegisterRequest {
            eval_priority: asked,
            ..request()
        };
        let got = fixture.decide(&job, &request).map(|decision| {
            let writes = proposal(decision).writes;
            let Write::Create {
                entity: Entity::Eval(eval),
                ..
            } = &writes[0]
            else {
                panic!()
            };
            eval.priority
        });
        match (got, want) {
            (Ok(got), Ok(want)) => assert_eq!(got, want),
            (Err(JobRefusal::Invalid(errors)), Err(field)) => assert_eq!(errors.0[0].field, field),
            (got, want) => panic!("{asked}: {got:?}, not {want:?}"),
        }
    }
}

#[test]
fn scenarios_003_and_004_a_check_index_is_kept_to() {
    // (the stored job's index, the check index, the contradiction)
    let table = [
        (None, Some(0), None),
        (None, None, None),
        (
            None,
            Some(7),
            Some((
                FoundIndex::Missing,
                "Enforcing job modify index 7: job does not exist",
            )),
        ),
        (Some(100), None, None),
        (Some(100), Some(100), None),
        (
            Some(100),
            Some(0),
            Some((
                FoundIndex::Exists,
                "Enforcing job modify index 0: job already exists",
            )),
        ),
        (
            Some(100),
            Some(99),
            Some((
                FoundIndex::Other(100),
                "Enforcing job modify index 99: job exists with conflicting job modify index: 100",
            )),
        ),
    ];
    for (stored, check_index, refused) in table {
        let (mut fixture, job) = (Fixture::default(), builders::service("web", 3));
        if let Some(index) = stored {
            fixture.stored.advance(index - 1);
            fixture.register(&job);
        }
        // Writes to other keys do not change a job's index.
        fixture.mark_stable(&job, 0);
        let request = RegisterRequest {
            check_index,
            ..request()
        };
        let result = fixture.decide(&changed(&job, 1), &request);
        match (result, refused) {
            (Ok(Decision::Commit(_)), None) => {}
            (Err(error), Some((found, text))) => {
                assert_eq!(
                    error,
                    JobRefusal::CheckIndex {
                        want: check_index.unwrap(),
                        found
                    }
                );
                assert_eq!(error.to_string(), text);
            }
            (result, _) => panic!("{stored:?}, {check_index:?}: {result:?}"),
        }
    }
}

#[test]
fn scenario_005_of_two_registrations_with_one_index_one_writes() {
    let (mut fixture, job) = (Fixture::default(), builders::service("web", 3));
    let index = fixture.register(&job);
    let request = RegisterRequest {
        check_index: Some(index),
        ..request()
    };
    let [first, second] = [1, 2].map(|spec| {
        let decided = fixture.decide(&changed(&job, spec), &request);
        proposal(decided.unwrap())
    });
    let compared = second.writes.iter().find_map(|write| match write {
        Write::Update {
            key: Key::Job(_),
            modify_index,
            ..
        } => Some(*modify_index),
        _ => None,
    });
    let now = fixture.commit(&first);
    assert_eq!(
        compared,
        Some(index),
        "its transaction compares what it went by"
    );
    assert_ne!(now, index);
    let again = fixture.decide(&changed(&job, 2), &request).unwrap_err();
    let found = FoundIndex::Other(now);
    assert_eq!(again, JobRefusal::CheckIndex { want: index, found });
}

#[test]
fn scenario_006_counts_and_resources_stay_if_that_is_asked_for() {
    let mut fixture = Fixture::default();
    let mut job = builders::service("web", 5);
    fixture.register(&job);
    job.task_groups[0].count = 2;
    let stored_cpu = job.task_groups[0].tasks[0].resources.cpu_mhz;
    job.task_groups[0].tasks[0].resources.cpu_mhz = stored_cpu + 1;
    let mut more = job.task_groups[0].clone();
    more.name = "more".into();
    more.count = 7;
    job.task_groups.push(more);
    let mut preserve = |counts, resources| {
        let request = RegisterRequest {
            preserve: Preserve { counts, resources },
            ..request()
        };
        let proposal = proposal(fixture.decide(&job, &request).unwrap());
        let written = proposal.writes.iter().find_map(|write| match write {
            Write::Update {
                entity: Entity::Job(job),
                ..
            } => Some(job.clone()),
            _ => None,
        });
        let groups = written.unwrap().task_groups;
        groups
            .iter()
            .map(|group| (group.count, group.tasks[0].resources.cpu_mhz))
            .collect::<Vec<_>>()
    };
    let cpu = stored_cpu + 1;
    assert_eq!(preserve(false, false), [(2, cpu), (7, cpu)]);
    assert_eq!(preserve(true, false), [(5, cpu), (7, cpu)]);
    assert_eq!(preserve(false, true), [(2, stored_cpu), (7, cpu)]);
    assert_eq!(preserve(true, true), [(5, stored_cpu), (7, cpu)]);
}

#[test]
fn counts_that_stay_are_not_too_many_together_with_new_ones() {
    let mut fixture = Fixture::default();
    let mut job = builders::service("web", 30_000);
    fixture.register(&job);
    job.task_groups[0].count = 1;
    let mut more = job.task_groups[0].clone();
    more.name = "more".into();
    more.count = 20_001;
    job.task_groups.push(more);
    let request = RegisterRequest {
        preserve: Preserve {
            counts: true,
            resources: false,
        },
        ..request()
    };
    let refused = fixture.decide(&job, &request).unwrap_err().to_string();
    assert!(
        refused.contains("count") && refused.contains("50001"),
        "{refused}"
    );
}

/// Returns the refusal of a job with these counts and this priority.
fn refused(counts: &[u32], priority: i64) -> Option<String> {
    let group = |(number, count): (usize, &u32)| job_fields::TaskGroup {
        name: Some(format!("group-{number}")),
        count: Some((*count).into()),
        tasks: vec![job_fields::Task {
            name: Some("server".to_owned()),
            driver: Some("mock_driver".to_owned()),
            ..job_fields::Task::default()
        }],
        ..job_fields::TaskGroup::default()
    };
    let job = job_fields::Job {
        id: Some("web".to_owned()),
        priority: Some(priority),
        task_groups: counts.iter().enumerate().map(group).collect(),
        ..job_fields::Job::default()
    };
    canonicalise(&job, NOW)
        .err()
        .map(|errors| errors.to_string())
}

#[test]
fn scenario_009_a_priority_is_at_most_a_hundred() {
    assert_eq!(refused(&[1], 100), None);
    assert!(refused(&[1], 101).unwrap().contains("priority"));
}

#[test]
fn scenario_010_the_counts_of_all_groups_have_a_limit() {
    assert_eq!(refused(&[30_000, 20_000], 50), None);
    assert!(refused(&[30_000, 20_001], 50).unwrap().contains("50001"));
}

#[test]
fn scenario_007_a_job_keeps_its_type() {
    let mut fixture = Fixture::default();
    fixture.register(&builders::service("web", 3));
    let error = fixture
        .decide(&builders::batch("web", 3), &request())
        .unwrap_err();
    let JobRefusal::Invalid(errors) = error else {
        panic!("{error:?}")
    };
    assert_eq!(errors.0[0].field, "type");
    assert!(
        errors.0[0].message.contains("from service to batch"),
        "{errors}"
    );
}

#[test]
fn beyond_the_bound_of_open_evaluations_jobs_are_refused_and_nothing_else_is() {
    let mut fixture = Fixture::default();
    for number in 0..3 {
        fixture.register(&builders::service(&format!("web-{number}"), 1));
    }
    let request = RegisterRequest {
        max_open_evals: 3,
        ..request()
    };
    let error = fixture
        .decide(&builders::service("late", 1), &request)
        .unwrap_err();
    assert_eq!(error, JobRefusal::Overloaded { open: 3 });
    // Stopping what is there must go on.
    fixture.deregister(&builders::service("web-0", 1), false);
}

#[test]
fn a_retry_is_answered_as_its_first_attempt_was_whatever_happened_since() {
    let (mut fixture, job) = (Fixture::default(), builders::service("web", 3));
    let context = fixture.context();
    let decide = |fixture: &Fixture, job, request: &RegisterRequest| {
        register(&fixture.snapshot(), job, request, &context).unwrap()
    };
    let only_new = RegisterRequest {
        check_index: Some(0),
        ..request()
    };
    let first = proposal(decide(&fixture, &job, &only_new));
    let revision = fixture.commit(&first);
    let answer = first.answer(context.eval_id, revision);
    assert_eq!(
        answer,
        Answer {
            eval_id: Some(context.eval_id),
            index: revision,
            job_modify_index: revision,
            changed: true,
            next_launch: None,
        }
    );
    // The check index would refuse it now, and the queue is full.
    let again = RegisterRequest {
        max_open_evals: 0,
        ..only_new
    };
    assert_eq!(decide(&fixture, &job, &again), Decision::Done(answer));
    fixture.register(&changed(&job, 1));
    assert_eq!(decide(&fixture, &job, &again), Decision::Done(answer));
    // Nor is the answer lost with the versions of a purged job.
    fixture.deregister(&job, true);
    assert_eq!(decide(&fixture, &job, &again), Decision::Done(answer));
}

#[test]
fn a_retry_of_a_registration_that_changed_nothing_says_so_again() {
    let (mut fixture, job) = (Fixture::default(), builders::service("web", 3));
    let first = fixture.register(&job);
    let context = fixture.context();
    let unchanged = proposal(register(&fixture.snapshot(), &job, &request(), &context).unwrap());
    let revision = fixture.commit(&unchanged);
    let answer = unchanged.answer(context.eval_id, revision);
    assert_eq!((answer.job_modify_index, answer.changed), (first, false));
    fixture.register(&changed(&job, 1));
    let again = register(&fixture.snapshot(), &job, &request(), &context).unwrap();
    assert_eq!(again, Decision::Done(answer));
}

#[test]
fn a_retry_is_not_answered_with_an_older_version_that_is_kept_longer_than_its_own() {
    let job = builders::service("web", 3);
    type Since = fn(&mut Fixture, &model::Job);
    let cases: [(&str, Since, &[u64]); 3] = [
        (
            "purged",
            |fixture, job| {
                fixture.deregister(job, true);
            },
            &[0],
        ),
        (
            "purged and registered again",
            |fixture, job| {
                fixture.deregister(job, true);
                fixture.register(job);
            },
            &[0, 1],
        ),
        (
            "pruned",
            |fixture, job| {
                for n in 2..9 {
                    fixture.register(&changed(job, n));
                }
            },
            &[0, 3, 4, 5, 6, 7, 8],
        ),
    ];
    for (name, happen_since, kept) in cases {
        let mut fixture = Fixture::default();
        fixture.register(&job);
        let alloc_id = fixture.place(1, &job, 0);
        fixture.stored.put_status(alloc_id, ClientStatus::Running);
        let context = fixture.context();
        let second = changed(&job, 1);
        let decide = |fixture: &Fixture| {
            register(&fixture.snapshot(), &second, &request(), &context).unwrap()
        };
        let first = proposal(decide(&fixture));
        let revision = fixture.commit(&first);
        let answer = first.answer(context.eval_id, revision);
        assert_eq!((answer.job_modify_index, answer.changed), (revision, true));
        happen_since(&mut fixture, &job);
        assert_eq!(fixture.kept(&job.key()), kept, "{name}");
        assert_eq!(decide(&fixture), Decision::Done(answer), "{name}");
    }
}

#[test]
fn every_type_of_job_is_admitted() {
    for job_type in JobType::ALL {
        let mut job = builders::service("web", 1);
        job.job_type = job_type;
        job.task_groups = vec![builders::group("web", job_type, 1)];
        let admitted = canonicalise(&job_fields::Job::from(&job), NOW).unwrap();
        assert_eq!(admitted.job.job_type, job_type);
    }
}

#[test]
fn jobs_are_refused_while_the_configuration_says_so_and_only_then() {
    let (mut fixture, job) = (Fixture::default(), builders::service("web", 3));
    let context = fixture.context();
    let registered = register(&fixture.snapshot(), &job, &request(), &context).unwrap();
    fixture.commit(&proposal(registered));
    fixture.configure(true);
    assert_eq!(fixture.decide(&job, &request()), Err(JobRefusal::Rejected));
    let text = JobRefusal::Rejected.to_string();
    assert!(
        text.starts_with(
            "Job registration, dispatch, and scale are disabled by the scheduler configuration"
        ),
        "{text}"
    );
    // A request that was committed before is answered again, not refused.
    let again = register(&fixture.snapshot(), &job, &request(), &context);
    assert!(matches!(again, Ok(Decision::Done(_))), "{again:?}");
    // Jobs can be stopped, and tried out.
    fixture.deregister(&job, false);
    let context = fixture.context();
    crate::jobs::register::propose_dry_run(&fixture.snapshot(), &job, &context).unwrap();
    fixture.configure(false);
    fixture.register(&job);
}

#[test]
fn a_registration_holds_for_the_configuration_it_was_decided_on() {
    let (mut fixture, job) = (Fixture::default(), builders::service("web", 3));
    let guards = |fixture: &mut Fixture| -> Vec<Write> {
        let decided = fixture.decide(&job, &request()).unwrap();
        let writes = proposal(decided).writes.into_iter();
        writes
            .filter(|write| *write.key() == Key::SchedulerConfig)
            .collect()
    };
    let key = Key::SchedulerConfig;
    let absent = Write::RequireAbsent { key: key.clone() };
    assert_eq!(guards(&mut fixture), [absent]);
    let modify_index = fixture.configure(false);
    let unchanged = Write::RequireUnchanged { key, modify_index };
    assert_eq!(guards(&mut fixture), [unchanged]);
}
