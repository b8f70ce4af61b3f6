//! Dry runs of one job, changed in every way that shows.

use proto::v1;

use super::{golden, style};
use crate::fixtures;
use crate::output::colour::Colour;
use crate::render::{Style, plan};

const WEB: &str = r#"
job "web" {
  group "app" {
    count = 2
    network {
      port "http" { static = 8080 }
    }
    task "init" {
      driver = "raw_exec"
      lifecycle { hook = "prestart" }
      config { command = "/bin/true" }
    }
    task "server" {
      driver = "raw_exec"
      user   = "www"
      config {
        command = "/bin/sleep"
        args    = ["600"]
      }
      env { PORT = "80" }
      resources {
        cpu    = 500
        memory = 256
      }
    }
  }
}
"#;

fn planned(new: &str, updates: jobdiff::GroupUpdates) -> v1::PlanJobResponse {
    fixtures::planned(Some(WEB), new, updates)
}

fn plan(answer: &v1::PlanJobResponse, style: &Style) -> String {
    let run = format!(
        "kafila job run -check-index {} web.hcl",
        answer.job_modify_index
    );
    plan::Plan {
        answer,
        job_type: "service",
        hold: None,
        show_diff: true,
        run: &run,
    }
    .render(style)
}

fn changed() -> String {
    let edits = [
        ("count = 2", "count = 3"),
        ("static = 8080", "static = 8081"),
        ("PORT = \"80\"", "LEVEL = \"a \\\"b\\\"\""),
        ("user   = \"www\"", "kill_timeout = \"9s\""),
        ("memory = 256", "memory = 512"),
        ("[\"600\"]", "[\"900\"]"),
        ("task \"init\"", "task \"prepare\""),
        (
            "group \"app\" {",
            "constraint {\n attribute = \"${node.class}\"\n value = \"large\"\n }\n group \"app\" {",
        ),
    ];
    edits.iter().fold(WEB.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "{old}");
        text.replace(old, new)
    })
}

#[test]
fn a_plan_of_a_new_job() {
    let updates = jobdiff::GroupUpdates {
        place: 2,
        ..Default::default()
    };
    let answer = fixtures::planned(None, WEB, updates);
    golden("plan_new.txt", &plan(&answer, &style(false)));
    golden("plan_new_verbose.txt", &plan(&answer, &style(true)));
}

#[test]
fn a_plan_that_changes_nothing() {
    let updates = jobdiff::GroupUpdates {
        ignore: 2,
        ..Default::default()
    };
    golden(
        "plan_unchanged.txt",
        &plan(&planned(WEB, updates), &style(false)),
    );
}

#[test]
fn a_plan_that_changes_a_lot() {
    let updates = jobdiff::GroupUpdates {
        destructive_update: 1,
        ignore: 1,
        place: 1,
        ..Default::default()
    };
    golden(
        "plan_changed.txt",
        &plan(&planned(&changed(), updates), &style(false)),
    );
}

#[test]
fn a_plan_that_changes_only_a_count() {
    let updates = jobdiff::GroupUpdates {
        in_place_update: 2,
        place: 1,
        ..Default::default()
    };
    let more = WEB.replace("count = 2", "count = 3");
    golden(
        "plan_count.txt",
        &plan(&planned(&more, updates), &style(false)),
    );
}

#[test]
fn a_plan_with_groups_that_come_and_go() {
    let other = WEB.replace("group \"app\"", "group \"other\"");
    let updates = jobdiff::GroupUpdates {
        stop: 2,
        ..Default::default()
    };
    golden(
        "plan_groups.txt",
        &plan(&planned(&other, updates), &style(false)),
    );
}

#[test]
fn a_plan_with_failed_placements_and_victims() {
    let updates = jobdiff::GroupUpdates {
        place: 2,
        ..Default::default()
    };
    let mut answer = planned(WEB, updates);
    answer.failed_task_groups = [("app".to_owned(), fixtures::metric())].into();
    let annotations = answer.annotations.as_mut().unwrap();
    annotations.preempted_allocations = vec![fixtures::alloc()];
    golden("plan_failed.txt", &plan(&answer, &style(false)));
    let system = plan::Plan {
        answer: &answer,
        job_type: "system",
        hold: None,
        show_diff: false,
        run: "",
    };
    let text = system.render(&style(false));
    assert!(
        text.starts_with("Scheduler dry-run:\n- WARNING: Failed to place allocations on all"),
        "{text}"
    );

    let annotations = answer.annotations.as_mut().unwrap();
    annotations.preempted_allocations = vec![fixtures::alloc(); 10];
    let text = plan(&answer, &style(false));
    let table =
        "Preemptions:\nJob ID  Namespace  Job Type  Preemptions\nweb     default    service   10\n";
    assert!(text.contains(table), "{text}");
}

#[test]
fn marks_are_coloured_where_there_is_colour() {
    let updates = jobdiff::GroupUpdates::default();
    let colours = Style {
        colour: Colour::On,
        ..style(false)
    };
    let text = plan(&planned(&changed(), updates), &colours);
    for part in [
        "\x1b[33m+/- \x1b[0m\x1b[1mJob: \"web\"\x1b[0m",
        "\x1b[32m+ \x1b[0m",
        "\x1b[31m- \x1b[0m",
    ] {
        assert!(text.contains(part), "{part:?} in {text:?}");
    }
    // A value from elsewhere cannot colour anything.
    let mut answer = planned(WEB, updates);
    answer.diff.as_mut().unwrap().id = "\x1b[2J".to_owned();
    assert!(!plan(&answer, &style(false)).contains('\x1b'));
}
