//! Scripts for the monitor: the gateway's answers, and the printed lines.

use proto::v1;

use super::line::{Ending, Output};
use super::machine::{Monitor, Options};
use super::question::{Ask, Event, Goal};
use crate::connection::JobWithAllocs;
use crate::exit::Exit;
use crate::fixtures::{
    self, ALLOC, BLOCKED_EVAL, DEPLOYMENT, EVAL, NOW, SECOND, alloc, deployment, eval, failed_eval,
    job, running_deployment,
};
use crate::output::colour::Colour;
use crate::render::tests::style;
use crate::retries::MAX_RETRIES;

const NEXT_EVAL: &str = "3c4d5e6f-0000-4000-8000-000000000007";
const REVERT: &str = "6f7a8b9c-0000-4000-8000-000000000008";

fn options(goal: Goal) -> Options {
    Options {
        goal,
        gateway: "http://127.0.0.1:4646".to_owned(),
        namespace: "default".to_owned(),
    }
}

/// Plays answers to a monitor; returns its output as on a pipe, and its next question.
fn play(mut monitor: Monitor, events: Vec<Event>) -> (Vec<String>, Ask) {
    let style = style(false);
    let mut outputs = monitor.start(&style);
    for event in events {
        outputs.extend(monitor.step(&style, event));
    }
    let lines = outputs.iter().map(|output| match output {
        Output::Progress(progress) => {
            let sign = match progress.ending {
                Ending::Open => "…",
                Ending::Well => "✓",
                Ending::Badly => "!",
            };
            format!("{sign} {}", progress.headline)
        }
        line => line.line("T", Colour::Off).unwrap(),
    });
    (lines.collect(), monitor.ask())
}

fn start(events: Vec<Event>) -> (Vec<String>, Ask) {
    play(Monitor::of_evaluation(options(Goal::Start), EVAL), events)
}

fn evaluation(evaluation: v1::Evaluation, allocs: Vec<v1::Allocation>) -> Event {
    let index = evaluation.modify_index;
    Event::Evaluation {
        evaluation: Box::new(evaluation),
        allocs,
        index,
    }
}

fn rollout(deployment: v1::Deployment) -> Event {
    let index = deployment.modify_index;
    Event::Deployment {
        deployment: Box::new(deployment),
        allocs: Vec::new(),
        index,
    }
}

fn pending() -> v1::Evaluation {
    v1::Evaluation {
        status: "pending".to_owned(),
        deployment_id: String::new(),
        modify_index: 18,
        ..eval()
    }
}

fn starting() -> v1::Allocation {
    v1::Allocation {
        client_status: "pending".to_owned(),
        client_description: String::new(),
        ..alloc()
    }
}

fn failed_deployment(description: &str) -> v1::Deployment {
    let mut failed = running_deployment();
    "failed".clone_into(&mut failed.status);
    failed.status_description = format!("Failed due to unhealthy allocations{description}");
    failed.modify_index = 30;
    for group in failed.task_groups.values_mut() {
        group.auto_revert = true;
    }
    failed
}

#[test]
fn a_job_that_comes_up_is_followed_to_its_successful_deployment() {
    let (lines, ask) = start(vec![
        evaluation(pending(), vec![]),
        evaluation(eval(), vec![starting()]),
        rollout(running_deployment()),
        rollout(deployment()),
    ]);
    let expected = [
        "==> T: Monitoring evaluation \"1a2b3c4d\"",
        "    T: Evaluation triggered by job \"web\"",
        "    T: Evaluation within deployment: \"5e6f7a8b\"",
        "    T: Allocation \"8a3f2c1e\" created: node \"4d2ba53b\", group \"app\"",
        "    T: Evaluation status changed: \"pending\" -> \"complete\"",
        "==> T: Evaluation \"1a2b3c4d\" finished with status \"complete\"",
        "==> T: Monitoring deployment \"5e6f7a8b\"",
        "… Deployment \"5e6f7a8b\" in progress...",
        "✓ Deployment \"5e6f7a8b\" successful",
    ];
    assert_eq!(lines, expected);
    assert_eq!(ask, Ask::Nothing(Exit::Success));
}

