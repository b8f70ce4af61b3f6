//! Streams that go on after a break, at the same gateway or another.

use std::time::Duration;

use backoff::Backoff;
use futures::stream::{self, Stream};
use rand::RngExt as _;
use tokio::time::Instant;

use crate::call::Opened;
use crate::client::Client;
use crate::config::RetryPolicy;
use crate::error::Error;
use crate::v1;

/// Interval of the signs of life of an idle stream of events.
const BOOKMARKS: Duration = Duration::from_secs(5);
/// Silence after which another gateway is asked.
const SILENCE: Duration = Duration::from_secs(20);
/// Longest time of one blocking read.
const WAIT: Duration = Duration::from_secs(30);

/// The subscription of [`Client::follow_events`].
#[derive(Clone, Debug, Default)]
pub struct FollowEvents {
    /// `None`: the client's.
    pub namespace: Option<String>,
    /// Events to send: those that match any filter. Empty: all.
    pub filters: Vec<v1::EventFilter>,
    /// First index to send; 0: from now on, and if the stream breaks before its first message (within
    /// 5 s), from the next opening on. To continue in another process, the last batch's index plus one.
    pub index: u64,
    /// Yields batches without events too, which tell how far the stream is.
    pub bookmarks: bool,
    /// Time without any message after which the error is returned. `None`: never.
    pub longest_outage: Option<Duration>,
}

/// The log that [`Client::follow_logs`] follows.
#[derive(Clone, Debug, Default)]
pub struct FollowLogs {
    /// An id or an id prefix.
    pub alloc_id: String,
    pub task: String,
    /// Standard error instead of standard output.
    pub stderr: bool,
    /// Begins so many bytes before the end; `None`: at the start of the kept output. After output has
    /// come, such a stream does not continue after a break: its position is unknown.
    pub tail_bytes: Option<u64>,
    /// Time without output or connection after a break, before the error is returned. `None`: never.
    pub longest_outage: Option<Duration>,
}

/// Delays of reconnects, and the longest time without a message. Time and chance are arguments.
#[derive(Debug)]
struct Outage {
    backoff: Backoff,
    longest: Option<Duration>,
    since: Instant,
}

impl Outage {
    fn new(policy: RetryPolicy, longest: Option<Duration>, now: Instant) -> Self {
        Self {
            backoff: policy.backoff(),
            longest,
            since: now,
        }
    }

    /// A message has arrived.
    fn over(&mut self, now: Instant) {
        self.since = now;
        self.backoff.reset();
    }

    /// Returns the delay before a reconnect; `None`: `error` is final.
    fn delay(&mut self, error: &Error, now: Instant, chance: f64) -> Option<Duration> {
        // A stream that the gateway closes because its reader is slow has no advice.
        let may_reconnect = error.is_failover() || error.code() == tonic::Code::ResourceExhausted;
        let delay = self.backoff.next_with(1.0 - chance);
        let waited = (now + delay).saturating_duration_since(self.since);
        let is_patient = self.longest.is_none_or(|longest| waited <= longest);
        (may_reconnect && is_patient).then_some(delay)
    }

    /// Waits before a reconnect, or returns the error.
    async fn wait(&mut self, error: Error) -> Result<(), Error> {
        let chance = rand::rng().random_range(0.0..=1.0);
        match self.delay(&error, Instant::now(), chance) {
            None => Err(error),
            Some(delay) => {
                tokio::time::sleep(delay).await;
                Ok(())
            }
        }
    }
}

