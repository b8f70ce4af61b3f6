//! Errors of commands: their messages and exit codes.
//!
//! A message names the object and, where there is one, the remedy. First lines are Nomad's where
//! scripts may match them.

use std::path::PathBuf;
use std::time::Duration;

use kafila_client::{Code, ConfigError, Kind};
use model::{FieldError, FieldErrors};

use crate::address::{Address, InvalidAddress};
use crate::exit::Exit;

mod advice;
mod tls;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    InvalidAddress(#[from] InvalidAddress),

    #[error("{}", unreachable_text(doing, address, problem))]
    Unreachable {
        doing: String,
        address: Address,
        problem: String,
    },

    /// TLS refused the connection, on this side or the other.
    #[error("{}", tls::text(doing, address, problem))]
    Tls {
        doing: String,
        address: Address,
        problem: ::tls::Problem,
    },

    /// The server at the address is not a Kafila gateway.
    #[error("{}", foreign_text(doing, address, problem))]
    Foreign {
        doing: String,
        address: Address,
        problem: &'static str,
    },

    /// The server does not implement the RPC: an older gateway, or Kafila's store.
    #[error("{}", unknown_call_text(doing, address))]
    UnknownCall { doing: String, address: Address },

    #[error(
        "Error {doing}: no answer from the gateway at {url} within {}.\n\
         Raise the timeout, for example with -timeout={}.",
        seconds(*timeout), seconds(*timeout * 4)
    )]
    Timeout {
        doing: String,
        url: String,
        timeout: Duration,
    },

    #[error("Error {doing}: {}{}", .error.message(), advice::below(doing, error))]
    Rpc {
        doing: String,
        error: Box<kafila_client::Error>,
    },

    /// The settings of the connection cannot be used, so no gateway was called.
    #[error("{0}")]
    Settings(String),

    /// Any other message.
    #[error("{0}")]
    Text(String),

    #[error("Error getting job struct: Error getting jobfile from {path:?}: {}", .source)]
    ReadJobFile {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },

    #[error("Error getting job struct: Error getting variable file {path:?}: {}", .source)]
    ReadVariableFile {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },

    #[error("cannot write the output")]
    Output(#[source] std::io::Error),

    #[error("cannot read the answer")]
    Input(#[source] std::io::Error),

    #[error("cannot start")]
    Start(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Describes the error of a call; `doing` completes "Error …".
    pub(crate) fn from_call(
        doing: &str,
        error: kafila_client::Error,
        address: &Address,
        timeout: Duration,
    ) -> Self {
        let doing = doing.to_owned();
        // The gateway that was called, of those that are set.
        let address = Address {
            url: error.address().to_owned(),
            source: address.source,
        };
        match error.kind().clone() {
            Kind::Unreachable { problem } => Self::Unreachable {
                doing,
                address,
                problem,
            },
            Kind::Tls(problem) => Self::Tls {
                doing,
                address,
                problem,
            },
            Kind::Foreign { evidence } => Self::Foreign {
                doing,
                address,
                problem: evidence,
            },
            Kind::UnknownRpc => Self::UnknownCall { doing, address },
            Kind::Timeout { .. } => Self::Timeout {
                doing,
                url: address.url,
                timeout,
            },
            Kind::Status(_) => Self::Rpc {
                doing,
                error: Box::new(error),
            },
        }
    }

    /// Describes settings of the connection that cannot be used.
    pub(crate) fn config(error: ConfigError, address: &Address) -> Self {
        match error {
            ConfigError::Address(error) => InvalidAddress {
                text: error.text,
                origin: address.source,
                problem: error.problem,
            }
            .into(),
            ConfigError::CertificateWithoutKey => Self::text(
                "A client certificate needs its key: set both -client-cert and -client-key, or \
                 KAFILA_CLIENT_CERT and KAFILA_CLIENT_KEY.",
            ),
            ConfigError::ServerName(name) => {
                Self::text(format!("-tls-server-name: {name:?} is not a DNS name."))
            }
            ConfigError::Tls(_) => Self::text(format!(
                "Error connecting to the gateway at {}: {error}.\n\
                 These files are set with -ca-cert, -client-cert and -client-key, or with KAFILA_CACERT, \
                 KAFILA_CLIENT_CERT and KAFILA_CLIENT_KEY.",
                address.url
            )),
            other => Self::text(other.to_string()),
        }
    }

    /// Tells whether a retry may succeed: the gateway is unavailable or busy.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Timeout { .. } => true,
            Self::Rpc { error, .. } => error.is_transient(),
            _ => false,
        }
    }

    pub(crate) fn is_unreachable(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::Tls { .. }
            | Self::Foreign { .. }
            | Self::Settings(_)
            | Self::Timeout { .. } => true,
            Self::Rpc { error, .. } => error.code() == Code::Unavailable,
            _ => false,
        }
    }

    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Rpc { error, .. } if error.code() == Code::NotFound)
    }

    /// Tells whether a conditional write lost: the index does not match.
    pub(crate) fn is_aborted(&self) -> bool {
        matches!(self, Self::Rpc { error, .. } if error.code() == Code::Aborted)
    }

    /// Tells whether a write may have been executed although there is no answer.
    pub(crate) fn may_have_happened(&self) -> bool {
        match self {
            Self::Timeout { .. } => true,
            Self::Rpc { error, .. } => error.may_have_happened(),
            _ => false,
        }
    }

    /// Returns the errors of fields in the request, if they are the reason.
    pub(crate) fn field_errors(&self) -> Option<FieldErrors> {
        let Self::Rpc { error, .. } = self else {
            return None;
        };
        let violations = error.violations().into_iter();
        let errors: Vec<_> = violations
            .map(|violation| FieldError::new(violation.field, violation.message))
            .collect();
        (!errors.is_empty()).then_some(FieldErrors(errors))
    }

    /// Returns the reason without the failed operation.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Unreachable { problem, .. } => problem.clone(),
            Self::Tls { problem, .. } => tls::describe(problem, "").0,
            Self::Foreign { problem, .. } => format!("the server there {problem}"),
            Self::UnknownCall { .. } => UNKNOWN_CALL.to_owned(),
            Self::Timeout { timeout, .. } => format!("no answer within {}", seconds(*timeout)),
            Self::Rpc { error, .. } => error.message(),
            other => other.to_string(),
        }
    }

    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Output(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                Exit::BrokenPipe
            }
            _ => Exit::Failure,
        }
    }
}

