//! Identity tokens of tasks, from the current gateway.

use std::sync::Arc;
use std::time::Duration;

use gateway_calls::{Gateways, cause};
use model::Timestamp;
use proto::internal::v1::{IdentityRequest, SignIdentitiesRequest, SignedIdentity};
use service_kit::request;
use task_drivers::driver::BoxFuture;
use task_runner::{TokenError, TokenSource};
use tonic::Status;
use workload_identity::{SignedToken, Token, TokenRequest, Workload};

/// Timeout of a call: a gateway signs within milliseconds, and may wait for the store first.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// The tokens of one node's tasks.
pub(crate) struct Tokens {
    pub(crate) gateways: Arc<Gateways>,
    pub(crate) node_id: String,
    pub(crate) secret: String,
}

/// Leaves out the secret.
impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens")
            .field("node_id", &self.node_id)
            .finish_non_exhaustive()
    }
}

impl TokenSource for Tokens {
    fn sign(
        &self,
        requests: Vec<TokenRequest>,
    ) -> BoxFuture<'static, Result<Vec<SignedToken>, TokenError>> {
        let message = SignIdentitiesRequest {
            node_id: self.node_id.clone(),
            secret: self.secret.clone(),
            requests: requests.into_iter().map(to_wire).collect(),
        };
        let gateways = Arc::clone(&self.gateways);
        Box::pin(async move {
            let asked = gateways
                .call(async |mut client| {
                    client.sign_identities(request(message, CALL_TIMEOUT)).await
                })
                .await;
            let answer = asked.map_err(|status| error(&status))?;
            Ok(answer.identities.into_iter().map(from_wire).collect())
        })
    }
}

fn to_wire(wanted: TokenRequest) -> IdentityRequest {
    let (task, service) = match wanted.workload {
        Workload::Task(task) => (task, String::new()),
        Workload::Service { task, name } => (task.unwrap_or_default(), name),
    };
    IdentityRequest {
        alloc_id: wanted.alloc_id.to_string(),
        task,
        service,
        identity: wanted.identity,
        audience: wanted.audience,
    }
}

fn from_wire(signed: SignedIdentity) -> SignedToken {
    SignedToken {
        token: Token::new(signed.token),
        issued_at: Timestamp(signed.issued_at_ns),
        expires_at: Timestamp(signed.expires_at_ns),
    }
}

/// A node that is not registered yet is soon; the other refusals stay.
fn error(status: &Status) -> TokenError {
    let message = status.message().to_owned();
    if cause(status).refuses_tokens() {
        TokenError::Refused(message)
    } else {
        TokenError::Unavailable(message)
    }
}
