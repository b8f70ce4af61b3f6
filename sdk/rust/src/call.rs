//! Calls before they are made: their deadline, and reads that block, page or watch.

use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, Stream, StreamExt as _, TryStreamExt as _};
use prost::Message;
use tonic::{Status, Streaming};

use crate::client::Client;
use crate::error::Error;
use crate::method::{Method, Repeat};
use crate::read::{Answer, List, Read};
use proto::rpc::codec::{decoded, encoded};

/// Items of a page of [`Call::items`].
const DEFAULT_PAGE: u32 = 500;

/// One call of an RPC; `.await` makes it.
#[must_use = "a call is made by `.await`"]
#[derive(Debug)]
pub struct Call<'a, Q, A> {
    client: &'a Client,
    method: Method<Q, A>,
    request: Q,
    timeout: Duration,
}

impl<'a, Q, A> Call<'a, Q, A> {
    /// Lets a request be sent again although the API does not say that this is safe: the caller accepts
    /// that it takes effect twice.
    pub fn repeatable(mut self) -> Self {
        self.method.repeat = |_| Repeat::Safe;
        self
    }

    pub(crate) fn new(client: &'a Client, method: Method<Q, A>, request: Q) -> Self {
        Self {
            client,
            method,
            request,
            timeout: client.config().timeout,
        }
    }

    /// Sets the time for the call with all its attempts.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}

impl<'a, Q, A> IntoFuture for Call<'a, Q, A>
where
    Q: Message + Clone + 'static,
    A: Message + Default + 'static,
{
    type Output = Result<A, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let none = Duration::ZERO;
        Box::pin(
            self.client
                .unary(self.method, self.request, self.timeout, none),
        )
    }
}

impl<'a, Q, A> Call<'a, Q, A>
where
    Q: Read + Message + 'static,
    A: Answer + Message + Default + 'static,
{
    /// Makes a read that waits until its result is newer than `index`, for at most `wait`. Index 0:
    /// answers at once.
    pub async fn blocking(mut self, index: u64, wait: Duration) -> Result<A, Error> {
        let wait = if index == 0 { Duration::ZERO } else { wait };
        let options = self.request.options_mut();
        options.min_index = index;
        options.wait = (!wait.is_zero()).then(|| proto::duration_to_wire(wait));
        let call = self
            .client
            .unary(self.method, self.request, self.timeout, wait);
        // The futures of callers stay small.
        Box::pin(call).await
    }

    /// Yields the answer now and after each change, without an end. It ends with the first error that
    /// retries do not mend.
    pub fn watch(self) -> impl Stream<Item = Result<A, Error>> + Send + 'a {
        /// Longest time of one blocking read.
        const WAIT: Duration = Duration::from_secs(60);
        let Self {
            client,
            method,
            request,
            timeout,
        } = self;
        stream::try_unfold(0, move |known| {
            let request = request.clone();
            async move {
                loop {
                    let call = Call {
                        client,
                        method,
                        request: request.clone(),
                        timeout,
                    };
                    let answer = call.blocking(known, WAIT).await?;
                    let index = answer.meta().index;
                    // An index that goes back belongs to a store restored from a backup: news as well.
                    if index != known {
                        return Ok(Some((answer, index)));
                    }
                }
            }
        })
    }

    /// Yields the answers of a list page by page; `per_page` of the options is the size of a page.
    pub fn pages(self) -> impl Stream<Item = Result<A, Error>> + Send + 'a {
        let Self {
            client,
            method,
            mut request,
            timeout,
        } = self;
        let options = request.options_mut();
        if options.per_page == 0 {
            options.per_page = DEFAULT_PAGE;
        }
        stream::try_unfold(Some(request), move |next| async move {
            let Some(mut request) = next else {
                return Ok(None);
            };
            let none = Duration::ZERO;
            let page = client.unary(method, request.clone(), timeout, none).await?;
            let token = page.meta().next_token;
            let next = (!token.is_empty()).then(|| {
                request.options_mut().next_token = token;
                request
            });
            Ok(Some((page, next)))
        })
    }
}

impl<'a, Q, A> Call<'a, Q, A>
where
    Q: Read + Message + 'static,
    A: List + Message + Default + 'static,
    A::Item: Send,
{
    /// Yields the items of a list, read page by page.
    pub fn items(self) -> impl Stream<Item = Result<A::Item, Error>> + Send + 'a {
        let pages = self.pages();
        pages
            .map_ok(|page| stream::iter(page.items().into_iter().map(Ok)))
            .try_flatten()
    }
}

