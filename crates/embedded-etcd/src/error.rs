//! Errors: refusals of requests, with etcd's texts and codes ([`ApiError`]), and failures of the store
//! itself ([`Error`]).

use std::path::PathBuf;

/// A refusal, worded and coded exactly as etcd does, because clients match on both.
///
/// Source: etcd's `api/v3rpc/rpctypes/error.go`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    #[error("etcdserver: key is not provided")]
    EmptyKey,
    #[error("etcdserver: key not found")]
    KeyNotFound,
    #[error("etcdserver: value is provided")]
    ValueProvided,
    #[error("etcdserver: lease is provided")]
    LeaseProvided,
    #[error("etcdserver: too many operations in txn request")]
    TooManyOps,
    #[error("etcdserver: duplicate key given in txn request")]
    DuplicateKey,
    #[error("etcdserver: mvcc: required revision has been compacted")]
    Compacted,
    #[error("etcdserver: mvcc: required revision is a future revision")]
    FutureRevision,
    #[error("etcdserver: requested lease not found")]
    LeaseNotFound,
    #[error("etcdserver: lease already exists")]
    LeaseExists,
    #[error("etcdserver: too large lease TTL")]
    LeaseTtlTooLarge,
    #[error("etcdserver: request is too large")]
    RequestTooLarge,
    #[error("etcdserver: server stopped")]
    Stopped,
}

impl ApiError {
    /// The gRPC code that etcd answers with.
    #[must_use]
    pub fn code(self) -> tonic::Code {
        match self {
            Self::EmptyKey
            | Self::KeyNotFound
            | Self::ValueProvided
            | Self::LeaseProvided
            | Self::TooManyOps
            | Self::DuplicateKey
            | Self::RequestTooLarge => tonic::Code::InvalidArgument,
            Self::Compacted | Self::FutureRevision | Self::LeaseTtlTooLarge => {
                tonic::Code::OutOfRange
            }
            Self::LeaseNotFound => tonic::Code::NotFound,
            Self::LeaseExists => tonic::Code::FailedPrecondition,
            Self::Stopped => tonic::Code::Unavailable,
        }
    }
}

impl From<ApiError> for tonic::Status {
    fn from(error: ApiError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

/// A failure that keeps the store from starting or continuing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {action} the store file {}", path.display())]
    Storage {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: Box<redb::Error>,
    },
    #[error("the store file {} is open in another process", path.display())]
    InUse { path: PathBuf },
    #[error(
        "the store file {} is damaged: {what}; restore it from a copy or start with an empty one",
        path.display()
    )]
    Corrupt { path: PathBuf, what: Corruption },
    #[error("cannot serve etcd's API over TCP")]
    Serve(#[source] tonic::transport::Error),
    #[error("the store stopped while writing: {0}")]
    Failed(String),
}

/// A fault in data read from disk.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Corruption {
    #[error("record {main}/{sub} {fault}")]
    Record {
        main: i64,
        sub: i64,
        fault: &'static str,
    },
    #[error("lease {id:016x} {fault}")]
    Lease { id: i64, fault: &'static str },
    #[error("its format version is {found}, this program reads {expected}")]
    Version { found: i64, expected: i64 },
    #[error("meta entry {key:?} {fault}")]
    Meta {
        key: &'static str,
        fault: &'static str,
    },
}
