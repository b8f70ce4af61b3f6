//! Messages for connections that TLS refuses.

use tls::Problem;

use crate::address::Address;

/// Describes `problem` with the remedy; `doing` completes "Error …".
pub(super) fn text(doing: &str, address: &Address, problem: &Problem) -> String {
    let (what, remedy) = describe(problem);
    let Address { url, source } = address;
    format!("Error {doing}: {what} at {url} ({source}).\n{remedy}")
}

/// Returns the problem, up to the address, and the remedy.
pub(super) fn describe(problem: &Problem) -> (String, String) {
    let gateways = "The name of gateways in region global is gateway.global.kafila: set it with \
                    -tls-server-name or KAFILA_TLS_SERVER_NAME,\nor use an address that the \
                    certificate names.";
    let (what, remedy): (String, &str) = match problem {
        Problem::NotTls => (
            "no TLS is spoken by the server".to_owned(),
            "Use http:// in -address or KAFILA_ADDR if this is a cluster for development.",
        ),
        Problem::NeedsTls => (
            "TLS is required by the gateway".to_owned(),
            "Use https:// in -address or KAFILA_ADDR, and set -ca-cert, -client-cert and -client-key \
             (KAFILA_CACERT, KAFILA_CLIENT_CERT, KAFILA_CLIENT_KEY).",
        ),
        Problem::UnknownAuthority => (
            "an unknown authority has issued the certificate of the gateway".to_owned(),
            "Name the certificate of the cluster's authority with -ca-cert or KAFILA_CACERT.",
        ),
        Problem::Expired => (
            "an expired certificate is used by the gateway".to_owned(),
            "Replace it on the gateway's machine (`kafila tls cert create`); it is reloaded without a \
             restart.",
        ),
        Problem::NotYetValid => (
            "a certificate that is not valid yet is used by the gateway".to_owned(),
            "Compare the clocks of this machine and of the gateway.",
        ),
        Problem::WrongName {
            expected,
            presented,
        } => (
            format!(
                "a certificate for {} instead of {expected} is used by the server",
                presented.join(", ")
            ),
            gateways,
        ),
        Problem::CertificateRequired => (
            "a client certificate is required by the gateway".to_owned(),
            "Set -client-cert and -client-key, or KAFILA_CLIENT_CERT and KAFILA_CLIENT_KEY.",
        ),
        Problem::CertificateRefused { reason } => (
            format!("the client certificate was refused ({reason}) by the gateway"),
            "Create a new one with `kafila tls cert create -role operator`, and set it with \
             -client-cert and -client-key.",
        ),
        Problem::Other(text) => (
            format!("TLS failed ({text}) with the server"),
            "Compare the versions and certificates of both sides.",
        ),
    };
    (what, remedy.to_owned())
}
