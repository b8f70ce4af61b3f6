//! First certificate of a node that joins with a token.

use std::path::Path;
use std::time::Duration;

use gateway_calls::cause;
use identity::Role;
use local_state::CertificateFiles;
use proto::internal::v1::IntroduceNodeRequest;
use proto::internal::v1::node_introductions_client::NodeIntroductionsClient;
use service_kit::{Backoff, IdSource, TlsConfig, Transport, request};
use tokio::time::sleep;
use tonic::Status;
use tracing::{info, warn};

use crate::config::IntroductionConfig;
use crate::error::Error;
use crate::status::{CALL_TIMEOUT, describe};

/// Shortest and longest pause between attempts: a gateway that starts is found within seconds, and one
/// that is misconfigured is not asked more often than a person looks.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(15));

/// Settings of a node that the introduction depends on.
#[derive(Clone, Copy, Debug)]
pub struct Joining<'a> {
    pub introduction: &'a IntroductionConfig,
    /// The gateways to ask, in this order.
    pub gateways: &'a [String],
    pub data_dir: Option<&'a Path>,
    /// The pool and the name that the node registers with: a token may be for others.
    pub node_pool: &'a str,
    pub node_name: &'a str,
}

/// Fills in the files of the node's own certificate in `tls`, and gets the first one with the token of the
/// configuration if there is none, or only an expired one. Returns the files, to be renewed; `None`: the
/// node runs in plaintext, or with a certificate that operators make.
///
/// Waits for a gateway, without a limit. The caller has checked everything else that the node needs: a start
/// that fails after this has used the token.
///
/// # Errors
/// The token is refused, there is none, or a file cannot be read or written.
pub async fn prepare(
    joining: Joining<'_>,
    tls: &mut TlsConfig,
    ids: &IdSource,
) -> Result<Option<CertificateFiles>, Error> {
    let has_token = joining.introduction.is_set();
    let chosen = CertificateFiles::choose(tls, joining.data_dir, has_token);
    let chosen = chosen.map_err(|(field, problem)| Error::Setting {
        field,
        problem: problem.to_owned(),
    })?;
    let Some(files) = chosen else {
        return Ok(None);
    };
    tls.cert_file = Some(files.cert.clone());
    tls.key_file = Some(files.key.clone());
    if let Some(reason) = files.missing(now())? {
        let token = joining
            .introduction
            .read()
            .map_err(|(field, problem)| Error::Setting { field, problem })?
            .ok_or_else(|| Error::Setting {
                field: "introduction.token",
                problem: format!(
                    "is not set, and {reason}: set it to a token from `kafila node introduction create`, or \
                     `tls.cert_file` and `tls.key_file` to a certificate of the node"
                ),
            })?;
        if joining.data_dir.is_none() {
            // Its tasks need one, and with one later it would be another node.
            return Err(Error::Setting {
                field: "data_dir",
                problem: "is not set, and the node would join with a token: want a directory for its identity, its \
                          state and its tasks, as in /var/lib/kafila"
                    .to_owned(),
            });
        }
        files.check_writable()?;
        info!(reason, "joining with an introduction token");
        introduce(joining, tls, &token, &files, ids).await?;
    }
    Ok(Some(files))
}

fn now() -> i64 {
    let seconds = service_kit::Clock::real().now() / 1_000_000_000;
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

/// Asks one gateway after the other until one issues a certificate or refuses the token.
async fn introduce(
    joining: Joining<'_>,
    tls: &TlsConfig,
    token: &str,
    files: &CertificateFiles,
    ids: &IdSource,
) -> Result<(), Error> {
    // `CertificateFiles::choose` has checked it.
    let ca_file = tls.ca_file.as_deref().unwrap_or(Path::new(""));
    let transport = Transport::without_certificate(ca_file, &tls.region)?;
    let kept = match joining.data_dir {
        Some(data_dir) => local_state::kept_node_id(data_dir)?,
        None => None,
    };
    let message = IntroduceNodeRequest {
        token: token.to_owned(),
        signing_request: files.signing_request()?,
        node_id: kept.map_or_else(String::new, |id| id.to_string()),
        node_pool: joining.node_pool.to_owned(),
        node_name: joining.node_name.to_owned(),
    };
    let mut backoff = Backoff::new(BACKOFF.0, BACKOFF.1);
    let mut rng = ids.rng();
    loop {
        for gateway in joining.gateways {
            let gateway = &transport.dialed(gateway);
            let status = match ask(&transport, gateway, &message).await {
                Ok(answer) => {
                    files.store(&answer.certificate)?;
                    info!(
                        node_id = answer.node_id,
                        gateway, "the node has a certificate"
                    );
                    return Ok(());
                }
                Err(status) => status,
            };
            let problem = describe(&status);
            if cause(&status).ends_introduction() {
                return Err(Error::Refused {
                    gateway: gateway.clone(),
                    problem,
                });
            }
            warn!(
                gateway,
                problem, "no certificate from this gateway; retrying"
            );
        }
        sleep(backoff.next(&mut rng)).await;
    }
}

async fn ask(
    transport: &Transport,
    gateway: &str,
    message: &IntroduceNodeRequest,
) -> Result<proto::internal::v1::IntroduceNodeResponse, Status> {
    let channel = transport.connect_lazy(gateway, Role::Gateway);
    let channel = channel.map_err(|error| Status::unavailable(error.to_string()))?;
    let mut client = NodeIntroductionsClient::new(channel);
    let answer = client.introduce(request(message.clone(), CALL_TIMEOUT));
    Ok(answer.await?.into_inner())
}
