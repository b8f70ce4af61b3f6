//! Answer to a client that speaks no TLS, so that its error says so.

use std::io;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// First byte of a TLS connection: a handshake record. Source: RFC 8446, section 5.1.
pub(crate) const TLS_HANDSHAKE: u8 = 0x16;

/// The message for people.
pub(crate) const MESSAGE: &str = "this port needs TLS: use https://";

/// The start of every HTTP/2 connection. Source: RFC 9113, section 3.4.
const HTTP2_START: u8 = b'P';

/// The most bytes read from a refused client.
const MAX_READ: u64 = 64 * 1024;

/// Refuses the connection in the client's own protocol. Ends when the client closes it; callers limit
/// the time.
pub(crate) async fn refuse(mut stream: TcpStream, first: u8) -> io::Result<()> {
    let answer = if first == HTTP2_START {
        http2_refusal()
    } else {
        let length = MESSAGE.len() + 1;
        format!(
            "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n{MESSAGE}\n"
        )
        .into_bytes()
    };
    stream.write_all(&answer).await?;
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

/// Returns empty SETTINGS, and GOAWAY with `INADEQUATE_SECURITY`. Source: RFC 9113, sections 6.5, 6.8
/// and 7.
fn http2_refusal() -> Vec<u8> {
    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    const GOAWAY: u8 = 7;
    const INADEQUATE_SECURITY: u8 = 0xc;
    let length = u8::try_from(8 + MESSAGE.len()).expect("the message is short");
    let mut bytes = SETTINGS.to_vec();
    bytes.extend([0, 0, length, GOAWAY, 0, 0, 0, 0, 0]);
    bytes.extend([0, 0, 0, 0]);
    bytes.extend([0, 0, 0, INADEQUATE_SECURITY]);
    bytes.extend(MESSAGE.as_bytes());
    bytes
}
