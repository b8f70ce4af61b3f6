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
        "-set data_dir=/var/lib/kafila",
        "-set node_pool=gpu",
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

#[tokio::test]
async fn a_node_is_revoked_listed_and_reinstated() {
    let gateway = Gateway::start(FakeState::running()).await;
    let address = &gateway.address;
    let node = gateway.state().nodes[0].clone();
    let listed = kafila("node introduction revoked").at(address).await;
    listed.ended(0).printed(&["No revoked nodes"]);

    let said = kafila(&format!(
        "node introduction revoke -reason=sold {}",
        &node.id[..8]
    ));
    let said = said.at(address).await;
    let expected = format!("Revoked node \"{}\" ({})\n", node.id, node.name);
    assert_eq!(said.ended(0).stdout, expected);
    let listed = kafila("node introduction revoked").at(address).await;
    let row = format!("{}  {}", &node.id[..8], node.name);
    listed.ended(0).printed(&[&row, " ago", "sold"]);
    let json = kafila("node introduction revoked -json");
    let json = json.at(address).await.json();
    assert_eq!(
        (&json[0]["NodeID"], &json[0]["Reason"]),
        (&node.id.as_str().into(), &"sold".into())
    );

    let line = format!("node introduction reinstate {}", &node.id[..8]);
    let said = kafila(&line).at(address).await;
    let expected = format!("Reinstated node \"{}\"\n", node.id);
    assert_eq!(said.ended(0).stdout, expected);
    let said = kafila(&line).at(address).await;
    said.ended(1)
        .complained(&["reinstating a node", "no revoked node"]);
}

#[tokio::test]
async fn a_revocation_names_the_token_that_lets_the_machine_join_again() {
    let gateway = Gateway::start(FakeState::running()).await;
    let address = &gateway.address;
    let created = kafila("node introduction create -uses=0").at(address).await;
    created.ended(0);
    let node_id = gateway.state().nodes[0].id.clone();
    let line = format!("node introduction revoke {node_id}");
    let said = kafila(&line).at(address).await;
    let command = format!("kafila node introduction delete {ID}");
    said.ended(0)
        .printed(&["introduces further nodes", &command]);
}
