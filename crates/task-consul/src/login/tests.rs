//! Tokens against the stand-in for Consul.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use consul::ConsulConfig;
use consul_test_kit::Consul;
use login_provider::{Identity, IdentityError, Keeper, Setup, State};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tokio::time::timeout;

use super::*;
use crate::node::Node;

struct Jwt;

impl Identity for Jwt {
    fn token(&self) -> BoxFuture<'static, Result<Token, IdentityError>> {
        let claims = URL_SAFE_NO_PAD.encode(r#"{"aud":"consul.io"}"#);
        Box::pin(async move { Ok(Token::new(format!("e30.{claims}.x"))) })
    }
}

fn keeper(consul: &Consul, method: &str, known: Option<Token>) -> Keeper {
    let config = ConsulConfig {
        address: consul.address(),
        task_auth_method: method.to_owned(),
        ..ConsulConfig::default()
    };
    let node = Node::new(Client::open(&config).unwrap(), &config);
    let setup = Setup {
        provider: node.login("web", ("", ""), Clock::real()),
        identity: Arc::new(Jwt),
        may_expire: false,
        known,
    };
    Keeper::spawn(setup, StdRng::seed_from_u64(1))
}

async fn until(keeper: &Keeper, condition: impl FnMut(&State) -> bool) -> State {
    let mut state = keeper.state();
    let waiting = state.wait_for(condition);
    let state = timeout(Duration::from_secs(20), waiting).await;
    state.expect("the state comes").unwrap().clone()
}

async fn consul(ttl: Duration) -> Consul {
    let consul = Consul::start().await;
    consul.require_token("management");
    consul.put_auth_method("nomad-workloads", "consul.io", ttl);
    consul
}

#[tokio::test]
async fn a_token_is_used_again_and_ends_with_its_task() {
    let consul = consul(Duration::ZERO).await;
    let first = keeper(&consul, "nomad-workloads", None);
    let token = until(&first, |state| state.token.is_some()).await.token;
    let token = token.unwrap();
    drop(first);
    let second = keeper(&consul, "nomad-workloads", Some(token.clone()));
    assert_eq!(second.state().borrow().token.as_ref(), Some(&token));
    second.revoke().await;
    assert!(consul.tokens().is_empty());
    // A token that has ended is replaced.
    let third = keeper(&consul, "nomad-workloads", Some(token.clone()));
    let state = until(&third, |state| state.generation == 2).await;
    assert_ne!(state.token, Some(token));
    assert_eq!(consul.tokens().len(), 1);
}

#[tokio::test]
async fn a_token_is_replaced_before_its_end() {
    let consul = consul(Duration::from_secs(4)).await;
    let keeper = keeper(&consul, "nomad-workloads", None);
    let first = until(&keeper, |state| state.generation == 1).await;
    let second = until(&keeper, |state| state.generation == 2).await;
    assert_ne!(first.token, second.token);
}

#[tokio::test]
async fn a_refused_login_is_no_outage() {
    let mut consul = consul(Duration::ZERO).await;
    let refused = keeper(&consul, "none", None);
    let state = until(&refused, |state| state.problem.is_some()).await;
    assert!(state.is_refused, "{state:?}");
    consul.stop();
    let waiting = keeper(&consul, "nomad-workloads", None);
    let state = until(&waiting, |state| state.problem.is_some()).await;
    assert!(!state.is_refused, "{state:?}");
    consul.serve().await;
    let state = until(&waiting, |state| state.token.is_some()).await;
    assert_eq!(state.problem, None);
}
