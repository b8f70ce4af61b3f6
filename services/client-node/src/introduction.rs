//! Certificate of a node that joins with a token: the first one at the start, the next ones before it
//! expires.
//!
//! The node makes its key before the first request and keeps it: a repeated request, after a lost answer
//! or a restart, gets the same id. In reading order: [`CertificateFiles`] are the node's own certificate
//! and key, [`introduce`] gets the first certificate, [`renewal`] the next ones. Certificates that operators make
//! are not touched: those in `tls.cert_file` without a token.

mod renewal;

use std::path::Path;
use std::time::Duration;

use gateway_calls::cause;
use identity::Role;
use local_state::CertificateFiles;
use proto::internal::v1::IntroduceNodeRequest;
use proto::internal::v1::node_introductions_client::NodeIntroductionsClient;
use service_kit::{Backoff, IdSource, Transport, request};
use tls::Problem;
use tokio::time::sleep;
use tonic::{Code, Status};
use tracing::{info, warn};

pub(crate) use self::renewal::run as keep_renewed;
use crate::config::Config;
use crate::error::Error;

/// Timeout of one request for a certificate: the gateway reads and writes its store.
const CALL_TIMEOUT: Duration = Duration::from_secs(15);
/// Shortest and longest pause between attempts: a gateway that starts is found within seconds, and one
/// that is misconfigured is not asked more often than a person looks.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(15));

/// Fills in the files of the node's own certificate, and gets the first one with the token of the
/// configuration if there is none, or only an expired one. Returns the files, to be renewed; `None`: the
/// node runs in plaintext, or with a certificate that operators make.
///
/// Waits for a gateway, without a limit.
///
/// # Errors
/// The token is refused, there is none, or a file cannot be read or written.
pub(crate) async fn prepare(
    config: &mut Config,
    ids: &IdSource,
) -> Result<Option<CertificateFiles>, Error> {
    let has_token = config.introduction.is_set();
    let chosen = CertificateFiles::choose(&config.tls, config.data_dir.as_deref(), has_token);
    let chosen = chosen.map_err(|(field, problem)| Error::Setting {
        field: field.to_owned(),
        problem: problem.to_owned(),
    })?;
    let Some(files) = chosen else {
        return Ok(None);
    };
    config.tls.cert_file = Some(files.cert.clone());
    config.tls.key_file = Some(files.key.clone());
    // `CertificateFiles::choose` has checked it.
    let ca_file = config.tls.ca_file.clone().unwrap_or_default();
    if let Some(reason) = files.missing(now())? {
        let token = config.introduction.read()?.ok_or_else(|| Error::Setting {
            field: "introduction.token".to_owned(),
            problem: format!(
                "is not set, and {reason}: set it to a token from `kafila node introduction create`, or \
                 `tls.cert_file` and `tls.key_file` to a certificate of the node"
            ),
        })?;
        info!(reason, "joining with an introduction token");
        introduce(config, &ca_file, &token, &files, ids).await?;
    }
    Ok(Some(files))
}

fn now() -> i64 {
    let seconds = service_kit::Clock::real().now() / 1_000_000_000;
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

/// Asks one gateway after the other until one issues a certificate or refuses the token.
async fn introduce(
    config: &Config,
    ca_file: &Path,
    token: &str,
    files: &CertificateFiles,
    ids: &IdSource,
) -> Result<(), Error> {
    let transport = Transport::without_certificate(ca_file, &config.tls.region)?;
    let kept = match config.data_dir.as_deref() {
        Some(data_dir) => local_state::kept_node_id(data_dir)?,
        None => None,
    };
    let message = IntroduceNodeRequest {
        token: token.to_owned(),
        signing_request: files.signing_request()?,
        node_id: kept.map_or_else(String::new, |id| id.to_string()),
    };
    let mut backoff = Backoff::new(BACKOFF.0, BACKOFF.1);
    let mut rng = ids.rng();
    loop {
        for gateway in &config.gateways {
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

/// Returns the reason of a failure, with the setting to change.
fn describe(status: &Status) -> String {
    match Problem::of(status) {
        Some(Problem::CertificateRequired) => {
            "the gateway wants a certificate, so it introduces no nodes: set `node_ca_cert_file` and \
             `node_ca_key_file` there"
                .to_owned()
        }
        Some(Problem::UnknownAuthority) => {
            "the authority in `tls.ca_file` has not issued the gateway's certificate: copy the CA's \
             certificate of this cluster"
                .to_owned()
        }
        Some(Problem::WrongName { expected, .. }) => format!(
            "the server is not a gateway of region `tls.region`: its certificate lacks the name {expected:?}"
        ),
        Some(Problem::NotTls) => "the gateway speaks no TLS: it runs in plaintext".to_owned(),
        Some(problem) => problem.to_string(),
        None if status.code() == Code::Unimplemented => {
            "the gateway introduces no nodes: its version of Kafila is older".to_owned()
        }
        None => status.message().to_owned(),
    }
}
