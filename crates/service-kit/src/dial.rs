//! Connections that a process opens before a channel uses them, and the identity of the other end.

use std::io;

use connections::ByteStream;
use identity::{Identity, Peer, Role};
use tokio::time::timeout;
use tower::Service as _;

use crate::channel::{BadAddress, CONNECT_TIMEOUT};
use crate::transport::Transport;

/// The reason why a process was not reached.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    #[error(transparent)]
    Address(#[from] BadAddress),
    #[error("no answer within {} s", CONNECT_TIMEOUT.as_secs())]
    Timeout,
    #[error("the connection failed")]
    Connect(#[from] io::Error),
}

impl Transport {
    /// Connects to one process; with TLS it proves the role and this name.
    ///
    /// # Errors
    /// See [`DialError`].
    pub async fn dial_to(
        &self,
        address: &str,
        role: Role,
        name: &str,
    ) -> Result<Box<dyn ByteStream>, DialError> {
        let uri = http::Uri::try_from(self.dialed(address));
        let uri = uri.map_err(|_| BadAddress::name(address))?;
        let Some(mut connector) = self.connector_to(address, role, name)? else {
            let host = uri.host().unwrap_or_default();
            let authority = format!("{host}:{}", uri.port_u16().unwrap_or(80));
            let connecting = timeout(CONNECT_TIMEOUT, connections::connect(&authority));
            let stream = connecting.await.map_err(|_| DialError::Timeout)??;
            return Ok(Box::new(stream));
        };
        let connecting = timeout(CONNECT_TIMEOUT, connector.call(uri));
        let stream = connecting.await.map_err(|_| DialError::Timeout)??;
        Ok(Box::new(stream.into_inner()))
    }

    /// Returns the identity of a server of `role` that this process has connected to: the handshake has verified
    /// role and region, and no name.
    pub fn peer_of(&self, role: Role) -> Peer {
        let Some(region) = self.region() else {
            return Peer::Development;
        };
        match Identity::new(role, region, role.as_str()) {
            Ok(identity) => Peer::Certified(identity),
            Err(_) => Peer::Anonymous,
        }
    }
}
