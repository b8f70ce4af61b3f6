//! The server's side of calls: what generated services make for each request.

use bytes::Bytes;
use http_body::Body as HttpBody;
use prost::Message;
use tonic::body::Body;
use tonic::codec::{Codec, EnabledCompressionEncodings};
use tonic::codegen::{BoxFuture, StdError};
use tonic::server::{ServerStreamingService, StreamingService, UnaryService};
use tonic::{Request, Response, Status};

use super::codec::{EncodedCodec, decoded, encoded};

/// Has the methods of [`tonic::server::Grpc`] that generated code calls.
#[derive(Debug)]
pub struct Grpc<C> {
    codec: C,
    settings: Settings,
}

/// Sizes are in bytes; without one, tonic's default holds.
#[derive(Clone, Copy, Debug, Default)]
struct Settings {
    accepted_compression: EnabledCompressionEncodings,
    sent_compression: EnabledCompressionEncodings,
    decoded_bytes_max: Option<usize>,
    encoded_bytes_max: Option<usize>,
}

impl Settings {
    fn grpc<C: Codec>(self, codec: C) -> tonic::server::Grpc<C> {
        tonic::server::Grpc::new(codec)
            .apply_compression_config(self.accepted_compression, self.sent_compression)
            .apply_max_message_size_config(self.decoded_bytes_max, self.encoded_bytes_max)
    }
}

impl<C: Codec + Clone> Grpc<C> {
    pub fn new(codec: C) -> Self {
        let settings = Settings::default();
        Self { codec, settings }
    }

    #[must_use]
    pub fn apply_compression_config(
        mut self,
        accepted: EnabledCompressionEncodings,
        sent: EnabledCompressionEncodings,
    ) -> Self {
        self.settings.accepted_compression = accepted;
        self.settings.sent_compression = sent;
        self
    }

    #[must_use]
    pub fn apply_max_message_size_config(
        mut self,
        decoded_bytes_max: Option<usize>,
        encoded_bytes_max: Option<usize>,
    ) -> Self {
        self.settings.decoded_bytes_max = decoded_bytes_max;
        self.settings.encoded_bytes_max = encoded_bytes_max;
        self
    }

    pub async fn unary<S, B>(
        &mut self,
        service: S,
        request: http::Request<B>,
    ) -> http::Response<Body>
    where
        S: UnaryService<C::Decode, Response = C::Encode> + Send + 'static,
        S::Future: Send + 'static,
        C::Decode: Message + Default,
        C::Encode: Message,
        B: HttpBody + Send + 'static,
        B::Error: Into<StdError> + Send,
    {
        serve_unary(self.settings, method_of(service), request).await
    }

    pub async fn server_streaming<S, B>(
        &mut self,
        service: S,
        request: http::Request<B>,
    ) -> http::Response<Body>
    where
        S: ServerStreamingService<C::Decode, Response = C::Encode>,
        S::ResponseStream: Send + 'static,
        B: HttpBody + Send + 'static,
        B::Error: Into<StdError> + Send,
    {
        let mut grpc = self.settings.grpc(self.codec.clone());
        grpc.server_streaming(service, request).await
    }

    pub async fn streaming<S, B>(
        &mut self,
        service: S,
        request: http::Request<B>,
    ) -> http::Response<Body>
    where
        S: StreamingService<C::Decode, Response = C::Encode> + Send,
        S::ResponseStream: Send + 'static,
        B: HttpBody + Send + 'static,
        B::Error: Into<StdError> + Send,
    {
        let mut grpc = self.settings.grpc(self.codec.clone());
        grpc.streaming(service, request).await
    }
}

type Answer = BoxFuture<Response<Bytes>, Status>;

/// The method of a service, without the types of its messages.
struct Method {
    call: Box<dyn FnMut(Request<Bytes>) -> Answer + Send>,
}

impl UnaryService<Bytes> for Method {
    type Response = Bytes;
    type Future = Answer;

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        (self.call)(request)
    }
}

fn method_of<S, M>(mut service: S) -> Method
where
    S: UnaryService<M> + Send + 'static,
    S::Future: Send + 'static,
    S::Response: Message,
    M: Message + Default,
{
    let call = move |request: Request<Bytes>| -> Answer {
        let (metadata, extensions, message) = request.into_parts();
        let message = match decoded(message) {
            Ok(message) => message,
            Err(status) => return Box::pin(std::future::ready(Err(status))),
        };
        let answer = service.call(Request::from_parts(metadata, extensions, message));
        Box::pin(async move { Ok(answer.await?.map(|answer| encoded(&answer))) })
    };
    Method {
        call: Box::new(call),
    }
}

/// Generic over the body alone, of which there is one.
async fn serve_unary<B>(
    settings: Settings,
    method: Method,
    request: http::Request<B>,
) -> http::Response<Body>
where
    B: HttpBody + Send + 'static,
    B::Error: Into<StdError> + Send,
{
    settings.grpc(EncodedCodec).unary(method, request).await
}
