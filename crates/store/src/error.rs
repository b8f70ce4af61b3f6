//! Errors of calls to etcd, classified by the question that matters after a write: may it have been
//! carried out?

use std::error::Error as StdError;
use std::fmt;

use tonic::{Code, ConnectError, Status};

use crate::txn::TxnError;

mod tls;

/// The flags that etcd needs: its defaults are below the limits of our transactions.
pub const ETCD_FLAGS: &str = "etcd --max-txn-ops 2048 --max-request-bytes 4194304";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not carried out; retriable.
    #[error("cannot {doing}: etcd cannot be reached at {endpoints}")]
    Unavailable {
        doing: &'static str,
        /// Separated by commas; empty for an embedded etcd.
        endpoints: String,
        #[source]
        source: Cause,
    },
    /// Carried out, not carried out, or still under way: a write has to be resolved first
    /// ([`crate::Writer::resolve`]). A read changes nothing.
    #[error("etcd gave no answer to the request to {doing}{}", outcome(doing))]
    Unknown {
        doing: &'static str,
        /// `None`: the deadline passed.
        #[source]
        source: Option<Cause>,
    },
    /// Not carried out; not retriable.
    #[error("etcd refused to {doing}")]
    Refused {
        doing: &'static str,
        #[source]
        source: Cause,
    },
    /// Not carried out, and refused until etcd is started with larger limits.
    #[error(
        "etcd refused to {doing}: {reason}: every member has to be started with larger limits, as \
         in {ETCD_FLAGS}"
    )]
    LimitsTooLow {
        doing: &'static str,
        /// etcd's message.
        reason: String,
    },
    /// Not carried out: the database of a member has reached its quota. Deletions, compactions and
    /// defragmentations are carried out.
    #[error(
        "etcd refused to {doing}: a member has reached its quota and raised the alarm NOSPACE; the \
         cluster-controller makes space, and `kafila operator etcd status` shows its progress"
    )]
    NoSpace { doing: &'static str },
    /// `revision` is the oldest that is kept; 0 when the server does not say.
    #[error("etcd no longer keeps the requested revision: read the current state again")]
    Compacted { revision: u64 },
    /// Nothing was sent: this process no longer leads, or cannot be sure that it does.
    #[error("no longer the leader of {service}")]
    Deposed { service: String },
    /// Nothing was sent: the transaction was not created by this leader's writer.
    #[error("a transaction of the leader of {service} does not carry its fence")]
    Unfenced { service: String },
    /// Nothing was sent: the writes make no transaction.
    #[error(transparent)]
    Unbuildable(#[from] TxnError),
    #[error("etcd's watch ended: {reason}")]
    WatchEnded { reason: String },
}

impl Error {
    /// Returns whether it is unknown if a write was carried out.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown { .. })
    }

    /// Returns whether the same request may succeed later.
    pub fn is_retriable(&self) -> bool {
        matches!(
            self,
            Self::Unavailable { .. } | Self::Unknown { .. } | Self::WatchEnded { .. }
        )
    }

    /// Returns the message with its causes: `a: b: c`.
    pub(crate) fn chain(&self) -> String {
        match self.source() {
            Some(cause) => format!("{self}: {cause}"),
            None => self.to_string(),
        }
    }

    /// Explains a broken connection by the server's refusal of plaintext.
    pub(crate) fn with_refusal(mut self, refusal: Option<&'static str>) -> Self {
        if let Self::Unavailable { source, .. }
        | Self::Unknown {
            source: Some(source),
            ..
        } = &mut self
        {
            source.refusal = refusal.filter(|_| source.is_of_connection());
        }
        self
    }

    pub(crate) fn from_etcd(
        doing: &'static str,
        endpoints: &[String],
        source: etcd_client::Error,
    ) -> Self {
        if let Some(reason) = limit(&source) {
            return Self::LimitsTooLow { doing, reason };
        }
        if is_no_space(&source) {
            return Self::NoSpace { doing };
        }
        let class = classify(&source);
        let source = Cause::from(source);
        match class {
            Class::NotSent => Self::Unavailable {
                doing,
                endpoints: endpoints.join(", "),
                source,
            },
            Class::Unknown => Self::Unknown {
                doing,
                source: Some(source),
            },
            Class::Refused => Self::Refused { doing, source },
        }
    }
}

