//! Remote readers of a process's log, each with a filter of its own, which the process does not print by.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use tokio::sync::mpsc;
use tracing::subscriber::Interest;
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Context, Filter};

use super::record::Record;

/// Most readers of one process: an operator or two, and some forgotten terminals.
const MAX_MONITORS: usize = 8;
/// Lines that wait for a slow reader; further ones are dropped and counted. A burst at `debug` has
/// hundreds, of 300 bytes each.
const BUFFER: usize = 1_024;
/// Most lines of a batch, so that a batch stays far below the largest message of gRPC.
const BATCH: usize = 64;

/// Crates that carry the stream of a monitor, or the export of logs. Their lines below `warn` are left
/// out of streams: each would cause the next one. A process prints them from `info` on.
pub(super) const CARRIERS: [&str; 11] = [
    "h2",
    "hyper",
    "hyper_util",
    "mio",
    "opentelemetry",
    "opentelemetry_otlp",
    "opentelemetry_sdk",
    "rustls",
    "tokio_util",
    "tonic",
    "tower",
];

/// The process has its maximum of monitors.
#[derive(Debug, thiserror::Error)]
#[error("{MAX_MONITORS} monitors read the log of this process already: end one of them")]
pub struct TooManyMonitors;

/// The readers. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Monitors {
    open: Arc<RwLock<Vec<Arc<Reader>>>>,
}

#[derive(Debug)]
struct Reader {
    filter: Targets,
    lines: mpsc::Sender<Arc<Record>>,
    dropped: AtomicU64,
}

impl Reader {
    fn wants(&self, metadata: &Metadata<'_>) -> bool {
        let (target, level) = (metadata.target(), metadata.level());
        // `Level::ERROR` is the smallest level.
        (*level <= Level::WARN || !is_carrier(target)) && self.filter.would_enable(target, level)
    }
}

/// Tells whether the module belongs to a crate that carries logs over the network.
pub(crate) fn is_carrier(target: &str) -> bool {
    let krate = target.split("::").next().unwrap_or(target);
    CARRIERS.contains(&krate)
}

impl Monitors {
    pub(super) fn open(&self, filter: Targets) -> Result<Monitor, TooManyMonitors> {
        let (lines, received) = mpsc::channel(BUFFER);
        let reader = Arc::new(Reader {
            filter,
            lines,
            dropped: AtomicU64::new(0),
        });
        {
            let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
            if open.len() >= MAX_MONITORS {
                return Err(TooManyMonitors);
            }
            open.push(Arc::clone(&reader));
        }
        // Without the lock: this asks `MonitorFilter` about each place in the source that logs.
        tracing::callsite::rebuild_interest_cache();
        Ok(Monitor {
            lines: received,
            reader,
            monitors: self.clone(),
        })
    }

    fn close(&self, reader: &Arc<Reader>) {
        {
            let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
            open.retain(|known| !Arc::ptr_eq(known, reader));
        }
        tracing::callsite::rebuild_interest_cache();
    }

    fn readers(&self) -> RwLockReadGuard<'_, Vec<Arc<Reader>>> {
        self.open.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a line to each reader that wants it; it is made once, and only if there is one.
    pub(super) fn send(&self, metadata: &Metadata<'_>, make: impl Fn() -> Arc<Record>) {
        let mut made = None;
        for reader in self.readers().iter() {
            if !reader.wants(metadata) {
                continue;
            }
            match reader.lines.try_reserve() {
                Ok(permit) => permit.send(Arc::clone(made.get_or_insert_with(&make))),
                Err(_) => {
                    reader.dropped.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    pub(super) fn wanted(&self) -> MonitorFilter {
        MonitorFilter(self.clone())
    }
}

/// The filter of the layer for monitors: lines that a reader wants. Without readers it disables each
/// place in the source that logs, so that nothing is evaluated there.
#[derive(Clone, Debug)]
pub(crate) struct MonitorFilter(Monitors);

impl<S: Subscriber> Filter<S> for MonitorFilter {
    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        self.0.readers().iter().any(|it| it.wants(metadata))
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        // Asked again for each line: two readers differ.
        if self.0.readers().iter().any(|it| it.wants(metadata)) {
            Interest::sometimes()
        } else {
            Interest::never()
        }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        let readers = self.0.readers();
        let levels = readers
            .iter()
            .filter_map(|it| Filter::<S>::max_level_hint(&it.filter));
        Some(levels.max().unwrap_or(LevelFilter::OFF))
    }
}

/// One reader's lines; dropping it ends the reading.
#[derive(Debug)]
pub struct Monitor {
    lines: mpsc::Receiver<Arc<Record>>,
    reader: Arc<Reader>,
    monitors: Monitors,
}

/// Consecutive lines.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    pub records: Vec<Arc<Record>>,
    /// Lines that were dropped since the batch before, because the reader was slow. They were newer than
    /// the lines that waited.
    pub dropped: u64,
}

impl Monitor {
    /// Waits for lines; never ends by itself.
    pub async fn next(&mut self) -> Batch {
        let mut records = Vec::new();
        // The sender lives as long as `self`.
        self.lines.recv_many(&mut records, BATCH).await;
        Batch {
            records,
            dropped: self.reader.dropped.swap(0, Ordering::Relaxed),
        }
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.monitors.close(&self.reader);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_that_carry_the_stream_are_known_by_their_name() {
        assert!(is_carrier("h2::codec") && is_carrier("tonic"));
        assert!(!is_carrier("h2o::codec") && !is_carrier("service_kit::rpc"));
    }
}
