//! `kafila operator root keyring …`

use crate::command::kafila;
use crate::gateway::Gateway;
use crate::state::FakeState;

const ID: &str = "7c1e90aa-0000-4000-8000-000000000000";

#[tokio::test]
async fn signing_keys_are_listed_rotated_and_removed() {
    let mut state = FakeState::running();
    state.signing_keys = vec![proto::v1::SigningKey {
        id: ID.to_owned(),
        state: "active".to_owned(),
        algorithm: "ES256".to_owned(),
        created_at_ns: 1_000_000_000,
        active_from_ns: 1_000_000_000,
        published_until_ns: 0,
    }];
    let gateway = Gateway::start(state).await;
    let address = &gateway.address;
    let said = kafila("operator root keyring remove 7c1e")
        .at(address)
        .await;
    said.ended(1)
        .complained(&["removing a signing key", "active"]);
    let said = kafila("operator root keyring rotate").at(address).await;
    said.ended(0)
        .printed(&["Signing key \"2b7d90aa-0000-4000-8000-000000000000\" is active"]);
    let said = kafila("operator root keyring list -verbose")
        .at(address)
        .await;
    said.ended(0).printed(&[
        "Key ID",
        "retired  ES256      1970-01-01T00:00:01Z  1970-01-01T01:00:00Z",
        "active   ES256      1970-01-01T00:01:00Z",
    ]);
    let json = kafila("operator root keyring list -json").at(address).await;
    let json = json.json();
    assert_eq!(json[0]["KeyID"], ID);
    assert_eq!(json[0]["PublishedUntil"], "1970-01-01T01:00:00Z");
    assert_eq!(json[1]["State"], "active");
    let said = kafila("operator root keyring remove 7c1e")
        .at(address)
        .await;
    said.ended(0)
        .printed(&[&format!("Removed signing key \"{ID}\"")]);
}

#[tokio::test]
async fn a_cluster_without_keys_says_which_setting_is_missing() {
    let gateway = Gateway::start(FakeState::running()).await;
    let said = kafila("operator root keyring list")
        .at(&gateway.address)
        .await;
    said.ended(0)
        .printed(&["No signing keys", "keyring_key_file"]);
}
