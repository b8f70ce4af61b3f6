//! Errors of requests: the gRPC code, the causes, and the particulars for programs.
//!
//! `From` conversions stand beside the refusals and failures that they convert.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use model::FieldErrors;
use proto::status;
use service_kit::run::chain;
use tonic::{Code, Status};

/// The retry delay after a refusal for overload: a queue of a million evaluations drains by tens of
/// thousands a second, so seconds make a difference.
const OVERLOAD_RETRY_AFTER: Duration = Duration::from_secs(5);
/// The retry delay while a gateway works on as many requests as it may: they take less than a second.
const BUSY_RETRY_AFTER: Duration = Duration::from_secs(1);
/// The retry delay while the store or a node is away: about one election.
const UNAVAILABLE_RETRY_AFTER: Duration = Duration::from_secs(1);

type Cause = Box<dyn StdError + Send + Sync>;

/// A request that was refused or has failed.
#[derive(Debug)]
pub struct Error {
    code: Code,
    cause: Cause,
    details: Details,
}

#[derive(Clone, Debug)]
enum Details {
    None,
    Fields(FieldErrors),
    RetryAfter(Duration),
}

impl Error {
    pub fn new(code: Code, cause: impl Into<Cause>) -> Self {
        let details = match code {
            Code::Unavailable => Details::RetryAfter(UNAVAILABLE_RETRY_AFTER),
            _ => Details::None,
        };
        Self {
            code,
            cause: cause.into(),
            details,
        }
    }

    /// Returns an `INVALID_ARGUMENT` with its invalid fields.
    pub fn invalid(fields: FieldErrors) -> Self {
        Self {
            code: Code::InvalidArgument,
            cause: fields.clone().into(),
            details: Details::Fields(fields),
        }
    }

    /// Returns an `INVALID_ARGUMENT` with one invalid field.
    pub fn invalid_field(field: &str, message: impl Into<String>) -> Self {
        let mut errors = FieldErrors::default();
        errors.push(field, message);
        Self::invalid(errors)
    }

    /// Returns a `RESOURCE_EXHAUSTED` that succeeds after a while.
    pub fn overloaded(cause: impl Into<Cause>) -> Self {
        Self {
            code: Code::ResourceExhausted,
            cause: cause.into(),
            details: Details::RetryAfter(OVERLOAD_RETRY_AFTER),
        }
    }

    /// Returns a `RESOURCE_EXHAUSTED` that succeeds once requests in progress have ended.
    pub fn busy(cause: impl Into<Cause>) -> Self {
        Self {
            details: Details::RetryAfter(BUSY_RETRY_AFTER),
            ..Self::overloaded(cause)
        }
    }

    /// Returns the error of a request that meets the end of its gateway.
    pub fn draining() -> Self {
        Self::new(
            Code::Unavailable,
            "this gateway is shutting down: ask another",
        )
    }

    /// Returns an error with the code and the particulars of this one, and another cause.
    pub fn with_cause(&self, cause: impl Into<Cause>) -> Self {
        Self {
            code: self.code,
            cause: cause.into(),
            details: self.details.clone(),
        }
    }

    pub fn code(&self) -> Code {
        self.code
    }

    /// Tells whether the same request succeeds after a while because load is shed.
    pub fn is_overload(&self) -> bool {
        self.code == Code::ResourceExhausted && matches!(self.details, Details::RetryAfter(_))
    }

    /// Returns the text with all its causes.
    pub fn message(&self) -> String {
        chain(&*self.cause)
    }
}

/// Tells whether a called process has not answered, so that its caller cannot tell whether it acted.
pub fn is_unanswered(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Unknown
    )
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.cause.source()
    }
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        let message = error.message();
        match error.details {
            Details::Fields(fields) => status::invalid(fields),
            Details::RetryAfter(delay) if error.code == Code::Unavailable => {
                status::unavailable(message, delay)
            }
            Details::RetryAfter(delay) => status::exhausted(message, delay),
            Details::None => Self::new(error.code, message),
        }
    }
}
