//! The stop signal of a process: one token, called `drain` everywhere.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// The exit code after a second signal: that of shells for SIGINT.
const FORCED_EXIT_CODE: i32 = 130;

/// The time in which further signals count as the first one. `timeout` and shells send a signal to the
/// process and to its group, within microseconds.
const TOGETHER: Duration = Duration::from_millis(200);

/// SIGINT and SIGTERM of this process.
#[derive(Debug)]
pub struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    /// Must be called within a tokio runtime.
    ///
    /// # Errors
    /// The system refuses to let signals be watched.
    pub fn watch() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for a signal and returns its name.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }

    /// Waits for a signal that is not sent together with the one before.
    pub async fn second(&mut self) {
        // Those that arrive together are dropped, however many they are.
        let together = async {
            loop {
                self.next().await;
            }
        };
        let _: Result<(), _> = timeout(TOGETHER, together).await;
        self.next().await;
    }
}

/// Returns a token that the first SIGINT or SIGTERM cancels; a second one ends the process at once.
///
/// Must be called within a tokio runtime.
///
/// # Errors
/// The system refuses to let signals be watched.
pub fn on_signals() -> std::io::Result<CancellationToken> {
    let mut signals = StopSignals::watch()?;
    let drain = CancellationToken::new();
    let token = drain.clone();
    tokio::spawn(async move {
        let name = signals.next().await;
        info!(signal = name, "draining; a second signal exits at once");
        token.cancel();
        signals.second().await;
        warn!("second signal: exiting without draining");
        std::process::exit(FORCED_EXIT_CODE);
    });
    Ok(drain)
}
