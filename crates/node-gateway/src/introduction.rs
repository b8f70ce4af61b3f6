//! `kafila.internal.v1.NodeIntroductions`: certificates of nodes, by an introduction token and by the
//! present certificate.
//!
//! `admission` decides; this file reads the CA of nodes, and signs. Secrets of tokens appear
//! in no log and no trace.

use std::sync::Arc;

use admission::nodes::hashes::{node_id_of, sha256};
use admission::nodes::introduction::{self, Introduction, read_token};
use gateway_core::{Error, Step};
use identity::{Caller, Identity, Role};
use model::refusal::{Kind, Refusal};
use model::{NodeId, Timestamp};
use pki::{Authority, Moment, Serial, SigningRequest};
use proto::internal::v1::node_introductions_server::{NodeIntroductions, NodeIntroductionsServer};
use proto::internal::v1::{
    IntroduceNodeRequest, IntroduceNodeResponse, RenewCertificateRequest, RenewCertificateResponse,
};
use state::Snapshot;
use tonic::{Code, Request, Response, Status};
use tracing::{info, warn};

use crate::node_ca::NodeCa;
use crate::node_gateway::NodeGateway;

/// Introductions at one time: callers without a certificate share them, and each reads the store.
pub(crate) const MAX_INTRODUCTIONS: usize = 32;
/// The largest request. A signing request has some 200 bytes with ECDSA, 1,000 with RSA.
const MAX_INTRODUCTION_BYTES: usize = 16 * 1_024;

/// This gateway issues no certificates.
#[derive(Debug, thiserror::Error)]
#[error(
    "this gateway introduces no nodes: set `node_ca_cert_file` and `node_ca_key_file` at every gateway \
     (`kafila tls ca create -node-ca`), or create the node's certificate with `kafila tls cert create \
     -role=node`"
)]
struct NoNodeCa;

impl Refusal for NoNodeCa {
    fn kind(&self) -> Kind {
        Kind::Precondition
    }
}

/// Too many introductions run at the same time.
#[derive(Debug, thiserror::Error)]
#[error("{MAX_INTRODUCTIONS} introductions of nodes are in progress: try again")]
struct TooMany;

impl Refusal for TooMany {
    fn kind(&self) -> Kind {
        Kind::Overloaded
    }
}

impl NodeGateway {
    /// Returns the CA of nodes.
    ///
    /// # Errors
    /// The gateway has none.
    pub fn node_ca(&self) -> Result<&NodeCa, Error> {
        let node_ca = self.config.node_ca.as_ref();
        node_ca.ok_or_else(|| Error::refused(NoNodeCa))
    }

    async fn introduce(
        &self,
        request: IntroduceNodeRequest,
    ) -> Result<IntroduceNodeResponse, Error> {
        let _permit = self
            .introducing
            .try_acquire()
            .map_err(|_| Error::refused(TooMany))?;
        let issuer = Issuer::open(self).await?;
        let Some((token_id, secret)) = read_token(&request.token) else {
            let message = "is not a valid introduction token: want one from `kafila node introduction create`";
            return Err(Error::invalid_field("token", message));
        };
        let key = Key::read(&request.signing_request)?;
        let kept_node_id = match request.node_id.as_str() {
            "" => None,
            text => Some(admission::nodes::session::node_id(text)?),
        };
        let introduction = Introduction {
            token_id,
            secret_sha256: sha256(&[secret.as_bytes()]),
            public_key_sha256: key.sha256.clone(),
            key_node_id: node_id_of(&key.request.public_key()),
            kept_node_id,
            node_pool: request.node_pool,
            node_name: request.node_name,
            certified_until: issuer.until,
        };
        let decide = |snapshot: &Snapshot| {
            let granted = introduction::introduce(snapshot, &introduction, issuer.now)?;
            let node_id = granted.node_id;
            Ok(Step::Commit {
                writes: granted.writes,
                answer: Box::new(move |_| node_id),
            })
        };
        let what = || format!("introduction token {token_id}");
        let node_id = self.core.execute(what, decide).await?;
        let certificate = issuer.issue(&key, node_id)?;
        self.metrics.count_introduction("introduced");
        info!(%node_id, %token_id, "node introduced: it has a certificate");
        Ok(IntroduceNodeResponse {
            node_id: node_id.to_string(),
            certificate,
        })
    }

