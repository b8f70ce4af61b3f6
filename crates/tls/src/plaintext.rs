//! Answer to a client that speaks no TLS, so that its error says so.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::http2;

/// First byte of a TLS connection: a handshake record. Source: RFC 8446, section 5.1.
pub(crate) const TLS_HANDSHAKE: u8 = 0x16;

/// The message for people.
pub(crate) const MESSAGE: &str = "this port needs TLS: use https://";

/// The first bytes of [`http2::PREFACE`], which no other protocol has.
const HTTP2_START: [u8; 3] = *b"PRI";

/// The most bytes read from a refused client.
const MAX_READ: u64 = 64 * 1024;

/// The time for the first request of an HTTP/2 client. It sends one at once, or a round trip after the
/// server's settings; a client that only opens connections ahead of its requests gets GOAWAY.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(1);

/// Refuses the connection in the client's own protocol. Ends when the client closes it; callers limit
/// the time.
pub(crate) async fn refuse(mut stream: TcpStream, first: u8) -> io::Result<()> {
    // `POST` and `PUT` of HTTP/1.1 begin with the same letter.
    let mut start = [0; HTTP2_START.len()];
    let is_http2 = first == HTTP2_START[0] && {
        let read = timeout(FIRST_REQUEST_TIMEOUT, stream.read_exact(&mut start)).await;
        read.is_ok_and(|read| read.is_ok()) && start == HTTP2_START
    };
    if is_http2 {
        refuse_http2(&mut stream).await?;
    } else {
        let length = MESSAGE.len() + 1;
        let answer = format!(
            "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n{MESSAGE}\n"
        );
        stream.write_all(answer.as_bytes()).await?;
    }
    close_read(stream).await
}

/// Closes the connection once the client has: closing with unread input would reset it, and the client
/// may lose the answer. Callers limit the time.
pub(crate) async fn close_read(mut stream: TcpStream) -> io::Result<()> {
    stream.shutdown().await?;
    let (mut rest, mut sink) = (stream.take(MAX_READ), tokio::io::sink());
    tokio::io::copy(&mut rest, &mut sink).await?;
    let _ = rest.read(&mut [0; 1]).await;
    Ok(())
}

/// Answers the first request with a gRPC status, then ends the connection.
///
/// A GOAWAY before the request is sent makes some clients report a closed connection without the reason.
async fn refuse_http2(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(&http2::SETTINGS).await?;
    let request = timeout(FIRST_REQUEST_TIMEOUT, first_request(stream)).await;
    let mut answer = Vec::new();
    let mut last_stream = 0;
    if let Ok(Ok(request)) = request {
        answer.extend(http2::SETTINGS_ACK);
        answer.extend(http2::status(request, http2::FAILED_PRECONDITION, MESSAGE));
        last_stream = request;
    }
    let end = http2::goaway(last_stream, http2::INADEQUATE_SECURITY, MESSAGE);
    answer.extend(end);
    stream.write_all(&answer).await
}

/// Reads from the rest of the preface to the headers of the first request; returns the id of its stream.
/// Callers limit the time.
async fn first_request(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<u32> {
    let mut stream = stream.take(MAX_READ);
    let expected = &http2::PREFACE[HTTP2_START.len()..];
    let mut rest = vec![0; expected.len()];
    stream.read_exact(&mut rest).await?;
    if rest != expected {
        return Err(io::ErrorKind::InvalidData.into());
    }
    loop {
        let mut header = [0; http2::FRAME_HEADER_BYTES];
        stream.read_exact(&mut header).await?;
        let frame = http2::Frame::read(header);
        let mut payload = (&mut stream).take(u64::from(frame.length));
        tokio::io::copy(&mut payload, &mut tokio::io::sink()).await?;
        if frame.kind == http2::HEADERS {
            return Ok(frame.stream);
        }
    }
}
