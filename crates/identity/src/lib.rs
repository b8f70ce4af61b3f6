//! Identities of services, nodes and people, and their form in certificates.
//!
//! An [`Identity`] is a [`Role`] in a region, with a name; a certificate carries it as a URI and as a
//! DNS name ([`certificate`]). A [`Caller`] is the sender of one request: handlers get it from the
//! request's extensions. Nothing here verifies a signature or a validity: the TLS handshake has done so
//! before. Rights of roles are in the crate `authorization`.

mod caller;
mod certificate;
mod name;
mod role;

pub use caller::{Caller, Peer};
pub use certificate::InvalidCertificate;
pub use name::{Identity, InvalidIdentity, RESERVED_DOMAIN, is_reserved};
pub use role::{Role, UnknownRole};