    async fn renew(
        &self,
        caller: &Caller,
        request: RenewCertificateRequest,
    ) -> Result<RenewCertificateResponse, Error> {
        let issuer = Issuer::open(self).await?;
        let key = Key::read(&request.signing_request)?;
        let node_id = caller
            .identity()
            .and_then(|identity| identity.name().parse::<NodeId>().ok())
            .ok_or_else(|| Error::invalid_field("certificate", "names no node"))?;
        let decide = |snapshot: &Snapshot| {
            let writes = introduction::renew(snapshot, node_id, &key.sha256, issuer.until)?;
            Ok(Step::Commit {
                writes,
                answer: Box::new(|_| ()),
            })
        };
        let what = || format!("the introduction of node {node_id}");
        self.core.execute(what, decide).await?;
        let certificate = issuer.issue(&key, node_id)?;
        self.metrics.count_introduction("renewed");
        info!(%node_id, "certificate of the node renewed");
        Ok(RenewCertificateResponse { certificate })
    }
}

/// The key of a node.
struct Key {
    request: SigningRequest,
    sha256: String,
}

impl Key {
    fn read(der: &[u8]) -> Result<Self, Error> {
        let request = SigningRequest::read(der).map_err(|error| {
            let message = service_kit::run::chain(&error);
            Error::invalid_field("signing_request", message)
        })?;
        let sha256 = sha256(&[&request.public_key()]);
        Ok(Self { request, sha256 })
    }
}

/// The CA of nodes for one certificate. It is read before anything is written, so that a broken one
/// costs no use of a token.
struct Issuer<'a> {
    gateway: &'a NodeGateway,
    node_ca: &'a NodeCa,
    authority: Authority,
    now: Timestamp,
    /// The end of the certificate.
    until: Timestamp,
}

impl<'a> Issuer<'a> {
    async fn open(gateway: &'a NodeGateway) -> Result<Self, Error> {
        let node_ca = gateway.node_ca()?;
        let reader = node_ca.clone();
        let read = tokio::task::spawn_blocking(move || reader.read()).await;
        let authority = read
            .map_err(|error| Error::new(Code::Internal, error))?
            .map_err(|error| {
                warn!(
                    error = service_kit::run::chain(&error),
                    "the CA of nodes cannot be used"
                );
                Error::new(Code::Unavailable, error)
            })?;
        let now = gateway.core.now();
        let end = u64::try_from(authority.description().not_after).unwrap_or(0);
        if end <= now.as_secs() {
            return Err(Error::new(Code::Unavailable, pki::Error::AuthorityExpired));
        }
        Ok(Self {
            gateway,
            node_ca,
            authority,
            now,
            until: now
                .plus(node_ca.certificate_ttl)
                .min(Timestamp::from_secs(end)),
        })
    }

    /// Returns a certificate of the node, as PEM.
    fn issue(&self, key: &Key, node_id: NodeId) -> Result<String, Error> {
        let failed = |error: pki::Error| Error::new(Code::Internal, error);
        let identity = Identity::new(Role::Node, &self.node_ca.region, &node_id.to_string())
            .map_err(|error| failed(error.into()))?;
        let moment = Moment {
            now: i64::try_from(self.now.as_secs()).unwrap_or(i64::MAX),
            serial: Serial(self.gateway.core.ids.next_u128()),
        };
        let ttl = self.node_ca.certificate_ttl;
        let certified = self.authority.certify(&key.request, &identity, ttl, moment);
        Ok(certified.map_err(failed)?.certificate_pem)
    }
}

/// Implements the RPCs. Cheap to clone.
#[derive(Clone, Debug)]
pub struct IntroductionApi {
    gateway: Arc<NodeGateway>,
}

/// Returns the gRPC service of `gateway`.
pub fn service(gateway: Arc<NodeGateway>) -> NodeIntroductionsServer<IntroductionApi> {
    NodeIntroductionsServer::new(IntroductionApi { gateway })
        .max_decoding_message_size(MAX_INTRODUCTION_BYTES)
}

impl IntroductionApi {
    fn answer<T>(&self, result: Result<T, Error>) -> Result<Response<T>, Status> {
        match result {
            Ok(answer) => Ok(Response::new(answer)),
            Err(error) => {
                self.gateway.metrics.count_introduction("refused");
                Err(error.into())
            }
        }
    }
}

#[tonic::async_trait]
impl NodeIntroductions for IntroductionApi {
    async fn introduce(
        &self,
        request: Request<IntroduceNodeRequest>,
    ) -> Result<Response<IntroduceNodeResponse>, Status> {
        let answer = Box::pin(self.gateway.introduce(request.into_inner())).await;
        self.answer(answer)
    }

    async fn renew(
        &self,
        request: Request<RenewCertificateRequest>,
    ) -> Result<Response<RenewCertificateResponse>, Status> {
        let caller = Caller::of(request.extensions());
        let answer = Box::pin(self.gateway.renew(&caller, request.into_inner())).await;
        self.answer(answer)
    }
}
