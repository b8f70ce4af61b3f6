//! Certificate authorities and certificates: creation and contents.
//!
//! In reading order: [`create_authority`] makes a CA, [`create_node_authority`] one for nodes only,
//! [`Authority`] issues certificates with it, also for a [`SigningRequest`], whose key stays with its
//! owner, [`Description`] reads the fields of a certificate, and [`time_to_renewal`] tells when it is
//! renewed. Keys are ECDSA P-256, from the system's randomness; times and serial numbers are arguments. Files
//! are the caller's.

mod authority;
mod description;
mod dns_name;
mod error;
mod issue;
mod issued;
mod renewal;
mod signing_request;
mod validity;

pub use authority::{
    Authority, AuthorityRequest, NodeAuthorityRequest, create_authority, create_node_authority,
};
pub use description::Description;
pub use error::Error;
pub use issue::CertificateRequest;
pub use issued::{Certified, Issued};
pub use renewal::time_to_renewal;
pub use signing_request::{SigningRequest, create_key, sign_request};
pub use validity::{CLOCK_SKEW_SECONDS, Moment, Serial};
