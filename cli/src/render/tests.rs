//! Golden tests of the text output, one file per view in `tests/golden`.
//!
//! `UPDATE_GOLDENS=1 cargo test -p kafila` writes the files anew; the diff is the review.

mod dry_runs;

use std::collections::HashMap;
use std::path::Path;

use jiff::tz::TimeZone;
use proto::v1;

use super::{Style, alloc, children, deployment, eval, explain, job, metric, node, operator};
use crate::fixtures;
use crate::output::colour::Colour;
use crate::output::time::Times;

pub(crate) fn style(verbose: bool) -> Style {
    Style {
        verbose,
        colour: Colour::Off,
        times: Times {
            now_ns: fixtures::NOW,
            zone: TimeZone::UTC,
        },
    }
}

/// Compares `text` with the file `tests/golden/<name>`.
pub(crate) fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        expected == text,
        "{} differs; it should be:\n{text}\nUPDATE_GOLDENS=1 writes it",
        path.display()
    );
}

fn job_status(show_evals: bool, evals: &[v1::Evaluation], allocs: &[v1::Allocation]) -> String {
    job::Status {
        job: &fixtures::job(),
        summary: &fixtures::summary(),
        evals,
        latest_deployment: Some(&fixtures::deployment()),
        allocs,
        show_evals,
    }
    .render(&style(show_evals))
}

#[test]
fn a_list_of_jobs() {
    let stopped = v1::JobStub {
        namespace: "ops".to_owned(),
        id: "nightly-report".to_owned(),
        r#type: "batch".to_owned(),
        status: "dead".to_owned(),
        stop: true,
        ..fixtures::stub()
    };
    let jobs = [fixtures::stub(), stopped];
    golden(
        "job_list.txt",
        &job::table(&jobs, false, &style(false)).render(),
    );
    golden(
        "job_list_namespaces.txt",
        &job::table(&jobs, true, &style(false)).render(),
    );
}

#[test]
fn the_status_of_a_job() {
    let allocs = [fixtures::old_alloc(), fixtures::alloc()];
    golden(
        "job_status.txt",
        &job_status(false, &[fixtures::eval()], &allocs),
    );
    let short = job::fields(&fixtures::job(), 0, &style(false)).render();
    golden("job_status_short.txt", &short);
}

#[test]
fn the_status_of_jobs_that_have_children() {
    let mut job = fixtures::job();
    job.periodic = Some(v1::Periodic::default());
    let summary = v1::JobSummary {
        children: Some(v1::ChildrenSummary {
            pending: 0,
            running: 1,
            dead: 7,
        }),
        ..fixtures::summary()
    };
    let child = |number: u64, status: &str| v1::JobStub {
        id: format!("web/periodic-{number}"),
        status: status.to_owned(),
        create_index: number,
        ..fixtures::stub()
    };
    let next = fixtures::NOW + 90 * fixtures::SECOND;
    let mut text = job::fields(&job, next, &style(false)).render();
    let list = [child(1, "dead"), child(2, "running")];
    text.push_str(&children::parent(&job, &summary, &list, &style(false)));
    golden("job_status_periodic.txt", &text);

    job.periodic = None;
    job.parameterized = Some(v1::Parameterized {
        payload: Some("required".to_owned()),
        meta_required: vec!["input".to_owned()],
        meta_optional: Vec::new(),
    });
    let mut text = job::fields(&job, 0, &style(false)).render();
    text.push_str(&children::parent(&job, &summary, &[], &style(false)));
    golden("job_status_parameterized.txt", &text);
}

#[test]
fn scaling_events_show_their_requested_counts() {
    let event = |seconds: u64, count: Option<u32>| v1::ScalingEvent {
        time_ns: fixtures::NOW - seconds * fixtures::SECOND,
        count,
        previous_count: 2,
        message: "busy".to_owned(),
        error: count.is_none(),
        eval_id: count.map_or(String::new(), |_| fixtures::EVAL.to_owned()),
        ..v1::ScalingEvent::default()
    };
    let group = v1::TaskGroupScaleStatus {
        events: vec![event(5, Some(3)), event(60, None)],
        ..v1::TaskGroupScaleStatus::default()
    };
    let status = v1::GetJobScaleStatusResponse {
        task_groups: [("app".to_owned(), group)].into(),
        ..v1::GetJobScaleStatusResponse::default()
    };
    let table = |verbose| {
        let table = children::scaling_events(&status, &style(verbose));
        table.unwrap().render()
    };
    golden("scaling_events.txt", &table(false));
    golden("scaling_events_verbose.txt", &table(true));
    let none = v1::GetJobScaleStatusResponse::default();
    assert!(children::scaling_events(&none, &style(false)).is_none());
}