/// One call of an RPC with a stream of answers; `.await` opens it, once and without retries.
#[must_use = "a stream is opened by `.await`"]
#[derive(Debug)]
pub struct StreamCall<'a, Q, A> {
    client: &'a Client,
    method: Method<Q, A>,
    request: Q,
    timeout: Duration,
}

impl<'a, Q, A> StreamCall<'a, Q, A> {
    pub(crate) fn new(client: &'a Client, method: Method<Q, A>, request: Q) -> Self {
        Self {
            client,
            method,
            request,
            timeout: client.config().timeout,
        }
    }

    /// Sets the time until the stream begins.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}

impl<'a, Q, A> IntoFuture for StreamCall<'a, Q, A>
where
    Q: Message + 'static,
    A: Message + Default + 'static,
{
    type Output = Result<Opened<A>, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let (path, message) = (self.method.path, encoded(&self.request));
            let (gateway, stream) = self.client.open(path, message, self.timeout).await?;
            Ok(Opened::new(path, gateway.address, stream))
        })
    }
}

/// One call of an RPC with streams in both directions; `.await` opens it, once and without retries.
#[must_use = "a stream is opened by `.await`"]
pub struct DuplexCall<'a, Q, A> {
    client: &'a Client,
    path: &'static str,
    requests: BoxStream<'static, Bytes>,
    timeout: Duration,
    types: PhantomData<fn(Q) -> A>,
}

impl<'a, Q: Message, A> DuplexCall<'a, Q, A> {
    pub(crate) fn new(
        client: &'a Client,
        path: &'static str,
        requests: impl Stream<Item = Q> + Send + 'static,
    ) -> Self {
        Self {
            client,
            path,
            requests: Box::pin(requests.map(|request| encoded(&request))),
            timeout: client.config().timeout,
            types: PhantomData,
        }
    }

    /// Sets the time until the answers begin.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}

impl<'a, Q, A> IntoFuture for DuplexCall<'a, Q, A>
where
    Q: Message + 'static,
    A: Message + Default + 'static,
{
    type Output = Result<Opened<A>, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let opening = self
                .client
                .open_duplex(self.path, self.requests, self.timeout);
            let (gateway, stream) = opening.await?;
            Ok(Opened::new(self.path, gateway.address, stream))
        })
    }
}

impl<Q, A> fmt::Debug for DuplexCall<'_, Q, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.path)
    }
}

/// An open stream.
pub struct Opened<A> {
    rpc: &'static str,
    address: String,
    stream: Streaming<Bytes>,
    answer: PhantomData<fn() -> A>,
}

impl<A> Opened<A> {
    fn new(rpc: &'static str, address: String, stream: Streaming<Bytes>) -> Self {
        Self {
            rpc,
            address,
            stream,
            answer: PhantomData,
        }
    }

    /// Returns the error of a stream that has ended before its time.
    pub(crate) fn ended(&self) -> Error {
        self.failed(Status::unavailable("the gateway ended the stream"))
    }

    fn failed(&self, status: Status) -> Error {
        Error::new(self.rpc, &self.address, status, Duration::ZERO)
    }
}

impl<A: Message + Default> Opened<A> {
    /// Returns the next message; `None` at the end.
    ///
    /// # Errors
    /// The stream broke.
    pub async fn next(&mut self) -> Result<Option<A>, Error> {
        let message = match self.stream.message().await {
            Ok(Some(bytes)) => decoded(bytes).map(Some),
            Ok(None) => Ok(None),
            Err(status) => Err(status),
        };
        message.map_err(|status| self.failed(status))
    }

    /// As [`Self::next`]; a silence of `limit` is an error.
    ///
    /// # Errors
    /// The stream broke or is silent.
    pub async fn next_within(&mut self, limit: Duration) -> Result<Option<A>, Error> {
        match tokio::time::timeout(limit, self.next()).await {
            Ok(next) => next,
            Err(_) => Err(Error::silent(self.rpc, &self.address, limit)),
        }
    }
}

impl<A> fmt::Debug for Opened<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.rpc, self.address)
    }
}
