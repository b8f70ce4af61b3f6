//! The simulated network that may replace TCP in a process.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::OnceLock;

use crate::listener::Accept;
use crate::stream::Io;

/// A boxed future, for trait objects.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A simulated network.
pub trait Network: Send + Sync {
    /// Connects the caller to `host:port`.
    fn connect(&self, authority: &str) -> BoxFuture<io::Result<Box<dyn Io>>>;

    /// Listens at an address of the caller's; port 0 is any.
    ///
    /// # Errors
    /// The address is taken, or not the caller's.
    fn listen(&self, address: SocketAddr) -> io::Result<Box<dyn Accept>>;
}

static INSTALLED: OnceLock<Box<dyn Network>> = OnceLock::new();

/// Replaces TCP by `network` for the rest of the process.
///
/// # Panics
/// A network is already installed.
pub fn install(network: Box<dyn Network>) {
    let is_first = INSTALLED.set(network).is_ok();
    assert!(is_first, "a process has one network");
}

pub(crate) fn installed() -> Option<&'static dyn Network> {
    INSTALLED.get().map(Box::as_ref)
}

/// Returns whether a simulated network replaces TCP.
pub fn is_simulated() -> bool {
    installed().is_some()
}
