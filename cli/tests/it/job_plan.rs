//! `kafila job plan`

use jobdiff::GroupUpdates;
use model::{FieldError, FieldErrors};
use proto::v1;
use tonic::Status;

use crate::command::{UNREACHABLE, kafila};
use crate::fixtures;
use crate::gateway::Gateway;
use crate::job_file::{File, WEB};
use crate::state::FakeState;

fn none() -> GroupUpdates {
    GroupUpdates::default()
}

/// A gateway that answers every dry run so.
async fn gateway(planned: Result<v1::PlanJobResponse, Status>) -> Gateway {
    Gateway::start(FakeState {
        planned: Some(planned),
        ..FakeState::running()
    })
    .await
}

#[tokio::test]
async fn a_new_job_ends_with_1_and_says_how_to_run_just_that() {
    let updates = GroupUpdates { place: 2, ..none() };
    let gateway = gateway(Ok(fixtures::planned(None, WEB, updates))).await;
    let file = File::web();
    for line in ["job plan", "plan"] {
        let said = kafila(line)
            .arg("web.hcl")
            .current_dir(file.directory.path())
            .at(&gateway.address)
            .await;
        let expected = "\
+ Job: \"web\"
+ Task Group: \"app\" (2 create)
  + Task: \"server\" (forces create)

Scheduler dry-run:
- All tasks successfully allocated.

Job Modify Index: 0
To submit the job with version verification:

kafila job run -check-index 0 web.hcl

The command is refused if the job has changed since this plan.
";
        assert_eq!(said.ended(1).stdout, expected);
        assert_eq!(said.stderr, "");
    }
    let state = gateway.state();
    assert_eq!((state.calls("Plan"), state.calls("Register")), (2, 0));
    let request = &state.plan_requests[0];
    let job = request.job.as_ref().unwrap();
    assert_eq!(
        (job.id(), job.namespace(), request.diff),
        ("web", "default", true)
    );
    assert!(state.seen.iter().all(|seen| seen.has_deadline));
}

#[tokio::test]
async fn scenario_025_the_exit_code_says_whether_allocations_change() {
    let env = WEB.replace("config {", "env { A = \"b\" }\n      config {");
    let table = [
        (
            fixtures::planned(
                Some(WEB),
                WEB,
                GroupUpdates {
                    ignore: 2,
                    ..none()
                },
            ),
            0,
        ),
        (
            fixtures::planned(None, WEB, GroupUpdates { place: 2, ..none() }),
            1,
        ),
        (
            fixtures::planned(
                Some(WEB),
                &env,
                GroupUpdates {
                    destructive_update: 1,
                    ignore: 1,
                    ..none()
                },
            ),
            1,
        ),
        (
            fixtures::planned(
                Some(WEB),
                &env,
                GroupUpdates {
                    in_place_update: 2,
                    ..none()
                },
            ),
            0,
        ),
    ];
    for (planned, code) in table {
        let gateway = gateway(Ok(planned)).await;
        for line in ["job plan -", "plan -diff=false -"] {
            let said = kafila(line).stdin(WEB).at(&gateway.address).await;
            said.ended(code).printed(&["Scheduler dry-run:"]);
        }
    }
    let broken = WEB.replace("count = 2", "count =");
    for line in ["job plan -", "plan -"] {
        let said = kafila(line).stdin(&broken).at(UNREACHABLE).await;
        said.ended(255).complained(&[
            "Error getting job struct: Error parsing job file from -:\n",
            "stdin:4,",
        ]);
        assert_eq!(said.stdout, "");
    }
}

#[tokio::test]
async fn placements_held_back_by_a_deployment_are_not_called_allocated() {
    for (status, word, job_file) in [
        ("failed", "has failed", WEB.to_owned()),
        ("paused", "is paused", WEB.to_owned()),
        // That is a new version, which no deployment holds back yet.
        (
            "failed",
            "",
            WEB.replace("config {", "env { A = \"b\" }\n      config {"),
        ),
    ] {
        let updates = GroupUpdates {
            ignore: 1,
            ..none()
        };
        let deployment = v1::Deployment {
            status: status.to_owned(),
            ..fixtures::deployment()
        };
        let planned = fixtures::planned(Some(WEB), &job_file, updates);
        let gateway = Gateway::start(FakeState {
            planned: Some(Ok(planned)),
            deployments: vec![deployment],
            ..FakeState::running()
        })
        .await;
        let said = kafila("job plan -")
            .stdin(&job_file)
            .at(&gateway.address)
            .await;
        let all = "- All tasks successfully allocated.";
        let json = kafila("job plan -json-output -")
            .stdin(&job_file)
            .at(&gateway.address)
            .await;
        if word.is_empty() {
            said.ended(0).printed(&[all]);
            assert!(!json.ended(0).stdout.contains("holds back placements"));
        } else {
            let warning = format!(
                "Scheduler dry-run:\n- WARNING: deployment \"5e6f7a8b\" of version 1 {word} and \
                 holds back placements: "
            );
            said.ended(0).printed(&[&warning]);
            assert!(!said.stdout.contains(all), "{}", said.stdout);
            json.ended(0).printed(&["\"Warnings\": \"", word]);
        }
    }
}

#[tokio::test]
async fn scenario_026_a_change_shows_in_its_group_and_the_hint_names_the_index() {
    let env = WEB.replace("config {", "env { A = \"b\" }\n      config {");
    let updates = GroupUpdates {
        destructive_update: 1,
        ..none()
    };
    let gateway = gateway(Ok(fixtures::planned(Some(WEB), &env, updates))).await;
    let said = kafila("job plan -").stdin(&env).at(&gateway.address).await;
    said.ended(1).printed(&[
        "+/- Job: \"web\"\n",
        "+/- Task Group: \"app\" (1 create/destroy update)\n",
        "  +/- Task: \"server\" (forces create/destroy update)\n",
        "    + Env[A]: \"b\"\n",
        "\nScheduler dry-run:\n",
        "\nJob Modify Index: 17\n",
        "\nkafila job run -check-index 17 -\n",
    ]);
}

