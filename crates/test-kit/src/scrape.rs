//! A scraper of metrics.

use std::io;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, ToSocketAddrs};

/// Returns the answer of a process to `GET /metrics`, with its headers.
///
/// # Errors
/// No answer, or a status other than 200.
pub async fn scrape(address: impl ToSocketAddrs) -> io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let request = b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n";
    stream.write_all(request).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    if !answer.starts_with("HTTP/1.0 200") {
        return Err(io::Error::other(answer));
    }
    Ok(answer)
}