#[test]
fn each_question_waits_for_a_newer_state_than_the_last_answer() {
    let mut monitor = Monitor::of_evaluation(options(Goal::Start), EVAL);
    let asked = |after| Ask::Evaluation {
        id: EVAL.to_owned(),
        after,
    };
    assert_eq!(monitor.ask(), asked(0));
    monitor.step(&style(false), evaluation(pending(), vec![]));
    assert_eq!(monitor.ask(), asked(18));
    monitor.step(&style(false), evaluation(eval(), vec![]));
    let asked = |after| Ask::Deployment {
        id: DEPLOYMENT.to_owned(),
        after,
    };
    assert_eq!(monitor.ask(), asked(0));
    monitor.step(&style(false), rollout(running_deployment()));
    assert_eq!(monitor.ask(), asked(22));
}

#[test]
fn an_answer_that_brings_nothing_new_prints_nothing() {
    let mut monitor = Monitor::of_evaluation(options(Goal::Start), EVAL);
    let style = style(false);
    assert!(
        !monitor
            .step(&style, evaluation(pending(), vec![starting()]))
            .is_empty()
    );
    assert!(
        monitor
            .step(&style, evaluation(pending(), vec![starting()]))
            .is_empty()
    );
    monitor.step(&style, evaluation(eval(), vec![]));
    assert!(
        !monitor
            .step(&style, rollout(running_deployment()))
            .is_empty()
    );
    assert!(
        monitor
            .step(&style, rollout(running_deployment()))
            .is_empty()
    );
}

#[test]
fn changes_of_an_allocation_are_printed_with_their_reason() {
    let stopped = v1::Allocation {
        id: "99999999-0000-4000-8000-000000000009".to_owned(),
        desired_status: "stop".to_owned(),
        ..alloc()
    };
    let older = v1::Allocation {
        id: "77777777-0000-4000-8000-000000000009".to_owned(),
        create_index: 3,
        ..alloc()
    };
    let of_node = v1::Evaluation {
        node_id: "4d2ba53b-0000-4000-8000-000000000005".to_owned(),
        ..pending()
    };
    let (lines, _) = start(vec![
        evaluation(of_node.clone(), vec![starting(), older, stopped]),
        evaluation(of_node.clone(), vec![alloc()]),
        evaluation(
            of_node,
            vec![v1::Allocation {
                client_status: "failed".to_owned(),
                client_description: String::new(),
                ..alloc()
            }],
        ),
    ]);
    let expected = [
        "    T: Evaluation triggered by node \"4d2ba53b\"",
        "    T: Evaluation triggered by job \"web\"",
        "    T: Allocation \"8a3f2c1e\" created: node \"4d2ba53b\", group \"app\"",
        "    T: Allocation \"77777777\" modified: node \"4d2ba53b\", group \"app\"",
        "    T: Allocation \"8a3f2c1e\" status changed: \"pending\" -> \"running\" (Tasks are running)",
        "    T: Allocation \"8a3f2c1e\" status changed: \"running\" -> \"failed\"",
    ];
    assert_eq!(lines[1..], expected);
}

#[test]
fn a_batch_job_that_does_not_fit_ends_at_once_with_the_reasons() {
    let (lines, ask) = start(vec![evaluation(failed_eval(), vec![])]);
    let expected = [
        "==> T: Monitoring evaluation \"1a2b3c4d\"",
        "    T: Evaluation triggered by job \"web\"",
        "    T: Evaluation status changed: \"pending\" -> \"complete\"",
        "==> T: Evaluation \"1a2b3c4d\" finished with status \"complete\" but failed to place all \
         allocations:",
        "    T: Task Group \"app\" (failed to place 2 allocations):",
        "      * No nodes are available in datacenter \"dc2\"",
        "      * Class \"small\": 1 node excluded by filter",
        "      * Constraint \"${attr.kernel.name} = linux\": 1 node excluded by filter",
        "      * Resources exhausted on 2 nodes",
        "      * Class \"big\" exhausted on 2 nodes",
        "      * Dimension \"memory\" exhausted on 2 nodes",
        "      * Task \"server\" wanted 512 MiB of memory in all: 256 MiB of memory for each of 2 allocations",
        "      -> Loosen the constraint, or give a node what it asks for: 'kafila node status \
         -verbose NODE' lists attributes and meta",
        "      -> Ask for less memory, stop other jobs, or add a node: 'kafila node status NODE' \
         shows what is allocated",
        "    T: Evaluation \"2b3c4d5e\" waiting for additional capacity to place remainder",
    ];
    assert_eq!(lines, expected);
    assert_eq!(ask, Ask::Nothing(Exit::PlacementFailed));
}

