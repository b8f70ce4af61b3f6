//! One request over HTTP/1.1: connection, TLS, limits of time, size and number.

use std::fmt;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use tls::Connector;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use crate::failure::{self, Failure};
use crate::token::Token;
use crate::url::{Server, Target};

/// Bytes of an answer: a list of keys with values of at most 512 KiB each, or all services of an agent.
const ANSWER_MAX: usize = 32 << 20;

/// The way to one agent of Consul.
pub(crate) struct Transport {
    pub(crate) server: Server,
    /// `None`: plaintext.
    pub(crate) connector: Option<Connector>,
    pub(crate) timeout: Duration,
    pub(crate) permits: Semaphore,
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

/// A request. `body`: JSON, or empty.
pub(crate) struct Call<'a> {
    pub(crate) method: Method,
    pub(crate) target: Target,
    pub(crate) token: Option<&'a Token>,
    pub(crate) body: Vec<u8>,
    /// The time that the agent may wait for a change, beyond the timeout.
    pub(crate) wait: Option<Duration>,
}

/// An answer with success.
pub(crate) struct Answer {
    pub(crate) body: Vec<u8>,
    /// 0: none.
    pub(crate) index: u64,
}

impl Transport {
    /// Sends a request and reads its answer. Each request has a connection of its own: most are to the agent
    /// on the same machine, and queries that wait keep theirs busy.
    ///
    /// # Errors
    /// No answer in time, or one without success.
    pub(crate) async fn send(&self, call: Call<'_>) -> Result<Answer, Failure> {
        let limit = self.timeout + call.wait.unwrap_or_default();
        let exchange = async {
            // Queries that wait would use all permits up; their number is that of the look-ups.
            let _permit = match call.wait {
                Some(_) => None,
                // The semaphore is never closed.
                None => self.permits.acquire().await.ok(),
            };
            let stream = TcpStream::connect((self.server.host.as_str(), self.server.port)).await;
            let stream = stream.map_err(|error| self.unreachable(&error))?;
            match &self.connector {
                None => self.exchange(stream, call).await,
                Some(connector) => {
                    let stream = connector.handshake(stream, &self.server.host).await;
                    let stream = stream.map_err(|error| self.unreachable(&error))?;
                    self.exchange(stream, call).await
                }
            }
        };
        let answer = tokio::time::timeout(limit, exchange).await;
        answer.unwrap_or_else(|_| {
            Err(Failure::Timeout {
                address: self.server.authority(),
                limit,
            })
        })
    }

    fn unreachable(&self, cause: &dyn fmt::Display) -> Failure {
        Failure::Unreachable {
            address: self.server.authority(),
            cause: cause.to_string(),
        }
    }

    async fn exchange<S>(&self, stream: S, call: Call<'_>) -> Result<Answer, Failure>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let message = self.message(call)?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| self.unreachable(&error))?;
        let exchange = async {
            let response = sender.send_request(message).await;
            let response = response.map_err(|error| self.unreachable(&error))?;
            self.read(response).await
        };
        net::exchange(connection, exchange).await
    }

    async fn read(&self, response: Response<Incoming>) -> Result<Answer, Failure> {
        let status = response.status().as_u16();
        let index = response.headers().get("X-Consul-Index");
        let index = index.and_then(|value| value.to_str().ok()?.parse().ok());
        let mut content = Vec::new();
        let mut body = response.into_body();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| self.unreachable(&error))?;
            content.extend_from_slice(frame.data_ref().map_or(&[][..], |data| &data[..]));
            if content.len() > ANSWER_MAX {
                let problem = format!("it has more than {} MiB", ANSWER_MAX >> 20);
                return Err(Failure::NoConsul { problem });
            }
        }
        if (200..300).contains(&status) {
            return Ok(Answer {
                body: content,
                index: index.unwrap_or_default(),
            });
        }
        let failure = failure::of_answer(status, &content);
        // An absent key has an index to wait from.
        match (failure, index) {
            (Failure::Absent { .. }, Some(index)) => Ok(Answer {
                body: b"null".to_vec(),
                index,
            }),
            (failure, _) => Err(failure),
        }
    }

    fn message(&self, call: Call<'_>) -> Result<Request<Full<Bytes>>, Failure> {
        let invalid = |problem: &str| Failure::Request {
            problem: problem.to_owned(),
        };
        let mut request = Request::builder()
            .method(call.method)
            .uri(call.target.below(&self.server.prefix))
            .header(USER_AGENT, "Kafila")
            .header(HOST, self.server.authority());
        if !call.body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        if let Some(token) = call.token.filter(|token| !token.is_empty()) {
            let mut value = HeaderValue::from_str(token.expose())
                .map_err(|_| invalid("the token has characters that no header can carry"))?;
            value.set_sensitive(true);
            request = request.header("X-Consul-Token", value);
        }
        request
            .body(Full::new(Bytes::from(call.body)))
            .map_err(|_| invalid("the path has characters that no request can carry"))
    }
}