/// Returns the end of the message about a request without an answer.
fn outcome(doing: &str) -> &'static str {
    /// First words of requests that change nothing.
    const READS: [&str; 9] = [
        "connect", "count", "list", "look", "probe", "read", "replay", "save", "watch",
    ];
    let verb = doing.split(' ').next().unwrap_or_default();
    if READS.contains(&verb) {
        ""
    } else {
        ": it may have been carried out"
    }
}

/// Readable cause of an etcd client error: the server's message, the reason why TLS failed, or the
/// innermost cause such as "Connection refused". The layers between only name the client's types.
#[derive(Debug)]
pub struct Cause {
    error: etcd_client::Error,
    /// The server's refusal of a plaintext connection.
    refusal: Option<&'static str>,
}

impl Cause {
    /// Returns whether this side made the error: a connection broke or could not be opened.
    fn is_of_connection(&self) -> bool {
        matches!(&self.error, etcd_client::Error::GRpcStatus(status) if status.source().is_some())
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(refusal) = self.refusal {
            return f.write_str(refusal);
        }
        // The client's own type does not expose its causes.
        let mut innermost: &(dyn StdError + 'static) = match &self.error {
            etcd_client::Error::GRpcStatus(status) => status,
            etcd_client::Error::TransportError(error) => error,
            other => other,
        };
        // A status without a cause is etcd's own.
        if let Some(problem) = innermost.source().and_then(::tls::Problem::of) {
            return f.write_str(&tls::describe(&problem));
        }
        while let Some(source) = innermost.source() {
            innermost = source;
        }
        match innermost.downcast_ref::<Status>() {
            Some(status) => f.write_str(status.message()),
            None => write!(f, "{innermost}"),
        }
    }
}

impl From<etcd_client::Error> for Cause {
    fn from(error: etcd_client::Error) -> Self {
        Self {
            error,
            refusal: None,
        }
    }
}

// Its text contains the cause already.
impl StdError for Cause {}

/// Returns etcd's message when a transaction exceeds its limits.
fn limit(error: &etcd_client::Error) -> Option<String> {
    // etcd has no error code for it, only these texts.
    // The last is gRPC's, for a request that is larger than etcd's limit by half a MiB.
    const TEXTS: [&str; 3] = [
        "too many operations",
        "request is too large",
        "received message larger than max",
    ];
    let etcd_client::Error::GRpcStatus(status) = error else {
        return None;
    };
    let is_limit = classify(error) == Class::Refused
        && TEXTS.iter().any(|text| status.message().contains(text));
    is_limit.then(|| status.message().to_owned())
}

/// The fate of a request that ended in an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It never left this process.
    NotSent,
    /// It may have been carried out.
    Unknown,
    /// The server rejected it.
    Refused,
}

/// Classifies an error of the etcd client.
///
/// A status that the server itself sent has no source; one made on this side, for a broken
/// connection or a timeout, has. Of those sent by the server, the codes for "timed out", "no
/// leader" and the like leave the proposal's fate open.
pub fn classify(error: &etcd_client::Error) -> Class {
    match error {
        etcd_client::Error::GRpcStatus(status) => {
            if has_cause::<ConnectError>(status) {
                Class::NotSent
            } else if status.source().is_none() && is_refusal(status.code()) {
                Class::Refused
            } else {
                Class::Unknown
            }
        }
        etcd_client::Error::InvalidArgs(_)
        | etcd_client::Error::InvalidUri(_)
        | etcd_client::Error::TransportError(_)
        | etcd_client::Error::InvalidMetadataValue(_)
        | etcd_client::Error::EndpointError(_)
        | etcd_client::Error::EndpointsNotManaged => Class::Refused,
        _ => Class::Unknown,
    }
}

fn is_refusal(code: Code) -> bool {
    matches!(
        code,
        Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::Unauthenticated
            | Code::ResourceExhausted
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented
    )
}

fn has_cause<T: StdError + 'static>(error: &(dyn StdError + 'static)) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.is::<T>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Returns whether etcd refuses writes because of its quota.
fn is_no_space(error: &etcd_client::Error) -> bool {
    // The code is also that of too many requests; etcd has no other mark of it than this text.
    matches!(error, etcd_client::Error::GRpcStatus(status)
        if status.code() == Code::ResourceExhausted
            && status.message().contains("database space exceeded"))
}