#[test]
fn the_verbose_status_of_a_job_that_waits_for_capacity() {
    let evals = [fixtures::failed_eval(), fixtures::blocked_eval()];
    golden("job_status_blocked.txt", &job_status(true, &evals, &[]));
}

#[test]
fn the_reasons_are_found_where_only_the_first_evaluation_has_them() {
    let mut blocked = fixtures::blocked_eval();
    blocked.failed_task_groups.clear();
    let text = job_status(false, &[fixtures::failed_eval(), blocked], &[]);
    assert!(
        text.contains("Task Group \"app\" (failed to place 2 allocations):"),
        "{text}"
    );
}

#[test]
fn placements_held_back_by_a_deployment_are_explained() {
    let mut deployment = fixtures::deployment();
    let mut render = |status: &str, allocs: &[v1::Allocation]| {
        deployment.status = status.to_owned();
        job::Status {
            job: &fixtures::job(),
            summary: &fixtures::summary(),
            evals: &[],
            latest_deployment: Some(&deployment),
            allocs,
            show_evals: false,
        }
        .render(&style(false))
    };
    let section = "\nPlacement Failure\n\
                   Task Group \"app\" (1 of 2 not placed): held back, its deployment has failed\n  \
                   -> change the job file, or 'kafila job revert web VERSION', or try it again with 'kafila job run -force FILE'\n";
    let one = [fixtures::alloc()];
    let failed = render("failed", &one);
    assert!(failed.contains(section), "{failed}");
    assert!(render("paused", &one).contains(
        "(1 of 2 not placed): held back, its deployment is paused\n  -> resume it with 'kafila \
         deployment resume 5e6f7a8b'\n"
    ));
    let both = [fixtures::alloc(), fixtures::alloc()];
    for (status, allocs) in [("failed", &both[..]), ("successful", &one)] {
        let text = render(status, allocs);
        assert!(!text.contains("Placement Failure"), "{status}: {text}");
    }
}

#[test]
fn allocations_of_a_failed_deployment_are_not_announced_as_rescheduled() {
    let later = v1::Evaluation {
        id: fixtures::BLOCKED_EVAL.to_owned(),
        status: "pending".to_owned(),
        wait_until_ns: fixtures::NOW + 65 * fixtures::SECOND,
        ..fixtures::eval()
    };
    let failed = v1::Allocation {
        followup_eval_id: fixtures::BLOCKED_EVAL.to_owned(),
        deployment_id: fixtures::DEPLOYMENT.to_owned(),
        client_status: "failed".to_owned(),
        ..fixtures::alloc()
    };
    let render = |status: &str, alloc: v1::Allocation| {
        let deployment = v1::Deployment {
            status: status.to_owned(),
            ..fixtures::deployment()
        };
        job::Status {
            job: &fixtures::job(),
            summary: &fixtures::summary(),
            evals: std::slice::from_ref(&later),
            latest_deployment: Some(&deployment),
            allocs: &[alloc],
            show_evals: false,
        }
        .render(&style(false))
    };
    let given_up = render("failed", failed.clone());
    assert!(!given_up.contains("Future Rescheduling"), "{given_up}");
    // Allocations older than the deployment are rescheduled, and so are its own while it runs.
    let older = v1::Allocation {
        deployment_id: String::new(),
        ..failed.clone()
    };
    assert!(render("failed", older).contains("Future Rescheduling"));
    assert!(render("running", failed).contains("Future Rescheduling"));
}

