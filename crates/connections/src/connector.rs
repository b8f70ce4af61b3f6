//! Connector of channels on a simulated network.

use std::io;
use std::task::{Context, Poll};

use http::Uri;
use hyper_util::rt::TokioIo;
use tower::Service;

use crate::network::{BoxFuture, Network};
use crate::stream::Io;

#[derive(Clone)]
pub(crate) struct Connector {
    pub(crate) network: &'static dyn Network,
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Box<dyn Io>>;
    type Error = io::Error;
    type Future = BoxFuture<io::Result<Self::Response>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let authority = uri.authority().map(http::uri::Authority::as_str);
        let connecting = self.network.connect(authority.unwrap_or_default());
        Box::pin(async move { connecting.await.map(TokioIo::new) })
    }
}