/// Returns whether the error means that the requested revision is compacted.
pub(crate) fn is_compacted(error: &etcd_client::Error) -> bool {
    // The client has no type for it, only a shared code and this text.
    matches!(error, etcd_client::Error::GRpcStatus(status)
        if status.code() == Code::OutOfRange && status.message().contains("compacted"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class_of(status: Status) -> Class {
        classify(&etcd_client::Error::GRpcStatus(status))
    }

    #[test]
    fn only_rejections_by_the_server_are_refusals() {
        assert_eq!(
            class_of(Status::invalid_argument("too many operations")),
            Class::Refused
        );
        assert_eq!(
            class_of(Status::resource_exhausted("too many requests")),
            Class::Refused
        );
        let ours = Status::from_error(Box::new(Status::resource_exhausted("broken stream")));
        assert_eq!(
            class_of(ours),
            Class::Refused,
            "a status inside a status is the server's"
        );
        let mut with_source = Status::resource_exhausted("connection told to calm down");
        with_source.set_source(std::sync::Arc::new(std::io::Error::other("h2")));
        assert_eq!(class_of(with_source), Class::Unknown);
    }

    #[test]
    fn the_error_of_an_oversized_transaction_names_the_flags_of_etcd() {
        for (words, code) in [
            (
                "etcdserver: too many operations in txn request",
                Code::InvalidArgument,
            ),
            ("etcdserver: request is too large", Code::InvalidArgument),
            (
                "grpc: received message larger than max (2200000 vs. 2097152)",
                Code::ResourceExhausted,
            ),
        ] {
            let status = etcd_client::Error::GRpcStatus(Status::new(code, words));
            let error = Error::from_etcd("commit a transaction", &[], status);
            assert!(matches!(error, Error::LimitsTooLow { .. }), "{error:?}");
            assert!(!error.is_retriable() && !error.is_unknown());
            let text = error.to_string();
            assert!(text.contains(words) && text.contains(ETCD_FLAGS), "{text}");
        }
    }

    #[test]
    fn a_full_database_is_not_an_excess_of_requests() {
        let of = |text| {
            let status = etcd_client::Error::GRpcStatus(Status::resource_exhausted(text));
            Error::from_etcd("commit a transaction", &[], status)
        };
        let full = of("etcdserver: mvcc: database space exceeded");
        assert!(matches!(full, Error::NoSpace { .. }), "{full:?}");
        // Not retried at once: the caller hears of it.
        assert!(!full.is_retriable() && !full.is_unknown());
        assert!(matches!(of("too many requests"), Error::Refused { .. }));
    }

    #[test]
    fn only_a_write_may_have_been_carried_out() {
        for (doing, is_write) in [
            ("commit a transaction", true),
            ("resign", true),
            ("grant a lease", true),
            ("defragment a member", true),
            ("list the store", false),
            ("read a key", false),
            ("watch", false),
            ("save a snapshot", false),
        ] {
            let source = None;
            let text = Error::Unknown { doing, source }.to_string();
            assert!(text.contains(doing), "{text}");
            assert_eq!(text.contains("carried out"), is_write, "{text}");
        }
    }

    #[test]
    fn the_cause_has_no_type_names_of_the_client() {
        let status = Status::permission_denied("etcdserver: permission denied");
        let error = Error::from_etcd("read a key", &[], etcd_client::Error::GRpcStatus(status));
        let cause = error.source().unwrap();
        assert_eq!(cause.to_string(), "etcdserver: permission denied");
        assert!(cause.source().is_none());
    }

    #[test]
    fn a_timeout_or_a_lost_leader_is_unknown() {
        for status in [
            Status::deadline_exceeded("too slow"),
            Status::unavailable("etcdserver: request timed out"),
            Status::unavailable("etcdserver: leader changed"),
            Status::unknown("?"),
            Status::cancelled("timeout expired"),
        ] {
            assert_eq!(class_of(status), Class::Unknown);
        }
    }

    #[test]
    fn a_connection_that_never_came_up_sent_nothing() {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let status = Status::from_error(Box::new(ConnectError(Box::new(refused))));
        // The error of tonic's channel: its own around the one above.
        let mut outer = Status::unavailable(status.message());
        outer.set_source(std::sync::Arc::new(ConnectError(Box::new(
            std::io::Error::other("x"),
        ))));
        assert_eq!(class_of(outer), Class::NotSent);
    }
}