#[test]
fn a_service_that_does_not_fit_is_followed_until_its_deployment_ends() {
    let short = v1::Evaluation {
        deployment_id: DEPLOYMENT.to_owned(),
        ..failed_eval()
    };
    let (_, ask) = start(vec![evaluation(short.clone(), vec![])]);
    assert_eq!(
        ask,
        Ask::Deployment {
            id: DEPLOYMENT.to_owned(),
            after: 0
        }
    );
    // A missing deployment may appear later.
    let (_, ask) = start(vec![
        evaluation(short.clone(), vec![]),
        rollout(deployment()),
    ]);
    assert_eq!(ask, Ask::Nothing(Exit::Success));
    let mut failed = failed_deployment("");
    failed.task_groups.clear();
    let (lines, ask) = start(vec![evaluation(short, vec![]), rollout(failed)]);
    assert_eq!(ask, Ask::Nothing(Exit::Failure));
    assert_eq!(lines.last().unwrap(), "! Deployment \"5e6f7a8b\" failed");
}

#[test]
fn an_evaluation_that_gave_up_is_a_placement_failure() {
    let gave_up = v1::Evaluation {
        status: "failed".to_owned(),
        status_description: "maximum attempts reached (5)".to_owned(),
        deployment_id: String::new(),
        ..eval()
    };
    let (lines, ask) = start(vec![evaluation(gave_up, vec![])]);
    assert_eq!(ask, Ask::Nothing(Exit::PlacementFailed));
    let last = "==> T: Evaluation \"1a2b3c4d\" finished with status \"failed\": maximum attempts \
                reached (5)";
    assert_eq!(lines.last().unwrap(), last);
}

#[test]
fn an_evaluation_that_was_canceled_for_a_newer_one_is_no_failure() {
    let canceled = v1::Evaluation {
        status: "canceled".to_owned(),
        deployment_id: String::new(),
        ..eval()
    };
    let (_, ask) = start(vec![evaluation(canceled, vec![])]);
    assert_eq!(ask, Ask::Nothing(Exit::Success));
}

#[test]
fn the_next_evaluation_is_followed_and_says_when_it_waits() {
    let first = v1::Evaluation {
        next_eval_id: NEXT_EVAL.to_owned(),
        ..eval()
    };
    let waiting = v1::Evaluation {
        id: NEXT_EVAL.to_owned(),
        wait_until_ns: NOW + 30 * SECOND,
        ..pending()
    };
    let (lines, ask) = start(vec![
        evaluation(first.clone(), vec![]),
        evaluation(waiting, vec![]),
    ]);
    let title = "==> T: Monitoring next evaluation \"3c4d5e6f\" in 30s";
    assert!(lines.iter().any(|line| line == title), "{lines:?}");
    assert_eq!(
        ask,
        Ask::Evaluation {
            id: NEXT_EVAL.to_owned(),
            after: 18
        }
    );
    let at_once = v1::Evaluation {
        id: NEXT_EVAL.to_owned(),
        ..pending()
    };
    let (lines, _) = start(vec![evaluation(first, vec![]), evaluation(at_once, vec![])]);
    let title = "==> T: Monitoring evaluation \"3c4d5e6f\"";
    assert!(lines.iter().any(|line| line == title), "{lines:?}");
}

#[test]
fn a_placement_failure_is_remembered_over_the_next_evaluation() {
    let first = v1::Evaluation {
        next_eval_id: NEXT_EVAL.to_owned(),
        ..failed_eval()
    };
    let last = v1::Evaluation {
        id: NEXT_EVAL.to_owned(),
        deployment_id: String::new(),
        ..eval()
    };
    let (_, ask) = start(vec![
        evaluation(first, vec![]),
        evaluation(last, vec![]),
        at_work("successful"),
    ]);
    assert_eq!(ask, Ask::Nothing(Exit::PlacementFailed));
}

#[test]
fn a_deployment_is_found_through_its_allocations() {
    let unnamed = v1::Evaluation {
        deployment_id: String::new(),
        ..eval()
    };
    let (_, ask) = start(vec![evaluation(unnamed.clone(), vec![alloc()])]);
    assert_eq!(
        ask,
        Ask::Deployment {
            id: DEPLOYMENT.to_owned(),
            after: 0
        }
    );
    let (_, ask) = start(vec![evaluation(unnamed, vec![]), at_work("successful")]);
    assert_eq!(ask, Ask::Nothing(Exit::Success));
}

