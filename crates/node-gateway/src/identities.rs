//! Identity tokens of the tasks of a node: requests read, decided on by `admission`, and signed.

use admission::nodes::identities::{self as decision, IdentityRefusal};
use gateway_core::Error;
use model::{FieldErrors, NodeId};
use proto::internal::v1::{
    IdentityRequest, SignIdentitiesRequest, SignIdentitiesResponse, SignedIdentity,
};
use state::Snapshot;
use tonic::Code;
use workload_identity::{Grant, TokenRequest, Workload};

use crate::node_gateway::NodeGateway;

/// Tokens in one request: those of all tasks of an allocation. A signature takes some 50 µs.
const MAX_REQUESTS: usize = 64;
/// Audiences of one token.
const MAX_AUDIENCES: usize = 16;
/// Bytes of a name or an audience in a request.
const MAX_TEXT: usize = 256;

/// Reads the requests of a node.
///
/// # Errors
/// All invalid fields.
pub(crate) fn read(request: &SignIdentitiesRequest) -> Result<Vec<TokenRequest>, FieldErrors> {
    let mut errors = FieldErrors::default();
    let count = request.requests.len();
    if count == 0 || count > MAX_REQUESTS {
        let message = format!("has {count} entries: want 1 to {MAX_REQUESTS}");
        errors.push("requests", message);
        return Err(errors);
    }
    let mut read = Vec::with_capacity(count);
    for (position, one) in request.requests.iter().enumerate() {
        read.extend(read_one(one, &format!("requests[{position}]"), &mut errors));
    }
    errors.into_result(read)
}

fn read_one(one: &IdentityRequest, at: &str, errors: &mut FieldErrors) -> Option<TokenRequest> {
    let alloc_id = one
        .alloc_id
        .parse()
        .map_err(|error: model::ids::InvalidId| {
            errors.push(format!("{at}.alloc_id"), error.to_string());
        });
    let names = [
        ("task", &one.task),
        ("service", &one.service),
        ("identity", &one.identity),
    ];
    for (field, text) in names {
        if text.len() > MAX_TEXT {
            let message = format!("has {} bytes: want at most {MAX_TEXT}", text.len());
            errors.push(format!("{at}.{field}"), message);
        }
    }
    if one.identity.is_empty() {
        errors.push(format!("{at}.identity"), "missing: want a name");
    }
    let is_large = one.audience.iter().any(|text| text.len() > MAX_TEXT);
    if one.audience.len() > MAX_AUDIENCES || is_large {
        let message = format!("want at most {MAX_AUDIENCES} texts of at most {MAX_TEXT} bytes");
        errors.push(format!("{at}.audience"), message);
    }
    let task = Some(one.task.clone()).filter(|task| !task.is_empty());
    let workload = match (task, one.service.as_str()) {
        (Some(task), "") => Workload::Task(task),
        (None, "") => {
            errors.push(format!("{at}.task"), "missing: want a task or a service");
            return None;
        }
        (task, service) => Workload::Service {
            task,
            name: service.to_owned(),
        },
    };
    Some(TokenRequest {
        alloc_id: alloc_id.ok()?,
        workload,
        identity: one.identity.clone(),
        audience: one.audience.clone(),
    })
}

/// Signs a token for each request.
///
/// # Errors
/// The node may not have one of them, or this gateway cannot sign.
pub(crate) async fn sign(
    gateway: &NodeGateway,
    node_id: NodeId,
    requests: &[TokenRequest],
) -> Result<SignIdentitiesResponse, Error> {
    let core = &gateway.core;
    let decide = |snapshot: &Snapshot| -> Result<Vec<Grant>, IdentityRefusal> {
        let grant = |request| decision::grant(snapshot, node_id, request);
        requests.iter().map(grant).collect()
    };
    let grants = match decide(&core.snapshot(true).await?) {
        Ok(grants) => grants,
        // The allocation may have been placed a moment ago. A refusal is final for the node, so it needs
        // fresh state.
        Err(_) => decide(&core.fresh().await?)?,
    };
    let now = core.now();
    let pair = gateway
        .keyring
        .signer
        .active(&core.replica.snapshot(), now)?;
    let issuer = gateway.config.oidc_issuer.as_deref();
    let mut identities = Vec::with_capacity(grants.len());
    for grant in &grants {
        let jti = format!("{:032x}", core.ids.next_u128());
        let claims = grant.claims(now, jti, issuer);
        let token = pair
            .sign(&claims, gateway.keyring.signer.random())
            .map_err(|error| Error::new(Code::Internal, error))?;
        identities.push(SignedIdentity {
            token: token.expose().to_owned(),
            issued_at_ns: now.0,
            expires_at_ns: now.plus(grant.ttl).0,
        });
    }
    Ok(SignIdentitiesResponse { identities })
}
