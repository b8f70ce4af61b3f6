//! Listeners: TCP or simulated.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::net::TcpListener;

use crate::stream::{Io, Stream};

/// A listener of a simulated network.
pub trait Accept: Send {
    /// Returns the next connection.
    fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Box<dyn Io>>>;

    fn local_addr(&self) -> SocketAddr;
}

/// A bound port. As a stream it yields incoming connections and never ends.
pub enum Listener {
    Tcp(TcpListener),
    Simulated(Box<dyn Accept>),
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(listener) => listener.fmt(f),
            Self::Simulated(listener) => write!(f, "Listener at {}", listener.local_addr()),
        }
    }
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self::Tcp(listener)
    }
}

impl Listener {
    /// Returns the bound address.
    ///
    /// # Errors
    /// Those of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.local_addr(),
            Self::Simulated(listener) => Ok(listener.local_addr()),
        }
    }
}

impl futures::Stream for Listener {
    type Item = io::Result<Stream>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let accepted = match self.get_mut() {
            Self::Tcp(listener) => {
                ready!(listener.poll_accept(context)).map(|(stream, _)| Stream::Tcp(stream))
            }
            Self::Simulated(listener) => {
                ready!(listener.poll_accept(context)).map(Stream::Simulated)
            }
        };
        Poll::Ready(Some(accepted))
    }
}
