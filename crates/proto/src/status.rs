//! Errors on the wire: a gRPC status, with machine-readable details in its metadata.
//!
//! The metadata key is [`DETAIL_KEY`]; its value is an encoded [`crate::v1::ErrorDetail`].
//! `grpc-status-details-bin` is not used: by convention that holds a `google.rpc.Status`.

use std::fmt::Write as _;
use std::time::Duration;

use model::{FieldError, FieldErrors};
use prost::Message as _;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Status};

use crate::v1::{ErrorDetail, FieldViolation};

/// The metadata key of the encoded [`ErrorDetail`].
pub const DETAIL_KEY: &str = "kafila-error-bin";

/// Longest message, in bytes. A status is sent in HTTP/2 headers, of which peers accept 16 KiB in all;
/// percent-encoding may triple a message.
const MAX_MESSAGE_BYTES: usize = 2_048;

/// Longest encoded detail, in bytes: with base64's overhead of a third, the other half of the 16 KiB.
const MAX_DETAIL_BYTES: usize = 5_120;

/// Returns INVALID_ARGUMENT with all errors of a request.
///
/// Errors beyond the limits above are counted at the end of the message.
pub fn invalid(errors: FieldErrors) -> Status {
    let message = message_of(&errors);
    let mut detail = ErrorDetail::default();
    let mut bytes = 0;
    for error in errors.0 {
        let violation = FieldViolation {
            field: error.field,
            message: error.message,
        };
        // Two bytes of tag and length per field, and as much for the message around them.
        bytes += violation.encoded_len() + 4;
        if bytes > MAX_DETAIL_BYTES {
            break;
        }
        detail.violations.push(violation);
    }
    with_detail(Code::InvalidArgument, message, &detail)
}

/// Returns INVALID_ARGUMENT for one field of a request.
pub fn invalid_field(field: impl Into<String>, message: impl Into<String>) -> Status {
    invalid(FieldErrors(vec![FieldError::new(field, message)]))
}

/// Lists errors for people, truncated at the longest message.
fn message_of(errors: &FieldErrors) -> String {
    let count = errors.0.len();
    let plural = if count == 1 { "" } else { "s" };
    let mut message = format!("{count} error{plural} occurred:");
    for (position, error) in errors.0.iter().enumerate() {
        let line = format!("\n\t* {error}");
        if message.len() + line.len() > MAX_MESSAGE_BYTES {
            if position == 0 {
                message.push_str(truncated(&line, MAX_MESSAGE_BYTES - message.len()));
                message.push('…');
            } else {
                // Writing to a String cannot fail.
                let _ = write!(message, "\n\t* and {} more", count - position);
            }
            break;
        }
        message.push_str(&line);
    }
    message
}

/// Returns the longest start of `text` of at most `bytes` bytes that ends between characters.
fn truncated(text: &str, bytes: usize) -> &str {
    if text.len() <= bytes {
        return text;
    }
    let end = (0..=bytes)
        .rev()
        .find(|end| text.is_char_boundary(*end))
        .unwrap_or(0);
    &text[..end]
}

/// Says that the called replica is not the leader, with the leader's address if known.
pub fn not_leader(leader_hint: Option<&str>) -> Status {
    let message = match leader_hint {
        Some(address) => format!("this replica is not the leader: ask {address}"),
        None => "this replica is not the leader, and none is known yet: try again".to_owned(),
    };
    let detail = ErrorDetail {
        leader_address: leader_hint.unwrap_or_default().to_owned(),
        ..ErrorDetail::default()
    };
    with_detail(Code::FailedPrecondition, message, &detail)
}

/// Refuses a request because of overload, with the time to retry.
pub fn exhausted(message: impl Into<String>, retry_after: Duration) -> Status {
    retry_later(Code::ResourceExhausted, message, retry_after)
}

/// Says that a dependency of the request is unavailable, with the time to retry.
pub fn unavailable(message: impl Into<String>, retry_after: Duration) -> Status {
    retry_later(Code::Unavailable, message, retry_after)
}

fn retry_later(code: Code, message: impl Into<String>, retry_after: Duration) -> Status {
    let retry_after_ms = u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX);
    with_detail(
        code,
        message,
        &ErrorDetail {
            retry_after_ms,
            ..ErrorDetail::default()
        },
    )
}

fn with_detail(code: Code, message: impl Into<String>, detail: &ErrorDetail) -> Status {
    let message: String = message.into();
    let mut metadata = MetadataMap::new();
    metadata.insert_bin(
        DETAIL_KEY,
        MetadataValue::from_bytes(&detail.encode_to_vec()),
    );
    Status::with_metadata(code, truncated(&message, MAX_MESSAGE_BYTES + 64), metadata)
}

impl ErrorDetail {
    /// Reads the detail of `status`; `None`: it has none, or a malformed one.
    pub fn from_status(status: &Status) -> Option<Self> {
        let bytes = status.metadata().get_bin(DETAIL_KEY)?.to_bytes().ok()?;
        Self::decode(bytes).ok()
    }

    /// Returns the violations as the model's errors.
    pub fn field_errors(&self) -> FieldErrors {
        let error =
            |violation: &FieldViolation| FieldError::new(&*violation.field, &*violation.message);
        FieldErrors(self.violations.iter().map(error).collect())
    }

    /// Returns the wait before a retry; `None`: no advice.
    pub fn retry_after(&self) -> Option<Duration> {
        (self.retry_after_ms != 0).then(|| Duration::from_millis(self.retry_after_ms))
    }
}

impl From<FieldError> for FieldViolation {
    fn from(error: FieldError) -> Self {
        Self {
            field: error.field,
            message: error.message,
        }
    }
}
