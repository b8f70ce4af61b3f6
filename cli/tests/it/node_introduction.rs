//! `kafila node introduction …`

use crate::command::kafila;
use crate::gateway::Gateway;
use crate::state::FakeState;

const ID: &str = "7c1e90aa-0000-4000-8000-000000000000";
const TOKEN: &str = "kafila-node-7c1e90aa-0000-4000-8000-000000000000-5ec7e7";

#[tokio::test]
async fn a_token_is_created_listed_without_its_secret_and_deleted() {
    let gateway = Gateway::start(FakeState::running()).await;
    let address = &gateway.address;
    let said = kafila("node introduction create -node-pool=gpu -ttl=30m -uses=3");
    said.at(address).await.ended(0).printed(&[
        "ID        = 7c1e90aa-0000-4000-8000-000000000000\n",
        "Expires   = 1970-01-01T00:30:00Z\n",
        "Uses      = 0 of 3\n",
        "Node Pool = gpu\n",
        &format!("Token     = {TOKEN}\n"),
        "INTRODUCTION__TOKEN",
    ]);
    let said = kafila("node introduction list").at(address).await;
    let stdout = &said.ended(0).stdout;
    assert!(
        stdout.contains("7c1e90aa  0 of 3") && stdout.contains("gpu"),
        "{stdout}"
    );
    assert!(!stdout.contains("5ec7e7"), "{stdout}");
    let json = kafila("node introduction list -json")
        .at(address)
        .await
        .json();
    assert_eq!(
        (&json[0]["ID"], &json[0]["UsesMax"]),
        (&ID.into(), &3.into())
    );
    let said = kafila("node introduction delete 7c1e90aa")
        .at(address)
        .await;
    said.ended(0)
        .printed(&[&format!("Deleted introduction token \"{ID}\"")]);
    let said = kafila("node introduction list").at(address).await;
    said.ended(0).printed(&["No introduction tokens"]);
    let said = kafila("node introduction delete 7c1e90aa")
        .at(address)
        .await;
    said.ended(1)
        .complained(&["deleting an introduction token", "no such"]);
}

#[tokio::test]
async fn a_script_gets_the_token_alone_by_nomads_command_too() {
    let gateway = Gateway::start(FakeState::running()).await;
    let address = &gateway.address;
    let line = "node intro create -quiet -node-name=n1 -node=5f1c8a52-7b0e-4c6d-9a0f-3d2b1e4c5a69";
    let said = kafila(line).at(address).await;
    assert_eq!(said.ended(0).stdout, format!("{TOKEN}\n"));
    let created = gateway.state().introduction_tokens[0].clone();
    assert_eq!((created.uses_max, created.node_name.as_str()), (1, "n1"));
    // 5 minutes by default.
    assert_eq!(created.expires_at_ns, 300_000_000_000);
    let json = kafila("node introduction create -json")
        .at(address)
        .await
        .json();
    assert!(json["Token"].as_str().unwrap().starts_with("kafila-node-"));
    assert_eq!(json["ExpirationTime"], "1970-01-01T00:05:00Z");
}
