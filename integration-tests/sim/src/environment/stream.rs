//! Connections and listeners as product code holds them.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use connections::{Accept, Io};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::message::{End, HostId};
use super::network;

/// One end of a connection, until it is dropped.
pub(super) struct Connection {
    end: End,
    local: SocketAddr,
    peer: SocketAddr,
    is_finished: bool,
}

impl Connection {
    fn new(end: End) -> io::Result<Self> {
        let (local, peer) =
            network::addresses(end).ok_or(io::Error::from(io::ErrorKind::ConnectionReset))?;
        Ok(Self {
            end,
            local,
            peer,
            is_finished: false,
        })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        network::close(self.end);
    }
}

impl Io for Connection {
    fn local_addr(&self) -> SocketAddr {
        self.local
    }

    fn peer_addr(&self) -> SocketAddr {
        self.peer
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match network::read(self.end, buffer.remaining(), context.waker()) {
            None => Poll::Pending,
            Some(Ok(bytes)) => {
                buffer.put_slice(&bytes);
                Poll::Ready(Ok(()))
            }
            Some(Err(error)) => Poll::Ready(Err(error)),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        network::write(self.end, bytes, context.waker()).map_or(Poll::Pending, Poll::Ready)
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.is_finished {
            self.is_finished = true;
            network::finish(self.end);
        }
        Poll::Ready(Ok(()))
    }
}

/// A connection in progress.
pub(super) struct Connecting {
    to: SocketAddr,
    end: Option<End>,
}

impl Connecting {
    pub(super) fn new(to: SocketAddr) -> Self {
        Self { to, end: None }
    }
}

impl Drop for Connecting {
    fn drop(&mut self) {
        if let Some(end) = self.end {
            network::close(end);
        }
    }
}

impl Future for Connecting {
    type Output = io::Result<Box<dyn Io>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let end = match self.end {
            Some(end) => end,
            None => match network::connect(self.to) {
                Some(end) => *self.end.insert(end),
                None => return Poll::Ready(Err(io::ErrorKind::HostUnreachable.into())),
            },
        };
        match network::is_connected(end, context.waker()) {
            None => Poll::Pending,
            Some(Err(error)) => Poll::Ready(Err(error)),
            Some(Ok(())) => {
                let connection = Connection::new(end);
                self.end = None;
                Poll::Ready(connection.map(|connection| Box::new(connection) as Box<dyn Io>))
            }
        }
    }
}

/// A bound port, until it is dropped.
pub(super) struct Acceptor {
    pub(super) host: HostId,
    pub(super) address: SocketAddr,
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        network::stop_listening(self.host, self.address.port());
    }
}

impl Accept for Acceptor {
    fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Box<dyn Io>>> {
        match network::accept(self.host, self.address.port(), context.waker()) {
            None => Poll::Pending,
            Some(end) => Poll::Ready(Connection::new(end).map(|it| Box::new(it) as Box<dyn Io>)),
        }
    }

    fn local_addr(&self) -> SocketAddr {
        self.address
    }
}
