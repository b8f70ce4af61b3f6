//! Nodes, identities and waits of the tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use login_provider::{Identity, IdentityError, Keeper, Setup, State};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use task_vault::Node;
use vault::{Client, Token, VaultConfig};
use vault_test_kit::Vault;

/// Signs nothing: the stand-in looks at the claims only.
#[derive(Default)]
pub(crate) struct Signer {
    pub(crate) is_down: AtomicBool,
    pub(crate) signed: AtomicUsize,
}

impl Identity for Signer {
    fn token(&self) -> BoxFuture<'static, Result<Token, IdentityError>> {
        let result = if self.is_down.load(Ordering::SeqCst) {
            Err(IdentityError::Unavailable("no gateway answers".to_owned()))
        } else {
            self.signed.fetch_add(1, Ordering::SeqCst);
            // {"alg":"ES256"}.{"aud":"vault.io"}
            let jwt = "eyJhbGciOiJFUzI1NiJ9.eyJhdWQiOiJ2YXVsdC5pbyJ9.PLANTED";
            Ok(Token::new(jwt))
        };
        Box::pin(async move { result })
    }
}

pub(crate) fn node(vault: &Vault) -> Node {
    let config = VaultConfig {
        enabled: true,
        address: vault.url(),
        timeout: Duration::from_secs(5),
        poll_interval: Duration::from_secs(1),
        default_role: "web".to_owned(),
        ..VaultConfig::default()
    };
    Node::new(Client::open(&config).unwrap(), &config)
}

pub(crate) fn keeper(node: &Node, role: &str, known: Option<Token>) -> (Keeper, Arc<Signer>) {
    let signer = Arc::new(Signer::default());
    let setup = Setup {
        provider: node.login(role, ""),
        identity: Arc::clone(&signer) as _,
        may_expire: false,
        known,
    };
    (Keeper::spawn(setup, StdRng::seed_from_u64(1)), signer)
}

/// Waits until the state is as wanted.
pub(crate) async fn until(keeper: &Keeper, wanted: impl FnMut(&State) -> bool) -> State {
    let mut state = keeper.state();
    let waiting = state.wait_for(wanted);
    let found = tokio::time::timeout(Duration::from_secs(20), waiting).await;
    found
        .expect("the state is reached in time")
        .unwrap()
        .clone()
}
