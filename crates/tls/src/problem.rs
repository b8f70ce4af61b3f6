//! Reasons of failed connections, from the errors of a client's request.

use std::error::Error;
use std::net::IpAddr;
use std::{fmt, io};

use rustls::{AlertDescription, CertificateError};

use crate::connect::RefusedServer;

/// The reason why a connection cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The server speaks no TLS.
    NotTls,
    /// The server needs TLS.
    NeedsTls,
    /// No known authority has issued the server's certificate.
    UnknownAuthority,
    /// The server's certificate has expired.
    Expired,
    /// The server's certificate is not valid yet: a clock is wrong.
    NotYetValid,
    /// The server's certificate is for other names, which are empty if unknown: DNS names and addresses.
    WrongName {
        expected: String,
        presented: Vec<String>,
    },
    /// The server's certificate does not meet the [`ServerCheck`](crate::ServerCheck): its role is another
    /// one. The text completes "the server's certificate is …".
    WrongServer(String),
    /// The server wants a client certificate, and there was none.
    CertificateRequired,
    /// The server refused the client's certificate; with the server's reason.
    CertificateRefused { reason: String },
    /// Anything else, in the TLS library's words.
    Other(String),
}

impl Problem {
    /// Returns the reason in `error` or its causes; `None` when they have nothing to do with TLS.
    pub fn of(error: &(dyn Error + 'static)) -> Option<Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(found) = of_one(error) {
                return Some(found);
            }
            next = error.source();
        }
        None
    }

    /// Returns the reason if `message`, that of a status which the server sent, is the one of a server of
    /// ours for clients without TLS. Other messages of servers may be about connections of their own.
    pub fn of_answer(message: &str) -> Option<Self> {
        (message == crate::plaintext::MESSAGE).then_some(Self::NeedsTls)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotTls => f.write_str("the server speaks no TLS"),
            Self::NeedsTls => f.write_str("the server needs TLS"),
            Self::UnknownAuthority => {
                f.write_str("no known authority has issued the server's certificate")
            }
            Self::Expired => f.write_str("the server's certificate has expired"),
            Self::NotYetValid => f.write_str("the server's certificate is not valid yet"),
            Self::WrongName {
                expected,
                presented,
            } => write!(
                f,
                "the server's certificate is for {}, not for {expected}",
                list(presented)
            ),
            Self::WrongServer(what) => write!(f, "the server's certificate is {what}"),
            Self::CertificateRequired => f.write_str("the server requires a client certificate"),
            Self::CertificateRefused { reason } => {
                write!(f, "the server refused the client certificate: {reason}")
            }
            Self::Other(text) => f.write_str(text),
        }
    }
}

fn of_one(error: &(dyn Error + 'static)) -> Option<Problem> {
    if let Some(tls) = error.downcast_ref::<rustls::Error>() {
        return Some(of_rustls(tls));
    }
    if let Some(inner) = error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref)
    {
        // Not among the sources, which skip it.
        if let Some(refused) = inner.downcast_ref::<RefusedServer>() {
            return Some(Problem::WrongServer(refused.0.clone()));
        }
        if let Some(tls) = inner.downcast_ref::<rustls::Error>() {
            return Some(of_rustls(tls));
        }
    }
    of_text(&error.to_string())
}

/// Recognises errors that the HTTP/2 library keeps as text only: those after the handshake.
fn of_text(text: &str) -> Option<Problem> {
    const ALERT: &str = "received fatal alert: ";
    const INADEQUATE_SECURITY: &str = "transport does not meet minimum security requirements";
    if text.contains(crate::plaintext::MESSAGE) || text.contains(INADEQUATE_SECURITY) {
        return Some(Problem::NeedsTls);
    }
    let (_, alert) = text.split_once(ALERT)?;
    let alert: String = alert
        .chars()
        .take_while(char::is_ascii_alphanumeric)
        .collect();
    Some(match alert.as_str() {
        "CertificateRequired" => Problem::CertificateRequired,
        "UnknownCA" | "DecryptError" | "BadCertificate" | "CertificateUnknown" => {
            refused("an unknown authority issued it")
        }
        "CertificateExpired" => refused("it has expired"),
        "AccessDenied" => refused("it has no role in this cluster"),
        other => Problem::Other(format!("the server ended the connection: {other}")),
    })
}

fn refused(reason: &str) -> Problem {
    Problem::CertificateRefused {
        reason: reason.to_owned(),
    }
}

fn of_rustls(error: &rustls::Error) -> Problem {
    match error {
        rustls::Error::InvalidMessage(_) => Problem::NotTls,
        rustls::Error::InvalidCertificate(problem) => of_certificate(problem),
        rustls::Error::AlertReceived(alert) => {
            let text = format!("received fatal alert: {}", name_of(*alert));
            of_text(&text).unwrap_or(Problem::Other(text))
        }
        other => Problem::Other(other.to_string()),
    }
}

fn name_of(alert: AlertDescription) -> String {
    format!("{alert:?}")
}

fn of_certificate(problem: &CertificateError) -> Problem {
    match problem {
        // An authority of the same name with another key gives a bad signature.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            Problem::UnknownAuthority
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => Problem::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            Problem::NotYetValid
        }
        CertificateError::NotValidForName => Problem::WrongName {
            expected: String::new(),
            presented: Vec::new(),
        },
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => Problem::WrongName {
            expected: expected.to_str().into_owned(),
            presented: presented.iter().filter_map(|it| host_name(it)).collect(),
        },
        other => Problem::Other(rustls::Error::InvalidCertificate(other.clone()).to_string()),
    }
}

/// Returns the DNS name or address in the library's form of a name, as `DnsName("a.example")`; `None` for a
/// name that is neither, such as the URI of an identity. Another form is left as it is.
fn host_name(presented: &str) -> Option<String> {
    let inner = presented.split_once('(').and_then(|(kind, rest)| {
        let inner = rest.strip_suffix(')')?.trim_matches('"');
        Some((kind, inner))
    });
    match inner {
        Some(("DnsName", name)) => Some(name.to_owned()),
        // The library writes `0::1` for `::1`.
        Some(("IpAddress", text)) => Some(match text.parse::<IpAddr>() {
            Ok(address) => address.to_string(),
            Err(_) => text.to_owned(),
        }),
        Some(("UniformResourceIdentifier", _)) => None,
        _ => Some(presented.to_owned()),
    }
}

fn list(names: &[String]) -> String {
    match names {
        [] => "no host name or address".to_owned(),
        names => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_as_they_are_written() {
        for (presented, expected) in [
            ("DnsName(\"a.example\")", Some("a.example")),
            ("IpAddress(127.0.0.1)", Some("127.0.0.1")),
            ("IpAddress(0::1)", Some("::1")),
            ("IpAddress(fd00:0:0:0:0:0:0:7)", Some("fd00::7")),
            ("UniformResourceIdentifier(\"kafila://a\")", None),
            ("a.example", Some("a.example")),
        ] {
            let shown = host_name(presented);
            assert_eq!(shown.as_deref(), expected, "{presented}");
        }
    }
}