/// The job, one of whose two allocations is missing, with its latest deployment.
fn at_work(status: &str) -> Event {
    let deployment = v1::Deployment {
        status: status.to_owned(),
        ..deployment()
    };
    Event::Job(Box::new(JobWithAllocs {
        job: job(),
        deployments: vec![deployment],
        allocs: vec![alloc()],
    }))
}

#[test]
fn nothing_is_placed_of_a_version_whose_deployment_has_failed_and_that_is_a_failure() {
    let idle = || v1::Evaluation {
        deployment_id: String::new(),
        ..eval()
    };
    let (_, ask) = start(vec![evaluation(idle(), vec![])]);
    let asked = Ask::Job {
        job_id: "web".to_owned(),
    };
    assert_eq!(ask, asked);
    let (lines, ask) = start(vec![evaluation(idle(), vec![]), at_work("failed")]);
    assert_eq!(ask, Ask::Nothing(Exit::Failure));
    assert_eq!(
        lines.last().unwrap(),
        "==> T: Deployment \"5e6f7a8b\" of version 1 has failed and holds back placements: change \
         the job file, or 'kafila job revert web VERSION', or try it again with 'kafila job run -force \
         FILE'"
    );
    // Its allocations may all run by now: it is a failure nevertheless.
    let Event::Job(mut complete) = at_work("failed") else {
        panic!("an event about the job");
    };
    complete.allocs.push(alloc());
    let (lines, ask) = start(vec![evaluation(idle(), vec![]), Event::Job(complete)]);
    assert_eq!(ask, Ask::Nothing(Exit::Failure));
    assert!(
        lines.last().unwrap().contains("has failed before"),
        "{lines:?}"
    );
    // Nor is it waited for a replacement that has no place then either.
    let delayed = v1::Evaluation {
        next_eval_id: NEXT_EVAL.to_owned(),
        ..idle()
    };
    let (_, ask) = start(vec![evaluation(delayed.clone(), vec![]), at_work("failed")]);
    assert_eq!(ask, Ask::Nothing(Exit::Failure));
    let (_, ask) = start(vec![evaluation(delayed, vec![]), at_work("successful")]);
    assert!(matches!(ask, Ask::Evaluation { id, .. } if id == NEXT_EVAL));
    // A job that is gone meanwhile is held by nothing.
    let (_, ask) = start(vec![evaluation(idle(), vec![]), Event::NotFound]);
    assert_eq!(ask, Ask::Nothing(Exit::Success));
    // A stop waits for no deployment, and other types of jobs have none.
    let monitor = Monitor::of_evaluation(options(Goal::Stop), EVAL);
    let (_, ask) = play(monitor, vec![evaluation(idle(), vec![])]);
    assert_eq!(ask, Ask::Nothing(Exit::Success));
    let system = v1::Evaluation {
        r#type: "system".to_owned(),
        ..idle()
    };
    let (_, ask) = start(vec![evaluation(system, vec![])]);
    assert_eq!(ask, Ask::Nothing(Exit::Success));
}

#[test]
fn a_deployment_that_is_paused_says_how_it_goes_on_each_time() {
    let with = |status: &str| {
        rollout(v1::Deployment {
            status: status.to_owned(),
            ..running_deployment()
        })
    };
    let events = ["paused", "paused", "running", "paused"].map(with).to_vec();
    let monitor = Monitor::of_deployment(options(Goal::Start), DEPLOYMENT);
    let (lines, ask) = play(monitor, events);
    let hints: Vec<_> = lines.iter().filter(|it| it.contains("is paused")).collect();
    let hint =
        "    T: The deployment is paused. Resume it with 'kafila deployment resume 5e6f7a8b'";
    assert_eq!(hints, [hint, hint]);
    assert!(matches!(ask, Ask::Deployment { .. }), "{ask:?}");
}

#[test]
fn a_stop_has_ended_with_its_evaluation() {
    let monitor = Monitor::of_evaluation(options(Goal::Stop), EVAL);
    let (lines, ask) = play(monitor, vec![evaluation(eval(), vec![alloc()])]);
    assert_eq!(ask, Ask::Nothing(Exit::Success));
    assert!(
        !lines
            .iter()
            .any(|line| line.contains("Monitoring deployment")),
        "{lines:?}"
    );
}

