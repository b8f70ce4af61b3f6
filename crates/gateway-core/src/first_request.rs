//! The first request of a stream, which says what the stream is about.

use std::time::Duration;

use tokio::time::timeout;
use tonic::{Status, Streaming};

/// Wait for the first request, which callers send with the beginning of their stream.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the first request of a stream.
///
/// # Errors
/// It does not come, or the stream ends or breaks before it.
pub async fn first_request<T>(requests: &mut Streaming<T>) -> Result<T, Status> {
    let first = timeout(FIRST_REQUEST_TIMEOUT, requests.message()).await;
    let first = first.map_err(|_| Status::deadline_exceeded("no request came"))??;
    first.ok_or_else(|| Status::invalid_argument("the stream has no request"))
}
