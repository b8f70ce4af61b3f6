//! Messages for calls that TLS prevents, with the settings of the node that help.

use std::error::Error as _;

use tls::Problem;
use tonic::Status;

/// Returns what TLS prevented, and the settings to check; `None` when TLS is not the reason.
pub(crate) fn text(status: &Status) -> Option<String> {
    // A status without a cause is the gateway's, which may tell of connections of its own.
    let seen = status.source().and_then(Problem::of);
    let problem = seen.or_else(|| Problem::of_answer(status.message()))?;
    Some(format!("{problem}: {}", remedy(&problem)))
}

fn remedy(problem: &Problem) -> &'static str {
    match problem {
        Problem::NeedsTls => "set tls.ca_file, tls.cert_file and tls.key_file of this node",
        Problem::NotTls => "start the gateway with certificates, or this node with tls.insecure",
        Problem::UnknownAuthority => {
            "tls.ca_file of this node and the gateway's certificate come from different authorities"
        }
        Problem::Expired => "replace the gateway's certificate; it is reloaded without a restart",
        Problem::NotYetValid => "compare the clocks of this machine and of the gateway",
        Problem::WrongName { .. } | Problem::WrongServer(_) => {
            "check that the address is a gateway's, and tls.region of both"
        }
        Problem::CertificateRequired | Problem::CertificateRefused { .. } => {
            "check tls.cert_file and tls.key_file of this node"
        }
        Problem::Other(_) => "compare the versions and certificates of both sides",
    }
}
