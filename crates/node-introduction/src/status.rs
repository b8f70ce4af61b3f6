//! Explanations of failed calls, each with the setting to change.

use std::time::Duration;

use tls::Problem;
use tonic::{Code, Status};

/// Timeout of one request for a certificate: the gateway reads and writes its store.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(15);

/// Returns the reason of a failure, with the setting to change.
pub(crate) fn describe(status: &Status) -> String {
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
