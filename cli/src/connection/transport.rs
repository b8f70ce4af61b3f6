//! Calls to the gateway, with deadlines and retries.
//!
//! A call is retried a bounded number of times if the gateway refuses it with advice to retry. An
//! idempotent call is also retried if the connection broke before the answer.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use proto::v1;
use service_kit::channel::{connect_lazy, connect_lazy_with};
use service_kit::{Backoff, IdSource, TracedChannel};
use tonic::{Request, Response, Status};

use crate::address::{Address, InvalidAddress};
use crate::error::{Error, retry_after};
use crate::transport::TlsSettings;

/// The largest accepted answer: a list of 100,000 allocations with their task events. Tonic's default
/// of 4 MiB holds 4,000.
pub(super) const MAX_ANSWER_BYTES: usize = 256 << 20;

/// Attempts per call, the first included. A busy gateway advises a delay of about 1 s, so a user
/// waits about 3 s for the error.
const MAX_ATTEMPTS: u32 = 4;

/// First and longest delay after a gateway that closed the connection during a call. Three delays
/// add up to 3–7 s, enough for a restart of the gateway.
const RESTART_BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));

/// Time without an answer after which the command says what it waits for.
const SLOW: Duration = Duration::from_secs(3);

/// Upper bound of a delay that the gateway advises.
const MAX_ADVISED_WAIT: Duration = Duration::from_secs(5);

/// The namespace when neither the flag nor the environment names one.
const DEFAULT_NAMESPACE: &str = "default";

/// A connection to a gateway, established by the first call. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Connection {
    channel: TracedChannel,
    address: Address,
    namespace: Option<String>,
    timeout: Duration,
    ids: IdSource,
    /// Reads take the gateway's replica as it is.
    stale: bool,
    /// Whether a slow answer was reported.
    has_noted_delay: Arc<AtomicBool>,
}

/// The closure that makes one call of a generated client, for [`Connection::call`] and its siblings.
macro_rules! rpc {
    ($client:ident.$method:ident) => {
        |channel, request| async move {
            $client::new(channel)
                .max_decoding_message_size($crate::connection::transport::MAX_ANSWER_BYTES)
                .$method(request)
                .await
        }
    };
}
pub(super) use rpc;

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("address", &self.address)
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

/// A blocking query: waits until the result changes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Blocking {
    /// The answer must be newer than this index; 0: answer immediately.
    pub(crate) after: u64,
    pub(crate) wait: Duration,
}

impl Connection {
    /// Must be called within a tokio runtime. `namespace` is set by the flag or the environment.
    ///
    /// # Errors
    /// `address` is not a URI, or a file of TLS cannot be used.
    pub(crate) fn new(
        address: Address,
        namespace: Option<String>,
        timeout: Duration,
        ids: IdSource,
        tls: &TlsSettings,
    ) -> Result<Self, Error> {
        let channel = if address.url.starts_with("https://") {
            connect_lazy_with(&address.url, tls.connector()?)
        } else {
            connect_lazy(&address.url)
        };
        let channel = channel.map_err(|_| InvalidAddress {
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
            stale: false,
            has_noted_delay: Arc::default(),
        })
    }

    /// Sets whether reads take the gateway's replica as it is, without asking etcd for its revision.
    pub(crate) fn reading(self, stale: bool) -> Self {
        Self { stale, ..self }
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    pub(crate) fn ids(&self) -> &IdSource {
        &self.ids
    }

    /// Returns the namespace of jobs.
    pub(crate) fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE)
    }

    /// Returns the namespace of objects with globally unique IDs: all, unless the user chose one.
    pub(crate) fn any_namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or("*")
    }

    pub(crate) fn options(&self, namespace: &str) -> v1::QueryOptions {
        v1::QueryOptions {
            namespace: namespace.to_owned(),
            consistency: if self.stale {
                v1::Consistency::Stale.into()
            } else {
                v1::Consistency::Unspecified.into()
            },
            ..v1::QueryOptions::default()
        }
    }

    pub(super) fn channel(&self) -> TracedChannel {
        self.channel.clone()
    }

    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    pub(super) fn blocking_options(&self, namespace: &str, blocking: Blocking) -> v1::QueryOptions {
        let waits = blocking.after > 0 || !blocking.wait.is_zero();
        let options = self.options(namespace);
        v1::QueryOptions {
            min_index: blocking.after,
            wait: Some(proto::duration_to_wire(blocking.wait)),
            consistency: match waits {
                // A replica may not have the object yet whose changes are waited for.
                true => v1::Consistency::Unspecified.into(),
                false => options.consistency,
            },
            ..options
        }
    }

    /// Makes one call; retries it if the gateway advises a delay.
    pub(super) async fn call<M, R, Sent>(
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

    /// Makes one blocking call, which the gateway may answer after `wait`.
    pub(super) async fn call_within<M, R, Sent>(
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
            // Boxed, because every command contains this future.
            let sent = Box::pin(send(self.channel.clone(), request));
            // A blocking query is expected to wait.
            let answer = if wait.is_zero() {
                self.noting_delay(doing, sent).await
            } else {
                sent.await
            };
            let status = match answer {
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

    /// Awaits an answer; says on standard error what is waited for when it takes long, once for all
    /// calls of the command.
    async fn noting_delay<T>(&self, doing: &str, mut sent: Pin<Box<impl Future<Output = T>>>) -> T {
        tokio::select! {
            answer = &mut sent => return answer,
            () = tokio::time::sleep(SLOW) => {}
        }
        if !self.has_noted_delay.swap(true, Ordering::Relaxed) {
            eprintln!(
                "Waiting for the gateway at {} ({doing}). It may be waiting for etcd: 'kafila operator \
                 health' tells.",
                self.address.url
            );
        }
        sent.await
    }

    /// Makes one idempotent call; also retries it if the connection broke during the call.
    ///
    /// A gateway that cannot be reached at all is an error without retries.
    pub(super) async fn call_until_answered<M, R, Sent>(
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
        // The error of a call with an unknown outcome, which is more useful than the refused
        // connection of a retry.
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

    pub(super) fn error(&self, doing: &str, status: Status) -> Error {
        Error::from_status(doing, status, &self.address, self.timeout)
    }
}