#[test]
fn a_failed_deployment_is_followed_by_the_one_that_takes_it_back() {
    let failed = failed_deployment(" - rolling back to job version 0");
    let of_job =
        |deployments: Vec<v1::Deployment>, index| Event::Deployments { deployments, index };
    let back = v1::Deployment {
        id: REVERT.to_owned(),
        job_version: 2,
        create_index: 33,
        modify_index: 33,
        ..deployment()
    };
    let mut monitor = Monitor::of_deployment(options(Goal::Start), DEPLOYMENT);
    let style = style(false);
    monitor.step(&style, rollout(failed.clone()));
    let asked = |after| Ask::Deployments {
        job_id: "web".to_owned(),
        after,
    };
    assert_eq!(monitor.ask(), asked(0));
    // The same deployment is no answer, an older one neither.
    let older = v1::Deployment {
        id: "0".to_owned(),
        create_index: 2,
        ..deployment()
    };
    monitor.step(&style, of_job(vec![failed.clone(), older], 31));
    assert_eq!(monitor.ask(), asked(31));
    monitor.step(&style, of_job(vec![failed, back.clone()], 33));
    assert_eq!(
        monitor.ask(),
        Ask::Deployment {
            id: REVERT.to_owned(),
            after: 0
        }
    );
    let said = monitor.step(&style, rollout(back));
    assert_eq!(
        monitor.ask(),
        Ask::Nothing(Exit::Failure),
        "the submitted version failed"
    );
    let last = "Version 1 failed; the job runs version 0 again, as version 2";
    assert_eq!(said.last(), Some(&Output::Step(last.to_owned())));
}

#[test]
fn the_first_failure_of_a_task_that_is_retried_is_shown_once() {
    let mut alloc = fixtures::never_started();
    alloc.client_status = "pending".to_owned();
    alloc.deployment_health = None;
    for state in alloc.task_states.values_mut() {
        state.state = "pending".to_owned();
        state.failed = false;
        let last = state.events.last_mut().unwrap();
        last.r#type = "Restarting".to_owned();
        last.display_message = "Task restarting in 15s".to_owned();
    }
    let event = || Event::Deployment {
        deployment: Box::new(running_deployment()),
        allocs: vec![alloc.clone()],
        index: 22,
    };
    let monitor = Monitor::of_deployment(options(Goal::Start), DEPLOYMENT);
    let (lines, _) = play(monitor, vec![event(), event()]);
    let said: Vec<_> = lines
        .iter()
        .filter(|it| it.contains("Allocation"))
        .collect();
    assert_eq!(
        said,
        [
            "    T: Allocation \"8a3f2c1e\" is not healthy yet: task \"server\": Driver Failure: no such \
          command (Task restarting in 15s); see 'kafila alloc status 8a3f2c1e'"
        ]
    );
}

#[test]
fn a_batch_job_that_has_ended_is_said_to_have_nothing_to_run() {
    let idle = v1::Evaluation {
        r#type: "batch".to_owned(),
        deployment_id: String::new(),
        ..eval()
    };
    let ended = |status: &str| {
        Event::Job(Box::new(JobWithAllocs {
            job: v1::Job {
                r#type: Some("batch".to_owned()),
                ..job()
            },
            deployments: Vec::new(),
            allocs: vec![v1::Allocation {
                client_status: status.to_owned(),
                ..alloc()
            }],
        }))
    };
    for (status, advice) in [
        (
            "complete",
            Some("has completed. 'kafila job run -force FILE'"),
        ),
        (
            "failed",
            Some("has failed. 'kafila job eval -force-reschedule web'"),
        ),
        ("running", None),
    ] {
        let (lines, ask) = start(vec![evaluation(idle.clone(), vec![]), ended(status)]);
        assert_eq!(ask, Ask::Nothing(Exit::Success), "{status}");
        let last = lines.last().unwrap();
        assert_eq!(last.contains("Nothing to run"), advice.is_some(), "{last}");
        assert!(advice.is_none_or(|advice| last.contains(advice)), "{last}");
    }
    let placed = v1::Allocation {
        deployment_id: String::new(),
        ..starting()
    };
    let (_, ask) = start(vec![evaluation(idle, vec![placed])]);
    assert_eq!(ask, Ask::Nothing(Exit::Success), "placed: no question");
}

