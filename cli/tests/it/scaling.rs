//! `kafila scaling policy …`

use crate::command::kafila;
use crate::fixtures;
use crate::gateway::Gateway;
use crate::state::FakeState;

#[tokio::test]
async fn scaling_policies_are_listed() {
    let gateway = Gateway::start(FakeState::running()).await;
    let said = kafila("scaling policy list -job=web")
        .at(&gateway.address)
        .await;
    let expected = "ID        Enabled  Type        Target\n\
                    c1d2e3f4  true     horizontal  Namespace:default,Job:web,Group:app\n";
    assert_eq!(said.ended(0).stdout, expected);
    let said = kafila("scaling policy list -type=vertical_cpu")
        .at(&gateway.address)
        .await;
    assert_eq!(said.ended(0).stdout, "No policies found\n");
    let json = kafila("scaling policy list -json")
        .at(&gateway.address)
        .await
        .json();
    assert_eq!(json[0]["Target"]["Group"], "app");
}

#[tokio::test]
async fn scaling_policies_are_paged() {
    let mut state = FakeState::running();
    let mut second = state.scaling_policies[0].clone();
    second.id = format!("d2e3f4a5{}", &second.id[8..]);
    state.scaling_policies.push(second);
    let gateway = Gateway::start(state).await;
    let said = kafila("scaling policy list -per-page=1");
    said.at(&gateway.address)
        .await
        .ended(0)
        .printed(&["c1d2e3f4"])
        .complained(&["kafila scaling policy list -per-page=1 -page-token=1\n"]);
    let said = kafila("scaling policy list -page-token=1");
    let said = said.at(&gateway.address).await;
    said.ended(0).printed(&["d2e3f4a5"]);
    assert!(!said.stdout.contains("c1d2e3f4"), "{}", said.stdout);
}

#[tokio::test]
async fn one_scaling_policy_is_shown() {
    let gateway = Gateway::start(FakeState::running()).await;
    let said = kafila("scaling policy info c1d2")
        .at(&gateway.address)
        .await;
    let expected = "ID      = c1d2e3f4\n\
                    Enabled = true\n\
                    Target  = Namespace:default,Job:web,Group:app\n\
                    Min     = 1\n\
                    Max     = 5\n\
                    \n\
                    Policy:\n\
                    {\n    \"cooldown\": \"1m\"\n}\n";
    assert_eq!(said.ended(0).stdout, expected);
    let json = kafila("scaling policy info -json c1d2")
        .at(&gateway.address)
        .await
        .json();
    assert_eq!(json["ID"], fixtures::scaling_policy().id);
    assert_eq!(json["Policy"]["cooldown"], "1m");
    let said = kafila("scaling policy info 99").at(&gateway.address).await;
    said.ended(1).complained(&["querying scaling policy", "99"]);
}
