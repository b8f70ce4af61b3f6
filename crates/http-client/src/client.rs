//! One request over HTTP/1.1: connection, TLS, limits of time, size and number.

use std::fmt;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderValue, USER_AGENT};
use hyper::{Method, Response};
use hyper_util::rt::TokioIo;
use tls::Connector;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use crate::failure::{Failure, Service};
use crate::server::Server;
use crate::settings::{SettingProblem, Settings};
use crate::target::Target;

/// A client of one service.
pub struct HttpClient {
    service: Service,
    server: Server,
    /// `None`: plaintext.
    connector: Option<Connector>,
    timeout: Duration,
    permits: Semaphore,
    answer_max: usize,
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

/// A request.
pub struct Request<'a> {
    pub method: Method,
    pub target: Target,
    pub headers: Vec<Header<'a>>,
    /// JSON, or empty.
    pub body: Vec<u8>,
    /// The time that the service may wait for a change, beyond the timeout; `None`: the request does not wait
    /// for a change.
    pub wait: Option<Duration>,
}

/// A header of a request.
pub struct Header<'a> {
    pub name: &'static str,
    pub value: &'a str,
    /// Its content, as in `token`, for the message about a value that no header can carry. Logs show no value.
    pub content: &'static str,
}

/// An answer, whatever its status.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Returns the text of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

impl HttpClient {
    /// Prepares access to a service; the certificates are read, nothing is sent. Blocks.
    ///
    /// # Errors
    /// The setting that is wrong.
    pub fn open(settings: &Settings) -> Result<Self, SettingProblem> {
        let server = settings.server()?;
        let connector = server.is_https.then(|| settings.connector()).transpose()?;
        Ok(Self {
            service: settings.service,
            server,
            connector,
            timeout: settings.timeout,
            permits: Semaphore::new(settings.max_requests.max(1)),
            answer_max: settings.answer_max,
        })
    }

    /// Sends a request and reads its answer. Each request has a connection of its own: a node sends a few
    /// requests per minute, queries that wait keep their connection busy, and an idle one may lead to a
    /// standby that was active.
    ///
    /// # Errors
    /// The service cannot be reached, gives no answer in time, or one that is too large.
    pub async fn send(&self, request: Request<'_>) -> Result<Answer, Failure> {
        let limit = self.timeout + request.wait.unwrap_or_default();
        let exchange = async {
            // Queries that wait would use all permits up; their number is that of the look-ups.
            let _permit = match request.wait {
                Some(_) => None,
                // The semaphore is never closed.
                None => self.permits.acquire().await.ok(),
            };
            let stream = TcpStream::connect((self.server.host.as_str(), self.server.port)).await;
            let stream = stream.map_err(|error| self.unreachable(&error))?;
            match &self.connector {
                None => self.exchange(stream, request).await,
                Some(connector) => {
                    let stream = connector.handshake(stream, &self.server.host).await;
                    let stream = stream.map_err(|error| self.unreachable(&error))?;
                    self.exchange(stream, request).await
                }
            }
        };
        let answer = tokio::time::timeout(limit, exchange).await;
        answer.unwrap_or_else(|_| {
            Err(Failure::Timeout {
                service: self.service,
                address: self.server.authority(),
                limit,
            })
        })
    }

    fn unreachable(&self, cause: &dyn fmt::Display) -> Failure {
        Failure::Unreachable {
            service: self.service,
            address: self.server.authority(),
            cause: cause.to_string(),
        }
    }

    async fn exchange<S>(&self, stream: S, request: Request<'_>) -> Result<Answer, Failure>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let message = self.message(request)?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| self.unreachable(&error))?;
        let exchange = async {
            let response = sender.send_request(message).await;
            let response = response.map_err(|error| self.unreachable(&error))?;
            self.read(response).await
        };
        connections::exchange(connection, exchange).await
    }

    async fn read(&self, response: Response<Incoming>) -> Result<Answer, Failure> {
        let (parts, mut body) = response.into_parts();
        let mut content = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| self.unreachable(&error))?;
            content.extend_from_slice(frame.data_ref().map_or(&[][..], |data| &data[..]));
            if content.len() > self.answer_max {
                return Err(Failure::Foreign {
                    service: self.service,
                    problem: format!("it has more than {} MiB", self.answer_max >> 20),
                });
            }
        }
        Ok(Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: content,
        })
    }

    fn message(&self, request: Request<'_>) -> Result<hyper::Request<Full<Bytes>>, Failure> {
        let invalid = |content: &str, carrier: &str| Failure::Request {
            problem: format!("the {content} has characters that no {carrier} can carry"),
        };
        let mut message = hyper::Request::builder()
            .method(request.method)
            .uri(request.target.below(&self.server.prefix))
            .header(USER_AGENT, "Kafila")
            .header(HOST, self.server.authority());
        if !request.body.is_empty() {
            message = message.header(CONTENT_TYPE, "application/json");
        }
        for header in &request.headers {
            let mut value = HeaderValue::from_str(header.value)
                .map_err(|_| invalid(header.content, "header"))?;
            value.set_sensitive(true);
            message = message.header(header.name, value);
        }
        message
            .body(Full::new(Bytes::from(request.body)))
            .map_err(|_| invalid("path", "request"))
    }
}
