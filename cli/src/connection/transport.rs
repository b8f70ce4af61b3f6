//! The connection of a command: the client, the address with its origin, and how reads are made.

use std::fmt;
use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kafila_client::{Client, Config, RetryPolicy};
use model::Namespace;
use proto::v1;
use service_kit::IdSource;

use crate::address::{Address, InvalidAddress};
use crate::error::Error;
use crate::transport::TlsSettings;

/// A busy gateway advises a delay of about 1 s, so a user waits about 3 s for the error; the delays after
/// a gateway that closed the connection add up to 3–7 s, enough for its restart. A gateway that cannot be
/// reached at all is an error at once.
const RETRIES: RetryPolicy = RetryPolicy {
    attempts: 4,
    first_delay: Duration::from_secs(1),
    max_delay: Duration::from_secs(5),
    wait_for_gateway: false,
};

/// Time without an answer after which the command reports its wait.
const SLOW: Duration = Duration::from_secs(3);

/// The connection of a command, established by the first call. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Connection {
    client: Client,
    address: Address,
    namespace: Option<String>,
    timeout: Duration,
    ids: IdSource,
    /// Reads take the gateway's replica as it is.
    stale: bool,
    /// True once a slow answer was reported.
    has_noted_delay: Arc<AtomicBool>,
    /// The reason why no call can be made: settings that cannot be used.
    refusal: Option<Arc<str>>,
}

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
    /// An address or a file of TLS that cannot be used is the error of the first call, so that commands
    /// without one work all the same.
    ///
    /// # Errors
    /// No client can be made.
    pub(crate) fn new(
        address: Result<Address, InvalidAddress>,
        namespace: Option<String>,
        timeout: Duration,
        ids: IdSource,
        tls: &TlsSettings,
    ) -> Result<Self, Error> {
        let (address, refusal) = match address {
            Ok(address) => (address, None),
            Err(error) => {
                let address = Address {
                    url: error.text.clone(),
                    source: error.origin,
                };
                (address, Some(error.into()))
            }
        };
        let made = match refusal {
            None => {
                let config = config(&address, timeout, tls);
                Client::new(config).map_err(|error| Error::config(error, &address))
            }
            Some(refusal) => Err(refusal),
        };
        let (client, refusal) = match made {
            Ok(client) => (client, None),
            Err(error) => {
                // Never called.
                let client = Client::new(Config::default());
                let client = client.map_err(|error| Error::config(error, &address))?;
                (client, Some(error.to_string().into()))
            }
        };
        Ok(Self {
            client,
            address,
            namespace,
            timeout,
            ids,
            stale: false,
            has_noted_delay: Arc::default(),
            refusal,
        })
    }

    /// Sets whether reads take the gateway's replica as it is, without asking etcd for its revision.
    pub(crate) fn reading(self, stale: bool) -> Self {
        Self { stale, ..self }
    }

    /// Tells whether reads may be old, as [`Self::reading`] has set.
    pub(crate) fn is_stale(&self) -> bool {
        self.stale
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    pub(crate) fn ids(&self) -> &IdSource {
        &self.ids
    }

    /// Returns the namespace of jobs.
    pub(crate) fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or(Namespace::DEFAULT)
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

    pub(super) fn api(&self) -> &Client {
        &self.client
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

    /// Makes a call; `doing` completes "Error …".
    pub(super) async fn call<A>(
        &self,
        doing: &str,
        call: impl IntoFuture<Output = Result<A, kafila_client::Error>>,
    ) -> Result<A, Error> {
        self.check_usable()?;
        // Boxed, because every command contains this future.
        let answer = self.noting_delay(doing, Box::pin(call.into_future()));
        self.named(doing, answer.await)
    }

    /// Makes a call that is expected to wait, such as a blocking query.
    pub(super) async fn call_waiting<A>(
        &self,
        doing: &str,
        call: impl IntoFuture<Output = Result<A, kafila_client::Error>>,
    ) -> Result<A, Error> {
        self.check_usable()?;
        self.named(doing, call.await)
    }

    fn check_usable(&self) -> Result<(), Error> {
        match &self.refusal {
            Some(refusal) => Err(Error::Settings(refusal.to_string())),
            None => Ok(()),
        }
    }

    fn named<A>(&self, doing: &str, answer: Result<A, kafila_client::Error>) -> Result<A, Error> {
        answer.map_err(|error| Error::from_call(doing, error, &self.address, self.timeout))
    }

    /// Awaits an answer; reports a long wait on standard error, once for all calls of the command.
    async fn noting_delay<T>(&self, doing: &str, mut sent: Pin<Box<impl Future<Output = T>>>) -> T {
        tokio::select! {
            answer = &mut sent => return answer,
            () = tokio::time::sleep(SLOW) => {}
        }
        if !self.has_noted_delay.swap(true, Ordering::Relaxed) {
            let url = &self.address.url;
            eprintln!("{}", delay_text(url, doing, self.client.has_connected()));
        }
        sent.await
    }
}

/// Returns the report of a long wait.
fn delay_text(url: &str, doing: &str, has_connected: bool) -> String {
    if has_connected {
        format!(
            "Waiting for the gateway at {url} ({doing}). It may be waiting for etcd: 'kafila operator health' \
             tells."
        )
    } else {
        format!("Waiting for a connection to the gateway at {url} ({doing}).")
    }
}

fn config(address: &Address, timeout: Duration, tls: &TlsSettings) -> Config {
    let gateways: Vec<String> = address.url.split(',').map(str::to_owned).collect();
    Config {
        attempt_timeout: match gateways.len() {
            1 => timeout,
            // Time for another one.
            _ => timeout.min(Config::default().attempt_timeout),
        },
        gateways,
        tls: tls.0.clone(),
        timeout,
        retry: RETRIES,
        metadata: Some(Arc::new(service_kit::channel::add_trace)),
        ..Config::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_connected_gateway_may_be_waiting_for_etcd() {
        let text = |has_connected| delay_text("http://g:1", "querying jobs", has_connected);
        assert!(text(true).contains("etcd"), "{}", text(true));
        assert!(!text(false).contains("etcd"), "{}", text(false));
    }
}
