//! The gateway as the commands call it: one method per question, each with a deadline.
//!
//! A call that the gateway turns down with the advice to come back is made again, a bounded number
//! of times; so is one that a dying gateway left unanswered, where asking twice is harmless. What
//! is not harmless says so at its place.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use proto::v1;
use service_kit::{Backoff, IdSource, TracedChannel};
use tonic::{Request, Response, Status};

use crate::address::Address;
use crate::error::{Error, retry_after};

mod alloc;
mod deployment;
mod eval;
mod event;
mod job;
mod job_operations;
mod namespace;
mod node;
mod node_pool;
mod operator;
mod rollout;
mod scaling;
mod volume;

pub(crate) use alloc::LogsRequest;
pub(crate) use job::JobAtWork;

/// The largest answer that is read: a list of 100,000 allocations with their task events; tonic's
/// own limit of 4 MiB is reached by 4,000.
pub(crate) const MAX_ANSWER_BYTES: usize = 256 << 20;

/// How often a call is made in all before its error is shown: with the advice of a busy gateway
/// (about a second each) that is as long as somebody at a terminal waits without a word.
const MAX_ATTEMPTS: u32 = 4;

/// How long to wait for a gateway that went away in the middle of a call, first and longest: three
/// waits make 3 to 7 s, in which a gateway restarts.
const RESTART_BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));

/// The longest that a gateway's advice is followed: beyond, the user decides.
const MAX_ADVISED_WAIT: Duration = Duration::from_secs(5);

/// The namespace of whoever names none.
pub(crate) const DEFAULT_NAMESPACE: &str = "default";

/// A connection to a gateway, made when first used. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Connection {
    channel: TracedChannel,
    address: Address,
    namespace: Option<String>,
    timeout: Duration,
    ids: IdSource,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("address", &self.address)
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

/// How long a list or an object is waited for to change.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Blocking {
    /// The index that the answer has to be newer than; 0: answer at once.
    pub(crate) after: u64,
    pub(crate) wait: Duration,
}

impl Connection {
    /// Must be called within a tokio runtime. `namespace` is the one the user named.
    ///
    /// # Errors
    /// `address` is not a URI.
    pub(crate) fn new(
        address: Address,
        namespace: Option<String>,
        timeout: Duration,
        ids: IdSource,
    ) -> Result<Self, Error> {
        let channel = service_kit::connect_lazy(&address.url).map_err(|_| Error::BadAddress {
            text: address.url.clone(),
            origin: address.source,
            problem: "it is not a URI".to_owned(),
        })?;
        Ok(Self {
            channel,
            address,
            namespace,
            timeout,
            ids,
        })
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    pub(crate) fn ids(&self) -> &IdSource {
        &self.ids
    }

    /// Returns the namespace to look for jobs in.
    pub(crate) fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE)
    }

    /// Returns the namespace to look for things in whose ids are unique everywhere: any, unless the
    /// user named one.
    pub(crate) fn any_namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or("*")
    }

    pub(crate) fn options(&self, namespace: &str) -> v1::QueryOptions {
        v1::QueryOptions {
            namespace: namespace.to_owned(),
            ..v1::QueryOptions::default()
        }
    }

    fn blocking_options(&self, namespace: &str, blocking: Blocking) -> v1::QueryOptions {
        v1::QueryOptions {
            min_index: blocking.after,
            wait: Some(proto::duration_to_wire(blocking.wait)),
            ..self.options(namespace)
        }
    }

    /// Makes one call, again where the gateway advises to.
    async fn call<M, R, Sent>(
        &self,
        doing: &str,
        message: M,
        send: impl Fn(TracedChannel, Request<M>) -> Sent,
    ) -> Result<R, Error>
    where
        M: Clone,
        Sent: Future<Output = Result<Response<R>, Status>>,
    {
        self.call_within(doing, message, Duration::ZERO, send).await
    }

    /// Makes one call that the gateway may let wait for `wait` before it answers.
    async fn call_within<M, R, Sent>(
        &self,
        doing: &str,
        message: M,
        wait: Duration,
        send: impl Fn(TracedChannel, Request<M>) -> Sent,
    ) -> Result<R, Error>
    where
        M: Clone,
        Sent: Future<Output = Result<Response<R>, Status>>,
    {
        let mut attempt = 1;
        loop {
            let request = service_kit::request(message.clone(), self.timeout + wait);
            let status = match send(self.channel.clone(), request).await {
                Ok(response) => return Ok(response.into_inner()),
                Err(status) => status,
            };
            let advice = retry_after(&status).filter(|_| attempt < MAX_ATTEMPTS);
            match advice {
                Some(pause) => tokio::time::sleep(pause.min(MAX_ADVISED_WAIT)).await,
                None => return Err(self.error(doing, status)),
            }
            attempt += 1;
        }
    }

    /// Makes one call that may be made twice, also when a gateway went away in the middle of it. A
    /// gateway that was never there is an error at once.
    async fn call_until_answered<M, R, Sent>(
        &self,
        doing: &str,
        message: M,
        send: impl Fn(TracedChannel, Request<M>) -> Sent,
    ) -> Result<R, Error>
    where
        M: Clone,
        Sent: Future<Output = Result<Response<R>, Status>>,
    {
        let mut backoff = Backoff::new(RESTART_BACKOFF.0, RESTART_BACKOFF.1);
        let mut rng = self.ids.rng();
        // The error of a call that may have been carried out: it tells more than a refused
        // connection afterwards.
        let mut unknown: Option<Error> = None;
        for attempt in 1.. {
            let error = match self.call(doing, message.clone(), &send).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let is_timeout = matches!(error, Error::Timeout { .. });
            if error.may_have_happened() {
                unknown = Some(error);
            } else if unknown.is_none() || !matches!(error, Error::Unreachable { .. }) {
                return Err(error);
            }
            if is_timeout || attempt >= MAX_ATTEMPTS {
                break;
            }
            tokio::time::sleep(backoff.next(&mut rng)).await;
        }
        Err(unknown.expect("the loop is left only after an unknown outcome"))
    }

    fn error(&self, doing: &str, status: Status) -> Error {
        Error::from_status(doing, status, &self.address, self.timeout)
    }
}
