//! The sender of one request.

use std::fmt;

use http::Extensions;

use crate::name::Identity;
use crate::role::Role;

/// The identity of the other end of a connection. The transport puts it into the extensions of
/// every request of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// TLS, and a verified client certificate with this identity.
    Certified(Identity),
    /// TLS without a client certificate.
    Anonymous,
    /// No TLS: insecure development mode, on a loopback address.
    Development,
}

/// The sender of a request: handlers and queries take it as an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    peer: Peer,
}

impl Caller {
    pub const fn new(peer: Peer) -> Self {
        Self { peer }
    }

    /// A caller in insecure development mode: it has all rights.
    pub const DEVELOPMENT: Self = Self::new(Peer::Development);
    /// A caller without any identity.
    pub const ANONYMOUS: Self = Self::new(Peer::Anonymous);

    /// Returns the sender of the request with these extensions; anonymous if the transport and the layer
    /// in front of the handlers left none.
    pub fn of(extensions: &Extensions) -> Self {
        extensions.get().cloned().unwrap_or(Self::ANONYMOUS)
    }

    pub const fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Returns the verified identity; `None` for anonymous callers and in development mode.
    pub const fn identity(&self) -> Option<&Identity> {
        match &self.peer {
            Peer::Certified(identity) => Some(identity),
            Peer::Anonymous | Peer::Development => None,
        }
    }

    pub const fn role(&self) -> Option<Role> {
        match self.identity() {
            Some(identity) => Some(identity.role()),
            None => None,
        }
    }

    /// Tells whether the caller has all rights because the server runs in insecure development mode.
    pub const fn is_development(&self) -> bool {
        matches!(self.peer, Peer::Development)
    }
}

/// For messages and logs.
impl fmt::Display for Caller {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.peer {
            Peer::Certified(identity) => identity.fmt(formatter),
            Peer::Anonymous => formatter.write_str("a caller without a certificate"),
            Peer::Development => formatter.write_str("a caller in insecure development mode"),
        }
    }
}