#[test]
fn explanations_show_delays_and_deployment_holds() {
    let mut eval = fixtures::failed_eval();
    let mut group = v1::GroupExplanation {
        name: "web".to_owned(),
        wanted: 3,
        live: 1,
        waiting: 1,
        waits_until_ns: fixtures::NOW + 65 * fixtures::SECOND,
        done: 1,
        would_place: 1,
        question: "one-more".to_owned(),
        hold_reason: "failed".to_owned(),
        hold_deployment_id: "5e6f7a8b-0000-4000-8000-000000000001".to_owned(),
        ..v1::GroupExplanation::default()
    };
    let text = |eval: &v1::Evaluation, group: &v1::GroupExplanation| {
        let explanation = v1::Explanation {
            groups: vec![group.clone()],
            ..v1::Explanation::default()
        };
        explain::render(eval, &explanation, &style(false))
    };
    let failed = text(&eval, &group);
    for part in [
        "3 wanted, 1 live, 1 done, 0 placed or last updated by this evaluation, \
         1 would be placed now, 1 failed and will be rescheduled 1m5s from now\n",
        "Deployment 5e6f7a8b has failed and holds back placements of this version: run a changed \
         job file, or 'kafila job revert ",
        "Checked for a missing allocation (",
    ] {
        assert!(failed.contains(part), "{part:?} in\n{failed}");
    }
    group.hold_reason = "promotion".to_owned();
    eval.status = "pending".to_owned();
    eval.wait_until_ns = fixtures::NOW + 65 * fixtures::SECOND;
    let waiting = text(&eval, &group);
    for part in [
        "1 would be placed then",
        "1m5s from now\n",
        "waits for the promotion of its canaries: 'kafila deployment promote 5e6f7a8b'",
    ] {
        assert!(waiting.contains(part), "{part:?} in\n{waiting}");
    }
}

#[test]
fn explanations_of_two_groups_and_of_a_missing_job() {
    let eval = fixtures::failed_eval();
    let explanation = fixtures::explanation();
    let text = explain::render(&eval, &explanation, &style(false));
    golden("eval_explain.txt", &text);
    let gone = v1::Explanation {
        index: 130,
        empty_reason: "the job is gone".to_owned(),
        ..v1::Explanation::default()
    };
    let text = explain::render(&eval, &gone, &style(false));
    assert!(text.contains("Job Version  = <none>\n"), "{text}");
    assert!(
        text.ends_with("\nNothing is placed: the job is gone.\n"),
        "{text}"
    );
}

#[test]
fn a_job_that_will_be_placed_again_says_when() {
    let later = v1::Evaluation {
        id: fixtures::BLOCKED_EVAL.to_owned(),
        status: "pending".to_owned(),
        wait_until_ns: fixtures::NOW + 65 * fixtures::SECOND,
        ..fixtures::eval()
    };
    let failed = v1::Allocation {
        followup_eval_id: fixtures::BLOCKED_EVAL.to_owned(),
        ..fixtures::old_alloc()
    };
    let text = job_status(
        false,
        std::slice::from_ref(&later),
        &[failed.clone(), failed],
    );
    let section = "\nFuture Rescheduling Attempts\n\
                   Task Group  Eval ID   Eval Time\n\
                   app         2b3c4d5e  1m5s from now\n";
    assert!(text.contains(section), "{text}");
    // Once its time has come it is an evaluation like any other.
    let due = v1::Evaluation {
        wait_until_ns: fixtures::NOW,
        ..later
    };
    assert!(!job_status(false, &[due], &[]).contains("Future"));
}

#[test]
fn the_status_of_an_allocation() {
    let status = alloc::Status {
        alloc: &fixtures::alloc(),
        job: Some(&fixtures::job()),
        short: false,
    };
    golden("alloc_status.txt", &status.render(&style(false)));
    golden("alloc_status_verbose.txt", &status.render(&style(true)));
    let short = alloc::Status {
        short: true,
        ..status
    };
    golden("alloc_status_short.txt", &short.render(&style(false)));
}

