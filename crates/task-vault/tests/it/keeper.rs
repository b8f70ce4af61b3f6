//! The keeper of a token.

use std::sync::atomic::Ordering;
use std::time::Duration;

use vault::Token;
use vault_test_kit::{Fault, Role, Vault};

use crate::support::{keeper, node, until};

fn short(seconds: u64) -> Role {
    Role { ttl: Duration::from_secs(seconds), ..Role::default() }
}

#[tokio::test]
async fn a_token_outlives_its_first_lifetime_and_is_revoked_in_the_end() {
    let vault = Vault::start().await;
    vault.put_role("web", short(2));
    let (keeper, _) = keeper(&node(&vault), "", None);
    let first = until(&keeper, |state| state.token.is_some()).await;
    tokio::time::sleep(Duration::from_millis(3_500)).await;
    let now = keeper.state().borrow().clone();
    assert_eq!(now, first, "renewed, not replaced");
    assert!(vault.count("renew-self") >= 2);
    assert_eq!(vault.tokens().len(), 1);
    keeper.revoke().await;
    assert!(vault.tokens().is_empty());
}

#[tokio::test]
async fn a_revoked_token_is_replaced() {
    let vault = Vault::start().await;
    vault.put_role("web", short(2));
    let (keeper, signer) = keeper(&node(&vault), "web", None);
    let first = until(&keeper, |state| state.generation == 1).await;
    vault.revoke_all();
    let second = until(&keeper, |state| state.generation == 2).await;
    assert_ne!(first.token, second.token);
    assert_eq!(signer.signed.load(Ordering::SeqCst), 2, "each login has a JWT of its own");
}

#[tokio::test]
async fn a_login_waits_for_vault_and_says_so() {
    let mut vault = Vault::stopped().await;
    let (keeper, _) = keeper(&node(&vault), "web", None);
    let state = until(&keeper, |state| state.problem.is_some()).await;
    let problem = state.problem.unwrap();
    assert!(problem.contains("cannot be reached") && !state.is_refused, "{problem}");
    vault.serve().await;
    let state = until(&keeper, |state| state.token.is_some()).await;
    assert_eq!((state.generation, state.problem), (1, None));
}

#[tokio::test]
async fn a_login_waits_for_the_identity() {
    let vault = Vault::start().await;
    let (keeper, signer) = keeper(&node(&vault), "web", None);
    signer.is_down.store(true, Ordering::SeqCst);
    // The first login may have been before the outage.
    let state = until(&keeper, |state| state.problem.is_some() || state.token.is_some()).await;
    if let Some(problem) = state.problem {
        assert!(problem.contains("no gateway answers"), "{problem}");
        signer.is_down.store(false, Ordering::SeqCst);
        until(&keeper, |state| state.token.is_some()).await;
    }
}

#[tokio::test]
async fn a_refused_first_login_is_marked() {
    let vault = Vault::start().await;
    let (keeper, _) = keeper(&node(&vault), "none", None);
    let state = until(&keeper, |state| state.is_refused).await;
    let problem = state.problem.unwrap();
    assert!(problem.contains("auth/jwt-nomad") && problem.contains("could not be found"), "{problem}");
    assert!(!problem.contains("PLANTED"), "{problem}");
}

#[tokio::test]
async fn an_outage_of_a_running_task_keeps_its_token() {
    let vault = Vault::start().await;
    vault.put_role("web", short(4));
    let (keeper, _) = keeper(&node(&vault), "web", None);
    let first = until(&keeper, |state| state.token.is_some()).await;
    vault.fail(Some(Fault::Sealed));
    let state = until(&keeper, |state| state.problem.is_some()).await;
    assert!(state.problem.unwrap().contains("sealed"));
    assert_eq!(state.token, first.token);
    vault.fail(None);
    let state = until(&keeper, |state| state.problem.is_none()).await;
    assert!(state.token.is_some() && !state.is_refused);
}

#[tokio::test]
async fn a_restored_token_is_used_again_if_it_lives() {
    let vault = Vault::start().await;
    let node = node(&vault);
    let (before, _) = keeper(&node, "web", None);
    let token = until(&before, |state| state.token.is_some()).await.token;
    drop(before);
    let (after, _) = keeper(&node, "web", token.clone());
    assert_eq!(after.state().borrow().token, token);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!((vault.count("login"), vault.count("renew-self")), (1, 1));
    let (ended, _) = keeper(&node, "web", Some(Token::new("hvs.ended")));
    let state = until(&ended, |state| state.generation == 2).await;
    assert_ne!(state.token, Some(Token::new("hvs.ended")));
}
