//! Errors of certificates, with the flag that causes them and the fix.

use crate::args::tls::CertCreate;
use crate::error::Error;

/// The flags of a command.
pub(super) struct Flags {
    /// The one that names DNS names.
    dns_names: &'static str,
    ca: String,
    key: String,
}

impl Flags {
    pub(super) fn of_authority() -> Self {
        Self {
            dns_names: "-additional-domain",
            ca: String::new(),
            key: String::new(),
        }
    }

    pub(super) fn of_certificate(args: &CertCreate) -> Self {
        Self {
            dns_names: "-additional-dnsname",
            ca: format!("-ca={}", args.ca.display()),
            key: format!("-key={}", args.key.display()),
        }
    }
}

/// Returns the error for the user.
pub(super) fn text(error: &pki::Error, flags: &Flags) -> Error {
    use pki::Error as E;
    let (what, fix) = match error {
        E::Days { .. } => ("-days", ""),
        E::OutlivesAuthority { .. } => (
            "-days",
            " Choose fewer days, or create a new CA with 'kafila tls ca create'.",
        ),
        E::AuthorityExpired => (
            flags.ca.as_str(),
            " Create a new CA with 'kafila tls ca create'.",
        ),
        E::DnsName(_) => (
            flags.dns_names,
            " Pass a name such as kafila.example.com; for addresses there is -additional-ipaddress.",
        ),
        E::ReservedName(_) => (flags.dns_names, " Leave it out."),
        E::NotPermittedIdentity { .. } => (
            flags.ca.as_str(),
            " Pass the CA of the cluster, with its key.",
        ),
        E::NotPermitted { .. } => (
            flags.dns_names,
            " Leave it out, or create a CA with its domain: 'kafila tls ca create -name-constraint \
             -additional-domain=…'.",
        ),
        E::AddressOfClient(_) => ("-additional-ipaddress", ""),
        E::NoCertificate | E::Malformed(_) | E::NotAnAuthority => (
            flags.ca.as_str(),
            " Pass the certificate that 'kafila tls ca create' has written.",
        ),
        E::Key(_) | E::ForeignKey => (
            flags.key.as_str(),
            " Pass the key that 'kafila tls ca create' has written beside the certificate.",
        ),
        E::NotANodeAuthority { .. } => (flags.ca.as_str(), ""),
        E::Identity(_) => ("-region", ""),
        E::SigningRequest(_) | E::Create(_) => return Error::text(format!("Error: {error}.")),
    };
    Error::text(format!("Error: {what}: {error}.{fix}"))
}
