//! `kafila deployment promote`, `pause`, `resume`, `fail`, `unblock`, and `kafila job promote`.

use proto::v1;
use tonic::Status;

use crate::command::kafila;
use crate::fixtures;
use crate::gateway::Gateway;
use crate::state::FakeState;

/// A deployment that succeeds after two reads.
fn going_on() -> FakeState {
    FakeState {
        deployments: vec![fixtures::running_deployment()],
        next_deployments: [fixtures::running_deployment(), fixtures::deployment()].into(),
        ..FakeState::running()
    }
}

#[tokio::test]
async fn scenario_034_a_promotion_is_followed_until_the_rest_has() {
    for line in ["deployment promote 5e6f", "job promote web"] {
        let gateway = Gateway::start(going_on()).await;
        let said = kafila(line).at(&gateway.address).await;
        said.ended(0).printed(&[
            "Deployment \"5e6f7a8b\" promoted\n",
            "Monitoring evaluation \"1a2b3c4d\"",
            "✓ Deployment \"5e6f7a8b\" successful\n",
        ]);
        let state = gateway.state();
        let request = &state.promote_requests[0];
        assert_eq!(request.deployment_id, fixtures::DEPLOYMENT);
        assert!(request.all && request.task_groups.is_empty());
        assert!(!request.request_id.is_empty());
    }
}

#[tokio::test]
async fn a_deployment_that_was_found_in_another_namespace_says_in_which() {
    let elsewhere = v1::Deployment {
        namespace: "prod".to_owned(),
        ..fixtures::running_deployment()
    };
    let gateway = Gateway::start(FakeState {
        deployments: vec![elsewhere],
        ..FakeState::running()
    })
    .await;
    for (line, expected) in [
        (
            "deployment pause 5e6f",
            "Deployment \"5e6f7a8b\" in namespace \"prod\" paused\n",
        ),
        (
            "deployment pause -namespace=prod 5e6f",
            "Deployment \"5e6f7a8b\" paused\n",
        ),
    ] {
        let said = kafila(line).at(&gateway.address).await;
        assert_eq!(said.ended(0).stdout, expected, "{line}");
    }
}

#[tokio::test]
async fn groups_are_promoted_by_name_and_a_refusal_is_shown() {
    for line in [
        "deployment promote -group=app -group db -detach 5e6f",
        "job promote -group=app -group db -detach web",
    ] {
        let gateway = Gateway::start(FakeState::running()).await;
        let said = kafila(line).at(&gateway.address).await;
        let expected = format!(
            "Deployment \"5e6f7a8b\" promoted\nEvaluation ID: {}\n",
            fixtures::EVAL
        );
        assert_eq!(said.ended(0).stdout, expected);
        let state = gateway.state();
        let request = &state.promote_requests[0];
        assert_eq!(
            (request.all, request.task_groups.join(" ")),
            (false, "app db".into())
        );
    }
    let text = "Task group \"app\" has 0/1 healthy allocations";
    let state = FakeState {
        updated: Some(Err(Status::failed_precondition(text))),
        ..FakeState::running()
    };
    let gateway = Gateway::start(state).await;
    let said = kafila("deployment promote 5e6f").at(&gateway.address).await;
    said.ended(1).complained(&["promoting deployment", text]);
}

#[tokio::test]
async fn a_job_without_a_deployment_has_nothing_to_promote() {
    let mut old = fixtures::deployment();
    old.job_create_index = 1;
    for deployments in [Vec::new(), vec![old]] {
        let state = FakeState {
            deployments,
            ..FakeState::running()
        };
        let gateway = Gateway::start(state).await;
        let said = kafila("job promote web").at(&gateway.address).await;
        said.ended(1)
            .complained(&["Job \"web\" has no deployment to promote"]);
    }
}

#[tokio::test]
async fn a_deployment_is_paused_and_resumed() {
    let gateway = Gateway::start(going_on()).await;
    let said = kafila("deployment pause 5e6f").at(&gateway.address).await;
    assert_eq!(said.ended(0).stdout, "Deployment \"5e6f7a8b\" paused\n");
    let said = kafila("deployment resume 5e6f").at(&gateway.address).await;
    said.ended(0).printed(&[
        "Deployment \"5e6f7a8b\" resumed\n",
        "✓ Deployment \"5e6f7a8b\" successful\n",
    ]);
    let state = FakeState {
        updated: Some(Err(Status::failed_precondition(
            "can't resume terminal deployment",
        ))),
        ..FakeState::running()
    };
    let gateway = Gateway::start(state).await;
    let said = kafila("deployment resume 5e6f").at(&gateway.address).await;
    said.ended(1)
        .complained(&["can't resume terminal deployment"]);
}

#[tokio::test]
async fn failing_a_deployment_exits_with_0_unless_the_revert_fails() {
    let mut failed = fixtures::running_deployment();
    "failed".clone_into(&mut failed.status);
    let state = FakeState {
        deployments: vec![failed],
        ..FakeState::running()
    };
    let gateway = Gateway::start(state).await;
    let said = kafila("deployment fail 5e6f").at(&gateway.address).await;
    said.ended(0).printed(&[
        "Deployment \"5e6f7a8b\" failed\n",
        "Evaluation \"1a2b3c4d\" finished with status \"complete\"\n",
    ]);
    let state = FakeState {
        updated: Some(Ok(v1::UpdateDeploymentResponse {
            eval_id: fixtures::EVAL.to_owned(),
            reverted_job_version: Some(3),
            ..v1::UpdateDeploymentResponse::default()
        })),
        ..FakeState::running()
    };
    let gateway = Gateway::start(state).await;
    let said = kafila("deployment fail -detach 5e6f")
        .at(&gateway.address)
        .await;
    said.ended(0)
        .printed(&["Deployment \"5e6f7a8b\" failed. Auto-reverted to job version 3.\n"]);
}

#[tokio::test]
async fn nothing_is_ever_blocked() {
    let gateway = Gateway::start(FakeState::running()).await;
    let said = kafila("deployment unblock 5e6f").at(&gateway.address).await;
    said.ended(1).complained(&["there is one region"]);
}
