//! A plaintext connection to etcd that recognises a member with TLS by its first byte.
//!
//! Such a member closes the connection, or sends an alert of TLS. The HTTP/2 library reports a closed
//! connection or a malformed frame, depending on which of its tasks ends first.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// First byte of an alert of TLS, which no HTTP/2 server sends first. Source: RFC 8446, section 5.1.
const TLS_ALERT: u8 = 0x15;

const ALERT: &str = "it needs TLS: use https:// in `etcd.endpoints`, and set `etcd.ca_file`";
/// Go's TLS servers, such as etcd, close without an alert.
const CLOSED: &str = "it closed the connection without an answer: if it needs TLS, use https:// in \
                      `etcd.endpoints`, and set `etcd.ca_file`";

/// The description of the last plaintext connection of a client, if the server refused it before its
/// first byte. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlaintextRefusal(Arc<Mutex<Option<&'static str>>>);

impl PlaintextRefusal {
    pub(crate) fn get(&self) -> Option<&'static str> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, refusal: Option<&'static str>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = refusal;
    }
}

/// A connection without TLS.
#[derive(Debug)]
pub(crate) struct Unsecured<S> {
    stream: S,
    refusal: PlaintextRefusal,
    has_received: bool,
}

impl<S> Unsecured<S> {
    pub(crate) fn new(stream: S, refusal: PlaintextRefusal) -> Self {
        Self {
            stream,
            refusal,
            has_received: false,
        }
    }

    /// Notes the first byte that was received; `None`: the connection ended before it.
    fn note_first(&mut self, first: Option<u8>) {
        if self.has_received {
            return;
        }
        self.has_received = first.is_some();
        self.refusal.set(match first {
            None => Some(CLOSED),
            Some(TLS_ALERT) => Some(ALERT),
            Some(_) => None,
        });
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Unsecured<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.stream).poll_read(context, buffer));
        let first = buffer.filled().get(before).copied();
        if first.is_some() || buffer.remaining() > 0 {
            self.note_first(first);
        }
        Poll::Ready(read)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Unsecured<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, bytes));
        if written.is_err() {
            self.note_first(None);
        }
        Poll::Ready(written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Returns the refusal after a connection on which the server sends `bytes` and closes.
    async fn refusal(bytes: &[u8]) -> Option<&'static str> {
        let (near, mut far) = tokio::io::duplex(64);
        far.write_all(bytes).await.unwrap();
        drop(far);
        let refusal = PlaintextRefusal::default();
        let mut connection = Unsecured::new(near, refusal.clone());
        let mut received = Vec::new();
        connection.read_to_end(&mut received).await.unwrap();
        assert_eq!(received, bytes);
        refusal.get()
    }

    #[tokio::test]
    async fn a_server_with_tls_is_recognised_by_its_first_byte() {
        assert_eq!(refusal(b"").await, Some(CLOSED));
        assert_eq!(refusal(b"\x15\x03\x01").await, Some(ALERT));
        // The end of a connection that was in use, and the same byte later, mean nothing.
        assert_eq!(refusal(b"\0\x15").await, None);
    }

    #[tokio::test]
    async fn a_failed_write_before_the_first_byte_is_a_refusal() {
        let (near, far) = tokio::io::duplex(64);
        drop(far);
        let refusal = PlaintextRefusal::default();
        let mut connection = Unsecured::new(near, refusal.clone());
        connection.write_all(b"PRI").await.unwrap_err();
        assert_eq!(refusal.get(), Some(CLOSED));
    }
}
