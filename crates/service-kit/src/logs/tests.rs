//! Printed, recent and monitored lines of one subscriber.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use tracing::{debug, info, info_span, trace};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;

use super::*;
use crate::telemetry::subscriber;

/// The output of the process.
#[derive(Clone, Debug, Default)]
struct Printed(Arc<Mutex<Vec<u8>>>);

impl io::Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Printed {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Printed {
    fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut self.0.lock().unwrap())).unwrap()
    }
}

/// The interest in lines is the process's, and the tests have a subscriber each: they take turns.
static TURN: Mutex<()> = Mutex::new(());

struct Started {
    _subscriber: tracing::subscriber::DefaultGuard,
    _turn: std::sync::MutexGuard<'static, ()>,
}

/// Starts logs at `info` for this thread.
fn start() -> (Logs, Printed, Started) {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let printed = Printed::default();
    let (logs, filter) = Logs::new("info").unwrap();
    let format = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_writer(printed.clone());
    let subscriber = subscriber(&logs, filter, Box::new(format));
    let started = Started {
        _subscriber: tracing::subscriber::set_default(subscriber.with(None::<Recorder>)),
        _turn: turn,
    };
    (logs, printed, started)
}

fn messages(records: &[Arc<Record>]) -> Vec<&str> {
    records.iter().map(|it| it.message.as_str()).collect()
}

/// Counts how often it is formatted.
#[derive(Debug, Default)]
struct Costly(AtomicU64);

impl std::fmt::Display for Costly {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fetch_add(1, Ordering::Relaxed);
        f.write_str("costly")
    }
}

#[tokio::test]
async fn a_monitor_reads_what_the_process_does_not_print() {
    let (logs, printed, _guard) = start();
    let costly = Costly::default();
    debug!(%costly, "before");
    assert_eq!(costly.0.load(Ordering::Relaxed), 0);

    let mut monitor = logs.monitor("debug".parse().unwrap()).unwrap();
    let span = info_span!("rpc", service = "gateway", code = tracing::field::Empty);
    span.in_scope(|| {
        span.record("code", 5);
        debug!(%costly, count = 3, "hidden");
        trace!("below");
        info!("shown");
    });
    let batch = monitor.next().await;
    assert_eq!(messages(&batch.records), ["hidden", "shown"]);
    assert_eq!(batch.dropped, 0);
    let hidden = &batch.records[0];
    let field = |name, value: &str| (name, value.to_owned());
    assert_eq!(
        hidden.fields,
        [field("costly", "costly"), field("count", "3")]
    );
    assert_eq!(hidden.spans[0].name, "rpc");
    assert_eq!(
        hidden.spans[0].fields,
        [field("service", "gateway"), field("code", "5")]
    );
    assert_eq!(
        (hidden.level, hidden.target),
        (tracing::Level::DEBUG, module_path!())
    );
    assert!(hidden.file.is_some() && hidden.time_ns > 0);

    let text = printed.take();
    assert!(text.contains("shown") && !text.contains("hidden"), "{text}");
    assert_eq!(messages(&logs.recent(10)), ["shown"]);

    drop(monitor);
    let before = costly.0.load(Ordering::Relaxed);
    debug!(%costly, "after");
    assert_eq!(costly.0.load(Ordering::Relaxed), before);
    assert!(!tracing::enabled!(tracing::Level::DEBUG));
}

#[tokio::test]
async fn each_monitor_has_its_own_filter() {
    let (logs, _printed, _guard) = start();
    let mut verbose = logs.monitor("debug".parse().unwrap()).unwrap();
    let mut terse = logs.monitor("warn,far=debug".parse().unwrap()).unwrap();
    debug!("here");
    debug!(target: "far::away", "there");
    debug!(target: "h2::codec", "carried");
    tracing::warn!(target: "h2::codec", "broken");
    let expected = ["here", "there", "broken"];
    assert_eq!(messages(&verbose.next().await.records), expected);
    assert_eq!(messages(&terse.next().await.records), &expected[1..]);
}

#[tokio::test]
async fn a_slow_monitor_loses_lines_and_learns_how_many() {
    let (logs, printed, _guard) = start();
    let mut slow = logs.monitor("info".parse().unwrap()).unwrap();
    for number in 0..1_100 {
        info!("{number}");
    }
    let mut read = Vec::new();
    let mut dropped = 0;
    while read.len() < 1_024 {
        let batch = slow.next().await;
        dropped += batch.dropped;
        read.extend(batch.records);
    }
    assert_eq!(dropped, 1_100 - 1_024);
    assert_eq!(read.last().unwrap().message, "1023");
    info!("again");
    let batch = slow.next().await;
    assert_eq!(
        (messages(&batch.records), batch.dropped),
        (vec!["again"], 0)
    );
    assert_eq!(printed.take().lines().count(), 1_101);
}

#[tokio::test]
async fn monitors_are_limited() {
    let (logs, _printed, _guard) = start();
    let open = || logs.monitor("info".parse().unwrap());
    let mut monitors: Vec<_> = (0..8).map(|_| open().unwrap()).collect();
    let refused = open().unwrap_err().to_string();
    assert!(refused.contains("8 monitors"), "{refused}");
    monitors.pop();
    open().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_level_is_set_for_a_while_and_returns_to_the_configured_one() {
    let (logs, printed, _guard) = start();
    let minute = Duration::from_secs(60);
    let change = logs.set_level("debug", Some(minute)).unwrap();
    assert_eq!(change.previous, "info");
    assert_eq!(change.now.filter, "debug");
    assert_eq!(change.now.expires_after, Some(minute));
    debug!("seen");
    assert!(printed.take().contains("seen"));
    assert!(messages(&logs.recent(10)).contains(&"seen"));

    // A later change is not ended by the expiry of an earlier one.
    tokio::time::sleep(minute / 2).await;
    logs.set_level("trace", Some(minute)).unwrap();
    tokio::time::sleep(minute / 2 + Duration::from_secs(1)).await;
    assert_eq!(logs.level().filter, "trace");
    tokio::time::sleep(minute / 2).await;
    assert_eq!(logs.level().filter, "info");
    assert!(printed.take().contains("the configured log level is back"));
    debug!("unseen");
    assert_eq!(printed.take(), "");

    let refused = logs.set_level("loud", None).unwrap_err().to_string();
    assert!(refused.contains("names no level"), "{refused}");
    assert_eq!(logs.level().filter, "info");
    logs.set_level("off", None).unwrap();
    info!("unseen");
    assert_eq!(printed.take(), "");
    let change = logs.set_level("", Some(minute)).unwrap();
    assert_eq!(
        (change.previous.as_str(), change.now.filter.as_str()),
        ("off", "info")
    );
    assert_eq!(change.now.expires_after, None);
}

#[tokio::test]
async fn libraries_of_the_network_print_details_only_if_the_level_names_them() {
    let (logs, printed, _guard) = start();
    let frame = || {
        debug!(target: "h2::codec::framed_read", "frame");
        debug!("ours");
    };
    logs.set_level("debug", None).unwrap();
    frame();
    info!(target: "h2::codec", "closed");
    let text = printed.take();
    assert!(text.contains("ours") && text.contains("closed"), "{text}");
    assert!(!text.contains("frame"), "{text}");
    assert_eq!(logs.level().filter, "debug");

    logs.set_level("debug,h2=debug", None).unwrap();
    frame();
    let text = printed.take();
    assert!(text.contains("frame") && text.contains("ours"), "{text}");
}
