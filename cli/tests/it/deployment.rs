//! `kafila deployment …`

use proto::v1;

use crate::command::kafila;
use crate::fixtures;
use crate::gateway::Gateway;
use crate::state::FakeState;

#[tokio::test]
async fn deployments_are_listed_or_there_are_none() {
    let gateway = Gateway::start(FakeState::running()).await;
    let said = kafila("deployment list").at(&gateway.address).await;
    let expected = "ID        Job ID  Job Version  Status      Description\n\
                    5e6f7a8b  web     1            successful  Deployment completed successfully\n";
    assert_eq!(said.ended(0).stdout, expected);
    let json = kafila("deployment list -json")
        .at(&gateway.address)
        .await
        .json();
    assert_eq!(json[0]["TaskGroups"]["app"]["HealthyAllocs"], 2);
    let gateway = Gateway::start(FakeState::default()).await;
    let said = kafila("deployment list").at(&gateway.address).await;
    assert_eq!(said.ended(0).stdout, "No deployments found\n");
    said.complained(&["Only service and system jobs have deployments"]);
}

#[tokio::test]
async fn one_deployment_is_shown_with_its_groups() {
    let gateway = Gateway::start(FakeState::running()).await;
    for line in ["deployment status 5e6f", "status 5e6f"] {
        let said = kafila(line).at(&gateway.address).await;
        said.ended(0)
            .printed(&["ID          = 5e6f7a8b\n", "\nDeployed\n", "app         2"]);
    }
    let said = kafila("deployment status -verbose 5e6f")
        .at(&gateway.address)
        .await;
    said.ended(0)
        .printed(&[fixtures::DEPLOYMENT, "\nAllocations\n", fixtures::ALLOC]);
    assert!(
        !said.stdout.contains(fixtures::OLD_ALLOC),
        "another deployment's: {}",
        said.stdout
    );
    let json = kafila("deployment status -json 5e6f")
        .at(&gateway.address)
        .await
        .json();
    assert_eq!(json["Status"], "successful");
}

#[tokio::test]
async fn a_deployment_is_watched_until_it_ends() {
    let state = FakeState {
        deployments: vec![fixtures::running_deployment()],
        next_deployments: [fixtures::running_deployment(), fixtures::deployment()].into(),
        ..FakeState::running()
    };
    let gateway = Gateway::start(state).await;
    let said = kafila("deployment status -monitor 5e6f")
        .at(&gateway.address)
        .await;
    said.ended(0).printed(&[
        "Status      = running",
        "Status      = successful",
        "✓ Deployment",
    ]);
    let cancelled = v1::Deployment {
        status: "cancelled".to_owned(),
        ..fixtures::deployment()
    };
    let state = FakeState {
        deployments: vec![cancelled],
        ..FakeState::running()
    };
    let gateway = Gateway::start(state).await;
    let said = kafila("deployment status -monitor 5e6f")
        .at(&gateway.address)
        .await;
    said.ended(1)
        .printed(&["! Deployment \"5e6f7a8b\" cancelled\n"]);
}

#[tokio::test]
async fn a_deployment_that_is_taken_back_leads_to_the_one_that_does() {
    let mut failed = fixtures::running_deployment();
    "failed".clone_into(&mut failed.status);
    "Failed due to unhealthy allocations - rolling back to job version 0"
        .clone_into(&mut failed.status_description);
    for group in failed.task_groups.values_mut() {
        group.auto_revert = true;
    }
    let back = v1::Deployment {
        id: "6f7a8b9c-0000-4000-8000-000000000008".to_owned(),
        job_version: 2,
        create_index: 40,
        modify_index: 41,
        ..fixtures::deployment()
    };
    let state = FakeState {
        deployments: vec![failed, back],
        ..FakeState::running()
    };
    let gateway = Gateway::start(state).await;
    let said = kafila("deployment status -monitor 5e6f")
        .at(&gateway.address)
        .await;
    said.ended(1).printed(&[
        "! Deployment \"5e6f7a8b\" failed\n",
        "Monitoring deployment \"6f7a8b9c\"\n",
        "✓ Deployment \"6f7a8b9c\" successful\n",
    ]);
}

#[tokio::test]
async fn wrong_ids_are_explained() {
    let mut state = FakeState::running();
    state.deployments.push(v1::Deployment {
        id: fixtures::DEPLOYMENT.replace("0006", "0007"),
        ..fixtures::deployment()
    });
    let gateway = Gateway::start(state).await;
    let said = kafila("deployment status 5e6f").at(&gateway.address).await;
    said.ended(1).complained(&[
        "Prefix matched multiple deployments\n\nID",
        fixtures::DEPLOYMENT,
    ]);
    let said = kafila("deployment status ffff").at(&gateway.address).await;
    said.ended(1)
        .complained(&["No deployment(s) with prefix or id \"ffff\" found"]);
}

#[tokio::test]
async fn a_status_without_an_id_lists_deployments() {
    let gateway = Gateway::start(FakeState::running()).await;
    let listed = kafila("deployment list").at(&gateway.address).await;
    let said = kafila("deployment status").at(&gateway.address).await;
    assert_eq!(said.ended(0).stdout, listed.stdout);
    kafila("deployment status -monitor")
        .at(&gateway.address)
        .await
        .ended(1);
}

#[tokio::test]
async fn deployments_are_paged_with_the_newest_first() {
    let mut state = FakeState::running();
    let mut newest = fixtures::deployment();
    newest.id = format!("aaaaaaaa{}", &newest.id[8..]);
    newest.create_index += 1;
    state.deployments.push(newest);
    let gateway = Gateway::start(state).await;
    let first = kafila("deployment list -per-page=1")
        .at(&gateway.address)
        .await;
    first
        .ended(0)
        .printed(&["aaaaaaaa"])
        .complained(&["kafila deployment list -per-page=1 -page-token=1\n"]);
    let line = "deployment list -per-page=1 -page-token=1";
    let second = kafila(line).at(&gateway.address).await;
    second.ended(0).printed(&["5e6f7a8b"]);
    assert_eq!(second.stderr, "", "there is no further page");
    let all = kafila("deployment status").at(&gateway.address).await;
    all.ended(0).printed(&["aaaaaaaa", "5e6f7a8b"]);
}
