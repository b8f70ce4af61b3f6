//! `kafila job validate`

use model::FieldError;
use proto::v1;
use tonic::Status;

use crate::command::{UNREACHABLE, kafila};
use crate::gateway::Gateway;
use crate::job_file::{File, WEB};
use crate::state::FakeState;

#[tokio::test]
async fn a_valid_file_passes_with_and_without_a_gateway() {
    let file = File::web();
    let gateway = Gateway::start(FakeState::running()).await;
    for line in ["job validate", "validate"] {
        let said = kafila(line).arg(&file.path).at(&gateway.address).await;
        assert_eq!(said.ended(0).stdout, "Job validation successful\n");
        assert_eq!(said.stderr, "");
    }
    let said = kafila("job validate").arg(&file.path).at(UNREACHABLE).await;
    said.ended(0).complained(&[
        "Checked without the cluster",
        UNREACHABLE,
        "connection refused",
    ]);
    assert_eq!(said.stdout, "Job validation successful\n");
}

#[tokio::test]
async fn a_malformed_file_is_shown_with_a_caret() {
    let broken = WEB.replace("count = 2", "cuont = 2");
    let said = kafila("job validate -")
        .stdin(&broken)
        .at(UNREACHABLE)
        .await;
    said.ended(1)
        .complained(&["stdin:4,5-10: Unsupported argument", "cuont = 2\n", "^^^^^"]);
}

#[tokio::test]
async fn every_rule_that_is_broken_is_shown_at_its_line_without_a_gateway() {
    let invalid = WEB
        .replace("count = 2", "count = -1")
        .replace("cpu    = 500", "cpu    = -5");
    let said = kafila("job validate -")
        .stdin(&invalid)
        .at(UNREACHABLE)
        .await;
    said.ended(1).complained(&[
        "Job validation errors:\n2 errors occurred:\n",
        "stdin:4,",
        "count = -1\n",
        "stdin:12,",
        "cpu    = -5\n",
    ]);
    assert_eq!(said.stdout, "");
}

#[tokio::test]
async fn violations_found_by_the_gateway_are_shown_at_their_line() {
    let violation = FieldError::new(
        "group[\"app\"].task[\"server\"].driver",
        "no node has raw_exec",
    );
    let validated = v1::ValidateJobResponse {
        violations: vec![violation.into()],
        warnings: Vec::new(),
    };
    let gateway = Gateway::start(FakeState {
        validated,
        ..FakeState::running()
    })
    .await;
    let said = kafila("job validate -")
        .stdin(WEB)
        .at(&gateway.address)
        .await;
    said.ended(1).complained(&[
        "Job validation errors:\n1 error occurred:\n",
        "stdin:6,",
        "no node has raw_exec",
        "driver = \"raw_exec\"\n",
    ]);
}

#[tokio::test]
async fn warnings_do_not_make_it_invalid() {
    let validated = v1::ValidateJobResponse {
        violations: Vec::new(),
        warnings: vec!["memory_max has no effect here".to_owned()],
    };
    let gateway = Gateway::start(FakeState {
        validated,
        ..FakeState::running()
    })
    .await;
    let said = kafila("job validate -")
        .stdin(WEB)
        .at(&gateway.address)
        .await;
    said.ended(0)
        .complained(&["Job Warnings:\n1 warning:\n\n* memory_max has no effect here\n"]);
}

#[tokio::test]
async fn a_gateway_that_refuses_to_say_is_an_error() {
    let broken = Some(Status::permission_denied(""));
    let gateway = Gateway::start(FakeState {
        broken,
        ..FakeState::running()
    })
    .await;
    let said = kafila("job validate -")
        .stdin(WEB)
        .at(&gateway.address)
        .await;
    said.ended(1)
        .complained(&["Error validating job: Permission denied"]);
}

#[tokio::test]
async fn json_of_the_api_is_validated_too() {
    let printed = kafila("job run -output -").stdin(WEB).at(UNREACHABLE).await;
    let said = kafila("job validate -json -")
        .stdin(&printed.stdout)
        .at(UNREACHABLE)
        .await;
    said.ended(0);
    let said = kafila("job validate -json -")
        .stdin("{\"Job\": ")
        .at(UNREACHABLE)
        .await;
    said.ended(1).complained(&["stdin:1,"]);
}