impl Client {
    /// Yields the events of every write, without an end, through breaks and other gateways. Each batch
    /// is yielded once.
    ///
    /// The code OUT_OF_RANGE means that the index is no longer stored: read the state anew, and follow
    /// from its index.
    pub fn follow_events(
        &self,
        what: FollowEvents,
    ) -> impl Stream<Item = Result<v1::EventBatch, Error>> + Send + 'static {
        let client = self.clone();
        let outage = Outage::new(client.config().retry, what.longest_outage, Instant::now());
        let namespace = what.namespace.as_ref();
        let request = v1::StreamEventsRequest {
            namespace: namespace.unwrap_or(&client.config().namespace).clone(),
            filters: what.filters,
            index: what.index,
            bookmark_interval: Some(proto::duration_to_wire(BOOKMARKS)),
        };
        let state = (client, request, outage, None::<Opened<v1::EventBatch>>);
        stream::try_unfold(state, move |state| async move {
            let (client, mut request, mut outage, mut open) = state;
            loop {
                let broken = match &mut open {
                    None => match client.events().stream(request.clone()).await {
                        Ok(opened) => {
                            open = Some(opened);
                            continue;
                        }
                        Err(error) => error,
                    },
                    Some(events) => match events.next_within(SILENCE).await {
                        Ok(Some(batch)) => {
                            outage.over(Instant::now());
                            request.index = batch.index + 1;
                            if what.bookmarks || !batch.events.is_empty() {
                                return Ok(Some((batch, (client, request, outage, open))));
                            }
                            continue;
                        }
                        Ok(None) => events.ended(),
                        Err(error) => error,
                    },
                };
                if open.take().is_some() {
                    client.leave_for(&broken);
                }
                outage.wait(broken).await?;
            }
        })
    }

    /// Yields the output of a task as it is written, until the task has ended. Waits for the start of
    /// its allocation.
    pub fn follow_logs(
        &self,
        what: FollowLogs,
    ) -> impl Stream<Item = Result<Vec<u8>, Error>> + Send + 'static {
        let client = self.clone();
        let outage = Outage::new(client.config().retry, what.longest_outage, Instant::now());
        let stream = match what.stderr {
            true => v1::LogStream::Stderr,
            false => v1::LogStream::Stdout,
        };
        let request = v1::LogsRequest {
            alloc_id: what.alloc_id,
            task: what.task,
            stream: stream.into(),
            follow: true,
            offset: what.tail_bytes.unwrap_or_default(),
            from_end: what.tail_bytes.is_some(),
        };
        let state = LogState {
            client,
            request,
            outage,
            open: None,
            is_started: false,
            has_output: false,
        };
        stream::try_unfold(state, |mut state| async move {
            let chunk = state.next().await?;
            Ok(chunk.map(|data| (data, state)))
        })
    }
}

struct LogState {
    client: Client,
    request: v1::LogsRequest,
    outage: Outage,
    open: Option<Opened<v1::LogsChunk>>,
    is_started: bool,
    has_output: bool,
}

impl LogState {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        if !self.is_started {
            self.wait_for_start().await?;
            self.is_started = true;
        }
        loop {
            let broken = match &mut self.open {
                None => {
                    let opening = self.client.allocations().logs(self.request.clone());
                    match opening.await {
                        Ok(opened) => {
                            self.open = Some(opened);
                            continue;
                        }
                        Err(error) => error,
                    }
                }
                Some(chunks) => match chunks.next().await {
                    Ok(Some(chunk)) => {
                        self.outage.over(Instant::now());
                        self.has_output = true;
                        if !self.request.from_end {
                            self.request.offset += chunk.data.len() as u64;
                        }
                        return Ok(Some(chunk.data));
                    }
                    Ok(None) => return Ok(None),
                    Err(error) => error,
                },
            };
            if self.open.take().is_some() {
                self.client.leave_for(&broken);
            }
            if self.request.from_end && self.has_output {
                return Err(broken);
            }
            self.outage.wait(broken).await?;
        }
    }

    async fn wait_for_start(&self) -> Result<(), Error> {
        let mut index = 0;
        loop {
            let request = v1::GetAllocationRequest {
                options: Some(v1::QueryOptions {
                    namespace: "*".to_owned(),
                    ..Default::default()
                }),
                alloc_id: self.request.alloc_id.clone(),
            };
            let allocations = self.client.allocations();
            let answer = allocations.get(request).blocking(index, WAIT).await?;
            let allocation = answer.allocation.unwrap_or_default();
            if allocation.client_status != "pending" {
                return Ok(());
            }
            index = answer.meta.unwrap_or_default().index;
        }
    }
}

#[cfg(test)]
mod tests {
    use tonic::Status;

    use super::*;

    #[test]
    fn an_outage_ends_with_the_error_after_its_longest_time() {
        let start = Instant::now();
        let away = Error::new("/r", "http://g:1", Status::unavailable(""), Duration::ZERO);
        let gone = Error::new("/r", "http://g:1", Status::not_found(""), Duration::ZERO);
        let longest = Some(Duration::from_secs(2));
        let mut outage = Outage::new(RetryPolicy::default(), longest, start);
        let after = |secs| start + Duration::from_secs(secs);
        let first = outage.delay(&away, after(1), 1.0);
        assert_eq!(first, Some(Duration::from_millis(100)));
        let second = outage.delay(&away, after(1), 0.0);
        assert_eq!(second, Some(Duration::from_millis(100)), "half of 200 ms");
        assert_eq!(outage.delay(&away, after(2), 1.0), None);
        assert_eq!(outage.delay(&gone, start, 1.0), None);
        outage.over(after(3));
        let again = outage.delay(&away, after(4), 1.0);
        assert_eq!(again, Some(Duration::from_millis(100)));
    }
}
