//! Messages between machines.

use std::net::SocketAddr;

pub type HostId = usize;
pub(super) type ConnectionId = u64;

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct End {
    pub(super) connection: ConnectionId,
    /// 0: the connecting side, 1: the accepting side.
    pub(super) side: usize,
}

impl End {
    pub(super) fn other(self) -> Self {
        Self {
            side: 1 - self.side,
            ..self
        }
    }
}

/// A message in flight.
pub(super) struct Message {
    pub(super) from: HostId,
    pub(super) to: HostId,
    /// The receiving end.
    pub(super) end: End,
    pub(super) payload: Payload,
}

pub(super) enum Payload {
    Connect { from: SocketAddr, to: SocketAddr },
    Accepted,
    Refused,
    Bytes(Vec<u8>),
    Fin,
    Reset,
}