/// A failed deployment of an earlier version does not hold the new one, but nothing is placed either.
#[test]
fn a_service_of_which_nothing_runs_is_a_failure() {
    let settled = v1::Evaluation {
        deployment_id: String::new(),
        ..eval()
    };
    let found = |status: &str, count| {
        let mut job = job();
        for group in &mut job.task_groups {
            group.count = Some(count);
        }
        Event::Job(Box::new(JobWithAllocs {
            job,
            deployments: Vec::new(),
            allocs: vec![v1::Allocation {
                client_status: status.to_owned(),
                deployment_id: String::new(),
                ..alloc()
            }],
        }))
    };
    for (status, count, exit) in [
        ("failed", 1, Exit::Failure),
        ("failed", 0, Exit::Success),
        ("running", 1, Exit::Success),
        ("complete", 1, Exit::Success),
    ] {
        let (lines, ask) = start(vec![
            evaluation(settled.clone(), vec![]),
            found(status, count),
        ]);
        assert_eq!(ask, Ask::Nothing(exit), "{status} {count}");
        let says_so = lines.last().unwrap().contains("job run -force");
        assert_eq!(says_so, exit == Exit::Failure, "{lines:?}");
    }
}

#[test]
fn a_requested_revert_succeeds_with_the_deployment_of_the_earlier_version() {
    let failed = failed_deployment(" - rolling back to job version 0");
    for (status, exit) in [("successful", Exit::Success), ("failed", Exit::Failure)] {
        let back = v1::Deployment {
            id: REVERT.to_owned(),
            create_index: 33,
            status: status.to_owned(),
            ..deployment()
        };
        let events = vec![
            rollout(failed.clone()),
            Event::Deployments {
                deployments: vec![failed.clone(), back.clone()],
                index: 33,
            },
            rollout(back),
        ];
        let monitor = Monitor::of_deployment(options(Goal::Revert), DEPLOYMENT);
        assert_eq!(play(monitor, events).1, Ask::Nothing(exit), "{status}");
    }
}

#[test]
fn a_deployment_that_nothing_takes_back_fails_after_a_few_looks() {
    let failed = failed_deployment(" - rolling back to job version 0");
    let mut events = vec![rollout(failed.clone())];
    let look = || Event::Deployments {
        deployments: vec![failed.clone()],
        index: 30,
    };
    events.extend((0..5).map(|_| look()));
    let monitor = || Monitor::of_deployment(options(Goal::Start), DEPLOYMENT);
    let early = events[..5].to_vec();
    assert!(matches!(play(monitor(), early).1, Ask::Deployments { .. }));
    assert_eq!(play(monitor(), events).1, Ask::Nothing(Exit::Failure));
}

#[test]
fn a_deployment_that_says_it_stays_is_not_waited_for() {
    for why in [
        " - not rolling back to stable job version 0 as current job has same specification",
        " - no stable job version to auto revert to",
    ] {
        let monitor = Monitor::of_deployment(options(Goal::Start), DEPLOYMENT);
        let (_, ask) = play(monitor, vec![rollout(failed_deployment(why))]);
        assert_eq!(ask, Ask::Nothing(Exit::Failure), "{why}");
    }
}

#[test]
fn every_end_of_a_deployment_has_its_exit_code() {
    let table = [
        ("successful", Some(Exit::Success)),
        ("failed", Some(Exit::Failure)),
        ("cancelled", Some(Exit::Failure)),
        ("blocked", Some(Exit::Failure)),
        ("running", None),
        ("paused", None),
        ("pending", None),
    ];
    for (status, expected) in table {
        let monitor = Monitor::of_deployment(options(Goal::Start), DEPLOYMENT);
        let ended = v1::Deployment {
            status: status.to_owned(),
            ..deployment()
        };
        let (_, ask) = play(monitor, vec![rollout(ended)]);
        let exit = match ask {
            Ask::Nothing(exit) => Some(exit),
            _ => None,
        };
        assert_eq!(exit, expected, "{status}");
    }
}

#[test]
fn a_missing_object_is_an_error() {
    let (lines, ask) = start(vec![Event::NotFound]);
    assert_eq!(ask, Ask::Nothing(Exit::Failure));
    assert_eq!(lines[1], "==> T: No evaluation with id \"1a2b3c4d\" found");
    let monitor = Monitor::of_deployment(options(Goal::Start), DEPLOYMENT);
    let (lines, ask) = play(monitor, vec![Event::NotFound]);
    assert_eq!(ask, Ask::Nothing(Exit::Failure));
    assert_eq!(lines, ["==> T: No deployment with id \"5e6f7a8b\" found"]);
}

