//! A receiver that does not read delays its sender, and breaks no connection, however small the messages are.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::routing::any;
use futures::future::join_all;
use service_kit::server::{ServeOptions, bind, serve};
use service_kit::{CancellationToken, TracedChannel, connect_lazy};
use tonic::service::Routes;
use tower::{Service as _, ServiceExt as _};

/// A method that a server of this kind has.
const ACK: &str = "/kafila.internal.v1.EvalBroker/Ack";
/// Messages of which hyper's own windows let too many arrive for the `h2` crate.
const COUNT: usize = 100_000;
const SIZE: usize = 20;
/// The time for which a receiver does not read: all that may arrive unread has arrived.
const PAUSE: Duration = Duration::from_secs(1);

/// Returns a body of `count` small DATA frames.
fn small_frames(count: usize) -> Body {
    let frames = (0..count).map(|_| Ok::<_, Infallible>(Bytes::from_static(&[7; SIZE])));
    Body::from_stream(futures::stream::iter(frames))
}

/// Starts a server on a thread of its own, and returns a channel on one connection to it.
async fn channel<H, T>(handler: H) -> (TracedChannel, String)
where
    H: axum::handler::Handler<T, ()>,
    T: 'static,
{
    let (bound, address) = tokio::sync::oneshot::channel();
    let serving = async move {
        let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        bound.send(listener.local_addr().unwrap()).unwrap();
        let options = ServeOptions {
            service: "test",
            rpc_services: Vec::new(),
            descriptors: &[],
            metrics: None,
            shutdown_grace_period: Duration::ZERO,
        };
        let routes = Routes::from(axum::Router::new().route(ACK, any(handler)));
        serve(listener, routes, options, CancellationToken::new()).await
    };
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(serving)
    });
    let address = format!("http://{}", address.await.unwrap());
    (connect_lazy(&address).unwrap(), address)
}

/// Sends `body`; returns the answer's.
async fn call(mut channel: TracedChannel, address: &str, body: Body) -> Body {
    let request = http::Request::post(format!("{address}{ACK}"))
        .header("content-type", "application/grpc")
        .body(tonic::body::Body::new(body))
        .unwrap();
    let response = channel.ready().await.unwrap().call(request).await.unwrap();
    Body::new(response.into_body())
}

async fn size(body: Body) -> usize {
    to_bytes(body, usize::MAX).await.unwrap().len()
}

/// Reads a request after a while; answers with its size.
async fn read_late(request: Request) -> String {
    tokio::time::sleep(PAUSE).await;
    size(request.into_body()).await.to_string()
}

#[tokio::test]
async fn a_client_that_reads_late_gets_every_message() {
    let (channel, address) = channel(async || small_frames(COUNT)).await;
    let body = call(channel, &address, Body::empty()).await;
    tokio::time::sleep(PAUSE).await;
    assert_eq!(size(body).await, COUNT * SIZE);
}

#[tokio::test]
async fn a_server_that_reads_late_gets_every_message() {
    let (channel, address) = channel(read_late).await;
    let answer = call(channel, &address, small_frames(COUNT)).await;
    let answer = to_bytes(answer, usize::MAX).await.unwrap();
    assert_eq!(answer, (COUNT * SIZE).to_string());
}

#[tokio::test]
async fn requests_beyond_a_thousand_wait_in_their_client_and_are_answered() {
    const REQUESTS: usize = 3_000;
    static OPEN: AtomicUsize = AtomicUsize::new(0);
    static MOST: AtomicUsize = AtomicUsize::new(0);
    async fn count(request: Request) -> String {
        let open = OPEN.fetch_add(1, Ordering::Relaxed) + 1;
        MOST.fetch_max(open, Ordering::Relaxed);
        let answer = read_late(request).await;
        OPEN.fetch_sub(1, Ordering::Relaxed);
        answer
    }
    let (channel, address) = channel(count).await;
    let calls = (0..REQUESTS).map(|_| call(channel.clone(), &address, small_frames(1)));
    for answer in join_all(calls).await {
        assert_eq!(size(answer).await, SIZE.to_string().len());
    }
    assert_eq!(MOST.load(Ordering::Relaxed), 1_024);
}

#[tokio::test]
async fn requests_given_up_before_the_server_saw_them_do_not_break_the_connection() {
    const REQUESTS: usize = 500;
    let (stop, stopped) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let wait = Arc::new(Mutex::new(wait));
    // An empty request stops the server's thread until the test lets it go on.
    let handler = move |request: Request| {
        let (stop, wait) = (stop.clone(), Arc::clone(&wait));
        async move {
            if size(request.into_body()).await == 0 {
                stop.send(()).unwrap();
                wait.lock().unwrap().recv().unwrap();
            }
        }
    };
    let (channel, address) = channel(handler).await;
    let stopping = async {
        let answer = call(channel.clone(), &address, Body::empty()).await;
        size(answer).await
    };
    let giving_up = async {
        tokio::task::spawn_blocking(move || stopped.recv().unwrap())
            .await
            .unwrap();
        let calls = (0..REQUESTS).map(|_| call(channel.clone(), &address, small_frames(1)));
        let given_up = tokio::time::timeout(PAUSE / 2, join_all(calls)).await;
        assert!(given_up.is_err(), "the server was not stopped");
        // Their resets are sent.
        tokio::time::sleep(PAUSE / 2).await;
        go.send(()).unwrap();
    };
    let (answer, ()) = tokio::join!(stopping, giving_up);
    assert_eq!(answer, 0);
    let next = call(channel.clone(), &address, small_frames(1)).await;
    assert_eq!(size(next).await, 0);
}
