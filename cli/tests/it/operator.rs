//! `kafila operator …`, `kafila version` and `kafila completions`.

use crate::command::{NOBODY, kafila};
use crate::gateway::Gateway;
use crate::world::World;

#[tokio::test]
async fn leaders_are_listed_or_there_are_none() {
    let gateway = Gateway::start(World::running()).await;
    let said = kafila("operator leaders").at(&gateway.address).await;
    let expected = "Service       Address                Replica  Term\n\
                    plan-applier  http://127.0.0.1:7102  dev      3\n";
    assert_eq!(said.ended(0).stdout, expected);
    let json = kafila("operator leaders -json")
        .at(&gateway.address)
        .await
        .json();
    assert_eq!(json[0]["Term"], 3);
    let gateway = Gateway::start(World::default()).await;
    let said = kafila("operator leaders").at(&gateway.address).await;
    assert_eq!(said.ended(0).stdout, "No leaders known\n");
}

#[tokio::test]
async fn the_version_needs_no_gateway_unless_it_is_asked_for() {
    let own = concat!("Kafila v", env!("CARGO_PKG_VERSION"), "\n");
    let said = kafila("version").at(NOBODY).await;
    assert_eq!(said.ended(0).stdout, own);
    let gateway = Gateway::start(World::default()).await;
    let said = kafila("version -gateway").at(&gateway.address).await;
    let expected = format!("{own}Gateway v9.8.7 at {}\n", gateway.address);
    assert_eq!(said.ended(0).stdout, expected);
    kafila("version -gateway")
        .at(NOBODY)
        .await
        .ended(1)
        .complained(&["cannot reach the gateway"]);
}

#[tokio::test]
async fn completions_are_written_for_each_shell() {
    for (shell, part) in [
        ("bash", "_kafila()"),
        ("zsh", "#compdef kafila"),
        ("fish", "complete -c kafila"),
    ] {
        let said = kafila("completions").arg(shell).at(NOBODY).await;
        said.ended(0).printed(&[part]);
    }
    let said = kafila("completions cmd").at(NOBODY).await;
    said.ended(1).complained(&["invalid value 'cmd'", "bash"]);
}
