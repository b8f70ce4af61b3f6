//! Identities from URIs and from certificates.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod certificates;
mod names;
