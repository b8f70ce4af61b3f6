//! The client's side of calls: what generated clients hold.

use bytes::Bytes;
use http::Uri;
use http::uri::PathAndQuery;
use http_body::Body as HttpBody;
use prost::Message;
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::codec::{Codec, CompressionEncoding, Streaming};
use tonic::codegen::StdError;
use tonic::codegen::tokio_stream::Stream;
use tonic::{Request, Response, Status};

use super::codec::{EncodedCodec, decoded, encoded};

/// Has the methods of [`tonic::client::Grpc`] that generated code calls.
#[derive(Clone, Debug)]
pub struct Grpc<T> {
    inner: tonic::client::Grpc<T>,
}

impl<T> Grpc<T> {
    pub fn new(inner: T) -> Self {
        Self::with_origin(inner, Uri::default())
    }

    pub fn with_origin(inner: T, origin: Uri) -> Self {
        let inner = tonic::client::Grpc::with_origin(inner, origin);
        Self { inner }
    }

    #[must_use]
    pub fn send_compressed(self, encoding: CompressionEncoding) -> Self {
        let inner = self.inner.send_compressed(encoding);
        Self { inner }
    }

    #[must_use]
    pub fn accept_compressed(self, encoding: CompressionEncoding) -> Self {
        let inner = self.inner.accept_compressed(encoding);
        Self { inner }
    }

    /// `limit` is in bytes.
    #[must_use]
    pub fn max_decoding_message_size(self, limit: usize) -> Self {
        let inner = self.inner.max_decoding_message_size(limit);
        Self { inner }
    }

    /// `limit` is in bytes.
    #[must_use]
    pub fn max_encoding_message_size(self, limit: usize) -> Self {
        let inner = self.inner.max_encoding_message_size(limit);
        Self { inner }
    }
}

impl<T> Grpc<T>
where
    T: GrpcService<Body>,
    T::ResponseBody: HttpBody<Data = Bytes> + Send + 'static,
    <T::ResponseBody as HttpBody>::Error: Into<StdError>,
{
    /// Waits until the connection takes a request.
    ///
    /// # Errors
    /// The connection's own.
    pub async fn ready(&mut self) -> Result<(), T::Error> {
        self.inner.ready().await
    }

    /// # Errors
    /// The server's status, that of a connection that broke, or INTERNAL if the answer is not of type `A`.
    pub async fn unary<M, A, C>(
        &mut self,
        request: Request<M>,
        path: PathAndQuery,
        _codec: C,
    ) -> Result<Response<A>, Status>
    where
        C: Codec<Encode = M, Decode = A>,
        M: Message,
        A: Message + Default,
    {
        let request = request.map(|message| encoded(&message));
        let response = self.inner.unary(request, path, EncodedCodec).await?;
        let (metadata, answer, extensions) = response.into_parts();
        let answer = decoded(answer)?;
        Ok(Response::from_parts(metadata, answer, extensions))
    }

    /// # Errors
    /// The server's status, or that of a connection that broke.
    pub async fn server_streaming<M, A, C>(
        &mut self,
        request: Request<M>,
        path: PathAndQuery,
        codec: C,
    ) -> Result<Response<Streaming<A>>, Status>
    where
        C: Codec<Encode = M, Decode = A>,
        M: Send + Sync + 'static,
        A: Send + Sync + 'static,
    {
        self.inner.server_streaming(request, path, codec).await
    }

    /// # Errors
    /// The server's status, or that of a connection that broke.
    pub async fn streaming<S, M, A, C>(
        &mut self,
        request: Request<S>,
        path: PathAndQuery,
        codec: C,
    ) -> Result<Response<Streaming<A>>, Status>
    where
        S: Stream<Item = M> + Send + 'static,
        C: Codec<Encode = M, Decode = A>,
        M: Send + Sync + 'static,
        A: Send + Sync + 'static,
    {
        self.inner.streaming(request, path, codec).await
    }
}
