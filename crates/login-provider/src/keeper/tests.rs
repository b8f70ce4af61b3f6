//! The keeper with a provider whose answers the tests choose, in paused time.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use futures::future::BoxFuture;
use rand::SeedableRng as _;

use super::*;

/// Answers each call with the next answer; the last one stays.
#[derive(Default)]
struct Scripted {
    grants: Mutex<VecDeque<Result<Grant, ProviderError>>>,
    revocations: Mutex<VecDeque<Result<(), ProviderError>>>,
    calls: Mutex<Vec<&'static str>>,
}

impl Scripted {
    fn note(&self, call: &'static str) {
        lock(&self.calls).push(call);
    }

    fn calls(&self) -> Vec<&'static str> {
        lock(&self.calls).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn next<T: Clone>(answers: &Mutex<VecDeque<T>>) -> T {
    let mut answers = lock(answers);
    match answers.len() {
        1 => answers[0].clone(),
        _ => answers.pop_front().unwrap(),
    }
}

impl LoginProvider for Scripted {
    fn name(&self) -> &'static str {
        "Scripted"
    }

    fn tests_tokens(&self) -> bool {
        true
    }

    fn log_in(&self, _: Token) -> BoxFuture<'static, Result<Grant, ProviderError>> {
        self.note("log in");
        let answer = next(&self.grants);
        Box::pin(async { answer })
    }

    fn renew(&self, _: Token) -> BoxFuture<'static, Result<Grant, ProviderError>> {
        self.note("renew");
        let answer = next(&self.grants);
        Box::pin(async { answer })
    }

    fn revoke(&self, _: Token) -> BoxFuture<'static, Result<(), ProviderError>> {
        self.note("revoke");
        let answer = next(&self.revocations);
        Box::pin(async { answer })
    }
}

struct Jwt;

impl Identity for Jwt {
    fn token(&self) -> BoxFuture<'static, Result<Token, IdentityError>> {
        Box::pin(async { Ok(Token::new("jwt")) })
    }
}

fn grant(token: &str) -> Result<Grant, ProviderError> {
    Ok(Grant {
        token: Token::new(token),
        ..Grant::default()
    })
}

fn failed<T>(cause: Cause) -> Result<T, ProviderError> {
    Err(ProviderError {
        message: format!("{cause:?}"),
        cause,
    })
}

const DOWN: Cause = Cause::Transient { retry_after: None };

fn keeper(
    grants: impl IntoIterator<Item = Result<Grant, ProviderError>>,
    revocations: impl IntoIterator<Item = Result<(), ProviderError>>,
) -> (Keeper, Arc<Scripted>) {
    let provider = Arc::new(Scripted {
        grants: Mutex::new(grants.into_iter().collect()),
        revocations: Mutex::new(revocations.into_iter().collect()),
        ..Scripted::default()
    });
    let setup = Setup {
        provider: Arc::clone(&provider) as _,
        identity: Arc::new(Jwt),
        may_expire: false,
        known: None,
    };
    (Keeper::spawn(setup, StdRng::seed_from_u64(1)), provider)
}

async fn until(keeper: &Keeper, wanted: impl FnMut(&State) -> bool) -> State {
    let mut state = keeper.state();
    let waiting = tokio::time::timeout(Duration::from_secs(3_600), state.wait_for(wanted));
    waiting.await.expect("the state comes").unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn a_token_that_was_revoked_elsewhere_is_replaced_after_a_requested_test() {
    let answers = [grant("one"), failed(Cause::Denied), grant("two")];
    let (keeper, provider) = keeper(answers, [Ok(())]);
    until(&keeper, |state| state.generation == 1).await;
    // A fresh token may be unknown to some servers.
    sleep(Duration::from_secs(60)).await;
    keeper.token().request_test();
    let state = until(&keeper, |state| state.generation == 2).await;
    assert_eq!(state.token, Some(Token::new("two")));
    assert_eq!(provider.calls(), ["log in", "renew", "log in"]);
}

#[tokio::test(start_paused = true)]
async fn the_problem_of_a_failed_test_ends_with_the_next_success() {
    let answers = [grant("one"), failed(DOWN), grant("one")];
    let (keeper, _) = keeper(answers, [Ok(())]);
    until(&keeper, |state| state.generation == 1).await;
    sleep(Duration::from_secs(60)).await;
    keeper.token().request_test();
    let state = until(&keeper, |state| state.problem.is_some()).await;
    assert_eq!(state.token, Some(Token::new("one")), "it may still work");
    let state = until(&keeper, |state| state.problem.is_none()).await;
    assert_eq!(state.generation, 1);
}

#[tokio::test(start_paused = true)]
async fn a_revocation_is_retried_a_few_times() {
    for (answers, calls) in [
        (vec![failed(DOWN), Ok(())], 2),
        // It has ended already.
        (vec![failed(Cause::Denied)], 1),
        (vec![failed(Cause::Refused)], 1),
        (vec![failed(DOWN)], 4),
    ] {
        let (keeper, provider) = keeper([grant("one")], answers);
        until(&keeper, |state| state.token.is_some()).await;
        keeper.revoke().await;
        let revoked = provider.calls();
        assert_eq!(
            revoked.iter().filter(|call| **call == "revoke").count(),
            calls
        );
    }
}
