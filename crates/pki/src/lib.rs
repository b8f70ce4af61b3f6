//! Certificate authorities and certificates: creation and contents.
//!
//! In reading order: [`create_authority`] makes a CA, [`Authority`] issues certificates with it,
//! and [`Description`] reads the fields of a certificate. Keys are ECDSA P-256, from the system's
//! randomness; times and serial numbers are arguments. Files are the caller's.

mod authority;
mod description;
mod dns_name;
mod error;
mod issue;
mod issued;
mod validity;

pub use authority::{Authority, AuthorityRequest, create_authority};
pub use description::Description;
pub use error::Error;
pub use issue::CertificateRequest;
pub use issued::Issued;
pub use validity::{Moment, Serial};