#[tokio::test]
async fn without_the_diff_only_the_schedulers_word_is_shown() {
    let updates = GroupUpdates { place: 2, ..none() };
    let mut planned = fixtures::planned(None, WEB, updates);
    planned.failed_task_groups = [("app".to_owned(), fixtures::metric())].into();
    planned.warnings = vec!["memory_max has no effect here".to_owned()];
    let gateway = gateway(Ok(planned)).await;
    let said = kafila("job plan -diff=false -verbose -hcl2-strict=false -var nope=1 -")
        .stdin(WEB)
        .at(&gateway.address)
        .await;
    said.ended(1).printed(&[
        "Scheduler dry-run:\n- WARNING: Failed to place all allocations.\n",
        "  Task Group \"app\" (failed to place ",
        "    * Resources exhausted on ",
    ]);
    assert!(!said.stdout.contains("Job: "), "{}", said.stdout);
    said.complained(&[
        "Job Warnings:\n2 warnings:\n\n* ",
        "nope",
        "* memory_max has no effect here\n",
    ]);
}

#[tokio::test]
async fn files_variables_and_json_are_read_as_job_run_reads_them() {
    let updates = GroupUpdates { place: 2, ..none() };
    let gateway = gateway(Ok(fixtures::planned(None, WEB, updates))).await;
    let with_variable = format!(
        "variable \"n\" {{ type = number }}\n{}",
        WEB.replace("count = 2", "count = var.n")
    );
    let file = File::new("web.hcl", &with_variable);
    let said = kafila("job plan -var n=7")
        .arg(&file.path)
        .at(&gateway.address)
        .await;
    said.ended(1)
        .printed(&["kafila job run -check-index 0 -var n=7 ", "web.hcl\n"]);
    let values = File::new("seven.vars", "n = 7\n");
    let said = kafila("plan -var-file")
        .arg(&values.path)
        .arg(&file.path)
        .at(&gateway.address)
        .await;
    said.ended(1)
        .printed(&["-var-file ", "seven.vars ", "web.hcl\n"]);
    let json = kafila("job run -output -").stdin(WEB).at(UNREACHABLE).await;
    let said = kafila("job plan -json -namespace ops -")
        .stdin(&json.ended(0).stdout)
        .at(&gateway.address)
        .await;
    said.ended(1)
        .printed(&["kafila job run -check-index 0 -json -\n"]);
    let counts: Vec<_> = {
        let state = gateway.state();
        let jobs = state
            .plan_requests
            .iter()
            .map(|request| request.job.clone().unwrap());
        jobs.map(|job| job.task_groups[0].count()).collect()
    };
    assert_eq!(counts, [7, 7, 2]);
}

#[tokio::test]
async fn every_error_ends_with_255() {
    let mut errors = FieldErrors::default();
    errors
        .0
        .push(FieldError::new("group[\"app\"].count", "too many"));
    errors.0.push(FieldError::new("priority", "too high"));
    let table = [
        (
            proto::status::invalid(errors),
            vec![
                "Error planning job: 2 errors occurred:
",
                "too high",
                "stdin:4,",
                "count = 2
",
            ],
        ),
        (
            Status::failed_precondition("its evaluation would fail: no such type"),
            vec![
                "Error planning job: ",
                "its evaluation would fail: no such type",
            ],
        ),
        (Status::unimplemented(""), vec!["Error planning job: "]),
    ];
    for (status, parts) in table {
        let gateway = gateway(Err(status)).await;
        let said = kafila("job plan -").stdin(WEB).at(&gateway.address).await;
        said.ended(255).complained(&parts);
        assert_eq!(said.stdout, "");
    }
    let lines = [
        ("job plan -", "cannot reach the gateway"),
        ("job plan -address=nonsense: -", "nonsense:"),
        ("job plan", "'kafila job plan -help'"),
        ("plan -frobnicate -", "'kafila plan -help'"),
        ("job plan /nowhere/web.hcl", "/nowhere/web.hcl"),
    ];
    for (line, part) in lines {
        kafila(line)
            .stdin(WEB)
            .at(UNREACHABLE)
            .await
            .ended(255)
            .complained(&[part]);
    }
    kafila("job plan -help")
        .run()
        .await
        .ended(0)
        .printed(&["Exit codes: 0 no allocation"]);
}

#[tokio::test]
async fn json_for_programs_has_the_same_exit_codes() {
    let updates = GroupUpdates { place: 2, ..none() };
    let mut planned = fixtures::planned(None, WEB, updates);
    planned.warnings = vec!["memory_max has no effect here".to_owned()];
    let gateway = gateway(Ok(planned)).await;
    let said = kafila("job plan -json-output -")
        .stdin(WEB)
        .at(&gateway.address)
        .await;
    assert_eq!(said.ended(1).stderr, "", "warnings are in the object");
    let value: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(value["Diff"]["Type"], "Added");
    assert_eq!(value["Annotations"]["DesiredTGUpdates"]["app"]["Place"], 2);
    assert_eq!(value["Warnings"], "memory_max has no effect here");
    let said = kafila("job plan -json-output -diff=false -")
        .stdin(WEB)
        .at(&gateway.address)
        .await;
    let value: serde_json::Value = serde_json::from_str(&said.ended(1).stdout).unwrap();
    assert!(value["Diff"].is_null());
}