#[test]
fn a_gateway_that_comes_back_is_noted_twice_and_costs_nothing() {
    let lost = || Event::Lost("connection refused".to_owned());
    let (lines, ask) = start(vec![
        evaluation(pending(), vec![]),
        lost(),
        lost(),
        evaluation(eval(), vec![]),
        rollout(deployment()),
    ]);
    let noted: Vec<&String> = lines
        .iter()
        .filter(|line| line.contains("gateway"))
        .collect();
    let expected = [
        "    T: Lost the gateway at http://127.0.0.1:4646, retrying (connection refused)",
        "    T: The gateway at http://127.0.0.1:4646 answers again",
    ];
    assert_eq!(noted, expected);
    assert_eq!(ask, Ask::Nothing(Exit::Success));
}

#[test]
fn the_monitor_gives_up_after_its_retries() {
    let lost = |count: u32| {
        (0..count)
            .map(|_| Event::Lost("refused".to_owned()))
            .collect()
    };
    let (_, ask) = start(lost(MAX_RETRIES));
    assert!(matches!(ask, Ask::Evaluation { .. }), "{ask:?}");
    let (lines, ask) = start(lost(MAX_RETRIES + 1));
    assert_eq!(ask, Ask::Nothing(Exit::Failure));
    assert!(
        lines.last().unwrap().contains("Stopped watching"),
        "{lines:?}"
    );
}

#[test]
fn a_refusal_ends_it_with_its_reason() {
    let (lines, ask) = start(vec![Event::Refused(
        "Error reading evaluation: no".to_owned(),
    )]);
    assert_eq!(ask, Ask::Nothing(Exit::Failure));
    assert_eq!(lines.last().unwrap(), "==> T: Error reading evaluation: no");
}

#[test]
fn ids_are_whole_when_verbose() {
    let verbose = style(true);
    let mut monitor = Monitor::of_evaluation(options(Goal::Start), EVAL);
    let mut outputs = monitor.start(&verbose);
    outputs.extend(monitor.step(&verbose, evaluation(failed_eval(), vec![alloc()])));
    let text: Vec<String> = outputs
        .iter()
        .filter_map(|output| output.line("T", Colour::Off))
        .collect();
    let text = text.join("\n");
    for id in [EVAL, ALLOC, BLOCKED_EVAL] {
        assert!(text.contains(id), "{id}: {text}");
    }
}

#[test]
fn the_block_of_a_deployment_is_indented_under_its_time() {
    let mut monitor = Monitor::of_deployment(options(Goal::Start), DEPLOYMENT);
    let outputs = monitor.step(&style(false), rollout(deployment()));
    let [Output::Progress(progress)] = &outputs[..] else {
        panic!("{outputs:?}");
    };
    crate::render::tests::golden(
        "monitor_deployment.txt",
        &progress.block("2026-11-21T12:00:00Z"),
    );
    assert_eq!(
        progress.signed_headline(Colour::Off),
        "✓ Deployment \"5e6f7a8b\" successful"
    );
}

/// The lines for an evaluation that stays pending, each with its second.
fn said_while_pending(is_paused: bool) -> Vec<(u64, String)> {
    let mut monitor = Monitor::of_evaluation(options(Goal::Start), EVAL);
    let mut said = Vec::new();
    for seconds in [0, 2, 9, 10, 12, 60] {
        let mut style = style(false);
        style.times.now_ns += seconds * SECOND;
        let mut outputs = monitor.step(&style, evaluation(pending(), vec![]));
        if monitor.ask() == Ask::IsPaused {
            outputs.extend(monitor.step(&style, Event::IsPaused(is_paused)));
        }
        let lines = outputs.iter().filter_map(|it| it.line("T", Colour::Off));
        let remarks = lines.filter(|line| line.contains("No scheduler has taken"));
        said.extend(remarks.map(|line| (seconds, line)));
    }
    said
}

#[test]
fn an_evaluation_without_a_scheduler_is_reported_once() {
    let said = said_while_pending(false);
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!(said[0].0, 10);
    assert!(
        said[0]
            .1
            .contains("for 10s: check that a scheduler-worker runs"),
        "{said:?}"
    );
}

