//! `kafila status`, for every kind of object with an id.

use proto::v1;

use crate::command::kafila;
use crate::fixtures;
use crate::gateway::Gateway;
use crate::state::FakeState;

#[tokio::test]
async fn without_an_id_it_lists_jobs() {
    let gateway = Gateway::start(FakeState::running()).await;
    kafila("status")
        .at(&gateway.address)
        .await
        .ended(0)
        .printed(&["ID   Type", "web  service"]);
}

#[tokio::test]
async fn an_id_is_found_whatever_it_belongs_to() {
    let gateway = Gateway::start(FakeState::running()).await;
    let table = [
        ("8a3f2", "Client Status       = running"),
        ("1a2b", "TriggeredBy        = job-register"),
        ("5e6f", "Job Version = 1"),
        ("4d2b", "Driver Status"),
        ("we", "Parameterized = false"),
    ];
    for (id, part) in table {
        let said = kafila("status").arg(id).at(&gateway.address).await;
        said.ended(0).printed(&[part]);
    }
    let json = kafila("status -json 4d2b")
        .at(&gateway.address)
        .await
        .json();
    assert_eq!(json["ID"], fixtures::NODE);
}

#[tokio::test]
async fn a_job_that_is_called_so_wins_over_ids_that_begin_so() {
    let mut state = FakeState::running();
    state.stubs.push(v1::JobStub {
        id: "4d2b".to_owned(),
        ..fixtures::stub()
    });
    state.jobs.push(v1::Job {
        id: Some("4d2b".to_owned()),
        ..fixtures::job()
    });
    let gateway = Gateway::start(state).await;
    let said = kafila("status 4d2b").at(&gateway.address).await;
    said.ended(0)
        .printed(&["ID            = 4d2b\n", "Type          = service\n"]);
}

#[tokio::test]
async fn several_things_or_none_are_an_error() {
    let gateway = Gateway::start(FakeState::running()).await;
    let said = kafila("status 8a3f").at(&gateway.address).await;
    said.ended(1).complained(&[
        "Multiple matches found for id \"8a3f\"\n\nKind   ID\n",
        &format!("alloc  {}\n", fixtures::OLD_ALLOC),
        &format!("alloc  {}\n", fixtures::ALLOC),
    ]);
    let said = kafila("status nothing").at(&gateway.address).await;
    said.ended(1).complained(&[
        "Nothing with prefix or ID \"nothing\" found",
        "kafila job status",
    ]);
}

#[tokio::test]
async fn one_character_is_not_enough_to_look_for_ids() {
    let gateway = Gateway::start(FakeState::running()).await;
    let said = kafila("status 8").at(&gateway.address).await;
    said.ended(1).complained(&[
        "No job(s) with prefix or ID \"8\" found",
        "at least two characters",
    ]);
    let said = kafila("status w").at(&gateway.address).await;
    said.ended(0).printed(&["ID            = web\n"]);
}
