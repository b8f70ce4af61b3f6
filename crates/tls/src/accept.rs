//! Handshakes of accepted connections.

use std::io;
use std::time::Duration;

use rustls_pki_types::CertificateDer;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::credentials::{Clients, Credentials};
use crate::plaintext;

/// The time that a refused client has to read the reason and close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// An accepted connection with a verified peer.
pub type ServerStream = tokio_rustls::server::TlsStream<TcpStream>;

/// A connection was refused before its first request.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    #[error("the client speaks no TLS: it must call https:// addresses")]
    Plaintext,
    #[error("the client closed the connection")]
    Closed,
    #[error("TLS handshake failed: {0}")]
    Failed(#[source] io::Error),
    #[error("this process has no certificate: set `tls.cert_file` and `tls.key_file`")]
    NoCertificate,
}

impl HandshakeError {
    /// Returns the reason in metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Plaintext => "plaintext",
            Self::Closed => "closed",
            Self::Failed(_) => "handshake",
            Self::NoCertificate => "no_certificate",
        }
    }
}

/// Performs the handshake of an accepted connection; returns it with the peer's certificate, which an
/// authority of ours has issued. It is `None` only with [`crate::Clients::Any`]. Callers limit the time.
///
/// A client without TLS is refused with an answer in its own protocol.
///
/// # Errors
/// The client has no acceptable certificate, speaks no TLS, or closed the connection.
pub async fn accept(
    credentials: &Credentials,
    stream: TcpStream,
) -> Result<(ServerStream, Option<CertificateDer<'static>>), HandshakeError> {
    let config = credentials.server().ok_or(HandshakeError::NoCertificate)?;
    let mut first = [0];
    match stream.peek(&mut first).await {
        Ok(0) => return Err(HandshakeError::Closed),
        Ok(_) if first[0] == plaintext::TLS_HANDSHAKE => {}
        Ok(_) => {
            let _ = plaintext::refuse(stream, first[0]).await;
            return Err(HandshakeError::Plaintext);
        }
        Err(error) => return Err(HandshakeError::Failed(error)),
    }
    let accepted = TlsAcceptor::from(config).accept(stream);
    let stream = match accepted.into_fallible().await {
        Ok(stream) => stream,
        Err((error, stream)) => {
            // The client has begun its first request when the reason reaches it.
            let _ = timeout(CLOSE_TIMEOUT, plaintext::close_read(stream)).await;
            return Err(HandshakeError::Failed(error));
        }
    };
    let certificates = stream.get_ref().1.peer_certificates();
    let leaf = certificates.and_then(|chain| chain.first());
    let leaf = leaf.map(|leaf| leaf.clone().into_owned());
    // The verifier requires one.
    if leaf.is_none() && credentials.shared.clients == Clients::Certified {
        let error = io::Error::other("the client has no certificate");
        return Err(HandshakeError::Failed(error));
    }
    Ok((stream, leaf))
}
