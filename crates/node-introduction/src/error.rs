//! Errors that keep a node from its first certificate.

/// The reason why a node has no certificate to begin with.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("`{field}`: {problem}")]
    Setting {
        field: &'static str,
        problem: String,
    },
    #[error("gateway {gateway} refuses the introduction of this node: {problem}")]
    Refused { gateway: String, problem: String },
    #[error(transparent)]
    LocalState(#[from] local_state::Error),
    #[error(transparent)]
    Tls(#[from] tls::Error),
}
