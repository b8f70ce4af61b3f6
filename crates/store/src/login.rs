//! Authentication of a user at etcd: a token in every request, renewed when etcd no longer knows it.

use std::path::PathBuf;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http_body_util::{BodyExt as _, Full};
use tokio::sync::Mutex;
use tokio::time::Instant;
use tonic::body::Body;
use tonic::codegen::http::{HeaderValue, Request, Response};
use tonic::transport::Channel;
use tonic::{Code, Status};
use tower::{BoxError, Service, ServiceExt as _};
use tracing::debug;

/// Source: etcd's gRPC API.
const TOKEN_HEADER: &str = "authorization";
/// A stream cannot be sent again, so it opens with a token at most this old. Streams open rarely, and
/// etcd's CPU time for a login is some 60 ms.
const STREAM_TOKEN_AGE: Duration = Duration::from_secs(5);
/// RPCs whose requests are streams.
const STREAMS: [&str; 2] = [
    "/etcdserverpb.Watch/Watch",
    "/etcdserverpb.Lease/LeaseKeepAlive",
];

/// A user of etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub name: String,
    /// File with the password, read for each login.
    pub password_file: PathBuf,
}

/// The login of one user, shared by all channels of a client.
#[derive(Debug)]
pub(crate) struct Login {
    user: User,
    token: Mutex<Option<Token>>,
}

#[derive(Clone, Debug)]
struct Token {
    header: HeaderValue,
    issued: Instant,
}

impl Login {
    pub(crate) fn new(user: User) -> Self {
        Self {
            user,
            token: Mutex::new(None),
        }
    }

    /// Returns a token other than `refused` and not older than `max_age`; logs in if there is none.
    async fn token(
        &self,
        channel: &Channel,
        refused: Option<&HeaderValue>,
        max_age: Option<Duration>,
    ) -> Result<HeaderValue, BoxError> {
        // One login at a time; the others use its token.
        let mut token = self.token.lock().await;
        if let Some(known) = &*token
            && refused != Some(&known.header)
            && max_age.is_none_or(|age| known.issued.elapsed() <= age)
        {
            return Ok(known.header.clone());
        }
        let header = self.authenticate(channel).await?;
        *token = Some(Token {
            header: header.clone(),
            issued: Instant::now(),
        });
        Ok(header)
    }

    async fn authenticate(&self, channel: &Channel) -> Result<HeaderValue, BoxError> {
        let path = &self.user.password_file;
        let password = tokio::fs::read_to_string(path).await.map_err(|error| {
            format!("cannot read etcd's password in {}: {error}", path.display())
        })?;
        let password = password.trim_end_matches(['\r', '\n']).to_owned();
        let channel = etcd_client::Channel::Tonic(channel.clone());
        let client = etcd_client::Client::from_channel(channel, None).await?;
        let answer = client
            .auth_client()
            .authenticate(self.user.name.clone(), password)
            .await;
        match answer {
            Ok(answer) => {
                debug!(user = self.user.name, "logged in to etcd");
                let mut header = HeaderValue::from_str(answer.token())?;
                header.set_sensitive(true);
                Ok(header)
            }
            // As the answer of the request that needed the token.
            Err(etcd_client::Error::GRpcStatus(status)) => Err(Box::new(status)),
            Err(error) => Err(Box::new(error)),
        }
    }
}

/// A channel whose requests carry the token of a login, if there is one. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct LoggedIn {
    pub(crate) channel: Channel,
    pub(crate) login: Option<Arc<Login>>,
}

impl Service<Request<Body>> for LoggedIn {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { channel, login } = self.clone();
        Box::pin(async move {
            match login {
                None => send(channel, request).await,
                Some(login) if STREAMS.contains(&request.uri().path()) => {
                    let token = login.token(&channel, None, Some(STREAM_TOKEN_AGE)).await?;
                    send(channel, with_token(request, token)).await
                }
                Some(login) => call(channel, &login, request).await,
            }
        })
    }
}

async fn send(mut channel: Channel, request: Request<Body>) -> Result<Response<Body>, BoxError> {
    Ok(channel.ready().await?.call(request).await?)
}

/// Sends a request; once more with a new token if etcd refuses the token, before it has executed
/// anything.
async fn call(
    channel: Channel,
    login: &Login,
    request: Request<Body>,
) -> Result<Response<Body>, BoxError> {
    let (parts, body) = request.into_parts();
    let bytes = body.collect().await?.to_bytes();
    let again = || Request::from_parts(parts.clone(), Body::new(Full::new(bytes.clone())));
    let token = login.token(&channel, None, None).await?;
    let response = send(channel.clone(), with_token(again(), token.clone())).await?;
    if !is_token_refused(&response) {
        return Ok(response);
    }
    let token = login.token(&channel, Some(&token), None).await?;
    send(channel, with_token(again(), token)).await
}

fn with_token(mut request: Request<Body>, token: HeaderValue) -> Request<Body> {
    request.headers_mut().insert(TOKEN_HEADER, token);
    request
}

/// Tells whether etcd refused the token: it expired, etcd restarted, or users and roles changed.
fn is_token_refused(response: &Response<Body>) -> bool {
    // etcd has no code of its own for the last one.
    const OLD_REVISION: &str = "revision of auth store is old";
    Status::from_header_map(response.headers()).is_some_and(|status| match status.code() {
        Code::Unauthenticated => true,
        Code::InvalidArgument => status.message().contains(OLD_REVISION),
        _ => false,
    })
}
