//! Blocking work, such as computations of milliseconds and disk access, on threads apart from the
//! async runtime's.
//!
//! The only place that uses threads for it. A simulation has no such threads, because their timing
//! cannot be reproduced: there the same work runs as an async task.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::{JoinHandle, JoinSet};

static IS_INLINE: AtomicBool = AtomicBool::new(false);

/// Runs all work as async tasks from now on, in the whole process.
pub fn run_inline() {
    IS_INLINE.store(true, Ordering::Relaxed);
}

/// Returns whether work runs as async tasks.
pub fn is_inline() -> bool {
    IS_INLINE.load(Ordering::Relaxed)
}

/// Runs `work` on a thread for blocking work. Once started it runs to its end, even when no task waits
/// for it.
///
/// # Panics
/// Outside a tokio runtime.
pub fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    if is_inline() {
        tokio::spawn(async move { work() })
    } else {
        tokio::task::spawn_blocking(work)
    }
}

/// As [`spawn`], into a set of tasks.
///
/// # Panics
/// Outside a tokio runtime.
pub fn spawn_in<T: Send + 'static>(
    set: &mut JoinSet<T>,
    work: impl FnOnce() -> T + Send + 'static,
) {
    if is_inline() {
        set.spawn(async move { work() });
    } else {
        set.spawn_blocking(work);
    }
}
