//! A gateway that gives the answers of a script and keeps the requests.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use bytes::{BufMut as _, Bytes, BytesMut};
use futures::stream;
use http::{HeaderMap, HeaderValue, Response, header};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use kafila_client::{Client, Config, RetryPolicy};
use prost::Message;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::Status;
use tonic::service::Routes;

/// The scripted reaction of a gateway to a request.
pub(crate) enum Reply {
    Messages(Vec<Bytes>),
    /// Messages, then the end of a gateway that shuts down.
    Broken(Vec<Bytes>),
    Refuse(Status),
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) path: String,
    message: Bytes,
}

impl Seen {
    pub(crate) fn read<Q: Message + Default>(&self) -> Q {
        Q::decode(self.message.clone()).unwrap()
    }
}

#[derive(Default)]
struct Script {
    replies: VecDeque<Reply>,
    seen: Vec<Seen>,
}

pub(crate) struct Gateway {
    pub(crate) address: SocketAddr,
    script: Arc<Mutex<Script>>,
    server: JoinHandle<()>,
}

pub(crate) fn answer(message: &impl Message) -> Reply {
    Reply::Messages(vec![message.encode_to_vec().into()])
}

pub(crate) fn encoded(message: &impl Message) -> Bytes {
    message.encode_to_vec().into()
}

impl Gateway {
    /// Starts a gateway; after the last reply it refuses every request as UNKNOWN.
    pub(crate) async fn start(replies: Vec<Reply>) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let script = Arc::new(Mutex::new(Script {
            replies: replies.into(),
            seen: Vec::new(),
        }));
        let shared = Arc::clone(&script);
        let router = axum::Router::new().fallback(move |request: http::Request<Body>| {
            let script = Arc::clone(&shared);
            async move { reply(&script, request).await }
        });
        let serving = tonic::transport::Server::builder()
            .add_routes(Routes::from(router))
            .serve_with_incoming(TcpListenerStream::new(listener));
        let server = tokio::spawn(async move { serving.await.unwrap() });
        Self {
            address,
            script,
            server,
        }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.script.lock().unwrap().seen.clone()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn reply(
    script: &Mutex<Script>,
    request: http::Request<Body>,
) -> Result<Response<Body>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let reply = {
        let mut script = script.lock().unwrap();
        // After the prefix of one byte and a length.
        let message = body.slice(5..);
        script.seen.push(Seen { path, message });
        script.replies.pop_front()
    };
    // Code 14: UNAVAILABLE.
    let (messages, code) = match reply {
        Some(Reply::Messages(messages)) => (messages, "0"),
        Some(Reply::Broken(messages)) => (messages, "14"),
        Some(Reply::Refuse(status)) => return Ok(status.into_http()),
        None => return Ok(Status::unknown("the script has ended").into_http()),
    };
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static(code));
    let frames = messages.iter().map(|message| framed(message));
    let frames: Vec<_> = frames.chain([Frame::trailers(trailers)]).collect();
    let frames = stream::iter(frames.into_iter().map(Ok::<_, Infallible>));
    let body = Body::new(StreamBody::new(frames));
    let response = Response::builder().header(header::CONTENT_TYPE, "application/grpc");
    Ok(response.body(body).unwrap())
}

/// Returns a message with its prefix: not compressed, and the length.
fn framed(message: &[u8]) -> Frame<Bytes> {
    let mut bytes = BytesMut::with_capacity(message.len() + 5);
    bytes.put_u8(0);
    bytes.put_u32(u32::try_from(message.len()).unwrap());
    bytes.put_slice(message);
    Frame::data(bytes.freeze())
}

/// Returns a client of the gateways, with short delays.
pub(crate) fn client(gateways: &[&Gateway]) -> Client {
    let addresses = gateways.iter().map(|gateway| gateway.address.to_string());
    client_of(addresses.collect())
}

pub(crate) fn client_of(gateways: Vec<String>) -> Client {
    let config = Config {
        gateways,
        retry: RetryPolicy {
            first_delay: Duration::from_millis(5),
            max_delay: Duration::from_millis(50),
            ..RetryPolicy::default()
        },
        ..Config::default()
    };
    Client::new(config).unwrap()
}

/// Returns an address at which nothing listens.
pub(crate) async fn dead_address() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().to_string()
}
