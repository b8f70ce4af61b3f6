//! `kafila service …`

use crate::command::kafila;
use crate::fixtures;
use crate::gateway::Gateway;
use crate::state::FakeState;

#[tokio::test]
async fn services_are_listed() {
    let gateway = Gateway::start(FakeState::running()).await;
    let said = kafila("service list").at(&gateway.address).await;
    let expected = "Service Name  Tags\nweb-api       [a=b,v2]\n";
    assert_eq!(said.ended(0).stdout, expected);
    let said = kafila("service list -namespace=*")
        .at(&gateway.address)
        .await;
    let expected = "Service Name  Namespace  Tags\nweb-api       default    [a=b,v2]\n";
    assert_eq!(said.ended(0).stdout, expected);
    let json = kafila("service list -json")
        .at(&gateway.address)
        .await
        .json();
    assert_eq!(json[0]["Namespace"], "default");
    assert_eq!(json[0]["Services"][0]["ServiceName"], "web-api");
    gateway.state().registrations.clear();
    let said = kafila("service list").at(&gateway.address).await;
    assert_eq!(said.ended(0).stdout, "No service registrations found\n");
}

#[tokio::test]
async fn the_registrations_of_a_service_are_shown() {
    let gateway = Gateway::start(FakeState::running()).await;
    let said = kafila("service info web-api").at(&gateway.address).await;
    let expected = "Job ID  Address         Tags      Node ID   Alloc ID\n\
                    web     10.0.0.7:25000  [a=b,v2]  4d2f8b10  8a3f2c1e\n";
    assert_eq!(said.ended(0).stdout, expected);
    let said = kafila("service info -verbose web-api")
        .at(&gateway.address)
        .await;
    let shown = &said.ended(0).stdout;
    assert!(shown.contains(&fixtures::registration().id), "{shown}");
    let json = kafila("service info -json web-api")
        .at(&gateway.address)
        .await
        .json();
    assert_eq!(json[0]["Port"], 25_000);
    assert_eq!(json[0]["AllocID"], fixtures::registration().alloc_id);
    let said = kafila("service info none").at(&gateway.address).await;
    let expected = "No service registrations found for service \"none\"\n";
    assert_eq!(said.ended(0).stdout, expected);
}

#[tokio::test]
async fn a_registration_is_deleted_once() {
    let gateway = Gateway::start(FakeState::running()).await;
    let command = format!("service delete web-api {}", fixtures::registration().id);
    let said = kafila(&command).at(&gateway.address).await;
    let expected = "Successfully deleted service registration\n";
    assert_eq!(said.ended(0).stdout, expected);
    let said = kafila(&command).at(&gateway.address).await;
    said.ended(1)
        .complained(&["deleting service registration", "not found"]);
}

#[tokio::test]
async fn the_checks_of_an_allocation_are_shown() {
    let gateway = Gateway::start(FakeState::running()).await;
    let alloc_id = gateway.state().allocs[0].id.clone();
    let said = kafila(&format!("alloc checks {alloc_id}"))
        .at(&gateway.address)
        .await;
    let shown = &said.ended(0).stdout;
    for part in [
        "Status of 1 Nomad Service Checks",
        "Name       = alive",
        "Status     = failure",
        "StatusCode = 503",
        "Output     = down\n             since noon\n",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let json = kafila(&format!("alloc checks -json {alloc_id}"))
        .at(&gateway.address)
        .await
        .json();
    let check = &json[&fixtures::check().id];
    assert_eq!(check["StatusCode"], 503);
    assert_eq!(check["Timestamp"], 1_790_000_000);
}
