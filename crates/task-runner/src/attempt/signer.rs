//! The identity of a task towards Vault and Consul: each login has a JWT of its own, signed by a gateway.

use std::sync::Arc;

use model::{AllocId, Task};
use task_drivers::driver::BoxFuture;
use workload_identity::{Token, TokenRequest, Workload};

use super::Attempt;
use crate::token_source::{TokenError, TokenSource};

/// Signs JWTs for the logins of one task.
pub(super) struct Signer {
    tokens: Arc<dyn TokenSource>,
    alloc_id: AllocId,
    task: String,
    identity: String,
    audience: Vec<String>,
}

/// A missing JWT, with the reason.
pub(super) enum SigningError {
    /// A retry may succeed.
    Unavailable(String),
    Refused(String),
}

impl Signer {
    /// `audience`: that of the node, for an identity that the job does not declare.
    pub(super) fn new(
        attempt: &Attempt,
        task: &Task,
        identity: String,
        audience: &[String],
    ) -> Self {
        let is_declared = task.identities.iter().any(|it| it.name == identity);
        Self {
            tokens: Arc::clone(&attempt.context.tokens),
            alloc_id: attempt.id.alloc_id,
            task: attempt.id.task.clone(),
            identity,
            // The job's own audience counts.
            audience: if is_declared {
                Vec::new()
            } else {
                audience.to_vec()
            },
        }
    }

    pub(super) fn sign(&self) -> BoxFuture<'static, Result<Token, SigningError>> {
        let request = TokenRequest {
            alloc_id: self.alloc_id,
            workload: Workload::Task(self.task.clone()),
            identity: self.identity.clone(),
            audience: self.audience.clone(),
        };
        let signing = self.tokens.sign(vec![request]);
        Box::pin(async move {
            let about = |reason: String| format!("identity token: {reason}");
            let signed = signing.await.map_err(|error| match error {
                TokenError::Unavailable(reason) => SigningError::Unavailable(about(reason)),
                TokenError::Refused(reason) => SigningError::Refused(about(reason)),
            })?;
            let first = signed.into_iter().next();
            let first = first.ok_or_else(|| {
                SigningError::Unavailable(about("the gateway sent none".to_owned()))
            })?;
            Ok(first.token)
        })
    }
}
