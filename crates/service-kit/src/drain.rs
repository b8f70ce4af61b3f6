//! The stop signal of a process: one token, called `drain` everywhere.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// The exit code after a second signal: that of shells for SIGINT.
const FORCED_EXIT_CODE: i32 = 130;

/// Returns a token that the first SIGINT or SIGTERM cancels; a second one ends the process at once.
///
/// Must be called within a tokio runtime.
///
/// # Errors
/// The system refuses to let signals be watched.
pub fn on_signals() -> std::io::Result<CancellationToken> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let drain = CancellationToken::new();
    let token = drain.clone();
    tokio::spawn(async move {
        let name = tokio::select! {
            _ = interrupt.recv() => "SIGINT",
            _ = terminate.recv() => "SIGTERM",
        };
        info!(signal = name, "draining; a second signal exits at once");
        token.cancel();
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        warn!("second signal: exiting without draining");
        std::process::exit(FORCED_EXIT_CODE);
    });
    Ok(drain)
}