#[test]
fn a_paused_broker_is_reported_with_the_command_that_resumes_it() {
    let said = said_while_pending(true);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].1.contains("for 10s: the eval-broker is paused")
            && said[0].1.contains("-pause-eval-broker=false"),
        "{said:?}"
    );
}

#[test]
fn an_evaluation_that_is_to_wait_is_not_remarked_on() {
    let mut monitor = Monitor::of_evaluation(options(Goal::Start), EVAL);
    let later = v1::Evaluation {
        wait_until_ns: NOW + 100 * SECOND,
        ..pending()
    };
    for seconds in [0, 50, 99] {
        let mut style = style(false);
        style.times.now_ns = NOW + seconds * SECOND;
        let outputs = monitor.step(&style, evaluation(later.clone(), vec![]));
        let lines: Vec<_> = outputs
            .iter()
            .filter_map(|it| it.line("T", Colour::Off))
            .collect();
        assert!(
            !lines.concat().contains("No scheduler has taken"),
            "{lines:?}"
        );
    }
}

#[test]
fn healthy_canaries_that_wait_for_a_promotion_say_so_once() {
    let canaries = |healthy, auto_promote, status: &str| {
        let mut deployment = running_deployment();
        status.clone_into(&mut deployment.status);
        for group in deployment.task_groups.values_mut() {
            group.desired_canaries = 1;
            group.healthy_allocs = healthy;
            group.auto_promote = auto_promote;
        }
        rollout(deployment)
    };
    let monitor = || Monitor::of_deployment(options(Goal::Start), DEPLOYMENT);
    let said = |events| {
        let (lines, _) = play(monitor(), events);
        let hints = lines
            .iter()
            .filter(|line| line.contains("The canaries are"));
        hints.cloned().collect::<Vec<_>>()
    };
    let waiting = || canaries(1, false, "running");
    assert_eq!(
        said(vec![canaries(0, false, "running"), waiting(), waiting()]),
        [
            "    T: The canaries are healthy. Promote them with 'kafila deployment promote 5e6f7a8b', or \
             reject them with 'kafila deployment fail 5e6f7a8b'"
        ]
    );
    assert_eq!(said(vec![canaries(0, false, "running")]), [""; 0]);
    assert_eq!(said(vec![canaries(1, true, "running")]), [""; 0]);
    assert_eq!(said(vec![canaries(1, false, "paused")]), [""; 0]);
}

/// Returns the seconds and texts of reminders while the answers stay the same.
fn reminders(mut monitor: Monitor, event: &Event, seconds: &[u64]) -> Vec<(u64, String)> {
    let mut said = Vec::new();
    for seconds in seconds {
        let mut style = style(false);
        style.times.now_ns += seconds * SECOND;
        let outputs = monitor.step(&style, event.clone());
        let lines = outputs.iter().filter_map(|it| it.line("T", Colour::Off));
        let reminders = lines.filter(|line| line.contains("Still waiting"));
        said.extend(reminders.map(|line| (*seconds, line)));
    }
    said
}

#[test]
fn a_deployment_without_news_is_explained_now_and_then() {
    let monitor = Monitor::of_deployment(options(Goal::Start), DEPLOYMENT);
    let event = rollout(running_deployment());
    let said = reminders(monitor, &event, &[0, 10, 31, 60, 92, 100]);
    let seconds: Vec<u64> = said.iter().map(|(second, _)| *second).collect();
    assert_eq!(seconds, [10, 31, 92], "{said:?}");
    for part in ["for 10s", "group \"app\"", "kafila ", "Ctrl-C"] {
        assert!(said[0].1.contains(part), "{part}: {said:?}");
    }
    // The end of a deployment is news, and nothing is waited for.
    let monitor = Monitor::of_deployment(options(Goal::Start), DEPLOYMENT);
    assert!(reminders(monitor, &rollout(deployment()), &[0, 60, 120]).is_empty());
}

#[test]
fn a_blocked_evaluation_is_explained_now_and_then() {
    let blocked = v1::Evaluation {
        status: "blocked".to_owned(),
        ..pending()
    };
    let monitor = Monitor::of_evaluation(options(Goal::Start), EVAL);
    let said = reminders(monitor, &evaluation(blocked, vec![]), &[0, 9, 20]);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].1.contains("waits for capacity"), "{said:?}");
}