#[test]
fn the_status_of_an_allocation_that_was_replaced_and_whose_job_version_is_gone() {
    let mut failed = fixtures::old_alloc();
    failed.reschedules = vec![v1::RescheduleEvent {
        time_ns: fixtures::NOW,
        ..v1::RescheduleEvent::default()
    }];
    for state in failed.task_states.values_mut() {
        "dead".clone_into(&mut state.state);
        state.failed = true;
        state.finished_at_ns = fixtures::NOW - 61 * fixtures::SECOND;
    }
    let status = alloc::Status {
        alloc: &failed,
        job: None,
        short: false,
    };
    golden("alloc_status_replaced.txt", &status.render(&style(false)));
}

#[test]
fn a_task_that_has_not_been_heard_of_is_pending() {
    let mut quiet = fixtures::alloc();
    quiet.task_states.clear();
    let mut job = fixtures::job();
    job.task_groups[0].tasks[0].lifecycle = Some(v1::Lifecycle {
        hook: Some("prestart".to_owned()),
        sidecar: Some(true),
        wait_for: None,
    });
    let status = alloc::Status {
        alloc: &quiet,
        job: Some(&job),
        short: false,
    };
    let text = status.render(&style(false));
    assert!(
        text.contains("Task \"server\" (prestart sidecar) is \"pending\"\n"),
        "{text}"
    );
    assert!(!text.contains("Task Events"), "{text}");
}

#[test]
fn a_list_of_nodes() {
    let down = v1::Node {
        id: "5e000000-0000-4000-8000-000000000009".to_owned(),
        name: "n2".to_owned(),
        node_class: "large".to_owned(),
        status: "down".to_owned(),
        eligibility: "ineligible".to_owned(),
        ..fixtures::node()
    };
    let nodes = [fixtures::node(), down];
    let plain = node::Columns::default();
    golden(
        "node_list.txt",
        &node::table(&nodes, plain, &style(false)).render(),
    );
    let running = HashMap::from([(fixtures::NODE.to_owned(), 2)]);
    let all = node::Columns {
        os: true,
        running: Some(&running),
    };
    golden(
        "node_list_verbose.txt",
        &node::table(&nodes, all, &style(true)).render(),
    );
}

#[test]
fn the_status_of_a_draining_node() {
    let node = fixtures::draining_node();
    let status = node::Status {
        node: &node,
        allocs: &[],
        short: false,
    };
    golden("node_status_draining.txt", &status.render(&style(false)));
}

#[test]
fn the_status_of_a_node() {
    let status = node::Status {
        node: &fixtures::node(),
        allocs: &[fixtures::alloc(), fixtures::old_alloc()],
        short: false,
    };
    golden("node_status.txt", &status.render(&style(false)));
    golden("node_status_verbose.txt", &status.render(&style(true)));
    let short = node::Status {
        short: true,
        ..status
    };
    let text = short.render(&style(false));
    assert!(!text.contains("Allocated Resources"), "{text}");
}

#[test]
fn a_list_of_evaluations() {
    let of_node = v1::Evaluation {
        node_id: fixtures::NODE.to_owned(),
        triggered_by: "node-update".to_owned(),
        ..fixtures::eval()
    };
    let evals = [of_node, fixtures::failed_eval(), fixtures::blocked_eval()];
    golden(
        "eval_list.txt",
        &eval::table(&evals, &style(false)).render(),
    );
}

#[test]
fn the_status_of_an_evaluation() {
    let status = eval::Status {
        eval: &fixtures::eval(),
        of_job: &[fixtures::eval()],
        allocs: &[fixtures::alloc()],
    };
    golden("eval_status.txt", &status.render(&style(false)));
    let status = eval::Status {
        eval: &fixtures::failed_eval(),
        of_job: &[fixtures::failed_eval(), fixtures::blocked_eval()],
        allocs: &[],
    };
    golden("eval_status_failed.txt", &status.render(&style(true)));
}

#[test]
fn related_evaluations_are_found_over_several_steps_and_others_are_not() {
    let link = |id: &str, previous: &str, next: &str, age: u64| v1::Evaluation {
        id: id.to_owned(),
        previous_eval_id: previous.to_owned(),
        next_eval_id: next.to_owned(),
        create_index: age,
        ..fixtures::eval()
    };
    let chain = [
        link("aa", "", "bb", 1),
        link("bb", "aa", "cc", 2),
        link("cc", "bb", "", 3),
        link("dd", "", "", 4),
    ];
    let status = eval::Status {
        eval: &chain[0],
        of_job: &chain,
        allocs: &[],
    };
    let text = status.render(&style(false));
    let section = text.split("Related Evaluations\n").nth(1).unwrap();
    let ids: Vec<&str> = section
        .lines()
        .skip(1)
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(ids, ["cc", "bb"]);
}

