//! A connection made of messages: bytes that a streaming RPC carries in both directions.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;
use tokio_util::io::StreamReader;
use tokio_util::sync::PollSender;

/// The most bytes of one message: two frames of HTTP/2.
const MESSAGE_BYTES: usize = 32 * 1024;
/// Messages that wait for the RPC to send them: a writer of one connection waits, not the RPCs beside it.
pub const MESSAGES: usize = 4;

/// Messages from the other end. It ends with the connection.
pub type Incoming = Pin<Box<dyn futures::Stream<Item = io::Result<Bytes>> + Send>>;

/// Both directions of a connection, as messages.
pub struct Messages {
    pub incoming: Incoming,
    /// Dropped to end the connection. Its channel has room for [`MESSAGES`].
    pub outgoing: mpsc::Sender<Vec<u8>>,
}

/// Both directions of a connection, as bytes.
pub struct MessageStream {
    reader: StreamReader<Incoming, Bytes>,
    writer: PollSender<Vec<u8>>,
}

impl From<Messages> for MessageStream {
    fn from(messages: Messages) -> Self {
        Self {
            reader: StreamReader::new(messages.incoming),
            writer: PollSender::new(messages.outgoing),
        }
    }
}

impl AsyncRead for MessageStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().reader).poll_read(context, buffer)
    }
}

impl AsyncWrite for MessageStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let writer = &mut self.get_mut().writer;
        let ended = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        ready!(writer.poll_reserve(context)).map_err(ended)?;
        let message = &bytes[..bytes.len().min(MESSAGE_BYTES)];
        writer.send_item(message.to_vec()).map_err(ended)?;
        Poll::Ready(Ok(message.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The RPC takes messages by itself.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().writer.close();
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Returns two ends of a connection.
    fn pair() -> (MessageStream, MessageStream) {
        let ((to_a, from_b), (to_b, from_a)) = (mpsc::channel(MESSAGES), mpsc::channel(MESSAGES));
        let end = |outgoing, mut messages: mpsc::Receiver<Vec<u8>>| {
            let incoming = futures::stream::poll_fn(move |context| messages.poll_recv(context));
            let incoming = incoming.map(|message| Ok(Bytes::from(message))).boxed();
            MessageStream::from(Messages { incoming, outgoing })
        };
        (end(to_b, from_b), end(to_a, from_a))
    }

    #[tokio::test]
    async fn bytes_keep_their_order_whatever_their_number() {
        let (mut a, mut b) = pair();
        let sent: Vec<u8> = (0..10 * MESSAGE_BYTES)
            .map(|number| u8::try_from(number % 251).unwrap())
            .collect();
        let expected = sent.clone();
        let writing = tokio::spawn(async move {
            a.write_all(&sent).await.unwrap();
            a.shutdown().await.unwrap();
            a
        });
        let mut received = Vec::new();
        b.read_to_end(&mut received).await.unwrap();
        assert_eq!(received, expected);
        // The other direction is still open.
        let mut a = writing.await.unwrap();
        b.write_all(b"answer").await.unwrap();
        drop(b);
        let mut answer = String::new();
        a.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "answer");
    }

    #[tokio::test]
    async fn a_writer_waits_for_the_reader_and_hears_of_its_end() {
        let (mut a, b) = pair();
        let message = [7; MESSAGE_BYTES];
        for _ in 0..MESSAGES {
            a.write_all(&message).await.unwrap();
        }
        let waiting = futures::poll!(std::pin::pin!(a.write_all(&message)));
        assert!(waiting.is_pending());
        drop(b);
        let ended = a.write_all(&message).await.unwrap_err();
        assert_eq!(ended.kind(), io::ErrorKind::BrokenPipe);
    }
}
