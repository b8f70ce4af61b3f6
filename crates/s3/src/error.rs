//! Failures of requests: the store's answer and the remedy, or the reason why none came.

/// Failure of an operation on a bucket.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text names the setting and the fix.
    #[error("{0}")]
    Settings(String),
    #[error("{0}")]
    Refused(ErrorResponse),
    /// No answer. The text has the cause.
    #[error("no answer from {host}: {cause}")]
    NoAnswer { host: String, cause: String },
    /// An answer that S3 does not give.
    #[error("{host} is no S3-compatible store, or a proxy in front of it answered: {problem}")]
    NoS3 { host: String, problem: String },
    #[error("cannot read {path}: {cause}")]
    File { path: String, cause: std::io::Error },
    #[error("the upload is incomplete: the store has {found} of {wanted} bytes of {key}")]
    Incomplete {
        key: String,
        found: u64,
        wanted: u64,
    },
    #[error("{size} bytes are more than an object may have in {parts} parts")]
    TooLarge { size: u64, parts: u64 },
}

/// A refusal by the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorResponse {
    /// HTTP status; 200 if the refusal came in the body of a success.
    pub status: u16,
    /// As in `AccessDenied`; empty without a body, as in answers to `HEAD`.
    pub code: String,
    pub message: String,
}

impl ErrorResponse {
    /// Reads an answer's body. Source: "Error responses" in the API reference.
    pub(crate) fn read(status: u16, body: &str) -> Self {
        Self {
            status,
            code: element(body, "Code"),
            message: element(body, "Message"),
        }
    }

    /// Returns whether the same request may succeed later.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self.status, 408 | 429 | 500 | 502 | 503 | 504)
            || matches!(
                self.code.as_str(),
                "InternalError" | "RequestTimeout" | "SlowDown" | "ServiceUnavailable"
            )
    }

    fn advice(&self) -> &'static str {
        match (self.code.as_str(), self.status) {
            ("NoSuchBucket", _) => "Create the bucket, or correct its name, endpoint or region.",
            ("InvalidAccessKeyId" | "InvalidToken" | "ExpiredToken", _) => {
                "Check the access key and the session token, and that they belong to this endpoint."
            }
            ("SignatureDoesNotMatch", _) => {
                "Check the secret access key. A proxy that rewrites the host has the same effect."
            }
            ("RequestTimeTooSkewed", _) => "Set the clock of this machine.",
            (
                "AuthorizationHeaderMalformed"
                | "AuthorizationQueryParametersError"
                | "PermanentRedirect",
                _,
            )
            | (_, 301 | 307) => "Check the region: it must be the bucket's.",
            (_, 401 | 403) => {
                "The credentials need s3:ListBucket on the bucket, and s3:GetObject, s3:PutObject, \
                 s3:DeleteObject and s3:AbortMultipartUpload on its objects."
            }
            (_, 404) => "Check the bucket's name, the endpoint and the region.",
            _ => "",
        }
    }
}

impl std::fmt::Display for ErrorResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the store refused with status {}", self.status)?;
        if !self.code.is_empty() {
            write!(f, ", {}", self.code)?;
        }
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        match self.advice() {
            "" => Ok(()),
            advice => write!(f, "\n{advice}"),
        }
    }
}

/// Returns the text of the first element of that name, shortened: it ends up on a terminal.
fn element(body: &str, name: &str) -> String {
    const MAX_CHARS: usize = 300;
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let Some((_, rest)) = body.split_once(&open) else {
        return String::new();
    };
    let (text, _) = rest.split_once(&close).unwrap_or((rest, ""));
    let shown = text.chars().filter(|c| !c.is_control());
    shown.take(MAX_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_shows_the_code_and_the_remedy() {
        let body = "<?xml version=\"1.0\"?><Error><Code>NoSuchBucket</Code>\
                    <Message>The bucket\n does not exist</Message></Error>";
        let shown = ErrorResponse::read(404, body).to_string();
        assert_eq!(
            shown,
            "the store refused with status 404, NoSuchBucket: The bucket does not exist\n\
             Create the bucket, or correct its name, endpoint or region."
        );
        let bare = ErrorResponse::read(403, "").to_string();
        assert!(bare.contains("status 403\nThe credentials need"), "{bare}");
    }

    #[test]
    fn only_failures_of_the_store_are_retried() {
        for (status, code, expected) in [
            (503, "SlowDown", true),
            (500, "", true),
            (200, "InternalError", true),
            (400, "RequestTimeout", true),
            (403, "AccessDenied", false),
            (404, "NoSuchBucket", false),
            (301, "PermanentRedirect", false),
        ] {
            let body = format!("<Error><Code>{code}</Code></Error>");
            assert_eq!(
                ErrorResponse::read(status, &body).may_pass(),
                expected,
                "{status}"
            );
        }
    }
}