#[test]
fn a_list_of_deployments() {
    let deployments = [fixtures::running_deployment(), fixtures::deployment()];
    golden(
        "deployment_list.txt",
        &deployment::table(&deployments, &style(false)).render(),
    );
}

#[test]
fn the_body_of_a_deployment() {
    golden(
        "deployment_status.txt",
        &deployment::body(&fixtures::deployment(), &style(false)),
    );
    let mut canaries = fixtures::running_deployment();
    let canary = v1::DeploymentGroup {
        auto_revert: true,
        desired_canaries: 1,
        desired_total: 3,
        placed_canary_ids: vec![fixtures::ALLOC.to_owned()],
        ..v1::DeploymentGroup::default()
    };
    canaries.task_groups.insert("edge".to_owned(), canary);
    golden(
        "deployment_status_canaries.txt",
        &deployment::body(&canaries, &style(true)),
    );
    let nothing = v1::Deployment {
        task_groups: HashMap::default(),
        ..fixtures::deployment()
    };
    assert!(!deployment::body(&nothing, &style(false)).contains("Deployed"));
}

#[test]
fn the_scheduler_configuration() {
    golden(
        "scheduler_config.txt",
        &operator::scheduler_config(&fixtures::scheduler_config()).render(),
    );
}

#[test]
fn the_leaders() {
    golden(
        "leaders.txt",
        &operator::leaders(&[fixtures::leader()]).render(),
    );
}

#[test]
fn placement_failures_come_with_advice() {
    let none = v1::AllocMetric::default();
    let driver = v1::AllocMetric {
        nodes_evaluated: 1,
        constraint_filtered: [("missing drivers".to_owned(), 1)].into(),
        ..v1::AllocMetric::default()
    };
    let blocks = [
        metric::group("app", &fixtures::metric()),
        metric::group("nowhere", &none),
        metric::group("driver", &driver),
    ];
    golden(
        "placement_failures.txt",
        &format!("{}\n", blocks.concat().join("\n")),
    );
}

#[test]
fn a_node_shows_its_cores_and_devices() {
    let mut node = fixtures::node();
    node.core_mhz = [(0, 2_000), (1, 2_000)].into();
    let instance = |id: &str, healthy| v1::DeviceInstance {
        id: id.to_owned(),
        healthy,
    };
    node.devices = vec![v1::NodeDevice {
        vendor: "nvidia".to_owned(),
        r#type: "gpu".to_owned(),
        name: "t4".to_owned(),
        instances: vec![instance("a", true), instance("b", false)],
        ..v1::NodeDevice::default()
    }];
    let status = node::Status {
        node: &node,
        allocs: &[],
        short: true,
    };
    let shown = status.render(&style(false));
    let says = |field: &str, value: &str| {
        let mut lines = shown.lines().map(str::trim_end);
        lines.any(|line| line.starts_with(field) && line.ends_with(value))
    };
    assert!(says("Reservable Cores", "= 2"), "{shown}");
    assert!(
        says("Devices", "= nvidia/gpu/t4 (2, 1 unhealthy)"),
        "{shown}"
    );
}

#[test]
fn the_address_of_a_node_says_whether_gateways_dial_it() {
    let mut node = fixtures::node();
    node.address = "http://10.0.0.7:4647".to_owned();
    for (dials_out, expected) in [
        (false, "10.0.0.7:4647"),
        (true, "10.0.0.7:4647 (gateways do not dial it: dial_out)"),
    ] {
        node.dials_out = dials_out;
        let status = node::Status {
            node: &node,
            allocs: &[],
            short: true,
        };
        let shown = status.render(&style(true));
        let address = shown.lines().find(|line| line.starts_with("Address"));
        assert!(
            address.is_some_and(|line| line.trim_end().ends_with(expected)),
            "{shown}"
        );
        assert!(!status.render(&style(false)).contains("Address"));
    }
}
