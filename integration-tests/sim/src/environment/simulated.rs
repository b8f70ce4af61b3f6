//! The network for product code.

use std::io;
use std::net::SocketAddr;

use connections::{Accept, BoxFuture, Io, Network};

use super::network;
use super::stream::{Acceptor, Connecting};

/// The simulated network, in the place of TCP.
pub(super) struct Simulated;

impl Network for Simulated {
    fn connect(&self, authority: &str) -> BoxFuture<io::Result<Box<dyn Io>>> {
        let Ok(to) = authority.parse::<SocketAddr>() else {
            let error = io::Error::new(io::ErrorKind::InvalidInput, authority.to_owned());
            return Box::pin(std::future::ready(Err(error)));
        };
        Box::pin(Connecting::new(to))
    }

    fn listen(&self, address: SocketAddr) -> io::Result<Box<dyn Accept>> {
        let (host, address) = network::listen(address)?;
        Ok(Box::new(Acceptor { host, address }))
    }
}
