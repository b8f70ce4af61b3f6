//! Vault as the login provider of a task.

use futures::future::BoxFuture;
use login_provider::{Cause, Grant, LoginProvider, ProviderError, Token};
use vault::{Auth, Client, Failure, Login};

/// Logins of one task.
pub(crate) struct VaultLogin {
    /// In the task's namespace.
    pub(crate) client: Client,
    /// Path of the auth method.
    pub(crate) path: String,
    /// Empty: the default role of the auth method.
    pub(crate) role: String,
}

impl LoginProvider for VaultLogin {
    fn name(&self) -> &'static str {
        "Vault"
    }

    /// A renewal of a token that cannot be renewed is refused.
    fn tests_tokens(&self) -> bool {
        false
    }

    fn log_in(&self, jwt: Token) -> BoxFuture<'static, Result<Grant, ProviderError>> {
        let client = self.client.clone();
        let login = Login {
            path: self.path.clone(),
            role: self.role.clone(),
            jwt,
        };
        Box::pin(async move {
            let result = client.log_in(&login).await;
            result.map(grant).map_err(|failure| ProviderError {
                message: format!(
                    "the login at auth/{} failed: {failure}",
                    login.path.trim_matches('/')
                ),
                cause: cause(&failure),
            })
        })
    }

    fn renew(&self, token: Token) -> BoxFuture<'static, Result<Grant, ProviderError>> {
        let client = self.client.clone();
        Box::pin(async move { client.renew_self(&token).await.map(grant).map_err(error) })
    }

    fn revoke(&self, token: Token) -> BoxFuture<'static, Result<(), ProviderError>> {
        let client = self.client.clone();
        Box::pin(async move { client.revoke_self(&token).await.map_err(error) })
    }
}

fn grant(auth: Auth) -> Grant {
    Grant {
        lifetime: auth.lifetime(),
        token: auth.token,
        accessor: auth.accessor,
        is_renewable: auth.renewable,
    }
}

fn error(failure: Failure) -> ProviderError {
    ProviderError {
        message: failure.to_string(),
        cause: cause(&failure),
    }
}

fn cause(failure: &Failure) -> Cause {
    match failure {
        _ if failure.is_transient() => Cause::Transient {
            retry_after: failure.retry_after(),
        },
        Failure::Forbidden { .. } => Cause::Denied,
        _ => Cause::Refused,
    }
}
