//! Errors of creating and reading certificates.

use std::net::IpAddr;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "the file has no certificate as PEM: want one that begins with -----BEGIN \
         CERTIFICATE-----"
    )]
    NoCertificate,
    #[error("the certificate is malformed: {0}; create it again")]
    Malformed(String),
    #[error("the key is not a private key that can sign: {0}")]
    Key(#[source] rcgen::Error),
    #[error("the certificate is not one of a CA: want the one that `kafila tls ca create` wrote")]
    NotAnAuthority,
    #[error("the key does not belong to the CA's certificate: want the two files of one CA")]
    ForeignKey,
    #[error("a validity of {days} days is out of range: want 1 to {max}")]
    Days { days: u32, max: u32 },
    #[error("the CA has expired: create a new one with `kafila tls ca create`")]
    AuthorityExpired,
    #[error(
        "the certificate would be valid for {days} days, longer than its CA: want at most {max} days"
    )]
    OutlivesAuthority { days: u32, max: u32 },
    #[error(
        "{0:?} is not a DNS name: want labels of letters, digits and hyphens, as in \
         gateway.example.org"
    )]
    DnsName(String),
    #[error("{0:?} is in the domain of Kafila's roles, where only roles have names")]
    ReservedName(String),
    #[error("this CA issues no certificate for {name:?}: its name constraints permit only names in {}", permitted.join(", "))]
    NotPermittedIdentity {
        name: String,
        permitted: Vec<String>,
    },
    #[error("the CA's name constraints permit no {name:?}, only names in {}", permitted.join(", "))]
    NotPermitted {
        name: String,
        permitted: Vec<String>,
    },
    #[error("a certificate of a client has no addresses: leave out {0}")]
    AddressOfClient(IpAddr),
    #[error(
        "the CA is not one for nodes: want name constraints that permit {domain} and nothing else, as \
         `kafila tls ca create -node-ca` makes them"
    )]
    NotANodeAuthority { domain: String },
    #[error("the signing request cannot be used: {0}")]
    SigningRequest(#[source] rcgen::Error),
    #[error(transparent)]
    Identity(#[from] identity::InvalidIdentity),
    #[error("cannot create the certificate: {0}")]
    Create(#[from] rcgen::Error),
}
