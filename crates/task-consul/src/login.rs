//! Consul as the login provider of a task.
//!
//! A token of Consul cannot be renewed; its auth method may give it an end (`MaxTokenTTL`).

use std::collections::BTreeMap;
use std::time::Duration;

use consul::{AclToken, Client, Failure, Login};
use futures::future::BoxFuture;
use login_provider::{Cause, Grant, LoginProvider, ProviderError, Token};
use service_kit::Clock;

/// Logins of one task.
pub(crate) struct ConsulLogin {
    pub(crate) client: Client,
    pub(crate) auth_method: String,
    pub(crate) task: String,
    pub(crate) namespace: String,
    pub(crate) partition: String,
    /// Tells the time that a token's end is compared with.
    pub(crate) clock: Clock,
}

impl LoginProvider for ConsulLogin {
    fn name(&self) -> &'static str {
        "Consul"
    }

    fn tests_tokens(&self) -> bool {
        true
    }

    fn log_in(&self, jwt: Token) -> BoxFuture<'static, Result<Grant, ProviderError>> {
        let (client, clock) = (self.client.clone(), self.clock.clone());
        let login = Login {
            auth_method: self.auth_method.clone(),
            jwt,
            meta: BTreeMap::from([(
                "requested_by".to_owned(),
                format!("nomad_task_{}", self.task),
            )]),
            namespace: self.namespace.clone(),
            partition: self.partition.clone(),
        };
        Box::pin(async move {
            let result = client.log_in(&login).await;
            let result = result.map(|token| grant(token, &clock));
            result.map_err(|failure| ProviderError {
                message: format!(
                    "the login with the auth method {:?} failed: {failure}",
                    login.auth_method
                ),
                cause: cause(&failure),
            })
        })
    }

    fn renew(&self, token: Token) -> BoxFuture<'static, Result<Grant, ProviderError>> {
        let (client, clock) = (self.client.clone(), self.clock.clone());
        Box::pin(async move {
            let known = client.token_self(&token).await.map_err(error)?;
            Ok(grant(known, &clock))
        })
    }

    fn revoke(&self, token: Token) -> BoxFuture<'static, Result<(), ProviderError>> {
        let client = self.client.clone();
        Box::pin(async move { client.log_out(&token).await.map_err(error) })
    }
}

fn grant(token: AclToken, clock: &Clock) -> Grant {
    Grant {
        lifetime: lifetime(&token, clock),
        token: token.secret,
        accessor: token.accessor,
        is_renewable: false,
    }
}

/// Returns the time until a token ends; `None`: it does not.
fn lifetime(token: &AclToken, clock: &Clock) -> Option<Duration> {
    let end: jiff::Timestamp = token.expiration_time.as_ref()?.parse().ok()?;
    let end = Duration::try_from(end.duration_since(jiff::Timestamp::UNIX_EPOCH)).ok()?;
    Some(end.saturating_sub(Duration::from_nanos(clock.now())))
}

fn error(failure: Failure) -> ProviderError {
    ProviderError {
        message: failure.to_string(),
        cause: cause(&failure),
    }
}

fn cause(failure: &Failure) -> Cause {
    match failure {
        _ if failure.is_transient() => Cause::Transient { retry_after: None },
        Failure::Forbidden { .. } => Cause::Denied,
        _ => Cause::Refused,
    }
}

#[cfg(test)]
mod tests;