fn unreachable_text(doing: &str, address: &Address, problem: &str) -> String {
    format!(
        "Error {doing}: cannot reach the gateway at {}: {problem}.\n\
         That address is {}. Set another one with -address={}://HOST:4646 or KAFILA_ADDR,\n\
         or start a local cluster with 'kafila dev'.",
        address.url,
        address.source,
        address.scheme()
    )
}

fn foreign_text(doing: &str, address: &Address, problem: &str) -> String {
    format!(
        "Error {doing}: the server at {} is no Kafila gateway: it {problem}.\n\
         That address is {}. Set the gateway's gRPC address with -address={}://HOST:4646 or \
         KAFILA_ADDR.{}",
        address.url,
        address.source,
        address.scheme(),
        advice::on_plaintext(&address.url)
    )
}

const UNKNOWN_CALL: &str =
    "the server does not know this call: it is older than this command, or no gateway";

fn unknown_call_text(doing: &str, address: &Address) -> String {
    format!(
        "Error {doing}: {UNKNOWN_CALL} ('kafila version -gateway' shows its version).\n\
         Its address is {}, {}. Set the gateway's address with -address={}://HOST:4646 or \
         KAFILA_ADDR.",
        address.url,
        address.source,
        address.scheme()
    )
}

/// Formats a timeout for `-timeout`.
fn seconds(timeout: Duration) -> String {
    if timeout.subsec_millis() == 0 {
        format!("{}s", timeout.as_secs())
    } else {
        format!("{}ms", timeout.as_millis())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Source;

    fn address() -> Address {
        Address {
            url: "http://127.0.0.1:4646".to_owned(),
            source: Source::Variable("KAFILA_ADDR"),
        }
    }

    #[test]
    fn an_error_names_the_address_and_the_remedy() {
        let unreachable = Error::Unreachable {
            doing: "querying jobs".to_owned(),
            address: address(),
            problem: "connection refused".to_owned(),
        };
        let text = unreachable.to_string();
        for part in [
            "Error querying jobs: ",
            "http://127.0.0.1:4646",
            "connection refused",
            "from KAFILA_ADDR",
            "-address",
            "kafila dev",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let timeout = Error::Timeout {
            doing: "querying jobs".to_owned(),
            url: address().url,
            timeout: Duration::from_millis(1_500),
        };
        assert!(timeout.to_string().contains("within 1500ms"), "{timeout}");
        assert!(timeout.to_string().contains("-timeout=6s"), "{timeout}");
    }

    #[test]
    fn the_remedy_has_the_scheme_of_the_address() {
        let mut address = address();
        address.url = "https://10.0.0.1:4646".to_owned();
        let problem = "connection refused";
        let text = unreachable_text("querying jobs", &address, problem);
        assert!(text.contains("-address=https://HOST:4646"), "{text}");
        let text = foreign_text("querying jobs", &address, problem);
        assert!(text.contains("-address=https://HOST:4646"), "{text}");
        let text = unknown_call_text("querying jobs", &address);
        assert!(text.contains("-address=https://HOST:4646"), "{text}");
    }

    #[test]
    fn a_foreign_server_is_named_with_the_origin_of_its_address() {
        let error = Error::Foreign {
            doing: "submitting job".to_owned(),
            address: address(),
            problem: "speaks gRPC, but not Kafila's API",
        };
        let text = error.to_string();
        for part in [
            "http://127.0.0.1:4646",
            "no Kafila gateway",
            "from KAFILA_ADDR",
            "-address",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!error.is_transient());
    }

    #[test]
    fn a_server_without_the_call_is_named_with_the_origin_of_its_address() {
        let error = Error::UnknownCall {
            doing: "querying jobs".to_owned(),
            address: address(),
        };
        let text = error.to_string();
        for part in [
            "Error querying jobs: ",
            "does not know this call",
            "older than this command",
            "http://127.0.0.1:4646",
            "from KAFILA_ADDR",
            "-address",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!error.is_transient());
    }

    #[test]
    fn a_closed_pipe_has_its_own_exit_code() {
        let broken = Error::Output(std::io::ErrorKind::BrokenPipe.into());
        assert_eq!(broken.exit(), Exit::BrokenPipe);
        let full = Error::Output(std::io::ErrorKind::StorageFull.into());
        assert_eq!(full.exit(), Exit::Failure);
    }
}
