//! Identity tokens of tasks, from the current gateway.

use std::sync::Arc;

use gateway_calls::cause;
use model::Timestamp;
use proto::internal::v1::{IdentityRequest, SignIdentitiesRequest, SignedIdentity};
use service_kit::request;
use task_drivers::driver::BoxFuture;
use task_runner::{TokenError, TokenSource};
use tonic::Status;
use workload_identity::{SignedToken, Token, TokenRequest, Workload};

use crate::sources::{CALL_TIMEOUT, GatewaySources};

impl TokenSource for GatewaySources {
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
