//! Work that takes too long for the threads where everything else waits: a computation of
//! milliseconds, a disk.
//!
//! The one place that knows of threads for it. A simulation has none, because a thread's pace is
//! nobody's to repeat: there, the same work is a task like any other.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::{JoinHandle, JoinSet};

static IS_INLINE: AtomicBool = AtomicBool::new(false);

/// Does all work on the thread that asks for it, from now on and in the whole process.
pub fn run_inline() {
    IS_INLINE.store(true, Ordering::Relaxed);
}

/// Returns whether there is one thread only.
pub fn is_inline() -> bool {
    IS_INLINE.load(Ordering::Relaxed)
}

/// Does `work` on a thread for such work. Once begun it goes on to its end, whoever waits for it.
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

/// As [`spawn`], for one who waits for the first of several.
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
