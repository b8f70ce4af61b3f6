//! One request over HTTP/1.1: connection, TLS, limits of time, size and number.

use std::fmt;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use tls::Connector;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use crate::failure::{self, Failure};
use crate::token::Token;
use crate::url::Server;

/// Bytes of an answer: more than Vault stores in one entry (1 MiB by default), and lists of many keys.
const ANSWER_MAX: usize = 8 << 20;

/// The way to one server.
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
    /// Path and query.
    pub(crate) target: String,
    pub(crate) token: Option<&'a Token>,
    pub(crate) namespace: &'a str,
    pub(crate) body: Vec<u8>,
}

/// An answer with success.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Transport {
    /// Sends a request and reads its answer. Each request has a connection of its own: a node sends a few
    /// requests per minute, and an idle connection may be one to a standby that was active.
    ///
    /// # Errors
    /// No answer in time, or one without success.
    pub(crate) async fn send(&self, call: Call<'_>) -> Result<Answer, Failure> {
        let exchange = async {
            // The semaphore is never closed.
            let _permit = self.permits.acquire().await;
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
        let answer = tokio::time::timeout(self.timeout, exchange).await;
        answer.unwrap_or_else(|_| {
            Err(Failure::Timeout {
                address: self.server.authority(),
                limit: self.timeout,
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

    async fn read(&self, response: Response<hyper::body::Incoming>) -> Result<Answer, Failure> {
        let status = response.status().as_u16();
        let retry_after = response.headers().get(RETRY_AFTER).cloned();
        let mut content = Vec::new();
        let mut body = response.into_body();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| self.unreachable(&error))?;
            content.extend_from_slice(frame.data_ref().map_or(&[][..], |data| &data[..]));
            if content.len() > ANSWER_MAX {
                let problem = format!("it has more than {} MiB", ANSWER_MAX >> 20);
                return Err(Failure::NoVault { problem });
            }
        }
        if (200..300).contains(&status) {
            return Ok(Answer {
                status,
                body: content,
            });
        }
        let retry_after = retry_after.as_ref().and_then(|value| value.to_str().ok());
        Err(failure::of_answer(status, &content, retry_after))
    }

    fn message(&self, call: Call<'_>) -> Result<Request<Full<Bytes>>, Failure> {
        let invalid = |problem: &str| Failure::Request {
            problem: problem.to_owned(),
        };
        let mut request = Request::builder()
            .method(call.method)
            .uri(&call.target)
            .header(USER_AGENT, "Kafila")
            .header(HOST, self.server.authority())
            // Servers refuse requests without it if they are told so, against forged requests.
            .header("X-Vault-Request", "true");
        if !call.body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        if !call.namespace.is_empty() {
            let value = HeaderValue::from_str(call.namespace)
                .map_err(|_| invalid("the namespace has characters that no header can carry"))?;
            request = request.header("X-Vault-Namespace", value);
        }
        if let Some(token) = call.token {
            let mut value = HeaderValue::from_str(token.expose())
                .map_err(|_| invalid("the token has characters that no header can carry"))?;
            value.set_sensitive(true);
            request = request.header("X-Vault-Token", value);
        }
        request
            .body(Full::new(Bytes::from(call.body)))
            .map_err(|_| invalid("the path has characters that no request can carry"))
    }
}
